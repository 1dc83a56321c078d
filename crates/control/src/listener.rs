//! The agent's side: a socket that only its own user may open.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::deadline_reader::DeadlineReader;
use crate::socket_location::SocketLocation;
use crate::wire::{self, ControlCommand, MAX_REPLY, MAX_REQUEST};
use crate::{peer, socket_location};

/// How long a client may take to say what it wants, and to take the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);

/// The socket; its file goes with it.
pub struct ControlListener {
    listener: UnixListener,
    path: PathBuf,
    /// Of the file.
    inode: u64,
    /// For what a client says, and for what it is answered.
    pub(crate) timeout: Duration,
}

impl ControlListener {
    /// Listens. What an earlier process of the same number has left there is removed.
    ///
    /// The file gets its name when it has its mode, so no other user ever sees it open.
    ///
    /// # Errors
    /// The place is taken: by a process of another container that shares the folder, or by a file of
    /// another user. Or the system's.
    pub fn bind(place: &SocketLocation) -> io::Result<ControlListener> {
        let path = place.socket_path();
        if socket_location::is_own_socket(&path) && UnixStream::connect(&path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let mut unnamed = path.clone().into_os_string();
        unnamed.push(".new");
        let unnamed = PathBuf::from(unnamed);
        match fs::remove_file(&unnamed) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let listener = UnixListener::bind(&unnamed)?;
        let named = fs::set_permissions(&unnamed, Permissions::from_mode(0o600))
            .and_then(|()| fs::symlink_metadata(&unnamed))
            .and_then(|file| fs::rename(&unnamed, &path).map(|()| file.ino()));
        match named {
            Ok(inode) => Ok(ControlListener {
                listener,
                path,
                inode,
                timeout: CLIENT_TIMEOUT,
            }),
            Err(e) => {
                // The error is the one before.
                let _ = fs::remove_file(&unnamed);
                Err(e)
            }
        }
    }

    /// Waits for the next client of this user; others are sent away.
    ///
    /// # Errors
    /// The system's; a client may have gone.
    pub fn accept(&self) -> io::Result<ClientConnection> {
        let (stream, _) = self.listener.accept()?;
        let patience = self.timeout;
        let conversation = ClientConnection {
            stream,
            timeout: patience,
        };
        match peer::read_credentials(&conversation.stream)?.user == peer::effective_user() {
            true => Ok(conversation),
            false => {
                // It may have gone.
                let _ =
                    conversation.send_reply(Err("only the JVM's own user may control it".into()));
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
    }

    /// Ends an [`accept`](Self::accept) that another thread waits in.
    pub fn wake_accept(&self) {
        // No thread waits if it fails.
        let _ = UnixStream::connect(&self.path);
    }

    /// Removes the file, unless another process has put its own there.
    pub fn remove_socket(&self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            // It may be gone already.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Where the socket is.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        self.remove_socket();
    }
}

/// One client.
pub struct ClientConnection {
    stream: UnixStream,
    timeout: Duration,
}

impl ClientConnection {
    /// What the client wants. A malformed request is answered here.
    ///
    /// # Errors
    /// It said nothing that is understood, or nothing in time.
    pub fn read_command(&self) -> io::Result<ControlCommand> {
        let line = match DeadlineReader::new(&self.stream, self.timeout).read_line(MAX_REQUEST) {
            Ok(line) => line,
            Err(e) => return Err(self.reject_request(format!("malformed request: {e}"), e)),
        };
        ControlCommand::decode(&line).map_err(|malformed| {
            let e = io::ErrorKind::InvalidData.into();
            self.reject_request(malformed.to_string(), e)
        })
    }

    fn reject_request(&self, text: String, error: io::Error) -> io::Error {
        // The client may have gone; the error says enough.
        let _ = self.send_reply(Err(text));
        error
    }

    /// Answers: a JSON object, or why not.
    ///
    /// # Errors
    /// The client has gone.
    pub fn send_reply(&self, answer: Result<String, String>) -> io::Result<()> {
        let (fine, mut body) = match answer {
            Ok(body) => (true, body),
            Err(body) => (false, body),
        };
        while body.len() > MAX_REPLY {
            body.pop();
        }
        self.stream.set_write_timeout(Some(self.timeout))?;
        let mut all = wire::encode_reply_head(fine, body.len());
        all.push_str(&body);
        (&self.stream).write_all(all.as_bytes())
    }
}
