//! Finds the slot of the innermost frame from the innermost frames alone. A walk of all frames takes time
//! proportional to the depth of the stack.
//!
//! The thread's pointer may be stale, but it is never below the slot of the running frame. It was right at that
//! frame's entry, and calls since then moved it up. Below that slot lies one slot for each caller. Each holds a site
//! in the caller's method, at the line that the VM reports. So the candidates are the slots up to the pointer below
//! which the callers' methods and lines follow each other. If there is only one candidate, it is the slot. Remains of
//! finished calls can look the same, mostly in recursion; then all frames must be matched.

use std::sync::atomic::Ordering;

use lucce_callgraph::{MethodId, SiteId};

use crate::memory::slots::{LOST, Slot};
use crate::registry::CodeRegistry;
use crate::stack::StackParts;
use crate::stack::caller_frames::{CallerFrames, VmFramePosition, is_error_constructor};
use crate::stack::frames::{MethodKind, ResolvedFrame, StackWalk};
use crate::thread::ThreadState;

/// Frames of the first attempt. They mostly suffice, and each frame takes the VM about a microsecond.
pub const FIRST_FRAMES: usize = 8;
/// Frames of the second attempt, before all frames are walked.
pub const MOST_FRAMES: usize = 16;
/// Minimum number of callers: fewer seldom prove a slot.
const FEWEST: usize = 4;

/// The frames that a walk has given so far.
pub struct WalkedFrames<'f, 'w> {
    /// Further frames of the walk are appended.
    pub frames: &'f mut Vec<ResolvedFrame>,
    /// The number of innermost frames that do not count.
    pub own: usize,
    pub walk: &'f mut StackWalk<'w>,
}

impl WalkedFrames<'_, '_> {
    /// The frames that count. `None`: there are too few.
    pub fn callers(&self) -> Option<&[ResolvedFrame]> {
        self.frames.get(self.own..)
    }
}

/// The callers of the current thread by its innermost frames. `pointer` is the thread's pointer. `None`: all frames
/// are needed.
pub fn find_callers(
    agent: StackParts<'_>,
    state: &ThreadState,
    walked: &mut WalkedFrames<'_, '_>,
    pointer: Slot,
) -> Option<CallerFrames> {
    // Out of scope the pointer is restored, so it may lie below the slot.
    let usual = agent.counters.tracking.is_lazy()
        && !agent.core.options.is_partial()
        && agent.core.counts.untracked_calls.load(Ordering::Relaxed) == 0;
    let mut stages = [FIRST_FRAMES, MOST_FRAMES].into_iter().filter(|_| usual);
    stages.find_map(|most| {
        let missing = (walked.own + most).saturating_sub(walked.frames.len());
        walked.frames.extend(walked.walk.by_ref().take(missing));
        prove_callers(&agent.core.registry(), state, walked.callers()?, pointer)
    })
}

/// The callers, if there is one candidate. `None` also if a lost frame may lie below. Its caller's slot has no site,
/// and the frames above it are not at their usual slots.
pub fn prove_callers(
    registry: &CodeRegistry,
    state: &ThreadState,
    frames: &[ResolvedFrame],
    pointer: Slot,
) -> Option<CallerFrames> {
    if !state.owns_slot(pointer) || has_lost_frame(state, pointer) {
        return None;
    }
    let mut known = Vec::with_capacity(frames.len());
    for frame in frames {
        // Slots below a deferred VM entry are not directly below those above.
        if is_error_constructor(frame) || frame.is_deferrable_entry() {
            return None;
        }
        match frame.method.kind {
            MethodKind::Known(id) => known.push((MethodId(id), frame)),
            MethodKind::Hidden => {}
            MethodKind::Helper | MethodKind::Unknown => return None,
        }
    }
    let innermost = known.iter().position(|(_, frame)| frame.has_slot())?;
    let (above, rest) = known.split_at(innermost);
    let (own, below) = rest.split_first()?;
    // A frame without a slot of its own may have been given one, or not.
    let regular = below.iter().all(|(_, frame)| frame.has_slot());
    if below.len() < FEWEST || !regular {
        return None;
    }
    let below: Vec<VmFramePosition> = below.iter().map(frame_position).collect();
    let first = state.first_slot();
    let fits = |index: usize| {
        let slots = (0..index).rev().map(|index| first.up_by(index));
        slots
            .zip(&below)
            .all(|(slot, position)| may_be_at(registry, slot.site(), *position))
    };
    let index = find_unique(below.len(), pointer.frames_above(first), fits)?;
    Some(CallerFrames {
        slot: first.up_by(index + 1),
        free: first.up_by(index + 1),
        innermost: Some(frame_position(own)),
        missing: above.iter().rev().map(frame_position).collect(),
        unfilled: above.len(),
        deferred: Vec::new(),
        slots_without_site: Vec::new(),
        is_complete: true,
    })
}

/// Whether a slot up to the pointer belongs to the caller of a lost frame. That frame may have ended.
fn has_lost_frame(state: &ThreadState, pointer: Slot) -> bool {
    let mut slots = state.first_slot().slots_until(pointer.above());
    slots.any(|slot| slot.site() == SiteId(LOST))
}

fn frame_position((method, frame): &(MethodId, &ResolvedFrame)) -> VmFramePosition {
    VmFramePosition::from_frame(*method, frame)
}

/// Whether a slot's site can belong to a frame of this method at this line.
fn may_be_at(registry: &CodeRegistry, site: SiteId, position: VmFramePosition) -> bool {
    // No site: the frame was entered before the hooks were live.
    site == SiteId(0)
        || registry.method_of_site(site) == position.method
            && registry
                .site(site.0)
                .is_none_or(|info| registry.line_of_site(&info) == position.line)
}

/// The index from `least` to `most` that fits, if it is the only one.
fn find_unique(least: usize, most: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let mut indexes = (least..=most).rev().filter(|index| fits(*index));
    let first = indexes.next()?;
    indexes.next().is_none().then_some(first)
}

#[cfg(test)]
mod innermost_frames_tests {
    use super::*;

    /// A program calls and returns at random. Remains of finished calls are never mistaken for its stack.
    #[test]
    fn what_is_found_is_the_true_slot() {
        let (mut found, mut ambiguous) = (0, 0);
        for (methods, depth) in [(2, 40), (5, 40), (40, 30), (400, 60)] {
            let mut random = 1_u64;
            let mut next = |below: u64| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (random >> 33) % below
            };
            // The slots, the true stack, and the pointer.
            let mut slots = vec![0_u64; 100];
            let (mut stack, mut pointer) = (Vec::new(), 0);
            for _ in 0..50_000 {
                if stack.len() < depth && (stack.len() < 10 || next(2) == 0) {
                    let site = 1 + next(methods);
                    slots[stack.len()] = site;
                    stack.push(site);
                    pointer = stack.len();
                } else {
                    stack.pop();
                }
                // The running frame has called nothing, or its pointer is stale.
                assert!(pointer >= stack.len());
                let below: Vec<u64> = stack.iter().rev().take(8).copied().collect();
                if below.len() < FEWEST {
                    continue;
                }
                let fits = |index: usize| {
                    let sites = slots[..index].iter().rev();
                    sites.zip(&below).all(|(site, wanted)| site == wanted)
                };
                match find_unique(below.len(), pointer, fits) {
                    Some(index) => {
                        assert_eq!(index, stack.len());
                        found += 1;
                    }
                    None => ambiguous += 1,
                }
            }
        }
        assert!(found > 50_000 && ambiguous > 1_000, "{found}, {ambiguous}");
    }
}
