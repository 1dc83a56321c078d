//! `lucce-paper`: Algorithm 1 of the Lucce paper, to the letter.
//!
//! The graph is `⟨E, numCC, lv⟩`. When `p` calls `n` at `l`, with `⟨c, v⟩` in `p`'s local variables:
//!
//! ```text
//! lv(p)    ← v                              back up the caller's version
//! E        ← E ∪ {⟨p, n, l⟩}
//! numCC(n) ← Σ numCC(caller) over n's edges
//! n gets ⟨c + av(e), v'⟩                    v' the graph's version now
//! ```
//!
//! Every `←` that changes something makes a new version of the whole graph and is logged. All
//! versions are kept, unless told otherwise: every value has its history. A thread's entry is called by
//! the root node, which has one context.
//!
//! The paper takes `av(e)` of the updated graph, `v'`. That fails, against its Theorem 1, if `n` calls
//! itself at several sites: then numCC(n) is a summand of `av(e)`, its update moves the range just
//! computed, and `c + av(e)` may exceed numCC(n). There, and only there, `n` gets the version before
//! numCC(n) changed, with `av(e)` of that version; how often that happened is counted.
//!
//! The paper does not say how wide numbers are; Java's `long` is the limit here. What exceeds it is
//! lost, with all contexts below; the graph goes on being updated.

mod algorithm;
mod history;

use super::threads::Threads;
use super::{Encoding, Number, Statistics, ThreadId, Undecodable};
use crate::{Edge, Frame};

pub use algorithm::{Algorithm, Pair, Watch};

/// See the module's description.
pub struct LuccePaper {
    graph: Algorithm,
    /// Of each frame.
    threads: Threads<Vec<Pair>>,
    lost: u64,
}

impl LuccePaper {
    /// Numbers below 2 to the power of `bits`, at most 63, which the paper's implementation has.
    #[must_use]
    pub fn new(bits: u32) -> LuccePaper {
        LuccePaper {
            graph: Algorithm::new(bits),
            threads: Threads::default(),
            lost: 0,
        }
    }

    /// As a live program does: numbers of frames that have ended by now cannot be decoded any more.
    pub fn forget(&mut self) {
        let frames = self.threads.iter_mut().flatten();
        let mut asked = frames.map(|pair| pair.version).collect();
        self.graph.forget(&mut asked);
    }

    /// Changes that can be decoded through.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.graph.remembered()
    }
}

impl Encoding for LuccePaper {
    fn name(&self) -> &'static str {
        "lucce-paper"
    }

    fn start(&mut self, thread: ThreadId, _: Option<(ThreadId, Frame)>) {
        self.threads.at(thread).clear();
    }

    fn enter(&mut self, thread: ThreadId, edge: Edge) {
        let frames = self.threads.at(thread);
        let from = match edge.is_entry() {
            true => Pair::ROOT,
            // A caller without a frame: lost, with all below.
            false => frames.last().copied().unwrap_or(Pair {
                call: Pair::LOST,
                version: 0,
            }),
        };
        let to = self.graph.update(edge, from, &mut ());
        self.threads.at(thread).push(to);
    }

    /// Execution resumes with the caller's own local variables.
    fn leave(&mut self, thread: ThreadId, _: Edge) {
        self.threads.at(thread).pop();
    }

    fn current(&mut self, thread: ThreadId, place: Frame) -> Number {
        let pair = self.threads.at(thread).last().copied();
        let pair = pair.filter(|pair| !pair.is_lost());
        self.lost += u64::from(pair.is_none());
        Number {
            place,
            id: pair.map_or(0, |pair| pair.call),
            beside: pair.iter().map(|pair| pair.version).collect(),
        }
    }

    fn decode(&self, number: &Number) -> Result<Vec<Frame>, Undecodable> {
        let &[version] = number.beside.as_slice() else {
            return Err(Undecodable::Lost);
        };
        let pair = Pair {
            call: number.id,
            version,
        };
        let edges = self.graph.decode(number.place.method, pair)?;
        let callers = edges.iter().filter(|edge| !edge.is_entry());
        let mut frames = vec![number.place];
        frames.extend(callers.map(|edge| edge.place()));
        Ok(frames)
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            lost: self.lost,
            ..self.graph.statistics()
        }
    }
}
