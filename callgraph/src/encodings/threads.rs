//! Something for each thread.

use super::ThreadId;
use crate::Edge;

/// Ids are dense: a vector.
#[derive(Clone, Debug)]
pub(super) struct Threads<T>(Vec<T>);

impl<T> Default for Threads<T> {
    fn default() -> Self {
        Threads(Vec::new())
    }
}

impl<T: Default> Threads<T> {
    /// The thread's, made if it is new.
    pub fn at(&mut self, thread: ThreadId) -> &mut T {
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
    pub fn start(&mut self, thread: ThreadId) {
        *self.at(thread) = T::default();
    }

    /// The thread's, if `edge` is a call. A thread's entry is none: nothing is added, nothing pushed.
    pub fn calling(&mut self, thread: ThreadId, edge: Edge) -> Option<&mut T> {
        (!edge.is_entry()).then(|| self.at(thread))
    }

    pub fn get(&self, thread: ThreadId) -> Option<&T> {
        self.0.get(thread.0 as usize)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}
