//! The command's side of the control protocol.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{error, fmt};

use crate::deadline_reader::DeadlineReader;
use crate::peer;
use crate::socket_location::{SocketLocation, is_own_socket, remove_stale};
use crate::wire::{ControlCommand, MAX_HEAD, MAX_REQUEST, ProtocolError, decode_reply_head};

/// Timeout of a reply; copying a large log takes time.
const REPLY_TIMEOUT: Duration = Duration::from_secs(120);

/// Why there is no valid answer.
#[derive(Debug)]
pub enum ControlError {
    /// No process has this number. The flag: it had left its socket, which was removed.
    NoProcess(u32, bool),
    /// The process does not listen.
    NotListening(u32),
    /// The socket belongs to another user, or another process listens.
    Foreign(PathBuf, String),
    /// The answer is no reply.
    Malformed(ProtocolError),
    /// The request does not fit into one line of the protocol.
    TooLong,
    /// The connection failed.
    Io(io::Error),
    /// The agent refuses, with its reason.
    Refused(String),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::NoProcess(pid, removed) => {
                write!(f, "there is no process {pid}")?;
                match removed {
                    true => f.write_str("; the socket that it left was removed"),
                    false => Ok(()),
                }
            }
            ControlError::NotListening(pid) => write!(
                f,
                "process {pid} does not listen: it is no JVM with the agent, the agent was told ctl=off, or it is not ready yet"
            ),
            ControlError::Foreign(path, why) => write!(f, "{}: {why}", path.display()),
            ControlError::Malformed(malformed) => write!(f, "the answer is foreign: {malformed}"),
            ControlError::TooLong => {
                write!(
                    f,
                    "the request is not one line of at most {MAX_REQUEST} bytes"
                )
            }
            ControlError::Io(e) if e.kind() == io::ErrorKind::TimedOut => {
                write!(f, "no answer within {} s", REPLY_TIMEOUT.as_secs())
            }
            ControlError::Io(e) => write!(f, "the connection failed: {e}"),
            ControlError::Refused(why) => f.write_str(why),
        }
    }
}

impl error::Error for ControlError {}

impl From<io::Error> for ControlError {
    fn from(e: io::Error) -> Self {
        ControlError::Io(e)
    }
}

/// Sends a command to the agent in process `pid` and returns its reply, a JSON object.
///
/// # Errors
/// There is no answer, or the agent refuses.
pub fn send_command(pid: u32, command: &ControlCommand) -> Result<String, ControlError> {
    let Ok(place) = SocketLocation::from_pid(pid) else {
        return Err(ControlError::NoProcess(pid, remove_stale(pid)));
    };
    send_command_at(&place, pid, command)
}

pub(crate) fn send_command_at(
    place: &SocketLocation,
    pid: u32,
    command: &ControlCommand,
) -> Result<String, ControlError> {
    let line = command.encode().ok_or(ControlError::TooLong)?;
    let stream = connect_agent(&place.socket_path(), pid)?;
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    match (&stream).write_all(line.as_bytes()) {
        // The agent may have refused the connection: its reason can still be read.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => return Err(e.into()),
        _ => {}
    }
    let mut reply = DeadlineReader::new(&stream, REPLY_TIMEOUT);
    let head =
        map_read_error(reply.read_line(MAX_HEAD)).map_err(|e| map_connection_reset(e, pid))?;
    let (fine, length) = decode_reply_head(&head).map_err(ControlError::Malformed)?;
    let body = map_read_error(reply.read_text(length))?;
    match fine {
        true => Ok(body),
        false => Err(ControlError::Refused(body)),
    }
}

fn map_read_error(read: io::Result<String>) -> Result<String, ControlError> {
    read.map_err(|e| match e.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            ControlError::Malformed(ProtocolError::Foreign)
        }
        _ => ControlError::Io(e),
    })
}

/// The process closed the socket during the request: it ends, or the agent was detached.
fn map_connection_reset(error: ControlError, pid: u32) -> ControlError {
    match error {
        ControlError::Io(e) if e.kind() == io::ErrorKind::ConnectionReset => {
            ControlError::NotListening(pid)
        }
        other => other,
    }
}

fn connect_agent(path: &Path, pid: u32) -> Result<UnixStream, ControlError> {
    let foreign = |why: &str| ControlError::Foreign(path.to_owned(), why.to_owned());
    if std::fs::symlink_metadata(path).is_err() {
        return Err(ControlError::NotListening(pid));
    }
    if !is_own_socket(path) {
        return Err(foreign(
            "not a socket of this user: only the JVM's own user may control it",
        ));
    }
    let stream = UnixStream::connect(path).map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => ControlError::NotListening(pid),
        _ => ControlError::Io(e),
    })?;
    let peer = peer::read_credentials(&stream)?;
    // 0: the process is in a container that this process cannot see into.
    match peer.user == peer::effective_user() && [0, pid].contains(&peer.pid) {
        true => Ok(stream),
        false => Err(foreign(&format!("process {} listens there", peer.pid))),
    }
}

#[cfg(test)]
mod client_tests {
    use super::*;
    use crate::ControlListener;
    use std::io::Read;
    use std::os::unix::net::UnixListener;
    use std::thread;

    fn place(folder: &tempfile::TempDir) -> SocketLocation {
        SocketLocation::in_folder(folder.path().to_owned(), 7)
    }

    fn own() -> u32 {
        std::process::id()
    }

    #[test]
    fn a_request_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        let listener = ControlListener::bind(&place).unwrap();
        let agent = thread::spawn(move || {
            for answer in [Ok("{}".to_owned()), Err("not now".to_owned())] {
                let client = listener.accept().unwrap();
                assert_eq!(
                    client.read_command().unwrap(),
                    ControlCommand::Set("a=b c".into())
                );
                client.send_reply(answer).unwrap();
            }
        });
        let command = ControlCommand::Set("a=b c".into());
        assert_eq!(send_command_at(&place, own(), &command).unwrap(), "{}");
        let refused = send_command_at(&place, own(), &command).unwrap_err();
        assert_eq!(refused.to_string(), "not now");
        agent.join().unwrap();
        assert!(!place.socket_path().exists());
        assert!(matches!(
            send_command_at(&place, own(), &command),
            Err(ControlError::NotListening(_))
        ));
    }

    #[test]
    fn only_its_user_can_open_it_and_what_was_left_is_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        drop(UnixListener::bind(place.socket_path()).unwrap());
        let listener = ControlListener::bind(&place).unwrap();
        let mode = std::fs::metadata(place.socket_path())
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        // A process listens: its socket is not removed.
        assert!(ControlListener::bind(&place).is_err());
        listener.wake_accept();
        assert!(place.socket_path().exists());
    }

    #[test]
    fn a_peer_without_the_protocol_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder);
        let listener = ControlListener::bind(&place).unwrap();
        let agent = thread::spawn(move || {
            (0..5)
                .map(|_| listener.accept().unwrap().read_command().is_err())
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
            let mut stream = UnixStream::connect(place.socket_path()).unwrap();
            // The request may be truncated.
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
        let listener = UnixListener::bind(place.socket_path()).unwrap();
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
            let error = send_command_at(&place, own(), &ControlCommand::Status).unwrap_err();
            assert!(matches!(error, ControlError::Malformed(_)), "{error}");
        }
        server.join().unwrap();
        // Another process than the requested one.
        let error = send_command_at(&place, own() + 1, &ControlCommand::Status).unwrap_err();
        assert!(
            matches!(
                error,
                ControlError::NotListening(_) | ControlError::Foreign(..)
            ),
            "{error}"
        );
        std::fs::remove_file(place.socket_path()).unwrap();
        std::fs::write(place.socket_path(), "no socket").unwrap();
        let error = send_command_at(&place, own(), &ControlCommand::Status).unwrap_err();
        assert!(matches!(error, ControlError::Foreign(..)), "{error}");
    }
}
