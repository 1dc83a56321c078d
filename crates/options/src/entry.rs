//! The parts of an option's entry in the table.

use crate::{OptionError, RecordingOptions, StartMode};

/// An option of the agent: everything that the parser, the help and the documents know about it.
pub struct OptionEntry {
    pub name: &'static str,
    pub value: OptionValue,
    /// The default as the documents show it; empty: the option is not set.
    pub default: &'static str,
    /// One line without a period, in the imperative.
    pub summary: &'static str,
    /// More sentences, in Markdown.
    pub details: &'static str,
    pub group: OptionGroup,
    pub modes: OptionModes,
    /// Each further value is added to the earlier ones. Otherwise the last value counts.
    pub is_repeatable: bool,
    pub conflicts: &'static [OptionConflict],
}

/// The values of an option, and their effect on the typed options.
pub enum OptionValue {
    /// One of several words.
    Choice(&'static [OptionChoice]),
    /// Other text.
    Text {
        /// Its form in the documents, such as `SIZE`.
        form: &'static str,
        /// Parses the value and sets it.
        set: fn(&mut RecordingOptions, OptionText<'_>) -> Result<(), OptionError>,
        /// The value as text, if it is set.
        get: fn(&RecordingOptions) -> Option<String>,
    },
}

/// A word that an option accepts.
pub struct OptionChoice {
    pub name: &'static str,
    /// A sentence in Markdown; empty if the option's own text says enough.
    pub summary: &'static str,
    /// It needs the agent that is built with the laboratory's features.
    pub needs_lab: bool,
    pub set: fn(&mut RecordingOptions),
}

/// An option as the user has written it.
#[derive(Clone, Copy)]
pub struct OptionText<'t> {
    pub key: &'t str,
    pub value: &'t str,
}

impl OptionText<'_> {
    /// The error for this value; `expected`: the form that is accepted.
    pub(crate) fn malformed(self, expected: &str) -> OptionError {
        OptionError::malformed(self.key, self.value, expected)
    }
}

/// A combination of options that is refused.
pub struct OptionConflict {
    /// The combination, in Markdown.
    pub combination: &'static str,
    /// Why it is refused, in Markdown; may be empty.
    pub reason: &'static str,
    /// The message for the user.
    pub message: &'static str,
    pub applies: fn(&RecordingOptions) -> bool,
}

/// The heading under which the documents and the help list an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionGroup {
    Events,
    Files,
    Scope,
    Tracking,
    Push,
    Attach,
    Lab,
    /// Set by commands, not by users.
    Internal,
}

impl OptionGroup {
    /// The groups with a heading, in the order of the documents.
    pub const SHOWN: [OptionGroup; 7] = [
        OptionGroup::Events,
        OptionGroup::Files,
        OptionGroup::Scope,
        OptionGroup::Tracking,
        OptionGroup::Push,
        OptionGroup::Attach,
        OptionGroup::Lab,
    ];

    /// The heading.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            OptionGroup::Events => "Events",
            OptionGroup::Files => "Files",
            OptionGroup::Scope => "Scope",
            OptionGroup::Tracking => "Tracking and checks",
            OptionGroup::Push => "Push",
            OptionGroup::Attach => "Options of lucce attach and lucce record",
            OptionGroup::Lab => "Lab",
            OptionGroup::Internal => "Internal",
        }
    }
}

/// The ways to start the agent that accept an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionModes {
    /// With the JVM only: `-agentpath`, `lucce run`.
    Start,
    /// Into a running JVM only: `lucce attach`, `lucce record`.
    Attach,
    Both,
}

impl OptionModes {
    /// Whether an option is accepted by this way to start the agent. `None`: by any way.
    pub(crate) fn include(self, mode: Option<StartMode>) -> bool {
        !matches!(
            (self, mode),
            (OptionModes::Start, Some(StartMode::Attached))
                | (OptionModes::Attach, Some(StartMode::WithJvm))
        )
    }
}

impl OptionEntry {
    /// Applies a value.
    ///
    /// # Errors
    /// The value is malformed.
    pub(crate) fn apply(
        &self,
        options: &mut RecordingOptions,
        text: OptionText<'_>,
    ) -> Result<(), OptionError> {
        let choices = match &self.value {
            OptionValue::Text { set, .. } => return set(options, text),
            OptionValue::Choice(choices) => choices,
        };
        match choices.iter().find(|choice| choice.name == text.value) {
            Some(choice) => {
                (choice.set)(options);
                Ok(())
            }
            None => Err(unknown_choice(text, choices)),
        }
    }

    /// The value that is set, as text.
    pub(crate) fn get_text(&self, options: &RecordingOptions) -> Option<String> {
        match &self.value {
            OptionValue::Text { get, .. } => get(options),
            OptionValue::Choice(choices) => {
                // The choice that changes nothing is the one that is set.
                let is_set = |choice: &&OptionChoice| {
                    let mut other = options.clone();
                    (choice.set)(&mut other);
                    other == *options
                };
                let choice = choices.iter().find(is_set);
                choice.map(|choice| choice.name.to_owned())
            }
        }
    }

    /// The form of its values: `SIZE`, or `on|off`.
    #[must_use]
    pub fn value_form(&self) -> String {
        match &self.value {
            OptionValue::Text { form, .. } => (*form).to_owned(),
            OptionValue::Choice(choices) => {
                let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
                names.join("|")
            }
        }
    }

    /// Whether the laboratory's agent is needed for this value.
    pub(crate) fn needs_lab(&self, value: &str) -> bool {
        let OptionValue::Choice(choices) = &self.value else {
            return false;
        };
        choices
            .iter()
            .any(|choice| choice.name == value && choice.needs_lab)
    }
}

fn unknown_choice(text: OptionText<'_>, choices: &[OptionChoice]) -> OptionError {
    let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let (last, first) = quoted
        .split_last()
        .map_or((String::new(), String::new()), |(last, first)| {
            (last.clone(), first.join(", "))
        });
    let expected = format!("expected {first} or {last}");
    crate::names::unknown_name(
        &format!("value of {}", text.key),
        text.value,
        names,
        &expected,
    )
}
