//! Checks that all indices of a class file lie in its constant pool.
//!
//! Constants that the rewriter appends would give a meaning to an index behind the pool's end. So every index that the
//! VM or reflection reads (JVMS 4.1 to 4.7) is checked before anything is appended. Parts that the VM ignores are
//! ignored here as well: attributes of later versions, and the rest of malformed annotations.

use crate::annotations;
use crate::class::ClassFile;
use crate::class::FIRST_WITH_FRAMES;
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::opcode::{self, InstructionDecoder};
use crate::reader::ClassFileReader;

/// Checks all indices.
///
/// # Errors
/// An index lies behind the pool's end, or an attribute that the VM reads is malformed.
pub(crate) fn check_indices(class: &ClassFile<'_>) -> Result<(), BytecodeError> {
    let indices = IndexChecker {
        class,
        count: class.pool.count(),
    };
    for index in class.pool.indices() {
        for named in class.pool.referenced_indices(index).into_iter().flatten() {
            indices.check_index(named, 0)?;
        }
    }
    let mut reader = class.reader_after_pool();
    // Access flags.
    reader.take_bytes(2)?;
    indices.check_index_list(&mut reader, 2)?;
    indices.check_table(&mut reader, &[true])?;
    for _members in 0..2 {
        for _ in 0..reader.u2()? {
            reader.take_bytes(2)?;
            indices.check_index_list(&mut reader, 2)?;
            indices.check_attributes(&mut reader)?;
        }
    }
    indices.check_attributes(&mut reader)
}

struct IndexChecker<'x, 'a> {
    class: &'x ClassFile<'a>,
    count: usize,
}

impl IndexChecker<'_, '_> {
    fn check_index(&self, index: u16, offset: usize) -> Result<(), BytecodeError> {
        if usize::from(index) < self.count {
            return Ok(());
        }
        Err(BytecodeError::new(
            BytecodeErrorKind::OutOfBounds,
            offset,
            "constant index",
        ))
    }

    fn check_index_list(
        &self,
        reader: &mut ClassFileReader<'_>,
        count: usize,
    ) -> Result<(), BytecodeError> {
        for _ in 0..count {
            let index = reader.u2()?;
            self.check_index(index, reader.offset())?;
        }
        Ok(())
    }

    /// Checks a table of structures of 16-bit numbers, which are indices (`true`) or other numbers.
    fn check_table(
        &self,
        reader: &mut ClassFileReader<'_>,
        parts: &[bool],
    ) -> Result<(), BytecodeError> {
        for _ in 0..reader.u2()? {
            for is_index in parts {
                let value = reader.u2()?;
                if *is_index {
                    self.check_index(value, reader.offset())?;
                }
            }
        }
        Ok(())
    }

    fn check_attributes(&self, reader: &mut ClassFileReader<'_>) -> Result<(), BytecodeError> {
        for _ in 0..reader.u2()? {
            let name = reader.u2()?;
            self.check_index(name, reader.offset())?;
            let body = reader.read_block()?;
            self.check_attribute(self.class.pool.utf8(name)?, body)?;
        }
        Ok(())
    }

    /// Checks an attribute, if the class's version has it.
    fn check_attribute(
        &self,
        name: &[u8],
        mut body: ClassFileReader<'_>,
    ) -> Result<(), BytecodeError> {
        let since = |major| self.class.major() >= major;
        match name {
            b"ConstantValue" | b"SourceFile" => self.check_index_list(&mut body, 1)?,
            b"Signature" if since(49) => self.check_index_list(&mut body, 1)?,
            b"NestHost" if since(55) => self.check_index_list(&mut body, 1)?,
            b"EnclosingMethod" if since(49) => self.check_index_list(&mut body, 2)?,
            b"Exceptions" => self.check_table(&mut body, &[true])?,
            b"NestMembers" if since(55) => self.check_table(&mut body, &[true])?,
            b"PermittedSubclasses" if since(59) => self.check_table(&mut body, &[true])?,
            b"InnerClasses" => self.check_table(&mut body, &[true, true, true, false])?,
            b"BootstrapMethods" if since(51) => self.check_bootstrap_methods(&mut body)?,
            b"MethodParameters" if since(52) => self.check_method_parameters(&mut body)?,
            b"Record" if since(58) => self.check_record(&mut body)?,
            b"Code" => return self.check_code(body),
            b"LocalVariableTable" => {
                self.check_table(&mut body, &[false, false, true, true, false])?;
            }
            b"LocalVariableTypeTable" if since(49) => {
                self.check_table(&mut body, &[false, false, true, true, false])?;
            }
            b"StackMapTable" if since(FIRST_WITH_FRAMES) => return self.check_frames(body),
            _ if since(49) => {
                let highest = annotations::highest_index(name, body);
                return self.check_index(highest, body.offset());
            }
            _ => return Ok(()),
        }
        body.expect_end()
    }

    fn check_bootstrap_methods(&self, body: &mut ClassFileReader<'_>) -> Result<(), BytecodeError> {
        for _ in 0..body.u2()? {
            self.check_index_list(body, 1)?;
            self.check_table(body, &[true])?;
        }
        Ok(())
    }

    fn check_method_parameters(&self, body: &mut ClassFileReader<'_>) -> Result<(), BytecodeError> {
        for _ in 0..body.u1()? {
            self.check_index_list(body, 1)?;
            body.take_bytes(2)?;
        }
        Ok(())
    }

    fn check_record(&self, body: &mut ClassFileReader<'_>) -> Result<(), BytecodeError> {
        for _ in 0..body.u2()? {
            self.check_index_list(body, 2)?;
            self.check_attributes(body)?;
        }
        Ok(())
    }
}

/// Code and its attributes.
impl IndexChecker<'_, '_> {
    fn check_code(&self, mut body: ClassFileReader<'_>) -> Result<(), BytecodeError> {
        body.take_bytes(4)?;
        let offset = body.offset();
        let code = body.read_block()?.remaining_bytes();
        let mut instructions = InstructionDecoder::starting_at(code, offset, 0);
        while let Some((instruction, operands)) = instructions.next()? {
            self.check_instruction(instruction.opcode, operands)?;
        }
        self.check_table(&mut body, &[false, false, false, true])?;
        self.check_attributes(&mut body)
    }

    fn check_instruction(
        &self,
        op: u8,
        mut operands: ClassFileReader<'_>,
    ) -> Result<(), BytecodeError> {
        let index = match op {
            opcode::LDC => u16::from(operands.u1()?),
            opcode::LDC_W
            | opcode::LDC2_W
            | opcode::GETSTATIC..=opcode::NEW
            | opcode::ANEWARRAY
            | opcode::CHECKCAST
            | opcode::INSTANCEOF
            | opcode::MULTIANEWARRAY => operands.u2()?,
            _ => return Ok(()),
        };
        self.check_index(index, operands.offset())
    }

    /// Checks the classes in frames. Before version 51, the VM ignores unreadable frames.
    fn check_frames(&self, mut body: ClassFileReader<'_>) -> Result<(), BytecodeError> {
        let read = self.check_frame_types(&mut body);
        match read {
            Err(error)
                if error.kind != BytecodeErrorKind::OutOfBounds
                    && self.class.has_optional_frames() =>
            {
                Ok(())
            }
            read => read,
        }
    }

    fn check_frame_types(&self, body: &mut ClassFileReader<'_>) -> Result<(), BytecodeError> {
        for _ in 0..body.u2()? {
            let tag = body.u1()?;
            match tag {
                0..=63 => {}
                64..=127 => self.check_types(body, 1)?,
                247 => {
                    body.take_bytes(2)?;
                    self.check_types(body, 1)?;
                }
                248..=251 => drop(body.take_bytes(2)?),
                252..=254 => {
                    body.take_bytes(2)?;
                    self.check_types(body, u16::from(tag - 251))?;
                }
                255 => {
                    body.take_bytes(2)?;
                    let locals = body.u2()?;
                    self.check_types(body, locals)?;
                    let stack = body.u2()?;
                    self.check_types(body, stack)?;
                }
                _ => return Err(body.error_here(BytecodeErrorKind::BadFrame(tag))),
            }
        }
        body.expect_end()
    }

    fn check_types(&self, body: &mut ClassFileReader<'_>, count: u16) -> Result<(), BytecodeError> {
        for _ in 0..count {
            match body.u1()? {
                0..=6 => {}
                7 => self.check_index_list(body, 1)?,
                8 => drop(body.take_bytes(2)?),
                tag => return Err(body.error_here(BytecodeErrorKind::BadFrame(tag))),
            }
        }
        Ok(())
    }
}
