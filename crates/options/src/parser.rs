//! Parses `key=value,key=value`, by the table.

use crate::entry::{OptionModes, OptionText};
use crate::kinds::KindConflict;
use crate::names::unknown_name;
use crate::recording::{RecordingOptions, StartMode, TrackingMode};
use crate::table::{OPTION_TABLE, find_option};
use crate::{EventKindSet, OptionError};

/// The settings in a text, as keys and values. `Err`: a part without `=`.
pub fn split_settings(text: &str) -> impl Iterator<Item = Result<OptionText<'_>, &str>> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts.map(|part| match part.split_once('=') {
        Some((key, value)) => Ok(OptionText { key, value }),
        None => Err(part),
    })
}

/// The last value of an option in a text that may be malformed elsewhere.
#[must_use]
pub fn find_setting<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let settings = split_settings(text).filter_map(Result::ok);
    let values = settings.filter(|setting| setting.key == key);
    values.last().map(|setting| setting.value)
}

impl RecordingOptions {
    /// Parses the options for a way to start the agent.
    ///
    /// # Errors
    /// An unknown option, a malformed value, or a combination that is refused: one line that names it.
    pub fn parse(text: &str, mode: StartMode) -> Result<RecordingOptions, OptionError> {
        let mut options = RecordingOptions::default_for(mode);
        for setting in split_settings(text) {
            let setting = setting.map_err(missing_value)?;
            let entry = find_option(setting.key).ok_or_else(|| unknown_option(setting.key))?;
            check_mode(setting, entry.modes, mode)?;
            entry.apply(&mut options, setting)?;
        }
        options.complete_events(mode);
        options.check_combinations(mode)?;
        Ok(options)
    }

    /// Parses the options that stand in a log. Another version of lucce may have written it, so settings that this
    /// version does not know are ignored.
    #[must_use]
    pub fn parse_recorded(text: &str) -> RecordingOptions {
        let mut options = RecordingOptions::default_for(StartMode::WithJvm);
        for setting in split_settings(text).filter_map(Result::ok) {
            if let Some(entry) = find_option(setting.key) {
                let mut changed = options.clone();
                if entry.apply(&mut changed, setting).is_ok() {
                    options = changed;
                }
            }
        }
        options.complete_events(StartMode::WithJvm);
        options
    }

    /// The options that differ from the defaults, as text that parses to the same options.
    #[must_use]
    pub fn to_text(&self, mode: StartMode) -> String {
        let defaults = RecordingOptions::default_for(mode);
        let settings = OPTION_TABLE.iter().filter_map(|entry| {
            let value = entry.get_text(self)?;
            let is_default = entry.get_text(&defaults).as_ref() == Some(&value);
            (!is_default).then(|| format!("{}={value}", entry.name))
        });
        settings.collect::<Vec<_>>().join(",")
    }

    /// The first setting that only the laboratory's agent follows, such as `tracking=paper`.
    #[must_use]
    pub fn find_lab_setting(&self) -> Option<String> {
        OPTION_TABLE.iter().find_map(|entry| {
            let value = entry.get_text(self)?;
            entry
                .needs_lab(&value)
                .then(|| format!("{}={value}", entry.name))
        })
    }

    fn check_combinations(&self, mode: StartMode) -> Result<(), OptionError> {
        let conflicts = OPTION_TABLE.iter().flat_map(|entry| entry.conflicts);
        let mut refused = conflicts.filter(|conflict| (conflict.applies)(self));
        let refused = self
            .find_kind_refusal(mode)
            .or_else(|| refused.next().map(|conflict| conflict.message));
        match refused {
            Some(message) => Err(OptionError(message.to_owned())),
            None => Ok(()),
        }
    }

    /// Why a kind of events does not go with the other options.
    fn find_kind_refusal(&self, mode: StartMode) -> Option<&'static str> {
        let is_attached = mode == StartMode::Attached;
        if is_attached && self.events.kinds() == EventKindSet::default() {
            return Some("events=none: there is nothing to attach for");
        }
        let active = [
            (is_attached, KindConflict::Attach),
            (self.burst.is_some(), KindConflict::Burst),
            (
                self.tracking != TrackingMode::Lazy,
                KindConflict::OtherTracking,
            ),
            (self.stream, KindConflict::Stream),
            (self.has_static_graph(), KindConflict::Static),
        ];
        let mut active = active.into_iter().filter(|(is_active, _)| *is_active);
        active.find_map(|(_, conflict)| self.events.find_refusal(conflict))
    }
}

fn check_mode(
    setting: OptionText<'_>,
    accepted: OptionModes,
    mode: StartMode,
) -> Result<(), OptionError> {
    let OptionText { key, value } = setting;
    if accepted.include(Some(mode)) {
        return Ok(());
    }
    Err(OptionError(match mode {
        StartMode::Attached => {
            format!("{key}={value} needs the agent from the start (-agentpath)")
        }
        StartMode::WithJvm => {
            format!("{key}={value} is an option of lucce attach and lucce record only")
        }
    }))
}

fn missing_value(part: &str) -> OptionError {
    let names = OPTION_TABLE.iter().map(|entry| entry.name);
    match find_option(part) {
        Some(entry) => OptionError(format!(
            "option '{part}' has no value: options are key=value, here {part}={}",
            entry.value_form()
        )),
        None => unknown_name("option", part, names, "options are key=value"),
    }
}

fn unknown_option(key: &str) -> OptionError {
    let names = OPTION_TABLE.iter().map(|entry| entry.name);
    unknown_name("option", key, names, "`lucce options` lists them")
}
