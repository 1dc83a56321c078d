//! The option `--tag`: selects events by tags of the program.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{Profile, ThreadId, check_tags, keep_tagged, threads_with_tags};

use super::{CommandError, prefix_path};

#[derive(clap::Args, Clone, Default)]
pub struct TagFilterArgs {
    /// Show only events under this tag of the program (CallContext.tag); repeatable: under all of them
    #[arg(long, value_name = "KEY=VALUE")]
    tag: Vec<String>,
}

/// Maximum number of tags in a message.
const MAX_LISTED_TAGS: usize = 20;

impl TagFilterArgs {
    pub fn is_unrestricted(&self) -> bool {
        self.tag.is_empty()
    }

    /// The selected tags, `KEY=VALUE`.
    pub fn pairs(&self) -> &[String] {
        &self.tag
    }

    /// Limits the profile to events with the selected tags.
    pub fn apply(&self, log: &Path, profile: &mut Profile) -> Result<(), CommandError> {
        if self.is_unrestricted() {
            return Ok(());
        }
        let kept = keep_tagged(profile, &self.tag);
        kept.map_err(|all_tags| self.no_events_error(log, &all_tags))
    }

    /// Checks that some thread has the tags, for a log that no longer changes.
    pub fn check_log_tags(&self, log: &Path, profile: &Profile) -> Result<(), CommandError> {
        let there = check_tags(profile, &self.tag);
        there.map_err(|all_tags| self.no_events_error(log, &all_tags))
    }

    /// The thread ids with the selected tags; `None`: all threads.
    pub fn thread_ids(&self, profile: &Profile) -> Option<BTreeSet<ThreadId>> {
        (!self.is_unrestricted()).then(|| threads_with_tags(profile, &self.tag))
    }

    fn no_events_error(&self, log: &Path, all_tags: &BTreeSet<String>) -> CommandError {
        let tags = EscapedText(&self.tag.join(", ")).to_string();
        CommandError::Usage(prefix_path(
            log,
            format_args!("no events under {tags}; {}", list_known_tags(all_tags)),
        ))
    }
}

impl fmt::Display for TagFilterArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tags = EscapedText(&self.tag.join(", ")).to_string();
        write!(f, "Only what happened under the tag {tags} is shown.")
    }
}

fn list_known_tags(all_tags: &BTreeSet<String>) -> String {
    let names: Vec<String> = all_tags
        .iter()
        .take(MAX_LISTED_TAGS)
        .map(|tag| EscapedText(tag).to_string())
        .collect();
    match (
        all_tags.len(),
        all_tags.len().saturating_sub(MAX_LISTED_TAGS),
    ) {
        (0, _) => "it has no tags (CallContext.tag)".to_owned(),
        (_, 0) => format!("there are {}", names.join(", ")),
        (_, more) => format!("there are {}, and {more} more", names.join(", ")),
    }
}
