//! Chains of objects that one field links, measured in one walk.
//!
//! ```text
//! head ─next─► · ─next─► · ─next─► target        tags while the walk passes: (run, 0) (run, 1) (run, 2)
//! ```
//! The head of a run is an object that the walk has reached otherwise. Its tag stays. The tag of each other object is removed
//! when the walk has reported its link, so that a chain of any length needs few tags. If a walk meets objects in the
//! opposite order, each object begins a run. The search for the head of the run behind it ends there. Then a chain needs
//! a tag for each object, [`MAX_RUNS`] at most.

use std::collections::{HashMap, HashSet};

use lucce_jvmti::heap::{HeapReference, ReferenceKind};

/// Maximum number of heads in one walk. The VM uses some 60 bytes for each, this module 20.
const MAX_RUNS: usize = 1 << 18;

/// Marks the tag of an object in a run: bit 62. Below it: the walk (10 bits), the run (20) and the index in the run (32).
const IN_RUN: i64 = 1 << 62;
const WALK_SHIFT: u32 = 52;
const RUN_SHIFT: u32 = 32;

/// A field that links the objects of a class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChainField {
    pub class_tag: i64,
    /// Field number, as heap walks number fields.
    pub field: i32,
}

/// The end of a run at an object that has a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunArrival {
    /// The object's node.
    pub to: u32,
    /// The tag of the run's head.
    pub head: i64,
    pub field: i32,
    /// Number of links from the head to the object.
    pub times: u32,
}

/// The runs of one walk.
#[derive(Default)]
pub struct ChainRuns {
    chains: Vec<ChainField>,
    walk: u32,
    /// Tags of the heads.
    heads: Vec<i64>,
    /// By run: the run that leads to its head, and the head's index in that run.
    before: HashMap<u32, (u32, u32)>,
    /// Arrivals with the run that leads there.
    arrivals: Vec<(u32, RunArrival)>,
    is_full: bool,
}

/// An object's position in a run.
#[derive(Clone, Copy)]
struct RunPosition {
    run: u32,
    index: u32,
}

impl ChainRuns {
    /// Sets the fields that the next walk follows.
    pub fn follow_chains(&mut self, chains: Vec<ChainField>) {
        self.chains = chains;
    }

    /// Forgets the runs of the previous walk.
    pub fn begin_walk(&mut self, walk: u32) {
        self.walk = walk;
        self.heads.clear();
        self.before.clear();
        self.arrivals.clear();
    }

    /// Whether some chains were not followed.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Handles a reference that a walk reports, to an object with node `to` if it has one. Returns whether the reference continues a
    /// run that began before.
    pub fn follow_reference(
        &mut self,
        by_tag: &HashMap<i64, u32>,
        reference: &mut HeapReference<'_>,
        to: Option<u32>,
    ) -> bool {
        let chain = ChainField {
            class_tag: reference.referrer_class_tag,
            field: match reference.kind {
                ReferenceKind::Field(field) => field,
                _ => return false,
            },
        };
        if chain.class_tag == 0 || !self.chains.contains(&chain) {
            return false;
        }
        let Some(from) = reference.referrer.as_deref_mut() else {
            return false;
        };
        let before = match self.position_of(*from) {
            Some(place) => place,
            None => match self.begin_run(by_tag, from) {
                Some(place) => place,
                None => return false,
            },
        };
        // The link of the head may be needed once more.
        if before.index > 0 && !by_tag.contains_key(from) {
            *from = 0;
        }
        let place = before.index.saturating_add(1);
        if let Some(to) = to {
            let arrival = RunArrival {
                to,
                head: 0,
                field: chain.field,
                times: place,
            };
            self.arrivals.push((before.run, arrival));
            return place > 1;
        }
        match self.position_of(reference.tag) {
            // The object is the head of another run: this run leads to it.
            Some(head) if head.index == 0 && head.run != before.run => {
                self.before.entry(head.run).or_insert((before.run, place));
            }
            Some(_) => {}
            None => reference.tag = self.make_tag(before.run, place),
        }
        false
    }

    fn begin_run(&mut self, by_tag: &HashMap<i64, u32>, head: &mut i64) -> Option<RunPosition> {
        if self.heads.len() >= MAX_RUNS {
            self.is_full = true;
            return None;
        }
        let run = self.heads.len() as u32;
        // A node keeps its tag.
        if !by_tag.contains_key(head) {
            *head = self.make_tag(run, 0);
        }
        self.heads.push(*head);
        Some(RunPosition { run, index: 0 })
    }

    fn make_tag(&self, run: u32, place: u32) -> i64 {
        let walk = i64::from(self.walk & 0x3ff) << WALK_SHIFT;
        IN_RUN | walk | i64::from(run) << RUN_SHIFT | i64::from(place)
    }

    /// The position of an object that this walk has tagged.
    fn position_of(&self, tag: i64) -> Option<RunPosition> {
        let own = IN_RUN >> WALK_SHIFT | i64::from(self.walk & 0x3ff);
        (tag >> WALK_SHIFT == own).then_some(RunPosition {
            run: (tag >> RUN_SHIFT) as u32 & 0xf_ffff,
            index: tag as u32,
        })
    }

    /// The runs that lead to nodes, each from its farthest head.
    pub fn end_walk(&mut self) -> Vec<RunArrival> {
        let arrivals = std::mem::take(&mut self.arrivals).into_iter();
        let arrivals = arrivals.filter_map(|(mut run, mut arrival)| {
            let mut visited = HashSet::from([run]);
            while let Some((before, place)) = self.before.get(&run) {
                // A chain may be a circle.
                if !visited.insert(*before) {
                    break;
                }
                run = *before;
                arrival.times = arrival.times.saturating_add(*place);
            }
            arrival.head = *self.heads.get(run as usize)?;
            Some(arrival)
        });
        let arrivals = arrivals.collect();
        self.chains.clear();
        arrivals
    }
}
