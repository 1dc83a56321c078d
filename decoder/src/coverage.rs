//! What of all allocations was counted: the log's counters beside what the VM itself says that threads allocated.

use std::collections::BTreeMap;
use std::fmt;

use lucce_callgraph::{ContextId, MethodId};
use lucce_tracelog::{ThreadId, VmCount};
use serde::Serialize;

use crate::kinds::{ALLOC, ALLOCATION};
use crate::profile::Profile;

/// Counted and allocated bytes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Coverage {
    #[serde(flatten)]
    pub sum: Covered,
    /// What was counted is an estimate from samples.
    pub estimated: bool,
    /// Milliseconds since 1970: when the VM was last asked. `None`: at the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// Why it is not near 100 percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Those that allocated most come first.
    pub threads: Vec<ThreadCoverage>,
}

/// Of one thread, or of several that are one to the log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ThreadCoverage {
    pub thread: String,
    #[serde(flatten)]
    pub bytes: Covered,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Covered {
    pub counted: u64,
    /// By the VM's count.
    pub allocated: u64,
    /// `None`: the VM counted nothing.
    pub percent: Option<f64>,
}

/// What belongs together: the VM counts what virtual threads allocate for those that carry them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Thread(ThreadId),
    Virtual,
    /// Nothing was counted in them, so they have no number.
    Silent,
}

const VIRTUAL: &str = "virtual threads and their carriers";
const SILENT: &str = "threads without events";
const NOTHING: &str = "the log does not say what the VM allocated";
const ABOVE: &str =
    "compiled code need not allocate what its bytecode says (escape analysis), and it is counted";
const LOST: &str = "events were lost";
const BELOW: &str = "what the VM makes by itself is not counted";
/// A difference that needs no reason, in percent.
const NEAR: f64 = 0.5;

impl Profile {
    /// What was counted of what the VM says.
    ///
    /// # Errors
    /// Why the two cannot be compared.
    pub fn coverage(&self) -> Result<Coverage, &str> {
        if let Some(reason) = self.meta.get("coverage.none") {
            return Err(reason);
        }
        if self.vm_counts.is_empty() {
            return Err(NOTHING);
        }
        let mut of: BTreeMap<Who, Covered> = BTreeMap::new();
        let virtual_events = self.adds_counted(&mut of);
        for count in &self.vm_counts {
            let who = who(count, virtual_events);
            let covered = of.entry(who).or_insert(Covered::NONE);
            covered.allocated = covered.allocated.saturating_add(count.bytes);
        }
        let sum = of.values().copied().fold(Covered::NONE, Covered::plus);
        let sum = sum.with_percent();
        let asked = self.vm_counts.iter().map(|count| count.at / 1_000_000);
        Ok(Coverage {
            sum,
            estimated: self.meta.contains_key("sampled.bytes"),
            asked: asked.max().filter(|_| !self.ended),
            reason: sum.percent.and_then(|percent| self.reason(percent)),
            threads: self.by_name(of),
        })
    }

    /// Threads of one name are one; those that allocated most come first.
    fn by_name(&self, of: BTreeMap<Who, Covered>) -> Vec<ThreadCoverage> {
        let mut by_name: BTreeMap<String, Covered> = BTreeMap::new();
        for (who, bytes) in of {
            let sum = by_name.entry(self.name(who)).or_insert(Covered::NONE);
            *sum = sum.plus(bytes);
        }
        let threads = by_name.into_iter().map(|(thread, bytes)| ThreadCoverage {
            thread,
            bytes: bytes.with_percent(),
        });
        let mut threads: Vec<_> = threads
            .filter(|thread| thread.bytes != Covered::NONE)
            .collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.bytes.allocated));
        threads
    }

    /// What was counted in each thread; whether any is a virtual one.
    fn adds_counted(&self, of: &mut BTreeMap<Who, Covered>) -> bool {
        let mut last = None;
        let mut virtual_events = false;
        let allocations = self.events.all().iter();
        for share in allocations.filter(|share| self.is_of(share.event, ALLOC.name)) {
            let is_virtual = self
                .threads
                .get(&share.thread)
                .is_some_and(|thread| thread.is_virtual);
            virtual_events |= is_virtual;
            let who = match is_virtual {
                true => Who::Virtual,
                false => Who::Thread(share.thread),
            };
            let each = match share.event {
                ALLOCATION => self.size_in(share.id, &mut last),
                _ => 0,
            };
            let bytes = share.value.saturating_add(share.count.saturating_mul(each));
            let covered = of.entry(who).or_insert(Covered::NONE);
            covered.counted = covered.counted.saturating_add(bytes);
        }
        virtual_events
    }

    /// What one object takes that was allocated in a context; 0: that is not always the same, or the log does
    /// not explain the number. `last`: the answer before, because one number's counters stand side by side.
    fn size_in(&self, id: ContextId, last: &mut Option<(ContextId, u64)>) -> u64 {
        if let Some((known, size)) = last
            && *known == id
        {
            return *size;
        }
        let leaf = self.graph.caller(id, MethodId::EVENT).ok().flatten();
        let size = leaf.and_then(|(_, leaf)| self.code.size(leaf.site));
        let size = size.unwrap_or(0);
        *last = Some((id, size));
        size
    }

    fn name(&self, who: Who) -> String {
        match who {
            Who::Virtual => VIRTUAL.into(),
            Who::Silent => SILENT.into(),
            // The VM does not count by tags: lanes of one kind of threads are one.
            Who::Thread(id) if self.has_tags() => kind_of(&self.thread_name(id)),
            Who::Thread(id) => self.thread_name(id),
        }
    }

    /// One event in a thousand, or more.
    fn has_lost_many(&self) -> bool {
        let counted = self.events.all().iter().map(|share| share.count);
        let counted = counted.fold(0, u64::saturating_add);
        self.lost() > counted / 1000
    }

    fn reason(&self, percent: f64) -> Option<&'static str> {
        match percent {
            _ if (percent - 100.0).abs() <= NEAR => None,
            _ if percent > 100.0 => Some(ABOVE),
            _ if self.has_lost_many() => Some(LOST),
            _ => Some(BELOW),
        }
    }
}

/// A thread's name with `*` for each row of digits, as names are that several threads have together.
fn kind_of(name: &str) -> String {
    let mut kind = String::with_capacity(name.len());
    for character in name.chars() {
        match character.is_ascii_digit() {
            true if kind.ends_with('*') => {}
            true => kind.push('*'),
            false => kind.push(character),
        }
    }
    kind
}

fn who(count: &VmCount, virtual_events: bool) -> Who {
    match count.thread {
        _ if count.carriers && virtual_events => Who::Virtual,
        ThreadId(0) => Who::Silent,
        thread => Who::Thread(thread),
    }
}

impl Covered {
    const NONE: Covered = Covered {
        counted: 0,
        allocated: 0,
        percent: None,
    };

    fn plus(self, more: Covered) -> Covered {
        Covered {
            counted: self.counted.saturating_add(more.counted),
            allocated: self.allocated.saturating_add(more.allocated),
            percent: None,
        }
    }

    fn with_percent(self) -> Covered {
        let percent = self.counted as f64 * 100.0 / self.allocated as f64;
        Covered {
            percent: (self.allocated > 0).then_some(percent),
            ..self
        }
    }
}

/// `99.8% of the bytes that the VM allocated`, and why it is not more, or less.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(percent) = self.sum.percent else {
            return f.write_str("the VM allocated nothing");
        };
        let about = if self.estimated { "about " } else { "" };
        write!(f, "{about}{percent:.1}% of the bytes that the VM allocated")?;
        if self.asked.is_some() {
            f.write_str(", when it was last asked")?;
        }
        match self.reason {
            Some(reason) => write!(f, "; {reason}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(counted: u64, allocated: u64) -> Coverage {
        let sum = Covered {
            counted,
            allocated,
            percent: None,
        };
        Coverage {
            sum: sum.with_percent(),
            estimated: false,
            asked: None,
            reason: None,
            threads: Vec::new(),
        }
    }

    #[test]
    fn it_is_said_in_words() {
        let text = "99.8% of the bytes that the VM allocated";
        assert_eq!(coverage(998, 1000).to_string(), text);
        let estimated = Coverage {
            estimated: true,
            reason: Some(BELOW),
            ..coverage(998, 1000)
        };
        assert_eq!(estimated.to_string(), format!("about {text}; {BELOW}"));
        assert_eq!(coverage(5, 0).to_string(), "the VM allocated nothing");
    }

    #[test]
    fn threads_of_one_kind_have_names_that_differ_in_digits_only() {
        assert_eq!(kind_of("pool-12-thread-3"), "pool-*-thread-*");
        assert_eq!(kind_of("main"), "main");
    }

    #[test]
    fn carriers_count_for_virtual_threads_if_there_are_any() {
        let count = |thread, carriers| VmCount {
            offset: 0,
            thread: ThreadId(thread),
            carriers,
            bytes: 1,
            at: 0,
        };
        assert!(who(&count(3, true), true) == Who::Virtual);
        assert!(who(&count(3, true), false) == Who::Thread(ThreadId(3)));
        assert!(who(&count(3, false), true) == Who::Thread(ThreadId(3)));
        assert!(who(&count(0, false), true) == Who::Silent);
    }
}
