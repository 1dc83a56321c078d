//! The agent's side: a socket that only its own user can open.

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

/// Timeout of a client's request, and of sending the reply.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);

/// The socket; dropping it removes its file.
pub struct ControlListener {
    listener: UnixListener,
    path: PathBuf,
    /// The inode of the file.
    inode: u64,
    /// For reading a request and for writing a reply.
    pub(crate) timeout: Duration,
}

impl ControlListener {
    /// Listens. A socket that an earlier process with the same number left there is removed.
    ///
    /// The file gets its name after its mode, so no other user can ever open it.
    ///
    /// # Errors
    /// The path is taken by a process of another container that shares the folder, or by a file of another user. Or the
    /// system's error.
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
                // The earlier error is returned.
                let _ = fs::remove_file(&unnamed);
                Err(e)
            }
        }
    }

    /// Waits for the next client of this user; clients of other users are refused.
    ///
    /// # Errors
    /// The system's error; the client may have disconnected.
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
                // The client may have disconnected.
                let _ =
                    conversation.send_reply(Err("only the JVM's own user may control it".into()));
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
    }

    /// Wakes another thread that waits in [`accept`](Self::accept).
    pub fn wake_accept(&self) {
        // On failure no thread waits.
        let _ = UnixStream::connect(&self.path);
    }

    /// Removes the file, unless it belongs to another process by now.
    pub fn remove_socket(&self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            // It may have been removed already.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Returns the path of the socket.
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

/// The connection of one client.
pub struct ClientConnection {
    stream: UnixStream,
    timeout: Duration,
}

impl ClientConnection {
    /// Reads the client's command. A malformed request is answered here.
    ///
    /// # Errors
    /// The request is malformed or too late.
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
        // The client may have disconnected; the error is returned anyway.
        let _ = self.send_reply(Err(text));
        error
    }

    /// Sends a reply: a JSON object, or the reason of a refusal.
    ///
    /// # Errors
    /// The client has disconnected.
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
