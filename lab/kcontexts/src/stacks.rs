//! The shadow stacks of all threads.

use rustc_hash::FxHashMap;

use crate::ids::TraceThreadId;

/// One stack per thread. The thread that ran last is found without a look-up.
pub struct ThreadStacks<T> {
    index: FxHashMap<TraceThreadId, usize>,
    stacks: Vec<Vec<T>>,
    last: Option<(TraceThreadId, usize)>,
}

impl<T> Default for ThreadStacks<T> {
    fn default() -> Self {
        ThreadStacks {
            index: FxHashMap::default(),
            stacks: Vec::new(),
            last: None,
        }
    }
}

impl<T> ThreadStacks<T> {
    pub fn stack_mut(&mut self, thread: TraceThreadId) -> &mut Vec<T> {
        let at = match self.last {
            Some((last, at)) if last == thread => at,
            _ => self.switch_thread(thread),
        };
        if at >= self.stacks.len() {
            self.stacks.resize_with(at + 1, Vec::new);
        }
        // In bounds: the stack was made just now if there was none.
        #[allow(clippy::indexing_slicing)]
        &mut self.stacks[at]
    }

    #[cold]
    fn switch_thread(&mut self, thread: TraceThreadId) -> usize {
        let next = self.index.len();
        let at = *self.index.entry(thread).or_insert(next);
        self.last = Some((thread, at));
        at
    }
}
