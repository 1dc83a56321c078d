//! Follows the log of a running JVM. The log is consistent at any time, so it is read repeatedly.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Instant;

use lucce_decoder::LeakAnalysis;

use super::{
    LeaksArgs, find_missing_evidence, is_starting, print_report, read_leaks, report_outcome,
};
use crate::list::{find_pid, list_jvms};
use crate::output::lock_stdout;
use crate::process;
use crate::{CommandError, CommandStatus, print_diagnostic};

/// The source of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeaksSource {
    File(PathBuf),
    Process(u32),
}

impl FromStr for LeaksSource {
    type Err = std::convert::Infallible;

    /// A file's name may also be a number, or the name of a JVM.
    fn from_str(text: &str) -> Result<LeaksSource, Self::Err> {
        let file = || LeaksSource::File(text.into());
        if Path::new(text).exists() {
            return Ok(file());
        }
        let pid = text.parse().ok();
        let pid = pid.or_else(|| find_pid(text, &list_jvms()).ok());
        Ok(pid.map_or_else(file, LeaksSource::Process))
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
    /// The JVM that writes the log, if it runs. `recorded`: the process id in the log.
    pub fn running_pid(&self, recorded: u32, log: &Path) -> Option<u32> {
        let pid = match self {
            LeaksSource::Process(pid) => *pid,
            LeaksSource::File(_) => recorded,
        };
        (!process::is_gone(pid, log)).then_some(pid)
    }
}

/// Prints the report when the leaking contexts change, and at the end.
pub fn watch_leaks(log: &Path, args: &LeaksArgs) -> Result<CommandStatus, CommandError> {
    let (mut seen, mut gone) = (None, false);
    loop {
        let started = Instant::now();
        let (profile, leaks) = read_leaks(log, args)?;
        // A log that cannot show leaks now never will.
        let tells = find_missing_evidence(&profile, &leaks).is_none();
        let is_in_vain = !tells && !is_starting(&profile);
        let over = gone || profile.ended || leaks.damage.is_some() || is_in_vain;
        if !over && process::is_gone(profile.header.pid, log) {
            // The JVM may have written until just now, so the log is read once more.
            gone = true;
            continue;
        }
        let now = PrintedLeaks::from_leaks(&leaks, args.json);
        if over || seen.as_ref() != Some(&now) {
            if !args.json {
                print_headline(&leaks, over && tells)?;
            }
            print_report(log, &profile, &leaks, args)?;
            if !over && seen.is_none() {
                announce_watch(profile.header.pid, args);
            }
            seen = Some(now);
        }
        if over {
            return Ok(report_outcome(log, &profile, &leaks));
        }
        drop((profile, leaks));
        // Limits reading to a fifth of the time, however long the log is.
        let pause = args.interval.max(4 * started.elapsed());
        thread::sleep(pause);
    }
}

/// The last printed state: JSON has every snapshot, text only changes of contexts.
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

/// Says what follows the first report.
fn announce_watch(pid: u32, args: &LeaksArgs) {
    let next = match args.json {
        true => "with each snapshot",
        false => "when other contexts leak",
    };
    print_diagnostic(format_args!(
        "watching process {pid} every {:.1} s; the next report comes {next}, and at the end of the JVM (Ctrl-C stops)",
        args.interval.as_secs_f64()
    ));
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
mod watch_tests {
    use super::*;

    #[test]
    fn a_number_is_a_process() {
        assert_eq!("12".parse(), Ok(LeaksSource::Process(12)));
        assert_eq!("12.lucce".parse(), Ok(LeaksSource::File("12.lucce".into())));
        assert_eq!("-1".parse(), Ok(LeaksSource::File("-1".into())));
    }
}
