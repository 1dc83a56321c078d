//! What the current thread has allocated since a moment: `io.lucce.Allocations`.
//!
//! A mark is a copy of what the thread's cells count, and how many events were lost until then. What the cells count later
//! on is told as the difference, cell by cell. Taking a mark and telling cost as much as the thread has contexts; in between
//! nothing is different from without. Where the thread goes on in another lane meanwhile, under tags of the program's own, what
//! came in the one before is kept with the mark.
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};

use lucce_callgraph::{ContextId, MethodId};
use lucce_tracelog::EventTypeId;
use rustc_hash::FxHashMap;

use crate::book::What;
use crate::counting::Counting;
use crate::counting::sizes::size_at;
use crate::memory::gate;
use crate::memory::locks::WatchedMutex;
use crate::options::Instrument;
use crate::thread::ThreadState;
use crate::thread::cells::lane_of;
use crate::thread::lane::Lane;
use lucce_vm::Env;

const KIND: &str = "alloc";

/// Marks that were taken and not told.
#[derive(Default)]
pub struct Marks {
    open: WatchedMutex<Open>,
    /// How many there are.
    number: AtomicUsize,
}

#[derive(Default)]
struct Open {
    last: u64,
    marks: HashMap<u64, Mark>,
}

struct Mark {
    /// Whose it is.
    state: usize,
    /// What its lane had counted.
    counted: Counted,
    /// Events that the lane had lost, and all threads.
    lost: u64,
    lost_by_all: u64,
    /// In lanes that it has left since.
    before: Before,
}

/// What was counted, and how much was lost.
#[derive(Default)]
struct Before {
    made: Vec<Counts>,
    by_type: Vec<Counts>,
    lost: u64,
}

/// What a cell counts: for which context, of which type if it is one by type, how many events, and their values beside the sizes
/// of their sites.
#[derive(Clone, Copy)]
struct Counts {
    number: ContextId,
    event: EventTypeId,
    count: u64,
    value: u64,
}

#[derive(Default)]
struct Counted {
    /// By the cell's address.
    cells: FxHashMap<usize, Counts>,
    /// Of the VM's own objects, with `alloc=all`.
    by_type: FxHashMap<usize, Counts>,
}

/// Why allocations of the current thread cannot be counted; `None`: they can.
pub fn unable(counting: &Counting, state: &ThreadState) -> Option<&'static str> {
    let options = &counting.options;
    if !counting.is_live() {
        Some("the agent is not recording yet")
    } else if options.burst.is_some() {
        Some("the agent counts in bursts only (burst=)")
    } else if !counting.gate.is_open(gate::ALLOC) {
        Some(
            "the agent does not count every allocation now: it wants events=alloc, and no `lucce ctl stop`",
        )
    } else if options.instrument != Instrument::All || !options.filter.is_open() {
        Some("the agent counts in some classes only (instrument=, include=, exclude=)")
    } else if state.is_virtual {
        Some("this is a virtual thread, whose events are counted with those of others")
    } else {
        None
    }
}

/// In the whole JVM: it is not known in which thread.
fn lost_by_all(counting: &Counting) -> u64 {
    counting.counts.events_lost.load(Ordering::Relaxed)
}

impl Marks {
    /// A mark.
    pub fn begin(&self, counting: &Counting, env: Env, state: &ThreadState) -> u64 {
        let address = std::ptr::from_ref(state) as usize;
        let lane = lane_of(counting, env, state);
        let mark = Mark {
            state: address,
            counted: Counted::of(&lane),
            lost: lane.lost(),
            lost_by_all: lost_by_all(counting),
            before: Before::default(),
        };
        drop(lane);
        let mut open = self.lock();
        open.last += 1;
        let number = open.last;
        open.marks.insert(number, mark);
        self.number.store(open.marks.len(), Ordering::Relaxed);
        number
    }

    /// The current thread is about to leave its lane.
    pub fn leaves(&self, counting: &Counting, env: Env, state: &ThreadState) {
        self.each(state, |mark| {
            let lane = lane_of(counting, env, state);
            let since = mark.since(&lane);
            drop(lane);
            mark.before.made.extend(since.made);
            mark.before.by_type.extend(since.by_type);
            mark.before.lost += since.lost;
        });
    }

    /// The thread goes on in another lane, or in the lane that it had.
    pub fn enters(&self, counting: &Counting, env: Env, state: &ThreadState) {
        self.each(state, |mark| {
            let lane = lane_of(counting, env, state);
            mark.counted = Counted::of(&lane);
            mark.lost = lane.lost();
        });
    }

    /// Marks of the current thread.
    fn each(&self, state: &ThreadState, mut each: impl FnMut(&mut Mark)) {
        // Relaxed: this thread's own are among them.
        if self.number.load(Ordering::Relaxed) == 0 {
            return;
        }
        let address = std::ptr::from_ref(state) as usize;
        let mut open = self.lock();
        let own = open.marks.values_mut().filter(|mark| mark.state == address);
        own.for_each(&mut each);
    }

    /// What was counted since, and the mark is no more: a line with how many events were lost, then a line for each context
    /// with its number, how many objects, their bytes and their type. `None`: the mark is not one of this thread, or
    /// counting has ended.
    pub fn end(
        &self,
        counting: &Counting,
        env: Env,
        (state, mark): (Option<&ThreadState>, u64),
    ) -> Option<String> {
        let (mark, state) = self.take(mark).zip(state)?;
        let is_own = mark.state == std::ptr::from_ref(state) as usize;
        let counts = is_own && unable(counting, state).is_none();
        counts.then(|| told(counting, env, state, &mark))
    }

    fn take(&self, number: u64) -> Option<Mark> {
        let mut open = self.lock();
        let mark = open.marks.remove(&number);
        self.number.store(open.marks.len(), Ordering::Relaxed);
        mark
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }
}

impl Counted {
    fn of(lane: &Lane) -> Counted {
        let mut counted = Counted::default();
        lane.each_cell(|cell, [number, count, value]| {
            let (number, event) = (ContextId(number), EventTypeId::default());
            let counts = Counts {
                number,
                event,
                count,
                value,
            };
            counted.cells.insert(cell, counts);
        });
        lane.each_event_cell(|cell, [number, event, count, value]| {
            let counts = Counts {
                number: ContextId(number),
                // The other half is zero.
                event: EventTypeId(event as u32),
                count,
                value,
            };
            counted.by_type.insert(cell, counts);
        });
        counted
    }
}

/// What has come since.
fn more<'a>(
    now: &'a FxHashMap<usize, Counts>,
    before: &'a FxHashMap<usize, Counts>,
) -> impl Iterator<Item = Counts> + 'a {
    now.iter().filter_map(|(cell, counts)| {
        let old = before.get(cell);
        let count = counts.count.wrapping_sub(old.map_or(0, |old| old.count));
        let value = counts.value.wrapping_sub(old.map_or(0, |old| old.value));
        (count != 0 || value != 0).then_some(Counts {
            count,
            value,
            ..*counts
        })
    })
}

impl Mark {
    /// What has come in the lane since the mark was taken, or since the thread has gone on in it.
    fn since(&self, lane: &Lane) -> Before {
        let now = Counted::of(lane);
        // A cell that is gone was of a number that has left the graph: what it counted last is not known.
        let is_gone = |cell: &&usize| !now.cells.contains_key(*cell);
        let gone = self.counted.cells.keys().filter(is_gone).count() as u64;
        Before {
            made: more(&now.cells, &self.counted.cells).collect(),
            by_type: more(&now.by_type, &self.counted.by_type).collect(),
            lost: lane.lost().wrapping_sub(self.lost) + gone,
        }
    }
}

/// What several lanes have counted for one context and type is one.
fn added(parts: [&[Counts]; 2]) -> impl Iterator<Item = Counts> {
    let mut sums: FxHashMap<(ContextId, EventTypeId), Counts> = FxHashMap::default();
    for counts in parts.into_iter().flatten() {
        let key = (counts.number, counts.event);
        let sum = sums.entry(key).or_insert(Counts {
            count: 0,
            value: 0,
            ..*counts
        });
        sum.count = sum.count.wrapping_add(counts.count);
        sum.value = sum.value.wrapping_add(counts.value);
    }
    sums.into_values()
}

fn told(counting: &Counting, env: Env, state: &ThreadState, mark: &Mark) -> String {
    let lane = lane_of(counting, env, state);
    let since = mark.since(&lane);
    // To ask for sizes makes objects, in this thread.
    drop(lane);
    let by_all = lost_by_all(counting).wrapping_sub(mark.lost_by_all);
    let mut lost = by_all + since.lost + mark.before.lost;
    let mut lines = String::new();
    let mut line = |made: Counts, bytes: u64, of: &str| {
        let _ = writeln!(lines, "{:x} {} {bytes} {of}", made.number.0, made.count);
    };
    for made in added([&mark.before.made, &since.made]) {
        match made_at(counting, env, made.number) {
            Made::Object { size, of } => line(made, made.value + made.count * size, &of),
            Made::Nothing => {}
            Made::Unknown => lost += made.count.max(1),
        }
    }
    let details = counting.event_types.details_of(KIND);
    for made in added([&mark.before.by_type, &since.by_type]) {
        if let Some(of) = details.get(&made.event) {
            line(made, made.value, of);
        }
    }
    format!("{lost}\n{lines}")
}

enum Made {
    /// How large each is beside what the cell counts, and its descriptor.
    Object {
        size: u64,
        of: String,
    },
    /// Other events have cells there, too.
    Nothing,
    Unknown,
}

fn made_at(counting: &Counting, env: Env, number: ContextId) -> Made {
    let frames = counting.encoder.decode(number, MethodId::EVENT);
    let Some(site) = frames
        .ok()
        .and_then(|frames| frames.first().map(|frame| frame.site.0))
    else {
        return Made::Unknown;
    };
    let book = counting.book();
    let Some(info) = book.site(site) else {
        return Made::Unknown;
    };
    let of = match info.what {
        What::New(of) | What::Array(of) => book.text(of).to_string(),
        _ => return Made::Nothing,
    };
    drop(book);
    let size = size_at(counting, env, site).unwrap_or(0);
    Made::Object { size, of }
}
