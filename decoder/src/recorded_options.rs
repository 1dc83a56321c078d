//! The agent's options that stand in a log.

use lucce_options::{KindDescriptor, RecordingOptions};

use crate::kinds::LEAK;
use crate::profile::Profile;

/// The options that the run was started with, if the log has them.
#[must_use]
pub fn read_recorded_options(profile: &Profile) -> Option<RecordingOptions> {
    let text = profile.meta.get("options")?;
    Some(RecordingOptions::parse_recorded(text))
}

/// The kinds that the run was to record, if the log has its options. A kind may have no events.
#[must_use]
pub fn list_recorded_kinds(profile: &Profile) -> Vec<&'static str> {
    match read_recorded_options(profile) {
        Some(options) => kinds_of(&options),
        None if profile.meta.contains_key("leak.interval") => vec![LEAK.name],
        None => Vec::new(),
    }
}

/// The log's names of the selected kinds, each with the kind of its durations.
fn kinds_of(options: &RecordingOptions) -> Vec<&'static str> {
    let selected = options.events.kinds();
    let names = selected.iter().map(|kind| kind.first_name());
    let mut names: Vec<&str> = names
        .flat_map(|name| [Some(name), KindDescriptor::for_kind(name).times])
        .flatten()
        .collect();
    names.dedup();
    names
}

#[cfg(test)]
mod recorded_options_tests {
    use super::*;

    #[test]
    fn options_name_the_recorded_kinds() {
        let kinds = |text| kinds_of(&RecordingOptions::parse_recorded(text));
        assert_eq!(kinds("events=lock,out=a.lucce"), ["lock"]);
        assert_eq!(kinds("out=a,events=alloc=64k+leak=64k"), ["alloc", "leak"]);
        assert_eq!(kinds("events=alloc=all"), ["alloc"]);
        assert_eq!(kinds("events=io"), ["io", "io-time"]);
        assert_eq!(kinds("events=none"), [""; 0]);
        assert_eq!(kinds(""), ["alloc"], "the default");
        assert_eq!(
            kinds("events=alloc,events=lock"),
            ["lock"],
            "the last value"
        );
    }
}
