//! How long each test took: the slowest ones and the sums by module are printed at the end, and with
//! `LUCCE_TEST_TIMES=FILE` all of them are written to a file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const SLOWEST: usize = 10;

/// Name and time of each test that ran.
#[derive(Default)]
pub struct Times(Mutex<Vec<(String, Duration)>>);

impl Times {
    /// Runs a test and notes how long it took, whatever came of it.
    pub fn of<T>(&self, name: &str, run: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let outcome = run();
        let took = started.elapsed();
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.push((name.to_owned(), took));
        outcome
    }

    /// The slowest tests, and tests and seconds of each module.
    pub fn summary(&self) -> String {
        let mut all = self.sorted();
        let mut text = String::from("seconds by module:\n");
        for (module, (tests, took)) in by_module(&all) {
            let _ = writeln!(text, "{:>9.1}  {module} ({tests})", took.as_secs_f64());
        }
        all.truncate(SLOWEST);
        text + "the slowest tests:\n" + &lines(&all)
    }

    /// A line for each test, the slowest first.
    pub fn list(&self) -> String {
        lines(&self.sorted())
    }

    fn sorted(&self) -> Vec<(String, Duration)> {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = times.clone();
        all.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        all
    }
}

fn by_module(all: &[(String, Duration)]) -> BTreeMap<&str, (usize, Duration)> {
    let mut sums: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
    for (name, took) in all {
        let module = name.split("::").next().unwrap_or(name);
        let sum = sums.entry(module).or_default();
        sum.0 += 1;
        sum.1 += *took;
    }
    sums
}

fn lines(times: &[(String, Duration)]) -> String {
    times.iter().fold(String::new(), |mut text, (name, took)| {
        let _ = writeln!(text, "{:>9.1}  {name}", took.as_secs_f64());
        text
    })
}
