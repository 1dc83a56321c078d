//! Loads an agent into a running JVM by HotSpot's attach protocol.
//!
//! The JDK's `sun.tools.attach.VirtualMachineImpl` and HotSpot's `attachListener_posix.cpp` also implement it.
//!
//! ```text
//! /tmp/.attach_pidN created, SIGQUIT   the JVM creates /tmp/.java_pidN, once
//! ─► "1" 0 "load" 0 path 0 "true" 0 options 0
//! ◄─ "0\n" "return code: 0\n"          the result of Agent_OnAttach
//! ```
//!
//! SIGQUIT ends a process that does not handle it, so it is sent only to JVMs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{error, fmt};

use crate::peer;
use crate::perf_data;
use crate::socket_location::{SocketLocation, is_own_socket};

/// HotSpot refuses longer arguments.
const MAX_ARGUMENT_BYTES: usize = 1024;
/// How long to wait for a JVM to listen: it may be in the middle of a collection.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(20);
/// When to signal again: a starting JVM may have removed its own socket.
const WAKE_INTERVAL: Duration = Duration::from_secs(5);
const MAX_REPLY_BYTES: u64 = 1 << 20;

/// Why the agent was not loaded.
#[derive(Debug)]
pub enum AttachError {
    /// No process has this number.
    NoProcess(u32),
    /// The process belongs to another user. The numbers are the process and its user.
    OtherUser(u32, u32),
    /// The process is no HotSpot JVM.
    NoJvm(u32),
    /// The JVM was started with attaching disabled.
    Closed(u32),
    /// The JVM is HotSpot and does not listen.
    Silent(u32),
    /// The path or the options are too long for HotSpot, or contain a byte 0.
    TooLong,
    /// The JVM cannot find the agent's file at this path.
    NoAgent(PathBuf),
    /// The answer is invalid.
    Foreign(String),
    /// The JVM or the agent refuses, with its reason, or another process listens.
    Refused(String),
    /// An error of the system.
    Io(io::Error),
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::NoProcess(pid) => write!(f, "there is no process {pid}"),
            AttachError::OtherUser(pid, user) => write!(
                f,
                "process {pid} belongs to user {user}: only that user may attach"
            ),
            AttachError::NoJvm(pid) => write!(f, "process {pid} is no HotSpot JVM"),
            AttachError::Closed(pid) => write!(
                f,
                "JVM {pid} was started with -XX:+DisableAttachMechanism: start it with -agentpath instead"
            ),
            AttachError::Silent(pid) => write!(
                f,
                "JVM {pid} does not answer: it was started with -XX:+DisableAttachMechanism, or is stopped"
            ),
            AttachError::TooLong => write!(
                f,
                "the agent's path and its options may have {MAX_ARGUMENT_BYTES} bytes each"
            ),
            AttachError::NoAgent(path) => write!(
                f,
                "{} is not there in the JVM's file system: put the agent there, or name another place",
                path.display()
            ),
            AttachError::Foreign(why) => write!(f, "the answer is foreign: {why}"),
            AttachError::Refused(why) => f.write_str(why),
            AttachError::Io(e) => write!(f, "the connection failed: {e}"),
        }
    }
}

impl error::Error for AttachError {}

impl From<io::Error> for AttachError {
    fn from(e: io::Error) -> Self {
        AttachError::Io(e)
    }
}

/// Loads the agent at `path`, as the JVM sees it, into process `pid`.
///
/// The agent also gets the name of a file for its error messages.
///
/// # Errors
/// The agent was not loaded, or does not stay loaded.
pub fn load_agent(pid: u32, path: &Path, options: &str) -> Result<(), AttachError> {
    let place = SocketLocation::from_pid(pid).map_err(|_| AttachError::NoProcess(pid))?;
    check_process(pid)?;
    if !to_visible_path(pid, path).is_file() {
        return Err(AttachError::NoAgent(path.to_owned()));
    }
    let error_file = AttachErrorFile::new(&place)?;
    let comma = if options.is_empty() { "" } else { "," };
    let options = format!("{options}{comma}tell={}", error_file.inner.display());
    let path = path.to_str().ok_or(AttachError::TooLong)?;
    let arguments = ["1", "load", path, "true", &options];
    if arguments
        .iter()
        .any(|a| a.len() > MAX_ARGUMENT_BYTES || a.contains('\0'))
    {
        return Err(AttachError::TooLong);
    }
    await_start(pid, &place)?;
    let socket = place
        .folder()
        .join(format!(".java_pid{}", place.inner_pid()));
    if fs::symlink_metadata(&socket).is_err() {
        if perf_data::lets_attach(&place) == Some(false) {
            return Err(AttachError::Closed(pid));
        }
        start_attach_listener(pid, &place, &socket)?;
    }
    let answer = send_attach_request(pid, &socket, &arguments)?;
    check_attach_reply(&answer, &error_file)
}

/// Checks the process: SIGQUIT must reach only JVMs of this user.
fn check_process(pid: u32) -> Result<(), AttachError> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let owner = fs::metadata(&process)
        .map_err(|_| AttachError::NoProcess(pid))?
        .uid();
    if owner != peer::effective_user() {
        return Err(AttachError::OtherUser(pid, owner));
    }
    let maps = fs::read_to_string(process.join("maps"))?;
    let status = fs::read_to_string(process.join("status"))?;
    let is_hotspot = maps.lines().any(|line| line.ends_with("/libjvm.so"));
    match is_hotspot && catches_quit(&status) {
        true => Ok(()),
        false => Err(AttachError::NoJvm(pid)),
    }
}

/// Parses `SigCgt: 0000000181005ccf`: bit n−1 is signal n.
fn catches_quit(status: &str) -> bool {
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> (libc::SIGQUIT - 1) & 1 == 1)
}

/// Converts a path of the JVM to a path for this process.
fn to_visible_path(pid: u32, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    match (fs::metadata(&root), path.strip_prefix("/")) {
        (Ok(_), Ok(rest)) => root.join(rest),
        _ => path.to_owned(),
    }
}

/// Waits while the JVM is starting.
fn await_start(pid: u32, place: &SocketLocation) -> Result<(), AttachError> {
    let end = Instant::now() + ATTACH_TIMEOUT;
    while perf_data::has_started(place) == Some(false) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
        check_process(pid)?;
    }
    Ok(())
}

/// Makes the JVM listen.
fn start_attach_listener(
    pid: u32,
    place: &SocketLocation,
    socket: &Path,
) -> Result<(), AttachError> {
    let request_path = place
        .folder()
        .join(format!(".attach_pid{}", place.inner_pid()));
    let _request_file = TemporaryFile::new(request_path)?;
    peer::send_quit(pid)?;
    let end = Instant::now() + ATTACH_TIMEOUT;
    let mut again = Instant::now() + WAKE_INTERVAL;
    while fs::symlink_metadata(socket).is_err() {
        let now = Instant::now();
        if now > end {
            return Err(AttachError::Silent(pid));
        }
        if now > again {
            peer::send_quit(pid)?;
            again = now + WAKE_INTERVAL;
        }
        std::thread::sleep(Duration::from_millis(20));
        check_process(pid)?;
    }
    Ok(())
}

/// Sends a request and returns the JVM's answer.
fn send_attach_request(pid: u32, socket: &Path, arguments: &[&str]) -> Result<String, AttachError> {
    if !is_own_socket(socket) {
        return Err(AttachError::Refused(format!(
            "{} is no socket of this user",
            socket.display()
        )));
    }
    let stream = UnixStream::connect(socket).map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => AttachError::Silent(pid),
        _ => AttachError::Io(e),
    })?;
    let peer = peer::read_credentials(&stream)?;
    if peer.user != peer::effective_user() || ![0, pid].contains(&peer.pid) {
        return Err(AttachError::Refused(format!(
            "process {} listens at {}",
            peer.pid,
            socket.display()
        )));
    }
    stream.set_read_timeout(Some(ATTACH_TIMEOUT))?;
    stream.set_write_timeout(Some(ATTACH_TIMEOUT))?;
    let mut request = Vec::new();
    for argument in arguments {
        request.extend(argument.bytes());
        request.push(0);
    }
    (&stream).write_all(&request)?;
    let mut answer = Vec::new();
    match stream.take(MAX_REPLY_BYTES).read_to_end(&mut answer) {
        Ok(_) => Ok(String::from_utf8_lossy(&answer).into_owned()),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(AttachError::Silent(pid)),
        Err(e) => Err(e.into()),
    }
}

/// Checks the answer: the first line is the command's result, then comes the agent's result.
fn check_attach_reply(answer: &str, error_file: &AttachErrorFile) -> Result<(), AttachError> {
    let (code, text) = answer.split_once('\n').unwrap_or((answer, ""));
    let code: i32 = code.trim().parse().map_err(|_| {
        let start: String = answer.chars().take(40).collect();
        AttachError::Foreign(format!("{start:?}"))
    })?;
    let text = text.trim();
    if code == 0 && text.strip_prefix("return code:").map(str::trim) == Some("0") {
        return Ok(());
    }
    let reason = error_file.read_reason();
    Err(AttachError::Refused(match (reason.is_empty(), text) {
        (false, _) => reason,
        (true, "") => format!("the JVM refuses (code {code})"),
        (true, text) => format!("the JVM says: {}", text.replace('\n', " ")),
    }))
}

/// A file that is removed when this is dropped.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(path: PathBuf) -> io::Result<TemporaryFile> {
        // A killed client may have left it.
        let _ = fs::remove_file(&path);
        let file: io::Result<File> = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        file.map(|_| TemporaryFile(path))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = fs::remove_file(&self.0);
    }
}

/// The file into which the agent writes why it does not stay loaded.
struct AttachErrorFile {
    file: TemporaryFile,
    /// The path as the JVM sees it.
    inner: PathBuf,
}

impl AttachErrorFile {
    fn new(place: &SocketLocation) -> io::Result<AttachErrorFile> {
        let name = format!(".lucce_attach{}", std::process::id());
        Ok(AttachErrorFile {
            file: TemporaryFile::new(place.folder().join(&name))?,
            inner: Path::new("/tmp").join(name),
        })
    }

    fn read_reason(&self) -> String {
        let text = fs::read_to_string(&self.file.0).unwrap_or_default();
        text.chars()
            .take(1000)
            .filter(|c| !c.is_control())
            .collect()
    }
}

#[cfg(test)]
mod hotspot_tests {
    use super::*;

    #[test]
    fn only_who_expects_the_signal_gets_it() {
        assert!(catches_quit("Name:\tjava\nSigCgt:\t0000000181005ccf\n"));
        assert!(!catches_quit("SigCgt:\t0000000000000000\n"));
        assert!(!catches_quit(""));
        // This process is no JVM.
        let own = std::process::id();
        assert!(matches!(check_process(own), Err(AttachError::NoJvm(_))));
    }

    #[test]
    fn what_the_jvm_answers() {
        let folder = tempfile::tempdir().unwrap();
        let error_file =
            AttachErrorFile::new(&SocketLocation::in_folder(folder.path().to_owned(), 1)).unwrap();
        assert!(check_attach_reply("0\nreturn code: 0\n", &error_file).is_ok());
        let error = |answer| {
            check_attach_reply(answer, &error_file)
                .unwrap_err()
                .to_string()
        };
        assert!(error("0\nreturn code: -1\n").contains("return code: -1"));
        assert!(error("0\nx.so: cannot open\n").contains("cannot open"));
        assert!(error("101\n").contains("code 101"));
        assert!(error("HTTP/1.1 200\n").contains("foreign"));
        assert!(error("").contains("foreign"));
        fs::write(&error_file.file.0, "unknown option 'x'").unwrap();
        assert_eq!(error("0\nreturn code: -1\n"), "unknown option 'x'");
        let file = error_file.file.0.clone();
        drop(error_file);
        assert!(!file.exists());
    }
}
