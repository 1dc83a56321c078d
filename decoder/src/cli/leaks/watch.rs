//! Following the log of a JVM that runs. The log is whole at any time, so it is read again and again.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Instant;

use lucce_decoder::LeakAnalysis;

use super::{
    LeaksArgs, find_missing_evidence, is_starting, print_report, read_leaks, report_outcome,
};
use crate::cli::output::lock_stdout;
use crate::cli::process;
use crate::cli::{CommandError, CommandStatus};

/// Where the log is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeaksSource {
    File(PathBuf),
    Process(u32),
}

impl FromStr for LeaksSource {
    type Err = std::convert::Infallible;

    /// A file may be named by a number, too.
    fn from_str(text: &str) -> Result<LeaksSource, Self::Err> {
        let process = text.parse().ok().filter(|_| !Path::new(text).exists());
        Ok(process.map_or_else(|| LeaksSource::File(text.into()), LeaksSource::Process))
    }
}

impl LeaksSource {
    pub fn resolve_log(&self) -> Result<PathBuf, CommandError> {
        match self {
            LeaksSource::File(path) => Ok(path.clone()),
            LeaksSource::Process(pid) => process::find_log(*pid).map_err(CommandError::Usage),
        }
    }
}

impl LeaksSource {
    /// The JVM that writes the log, if it runs. `said`: what the log says.
    pub fn running_pid(&self, said: u32) -> Option<u32> {
        match self {
            LeaksSource::Process(pid) => Some(*pid),
            LeaksSource::File(path) => (!process::is_gone(said, path)).then_some(said),
        }
    }
}

/// Prints when other contexts leak than before, and at the end.
pub fn watch_leaks(log: &Path, args: &LeaksArgs) -> Result<CommandStatus, CommandError> {
    let (mut seen, mut gone) = (None, false);
    loop {
        let started = Instant::now();
        let (profile, leaks) = read_leaks(log, &args.classes)?;
        // Nor will it tell later.
        let tells = find_missing_evidence(&profile, &leaks).is_none();
        let is_in_vain = !tells && !is_starting(&profile);
        let over = gone || profile.ended || leaks.damage.is_some() || is_in_vain;
        if !over && process::is_gone(profile.header.pid, log) {
            // It may have written until just now.
            gone = true;
            continue;
        }
        let now = PrintedLeaks::from_leaks(&leaks, args.json);
        if over || seen.as_ref() != Some(&now) {
            if !args.json {
                print_headline(&leaks, over && tells)?;
            }
            print_report(&profile, &leaks, args)?;
            seen = Some(now);
        }
        if over {
            return Ok(report_outcome(log, &profile, &leaks));
        }
        drop((profile, leaks));
        // However long the log is, most of the time is left to others.
        let pause = args.interval.max(4 * started.elapsed());
        thread::sleep(pause);
    }
}

/// What was printed: every snapshot for programs, for people other contexts.
#[derive(PartialEq, Eq)]
struct PrintedLeaks {
    leaks: Vec<(u64, String)>,
    snapshots: u64,
}

impl PrintedLeaks {
    fn from_leaks(leaks: &LeakAnalysis, all: bool) -> PrintedLeaks {
        let mut names: Vec<_> = leaks
            .findings
            .iter()
            .map(|leak| (leak.id.0, leak.type_name.clone()))
            .collect();
        names.sort();
        PrintedLeaks {
            leaks: names,
            snapshots: if all { leaks.snapshots } else { 0 },
        }
    }
}

fn print_headline(leaks: &LeakAnalysis, over: bool) -> io::Result<()> {
    let seconds = leaks.last_snapshot.map_or(0, |last| last.millis) as f64 / 1e3;
    let mut out = lock_stdout();
    match over {
        true => writeln!(out, "--- the JVM has ended")?,
        false => writeln!(out, "--- after {seconds:.1} s")?,
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_process() {
        assert_eq!("12".parse(), Ok(LeaksSource::Process(12)));
        assert_eq!("12.lucce".parse(), Ok(LeaksSource::File("12.lucce".into())));
        assert_eq!("-1".parse(), Ok(LeaksSource::File("-1".into())));
    }
}
