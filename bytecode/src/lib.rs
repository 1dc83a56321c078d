//! Class bytes in, class bytes out: a lossless class-file rewriter that knows no JVM.
//!
//! The modules follow the class file chapter of the JVM specification (JVMS 4):
//!
//! ```text
//! ClassFile ─► ConstantPool, ClassFileMethod ─► CodeAttribute ─► CodeScan        for the planner
//! ClassPlan ─► CodeEdits ─► CodeLayout ─► code, tables, frames                   `rewrite`, for each method
//! ```
//!
//! Invariants: the constant pool is only appended to, so every index in an attribute that this crate does not know
//! stays right. Methods without a plan are copied byte for byte. No local variable is renumbered. Class bytes are
//! untrusted: every read is checked.
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs
)]

mod annotations;
mod assemble;
mod bounds;
mod class;
mod code;
mod descriptor;
mod edits;
mod error;
mod frames;
mod indices;
mod infer;
mod layout;
pub mod mutf8;
mod opcode;
mod plan;
mod pool;
mod rare_code;
mod reader;
mod renaming;
mod rewrite;
mod scan;
mod tables;
mod verification_type;

pub use annotations::AnnotationTexts;
pub use class::{ClassFile, ClassFileMethod};
pub use code::CodeAttribute;
pub use error::{BytecodeError, BytecodeErrorKind};
pub use plan::{
    ClassPlan, CodeInsertion, EntryHook, HelperMethod, MethodPlan, NewField, NewInstruction,
    NewMethod,
};
pub use pool::ConstantPool;
pub use renaming::rename_texts;
pub use rewrite::{LONGEST_COMPILED, RewrittenClass, rewrite, rewrite_all_wide};
pub use scan::{
    AllocationInstruction, AllocationOpcode, CodeScan, MethodCall, call_bcis, drops_exception,
    last_bcis, return_bcis,
};
