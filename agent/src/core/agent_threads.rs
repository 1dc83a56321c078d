//! The agent's own threads, which end with the agent.

use std::io;
use std::thread::{Builder, JoinHandle};

use lucce_jvmti::signals;

use crate::memory::locks::WatchedMutex;

/// The threads that run.
#[derive(Default)]
pub struct AgentThreads(WatchedMutex<Vec<JoinHandle<()>>>);

impl AgentThreads {
    /// Starts a thread that takes no signals.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn spawn_thread(&self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = Builder::new().name(name.into());
        let started = signals::with_signals_blocked(|| thread.spawn(run))?;
        self.lock().push(started);
        Ok(())
    }

    /// Waits until all threads have ended. They were requested to end before.
    pub fn join_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        for thread in all {
            // A thread that has panicked has ended as well.
            let _ = thread.join();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.0.lock()
    }
}
