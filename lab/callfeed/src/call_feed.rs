//! Feeds a run's calls to a builder of k-calling contexts: from the events of a log, or from a recording of calls.

use std::collections::HashMap;

use lucce_callgraph::{MethodId, SiteId};
use lucce_decoder::{
    CodeSymbols, ContextList, EventContext, Profile, ProgressTick, TraceId, TraceTree, TraceVisit,
};
use lucce_kcontexts::{CallLabel, CallListener, KContextError, TraceThreadId};
use lucce_recording::{CallEdge, LogDamage, ProgramThreadId, RecordedStep, Recording};

use crate::call_labels::{CallLabels, CallTarget};

/// The measure of a k-calling context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallMeasure {
    /// Calls of a method.
    Calls,
    /// Events, in the method where they happen.
    Events,
    /// The events' values: bytes, nanoseconds, …
    Value,
}

/// The innermost call of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EventLeaf {
    #[default]
    Method,
    /// One more call, of the allocated type.
    Type,
}

/// How reading the calls ended.
#[derive(Default, Debug)]
pub struct CallFeedOutcome {
    /// The damage at which reading stopped; all calls before it were fed.
    pub damage: Option<LogDamage>,
    /// Whether the recording has more steps than `limit`.
    pub is_cut: bool,
}

/// Feeds each context of a log as the calls that lead to its events, by call labels. Returns the contexts, and what the
/// log does not explain.
///
/// # Errors
/// The listener's errors.
pub fn feed_log_calls(
    profile: &Profile,
    (count, origin): (CallMeasure, EventLeaf),
    labels: &mut CallLabels,
    listener: &mut impl CallListener,
    tick: ProgressTick<'_>,
) -> Result<ContextList, KContextError> {
    let events = profile.events_of_kind(&profile.main_kind().name);
    let contexts = profile.list_contexts_of(&events, tick);
    let mut traces = TraceTree::new(profile);
    let ends = contexts.list.iter().filter_map(|context| {
        tick(1);
        let trace = traces.insert_trace(context.id).ok()?;
        Some((trace, measure_weight(count, context)))
    });
    let mut ends: Vec<(TraceId, u64)> = ends.collect();
    ends.sort_by_key(|(trace, _)| *trace);
    feed_trace_tree(&traces, &ends, (&profile.code, origin), labels, listener)?;
    Ok(contexts)
}

/// Enters each frame of the tree once, however many traces share it. `ends`: the weight at the end of each trace, in the
/// order of traces.
fn feed_trace_tree(
    traces: &TraceTree<'_>,
    ends: &[(TraceId, u64)],
    (code, origin): (&CodeSymbols, EventLeaf),
    labels: &mut CallLabels,
    listener: &mut impl CallListener,
) -> Result<(), KContextError> {
    const THREAD: TraceThreadId = TraceThreadId(0);
    let calls = label_trace_calls(traces, labels);
    traces.visit_traces(&mut |visit| {
        let trace = match visit {
            TraceVisit::Begin(trace) => trace,
            TraceVisit::End(_) => return listener.leave_call(THREAD),
        };
        let call = calls
            .get(trace.to_u32() as usize)
            .copied()
            .unwrap_or(CallLabel(0));
        listener.enter_call(THREAD, call.into())?;
        let from = ends.partition_point(|(end, _)| *end < trace);
        let here = ends.get(from..).unwrap_or_default().iter();
        for (_, weight) in here.take_while(|(end, _)| *end == trace) {
            let site = traces
                .frames_of_trace(trace)
                .next()
                .map_or(SiteId::NONE, |leaf| leaf.site);
            match allocation_label(code, site, origin, labels) {
                None => listener.add_count(THREAD, *weight)?,
                Some(kind) => {
                    listener.enter_call(THREAD, kind.into())?;
                    listener.add_count(THREAD, *weight)?;
                    listener.leave_call(THREAD)?;
                }
            }
        }
        Ok(())
    })
}

/// For each trace, the label of the call of its innermost method.
fn label_trace_calls(traces: &TraceTree<'_>, labels: &mut CallLabels) -> Vec<CallLabel> {
    let calls = traces.nodes().map(|(caller, frame, _)| {
        let caller = caller.and_then(|caller| traces.frames_of_trace(caller).next());
        let site = caller.map_or(SiteId::ENTRY, |caller| caller.site);
        labels.label_call(site, CallTarget::Method(frame.method))
    });
    calls.collect()
}

fn measure_weight(count: CallMeasure, context: &EventContext) -> u64 {
    match count {
        CallMeasure::Value => context.value,
        CallMeasure::Calls | CallMeasure::Events => context.count,
    }
}

fn allocation_label(
    code: &CodeSymbols,
    site: SiteId,
    origin: EventLeaf,
    labels: &mut CallLabels,
) -> Option<CallLabel> {
    let name = code
        .allocated_type(site)
        .filter(|_| origin == EventLeaf::Type)?;
    Some(labels.label_call(site, CallTarget::Type(name.to_owned())))
}

/// Names of the methods and sites of a recording.
#[must_use]
pub fn recorded_code(recording: &Recording) -> CodeSymbols {
    let mut code = CodeSymbols::default();
    for record in recording.names() {
        code.add_record(record);
    }
    code
}

/// Feeds recorded calls, by call labels, up to `limit` steps. Recordings have no bytes, so [`CallMeasure::Value`] counts
/// nothing.
///
/// # Errors
/// The listener's errors. A damaged recording is no error, see [`CallFeedOutcome`].
pub fn feed_recorded_calls(
    recording: &Recording,
    (count, origin): (CallMeasure, EventLeaf),
    labels: &mut CallLabels,
    listener: &mut impl CallListener,
    limit: u64,
    tick: ProgressTick<'_>,
) -> Result<CallFeedOutcome, KContextError> {
    let code = recorded_code(recording);
    let mut feeder = CallFeeder {
        calls: label_calls(recording, labels),
        allocations: label_allocations(recording, &code, origin, labels),
        count,
        block: Vec::new(),
        thread: ProgramThreadId(0),
        block_time: 0,
        last_block_times: HashMap::new(),
        reported_time: None,
        listener,
    };
    let mut steps = recording.steps();
    let mut outcome = CallFeedOutcome::default();
    for _ in 0..limit {
        match steps.next() {
            Some(Ok((thread, step))) => feeder.push_step(thread, steps.nanos(), step, tick)?,
            Some(Err(damage)) => outcome.damage = Some(damage),
            None => return feeder.flush_block(tick).map(|()| outcome),
        }
    }
    feeder.flush_block(tick)?;
    outcome.is_cut = steps.next().is_some();
    Ok(outcome)
}

fn label_calls(recording: &Recording, labels: &mut CallLabels) -> HashMap<CallEdge, CallLabel> {
    let calls = recording.edges().iter();
    let calls = calls.filter(|edge| edge.callee != MethodId::EVENT);
    let label = |edge: &CallEdge| {
        (
            *edge,
            labels.label_call(edge.site, CallTarget::Method(edge.callee)),
        )
    };
    calls.map(label).collect()
}

fn label_allocations(
    recording: &Recording,
    code: &CodeSymbols,
    origin: EventLeaf,
    labels: &mut CallLabels,
) -> HashMap<SiteId, CallLabel> {
    let events = recording.edges().iter();
    let events = events.filter(|edge| edge.callee == MethodId::EVENT);
    let label = |edge: &CallEdge| {
        Some((
            edge.site,
            allocation_label(code, edge.site, origin, labels)?,
        ))
    };
    events.filter_map(label).collect()
}

/// Nanoseconds between two clock readings for the listener.
const CLOCK_STEP_NS: u64 = 10_000;

/// Replays blocks of steps with times. A recording has one time per block, of its writing. Steps are assumed to be evenly
/// spread over the time since the thread's previous block.
struct CallFeeder<'l, L> {
    calls: HashMap<CallEdge, CallLabel>,
    allocations: HashMap<SiteId, CallLabel>,
    count: CallMeasure,
    /// The steps of one block, its thread and when it was written.
    block: Vec<RecordedStep>,
    thread: ProgramThreadId,
    block_time: u64,
    /// When the last block of each thread was written.
    last_block_times: HashMap<ProgramThreadId, u64>,
    reported_time: Option<u64>,
    listener: &'l mut L,
}

impl<L: CallListener> CallFeeder<'_, L> {
    fn push_step(
        &mut self,
        thread: ProgramThreadId,
        nanos: u64,
        step: RecordedStep,
        tick: ProgressTick<'_>,
    ) -> Result<(), KContextError> {
        if (thread, nanos) != (self.thread, self.block_time) {
            self.flush_block(tick)?;
            (self.thread, self.block_time) = (thread, nanos);
        }
        self.block.push(step);
        Ok(())
    }

    fn flush_block(&mut self, tick: ProgressTick<'_>) -> Result<(), KContextError> {
        let block = std::mem::take(&mut self.block);
        let since = self.last_block_times.insert(self.thread, self.block_time);
        let since = since.unwrap_or(self.block_time);
        let span = u128::from(self.block_time.saturating_sub(since));
        for (at, step) in block.iter().enumerate() {
            let passed = span * at as u128 / block.len() as u128;
            self.report_time(since.saturating_add(passed as u64));
            self.feed_step(*step)?;
        }
        tick(block.len() as u64);
        self.block = block;
        self.block.clear();
        Ok(())
    }

    fn report_time(&mut self, nanos: u64) {
        let nanos = nanos - nanos % CLOCK_STEP_NS;
        if self.reported_time.replace(nanos) != Some(nanos) {
            self.listener.set_time(nanos);
        }
    }

    fn feed_step(&mut self, step: RecordedStep) -> Result<(), KContextError> {
        let thread = TraceThreadId(u64::from(self.thread.0));
        match step {
            RecordedStep::Start(_) => Ok(()),
            RecordedStep::Enter(edge) => self.enter_call(thread, edge),
            RecordedStep::Event(edge) => self.count_event(thread, edge),
            RecordedStep::Exit => self.listener.leave_call(thread),
            RecordedStep::Unwind(frames) => {
                (0..frames).try_for_each(|_| self.listener.leave_call(thread))
            }
        }
    }

    fn enter_call(&mut self, thread: TraceThreadId, edge: CallEdge) -> Result<(), KContextError> {
        let Some(call) = self.calls.get(&edge) else {
            return Ok(());
        };
        match self.count {
            CallMeasure::Calls => self.listener.enter_and_count(thread, (*call).into()),
            CallMeasure::Events | CallMeasure::Value => {
                self.listener.enter_call(thread, (*call).into())
            }
        }
    }

    fn count_event(&mut self, thread: TraceThreadId, edge: CallEdge) -> Result<(), KContextError> {
        if self.count != CallMeasure::Events {
            return Ok(());
        }
        match self.allocations.get(&edge.site) {
            None => self.listener.add_count(thread, 1),
            Some(kind) => {
                self.listener.enter_and_count(thread, (*kind).into())?;
                self.listener.leave_call(thread)
            }
        }
    }
}
