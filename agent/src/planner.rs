//! What to insert into a class: decided from its bytes and names alone.
//!
//! A method's frame is one of four kinds, see [`FrameKind`]. The lists below name the methods of
//! the JDK that the VM treats in a way of its own.

use std::collections::HashMap;

use lucce_bytecode::{
    Alloc, AllocKind, Call, ClassFile, Code, Entry, Error, Helper, Insert, Method, MethodPlan,
    NewField, Plan, Scan,
};

use crate::options::Events;
use crate::{quiet, tasks, vm_calls};

/// How a method takes part in the shadow stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// No hooks: it calls nothing that could ask for a context.
    Leaf,
    /// Takes a slot.
    Push,
    /// Takes a slot after asking the VM for its caller: the VM may call it anywhere.
    Vm,
    /// Takes a slot: the first of its thread's.
    First,
    /// Takes a slot: the VM may call it on a native thread that attaches itself, from no frame.
    Thread,
    /// Has no slot and is not shown: what it calls has the slot that it could have had itself.
    Peek,
    /// The same for a class initialiser, which the VM enters.
    PeekVm,
}

/// What a site is, and for allocations the descriptor of what is allocated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mark {
    Call,
    /// A call of a native method of the same class that calls back; the native's method index.
    Bracket(usize),
    New(String),
    Array(String),
    /// Several dimensions at once.
    Arrays(String),
    /// A call of one of [`INTRINSICS`]: the allocation in it is counted here.
    Intrinsic(usize),
    /// In the body of one of [`INTRINSICS`]: a call replaced by a helper that does not count.
    Uncounted,
    Current,
    /// `CallContext.event`
    Event,
    /// A call of a native method that makes an object, and that the compiler may replace by code of its own.
    Native(Helper<'static>),
    /// `monitorenter`: the event itself comes from the VM.
    Monitor,
    /// Parks the thread; the helper that does it.
    Park(Helper<'static>),
    /// The method's entry, where entries are counted or recorded.
    Entry,
    /// The call by which a thread starts another one, `this`.
    Start,
    /// An executor is given a task, which is in this local, or on top of the stack.
    Submit(Option<u8>),
    /// An executor runs the task on top of the stack.
    Run,
    /// An executor has done with the task that it ran.
    Ran,
    /// A virtual thread gives an executor its own continuation.
    Schedule,
    /// The frame goes on in a context that is given, and when that ends.
    Scope,
    ScopeEnd,
    /// `ClassLoader.defineClass0`: marked and redirected.
    DefineHidden,
}

/// A place in a method that gets a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub bci: u16,
    pub mark: Mark,
}

/// What is done to one method, before ids are known.
#[derive(Clone, Debug)]
pub struct Shape {
    pub frame: FrameKind,
    /// Left alone on purpose, and not shown in traces.
    pub transparent: bool,
    pub places: Vec<Place>,
    pub lines: Vec<(u16, u16)>,
    /// Calls of a [`FrameKind::Peek`] before which the pointer is put back.
    pub restores: Vec<u16>,
    /// Runs on a carrier while the current thread may be a virtual one.
    pub switches: bool,
    /// The method is one of [`INTRINSICS`]: which, and the bci of its allocation.
    pub intrinsic: Option<(usize, u16)>,
}

impl Shape {
    /// Of a method that is left as it is.
    pub fn without_hooks(hidden: bool) -> Shape {
        Shape {
            transparent: hidden,
            ..Shape::none()
        }
    }

    fn none() -> Shape {
        Shape {
            frame: FrameKind::Leaf,
            transparent: false,
            places: Vec::new(),
            lines: Vec::new(),
            restores: Vec::new(),
            switches: false,
            intrinsic: None,
        }
    }

    /// Whether the first place is the entry.
    fn counts_entries(&self) -> bool {
        self.places
            .first()
            .is_some_and(|place| place.mark == Mark::Entry)
    }
}

pub const RT: &str = "java/lang/LucceRt";
pub const CLASS_INITIALIZER: &str = "<clinit>";
/// Where entries are counted its methods are no leaves: without the compiler they call others.
const MATH: &str = "java/lang/Math";
const CONTINUATION: &str = "jdk/internal/vm/Continuation";
/// Its methods that have nothing to do with mounting. In all others the pointer must not change: the VM
/// may unmount a thread between a call's hook and the callee's entry.
const NO_MOUNTING: [&str; 5] = [
    CLASS_INITIALIZER,
    "getStackTrace",
    "stackWalker",
    "lambda$getStackTrace$0",
    "lambda$getStackTrace$1",
];
/// What those others call: methods of the class that implements `JavaLangAccess`, see [`QUIET_CLASS`].
const QUIET: [&str; 6] = [
    "currentCarrierThread",
    "getContinuation",
    "setContinuation",
    "virtualThreadContinuationScope",
    "scopedValueCache",
    "setScopedValueCache",
];
const QUIET_CLASS: &str = "java/lang/System$";
const CONTEXT: &str = "io/lucce/CallContext";
const UNSAFE: &str = "jdk/internal/misc/Unsafe";
/// The one method of Unsafe that runs a program's code.
const INVOKE_CLEANER: &str = "invokeCleaner";

const fn helper(name: &'static str, descriptor: &'static str) -> Helper<'static> {
    Helper {
        class: RT,
        name,
        descriptor,
    }
}

pub const ENTER: Helper = helper("enter", "()J");
/// Where contexts are looked up at entry.
const ENTER_AT: Helper = helper("enter", "(I)J");
pub const ENTER_FIRST: Helper = helper("enterFirst", "()J");
const ENTER_THREAD: Helper = helper("enterThread", "()J");
pub const ENTER_VM: Helper = helper("enterVm", "(I)J");
pub const EXIT_VM: Helper = helper("exitVm", "(J)V");
pub const RESTORE: Helper = helper("restore", "(J)V");
/// Only where calls are recorded.
const EXIT: Helper = helper("exit", "(J)V");
const UNWIND_VM: Helper = helper("unwindVm", "(J)V");
const PUB: Helper = helper("pub", "(JI)V");
const PUB_SWITCHING: Helper = helper("pubSwitching", "(JI)V");
const PUB_NATIVE: Helper = helper("pubNative", "(JII)V");
const ALLOC: Helper = helper("alloc", "(JI)V");
const ARRAYS: Helper = helper("arrays", "(Ljava/lang/Object;JI)V");
const NEW_BYTES_FOR: Helper = helper("newBytesFor", "(I)[B");
const CURRENT: Helper = helper("current", "(JI)J");
const EVENT: Helper = helper("event", "(Ljava/lang/String;JJI)V");
const CALLED: Helper = helper("called", "(I)J");
const CALLED_FIRST: Helper = helper("calledFirst", "(I)J");
const CALLED_THREAD: Helper = helper("calledThread", "(I)J");
const CALLED_VM: Helper = helper("calledVm", "(I)J");
const STARTS: Helper = helper("starts", "(Ljava/lang/Thread;JI)V");
/// In classes out of scope.
pub const STARTS_OUTSIDE: Helper = helper("startsOutside", "(Ljava/lang/Thread;JI)V");
const SUBMITTED: Helper = helper("submitted", "(Ljava/lang/Object;JI)V");
const RUNS: Helper = helper("runs", "(Ljava/lang/Object;JI)V");
const RAN: Helper = helper("ran", "(JI)V");
const SCHEDULES: Helper = helper("schedules", "(JI)V");
const SCOPE: Helper = helper("scope", "(JJI)V");
const SCOPE_END: Helper = helper("scopeEnd", "(JI)V");
const SCOPE_CLASS: &str = "io/lucce/CallContext$Scope";
/// Calls of methods that programs call which a hook replaces.
const API: [(&str, &str, &str, Mark); 4] = [
    (CONTEXT, "current", "()J", Mark::Current),
    (CONTEXT, "event", "(Ljava/lang/String;J)V", Mark::Event),
    (SCOPE_CLASS, "begin", "(J)V", Mark::Scope),
    (SCOPE_CLASS, "end", "()V", Mark::ScopeEnd),
];
const DEFINE_CLASS_0: &str = "(Ljava/lang/ClassLoader;Ljava/lang/Class;Ljava/lang/String;[BIILjava/security/ProtectionDomain;ZILjava/lang/Object;)Ljava/lang/Class;";
pub const REDIRECT_DEFINITION: Insert = Insert::Redirect {
    helper: helper("defineClass0", DEFINE_CLASS_0),
};

/// Fields of `java.lang.Thread`: see the helper class. Public, synthetic.
const THREAD_FIELDS: [&str; 5] = ["$fp", "$ev", "$ts", "$rc", "$cx"];

/// Methods that run no Java code that could ask for a context, whatever their arguments:
/// natives that do not call back, and intrinsics. `None`: every method of the class.
const LEAVES: [(&str, Option<&[&str]>); 6] = [
    (UNSAFE, None),
    ("java/lang/Object", Some(&["<init>", "getClass"])),
    ("java/lang/Thread", Some(&["currentThread", "onSpinWait"])),
    (
        "java/lang/System",
        Some(&[
            "arraycopy",
            "nanoTime",
            "currentTimeMillis",
            "identityHashCode",
        ]),
    ),
    (
        "java/lang/Math",
        Some(&[
            "abs", "max", "min", "sqrt", "ceil", "floor", "fma", "sin", "cos",
        ]),
    ),
    (
        "java/lang/Float",
        Some(&["floatToRawIntBits", "intBitsToFloat"]),
    ),
];

/// A method that allocates and for which the compiler may substitute code of its own, without our
/// hooks. Its allocation is counted by the caller, on its behalf, whether it was substituted or not.
pub struct Intrinsic {
    pub class: &'static str,
    pub name: &'static str,
    pub descriptor: &'static str,
    /// What it allocates, as a descriptor.
    pub allocates: &'static str,
    counted: Helper<'static>,
    /// The method that it calls to allocate.
    through: Option<&'static str>,
}

/// The n-th has the reserved site n + 1.
pub const INTRINSICS: [Intrinsic; 3] = [
    Intrinsic {
        class: "java/util/Arrays",
        name: "copyOf",
        descriptor: "([Ljava/lang/Object;ILjava/lang/Class;)[Ljava/lang/Object;",
        allocates: "[Ljava/lang/Object;",
        counted: helper("counted", "([Ljava/lang/Object;JI)V"),
        through: None,
    },
    Intrinsic {
        class: "java/util/Arrays",
        name: "copyOfRange",
        descriptor: "([Ljava/lang/Object;IILjava/lang/Class;)[Ljava/lang/Object;",
        allocates: "[Ljava/lang/Object;",
        counted: helper("counted", "([Ljava/lang/Object;JI)V"),
        through: None,
    },
    Intrinsic {
        class: "java/lang/StringUTF16",
        name: "toBytes",
        descriptor: "([CII)[B",
        allocates: "[B",
        counted: helper("counted", "([BJI)V"),
        through: Some("newBytesFor"),
    },
];

/// What parks the current thread: class and method, and the helper in its place. Whoever implements
/// the one of virtual threads is counted by its caller.
const PARKS: [(&str, &str, &str, Helper<'static>); 3] = [
    (
        UNSAFE,
        "park",
        "(ZJ)V",
        helper("park", "(Ljdk/internal/misc/Unsafe;ZJJI)V"),
    ),
    (
        THREADS,
        "parkVirtualThread",
        "()V",
        helper("park", "(Ljdk/internal/access/JavaLangAccess;JI)V"),
    ),
    (
        THREADS,
        "parkVirtualThread",
        "(J)V",
        helper("park", "(Ljdk/internal/access/JavaLangAccess;JJI)V"),
    ),
];
const THREADS: &str = "jdk/internal/access/JavaLangAccess";
const IMPLEMENTS_PARKING: &str = "java/lang/";

const CLONED: Helper = helper("cloned", "(Ljava/lang/Object;JI)V");
const REFLECTED: Helper = helper("reflected", "(Ljava/lang/Object;JI)V");

/// `super.clone()` or that of an array, and what `Array.newInstance` stands on.
fn making(call: &Call<'_>) -> Option<Mark> {
    const INVOKESPECIAL: u8 = 183;
    let of_object = call.opcode == INVOKESPECIAL && call.owner == "java/lang/Object";
    match (&*call.owner, &*call.name, &*call.descriptor) {
        (owner, "clone", "()Ljava/lang/Object;") if of_object || owner.starts_with('[') => {
            Some(Mark::Native(CLONED))
        }
        ("java/lang/reflect/Array", "newArray", "(Ljava/lang/Class;I)Ljava/lang/Object;") => {
            Some(Mark::Native(REFLECTED))
        }
        _ => None,
    }
}

fn park(class: &str, call: &Call<'_>) -> Option<Mark> {
    if class.starts_with(IMPLEMENTS_PARKING) {
        return None;
    }
    let found = PARKS.iter().find(|(owner, name, descriptor, _)| {
        call.owner == *owner && call.name == *name && call.descriptor == *descriptor
    });
    found.map(|park| Mark::Park(park.3))
}

fn intrinsic(class: &str, name: &str, descriptor: &str) -> Option<usize> {
    INTRINSICS
        .iter()
        .position(|i| i.class == class && i.name == name && i.descriptor == descriptor)
}

/// Natives that call Java by other ways than JNI; all are called from their own class.
const BRACKETED: [(&str, &str); 4] = [
    ("jdk/internal/reflect/NativeMethodAccessorImpl", "invoke0"),
    (
        "jdk/internal/reflect/NativeConstructorAccessorImpl",
        "newInstance0",
    ),
    (
        "jdk/internal/reflect/DirectMethodHandleAccessor$NativeAccessor",
        "invoke0",
    ),
    (
        "jdk/internal/reflect/DirectConstructorHandleAccessor$NativeAccessor",
        "newInstance0",
    ),
];

/// Annotations of methods that the VM leaves out of stack traces.
pub const HIDDEN: [&str; 2] = [
    "Ljdk/internal/vm/annotation/Hidden;",
    "Ljava/lang/invoke/LambdaForm$Hidden;",
];
/// Entry and exit of these happen on different threads (JDK 21 and later).
const SWITCHES: &str = "Ljdk/internal/vm/annotation/ChangesCurrentThread;";

/// The helper itself, and the frames in which a virtual thread is mounted and unmounted: neither
/// hooked nor shown.
fn is_untouched(class: &str, method: &str) -> bool {
    class.starts_with(RT) || class == CONTINUATION && !NO_MOUNTING.contains(&method)
}

/// # Errors
/// The class's code is malformed; the VM will say so itself.
pub fn shapes(class: &ClassFile<'_>, wants: Wants<'_>) -> Result<Vec<Shape>, Error> {
    let view = View::of(class, wants)?;
    let methods = class.methods().iter().zip(&view.scans);
    Ok(methods
        .map(|(method, scan)| view.shape(method, scan.as_ref()))
        .collect())
}

/// What the hooks are for.
#[derive(Clone, Copy)]
pub struct Wants<'w> {
    /// What is counted.
    pub events: &'w Events,
    /// Nothing that happens in a method by itself is counted or recorded.
    pub idle: bool,
    /// Whether a class of the JDK is in scope.
    pub holds: &'w dyn Fn(&str) -> bool,
    /// Whether none of them is.
    pub jdk_is_out_of_scope: bool,
}

impl Wants<'_> {
    /// Whether such a call leads to nothing that could ask for a context.
    fn is_leaf(&self, call: &Call<'_>) -> bool {
        is_leaf_call(call) || self.jdk_is_out_of_scope && quiet::is_quiet(call)
    }
}

/// A class with everything that is asked of it several times.
struct View<'v, 'a> {
    class: &'v ClassFile<'a>,
    wants: Wants<'v>,
    scans: Vec<Option<Scan<'a>>>,
    by_name: HashMap<(&'v str, &'v str), usize>,
    /// Methods that need no frame: getters and small helpers.
    leaves: Vec<bool>,
}

impl<'v, 'a> View<'v, 'a> {
    fn of(class: &'v ClassFile<'a>, wants: Wants<'v>) -> Result<Self, Error> {
        let events = wants.events;
        let mut scans = Vec::with_capacity(class.methods().len());
        let mut by_name = HashMap::new();
        for (index, method) in class.methods().iter().enumerate() {
            by_name.insert((&*method.name, &*method.descriptor), index);
            scans.push(
                method
                    .code
                    .as_ref()
                    .map(|code| class.scan(code))
                    .transpose()?,
            );
        }
        let leaf = |(method, scan): (&Method<'_>, &Option<Scan<'_>>)| {
            scan.as_ref().is_some_and(|scan| {
                scan.calls.iter().all(|call| wants.is_leaf(call))
                    && (!events.alloc || scan.allocations.is_empty())
                    && (!events.lock || !waits(class, method, scan))
                    && (!events.call || !is_counted(class.name(), method))
                    && kind_by_name(class.name(), method) == FrameKind::Push
            })
        };
        let leaves = class.methods().iter().zip(&scans).map(leaf).collect();
        Ok(View {
            class,
            wants,
            scans,
            by_name,
            leaves,
        })
    }

    fn shape(&self, method: &Method<'_>, scan: Option<&Scan<'_>>) -> Shape {
        let mut shape = Shape::none();
        let name = self.class.name();
        shape.transparent = is_transparent(name, method);
        let Some(scan) = scan else {
            return shape;
        };
        let quiet = name.starts_with(QUIET_CLASS) && QUIET.contains(&&*method.name)
            || self.wants.idle && vm_calls::only_allocates(name, &method.name);
        if !shape.transparent && !is_excluded(name, method) && !quiet {
            shape.places = self.places(method, scan);
            if self.wants.events.alloc {
                let _ = self.leave_to_callers(method, &mut shape);
            }
        }
        if self.wants.events.call && !quiet && is_counted(name, method) {
            let entry = Place {
                bci: 0,
                mark: Mark::Entry,
            };
            shape.places.insert(0, entry);
        }
        shape.switches = switches(method);
        if shape.transparent && !shape.switches && !is_untouched(name, &method.name) {
            shape.restores = restores(&method.name, scan);
        }
        shape.frame = frame(name, method, &shape);
        if shape.counts_entries() && shape.frame == FrameKind::Push && is_vm_called(name, method) {
            shape.frame = FrameKind::Vm;
        }
        shape.lines.clone_from(&scan.lines);
        shape
    }

    /// The body of an intrinsic counts nothing itself. `None`: it is not one.
    fn leave_to_callers(&self, method: &Method<'_>, shape: &mut Shape) -> Option<()> {
        let index = intrinsic(self.class.name(), &method.name, &method.descriptor)?;
        let through = INTRINSICS.get(index)?.through;
        let allocates = |place: &&Place| match through {
            None => matches!(place.mark, Mark::Array(_)),
            Some(_) => place.mark == Mark::Uncounted,
        };
        let bci = shape.places.iter().find(allocates)?.bci;
        shape.intrinsic = Some((index, bci));
        shape
            .places
            .retain(|place| !matches!(place.mark, Mark::Array(_)));
        Some(())
    }

    fn places(&self, method: &Method<'_>, scan: &Scan<'_>) -> Vec<Place> {
        let calls = scan.calls.iter().filter_map(|call| {
            let mark = self.call_mark(method, scan, call)?;
            Some(Place {
                bci: call.bci,
                mark,
            })
        });
        let mut places: Vec<Place> = calls.collect();
        if self.wants.events.lock {
            places.extend(scan.monitors.iter().map(|bci| Place {
                bci: *bci,
                mark: Mark::Monitor,
            }));
            places.sort_by_key(|place| place.bci);
        }
        if self.wants.events.alloc {
            places.extend(scan.allocations.iter().map(|alloc| Place {
                bci: alloc.bci,
                mark: alloc_mark(alloc),
            }));
            places.sort_by_key(|place| place.bci);
        }
        places
    }

    fn call_mark(&self, method: &Method<'_>, scan: &Scan<'_>, call: &Call<'_>) -> Option<Mark> {
        let events = self.wants.events;
        if events.lock
            && let Some(mark) = park(self.class.name(), call)
        {
            return Some(mark);
        }
        if events.objects
            && let Some(mark) = making(call)
        {
            return Some(mark);
        }
        if let Some(mark) = api_mark(call) {
            return Some(mark);
        }
        if events.thread && starts(self.class.name(), method, call) {
            return Some(Mark::Start);
        }
        if events.thread
            && let Some(mark) = self.task_mark(method, scan, call)
        {
            return Some(mark);
        }
        let counted = events.call && call.owner == MATH;
        if self.wants.is_leaf(call) && !counted || self.calls_own_leaf(call) {
            return None;
        }
        if defines_hidden(call) {
            return Some(Mark::DefineHidden);
        }
        if self.wants.events.alloc
            && let Some(mark) = self.intrinsic_mark(method, call)
        {
            return Some(mark);
        }
        if BRACKETED.contains(&(self.class.name(), &*call.name)) {
            return self.own_method(call).map(Mark::Bracket);
        }
        Some(Mark::Call)
    }

    fn task_mark(&self, method: &Method<'_>, scan: &Scan<'_>, call: &Call<'_>) -> Option<Mark> {
        let first = scan.calls.iter().find(|other| other.name == call.name);
        let is_first = first.is_some_and(|first| first.bci == call.bci);
        tasks::mark(self.class.name(), method, call, is_first)
    }

    fn intrinsic_mark(&self, method: &Method<'_>, call: &Call<'_>) -> Option<Mark> {
        if let Some(index) = intrinsic(&call.owner, &call.name, &call.descriptor) {
            let counted = (self.wants.holds)(&call.owner);
            return counted.then_some(Mark::Intrinsic(index));
        }
        let within = intrinsic(self.class.name(), &method.name, &method.descriptor)?;
        let through = INTRINSICS.get(within)?.through?;
        (call.name == through).then_some(Mark::Uncounted)
    }

    fn own_method(&self, call: &Call<'_>) -> Option<usize> {
        let key = (&*call.name, &*call.descriptor);
        let own = call.owner == self.class.name();
        own.then(|| self.by_name.get(&key).copied()).flatten()
    }

    /// A call of a method of this very class that has no hooks and cannot be overridden.
    fn calls_own_leaf(&self, call: &Call<'_>) -> bool {
        const INVOKEVIRTUAL: u8 = 182;
        const PRIVATE_OR_FINAL: u16 = 0x0012;
        const FINAL: u16 = 0x0010;
        const INTERFACE: u16 = 0x0200;
        let Some(index) = self.own_method(call) else {
            return false;
        };
        let access = self.class.methods().get(index).map_or(0, |m| m.access);
        let fixed = call.opcode != INVOKEVIRTUAL
            || access & PRIVATE_OR_FINAL != 0
            || self.class.access() & FINAL != 0;
        let leaf = self.leaves.get(index).copied().unwrap_or(false);
        fixed && leaf && self.class.access() & INTERFACE == 0
    }
}

fn frame(class: &str, method: &Method<'_>, shape: &Shape) -> FrameKind {
    if !shape.restores.is_empty() {
        peek(&method.name)
    } else if shape.places.is_empty() {
        FrameKind::Leaf
    } else {
        kind_by_name(class, method)
    }
}

fn peek(method: &str) -> FrameKind {
    match method {
        CLASS_INITIALIZER => FrameKind::PeekVm,
        _ => FrameKind::Peek,
    }
}

/// The calls of a method that is not shown, unless it only passes one call on.
fn restores(method: &str, scan: &Scan<'_>) -> Vec<u16> {
    let calls = scan.calls.iter();
    let calls = calls.filter(|call| !is_leaf_call(call) || call.owner == MATH);
    let calls: Vec<_> = calls.map(|call| call.bci).collect();
    match calls.len() {
        1 if !scan.has_loops && method != CLASS_INITIALIZER => Vec::new(),
        _ => calls,
    }
}

fn kind_by_name(class: &str, method: &Method<'_>) -> FrameKind {
    if starts_virtual_thread(class, &method.name, &method.descriptor) {
        return FrameKind::First;
    }
    match (class, &*method.name) {
        ("java/lang/Thread", "<init>") | ("java/lang/ThreadGroup", "add") => {
            return FrameKind::Thread;
        }
        _ => {}
    }
    let entered = method.name == CLASS_INITIALIZER
        || vm_calls::enters(class, &method.name, &method.descriptor);
    if entered {
        FrameKind::Vm
    } else {
        FrameKind::Push
    }
}

fn switches(method: &Method<'_>) -> bool {
    method.has_annotation(SWITCHES)
}

/// A carrier's trace shows `runContinuation`, and no other method that switches threads.
fn is_transparent(class: &str, method: &Method<'_>) -> bool {
    is_untouched(class, &method.name)
        || switches(method) && method.name != "runContinuation"
        || HIDDEN.iter().any(|a| method.has_annotation(a))
}

/// Unsafe has no hooks, so what it calls does not know where its slot is.
const CALLED_BY_UNSAFE: [(&str, &str); 7] = [
    ("java/lang/Character", "reverseBytes"),
    ("java/lang/Class", "getComponentType"),
    ("java/lang/Class", "isPrimitive"),
    ("java/lang/Integer", "reverseBytes"),
    ("java/lang/Integer", "toUnsignedLong"),
    ("java/lang/Long", "reverseBytes"),
    ("java/lang/Short", "reverseBytes"),
];

/// Methods of `Thread` that are called while a virtual thread is mounted and unmounted: the VM hides what
/// happens then.
const MOUNTING: [&str; 6] = [
    "isInterrupted",
    "clearInterrupt",
    "setInterrupt",
    "getContinuation",
    "setContinuation",
    "setCurrentThread",
];

/// Whether entries are counted where they are asked for. Callers say nothing to [`LEAVES`].
fn is_counted(class: &str, method: &Method<'_>) -> bool {
    let is_leaf = LEAVES.iter().any(|(owner, names)| {
        *owner == class && class != MATH && names.is_none_or(|names| names.contains(&&*method.name))
    });
    // With code in it, an empty finalize() would make every object finalizable.
    let is_empty_finalize = |code: &Code<'_>| method.name == "finalize" && code.bytes.len() == 1;
    let has_code = method
        .code
        .as_ref()
        .is_some_and(|code| !is_empty_finalize(code));
    let of_unsafe = CALLED_BY_UNSAFE.contains(&(class, &*method.name));
    let mounts = match class {
        "java/lang/VirtualThread" => method.name != "run",
        "java/lang/Thread" => MOUNTING.contains(&&*method.name),
        _ => false,
    };
    has_code
        && !of_unsafe
        && !mounts
        && !is_leaf
        && !is_excluded(class, method)
        && !switches(method)
}

/// Methods that the VM calls by itself in the middle of others, and in which nothing happens but that they
/// are entered: see `vm_calls`.
fn is_vm_called(class: &str, method: &Method<'_>) -> bool {
    let is_thrown = class.ends_with("Exception")
        || class.ends_with("Error")
        || matches!(class, "java/lang/Throwable" | "java/lang/ThreadDeath");
    is_thrown && method.name == "<init>" || vm_calls::only_enters(class, &method.name)
}

/// Unsafe is what the helper class itself stands on.
fn is_excluded(class: &str, method: &Method<'_>) -> bool {
    class == UNSAFE && method.name != INVOKE_CLEANER || is_transparent(class, method)
}

/// The first method of a virtual thread, behind its continuation.
pub fn starts_virtual_thread(class: &str, method: &str, descriptor: &str) -> bool {
    let wanted = ("java/lang/VirtualThread", "run", "(Ljava/lang/Runnable;)V");
    (class, method, descriptor) == wanted
}

/// A call of `ClassLoader.defineClass0`.
pub fn defines_hidden(call: &Call<'_>) -> bool {
    call.owner == "java/lang/ClassLoader"
        && call.name == "defineClass0"
        && call.descriptor == DEFINE_CLASS_0
}

pub fn is_leaf_call(call: &Call<'_>) -> bool {
    is_leaf(&call.owner, &call.name)
}

/// Whether nothing is said before calls of this method.
pub fn is_leaf(class: &str, method: &str) -> bool {
    LEAVES.iter().any(|(owner, names)| {
        *owner == class
            && names.is_none_or(|names| names.contains(&method))
            && !(class == UNSAFE && method == INVOKE_CLEANER)
    })
}

/// Whether a method may wait for a lock by itself.
fn waits(class: &ClassFile<'_>, method: &Method<'_>, scan: &Scan<'_>) -> bool {
    const SYNCHRONIZED: u16 = 0x20;
    method.access & SYNCHRONIZED != 0
        || !scan.monitors.is_empty()
        || scan
            .calls
            .iter()
            .any(|call| park(class.name(), call).is_some())
}

/// In methods of these classes named `start`, a call of the method is what starts the thread.
const STARTING: [(&str, &str); 4] = [
    ("java/lang/Thread", "start0"),
    ("java/lang/VirtualThread", "submitRunContinuation"),
    ("java/lang/VirtualThread", "externalSubmitRunContinuation"),
    (
        "java/lang/VirtualThread",
        "externalSubmitRunContinuationOrThrow",
    ),
];

pub fn starts(class: &str, method: &Method<'_>, call: &Call<'_>) -> bool {
    method.name == "start" && call.owner == class && STARTING.contains(&(class, &*call.name))
}

fn api_mark(call: &Call<'_>) -> Option<Mark> {
    let known = API.iter().find(|(owner, name, descriptor, _)| {
        (*owner, *name, *descriptor) == (&*call.owner, &*call.name, &*call.descriptor)
    });
    known.map(|(.., mark)| mark.clone())
}

fn alloc_mark(alloc: &Alloc<'_>) -> Mark {
    match alloc.kind {
        AllocKind::New => Mark::New(alloc.type_name.to_string()),
        AllocKind::MultiANewArray => Mark::Arrays(alloc.type_name.to_string()),
        _ => Mark::Array(alloc.type_name.to_string()),
    }
}

/// What a method that takes a slot has beside what the default mode needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hooks {
    /// The recording is told when it ends.
    pub exits: bool,
    /// Its context is looked up at entry.
    pub at_entry: bool,
    /// It puts the pointer back when it ends: code without hooks may call it.
    pub restores: bool,
    /// Its class's objects, if they are tasks, carry where they were submitted.
    pub tasks: bool,
}

impl Hooks {
    fn add(self, method: &mut MethodPlan<'static>, frame: FrameKind, id: u32, name: &str) {
        let returns = matches!(
            frame,
            FrameKind::Push | FrameKind::First | FrameKind::Thread
        );
        if self.exits && returns {
            method.exit = Some(EXIT);
        }
        if self.exits && frame == FrameKind::Vm && method.unwind.is_some() {
            method.unwind = Some(UNWIND_VM);
        }
        if self.restores && returns && method.inserts.iter().any(|(_, insert)| moves(insert)) {
            method.exit = Some(RESTORE);
            // Who creates objects does it for constructors, see `outside`.
            method.unwind = Some(RESTORE).filter(|_| name != "<init>");
        }
        if self.at_entry && frame == FrameKind::Push {
            method.entry = Some(Entry {
                helper: ENTER_AT,
                argument: Some(id as i32),
            });
        }
    }
}

/// Whether the insertion moves the pointer.
fn moves(insert: &Insert<'_>) -> bool {
    matches!(
        insert,
        Insert::Mark { .. }
            | Insert::MarkTwo { .. }
            | Insert::MarkLocal { .. }
            | Insert::MarkTop { .. }
            | Insert::ReplaceWithContext { .. }
    )
}

/// Puts ids into the shapes. `sites` are the ids of each method's places, `native_site` those of
/// bracketed natives by method index.
pub fn plan(
    class: &ClassFile<'_>,
    shapes: &[Shape],
    first_method: u32,
    first_site: u32,
    native_site: &dyn Fn(usize) -> u32,
    hooks: Hooks,
) -> Plan<'static> {
    let mut plan = Plan::default();
    let mut site = first_site;
    for (index, shape) in shapes.iter().enumerate() {
        let id = first_method + index as u32;
        let entry_site = shape.counts_entries().then_some(site as i32);
        let inserts = shape.places.iter().flat_map(|place| {
            let inserts = inserts(place, shape, site as i32, native_site);
            site += 1;
            inserts
        });
        let inserts = inserts.collect();
        if shape.frame != FrameKind::Leaf {
            let method = class.methods().get(index);
            let name = method.map_or("", |method| &method.name);
            let mut method = method_plan(shape, id, inserts, name == "<init>");
            hooks.add(&mut method, shape.frame, id, name);
            count_entries(&mut method, shape.frame, entry_site);
            plan.methods.insert(index, method);
        }
    }
    if class.name() == "java/lang/Thread" {
        plan.fields = thread_fields();
    }
    if hooks.tasks {
        plan.fields.extend(tasks::field(class.name()));
    }
    plan
}

/// The entry hook counts or records, too, if there is a site for it.
fn count_entries(method: &mut MethodPlan<'static>, frame: FrameKind, site: Option<i32>) {
    let helper = match frame {
        FrameKind::Push => CALLED,
        FrameKind::First => CALLED_FIRST,
        FrameKind::Thread => CALLED_THREAD,
        FrameKind::Vm => CALLED_VM,
        FrameKind::Leaf | FrameKind::Peek | FrameKind::PeekVm => return,
    };
    if site.is_some() {
        method.entry = Some(Entry {
            helper,
            argument: site,
        });
    }
}

fn method_plan(
    shape: &Shape,
    id: u32,
    mut inserts: Vec<(u16, Insert<'static>)>,
    is_constructor: bool,
) -> MethodPlan<'static> {
    // Native code that calls the same method again finds the pointer where it was.
    let (entry, exit, unwind) = match shape.frame {
        FrameKind::Peek => (ENTER, Some(RESTORE), None),
        FrameKind::Push | FrameKind::Leaf => (ENTER, None, None),
        FrameKind::First => (ENTER_FIRST, None, None),
        FrameKind::Thread => (ENTER_THREAD, None, None),
        FrameKind::Vm | FrameKind::PeekVm => (ENTER_VM, Some(EXIT_VM), Some(EXIT_VM)),
    };
    let argument = match shape.frame {
        FrameKind::Vm => Some(id as i32),
        // It is in no trace.
        FrameKind::PeekVm => Some(0),
        _ => None,
    };
    let restores = shape
        .restores
        .iter()
        .map(|bci| (*bci, Insert::Before { helper: RESTORE }));
    inserts.extend(restores);
    // A constructor has no handler for what it throws: the next upcall clears up.
    let unwind = unwind.filter(|_| !is_constructor);
    MethodPlan {
        entry: Some(Entry {
            helper: entry,
            argument,
        }),
        exit,
        unwind,
        inserts,
    }
}

fn inserts(
    place: &Place,
    shape: &Shape,
    site: i32,
    native_site: &dyn Fn(usize) -> u32,
) -> Vec<(u16, Insert<'static>)> {
    let mark = Insert::Mark {
        helper: if shape.switches { PUB_SWITCHING } else { PUB },
        site,
    };
    let insert = match &place.mark {
        Mark::Call | Mark::Monitor => mark,
        Mark::Native(helper) => {
            let helper = *helper;
            return vec![
                (place.bci, mark),
                (place.bci, Insert::AfterDup { helper, site }),
            ];
        }
        Mark::Park(helper) => Insert::ReplaceWithContext {
            helper: *helper,
            site,
        },
        Mark::Bracket(native) => Insert::MarkTwo {
            helper: PUB_NATIVE,
            site,
            inner: native_site(*native) as i32,
        },
        Mark::New(_) => Insert::After {
            helper: ALLOC,
            site,
        },
        Mark::Array(descriptor) => Insert::AfterDup {
            helper: array_helper(descriptor),
            site,
        },
        Mark::Arrays(_) => Insert::AfterDup {
            helper: ARRAYS,
            site,
        },
        Mark::Intrinsic(index) => {
            let helper = INTRINSICS[*index].counted;
            let site = *index as i32 + 1;
            let counted = Insert::AfterDup { helper, site };
            return vec![(place.bci, mark), (place.bci, counted)];
        }
        Mark::Uncounted => {
            let redirect = Insert::Redirect {
                helper: NEW_BYTES_FOR,
            };
            return vec![(place.bci, mark), (place.bci, redirect)];
        }
        Mark::Current => Insert::ReplaceWithContext {
            helper: CURRENT,
            site,
        },
        Mark::Event => Insert::ReplaceWithContext {
            helper: EVENT,
            site,
        },
        Mark::Entry => return Vec::new(),
        Mark::Start => Insert::MarkLocal {
            helper: STARTS,
            site,
            local: 0,
        },
        Mark::Submit(local) => submit(*local, site),
        Mark::Run => Insert::MarkTop { helper: RUNS, site },
        Mark::Ran => Insert::Mark { helper: RAN, site },
        Mark::Schedule => Insert::Mark {
            helper: SCHEDULES,
            site,
        },
        Mark::Scope => Insert::ReplaceWithContext {
            helper: SCOPE,
            site,
        },
        Mark::ScopeEnd => Insert::ReplaceWithContext {
            helper: SCOPE_END,
            site,
        },
        Mark::DefineHidden => {
            return vec![(place.bci, mark), (place.bci, REDIRECT_DEFINITION)];
        }
    };
    vec![(place.bci, insert)]
}

fn submit(local: Option<u8>, site: i32) -> Insert<'static> {
    let helper = SUBMITTED;
    match local {
        Some(local) => Insert::MarkLocal {
            helper,
            site,
            local,
        },
        None => Insert::MarkTop { helper, site },
    }
}

/// The helper that knows the size of such an array.
fn array_helper(descriptor: &str) -> Helper<'static> {
    let descriptor = match descriptor {
        "[B" => "([BJI)V",
        "[Z" => "([ZJI)V",
        "[S" => "([SJI)V",
        "[C" => "([CJI)V",
        "[I" => "([IJI)V",
        "[F" => "([FJI)V",
        "[J" => "([JJI)V",
        "[D" => "([DJI)V",
        _ => "([Ljava/lang/Object;JI)V",
    };
    helper("array", descriptor)
}

pub fn thread_fields() -> Vec<NewField<'static>> {
    const PUBLIC_SYNTHETIC: u16 = 0x1001;
    let field = |name| NewField {
        name,
        descriptor: "J",
        access: PUBLIC_SYNTHETIC,
    };
    THREAD_FIELDS.map(field).to_vec()
}

/// For classes that never reach the hook: their methods have no slots, and what they call is where it
/// would be without them.
///
/// # Errors
/// The class's code is malformed.
pub fn hidden_plan(class: &ClassFile<'_>) -> Result<Plan<'static>, Error> {
    let mut plan = Plan::default();
    for (index, method) in class.methods().iter().enumerate() {
        let Some(code) = &method.code else { continue };
        let mut shape = Shape::none();
        shape.restores = restores(&method.name, &class.scan(code)?);
        if !shape.restores.is_empty() {
            shape.frame = peek(&method.name);
            plan.methods
                .insert(index, method_plan(&shape, 0, Vec::new(), false));
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(owner: &'static str, name: &'static str) -> Call<'static> {
        Call {
            bci: 0,
            opcode: 184,
            owner: owner.into(),
            name: name.into(),
            descriptor: "()V".into(),
        }
    }

    #[test]
    fn calls_that_cannot_lead_to_an_event_are_not_marked() {
        assert!(is_leaf_call(&call("java/lang/Object", "<init>")));
        assert!(is_leaf_call(&call(UNSAFE, "putLong")));
        assert!(!is_leaf_call(&call("java/lang/Object", "toString")));
        assert!(!is_leaf_call(&call("java/lang/Math", "addExact")));
    }

    #[test]
    fn a_clone_is_counted_by_whoever_calls_that_of_object() {
        let clone = |opcode, owner: &'static str| {
            let mut call = call(owner, "clone");
            (call.opcode, call.descriptor) = (opcode, "()Ljava/lang/Object;".into());
            making(&call).is_some()
        };
        assert!(clone(183, "java/lang/Object") && clone(182, "[I"));
        // Another method may be called, which calls this one.
        assert!(!clone(182, "java/lang/Object") && !clone(183, "a/B"));
    }

    #[test]
    fn parking_of_virtual_threads_is_counted_once() {
        let mut park = call(UNSAFE, "park");
        park.descriptor = "(ZJ)V".into();
        let found = |class| super::park(class, &park).is_some();
        assert!(found("java/util/concurrent/locks/LockSupport"));
        assert!(!found("java/lang/VirtualThread"));
    }

    #[test]
    fn each_array_type_has_its_helper() {
        assert_eq!(array_helper("[J").descriptor, "([JJI)V");
        assert_eq!(array_helper("[[J").descriptor, "([Ljava/lang/Object;JI)V");
        assert_eq!(
            array_helper("[Ljava/lang/String;").descriptor,
            "([Ljava/lang/Object;JI)V"
        );
    }
}
