//! The instrumentation of a method before ids are known: its frame kind and its hook places.

use crate::assembly::AssemblyHook;
use crate::continuations::ContinuationCall;
use crate::helpers::ClassDefinitionCall;

/// How a method takes part in the shadow stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// No hooks: the method reaches nothing that can ask for a context.
    Leaf,
    /// Takes a slot.
    OwnSlot,
    /// Takes a slot after asking the VM for its caller: the VM may call it in the middle of any method.
    VmEntered,
    /// Takes the first slot of its thread.
    ThreadEntry,
    /// Takes a slot. The VM may call it without a caller, on a native thread that attaches itself.
    AttachedThread,
    /// Takes the first slot of its thread. Activates the hooks if they are not active.
    Premain,
    /// Has no slot and is omitted from traces: its callees use the slot that it could have had.
    Hidden,
    /// As [`FrameKind::Hidden`], for methods that the VM enters, such as class initializers.
    HiddenVmEntered,
    /// As [`FrameKind::Hidden`], of a class that calls a C function (`java.lang.foreign`): see `downcall` in the helper
    /// class.
    Downcall,
    /// As [`FrameKind::Hidden`], of a class that C code calls (`java.lang.foreign`): see `enterUpcall` in the helper
    /// class.
    Upcall,
    /// Makes the carrier of a virtual thread the current thread, on the virtual thread's stack.
    ///
    /// It has no slot and is omitted from traces. See `toCarrier` in the helper class.
    ToCarrier,
    /// Makes the virtual thread the current one again.
    ToVirtual,
    /// Takes a slot. Its callees do not take part in the unmounting of a virtual thread: see `enterPinned` in the
    /// helper class.
    Pinned,
}

/// The kind of a site; for allocations with the descriptor of the allocated type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HookSiteKind {
    Call,
    /// A call of a native method of the same class that calls back into Java, with the native's method index.
    NativeBracket(usize),
    /// As [`HookSiteKind::NativeBracket`], for a native that makes an object and calls its constructor.
    CreatingBracket(usize),
    New(String),
    Array(String),
    /// Several dimensions at once (`multianewarray`).
    Arrays(String),
    /// A call of one of [`super::INTRINSICS`]; this site counts the allocation in it.
    Intrinsic(usize),
    /// A call in the body of one of [`super::INTRINSICS`], replaced by a helper that does not count.
    Uncounted,
    Current,
    /// `CallContext.event`
    Event,
    /// A call that makes an object without an allocation instruction, and how the object is counted.
    Creation(ObjectCreation),
    /// The call by which the VM records a stack trace.
    StackTrace,
    /// In constructors of `Throwable`, before the trace is recorded: the local that may hold the message.
    ThrowableMessage(u8),
    /// `monitorenter`; the VM reports the event itself.
    Monitor,
    /// As [`HookSiteKind::Monitor`]; a hook behind it reports the object, which this local keeps.
    FollowedMonitor(u8),
    /// A call that one kind of events interprets.
    EventCall(EventCall),
    /// A call of a native method that calls back repeatedly, without a site.
    Untracked,
    /// The call that asks Java agents to transform a class.
    AgentQuery,
    /// A call of a native method that redefines classes.
    ClassRedefinition,
    /// A call that is left out: until its counterpart, the VM would report nothing to agents.
    FrameHiding,
    /// The method's entry, where entries are counted or recorded.
    Entry,
    /// As [`HookSiteKind::Entry`], where the method's time begins too.
    TimedEntry,
    /// The entry of a method that receives requests.
    Request(RequestEntry),
    /// The frame continues in a given context; [`HookSiteKind::ScopeEnd`] ends that.
    Scope,
    ScopeEnd,
    /// In the classes of operators of Reactor and RxJava.
    Assembly(AssemblyHook),
    /// A call in the classes of Kotlin's continuations.
    Continuation(ContinuationCall),
    /// A class is defined that the VM does not report: the site is published, and the call is redirected.
    DefineHidden(ClassDefinitionCall),
}

/// Which objects a call makes, and how they are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectCreation {
    /// The object that the call returns.
    Object,
    /// The array that the call returns, with all arrays that it holds.
    All,
    /// The array that the call returns, in `Array.newInstance`. If `Arrays.copyOf` calls it, the caller of `copyOf`
    /// counts it.
    Reflected,
    /// The object that the call returns, if `Object.clone` made it.
    Clone,
    /// A new text, or a new array together with the texts or other objects that it holds.
    Texts,
}

/// What a call means for one kind of events. The kind interprets the number (`kinds::EventHooks`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventCall {
    /// The kind's bit in the event mask, as a position.
    pub bit: u8,
    pub which: u8,
}

impl EventCall {
    /// Returns the form that a site stores: 8 bits for the kind, 8 for the number.
    #[must_use]
    pub fn to_packed(self) -> u32 {
        u32::from(self.bit) << 8 | u32::from(self.which)
    }

    #[must_use]
    pub fn from_packed(packed: u32) -> EventCall {
        EventCall {
            bit: (packed >> 8) as u8,
            which: packed as u8,
        }
    }
}

/// A position in a method that gets a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookPlace {
    pub bci: u16,
    pub kind: HookSiteKind,
}

/// The instrumentation of one method before ids are known.
#[derive(Clone, Debug)]
pub struct MethodInstrumentation {
    pub frame: FrameKind,
    /// Left alone on purpose, and omitted from traces.
    pub transparent: bool,
    pub places: Vec<HookPlace>,
    /// The bcis of calls in code that runs rarely; their hooks are not inlined.
    pub rare_calls: Vec<u16>,
    pub lines: Vec<(u16, u16)>,
    /// Calls of a [`FrameKind::Hidden`] method before which `$lucceStack` is restored.
    pub restores: Vec<u16>,
    /// Allocations of a method that traces omit; they count for its caller.
    pub unseen: Vec<HookPlace>,
    /// Runs on a carrier while the current thread may be a virtual one.
    pub switches: bool,
    /// The method reaches nothing that can ask for a context and causes no event, and a call that names it always
    /// reaches it. Callers need not publish a site.
    pub untracked: bool,
    /// Until the method's last hook has run, `$lucceStack` holds its slot's address, so the method need not keep it.
    pub needs_no_slot_local: bool,
    /// Allocations in loops whose counters the frame keeps, by bytecode index.
    pub kept: Vec<u16>,
    /// If the method is one of [`super::INTRINSICS`]: its index there, and the bytecode index of its allocation.
    pub intrinsic: Option<(usize, u16)>,
}

impl MethodInstrumentation {
    /// Returns the instrumentation of a method that is left unchanged.
    pub fn without_hooks(hidden: bool) -> MethodInstrumentation {
        MethodInstrumentation {
            transparent: hidden,
            ..MethodInstrumentation::empty()
        }
    }

    /// Returns the instrumentation of a leaf method without hooks.
    pub fn empty() -> MethodInstrumentation {
        MethodInstrumentation {
            frame: FrameKind::Leaf,
            transparent: false,
            places: Vec::new(),
            rare_calls: Vec::new(),
            lines: Vec::new(),
            restores: Vec::new(),
            unseen: Vec::new(),
            switches: false,
            untracked: false,
            needs_no_slot_local: false,
            kept: Vec::new(),
            intrinsic: None,
        }
    }

    /// Treats the code of each place as code that runs rarely.
    pub fn set_all_calls_rare(&mut self) {
        self.rare_calls = self.places.iter().map(|place| place.bci).collect();
        self.rare_calls.sort_unstable();
    }

    /// Whether the first place is the method's entry, where calls are counted.
    #[must_use]
    pub fn has_entry_site(&self) -> bool {
        self.has_first_place(&HookSiteKind::Entry) || self.is_timed()
    }

    /// Whether the method's time is recorded.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.has_first_place(&HookSiteKind::TimedEntry)
    }

    fn has_first_place(&self, kind: &HookSiteKind) -> bool {
        let first = self.places.first();
        first.is_some_and(|place| place.kind == *kind)
    }
}

/// A method that receives requests, and where a request's name comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestEntry {
    /// A handler of HTTP requests: `GET /orders/{id}`, or the pattern alone if it handles all HTTP methods.
    Route(String),
    /// A listener or a job: `kafka orders`, `scheduled com.acme.Jobs.clean`.
    Named(String),
    /// `com.sun.net.httpserver`: the exchange in the first parameter has method and registered path.
    Exchange,
    /// A servlet: the request in the first parameter has method and mapping.
    Servlet,
}

impl RequestEntry {
    /// Returns the form that the registry keeps.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            RequestEntry::Route(name) => format!("R{name}"),
            RequestEntry::Named(name) => format!("N{name}"),
            RequestEntry::Exchange => "E".to_owned(),
            RequestEntry::Servlet => "S".to_owned(),
        }
    }

    /// Parses that form.
    #[must_use]
    pub fn from_text(text: &str) -> Option<RequestEntry> {
        let (kind, name) = text.split_at_checked(1)?;
        match kind {
            "R" => Some(RequestEntry::Route(name.to_owned())),
            "N" => Some(RequestEntry::Named(name.to_owned())),
            "E" => Some(RequestEntry::Exchange),
            "S" => Some(RequestEntry::Servlet),
            _ => None,
        }
    }

    /// Whether the agent gets the name from the method's first parameter.
    pub(crate) fn needs_argument(&self) -> bool {
        matches!(self, RequestEntry::Exchange | RequestEntry::Servlet)
    }
}
