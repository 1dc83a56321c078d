//! `--tag`: only what happened under tags of the program's own.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use lucce_decoder::Profile;
use lucce_decoder::escape::Text;

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
        profile.keep_tagged(&self.tag).map_err(|known| {
            let asked = Text(&self.tag.join(", ")).to_string();
            Failure::Usage(about(
                log,
                format_args!("no events under {asked}; {}", listed(&known)),
            ))
        })
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
