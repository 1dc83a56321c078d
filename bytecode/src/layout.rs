//! Where everything goes.
//!
//! ```text
//! 0 ┌ entry
//!   ├ before₀      ◄ start₀: jumps, ranges, frames and lines go here
//!   │ instruction₀ ◄ what `Uninitialized` types and type annotations name
//!   │ after₀
//!   ├ before₁      ◄ start₁
//!   │ …
//!   ├ unwind       ◄ start of the end: where the original code ends
//!   └
//! ```
//!
//! A 16-bit branch that cannot reach any more becomes wide: `goto` → `goto_w`, `if x` → `if not
//! x, over; goto_w`. That moves other code, so it is repeated until nothing changes; branches
//! never become short again, so it ends.

use crate::code::Code;
use crate::edits::{Edit, Edits, Planner};
use crate::error::{Error, ErrorKind};
use crate::opcode::{self, switch_padding};
use crate::reader::Reader;

const NONE: u32 = u32::MAX;

/// In an index: the bci lies inside the instruction.
const INSIDE: u32 = 1 << 31;

/// After so many rounds of widening all branches become wide: in code made for it each round could find
/// but one more.
const MAX_ROUNDS: usize = 16;

/// `code_length` is below 65,536 (JVMS 4.7.3).
const MAX_CODE: usize = 0xffff;

/// Which branches become wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Branches {
    AsNeeded,
    AllWide,
}

/// The instructions of a method and their new places.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Index into `places` by bci, with [`INSIDE`] behind the start of an instruction.
    index: Vec<u32>,
    /// One per instruction, then one for the end.
    places: Vec<Position>,
    /// Offset of the code in the class file, for errors.
    offset: usize,
}

#[derive(Debug, Clone, Copy)]
struct Position {
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
pub(crate) struct Placed<'a> {
    place: Position,
    operands: Reader<'a>,
}

impl Layout {
    /// Decodes the code and writes the edits of all instructions.
    pub(crate) fn decode(
        &mut self,
        code: &Code<'_>,
        mut planner: Planner<'_, '_, '_, '_>,
    ) -> Result<(), Error> {
        self.places.clear();
        self.index.clear();
        self.offset = code.offset();
        if code.bytes.is_empty() || code.bytes.len() > MAX_CODE {
            return Err(self.too_large());
        }
        // At once: most classes are small, and so are loaded at the cost of their allocations.
        self.index.reserve(code.bytes.len() + 1);
        self.places.reserve(code.bytes.len() / 2 + 2);
        let mut instructions = code.instructions();
        while let Some((instruction, operands)) = instructions.next()? {
            let (bci, opcode) = (instruction.bci, instruction.opcode);
            let edit = planner.instruction(bci, opcode, operands.rest())?;
            self.add(Position {
                bci,
                len: 1 + operands.rest().len() as u32,
                start: 0,
                edit: edit.unwrap_or(NONE),
                opcode,
                wide: false,
            });
        }
        self.add(Position::end(code.bytes.len()));
        planner.finish()
    }

    fn add(&mut self, place: Position) {
        let index = self.places.len() as u32;
        self.index.push(index);
        let behind = place.bci as usize + place.len as usize;
        if behind > self.index.len() {
            self.index.resize(behind, index | INSIDE);
        }
        self.places.push(place);
    }

    /// Gives every instruction its place.
    pub(crate) fn arrange(
        &mut self,
        code: &Code<'_>,
        edits: &Edits,
        branches: Branches,
    ) -> Result<(), Error> {
        if branches == Branches::AllWide {
            self.widen_all();
        }
        for round in 0.. {
            let len = self.place_all(edits);
            // No branch in 32 KiB needs more than 16 bits.
            if len <= i16::MAX as usize || !self.widen(code, edits)? {
                let total = len + edits.unwind().len();
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

    fn place_all(&mut self, edits: &Edits) -> usize {
        let mut position = edits.entry().len();
        for place in &mut self.places {
            place.start = position as u32;
            position += place.new_len(position, edits.get(place.edit));
        }
        position
    }

    /// Widens the branches that do not reach; tells whether there were any.
    fn widen(&mut self, code: &Code<'_>, edits: &Edits) -> Result<bool, Error> {
        let mut far = Vec::new();
        for (at, placed) in self.placed(code).enumerate() {
            let mut placed = placed?;
            if opcode::is_short_branch(placed.opcode()) && !placed.place.wide {
                let offset = i32::from(placed.operands.i2()?);
                let target = self.branch_target(&placed, offset)?;
                let from = i64::from(placed.position(edits));
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

    /// All instructions in order.
    pub(crate) fn placed<'a>(
        &self,
        code: &Code<'a>,
    ) -> impl Iterator<Item = Result<Placed<'a>, Error>> {
        let mut instructions = code.instructions();
        self.places.iter().map_while(move |&place| {
            let next = instructions.next().transpose()?;
            Some(next.map(|(_, operands)| Placed { place, operands }))
        })
    }

    /// The bcis behind conditional branches that became wide: a `goto_w` ends there, so the
    /// verifier wants a frame (JVMS 4.10.1.6).
    pub(crate) fn behind_wide_branches(&self) -> Vec<u32> {
        let pairs = self.places.iter().zip(self.places.iter().skip(1));
        pairs
            .filter(|(place, _)| place.wide && opcode::is_conditional(place.opcode))
            .map(|(_, next)| next.bci)
            .collect()
    }

    fn place(&self, bci: u32) -> Result<(usize, Position), Error> {
        let at = self.index.get(bci as usize).copied().unwrap_or(NONE) as usize;
        match self.places.get(at) {
            Some(&place) => Ok((at, place)),
            None => Err(self.not_an_instruction(bci)),
        }
    }

    /// Where jumps to `bci` go: in front of what is inserted before the instruction.
    pub(crate) fn start(&self, bci: u32) -> Result<u32, Error> {
        self.place(bci).map(|(_, place)| place.start)
    }

    /// Where jumps to a `bci` go that may be the code's end: the end is a place, but no instruction.
    pub(crate) fn target(&self, bci: u32) -> Result<u32, Error> {
        if self.places.last().is_some_and(|end| bci < end.bci) {
            self.start(bci)
        } else {
            Err(self.not_an_instruction(bci))
        }
    }

    /// Where the instruction itself is.
    pub(crate) fn instruction(&self, bci: u32, edits: &Edits) -> Result<u32, Error> {
        self.place(bci).map(|(_, place)| place.position(edits))
    }

    /// Where the original code ends.
    pub(crate) fn end(&self) -> u32 {
        self.places.last().map_or(0, |place| place.start)
    }

    /// Where the line or variable starts that does so at `bci` in the original code. Debug
    /// information takes in the entry code. Different places stay different, also inside an
    /// instruction, which the JVM lets pass, and behind the code, which it does not.
    pub(crate) fn debug_place(&self, bci: u32, edits: &Edits) -> Result<u32, Error> {
        if bci == 0 {
            return Ok(0);
        }
        let end = self.places.last().map_or(0, |end| end.bci);
        if let Some(behind) = bci.checked_sub(end) {
            return Ok(self.end() + edits.unwind().len() as u32 + behind);
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
                Ok(place.position(edits) + inside.min(1))
            }
            _ if opcode::is_switch(place.opcode) => {
                let padding = |at: u32| switch_padding(at as usize) as u32;
                let old = padding(place.bci);
                let new = padding(place.position(edits));
                Ok(place.position(edits) + inside - old + new)
            }
            _ => Ok(place.position(edits) + inside),
        }
    }

    /// Where a range of debug information ends that ended before `bci`: at the end of the code, say.
    pub(crate) fn debug_end(&self, bci: u32, edits: &Edits) -> Result<u32, Error> {
        match self.places.last() {
            Some(end) if end.bci == bci => Ok(end.start),
            _ => self.debug_place(bci, edits),
        }
    }

    fn branch_target(&self, from: &Placed<'_>, offset: i32) -> Result<u32, Error> {
        let target = i64::from(from.place.bci) + i64::from(offset);
        self.target(u32::try_from(target).unwrap_or(NONE))
    }

    #[cold]
    fn not_an_instruction(&self, bci: u32) -> Error {
        Error::new(ErrorKind::NotAnInstruction(bci), self.offset, "code")
    }

    #[cold]
    fn too_large(&self) -> Error {
        Error::new(ErrorKind::MethodTooLarge, self.offset, "code")
    }
}

impl Position {
    fn end(bci: usize) -> Self {
        Self {
            bci: bci as u32,
            len: 0,
            start: 0,
            edit: NONE,
            opcode: 0,
            wide: false,
        }
    }

    /// The length of the instruction and of all that is inserted around it.
    fn new_len(&self, start: usize, edit: Option<&Edit>) -> usize {
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

    fn position(&self, edits: &Edits) -> u32 {
        let before = edits.get(self.edit).map_or(0, Edit::before_len);
        self.start + before as u32
    }
}

impl Placed<'_> {
    fn opcode(&self) -> u8 {
        self.place.opcode
    }

    fn position(&self, edits: &Edits) -> u32 {
        self.place.position(edits)
    }
}

/// Writes the code in its new layout.
pub(crate) fn write_code(
    out: &mut Vec<u8>,
    layout: &Layout,
    code: &Code<'_>,
    edits: &Edits,
) -> Result<(), Error> {
    out.extend(edits.entry());
    for placed in layout.placed(code) {
        let placed = placed?;
        match edits.get(placed.place.edit) {
            None => write_instruction(out, layout, placed, placed.place.start)?,
            Some(edit) => {
                out.extend(edits.before(edit));
                if edit.replaces {
                    out.extend(edits.replacement(edit));
                } else {
                    write_instruction(out, layout, placed, placed.position(edits))?;
                }
                out.extend(edits.after(edit));
            }
        }
    }
    out.extend(edits.unwind());
    Ok(())
}

fn write_instruction(
    out: &mut Vec<u8>,
    layout: &Layout,
    mut placed: Placed<'_>,
    position: u32,
) -> Result<(), Error> {
    let op = placed.opcode();
    if opcode::is_short_branch(op) {
        let offset = i32::from(placed.operands.i2()?);
        let target = layout.branch_target(&placed, offset)?;
        write_branch(out, layout, placed.place, distance(position, target))
    } else if opcode::is_wide_branch(op) {
        let offset = placed.operands.i4()?;
        let target = layout.branch_target(&placed, offset)?;
        write_wide(out, op, distance(position, target));
        Ok(())
    } else if opcode::is_switch(op) {
        write_switch(out, layout, placed, position)
    } else {
        out.push(op);
        out.extend(placed.operands.rest());
        Ok(())
    }
}

/// Both are below 65,536 in a layout that was found.
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

fn write_branch(
    out: &mut Vec<u8>,
    layout: &Layout,
    place: Position,
    offset: i32,
) -> Result<(), Error> {
    let op = place.opcode;
    if !place.wide {
        let offset = i16::try_from(offset).map_err(|_| layout.too_large())?;
        out.push(op);
        out.extend(offset.to_be_bytes());
    } else if opcode::is_conditional(op) {
        out.extend([opcode::inverted(op), 0, 3 + 5]);
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
    layout: &Layout,
    mut placed: Placed<'_>,
    position: u32,
) -> Result<(), Error> {
    placed
        .operands
        .take(switch_padding(placed.place.bci as usize))?;
    out.push(placed.opcode());
    out.extend([0; 3].iter().take(switch_padding(position as usize)));
    let write_target = |out: &mut Vec<u8>, operands: &mut Reader<'_>| {
        let target = layout.branch_target(&placed, operands.i4()?)?;
        out.extend(distance(position, target).to_be_bytes());
        Ok(())
    };
    let mut operands = placed.operands;
    write_target(out, &mut operands)?;
    let has_keys = placed.opcode() == opcode::LOOKUPSWITCH;
    out.extend(operands.take(if has_keys { 4 } else { 8 })?);
    while !operands.is_empty() {
        if has_keys {
            out.extend(operands.take(4)?);
        }
        write_target(out, &mut operands)?;
    }
    Ok(())
}
