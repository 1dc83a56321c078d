//! The socket for `lucce ctl`, which both the listening thread and the end of recording close.

use std::sync::Arc;
use std::time::Instant;

use lucce_control::ControlListener;

use crate::memory::locks::WatchedMutex;

/// The socket of the present agent.
static LISTENER: WatchedMutex<Option<Arc<ControlListener>>> = WatchedMutex::new(None);
static STARTED: WatchedMutex<Option<Instant>> = WatchedMutex::new(None);

/// Keeps the socket of the present agent.
pub fn keep_listener(listener: Arc<ControlListener>) {
    *LISTENER.lock() = Some(listener);
}

/// Removes the socket and ends the thread, when the VM ends.
pub fn stop_listener() {
    let listener = LISTENER.lock().take();
    if let Some(listener) = listener {
        listener.wake_accept();
        listener.remove_socket();
    }
}

/// The VM is initialized.
pub fn begin_uptime() {
    *STARTED.lock() = Some(Instant::now());
}

/// Milliseconds since the VM was initialized.
pub fn uptime_ms() -> u64 {
    let started = *STARTED.lock();
    let elapsed = started.map(|started| started.elapsed()).unwrap_or_default();
    elapsed.as_millis() as u64
}
