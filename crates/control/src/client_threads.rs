//! Serves each client in its own thread, so that a silent client does not delay others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::listener::ClientConnection;

/// More clients are refused: they belong to the JVM's own user, but they may hang.
const MAX_CLIENTS: usize = 16;

/// The number of active clients.
#[derive(Default)]
pub struct ClientThreads(Arc<AtomicUsize>);

/// Counts one client while it is active.
struct ClientPermit(Arc<AtomicUsize>);

impl ClientThreads {
    /// Serves a client in a new thread, which inherits the current signal mask.
    ///
    /// # Errors
    /// The system cannot create a thread.
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
            // A thread that waits for the client's end finds the permit free.
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
mod client_threads_tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::client::send_command_at;
    use crate::{ControlCommand, ControlListener, SocketLocation};

    /// No client here ends by itself: if one waited for another, the test would not end.
    const FOREVER: Duration = Duration::from_secs(1 << 20);

    /// Returns the available text without waiting.
    fn read_available(mut stream: &UnixStream) -> Option<String> {
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
            // The previous thread may not have ended yet.
            thread::yield_now();
        }
        // One of these clients exceeds the limit and is refused.
        silent.extend((0..2).map(|_| UnixStream::connect(place.socket_path()).unwrap()));
        let text = loop {
            if let Some(text) = silent.iter().find_map(read_available) {
                break text;
            }
            thread::yield_now();
        };
        assert!(text.contains("16 others"), "{text}");
        // Room is available again once they disconnect.
        drop(silent);
        while ask().is_err() {
            thread::yield_now();
        }
    }
}
