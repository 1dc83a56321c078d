//! The plan of a rewrite: what to insert.
//!
//! The local variable `N` below is the method's old `max_locals`, or a lower one if the method leaves many unused. A
//! method whose plan has no entry hook has no `N`: its insertions then pass only the site. The variables `C` follow `N`:
//! one for each number in a [`CodeInsertion::AfterKeeping`]. They are 0 at the method's entry.

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
    /// Calls helpers through `java/lang/Object`, from which every class inherits. For each helper it has a
    /// [`NewMethod`] whose name begins with this prefix. No class loader is asked for the helper class.
    pub inherited: Option<&'p str>,
}

/// A static method in place of a helper, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewMethod<'p> {
    /// The prefix of its name; the helper's name follows.
    pub prefix: &'p str,
    /// The method that it stands for.
    pub helper: HelperMethod<'p>,
    /// What it does; empty: it passes its arguments on to the helper.
    pub code: &'p [NewInstruction<'p>],
    /// Its access flags.
    pub access: u16,
    /// The type of its annotation.
    pub annotation: &'p str,
}

/// An instruction of a [`NewMethod`]: without a branch, and with at most eight slots on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewInstruction<'p> {
    /// An instruction without operands.
    Plain(u8),
    /// Pushes a long.
    Long(i64),
    /// Accesses a field: opcode, class, name and descriptor.
    Field(u8, &'p str, &'p str, &'p str),
    /// Calls a method; with the opcode.
    Call(u8, HelperMethod<'p>),
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

/// Changes of a method.
///
/// Insertions that pass only `N` need an [`EntryHook`], which stores it. An empty plan lays out the code again without
/// a change.
#[derive(Debug, Clone, Default)]
pub struct MethodPlan<'p> {
    /// Runs once, before everything.
    pub entry: Option<EntryHook<'p>>,
    /// Run once, behind the entry hook: [`CodeInsertion::Mark`], [`CodeInsertion::MarkLocal`] for a parameter, or
    /// [`CodeInsertion::MarkOwnField`].
    pub begin: Vec<CodeInsertion<'p>>,
    /// `lload N; invokestatic H(J)V` before every return instruction.
    pub exit: Option<HelperMethod<'p>>,
    /// Calls the helper as before a return, in a new handler that catches everything from behind the entry to the end
    /// of the original code, and rethrows it.
    ///
    /// Not for constructors: their handlers would see an uninitialized `this` (JVMS 4.10.1.6).
    pub unwind: Option<HelperMethod<'p>>,
    /// Insertions sorted by bci; several at one bci are nested in their order.
    pub inserts: Vec<(u16, CodeInsertion<'p>)>,
}

impl MethodPlan<'_> {
    /// Returns the number of variables `C`.
    pub(crate) fn kept_count(&self) -> u16 {
        let kept = self.inserts.iter().filter_map(|(_, insert)| match insert {
            CodeInsertion::AfterKeeping { kept, .. } => Some(u16::from(*kept) + 1),
            _ => None,
        });
        kept.max().unwrap_or(0)
    }
}

/// `invokestatic H()J; lstore N`, or with an argument `push i; invokestatic H(I)J; lstore N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryHook<'p> {
    /// The method whose result is stored in `N`.
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
    /// Before the instruction, if a local holds an object: `aload L; lload N; push site; invokestatic H(LC;JI)V`. The
    /// plan must ensure the local's type.
    MarkLocal {
        /// Takes an object, then `JI`.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
        /// The local's index.
        local: u8,
    },
    /// Before the instruction, if the stack's top is an object: `dup; lload N; push site; invokestatic H(LC;JI)V`. The
    /// plan must ensure the type.
    MarkTop {
        /// Takes an object, then `JI`.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// Before the instruction, in an instance method: `aload_0; getfield F; lload N; push site; invokestatic H(JJI)V`. The
    /// plan must ensure that `this` is initialized, and that the class has the field.
    MarkOwnField {
        /// `(JJI)V`
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
        /// The name of a field of the changed class, of type `J`.
        field: &'p str,
    },
    /// Before a call on an instance of the changed class with one argument of one stack slot: `dup2; pop; getfield F;
    /// lload N; push site; invokestatic H(JJI)V`. The plan must ensure the types, and that the class has the field.
    MarkReceiverField {
        /// `(JJI)V`
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
        /// The name of a field of the changed class, of type `J`.
        field: &'p str,
    },
    /// Before the instruction: `ldc class; lload N; push site; invokestatic H(LC;JI)V`, where `class` is the changed class.
    /// Needs class file version 49 (JVMS 6.5, `ldc`).
    MarkClass {
        /// Takes an object, then `JI`.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// Before the instruction, if two ints are on the stack: `dup2; lload N; push site; invokestatic H(IIJI)V`. The
    /// plan must ensure the types.
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
    /// After an instruction that falls through, if a local holds an object: `aload L; lload N; push site; invokestatic
    /// H(LC;JI)V`. The plan must ensure the local's type.
    AfterLocal {
        /// Takes an object, then `JI`.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
        /// The local's index.
        local: u8,
    },
    /// After an instruction that falls through, in an instance method: `aload_0; lload N; push site; invokestatic H(JI)J;
    /// putfield F`. The plan must ensure that `this` is initialized, and that the class has the field.
    AfterStore {
        /// `(JI)J`
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
        /// The name of a field of the changed class, of type `J`.
        field: &'p str,
    },
    /// After a `new`: `ldc class; lload N; invokestatic H(Ljava/lang/Class;J)V`, where `class` is the allocated class.
    AfterNew {
        /// `(Ljava/lang/Class;J)V`
        helper: HelperMethod<'p>,
    },
    /// After an array allocation or a call that returns a reference or an int:
    /// `dup; lload N; push site; invokestatic H`.
    AfterDup {
        /// `([IJI)V`, or with another type for the value on the stack.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
    },
    /// After a `new`: `lload N; push site; lload C; invokestatic H(JIJ)J; lstore C`. After another allocation, with `dup`
    /// before it.
    AfterKeeping {
        /// `(JIJ)J`, or `([IJIJ)J` with another type for the array.
        helper: HelperMethod<'p>,
        /// The call site.
        site: i32,
        /// The number of the variable `C`.
        kept: u8,
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
