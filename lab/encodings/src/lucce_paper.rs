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
//! Every `←` that changes something makes a new version of the whole graph and is logged. By default all versions are
//! kept: every value has its history. The root node, which has one context, calls a thread's entry.
//!
//! The paper takes `av(e)` from the updated graph, `v'`. Contrary to its Theorem 1, that fails if `n` calls itself at
//! several sites. Then numCC(n) is a summand of `av(e)`, its update moves the range just computed, and `c + av(e)` may
//! exceed numCC(n). Only in this case, `n` gets the version before numCC(n) changed, with `av(e)` of that version; a
//! counter counts these cases.
//!
//! The paper does not specify the width of numbers; here Java's `long` is the limit. Contexts beyond it, and all
//! contexts below them, are lost; the graph is still updated.

mod algorithm;
mod history;

use super::thread_table::ThreadTable;
use super::{ContextDecodeError, ContextEncoding, EncodedContext, EncodingStatistics};
use lucce_callgraph::ProgramThreadId;
use lucce_callgraph::{CallEdge, ContextFrame};

pub use algorithm::{CallIdVersion, LucceAlgorithm, UpdateObserver};

/// See the module's description.
pub struct LuccePaperEncoding {
    graph: LucceAlgorithm,
    /// The local variables of each frame.
    threads: ThreadTable<Vec<CallIdVersion>>,
    lost: u64,
}

impl LuccePaperEncoding {
    /// Numbers are below 2 to the power of `bits`, at most 63 as in the paper's implementation.
    #[must_use]
    pub fn new(bits: u32) -> LuccePaperEncoding {
        LuccePaperEncoding {
            graph: LucceAlgorithm::new(bits),
            threads: ThreadTable::default(),
            lost: 0,
        }
    }

    /// Forgets ended frames, as a live program does: their numbers can no longer be decoded.
    pub fn forget_ended_frames(&mut self) {
        let frames = self.threads.iter_mut().flatten();
        let mut kept_versions = frames.map(|pair| pair.version).collect();
        self.graph.forget_versions(&mut kept_versions);
    }

    /// Returns the number of changes that decoding can use.
    #[must_use]
    pub fn remembered_changes(&self) -> usize {
        self.graph.remembered_changes()
    }
}

impl ContextEncoding for LuccePaperEncoding {
    fn name(&self) -> &'static str {
        "lucce-paper"
    }

    fn start_thread(
        &mut self,
        thread: ProgramThreadId,
        _: Option<(ProgramThreadId, ContextFrame)>,
    ) {
        self.threads.get_or_create(thread).clear();
    }

    fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        let frames = self.threads.get_or_create(thread);
        let from = match edge.is_entry() {
            true => CallIdVersion::ROOT,
            // A caller without a frame: its context is lost, with all below it.
            false => frames.last().copied().unwrap_or(CallIdVersion {
                call_id: CallIdVersion::NO_CALL_ID,
                version: 0,
            }),
        };
        let to = self.graph.update_call(edge, from, &mut ());
        self.threads.get_or_create(thread).push(to);
    }

    /// Execution resumes with the caller's local variables.
    fn leave_call(&mut self, thread: ProgramThreadId, _: CallEdge) {
        self.threads.get_or_create(thread).pop();
    }

    fn current_context(&mut self, thread: ProgramThreadId, place: ContextFrame) -> EncodedContext {
        let pair = self.threads.get_or_create(thread).last().copied();
        let pair = pair.filter(|pair| !pair.is_lost());
        self.lost += u64::from(pair.is_none());
        EncodedContext {
            frame: place,
            id: pair.map_or(0, |pair| pair.call_id),
            extra_numbers: pair.iter().map(|pair| pair.version).collect(),
        }
    }

    fn decode_context(
        &self,
        number: &EncodedContext,
    ) -> Result<Vec<ContextFrame>, ContextDecodeError> {
        let &[version] = number.extra_numbers.as_slice() else {
            return Err(ContextDecodeError::Lost);
        };
        let pair = CallIdVersion {
            call_id: number.id,
            version,
        };
        let edges = self.graph.decode_context(number.frame.method, pair)?;
        let callers = edges.iter().filter(|edge| !edge.is_entry());
        let mut frames = vec![number.frame];
        frames.extend(callers.map(|edge| edge.caller_frame()));
        Ok(frames)
    }

    fn collect_statistics(&self) -> EncodingStatistics {
        EncodingStatistics {
            unnumbered: self.lost,
            ..self.graph.collect_statistics()
        }
    }
}
