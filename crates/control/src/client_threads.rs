//! Clients speak at the same time, each in a thread of its own: one that says nothing keeps no other waiting.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::listener::ClientConnection;

/// More at a time are sent away: they come from the JVM's own user, but they may be stuck.
const MAX_CLIENTS: usize = 16;

/// Those who speak.
#[derive(Default)]
pub struct ClientThreads(Arc<AtomicUsize>);

/// One of them, as long as it speaks.
struct ClientPermit(Arc<AtomicUsize>);

impl ClientThreads {
    /// Has a client speak in a new thread, which has the signal mask of the current one.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn spawn_client(
        &self,
        client: ClientConnection,
        talk: impl FnOnce(&ClientConnection) + Send + 'static,
    ) -> io::Result<()> {
        let Some(seat) = self.acquire_permit() else {
            return client.send_reply(Err(format!(
                "{MAX_CLIENTS} others are being answered: try again in some seconds"
            )));
        };
        let thread = thread::Builder::new().name("lucce-client".into());
        let spawned = thread.spawn(move || {
            talk(&client);
            // A thread that waits for the client's end finds the seat free.
            drop(seat);
        });
        spawned.map(drop)
    }

    fn acquire_permit(&self) -> Option<ClientPermit> {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < MAX_CLIENTS).then_some(taken + 1)
            });
        taken.ok().map(|_| ClientPermit(Arc::clone(&self.0)))
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::client::send_command_at;
    use crate::{ControlCommand, ControlListener, SocketLocation};

    /// No client ends by itself here: if one waited for another, this would not end.
    const FOREVER: Duration = Duration::from_secs(1 << 20);

    /// What there is to read; it does not wait.
    fn told(mut stream: &UnixStream) -> Option<String> {
        stream.set_nonblocking(true).unwrap();
        let mut text = [0; 200];
        let length = stream.read(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text[..length]).into_owned())
    }

    #[test]
    fn a_silent_client_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let place = SocketLocation::in_folder(folder.path().to_owned(), 7);
        let mut listener = ControlListener::bind(&place).unwrap();
        listener.timeout = FOREVER;
        thread::spawn(move || {
            let clients = ClientThreads::default();
            while let Ok(client) = listener.accept() {
                let talk = |client: &ClientConnection| {
                    if client.read_command().is_ok() {
                        client.send_reply(Ok("{}".into())).unwrap();
                    }
                };
                clients.spawn_client(client, talk).unwrap();
            }
        });
        let ask = || send_command_at(&place, std::process::id(), &ControlCommand::Status);
        let mut silent: Vec<UnixStream> = Vec::new();
        for _ in 0..MAX_CLIENTS - 1 {
            silent.push(UnixStream::connect(place.socket_path()).unwrap());
        }
        while ask().is_err() {
            // The thread of the one before may not have ended yet.
            thread::yield_now();
        }
        // One too many, whichever it is, is told so.
        silent.extend((0..2).map(|_| UnixStream::connect(place.socket_path()).unwrap()));
        let told = loop {
            if let Some(told) = silent.iter().find_map(told) {
                break told;
            }
            thread::yield_now();
        };
        assert!(told.contains("16 others"), "{told}");
        // There is room again when they go.
        drop(silent);
        while ask().is_err() {
            thread::yield_now();
        }
    }
}
