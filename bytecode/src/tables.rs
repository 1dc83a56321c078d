//! Writes the parts that belong to the code (JVMS 4.7.3): the exception table and the attributes that hold offsets.

use crate::annotations;
use crate::class::{ClassFile, ClassFileMethod, FIRST_WITH_FRAMES};
use crate::code::CodeAttribute;
use crate::edits::CodeEdits;
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::frames::{FramePosition, FrameReader, FrameWriter, NewLocals, StackMapFrame};
use crate::infer;
use crate::layout::CodeLayout;
use crate::plan::MethodPlan;
use crate::pool::PoolAdditions;
use crate::reader::ClassFileReader;
use crate::verification_type::VerificationType;

/// A method whose code has its new layout.
pub(crate) struct CodeTableWriter<'x, 'c, 'a, 'p> {
    pub(crate) class: &'c ClassFile<'a>,
    pub(crate) method: &'c ClassFileMethod<'a>,
    pub(crate) code: &'c CodeAttribute<'a>,
    pub(crate) plan: &'x MethodPlan<'p>,
    /// The new variables.
    pub(crate) local: Option<NewLocals>,
    /// By how many slots `max_locals` has grown.
    pub(crate) more_locals: u16,
    pub(crate) layout: &'x CodeLayout,
    pub(crate) edits: &'x CodeEdits,
    pub(crate) pool: &'x mut PoolAdditions<'c, 'a, 'p>,
}

impl<'a> CodeTableWriter<'_, '_, 'a, '_> {
    /// Writes the exception table.
    ///
    /// A range includes the code inserted after its last instruction: HotSpot checks the handler against the types
    /// behind that instruction anyway.
    ///
    /// The handler that catches everything comes last: the original ones take precedence (JVMS 2.10), and type
    /// annotations refer to handlers by index.
    pub(crate) fn write_exceptions(&self, out: &mut Vec<u8>) -> Result<(), BytecodeError> {
        let unwinds = self.plan.unwind.is_some();
        let count = self.code.handler_count.checked_add(u16::from(unwinds));
        out.extend(count.ok_or_else(|| self.too_large())?.to_be_bytes());
        for entry in self.code.exception_handlers() {
            let entry = entry?;
            self.put_offset(out, self.layout.start_offset(u32::from(entry.start))?)?;
            self.put_offset(out, self.layout.start_offset(u32::from(entry.end))?)?;
            self.put_offset(out, self.layout.target_offset(u32::from(entry.handler))?)?;
            out.extend(entry.catch_type.to_be_bytes());
        }
        if unwinds {
            let (start, end) = (self.layout.start_offset(0)?, self.layout.end_offset());
            for offset in [start, end, end, 0] {
                self.put_offset(out, offset)?;
            }
        }
        Ok(())
    }

    pub(crate) fn write_attributes(&mut self, out: &mut Vec<u8>) -> Result<(), BytecodeError> {
        let pool = self.pool.pool();
        let names = self.code.attributes().map(|one| pool.utf8(one?.0));
        let has_frames = names.into_iter().any(|name| name == Ok(b"StackMapTable"));
        let adds_frames =
            !has_frames && self.plan.unwind.is_some() && self.class.major() >= FIRST_WITH_FRAMES;
        let count = self
            .code
            .attributes_count()
            .checked_add(u16::from(adds_frames));
        out.extend(count.ok_or_else(|| self.too_large())?.to_be_bytes());
        for attribute in self.code.attributes() {
            let (name, body) = attribute?;
            write_with_length(out, name, |out| {
                self.write_attribute(pool.utf8(name)?, body, out)
            })?;
        }
        if adds_frames {
            let name = self.pool.intern_utf8(b"StackMapTable")?;
            write_with_length(out, name, |out| self.write_stack_map(None, out))?;
        }
        Ok(())
    }

    fn write_attribute(
        &mut self,
        name: &[u8],
        body: ClassFileReader<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let start = out.len();
        let done = match name {
            b"StackMapTable" if self.class.major() >= FIRST_WITH_FRAMES => {
                self.write_stack_map(Some(body), out)
            }
            b"LineNumberTable" => self.write_line_numbers(body, out),
            b"LocalVariableTable" => self.write_variables(body, true, out),
            b"LocalVariableTypeTable" => self.write_variables(body, false, out),
            b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                self.write_type_annotations(body, out)
            }
            _ => {
                out.extend(body.remaining_bytes());
                return Ok(());
            }
        };
        match done {
            // No VM reads annotations inside code, and in some versions unreadable frames are harmless.
            Err(_) if name.ends_with(b"Annotations") => self.copy_unchanged(body, start, out),
            Err(error) if name == b"StackMapTable" && self.class.has_optional_frames() => {
                match error.kind {
                    BytecodeErrorKind::OutOfBounds | BytecodeErrorKind::PoolFull => Err(error),
                    _ => self.copy_unchanged(body, start, out),
                }
            }
            done => done,
        }
    }

    fn copy_unchanged(
        &self,
        body: ClassFileReader<'a>,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        out.truncate(start);
        out.extend(body.remaining_bytes());
        Ok(())
    }

    /// `StackMapTable` (JVMS 4.7.4)
    fn write_stack_map(
        &mut self,
        body: Option<ClassFileReader<'a>>,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let mut frame = StackMapFrame::at_method_entry(self.class, self.method)?;
        let (layout, edits) = (self.layout, self.edits);
        let mut writer = FrameWriter::new(self.pool, layout, edits, &frame, self.local);
        if let Some(body) = body {
            let missing = layout.bcis_after_wide_branches();
            let at = (self.class, self.code);
            copy_frames(
                at,
                FrameReader::new(body)?,
                &mut frame,
                &missing,
                &mut writer,
            )?;
        }
        if self.plan.unwind.is_some() {
            let caught = StackMapFrame {
                locals: Vec::new(),
                stack: vec![VerificationType::from_name(b"java/lang/Throwable")],
            };
            writer.write_frame(layout.end_offset(), &caught, 0)?;
        }
        out.extend(writer.finish());
        Ok(())
    }

    /// `LineNumberTable` (JVMS 4.7.12)
    fn write_line_numbers(
        &self,
        body: ClassFileReader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let mut reader = body.with_context("line numbers");
        let count = reader.u2()?;
        out.extend(count.to_be_bytes());
        for _ in 0..count {
            let start = u32::from(reader.u2()?);
            self.put_offset(out, self.layout.debug_offset(start, self.edits)?)?;
            out.extend(reader.take_bytes(2)?);
        }
        reader.expect_end()
    }

    /// `LocalVariableTable` and `LocalVariableTypeTable` (JVMS 4.7.13, 4.7.14). Entries that the VM refuses stay
    /// invalid.
    fn write_variables(
        &self,
        body: ClassFileReader<'_>,
        has_descriptors: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let mut reader = body.with_context("local variables");
        let count = reader.u2()?;
        out.extend(count.to_be_bytes());
        for _ in 0..count {
            self.write_variable_range(&mut reader, out)?;
            out.extend(reader.take_bytes(2)?);
            let descriptor = reader.u2()?;
            let index = reader.u2()?;
            let is_wide = || matches!(self.pool.pool().utf8(descriptor), Ok(b"J" | b"D"));
            let last = index.saturating_add(u16::from(has_descriptors && is_wide()));
            let is_beyond = last >= self.code.max_locals;
            let index = if is_beyond {
                index.saturating_add(self.more_locals)
            } else {
                index
            };
            out.extend(descriptor.to_be_bytes());
            out.extend(index.to_be_bytes());
        }
        reader.expect_end()
    }

    fn write_variable_range(
        &self,
        reader: &mut ClassFileReader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let (start, length) = (u32::from(reader.u2()?), u32::from(reader.u2()?));
        let new_start = self.layout.debug_offset(start, self.edits)?;
        self.put_offset(out, new_start)?;
        if length == 0 {
            return self.put_offset(out, 0);
        }
        let new_end = self.layout.debug_end_offset(start + length, self.edits)?;
        self.put_offset(out, new_end.saturating_sub(new_start))
    }

    /// `Runtime(In)VisibleTypeAnnotations` (JVMS 4.7.20)
    fn write_type_annotations(
        &self,
        body: ClassFileReader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let mut reader = body.with_context("type annotations");
        let count = reader.u2()?;
        out.extend(count.to_be_bytes());
        for _ in 0..count {
            self.write_annotation_target(&mut reader, out)?;
            let mut rest = reader;
            let path = rest.u1()?;
            rest.take_bytes(2 * usize::from(path))?;
            annotations::skip_annotation(&mut rest)?;
            out.extend(reader.take_bytes(rest.offset() - reader.offset())?);
        }
        reader.expect_end()
    }

    /// `target_type` and `target_info` (JVMS 4.7.20.1); only the kinds that occur in code.
    fn write_annotation_target(
        &self,
        reader: &mut ClassFileReader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let target = reader.u1()?;
        out.push(target);
        match target {
            0x40 | 0x41 => {
                let count = reader.u2()?;
                out.extend(count.to_be_bytes());
                for _ in 0..count {
                    self.write_variable_range(reader, out)?;
                    out.extend(reader.take_bytes(2)?);
                }
            }
            0x42 => out.extend(reader.take_bytes(2)?),
            0x43..=0x46 => self.write_annotated_instruction(reader, out)?,
            0x47..=0x4b => {
                self.write_annotated_instruction(reader, out)?;
                out.push(reader.u1()?);
            }
            _ => return Err(reader.error_here(BytecodeErrorKind::BadAnnotation(target))),
        }
        Ok(())
    }

    fn write_annotated_instruction(
        &self,
        reader: &mut ClassFileReader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), BytecodeError> {
        let bci = u32::from(reader.u2()?);
        // Compilers sometimes write these wrongly, and no JVM reads them: they are no reason to skip the method.
        self.put_offset(
            out,
            self.layout
                .instruction_offset(bci, self.edits)
                .unwrap_or(bci),
        )
    }

    fn put_offset(&self, out: &mut Vec<u8>, offset: u32) -> Result<(), BytecodeError> {
        let offset = u16::try_from(offset).map_err(|_| self.too_large())?;
        out.extend(offset.to_be_bytes());
        Ok(())
    }

    #[cold]
    fn too_large(&self) -> BytecodeError {
        BytecodeError::new(
            BytecodeErrorKind::MethodTooLarge,
            self.code.offset(),
            "code tables",
        )
    }
}

/// The maximum number of variables in all inferred frames together.
const MAX_INFERRED: usize = 1 << 24;

/// Copies the frames and adds the missing ones, behind widened branches.
fn copy_frames<'a>(
    (class, code): (&ClassFile<'a>, &CodeAttribute<'a>),
    mut reader: FrameReader<'a>,
    frame: &mut StackMapFrame<'a>,
    mut missing: &[u32],
    writer: &mut FrameWriter<'_, '_, 'a, '_>,
) -> Result<(), BytecodeError> {
    let mut known_at = 0;
    loop {
        let next = reader.next_bci()?;
        let is_before = |bci: &u32| next.is_none_or(|next| *bci < next);
        let (between, rest) = missing.split_at(missing.partition_point(is_before));
        missing = rest;
        if !between.is_empty() {
            if between.len().saturating_mul(frame.locals.len()) > MAX_INFERRED {
                return Err(BytecodeError::new(
                    BytecodeErrorKind::MethodTooLarge,
                    code.offset(),
                    "stack map",
                ));
            }
            let mut known = frame.clone();
            for bci in between {
                infer::advance_frame(class, code, &mut known, known_at, *bci)?;
                known_at = *bci;
                writer.write_frame(writer.layout.start_offset(*bci)?, &known, 0)?;
            }
        }
        let Some(FramePosition { bci, kept }) = reader.next(frame)? else {
            return Ok(());
        };
        check_stack(code, frame)?;
        let kept = if between.is_empty() { kept } else { 0 };
        writer.write_frame(writer.layout.start_offset(bci)?, frame, kept)?;
        known_at = bci;
        // The missing frame may exist already.
        missing = missing.strip_prefix(&[bci]).unwrap_or(missing);
    }
}

/// Checks the frame's stack as the VM does when it reads the frame.
fn check_stack(code: &CodeAttribute<'_>, frame: &StackMapFrame<'_>) -> Result<(), BytecodeError> {
    let slots: usize = frame.stack.iter().map(|one| one.slot_count()).sum();
    if slots <= usize::from(code.max_stack) {
        return Ok(());
    }
    Err(BytecodeError::new(
        BytecodeErrorKind::OutOfBounds,
        code.offset(),
        "stack map",
    ))
}

/// Writes an attribute: its name, its length, its contents.
pub(crate) fn write_with_length(
    out: &mut Vec<u8>,
    name: u16,
    contents: impl FnOnce(&mut Vec<u8>) -> Result<(), BytecodeError>,
) -> Result<(), BytecodeError> {
    out.extend(name.to_be_bytes());
    let length_at = out.len();
    out.extend([0; 4]);
    contents(out)?;
    let length = out.len() - length_at - 4;
    let too_large =
        || BytecodeError::new(BytecodeErrorKind::MethodTooLarge, length_at, "attribute");
    let length = u32::try_from(length).map_err(|_| too_large())?;
    let slot = out
        .get_mut(length_at..length_at + 4)
        .ok_or_else(too_large)?;
    slot.copy_from_slice(&length.to_be_bytes());
    Ok(())
}
