//! `lucce record`: attaches, records for a time, detaches, and writes the page.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lucce_control::{ControlCommand, send_command, stop_signal};
use lucce_options::units::parse_duration;
use lucce_page::PageOpening;

use super::agent_path::agent_path;
use super::attach::{agent_options, attach_agent, ensure_not_attached};
use super::list::{find_pid, list_jvms};
use super::recording_args::RecordingArgs;
use super::selection::Selection;
use super::{CommandError, CommandStatus, agent_status, print_diagnostic, process, view};

/// Attach the agent to a running JVM for a while, and make a page of the recording.
///
/// Ctrl-C or SIGTERM end the recording early, and so does the end of the JVM; the page then shows what was recorded. A JVM can be
/// recorded again at any time; each recording has its own log and page.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce record -d 30s --page page.html 1234
  lucce record --opt alloc=64k --open com.acme.Server")]
pub struct RecordArgs {
    /// Process id of the JVM, its main class or jar, or the end of one (`lucce list` shows them)
    #[arg(value_name = "JVM")]
    jvm: String,
    /// Duration of the recording
    #[arg(short, long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    duration: Duration,
    #[command(flatten)]
    recording: RecordingArgs,
    /// Write the page to this file [default: the log's name with .html, numbered if that exists]
    #[arg(long, value_name = "PAGE")]
    page: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
}

/// Time between two checks of the JVM.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub fn run(args: &RecordArgs) -> Result<CommandStatus, CommandError> {
    let pid = find_pid(&args.jvm, &list_jvms())?;
    if let Some(page) = &args.page {
        view::check_output(page)?;
    }
    ensure_not_attached(pid)?;
    let options = agent_options(&args.recording)?;
    // Set before attaching, so that a signal cannot leave the agent in the JVM.
    stop_signal::handle_stop_signals()?;
    if let Err(end) = attach_agent(pid, &agent_path()?, &options) {
        return Ok(end);
    }
    let log = agent_status::log_path_of(pid)?;
    print_diagnostic(format_args!(
        "process {pid} is recorded for {:.1} s in {}",
        args.duration.as_secs_f64(),
        log.display()
    ));
    if wait_for_end(pid, &log, args.duration) == RecordingEnd::Interrupted {
        print_diagnostic(
            "asked to end: the agent is detached, and the page is of what was recorded until now",
        );
    }
    if !process::is_gone(pid, &log)
        && let Err(error) = send_command(pid, &ControlCommand::Detach)
        && !process::is_gone(pid, &log)
    {
        return Err(error.into());
    }
    let page = args.page.clone();
    let page = page.unwrap_or_else(|| view::free_name(std::slice::from_ref(&log)));
    let end = view::write_page(&[log], &page, &Selection::default(), PageOpening::default())?;
    if args.open {
        view::open_in_browser(page.as_os_str())?;
    }
    Ok(end)
}

/// The reason for the end of a recording.
#[derive(PartialEq, Eq)]
pub enum RecordingEnd {
    DurationElapsed,
    /// The JVM has ended.
    JvmEnded,
    /// The user sent Ctrl-C or SIGTERM.
    Interrupted,
}

/// Waits for the end of the duration, of the JVM, or until a signal.
pub fn wait_for_end(pid: u32, log: &Path, duration: Duration) -> RecordingEnd {
    let begin = Instant::now();
    loop {
        let left = duration.saturating_sub(begin.elapsed());
        match left.is_zero() {
            _ if stop_signal::is_stop_requested() => return RecordingEnd::Interrupted,
            _ if process::is_gone(pid, log) => return RecordingEnd::JvmEnded,
            true => return RecordingEnd::DurationElapsed,
            false => thread::sleep(left.min(POLL_INTERVAL)),
        }
    }
}
