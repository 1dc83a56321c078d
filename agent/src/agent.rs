//! The agent's one instance, and what its rooms share.

use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::Instant;

use jvmti_bindings::sys::jni::{JNIEnv, JNINativeInterface_, jfieldID};
use lucce_bytecode::mutf8;
use lucce_callgraph::{Encoder, Layout, Plan};
use lucce_tracelog::{
    self as tracelog, Counters, EventCell, Header, Meta, Room, RunId, Size, Skipped, Stat, Total,
};

use crate::alike::Alike;
use crate::book::Book;
use crate::burst::Ended;
use crate::clock;
use crate::coverage::Coverage;
use crate::earlier::Earlier;
use crate::events::EventTypes;
use crate::frames::FrameCache;
use crate::gate::Gate;
use crate::journal::{Log, LogJournal};
use crate::jvm::{Env, Jvmti};
use crate::lane::Lanes;
use crate::leaks::Leaks;
use crate::loaders::Loaders;
use crate::marks::Marks;
use crate::memory::{MethodOfSite, Stacks};
use crate::options::{Level, Options, Tracking};
use crate::originals::Originals;
use crate::outputs::Outputs;
use crate::own_kinds::OwnKinds;
use crate::paper::Paper;
use crate::plan::{Matches, NamedPlan};
use crate::record::Recorder;
use crate::stream::Streamer;
use crate::table_memory::Pages;
use crate::tasks::Tasks;
use crate::thread::Threads;
use crate::trace::Archive;
use crate::tree::Trees;
use crate::twins::Twins;
use crate::types::Types;
use crate::warnings::Warnings;
use crate::watch::Watch;

static AGENT: OnceLock<Agent> = OnceLock::new();

pub struct Agent {
    pub options: Options,
    /// The log's.
    pub run: RunId,
    pub jvmti: Jvmti,
    pub stacks: Stacks,
    pub method_of_site: MethodOfSite,
    book: Arc<RwLock<Book>>,
    pub log: Arc<Log>,
    /// Only with `record=calls`.
    pub recorder: Option<Recorder>,
    /// Only with `record=stream`.
    pub streamer: Option<Streamer>,
    pub encoder: Encoder<LogJournal>,
    /// Only with `encoding=static`.
    pub matches: Option<Arc<Matches>>,
    pub loaders: Loaders,
    pub lanes: Lanes,
    pub frames: FrameCache,
    /// Only with `verify=N`: what was compared already.
    pub alike: Alike,
    /// What classes were before their hooks.
    pub originals: Originals,
    /// What the log says of classes that are gone.
    pub archive: Archive,
    /// Classes that several loaders have.
    pub twins: Twins,
    /// Where tasks of executors were submitted.
    pub tasks: Tasks,
    pub watch: Watch,
    pub warnings: Warnings,
    /// The helper class is live: hooks record.
    pub live: AtomicBool,
    /// When the agent began.
    pub began: Instant,
    /// The JNI functions from before brackets were installed.
    pub jni: AtomicPtr<JNINativeInterface_>,
    pub fields: OnceLock<ThreadFields>,
    /// All cells, for the sum at the end.
    cells: Mutex<Vec<Counters>>,
    event_cells: Mutex<Vec<Counters<EventCell>>>,
    pub event_types: EventTypes,
    pub own_kinds: OwnKinds,
    pub types: Types,
    /// For programs that ask what they have allocated.
    pub marks: Marks,
    pub threads: Threads,
    pub counts: Counts,
    /// Of them, in the order of `TOTALS`, those that a log must tell when the JVM is killed.
    totals: Option<Counters<Total>>,
    pub gate: Gate,
    /// What the VM says that threads allocate.
    pub coverage: Coverage,
    pub ended: Ended,
    /// With `tracking=cct`: the memory of all threads' trees.
    pub trees: Trees,
    /// Only with `events=leak`.
    pub leaks: Option<Leaks>,
    /// Only with `tracking=paper`.
    pub paper: Option<Paper>,
}

/// The fields that `java.lang.Thread` was given.
#[derive(Clone, Copy)]
pub struct ThreadFields {
    pub pointer: Field,
    pub events: Field,
    pub state: Field,
    /// For the recording of calls.
    pub ticket: Field,
    /// Of a thread that has not begun: the number of the context that started it.
    pub origin: Field,
    /// Its own field, a string.
    pub name: Field,
}

/// A field id: valid in every thread as long as its class.
#[derive(Clone, Copy)]
pub struct Field(usize);

impl Field {
    pub fn new(id: jfieldID) -> Field {
        Field(id as usize)
    }

    pub fn id(self) -> jfieldID {
        self.0 as jfieldID
    }
}

/// What the log says at its end.
#[derive(Default)]
pub struct Counts {
    pub classes: AtomicU64,
    pub classes_skipped: AtomicU64,
    /// With hooks of before, because nobody can tell them from a Java agent's code.
    pub classes_kept: AtomicU64,
    pub methods_skipped: AtomicU64,
    pub events_lost: AtomicU64,
    pub compared: AtomicU64,
    pub mismatches: AtomicU64,
    pub upcalls: AtomicU64,
    /// Of those, where nobody knows who called.
    pub upcalls_lost: AtomicU64,
    /// How often code without hooks was about to call, and nobody says from where.
    pub unsaid: AtomicU64,
    pub repairs: AtomicU64,
    pub panics: AtomicU64,
    pub next_thread: AtomicU32,
}

/// Adds one; a count that nothing depends on.
pub fn count(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed)
}

/// What the agent stands on: files and address space.
pub struct Ground {
    earlier: Option<Earlier>,
    outputs: Outputs,
    method_of_site: MethodOfSite,
    paper: Option<Paper>,
    stacks: Stacks,
    run: RunId,
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

impl Ground {
    /// The options are told what the log is called. `with_stacks`: code has hooks.
    ///
    /// # Errors
    /// Nothing is left of it: no file, and the VM has been asked for nothing.
    pub fn prepare(options: &mut Options, with_stacks: bool) -> Result<Ground, Missing> {
        // Before the log is made: it may have the same name.
        let earlier = options.graph.as_deref().map(earlier).transpose();
        let earlier = earlier.map_err(Missing::Wrong)?;
        enough().map_err(Missing::Unrecorded)?;
        let no_memory = || Missing::Unrecorded("no address space for the agent's tables".into());
        let stacks = match with_stacks {
            true => Stacks::new(options.tracking == Tracking::Paper),
            false => Stacks::none(),
        };
        let stacks = stacks.map_err(Missing::Unrecorded)?;
        let paper = match options.tracking {
            Tracking::Paper => Some(Paper::new().ok_or_else(no_memory)?),
            Tracking::Lazy | Tracking::Cct => None,
        };
        let method_of_site = MethodOfSite::new().ok_or_else(no_memory)?;
        let run = RunId::random();
        let outputs = Outputs::create(options, &header(run)).map_err(Missing::Unrecorded)?;
        if let Some(scarcity) = stacks.scarcity() {
            options.warn(scarcity);
        }
        Ok(Ground {
            earlier,
            outputs,
            method_of_site,
            paper,
            stacks,
            run,
        })
    }
}

impl Agent {
    /// `None` before the agent has started.
    pub fn get() -> Option<&'static Agent> {
        AGENT.get()
    }

    /// # Errors
    /// One line for the user: the agent is loaded twice.
    pub fn start(options: Options, jvmti: Jvmti, ground: Ground) -> Result<&'static Agent, String> {
        let layout = Layout::DEFAULT;
        let Ground {
            earlier,
            mut outputs,
            method_of_site,
            paper,
            stacks,
            run,
        } = ground;
        let mut writer = outputs.log.take().ok_or("there is no log")?;
        let totals = writer.totals(&TOTALS).ok();
        let book = Arc::new(RwLock::new(Book::new(method_of_site)));
        let log = Arc::new(Log::new(writer));
        let journal = LogJournal {
            book: Arc::clone(&book),
            log: Arc::clone(&log),
        };
        let calls = outputs.calls.take();
        let recorder = calls.map(|calls| Recorder::new(calls, Arc::clone(&book)));
        let streamer = outputs.streamer.take();
        let plan = earlier
            .map(|earlier| NamedPlan::new(earlier, layout, &options.encoding, Arc::clone(&book)));
        let matches = plan.as_ref().map(NamedPlan::matches);
        let agent = Agent {
            run,
            jvmti,
            stacks,
            method_of_site,
            book,
            log,
            recorder,
            streamer,
            encoder: Encoder::with(
                layout,
                options.encoding,
                journal,
                plan.map(|plan| Box::new(plan) as Box<dyn Plan>),
                Some(&Pages),
            ),
            matches,
            loaders: Loaders::default(),
            lanes: Lanes::default(),
            originals: Originals::default(),
            archive: Archive::default(),
            twins: Twins::default(),
            tasks: Tasks::default(),
            frames: FrameCache::default(),
            alike: Alike::default(),
            watch: Watch::default(),
            warnings: Warnings::default(),
            live: AtomicBool::new(false),
            began: Instant::now(),
            jni: AtomicPtr::default(),
            fields: OnceLock::new(),
            cells: Mutex::default(),
            event_cells: Mutex::default(),
            event_types: EventTypes::default(),
            own_kinds: OwnKinds::default(),
            types: Types::default(),
            marks: Marks::default(),
            threads: Threads::default(),
            counts: Counts::default(),
            totals,
            coverage: Coverage::default(),
            gate: Gate::new(options.events.gates()),
            ended: Ended::default(),
            trees: Trees::default(),
            leaks: options.events.leak.map(Leaks::new),
            paper,
            options,
        };
        AGENT
            .set(agent)
            .map_err(|_| "the agent is loaded twice".to_string())?;
        outputs.keep();
        let agent = AGENT.get().ok_or("the agent did not start")?;
        for text in &agent.options.warned {
            agent.note_warning(text);
        }
        Ok(agent)
    }

    pub fn env(&self, env: *mut JNIEnv) -> Env {
        Env::new(env, self.jni.load(Ordering::Acquire))
    }

    pub fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn book_mut(&self) -> RwLockWriteGuard<'_, Book> {
        self.book.write().unwrap_or_else(PoisonError::into_inner)
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

    fn note_warning(&self, text: &str) {
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

    pub fn all_cells(&self) -> MutexGuard<'_, Vec<Counters>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn all_event_cells(&self) -> MutexGuard<'_, Vec<Counters<EventCell>>> {
        let cells = self.event_cells.lock();
        cells.unwrap_or_else(PoisonError::into_inner)
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

fn earlier(path: &Path) -> Result<Earlier, String> {
    Earlier::read(path).map_err(|e| format!("graph={}: {e}", path.display()))
}

/// What the log's own pages count.
const TOTALS: [&str; 2] = ["verify.compared", "verify.mismatches"];

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

/// For names that go to the VM: modified UTF-8 holds no zero.
pub fn c_string(text: &str) -> CString {
    CString::new(mutf8::encode(text)).unwrap_or_default()
}
