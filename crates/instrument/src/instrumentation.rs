//! What is done to a method before ids are known: its frame's kind and the places that get hooks.

/// How a method takes part in the shadow stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// No hooks: it calls nothing that could ask for a context.
    Leaf,
    /// Takes a slot.
    OwnSlot,
    /// Takes a slot after asking the VM for its caller: the VM may call it anywhere.
    VmEntered,
    /// Takes a slot: the first of its thread's.
    ThreadEntry,
    /// Takes a slot: the VM may call it on a native thread that attaches itself, from no frame.
    AttachedThread,
    /// Takes a slot: the first of its thread's. Hooks become live when it begins, unless they are.
    Premain,
    /// Has no slot and is not shown: what it calls has the slot that it could have had itself.
    NoSlot,
    /// As `Peek`, of a class initialiser, which the VM enters.
    NoSlotVmEntered,
    /// As `Peek`, of a class that calls a C function (`java.lang.foreign`): see `downcall` in the helper class.
    Downcall,
    /// As `Peek`, of a class that C code calls (`java.lang.foreign`): see `enterUpcall` in the helper class.
    Upcall,
    /// Makes the carrier of a virtual thread the current one, on the virtual thread's stack: see `toCarrier` in
    /// the helper class. Has no slot and is not shown, either.
    ToCarrier,
    /// Makes the virtual thread the current one again.
    ToVirtual,
    /// Takes a slot; what it calls is no part of a virtual thread's being unmounted: see `enterPinned` in the
    /// helper class.
    Pinned,
}

/// What a site is, and for allocations the descriptor of what is allocated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HookSiteKind {
    Call,
    /// A call of a native method of its own class that calls back; the native's method index.
    NativeBracket(usize),
    /// As `BracketInstaller`, of a native that makes an object and calls its constructor.
    CreatingBracket(usize),
    New(String),
    Array(String),
    /// Several dimensions at once.
    Arrays(String),
    /// A call of one of [`super::INTRINSICS`]: the allocation in it is counted here.
    Intrinsic(usize),
    /// In the body of one of [`super::INTRINSICS`]: a call replaced by a helper that does not count.
    Uncounted,
    Current,
    /// `CallContext.event`
    Event,
    /// A call that makes an object without bytecode that makes one: what call, and how it is counted.
    Creation(ObjectCreation),
    /// The call by which the VM notes a trace of the stack.
    StackTrace,
    /// In constructors of `Throwable`, before it is noted where: the local that may hold the message.
    ThrowableMessage(u8),
    /// `monitorenter`: the event itself comes from the VM.
    Monitor,
    /// A call that means something for a kind of events, which says what.
    EventCall(EventCall),
    /// A call of a native method that calls back more than once, from nowhere.
    Untracked,
    /// The call that asks Java agents for a class.
    AgentQuery,
    /// A call of a native method that gives classes other code.
    ClassRedefinition,
    /// A call that is left out: the VM would tell agents nothing until its counterpart.
    FrameHiding,
    /// The method's entry, where entries are counted or recorded.
    Entry,
    /// The frame goes on in a context that is given, and when that ends.
    Scope,
    ScopeEnd,
    /// `ClassLoader.defineClass0`: marked and redirected.
    DefineHidden,
}

/// What is made, and how it is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectCreation {
    /// What the call returns.
    Object,
    /// What the call returns, with all arrays that it holds.
    All,
    /// What the call returns, in `Array.newInstance`: for `Arrays.copyOf`, which calls it, the caller of that counts.
    Reflected,
    /// What the call returns, if `Object.clone` has made it.
    Clone,
    /// A text that the call returns, or an array of texts or other objects: all of it is new.
    Texts,
}

/// What a call means for one kind of events, which knows what the number stands for (`kinds::EventHooks`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventCall {
    /// The kind's place in the gate's word.
    pub bit: u8,
    pub which: u8,
}

impl EventCall {
    /// As a site keeps it: 8 bits for the kind, 8 for the number.
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

/// A place in a method that gets a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookPlace {
    pub bci: u16,
    pub kind: HookSiteKind,
}

/// What is done to one method, before ids are known.
#[derive(Clone, Debug)]
pub struct MethodInstrumentation {
    pub frame: FrameKind,
    /// Left alone on purpose, and not shown in traces.
    pub transparent: bool,
    pub places: Vec<HookPlace>,
    pub lines: Vec<(u16, u16)>,
    /// Calls of a [`FrameKind::NoSlot`] before which the pointer is put back.
    pub restores: Vec<u16>,
    /// Of a method that is not shown: what it makes, which is counted for its caller.
    pub unseen: Vec<HookPlace>,
    /// Runs on a carrier while the current thread may be a virtual one.
    pub switches: bool,
    /// It calls nothing that could ask for a context, nothing happens in it, and a call that names it is
    /// a call of it: callers need not say from where.
    pub untracked: bool,
    /// Until its last hook has run the pointer says where the method's slot is: nothing needs to be kept.
    pub keeps_no_slot: bool,
    /// The method is one of [`super::INTRINSICS`]: which, and the bci of its allocation.
    pub intrinsic: Option<(usize, u16)>,
}

impl MethodInstrumentation {
    /// Of a method that is left as it is.
    pub fn without_hooks(hidden: bool) -> MethodInstrumentation {
        MethodInstrumentation {
            transparent: hidden,
            ..MethodInstrumentation::empty()
        }
    }

    pub fn empty() -> MethodInstrumentation {
        MethodInstrumentation {
            frame: FrameKind::Leaf,
            transparent: false,
            places: Vec::new(),
            lines: Vec::new(),
            restores: Vec::new(),
            unseen: Vec::new(),
            switches: false,
            untracked: false,
            keeps_no_slot: false,
            intrinsic: None,
        }
    }

    /// Whether the first place is the entry.
    pub fn counts_entries(&self) -> bool {
        self.places
            .first()
            .is_some_and(|place| place.kind == HookSiteKind::Entry)
    }
}
