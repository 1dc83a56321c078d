//! What all floors above stand on: the options, the VM's tool interface, shadow stacks, book, log and encoder, and what is
//! counted of the agent itself.

mod counts;
mod ended;
mod fields;
mod helpers;
pub mod inside;
mod loaders;
mod outputs;
mod place;
mod scope;
mod streamer;
mod threads;
mod verify_schedule;
mod warnings;

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use jvmti_bindings::sys::jni::{JNIEnv, JNINativeInterface_};
use lucce_callgraph::{Encoder, Layout, Plan};
use lucce_tracelog::{self as tracelog, Counters, Meta, RunId, Skipped, Stat, Total, Writer};
use lucce_vm::{Env, Jvmti};

use crate::book::Book;
use crate::book::calls::Recorder;
use crate::book::journal::{Log, LogJournal};
use crate::memory::counter::count;
use crate::memory::gate::Gate;
use crate::memory::locks::WatchedRwLock;
use crate::memory::map::{MethodOfSite, Stacks};
use crate::memory::pages::Pages;
use crate::options::{Level, Options};

pub use counts::Counts;
pub use ended::Ended;
pub use fields::{ThreadFields, of as thread_fields};
pub use helpers::Helpers;
pub use loaders::Loaders;
pub use outputs::Outputs;
pub use place::Here;
pub use scope::{holds, is_without_the_jdk, may_be_created, may_create};
pub use streamer::Streamer;
pub use threads::Threads;
pub use verify_schedule::{VerifyCountdown, VerifySchedule, VerifySums};
pub use warnings::Warnings;

pub struct Core {
    pub options: Options,
    /// The log's.
    pub run: RunId,
    pub jvmti: Jvmti,
    pub stacks: Stacks,
    pub method_of_site: MethodOfSite,
    book: Arc<WatchedRwLock<Book>>,
    pub log: Arc<Log>,
    /// Only with `record=calls`.
    pub recorder: Option<Recorder>,
    /// Only with `record=stream`.
    pub streamer: Option<Streamer>,
    pub encoder: Encoder<LogJournal>,
    pub loaders: Loaders,
    pub warnings: Warnings,
    /// Only if classes have no hooks.
    pub attached: Option<Attached>,
    /// The helper class is live: hooks record.
    pub live: AtomicBool,
    /// When the agent began.
    pub began: Instant,
    /// The JNI functions from before brackets were installed.
    pub jni: AtomicPtr<JNINativeInterface_>,
    pub fields: OnceLock<ThreadFields>,
    pub threads: Threads,
    /// Which events `verify=N` compares.
    pub verify: VerifySchedule,
    pub counts: Counts,
    /// Of them, in the order of `TOTALS`, those that a log must tell when the JVM is killed.
    totals: Option<Counters<Total>>,
    pub gate: Gate,
    pub ended: Ended,
    /// Threads of the agent's own, beside the one that listens.
    pub helpers: Helpers,
}

/// How an agent counts without hooks, because it came later or need not have them.
#[derive(Clone, Copy)]
pub struct Attached {
    /// The JVM ran before the agent came.
    pub later: bool,
    /// Bytes between two samples; 0: every allocation.
    pub interval: u32,
}

/// What a core is made of.
pub struct Parts {
    pub run: RunId,
    pub stacks: Stacks,
    pub method_of_site: MethodOfSite,
    pub writer: Writer,
    pub recorder: Option<Recorder>,
    pub streamer: Option<Streamer>,
    pub book: Arc<WatchedRwLock<Book>>,
    pub plan: Option<Box<dyn Plan>>,
    pub attached: Option<Attached>,
}

/// What the log's own pages count.
const TOTALS: [&str; 2] = ["verify.compared", "verify.mismatches"];

impl Core {
    pub fn new(options: Options, jvmti: Jvmti, mut parts: Parts) -> Core {
        let totals = parts.writer.totals(&TOTALS).ok();
        let log = Arc::new(Log::new(parts.writer));
        let journal = LogJournal {
            book: Arc::clone(&parts.book),
            log: Arc::clone(&log),
        };
        Core {
            run: parts.run,
            jvmti,
            stacks: parts.stacks,
            method_of_site: parts.method_of_site,
            book: parts.book,
            log,
            recorder: parts.recorder,
            streamer: parts.streamer,
            encoder: Encoder::with(
                Layout::DEFAULT,
                options.encoding,
                journal,
                parts.plan,
                Some(&Pages),
            ),
            loaders: Loaders::default(),
            warnings: Warnings::default(),
            attached: parts.attached,
            live: AtomicBool::new(false),
            began: Instant::now(),
            jni: AtomicPtr::default(),
            fields: OnceLock::new(),
            threads: Threads::default(),
            verify: VerifySchedule::new(options.verify),
            counts: Counts::default(),
            totals,
            gate: Gate::new(options.events.gates()),
            ended: Ended::default(),
            helpers: Helpers::default(),
            options,
        }
    }

    pub fn env(&self, env: *mut JNIEnv) -> Env {
        Env::new(env, self.jni.load(Ordering::Acquire))
    }

    pub fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read()
    }

    pub fn book_mut(&self) -> RwLockWriteGuard<'_, Book> {
        self.book.write()
    }

    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    /// One more event was compared with the VM's trace; how many were before.
    pub fn compared(&self) -> u64 {
        self.total(0);
        count(&self.counts.compared)
    }

    /// One of them differed; how many did before.
    pub fn mismatched(&self) -> u64 {
        self.total(1);
        count(&self.counts.mismatches)
    }

    fn total(&self, index: usize) {
        let totals = self.totals.as_ref();
        if let Some(total) = totals.and_then(|totals| totals.get(index)) {
            total.count();
        }
    }

    /// Appends what a reader can do without: a full log is told at the end.
    pub fn note<'r>(&self, record: impl Into<tracelog::Record<'r>>) {
        let _ = self.log.append(record);
    }

    /// Warnings and errors are in the log as well.
    pub fn say(&self, level: Level, text: &str) {
        if level >= Level::Warn {
            self.note_warning(text);
        }
        self.options.say(level, text);
    }

    /// For readers of the log.
    pub fn note_warning(&self, text: &str) {
        if let Some(warning) = self.warnings.record(text) {
            self.note(warning);
        }
    }

    /// A class or method that keeps its bytes: one warning, one record.
    pub fn skipped(&self, class: &str, method: Option<&str>, reason: &str) {
        let class = class.replace('/', ".");
        let what = method.map_or_else(|| class.clone(), |method| format!("{class}.{method}"));
        self.options
            .say(Level::Warn, &format!("{what} is left as it is: {reason}"));
        self.note(Skipped {
            class: class.into(),
            method: method.map(Into::into),
            reason: reason.into(),
        });
    }

    pub fn meta(&self, key: &str, value: &str) {
        self.note(Meta {
            key: key.into(),
            value: value.into(),
        });
    }

    pub fn stat(&self, key: &str, value: u64) {
        self.note(Stat {
            key: key.into(),
            value,
        });
    }

    /// The site for a frame of `method` at `line` that no hook marks. 0: no ids are left.
    pub fn extra_site(&self, method: u32, line: i32) -> u32 {
        self.book_mut().extra_site(method, line).unwrap_or(0)
    }

    /// The site in `method` at `line` that allocates `what`, a descriptor, in code without hooks.
    pub fn extra_allocation(&self, method: u32, line: i32, what: &str) -> Option<u32> {
        let known = self.book().known_allocation(method, line, what);
        known.or_else(|| self.book_mut().extra_allocation(method, line, what))
    }

    /// Whether classes have no hooks, so the VM is asked for each stack.
    pub fn walks(&self) -> bool {
        self.attached.is_some()
    }

    /// Whether the JVM ran before the agent came.
    pub fn came_later(&self) -> bool {
        self.attached.is_some_and(|attached| attached.later)
    }

    /// Bytes between two samples, if allocations are counted by samples.
    pub fn sampled_bytes(&self) -> Option<u32> {
        let attached = self.attached.filter(|attached| attached.later);
        let attached = attached.map(|attached| attached.interval);
        let attached = attached.filter(|bytes| *bytes > 0 && self.options.alloc_hooks());
        attached.or(self.options.events.sampled())
    }
}
