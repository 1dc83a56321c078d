//! Errors of a class or a plan, with their place.

use std::fmt;

/// Why a class cannot be read, or a method not rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BytecodeError {
    /// What is wrong.
    pub kind: BytecodeErrorKind,
    /// Byte offset in the class file. For an error in a plan: the bci.
    pub offset: usize,
    /// The structure that was being read or written.
    pub context: &'static str,
}

/// The kinds of [`BytecodeError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BytecodeErrorKind {
    /// A structure reaches past the end of its container.
    Truncated,
    /// Bytes are left over where a structure must end.
    Trailing,
    /// The file does not begin with `CAFEBABE`.
    BadMagic,
    /// A constant pool entry with an unknown tag.
    BadConstantTag(u8),
    /// A constant pool index that names no entry of the expected kind.
    BadConstant(u16),
    /// An unknown opcode.
    BadOpcode(u8),
    /// An offset into code that is not the start of an instruction.
    NotAnInstruction(u32),
    /// An instruction with impossible operands.
    BadOperands,
    /// An unknown stack map frame or verification type.
    BadFrame(u8),
    /// An unknown type annotation target or element value.
    BadAnnotation(u8),
    /// A field or method descriptor that does not follow JVMS 4.3.
    BadDescriptor,
    /// A type state that contradicts the instructions.
    BadTypeState,
    /// Code that breaks `max_locals` or `max_stack`, or an index behind the constant pool's end. Hooks could make it
    /// valid.
    OutOfBounds,
    /// The constant pool would exceed 65,535 entries.
    PoolFull,
    /// The method would exceed a limit of JVMS 4.7.3.
    MethodTooLarge,
    /// The plan requests an impossible change.
    BadPlan(&'static str),
}

impl BytecodeError {
    #[cold]
    pub(crate) fn new(kind: BytecodeErrorKind, offset: usize, context: &'static str) -> Self {
        Self {
            kind,
            offset,
            context,
        }
    }
}

impl fmt::Display for BytecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:#x}: {}", self.context, self.offset, self.kind)
    }
}

impl fmt::Display for BytecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("truncated"),
            Self::Trailing => f.write_str("trailing bytes"),
            Self::BadMagic => f.write_str("not a class file"),
            Self::BadConstantTag(tag) => write!(f, "unknown constant tag {tag}"),
            Self::BadConstant(index) => write!(f, "constant {index} is not of the expected kind"),
            Self::BadOpcode(op) => write!(f, "unknown opcode {op:#x}"),
            Self::NotAnInstruction(bci) => write!(f, "no instruction starts at bci {bci}"),
            Self::BadOperands => f.write_str("impossible operands"),
            Self::BadFrame(tag) => write!(f, "unknown frame or type {tag}"),
            Self::BadAnnotation(tag) => write!(f, "unknown annotation part {tag:#x}"),
            Self::BadDescriptor => f.write_str("malformed descriptor"),
            Self::BadTypeState => f.write_str("types do not fit the instructions"),
            Self::OutOfBounds => f.write_str("breaks a limit of its class"),
            Self::PoolFull => f.write_str("constant pool is full"),
            Self::MethodTooLarge => f.write_str("method would be too large"),
            Self::BadPlan(why) => write!(f, "plan: {why}"),
        }
    }
}

impl std::error::Error for BytecodeError {}
