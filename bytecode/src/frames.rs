//! Reads the `StackMapTable` (JVMS 4.7.4) into whole frames, and writes them as differences.
//!
//! The new local variables are in every frame, behind all others; unused variables in between are `top`. Each frame is
//! compared with the previous one and takes the shortest form.

use crate::class::{ClassFile, ClassFileMethod};
use crate::descriptor::DescriptorParameters;
use crate::edits::CodeEdits;
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::layout::CodeLayout;
use crate::pool::PoolAdditions;
use crate::reader::ClassFileReader;
use crate::verification_type::VerificationType;

/// The types of the local variables and of the operand stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StackMapFrame<'a> {
    /// Longs and doubles are one entry each.
    pub(crate) locals: Vec<VerificationType<'a>>,
    pub(crate) stack: Vec<VerificationType<'a>>,
}

impl<'a> StackMapFrame<'a> {
    /// Returns a method's initial frame, which the table does not contain (JVMS 4.10.1.6).
    pub(crate) fn at_method_entry(
        class: &ClassFile<'a>,
        method: &ClassFileMethod<'a>,
    ) -> Result<Self, BytecodeError> {
        let mut locals = Vec::new();
        if !method.is_static() {
            let is_uninitialized =
                method.raw_name == b"<init>" && class.name() != "java/lang/Object";
            locals.push(if is_uninitialized {
                VerificationType::UninitializedThis
            } else {
                VerificationType::Object(class.this_class)
            });
        }
        let mut parameters = DescriptorParameters::parse(method.raw_descriptor)?;
        while let Some(parameter) = parameters.next()? {
            locals.push(VerificationType::from_descriptor(parameter));
        }
        Ok(Self {
            locals,
            stack: Vec::new(),
        })
    }
}

/// The position of a frame.
pub(crate) struct FramePosition {
    pub(crate) bci: u32,
    /// Number of leading locals that are equal in the previous frame.
    pub(crate) kept: usize,
}

/// Reads the tag of a frame and its distance.
fn read_frame_head(reader: &mut ClassFileReader<'_>) -> Result<(u8, u16), BytecodeError> {
    let tag = reader.u1()?;
    let delta = match tag {
        0..=63 => u16::from(tag),
        64..=127 => u16::from(tag - 64),
        247..=255 => reader.u2()?,
        _ => return Err(reader.error_here(BytecodeErrorKind::BadFrame(tag))),
    };
    Ok((tag, delta))
}

/// Reads one frame after the other, each as a change of the previous one.
pub(crate) struct FrameReader<'a> {
    reader: ClassFileReader<'a>,
    remaining: u16,
    next_bci: u32,
}

impl<'a> FrameReader<'a> {
    pub(crate) fn new(body: ClassFileReader<'a>) -> Result<Self, BytecodeError> {
        let mut reader = body.with_context("stack map");
        Ok(Self {
            remaining: reader.u2()?,
            reader,
            next_bci: 0,
        })
    }

    /// Changes `frame` into the next one.
    pub(crate) fn next(
        &mut self,
        frame: &mut StackMapFrame<'a>,
    ) -> Result<Option<FramePosition>, BytecodeError> {
        let Some(remaining) = self.remaining.checked_sub(1) else {
            self.reader.expect_end()?;
            return Ok(None);
        };
        self.remaining = remaining;
        let (tag, delta) = read_frame_head(&mut self.reader)?;
        let before = frame.locals.len();
        self.apply_frame(tag, frame)?;
        let bci = self.next_bci + u32::from(delta);
        self.next_bci = bci + 1;
        let kept = if tag == 255 {
            0
        } else {
            before.min(frame.locals.len())
        };
        Ok(Some(FramePosition { bci, kept }))
    }

    /// Returns the bci of the next frame.
    pub(crate) fn next_bci(&self) -> Result<Option<u32>, BytecodeError> {
        let mut reader = self.reader;
        match self.remaining {
            0 => Ok(None),
            _ => Ok(Some(
                self.next_bci + u32::from(read_frame_head(&mut reader)?.1),
            )),
        }
    }

    fn apply_frame(&mut self, tag: u8, frame: &mut StackMapFrame<'a>) -> Result<(), BytecodeError> {
        frame.stack.clear();
        match tag {
            64..=127 | 247 => frame.stack.push(VerificationType::read(&mut self.reader)?),
            248..=250 => {
                let kept = frame.locals.len().checked_sub(usize::from(251 - tag));
                let kept =
                    kept.ok_or_else(|| self.reader.error_here(BytecodeErrorKind::BadFrame(tag)))?;
                frame.locals.truncate(kept);
            }
            252..=254 => self.read_types(u16::from(tag - 251), &mut frame.locals)?,
            255 => {
                frame.locals.clear();
                let count = self.reader.u2()?;
                self.read_types(count, &mut frame.locals)?;
                let count = self.reader.u2()?;
                self.read_types(count, &mut frame.stack)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn read_types(
        &mut self,
        count: u16,
        types: &mut Vec<VerificationType<'a>>,
    ) -> Result<(), BytecodeError> {
        for _ in 0..count {
            types.push(VerificationType::read(&mut self.reader)?);
        }
        Ok(())
    }
}

/// Limits the size of the decoded table: frames with many variables could make a small table huge.
const MAX_TABLE: usize = 1 << 24;

/// Writes one frame after the other.
///
/// The cost of a frame depends on its changes, not on the number of variables: a method may have 65,535 variables, and
/// as many frames.
pub(crate) struct FrameWriter<'x, 'c, 'a, 'p> {
    pub(crate) pool: &'x mut PoolAdditions<'c, 'a, 'p>,
    pub(crate) layout: &'x CodeLayout,
    pub(crate) edits: &'x CodeEdits,
    frames: Vec<u8>,
    count: u16,
    /// The locals of the previous frame, each with the slot behind it; without the new variable.
    previous: Vec<(VerificationType<'a>, usize)>,
    next_offset: u32,
    /// The new variables, which every frame gets.
    local: Option<NewLocals>,
}

/// New local variables of type `long`, one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct NewLocals {
    /// The slot of the first one.
    pub(crate) first: u16,
    pub(crate) count: u16,
}

/// The part of a frame behind the locals of the original code.
#[derive(Clone, Copy)]
struct LocalsTail {
    /// Unused slots below the new variables.
    unused: usize,
    /// The number of new variables.
    variables: usize,
}

impl LocalsTail {
    fn len(self) -> usize {
        self.unused + self.variables
    }
}

impl<'x, 'c, 'a, 'p> FrameWriter<'x, 'c, 'a, 'p> {
    pub(crate) fn new(
        pool: &'x mut PoolAdditions<'c, 'a, 'p>,
        layout: &'x CodeLayout,
        edits: &'x CodeEdits,
        initial: &StackMapFrame<'a>,
        local: Option<NewLocals>,
    ) -> Self {
        let mut new = Self {
            pool,
            layout,
            edits,
            frames: Vec::new(),
            count: 0,
            previous: Vec::new(),
            next_offset: 0,
            local,
        };
        new.set_previous_locals(0, &initial.locals);
        new
    }

    /// Returns the attribute's contents.
    pub(crate) fn finish(self) -> impl Iterator<Item = u8> {
        self.count.to_be_bytes().into_iter().chain(self.frames)
    }

    /// Adds the frame for an offset in the new code. `kept`: number of leading locals equal to the previous frame's.
    pub(crate) fn write_frame(
        &mut self,
        offset: u32,
        frame: &StackMapFrame<'a>,
        kept: usize,
    ) -> Result<(), BytecodeError> {
        let delta = offset.checked_sub(self.next_offset);
        let delta = delta.and_then(|delta| u16::try_from(delta).ok());
        let delta = delta.ok_or_else(|| too_large(offset))?;
        self.encode_frame(delta, frame, kept)?;
        self.next_offset = offset + 1;
        self.count = self.count.checked_add(1).ok_or_else(|| too_large(offset))?;
        if self.frames.len() > MAX_TABLE {
            return Err(too_large(offset));
        }
        Ok(())
    }

    /// Returns the slot behind the first `count` locals of the previous frame.
    fn slot_after(&self, count: usize) -> usize {
        let last = count.checked_sub(1).and_then(|at| self.previous.get(at));
        last.map_or(0, |(_, end)| *end)
    }

    fn set_previous_locals(&mut self, kept: usize, locals: &[VerificationType<'a>]) {
        self.previous.truncate(kept);
        let mut slots = self.slot_after(kept);
        for one in locals.iter().skip(kept) {
            slots += one.slot_count();
            self.previous.push((*one, slots));
        }
    }

    fn count_shared_locals(&self, locals: &[VerificationType<'a>], kept: usize) -> usize {
        let pool = self.pool.pool();
        let previous = self.previous.iter().skip(kept);
        let pairs = previous.zip(locals.iter().skip(kept));
        kept + pairs.take_while(|(a, b)| a.0.is_same(**b, pool)).count()
    }

    /// Returns the part behind locals that use `used` slots.
    fn tail_after(&self, used: usize) -> Result<LocalsTail, BytecodeError> {
        let too_many =
            || BytecodeError::new(BytecodeErrorKind::BadTypeState, used, "stack map locals");
        let unused = match self.local {
            Some(new) => usize::from(new.first)
                .checked_sub(used)
                .ok_or_else(too_many)?,
            None => 0,
        };
        let variables = self.local.map_or(0, |new| usize::from(new.count));
        Ok(LocalsTail { unused, variables })
    }

    fn encode_frame(
        &mut self,
        delta: u16,
        frame: &StackMapFrame<'a>,
        kept: usize,
    ) -> Result<(), BytecodeError> {
        let StackMapFrame { locals, stack } = frame;
        let shared = self.count_shared_locals(locals, kept);
        let is_top = |one: &VerificationType<'_>| *one == VerificationType::Top;
        let dropped = self.previous.len() - shared;
        let unused = self
            .previous
            .iter()
            .skip(shared)
            .all(|(one, _)| is_top(one));
        let is_first = self.count == 0;
        self.set_previous_locals(shared, locals);
        let tail = self.tail_after(self.slot_after(locals.len()))?;
        let added = locals.len() - shared;
        // Behind the frame's own locals, the previous frame also has the new variables, unless it is the initial frame.
        let has_new = tail.variables > 0;
        let same = match has_new {
            true => !is_first && unused && locals.iter().skip(shared).all(is_top),
            false => dropped == 0 && added == 0,
        };
        let appended = match has_new && !is_first || dropped > 0 {
            true => 0,
            false => added + tail.len(),
        };
        match stack.as_slice() {
            [] if same => self.put_head(delta, 0, 251),
            [one] if same => {
                self.put_head(delta, 64, 247);
                self.put_type(*one)?;
            }
            [] if (1..=3).contains(&dropped) && added == 0 && !has_new => {
                self.put_tagged(251 - dropped as u8, delta);
            }
            [] if (1..=3).contains(&appended) => {
                self.put_tagged(251 + appended as u8, delta);
                self.put_locals(locals, shared, tail)?;
            }
            _ => {
                self.put_tagged(255, delta);
                self.put_u2(locals.len() + tail.len())?;
                self.put_locals(locals, 0, tail)?;
                self.put_u2(stack.len())?;
                for one in stack {
                    self.put_type(*one)?;
                }
            }
        }
        Ok(())
    }

    /// Writes tag and distance; small distances fit into the tag.
    fn put_head(&mut self, delta: u16, short_tag: u8, long_tag: u8) {
        match delta {
            0..=63 => self.frames.push(short_tag + delta as u8),
            _ => self.put_tagged(long_tag, delta),
        }
    }

    fn put_tagged(&mut self, tag: u8, delta: u16) {
        self.frames.push(tag);
        self.frames.extend(delta.to_be_bytes());
    }

    fn put_u2(&mut self, value: usize) -> Result<(), BytecodeError> {
        let value = u16::try_from(value).map_err(|_| too_large(self.next_offset))?;
        self.frames.extend(value.to_be_bytes());
        Ok(())
    }

    fn put_locals(
        &mut self,
        locals: &[VerificationType<'a>],
        from: usize,
        tail: LocalsTail,
    ) -> Result<(), BytecodeError> {
        for one in locals.iter().skip(from) {
            self.put_type(*one)?;
        }
        let unused = self.frames.len() + tail.unused;
        self.frames.resize(unused, VerificationType::Top.tag());
        (0..tail.variables).try_for_each(|_| self.put_type(VerificationType::Long))
    }

    fn put_type(&mut self, one: VerificationType<'a>) -> Result<(), BytecodeError> {
        self.frames.push(one.tag());
        let operand = match one {
            VerificationType::Object(index) => index,
            VerificationType::Named { array_of: 0, name } => self.pool.intern_class(name)?,
            VerificationType::Named { array_of, name } => {
                self.pool.intern_class(&array_name(array_of, name))?
            }
            VerificationType::Uninitialized(bci) => {
                let offset = self.layout.instruction_offset(bci, self.edits)?;
                u16::try_from(offset).map_err(|_| too_large(offset))?
            }
            _ => return Ok(()),
        };
        self.frames.extend(operand.to_be_bytes());
        Ok(())
    }
}

/// Returns an array's name: `[Lp/C;` for `p/C`, `[[I` for `[I`.
fn array_name(array_of: u8, name: &[u8]) -> Vec<u8> {
    let mut array = vec![b'['; usize::from(array_of)];
    if name.first() == Some(&b'[') {
        array.extend(name);
    } else {
        array.push(b'L');
        array.extend(name);
        array.push(b';');
    }
    array
}

#[cold]
fn too_large(offset: u32) -> BytecodeError {
    BytecodeError::new(
        BytecodeErrorKind::MethodTooLarge,
        offset as usize,
        "stack map",
    )
}

#[cfg(test)]
mod frames_tests;
