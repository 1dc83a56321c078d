//! The single instance of the agent. Lower layers do not know it: they get the parts that they need as arguments.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use lucce_callgraph::ContextLayout;
use lucce_instrument::kinds::SURVIVE;
use lucce_jvmti::{Jvmti, clock};
use lucce_tracelog::{ByteSize, LogHeader, MemoryLimit, RunId};

use crate::classes::cache::HookedClassCache;
use crate::classes::{ClassParts, LoadedClasses};
use crate::core::{AgentCore, CoreInputs, HooklessMode, OutputFiles, agent_use};
use crate::counting::{CountingParts, EventCounting};
use crate::events::allocation_marks::AllocationMarks;
use crate::leaks::LeakDetector;
use crate::leaks::survival::SurvivalTracker;
use crate::memory::address_space::{MethodOfSite, ShadowStacks};
use crate::memory::locks::WatchedRwLock;
use crate::memory::pages;
use crate::options::AgentOptions;
use crate::registry::CodeRegistry;
use crate::stack::{StackParts, StackTracker};
use crate::thread::{CounterStore, ThreadParts};
use crate::tracking::{self, ContextTracking, TrackingInputs};

/// The present agent. Code that uses it is inside (see `core::agent_use`), or the agent stays until the VM ends.
static AGENT: AtomicPtr<Agent> = AtomicPtr::new(ptr::null_mut());

/// The agent: one part for each layer that keeps state. Functions of a layer get the parts up to their own.
pub struct Agent {
    pub core: AgentCore,
    pub counters: CounterStore,
    pub stack: StackTracker,
    pub counting: EventCounting,
    pub classes: LoadedClasses,
    /// For programs that measure their own allocations.
    pub marks: AllocationMarks,
    /// Only with `events=leak`.
    pub leaks: Option<LeakDetector>,
    /// Only with `events=survive`.
    pub survival: Option<SurvivalTracker>,
}

impl Agent {
    pub fn thread_parts(&self) -> ThreadParts<'_> {
        ThreadParts {
            core: &self.core,
            counters: &self.counters,
        }
    }

    pub fn stack_parts(&self) -> StackParts<'_> {
        StackParts {
            core: &self.core,
            counters: &self.counters,
            stack: &self.stack,
        }
    }

    pub fn counting_parts(&self) -> CountingParts<'_> {
        CountingParts {
            core: &self.core,
            counters: &self.counters,
            stack: &self.stack,
            counting: &self.counting,
        }
    }

    pub fn class_parts(&self) -> ClassParts<'_> {
        ClassParts {
            core: &self.core,
            counters: &self.counters,
            stack: &self.stack,
            classes: &self.classes,
        }
    }
}

/// Resources of an agent: files and address space.
pub struct AgentResources {
    prepared: TrackingInputs,
    outputs: OutputFiles,
    method_of_site: MethodOfSite,
    stacks: ShadowStacks,
    run: RunId,
    attached: Option<HooklessMode>,
}

/// Why resources are not available.
pub enum StartError {
    /// The user's options are impossible.
    InvalidOptions(String),
    /// The system does not provide the resources: the program can run without the agent.
    NoResources(String),
}

impl StartError {
    pub fn into_message(self) -> String {
        match self {
            StartError::InvalidOptions(text) | StartError::NoResources(text) => text,
        }
    }
}

fn address_space_message() -> String {
    "no address space for the agent's tables".into()
}

impl AgentResources {
    /// Acquires the resources, and sets the log's path in the options. `attached`: hookless mode.
    ///
    /// # Errors
    /// Nothing remains after an error: no file exists, and the VM was not changed.
    pub fn acquire(
        options: &mut AgentOptions,
        attached: Option<HooklessMode>,
    ) -> Result<AgentResources, StartError> {
        tracking::refuse_lab_options(options).map_err(StartError::NoResources)?;
        // Before the log is made: it may have the same name.
        let prepared = TrackingInputs::read(options).map_err(StartError::InvalidOptions)?;
        check_address_space().map_err(StartError::NoResources)?;
        let stacks = match attached {
            None => ShadowStacks::new(ContextTracking::doubles_slots(options)),
            Some(_) => ShadowStacks::without_stacks(),
        };
        let stacks = stacks.map_err(StartError::NoResources)?;
        let method_of_site =
            MethodOfSite::new().ok_or_else(|| StartError::NoResources(address_space_message()))?;
        let run = RunId::random();
        let outputs = OutputFiles::create_files(options, &log_header(run))
            .map_err(StartError::NoResources)?;
        if let Some(scarcity) = stacks.scarcity_warning() {
            options.add_warning(scarcity);
        }
        Ok(AgentResources {
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
    /// `None` before the agent has started, and after its end. An agent that may leave exists while the caller is inside
    /// (`core::agent_use`), or is a thread that the agent's end waits for.
    #[allow(unsafe_code, reason = "the agent's one instance")]
    pub fn get() -> Option<&'static Agent> {
        let agent = AGENT.load(Ordering::SeqCst);
        // SAFETY: null, or what install() has put there; uninstall() frees it when no thread is inside any more.
        unsafe { agent.as_ref() }
    }

    /// The agent, if it stays until the VM ends.
    pub fn get_permanent() -> Option<&'static Agent> {
        let _inside = agent_use::AgentUseGuard::enter();
        Agent::get().filter(|agent| agent.core.hookless.is_none())
    }

    /// Whether there is an agent.
    pub fn is_installed() -> bool {
        !AGENT.load(Ordering::SeqCst).is_null()
    }

    /// Hides the agent from all threads, waits until no thread uses it, runs `last`, and frees everything. The caller is not inside,
    /// and does not use the agent afterwards. `false`: a thread used it for more than 10 seconds; it is not freed.
    #[allow(unsafe_code, reason = "the agent's one instance")]
    pub fn uninstall(last: impl FnOnce(&Agent)) -> bool {
        const PATIENCE: Duration = Duration::from_secs(10);
        let agent = AGENT.load(Ordering::SeqCst);
        let hide = || AGENT.store(ptr::null_mut(), Ordering::SeqCst);
        if agent.is_null() || !agent_use::end_run(hide, PATIENCE) {
            return false;
        }
        // SAFETY: what install() has made; no thread finds it any more, and no thread is inside.
        let agent = unsafe { Box::from_raw(agent) };
        last(&agent);
        let sites = agent.core.method_of_site;
        drop(agent);
        sites.unmap();
        pages::unmap_all();
        true
    }

    /// Creates the agent from its resources.
    ///
    /// # Errors
    /// One line for the user: the agent is loaded twice.
    pub fn install(
        options: AgentOptions,
        jvmti: Jvmti,
        resources: AgentResources,
    ) -> Result<&'static Agent, String> {
        let mut outputs = resources.outputs;
        let writer = outputs.log.take().ok_or("there is no log")?;
        let registry = Arc::new(WatchedRwLock::new(CodeRegistry::new(
            resources.method_of_site,
        )));
        let (tracking, plan) = resources
            .prepared
            .create_tracking(&options, &registry, &mut outputs)
            .ok_or_else(address_space_message)?;
        let inputs = CoreInputs {
            run: resources.run,
            stacks: resources.stacks,
            method_of_site: resources.method_of_site,
            writer,
            streamer: outputs.streamer.take(),
            registry,
            plan,
            hookless: resources.attached,
        };
        let leaks = options.events.leak_interval().map(LeakDetector::new);
        let survival = options.events.has_kind(&SURVIVE);
        let survival = survival.then(SurvivalTracker::default);
        let mut agent = Agent {
            core: AgentCore::new(options, jvmti, inputs),
            counters: CounterStore::new(tracking),
            stack: StackTracker::default(),
            counting: EventCounting::default(),
            classes: LoadedClasses::default(),
            marks: AllocationMarks::default(),
            leaks,
            survival,
        };
        agent.classes.cache = HookedClassCache::open(agent.class_parts());
        agent.core.expect_named_methods();
        agent_use::begin_run(agent.core.run, agent.core.hookless.is_some());
        let agent = Box::into_raw(Box::new(agent));
        let none = ptr::null_mut();
        let (order, otherwise) = (Ordering::SeqCst, Ordering::SeqCst);
        if AGENT
            .compare_exchange(none, agent, order, otherwise)
            .is_err()
        {
            return Err("the agent is loaded twice".into());
        }
        outputs.keep_files();
        let agent = Agent::get().ok_or("the agent did not start")?;
        for text in &agent.core.options.warnings {
            agent.core.append_warning(text);
        }
        Ok(agent)
    }
}

/// Checks that the agent's addresses fit beside the addresses that the JVM needs.
fn check_address_space() -> Result<(), String> {
    const LEAST: u64 = 512 << 20;
    match MemoryLimit::read_current() {
        room @ MemoryLimit::Addresses { free, .. } if free < LEAST => Err(format!(
            "not enough address space: the agent takes {} at least, {room}",
            ByteSize(LEAST)
        )),
        _ => Ok(()),
    }
}

fn log_header(run: RunId) -> LogHeader {
    let layout = ContextLayout::DEFAULT;
    let call_bits = layout.call_id_count().trailing_zeros() as u8;
    LogHeader {
        version_bits: (64 - layout.version_shift()) as u8,
        anchor_bits: layout.anchor_count().trailing_zeros() as u8,
        call_bits,
        pid: std::process::id(),
        start: clock::unix_nanos(),
        run: Some(run),
    }
}
