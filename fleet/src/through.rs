//! Which frames each context goes through, so that "all stacks through a method" is a join.
//!
//! ```text
//! main ─ work ─ work ─ work ─ get      (main, –) (work, main) (work, work) (get, work)
//! ```
//! A pair of frame and caller is there once for each stack, however often a recursion repeats it. Paths that begin alike share
//! the list of their pairs while it is made: a frame adds a link, or none if the pair is in the list.

use lucce_contentid::{FrameId, StackId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::decoded::Decoded;
use crate::known::Known;

#[derive(Clone, Copy)]
struct Link {
    pair: (u32, u32),
    next: u32,
}

const END: u32 = u32::MAX;

/// Adds the rows of contexts that have none yet: stack, frame, caller; 0: a thread's first frame has no caller.
pub fn new(decoded: &Decoded, known: &mut Known, rows: &mut Vec<[u128; 3]>) {
    let mut wanted: FxHashSet<StackId> = FxHashSet::default();
    let events = decoded.events.keys().map(|key| key.stack);
    let stream = decoded.stream.iter().map(|row| row.stack);
    for stack in events.chain(stream) {
        if stack != StackId::EMPTY && known.through(stack.0) {
            wanted.insert(stack);
        }
    }
    if wanted.is_empty() {
        return;
    }
    let numbers: FxHashMap<FrameId, u32> = decoded
        .frames
        .iter()
        .zip(0..)
        .map(|(frame, at)| (frame.id, at))
        .collect();
    let id = |at: u32| {
        decoded
            .frames
            .get(at as usize)
            .map_or(0, |frame| frame.id.0)
    };
    let mut links: Vec<Link> = Vec::new();
    // By path: its frame, and its first link.
    let mut paths: FxHashMap<StackId, (u32, u32)> = FxHashMap::default();
    for row in &decoded.stacks {
        let frame = numbers.get(&row.frame).copied().unwrap_or(END);
        let (caller, list) = paths.get(&row.parent).copied().unwrap_or((END, END));
        let pair = (frame, caller);
        let list = match has(&links, list, pair) {
            true => list,
            false => {
                links.push(Link { pair, next: list });
                links.len() as u32 - 1
            }
        };
        paths.insert(row.id, (frame, list));
        if wanted.contains(&row.id) {
            let pairs = chain(&links, list);
            rows.extend(pairs.map(|(frame, caller)| [row.id.0, id(frame), id(caller)]));
        }
    }
}

fn chain(links: &[Link], list: u32) -> impl Iterator<Item = (u32, u32)> {
    let link = |at: u32| links.get(at as usize);
    std::iter::successors(link(list), move |at| link(at.next)).map(|link| link.pair)
}

fn has(links: &[Link], list: u32, pair: (u32, u32)) -> bool {
    chain(links, list).any(|known| known == pair)
}
