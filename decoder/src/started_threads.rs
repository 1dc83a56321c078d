//! Threads by the context that started them: those that live, with their ages, and those that have ended.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use lucce_callgraph::DecodeError;
use lucce_contentid::StackId;
use lucce_options::kinds::{ALIVE_THREADS, THREAD};

use crate::profile::{Profile, StackTrace};

/// Threads that one context started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadStarts {
    pub start: StackTrace,
    pub started: u64,
    pub alive: u64,
    /// Milliseconds since the start of the oldest living thread.
    pub oldest_ms: Option<u64>,
}

/// All threads with a known start.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct StartedThreads {
    /// Contexts with most living threads first.
    pub rows: Vec<ThreadStarts>,
}

impl ThreadStarts {
    /// Number of threads that have ended, or were started and have not begun yet.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.started.saturating_sub(self.alive)
    }
}

/// Lists threads by the context that started them. `None`: the run does not record which threads live.
///
/// # Errors
/// The log does not explain a context.
pub fn list_started_threads(profile: &Profile) -> Result<Option<StartedThreads>, DecodeError> {
    if !profile.types.has_kind(ALIVE_THREADS.name) {
        return Ok(None);
    }
    let mut rows: BTreeMap<StackId, ThreadStarts> = BTreeMap::new();
    let mut add_row = |id, change: &dyn Fn(&mut ThreadStarts)| -> Result<(), DecodeError> {
        let start = profile.decode_trace(id)?;
        change(rows.entry(start.stack).or_insert_with(|| ThreadStarts {
            start,
            started: 0,
            alive: 0,
            oldest_ms: None,
        }));
        Ok(())
    };
    for counter in profile.events.as_slice() {
        if profile.types.is_of_kind(counter.event, THREAD.name) {
            add_row(counter.id, &|row| {
                row.started = row.started.saturating_add(counter.count);
            })?;
        }
    }
    let now = profile.end_ms(profile.alive_threads.iter().map(|counter| counter.value));
    for counter in living(profile) {
        let age = now.saturating_sub(counter.value);
        add_row(counter.id, &|row| {
            row.alive = row.alive.saturating_add(counter.count);
            row.oldest_ms = row.oldest_ms.max(Some(age));
        })?;
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    for row in &mut rows {
        // Starts may not have been counted all the time.
        row.started = row.started.max(row.alive);
    }
    rows.sort_by_key(|row| (Reverse((row.alive, row.started)), row.start.id));
    Ok(Some(StartedThreads { rows }))
}

/// The counters of living threads.
fn living(profile: &Profile) -> impl Iterator<Item = &crate::events::ContextCounter> {
    let all = profile
        .alive_threads
        .iter()
        .filter(|counter| counter.count > 0);
    all.filter(|counter| {
        let info = profile.types.get(counter.event);
        info.is_some_and(|info| info.detail.is_none())
    })
}
