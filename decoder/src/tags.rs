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
            Some(tags) => list(tags).collect::<Vec<_>>().join(", "),
            None => UNTAGGED.to_owned(),
        }
    }

    /// From now on the profile has only events under all of these tags, each as `key=value`.
    ///
    /// # Errors
    /// No thread has such a tag: those that there are.
    pub fn keep_tagged(&mut self, wanted: &[String]) -> Result<(), BTreeSet<String>> {
        let known: BTreeSet<String> = self.tags.values().flat_map(list).collect();
        if !wanted.iter().all(|tag| known.contains(tag)) {
            return Err(known);
        }
        let (events, tags) = (&self.events, &self.tags);
        let has_all = |thread: &ThreadId| {
            let own: Vec<String> = tags.get(thread).into_iter().flat_map(list).collect();
            wanted.iter().all(|tag| own.contains(tag))
        };
        let threads: BTreeSet<ThreadId> = tags.keys().copied().filter(has_all).collect();
        self.events = events.filtered(|share| threads.contains(&share.thread));
        Ok(())
    }
}

fn list(tags: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    tags.iter().map(|(key, value)| format!("{key}={value}"))
}
