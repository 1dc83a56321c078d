//! What to insert. The local variable `N` below is the method's old `max_locals`, or a lower one if it has many that it does not use.
//!
//! A method whose plan has no entry has no `N`: where others load it, its insertions pass the site alone.

use std::collections::BTreeMap;

/// A static method to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HelperMethod<'p> {
    /// Name of the method.
    pub name: &'p str,
    /// Internal name of its class.
    pub class: &'p str,
    /// Its descriptor.
    pub descriptor: &'p str,
}

/// What to change in a class.
#[derive(Debug, Clone, Default)]
pub struct ClassPlan<'p> {
    /// Fields to append.
    pub fields: Vec<NewField<'p>>,
    /// Methods to append.
    pub new_methods: Vec<NewMethod<'p>>,
    /// Changes by index of the method.
    pub methods: BTreeMap<usize, MethodPlan<'p>>,
    /// Helpers are called by way of what every class inherits: `java/lang/Object` has, for each, a
    /// [`NewMethod`] whose name begins with this. No class loader is asked for the class of the helpers.
    pub inherited: Option<&'p str>,
}

/// A static method that passes its arguments on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewMethod<'p> {
    /// What its name begins with; the helper's follows.
    pub prefix: &'p str,
    /// The method to call.
    pub helper: HelperMethod<'p>,
    /// Its access flags.
    pub access: u16,
    /// The type of an annotation that it has.
    pub annotation: &'p str,
}

/// A field without attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewField<'p> {
    /// Its name.
    pub name: &'p str,
    /// Its descriptor.
    pub descriptor: &'p str,
    /// Its access flags.
    pub access: u16,
}

/// What to change in a method.
///
/// What passes nothing but `N` needs an [`EntryHook`], which stores it. A plan with nothing in it lays the
/// code out anew without a change.
#[derive(Debug, Clone, Default)]
pub struct MethodPlan<'p> {
    /// Runs once, before everything.
    pub entry: Option<EntryHook<'p>>,
    /// `lload N; invokestatic H(J)V` before every return instruction.
    pub exit: Option<HelperMethod<'p>>,
    /// The helper's call as before a return, in a new handler that catches everything from behind the entry to the end of the
    /// original code, and throws it again. Not for constructors: their handlers would see an
    /// uninitialised `this` (JVMS 4.10.1.6).
    pub unwind: Option<HelperMethod<'p>>,
    /// Insertions sorted by bci; several at one bci are nested in their order.
    pub inserts: Vec<(u16, CodeInsertion<'p>)>,
}

/// `invokestatic H()J; lstore N`, or with an argument `push i; invokestatic H(I)J; lstore N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryHook<'p> {
    /// The method that tells what to keep in `N`.
    pub helper: HelperMethod<'p>,
    /// Its argument.
    pub argument: Option<i32>,
}

/// A change at one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeInsertion<'p> {
    /// Before the instruction: `lload N; push site; invokestatic H(JI)V`.
    Mark {
        /// `(JI)V`
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// Before the instruction: `lload N; push site; push inner; invokestatic H(JII)V`.
    MarkTwo {
        /// `(JII)V`
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
        /// The second number.
        inner: i32,
    },
    /// Before the instruction, where a local holds an object: `aload L; lload N; push site; invokestatic
    /// H(LC;JI)V`. What the local holds is the plan's business.
    MarkLocal {
        /// Takes an object, then `JI`.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
        /// The local's index.
        local: u8,
    },
    /// Before the instruction, where the stack's top is an object: `dup; lload N; push site; invokestatic
    /// H(LC;JI)V`. What lies there is the plan's business.
    MarkTop {
        /// Takes an object, then `JI`.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// Before the instruction, where two ints are on the stack: `dup2; lload N; push site; invokestatic
    /// H(IIJI)V`. What lies there is the plan's business.
    MarkPair {
        /// `(IIJI)V`
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// Before the instruction: `lload N; invokestatic H(J)V`.
    Before {
        /// `(J)V`
        helper: HelperMethod<'p>,
    },
    /// After an instruction that falls through: `lload N; push site; invokestatic H(JI)V`.
    After {
        /// `(JI)V`
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// After a `new`: `ldc class; lload N; invokestatic H(Ljava/lang/Class;J)V`, where `class` is what is made.
    AfterNew {
        /// `(Ljava/lang/Class;J)V`
        helper: HelperMethod<'p>,
    },
    /// After an array allocation or a call that returns a reference or an int: `dup; lload N; push site;
    /// invokestatic H`.
    AfterDup {
        /// `([IJI)V` or whichever type is on the stack.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// After a call that returns a long: `dup2; lload N; push site; invokestatic H(JJI)V`.
    AfterDup2 {
        /// `(JJI)V`
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// In place of a call: `lload N; push site; invokestatic H`.
    ReplaceWithContext {
        /// Takes the receiver, if any, the arguments, then `JI`; returns what the call returned.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// In place of a call: `invokestatic H`.
    Redirect {
        /// Takes the receiver, if any, and the arguments; returns what the call returned.
        helper: HelperMethod<'p>,
    },
}
