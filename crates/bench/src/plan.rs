//! What runs: programs, variants, and the number of rounds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::{Centre, Tools, Variant};

/// The command of a Java program, split at the position of a variant's flags.
#[derive(Clone, Debug)]
pub struct JavaCommand {
    pub java: OsString,
    /// Everything after the variant's flags.
    pub arguments: Vec<OsString>,
    pub folder: Option<PathBuf>,
    /// Environment variables to remove: they would pass flags to the baseline as well.
    pub without_env: Vec<&'static str>,
}

impl JavaCommand {
    pub fn with(&self, flags: &[OsString]) -> Command {
        let mut command = Command::new(&self.java);
        command.args(flags).args(&self.arguments);
        self.settle(command)
    }

    /// Starts the JVM with only the flags, to find out whether it accepts them.
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

/// A program to measure.
#[derive(Clone, Debug)]
pub struct Program {
    pub name: String,
    pub command: JavaCommand,
    /// Measures the whole process, even if it prints iterations.
    pub whole: bool,
    /// The program waits for a line of its standard input before each iteration. All variants are then started at once
    /// and take turns, iteration by iteration.
    pub turns: bool,
    /// Iterations dropped at the start of each JVM; `None`: as many as the plan says.
    pub warm_up: Option<usize>,
}

/// One run of the harness.
#[derive(Clone, Debug)]
pub struct Plan {
    pub programs: Vec<Program>,
    /// The first is the baseline.
    pub variants: Vec<Variant>,
    /// JVMs per program and variant.
    pub rounds: usize,
    /// Iterations dropped at the start of each JVM. A program without iterations has one per JVM; if this is not 0, its
    /// first round is dropped.
    pub warm_up: usize,
    pub centre: Centre,
    /// The maximum time of one JVM.
    pub limit: Duration,
    pub tools: Tools,
    /// Further facts about the measurement, for the report.
    pub setting: BTreeMap<String, String>,
    /// The folder for outputs and recordings.
    pub scratch: PathBuf,
}
