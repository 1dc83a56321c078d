//! A progress bar on standard error, only on a terminal and for work of more than a second.

use std::io::{IsTerminal, stderr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

pub struct ProgressMeter {
    name: &'static str,
    total: u64,
    done: AtomicU64,
    /// The amount of work between two readings of the clock.
    batch: u64,
    start: Instant,
    /// `None`: standard error is no terminal.
    shown: OnceLock<Option<ProgressBar>>,
}

/// Reading the clock at every tick would cost more than the work, for contexts and for bytes.
const BATCH: u64 = 64;
const LOOKS: u64 = 1000;

impl ProgressMeter {
    pub fn new(name: &'static str, total: u64) -> Self {
        let (done, start, shown) = (AtomicU64::new(0), Instant::now(), OnceLock::new());
        ProgressMeter {
            name,
            total,
            done,
            batch: BATCH.max(total / LOOKS),
            start,
            shown,
        }
    }

    pub fn tick(&self, more: u64) {
        // Relaxed: the number is only shown.
        let before = self.done.fetch_add(more, Ordering::Relaxed);
        if before / self.batch != (before + more) / self.batch
            && self.start.elapsed() > Duration::from_secs(1)
        {
            self.show_progress(before + more);
        }
    }

    /// Sets the progress, for few long steps whose number changes.
    pub fn set_progress(&self, done: u64, total: u64) {
        if self.start.elapsed() > Duration::from_secs(1) {
            self.show_progress(done);
        }
        if let Some(Some(bar)) = self.shown.get() {
            bar.set_length(total);
        }
    }

    #[cold]
    fn show_progress(&self, done: u64) {
        let bar = || stderr().is_terminal().then(|| self.create_bar());
        if let Some(bar) = self.shown.get_or_init(bar) {
            bar.set_position(done);
        }
    }

    fn create_bar(&self) -> ProgressBar {
        let bar = ProgressBar::new(self.total).with_message(self.name);
        match ProgressStyle::with_template("{msg} {wide_bar} {percent}% {eta}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }
}

impl Drop for ProgressMeter {
    fn drop(&mut self) {
        if let Some(Some(bar)) = self.shown.get() {
            bar.finish_and_clear();
        }
    }
}
