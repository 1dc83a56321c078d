//! Checked big-endian reading.

use crate::error::{BytecodeError, BytecodeErrorKind};

/// A cursor over a part of the class file that knows its offset in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClassFileReader<'a> {
    rest: &'a [u8],
    offset: usize,
    context: &'static str,
}

impl<'a> ClassFileReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], offset: usize, context: &'static str) -> Self {
        Self {
            rest: bytes,
            offset,
            context,
        }
    }

    /// Offset of the next byte in the class file.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns all remaining bytes.
    pub(crate) fn remaining_bytes(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn with_context(mut self, context: &'static str) -> Self {
        self.context = context;
        self
    }

    #[inline]
    pub(crate) fn take_bytes(&mut self, len: usize) -> Result<&'a [u8], BytecodeError> {
        let Some((head, tail)) = self.rest.split_at_checked(len) else {
            return Err(self.error_here(BytecodeErrorKind::Truncated));
        };
        self.rest = tail;
        self.offset += len;
        Ok(head)
    }

    /// Returns a reader for the next `len` bytes only.
    pub(crate) fn take_part(&mut self, len: usize) -> Result<Self, BytecodeError> {
        let offset = self.offset;
        Ok(Self::new(self.take_bytes(len)?, offset, self.context))
    }

    #[inline]
    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], BytecodeError> {
        let Some((head, tail)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.error_here(BytecodeErrorKind::Truncated));
        };
        self.rest = tail;
        self.offset += N;
        Ok(*head)
    }

    #[inline]
    pub(crate) fn u1(&mut self) -> Result<u8, BytecodeError> {
        self.read_array::<1>().map(u8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u2(&mut self) -> Result<u16, BytecodeError> {
        self.read_array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i2(&mut self) -> Result<i16, BytecodeError> {
        self.read_array().map(i16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u4(&mut self) -> Result<u32, BytecodeError> {
        self.read_array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i4(&mut self) -> Result<i32, BytecodeError> {
        self.read_array().map(i32::from_be_bytes)
    }

    /// Reads a `u4` length followed by that many bytes.
    pub(crate) fn read_block(&mut self) -> Result<Self, BytecodeError> {
        let len = self.u4()?;
        self.take_part(len as usize)
    }

    pub(crate) fn expect_end(&self) -> Result<(), BytecodeError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(self.error_here(BytecodeErrorKind::Trailing))
        }
    }

    #[cold]
    pub(crate) fn error_here(&self, kind: BytecodeErrorKind) -> BytecodeError {
        BytecodeError::new(kind, self.offset, self.context)
    }
}
