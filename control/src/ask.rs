//! The command's side.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{error, fmt};

use crate::peer;
use crate::place::{SocketPlace, is_own_socket, remove_stale};
use crate::timed::Timed;
use crate::wire::{Command, MAX_HEAD, MAX_REQUEST, Malformed, decode_reply_head};

/// A copy of a large log takes its time.
const PATIENCE: Duration = Duration::from_secs(120);

/// Why there is no answer, or not the one that was wanted.
#[derive(Debug)]
pub enum AskError {
    /// No process has this number. The flag: it had left its socket, which was removed.
    NoProcess(u32, bool),
    /// The process does not listen.
    NotListening(u32),
    /// The socket belongs to another user, or another process listens.
    Foreign(PathBuf, String),
    /// What came back is not a reply.
    Malformed(Malformed),
    /// The request does not fit into one line of the protocol.
    TooLong,
    /// The connection failed.
    Io(io::Error),
    /// The agent says why not.
    Refused(String),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::NoProcess(pid, removed) => {
                write!(f, "there is no process {pid}")?;
                match removed {
                    true => f.write_str("; the socket that it left was removed"),
                    false => Ok(()),
                }
            }
            AskError::NotListening(pid) => write!(
                f,
                "process {pid} does not listen: it is no JVM with the agent, the agent was told ctl=off, or it is not ready yet"
            ),
            AskError::Foreign(path, why) => write!(f, "{}: {why}", path.display()),
            AskError::Malformed(malformed) => write!(f, "the answer is foreign: {malformed}"),
            AskError::TooLong => {
                write!(
                    f,
                    "the request is not one line of at most {MAX_REQUEST} bytes"
                )
            }
            AskError::Io(e) if e.kind() == io::ErrorKind::TimedOut => {
                write!(f, "no answer within {} s", PATIENCE.as_secs())
            }
            AskError::Io(e) => write!(f, "the connection failed: {e}"),
            AskError::Refused(why) => f.write_str(why),
        }
    }
}

impl error::Error for AskError {}

impl From<io::Error> for AskError {
    fn from(e: io::Error) -> Self {
        AskError::Io(e)
    }
}

/// Asks the agent in process `pid`; its answer is a JSON object.
///
/// # Errors
/// There is no answer, or the agent refuses.
pub fn ask(pid: u32, command: &Command) -> Result<String, AskError> {
    let Ok(place) = SocketPlace::of(pid) else {
        return Err(AskError::NoProcess(pid, remove_stale(pid)));
    };
    ask_at(&place, pid, command)
}

pub(crate) fn ask_at(place: &SocketPlace, pid: u32, command: &Command) -> Result<String, AskError> {
    let line = command.encode().ok_or(AskError::TooLong)?;
    let stream = connect(&place.socket(), pid)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    match (&stream).write_all(line.as_bytes()) {
        // It may have been sent away: what it was told is still there.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => return Err(e.into()),
        _ => {}
    }
    let mut reply = Timed::new(&stream, PATIENCE);
    let head = foreign_if_malformed(reply.line(MAX_HEAD)).map_err(|e| gone(e, pid))?;
    let (fine, length) = decode_reply_head(&head).map_err(AskError::Malformed)?;
    let body = foreign_if_malformed(reply.text(length))?;
    match fine {
        true => Ok(body),
        false => Err(AskError::Refused(body)),
    }
}

fn foreign_if_malformed(read: io::Result<String>) -> Result<String, AskError> {
    read.map_err(|e| match e.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            AskError::Malformed(Malformed::Foreign)
        }
        _ => AskError::Io(e),
    })
}

/// The process let the socket go while it was asked: it ends, or the agent was detached.
fn gone(error: AskError, pid: u32) -> AskError {
    match error {
        AskError::Io(e) if e.kind() == io::ErrorKind::ConnectionReset => {
            AskError::NotListening(pid)
        }
        other => other,
    }
}

fn connect(path: &Path, pid: u32) -> Result<UnixStream, AskError> {
    let foreign = |why: &str| AskError::Foreign(path.to_owned(), why.to_owned());
    if std::fs::symlink_metadata(path).is_err() {
        return Err(AskError::NotListening(pid));
    }
    if !is_own_socket(path) {
        return Err(foreign(
            "not a socket of this user: only the JVM's own user may control it",
        ));
    }
    let stream = UnixStream::connect(path).map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => AskError::NotListening(pid),
        _ => AskError::Io(e),
    })?;
    let peer = peer::of(&stream)?;
    // 0: it lives in a container that this process does not see into.
    match peer.user == peer::user() && [0, pid].contains(&peer.pid) {
        true => Ok(stream),
        false => Err(foreign(&format!("process {} listens there", peer.pid))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Listener;
    use std::io::Read;
    use std::os::unix::net::UnixListener;
    use std::thread;

    fn place(folder: &tempfile::TempDir) -> SocketPlace {
        SocketPlace::at(folder.path().to_owned(), 7)
    }

    fn own() -> u32 {
        std::process::id()
    }

    #[test]
    fn a_request_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        let listener = Listener::bind(&place).unwrap();
        let agent = thread::spawn(move || {
            for answer in [Ok("{}".to_owned()), Err("not now".to_owned())] {
                let client = listener.accept().unwrap();
                assert_eq!(client.command().unwrap(), Command::Set("a=b c".into()));
                client.reply(answer).unwrap();
            }
        });
        let command = Command::Set("a=b c".into());
        assert_eq!(ask_at(&place, own(), &command).unwrap(), "{}");
        let refused = ask_at(&place, own(), &command).unwrap_err();
        assert_eq!(refused.to_string(), "not now");
        agent.join().unwrap();
        assert!(!place.socket().exists());
        assert!(matches!(
            ask_at(&place, own(), &command),
            Err(AskError::NotListening(_))
        ));
    }

    #[test]
    fn only_its_user_can_open_it_and_what_was_left_is_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        drop(UnixListener::bind(place.socket()).unwrap());
        let listener = Listener::bind(&place).unwrap();
        let mode = std::fs::metadata(place.socket()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        // Somebody listens: it is not taken away.
        assert!(Listener::bind(&place).is_err());
        listener.wake();
        assert!(place.socket().exists());
    }

    #[test]
    fn whoever_does_not_speak_the_protocol_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        let listener = Listener::bind(&place).unwrap();
        let agent = thread::spawn(move || {
            (0..5)
                .map(|_| listener.accept().unwrap().command().is_err())
                .collect::<Vec<_>>()
        });
        let long = vec![b'x'; MAX_REQUEST + 10];
        for (request, wanted) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "not lucce's protocol"),
            (b"lucce 2 status\n", "version 2"),
            (b"lucce 1 jump\n", "unknown command 'jump'"),
            (b"\xff\xfe\n", "no text"),
            (&long, "more than 8192 bytes"),
        ] {
            let mut stream = UnixStream::connect(place.socket()).unwrap();
            // It may be cut short.
            let _ = stream.write_all(request);
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert!(
                answer.starts_with("lucce 1 error ") && answer.contains(wanted),
                "{answer}"
            );
        }
        assert_eq!(agent.join().unwrap(), [true; 5]);
    }

    #[test]
    fn foreign_answers_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        let listener = UnixListener::bind(place.socket()).unwrap();
        let answers = [
            "",
            "hello\n",
            "lucce 1 ok 99999999\n",
            "lucce 1 ok 10\nabc",
            "lucce 9 ok 0\n",
        ];
        let server = thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 15];
                stream.read_exact(&mut request).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        for _ in answers {
            let error = ask_at(&place, own(), &Command::Status).unwrap_err();
            assert!(matches!(error, AskError::Malformed(_)), "{error}");
        }
        server.join().unwrap();
        // Another process than the one that was asked for.
        let error = ask_at(&place, own() + 1, &Command::Status).unwrap_err();
        assert!(
            matches!(error, AskError::NotListening(_) | AskError::Foreign(..)),
            "{error}"
        );
        std::fs::remove_file(place.socket()).unwrap();
        std::fs::write(place.socket(), "no socket").unwrap();
        let error = ask_at(&place, own(), &Command::Status).unwrap_err();
        assert!(matches!(error, AskError::Foreign(..)), "{error}");
    }
}
