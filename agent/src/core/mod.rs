//! What all floors above stand on: the options, the VM's tool interface, shadow stacks, book, log and encoder, and what is
//! counted of the agent itself.

mod agent_threads;
pub mod agent_use;
mod class_loaders;
mod counts;
mod event_location;
mod fields;
mod live_threads;
mod output_files;
mod scope;
mod streamer;
mod verify_schedule;
mod vm_end;
mod warnings;

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use jvmti_bindings::sys::jni::{JNIEnv, JNINativeInterface_};
use lucce_callgraph::{ContextEncoder, ContextLayout, NumberingPlan};
use lucce_jvmti::{JniEnvironment, Jvmti};
use lucce_tracelog::{
    self as tracelog, CounterBlock, LogWriter, MetaRecord, RunId, SkippedRecord, StatRecord,
    TotalCounter,
};

use crate::memory::address_space::{MethodOfSite, ShadowStacks};
use crate::memory::counter::increment_counter;
use crate::memory::event_mask::EventMask;
use crate::memory::locks::WatchedRwLock;
use crate::memory::pages::SystemPages;
use crate::options::{AgentOptions, LogLevel};
use crate::registry::CodeRegistry;
use crate::registry::agent_log::{AgentLog, LogJournal};
use crate::registry::call_recorder::CallRecorder;

pub use agent_threads::AgentThreads;
pub use class_loaders::ClassLoaders;
pub use counts::AgentCounts;
pub use event_location::EventLocation;
pub use fields::{ThreadFields, thread_fields};
pub use live_threads::LiveThreads;
pub use output_files::OutputFiles;
pub use scope::{is_in_scope, is_jdk_excluded, may_be_created, may_create};
pub use streamer::EventStreamer;
pub use verify_schedule::{VerifyCountdown, VerifySchedule, VerifySums};
pub use vm_end::VmEndSignal;
pub use warnings::LoggedWarnings;

pub struct AgentCore {
    pub options: AgentOptions,
    /// The log's.
    pub run: RunId,
    pub jvmti: Jvmti,
    pub stacks: ShadowStacks,
    pub method_of_site: MethodOfSite,
    registry: Arc<WatchedRwLock<CodeRegistry>>,
    pub log: Arc<AgentLog>,
    /// Only with `record=calls`.
    pub recorder: Option<CallRecorder>,
    /// Only with `record=stream`.
    pub streamer: Option<EventStreamer>,
    pub encoder: ContextEncoder<LogJournal>,
    pub loaders: ClassLoaders,
    pub warnings: LoggedWarnings,
    /// Only if classes have no hooks.
    pub hookless: Option<HooklessMode>,
    /// The helper class is live: hooks record.
    pub live: AtomicBool,
    /// When the agent began.
    pub started: Instant,
    /// The JNI functions from before brackets were installed.
    pub jni: AtomicPtr<JNINativeInterface_>,
    pub fields: OnceLock<ThreadFields>,
    pub threads: LiveThreads,
    /// Which events `verify=N` compares.
    pub verify: VerifySchedule,
    pub counts: AgentCounts,
    /// Of them, in the order of `TOTALS`, those that a log must tell when the JVM is killed.
    totals: Option<CounterBlock<TotalCounter>>,
    pub event_mask: EventMask,
    pub vm_end: VmEndSignal,
    /// Threads of the agent's own, beside the one that listens.
    pub agent_threads: AgentThreads,
}

/// How an agent counts without hooks, because it came later or need not have them.
#[derive(Clone, Copy)]
pub struct HooklessMode {
    /// The JVM ran before the agent came.
    pub is_attached: bool,
    /// Bytes between two samples; 0: every allocation.
    pub sampling_interval: u32,
}

/// What a core is made of.
pub struct CoreParts {
    pub run: RunId,
    pub stacks: ShadowStacks,
    pub method_of_site: MethodOfSite,
    pub writer: LogWriter,
    pub recorder: Option<CallRecorder>,
    pub streamer: Option<EventStreamer>,
    pub registry: Arc<WatchedRwLock<CodeRegistry>>,
    pub plan: Option<Box<dyn NumberingPlan>>,
    pub hookless: Option<HooklessMode>,
}

/// What the log's own pages count.
const TOTALS: [&str; 2] = ["verify.compared", "verify.mismatches"];

impl AgentCore {
    pub fn new(options: AgentOptions, jvmti: Jvmti, mut parts: CoreParts) -> AgentCore {
        let totals = parts.writer.add_totals(&TOTALS).ok();
        let log = Arc::new(AgentLog::new(parts.writer));
        let journal = LogJournal {
            registry: Arc::clone(&parts.registry),
            log: Arc::clone(&log),
        };
        AgentCore {
            run: parts.run,
            jvmti,
            stacks: parts.stacks,
            method_of_site: parts.method_of_site,
            registry: parts.registry,
            log,
            recorder: parts.recorder,
            streamer: parts.streamer,
            encoder: ContextEncoder::with_plan_and_memory(
                ContextLayout::DEFAULT,
                options.encoding,
                journal,
                parts.plan,
                Some(&SystemPages),
            ),
            loaders: ClassLoaders::default(),
            warnings: LoggedWarnings::default(),
            hookless: parts.hookless,
            live: AtomicBool::new(false),
            started: Instant::now(),
            jni: AtomicPtr::default(),
            fields: OnceLock::new(),
            threads: LiveThreads::default(),
            verify: VerifySchedule::new(options.verify),
            counts: AgentCounts::default(),
            totals,
            event_mask: EventMask::new(options.events.event_mask()),
            vm_end: VmEndSignal::default(),
            agent_threads: AgentThreads::default(),
            options,
        }
    }

    pub fn jni_env(&self, env: *mut JNIEnv) -> JniEnvironment {
        JniEnvironment::new(env, self.jni.load(Ordering::Acquire))
    }

    pub fn registry(&self) -> RwLockReadGuard<'_, CodeRegistry> {
        self.registry.read()
    }

    pub fn registry_mut(&self) -> RwLockWriteGuard<'_, CodeRegistry> {
        self.registry.write()
    }

    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    /// One more event was compared with the VM's trace; how many were before.
    pub fn count_compared(&self) -> u64 {
        self.count_total(0);
        increment_counter(&self.counts.compared)
    }

    /// One of them differed; how many did before.
    pub fn count_mismatch(&self) -> u64 {
        self.count_total(1);
        increment_counter(&self.counts.mismatches)
    }

    fn count_total(&self, index: usize) {
        let totals = self.totals.as_ref();
        if let Some(total) = totals.and_then(|totals| totals.get(index)) {
            total.increment();
        }
    }

    /// Appends what a reader can do without: a full log is told at the end.
    pub fn append_record<'r>(&self, record: impl Into<tracelog::LogRecord<'r>>) {
        let _ = self.log.append_record(record);
    }

    /// Warnings and errors are in the log as well.
    pub fn report_message(&self, level: LogLevel, text: &str) {
        if level >= LogLevel::Warn {
            self.append_warning(text);
        }
        self.options.print_message(level, text);
    }

    /// For readers of the log.
    pub fn append_warning(&self, text: &str) {
        if let Some(warning) = self.warnings.admit_warning(text) {
            self.append_record(warning);
        }
    }

    /// A class or method that keeps its bytes: one warning, one record.
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

    pub fn append_meta(&self, key: &str, value: &str) {
        self.append_record(MetaRecord {
            key: key.into(),
            value: value.into(),
        });
    }

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

    /// The site in `method` at `line` that allocates `what`, a descriptor, in code without hooks.
    pub fn find_or_add_allocation(&self, method: u32, line: i32, what: &str) -> Option<u32> {
        let known = self.registry().find_allocation_site(method, line, what);
        known.or_else(|| {
            self.registry_mut()
                .resolve_allocation_site(method, line, what)
        })
    }

    /// Whether classes have no hooks, so the VM is asked for each stack.
    pub fn is_hookless(&self) -> bool {
        self.hookless.is_some()
    }

    /// Whether the JVM ran before the agent came.
    pub fn is_attached(&self) -> bool {
        self.hookless.is_some_and(|attached| attached.is_attached)
    }

    /// Bytes between two samples, if allocations are counted by samples.
    pub fn sampling_interval(&self) -> Option<u32> {
        let attached = self.hookless.filter(|attached| attached.is_attached);
        let attached = attached.map(|attached| attached.sampling_interval);
        let attached = attached.filter(|bytes| *bytes > 0 && self.options.has_alloc_hooks());
        attached.or(self.options.events.alloc_interval())
    }
}
