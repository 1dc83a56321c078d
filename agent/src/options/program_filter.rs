//! `only=MAIN_CLASS`: records only JVMs that run certain programs, if all JVMs get the options, for example by `JAVA_TOOL_OPTIONS`.
//!
//! ```text
//! sun.java.command   com.acme.Main a b      module/com.acme.Main a b      path/app.jar a b
//!                    └── the class                    └── the class       └── its name, or its Main-Class
//! ```

use std::path::Path;

use lucce_filter::PatternList;

use crate::options::jar::{self, JarContent};

/// The program of a JVM, as its command names it.
pub struct StartedProgram {
    /// The jar's file name and its main classes, or the main class. The class that runs is the last one.
    pub names: Vec<String>,
    /// Its jar holds several artifacts.
    pub is_merged: bool,
}

impl StartedProgram {
    /// `command`: as the launcher passes it to the VM.
    pub fn from_command(command: &str) -> StartedProgram {
        let Some(jar) = find_jar(command).map(Path::new) else {
            let first = command.split(' ').next().unwrap_or_default();
            let class = first.rsplit('/').next().unwrap_or_default();
            return StartedProgram {
                names: vec![class.to_owned()],
                is_merged: false,
            };
        };
        let content = JarContent::read(jar);
        let file_name = jar.file_name();
        let file_name = file_name.map(|name| name.to_string_lossy().into_owned());
        StartedProgram {
            names: file_name.into_iter().chain(content.main_classes).collect(),
            is_merged: content.is_merged,
        }
    }

    /// Whether the only jar of a class path holds several artifacts.
    pub fn is_path_merged(class_path: &str) -> bool {
        let paths = class_path.split(':').map(Path::new);
        let mut jars = paths.filter(|path| jar::is_jar(path));
        let first = jars.next().filter(|_| jars.next().is_none());
        first.is_some_and(|jar| JarContent::read(jar).is_merged)
    }

    /// Whether `only` selects the program.
    pub fn is_selected(&self, only: &PatternList) -> bool {
        self.names.iter().any(|name| only.matches_class(name))
    }
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
            assert!(
                StartedProgram::from_command(command).is_selected(&only),
                "{command}"
            );
        }
        assert!(StartedProgram::from_command("org.h2.tools.Shell -url x").is_selected(&only));
        for command in [
            "",
            "com.acme.Other com.acme.Main",
            "/no/such/file.jar com.acme.Main",
        ] {
            assert!(
                !StartedProgram::from_command(command).is_selected(&only),
                "{command}"
            );
        }
    }
}
