//! HotSpot's own way to load an agent into a JVM that runs (JDK's `sun.tools.attach.VirtualMachineImpl`
//! and HotSpot's `attachListener_posix.cpp` are the other implementations of it).
//!
//! ```text
//! /tmp/.attach_pidN made, SIGQUIT      the JVM makes /tmp/.java_pidN, once and for all
//! ─► "1" 0 "load" 0 path 0 "true" 0 options 0
//! ◄─ "0\n" "return code: 0\n"          what Agent_OnAttach returned
//! ```
//!
//! SIGQUIT ends a process that does not expect it, so it is sent to JVMs only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{error, fmt};

use crate::peer;
use crate::perf;
use crate::place::{SocketPlace, is_own_socket};

/// HotSpot refuses longer arguments.
const MOST: usize = 1024;
/// How long a JVM may take to listen: it may be in the middle of a collection.
const PATIENCE: Duration = Duration::from_secs(20);
/// When it is woken once more, if nothing has come of it: it may have been starting, and have removed its own answer.
const AGAIN: Duration = Duration::from_secs(5);
const REPLY: u64 = 1 << 20;

/// Why the agent was not loaded.
#[derive(Debug)]
pub enum LoadError {
    /// No process has this number.
    NoProcess(u32),
    /// The process belongs to another user, by number.
    OtherUser(u32, u32),
    /// It is not HotSpot.
    NoJvm(u32),
    /// It was started so that nothing is ever loaded.
    Closed(u32),
    /// It is HotSpot and does not listen.
    Silent(u32),
    /// Path or options are longer than HotSpot takes, or hold a byte 0.
    TooLong,
    /// The agent's file is not where the JVM would look for it.
    NoAgent(PathBuf),
    /// What comes back is no answer.
    Foreign(String),
    /// The JVM or the agent says why not, or somebody else listens.
    Refused(String),
    /// The system's.
    Io(io::Error),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NoProcess(pid) => write!(f, "there is no process {pid}"),
            LoadError::OtherUser(pid, user) => write!(
                f,
                "process {pid} belongs to user {user}: only that user may attach"
            ),
            LoadError::NoJvm(pid) => write!(f, "process {pid} is no HotSpot JVM"),
            LoadError::Closed(pid) => write!(
                f,
                "JVM {pid} was started with -XX:+DisableAttachMechanism: start it with -agentpath instead"
            ),
            LoadError::Silent(pid) => write!(
                f,
                "JVM {pid} does not answer: it was started with -XX:+DisableAttachMechanism, or is stopped"
            ),
            LoadError::TooLong => write!(
                f,
                "the agent's path and its options may have {MOST} bytes each"
            ),
            LoadError::NoAgent(path) => write!(
                f,
                "{} is not there in the JVM's file system: put the agent there, or name another place",
                path.display()
            ),
            LoadError::Foreign(why) => write!(f, "the answer is foreign: {why}"),
            LoadError::Refused(why) => f.write_str(why),
            LoadError::Io(e) => write!(f, "the connection failed: {e}"),
        }
    }
}

impl error::Error for LoadError {}

impl From<io::Error> for LoadError {
    fn from(e: io::Error) -> Self {
        LoadError::Io(e)
    }
}

/// Loads the agent at `path`, as the JVM sees it, into process `pid`. The agent is also told a file for
/// what it has to say.
///
/// # Errors
/// It is not loaded, or does not stay.
pub fn load(pid: u32, path: &Path, options: &str) -> Result<(), LoadError> {
    let place = SocketPlace::of(pid).map_err(|_| LoadError::NoProcess(pid))?;
    check(pid)?;
    if !seen_by(pid, path).is_file() {
        return Err(LoadError::NoAgent(path.to_owned()));
    }
    let said = Said::new(&place)?;
    let comma = if options.is_empty() { "" } else { "," };
    let options = format!("{options}{comma}tell={}", said.inner.display());
    let path = path.to_str().ok_or(LoadError::TooLong)?;
    let arguments = ["1", "load", path, "true", &options];
    if arguments.iter().any(|a| a.len() > MOST || a.contains('\0')) {
        return Err(LoadError::TooLong);
    }
    await_start(pid, &place)?;
    let socket = place.folder().join(format!(".java_pid{}", place.inner()));
    if fs::symlink_metadata(&socket).is_err() {
        if perf::lets_attach(&place) == Some(false) {
            return Err(LoadError::Closed(pid));
        }
        wake(pid, &place, &socket)?;
    }
    let answer = talk(pid, &socket, &arguments)?;
    understood(&answer, &said)
}

/// SIGQUIT must not hit anything but a JVM of this user.
fn check(pid: u32) -> Result<(), LoadError> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let owner = fs::metadata(&process)
        .map_err(|_| LoadError::NoProcess(pid))?
        .uid();
    if owner != peer::user() {
        return Err(LoadError::OtherUser(pid, owner));
    }
    let maps = fs::read_to_string(process.join("maps"))?;
    let status = fs::read_to_string(process.join("status"))?;
    let is_hotspot = maps.lines().any(|line| line.ends_with("/libjvm.so"));
    match is_hotspot && catches_quit(&status) {
        true => Ok(()),
        false => Err(LoadError::NoJvm(pid)),
    }
}

/// `SigCgt: 0000000181005ccf`: bit n−1 is signal n.
fn catches_quit(status: &str) -> bool {
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> (libc::SIGQUIT - 1) & 1 == 1)
}

/// A path of the JVM's, as this process sees it.
fn seen_by(pid: u32, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    match (fs::metadata(&root), path.strip_prefix("/")) {
        (Ok(_), Ok(rest)) => root.join(rest),
        _ => path.to_owned(),
    }
}

/// A JVM that is starting is given the time.
fn await_start(pid: u32, place: &SocketPlace) -> Result<(), LoadError> {
    let end = Instant::now() + PATIENCE;
    while perf::has_started(place) == Some(false) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
        check(pid)?;
    }
    Ok(())
}

/// Makes the JVM listen.
fn wake(pid: u32, place: &SocketPlace, socket: &Path) -> Result<(), LoadError> {
    let wish = place.folder().join(format!(".attach_pid{}", place.inner()));
    let _wish = Removed::new(wish)?;
    peer::quit(pid)?;
    let end = Instant::now() + PATIENCE;
    let mut again = Instant::now() + AGAIN;
    while fs::symlink_metadata(socket).is_err() {
        let now = Instant::now();
        if now > end {
            return Err(LoadError::Silent(pid));
        }
        if now > again {
            peer::quit(pid)?;
            again = now + AGAIN;
        }
        std::thread::sleep(Duration::from_millis(20));
        check(pid)?;
    }
    Ok(())
}

/// What the JVM answers.
fn talk(pid: u32, socket: &Path, arguments: &[&str]) -> Result<String, LoadError> {
    if !is_own_socket(socket) {
        return Err(LoadError::Refused(format!(
            "{} is no socket of this user",
            socket.display()
        )));
    }
    let stream = UnixStream::connect(socket).map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => LoadError::Silent(pid),
        _ => LoadError::Io(e),
    })?;
    let peer = peer::of(&stream)?;
    if peer.user != peer::user() || ![0, pid].contains(&peer.pid) {
        return Err(LoadError::Refused(format!(
            "process {} listens at {}",
            peer.pid,
            socket.display()
        )));
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    for argument in arguments {
        request.extend(argument.bytes());
        request.push(0);
    }
    (&stream).write_all(&request)?;
    let mut answer = Vec::new();
    match stream.take(REPLY).read_to_end(&mut answer) {
        Ok(_) => Ok(String::from_utf8_lossy(&answer).into_owned()),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(LoadError::Silent(pid)),
        Err(e) => Err(e.into()),
    }
}

/// The first line is what became of the command, then comes what the agent returned.
fn understood(answer: &str, said: &Said) -> Result<(), LoadError> {
    let (code, text) = answer.split_once('\n').unwrap_or((answer, ""));
    let code: i32 = code.trim().parse().map_err(|_| {
        let start: String = answer.chars().take(40).collect();
        LoadError::Foreign(format!("{start:?}"))
    })?;
    let text = text.trim();
    if code == 0 && text.strip_prefix("return code:").map(str::trim) == Some("0") {
        return Ok(());
    }
    let reason = said.read();
    Err(LoadError::Refused(match (reason.is_empty(), text) {
        (false, _) => reason,
        (true, "") => format!("the JVM refuses (code {code})"),
        (true, text) => format!("the JVM says: {}", text.replace('\n', " ")),
    }))
}

/// A file that goes when it is not needed any more.
struct Removed(PathBuf);

impl Removed {
    fn new(path: PathBuf) -> io::Result<Removed> {
        // A client that was killed may have left it.
        let _ = fs::remove_file(&path);
        let made: io::Result<File> = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        made.map(|_| Removed(path))
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = fs::remove_file(&self.0);
    }
}

/// The file into which the agent writes why it does not stay.
struct Said {
    file: Removed,
    /// As the JVM sees it.
    inner: PathBuf,
}

impl Said {
    fn new(place: &SocketPlace) -> io::Result<Said> {
        let name = format!(".lucce_attach{}", std::process::id());
        Ok(Said {
            file: Removed::new(place.folder().join(&name))?,
            inner: Path::new("/tmp").join(name),
        })
    }

    fn read(&self) -> String {
        let text = fs::read_to_string(&self.file.0).unwrap_or_default();
        text.chars()
            .take(1000)
            .filter(|c| !c.is_control())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_expects_the_signal_gets_it() {
        assert!(catches_quit("Name:\tjava\nSigCgt:\t0000000181005ccf\n"));
        assert!(!catches_quit("SigCgt:\t0000000000000000\n"));
        assert!(!catches_quit(""));
        // This process is none.
        let own = std::process::id();
        assert!(matches!(check(own), Err(LoadError::NoJvm(_))));
    }

    #[test]
    fn what_the_jvm_answers() {
        let folder = tempfile::tempdir().unwrap();
        let said = Said::new(&SocketPlace::at(folder.path().to_owned(), 1)).unwrap();
        assert!(understood("0\nreturn code: 0\n", &said).is_ok());
        let error = |answer| understood(answer, &said).unwrap_err().to_string();
        assert!(error("0\nreturn code: -1\n").contains("return code: -1"));
        assert!(error("0\nx.so: cannot open\n").contains("cannot open"));
        assert!(error("101\n").contains("code 101"));
        assert!(error("HTTP/1.1 200\n").contains("foreign"));
        assert!(error("").contains("foreign"));
        fs::write(&said.file.0, "unknown option 'x'").unwrap();
        assert_eq!(error("0\nreturn code: -1\n"), "unknown option 'x'");
        let file = said.file.0.clone();
        drop(said);
        assert!(!file.exists());
    }
}
