//! A value for each thread.

use lucce_callgraph::CallEdge;
use lucce_callgraph::ProgramThreadId;

/// A vector, because thread ids are dense.
#[derive(Clone, Debug)]
pub(crate) struct ThreadTable<T>(Vec<T>);

impl<T> Default for ThreadTable<T> {
    fn default() -> Self {
        ThreadTable(Vec::new())
    }
}

impl<T: Default> ThreadTable<T> {
    /// Returns the thread's value, created if the thread is new.
    pub fn get_or_create(&mut self, thread: ProgramThreadId) -> &mut T {
        let index = thread.0 as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, T::default);
        }
        match self.0.get_mut(index) {
            Some(found) => found,
            // The vector was just made long enough.
            None => unreachable!(),
        }
    }

    /// Resets the thread's value.
    pub fn reset_thread(&mut self, thread: ProgramThreadId) {
        *self.get_or_create(thread) = T::default();
    }

    /// Returns the thread's value if `edge` is a call. A thread's entry is no call: it adds and pushes nothing.
    pub fn get_for_call(&mut self, thread: ProgramThreadId, edge: CallEdge) -> Option<&mut T> {
        (!edge.is_entry()).then(|| self.get_or_create(thread))
    }

    pub fn get(&self, thread: ProgramThreadId) -> Option<&T> {
        self.0.get(thread.0 as usize)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}
