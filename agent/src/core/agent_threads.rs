//! Threads of the agent's own, which end when the agent does.

use std::io;
use std::thread::{Builder, JoinHandle};

use lucce_jvmti::signals;

use crate::memory::locks::WatchedMutex;

/// Those that run.
#[derive(Default)]
pub struct AgentThreads(WatchedMutex<Vec<JoinHandle<()>>>);

impl AgentThreads {
    /// One more, which takes no signals.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn spawn_thread(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = Builder::new().name(name.into());
        let started = signals::with_signals_blocked(|| thread.spawn(run))?;
        self.lock().push(started);
        Ok(())
    }

    /// Waits until all have ended; they know that they must.
    pub fn join_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        for thread in all {
            // One that has panicked has ended, too.
            let _ = thread.join();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.0.lock()
    }
}
