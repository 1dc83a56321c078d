//! `only=MAIN_CLASS`: records only JVMs that run certain programs, if all JVMs get the options, for example by `JAVA_TOOL_OPTIONS`.
//!
//! ```text
//! sun.java.command   com.acme.Main a b      module/com.acme.Main a b      path/app.jar a b
//!                    └── the class                    └── the class       └── its name, or its Main-Class
//! ```

use std::path::Path;

use lucce_filter::PatternList;

use crate::options::jar;

/// Whether `only` selects the program. `command`: as the launcher passes it to the VM.
pub fn matches_program(only: &PatternList, command: &str) -> bool {
    program_names(command)
        .iter()
        .any(|name| only.matches_class(name))
}

/// The names of the program.
pub fn program_names(command: &str) -> Vec<String> {
    match find_jar(command) {
        Some(jar) => {
            let name = Path::new(jar)
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            name.into_iter()
                .chain(jar::main_classes(Path::new(jar)))
                .collect()
        }
        None => {
            let first = command.split(' ').next().unwrap_or_default();
            let class = first.rsplit('/').next().unwrap_or_default();
            vec![class.replace('/', ".")]
        }
    }
}

/// The main class of the program, and whether its jar holds several artifacts.
pub fn find_main_class(command: &str) -> (Option<String>, bool) {
    let merged = find_jar(command).is_some_and(|jar| jar::is_merged(Path::new(jar)));
    (program_names(command).pop(), merged)
}

/// The jar's path in the command. File names may contain spaces, and arguments follow them.
fn find_jar(command: &str) -> Option<&str> {
    let ends = command
        .match_indices(' ')
        .map(|(at, _)| at)
        .chain([command.len()]);
    let mut begins = ends.filter_map(|end| command.get(..end));
    begins.find(|begin| jar::is_jar(Path::new(begin)))
}

#[cfg(test)]
mod program_filter_tests {
    use super::*;

    #[test]
    fn a_main_class_is_known_with_and_without_a_module() {
        let only = PatternList::parse("com.acme.Main+org.h2.*").unwrap();
        for command in ["com.acme.Main", "com.acme.Main a b", "acme/com.acme.Main a"] {
            assert!(matches_program(&only, command), "{command}");
        }
        assert!(matches_program(&only, "org.h2.tools.Shell -url x"));
        for command in [
            "",
            "com.acme.Other com.acme.Main",
            "/no/such/file.jar com.acme.Main",
        ] {
            assert!(!matches_program(&only, command), "{command}");
        }
    }
}
