//! Following the log of a JVM that runs. The log is whole at any time, so it is read again and again.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use lucce_decoder::Leaks;

use super::{Args, ended, look, missing, print, starts};
use crate::cli::output::stdout;
use crate::cli::process;
use crate::cli::{End, Failure};

/// Where the log is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    File(PathBuf),
    Process(u32),
}

impl FromStr for Source {
    type Err = std::convert::Infallible;

    /// A file may be named by a number, too.
    fn from_str(text: &str) -> Result<Source, Self::Err> {
        let process = text.parse().ok().filter(|_| !Path::new(text).exists());
        Ok(process.map_or_else(|| Source::File(text.into()), Source::Process))
    }
}

impl Source {
    pub fn log(&self) -> Result<PathBuf, Failure> {
        match self {
            Source::File(path) => Ok(path.clone()),
            Source::Process(pid) => process::log_of(*pid).map_err(Failure::Usage),
        }
    }
}

impl Source {
    /// The JVM that writes the log, if it runs. `said`: what the log says.
    pub fn pid(&self, said: u32) -> Option<u32> {
        match self {
            Source::Process(pid) => Some(*pid),
            Source::File(path) => (!process::is_gone(said, path)).then_some(said),
        }
    }
}

/// Prints when other contexts leak than before, and at the end.
pub fn run(log: &Path, args: &Args) -> Result<End, Failure> {
    let (mut seen, mut gone) = (None, false);
    loop {
        let started = Instant::now();
        let (profile, leaks) = look(log, &args.classes)?;
        // Nor will it tell later.
        let tells = missing(&profile, &leaks).is_none();
        let is_in_vain = !tells && !starts(&profile);
        let over = gone || profile.ended || leaks.damage.is_some() || is_in_vain;
        if !over && process::is_gone(profile.header.pid, log) {
            // It may have written until just now.
            gone = true;
            continue;
        }
        let now = Seen::of(&leaks, args.json);
        if over || seen.as_ref() != Some(&now) {
            if !args.json {
                headline(&leaks, over && tells)?;
            }
            print(&profile, &leaks, args)?;
            seen = Some(now);
        }
        if over {
            return Ok(ended(log, &profile, &leaks));
        }
        drop((profile, leaks));
        // However long the log is, most of the time is left to others.
        let pause = Duration::from_secs(args.interval).max(4 * started.elapsed());
        thread::sleep(pause);
    }
}

/// What was printed: every snapshot for programs, for people other contexts.
#[derive(PartialEq, Eq)]
struct Seen {
    leaks: Vec<(u64, String)>,
    snapshots: u64,
}

impl Seen {
    fn of(leaks: &Leaks, all: bool) -> Seen {
        let mut names: Vec<_> = leaks
            .findings
            .iter()
            .map(|leak| (leak.id.0, leak.of.clone()))
            .collect();
        names.sort();
        Seen {
            leaks: names,
            snapshots: if all { leaks.snapshots } else { 0 },
        }
    }
}

fn headline(leaks: &Leaks, over: bool) -> io::Result<()> {
    let seconds = leaks.last.map_or(0, |last| last.millis) as f64 / 1e3;
    let mut out = stdout();
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
        assert_eq!("12".parse(), Ok(Source::Process(12)));
        assert_eq!("12.lucce".parse(), Ok(Source::File("12.lucce".into())));
        assert_eq!("-1".parse(), Ok(Source::File("-1".into())));
    }
}
