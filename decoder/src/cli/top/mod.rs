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

use self::rows::{TopList, TopView};
use self::sampler::LogSampler;
use super::output::lock_stdout;
use super::target::RunTarget;
use super::{CommandError, CommandStatus, prefix_path};

/// Shows what a JVM does now: events of the last seconds by context, type, method or thread.
///
/// The JVM must have the agent (`lucce list` shows which have). Keys: left and right what is listed, `e` the next kind of events, `s`
/// sorts by value or by count, up and down choose a row, Enter shows its trace (page up and down move a long one), space pauses, `d` writes a copy of the log, `q` ends.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce top 1234
  lucce top com.acme.Server --event lock --interval 5s
  lucce top 1234 --once --list type            one screen as text, for scripts")]
pub struct TopArgs {
    /// The JVM: its process id, its main class or jar, or the end of one of these; or the log of a run
    #[arg(value_name = "PID|NAME|RUN")]
    jvm: String,
    /// From one look at the log to the next: 2s, 500ms; longer if reading it takes more than a quarter of that
    #[arg(short, long, default_value = "2s", value_parser = super::time_window::parse_time)]
    interval: u64,
    /// The kind of events; else the one that `lucce report` shows first
    #[arg(long, value_name = "KIND")]
    event: Option<String>,
    /// What is listed at first
    #[arg(long, value_enum, default_value = "context")]
    list: TopList,
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

pub fn run(args: &TopArgs) -> Result<CommandStatus, CommandError> {
    if !args.once && !std::io::stdout().is_terminal() {
        let message = "standard output is no terminal; --once prints one screen as text";
        return Err(CommandError::Usage(message.into()));
    }
    let target = RunTarget::from_name(&args.jvm)?;
    let sampler = LogSampler::new(&target.log, Duration::from_nanos(args.interval))?;
    if let Some(event) = &args.event {
        check_kind(event, &sampler)?;
    }
    let mut view = TopView::new(args.event.clone(), args.list);
    view.with_idle = args.idle;
    match args.once {
        true => print_once(sampler, view, args.top),
        false => screen::run_screen(&target, sampler, view),
    }
}

/// As `lucce report`; kinds that the run was asked for may come yet.
fn check_kind(event: &String, sampler: &LogSampler) -> Result<(), CommandError> {
    let kinds = sampler.kinds();
    if kinds.contains(event) {
        return Ok(());
    }
    let there = match kinds.is_empty() {
        true => "no events at all".to_owned(),
        false => kinds.join(", "),
    };
    let message = format_args!("no events of kind {event:?}; there are {there}");
    Err(CommandError::Usage(prefix_path(sampler.path(), message)))
}

fn print_once(
    mut sampler: LogSampler,
    view: TopView,
    most: usize,
) -> Result<CommandStatus, CommandError> {
    std::thread::sleep(sampler.poll_interval());
    let window = sampler
        .read_window()
        .map_err(|error| CommandError::Open(sampler.path().to_owned(), error))?;
    let mut out = lock_stdout();
    for line in rows::format_head(&window, &view) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let rows = rows::build_rows(&window, &view);
    for row in rows.iter().take(most) {
        writeln!(out, "{row}")?;
    }
    if let Some(more) = rows.len().checked_sub(most).filter(|more| *more > 0) {
        writeln!(out, "{more} more (--top)")?;
    }
    out.flush()?;
    Ok(CommandStatus::Fine)
}
