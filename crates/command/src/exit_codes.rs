//! Exit codes of the commands `lucce` and `lucce fleet`.

use std::process::ExitCode;

/// The result of a command, which is its exit code; the larger of two results wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CommandStatus {
    /// The command has done all that was requested.
    Fine = 0,
    /// There is a finding: a mismatch, a leak, growth beyond a limit, an unknown context id.
    Finding = 1,
    /// The request is not possible.
    Unusable = 2,
    /// The log is damaged or foreign; the readable part was printed.
    Damaged = 3,
}

impl CommandStatus {
    pub const ALL: [CommandStatus; 4] = [
        CommandStatus::Fine,
        CommandStatus::Finding,
        CommandStatus::Unusable,
        CommandStatus::Damaged,
    ];

    /// The exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The meaning of the exit code, for help and documents.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            CommandStatus::Fine => "success",
            CommandStatus::Finding => {
                "a finding: a mismatch, a leak, growth beyond a gate's limit, an unknown context id"
            }
            CommandStatus::Unusable => {
                "not possible: wrong usage; a file that cannot be read or written; a missing or refusing JVM, agent or \
                 kind of events; a run that cannot answer"
            }
            CommandStatus::Damaged => {
                "a damaged or foreign log or dataset; the readable part was printed"
            }
        }
    }
}

impl From<CommandStatus> for ExitCode {
    fn from(status: CommandStatus) -> ExitCode {
        ExitCode::from(status.code())
    }
}

/// What the exit codes of a command mean beyond [`CommandStatus::meaning`].
pub struct ExitCodeNote {
    /// The command's name.
    pub command: &'static str,
    pub note: &'static str,
}

/// The notes, in the order of the documents.
pub const EXIT_CODE_NOTES: [ExitCodeNote; 7] = [
    ExitCodeNote {
        command: "run",
        note: "the program's exit code",
    },
    ExitCodeNote {
        command: "bench",
        note: "1: a run failed or computed another result",
    },
    ExitCodeNote {
        command: "gate",
        note: "1: the new runs exceed a limit; 2: the runs cannot be judged",
    },
    ExitCodeNote {
        command: "leaks",
        note: "0: no leak proven; 1: a leak, or the JVM ran out of memory",
    },
    ExitCodeNote {
        command: "otlp",
        note: "1: something was not delivered; 2: also a server that takes no profiles",
    },
    ExitCodeNote {
        command: "push",
        note: "1: something was not delivered",
    },
    ExitCodeNote {
        command: "fleet",
        note: "1: the requested item is not there",
    },
];

/// The exit codes as the end of a help text.
#[must_use]
pub fn exit_codes_help() -> String {
    let lines =
        CommandStatus::ALL.map(|status| format!("  {}  {}", status.code(), status.meaning()));
    format!("Exit codes:\n{}", lines.join("\n"))
}
