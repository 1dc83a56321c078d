//! `only=MAIN_CLASS`: of all JVMs that are given the options, by `JAVA_TOOL_OPTIONS` say, those that run one program.
//!
//! ```text
//! sun.java.command   com.acme.Main a b      module/com.acme.Main a b      path/app.jar a b
//!                    └── the class                    └── the class       └── its name, or its Main-Class
//! ```

use std::path::Path;

use lucce_filter::Patterns;

use crate::options::jar;

/// Whether the program, as the launcher tells it to the VM, is one of those that are meant.
pub fn is_meant(only: &Patterns, command: &str) -> bool {
    names(command).iter().any(|name| only.matches(name))
}

/// What the program is called.
pub fn names(command: &str) -> Vec<String> {
    match jar_of(command) {
        Some(jar) => {
            let name = Path::new(jar)
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            name.into_iter()
                .chain(jar::main_class(Path::new(jar)))
                .collect()
        }
        None => {
            let first = command.split(' ').next().unwrap_or_default();
            let class = first.rsplit('/').next().unwrap_or_default();
            vec![class.replace('/', ".")]
        }
    }
}

/// Names of files may hold spaces, and arguments follow behind one.
fn jar_of(command: &str) -> Option<&str> {
    let ends = command
        .match_indices(' ')
        .map(|(at, _)| at)
        .chain([command.len()]);
    let mut begins = ends.filter_map(|end| command.get(..end));
    begins.find(|begin| jar::is_jar(Path::new(begin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_class_is_known_with_and_without_a_module() {
        let only = Patterns::parse("com.acme.Main+org.h2.*").unwrap();
        for command in ["com.acme.Main", "com.acme.Main a b", "acme/com.acme.Main a"] {
            assert!(is_meant(&only, command), "{command}");
        }
        assert!(is_meant(&only, "org.h2.tools.Shell -url x"));
        for command in [
            "",
            "com.acme.Other com.acme.Main",
            "/no/such/file.jar com.acme.Main",
        ] {
            assert!(!is_meant(&only, command), "{command}");
        }
    }
}
