//! What runs: programs, variants, and how often.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::{Centre, Tools, Variant};

/// A Java program, cut where a variant's flags go.
#[derive(Clone, Debug)]
pub struct JavaCommand {
    pub java: OsString,
    /// Everything after the variant's flags.
    pub arguments: Vec<OsString>,
    pub folder: Option<PathBuf>,
    /// Removed from the environment: variables that would slip flags into the baseline, too.
    pub without_env: Vec<&'static str>,
}

impl JavaCommand {
    pub fn with(&self, flags: &[OsString]) -> Command {
        let mut command = Command::new(&self.java);
        command.args(flags).args(&self.arguments);
        self.settle(command)
    }

    /// Starts the JVM with the flags alone, to see whether it takes them.
    pub fn probe(&self, flags: &[OsString]) -> Command {
        let mut command = Command::new(&self.java);
        command.args(flags).arg("-version");
        self.settle(command)
    }

    fn settle(&self, mut command: Command) -> Command {
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        for name in &self.without_env {
            command.env_remove(name);
        }
        command
    }
}

#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    pub command: JavaCommand,
    /// The whole process is measured, even if it prints iterations.
    pub whole: bool,
    /// Before each iteration it waits for a line of its standard input: all variants are started at once and
    /// take turns, iteration by iteration.
    pub turns: bool,
}

/// One run of the harness.
#[derive(Clone, Debug)]
pub struct Plan {
    pub programs: Vec<Program>,
    /// The first is the baseline.
    pub variants: Vec<Variant>,
    /// JVMs per program and variant.
    pub rounds: usize,
    /// Iterations dropped at the start of each JVM. A program that prints none has one per JVM; its
    /// first round is dropped if this is not 0.
    pub warm_up: usize,
    pub centre: Centre,
    /// How long one JVM may take.
    pub limit: Duration,
    pub tools: Tools,
    /// What else the report tells of how it was measured.
    pub setting: BTreeMap<String, String>,
    /// Where outputs and recordings go.
    pub scratch: PathBuf,
}
