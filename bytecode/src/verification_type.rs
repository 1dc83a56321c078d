//! Types of local variables and of the operand stack, as the `StackMapTable` has them (JVMS 4.7.4).

use crate::descriptor::class_name;
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::pool::ConstantPool;
use crate::reader::ClassFileReader;

/// A `verification_type_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerificationType<'a> {
    Top,
    Int,
    Float,
    Double,
    Long,
    Null,
    UninitializedThis,
    /// A `Class` constant.
    Object(u16),
    /// The bci of a `new` in the original code.
    Uninitialized(u32),
    /// A class by name, as an array of `array_of` more dimensions. The pool may not have it yet.
    Named {
        array_of: u8,
        name: &'a [u8],
    },
}

impl<'a> VerificationType<'a> {
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Self::Long | Self::Double)
    }

    pub(crate) fn slot_count(self) -> usize {
        if self.is_wide() { 2 } else { 1 }
    }

    pub(crate) fn from_name(name: &'a [u8]) -> Self {
        Self::Named { array_of: 0, name }
    }

    /// Returns the type of a value with a field descriptor (JVMS 4.10.1.2).
    pub(crate) fn from_descriptor(descriptor: &'a [u8]) -> Self {
        match descriptor {
            b"B" | b"C" | b"I" | b"S" | b"Z" => Self::Int,
            b"F" => Self::Float,
            b"D" => Self::Double,
            b"J" => Self::Long,
            _ => Self::from_name(class_name(descriptor)),
        }
    }

    pub(crate) fn read(reader: &mut ClassFileReader<'_>) -> Result<Self, BytecodeError> {
        Ok(match reader.u1()? {
            0 => Self::Top,
            1 => Self::Int,
            2 => Self::Float,
            3 => Self::Double,
            4 => Self::Long,
            5 => Self::Null,
            6 => Self::UninitializedThis,
            7 => Self::Object(reader.u2()?),
            8 => Self::Uninitialized(u32::from(reader.u2()?)),
            tag => return Err(reader.error_here(BytecodeErrorKind::BadFrame(tag))),
        })
    }

    pub(crate) fn tag(self) -> u8 {
        match self {
            Self::Top => 0,
            Self::Int => 1,
            Self::Float => 2,
            Self::Double => 3,
            Self::Long => 4,
            Self::Null => 5,
            Self::UninitializedThis => 6,
            Self::Object(_) | Self::Named { .. } => 7,
            Self::Uninitialized(_) => 8,
        }
    }

    /// Whether the types are equal, by index or by name.
    pub(crate) fn is_same(self, other: Self, pool: &ConstantPool<'_>) -> bool {
        match (self, other) {
            (Self::Object(index), Self::Named { array_of: 0, name })
            | (Self::Named { array_of: 0, name }, Self::Object(index)) => {
                pool.class_name(index).is_ok_and(|found| found == name)
            }
            _ => self == other,
        }
    }
}
