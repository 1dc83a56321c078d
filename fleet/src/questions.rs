//! Questions that have names: one SQL file each, the same for every engine.
//!
//! A file begins with comments: what is asked, then a line `-- NAME=VALUE: what it means` for each parameter; one without `=` must be
//! given. Parameters are never put into the text: they are the columns `p_NAME` of the table `parameters`, which has one row.

use crate::error::FleetError;

/// A question.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub name: &'static str,
    pub sql: &'static str,
}

/// What it depends on, and what is taken if nothing is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterSpec<'q> {
    pub name: &'q str,
    pub default: Option<&'q str>,
    pub meaning: &'q str,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterValue {
    pub name: String,
    pub value: String,
}

macro_rules! questions {
    ($($name:literal),* $(,)?) => {
        /// All of them.
        pub const ALL: &[Question] = &[$(Question {
            name: $name,
            sql: include_str!(concat!("../sql/", $name, ".sql")),
        }),*];
    };
}

questions!(
    "callers",
    "coverage",
    "jdk-update",
    "leaks",
    "new-since",
    "per-request",
    "requests",
    "through",
    "top",
    "top-growth",
);

impl Question {
    /// # Errors
    /// There is none of this name.
    pub fn find_by_name(name: &str) -> Result<&'static Question, FleetError> {
        let question = ALL.iter().find(|question| question.name == name);
        question.ok_or_else(|| {
            let names: Vec<_> = ALL.iter().map(|question| question.name).collect();
            FleetError::Usage(format!(
                "no question {name:?}; there are {}",
                names.join(", ")
            ))
        })
    }

    fn header_lines(&self) -> impl Iterator<Item = &'static str> {
        self.sql.lines().map_while(|line| line.strip_prefix("-- "))
    }

    /// What is asked.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.header_lines().next().unwrap_or_default()
    }

    pub fn parameter_specs(&self) -> impl Iterator<Item = ParameterSpec<'static>> {
        self.header_lines().skip(1).filter_map(|line| {
            let (name, meaning) = line.split_once(": ")?;
            let (name, default) = match name.split_once('=') {
                Some((name, default)) => (name, Some(default)),
                None => (name, None),
            };
            Some(ParameterSpec {
                name,
                default,
                meaning,
            })
        })
    }

    /// All parameters, as given or as they are if nothing is given.
    ///
    /// # Errors
    /// One is not known, or one that must be given is missing.
    pub fn resolve_parameters(
        &self,
        given: &[ParameterValue],
    ) -> Result<Vec<ParameterValue>, FleetError> {
        let slots: Vec<ParameterSpec<'_>> = self.parameter_specs().collect();
        let unknown = given
            .iter()
            .find(|given| slots.iter().all(|slot| slot.name != given.name));
        if let Some(unknown) = unknown {
            let names: Vec<_> = slots
                .iter()
                .map(|slot| format!("--{}", slot.name))
                .collect();
            return Err(FleetError::Usage(format!(
                "{} has no parameter --{}; it has {}",
                self.name,
                unknown.name,
                names.join(", ")
            )));
        }
        slots
            .iter()
            .map(|slot| {
                let given = given.iter().rfind(|given| given.name == slot.name);
                let value = given.map(|given| given.value.as_str()).or(slot.default);
                let value = value.ok_or_else(|| {
                    FleetError::Usage(format!(
                        "{} needs --{}: {}",
                        self.name, slot.name, slot.meaning
                    ))
                })?;
                Ok(ParameterValue {
                    name: slot.name.to_owned(),
                    value: value.to_owned(),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod questions_tests {
    use super::*;

    #[test]
    fn each_question_has_a_description_and_parameters() {
        for question in ALL {
            assert!(question.description().len() > 20, "{}", question.name);
            for slot in question.parameter_specs() {
                let column = format!("p_{}", slot.name);
                assert!(
                    question.sql.contains(&column),
                    "{}: {column}",
                    question.name
                );
                assert!(
                    slot.name.bytes().all(|c| c.is_ascii_lowercase()),
                    "{}",
                    slot.name
                );
            }
        }
    }

    #[test]
    fn parameters_are_given_or_have_a_value() {
        let question = Question::find_by_name("top-growth").unwrap();
        let given = |name: &str, value: &str| ParameterValue {
            name: name.into(),
            value: value.into(),
        };
        let missing = question
            .resolve_parameters(&[given("from", "1")])
            .unwrap_err();
        assert!(missing.to_string().contains("needs --to"), "{missing}");
        let unknown = question
            .resolve_parameters(&[given("fron", "1")])
            .unwrap_err();
        assert!(
            unknown.to_string().contains("no parameter --fron"),
            "{unknown}"
        );
        let all = question
            .resolve_parameters(&[given("from", "'; --"), given("to", "2")])
            .unwrap();
        assert!(all.contains(&given("from", "'; --")) && all.contains(&given("event", "alloc")));
        assert!(
            Question::find_by_name("top'")
                .unwrap_err()
                .to_string()
                .contains("top-growth")
        );
    }
}
