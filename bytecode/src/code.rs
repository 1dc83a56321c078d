//! The `Code` attribute (JVMS 4.7.3).

use crate::error::BytecodeError;
use crate::opcode::InstructionDecoder;
use crate::reader::ClassFileReader;

/// A method's code, not decoded yet.
#[derive(Debug, Clone)]
pub struct CodeAttribute<'a> {
    /// `max_stack`.
    pub max_stack: u16,
    /// `max_locals`.
    pub max_locals: u16,
    /// The instructions.
    pub bytes: &'a [u8],
    /// Number of entries in the exception table.
    pub handler_count: u16,
    /// The attribute's contents, for its offset and length.
    pub(crate) body: ClassFileReader<'a>,
    code_offset: usize,
    exceptions: ClassFileReader<'a>,
    /// The attributes, behind `attributes_count`.
    attributes: ClassFileReader<'a>,
    attributes_count: u16,
}

/// An entry of the exception table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExceptionHandler {
    pub(crate) start: u16,
    pub(crate) end: u16,
    pub(crate) handler: u16,
    pub(crate) catch_type: u16,
}

impl<'a> CodeAttribute<'a> {
    pub(crate) fn parse(body: ClassFileReader<'a>) -> Result<Self, BytecodeError> {
        let body = body.with_context("code");
        let mut reader = body;
        let (max_stack, max_locals) = (reader.u2()?, reader.u2()?);
        let code = reader.read_block()?;
        let handlers = reader.u2()?;
        let exceptions = reader
            .take_part(8 * usize::from(handlers))?
            .with_context("exception table");
        let attributes_count = reader.u2()?;
        let attributes = reader.with_context("code attributes");
        for _ in 0..attributes_count {
            reader.take_bytes(2)?;
            reader.read_block()?;
        }
        reader.expect_end()?;
        Ok(Self {
            max_stack,
            max_locals,
            bytes: code.remaining_bytes(),
            handler_count: handlers,
            body,
            code_offset: code.offset(),
            exceptions,
            attributes,
            attributes_count,
        })
    }

    /// Returns the offset of the instructions in the class file.
    pub(crate) fn offset(&self) -> usize {
        self.code_offset
    }

    pub(crate) fn instructions(&self) -> InstructionDecoder<'a> {
        InstructionDecoder::starting_at(self.bytes, self.code_offset, 0)
    }

    pub(crate) fn instructions_from(&self, bci: u32) -> InstructionDecoder<'a> {
        InstructionDecoder::starting_at(self.bytes, self.code_offset, bci as usize)
    }

    /// Whether it has any exception handler.
    #[must_use]
    pub fn has_handlers(&self) -> bool {
        self.exception_handlers().next().is_some()
    }

    pub(crate) fn exception_handlers(
        &self,
    ) -> impl Iterator<Item = Result<ExceptionHandler, BytecodeError>> + use<'a> {
        let mut reader = self.exceptions;
        (0..self.handler_count).map(move |_| {
            Ok(ExceptionHandler {
                start: reader.u2()?,
                end: reader.u2()?,
                handler: reader.u2()?,
                catch_type: reader.u2()?,
            })
        })
    }

    pub(crate) fn attributes_count(&self) -> u16 {
        self.attributes_count
    }

    /// Returns name index and contents of each attribute.
    pub(crate) fn attributes(
        &self,
    ) -> impl Iterator<Item = Result<(u16, ClassFileReader<'a>), BytecodeError>> + use<'a> {
        let mut reader = self.attributes;
        (0..self.attributes_count).map(move |_| Ok((reader.u2()?, reader.read_block()?)))
    }
}
