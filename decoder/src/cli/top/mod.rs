//! `lucce top`: what a JVM does now, on a terminal.
//!
//! ```text
//! log ─► sampler: reads it again and again, in a thread of its own ─► Window: what was counted meanwhile
//! keys ─► View: what is shown of it, and how ─► rows ─► screen
//! ```

mod rows;
mod sampler;
mod screen;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use self::rows::{List, View};
use self::sampler::Sampler;
use super::output::stdout;
use super::target::Target;
use super::{End, Failure, about};

/// Shows what a JVM does now: events of the last seconds by context, type, method or thread.
///
/// The JVM must have the agent (`lucce list` shows which have). Keys: left and right what is listed, `e` the next kind of events, `s`
/// sorts by value or by count, up and down choose a row, Enter shows its trace (page up and down move a long one), space pauses, `d` writes a copy of the log, `q` ends.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce top 1234
  lucce top com.acme.Server --event lock --interval 5s
  lucce top 1234 --once --list type            one screen as text, for scripts")]
pub struct Args {
    /// The JVM: its process id, its main class or jar, or the end of one of these; or the log of a run
    #[arg(value_name = "PID|NAME|RUN")]
    jvm: String,
    /// From one look at the log to the next: 2s, 500ms; longer if reading it takes more than a quarter of that
    #[arg(short, long, default_value = "2s", value_parser = super::window::time)]
    interval: u64,
    /// The kind of events; else the one that `lucce report` shows first
    #[arg(long, value_name = "KIND")]
    event: Option<String>,
    /// What is listed at first
    #[arg(long, value_enum, default_value = "context")]
    list: List,
    /// Also threads of pools that wait for work, which are one line otherwise (kinds that count time)
    #[arg(long)]
    idle: bool,
    /// Print what one interval brings, and end
    #[arg(long)]
    once: bool,
    /// How many rows --once prints
    #[arg(long, default_value_t = 20, requires = "once")]
    top: usize,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    if !args.once && !std::io::stdout().is_terminal() {
        let message = "standard output is no terminal; --once prints one screen as text";
        return Err(Failure::Usage(message.into()));
    }
    let target = Target::of(&args.jvm)?;
    let sampler = Sampler::new(&target.log, Duration::from_nanos(args.interval))?;
    if let Some(event) = &args.event {
        check(event, &sampler)?;
    }
    let mut view = View::new(args.event.clone(), args.list);
    view.with_idle = args.idle;
    match args.once {
        true => once(sampler, view, args.top),
        false => screen::run(&target, sampler, view),
    }
}

/// As `lucce report`; kinds that the run was asked for may come yet.
fn check(event: &String, sampler: &Sampler) -> Result<(), Failure> {
    let kinds = sampler.kinds();
    if kinds.contains(event) {
        return Ok(());
    }
    let there = match kinds.is_empty() {
        true => "no events at all".to_owned(),
        false => kinds.join(", "),
    };
    let message = format_args!("no events of kind {event:?}; there are {there}");
    Err(Failure::Usage(about(sampler.path(), message)))
}

fn once(mut sampler: Sampler, view: View, most: usize) -> Result<End, Failure> {
    std::thread::sleep(sampler.interval());
    let window = sampler
        .look()
        .map_err(|error| Failure::Open(sampler.path().to_owned(), error))?;
    let mut out = stdout();
    for line in rows::head(&window, &view) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let rows = rows::rows(&window, &view);
    for row in rows.iter().take(most) {
        writeln!(out, "{row}")?;
    }
    if let Some(more) = rows.len().checked_sub(most).filter(|more| *more > 0) {
        writeln!(out, "{more} more (--top)")?;
    }
    out.flush()?;
    Ok(End::Fine)
}
