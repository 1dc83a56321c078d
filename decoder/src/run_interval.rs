//! Limits a profile to the events between two marks: later counts − earlier counts.

use crate::followed_objects::FollowedObjects;
use crate::marks::{RunInterval, RunMark};
use crate::profile::Profile;

/// Where an interval starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntervalStart<'n> {
    /// At the last reset before the interval's end, else at the start of the run.
    LastReset,
    RunStart,
    /// At the last mark of this name.
    Mark(&'n str),
}

/// Why a log has no such interval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IntervalError {
    /// No mark has this name.
    UnknownMark(String),
    /// The interval would end before it starts.
    Reversed,
}

impl Profile {
    /// Limits the profile to the events of an interval. `until`: the last mark of this name; `None`: the end of the run.
    ///
    /// # Errors
    /// The log has no such interval; the profile stays as it is.
    pub fn restrict_to_interval(
        &mut self,
        since: IntervalStart<'_>,
        until: Option<&str>,
    ) -> Result<(), IntervalError> {
        let marks = self.marks.as_slice();
        let find_index = |name: &str| {
            let index = marks.iter().rposition(|mark| mark.moment.name == name);
            index.ok_or_else(|| IntervalError::UnknownMark(name.to_owned()))
        };
        let until = until.map(find_index).transpose()?;
        let before = marks.get(..until.unwrap_or(marks.len()));
        let since = match since {
            IntervalStart::RunStart => None,
            IntervalStart::Mark(name) => Some(find_index(name)?),
            IntervalStart::LastReset => before
                .unwrap_or_default()
                .iter()
                .rposition(|mark| mark.moment.reset),
        };
        if let (Some(since), Some(until)) = (since, until)
            && since > until
        {
            return Err(IntervalError::Reversed);
        }
        let [since, until] = [since, until].map(|index| marks.get(index?));
        if since.is_none() && until.is_none() {
            return Ok(());
        }
        if let Some(until) = until {
            // What lives is known of the end alone.
            self.followed_objects = FollowedObjects::default();
            self.events = self.events.limit_to(&until.events);
            self.lock_holders = self.lock_holders.limit_to(&until.events);
            self.sample_errors = self.sample_errors.limit_to(&until.events);
        }
        if let Some(since) = since {
            self.events = self.events.subtract_earlier(&since.events);
            self.lock_holders = self.lock_holders.subtract_earlier(&since.events);
            self.sample_errors = self.sample_errors.subtract_earlier(&since.events);
        }
        // The longest of a run may be outside of the interval.
        self.longest_values.clear();
        let moment = |mark: &RunMark| mark.moment.clone();
        self.interval = Some(RunInterval {
            since: since.map(moment),
            until: until.map(moment),
        });
        Ok(())
    }
}
