//! The arguments of the recorded program. They may be secrets (`--password=…`), so nothing shows them or sends them
//! anywhere unless its user asks for that; this is the one place that says what is shown instead.

/// The [`MetaRecord`](crate::MetaRecord) that has the main class, module or jar of the program, and its arguments.
pub const COMMAND: &str = "command";

/// A command line in which `*` stands for each argument. The main class, module or jar stays, and of `-DNAME=VALUE` the
/// name. The result is not longer than the command line, and masked again it is the same.
///
/// Arguments are words here: nothing tells a space within one from the end of it.
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

/// The name in `-DNAME` or `-DNAME=VALUE`, and whether there is a value.
fn property_name(word: &str) -> Option<(&str, bool)> {
    let property = word.strip_prefix("-D")?;
    let (name, value) = property.split_once('=').unwrap_or((property, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, !value.is_empty()))
}

#[cfg(test)]
mod tests {
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
            let said = mask_arguments(command);
            assert_eq!(said, masked, "{command:?}");
            assert!(said.len() <= command.len());
            assert_eq!(mask_arguments(&said), said);
        }
    }
}
