//! Which measurements of `io.lucce.Allocations` own an allocation, because their code submitted the task or started the thread.
//!
//! Each measurement runs its code from its own call site in `Allocations.run`. With `events=thread`, a task's context continues
//! where the task was submitted. So the call site is in the contexts of everything that the code does, in any thread.

use lucce_callgraph::{ContextFrame, ContextId, MethodId, SiteId};
use lucce_instrument::jdk::tasks::{MethodRole, method_role};
use rustc_hash::FxHashMap;

use crate::counting::CountingParts;
use crate::stack::tasks::MEASURING;

/// Maximum number of simultaneous measurements: the call sites of `Allocations.run`.
pub const MAX_MEASUREMENTS: usize = 64;

/// A set of measurements, by their numbers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct MeasurementSet(u64);

impl MeasurementSet {
    pub fn contains(self, measurement: usize) -> bool {
        self.0 & measurement_bit(measurement) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn insert(&mut self, measurement: usize) {
        self.0 |= measurement_bit(measurement);
    }
}

fn measurement_bit(measurement: usize) -> u64 {
    match measurement < MAX_MEASUREMENTS {
        true => 1 << measurement,
        false => 0,
    }
}

/// The owners of a context's events.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct EventOwnership {
    /// The measurements whose code it is, or whose code submitted it.
    pub owners: MeasurementSet,
    /// Measurements in whose thread it runs although somebody else submitted it: a waiting thread helps others.
    pub hosts: MeasurementSet,
    /// A task whose submission is unknown.
    pub is_unknown_task: bool,
    /// The start of an executor's thread, whose end only the executor decides.
    pub adds_worker: bool,
}

/// Finds the owners of contexts; remembers the roles of methods.
#[derive(Default)]
pub struct OwnershipResolver {
    roles: FxHashMap<MethodId, FrameRole>,
    resolved: FxHashMap<ContextId, Option<EventOwnership>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FrameRole {
    Plain,
    /// `Allocations.run`, with the first of its call sites.
    Measures {
        first_site: u32,
    },
    /// The frame between the frames of a task and the frames of its submission.
    Between,
    /// In place of the frames of a submission that is not known.
    UnknownCaller,
    Jdk(MethodRole),
}

impl OwnershipResolver {
    /// The owners of a context's events. `None`: the context is not in the graph any more.
    pub fn resolve_context(
        &mut self,
        agent: CountingParts<'_>,
        number: ContextId,
    ) -> Option<EventOwnership> {
        if let Some(known) = self.resolved.get(&number) {
            return *known;
        }
        let ownership = agent
            .core
            .encoder
            .decode_context(number, MethodId::EVENT)
            .ok();
        let ownership = ownership.map(|frames| self.resolve_frames(agent, &frames));
        self.resolved.insert(number, ownership);
        ownership
    }

    fn resolve_frames(
        &mut self,
        agent: CountingParts<'_>,
        frames: &[ContextFrame],
    ) -> EventOwnership {
        let roles = frames.iter().map(|frame| self.frame_role(agent, *frame));
        determine_ownership(&roles.collect::<Vec<_>>())
    }

    fn frame_role(&mut self, agent: CountingParts<'_>, frame: ContextFrame) -> (FrameRole, u32) {
        let site = frame.site.0;
        let role = *self
            .roles
            .entry(frame.method)
            .or_insert_with(|| find_role(agent, frame));
        (role, site)
    }
}

fn find_role(agent: CountingParts<'_>, frame: ContextFrame) -> FrameRole {
    if agent.stack.tasks.is_submission_frame(frame.method) {
        return FrameRole::Between;
    }
    if agent.stack.unknown_callers.is_unknown_caller(frame.method) {
        return FrameRole::UnknownCaller;
    }
    let registry = agent.core.registry();
    let names = registry.method(frame.method.0).and_then(|method| {
        let class = registry.class(method.class)?;
        Some((
            registry.name_text(class.name),
            registry.name_text(method.name),
        ))
    });
    match names {
        Some(MEASURING) => {
            let is_here = |site: u32| registry.method_of_site(SiteId(site)) == frame.method;
            let before = (1..=frame.site.0).rev().take_while(|site| is_here(*site));
            let first_site = before.last().unwrap_or(frame.site.0);
            FrameRole::Measures { first_site }
        }
        Some((class, method)) => {
            method_role(class, method).map_or(FrameRole::Plain, FrameRole::Jdk)
        }
        None => FrameRole::Plain,
    }
}

/// Whether one of these methods, innermost first, runs a task that an executor has received, or is about to run one. An unknown
/// method has the number 0.
pub fn any_runs_task(agent: CountingParts<'_>, methods: &[MethodId]) -> bool {
    let role = |method: &MethodId| {
        let jdk = with_method_names(agent, *method, method_role);
        (jdk.flatten().map_or(FrameRole::Plain, FrameRole::Jdk), 0)
    };
    let roles: Vec<_> = methods.iter().map(role).collect();
    // The innermost frame may be about to call the task.
    let is_about_to = roles
        .first()
        .is_some_and(|role| role.0 == FrameRole::Jdk(MethodRole::RunsTask));
    is_about_to || (1..roles.len()).any(|at| runs_task(&roles, at))
}

/// The result of `body` for the names of a method and its class. `None`: the method is unknown.
fn with_method_names<T>(
    agent: CountingParts<'_>,
    method: MethodId,
    body: impl FnOnce(&str, &str) -> T,
) -> Option<T> {
    let registry = agent.core.registry();
    let method = registry.method(method.0)?;
    let class = registry.class(method.class)?;
    Some(body(
        registry.name_text(class.name),
        registry.name_text(method.name),
    ))
}

/// `frames`: the role of each and its site, innermost first.
///
/// A thread's frames, up to `FrameRole::Between`, belong to the task and, below the frame that runs the task, to the thread that
/// took it. If several frames run tasks, the submitted task could be any of them. The frames between them count as the task's.
fn determine_ownership(frames: &[(FrameRole, u32)]) -> EventOwnership {
    let mut ownership = EventOwnership::default();
    let mut is_first = true;
    let mut rest = frames;
    loop {
        let end = rest
            .iter()
            .position(|(role, _)| *role == FrameRole::Between);
        let (own, submission) = match end {
            Some(end) => (rest.get(..end), rest.get(end + 1..)),
            None => (Some(rest), None),
        };
        let own = own.unwrap_or_default();
        let outermost_run = (0..own.len()).rev().find(|at| runs_task(own, *at));
        let is_worker = own
            .iter()
            .any(|frame| frame.0 == FrameRole::Jdk(MethodRole::WorksForExecutor));
        let runs_unknown = outermost_run.is_some() && is_worker && is_first;
        let is_thread_start = submission
            .is_some_and(|frames| frames.first().is_some_and(|frame| starts_thread(*frame)));
        let is_handed = outermost_run.is_some() && submission.is_some() && !is_thread_start;
        for (at, (role, site)) in own.iter().enumerate() {
            let FrameRole::Measures { first_site } = role else {
                continue;
            };
            let measurement = site.saturating_sub(*first_site) as usize;
            match is_handed && outermost_run.is_some_and(|run| at > run) {
                true if is_first => ownership.hosts.insert(measurement),
                true => {}
                false => ownership.owners.insert(measurement),
            }
        }
        ownership.adds_worker |= is_first && adds_worker(own);
        let Some(submission) = submission else {
            // A task that its own thread calls has its caller in the trace.
            ownership.is_unknown_task |= runs_unknown && ownership.owners.is_empty();
            return ownership;
        };
        let is_unknown = submission
            .first()
            .is_some_and(|(role, _)| *role == FrameRole::UnknownCaller);
        if is_unknown || is_thread_start && adds_worker(submission) {
            // A thread of an executor: its tasks have other owners than the thread.
            ownership.is_unknown_task |= runs_unknown && ownership.owners.is_empty();
            return ownership;
        }
        is_first = false;
        rest = submission;
    }
}

/// Whether the frame runs a task. A frame that looks for the next task runs none.
fn runs_task(frames: &[(FrameRole, u32)], at: usize) -> bool {
    let is = |at: usize, role| {
        frames
            .get(at)
            .is_some_and(|frame| frame.0 == FrameRole::Jdk(role))
    };
    is(at, MethodRole::RunsTask) && at > 0 && !is(at - 1, MethodRole::BetweenTasks)
}

fn starts_thread((role, _): (FrameRole, u32)) -> bool {
    role == FrameRole::Jdk(MethodRole::StartsThread)
}

/// Whether an executor starts a thread here, for arbitrary tasks.
fn adds_worker(frames: &[(FrameRole, u32)]) -> bool {
    let own = frames
        .iter()
        .take_while(|(role, _)| *role != FrameRole::Between);
    frames.first().is_some_and(|frame| starts_thread(*frame))
        && own
            .into_iter()
            .any(|(role, _)| *role == FrameRole::Jdk(MethodRole::AddsWorker))
}

#[cfg(test)]
mod ownership_tests {
    use super::*;

    const PLAIN: (FrameRole, u32) = (FrameRole::Plain, 9);
    const BETWEEN: (FrameRole, u32) = (FrameRole::Between, 9);
    const RUNS: (FrameRole, u32) = (FrameRole::Jdk(MethodRole::RunsTask), 9);
    const STARTS: (FrameRole, u32) = (FrameRole::Jdk(MethodRole::StartsThread), 9);
    const LOOP: (FrameRole, u32) = (FrameRole::Jdk(MethodRole::WorksForExecutor), 9);
    const NEXT: (FrameRole, u32) = (FrameRole::Jdk(MethodRole::BetweenTasks), 9);
    const ADDS: (FrameRole, u32) = (FrameRole::Jdk(MethodRole::AddsWorker), 9);

    fn measures(number: u32) -> (FrameRole, u32) {
        (FrameRole::Measures { first_site: 100 }, 100 + number)
    }

    #[derive(PartialEq, Debug)]
    struct OwnerLists {
        owners: Vec<usize>,
        hosts: Vec<usize>,
        is_unknown_task: bool,
    }

    fn lists(owners: &[usize], hosts: &[usize], is_unknown_task: bool) -> OwnerLists {
        OwnerLists {
            owners: owners.to_vec(),
            hosts: hosts.to_vec(),
            is_unknown_task,
        }
    }

    fn owners_of(frames: &[(FrameRole, u32)]) -> OwnerLists {
        let ownership = determine_ownership(frames);
        let list =
            |set: MeasurementSet| (0..MAX_MEASUREMENTS).filter(|n| set.contains(*n)).collect();
        OwnerLists {
            owners: list(ownership.owners),
            hosts: list(ownership.hosts),
            is_unknown_task: ownership.is_unknown_task,
        }
    }

    #[test]
    fn what_the_code_does_itself_is_its_own() {
        assert_eq!(
            owners_of(&[PLAIN, measures(3), PLAIN]),
            lists(&[3], &[], false)
        );
        assert_eq!(owners_of(&[PLAIN]), lists(&[], &[], false));
        let nested = [PLAIN, measures(1), PLAIN, measures(0), PLAIN];
        assert_eq!(owners_of(&nested), lists(&[0, 1], &[], false));
    }

    #[test]
    fn tasks_and_threads_are_whose_code_submitted_them() {
        let task = [PLAIN, RUNS, PLAIN, BETWEEN, PLAIN, measures(2), PLAIN];
        assert_eq!(owners_of(&task), lists(&[2], &[], false));
        let thread = [PLAIN, BETWEEN, STARTS, PLAIN, measures(2), PLAIN];
        assert_eq!(owners_of(&thread), lists(&[2], &[], false));
        let other = [PLAIN, RUNS, PLAIN, BETWEEN, PLAIN];
        assert_eq!(owners_of(&other), lists(&[], &[], false));
        // A task that a task has submitted.
        let hops = [
            PLAIN,
            RUNS,
            LOOP,
            BETWEEN,
            PLAIN,
            RUNS,
            LOOP,
            BETWEEN,
            PLAIN,
            measures(0),
        ];
        assert_eq!(owners_of(&hops), lists(&[0], &[], false));
    }

    #[test]
    fn a_thread_that_helps_while_it_waits_does_not_own_the_task() {
        let helps = [
            PLAIN,
            RUNS,
            PLAIN,
            measures(1),
            PLAIN,
            BETWEEN,
            PLAIN,
            measures(4),
        ];
        assert_eq!(owners_of(&helps), lists(&[4], &[1], false));
        // A measurement within the task belongs to the task's own code.
        let within = [PLAIN, measures(5), RUNS, PLAIN, BETWEEN, PLAIN, measures(4)];
        assert_eq!(owners_of(&within), lists(&[4, 5], &[], false));
    }

    #[test]
    fn a_task_without_a_known_submitter_has_no_owner() {
        let unknown = (FrameRole::UnknownCaller, 9);
        let task = [PLAIN, RUNS, LOOP, BETWEEN, unknown];
        assert_eq!(owners_of(&task), lists(&[], &[], true));
        let within = [PLAIN, measures(5), RUNS, LOOP, BETWEEN, unknown];
        assert_eq!(owners_of(&within), lists(&[5], &[], false));
    }

    #[test]
    fn an_executors_thread_is_not_whose_code_made_it() {
        let idle = [PLAIN, BETWEEN, STARTS, ADDS, PLAIN, measures(0)];
        assert_eq!(owners_of(&idle), lists(&[], &[], false));
        let next = [
            PLAIN,
            NEXT,
            RUNS,
            LOOP,
            BETWEEN,
            STARTS,
            ADDS,
            PLAIN,
            measures(0),
        ];
        assert_eq!(owners_of(&next), lists(&[], &[], false));
        let unknown = [
            PLAIN,
            RUNS,
            LOOP,
            PLAIN,
            BETWEEN,
            STARTS,
            ADDS,
            PLAIN,
            measures(0),
        ];
        assert_eq!(owners_of(&unknown), lists(&[], &[], true));
        assert!(determine_ownership(&[STARTS, ADDS, PLAIN, measures(0)]).adds_worker);
        assert!(!determine_ownership(&[STARTS, PLAIN, measures(0)]).adds_worker);
    }

    #[test]
    fn a_task_that_nobody_submitted_is_of_its_caller_or_of_nobody_known() {
        let called = [PLAIN, RUNS, PLAIN, measures(0), PLAIN];
        assert_eq!(owners_of(&called), lists(&[0], &[], false));
        assert_eq!(
            owners_of(&[PLAIN, RUNS, LOOP, PLAIN]),
            lists(&[], &[], true)
        );
        // By another thread without a measurement.
        assert_eq!(owners_of(&[PLAIN, RUNS, PLAIN]), lists(&[], &[], false));
        // In a task's thread, called by the measured code.
        let inner = [PLAIN, RUNS, PLAIN, measures(0), RUNS, PLAIN];
        assert_eq!(owners_of(&inner), lists(&[0], &[], false));
    }
}
