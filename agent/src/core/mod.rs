//! What every layer above uses: options, JVMTI, shadow stacks, code registry, log, encoder, and the agent's counters
//! of itself.
//!
//! [`AgentCore`] holds them. The modules are small services: loaders by number (`class_loaders`), output files
//! (`output_files`), classes in scope (`scope`), and which events are verified (`verify_schedule`).

mod agent_threads;
pub mod agent_use;
mod class_loaders;
mod code_sources;
mod counts;
mod event_location;
pub mod fields;
mod live_threads;
mod named_methods;
mod output_files;
mod sample_budget;
mod scope;
mod streamer;
mod verify_schedule;
mod vm_end;
mod warnings;

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use jvmti_bindings::sys::jni::{JNIEnv, JNINativeInterface_};
use lucce_callgraph::{ContextEncoder, ContextLayout, NumberingPlan};
use lucce_instrument::kinds::{REQUEST, THREAD};
use lucce_jvmti::{JniEnvironment, Jvmti};
use lucce_tracelog::{
    self as tracelog, CounterBlock, LogWriter, MetaRecord, RunId, SkippedRecord, StatRecord,
    TotalCounter,
};

use crate::memory::address_space::{MethodOfSite, ShadowStacks};
use crate::memory::counter::increment_counter;
use crate::memory::event_mask::{self, EventMask};
use crate::memory::locks::{ReadGuard, WatchedRwLock, WriteGuard};
use crate::memory::pages::SystemPages;
use crate::memory::slots;
use crate::options::{AgentOptions, LogLevel, StartDelay};
use crate::registry::CodeRegistry;
use crate::registry::agent_log::{AgentLog, LogJournal};

pub use agent_threads::AgentThreads;
pub use class_loaders::ClassLoaders;
pub use code_sources::{domain_of_class, record_code_source};
pub use counts::AgentCounts;
pub use event_location::EventLocation;
pub use fields::{ThreadFields, thread_fields};
pub use live_threads::LiveThreads;
use named_methods::NamedMethods;
#[cfg(feature = "lab")]
pub use output_files::CallsFile;
pub use output_files::OutputFiles;
pub use sample_budget::{SampleBudget, SampleDraws};
pub use scope::{is_in_scope, is_jdk_excluded, may_be_created, may_create};
pub use streamer::EventStreamer;
pub use verify_schedule::{VerifyCountdown, VerifySchedule, VerifySums};
pub use vm_end::VmEndSignal;
pub use warnings::LoggedWarnings;

/// The services that every layer above uses.
pub struct AgentCore {
    pub options: AgentOptions,
    /// The run id in the log.
    pub run: RunId,
    pub jvmti: Jvmti,
    pub stacks: ShadowStacks,
    pub method_of_site: MethodOfSite,
    registry: Arc<WatchedRwLock<CodeRegistry>>,
    pub log: Arc<AgentLog>,
    /// Only with `stream=on`.
    pub streamer: Option<EventStreamer>,
    pub encoder: ContextEncoder<LogJournal>,
    pub loaders: ClassLoaders,
    pub warnings: LoggedWarnings,
    /// Only if classes have no hooks.
    pub hookless: Option<HooklessMode>,
    /// Whether the helper class is live, so that hooks record.
    pub live: AtomicBool,
    /// Whether every helper class has its live code.
    pub has_live_helpers: AtomicBool,
    /// The start time of the agent.
    pub started: Instant,
    /// The JNI functions from before brackets were installed.
    pub jni: AtomicPtr<JNINativeInterface_>,
    pub fields: OnceLock<ThreadFields>,
    pub threads: LiveThreads,
    /// Chooses the events that `verify=N` compares.
    pub verify: VerifySchedule,
    pub counts: AgentCounts,
    named_methods: NamedMethods,
    /// Counts that the log of a killed JVM must contain, in the order of `TOTALS`.
    totals: Option<CounterBlock<TotalCounter>>,
    pub event_mask: EventMask,
    /// Only with `budget=`.
    pub budget: Option<SampleBudget>,
    pub vm_end: VmEndSignal,
    /// The agent's own threads, except the thread that listens for commands.
    pub agent_threads: AgentThreads,
}

/// How an agent counts without hooks: it was attached, or its events need no hooks.
#[derive(Clone, Copy)]
pub struct HooklessMode {
    /// The JVM was running before the agent was loaded.
    pub is_attached: bool,
    /// Sampling interval in bytes; 0: every allocation.
    pub sampling_interval: u32,
}

/// What an [`AgentCore`] is made from.
pub struct CoreInputs {
    pub run: RunId,
    pub stacks: ShadowStacks,
    pub method_of_site: MethodOfSite,
    pub writer: LogWriter,
    pub streamer: Option<EventStreamer>,
    pub registry: Arc<WatchedRwLock<CodeRegistry>>,
    pub plan: Option<Box<dyn NumberingPlan>>,
    pub hookless: Option<HooklessMode>,
}

/// Names of the counts in the log's mapped pages.
const TOTALS: [&str; 3] = ["verify.compared", "verify.mismatches", "agent.panics"];

/// The mask of the selected kinds.
fn new_event_mask(options: &AgentOptions) -> EventMask {
    let mask = EventMask::new(options.events.event_mask(), slots::event_mask_word());
    if options.hooked_events().has_kind(&THREAD) {
        mask.set_permanent(event_mask::ORIGINS);
    }
    if let Some(delay) = options.delay {
        // The first request shows that the program is ready.
        let waits = delay == StartDelay::Ready && options.events.has_kind(&REQUEST);
        mask.delay_counting(if waits { REQUEST.mask_bit } else { 0 });
    }
    mask
}

fn new_sample_budget(
    options: &AgentOptions,
    hookless: Option<HooklessMode>,
    log: &AgentLog,
) -> Option<SampleBudget> {
    let (budget, mode) = options.budget.zip(hookless)?;
    let interval = mode.sampling_interval;
    Some(SampleBudget::new(
        budget.percent(),
        interval,
        mode.is_attached,
        log,
    ))
}

impl AgentCore {
    pub fn new(options: AgentOptions, jvmti: Jvmti, mut inputs: CoreInputs) -> AgentCore {
        let totals = inputs.writer.add_totals(&TOTALS).ok();
        let log = Arc::new(AgentLog::new(inputs.writer));
        let budget = new_sample_budget(&options, inputs.hookless, &log);
        let journal = LogJournal {
            registry: Arc::clone(&inputs.registry),
            log: Arc::clone(&log),
        };
        AgentCore {
            run: inputs.run,
            jvmti,
            stacks: inputs.stacks,
            method_of_site: inputs.method_of_site,
            registry: inputs.registry,
            log,
            streamer: inputs.streamer,
            encoder: ContextEncoder::with_plan_and_memory(
                ContextLayout::DEFAULT,
                options.encoding,
                journal,
                inputs.plan,
                Some(&SystemPages),
            ),
            loaders: ClassLoaders::default(),
            warnings: LoggedWarnings::default(),
            hookless: inputs.hookless,
            live: AtomicBool::new(false),
            has_live_helpers: AtomicBool::new(false),
            started: Instant::now(),
            jni: AtomicPtr::default(),
            fields: OnceLock::new(),
            threads: LiveThreads::default(),
            verify: VerifySchedule::new(options.verify),
            counts: AgentCounts::default(),
            named_methods: NamedMethods::default(),
            totals,
            event_mask: new_event_mask(&options),
            budget,
            vm_end: VmEndSignal::default(),
            agent_threads: AgentThreads::default(),
            options,
        }
    }

    /// The environment with the JNI functions from before brackets were installed.
    pub fn jni_env(&self, env: *mut JNIEnv) -> JniEnvironment {
        JniEnvironment::new(env, self.jni.load(Ordering::Acquire))
    }

    pub fn registry(&self) -> ReadGuard<'_, CodeRegistry> {
        self.registry.read()
    }

    pub fn registry_mut(&self) -> WriteGuard<'_, CodeRegistry> {
        self.registry.write()
    }

    /// Whether hooks record.
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    /// Counts an event that was compared with the VM's trace. Returns the earlier count.
    pub fn count_compared(&self) -> u64 {
        self.count_total(0);
        increment_counter(&self.counts.compared)
    }

    /// Counts a mismatch. Returns the earlier count.
    pub fn count_mismatch(&self) -> u64 {
        self.count_total(1);
        increment_counter(&self.counts.mismatches)
    }

    /// Counts a caught panic where the log of a killed JVM has it.
    pub fn count_panic(&self) {
        self.count_total(2);
    }

    fn count_total(&self, index: usize) {
        let totals = self.totals.as_ref();
        if let Some(total) = totals.and_then(|totals| totals.get(index)) {
            total.increment();
        }
    }

    /// Appends a record that readers can do without. A full log is reported at the end.
    pub fn append_record<'r>(&self, record: impl Into<tracelog::LogRecord<'r>>) {
        let _ = self.log.append_record(record);
    }

    /// Prints a message. Warnings and errors are appended to the log as well.
    pub fn report_message(&self, level: LogLevel, text: &str) {
        if level >= LogLevel::Warn {
            self.append_warning(text);
        }
        self.options.print_message(level, text);
    }

    /// Appends a warning to the log.
    pub fn append_warning(&self, text: &str) {
        if let Some(warning) = self.warnings.admit_warning(text) {
            self.append_record(warning);
        }
    }

    /// Reports a class or method that keeps its bytes: one warning, one record.
    pub fn report_skipped(&self, class: &str, method: Option<&str>, reason: &str) {
        let class = class.replace('/', ".");
        let what = method.map_or_else(|| class.clone(), |method| format!("{class}.{method}"));
        self.options.print_message(
            LogLevel::Warn,
            &format!("{what} is left as it is: {reason}"),
        );
        self.append_record(SkippedRecord {
            class: class.into(),
            method: method.map(Into::into),
            reason: reason.into(),
        });
    }

    /// Appends a property of the run to the log.
    pub fn append_meta(&self, key: &str, value: &str) {
        self.append_record(MetaRecord {
            key: key.into(),
            value: value.into(),
        });
    }

    /// Appends a count to the log.
    pub fn append_stat(&self, key: &str, value: u64) {
        self.append_record(StatRecord {
            key: key.into(),
            value,
        });
    }

    /// The site for a frame of `method` at `line` that no hook marks. 0: no ids are left.
    pub fn find_or_add_site(&self, method: u32, line: i32) -> u32 {
        self.registry_mut()
            .resolve_line_site(method, line)
            .unwrap_or(0)
    }

    /// The site in `method` at `line` that allocates `what`, a descriptor, in code without hooks. `None`: no ids are
    /// left.
    pub fn find_or_add_allocation(&self, method: u32, line: i32, what: &str) -> Option<u32> {
        let site = self.registry().find_allocation_site(method, line, what);
        site.or_else(|| {
            self.registry_mut()
                .resolve_allocation_site(method, line, what)
        })
    }

    /// Whether classes have no hooks, so that the VM walks each stack.
    pub fn is_hookless(&self) -> bool {
        self.hookless.is_some()
    }

    /// Whether the JVM was running before the agent was loaded.
    pub fn is_attached(&self) -> bool {
        self.hookless.is_some_and(|attached| attached.is_attached)
    }

    /// The sampling interval in bytes, if allocations are sampled.
    pub fn sampling_interval(&self) -> Option<u32> {
        let attached = self.hookless.filter(|attached| attached.is_attached);
        let attached = attached.map(|attached| attached.sampling_interval);
        let attached = attached.filter(|bytes| *bytes > 0 && self.options.has_alloc_hooks());
        attached.or(self.options.events.alloc_interval())
    }
}
