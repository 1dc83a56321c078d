//! Finds out which of many numbers are live.
//!
//! Contexts share the path to their thread's first frame, and consecutive numbers share nearly all of it. So each
//! context is examined once. In ascending order, a number costs the same, however deep its context is and however many
//! others there are.

use super::VersionedGraph;
use crate::{ContextId, MethodId};

/// Returns the numbers in the order for a [`LivenessSurvey`], each with its original index.
pub(crate) fn sort_ascending(numbers: &[ContextId]) -> Vec<(ContextId, usize)> {
    let mut order: Vec<_> = numbers.iter().copied().zip(0..).collect();
    order.sort_unstable();
    order
}

/// The state of contexts that were met, each at an index that its number determines; a later context replaces it.
pub(crate) struct LivenessSurvey {
    cache: Box<[Option<ContextLiveness>]>,
    /// The contexts of the number that is being examined, innermost first.
    path: Vec<(ContextId, MethodId)>,
    /// The number of contexts that were looked up in the graph.
    #[cfg(test)]
    steps: u64,
}

#[derive(Clone, Copy)]
struct ContextLiveness {
    context: (ContextId, MethodId),
    is_live: bool,
}

/// Larger than most stacks are deep; 96 KB.
const PLACES: usize = 1 << 12;

impl LivenessSurvey {
    pub(crate) fn new() -> LivenessSurvey {
        LivenessSurvey {
            cache: vec![None; PLACES].into(),
            path: Vec::new(),
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Whether this graph gives the number to `method` and no caller is dead. Dead code never becomes live again.
    pub(crate) fn is_live(
        &mut self,
        graph: &VersionedGraph,
        id: ContextId,
        method: MethodId,
    ) -> bool {
        let mut at = (id, method);
        let lives = loop {
            if let Some(known) = self.get_cached(at) {
                break known;
            }
            self.path.push(at);
            #[cfg(test)]
            {
                self.steps += 1;
            }
            match graph.step_back(at.0, at.1) {
                ParentStep::Caller(id, method) => at = (id, method),
                ParentStep::LiveAnchor => break true,
                ParentStep::Dead => break false,
            }
        };
        for context in std::mem::take(&mut self.path) {
            if let Some(place) = self.cache.get_mut(cache_index(context)) {
                *place = Some(ContextLiveness {
                    context,
                    is_live: lives,
                });
            }
        }
        lives
    }

    fn get_cached(&self, context: (ContextId, MethodId)) -> Option<bool> {
        let entry = (*self.cache.get(cache_index(context))?)?;
        (entry.context == context).then_some(entry.is_live)
    }
}

fn cache_index((id, method): (ContextId, MethodId)) -> usize {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = (id.0 ^ u64::from(method.0) << 40).wrapping_mul(MULTIPLIER);
    (mixed >> (u64::BITS - PLACES.trailing_zeros())) as usize
}

/// What lies below a context.
enum ParentStep {
    Caller(ContextId, MethodId),
    /// All remaining anchors are live: only the path to the nearest one is examined.
    LiveAnchor,
    Dead,
}

impl VersionedGraph {
    fn step_back(&self, id: ContextId, method: MethodId) -> ParentStep {
        let Some(layout) = self.layout_of(self.layout.version_of(id)) else {
            return ParentStep::Dead;
        };
        match layout.call_id_of(id) {
            0 if self
                .anchor_origin(id)
                .is_ok_and(|origin| origin.head == method) =>
            {
                ParentStep::LiveAnchor
            }
            0 => ParentStep::Dead,
            call => match self.interval_source(layout, id, method, call) {
                Ok((parent, frame)) => ParentStep::Caller(parent, frame.method),
                Err(_) => ParentStep::Dead,
            },
        }
    }
}

#[cfg(all(test, not(loom)))]
mod survey_tests {
    use super::*;
    use crate::{ContextEncoder, ContextLayout, DeadCode, EncodingPolicy, SiteId};

    const DEEP: u32 = 60;
    /// Number of events of each class, which is called from the end of a chain of calls.
    const CLASS_EVENTS: u32 = 4;

    /// The first classes, up to this number.
    struct FirstClasses(u32);

    impl DeadCode for FirstClasses {
        fn is_method_dead(&self, method: MethodId) -> bool {
            (DEEP + 1..=DEEP + self.0).contains(&method.0)
        }

        fn is_site_dead(&self, _: SiteId) -> bool {
            false
        }
    }

    /// Returns numbers of events in `classes` classes; then the first `gone` classes are dead.
    fn numbers(classes: u32, gone: u32) -> (VersionedGraph, Vec<ContextId>) {
        let encoder =
            ContextEncoder::new(ContextLayout::DEFAULT, EncodingPolicy::LUCCE, Vec::new());
        let mut below = encoder.root_context(MethodId(1));
        for method in 2..=DEEP {
            below = encoder.encode_call(
                below,
                SiteId(method),
                MethodId(method - 1),
                MethodId(method),
            );
        }
        let mut numbers = Vec::new();
        for class in DEEP + 1..=DEEP + classes {
            let site = |at: u32| SiteId(class * CLASS_EVENTS * 2 + at);
            let inside = encoder.encode_call(below, site(0), MethodId(DEEP), MethodId(class));
            let events = 1..=CLASS_EVENTS;
            numbers
                .extend(events.map(|at| encoder.encode_event(inside, site(at), MethodId(class))));
        }
        // In the order of a hash table.
        numbers.sort_by_key(|number| number.0.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut graph = VersionedGraph::new(ContextLayout::DEFAULT);
        encoder.with_journal(|changes| {
            changes
                .iter()
                .for_each(|change| graph.apply_change(*change).unwrap())
        });
        graph.sweep_dead_code(&FirstClasses(gone));
        (graph, numbers)
    }

    #[test]
    fn a_class_costs_the_same_however_many_there_are_and_however_deep_they_are_called() {
        for classes in [100, 1_000, 10_000] {
            let (graph, numbers) = numbers(classes, classes / 2);
            let mut survey = LivenessSurvey::new();
            let mut living = 0;
            for (number, _) in sort_ascending(&numbers) {
                living += u32::from(survey.is_live(&graph, number, MethodId::EVENT));
            }
            assert_eq!(living, CLASS_EVENTS * (classes - classes / 2));
            // Each number, each class, and the chain below, whose entries others may replace.
            let least = u64::from(classes * CLASS_EVENTS);
            let most = u64::from(classes * (CLASS_EVENTS + 1) + 10 * DEEP);
            let steps = survey.steps;
            assert!(
                (least..=most).contains(&steps),
                "{classes} classes: {steps} steps"
            );
        }
    }

    #[test]
    fn cached_contexts_match_the_graph() {
        let (graph, numbers) = numbers(500, 200);
        let mut survey = LivenessSurvey::new();
        for number in numbers
            .iter()
            .chain(&[ContextId::UNKNOWN, ContextId(u64::MAX)])
        {
            let decodes = graph.decode_context(*number, MethodId::EVENT).is_ok();
            assert_eq!(survey.is_live(&graph, *number, MethodId::EVENT), decodes);
        }
    }
}
