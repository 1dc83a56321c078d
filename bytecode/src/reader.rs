//! Checked big-endian reading.

use crate::error::{Error, ErrorKind};

/// A cursor over a part of the class file that knows where in the file it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
    context: &'static str,
}

impl<'a> Reader<'a> {
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

    /// Everything that is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn within(mut self, context: &'static str) -> Self {
        self.context = context;
        self
    }

    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let Some((head, tail)) = self.rest.split_at_checked(len) else {
            return Err(self.error(ErrorKind::Truncated));
        };
        self.rest = tail;
        self.offset += len;
        Ok(head)
    }

    /// A reader for the next `len` bytes alone.
    pub(crate) fn part(&mut self, len: usize) -> Result<Self, Error> {
        let offset = self.offset;
        Ok(Self::new(self.take(len)?, offset, self.context))
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let Some((head, tail)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.error(ErrorKind::Truncated));
        };
        self.rest = tail;
        self.offset += N;
        Ok(*head)
    }

    #[inline]
    pub(crate) fn u1(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(u8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u2(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i2(&mut self) -> Result<i16, Error> {
        self.array().map(i16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u4(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i4(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_be_bytes)
    }

    /// A `u4` length followed by that many bytes.
    pub(crate) fn block(&mut self) -> Result<Self, Error> {
        let len = self.u4()?;
        self.part(len as usize)
    }

    pub(crate) fn expect_end(&self) -> Result<(), Error> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(self.error(ErrorKind::Trailing))
        }
    }

    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.offset, self.context)
    }
}
