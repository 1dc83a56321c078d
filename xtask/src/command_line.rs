//! The command line: each command with its options, and the groups in which help lists them.

use clap::{Command, CommandFactory, Parser, Subcommand};

use crate::apps::VerifyOptions;
use crate::bench::BenchArguments;
use crate::coverage::CoverageOptions;
use crate::dist::DistProduct;
use crate::fleet;
use crate::jvm::{JvmTestOptions, LeakSuiteOptions};
use crate::record::RecordOptions;
use crate::starve::StarveOptions;
use crate::suite::{InstallOptions, TestOptions};
use crate::systems::System;

#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    about = "Builds, tests, measures and packages lucce",
    after_help = "JDKs are found in JAVA_HOME, JAVA11_HOME, JAVA17_HOME, JAVA21_HOME, JAVA25_HOME, on the PATH and in /usr/lib/jvm.",
    subcommand_required = true,
    arg_required_else_help = true
)]
struct XtaskCommandLine {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
pub enum XtaskCommand {
    /// Build the agent, the lucce command and the Java side, ready to use
    Build,
    /// Build liblucce-lab.so: the agent with the papers' systems
    BuildLab,
    /// Build, run Lucene under the agent and show what the log contains
    Demo(InstallOptions),
    /// Draw the documents' pictures from the demo's page, in Chromium
    Pictures,
    /// Run all checks, or parts of them
    Test(TestOptions),
    /// Check formatting
    Fmt,
    /// Check which crate depends on which, which layer of the agent imports which, and that documents name existing files
    Arch {
        /// Draw the agent's layers in ARCHITECTURE.md
        #[arg(long)]
        draw: bool,
    },
    /// Write the reference pages of the documents from the definitions of the command line and of the agent's options
    Docs {
        /// Check that the pages are current, and write nothing
        #[arg(long)]
        check: bool,
    },
    /// Check licences, sources and versions of dependencies, and NOTICE
    Dependencies,
    /// Write NOTICE, the list of packages in the agent and the command
    Notice,
    /// Run clippy; warnings are errors
    Clippy,
    /// Run unit, property, file-format and command-line tests
    Unit {
        /// Leave out the tests that read whole JDKs
        #[arg(long)]
        quick: bool,
    },
    /// Explore every interleaving of the graph's readers and writers, and of what Java code reads of the agent
    Loom,
    /// Test the agent's address arithmetic under Miri, or valgrind where Miri is missing
    Memory,
    /// Run the Java side's own tests
    Java,
    /// Run whole-system tests on real JVMs: 11, 17, 21 and 25
    JvmTests(JvmTestOptions),
    /// Run programs with and without leaks under each collector, on JDK 17 and 25
    LeakSuite(LeakSuiteOptions),
    /// Load and unload classes on each JDK and print how much the process grows
    Soak {
        /// Number of classes; a million takes an hour or more and 2 GB of disk
        #[arg(default_value_t = 1_000_000)]
        classes: u32,
    },
    /// Stop twelve JVMs at random and check the longest wait for a lock of the agent
    Starve(StarveOptions),
    /// Test the pages of `lucce view` and `lucce serve` in Chromium
    PageTests,
    /// Read the output of `lucce export` with the tools it is for
    FormatTests {
        /// Run the tests whose names begin like this
        #[arg(default_value = "", hide_default_value = true)]
        name: String,
    },
    /// Check the crate fleet/, a workspace of its own: formatting, lints, tests
    Fleet,
    /// Record real runs into a dataset and compare the answers of DataFusion, DuckDB and Spark
    FleetTests {
        /// Compare with these engines only
        #[arg(value_name = "ENGINE", value_parser = fleet::ENGINES, default_values = fleet::ENGINES)]
        engines: Vec<String>,
    },
    /// Compare a program's content ids across JDK updates and JDKs, and measure their cost
    Ids,
    /// Run real applications and compare contexts with the JVM's own stack traces
    VerifyApps(VerifyOptions),
    /// Measure how much of the bytes allocated by the JVM is counted, by construct and by application
    Coverage(CoverageOptions),
    /// Check sizes, glibc versions and thread-local memory of the agent and the command
    Shipped,
    /// Build the agent for Linux aarch64 and check programs under it in QEMU
    Arm64,
    /// Make archives, Debian packages and checksums in target/dist
    Dist {
        /// Make them for this system only: x64, arm64 or x64-musl
        #[arg(value_parser = System::named)]
        system: Option<System>,
        /// Make this product only
        #[arg(long)]
        product: Option<DistProduct>,
    },
    /// Make the Maven repository target/maven/repository, and try it from new projects
    Maven {
        /// Unpacked archives of `dist` to take the agent from, for older systems and for other processors
        archives: Vec<String>,
    },
    /// Record the applications' calls for `lucce lab replay`
    RecordCalls(RecordOptions),
    /// Check instruction counts against lab/counts/counts.txt, and one ratio of the agent's cost
    PerfCheck {
        /// Write the counts to the file
        #[arg(long)]
        bless: bool,
    },
    /// Measure programs with and without agents, side by side
    Bench(Box<BenchArguments>),
}

impl XtaskCommand {
    /// Whether it runs what `build` makes.
    pub fn needs_build(&self) -> bool {
        use XtaskCommand::*;
        match self {
            Build
            | BuildLab
            | Demo(_)
            | Pictures
            | Test(_)
            | Fmt
            | Arch { .. }
            | Docs { .. }
            | Dependencies
            | Notice
            | Clippy
            | Unit { .. }
            | Loom
            | Memory
            | Java
            | Fleet
            | Dist { .. }
            | Bench(_) => false,
            JvmTests(_)
            | LeakSuite(_)
            | Soak { .. }
            | Starve(_)
            | PageTests
            | FormatTests { .. }
            | FleetTests { .. }
            | Ids
            | VerifyApps(_)
            | Coverage(_)
            | Shipped
            | Arm64
            | Maven { .. }
            | RecordCalls(_)
            | PerfCheck { .. } => true,
        }
    }
}

/// Headings of the help, each with its commands.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Build and try", &["build", "build-lab", "demo", "pictures"]),
    (
        "All checks, and those without a JVM",
        &[
            "test",
            "fmt",
            "arch",
            "docs",
            "dependencies",
            "clippy",
            "unit",
            "loom",
            "memory",
            "java",
        ],
    ),
    (
        "Checks on real JVMs",
        &[
            "jvm-tests",
            "verify-apps",
            "coverage",
            "page-tests",
            "format-tests",
            "leak-suite",
            "soak",
            "starve",
            "ids",
        ],
    ),
    ("Fleet", &["fleet", "fleet-tests"]),
    ("Package", &["shipped", "arm64", "dist", "maven", "notice"]),
    ("Measure", &["bench", "perf-check", "record-calls"]),
];

/// The command that the user gave; for help and for errors, prints them and ends the process.
pub fn parse() -> XtaskCommand {
    let mut matches = grouped().get_matches();
    match <XtaskCommandLine as clap::FromArgMatches>::from_arg_matches_mut(&mut matches) {
        Ok(line) => line.command,
        Err(e) => e.exit(),
    }
}

/// The command line whose help lists commands by group.
fn grouped() -> Command {
    let command = XtaskCommandLine::command();
    let groups = list_groups(&command);
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n\n\
         `cargo xtask help COMMAND` describes a command and its options.{{after-help}}"
    ))
}

fn list_groups(command: &Command) -> String {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text.push_str(&format!("{heading}:\n"));
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(|command| command.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:<14}{about}\n"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod command_line_tests {
    use super::*;
    use crate::arguments::parse_arguments;

    #[test]
    fn command_line_is_consistent() {
        grouped().debug_assert();
    }

    #[test]
    fn help_lists_every_command_once() {
        let command = XtaskCommandLine::command();
        let mut commands: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        commands.sort_unstable();
        listed.sort_unstable();
        assert_eq!(commands, listed);
        let help = grouped().render_long_help().to_string();
        assert!(
            help.contains("  jvm-tests     Run whole-system tests"),
            "{help}"
        );
    }

    #[test]
    fn every_argument_is_described() {
        let command = XtaskCommandLine::command();
        for command in command.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                let name = (command.get_name(), argument.get_id());
                assert!(argument.get_help().is_some(), "{name:?}");
            }
        }
    }

    #[test]
    fn options_of_the_test_runner_are_filters() {
        let options: JvmTestOptions =
            parse_arguments(&["--quick", "programs::", "--list"]).unwrap();
        assert!(options.quick);
        assert_eq!(options.filter, ["programs::", "--list"]);
    }
}
