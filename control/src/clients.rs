//! Clients speak at the same time, each in a thread of its own: one that says nothing keeps no other waiting.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::listen::Conversation;

/// More at a time are sent away: they come from the JVM's own user, but they may be stuck.
const MOST: usize = 16;

/// Those who speak.
#[derive(Default)]
pub struct Clients(Arc<AtomicUsize>);

/// One of them, as long as it speaks.
struct Seat(Arc<AtomicUsize>);

impl Clients {
    /// Has a client speak in a new thread, which has the signal mask of the current one.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn speak(
        &self,
        client: Conversation,
        talk: impl FnOnce(&Conversation) + Send + 'static,
    ) -> io::Result<()> {
        let Some(seat) = self.seat() else {
            return client.reply(Err(format!(
                "{MOST} others are being answered: try again in some seconds"
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

    fn seat(&self) -> Option<Seat> {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < MOST).then_some(taken + 1)
            });
        taken.ok().map(|_| Seat(Arc::clone(&self.0)))
    }
}

impl Drop for Seat {
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
    use crate::ask::ask_at;
    use crate::{Command, Listener, SocketPlace};

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
        let place = SocketPlace::at(folder.path().to_owned(), 7);
        let mut listener = Listener::bind(&place).unwrap();
        listener.patience = FOREVER;
        thread::spawn(move || {
            let clients = Clients::default();
            while let Ok(client) = listener.accept() {
                let talk = |client: &Conversation| {
                    if client.command().is_ok() {
                        client.reply(Ok("{}".into())).unwrap();
                    }
                };
                clients.speak(client, talk).unwrap();
            }
        });
        let ask = || ask_at(&place, std::process::id(), &Command::Status);
        let mut silent: Vec<UnixStream> = Vec::new();
        for _ in 0..MOST - 1 {
            silent.push(UnixStream::connect(place.socket()).unwrap());
        }
        while ask().is_err() {
            // The thread of the one before may not have ended yet.
            thread::yield_now();
        }
        // One too many, whichever it is, is told so.
        silent.extend((0..2).map(|_| UnixStream::connect(place.socket()).unwrap()));
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
