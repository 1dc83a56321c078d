//! The options `--include`, `--exclude` and `--arguments`, which all commands share.

use std::path::Path;

use lucce_decoder::{Profile, is_symbols, read_counting_delay, summarize_bursts};
use lucce_filter::{ClassFilter, PatternList};

use super::{CommandError, open_profile, prefix_path, print_diagnostic};

/// Whose frames are shown, and whether the program's arguments are.
#[derive(clap::Args, Clone, Default)]
pub struct ClassFilterArgs {
    /// Show only frames of matching classes, e.g. 'org.h2.*+com.acme.Foo'; events stay with the innermost remaining frame
    #[arg(long, value_name = "PATTERNS", value_parser = PatternList::parse)]
    include: Vec<PatternList>,
    /// Show no frames of matching classes; wins over --include
    #[arg(long, value_name = "PATTERNS", value_parser = PatternList::parse)]
    exclude: Vec<PatternList>,
    /// The program's own classes, e.g. 'com.acme.*' [default: the agent's option app=, else by where classes came from]
    #[arg(long, value_name = "PATTERNS", value_parser = PatternList::parse)]
    app: Vec<PatternList>,
    /// Show the program's arguments instead of `*`
    #[arg(long)]
    arguments: bool,
}

impl ClassFilterArgs {
    fn class_filter(&self) -> ClassFilter {
        ClassFilter {
            include: join_patterns(&self.include),
            exclude: join_patterns(&self.exclude),
        }
    }

    /// Whether a line is shown: a frame as the JVM prints it (`at a.b.C.m(C.java:1)`) of a selected class, or other text.
    pub fn admits_frame(&self, line: &str) -> bool {
        let called = line.split_once('(').map(|(called, _)| called.trim_start());
        let class = called.and_then(|called| called.trim_start_matches("at ").rsplit_once('.'));
        class.is_none_or(|(class, _)| self.class_filter().admits_class(class))
    }

    pub fn is_open(&self) -> bool {
        self.class_filter().is_open()
    }

    /// Opens a log and applies these options. Refuses symbols.
    pub fn open_log(&self, path: &Path) -> Result<Profile, CommandError> {
        let profile = self.open_for_numbers(path)?;
        match is_symbols(&profile) {
            true => Err(CommandError::Usage(prefix_path(
                path,
                symbols_message(&profile),
            ))),
            false => Ok(profile),
        }
    }

    /// Opens a log or symbols and applies these options, for commands that decode context ids and need no counters.
    pub fn open_for_numbers(&self, path: &Path) -> Result<Profile, CommandError> {
        let mut profile = open_profile(path)?;
        if let Some(bursts) = summarize_bursts(&profile).filter(|_| !is_symbols(&profile)) {
            print_diagnostic(prefix_path(path, bursts));
        }
        if let Some(delay) = read_counting_delay(&profile).filter(|_| !is_symbols(&profile)) {
            print_diagnostic(prefix_path(path, delay));
        }
        self.apply(&mut profile);
        Ok(profile)
    }

    /// Applies these options to a run.
    pub fn apply(&self, profile: &mut Profile) {
        let app = join_patterns(&self.app);
        if !app.is_empty() {
            profile.classify_code(&app);
        }
        if self.arguments {
            profile.show_arguments();
        }
        let filter = self.class_filter();
        if !filter.is_open() {
            profile.restrict_scope(&filter);
        }
    }
}

/// The patterns of an option that is given several times.
fn join_patterns(lists: &[PatternList]) -> PatternList {
    let mut all = PatternList::default();
    for patterns in lists {
        all.extend(patterns.clone());
    }
    all
}

/// The message that this command needs a log, not symbols.
fn symbols_message(profile: &Profile) -> String {
    let run = profile.header.run.map(|run| format!(" of run {run}"));
    let run = run.unwrap_or_default();
    format!(
        "symbols{run}: what was counted is not in them, and this command needs it; give the run's log. Numbers can be decoded (lucce decode, lucce annotate)"
    )
}
