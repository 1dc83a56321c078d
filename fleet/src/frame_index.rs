//! Which frames each context goes through, so that "all stacks through a method" is a join.
//!
//! ```text
//! main ─ work ─ work ─ work ─ get      (main, –) (work, main) (work, work) (get, work)
//! ```
//! A pair of frame and caller is there once for each stack, however often a recursion repeats it. Paths that begin alike share
//! the list of their pairs: a frame adds a link, or none if the pair is in the list. The rows, as many as contexts are deep, are made of
//! the lists when they are written, some at a time.

use lucce_contentid::{FrameId, StackId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::decoded_run::DecodedRun;
use crate::dedup::DedupIndex;
use crate::error::FleetError;

#[derive(Clone, Copy)]
struct FramePairLink {
    pair: (u32, u32),
    next: u32,
}

const END: u32 = u32::MAX;

/// Told rows: stack, frame, caller.
pub type RowCallback<'e> = dyn FnMut(&[[u128; 3]]) -> Result<(), FleetError> + 'e;

/// The lists of a run.
struct RunPairLists<'d> {
    decoded: &'d DecodedRun,
    links: Vec<FramePairLink>,
}

/// Which frames go through contexts that have no rows yet.
#[derive(Default)]
pub struct FrameIndex<'d> {
    runs: Vec<RunPairLists<'d>>,
    /// A context, the place of its run, and its list.
    contexts: Vec<(StackId, u32, u32)>,
}

impl<'d> FrameIndex<'d> {
    /// Those of a run.
    pub fn add_run(&mut self, decoded: &'d DecodedRun, dedup: &mut DedupIndex) {
        let mut wanted: FxHashSet<StackId> = FxHashSet::default();
        let events = decoded.events.keys().map(|key| key.stack);
        let stream = decoded.stream.iter().map(|row| row.stack);
        for stack in events.chain(stream) {
            if stack != StackId::EMPTY && dedup.insert_indexed_stack(stack.0) {
                wanted.insert(stack);
            }
        }
        if wanted.is_empty() {
            return;
        }
        let run = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        let numbers: FxHashMap<FrameId, u32> = decoded
            .frames
            .iter()
            .zip(0..)
            .map(|(frame, at)| (frame.id, at))
            .collect();
        let mut links: Vec<FramePairLink> = Vec::new();
        // By path: its frame, and its first link.
        let mut paths: FxHashMap<StackId, (u32, u32)> = FxHashMap::default();
        for row in &decoded.stacks {
            let frame = numbers.get(&row.frame).copied().unwrap_or(END);
            let (caller, list) = paths.get(&row.parent).copied().unwrap_or((END, END));
            let pair = (frame, caller);
            let list = match contains_pair(&links, list, pair) {
                true => list,
                false => {
                    links.push(FramePairLink { pair, next: list });
                    links.len() as u32 - 1
                }
            };
            paths.insert(row.id, (frame, list));
            if wanted.contains(&row.id) {
                self.contexts.push((row.id, run, list));
            }
        }
        self.runs.push(RunPairLists { decoded, links });
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty()
    }

    /// Hands over the rows, sorted, about so many at a time: stack, frame, caller; 0: a thread's first frame has no caller.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn write_rows(mut self, many: usize, each: &mut RowCallback<'_>) -> Result<(), FleetError> {
        self.contexts.sort_unstable();
        let mut rows: Vec<[u128; 3]> = Vec::new();
        for (stack, run, list) in self.contexts {
            let Some(RunPairLists { decoded, links }) = self.runs.get(run as usize) else {
                continue;
            };
            let id = |at: u32| {
                let frame = decoded.frames.get(at as usize);
                frame.map_or(0, |frame| frame.id.0)
            };
            let from = rows.len();
            let pairs = iter_pairs(links, list);
            rows.extend(pairs.map(|(frame, caller)| [stack.0, id(frame), id(caller)]));
            if let Some(own) = rows.get_mut(from..) {
                own.sort_unstable();
            }
            if rows.len() >= many {
                each(&rows)?;
                rows.clear();
            }
        }
        match rows.is_empty() {
            true => Ok(()),
            false => each(&rows),
        }
    }
}

fn iter_pairs(links: &[FramePairLink], list: u32) -> impl Iterator<Item = (u32, u32)> {
    let link = |at: u32| links.get(at as usize);
    std::iter::successors(link(list), move |at| link(at.next)).map(|link| link.pair)
}

fn contains_pair(links: &[FramePairLink], list: u32, pair: (u32, u32)) -> bool {
    iter_pairs(links, list).any(|other| other == pair)
}

#[cfg(test)]
mod frame_index_tests {
    use lucce_contentid::FrameId;

    use super::*;
    use crate::decoded_run::{EventKey, EventSums, FrameRow, RunStringTable, StackRow};

    /// A run whose contexts are all paths of one that goes through frames 0, 1, 2, 1, 2, 3.
    fn run() -> DecodedRun {
        let frame = |number: u128| FrameRow {
            id: FrameId(number + 100),
            by_method: FrameId(number + 200),
            class: String::new(),
            method: String::new(),
            descriptor: String::new(),
            file: None,
            line: 1,
            kind: "application",
        };
        let mut stacks: Vec<StackRow> = Vec::new();
        for (depth, number) in (1..).zip([0, 1, 2, 1, 2, 3]) {
            let parent = stacks.last().map_or(StackId::EMPTY, |row| row.id);
            let frame = FrameId(number + 100);
            stacks.push(StackRow {
                id: parent.with_callee(frame),
                parent,
                frame,
                depth,
                by_method: parent.with_callee(frame),
                application: frame,
            });
        }
        let key = |stack| EventKey {
            event: 0,
            stack,
            type_number: 0,
            is_virtual: false,
            tags: 0,
        };
        DecodedRun {
            path: Default::default(),
            run: String::new(),
            start_ms: 0,
            end_ms: None,
            ended: true,
            meta: Default::default(),
            dropped: 0,
            coverage: None,
            log_bytes: 0,
            texts: RunStringTable::default(),
            kinds: Vec::new(),
            frames: (0..4).map(frame).collect(),
            events: stacks
                .iter()
                .map(|row| (key(row.id), EventSums::default()))
                .collect(),
            stacks,
            numbers: Vec::new(),
            stream: Vec::new(),
            symbols: Vec::new(),
        }
    }

    #[test]
    fn rows_are_the_same_however_many_are_made_at_a_time() {
        let decoded = run();
        let rows_and_calls = |many: usize| {
            let mut through = FrameIndex::default();
            through.add_run(&decoded, &mut DedupIndex::default());
            let (mut rows, mut calls) = (Vec::new(), 0);
            let mut each = |some: &[[u128; 3]]| {
                rows.extend_from_slice(some);
                calls += 1;
                Ok(())
            };
            through.write_rows(many, &mut each).unwrap();
            (rows, calls)
        };
        let (all, calls) = rows_and_calls(usize::MAX);
        // Frame 1 is called by 0 and by 2; frame 2 by 1 alone, however often.
        assert_eq!((all.len(), calls), (1 + 2 + 3 + 4 + 4 + 5, 1));
        assert!(all.is_sorted());
        let mut different = all.clone();
        different.dedup();
        assert_eq!(different, all);
        assert_eq!(rows_and_calls(1), (all.clone(), 6));
        assert_eq!(rows_and_calls(8).0, all);
        // What is known has no rows a second time.
        let mut dedup = DedupIndex::default();
        FrameIndex::default().add_run(&decoded, &mut dedup);
        let mut again = FrameIndex::default();
        again.add_run(&decoded, &mut dedup);
        assert!(again.is_empty());
    }
}
