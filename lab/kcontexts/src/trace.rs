//! Calls in memory, checked, to be heard any number of times.

use rustc_hash::FxHashMap;

use crate::error::KContextError;
use crate::ids::{CallLabel, LabeledCallee, TraceThreadId};
use crate::listener::CallListener;
use crate::stacks::ThreadStacks;

/// What happened, in order.
#[derive(Default)]
pub struct CallTrace {
    labels: u32,
    events: Vec<TraceEvent>,
    stacks: ThreadStacks<CallLabel>,
    current: Option<TraceThreadId>,
    /// Callees by caller, numbered from 0 for each; a thread's first calls have no caller.
    slots: FxHashMap<(Option<CallLabel>, CallLabel), u32>,
    fan_out: FxHashMap<Option<CallLabel>, u32>,
    calls: u64,
    timed: bool,
}

/// 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    Enter(LabeledCallee),
    /// An enter that counts 1.
    Call(LabeledCallee),
    Count(u64),
    Leave,
    /// What follows happens in this thread.
    Thread(TraceThreadId),
    /// Nanoseconds since the stream's start.
    Time(u64),
}

impl CallTrace {
    /// Of labels below `labels`.
    #[must_use]
    pub fn new(labels: u32) -> Self {
        CallTrace {
            labels,
            ..CallTrace::default()
        }
    }

    /// Tells a listener everything.
    ///
    /// # Errors
    /// The listener's own: calls are in order here.
    pub fn replay(&self, listener: &mut impl CallListener) -> Result<(), KContextError> {
        let mut thread = TraceThreadId(0);
        for event in &self.events {
            match *event {
                TraceEvent::Enter(callee) => listener.enter_call(thread, callee)?,
                TraceEvent::Call(callee) => listener.enter_and_count(thread, callee)?,
                TraceEvent::Count(weight) => listener.add_count(thread, weight)?,
                TraceEvent::Leave => listener.leave_call(thread)?,
                TraceEvent::Thread(next) => thread = next,
                TraceEvent::Time(nanos) => listener.set_time(nanos),
            }
        }
        Ok(())
    }

    /// The same calls, where label n is called `names[n]`.
    ///
    /// # Errors
    /// A label has no name.
    pub fn relabel_trace(&self, names: &[CallLabel]) -> Result<CallTrace, KContextError> {
        let labels = names.iter().map(|label| label.0.saturating_add(1));
        let mut trace = CallTrace::new(labels.max().unwrap_or(0));
        self.replay(&mut RelabelingListener {
            names,
            trace: &mut trace,
        })?;
        Ok(trace)
    }

    #[must_use]
    pub fn events(&self) -> &[TraceEvent] {
        &self.events
    }

    /// What was counted: nodes of the call tree, if each call counts 1.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// It tells the time.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// Pairs of caller and callee.
    #[must_use]
    pub fn edges(&self) -> usize {
        let called = self.slots.keys().filter(|(caller, _)| caller.is_some());
        called.count()
    }

    fn record_enter(
        &mut self,
        thread: TraceThreadId,
        label: CallLabel,
    ) -> Result<LabeledCallee, KContextError> {
        if label.0 >= self.labels {
            return Err(KContextError::UnknownLabel(label, self.labels));
        }
        self.switch_thread(thread);
        let stack = self.stacks.stack_mut(thread);
        let caller = stack.last().copied();
        stack.push(label);
        Ok(self.number_callee(caller, label))
    }

    fn number_callee(&mut self, caller: Option<CallLabel>, label: CallLabel) -> LabeledCallee {
        let slot = self.slots.entry((caller, label)).or_insert_with(|| {
            let next = self.fan_out.entry(caller).or_insert(0);
            *next += 1;
            *next - 1
        });
        LabeledCallee { label, slot: *slot }
    }

    fn switch_thread(&mut self, thread: TraceThreadId) {
        if self.current.is_none_or(|current| current != thread) {
            self.current = Some(thread);
            self.events.push(TraceEvent::Thread(thread));
        }
    }
}

impl CallListener for CallTrace {
    fn enter_call(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        let callee = self.record_enter(thread, callee.label)?;
        self.events.push(TraceEvent::Enter(callee));
        Ok(())
    }

    fn enter_and_count(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        let callee = self.record_enter(thread, callee.label)?;
        self.events.push(TraceEvent::Call(callee));
        self.calls = self.calls.saturating_add(1);
        Ok(())
    }

    fn add_count(&mut self, thread: TraceThreadId, weight: u64) -> Result<(), KContextError> {
        if self.stacks.stack_mut(thread).is_empty() {
            return Err(KContextError::NothingEntered(thread));
        }
        self.switch_thread(thread);
        self.events.push(TraceEvent::Count(weight));
        self.calls = self.calls.saturating_add(weight);
        Ok(())
    }

    fn leave_call(&mut self, thread: TraceThreadId) -> Result<(), KContextError> {
        let left = self.stacks.stack_mut(thread).pop();
        left.ok_or(KContextError::NothingToLeave(thread))?;
        self.switch_thread(thread);
        self.events.push(TraceEvent::Leave);
        Ok(())
    }

    fn set_time(&mut self, nanos: u64) {
        self.timed = true;
        self.events.push(TraceEvent::Time(nanos));
    }
}

struct RelabelingListener<'a> {
    names: &'a [CallLabel],
    trace: &'a mut CallTrace,
}

impl RelabelingListener<'_> {
    fn rename_callee(&self, callee: LabeledCallee) -> Result<LabeledCallee, KContextError> {
        let name = self.names.get(callee.label.0 as usize);
        let unknown = KContextError::UnknownLabel(callee.label, self.names.len() as u32);
        name.map(|name| (*name).into()).ok_or(unknown)
    }
}

impl CallListener for RelabelingListener<'_> {
    fn enter_call(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        self.trace.enter_call(thread, self.rename_callee(callee)?)
    }

    fn enter_and_count(
        &mut self,
        thread: TraceThreadId,
        callee: LabeledCallee,
    ) -> Result<(), KContextError> {
        self.trace
            .enter_and_count(thread, self.rename_callee(callee)?)
    }

    fn add_count(&mut self, thread: TraceThreadId, weight: u64) -> Result<(), KContextError> {
        self.trace.add_count(thread, weight)
    }

    fn leave_call(&mut self, thread: TraceThreadId) -> Result<(), KContextError> {
        self.trace.leave_call(thread)
    }

    fn set_time(&mut self, nanos: u64) {
        self.trace.set_time(nanos);
    }
}
