//! The classes that a thread has hooked recently, without their hooks. The VM calls Java agents for a class soon after its hooks
//! were inserted.
//!
//! Other classes may come in between. A Java agent that is called may load further classes, for which Java agents are called in
//! turn. Each Java agent is called twice, by its two managers of transformers, one agent after the other. Therefore the classes
//! form levels: one for each class for which a Java agent is being called on this thread.
//!
//! ```text
//! level 0   A's class file with hooks   ─ a Java agent is called for A
//! level 1     └ B, loaded meanwhile     ─ another one is called for B
//! level 2         └ C
//! ```
//! When the call of a level returns, the levels above it are dropped.

use std::cell::RefCell;
use std::collections::VecDeque;

/// Per level. Between a class's hooks and the call for it, the JDK's own code may load a few others.
const MAX_PER_LEVEL: usize = 4;

thread_local! {
    static RECENT: RefCell<RecentClasses> = const { RefCell::new(RecentClasses::new()) };
}

/// A class without and with its hooks.
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
        let pair = latest.find(|pair| pair.hooked == class)?;
        Some(pair.plain.clone())
    }

    fn leave_level(&mut self) {
        self.level -= 1;
        let level = self.level;
        self.pairs.retain(|pair| pair.level <= level);
    }
}

/// Remembers a class that this thread has hooked.
pub fn remember_class(plain: Vec<u8>, hooked: Vec<u8>) {
    RECENT.with_borrow_mut(|recent| recent.push_class(plain, hooked));
}

/// The class without the hooks that this thread inserted recently.
pub fn find_plain(class: &[u8]) -> Option<Vec<u8>> {
    RECENT.with_borrow(|recent| recent.find_plain(class))
}

/// Whether this thread made the class recently by inserting hooks.
pub fn is_hooked(class: &[u8]) -> bool {
    RECENT.with_borrow(|recent| recent.pairs.iter().any(|pair| pair.hooked == class))
}

/// Marks a call of Java agents on this thread, until it is dropped.
pub struct AgentQueryGuard(());

impl AgentQueryGuard {
    /// Begins a level.
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
mod recent_classes_tests {
    use super::*;

    #[test]
    fn each_java_agent_finds_a_recent_class() {
        remember_class(vec![1], vec![1, 2]);
        assert_eq!(find_plain(&[1, 3]), None);
        for _ in 0..2 {
            assert_eq!(find_plain(&[1, 2]), Some(vec![1]));
        }
    }

    #[test]
    fn classes_loaded_during_a_query_hide_no_recent_class() {
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
