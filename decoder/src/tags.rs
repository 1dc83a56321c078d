//! Tags that the program gave to events.

use std::collections::{BTreeMap, BTreeSet};

use lucce_tracelog::ThreadId;

use crate::events::ContextCounter;
use crate::profile::Profile;

/// The text for events without tags.
pub const UNTAGGED: &str = "(no tag)";

/// The text for events outside of requests.
pub const NO_REQUEST: &str = "(no request)";
/// The tag of requests, with the character behind its key.
const REQUEST_TAG: &str = "request=";

/// The request among formatted tags: `GET /orders/{id}` of `customer=a, request=GET /orders/{id}`.
#[must_use]
pub fn request_of_tags(tags: &str) -> String {
    let mut tags = tags.split(", ");
    let request = tags.find_map(|tag| tag.strip_prefix(REQUEST_TAG));
    request.unwrap_or(NO_REQUEST).to_owned()
}

/// Whether any events have tags.
#[must_use]
pub fn has_tags(profile: &Profile) -> bool {
    !profile.tags.is_empty()
}

/// Whether any events belong to a request.
#[must_use]
pub fn has_requests(profile: &Profile) -> bool {
    let key = REQUEST_TAG.trim_end_matches('=');
    profile.tags.values().any(|tags| tags.contains_key(key))
}

/// The tags of a thread id's events, as `endpoint=/search, tenant=a`.
#[must_use]
pub fn format_thread_tags(profile: &Profile, thread: ThreadId) -> String {
    match profile.tags.get(&thread) {
        Some(tags) => format_tags(tags),
        None => UNTAGGED.to_owned(),
    }
}

/// The tags of a thread id by key, if it has any.
#[must_use]
pub fn find_thread_tags(profile: &Profile, thread: ThreadId) -> Option<&BTreeMap<String, String>> {
    profile.tags.get(&thread)
}

/// The thread ids whose events have all of these tags, each as `key=value`.
#[must_use]
pub fn threads_with_tags(profile: &Profile, wanted: &[String]) -> BTreeSet<ThreadId> {
    let has_all = |thread: &ThreadId| {
        let own: Vec<String> = profile
            .tags
            .get(thread)
            .into_iter()
            .flat_map(tag_pairs)
            .collect();
        wanted.iter().all(|tag| own.contains(tag))
    };
    profile.tags.keys().copied().filter(has_all).collect()
}

/// Checks that some thread has each tag.
///
/// # Errors
/// No thread has one of these tags. The error lists all tags of the log.
pub fn check_tags(profile: &Profile, wanted: &[String]) -> Result<(), BTreeSet<String>> {
    let all_tags: BTreeSet<String> = profile.tags.values().flat_map(tag_pairs).collect();
    match wanted.iter().all(|tag| all_tags.contains(tag)) {
        true => Ok(()),
        false => Err(all_tags),
    }
}

/// Keeps only events with all of these tags, each as `key=value`.
///
/// Checks that some thread has each tag.
///
/// # Errors
/// No thread has one of these tags. The error lists all tags of the log.
pub fn keep_tagged(profile: &mut Profile, wanted: &[String]) -> Result<(), BTreeSet<String>> {
    check_tags(profile, wanted)?;
    let tagged = threads_with_tags(profile, wanted);
    let is_tagged = |share: &ContextCounter| tagged.contains(&share.thread);
    profile.events = profile.events.filter_counters(is_tagged);
    profile.sample_errors = profile.sample_errors.filter_counters(is_tagged);
    Ok(())
}

/// Formats tags as `endpoint=/search, tenant=a`.
#[must_use]
pub fn format_tags(tags: &BTreeMap<String, String>) -> String {
    tag_pairs(tags).collect::<Vec<_>>().join(", ")
}

fn tag_pairs(tags: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    tags.iter().map(|(key, value)| format!("{key}={value}"))
}

#[cfg(test)]
mod tags_tests {
    use super::*;

    #[test]
    fn the_request_is_one_of_the_tags() {
        let texts = [
            "customer=a, request=GET /a=b, step=1",
            "request=jms mail",
            "a=request=b",
            UNTAGGED,
        ];
        let requests = texts.map(request_of_tags);
        assert_eq!(requests, ["GET /a=b", "jms mail", NO_REQUEST, NO_REQUEST]);
    }
}
