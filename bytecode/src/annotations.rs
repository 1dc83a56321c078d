//! Annotations (JVMS 4.7.16): their types, the ends of those inside code, and the constants that they name.
//!
//! The VM reads as much of them as it can and ignores the rest, and so does this module: nothing here makes a class
//! malformed. Element values nest to any depth, so no function here is recursive.

use std::borrow::Cow;

use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::mutf8;
use crate::pool::ConstantPool;
use crate::reader::ClassFileReader;

/// An annotation with the texts of its elements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnotationTexts<'a> {
    /// Its type: `Ljava/lang/Deprecated;`.
    pub descriptor: Cow<'a, str>,
    /// Name of each element, with its strings and names of enum constants: one, or those of an array. Nested
    /// annotations, classes and numbers are left out.
    pub elements: Vec<(Cow<'a, str>, Vec<Cow<'a, str>>)>,
}

impl<'a> AnnotationTexts<'a> {
    /// Returns the texts of an element; empty if the annotation does not have it.
    pub fn texts(&self, element: &str) -> &[Cow<'a, str>] {
        let found = self.elements.iter().find(|(name, _)| name == element);
        found.map_or(&[], |(_, texts)| texts)
    }
}

/// Reads the annotations of a `RuntimeVisibleAnnotations` attribute, up to where the VM can read it.
pub(crate) fn read_annotations<'a>(
    pool: &ConstantPool<'a>,
    body: ClassFileReader<'a>,
) -> Vec<AnnotationTexts<'a>> {
    let mut walk = AnnotationWalker::new(body);
    let mut annotations = Vec::new();
    // The rest behind the first malformed structure is not read.
    let _ = walk.collect_annotations(pool, &mut annotations);
    annotations
}

/// Collects the types of the annotations in a `RuntimeVisibleAnnotations` attribute, up to where the VM can read it.
pub(crate) fn collect_annotation_types<'a>(
    pool: &ConstantPool<'a>,
    body: ClassFileReader<'a>,
    annotations: &mut Vec<&'a [u8]>,
) {
    let mut walk = AnnotationWalker::new(body);
    // The rest behind the first malformed structure is not read.
    let _ = walk.collect_types(pool, annotations);
}

/// Skips an `annotation` structure.
pub(crate) fn skip_annotation(reader: &mut ClassFileReader<'_>) -> Result<(), BytecodeError> {
    let mut walk = AnnotationWalker::new(*reader);
    walk.read_annotation()?;
    *reader = walk.reader;
    Ok(())
}

/// Returns the highest constant-pool index in the readable part of an attribute.
///
/// Its name is `name`, which ends in `Annotations` or is `AnnotationDefault`.
pub(crate) fn highest_index(name: &[u8], body: ClassFileReader<'_>) -> u16 {
    let mut walk = AnnotationWalker::new(body);
    let _ = match name {
        b"RuntimeVisibleAnnotations" | b"RuntimeInvisibleAnnotations" => walk.read_annotations(),
        b"RuntimeVisibleParameterAnnotations" | b"RuntimeInvisibleParameterAnnotations" => {
            walk.read_parameter_annotations()
        }
        b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
            walk.read_type_annotations()
        }
        b"AnnotationDefault" => walk.read_value().and_then(|inner| walk.read_values(inner)),
        _ => Ok(()),
    };
    walk.highest
}

/// Skips `target_type` and `target_info` (JVMS 4.7.20.1) outside of code, where nothing in them is an offset.
fn skip_target(reader: &mut ClassFileReader<'_>) -> Result<(), BytecodeError> {
    let target = reader.u1()?;
    let len = match target {
        0x00 | 0x01 | 0x16 => 1,
        0x10..=0x12 | 0x17 | 0x42..=0x46 => 2,
        0x13..=0x15 => 0,
        0x40 | 0x41 => 6 * usize::from(reader.u2()?),
        0x47..=0x4b => 3,
        _ => return Err(reader.error_here(BytecodeErrorKind::BadAnnotation(target))),
    };
    reader.take_bytes(len).map(drop)
}

struct AnnotationWalker<'a> {
    reader: ClassFileReader<'a>,
    highest: u16,
}

/// The unread values of one level.
struct PendingValues {
    remaining: u16,
    /// Whether a name precedes each value.
    named: bool,
}

impl<'a> AnnotationWalker<'a> {
    fn new(reader: ClassFileReader<'a>) -> Self {
        Self {
            reader: reader.with_context("annotations"),
            highest: 0,
        }
    }

    fn read_index(&mut self) -> Result<u16, BytecodeError> {
        let index = self.reader.u2()?;
        self.highest = self.highest.max(index);
        Ok(index)
    }

    fn collect_types(
        &mut self,
        pool: &ConstantPool<'a>,
        annotations: &mut Vec<&'a [u8]>,
    ) -> Result<(), BytecodeError> {
        for _ in 0..self.reader.u2()? {
            let mut head = self.reader;
            let name = pool.utf8(head.u2()?)?;
            // The VM requires the name of the first element before it reads the annotation.
            if head.u2()? > 0 {
                pool.utf8(head.u2()?)?;
            }
            annotations.push(name);
            self.read_annotation()?;
        }
        Ok(())
    }

    fn collect_annotations(
        &mut self,
        pool: &ConstantPool<'a>,
        annotations: &mut Vec<AnnotationTexts<'a>>,
    ) -> Result<(), BytecodeError> {
        for _ in 0..self.reader.u2()? {
            let descriptor = pool.text_at(self.read_index()?)?;
            let mut elements = Vec::new();
            for _ in 0..self.reader.u2()? {
                let name = pool.text_at(self.read_index()?)?;
                let mut texts = Vec::new();
                self.collect_texts(pool, &mut texts)?;
                elements.push((name, texts));
            }
            annotations.push(AnnotationTexts {
                descriptor,
                elements,
            });
        }
        Ok(())
    }

    /// Reads an element value and collects its texts: those of an array's elements, too.
    fn collect_texts(
        &mut self,
        pool: &ConstantPool<'a>,
        texts: &mut Vec<Cow<'a, str>>,
    ) -> Result<(), BytecodeError> {
        let mut head = self.reader;
        let count = match head.u1()? {
            b'[' => {
                self.reader = head;
                self.reader.u2()?
            }
            _ => 1,
        };
        for _ in 0..count {
            let mut head = self.reader;
            match head.u1()? {
                b's' => texts.push(mutf8::decode(pool.utf8(head.u2()?)?)),
                b'e' => {
                    head.u2()?;
                    texts.push(mutf8::decode(pool.utf8(head.u2()?)?));
                }
                _ => {}
            }
            let inner = self.read_value()?;
            self.read_values(inner)?;
        }
        Ok(())
    }

    fn read_annotations(&mut self) -> Result<(), BytecodeError> {
        for _ in 0..self.reader.u2()? {
            self.read_annotation()?;
        }
        Ok(())
    }

    fn read_parameter_annotations(&mut self) -> Result<(), BytecodeError> {
        for _ in 0..self.reader.u1()? {
            self.read_annotations()?;
        }
        Ok(())
    }

    fn read_type_annotations(&mut self) -> Result<(), BytecodeError> {
        for _ in 0..self.reader.u2()? {
            skip_target(&mut self.reader)?;
            let path = self.reader.u1()?;
            self.reader.take_bytes(2 * usize::from(path))?;
            self.read_annotation()?;
        }
        Ok(())
    }

    fn read_annotation(&mut self) -> Result<(), BytecodeError> {
        self.read_index()?;
        let remaining = self.reader.u2()?;
        self.read_values(Some(PendingValues {
            remaining,
            named: true,
        }))
    }

    fn read_values(&mut self, first: Option<PendingValues>) -> Result<(), BytecodeError> {
        let mut levels: Vec<PendingValues> = first.into_iter().collect();
        while let Some(level) = levels.last_mut() {
            let Some(remaining) = level.remaining.checked_sub(1) else {
                levels.pop();
                continue;
            };
            level.remaining = remaining;
            if level.named {
                self.read_index()?;
            }
            levels.extend(self.read_value()?);
        }
        Ok(())
    }

    /// Reads an `element_value` (JVMS 4.7.16.1), up to nested values.
    fn read_value(&mut self) -> Result<Option<PendingValues>, BytecodeError> {
        let tag = self.reader.u1()?;
        let named = match tag {
            b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => {
                self.read_index()?;
                return Ok(None);
            }
            b'e' => {
                self.read_index()?;
                self.read_index()?;
                return Ok(None);
            }
            b'@' => {
                self.read_index()?;
                true
            }
            b'[' => false,
            _ => {
                return Err(self
                    .reader
                    .error_here(BytecodeErrorKind::BadAnnotation(tag)));
            }
        };
        let remaining = self.reader.u2()?;
        Ok(Some(PendingValues { remaining, named }))
    }
}
