//! The slots of a stack with deferred VM entries: runs of slots, each above the one below with a gap between.

use lucce_callgraph::MethodId;

use crate::memory::slots::Slot;
use crate::stack::frames::ResolvedFrame;
use crate::thread::ThreadState;

/// A deferred VM entry, and its place among the frames that the VM reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeferredEntry {
    pub slot: Slot,
    /// The index of its nearest caller in the frames, innermost first.
    pub caller: usize,
}

/// Slots that lie directly above each other, and the frames among which their owners are.
pub struct SlotRun<'f> {
    pub first: Slot,
    /// The frames that traces show, outermost first.
    pub frames: Vec<(MethodId, &'f ResolvedFrame)>,
    /// The deferred VM entry below. `None`: the thread begins there.
    pub entry: Option<DeferredEntry>,
}

/// Splits the current thread's `frames`, innermost first, at its deferred VM entries. Returns the runs, outermost first.
/// Only the innermost may have no frame. `inner` deferrable VM entries are above `frames`. `None`: an entry has ended
/// without a report, so frames and entries do not correspond.
pub fn split_runs<'f>(
    state: &ThreadState,
    frames: &'f [ResolvedFrame],
    inner: usize,
) -> Option<Vec<SlotRun<'f>>> {
    let mut entries = state.deferrable_entries();
    entries.truncate(entries.len().checked_sub(inner)?);
    let mut entries = entries.into_iter();
    let mut runs = Vec::new();
    let mut run = SlotRun {
        first: state.first_slot(),
        frames: Vec::new(),
        entry: None,
    };
    for (index, frame) in frames.iter().enumerate().rev() {
        if frame.is_deferrable_entry()
            && let Some(slot) = entries.next()?
        {
            let next = SlotRun {
                first: slot,
                frames: Vec::new(),
                entry: Some(DeferredEntry {
                    slot,
                    caller: index + 1,
                }),
            };
            let below = std::mem::replace(&mut run, next);
            // No slot lies directly above an entry without frames.
            runs.extend((!below.frames.is_empty()).then_some(below));
        }
        if let Some(id) = frame.method.id() {
            run.frames.push((id, frame));
        }
    }
    runs.push(run);
    entries.next().is_none().then_some(runs)
}

/// The number of VM entries among `frames` whose methods defer them.
pub fn count_deferrable(frames: &[ResolvedFrame]) -> usize {
    let entries = frames.iter().filter(|frame| frame.is_deferrable_entry());
    entries.count()
}
