//! The agent's side: a socket that only its own user may open.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::place::SocketPlace;
use crate::timed::Timed;
use crate::wire::{self, Command, MAX_REPLY, MAX_REQUEST};
use crate::{peer, place};

/// How long a client may take to say what it wants, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The socket; its file goes with it.
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
    /// Of the file.
    inode: u64,
    /// For what a client says, and for what it is answered.
    pub(crate) patience: Duration,
}

impl Listener {
    /// Listens. What an earlier process of the same number has left there is removed.
    ///
    /// The file gets its name when it has its mode, so no other user ever sees it open.
    ///
    /// # Errors
    /// The place is taken: by a process of another container that shares the folder, or by a file of
    /// another user. Or the system's.
    pub fn bind(place: &SocketPlace) -> io::Result<Listener> {
        let path = place.socket();
        if place::is_own_socket(&path) && UnixStream::connect(&path).is_ok() {
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
            Ok(inode) => Ok(Listener {
                listener,
                path,
                inode,
                patience: PATIENCE,
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
    pub fn accept(&self) -> io::Result<Conversation> {
        let (stream, _) = self.listener.accept()?;
        let patience = self.patience;
        let conversation = Conversation { stream, patience };
        match peer::of(&conversation.stream)?.user == peer::user() {
            true => Ok(conversation),
            false => {
                // It may have gone.
                let _ = conversation.reply(Err("only the JVM's own user may control it".into()));
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
    }

    /// Ends an [`accept`](Self::accept) that another thread waits in.
    pub fn wake(&self) {
        // No thread waits if it fails.
        let _ = UnixStream::connect(&self.path);
    }

    /// Removes the file, unless another process has put its own there.
    pub fn remove(&self) {
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

impl Drop for Listener {
    fn drop(&mut self) {
        self.remove();
    }
}

/// One client.
pub struct Conversation {
    stream: UnixStream,
    patience: Duration,
}

impl Conversation {
    /// What the client wants. A malformed request is answered here.
    ///
    /// # Errors
    /// It said nothing that is understood, or nothing in time.
    pub fn command(&self) -> io::Result<Command> {
        let line = match Timed::new(&self.stream, self.patience).line(MAX_REQUEST) {
            Ok(line) => line,
            Err(e) => return Err(self.refuse(format!("malformed request: {e}"), e)),
        };
        Command::decode(&line).map_err(|malformed| {
            let e = io::ErrorKind::InvalidData.into();
            self.refuse(malformed.to_string(), e)
        })
    }

    fn refuse(&self, text: String, error: io::Error) -> io::Error {
        // The client may have gone; the error says enough.
        let _ = self.reply(Err(text));
        error
    }

    /// Answers: a JSON object, or why not.
    ///
    /// # Errors
    /// The client has gone.
    pub fn reply(&self, answer: Result<String, String>) -> io::Result<()> {
        let (fine, mut body) = match answer {
            Ok(body) => (true, body),
            Err(body) => (false, body),
        };
        while body.len() > MAX_REPLY {
            body.pop();
        }
        self.stream.set_write_timeout(Some(self.patience))?;
        let mut all = wire::reply_head(fine, body.len());
        all.push_str(&body);
        (&self.stream).write_all(all.as_bytes())
    }
}
