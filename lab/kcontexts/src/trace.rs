//! Calls in memory, checked, to be heard any number of times.

use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::ids::{Callee, Label, Thread};
use crate::listener::Listener;
use crate::stacks::Stacks;

/// What happened, in order.
#[derive(Default)]
pub struct Trace {
    labels: u32,
    events: Vec<Event>,
    stacks: Stacks<Label>,
    current: Option<Thread>,
    /// Callees by caller, numbered from 0 for each; a thread's first calls have no caller.
    slots: FxHashMap<(Option<Label>, Label), u32>,
    fan_out: FxHashMap<Option<Label>, u32>,
    calls: u64,
    timed: bool,
}

/// 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    Enter(Callee),
    /// An enter that counts 1.
    Call(Callee),
    Count(u64),
    Leave,
    /// What follows happens in this thread.
    Thread(Thread),
    /// Nanoseconds since the stream's start.
    Time(u64),
}

impl Trace {
    /// Of labels below `labels`.
    #[must_use]
    pub fn new(labels: u32) -> Self {
        Trace {
            labels,
            ..Trace::default()
        }
    }

    /// Tells a listener everything.
    ///
    /// # Errors
    /// The listener's own: calls are in order here.
    pub fn replay(&self, listener: &mut impl Listener) -> Result<(), Error> {
        let mut thread = Thread(0);
        for event in &self.events {
            match *event {
                Event::Enter(callee) => listener.enter(thread, callee)?,
                Event::Call(callee) => listener.call(thread, callee)?,
                Event::Count(weight) => listener.count(thread, weight)?,
                Event::Leave => listener.leave(thread)?,
                Event::Thread(next) => thread = next,
                Event::Time(nanos) => listener.time(nanos),
            }
        }
        Ok(())
    }

    /// The same calls, where label n is called `names[n]`.
    ///
    /// # Errors
    /// A label has no name.
    pub fn relabelled(&self, names: &[Label]) -> Result<Trace, Error> {
        let labels = names.iter().map(|label| label.0.saturating_add(1));
        let mut trace = Trace::new(labels.max().unwrap_or(0));
        self.replay(&mut Relabel {
            names,
            trace: &mut trace,
        })?;
        Ok(trace)
    }

    #[must_use]
    pub fn events(&self) -> &[Event] {
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

    fn entered(&mut self, thread: Thread, label: Label) -> Result<Callee, Error> {
        if label.0 >= self.labels {
            return Err(Error::UnknownLabel(label, self.labels));
        }
        self.switch(thread);
        let stack = self.stacks.of(thread);
        let caller = stack.last().copied();
        stack.push(label);
        Ok(self.callee(caller, label))
    }

    fn callee(&mut self, caller: Option<Label>, label: Label) -> Callee {
        let slot = self.slots.entry((caller, label)).or_insert_with(|| {
            let next = self.fan_out.entry(caller).or_insert(0);
            *next += 1;
            *next - 1
        });
        Callee { label, slot: *slot }
    }

    fn switch(&mut self, thread: Thread) {
        if self.current.is_none_or(|current| current != thread) {
            self.current = Some(thread);
            self.events.push(Event::Thread(thread));
        }
    }
}

impl Listener for Trace {
    fn enter(&mut self, thread: Thread, callee: Callee) -> Result<(), Error> {
        let callee = self.entered(thread, callee.label)?;
        self.events.push(Event::Enter(callee));
        Ok(())
    }

    fn call(&mut self, thread: Thread, callee: Callee) -> Result<(), Error> {
        let callee = self.entered(thread, callee.label)?;
        self.events.push(Event::Call(callee));
        self.calls = self.calls.saturating_add(1);
        Ok(())
    }

    fn count(&mut self, thread: Thread, weight: u64) -> Result<(), Error> {
        if self.stacks.of(thread).is_empty() {
            return Err(Error::NothingEntered(thread));
        }
        self.switch(thread);
        self.events.push(Event::Count(weight));
        self.calls = self.calls.saturating_add(weight);
        Ok(())
    }

    fn leave(&mut self, thread: Thread) -> Result<(), Error> {
        let left = self.stacks.of(thread).pop();
        left.ok_or(Error::NothingToLeave(thread))?;
        self.switch(thread);
        self.events.push(Event::Leave);
        Ok(())
    }

    fn time(&mut self, nanos: u64) {
        self.timed = true;
        self.events.push(Event::Time(nanos));
    }
}

struct Relabel<'a> {
    names: &'a [Label],
    trace: &'a mut Trace,
}

impl Relabel<'_> {
    fn name(&self, callee: Callee) -> Result<Callee, Error> {
        let name = self.names.get(callee.label.0 as usize);
        let unknown = Error::UnknownLabel(callee.label, self.names.len() as u32);
        name.map(|name| (*name).into()).ok_or(unknown)
    }
}

impl Listener for Relabel<'_> {
    fn enter(&mut self, thread: Thread, callee: Callee) -> Result<(), Error> {
        self.trace.enter(thread, self.name(callee)?)
    }

    fn call(&mut self, thread: Thread, callee: Callee) -> Result<(), Error> {
        self.trace.call(thread, self.name(callee)?)
    }

    fn count(&mut self, thread: Thread, weight: u64) -> Result<(), Error> {
        self.trace.count(thread, weight)
    }

    fn leave(&mut self, thread: Thread) -> Result<(), Error> {
        self.trace.leave(thread)
    }

    fn time(&mut self, nanos: u64) {
        self.trace.time(nanos);
    }
}
