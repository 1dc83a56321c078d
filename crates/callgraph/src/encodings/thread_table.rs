//! Something for each thread.

use super::ProgramThreadId;
use crate::CallEdge;

/// Ids are dense: a vector.
#[derive(Clone, Debug)]
pub(super) struct ThreadTable<T>(Vec<T>);

impl<T> Default for ThreadTable<T> {
    fn default() -> Self {
        ThreadTable(Vec::new())
    }
}

impl<T: Default> ThreadTable<T> {
    /// The thread's, made if it is new.
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

    /// The thread begins anew.
    pub fn reset_thread(&mut self, thread: ProgramThreadId) {
        *self.get_or_create(thread) = T::default();
    }

    /// The thread's, if `edge` is a call. A thread's entry is none: nothing is added, nothing pushed.
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
