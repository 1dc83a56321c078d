//! A run's calls, told to a builder of k-calling contexts: from a log's events, or as recorded.

use std::collections::HashMap;

use lucce_callgraph::{MethodId, SiteId};
use lucce_kcontexts::{Error, Label, Listener, Thread};
use lucce_recording::{Damage, Edge, Recording, Step, ThreadId};

use crate::code::Code;
use crate::contexts::{Context, Contexts};
use crate::labels::{Labels, Routine};
use crate::profile::{Profile, Tick};
use crate::traces::{Trace, Traces, Visit};

/// What counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// Each call of a method.
    Calls,
    /// Each event, in the method where it happens.
    Events,
    /// The bytes that each event allocates.
    Bytes,
}

/// Where events end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Origin {
    #[default]
    Method,
    /// One more step, into the type that is allocated.
    Type,
}

/// How the telling ended.
#[derive(Default, Debug)]
pub struct Told {
    /// The recording is damaged here; what precedes it was told.
    pub damage: Option<Damage>,
    /// More steps than were asked for.
    pub is_cut: bool,
}

/// Tells each context of a log as calls that lead to its events, by the numbers of calls. Gives those
/// contexts, and what the log does not explain.
///
/// # Errors
/// The listener's.
pub fn of_log(
    profile: &Profile,
    (count, origin): (Count, Origin),
    labels: &mut Labels,
    listener: &mut impl Listener,
    tick: Tick<'_>,
) -> Result<Contexts, Error> {
    let events = profile.events_of(&profile.main_kind().name);
    let contexts = profile.contexts_of(&events, tick);
    let mut traces = Traces::new(profile);
    let ends = contexts.list.iter().filter_map(|context| {
        tick(1);
        let trace = traces.of(context.id).ok()?;
        Some((trace, weight(count, context)))
    });
    let mut ends: Vec<(Trace, u64)> = ends.collect();
    ends.sort_by_key(|(trace, _)| *trace);
    tell(&traces, &ends, (&profile.code, origin), labels, listener)?;
    Ok(contexts)
}

/// Each frame of the tree is entered once, whatever the number of traces that it is in. `ends`: what counts
/// at the end of each trace, in their order.
fn tell(
    traces: &Traces<'_>,
    ends: &[(Trace, u64)],
    (code, origin): (&Code, Origin),
    labels: &mut Labels,
    listener: &mut impl Listener,
) -> Result<(), Error> {
    const THREAD: Thread = Thread(0);
    let calls = calls_of(traces, labels);
    traces.walk(&mut |visit| {
        let trace = match visit {
            Visit::Begin(trace) => trace,
            Visit::End(_) => return listener.leave(THREAD),
        };
        let call = calls.get(trace.index()).copied().unwrap_or(Label(0));
        listener.enter(THREAD, call.into())?;
        let from = ends.partition_point(|(end, _)| *end < trace);
        let here = ends.get(from..).unwrap_or_default().iter();
        for (_, weight) in here.take_while(|(end, _)| *end == trace) {
            let site = traces
                .frames(trace)
                .next()
                .map_or(SiteId::NONE, |leaf| leaf.site);
            match allocated(code, site, origin, labels) {
                None => listener.count(THREAD, *weight)?,
                Some(kind) => {
                    listener.enter(THREAD, kind.into())?;
                    listener.count(THREAD, *weight)?;
                    listener.leave(THREAD)?;
                }
            }
        }
        Ok(())
    })
}

/// By trace, the call of its innermost frame's method.
fn calls_of(traces: &Traces<'_>, labels: &mut Labels) -> Vec<Label> {
    let calls = traces.nodes().map(|(caller, frame, _)| {
        let caller = caller.and_then(|caller| traces.frames(caller).next());
        let site = caller.map_or(SiteId::ENTRY, |caller| caller.site);
        labels.call(site, Routine::Method(frame.method))
    });
    calls.collect()
}

fn weight(count: Count, context: &Context) -> u64 {
    match count {
        Count::Bytes => context.value,
        Count::Calls | Count::Events => context.count,
    }
}

fn allocated(code: &Code, site: SiteId, origin: Origin, labels: &mut Labels) -> Option<Label> {
    let name = code.allocated(site).filter(|_| origin == Origin::Type)?;
    Some(labels.call(site, Routine::Type(name.to_owned())))
}

/// The names of a recording's methods and sites.
impl From<&Recording> for Code {
    fn from(recording: &Recording) -> Self {
        let mut code = Code::default();
        for record in recording.names() {
            code.record(record);
        }
        code
    }
}

/// Tells recorded calls, by the numbers of calls; [`Count::Bytes`] counts nothing, for recordings
/// have none. `limit`: the number of steps after which it ends.
///
/// # Errors
/// The listener's. A damaged recording is no error, see [`Told`].
pub fn of_recording(
    recording: &Recording,
    (count, origin): (Count, Origin),
    labels: &mut Labels,
    listener: &mut impl Listener,
    limit: u64,
    tick: Tick<'_>,
) -> Result<Told, Error> {
    let code = Code::from(recording);
    let mut teller = Teller {
        calls: calls(recording, labels),
        allocations: allocations(recording, &code, origin, labels),
        count,
        block: Vec::new(),
        thread: ThreadId(0),
        until: 0,
        since: HashMap::new(),
        said: None,
        listener,
    };
    let mut steps = recording.steps();
    let mut told = Told::default();
    for _ in 0..limit {
        match steps.next() {
            Some(Ok((thread, step))) => teller.step(thread, steps.nanos(), step, tick)?,
            Some(Err(damage)) => told.damage = Some(damage),
            None => return teller.flush(tick).map(|()| told),
        }
    }
    teller.flush(tick)?;
    told.is_cut = steps.next().is_some();
    Ok(told)
}

fn calls(recording: &Recording, labels: &mut Labels) -> HashMap<Edge, Label> {
    let calls = recording.edges().iter();
    let calls = calls.filter(|edge| edge.callee != MethodId::EVENT);
    let label = |edge: &Edge| (*edge, labels.call(edge.site, Routine::Method(edge.callee)));
    calls.map(label).collect()
}

fn allocations(
    recording: &Recording,
    code: &Code,
    origin: Origin,
    labels: &mut Labels,
) -> HashMap<SiteId, Label> {
    let events = recording.edges().iter();
    let events = events.filter(|edge| edge.callee == MethodId::EVENT);
    let label = |edge: &Edge| Some((edge.site, allocated(code, edge.site, origin, labels)?));
    events.filter_map(label).collect()
}

/// The clock is said again after so many nanoseconds.
const TICK: u64 = 10_000;

/// A recording tells the time once per block of a thread's steps, when it is written. Steps are
/// taken to be evenly spread over the time since the thread's block before.
struct Teller<'l, L> {
    calls: HashMap<Edge, Label>,
    allocations: HashMap<SiteId, Label>,
    count: Count,
    /// The steps of one block, its thread and when it was written.
    block: Vec<Step>,
    thread: ThreadId,
    until: u64,
    /// When the last block of each thread was written.
    since: HashMap<ThreadId, u64>,
    said: Option<u64>,
    listener: &'l mut L,
}

impl<L: Listener> Teller<'_, L> {
    fn step(
        &mut self,
        thread: ThreadId,
        nanos: u64,
        step: Step,
        tick: Tick<'_>,
    ) -> Result<(), Error> {
        if (thread, nanos) != (self.thread, self.until) {
            self.flush(tick)?;
            (self.thread, self.until) = (thread, nanos);
        }
        self.block.push(step);
        Ok(())
    }

    fn flush(&mut self, tick: Tick<'_>) -> Result<(), Error> {
        let block = std::mem::take(&mut self.block);
        let since = self.since.insert(self.thread, self.until);
        let since = since.unwrap_or(self.until);
        let span = u128::from(self.until.saturating_sub(since));
        for (at, step) in block.iter().enumerate() {
            let passed = span * at as u128 / block.len() as u128;
            self.say(since.saturating_add(passed as u64));
            self.tell(*step)?;
        }
        tick(block.len() as u64);
        self.block = block;
        self.block.clear();
        Ok(())
    }

    fn say(&mut self, nanos: u64) {
        let nanos = nanos - nanos % TICK;
        if self.said.replace(nanos) != Some(nanos) {
            self.listener.time(nanos);
        }
    }

    fn tell(&mut self, step: Step) -> Result<(), Error> {
        let thread = Thread(u64::from(self.thread.0));
        match step {
            Step::Start(_) => Ok(()),
            Step::Enter(edge) => self.enter(thread, edge),
            Step::Event(edge) => self.event(thread, edge),
            Step::Exit => self.listener.leave(thread),
            Step::Unwind(frames) => (0..frames).try_for_each(|_| self.listener.leave(thread)),
        }
    }

    fn enter(&mut self, thread: Thread, edge: Edge) -> Result<(), Error> {
        let Some(call) = self.calls.get(&edge) else {
            return Ok(());
        };
        match self.count {
            Count::Calls => self.listener.call(thread, (*call).into()),
            Count::Events | Count::Bytes => self.listener.enter(thread, (*call).into()),
        }
    }

    fn event(&mut self, thread: Thread, edge: Edge) -> Result<(), Error> {
        if self.count != Count::Events {
            return Ok(());
        }
        match self.allocations.get(&edge.site) {
            None => self.listener.count(thread, 1),
            Some(kind) => {
                self.listener.call(thread, (*kind).into())?;
                self.listener.leave(thread)
            }
        }
    }
}
