//! The agent's one instance. No floor below knows it: what they need of it they are given.

use std::ops::Deref;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use lucce_callgraph::Layout;
use lucce_tracelog::{Header, Room, RunId, Size};
use lucce_vm::{Jvmti, clock};

use crate::book::Book;
use crate::book::calls::Recorder;
use crate::classes::Classes;
use crate::comparison;
use crate::comparison::{Comparison, Prepared};
use crate::core::{Attached, Core, Outputs, Parts, inside};
use crate::counting::Counting;
use crate::events::marks::Marks;
use crate::leaks::Leaks;
use crate::memory::locks::WatchedRwLock;
use crate::memory::map::{MethodOfSite, Stacks};
use crate::memory::pages;
use crate::options::Options;
use crate::stack::Stack;
use crate::thread::Counters;

/// The agent that works now. Code that uses it is inside (see `core::inside`), or it stays until the VM ends.
static AGENT: AtomicPtr<Agent> = AtomicPtr::new(ptr::null_mut());

pub struct Agent {
    pub classes: Classes,
    /// For programs that ask what they have allocated.
    pub marks: Marks,
    /// Only with `events=leak`.
    pub leaks: Option<Leaks>,
}

impl Deref for Agent {
    type Target = Classes;

    fn deref(&self) -> &Classes {
        &self.classes
    }
}

/// What the agent stands on: files and address space.
pub struct Ground {
    prepared: Prepared,
    outputs: Outputs,
    method_of_site: MethodOfSite,
    stacks: Stacks,
    run: RunId,
    attached: Option<Attached>,
}

/// Why there is none.
pub enum Missing {
    /// What the user asked for cannot be.
    Wrong(String),
    /// The system does not give what it takes: the program can run without.
    Unrecorded(String),
}

impl Missing {
    pub fn text(self) -> String {
        match self {
            Missing::Wrong(text) | Missing::Unrecorded(text) => text,
        }
    }
}

fn no_memory() -> String {
    "no address space for the agent's tables".into()
}

impl Ground {
    /// The options are told what the log is called. `attached`: code has no hooks.
    ///
    /// # Errors
    /// Nothing is left of it: no file, and the VM has been asked for nothing.
    pub fn prepare(options: &mut Options, attached: Option<Attached>) -> Result<Ground, Missing> {
        // Before the log is made: it may have the same name.
        let prepared = Prepared::new(options).map_err(Missing::Wrong)?;
        enough().map_err(Missing::Unrecorded)?;
        let stacks = match attached {
            None => Stacks::new(comparison::doubles_slots(options)),
            Some(_) => Stacks::none(),
        };
        let stacks = stacks.map_err(Missing::Unrecorded)?;
        let method_of_site = MethodOfSite::new().ok_or_else(|| Missing::Unrecorded(no_memory()))?;
        let run = RunId::random();
        let outputs = Outputs::create(options, &header(run)).map_err(Missing::Unrecorded)?;
        if let Some(scarcity) = stacks.scarcity() {
            options.warn(scarcity);
        }
        Ok(Ground {
            prepared,
            outputs,
            method_of_site,
            stacks,
            run,
            attached,
        })
    }
}

impl Agent {
    /// `None` before the agent has started, and behind its end. One that may leave is there as long as the caller is
    /// inside (`core::inside`), or is a thread that its end waits for.
    #[allow(unsafe_code, reason = "the agent's one instance")]
    pub fn get() -> Option<&'static Agent> {
        let agent = AGENT.load(Ordering::SeqCst);
        // SAFETY: null, or what start() has put there; leave() frees it when no thread is inside any more.
        unsafe { agent.as_ref() }
    }

    /// One that stays until the VM ends.
    pub fn that_stays() -> Option<&'static Agent> {
        let _inside = inside::Inside::enter();
        Agent::get().filter(|agent| agent.attached.is_none())
    }

    /// Whether there is one.
    pub fn is_there() -> bool {
        !AGENT.load(Ordering::SeqCst).is_null()
    }

    /// No thread finds the agent any more, and when no thread uses it `last` is done with it, and all that it has is given back. The
    /// caller is not inside, and uses it no more. `false`: somebody used it for too long; it is not freed.
    #[allow(unsafe_code, reason = "the agent's one instance")]
    pub fn leave(last: impl FnOnce(&Agent)) -> bool {
        const PATIENCE: Duration = Duration::from_secs(10);
        let agent = AGENT.load(Ordering::SeqCst);
        let hide = || AGENT.store(ptr::null_mut(), Ordering::SeqCst);
        if agent.is_null() || !inside::leave(hide, PATIENCE) {
            return false;
        }
        // SAFETY: what start() has made; no thread finds it any more, and no thread is inside.
        let agent = unsafe { Box::from_raw(agent) };
        last(&agent);
        let sites = agent.method_of_site;
        drop(agent);
        sites.unmap();
        pages::unmap();
        true
    }

    /// # Errors
    /// One line for the user: the agent is loaded twice.
    pub fn start(options: Options, jvmti: Jvmti, ground: Ground) -> Result<&'static Agent, String> {
        let mut outputs = ground.outputs;
        let writer = outputs.log.take().ok_or("there is no log")?;
        let book = Arc::new(WatchedRwLock::new(Book::new(ground.method_of_site)));
        let calls = outputs.calls.take();
        let mut planned = ground.prepared.plan(&options, &book);
        let comparison = Comparison::new(&options, &planned).ok_or_else(no_memory)?;
        let parts = Parts {
            run: ground.run,
            stacks: ground.stacks,
            method_of_site: ground.method_of_site,
            writer,
            recorder: calls.map(|calls| Recorder::new(calls, Arc::clone(&book))),
            streamer: outputs.streamer.take(),
            book,
            plan: planned.plan.take(),
            attached: ground.attached,
        };
        let leaks = options.events.leak().map(Leaks::new);
        let counters = Counters::new(Core::new(options, jvmti, parts), comparison);
        let agent = Agent {
            classes: Classes::new(Counting::new(Stack::new(counters))),
            marks: Marks::default(),
            leaks,
        };
        inside::begins(agent.run, agent.attached.is_some());
        let agent = Box::into_raw(Box::new(agent));
        let none = ptr::null_mut();
        let (order, otherwise) = (Ordering::SeqCst, Ordering::SeqCst);
        if AGENT
            .compare_exchange(none, agent, order, otherwise)
            .is_err()
        {
            return Err("the agent is loaded twice".into());
        }
        outputs.keep();
        let agent = Agent::get().ok_or("the agent did not start")?;
        for text in &agent.options.warned {
            agent.note_warning(text);
        }
        Ok(agent)
    }
}

/// Whether there are addresses for the agent beside those that the JVM needs.
fn enough() -> Result<(), String> {
    const LEAST: u64 = 512 << 20;
    match Room::now() {
        room @ Room::Addresses { free, .. } if free < LEAST => Err(format!(
            "not enough address space: the agent takes {} at least, {room}",
            Size(LEAST)
        )),
        _ => Ok(()),
    }
}

fn header(run: RunId) -> Header {
    let layout = Layout::DEFAULT;
    let call_bits = layout.calls().trailing_zeros() as u8;
    Header {
        version_bits: (64 - layout.version_shift()) as u8,
        anchor_bits: layout.anchors().trailing_zeros() as u8,
        call_bits,
        pid: std::process::id(),
        start: clock::nanos(),
        run: Some(run),
    }
}
