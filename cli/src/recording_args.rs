//! What the agent records: arguments of `run`, `attach` and `record`.

use std::path::PathBuf;

use lucce_options::{
    CostBudget, EventSelection, OptionText, RecordingOptions, StartMode, split_settings,
};

use super::CommandError;

/// What the agent records, and where to.
#[derive(clap::Args)]
pub struct RecordingArgs {
    /// Kinds of events to record, joined by `+` or commas, such as alloc,lock; some take a value (leak=16k). `lucce options
    /// events` describes them [default: alloc]
    #[arg(long, value_name = "EVENTS", value_parser = EventSelection::parse)]
    events: Option<EventSelection>,
    /// Sample allocations alone; samples may cost this part of the program's CPU time, 1% to 25%
    #[arg(long, value_name = "PERCENT", value_parser = CostBudget::parse)]
    budget: Option<CostBudget>,
    /// Write the log to this file; %p is the process id, %t the time [default: lucce-%p-%t.lucce]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Set an option of the agent, repeatable; `lucce options` lists them
    #[arg(long = "opt", value_name = "KEY=VALUE", value_parser = parse_setting)]
    opts: Vec<String>,
}

/// One setting, `key=value`.
fn parse_setting(text: &str) -> Result<String, String> {
    let mut settings = split_settings(text);
    match (settings.next(), settings.next()) {
        _ if text.contains(',') => Err("an option of the agent cannot hold a comma".to_owned()),
        (Some(Ok(OptionText { key, .. })), None) if !key.is_empty() => Ok(text.to_owned()),
        _ => Err("must be KEY=VALUE".to_owned()),
    }
}

impl RecordingArgs {
    /// The arguments for these kinds of events and this log. `None`: the agent's default name.
    pub fn from_events(events: &str, out: Option<PathBuf>) -> RecordingArgs {
        RecordingArgs {
            events: EventSelection::parse(events).ok(),
            budget: None,
            out,
            opts: Vec::new(),
        }
    }

    /// The same arguments; without `--events` and `--opt events=`, these kinds.
    pub fn with_default_events(&self, events: &str) -> RecordingArgs {
        let is_named =
            self.events.is_some() || self.opts.iter().any(|opt| opt.starts_with("events="));
        RecordingArgs {
            events: match is_named {
                true => self.events.clone(),
                false => EventSelection::parse(events).ok(),
            },
            budget: self.budget,
            out: self.out.clone(),
            opts: self.opts.clone(),
        }
    }

    /// Parses the options of the agent.
    ///
    /// # Errors
    /// An option is unknown or malformed, or is refused for this way to start the agent.
    pub fn parse_options(&self, mode: StartMode) -> Result<RecordingOptions, CommandError> {
        let mut settings = Vec::new();
        if let Some(events) = &self.events {
            settings.push(format!("events={}", events.to_text()));
        }
        if let Some(budget) = self.budget {
            settings.push(format!("budget={}", budget.to_text()));
        }
        if let Some(out) = &self.out {
            settings.push(format!("out={}", path_text(out)?));
        }
        settings.extend_from_slice(&self.opts);
        check_commas(&settings)?;
        let options = RecordingOptions::parse(&settings.join(","), mode);
        options.map_err(|error| CommandError::Usage(error.to_string()))
    }

    /// Whether the user gives the log's path.
    pub fn names_log(&self) -> bool {
        self.out.is_some() || self.opts.iter().any(|opt| opt.starts_with("out="))
    }
}

/// The options as text for the agent.
///
/// # Errors
/// A path cannot be part of the text.
pub fn options_text(options: &RecordingOptions, mode: StartMode) -> Result<String, CommandError> {
    let out = path_text(&options.out)?;
    check_commas(&[format!("out={out}")])?;
    Ok(options.to_text(mode))
}

fn check_commas(settings: &[String]) -> Result<(), CommandError> {
    match settings.iter().find(|setting| setting.contains(',')) {
        Some(setting) => Err(CommandError::Usage(format!(
            "the agent's options cannot hold a comma: {setting}"
        ))),
        None => Ok(()),
    }
}

fn path_text(path: &std::path::Path) -> Result<&str, CommandError> {
    let failed = || CommandError::Usage(format!("{} is no UTF-8", path.display()));
    path.to_str().ok_or_else(failed)
}

#[cfg(test)]
mod recording_args_tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct TestArgs {
        #[command(flatten)]
        recording: RecordingArgs,
    }

    fn text_of(words: &[&str], mode: StartMode) -> Option<String> {
        let words = ["test"].iter().chain(words);
        let args = TestArgs::try_parse_from(words).ok()?;
        let options = args.recording.parse_options(mode).ok()?;
        options_text(&options, mode).ok()
    }

    #[test]
    fn arguments_become_options_of_the_agent() {
        let words = [
            "--events",
            "alloc,lock",
            "--opt",
            "verify=7",
            "--opt",
            "log=info",
        ];
        for (mode, text) in [
            (StartMode::WithJvm, "events=alloc+lock,verify=7"),
            (StartMode::Attached, "events=alloc+lock,log=info,verify=7"),
        ] {
            assert_eq!(text_of(&words, mode).as_deref(), Some(text));
        }
        let words = ["--budget", "20"];
        for (mode, text) in [
            (StartMode::WithJvm, "events=alloc=512k,budget=20%"),
            (StartMode::Attached, "budget=20%"),
        ] {
            assert_eq!(text_of(&words, mode).as_deref(), Some(text));
        }
        let words = [
            "--out",
            "a b-%p.lucce",
            "--opt",
            "include=a.*",
            "--opt",
            "include=b.C",
        ];
        let text = text_of(&words, StartMode::WithJvm);
        assert_eq!(text.as_deref(), Some("out=a b-%p.lucce,include=a.*+b.C"));
    }

    #[test]
    fn options_that_the_agent_refuses_are_refused() {
        for words in [
            ["--events", "aloc"],
            ["--opt", "evnts=alloc"],
            ["--opt", "verify"],
            ["--opt", "=x"],
            ["--opt", "verify=1,limit=2"],
            ["--opt", "alloc=64k"],
            ["--out", "a%q"],
            ["--out", "a,b"],
        ] {
            assert_eq!(text_of(&words, StartMode::WithJvm), None, "{words:?}");
        }
        for words in [["--budget", "40%"], ["--budget", "0"], ["--budget", "x"]] {
            assert_eq!(text_of(&words, StartMode::WithJvm), None, "{words:?}");
        }
        let calls = ["--events", "call"];
        assert_eq!(text_of(&calls, StartMode::Attached), None);
        assert!(text_of(&calls, StartMode::WithJvm).is_some());
    }
}
