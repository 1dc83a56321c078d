//! Placeholders in the log's path.

use std::{env, process};

use super::values::{OptionError, malformed_value};

/// Expands `%p` (process id), `%t` (start time), `%{NAME}` (environment variable) and `%%` (a percent sign).
pub fn expand_placeholders(name: &str) -> Result<String, OptionError> {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (text, used) = expand_placeholder(name, after)?;
        out.push_str(&text);
        rest = &after[used..];
    }
    out.push_str(rest);
    Ok(out)
}

fn expand_placeholder(name: &str, after: &str) -> Result<(String, usize), OptionError> {
    let bad = || malformed_value("out", name, "%p, %t, %{NAME} or %% after a percent sign");
    match after.as_bytes().first() {
        Some(b'p') => Ok((process::id().to_string(), 1)),
        Some(b't') => Ok((lucce_jvmti::clock::utc_timestamp(), 1)),
        Some(b'%') => Ok(("%".into(), 1)),
        Some(b'{') => {
            let end = after.find('}').ok_or_else(bad)?;
            let variable = &after[1..end];
            Ok((read_variable(name, variable)?, end + 1))
        }
        _ => Err(bad()),
    }
}

/// A missing variable is an error: the log would have an unintended name.
fn read_variable(name: &str, variable: &str) -> Result<String, OptionError> {
    env::var(variable).map_err(|why| {
        let why = match why {
            env::VarError::NotPresent => "is not set",
            env::VarError::NotUnicode(_) => "is no UTF-8",
        };
        OptionError(format!(
            "option out={name}: the environment variable {variable} {why}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders() {
        assert_eq!(expand_placeholders("a%%b").unwrap(), "a%b");
        assert_eq!(
            expand_placeholders("%p").unwrap(),
            process::id().to_string()
        );
    }
}
