//! The shadow stacks of all threads.

use rustc_hash::FxHashMap;

use crate::ids::Thread;

/// One stack per thread. The thread that ran last is found without a look-up.
pub struct Stacks<T> {
    index: FxHashMap<Thread, usize>,
    stacks: Vec<Vec<T>>,
    last: Option<(Thread, usize)>,
}

impl<T> Default for Stacks<T> {
    fn default() -> Self {
        Stacks {
            index: FxHashMap::default(),
            stacks: Vec::new(),
            last: None,
        }
    }
}

impl<T> Stacks<T> {
    pub fn of(&mut self, thread: Thread) -> &mut Vec<T> {
        let at = match self.last {
            Some((last, at)) if last == thread => at,
            _ => self.switch(thread),
        };
        if at >= self.stacks.len() {
            self.stacks.resize_with(at + 1, Vec::new);
        }
        // In bounds: the stack was made just now if there was none.
        #[allow(clippy::indexing_slicing)]
        &mut self.stacks[at]
    }

    #[cold]
    fn switch(&mut self, thread: Thread) -> usize {
        let next = self.index.len();
        let at = *self.index.entry(thread).or_insert(next);
        self.last = Some((thread, at));
        at
    }
}
