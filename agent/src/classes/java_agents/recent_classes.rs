//! The classes that a thread has hooked lately, as they were without hooks: Java agents are asked for a class soon after
//! its hooks went in.
//!
//! Soon, but not next. What a Java agent does while it is asked loads further classes, for which Java agents are asked in
//! turn, and each Java agent is asked twice (by its two managers of transformers), one agent after the other. So the
//! classes lie in levels: a level for each class that a Java agent is being asked for on this thread.
//!
//! ```text
//! level 0   A's class file with hooks   ─ a Java agent is asked for A
//! level 1     └ B, loaded meanwhile     ─ another one is asked for B
//! level 2         └ C
//! ```
//! What lies above a level is let go when the answer for that level has come.

use std::cell::RefCell;
use std::collections::VecDeque;

/// Of one level. Between a class's hooks and the question for it the JDK's own code may load a few others.
const MAX_PER_LEVEL: usize = 4;

thread_local! {
    static RECENT: RefCell<RecentClasses> = const { RefCell::new(RecentClasses::new()) };
}

/// A class before and after its hooks.
struct RecentClass {
    level: usize,
    plain: Vec<u8>,
    hooked: Vec<u8>,
}

struct RecentClasses {
    level: usize,
    /// By level, the oldest first.
    pairs: VecDeque<RecentClass>,
}

impl RecentClasses {
    const fn new() -> RecentClasses {
        RecentClasses {
            level: 0,
            pairs: VecDeque::new(),
        }
    }

    fn push_class(&mut self, plain: Vec<u8>, hooked: Vec<u8>) {
        let level = self.level;
        let of_level = self.pairs.iter().filter(|pair| pair.level == level).count();
        if of_level >= MAX_PER_LEVEL
            && let Some(oldest) = self.pairs.iter().position(|pair| pair.level == level)
        {
            self.pairs.remove(oldest);
        }
        self.pairs.push_back(RecentClass {
            level,
            plain,
            hooked,
        });
    }

    fn find_plain(&self, class: &[u8]) -> Option<Vec<u8>> {
        let mut latest = self.pairs.iter().rev();
        let found = latest.find(|pair| pair.hooked == class)?;
        Some(found.plain.clone())
    }

    fn leave_level(&mut self) {
        self.level -= 1;
        let level = self.level;
        self.pairs.retain(|pair| pair.level <= level);
    }
}

/// This thread has put hooks into a class.
pub fn remember_class(plain: Vec<u8>, hooked: Vec<u8>) {
    RECENT.with_borrow_mut(|recent| recent.push_class(plain, hooked));
}

/// The class without the hooks that this thread put into it lately.
pub fn find_plain(class: &[u8]) -> Option<Vec<u8>> {
    RECENT.with_borrow(|recent| recent.find_plain(class))
}

/// Whether this thread has made the class lately, by putting hooks into another one.
pub fn is_hooked(class: &[u8]) -> bool {
    RECENT.with_borrow(|recent| recent.pairs.iter().any(|pair| pair.hooked == class))
}

/// A Java agent is asked on this thread, until this is dropped.
pub struct AgentQueryGuard(());

impl AgentQueryGuard {
    pub fn enter_level() -> AgentQueryGuard {
        RECENT.with_borrow_mut(|recent| recent.level += 1);
        AgentQueryGuard(())
    }
}

impl Drop for AgentQueryGuard {
    fn drop(&mut self) {
        RECENT.with_borrow_mut(RecentClasses::leave_level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_known_to_each_java_agent_that_is_asked() {
        remember_class(vec![1], vec![1, 2]);
        assert_eq!(find_plain(&[1, 3]), None);
        for _ in 0..2 {
            assert_eq!(find_plain(&[1, 2]), Some(vec![1]));
        }
    }

    #[test]
    fn classes_that_are_loaded_while_a_java_agent_is_asked_hide_none() {
        remember_class(vec![1], vec![1, 2]);
        let asking = AgentQueryGuard::enter_level();
        for other in 10..40 {
            remember_class(vec![other], vec![other, 2]);
            let nested = AgentQueryGuard::enter_level();
            remember_class(vec![other + 40], vec![other + 40, 2]);
            drop(nested);
            assert_eq!(find_plain(&[other, 2]), Some(vec![other]));
            assert_eq!(find_plain(&[other + 40, 2]), None, "its answer has come");
        }
        assert_eq!(find_plain(&[10, 2]), None, "a level is bounded");
        drop(asking);
        assert_eq!(find_plain(&[39, 2]), None);
        assert_eq!(find_plain(&[1, 2]), Some(vec![1]));
    }
}
