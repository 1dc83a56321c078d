//! Kinds of events: one entry for each, as `events=` accepts it.
//!
//! A kind defines its name, its bit in the event mask, its kinds in the log, its conflicts with options, and its
//! documentation. [`ALL`] is the list. Readers are:
//!
//! ```text
//! name, argument, conflicts, can_come_later   parser, `lucce ctl`, refusals
//! summary, not_counted                        docs/reference/agent-options.md, `lucce options`
//! mask_bit                                    agent; Java code as a constant: the name in capitals
//! log_kinds                                   agent: names and units of counters; decoder: columns, origins, exports
//! ```
//! The hooks of a kind are in the crate `lucce-instrument`, in the file with the kind's name.

/// The unit of values that are bytes.
pub const BYTES: &str = "bytes";
/// The unit of values that are durations: nanoseconds.
pub const NANOS: &str = "ns";

/// A kind of events as logs name it.
#[derive(Debug)]
pub struct KindDescriptor {
    pub name: &'static str,
    /// Unit of its values; empty: events have no values.
    pub unit: &'static str,
    /// The kind that has the durations of the same events, shown as one more column.
    pub times: Option<&'static str>,
    /// The kind that has the longest value of each context, shown as one more column.
    pub longest: Option<&'static str>,
    /// Whether its events start threads or submit tasks: traces continue there.
    pub starts: bool,
    /// pprof's names for the number of events and for their values.
    pub pprof: Option<[&'static str; 2]>,
    /// Returns Flight Recorder's event type for an event's type.
    pub jfr: fn(&str) -> Option<&'static str>,
}

/// Defaults, which are also those of unknown kinds.
static PLAIN_KIND: KindDescriptor = KindDescriptor::named("");

impl KindDescriptor {
    /// A kind without values, time and names in other tools.
    const fn named(name: &'static str) -> KindDescriptor {
        KindDescriptor {
            name,
            unit: "",
            times: None,
            longest: None,
            starts: false,
            pprof: None,
            jfr: |_| None,
        }
    }

    /// Returns the descriptor of a kind; unknown kinds have a plain one.
    #[must_use]
    pub fn for_kind(kind: &str) -> &'static KindDescriptor {
        let known = KindDescriptor::iter_all().find(|known| known.name == kind);
        known.unwrap_or(&PLAIN_KIND)
    }

    /// Iterates over the kinds in the log of all kinds of `events=`. Some come twice.
    pub fn iter_all() -> impl Iterator<Item = &'static KindDescriptor> {
        ALL.into_iter()
            .flat_map(|kind| kind.log_kinds.iter().copied())
    }

    /// Whether `kind` names this kind.
    #[must_use]
    pub fn is_kind(&self, kind: &str) -> bool {
        self.name == kind
    }
}

/// A kind of events.
pub struct EventKindInfo {
    /// The name in `events=`, with the word behind `=`.
    pub name: &'static str,
    pub argument: KindArgument,
    /// What it records, in Markdown.
    pub summary: &'static str,
    /// What it does not count and a user might expect, in Markdown; may be empty.
    pub not_counted: &'static str,
    /// Its bit of the event mask. No other bit of [`crate::event_mask`] has the same value.
    pub mask_bit: u64,
    /// Its kinds in the log, its own first. An event of a hook has a counter in each, with its bytes or nanoseconds.
    pub log_kinds: &'static [&'static KindDescriptor],
    /// Classes get hooks for it.
    pub has_hooks: bool,
    /// The VM reports all of its events, whatever code causes them: no class needs hooks.
    pub needs_no_hooks: bool,
    /// With `ctl=all`, classes get its hooks and the VM reports its events, so that it can be enabled later.
    pub can_come_later: bool,
    /// It may occur in any method, not only in calls that the program's own code makes. VM entries must then know where
    /// they are.
    pub is_everywhere: bool,
    /// Options that conflict with it, each with the message for the user.
    pub conflicts: &'static [(KindConflict, &'static str)],
}

/// Defaults of a kind. `is_everywhere` is true, the value that is always safe.
const PLAIN: EventKindInfo = EventKindInfo {
    name: "",
    argument: KindArgument::Alone,
    summary: "",
    not_counted: "",
    mask_bit: 0,
    log_kinds: &[],
    has_hooks: false,
    needs_no_hooks: false,
    can_come_later: false,
    is_everywhere: true,
    conflicts: &[],
};

/// The argument of a kind in `events=NAME=…`.
#[derive(Clone, Copy)]
pub enum KindArgument {
    Alone,
    /// This keyword; it also enables another kind.
    Keyword(&'static str, &'static EventKindInfo),
    /// Mean number of bytes between two samples.
    Interval(IntervalArgument),
    /// Patterns of methods, behind a colon.
    Methods,
}

/// The range of sizes that a kind accepts.
#[derive(Clone, Copy)]
pub struct IntervalArgument {
    /// The size if none is given; `None`: a size is required.
    pub default: Option<u32>,
    /// The least size, 1 or 0; 0 makes every allocation a sample.
    pub least: u32,
    /// The expected words of an error message, if other words than a size are accepted.
    pub expected: Option<&'static str>,
}

/// An option that a kind may conflict with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KindConflict {
    /// `lucce attach`.
    Attach,
    /// `burst=`.
    Burst,
    /// `tracking=cct` and `tracking=paper`.
    OtherTracking,
    /// `encoding=static`.
    Static,
    /// `stream=on`.
    Stream,
}

impl KindConflict {
    /// The conflicting options, in Markdown.
    pub(crate) fn option_text(self) -> &'static str {
        match self {
            KindConflict::Attach => "`lucce attach`",
            KindConflict::Burst => "`burst=`",
            KindConflict::OtherTracking => "`tracking=cct` or `tracking=paper`",
            KindConflict::Static => "`encoding=static`",
            KindConflict::Stream => "`stream=on`",
        }
    }

    /// Why the options conflict; may be empty.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            KindConflict::Attach => "a running JVM does not report it without hooks",
            KindConflict::Burst => "objects between two bursts are not followed",
            KindConflict::OtherTracking => "",
            KindConflict::Static => "an earlier run's log has no site for an entry",
            KindConflict::Stream => "a stream has single events, not samples",
        }
    }
}

/// All kinds, by name.
pub static ALL: [&EventKindInfo; 18] = [
    &ALLOC,
    &OBJECTS,
    &ALLOC_SIZES,
    &SAMPLES,
    &CALL,
    &NAMED_CALL,
    &CLASS,
    &EXCEPTION,
    &HEAP,
    &IO,
    &LEAK,
    &LOCK,
    &NATIVE,
    &OPEN,
    &REQUEST,
    &SURVIVE,
    &THREAD,
    &NAMED_TIME,
];

/// Allocations in the log: shown first.
pub static ALLOCATIONS: KindDescriptor = KindDescriptor {
    unit: BYTES,
    pprof: Some(["alloc_objects", "alloc_space"]),
    jfr: |_| Some("jdk.ObjectAllocationSample"),
    ..KindDescriptor::named("alloc")
};

/// Allocations by Java code.
pub static ALLOC: EventKindInfo = EventKindInfo {
    name: "alloc",
    summary: "every allocation by Java code: `new`, `clone`, reflection, method handles, lambdas, concatenation, \
              `Unsafe`; also stack traces of exceptions, and exceptions that the VM throws itself, marked `(VM)`",
    mask_bit: 1,
    log_kinds: &[&ALLOCATIONS],
    has_hooks: true,
    can_come_later: true,
    ..PLAIN
};

/// Allocations by Java code, and objects that the VM makes for itself and for native code. The VM reports the latter.
pub static OBJECTS: EventKindInfo = EventKindInfo {
    name: "alloc=all",
    argument: KindArgument::Keyword("all", &ALLOC),
    summary: "`alloc`, and objects that the VM makes for itself and for native code (JNI, results of its own methods), \
              marked as such",
    mask_bit: 1 << 5,
    log_kinds: &[&ALLOCATIONS],
    conflicts: &[(
        KindConflict::Attach,
        "events=alloc=all needs the agent from the start (-agentpath); an attached agent counts every allocation with \
         alloc=all",
    )],
    ..PLAIN
};

/// The log's key for the size in bytes above which G1 allocates an object in regions of its own.
pub const HUMONGOUS_BYTES: &str = "heap.humongous";

/// Arrays by powers of two of their size, in the contexts of [`ALLOCATIONS`].
pub static ALLOCATION_SIZES: KindDescriptor = KindDescriptor {
    unit: BYTES,
    ..KindDescriptor::named("alloc-size")
};

/// Allocations, and a histogram of array sizes for each context.
pub static ALLOC_SIZES: EventKindInfo = EventKindInfo {
    name: "alloc=sizes",
    argument: KindArgument::Keyword("sizes", &ALLOC),
    summary: "`alloc`, and for each context how many arrays have which size, by powers of two: `report --by size`, \
              `--min-size 1m`",
    mask_bit: 1 << 27,
    log_kinds: &[&ALLOCATIONS, &ALLOCATION_SIZES],
    conflicts: &[
        (
            KindConflict::Attach,
            "events=alloc=sizes needs the agent from the start (-agentpath)",
        ),
        (
            KindConflict::OtherTracking,
            "events=alloc=sizes needs tracking=lazy",
        ),
    ],
    ..PLAIN
};

/// Allocations sampled by the VM.
pub static SAMPLES: EventKindInfo = EventKindInfo {
    name: "alloc=SIZE",
    argument: KindArgument::Interval(IntervalArgument {
        default: None,
        least: 1,
        expected: Some("alloc, alloc=all, alloc=sizes, or a size such as alloc=512k"),
    }),
    summary: "one sampled allocation per SIZE bytes, from any code, instead of every allocation; reports estimate \
              totals from the samples and say so",
    mask_bit: 1 << 16,
    log_kinds: &[&ALLOCATIONS],
    needs_no_hooks: true,
    is_everywhere: false,
    conflicts: &[
        (
            KindConflict::Attach,
            "events=alloc=SIZE needs the agent from the start (-agentpath); an attached agent samples with alloc=SIZE",
        ),
        (
            KindConflict::Stream,
            "stream=on has single events, and events=alloc=SIZE only samples",
        ),
    ],
    ..PLAIN
};

static ENTRIES: KindDescriptor = KindDescriptor::named("call");

/// Entries of methods.
pub static CALL: EventKindInfo = EventKindInfo {
    name: "call",
    summary: "every method entry",
    not_counted: "natives, `Object.<init>`, methods that the compiler replaces by its own code, methods that mount virtual \
                  threads, `Unsafe`, the seven methods that `Unsafe` calls in other classes, \
                  `Invokers.checkCustomized`, `Invokers.maybeCustomize` and `MethodHandle.maybeCustomize`",
    mask_bit: 1 << 6,
    log_kinds: &[&ENTRIES],
    has_hooks: true,
    conflicts: &[
        (
            KindConflict::Attach,
            "events=call counts in hooks, which need the agent from the start (-agentpath)",
        ),
        (
            KindConflict::OtherTracking,
            "events=call needs tracking=lazy",
        ),
        // An earlier run's log has no site for an entry.
        (
            KindConflict::Static,
            "events=call does not go with encoding=static",
        ),
    ],
    ..PLAIN
};

/// Entries of the methods that match patterns.
pub static NAMED_CALL: EventKindInfo = EventKindInfo {
    name: "call:METHODS",
    argument: KindArgument::Methods,
    summary: "calls of [named methods](../guide/locks-and-timeline.md#named-methods): \
              `call:java.lang.System.gc+com.acme.Repo.*`",
    not_counted: "methods without bytecode; the log names those that match",
    mask_bit: 1 << 21,
    log_kinds: &[&ENTRIES],
    has_hooks: true,
    conflicts: &NAMED_CONFLICTS,
    ..PLAIN
};

/// Conflicts of the kinds for named methods.
const NAMED_CONFLICTS: [(KindConflict, &str); 2] = [
    (
        KindConflict::OtherTracking,
        "events=call:METHODS and events=time:METHODS need tracking=lazy",
    ),
    (
        KindConflict::Static,
        "events=call:METHODS and events=time:METHODS do not go with encoding=static",
    ),
];

static METHOD_TIMES: KindDescriptor = KindDescriptor {
    unit: NANOS,
    longest: Some(LONGEST_TIMES.name),
    jfr: |_| Some("jdk.MethodTrace"),
    ..KindDescriptor::named("time")
};

/// For each thread and context the longest time. It is no sum.
static LONGEST_TIMES: KindDescriptor = KindDescriptor {
    unit: NANOS,
    ..KindDescriptor::named("time-longest")
};

/// Times within the methods that match patterns.
pub static NAMED_TIME: EventKindInfo = EventKindInfo {
    name: "time:METHODS",
    argument: KindArgument::Methods,
    summary: "`call` of named methods, and `time` within them: sum, longest, and counts by powers of two; times that \
              an exception ended are marked `threw`",
    not_counted: "a call within a call of the same method; constructors that throw; the first method of a thread",
    mask_bit: 1 << 22,
    log_kinds: &[&METHOD_TIMES, &LONGEST_TIMES],
    has_hooks: true,
    conflicts: &NAMED_CONFLICTS,
    ..PLAIN
};

/// Defined classes in the log, with the bytes of their class files. The type is the class of the loader.
pub static CLASSES: KindDescriptor = KindDescriptor {
    unit: BYTES,
    jfr: |_| Some("jdk.ClassDefine"),
    ..KindDescriptor::named("class")
};

/// Unloaded classes, with the contexts and types of their definitions. The difference to [`CLASSES`] is what lives.
pub static CLASS_UNLOADS: KindDescriptor = KindDescriptor {
    unit: BYTES,
    ..KindDescriptor::named("class-unload")
};

/// Class loaders, by the context that defined their first class.
pub static CLASS_LOADERS: KindDescriptor = KindDescriptor::named("class-loader");

/// Unloaded class loaders, with the contexts and types of [`CLASS_LOADERS`].
pub static LOADER_UNLOADS: KindDescriptor = KindDescriptor::named("class-loader-unload");

/// Classes that the VM defines.
pub static CLASS: EventKindInfo = EventKindInfo {
    name: "class",
    summary: "[defined classes](../guide/locks-and-timeline.md#classes) by context and loader, with the bytes of class \
              files; which of them live, and how many loaders there are",
    not_counted: "classes defined before the program starts, or before the agent came; arrays; bytes of hidden classes \
                  without hooks",
    mask_bit: 1 << 26,
    log_kinds: &[&CLASSES, &CLASS_UNLOADS, &CLASS_LOADERS, &LOADER_UNLOADS],
    needs_no_hooks: true,
    can_come_later: true,
    is_everywhere: false,
    ..PLAIN
};

/// Thrown exceptions in the log.
pub static EXCEPTIONS: KindDescriptor = KindDescriptor {
    jfr: |_| Some("jdk.JavaExceptionThrow"),
    ..KindDescriptor::named("exception")
};

/// Caught exceptions by the handler, with the same contexts. A handler that never reads the exception drops it.
pub static CATCHES: KindDescriptor = KindDescriptor::named("exception-catch");

/// Thrown exceptions, reported by the VM.
pub static EXCEPTION: EventKindInfo = EventKindInfo {
    name: "exception",
    summary: "every exception thrown, and whether it is caught; `exception-catch` has the handlers",
    mask_bit: 1 << 4,
    log_kinds: &[&EXCEPTIONS, &CATCHES],
    needs_no_hooks: true,
    can_come_later: true,
    is_everywhere: false,
    conflicts: &[(
        KindConflict::Attach,
        "events=exception: HotSpot reports exceptions only if it was started with them: start the JVM with \
         -agentpath:/path/to/liblucce.so=events=exception, or by `lucce run --events exception`",
    )],
    ..PLAIN
};

/// The log's key for the reason why `survive` has no numbers.
pub const NO_SURVIVAL: &str = "survive.none";
/// The log's key for the tenuring threshold at the start, if `survive` has numbers.
pub const TENURING_THRESHOLD: &str = "survive.threshold";
/// The log's key for the number of young collections that `survive` has seen.
pub const YOUNG_COLLECTIONS: &str = "survive.collections";
/// The log's keys for the numbers of samples that `survive` did not follow: there was no room or no reference; a collection
/// was missed.
pub const UNFOLLOWED_SAMPLES: [&str; 2] = ["survive.dropped", "survive.missed"];
/// The log's key for the sampling interval of `heap`, in bytes.
pub const HEAP_INTERVAL: &str = "heap.interval";

/// Allocations that reached the heap, estimated from samples. Exact counts of the same contexts are [`ALLOCATIONS`].
pub static HEAP_SAMPLES: KindDescriptor = KindDescriptor {
    unit: BYTES,
    ..KindDescriptor::named("heap")
};

/// Allocations sampled by the VM, beside the exact counts of `alloc`.
pub static HEAP: EventKindInfo = EventKindInfo {
    name: "heap",
    argument: KindArgument::Interval(IntervalArgument {
        default: Some(DEFAULT_INTERVAL),
        least: 1,
        expected: None,
    }),
    summary: "with `alloc`: one sample per SIZE bytes (`heap=SIZE`) [default: 512k] of what \
              [reached the heap](../guide/allocations.md#what-is-really-allocated), as compiled code allocates less than \
              bytecode",
    mask_bit: 1 << 20,
    log_kinds: &[&HEAP_SAMPLES],
    needs_no_hooks: true,
    is_everywhere: false,
    conflicts: &[(
        KindConflict::Attach,
        "events=heap is shown beside the exact counts of alloc, which need the agent from the start (-agentpath)",
    )],
    ..PLAIN
};

/// Numbers of young collections, ascending: `survive` counts which objects were not freed by as many.
pub const SURVIVED_COLLECTIONS: [u64; 4] = [1, 2, 4, 8];

/// Sampled objects that are in the old generation.
pub static OLD_OBJECTS: KindDescriptor = KindDescriptor {
    unit: BYTES,
    ..KindDescriptor::named("survive")
};

/// Sampled objects that died before they were old.
pub static DIED_YOUNG: KindDescriptor = KindDescriptor {
    unit: BYTES,
    ..KindDescriptor::named("survive-died")
};

/// Sampled objects that were not freed by as many young collections as [`SURVIVED_COLLECTIONS`] says, in its order.
pub static SURVIVORS: [KindDescriptor; 4] = [
    survivors("survive-1"),
    survivors("survive-2"),
    survivors("survive-4"),
    survivors("survive-8"),
];

const fn survivors(name: &'static str) -> KindDescriptor {
    KindDescriptor {
        unit: BYTES,
        ..KindDescriptor::named(name)
    }
}

/// How long the samples of [`HEAP`] live.
pub static SURVIVE: EventKindInfo = EventKindInfo {
    name: "survive",
    summary: "with `alloc`: `heap`, and [how long its samples live](../guide/allocations.md#what-survives): through 1, 2, 4, 8 \
              young collections, and into the old generation",
    not_counted: "collectors other than G1, Parallel and Serial: the log says why",
    mask_bit: 1 << 25,
    log_kinds: &[
        &OLD_OBJECTS,
        &DIED_YOUNG,
        &SURVIVORS[0],
        &SURVIVORS[1],
        &SURVIVORS[2],
        &SURVIVORS[3],
    ],
    needs_no_hooks: true,
    is_everywhere: false,
    conflicts: &[(
        KindConflict::Attach,
        "events=survive is shown beside the exact counts of alloc, which need the agent from the start (-agentpath)",
    )],
    ..PLAIN
};

static IO_BYTES: KindDescriptor = KindDescriptor {
    unit: BYTES,
    times: Some(IO_TIME.name),
    ..KindDescriptor::named("io")
};

static IO_TIME: KindDescriptor = KindDescriptor {
    unit: NANOS,
    jfr: |what| match (what.contains("socket"), what) {
        (true, _) if what.contains("write") => Some("jdk.SocketWrite"),
        (true, _) => Some("jdk.SocketRead"),
        (false, _) if what.contains("write") => Some("jdk.FileWrite"),
        (false, _) if what.contains("read") => Some("jdk.FileRead"),
        (false, _) => None,
    },
    ..KindDescriptor::named("io-time")
};

/// Reads and writes of files and sockets.
pub static IO: EventKindInfo = EventKindInfo {
    name: "io",
    summary: "reads and writes of files and sockets, accepts, connects, waits for one socket: `io` with bytes, `io-time` with \
              time; the report of `io` shows both",
    not_counted: "operations that throw or find nothing available; mapped files, `Files.copy`, directories, selectors",
    mask_bit: 1 << 8,
    log_kinds: &[&IO_BYTES, &IO_TIME],
    has_hooks: true,
    can_come_later: true,
    conflicts: &[(
        KindConflict::Attach,
        "events=io counts in hooks, which need the agent from the start (-agentpath)",
    )],
    ..PLAIN
};

/// The VM's own sampling interval in bytes: 512 KB.
const DEFAULT_INTERVAL: u32 = 512 << 10;

/// Objects sampled for the search of leaks.
pub static FOLLOWED_OBJECTS: KindDescriptor = KindDescriptor {
    unit: BYTES,
    ..KindDescriptor::named("leak")
};

/// Sampled objects that were alive when the log last recorded them. They have records of their own, not counters.
pub static LIVE_OBJECTS: KindDescriptor = KindDescriptor {
    unit: BYTES,
    pprof: Some(["inuse_objects", "inuse_space"]),
    ..KindDescriptor::named("inuse")
};

/// Objects sampled by the VM, followed while they live.
pub static LEAK: EventKindInfo = EventKindInfo {
    name: "leak",
    argument: KindArgument::Interval(IntervalArgument {
        default: Some(DEFAULT_INTERVAL),
        least: 0,
        expected: None,
    }),
    summary: "one followed object per SIZE bytes (`leak=SIZE`) [default: 512k], until it dies, for \
              [`lucce leaks`](../guide/leaks.md); `leak=0` follows every object",
    mask_bit: 1 << 2,
    log_kinds: &[&FOLLOWED_OBJECTS, &LIVE_OBJECTS],
    needs_no_hooks: true,
    is_everywhere: false,
    // Objects made between two bursts are not followed, so the live objects at the end would be incomplete.
    conflicts: &[(KindConflict::Burst, "burst= does not go with events=leak")],
    ..PLAIN
};

/// Waits of threads in the log.
pub static LOCK_WAITS: KindDescriptor = KindDescriptor {
    unit: NANOS,
    pprof: Some(["contentions", "delay"]),
    jfr: |what| {
        Some(match what {
            _ if what.ends_with("(park)") => "jdk.ThreadPark",
            _ if what.ends_with("(wait)") => "jdk.JavaMonitorWait",
            _ => "jdk.JavaMonitorEnter",
        })
    },
    ..KindDescriptor::named("lock")
};

/// Holders of locks in the log: the context that held a lock when another thread began to wait for it, and the time until it
/// released the lock. The type also names the context that waits.
pub static LOCK_HOLDERS: KindDescriptor = KindDescriptor {
    unit: NANOS,
    ..KindDescriptor::named("lock-holder")
};

/// Living threads in the log, by the context that started them. Counters belong to one thread at a time: count 1 while it
/// lives, and the time of its start. Not a kind of events.
pub static ALIVE_THREADS: KindDescriptor = KindDescriptor::named("thread-alive");

/// Memory outside of the heap in the log.
pub static NATIVE_MEMORY: KindDescriptor = KindDescriptor {
    unit: BYTES,
    ..KindDescriptor::named("native")
};

/// Living blocks of memory outside of the heap, by the context that allocated them: number and bytes now. Not a kind of events.
pub static LIVING_BLOCKS: KindDescriptor = KindDescriptor {
    unit: BYTES,
    ..KindDescriptor::named("native-live")
};

/// The time at which the oldest living block of a context was allocated, in milliseconds since 1970. Not a kind of events.
pub static OLDEST_BLOCKS: KindDescriptor = KindDescriptor::named("native-oldest");

/// Whether the log's counters of this kind are no events but belong to those of another kind.
#[must_use]
pub fn is_companion_kind(name: &str) -> bool {
    let companions = [
        &LOCK_HOLDERS,
        &ALIVE_THREADS,
        &CATCHES,
        &LIVING_BLOCKS,
        &OLDEST_BLOCKS,
        &CLASS_UNLOADS,
        &CLASS_LOADERS,
        &LOADER_UNLOADS,
        &OPEN_RESOURCES,
        &COLLECTED_RESOURCES,
        &SAMPLE_ERRORS,
    ];
    companions.iter().any(|kind| kind.is_kind(name))
}

/// Whether a kind in the log says more about the events of another kind, which are listed there: handlers of exceptions, or
/// which allocations reached the heap, how long they lived, and their sizes.
#[must_use]
pub fn is_supplement_kind(name: &str) -> bool {
    let mut samples = HEAP.log_kinds.iter().chain(SURVIVE.log_kinds);
    // Readers add open resources to the events to list them.
    is_companion_kind(name) && !OPEN_RESOURCES.is_kind(name)
        || ALLOCATION_SIZES.is_kind(name)
        || samples.any(|kind| kind.is_kind(name))
}

/// The errors of sampled allocations, if the sampling interval varies: in each context the number of samples, and the sum of
/// their variances in units of [`VARIANCE_UNIT`]. Not a kind of events.
pub static SAMPLE_ERRORS: KindDescriptor = KindDescriptor::named("alloc-error");

/// The unit of variances in [`SAMPLE_ERRORS`]: 256 bytes, squared.
pub const VARIANCE_UNIT: f64 = 65_536.0;

/// Waiting threads. The VM reports monitors; calls that park a thread have hooks.
pub static LOCK: EventKindInfo = EventKindInfo {
    name: "lock",
    summary: "contended `synchronized` (enter), `Object.wait` (wait) and `LockSupport` (park), with the time until the \
              thread continues",
    not_counted: "parking by native code",
    mask_bit: 1 << 3,
    log_kinds: &[&LOCK_WAITS],
    has_hooks: true,
    can_come_later: true,
    ..PLAIN
};

/// Memory outside of the heap. The agent takes the place of the JDK's native methods and of functions in the symbol tables of
/// native libraries.
pub static NATIVE: EventKindInfo = EventKindInfo {
    name: "native",
    summary: "[memory outside of the heap](../guide/allocations.md#memory-outside-of-the-heap): direct buffers, `Unsafe`, \
              mapped files, `malloc` and `mmap` of native libraries; what lives and its age",
    not_counted: "memory of the JVM and of the C library",
    mask_bit: 1 << 24,
    log_kinds: &[&NATIVE_MEMORY],
    needs_no_hooks: true,
    conflicts: &[
        (
            KindConflict::Attach,
            "events=native needs the agent from the start (-agentpath): the JDK's native methods are bound early",
        ),
        (KindConflict::Burst, "burst= does not go with events=native"),
    ],
    ..PLAIN
};

/// Openings of resources in the log.
pub static OPENINGS: KindDescriptor = KindDescriptor::named("open");

/// Open resources in the log, one counter for each: see [`open_resource_value`].
pub static OPEN_RESOURCES: KindDescriptor = KindDescriptor::named("open-now");

/// Resources that were collected before anything closed them, by the context that opened them.
pub static COLLECTED_RESOURCES: KindDescriptor = KindDescriptor::named("open-collected");

/// Number of bits of the time in the value of an open resource.
const OPEN_TIME_BITS: u32 = 42;

/// Returns the value of an open resource's counter: milliseconds since 1970, and the thread id of the thread that opened it.
#[must_use]
pub fn open_resource_value(millis: u64, thread: u32) -> u64 {
    let thread = u64::from(thread);
    let thread = match thread >> (u64::BITS - OPEN_TIME_BITS) {
        0 => thread,
        // The thread is not known.
        _ => 0,
    };
    thread << OPEN_TIME_BITS | millis & ((1 << OPEN_TIME_BITS) - 1)
}

/// Splits the value of an open resource's counter into its time and its thread.
#[must_use]
pub fn split_open_resource_value(value: u64) -> (u64, u32) {
    let thread = (value >> OPEN_TIME_BITS) as u32;
    (value & ((1 << OPEN_TIME_BITS) - 1), thread)
}

/// Resources that are opened, followed until they are closed or collected.
pub static OPEN: EventKindInfo = EventKindInfo {
    name: "open",
    summary: "openings of files, sockets, processes, executors, statements, pooled objects and other resources, for \
              [`lucce open`](../guide/leaks.md#what-is-open)",
    not_counted: "what was open before the agent; attached, registrations with a cleaner",
    mask_bit: 1 << 23,
    log_kinds: &[&OPENINGS],
    has_hooks: true,
    conflicts: &[
        (
            KindConflict::OtherTracking,
            "events=open needs tracking=lazy",
        ),
        (KindConflict::Burst, "burst= does not go with events=open"),
        (
            KindConflict::Static,
            "events=open does not go with encoding=static",
        ),
    ],
    ..PLAIN
};

/// Requests in the log.
static REQUESTS: KindDescriptor = KindDescriptor::named("request");

/// Requests, messages and jobs that the program receives. Each opens a tag `request=NAME`.
pub static REQUEST: EventKindInfo = EventKindInfo {
    name: "request",
    summary: "requests: HTTP (servlets, Spring, JAX-RS, `com.sun.net.httpserver`, Netty), gRPC, Kafka, JMS, scheduled jobs; \
              each opens a [tag](../guide/api-and-log-correlation.md#requests)",
    mask_bit: 1 << 9,
    log_kinds: &[&REQUESTS],
    has_hooks: true,
    can_come_later: true,
    is_everywhere: false,
    conflicts: &[
        (
            KindConflict::Attach,
            "events=request counts in hooks, which need the agent from the start (-agentpath)",
        ),
        (
            KindConflict::OtherTracking,
            "events=request needs tracking=lazy",
        ),
        (
            KindConflict::Static,
            "events=request does not go with encoding=static",
        ),
    ],
    ..PLAIN
};

static THREAD_STARTS: KindDescriptor = KindDescriptor {
    starts: true,
    ..KindDescriptor::named("thread")
};

/// Submissions of tasks in the log.
pub static TASKS: KindDescriptor = KindDescriptor {
    starts: true,
    ..KindDescriptor::named("task")
};

/// Starts of threads, and submissions of tasks to executors.
pub static THREAD: EventKindInfo = EventKindInfo {
    name: "thread",
    summary: "thread starts (`thread`) and tasks submitted to executors (`task`), for `--across-threads`",
    mask_bit: 1 << 7,
    log_kinds: &[&THREAD_STARTS, &TASKS],
    has_hooks: true,
    can_come_later: true,
    is_everywhere: false,
    conflicts: &[(
        KindConflict::Attach,
        "events=thread needs the agent from the start (-agentpath): a running JVM does not report who starts a thread or \
         submits a task",
    )],
    ..PLAIN
};

impl EventKindInfo {
    /// Returns the part of the name before `=` or `:`.
    #[must_use]
    pub fn first_name(&self) -> &'static str {
        self.name
            .split_once(['=', ':'])
            .map_or(self.name, |(name, _)| name)
    }

    /// Returns the message for the user if the kind and the option are both requested.
    #[must_use]
    pub fn conflict_message(&self, what: KindConflict) -> Option<&'static str> {
        let conflict = self.conflicts.iter().find(|(known, _)| *known == what);
        conflict.map(|(_, why)| *why)
    }
}

/// A set of kinds, stored as bits of the event mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventKindSet(u64);

impl EventKindSet {
    #[must_use]
    pub fn contains(self, kind: &EventKindInfo) -> bool {
        self.0 & kind.mask_bit != 0
    }

    #[must_use]
    pub fn with_kind(self, kind: &EventKindInfo) -> EventKindSet {
        EventKindSet(self.0 | kind.mask_bit)
    }

    #[must_use]
    pub fn without_kind(self, kind: &EventKindInfo) -> EventKindSet {
        EventKindSet(self.0 & !kind.mask_bit)
    }

    /// Returns the kinds that satisfy `holds`.
    #[must_use]
    pub fn select(holds: impl Fn(&EventKindInfo) -> bool) -> EventKindSet {
        let kinds = ALL.iter().filter(|kind| holds(kind));
        kinds.fold(EventKindSet::default(), |kinds, kind| kinds.with_kind(kind))
    }

    /// Returns the kinds in either set.
    #[must_use]
    pub fn union(self, other: EventKindSet) -> EventKindSet {
        EventKindSet(self.0 | other.0)
    }

    /// Returns the kinds of these bits; other bits are ignored.
    #[must_use]
    pub fn from_mask_bits(bits: u64) -> EventKindSet {
        EventKindSet::select(|kind| bits & kind.mask_bit != 0)
    }

    /// Returns the set as bits of the event mask.
    #[must_use]
    pub fn mask_bits(self) -> u64 {
        self.0
    }

    pub fn iter(self) -> impl Iterator<Item = &'static EventKindInfo> {
        let all = ALL.into_iter();
        all.filter(move |kind| self.contains(kind))
    }
}

#[cfg(test)]
mod kinds_tests {
    use super::*;
    use crate::event_mask;

    #[test]
    fn each_kind_has_a_bit_a_name_and_a_description() {
        let mut bits = event_mask::ALL.iter().fold(0, |bits, (_, bit)| bits | bit);
        for kind in ALL {
            assert_eq!(kind.mask_bit.count_ones(), 1, "{}", kind.name);
            assert_eq!(bits & kind.mask_bit, 0, "{}", kind.name);
            bits |= kind.mask_bit;
            let mut named = ALL.iter().filter(|other| other.name == kind.name);
            assert!(named.next().is_some() && named.next().is_none());
            assert!(kind.summary.len() > 10, "{}", kind.name);
        }
    }

    #[test]
    fn each_kind_names_its_kinds_in_the_log() {
        for kind in ALL {
            let own = kind.log_kinds.first().map(|own| own.name);
            assert_eq!(own, Some(kind.first_name()));
            // A hook hands over one size and one duration.
            for unit in [BYTES, NANOS] {
                let mut same = kind.log_kinds.iter().filter(|log| log.unit == unit);
                let without =
                    [&LEAK, &NAMED_TIME, &SURVIVE, &ALLOC_SIZES].map(|kind| kind.mask_bit);
                let has_hook_calls = kind.has_hooks && !without.contains(&kind.mask_bit);
                assert!(!has_hook_calls || same.nth(1).is_none(), "{}", kind.name);
            }
        }
        for descriptor in KindDescriptor::iter_all() {
            let known = KindDescriptor::for_kind(descriptor.name);
            assert!(std::ptr::eq(known, descriptor), "{}", descriptor.name);
            let times = descriptor.times.into_iter().chain(descriptor.longest);
            let mut times = times.map(KindDescriptor::for_kind);
            assert!(times.all(|times| times.unit == NANOS));
        }
        let other = KindDescriptor::for_kind("requests");
        assert!((other.name, other.unit, other.times) == ("", "", None));
    }

    #[test]
    fn an_open_resource_has_a_time_and_a_thread() {
        for (millis, thread) in [(0, 0), (1_764_000_000_000, 1), (1 << 41, (1 << 22) - 1)] {
            let value = open_resource_value(millis, thread);
            assert_eq!(split_open_resource_value(value), (millis, thread));
        }
        let unknown = open_resource_value(7, 1 << 22);
        assert_eq!(split_open_resource_value(unknown), (7, 0));
    }

    #[test]
    fn sets_of_kinds() {
        let both = EventKindSet::default().with_kind(&IO).with_kind(&LOCK);
        assert!(both.contains(&IO) && both.contains(&LOCK) && !both.contains(&ALLOC));
        assert_eq!(both.iter().count(), 2);
        assert_eq!(
            EventKindSet::from_mask_bits(both.mask_bits() | event_mask::OWN),
            both
        );
    }
}
