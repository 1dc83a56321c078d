//! `lucce leaks`: which contexts make objects that are never let go.

mod alive;
mod ask;
mod exhaustion;
mod moment;
mod report;
mod watch;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use lucce_decoder::{AliveTable, Damage, Leaks, LeaksText, Profile};

use super::classes::Classes;
use super::holders::{SearchLimits, find_holders, parse_seconds};
use super::output::{json, plural, stdout};
use super::progress::Bar;
use super::{End, Failure, about, complain, ending};
use alive::{AliveListing, AliveReport};
use exhaustion::Exhaustion;
use moment::AsOf;
use report::{Report, SUSPECTS};
use watch::Source;

/// Ranks contexts by the evidence that their objects leak, and says what it is.
///
/// The log must be of a run with events=leak. Only objects that a collection of the old generation has
/// left alive count; --gc makes one. The report of a JVM that ran out of memory begins with what filled its heap.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce leaks run-1234.lucce
  lucce leaks --watch 1234
  lucce leaks 1234 --holders
  lucce leaks --alive 1234         what is alive now, from where
  lucce leaks --gc 1234            collects the whole heap first

Exit codes: 0 no leak is proven; 1 a leak, or the JVM ran out of memory; 2 usage, or a log that cannot tell; 3 damaged or foreign log.")]
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
    /// Prints what is alive by context, type and class of ages, without judging whether it leaks
    #[arg(long, conflicts_with = "watch")]
    alive: bool,
    /// Collects the whole heap of the process first: the program stands still meanwhile
    #[arg(long, conflicts_with = "watch")]
    gc: bool,
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
    match (&args.source, args.gc) {
        (Source::Process(pid), true) => ask::collect(*pid)?,
        (Source::Process(pid), false) => ask::refresh(*pid),
        (Source::File(_), true) => {
            let text = "--gc asks a JVM that runs: name its process id";
            return Err(Failure::Usage(text.into()));
        }
        (Source::File(_), false) => {}
    }
    if args.alive {
        return print_alive(&log, args);
    }
    let (profile, leaks) = look(&log, &args.classes)?;
    print(&profile, &leaks, args)?;
    Ok(ended(&log, &profile, &leaks))
}

/// For a page: what `lucce leaks` prints; of the JVM `pid`, if it runs, also how it is asked what holds the objects.
pub fn text(profile: &Profile, pid: Option<u32>) -> LeaksText {
    const TOP: usize = 100;
    const SUSPECTS: usize = 30;
    const ALIVE: usize = 200;
    let bar = Bar::new("looking for leaks", 0);
    let leaks = profile.leaks(&|more| bar.tick(more));
    drop(bar);
    let report = Report::new(profile, &leaks, TOP, SUSPECTS)
        .of_process(profile, &leaks, pid)
        .of_exhausted(Exhaustion::find(profile, pid.is_none(), TOP));
    let listing = alive_listing(profile, pid, ALIVE);
    LeaksText {
        alive: listing.map(|(listing, _)| AliveTable {
            says: listing.headline(),
            rows: listing.texts(),
        }),
        ..report.text()
    }
}

/// What was alive at the last census. `pid`: the JVM, if it runs. None: the log has no census.
fn alive_listing(
    profile: &Profile,
    pid: Option<u32>,
    top: usize,
) -> Option<(AliveListing, Option<Damage>)> {
    let census = profile.following.last_census()?;
    let bar = Bar::new("decoding", 0);
    let objects = profile.alive_objects(census, &|more| bar.tick(more));
    drop(bar);
    let now = pid.map(|_| SystemTime::now());
    let as_of = AsOf::new(profile.header.start, census.at.millis, now);
    let listing = AliveListing::new(profile, &objects, as_of, top);
    Some((listing, objects.damage))
}

fn print_alive(log: &Path, args: &Args) -> Result<End, Failure> {
    let profile = args.classes.open(log)?;
    let pid = args.source.pid(profile.header.pid);
    let pid = pid.filter(|_| !profile.ended);
    let top = if args.top == 0 { usize::MAX } else { args.top };
    let Some((listing, damage)) = alive_listing(&profile, pid, top) else {
        let reason = not_followed(&profile).unwrap_or_else(|| {
            "no object was sampled yet, or an older agent wrote the log, which lists snapshots only"
                .into()
        });
        complain(about(log, reason));
        return Ok(ending(log, profile.damage.as_ref(), End::Unusable));
    };
    let report = AliveReport::new(&profile, pid, listing);
    let mut out = stdout();
    match args.json {
        true => json(&mut out, &report)?,
        false => report.write(&mut out)?,
    }
    out.flush()?;
    Ok(ending(log, damage.as_ref(), End::Fine))
}

/// What keeps the log from telling, however long the run was; a leak that was found is still told.
fn missing(profile: &Profile, leaks: &Leaks) -> Option<String> {
    if let Some(reason) = not_followed(profile) {
        return Some(reason);
    }
    let refused = profile.stat("log.refused");
    (refused > 0 && leaks.findings.is_empty()).then(|| {
        let seconds = leaks.last.map_or(0, |last| last.millis) as f64 / 1e3;
        let records = plural(refused, "record");
        format!("the log was full, so what lived is known of the first {seconds:.1} s only: {records} found no room; run with a larger limit=, or more room on the disk")
    })
}

/// Why no objects were followed. None: they were.
fn not_followed(profile: &Profile) -> Option<String> {
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
    None
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
    let pid = args.source.pid(profile.header.pid);
    let top = if args.top == 0 { usize::MAX } else { args.top };
    let exhaustion = Exhaustion::find(profile, pid.is_none(), top);
    let pid = pid.filter(|_| !profile.ended);
    let mut report = Report::new(profile, leaks, args.top, SUSPECTS)
        .of_process(profile, leaks, pid)
        .of_exhausted(exhaustion);
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
    let is_exhausted = profile.following.exhaustion().is_some();
    let end = match (&missing, leaks.findings.is_empty() && !is_exhausted) {
        (_, false) => End::Finding,
        (Some(_), true) => End::Unusable,
        (None, true) => End::Fine,
    };
    if let Some(missing) = missing {
        complain(about(log, missing));
    }
    ending(log, leaks.damage.as_ref(), end)
}
