//! Positions of all code of a method.
//!
//! ```text
//! 0 ┌ entry
//!   ├ before₀      ◄ start₀: target of jumps, ranges, frames and lines
//!   │ instruction₀ ◄ target of `Uninitialized` types and type annotations
//!   │ after₀
//!   ├ before₁      ◄ start₁
//!   │ …
//!   ├ unwind       ◄ start of the end: the end of the original code
//!   └
//! ```
//!
//! A 16-bit branch that no longer reaches its target becomes wide: `goto` → `goto_w`, `if x` →
//! `if not x, over; goto_w`. That moves other code, so it is repeated until nothing changes. It ends because branches
//! never become short again.

use crate::code::CodeAttribute;
use crate::edits::{CodeEdits, EditPlanner, InstructionEdit};
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::opcode::{self, switch_padding};
use crate::reader::ClassFileReader;

const NONE: u32 = u32::MAX;

/// In an index: the bci lies inside the instruction.
const INSIDE: u32 = 1 << 31;

/// After this many rounds of widening, all branches become wide: in adversarial code each round could find only one
/// more.
const MAX_ROUNDS: usize = 16;

/// `code_length` is below 65,536 (JVMS 4.7.3).
const MAX_CODE: usize = 0xffff;

/// Which branches become wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchWidth {
    AsNeeded,
    AllWide,
}

/// The instructions of a method and their new positions.
#[derive(Debug, Default)]
pub(crate) struct CodeLayout {
    /// Index into `places` by bci, with [`INSIDE`] behind the start of an instruction.
    index: Vec<u32>,
    /// One per instruction, and one for the end.
    places: Vec<InstructionPlace>,
    /// Offset of the code in the class file, for errors.
    offset: usize,
}

#[derive(Debug, Clone, Copy)]
struct InstructionPlace {
    bci: u32,
    /// Length of the original instruction.
    len: u32,
    start: u32,
    edit: u32,
    opcode: u8,
    wide: bool,
}

/// An instruction with its operands.
#[derive(Clone, Copy)]
pub(crate) struct PlacedInstruction<'a> {
    place: InstructionPlace,
    operands: ClassFileReader<'a>,
}

impl CodeLayout {
    /// Decodes the code and writes the edits of all instructions.
    pub(crate) fn decode_code(
        &mut self,
        code: &CodeAttribute<'_>,
        mut planner: EditPlanner<'_, '_, '_, '_>,
    ) -> Result<(), BytecodeError> {
        self.places.clear();
        self.index.clear();
        self.offset = code.offset();
        if code.bytes.is_empty() || code.bytes.len() > MAX_CODE {
            return Err(self.too_large());
        }
        // Reserved at once: most classes are small, so allocations dominate the cost of loading them.
        self.index.reserve(code.bytes.len() + 1);
        self.places.reserve(code.bytes.len() / 2 + 2);
        let mut instructions = code.instructions();
        while let Some((instruction, operands)) = instructions.next()? {
            let (bci, opcode) = (instruction.bci, instruction.opcode);
            let edit = planner.plan_instruction(bci, opcode, operands.remaining_bytes())?;
            self.add_place(InstructionPlace {
                bci,
                len: 1 + operands.remaining_bytes().len() as u32,
                start: 0,
                edit: edit.unwrap_or(NONE),
                opcode,
                wide: false,
            });
        }
        self.add_place(InstructionPlace::end_marker(code.bytes.len()));
        planner.finish()
    }

    fn add_place(&mut self, place: InstructionPlace) {
        let index = self.places.len() as u32;
        self.index.push(index);
        let behind = place.bci as usize + place.len as usize;
        if behind > self.index.len() {
            self.index.resize(behind, index | INSIDE);
        }
        self.places.push(place);
    }

    /// Assigns a position to every instruction.
    pub(crate) fn arrange_code(
        &mut self,
        code: &CodeAttribute<'_>,
        edits: &CodeEdits,
        branches: BranchWidth,
    ) -> Result<(), BytecodeError> {
        if branches == BranchWidth::AllWide {
            self.widen_all();
        }
        for round in 0.. {
            let len = self.place_all(edits);
            // Within 32 KiB, no branch needs more than 16 bits.
            if len <= i16::MAX as usize || !self.widen_branches(code, edits)? {
                let total = len + edits.unwind_code().len();
                return if total <= MAX_CODE {
                    Ok(())
                } else {
                    Err(self.too_large())
                };
            }
            if round == MAX_ROUNDS {
                self.widen_all();
            }
        }
        Ok(())
    }

    fn widen_all(&mut self) {
        for place in &mut self.places {
            place.wide = opcode::is_short_branch(place.opcode);
        }
    }

    fn place_all(&mut self, edits: &CodeEdits) -> usize {
        let mut position = edits.entry_code().len();
        for place in &mut self.places {
            place.start = position as u32;
            position += place.new_len(position, edits.get(place.edit));
        }
        position
    }

    /// Widens the branches that do not reach their targets; returns whether there were any.
    fn widen_branches(
        &mut self,
        code: &CodeAttribute<'_>,
        edits: &CodeEdits,
    ) -> Result<bool, BytecodeError> {
        let mut far = Vec::new();
        for (at, placed) in self.placed_instructions(code).enumerate() {
            let mut placed = placed?;
            if opcode::is_short_branch(placed.opcode()) && !placed.place.wide {
                let offset = i32::from(placed.operands.i2()?);
                let target = self.branch_target(&placed, offset)?;
                let from = i64::from(placed.instruction_start(edits));
                if i16::try_from(i64::from(target) - from).is_err() {
                    far.push(at);
                }
            }
        }
        for &at in &far {
            if let Some(place) = self.places.get_mut(at) {
                place.wide = true;
            }
        }
        Ok(!far.is_empty())
    }

    /// Returns all instructions in order.
    pub(crate) fn placed_instructions<'a>(
        &self,
        code: &CodeAttribute<'a>,
    ) -> impl Iterator<Item = Result<PlacedInstruction<'a>, BytecodeError>> {
        let mut instructions = code.instructions();
        self.places.iter().map_while(move |&place| {
            let next = instructions.next().transpose()?;
            Some(next.map(|(_, operands)| PlacedInstruction { place, operands }))
        })
    }

    /// Returns the bcis behind conditional branches that became wide: a `goto_w` ends there, so the verifier requires a
    /// frame (JVMS 4.10.1.6).
    pub(crate) fn bcis_after_wide_branches(&self) -> Vec<u32> {
        let pairs = self.places.iter().zip(self.places.iter().skip(1));
        pairs
            .filter(|(place, _)| place.wide && opcode::is_conditional(place.opcode))
            .map(|(_, next)| next.bci)
            .collect()
    }

    fn find_place(&self, bci: u32) -> Result<(usize, InstructionPlace), BytecodeError> {
        let at = self.index.get(bci as usize).copied().unwrap_or(NONE) as usize;
        match self.places.get(at) {
            Some(&place) => Ok((at, place)),
            None => Err(self.not_an_instruction(bci)),
        }
    }

    /// Returns the target of jumps to `bci`: the position before the code inserted in front of the instruction.
    pub(crate) fn start_offset(&self, bci: u32) -> Result<u32, BytecodeError> {
        self.find_place(bci).map(|(_, place)| place.start)
    }

    /// Returns the target of jumps to a `bci` that may be the code's end, which is a position without an instruction.
    pub(crate) fn target_offset(&self, bci: u32) -> Result<u32, BytecodeError> {
        if self.places.last().is_some_and(|end| bci < end.bci) {
            self.start_offset(bci)
        } else {
            Err(self.not_an_instruction(bci))
        }
    }

    /// Returns the position of the instruction itself.
    pub(crate) fn instruction_offset(
        &self,
        bci: u32,
        edits: &CodeEdits,
    ) -> Result<u32, BytecodeError> {
        self.find_place(bci)
            .map(|(_, place)| place.instruction_start(edits))
    }

    /// Returns the end of the original code.
    pub(crate) fn end_offset(&self) -> u32 {
        self.places.last().map_or(0, |place| place.start)
    }

    /// Returns the new start of a line or variable that starts at `bci` in the original code.
    ///
    /// Debug information includes the entry code. Different positions stay different. That includes positions inside an
    /// instruction, which the JVM accepts, and behind the code, which it refuses.
    pub(crate) fn debug_offset(&self, bci: u32, edits: &CodeEdits) -> Result<u32, BytecodeError> {
        if bci == 0 {
            return Ok(0);
        }
        let end = self.places.last().map_or(0, |end| end.bci);
        if let Some(behind) = bci.checked_sub(end) {
            return Ok(self.end_offset() + edits.unwind_code().len() as u32 + behind);
        }
        let at = self.index.get(bci as usize).copied().unwrap_or(NONE);
        let place = self.places.get((at & !INSIDE) as usize);
        let place = place.ok_or_else(|| self.not_an_instruction(bci))?;
        if at & INSIDE == 0 {
            return Ok(place.start);
        }
        let inside = bci - place.bci;
        match edits.get(place.edit) {
            Some(edit) if edit.replaces && inside as usize >= edit.replacement_len() => {
                Err(self.not_an_instruction(bci))
            }
            // The padding of a switch may be shorter now.
            _ if opcode::is_switch(place.opcode) && inside < 4 => {
                Ok(place.instruction_start(edits) + inside.min(1))
            }
            _ if opcode::is_switch(place.opcode) => {
                let padding = |at: u32| switch_padding(at as usize) as u32;
                let old = padding(place.bci);
                let new = padding(place.instruction_start(edits));
                Ok(place.instruction_start(edits) + inside - old + new)
            }
            _ => Ok(place.instruction_start(edits) + inside),
        }
    }

    /// Returns the new end of a range of debug information that ended before `bci`, for example at the end of the code.
    pub(crate) fn debug_end_offset(
        &self,
        bci: u32,
        edits: &CodeEdits,
    ) -> Result<u32, BytecodeError> {
        match self.places.last() {
            Some(end) if end.bci == bci => Ok(end.start),
            _ => self.debug_offset(bci, edits),
        }
    }

    fn branch_target(
        &self,
        from: &PlacedInstruction<'_>,
        offset: i32,
    ) -> Result<u32, BytecodeError> {
        let target = i64::from(from.place.bci) + i64::from(offset);
        self.target_offset(u32::try_from(target).unwrap_or(NONE))
    }

    #[cold]
    fn not_an_instruction(&self, bci: u32) -> BytecodeError {
        BytecodeError::new(
            BytecodeErrorKind::NotAnInstruction(bci),
            self.offset,
            "code",
        )
    }

    #[cold]
    fn too_large(&self) -> BytecodeError {
        BytecodeError::new(BytecodeErrorKind::MethodTooLarge, self.offset, "code")
    }
}

impl InstructionPlace {
    fn end_marker(bci: usize) -> Self {
        Self {
            bci: bci as u32,
            len: 0,
            start: 0,
            edit: NONE,
            opcode: 0,
            wide: false,
        }
    }

    /// Returns the length of the instruction and of all code inserted around it.
    fn new_len(&self, start: usize, edit: Option<&InstructionEdit>) -> usize {
        let Some(edit) = edit else {
            return self.own_len(start);
        };
        let own = if edit.replaces {
            edit.replacement_len()
        } else {
            self.own_len(start + edit.before_len())
        };
        edit.before_len() + own + edit.after_len()
    }

    fn own_len(&self, position: usize) -> usize {
        let original = self.len as usize;
        match self.opcode {
            op if opcode::is_switch(op) => {
                original - switch_padding(self.bci as usize) + switch_padding(position)
            }
            op if self.wide && opcode::is_conditional(op) => 3 + 5,
            _ if self.wide => 5,
            _ => original,
        }
    }

    fn instruction_start(&self, edits: &CodeEdits) -> u32 {
        let before = edits.get(self.edit).map_or(0, InstructionEdit::before_len);
        self.start + before as u32
    }
}

impl PlacedInstruction<'_> {
    fn opcode(&self) -> u8 {
        self.place.opcode
    }

    fn instruction_start(&self, edits: &CodeEdits) -> u32 {
        self.place.instruction_start(edits)
    }
}

/// Writes the code in its new layout.
pub(crate) fn write_code(
    out: &mut Vec<u8>,
    layout: &CodeLayout,
    code: &CodeAttribute<'_>,
    edits: &CodeEdits,
) -> Result<(), BytecodeError> {
    out.extend(edits.entry_code());
    for placed in layout.placed_instructions(code) {
        let placed = placed?;
        match edits.get(placed.place.edit) {
            None => write_instruction(out, layout, placed, placed.place.start)?,
            Some(edit) => {
                out.extend(edits.code_before(edit));
                if edit.replaces {
                    out.extend(edits.replacement_code(edit));
                } else {
                    write_instruction(out, layout, placed, placed.instruction_start(edits))?;
                }
                out.extend(edits.code_after(edit));
            }
        }
    }
    out.extend(edits.unwind_code());
    Ok(())
}

fn write_instruction(
    out: &mut Vec<u8>,
    layout: &CodeLayout,
    mut placed: PlacedInstruction<'_>,
    position: u32,
) -> Result<(), BytecodeError> {
    let op = placed.opcode();
    if opcode::is_short_branch(op) {
        let offset = i32::from(placed.operands.i2()?);
        let target = layout.branch_target(&placed, offset)?;
        write_branch(out, layout, placed.place, branch_distance(position, target))
    } else if opcode::is_wide_branch(op) {
        let offset = placed.operands.i4()?;
        let target = layout.branch_target(&placed, offset)?;
        write_wide(out, op, branch_distance(position, target));
        Ok(())
    } else if opcode::is_switch(op) {
        write_switch(out, layout, placed, position)
    } else {
        out.push(op);
        out.extend(placed.operands.remaining_bytes());
        Ok(())
    }
}

/// Both offsets are below 65,536 in a valid layout.
fn branch_distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

fn write_branch(
    out: &mut Vec<u8>,
    layout: &CodeLayout,
    place: InstructionPlace,
    offset: i32,
) -> Result<(), BytecodeError> {
    let op = place.opcode;
    if !place.wide {
        let offset = i16::try_from(offset).map_err(|_| layout.too_large())?;
        out.push(op);
        out.extend(offset.to_be_bytes());
    } else if opcode::is_conditional(op) {
        out.extend([opcode::invert_condition(op), 0, 3 + 5]);
        write_wide(out, opcode::GOTO_W, offset - 3);
    } else {
        write_wide(out, op - opcode::GOTO + opcode::GOTO_W, offset);
    }
    Ok(())
}

fn write_wide(out: &mut Vec<u8>, op: u8, offset: i32) {
    out.push(op);
    out.extend(offset.to_be_bytes());
}

/// `tableswitch` and `lookupswitch` (JVMS 6.5): default, two words or a count, then targets or
/// pairs of key and target.
fn write_switch(
    out: &mut Vec<u8>,
    layout: &CodeLayout,
    mut placed: PlacedInstruction<'_>,
    position: u32,
) -> Result<(), BytecodeError> {
    placed
        .operands
        .take_bytes(switch_padding(placed.place.bci as usize))?;
    out.push(placed.opcode());
    out.extend([0; 3].iter().take(switch_padding(position as usize)));
    let write_target = |out: &mut Vec<u8>, operands: &mut ClassFileReader<'_>| {
        let target = layout.branch_target(&placed, operands.i4()?)?;
        out.extend(branch_distance(position, target).to_be_bytes());
        Ok(())
    };
    let mut operands = placed.operands;
    write_target(out, &mut operands)?;
    let has_keys = placed.opcode() == opcode::LOOKUPSWITCH;
    out.extend(operands.take_bytes(if has_keys { 4 } else { 8 })?);
    while !operands.is_empty() {
        if has_keys {
            out.extend(operands.take_bytes(4)?);
        }
        write_target(out, &mut operands)?;
    }
    Ok(())
}
