//! Placeholders in names of files and services: `%p`, `%t`, `%{NAME}`, `%%`.

use crate::OptionError;

/// A placeholder, which the agent replaces when it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placeholder<'t> {
    /// `%p`
    ProcessId,
    /// `%t`
    StartTime,
    /// `%{NAME}`: an environment variable.
    Variable(&'t str),
}

/// Replaces the placeholders of the value of option `key` by what `resolve` returns for each.
///
/// # Errors
/// A percent sign is followed by something else, or `resolve` fails; its message is completed by option and value.
pub fn expand_placeholders(
    key: &str,
    text: &str,
    mut resolve: impl FnMut(Placeholder<'_>) -> Result<String, String>,
) -> Result<String, OptionError> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        expanded.push_str(before);
        let malformed =
            || OptionError::malformed(key, text, "%p, %t, %{NAME} or %% after a percent sign");
        let (placeholder, behind) = split_placeholder(after).ok_or_else(malformed)?;
        match placeholder {
            Some(placeholder) => {
                let resolved = resolve(placeholder)
                    .map_err(|why| OptionError(format!("option {key}={text}: {why}")))?;
                expanded.push_str(&resolved);
            }
            None => expanded.push('%'),
        }
        rest = behind;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Checks the placeholders without replacing them.
pub(crate) fn check_placeholders(key: &str, text: &str) -> Result<(), OptionError> {
    expand_placeholders(key, text, |_| Ok(String::new())).map(|_| ())
}

/// The placeholder behind a percent sign, `None` for a percent sign, and the rest of the text.
fn split_placeholder(after: &str) -> Option<(Option<Placeholder<'_>>, &str)> {
    if let Some(variable) = after.strip_prefix('{') {
        let (name, rest) = variable.split_once('}')?;
        return Some((Some(Placeholder::Variable(name)), rest));
    }
    let placeholder = match after.chars().next()? {
        'p' => Some(Placeholder::ProcessId),
        't' => Some(Placeholder::StartTime),
        '%' => None,
        _ => return None,
    };
    Some((placeholder, &after[1..]))
}

#[cfg(test)]
mod placeholders_tests {
    use super::*;

    fn expand(text: &str) -> Result<String, OptionError> {
        expand_placeholders("out", text, |placeholder| match placeholder {
            Placeholder::ProcessId => Ok("7".into()),
            Placeholder::StartTime => Ok("now".into()),
            Placeholder::Variable("HOST") => Ok("h%p".into()),
            Placeholder::Variable(name) => Err(format!("{name} is not set")),
        })
    }

    #[test]
    fn each_placeholder_is_replaced_once() {
        assert_eq!(expand("a%%b"), Ok("a%b".into()));
        assert_eq!(expand("%p-%t.lucce"), Ok("7-now.lucce".into()));
        assert_eq!(expand("%{HOST}"), Ok("h%p".into()));
    }

    #[test]
    fn wrong_placeholders_are_refused() {
        for (bad, why) in [
            ("a%q", "expected %p"),
            ("a%", "expected %p"),
            ("%{A", "expected %p"),
            ("%ü", "expected %p"),
            ("%{A}", "option out=%{A}: A is not set"),
        ] {
            let error = expand(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
