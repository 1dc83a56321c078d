//! A first pass: what a recording holds, and what a static encoding must know in advance.

use lucce_callgraph::CallEdge;
use lucce_callgraph::numbering::{FastMap, WeightedEdge};
use lucce_recording::{LogDamage, ProgramThreadId, RecordedStep, Recording};

use crate::{DepthDistribution, Tick};

/// See the module's description.
#[derive(Default)]
pub struct RecordingSurvey {
    pub steps: u64,
    pub calls: u64,
    pub events: u64,
    pub threads: u64,
    pub methods: u64,
    /// Different calls and how often each was made, in the order in which they were seen; and the
    /// same of events.
    pub profile: Vec<WeightedEdge>,
    pub event_profile: Vec<WeightedEdge>,
    /// Nodes of the calling context tree: different contexts of calls, and of events.
    pub contexts: u64,
    pub event_contexts: u64,
    pub depths: DepthDistribution,
    pub damage: Option<LogDamage>,
}

impl RecordingSurvey {
    #[must_use]
    pub fn from_recording(recording: &Recording, tick: Tick<'_>) -> RecordingSurvey {
        let mut survey = RecordingSurvey::default();
        let mut tree = ContextTreeIndex::default();
        let mut index: FastMap<CallEdge, usize> = FastMap::default();
        let mut stacks: Vec<Vec<u32>> = Vec::new();
        for item in recording.steps() {
            let (thread, step) = match item {
                Ok(item) => item,
                Err(damage) => {
                    survey.damage = Some(damage);
                    break;
                }
            };
            survey.steps += 1;
            if survey.steps.is_multiple_of(TICK) {
                tick(TICK);
            }
            survey.add_step(
                &mut tree,
                &mut index,
                thread_entry(&mut stacks, thread),
                step,
            );
        }
        survey.contexts = tree.calls;
        survey.event_contexts = tree.events;
        let mut callees: Vec<u32> = survey
            .profile
            .iter()
            .map(|weighted| weighted.edge.callee.0)
            .collect();
        callees.sort_unstable();
        callees.dedup();
        survey.methods = callees.len() as u64;
        survey
    }

    fn add_step(
        &mut self,
        tree: &mut ContextTreeIndex,
        index: &mut FastMap<CallEdge, usize>,
        stack: &mut Vec<u32>,
        step: RecordedStep,
    ) {
        let top = stack.last().copied().unwrap_or(0);
        match step {
            RecordedStep::Start(_) => self.threads += 1,
            RecordedStep::Enter(edge) => {
                self.calls += 1;
                count_edge(&mut self.profile, index, edge);
                stack.push(tree.find_or_add_child(top, edge, false));
                self.depths.add_depth(stack.len());
            }
            RecordedStep::Event(edge) => {
                self.events += 1;
                count_edge(&mut self.event_profile, index, edge);
                tree.find_or_add_child(top, edge, true);
            }
            RecordedStep::Exit => {
                stack.pop();
            }
            RecordedStep::Unwind(frames) => {
                stack.truncate(stack.len().saturating_sub(frames as usize));
            }
        }
    }

    /// Whether numbers are requested at events; a recording without events requests one at every call.
    #[must_use]
    pub fn asks_at_events(&self) -> bool {
        self.events > 0
    }

    /// Number of different contexts that are requested.
    #[must_use]
    pub fn requested_contexts(&self) -> u64 {
        match self.asks_at_events() {
            true => self.event_contexts,
            false => self.contexts,
        }
    }
}

/// Steps between two ticks.
pub(crate) const TICK: u64 = 1 << 16;

fn count_edge(
    profile: &mut Vec<WeightedEdge>,
    index: &mut FastMap<CallEdge, usize>,
    edge: CallEdge,
) {
    let at = *index.entry(edge).or_insert(profile.len());
    match profile.get_mut(at) {
        Some(known) => known.weight += 1,
        None => profile.push(WeightedEdge { edge, weight: 1 }),
    }
}

fn thread_entry<T: Default>(all: &mut Vec<T>, thread: ProgramThreadId) -> &mut T {
    let index = thread.0 as usize;
    if index >= all.len() {
        all.resize_with(index + 1, T::default);
    }
    match all.get_mut(index) {
        Some(found) => found,
        // The vector was just made long enough.
        None => unreachable!(),
    }
}

/// The calling context tree; node 0 is the root, whose children are threads' entries.
#[derive(Default)]
struct ContextTreeIndex {
    children: FastMap<(u32, CallEdge), u32>,
    calls: u64,
    events: u64,
}

impl ContextTreeIndex {
    fn find_or_add_child(&mut self, parent: u32, edge: CallEdge, is_event: bool) -> u32 {
        let next = self.children.len() as u32 + 1;
        let child = *self.children.entry((parent, edge)).or_insert(next);
        if child == next {
            self.calls += u64::from(!is_event);
            self.events += u64::from(is_event);
        }
        child
    }
}
