//! `lucce leaks`: which contexts make objects that are never let go.

mod report;
mod watch;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use lucce_decoder::{Leaks, LeaksText, Profile};

use super::classes::Classes;
use super::holders::{SearchLimits, find_holders, parse_seconds};
use super::output::{json, plural, stdout};
use super::progress::Bar;
use super::{End, Failure, about, complain, ending};
use report::{Report, SUSPECTS};
use watch::Source;

/// Ranks contexts by the evidence that their objects leak, and says what it is.
///
/// The log must be of a run with events=leak. Only objects that a collection of the old generation has
/// left alive count; `jcmd PID GC.run` makes one.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce leaks run-1234.lucce
  lucce leaks --watch 1234
  lucce leaks 1234 --holders

Exit codes: 0 no leak; 1 a leak; 2 usage, or a log that cannot tell; 3 damaged or foreign log.")]
pub struct Args {
    /// A log, or the number of a process that runs under the agent
    #[arg(value_name = "FILE|PID")]
    source: Source,
    /// Follows the log until its JVM has ended
    #[arg(long)]
    watch: bool,
    /// Seconds from one look to the next
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..), requires = "watch")]
    interval: u64,
    /// Also ask the JVM what holds the objects of the first leak, or of the first suspect
    #[arg(long, conflicts_with = "watch")]
    holders: bool,
    /// Seconds for which --holders may stop the JVM [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, requires = "holders")]
    pause_budget: Option<Duration>,
    /// How many contexts; 0: all
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// One JSON object; with --watch, one per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    classes: Classes,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let log = args.source.log()?;
    if args.watch {
        return watch::run(&log, args);
    }
    let (profile, leaks) = look(&log, &args.classes)?;
    print(&profile, &leaks, args)?;
    Ok(ended(&log, &profile, &leaks))
}

/// For a page: what `lucce leaks` prints; of the JVM `pid`, if it runs, also how it is asked what holds the objects.
pub fn text(profile: &Profile, pid: Option<u32>) -> LeaksText {
    const TOP: usize = 100;
    const SUSPECTS: usize = 30;
    let bar = Bar::new("looking for leaks", 0);
    let leaks = profile.leaks(&|more| bar.tick(more));
    drop(bar);
    let report = Report::new(profile, &leaks, TOP, SUSPECTS);
    report.of_process(pid).text()
}

/// What keeps the log from telling, however long the run was; a leak that was found is still told.
fn missing(profile: &Profile, leaks: &Leaks) -> Option<String> {
    if let Some(reason) = profile.meta.get("leak.none") {
        return Some(format!("no objects were followed: {reason}"));
    }
    // What is damaged may have said so.
    if !profile.meta.contains_key("leak.interval") && profile.damage.is_some() {
        return Some("what could be read does not say whether objects were followed".into());
    }
    if !profile.meta.contains_key("leak.interval") {
        let text = "no objects were followed: start the JVM with events=leak, or `lucce attach PID --opt events=leak`";
        return Some(text.into());
    }
    let refused = profile.stat("log.refused");
    (refused > 0 && leaks.findings.is_empty()).then(|| {
        let seconds = leaks.last.map_or(0, |last| last.millis) as f64 / 1e3;
        let records = plural(refused, "record");
        format!("the log was full, so what lived is known of the first {seconds:.1} s only: {records} found no room; run with a larger limit=, or more room on the disk")
    })
}

/// The log does not have the agent's options yet: objects may still be followed.
fn starts(profile: &Profile) -> bool {
    !profile.meta.contains_key("options")
}

fn look(log: &Path, classes: &Classes) -> Result<(Profile, Leaks), Failure> {
    let profile = classes.open(log)?;
    let bar = Bar::new("decoding", 0);
    let leaks = profile.leaks(&|more| bar.tick(more));
    drop(bar);
    Ok((profile, leaks))
}

fn print(profile: &Profile, leaks: &Leaks, args: &Args) -> Result<(), Failure> {
    let report = Report::new(profile, leaks, args.top, SUSPECTS);
    let pid = args.source.pid(profile.header.pid);
    let pid = pid.filter(|_| !profile.ended);
    let mut report = report.of_process(pid);
    if args.holders {
        let pid = pid.ok_or_else(|| {
            Failure::Usage(
                "the JVM has ended: only one that runs says what holds its objects".into(),
            )
        })?;
        if let Some((ids, class)) = report.first_objects() {
            let limits = SearchLimits::with_budget(args.pause_budget);
            let found = find_holders(pid, (&ids, class), limits, profile)?;
            report.add_holders(found);
        }
    }
    let mut out = stdout();
    match args.json {
        true => json(&mut out, &report)?,
        false => report.write(&mut out)?,
    }
    out.flush()?;
    Ok(())
}

fn ended(log: &Path, profile: &Profile, leaks: &Leaks) -> End {
    let missing = missing(profile, leaks);
    let end = match (&missing, leaks.findings.is_empty()) {
        (_, false) => End::Finding,
        (Some(_), true) => End::Unusable,
        (None, true) => End::Fine,
    };
    if let Some(missing) = missing {
        complain(about(log, missing));
    }
    ending(log, leaks.damage.as_ref(), end)
}
