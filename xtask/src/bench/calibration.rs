//! How much of a benchmark fits into a given time, by one short run of it without an agent.

use std::time::Duration;

use lucce_bench::{Iterations, JavaCommand, run_process};

/// Iterations of the run that calibrates: the last one counts.
const TRIED: usize = 3;
/// Fewer iterations are too few to compare; a smaller size is taken then.
const FEWEST: usize = 8;
/// What agents may multiply a benchmark's time by, so that a table keeps to its time.
const SLOWDOWN: f64 = 1.6;
/// The part of a benchmark's time that finding its size may take.
const TRIAL_SHARE: f64 = 0.25;

/// How much a benchmark does in each of its JVMs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkAmount {
    pub iterations: usize,
    pub size: String,
}

/// Times of a benchmark without an agent.
#[derive(Clone, Copy, Debug)]
struct BenchmarkTimes {
    /// Everything but the last iteration, in seconds. A measured JVM does that, too.
    start: f64,
    /// The last iteration, in seconds.
    iteration: f64,
}

/// The time of one benchmark and the JVMs that share it.
#[derive(Clone, Copy, Debug)]
pub struct TimeShare {
    pub whole: Duration,
    pub jvms: usize,
    /// Of a JVM.
    pub most_iterations: usize,
}

impl TimeShare {
    /// Chooses the first of `sizes`, largest first, with enough iterations in its share; the last one if none has.
    ///
    /// `command` gives the command of a number of iterations of a size. A size that fails by itself is taken as it is,
    /// with the fewest iterations: its measurement reports why.
    pub fn choose(
        self,
        sizes: &[&str],
        scratch: &std::path::Path,
        command: impl Fn(usize, &str) -> JavaCommand,
    ) -> WorkAmount {
        let amount = |iterations, size: &str| WorkAmount {
            iterations,
            size: size.to_owned(),
        };
        let mut left = self.whole;
        let mut chosen = amount(TRIED, "default");
        for (at, size) in sizes.iter().enumerate() {
            let limit = left.mul_f64(TRIAL_SHARE);
            let ended = run_process(&mut command(TRIED, size).with(&[]), scratch, limit);
            let is_last = at + 1 == sizes.len();
            let iterations = match ended {
                Ok(ended) if ended.timed_out => {
                    left = left.saturating_sub(limit);
                    None
                }
                Ok(ended) => {
                    let wall = ended.usage.wall / 1e3;
                    left = left.saturating_sub(Duration::from_secs_f64(wall));
                    let times = BenchmarkTimes::of(wall, &Iterations::parse(&ended.stdout));
                    let Some(times) = times else {
                        return amount(TRIED, size);
                    };
                    Some(self.iterations(left, times))
                }
                Err(_) => return amount(TRIED, size),
            };
            chosen = amount(iterations.unwrap_or(TRIED).max(TRIED), size);
            if is_last || iterations.is_some_and(|count| count >= FEWEST.min(self.most_iterations))
            {
                break;
            }
        }
        chosen
    }

    fn iterations(self, left: Duration, times: BenchmarkTimes) -> usize {
        let each = left.as_secs_f64() / self.jvms.max(1) as f64 / SLOWDOWN;
        // The start contains all but one of the tried iterations.
        let more = ((each - times.start) / times.iteration.max(1e-3)).max(0.0);
        (TRIED - 1)
            .saturating_add(more as usize)
            .min(self.most_iterations)
    }
}

impl BenchmarkTimes {
    /// `wall`: of the process, in seconds.
    fn of(wall: f64, printed: &Iterations) -> Option<BenchmarkTimes> {
        let last = printed.list.last()?;
        let complete = printed.failed.is_none() && printed.list.len() == TRIED;
        let iteration = last.wall / 1e3;
        complete.then_some(BenchmarkTimes {
            start: (wall - iteration).max(0.0),
            iteration,
        })
    }
}

#[cfg(test)]
mod calibration_tests {
    use super::*;

    fn share(seconds: u64, jvms: usize) -> TimeShare {
        TimeShare {
            whole: Duration::from_secs(seconds),
            jvms,
            most_iterations: 31,
        }
    }

    #[test]
    fn iterations_fill_the_share_of_a_jvm() {
        let times = BenchmarkTimes {
            start: 5.0,
            iteration: 2.0,
        };
        // 320 s of 4 JVMs that are 1.6 times as slow: 50 s, of which 5 s are the start with two iterations.
        assert_eq!(share(0, 4).iterations(Duration::from_secs(320), times), 24);
        assert_eq!(share(0, 4).iterations(Duration::from_secs(3200), times), 31);
        assert_eq!(share(0, 4).iterations(Duration::from_secs(1), times), 2);
    }

    /// The size chosen for a benchmark that is this command of a shell; `$SIZE` is the size's name.
    fn choose(share: TimeShare, script: &str) -> WorkAmount {
        let folder = tempfile::tempdir().unwrap();
        share.choose(&["default", "small"], folder.path(), |_, size| {
            let script = format!("SIZE={size}; {script}");
            JavaCommand {
                java: "sh".into(),
                arguments: vec!["-c".into(), script.into()],
                folder: None,
                without_env: Vec::new(),
            }
        })
    }

    #[test]
    fn a_size_with_too_few_iterations_is_not_taken() {
        let amount = |iterations, size: &str| WorkAmount {
            iterations,
            size: size.to_owned(),
        };
        let prints = |wall: &str| {
            format!("for n in 1 2 3; do echo \"iteration $n: {wall} ms wall, 1 ms cpu\"; done")
        };
        assert_eq!(choose(share(3600, 2), &prints("1")), amount(31, "default"));
        let slow = format!(
            "if [ $SIZE = default ]; then {}; else {}; fi",
            prints("1000000"),
            prints("1")
        );
        assert_eq!(choose(share(3600, 2), &slow), amount(31, "small"));
        assert_eq!(
            choose(share(3600, 2), &prints("1000000")),
            amount(3, "small")
        );
    }

    #[test]
    fn a_trial_that_does_not_end_or_fails_leaves_the_fewest_iterations() {
        let mut little = share(0, 2);
        little.whole = Duration::from_millis(400);
        let endless = choose(little, "exec sleep 600");
        assert_eq!(
            (endless.iterations, endless.size.as_str()),
            (TRIED, "small")
        );
        let failed = choose(share(3600, 2), "echo FAILED: no; exit 1");
        assert_eq!(
            (failed.iterations, failed.size.as_str()),
            (TRIED, "default")
        );
    }

    #[test]
    fn times_are_those_of_a_complete_run() {
        let text = |count: usize| {
            let lines =
                (1..=count).map(|n| format!("iteration {n}: {} ms wall, 9 ms cpu\n", 1000 * n));
            Iterations::parse(&lines.collect::<String>())
        };
        let times = BenchmarkTimes::of(7.0, &text(3)).unwrap();
        assert_eq!((times.start, times.iteration), (4.0, 3.0));
        assert!(BenchmarkTimes::of(7.0, &text(2)).is_none());
    }
}
