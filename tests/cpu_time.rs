//! CPU time of a test: of its thread, and of the processes that it waited for with [`wait_for`]. Unlike elapsed time it does not
//! depend on what else the machine does.

use std::cell::Cell;
use std::fs;
use std::io;
use std::process::{Child, ExitStatus};
use std::time::Duration;

thread_local! {
    /// Of processes that this thread has waited for.
    static OF_PROCESSES: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Of this thread so far, with processes that it has waited for.
pub fn of_thread() -> Duration {
    let own = read_stat("/proc/thread-self/stat", OWN_FIELDS);
    own.unwrap_or_default() + OF_PROCESSES.get()
}

/// As `Child::try_wait`, which removes the process and its figures from the system: these are read before.
///
/// # Errors
/// As of `Child::try_wait`.
pub fn try_wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let used = read_stat(&format!("/proc/{}/stat", child.id()), ALL_FIELDS);
    let status = child.try_wait()?;
    if let (Some(used), Some(_)) = (used, status) {
        OF_PROCESSES.set(OF_PROCESSES.get() + used);
    }
    Ok(status)
}

/// As `Child::wait`, for a process that is about to end.
///
/// # Errors
/// As of `Child::wait`.
pub fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = try_wait(child)? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `utime` and `stime`. A thread's file has the children of the whole process in the fields behind them.
const OWN_FIELDS: usize = 2;
/// Also `cutime` and `cstime`, of children that have ended.
const ALL_FIELDS: usize = 4;

fn read_stat(path: &str, fields: usize) -> Option<Duration> {
    let stat = fs::read_to_string(path).ok()?;
    parse_stat(&stat, fields)
}

/// The sum of these fields of `PID (NAME) STATE …`, in hundredths of a second.
fn parse_stat(stat: &str, fields: usize) -> Option<Duration> {
    let (_, words) = stat.rsplit_once(')')?;
    let words = words.split_whitespace().skip(11).take(fields);
    let hundredths: Option<u64> = words.map(|word| word.parse::<u64>().ok()).sum();
    hundredths.map(|hundredths| Duration::from_millis(10 * hundredths))
}
