//! `--tag`: only what happened under tags of the program's own.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use lucce_decoder::escape::Text;
use lucce_decoder::{Profile, ThreadId};

use super::{Failure, about};

#[derive(clap::Args, Default)]
pub struct Tagged {
    /// Only events under this tag of the program's own (CallContext.tag); with several, under all of them
    #[arg(long, value_name = "KEY=VALUE")]
    tag: Vec<String>,
}

/// A message names at most so many.
const MOST: usize = 20;

impl Tagged {
    pub fn is_open(&self) -> bool {
        self.tag.is_empty()
    }

    /// From now on, the profile's events are those.
    pub fn apply(&self, log: &Path, profile: &mut Profile) -> Result<(), Failure> {
        if self.is_open() {
            return Ok(());
        }
        let kept = profile.keep_tagged(&self.tag);
        kept.map_err(|known| self.absent(log, &known))
    }

    /// Of a log that no thread is added to.
    pub fn check(&self, log: &Path, profile: &Profile) -> Result<(), Failure> {
        let there = profile.has_all_tags(&self.tag);
        there.map_err(|known| self.absent(log, &known))
    }

    /// The thread ids that count under them; `None`: all are meant.
    pub fn threads(&self, profile: &Profile) -> Option<BTreeSet<ThreadId>> {
        (!self.is_open()).then(|| profile.tagged(&self.tag))
    }

    fn absent(&self, log: &Path, known: &BTreeSet<String>) -> Failure {
        let asked = Text(&self.tag.join(", ")).to_string();
        Failure::Usage(about(
            log,
            format_args!("no events under {asked}; {}", listed(known)),
        ))
    }
}

impl fmt::Display for Tagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tags = Text(&self.tag.join(", ")).to_string();
        write!(f, "Only what happened under the tag {tags} is shown.")
    }
}

fn listed(known: &BTreeSet<String>) -> String {
    let names: Vec<String> = known
        .iter()
        .take(MOST)
        .map(|tag| Text(tag).to_string())
        .collect();
    match (known.len(), known.len().saturating_sub(MOST)) {
        (0, _) => "it has no tags (CallContext.tag)".to_owned(),
        (_, 0) => format!("there are {}", names.join(", ")),
        (_, more) => format!("there are {}, and {more} more", names.join(", ")),
    }
}
