//! What compiles the crates of a workspace: the compiler alone, or Clippy, which is the compiler with its lints. Where both lints
//! and tests are wanted, Clippy compiles the tests, so that no crate is read twice.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Outcome, paths, tools};

/// Cargo keeps what each of them has compiled apart from the other's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WorkspaceCompiler {
    #[default]
    Rustc,
    Clippy,
}

impl WorkspaceCompiler {
    /// # Errors
    /// Clippy is missing.
    pub fn configure(self, cargo: &mut Command) -> Outcome {
        if self == WorkspaceCompiler::Clippy {
            cargo.env("RUSTC_WORKSPACE_WRAPPER", clippy_driver()?);
        }
        Ok(())
    }
}

/// Beside the cargo that runs this.
pub fn clippy_driver() -> Result<PathBuf, String> {
    let said = tools::output(
        Command::new("rustc")
            .current_dir(paths::root())
            .args(["--print", "sysroot"]),
    )?;
    let driver = Path::new(String::from_utf8_lossy(&said).trim()).join("bin/clippy-driver");
    match driver.exists() {
        true => Ok(driver),
        false => Err(format!(
            "{} is missing: rustup component add clippy",
            driver.display()
        )),
    }
}

/// Runs a command of cargo that compiles, and prints what the compiler says. Warnings do not stop it, so that tests can run all the
/// same.
///
/// # Errors
/// Something does not compile, or there are warnings.
pub fn deny_warnings(cargo: &mut Command) -> Outcome {
    let failed = |e: std::io::Error| format!("cargo: {e}");
    cargo.args(["--message-format", "json"]);
    cargo.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = cargo.spawn().map_err(failed)?;
    let mut warnings = 0;
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|stdout| BufReader::new(stdout).lines())
    {
        if let Some(message) = compiler_message(&line.map_err(failed)?) {
            print!("{}", message.rendered);
            warnings += u32::from(message.is_warning);
        }
    }
    let status = child.wait().map_err(failed)?;
    match (status.success(), warnings) {
        (true, 0) => Ok(()),
        (true, warnings) => Err(format!("{warnings} warnings")),
        (false, _) => Err(format!("cargo: {status}")),
    }
}

struct CompilerMessage {
    rendered: String,
    is_warning: bool,
}

/// None: the line is about something else.
fn compiler_message(line: &str) -> Option<CompilerMessage> {
    let line: Value = serde_json::from_str(line).ok()?;
    let message = line.get("message")?;
    Some(CompilerMessage {
        rendered: message["rendered"].as_str()?.to_owned(),
        is_warning: message["level"] == "warning",
    })
}

#[cfg(test)]
mod workspace_compiler_tests {
    use super::*;

    #[test]
    fn messages_of_the_compiler_count() {
        let message = |level: &str| {
            let line = format!(
                r#"{{"reason":"compiler-message","message":{{"level":"{level}","rendered":"text\n"}}}}"#
            );
            compiler_message(&line).map(|message| (message.rendered, message.is_warning))
        };
        assert_eq!(message("warning"), Some(("text\n".to_owned(), true)));
        assert_eq!(message("error"), Some(("text\n".to_owned(), false)));
        for other in [
            r#"{"reason":"compiler-artifact","target":{}}"#,
            "Running",
            "",
        ] {
            assert!(compiler_message(other).is_none(), "{other}");
        }
    }
}
