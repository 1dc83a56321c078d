//! The agent's options, completed for this VM. The crate `lucce-options` defines and parses them.
//!
//! `program_filter` and `jar` tell which program runs: for `only=`, and for own code.

pub mod jar;
pub mod program_filter;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::{env, process};

use lucce_callgraph::EncodingPolicy;
use lucce_options::placeholders::{Placeholder, expand_placeholders};
use lucce_options::{EncodingChoice, RecordingOptions, StartMode};
use lucce_ship::{HttpCollectorClient, HttpEndpoint};
use lucce_tracelog::escape::EscapedLine;

pub use lucce_options::{
    BurstOptions, ClassCacheOption, ControlMode, DEFAULT_SAMPLING_INTERVAL, EventSelection,
    InstrumentScope, LogLevel, OptionError, PushOptions, StartDelay, TrackingMode, find_setting,
    is_agent_event, kind_names,
};

/// The options as the user has given them, and what the agent adds when it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentOptions {
    /// Placeholders in it are expanded.
    recording: RecordingOptions,
    /// How contexts are numbered.
    pub encoding: EncodingPolicy,
    /// The collector of `push=`; `None`: the log is not pushed.
    pub collector: Option<HttpEndpoint>,
    /// Warnings from the time before the log existed.
    pub warnings: Vec<String>,
    /// The known JDK for the comparison of facts; `None`: none.
    pub compared_jdk: Option<u32>,
}

impl Deref for AgentOptions {
    type Target = RecordingOptions;

    fn deref(&self) -> &RecordingOptions {
        &self.recording
    }
}

impl DerefMut for AgentOptions {
    fn deref_mut(&mut self) -> &mut RecordingOptions {
        &mut self.recording
    }
}

impl AgentOptions {
    /// Parses the options of an agent that starts with the VM.
    ///
    /// # Errors
    /// An option is unknown or malformed, or does not go with another one: one line that names it.
    pub fn parse(text: &str) -> Result<AgentOptions, OptionError> {
        AgentOptions::complete(RecordingOptions::parse(text, StartMode::WithJvm)?)
    }

    /// Parses the options of an agent that is loaded into a running VM.
    ///
    /// # Errors
    /// As of [`AgentOptions::parse`]; also for options that need hooks.
    pub fn parse_attached(text: &str) -> Result<AgentOptions, OptionError> {
        AgentOptions::complete(RecordingOptions::parse(text, StartMode::Attached)?)
    }

    /// Expands placeholders and checks the collector's URL.
    fn complete(mut recording: RecordingOptions) -> Result<AgentOptions, OptionError> {
        let collector = recording.push.url.as_deref().map(|url| {
            let endpoint = HttpCollectorClient::parse_url(url);
            endpoint.map_err(|why| OptionError(format!("option push={url}: the URL {why}")))
        });
        let expand = |key, text: &str| expand_placeholders(key, text, resolve_placeholder);
        recording.out = PathBuf::from(expand("out", &recording.out.to_string_lossy())?);
        recording.push.service = expand("push-service", &recording.push.service)?;
        recording.push.version = expand("push-version", &recording.push.version)?;
        Ok(AgentOptions {
            encoding: encoding_policy(recording.encoding),
            collector: collector.transpose()?,
            warnings: Vec::new(),
            compared_jdk: None,
            recording,
        })
    }

    /// Prints a message on standard error, if its level is high enough.
    pub fn print_message(&self, level: LogLevel, text: &str) {
        if level >= self.log {
            eprintln!("lucce: {}", EscapedLine(text));
        }
    }

    /// Prints a warning, and keeps it for the log.
    pub fn add_warning(&mut self, text: String) {
        self.print_message(LogLevel::Warn, &text);
        self.warnings.push(text);
    }
}

fn encoding_policy(encoding: EncodingChoice) -> EncodingPolicy {
    match encoding {
        EncodingChoice::Lucce => EncodingPolicy::LUCCE,
        EncodingChoice::Adaptive => EncodingPolicy::ADAPTIVE,
        EncodingChoice::Static => EncodingPolicy::STATIC,
        EncodingChoice::Cct => EncodingPolicy::CCT,
    }
}

/// A missing variable is an error: the log would have an unintended name.
fn resolve_placeholder(placeholder: Placeholder<'_>) -> Result<String, String> {
    match placeholder {
        Placeholder::ProcessId => Ok(process::id().to_string()),
        Placeholder::StartTime => Ok(lucce_jvmti::clock::utc_timestamp()),
        Placeholder::Variable(name) => env::var(name).map_err(|why| {
            let why = match why {
                env::VarError::NotPresent => "is not set",
                env::VarError::NotUnicode(_) => "is no UTF-8",
            };
            format!("the environment variable {name} {why}")
        }),
    }
}

#[cfg(test)]
mod options_tests {
    use super::*;

    #[test]
    fn placeholders_are_expanded() {
        let options = AgentOptions::parse("").unwrap();
        let name = options.out.to_string_lossy();
        let begin = format!("lucce-{}-20", process::id());
        assert!(
            name.starts_with(&begin) && name.ends_with(".lucce"),
            "{name}"
        );
        let push = AgentOptions::parse("push=http://h:9/x/,push-service=shop%%").unwrap();
        assert_eq!(push.push.service, "shop%");
        let error = AgentOptions::parse("out=%{LUCCE_NO_SUCH_VARIABLE}.lucce").unwrap_err();
        assert_eq!(
            error.to_string(),
            "option out=%{LUCCE_NO_SUCH_VARIABLE}.lucce: the environment variable LUCCE_NO_SUCH_VARIABLE is not set"
        );
    }

    #[test]
    fn a_log_is_pushed_to_a_valid_url() {
        let of = |text: &str| AgentOptions::parse(text).map(|options| options.collector);
        assert_eq!(of(""), Ok(None));
        let to = of("push=http://h:9/x/,push-every=500ms").unwrap().unwrap();
        assert_eq!(
            (to.host.as_str(), to.port, to.path.as_str()),
            ("h", 9, "/x")
        );
        for (bad, why) in [
            ("push=h:9", "must begin with http://"),
            ("push=https://h", "no TLS"),
            ("push=http://h?x=1", "no query"),
        ] {
            let error = of(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn each_encoding_has_its_policy() {
        let of = |text| AgentOptions::parse(text).unwrap().encoding;
        assert_eq!(of(""), EncodingPolicy::LUCCE);
        assert_eq!(of("encoding=adaptive"), EncodingPolicy::ADAPTIVE);
        assert_eq!(of("encoding=cct"), EncodingPolicy::CCT);
        let of_static = "encoding=static,graph=a.lucce";
        assert_eq!(of(of_static), EncodingPolicy::STATIC);
    }
}
