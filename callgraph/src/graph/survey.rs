//! Which of many numbers live. Contexts share the way to their thread's first frame, and numbers that follow each other
//! share nearly all of it, so each context is looked at once: asked in ascending order, a number costs the same
//! however deep its context is and however many others there are.

use super::Graph;
use crate::{ContextId, MethodId};

/// The order in which a [`Survey`] is asked, with where each number stands.
pub(crate) fn ascending(numbers: &[ContextId]) -> Vec<(ContextId, usize)> {
    let mut order: Vec<_> = numbers.iter().copied().zip(0..).collect();
    order.sort_unstable();
    order
}

/// What is known of contexts that were met, each in a place that its number says; a later one takes the place.
pub(crate) struct Survey {
    known: Box<[Option<Known>]>,
    /// The contexts of the number that is being looked at, innermost first.
    path: Vec<(ContextId, MethodId)>,
    /// How many contexts were looked up in the graph.
    #[cfg(test)]
    steps: u64,
}

#[derive(Clone, Copy)]
struct Known {
    context: (ContextId, MethodId),
    lives: bool,
}

/// Deeper than most stacks, and 96 KB.
const PLACES: usize = 1 << 12;

impl Survey {
    pub(crate) fn new() -> Survey {
        Survey {
            known: vec![None; PLACES].into(),
            path: Vec::new(),
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Whether the number is one that this graph gives to `method` and no caller is gone. What is gone never comes back.
    pub(crate) fn lives(&mut self, graph: &Graph, id: ContextId, method: MethodId) -> bool {
        let mut at = (id, method);
        let lives = loop {
            if let Some(known) = self.of(at) {
                break known;
            }
            self.path.push(at);
            #[cfg(test)]
            {
                self.steps += 1;
            }
            match graph.step_back(at.0, at.1) {
                Back::Caller(id, method) => at = (id, method),
                Back::Anchored => break true,
                Back::Gone => break false,
            }
        };
        for context in std::mem::take(&mut self.path) {
            if let Some(place) = self.known.get_mut(place(context)) {
                *place = Some(Known { context, lives });
            }
        }
        lives
    }

    fn of(&self, context: (ContextId, MethodId)) -> Option<bool> {
        let known = (*self.known.get(place(context))?)?;
        (known.context == context).then_some(known.lives)
    }
}

fn place((id, method): (ContextId, MethodId)) -> usize {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = (id.0 ^ u64::from(method.0) << 40).wrapping_mul(MULTIPLIER);
    (mixed >> (u64::BITS - PLACES.trailing_zeros())) as usize
}

/// What lies below a context.
enum Back {
    Caller(ContextId, MethodId),
    /// Anchors that are left live: only the way to the nearest one is to be looked at.
    Anchored,
    Gone,
}

impl Graph {
    fn step_back(&self, id: ContextId, method: MethodId) -> Back {
        let Some(layout) = self.layout_of(self.layout.version(id)) else {
            return Back::Gone;
        };
        match layout.call(id) {
            0 if self.origin(id).is_ok_and(|origin| origin.head == method) => Back::Anchored,
            0 => Back::Gone,
            call => match self.source(layout, id, method, call) {
                Ok((parent, frame)) => Back::Caller(parent, frame.method),
                Err(_) => Back::Gone,
            },
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Encoder, Gone, Layout, Policy, SiteId};

    const DEEP: u32 = 60;
    /// Of each class, which is called from the end of a row of calls.
    const CLASS_EVENTS: u32 = 4;

    /// The first so many classes.
    struct First(u32);

    impl Gone for First {
        fn method(&self, method: MethodId) -> bool {
            (DEEP + 1..=DEEP + self.0).contains(&method.0)
        }

        fn site(&self, _: SiteId) -> bool {
            false
        }
    }

    /// Numbers of events in as many classes, of which the first ones are gone then.
    fn numbers(classes: u32, gone: u32) -> (Graph, Vec<ContextId>) {
        let encoder = Encoder::new(Layout::DEFAULT, Policy::LUCCE, Vec::new());
        let mut below = encoder.root(MethodId(1));
        for method in 2..=DEEP {
            below = encoder.step(
                below,
                SiteId(method),
                MethodId(method - 1),
                MethodId(method),
            );
        }
        let mut numbers = Vec::new();
        for class in DEEP + 1..=DEEP + classes {
            let site = |at: u32| SiteId(class * CLASS_EVENTS * 2 + at);
            let inside = encoder.step(below, site(0), MethodId(DEEP), MethodId(class));
            let events = 1..=CLASS_EVENTS;
            numbers.extend(events.map(|at| encoder.event(inside, site(at), MethodId(class))));
        }
        // As a table of hashes has them.
        numbers.sort_by_key(|number| number.0.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut graph = Graph::new(Layout::DEFAULT);
        encoder.journal(|changes| {
            changes
                .iter()
                .for_each(|change| graph.apply(*change).unwrap())
        });
        graph.sweep(&First(gone));
        (graph, numbers)
    }

    #[test]
    fn a_class_costs_the_same_however_many_there_are_and_however_deep_they_are_called() {
        for classes in [100, 1_000, 10_000] {
            let (graph, numbers) = numbers(classes, classes / 2);
            let mut survey = Survey::new();
            let mut living = 0;
            for (number, _) in ascending(&numbers) {
                living += u32::from(survey.lives(&graph, number, MethodId::EVENT));
            }
            assert_eq!(living, CLASS_EVENTS * (classes - classes / 2));
            // Each number, each class, and the row below, which may leave its place for others.
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
    fn what_is_known_is_what_the_graph_says() {
        let (graph, numbers) = numbers(500, 200);
        let mut survey = Survey::new();
        for number in numbers
            .iter()
            .chain(&[ContextId::UNKNOWN, ContextId(u64::MAX)])
        {
            let decodes = graph.decode(*number, MethodId::EVENT).is_ok();
            assert_eq!(survey.lives(&graph, *number, MethodId::EVENT), decodes);
        }
    }
}
