//! Threads by the context that started them: the part of `--event thread` before the starts.

use std::io::{self, Write};

use lucce_decoder::{Profile, StackFrame, StartedThreads, ThreadStarts};
use serde::Serialize;

use crate::amounts::format_amount;
use crate::output::{format_plural, grouped};

/// Threads that live, and those that have ended.
#[derive(Serialize)]
pub(super) struct LivingThreads {
    started: u64,
    alive: u64,
    ended: u64,
    oldest_millis: Option<u64>,
    starts: Vec<ThreadStartRow>,
    /// Number of contexts, of which the first are listed.
    #[serde(skip)]
    different: usize,
}

#[derive(Serialize)]
struct ThreadStartRow {
    id: String,
    stack: String,
    started: u64,
    alive: u64,
    ended: u64,
    oldest_millis: Option<u64>,
    frames: Vec<StackFrame>,
    /// The frame by which people know the context.
    #[serde(skip)]
    place: String,
}

impl LivingThreads {
    /// `top`: maximum number of contexts; 0: all.
    pub(super) fn new(profile: &Profile, threads: &StartedThreads, top: usize) -> LivingThreads {
        let top = if top == 0 { usize::MAX } else { top };
        let sum = |amount: fn(&ThreadStarts) -> u64| {
            let amounts = threads.rows.iter().map(amount);
            amounts.fold(0, u64::saturating_add)
        };
        let rows = threads.rows.iter().take(top);
        LivingThreads {
            started: sum(|row| row.started),
            alive: sum(|row| row.alive),
            ended: sum(ThreadStarts::ended),
            oldest_millis: threads.rows.iter().filter_map(|row| row.oldest_ms).max(),
            starts: rows.map(|row| ThreadStartRow::new(profile, row)).collect(),
            different: threads.rows.len(),
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        if self.started == 0 {
            return Ok(());
        }
        let started = format_plural(self.started, "thread");
        let numbers = format_numbers(self.alive, self.ended, self.oldest_millis);
        writeln!(out, "living threads: {started} started, {numbers}")?;
        for row in &self.starts {
            let numbers = format_numbers(row.alive, row.ended, row.oldest_millis);
            writeln!(out, "  {numbers}: started at {}", row.place)?;
        }
        let left = self.different.saturating_sub(self.starts.len());
        if left > 0 {
            writeln!(out, "  {} more (--top 0)", grouped(left as u64))?;
        }
        writeln!(out)
    }
}

fn format_numbers(alive: u64, ended: u64, oldest_millis: Option<u64>) -> String {
    let oldest = oldest_millis.map_or_else(String::new, |millis| {
        let age = format_amount(millis as f64 * 1_000_000.0, "ns");
        format!(", the oldest for {age}")
    });
    format!("{} alive{oldest}, {} ended", grouped(alive), grouped(ended))
}

impl ThreadStartRow {
    fn new(profile: &Profile, row: &ThreadStarts) -> ThreadStartRow {
        ThreadStartRow {
            id: profile.context_number(row.start.id).to_string(),
            stack: row.start.stack.to_string(),
            started: row.started,
            alive: row.alive,
            ended: row.ended(),
            oldest_millis: row.oldest_ms,
            frames: row.start.frames.clone(),
            place: row.start.place_text(),
        }
    }
}
