//! The messages: one request, one reply, then the connection ends. All text is UTF-8.
//!
//! ```text
//! request  "lucce " version " " verb [" " argument] "\n"
//! reply    "lucce " version " ok " length "\n" body          body of `length` bytes
//!          "lucce " version " error " length "\n" body       the reason
//! ```
//!
//! Example: `lucce 1 dump /home/me/now.lucce\n` is answered by `lucce 1 ok 42\n{"file":…}`. The body of a successful
//! reply is one JSON object.
//!
//! Versions:
//! * 1 (2026-11-21): the first.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The version that this crate speaks.
pub const VERSION: u32 = 1;
/// Largest request in bytes: the longest path of the system, and the rest of the line.
pub const MAX_REQUEST: usize = 8 << 10;
/// Largest body of a reply in bytes.
pub const MAX_REPLY: usize = 1 << 20;
/// Largest first line of a reply in bytes.
pub const MAX_HEAD: usize = 64;

const NAME: &str = "lucce";

/// A command for the agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlCommand {
    /// Starts counting events.
    Start,
    /// Stops counting events; contexts are still tracked.
    Stop,
    /// Returns the agent's state and statistics.
    Status,
    /// Writes the log to the disk; with a path, also copies it there. The path is absolute, as the JVM sees it.
    Dump(Option<String>),
    /// Changes settings: `key=value`.
    Set(String),
    /// Searches for the holders of followed objects of these contexts. `None`: returns the costs of a search, and the
    /// types of the objects.
    ///
    /// Older agents accept one context only.
    Holders(Vec<u64>, Option<HolderSearchOptions>),
    /// Writes the followed objects that are alive into the log.
    Leaks(LeaksRequest),
    /// Writes a mark of this name into the log: what all counters have counted so far.
    Mark(String),
    /// Writes a mark from which readers count by default.
    Reset,
    /// Removes the hooks from the JVM.
    Detach,
}

/// What happens before the agent writes the live objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaksRequest {
    /// Nothing.
    Look,
    /// A collection of the whole heap, which stops the program.
    Collect,
    /// Nothing is written; returns the size of the heap.
    Cost,
}

impl LeaksRequest {
    const ALL: [(&'static str, LeaksRequest); 3] = [
        ("look", LeaksRequest::Look),
        ("collect", LeaksRequest::Collect),
        ("cost", LeaksRequest::Cost),
    ];

    fn from_name(text: &str) -> Option<LeaksRequest> {
        let entry = Self::ALL.into_iter().find(|(name, _)| *name == text);
        entry.map(|(_, request)| request)
    }

    fn as_str(self) -> &'static str {
        let entry = Self::ALL.into_iter().find(|(_, request)| *request == self);
        entry.map_or("look", |(name, _)| name)
    }
}

/// Options of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HolderSearchOptions {
    /// Maximum number of walks through the heap.
    pub max_walks: u32,
    /// Maximum time that all walks together may stop the VM, in whole milliseconds. `None`, as sent by older commands:
    /// no limit.
    pub budget: Option<Duration>,
    /// Whether the heap is collected for objects without a path. Requires a budget.
    pub collect: bool,
    /// The type of the objects, as a descriptor. `None`, as sent by older commands: some of each type.
    pub type_descriptor: Option<String>,
}

/// Why a request or reply is invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProtocolError {
    /// It does not belong to this protocol.
    Foreign,
    /// It has another version.
    Version(u32),
    /// The verb is unknown.
    Verb(String),
    /// The verb requires an argument, or allows none.
    Argument(&'static str),
    /// A reply would be longer than [`MAX_REPLY`].
    TooLong,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtocolError::Foreign => f.write_str("this is not lucce's protocol"),
            ProtocolError::Version(theirs) => write!(
                f,
                "version {theirs} of the protocol is spoken there, version {VERSION} here"
            ),
            ProtocolError::Verb(verb) => write!(
                f,
                "unknown command '{verb}'; there are start, stop, status, dump, set, mark, reset, holders, leaks and detach"
            ),
            ProtocolError::Argument(wanted) => write!(f, "malformed command: {wanted}"),
            ProtocolError::TooLong => write!(f, "the reply is longer than {MAX_REPLY} bytes"),
        }
    }
}

impl ControlCommand {
    /// Returns the line of the request. `None`: it would exceed [`MAX_REQUEST`] or one line.
    #[must_use]
    pub fn encode(&self) -> Option<String> {
        let (verb, argument) = self.verb_and_argument();
        let mut line = format!("{NAME} {VERSION} {verb}");
        if let Some(argument) = argument {
            line.push(' ');
            line.push_str(&argument);
        }
        let one_line = !line.contains(['\n', '\r', '\0']);
        line.push('\n');
        (one_line && line.len() <= MAX_REQUEST).then_some(line)
    }

    fn verb_and_argument(&self) -> (&'static str, Option<Cow<'_, str>>) {
        match self {
            ControlCommand::Start => ("start", None),
            ControlCommand::Stop => ("stop", None),
            ControlCommand::Status => ("status", None),
            ControlCommand::Dump(file) => ("dump", file.as_deref().map(Cow::from)),
            ControlCommand::Set(setting) => ("set", Some(setting.as_str().into())),
            ControlCommand::Holders(numbers, walks) => {
                let numbers: Vec<_> = numbers.iter().map(|n| format!("{n:#x}")).collect();
                let mut argument = numbers.join("+");
                if let Some(walks) = walks {
                    argument.push(' ');
                    argument.push_str(&walks.encode_argument());
                }
                ("holders", Some(argument.into()))
            }
            ControlCommand::Leaks(request) => ("leaks", Some(request.as_str().into())),
            ControlCommand::Mark(name) => ("mark", Some(name.as_str().into())),
            ControlCommand::Reset => ("reset", None),
            ControlCommand::Detach => ("detach", None),
        }
    }

    /// Parses the line of a request, without its end.
    ///
    /// # Errors
    /// The line is no request.
    pub fn decode(line: &str) -> Result<ControlCommand, ProtocolError> {
        let rest = strip_protocol_version(line)?;
        let (verb, argument) = match rest.split_once(' ') {
            Some((verb, argument)) => (verb, Some(argument)),
            None => (rest, None),
        };
        let none = |command, wanted| match argument {
            None => Ok(command),
            Some(_) => Err(ProtocolError::Argument(wanted)),
        };
        match verb {
            "start" => none(ControlCommand::Start, "start takes no argument"),
            "stop" => none(ControlCommand::Stop, "stop takes no argument"),
            "status" => none(ControlCommand::Status, "status takes no argument"),
            "reset" => none(ControlCommand::Reset, "reset takes no argument"),
            "mark" => match argument.filter(|name| !name.is_empty()) {
                Some(name) => Ok(ControlCommand::Mark(name.to_owned())),
                None => Err(ProtocolError::Argument("mark wants a name")),
            },
            "detach" => none(ControlCommand::Detach, "detach takes no argument"),
            "dump" => match argument {
                Some(file) if !file.starts_with('/') => {
                    Err(ProtocolError::Argument("dump wants an absolute path"))
                }
                file => Ok(ControlCommand::Dump(file.map(str::to_owned))),
            },
            "set" => match argument.filter(|setting| setting.contains('=')) {
                Some(setting) => Ok(ControlCommand::Set(setting.to_owned())),
                None => Err(ProtocolError::Argument("set wants key=value")),
            },
            "holders" => argument
                .and_then(parse_holders)
                .ok_or(ProtocolError::Argument(
                    "holders wants a number, 0x…, how many walks there may be, and a type",
                )),
            "leaks" => match argument.and_then(LeaksRequest::from_name) {
                Some(request) => Ok(ControlCommand::Leaks(request)),
                None => Err(ProtocolError::Argument("leaks wants look, collect or cost")),
            },
            other => Err(ProtocolError::Verb(printable_prefix(other))),
        }
    }
}

impl HolderSearchOptions {
    /// Returns an argument such as `16,2000,gc La/B;`.
    fn encode_argument(&self) -> String {
        let mut text = self.max_walks.to_string();
        if let Some(budget) = self.budget {
            text.push_str(&format!(",{}", budget.as_millis()));
            text.push_str(if self.collect { ",gc" } else { "" });
        }
        if let Some(of) = &self.type_descriptor {
            text.push(' ');
            text.push_str(of);
        }
        text
    }
}

/// Parses `0x1f+0x2f 16,2000 La/B;`; the further contexts, the type, the budget and the number of walks are optional.
fn parse_holders(argument: &str) -> Option<ControlCommand> {
    let (numbers, walks) = match argument.split_once(' ') {
        Some((numbers, how)) => (numbers, Some(parse_search_options(how)?)),
        None => (argument, None),
    };
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let numbers: Option<Vec<u64>> = numbers.split('+').map(number).collect();
    Some(ControlCommand::Holders(numbers?, walks))
}

/// A type may contain spaces.
fn parse_search_options(how: &str) -> Option<HolderSearchOptions> {
    let (most, of) = match how.split_once(' ') {
        Some((most, of)) => (most, Some(of.to_owned())),
        None => (how, None),
    };
    let mut numbers = most.split(',');
    let most = numbers.next()?.parse().ok()?;
    let budget = match numbers.next() {
        Some(millis) => Some(Duration::from_millis(millis.parse().ok()?)),
        None => None,
    };
    let collect = match numbers.next() {
        Some("gc") => true,
        Some(_) => return None,
        None => false,
    };
    numbers.next().is_none().then_some(HolderSearchOptions {
        max_walks: most,
        budget,
        collect,
        type_descriptor: of,
    })
}

/// Returns a printable prefix for messages: foreign text may be long and may move the cursor.
fn printable_prefix(text: &str) -> String {
    let printable = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(32).map(printable).collect()
}

/// Returns the text behind the protocol's name and version.
fn strip_protocol_version(line: &str) -> Result<&str, ProtocolError> {
    let rest = line.strip_prefix(NAME).and_then(|r| r.strip_prefix(' '));
    let (version, rest) = rest
        .and_then(|rest| rest.split_once(' '))
        .ok_or(ProtocolError::Foreign)?;
    match version.parse() {
        Ok(VERSION) => Ok(rest),
        Ok(other) => Err(ProtocolError::Version(other)),
        Err(_) => Err(ProtocolError::Foreign),
    }
}

/// Returns the first line of a reply; the body follows.
#[must_use]
pub fn encode_reply_head(fine: bool, length: usize) -> String {
    let how = if fine { "ok" } else { "error" };
    format!("{NAME} {VERSION} {how} {length}\n")
}

/// Returns whether a reply is successful, and the length of its body.
///
/// # Errors
/// The line is not the first line of a reply.
pub fn decode_reply_head(line: &str) -> Result<(bool, usize), ProtocolError> {
    let rest = strip_protocol_version(line)?;
    let (how, length) = rest.split_once(' ').ok_or(ProtocolError::Foreign)?;
    let fine = match how {
        "ok" => true,
        "error" => false,
        _ => return Err(ProtocolError::Foreign),
    };
    let length = length.parse().map_err(|_| ProtocolError::Foreign)?;
    match length <= MAX_REPLY {
        true => Ok((fine, length)),
        false => Err(ProtocolError::TooLong),
    }
}
