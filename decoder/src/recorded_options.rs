//! The kinds of events that a run was to record, from the agent's options in its log.

use crate::kinds::{ALLOC, KindDescriptor, LEAK};
use crate::profile::Profile;

/// The kinds that the run was to record, if the log has its options. A kind may have no events.
#[must_use]
pub fn list_recorded_kinds(profile: &Profile) -> Vec<&str> {
    match profile.meta.get("options") {
        Some(_) => parse_kinds(read_recorded_options(profile, "events").next()),
        None if profile.meta.contains_key("leak.interval") => vec![LEAK.name],
        None => Vec::new(),
    }
}

/// The values of an option of the agent, once for each time it was given.
pub fn read_recorded_options<'p>(
    profile: &'p Profile,
    key: &'static str,
) -> impl Iterator<Item = &'p str> {
    let options = profile.meta.get("options");
    options
        .into_iter()
        .flat_map(move |options| option_values(options, key))
}

/// Values of a key in options such as `events=alloc+leak=16k,out=…`
fn option_values<'o>(options: &'o str, key: &str) -> impl Iterator<Item = &'o str> {
    options
        .split(',')
        .filter_map(move |option| option.trim().strip_prefix(key)?.strip_prefix('='))
}

/// Without the option `events`, the agent records allocations.
fn parse_kinds(list: Option<&str>) -> Vec<&str> {
    let asked = list.unwrap_or(ALLOC.name).split('+');
    let names = asked.map(|kind| kind.split('=').next().unwrap_or_default().trim());
    let names = names.filter(|name| !name.is_empty() && *name != "none");
    names
        .flat_map(|name| {
            [Some(name), KindDescriptor::for_kind(name).times]
                .into_iter()
                .flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_what_was_asked_for() {
        let kinds_of = |options| parse_kinds(option_values(options, "events").next());
        assert_eq!(kinds_of("events=lock,out=a.lucce"), ["lock"]);
        assert_eq!(
            kinds_of("out=a, events=alloc=64k+leak=16k"),
            ["alloc", "leak"]
        );
        assert_eq!(kinds_of("events=io"), ["io", "io-time"]);
        assert_eq!(kinds_of("events=none"), [""; 0]);
        assert_eq!(kinds_of(""), ["alloc"], "nothing is asked for by name");
    }
}
