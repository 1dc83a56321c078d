//! Masks the arguments of the recorded program.
//!
//! Arguments may be secrets (`--password=…`), so no command shows or sends them unless the user asks for it. This
//! module alone decides what is shown instead.

/// Key of the [`MetaRecord`](crate::MetaRecord) with the program's main class, module or jar, and its arguments.
pub const COMMAND: &str = "command";

/// Replaces each argument of a command line by `*`.
///
/// The main class, module or jar stays, and so does the name in `-DNAME=VALUE`. The result is not longer than the
/// command line, and masking it again does not change it. Arguments are split at spaces: a space within an argument
/// cannot be recognized.
#[must_use]
pub fn mask_arguments(command: &str) -> String {
    let words = command.split_whitespace().enumerate();
    let words = words.map(|(at, word)| match property_name(word) {
        Some((name, false)) => format!("-D{name}"),
        Some((name, true)) => format!("-D{name}=*"),
        // Native code that starts a VM may name no main class.
        None if at == 0 && !word.starts_with('-') => word.to_owned(),
        None => "*".to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the name in `-DNAME` or `-DNAME=VALUE`, and whether there is a value.
fn property_name(word: &str) -> Option<(&str, bool)> {
    let property = word.strip_prefix("-D")?;
    let (name, value) = property.split_once('=').unwrap_or((property, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, !value.is_empty()))
}

#[cfg(test)]
mod arguments_tests {
    use super::*;

    #[test]
    fn arguments_are_masked_and_names_stay() {
        for (command, masked) in [
            ("", ""),
            ("app.Main", "app.Main"),
            ("app.Main --password=hunter2 a", "app.Main * *"),
            ("shop/app.Main hunter2", "shop/app.Main *"),
            ("/opt/shop.jar -p hunter2", "/opt/shop.jar * *"),
            (
                "m.Launcher -Ddb.password=hunter2 x",
                "m.Launcher -Ddb.password=* *",
            ),
            (
                "m.Launcher -Dquiet -Dempty= -D=x -D",
                "m.Launcher -Dquiet -Dempty * *",
            ),
            ("m.Launcher -Durl:hunter2 -Da=b=c", "m.Launcher * -Da=*"),
            ("--password=hunter2", "*"),
            ("  app.Main \n hunter2\u{a0}x ", "app.Main * *"),
            ("app.Main é", "app.Main *"),
        ] {
            let printed = mask_arguments(command);
            assert_eq!(printed, masked, "{command:?}");
            assert!(printed.len() <= command.len());
            assert_eq!(mask_arguments(&printed), printed);
        }
    }
}
