//! `--include`, `--exclude` and `--arguments`, the same for all verbs.

use std::path::Path;

use lucce_decoder::Profile;
use lucce_filter::{ClassFilter, Patterns};

use super::{Failure, about, complain, open};

/// Whose frames are shown, and whether the program's arguments are.
#[derive(clap::Args, Default)]
pub struct Classes {
    /// Only frames of classes that match, e.g. 'org.h2.*+com.acme.Foo'; events stay with the innermost
    /// of them
    #[arg(long, value_name = "PATTERNS", value_parser = Patterns::parse)]
    include: Vec<Patterns>,
    /// No frames of classes that match; wins over --include
    #[arg(long, value_name = "PATTERNS", value_parser = Patterns::parse)]
    exclude: Vec<Patterns>,
    /// Show the program's arguments; without it `*` stands for each
    #[arg(long)]
    arguments: bool,
}

impl Classes {
    fn filter(&self) -> ClassFilter {
        let mut filter = ClassFilter::default();
        for patterns in &self.include {
            filter.include.extend(patterns.clone());
        }
        for patterns in &self.exclude {
            filter.exclude.extend(patterns.clone());
        }
        filter
    }

    /// Whether a frame as the JVM prints it (`at a.b.C.m(C.java:1)`) is one that is shown; other text is.
    pub fn admit_frame(&self, line: &str) -> bool {
        let called = line.split_once('(').map(|(called, _)| called.trim_start());
        let class = called.and_then(|called| called.trim_start_matches("at ").rsplit_once('.'));
        class.is_none_or(|(class, _)| self.filter().admits(class))
    }

    pub fn is_open(&self) -> bool {
        self.filter().is_open()
    }

    /// The log, with what is asked for in its traces. A file of symbols is refused.
    pub fn open(&self, path: &Path) -> Result<Profile, Failure> {
        let profile = self.open_for_numbers(path)?;
        match profile.is_symbols() {
            true => Err(Failure::Usage(about(path, without_counters(&profile)))),
            false => Ok(profile),
        }
    }

    /// As `open`; it may be a file of symbols: numbers are turned into traces, and no counter is needed.
    pub fn open_for_numbers(&self, path: &Path) -> Result<Profile, Failure> {
        let mut profile = open(path)?;
        if self.arguments {
            profile.show_arguments();
        }
        if let Some(bursts) = profile.bursts().filter(|_| !profile.is_symbols()) {
            complain(about(path, bursts));
        }
        let filter = self.filter();
        if !filter.is_open() {
            profile.restrict(&filter);
        }
        Ok(profile)
    }
}

/// Why most commands have nothing to say of a file of symbols.
fn without_counters(profile: &Profile) -> String {
    let run = profile.header.run.map(|run| format!(" of run {run}"));
    let run = run.unwrap_or_default();
    format!(
        "symbols{run}: what was counted is not in them, and this command needs it; give the run's log. Numbers can be decoded (lucce decode, lucce annotate)"
    )
}
