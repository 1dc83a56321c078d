//! Annotations (JVMS 4.7.16): which ones a method has, where those inside code end, and the constants that
//! they name.
//!
//! The VM takes what it can read of them and ignores the rest, and so does this: nothing here makes a class
//! a malformed one. Element values nest as deep as they like, so no function here calls itself.

use crate::error::{Error, ErrorKind};
use crate::pool::Pool;
use crate::reader::Reader;

/// The types of the annotations in a `RuntimeVisibleAnnotations` attribute, as far as the VM reads them.
pub(crate) fn types<'a>(pool: &Pool<'a>, body: Reader<'a>, found: &mut Vec<&'a [u8]>) {
    let mut walk = Walk::new(body);
    // What follows the first thing that makes no sense is not read.
    let _ = walk.types(pool, found);
}

/// Skips an `annotation` structure.
pub(crate) fn skip(reader: &mut Reader<'_>) -> Result<(), Error> {
    let mut walk = Walk::new(*reader);
    walk.annotation()?;
    *reader = walk.reader;
    Ok(())
}

/// The highest index into the constant pool in what can be read of an attribute called `name`, whose name ends in
/// `Annotations`, or of `AnnotationDefault`.
pub(crate) fn highest_index(name: &[u8], body: Reader<'_>) -> u16 {
    let mut walk = Walk::new(body);
    let _ = match name {
        b"RuntimeVisibleAnnotations" | b"RuntimeInvisibleAnnotations" => walk.annotations(),
        b"RuntimeVisibleParameterAnnotations" | b"RuntimeInvisibleParameterAnnotations" => {
            walk.of_parameters()
        }
        b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => walk.of_types(),
        b"AnnotationDefault" => walk.value().and_then(|inner| walk.values(inner)),
        _ => Ok(()),
    };
    walk.highest
}

/// Skips `target_type` and `target_info` (JVMS 4.7.20.1) outside of code, where nothing in them is an offset.
fn skip_target(reader: &mut Reader<'_>) -> Result<(), Error> {
    let target = reader.u1()?;
    let len = match target {
        0x00 | 0x01 | 0x16 => 1,
        0x10..=0x12 | 0x17 | 0x42..=0x46 => 2,
        0x13..=0x15 => 0,
        0x40 | 0x41 => 6 * usize::from(reader.u2()?),
        0x47..=0x4b => 3,
        _ => return Err(reader.error(ErrorKind::BadAnnotation(target))),
    };
    reader.take(len).map(drop)
}

struct Walk<'a> {
    reader: Reader<'a>,
    highest: u16,
}

/// Values that are still to be read at one level.
struct Level {
    remaining: u16,
    /// Each has a name before it.
    named: bool,
}

impl<'a> Walk<'a> {
    fn new(reader: Reader<'a>) -> Self {
        Self {
            reader: reader.within("annotations"),
            highest: 0,
        }
    }

    fn index(&mut self) -> Result<u16, Error> {
        let index = self.reader.u2()?;
        self.highest = self.highest.max(index);
        Ok(index)
    }

    fn types(&mut self, pool: &Pool<'a>, found: &mut Vec<&'a [u8]>) -> Result<(), Error> {
        for _ in 0..self.reader.u2()? {
            let mut head = self.reader;
            let name = pool.utf8(head.u2()?)?;
            // The VM asks for the name of the first element before it looks at the annotation.
            if head.u2()? > 0 {
                pool.utf8(head.u2()?)?;
            }
            found.push(name);
            self.annotation()?;
        }
        Ok(())
    }

    fn annotations(&mut self) -> Result<(), Error> {
        for _ in 0..self.reader.u2()? {
            self.annotation()?;
        }
        Ok(())
    }

    fn of_parameters(&mut self) -> Result<(), Error> {
        for _ in 0..self.reader.u1()? {
            self.annotations()?;
        }
        Ok(())
    }

    fn of_types(&mut self) -> Result<(), Error> {
        for _ in 0..self.reader.u2()? {
            skip_target(&mut self.reader)?;
            let path = self.reader.u1()?;
            self.reader.take(2 * usize::from(path))?;
            self.annotation()?;
        }
        Ok(())
    }

    fn annotation(&mut self) -> Result<(), Error> {
        self.index()?;
        let remaining = self.reader.u2()?;
        self.values(Some(Level {
            remaining,
            named: true,
        }))
    }

    fn values(&mut self, first: Option<Level>) -> Result<(), Error> {
        let mut levels: Vec<Level> = first.into_iter().collect();
        while let Some(level) = levels.last_mut() {
            let Some(remaining) = level.remaining.checked_sub(1) else {
                levels.pop();
                continue;
            };
            level.remaining = remaining;
            if level.named {
                self.index()?;
            }
            levels.extend(self.value()?);
        }
        Ok(())
    }

    /// An `element_value` (JVMS 4.7.16.1), up to the values in it.
    fn value(&mut self) -> Result<Option<Level>, Error> {
        let tag = self.reader.u1()?;
        let named = match tag {
            b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => {
                self.index()?;
                return Ok(None);
            }
            b'e' => {
                self.index()?;
                self.index()?;
                return Ok(None);
            }
            b'@' => {
                self.index()?;
                true
            }
            b'[' => false,
            _ => return Err(self.reader.error(ErrorKind::BadAnnotation(tag))),
        };
        let remaining = self.reader.u2()?;
        Ok(Some(Level { remaining, named }))
    }
}
