//! Whether all that a class file names lies in its constant pool.
//!
//! What the rewriter appends to the pool would give a meaning to an index behind its end. So every index
//! is looked at that the VM or reflection reads (JVMS 4.1 to 4.7), before anything is appended. What
//! the VM ignores is ignored here, too: attributes of later versions, and annotations from where they are
//! malformed.

use crate::annotations;
use crate::class::ClassFile;
use crate::error::{Error, ErrorKind};
use crate::frames::FIRST_WITH_FRAMES;
use crate::opcode::{self, Instructions};
use crate::reader::Reader;

/// # Errors
/// An index lies behind the pool's end, or an attribute that the VM reads is malformed.
pub(crate) fn check(class: &ClassFile<'_>) -> Result<(), Error> {
    let indices = Indices {
        class,
        count: class.pool.count(),
    };
    for index in class.pool.indices() {
        for named in class.pool.names(index).into_iter().flatten() {
            indices.is_in_pool(named, 0)?;
        }
    }
    let mut reader = class.behind_the_pool();
    // Access flags.
    reader.take(2)?;
    indices.some(&mut reader, 2)?;
    indices.counted(&mut reader, &[true])?;
    for _members in 0..2 {
        for _ in 0..reader.u2()? {
            reader.take(2)?;
            indices.some(&mut reader, 2)?;
            indices.attributes(&mut reader)?;
        }
    }
    indices.attributes(&mut reader)
}

struct Indices<'x, 'a> {
    class: &'x ClassFile<'a>,
    count: usize,
}

impl Indices<'_, '_> {
    fn is_in_pool(&self, index: u16, offset: usize) -> Result<(), Error> {
        if usize::from(index) < self.count {
            return Ok(());
        }
        Err(Error::new(ErrorKind::OutOfBounds, offset, "constant index"))
    }

    fn some(&self, reader: &mut Reader<'_>, count: usize) -> Result<(), Error> {
        for _ in 0..count {
            let index = reader.u2()?;
            self.is_in_pool(index, reader.offset())?;
        }
        Ok(())
    }

    /// A number of structures that consist of indices (`true`) and other numbers of 16 bits.
    fn counted(&self, reader: &mut Reader<'_>, parts: &[bool]) -> Result<(), Error> {
        for _ in 0..reader.u2()? {
            for is_index in parts {
                let value = reader.u2()?;
                if *is_index {
                    self.is_in_pool(value, reader.offset())?;
                }
            }
        }
        Ok(())
    }

    fn attributes(&self, reader: &mut Reader<'_>) -> Result<(), Error> {
        for _ in 0..reader.u2()? {
            let name = reader.u2()?;
            self.is_in_pool(name, reader.offset())?;
            let body = reader.block()?;
            self.attribute(self.class.pool.utf8(name)?, body)?;
        }
        Ok(())
    }

    /// Attributes by the first version that has them.
    fn attribute(&self, name: &[u8], mut body: Reader<'_>) -> Result<(), Error> {
        let since = |major| self.class.major() >= major;
        match name {
            b"ConstantValue" | b"SourceFile" => self.some(&mut body, 1)?,
            b"Signature" if since(49) => self.some(&mut body, 1)?,
            b"NestHost" if since(55) => self.some(&mut body, 1)?,
            b"EnclosingMethod" if since(49) => self.some(&mut body, 2)?,
            b"Exceptions" => self.counted(&mut body, &[true])?,
            b"NestMembers" if since(55) => self.counted(&mut body, &[true])?,
            b"PermittedSubclasses" if since(59) => self.counted(&mut body, &[true])?,
            b"InnerClasses" => self.counted(&mut body, &[true, true, true, false])?,
            b"BootstrapMethods" if since(51) => self.bootstrap_methods(&mut body)?,
            b"MethodParameters" if since(52) => self.parameters(&mut body)?,
            b"Record" if since(58) => self.record(&mut body)?,
            b"Code" => return self.code(body),
            b"LocalVariableTable" => {
                self.counted(&mut body, &[false, false, true, true, false])?;
            }
            b"LocalVariableTypeTable" if since(49) => {
                self.counted(&mut body, &[false, false, true, true, false])?;
            }
            b"StackMapTable" if since(FIRST_WITH_FRAMES) => return self.frames(body),
            _ if since(49) => {
                let highest = annotations::highest_index(name, body);
                return self.is_in_pool(highest, body.offset());
            }
            _ => return Ok(()),
        }
        body.expect_end()
    }

    fn bootstrap_methods(&self, body: &mut Reader<'_>) -> Result<(), Error> {
        for _ in 0..body.u2()? {
            self.some(body, 1)?;
            self.counted(body, &[true])?;
        }
        Ok(())
    }

    fn parameters(&self, body: &mut Reader<'_>) -> Result<(), Error> {
        for _ in 0..body.u1()? {
            self.some(body, 1)?;
            body.take(2)?;
        }
        Ok(())
    }

    fn record(&self, body: &mut Reader<'_>) -> Result<(), Error> {
        for _ in 0..body.u2()? {
            self.some(body, 2)?;
            self.attributes(body)?;
        }
        Ok(())
    }
}

/// Code, and what hangs on it.
impl Indices<'_, '_> {
    fn code(&self, mut body: Reader<'_>) -> Result<(), Error> {
        body.take(4)?;
        let offset = body.offset();
        let code = body.block()?.rest();
        let mut instructions = Instructions::starting_at(code, offset, 0);
        while let Some((instruction, operands)) = instructions.next()? {
            self.instruction(instruction.opcode, operands)?;
        }
        self.counted(&mut body, &[false, false, false, true])?;
        self.attributes(&mut body)
    }

    fn instruction(&self, op: u8, mut operands: Reader<'_>) -> Result<(), Error> {
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
        self.is_in_pool(index, operands.offset())
    }

    /// The classes in frames. Before version 51 the VM goes on without frames that it cannot read.
    fn frames(&self, mut body: Reader<'_>) -> Result<(), Error> {
        let read = self.frame_types(&mut body);
        match read {
            Err(error)
                if error.kind != ErrorKind::OutOfBounds && self.class.has_optional_frames() =>
            {
                Ok(())
            }
            read => read,
        }
    }

    fn frame_types(&self, body: &mut Reader<'_>) -> Result<(), Error> {
        for _ in 0..body.u2()? {
            let tag = body.u1()?;
            match tag {
                0..=63 => {}
                64..=127 => self.types(body, 1)?,
                247 => {
                    body.take(2)?;
                    self.types(body, 1)?;
                }
                248..=251 => drop(body.take(2)?),
                252..=254 => {
                    body.take(2)?;
                    self.types(body, u16::from(tag - 251))?;
                }
                255 => {
                    body.take(2)?;
                    let locals = body.u2()?;
                    self.types(body, locals)?;
                    let stack = body.u2()?;
                    self.types(body, stack)?;
                }
                _ => return Err(body.error(ErrorKind::BadFrame(tag))),
            }
        }
        body.expect_end()
    }

    fn types(&self, body: &mut Reader<'_>, count: u16) -> Result<(), Error> {
        for _ in 0..count {
            match body.u1()? {
                0..=6 => {}
                7 => self.some(body, 1)?,
                8 => drop(body.take(2)?),
                tag => return Err(body.error(ErrorKind::BadFrame(tag))),
            }
        }
        Ok(())
    }
}
