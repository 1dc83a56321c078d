//! What each test cost: the dearest ones and the sums by module are printed at the end, and with `LUCCE_TEST_TIMES=FILE` all of
//! them are written to a file. CPU time comes first; elapsed time depends on what else the machine does.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cpu_time;

const DEAREST: usize = 20;

/// Of one test, or of several.
#[derive(Clone, Copy, Default)]
struct TestCost {
    cpu: Duration,
    elapsed: Duration,
}

/// Name and cost of each test that ran.
#[derive(Default)]
pub struct Times(Mutex<Vec<(String, TestCost)>>);

impl Times {
    /// Runs a test and notes what it cost, whatever came of it.
    pub fn of<T>(&self, name: &str, run: impl FnOnce() -> T) -> T {
        let (started, cpu) = (Instant::now(), cpu_time::of_thread());
        let outcome = run();
        let cost = TestCost {
            cpu: cpu_time::of_thread().saturating_sub(cpu),
            elapsed: started.elapsed(),
        };
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.push((name.to_owned(), cost));
        outcome
    }

    /// The dearest tests, and the sums of each module.
    pub fn summary(&self) -> String {
        let mut all = self.sorted();
        let modules = sum_by_module(&all);
        all.truncate(DEAREST);
        let (modules, tests) = (lines(&modules), lines(&all));
        format!(
            "seconds of CPU, seconds, module:\n{modules}seconds of CPU, seconds, test:\n{tests}"
        )
    }

    /// A line for each test, the dearest first.
    pub fn list(&self) -> String {
        lines(&self.sorted())
    }

    fn sorted(&self) -> Vec<(String, TestCost)> {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = times.clone();
        sort_by_cost(&mut all);
        all
    }
}

fn sort_by_cost(costs: &mut [(String, TestCost)]) {
    costs.sort_by_key(|(_, cost)| std::cmp::Reverse((cost.cpu, cost.elapsed)));
}

fn sum_by_module(all: &[(String, TestCost)]) -> Vec<(String, TestCost)> {
    let mut sums: BTreeMap<&str, (usize, TestCost)> = BTreeMap::new();
    for (name, cost) in all {
        let module = name.split("::").next().unwrap_or(name);
        let (tests, sum) = sums.entry(module).or_default();
        *tests += 1;
        sum.cpu += cost.cpu;
        sum.elapsed += cost.elapsed;
    }
    let sums = sums.into_iter();
    let mut sums: Vec<_> = sums
        .map(|(module, (tests, cost))| (format!("{module} ({tests})"), cost))
        .collect();
    sort_by_cost(&mut sums);
    sums
}

fn lines(costs: &[(String, TestCost)]) -> String {
    costs.iter().fold(String::new(), |mut text, (name, cost)| {
        let (cpu, elapsed) = (cost.cpu.as_secs_f64(), cost.elapsed.as_secs_f64());
        let _ = writeln!(text, "{cpu:>9.1} {elapsed:>9.1}  {name}");
        text
    })
}
