//! What hangs on the code (JVMS 4.7.3): the exception table and the attributes that hold offsets.

use crate::annotations;
use crate::class::{ClassFile, Method};
use crate::code::Code;
use crate::edits::Edits;
use crate::error::{Error, ErrorKind};
use crate::frames::{FIRST_WITH_FRAMES, Frame, FramePosition, FrameReader, FrameWriter, Type};
use crate::infer;
use crate::layout::Layout;
use crate::plan::MethodPlan;
use crate::pool::Additions;
use crate::reader::Reader;

/// A method whose code has its new layout.
pub(crate) struct Tables<'x, 'c, 'a, 'p> {
    pub(crate) class: &'c ClassFile<'a>,
    pub(crate) method: &'c Method<'a>,
    pub(crate) code: &'c Code<'a>,
    pub(crate) plan: &'x MethodPlan<'p>,
    /// The new variable.
    pub(crate) local: Option<u16>,
    /// By so much `max_locals` has grown.
    pub(crate) more_locals: u16,
    pub(crate) layout: &'x Layout,
    pub(crate) edits: &'x Edits,
    pub(crate) pool: &'x mut Additions<'c, 'a, 'p>,
}

impl<'a> Tables<'_, '_, 'a, '_> {
    /// A range takes in what is inserted after its last instruction: its handler must fit the
    /// types behind that instruction anyway, as HotSpot sees it.
    ///
    /// The handler that catches everything comes last: the original ones go first (JVMS 2.10),
    /// and type annotations name handlers by index.
    pub(crate) fn exceptions(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let unwinds = self.plan.unwind.is_some();
        let count = self.code.handlers.checked_add(u16::from(unwinds));
        out.extend(count.ok_or_else(|| self.too_large())?.to_be_bytes());
        for entry in self.code.exceptions() {
            let entry = entry?;
            self.put_offset(out, self.layout.start(u32::from(entry.start))?)?;
            self.put_offset(out, self.layout.start(u32::from(entry.end))?)?;
            self.put_offset(out, self.layout.target(u32::from(entry.handler))?)?;
            out.extend(entry.catch_type.to_be_bytes());
        }
        if unwinds {
            let (start, end) = (self.layout.start(0)?, self.layout.end());
            for offset in [start, end, end, 0] {
                self.put_offset(out, offset)?;
            }
        }
        Ok(())
    }

    pub(crate) fn attributes(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
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
            with_length(out, name, |out| self.attribute(pool.utf8(name)?, body, out))?;
        }
        if adds_frames {
            let name = self.pool.utf8(b"StackMapTable")?;
            with_length(out, name, |out| self.stack_map(None, out))?;
        }
        Ok(())
    }

    fn attribute(&mut self, name: &[u8], body: Reader<'a>, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        let done = match name {
            b"StackMapTable" if self.class.major() >= FIRST_WITH_FRAMES => {
                self.stack_map(Some(body), out)
            }
            b"LineNumberTable" => self.lines(body, out),
            b"LocalVariableTable" => self.variables(body, true, out),
            b"LocalVariableTypeTable" => self.variables(body, false, out),
            b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                self.type_annotations(body, out)
            }
            _ => {
                out.extend(body.rest());
                return Ok(());
            }
        };
        match done {
            // No VM reads annotations inside code, and frames that cannot be read do no harm in some versions.
            Err(_) if name.ends_with(b"Annotations") => self.as_it_came(body, start, out),
            Err(error) if name == b"StackMapTable" && self.class.has_optional_frames() => {
                match error.kind {
                    ErrorKind::OutOfBounds | ErrorKind::PoolFull => Err(error),
                    _ => self.as_it_came(body, start, out),
                }
            }
            done => done,
        }
    }

    fn as_it_came(&self, body: Reader<'a>, start: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        out.truncate(start);
        out.extend(body.rest());
        Ok(())
    }

    /// `StackMapTable` (JVMS 4.7.4)
    fn stack_map(&mut self, body: Option<Reader<'a>>, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut frame = Frame::initial(self.class, self.method)?;
        let (layout, edits) = (self.layout, self.edits);
        let mut writer = FrameWriter::new(self.pool, layout, edits, &frame, self.local);
        if let Some(body) = body {
            let missing = layout.behind_wide_branches();
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
            let caught = Frame {
                locals: Vec::new(),
                stack: vec![Type::named(b"java/lang/Throwable")],
            };
            writer.write(layout.end(), &caught, 0)?;
        }
        out.extend(writer.finish());
        Ok(())
    }

    /// `LineNumberTable` (JVMS 4.7.12)
    fn lines(&self, body: Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut reader = body.within("line numbers");
        let count = reader.u2()?;
        out.extend(count.to_be_bytes());
        for _ in 0..count {
            let start = u32::from(reader.u2()?);
            self.put_offset(out, self.layout.debug_place(start, self.edits)?)?;
            out.extend(reader.take(2)?);
        }
        reader.expect_end()
    }

    /// `LocalVariableTable` and `LocalVariableTypeTable` (JVMS 4.7.13, 4.7.14). What the VM refuses stays
    /// wrong.
    fn variables(
        &self,
        body: Reader<'_>,
        has_descriptors: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut reader = body.within("local variables");
        let count = reader.u2()?;
        out.extend(count.to_be_bytes());
        for _ in 0..count {
            self.variable_range(&mut reader, out)?;
            out.extend(reader.take(2)?);
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

    fn variable_range(&self, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let (start, length) = (u32::from(reader.u2()?), u32::from(reader.u2()?));
        let new_start = self.layout.debug_place(start, self.edits)?;
        self.put_offset(out, new_start)?;
        if length == 0 {
            return self.put_offset(out, 0);
        }
        let new_end = self.layout.debug_end(start + length, self.edits)?;
        self.put_offset(out, new_end.saturating_sub(new_start))
    }

    /// `Runtime(In)VisibleTypeAnnotations` (JVMS 4.7.20)
    fn type_annotations(&self, body: Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut reader = body.within("type annotations");
        let count = reader.u2()?;
        out.extend(count.to_be_bytes());
        for _ in 0..count {
            self.annotation_target(&mut reader, out)?;
            let mut rest = reader;
            let path = rest.u1()?;
            rest.take(2 * usize::from(path))?;
            annotations::skip(&mut rest)?;
            out.extend(reader.take(rest.offset() - reader.offset())?);
        }
        reader.expect_end()
    }

    /// `target_type` and `target_info` (JVMS 4.7.20.1); only those that appear in code.
    fn annotation_target(&self, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let target = reader.u1()?;
        out.push(target);
        match target {
            0x40 | 0x41 => {
                let count = reader.u2()?;
                out.extend(count.to_be_bytes());
                for _ in 0..count {
                    self.variable_range(reader, out)?;
                    out.extend(reader.take(2)?);
                }
            }
            0x42 => out.extend(reader.take(2)?),
            0x43..=0x46 => self.annotated_instruction(reader, out)?,
            0x47..=0x4b => {
                self.annotated_instruction(reader, out)?;
                out.push(reader.u1()?);
            }
            _ => return Err(reader.error(ErrorKind::BadAnnotation(target))),
        }
        Ok(())
    }

    fn annotated_instruction(
        &self,
        reader: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let bci = u32::from(reader.u2()?);
        // Compilers get these wrong at times, and no JVM reads them: not worth losing the method.
        self.put_offset(out, self.layout.instruction(bci, self.edits).unwrap_or(bci))
    }

    fn put_offset(&self, out: &mut Vec<u8>, offset: u32) -> Result<(), Error> {
        let offset = u16::try_from(offset).map_err(|_| self.too_large())?;
        out.extend(offset.to_be_bytes());
        Ok(())
    }

    #[cold]
    fn too_large(&self) -> Error {
        Error::new(ErrorKind::MethodTooLarge, self.code.offset(), "code tables")
    }
}

/// Inferred frames may hold so many variables in all.
const MAX_INFERRED: usize = 1 << 24;

/// Copies the frames, with new ones where the layout needs them: behind widened branches.
fn copy_frames<'a>(
    (class, code): (&ClassFile<'a>, &Code<'a>),
    mut reader: FrameReader<'a>,
    frame: &mut Frame<'a>,
    mut missing: &[u32],
    writer: &mut FrameWriter<'_, '_, 'a, '_>,
) -> Result<(), Error> {
    let mut known_at = 0;
    loop {
        let next = reader.next_bci()?;
        let is_before = |bci: &u32| next.is_none_or(|next| *bci < next);
        let (between, rest) = missing.split_at(missing.partition_point(is_before));
        missing = rest;
        if !between.is_empty() {
            if between.len().saturating_mul(frame.locals.len()) > MAX_INFERRED {
                return Err(Error::new(
                    ErrorKind::MethodTooLarge,
                    code.offset(),
                    "stack map",
                ));
            }
            let mut known = frame.clone();
            for bci in between {
                infer::advance(class, code, &mut known, known_at, *bci)?;
                known_at = *bci;
                writer.write(writer.layout.start(*bci)?, &known, 0)?;
            }
        }
        let Some(FramePosition { bci, kept }) = reader.next(frame)? else {
            return Ok(());
        };
        check_stack(code, frame)?;
        let kept = if between.is_empty() { kept } else { 0 };
        writer.write(writer.layout.start(bci)?, frame, kept)?;
        known_at = bci;
        // The frame that is missing may be there already.
        missing = missing.strip_prefix(&[bci]).unwrap_or(missing);
    }
}

/// As the VM does when it reads the frame.
fn check_stack(code: &Code<'_>, frame: &Frame<'_>) -> Result<(), Error> {
    let slots: usize = frame.stack.iter().map(|one| one.slots()).sum();
    if slots <= usize::from(code.max_stack) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::OutOfBounds,
        code.offset(),
        "stack map",
    ))
}

/// Writes an attribute: its name, its length, its contents.
pub(crate) fn with_length(
    out: &mut Vec<u8>,
    name: u16,
    contents: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    out.extend(name.to_be_bytes());
    let length_at = out.len();
    out.extend([0; 4]);
    contents(out)?;
    let length = out.len() - length_at - 4;
    let too_large = || Error::new(ErrorKind::MethodTooLarge, length_at, "attribute");
    let length = u32::try_from(length).map_err(|_| too_large())?;
    let slot = out
        .get_mut(length_at..length_at + 4)
        .ok_or_else(too_large)?;
    slot.copy_from_slice(&length.to_be_bytes());
    Ok(())
}
