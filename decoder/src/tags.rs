//! Tags of the program's own: under which of them a thread's events happened.

use std::collections::{BTreeMap, BTreeSet};

use lucce_tracelog::ThreadId;

use crate::profile::Profile;

/// What events are under that have no tag.
pub const UNTAGGED: &str = "(no tag)";

impl Profile {
    /// Whether any events are told apart by tags.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        !self.tags.is_empty()
    }

    /// The tags of what a thread id counts, as `endpoint=/search, tenant=a`.
    #[must_use]
    pub fn tags_of(&self, thread: ThreadId) -> String {
        match self.tags.get(&thread) {
            Some(tags) => format_tags(tags),
            None => UNTAGGED.to_owned(),
        }
    }

    /// Those of a thread id by their keys, if it has any.
    #[must_use]
    pub fn tags_by_key(&self, thread: ThreadId) -> Option<&BTreeMap<String, String>> {
        self.tags.get(&thread)
    }

    /// The thread ids that count under all of these tags, each as `key=value`.
    #[must_use]
    pub fn threads_with_tags(&self, wanted: &[String]) -> BTreeSet<ThreadId> {
        let has_all = |thread: &ThreadId| {
            let own: Vec<String> = self
                .tags
                .get(thread)
                .into_iter()
                .flat_map(tag_pairs)
                .collect();
            wanted.iter().all(|tag| own.contains(tag))
        };
        self.tags.keys().copied().filter(has_all).collect()
    }

    /// # Errors
    /// No thread has such a tag: those that there are.
    pub fn check_tags(&self, wanted: &[String]) -> Result<(), BTreeSet<String>> {
        let known: BTreeSet<String> = self.tags.values().flat_map(tag_pairs).collect();
        match wanted.iter().all(|tag| known.contains(tag)) {
            true => Ok(()),
            false => Err(known),
        }
    }

    /// From now on the profile has only events under all of these tags, each as `key=value`.
    ///
    /// # Errors
    /// No thread has such a tag: those that there are.
    pub fn keep_tagged(&mut self, wanted: &[String]) -> Result<(), BTreeSet<String>> {
        self.check_tags(wanted)?;
        let tagged = self.threads_with_tags(wanted);
        self.events = self
            .events
            .filter_counters(|share| tagged.contains(&share.thread));
        Ok(())
    }
}

/// As `endpoint=/search, tenant=a`.
#[must_use]
pub fn format_tags(tags: &BTreeMap<String, String>) -> String {
    tag_pairs(tags).collect::<Vec<_>>().join(", ")
}

fn tag_pairs(tags: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    tags.iter().map(|(key, value)| format!("{key}={value}"))
}
