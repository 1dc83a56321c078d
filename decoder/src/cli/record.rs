//! `lucce record`: attaches, records for a while, detaches, and makes the page.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lucce_control::{ControlCommand, send_command, stop_signal};
use lucce_decoder::PageOpening;

use super::attach::{agent_options, attach_agent, ensure_not_attached};
use super::classes::ClassFilterArgs;
use super::list::{find_pid, list_jvms};
use super::run::{agent_path, key_value};
use super::tag_filter::TagFilterArgs;
use super::{CommandError, CommandStatus, ctl, print_diagnostic, process, view};

/// Records what a JVM that runs without the agent does for a while, and makes a page of it.
///
/// The agent comes, records for so long, and goes; the JVM may end earlier, and Ctrl-C or SIGTERM end it early, too: the page
/// is of what was recorded until then. It can be done again at any time: each time there
/// is a log and a page of their own. Without other options it records allocations by samples, one every 512 KB.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce record -d 30s -o page.html 1234
  lucce record --opt alloc=64k --open com.acme.Server")]
pub struct RecordArgs {
    /// The JVM: its process id, its main class or jar, or the end of one of these (`lucce list` shows them)
    #[arg(value_name = "PID|NAME")]
    jvm: String,
    /// For how long: 30s, 500ms, 2m
    #[arg(short, long, default_value = "30s", value_parser = super::time_window::parse_time)]
    duration: u64,
    /// The page; else the log's name with .html, and a number where that is there already
    #[arg(short, long, value_name = "PAGE")]
    output: Option<PathBuf>,
    /// The log; else lucce-PID-TIME.lucce
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// An option of the agent, as for `lucce attach`; may be given several times
    #[arg(long = "opt", value_name = "KEY=VALUE", value_parser = key_value)]
    opts: Vec<String>,
    /// Show the page in the browser
    #[arg(long)]
    open: bool,
}

/// From one look at the JVM to the next.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub fn run(args: &RecordArgs) -> Result<CommandStatus, CommandError> {
    let pid = find_pid(&args.jvm, &list_jvms())?;
    if let Some(output) = &args.output {
        view::check_output(output)?;
    }
    ensure_not_attached(pid)?;
    let options = agent_options(&args.opts, args.log.as_deref())?;
    // From before the agent comes, so that it is not left there.
    stop_signal::handle_stop_signals()?;
    if let Err(end) = attach_agent(pid, &agent_path()?, &options) {
        return Ok(end);
    }
    let log = ctl::log_path_of(pid)?;
    print_diagnostic(format_args!(
        "process {pid} is recorded for {:.1} s in {}",
        args.duration as f64 / 1e9,
        log.display()
    ));
    if wait_for_end(pid, &log, Duration::from_nanos(args.duration)) == RecordingEnd::Interrupted {
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
    let output = args.output.clone();
    let output = output.unwrap_or_else(|| view::free_name(std::slice::from_ref(&log)));
    let what = (&ClassFilterArgs::default(), &TagFilterArgs::default());
    let end = view::write_page(&[log], &output, what, PageOpening::default())?;
    if args.open {
        view::open_in_browser(output.as_os_str())?;
    }
    Ok(end)
}

/// Why nothing more is recorded.
#[derive(PartialEq, Eq)]
enum RecordingEnd {
    DurationElapsed,
    /// The JVM has gone.
    JvmEnded,
    /// By Ctrl-C or SIGTERM.
    Interrupted,
}

fn wait_for_end(pid: u32, log: &Path, duration: Duration) -> RecordingEnd {
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
