//! Checks that a method keeps its own limits (JVMS 4.7.3, 4.9): `max_locals` and `max_stack`.
//!
//! Hooks raise both limits. Code that breaks a limit could thereby become valid, and an invalid access to a local could
//! reach the hooks' variable. So the limits are checked before anything is inserted, as the VM's verifiers do. The VM
//! then refuses such a method itself.
//!
//! The stack depth at each instruction is found by following the control flow, each instruction once. From version 50
//! on, the VM also checks unreachable code: the frames give its stack depth.

use crate::class::{ClassFile, ClassFileMethod, FIRST_WITH_FRAMES};
use crate::code::CodeAttribute;
use crate::descriptor::{DescriptorParameters, single_field_type};
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::frames::{FramePosition, FrameReader, StackMapFrame};
use crate::opcode;
use crate::pool::ConstantPool;
use crate::reader::ClassFileReader;
use crate::verification_type::VerificationType;

/// An unknown depth.
const UNKNOWN: u16 = u16::MAX;

/// First major version whose verifier allows any padding before the operands of a switch. Hooks move switches, and the
/// new padding is zeros.
const FIRST_WITH_ANY_PADDING: u16 = 51;

/// Buffers that are reused for each method, and the stack effects of calls, by constant.
#[derive(Debug, Default)]
pub(crate) struct BoundsChecker {
    /// Indexed by bci.
    depths: Vec<u16>,
    /// The bcis at which to continue.
    pending: Vec<u32>,
    /// Stack depths at the starts of subroutines.
    subroutines: Vec<u16>,
    members: Vec<Option<StackEffect>>,
}

/// The slots that an instruction pops and pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StackEffect {
    popped: u16,
    pushed: u16,
}

impl BoundsChecker {
    /// Checks a method and returns the local for hooks: `max_locals`, or an unused one if the method has far more than
    /// it uses.
    ///
    /// The VM's verifier needs time for each slot below it at each frame.
    ///
    /// # Errors
    /// The method breaks one of its limits.
    pub(crate) fn check_method<'a>(
        &mut self,
        class: &ClassFile<'a>,
        method: &ClassFileMethod<'a>,
        code: &CodeAttribute<'a>,
    ) -> Result<u16, BytecodeError> {
        let arguments = argument_slots(method)?;
        if arguments > usize::from(code.max_locals) {
            return Err(out_of_bounds(code.offset()));
        }
        self.members.resize(class.pool.count(), None);
        self.depths.clear();
        self.depths.resize(code.bytes.len(), UNKNOWN);
        self.pending.clear();
        self.subroutines.clear();
        let mut flow = StackDepthFlow {
            bounds: self,
            pool: &class.pool,
            code,
        };
        flow.reach_with_depth(0, 0)?;
        flow.follow_pending()?;
        flow.follow_handlers()?;
        let LocalsUsage { end, unreached } = flow.check_instructions(class.major())?;
        if unreached && class.major() >= FIRST_WITH_FRAMES {
            match flow.follow_unreached_frames(class, method) {
                // Before version 51, the VM ignores unreadable frames.
                Err(error)
                    if error.kind != BytecodeErrorKind::OutOfBounds
                        && class.has_optional_frames() => {}
                done => done?,
            }
        }
        let used = usize::from(end).max(arguments);
        match usize::from(code.max_locals) - used {
            0..MANY_UNUSED => Ok(code.max_locals),
            _ => unused_local(class, method, code, used),
        }
    }
}

const MANY_UNUSED: usize = 64;

/// Returns the first local that neither instructions, which use those below `used`, nor frames use.
fn unused_local<'a>(
    class: &ClassFile<'a>,
    method: &ClassFileMethod<'a>,
    code: &CodeAttribute<'a>,
    mut used: usize,
) -> Result<u16, BytecodeError> {
    if class.major() >= FIRST_WITH_FRAMES {
        let mut frame = StackMapFrame::at_method_entry(class, method)?;
        for attribute in code.attributes() {
            let (name, body) = attribute?;
            if class.pool.utf8(name)? != b"StackMapTable" {
                continue;
            }
            let mut frames = FrameReader::new(body)?;
            // The slot behind each local of the frame.
            let mut ends = Vec::new();
            let mut kept = 0;
            loop {
                ends.truncate(kept);
                for one in frame.locals.get(kept..).unwrap_or_default() {
                    let end = ends.last().copied().unwrap_or(0) + one.slot_count();
                    ends.push(end);
                    used = used.max(end);
                }
                match frames.next(&mut frame) {
                    Ok(Some(place)) => kept = place.kept,
                    _ => break,
                }
            }
        }
    }
    Ok(u16::try_from(used).map_or(code.max_locals, |used| used.min(code.max_locals)))
}

struct LocalsUsage {
    /// The slot behind the last local that an instruction names.
    end: u16,
    /// Whether there are unreachable instructions.
    unreached: bool,
}

fn argument_slots(method: &ClassFileMethod<'_>) -> Result<usize, BytecodeError> {
    let slots = parameter_slots(method.raw_descriptor)?;
    Ok(usize::from(slots) + usize::from(!method.is_static()))
}

/// Returns the slots of the parameters of a method with this descriptor.
pub(crate) fn parameter_slots(descriptor: &[u8]) -> Result<u16, BytecodeError> {
    call_effect(descriptor).map(|effect| effect.popped)
}

/// The control flow through a method.
struct StackDepthFlow<'x, 'a> {
    bounds: &'x mut BoundsChecker,
    pool: &'x ConstantPool<'a>,
    code: &'x CodeAttribute<'a>,
}

impl<'a> StackDepthFlow<'_, 'a> {
    /// Control may reach `bci` with `depth` slots on the stack.
    fn reach_with_depth(&mut self, bci: i64, depth: u16) -> Result<(), BytecodeError> {
        let at = usize::try_from(bci).unwrap_or(usize::MAX);
        let offset = self.code.offset();
        match self.bounds.depths.get_mut(at) {
            Some(known) if *known == UNKNOWN && depth != UNKNOWN => {
                *known = depth;
                self.bounds.pending.push(at as u32);
                Ok(())
            }
            Some(known) if *known == depth => Ok(()),
            _ => Err(out_of_bounds(offset)),
        }
    }

    fn follow_pending(&mut self) -> Result<(), BytecodeError> {
        while let Some(bci) = self.bounds.pending.pop() {
            self.follow_straight_line(bci)?;
        }
        Ok(())
    }

    /// Follows the code from `bci` to an instruction that ends it or was reached before.
    fn follow_straight_line(&mut self, bci: u32) -> Result<(), BytecodeError> {
        let entry_depth = self.bounds.depths.get(bci as usize);
        let mut depth = entry_depth.copied().unwrap_or(0);
        let mut instructions = self.code.instructions_from(bci);
        while let Some((instruction, operands)) = instructions.next()? {
            let (bci, op) = (i64::from(instruction.bci), instruction.opcode);
            let StackEffect { popped, pushed } = self.stack_effect(op, operands)?;
            let below = depth.checked_sub(popped);
            let after = below.and_then(|below| below.checked_add(pushed));
            let fits = after.filter(|after| *after <= self.code.max_stack && *after != UNKNOWN);
            depth = fits.ok_or_else(|| out_of_bounds(operands.offset()))?;
            self.follow_branches(bci, op, operands, depth)?;
            if !may_continue(op, operands) {
                return Ok(());
            }
            let next = bci as usize + 1 + operands.remaining_bytes().len();
            // The subroutine may never return.
            if is_subroutine_call(op) && next == self.code.bytes.len() {
                return Ok(());
            }
            match self.bounds.depths.get_mut(next) {
                Some(entry_depth) if *entry_depth == UNKNOWN => *entry_depth = depth,
                Some(entry_depth) if *entry_depth == depth => return Ok(()),
                // Another depth, or behind the last instruction.
                _ => return Err(out_of_bounds(operands.offset())),
            }
        }
        Err(out_of_bounds(self.code.offset()))
    }

    fn follow_branches(
        &mut self,
        bci: i64,
        op: u8,
        mut operands: ClassFileReader<'a>,
        depth: u16,
    ) -> Result<(), BytecodeError> {
        if opcode::is_short_branch(op) {
            let target = bci + i64::from(operands.i2()?);
            self.follow_branch(op, target, depth)
        } else if opcode::is_wide_branch(op) {
            let target = bci + i64::from(operands.i4()?);
            self.follow_branch(op, target, depth)
        } else if opcode::is_switch(op) {
            for offset in opcode::switch_offsets(bci as usize, op, operands)? {
                self.reach_with_depth(bci + i64::from(offset?), depth)?;
            }
            Ok(())
        } else if op == opcode::RET || op == opcode::WIDE && ends_subroutine(operands) {
            // A subroutine leaves the stack as it was before the return address was pushed.
            let starts = &mut self.bounds.subroutines.iter();
            match starts.any(|start| *start == depth + 1) {
                true => Ok(()),
                false => Err(out_of_bounds(operands.offset())),
            }
        } else {
            Ok(())
        }
    }

    fn follow_branch(&mut self, op: u8, target: i64, depth: u16) -> Result<(), BytecodeError> {
        if !is_subroutine_call(op) {
            return self.reach_with_depth(target, depth);
        }
        let depth = depth + 1;
        if depth > self.code.max_stack {
            return Err(out_of_bounds(self.code.offset()));
        }
        if !self.bounds.subroutines.contains(&depth) {
            self.bounds.subroutines.push(depth);
        }
        self.reach_with_depth(target, depth)
    }

    /// Follows all handlers, which begin with the exception on the stack.
    fn follow_handlers(&mut self) -> Result<(), BytecodeError> {
        for handler in self.code.exception_handlers() {
            let handler = handler?;
            if self.code.max_stack == 0 {
                return Err(out_of_bounds(self.code.offset()));
            }
            self.reach_with_depth(i64::from(handler.handler), 1)?;
        }
        self.follow_pending()
    }

    /// Checks the locals of all instructions and the padding of switches, also in unreachable code.
    fn check_instructions(&self, major: u16) -> Result<LocalsUsage, BytecodeError> {
        let mut locals = LocalsUsage {
            end: 0,
            unreached: false,
        };
        let mut instructions = self.code.instructions();
        while let Some((instruction, operands)) = instructions.next()? {
            if major < FIRST_WITH_ANY_PADDING && opcode::is_switch(instruction.opcode) {
                check_padding(instruction.bci, operands)?;
            }
            let end = locals_end(instruction.opcode, operands)?;
            if end > u32::from(self.code.max_locals) {
                return Err(out_of_bounds(operands.offset()));
            }
            let depth = self.bounds.depths.get(instruction.bci as usize);
            locals.unreached |= depth == Some(&UNKNOWN);
            locals.end = locals.end.max(end as u16);
        }
        Ok(locals)
    }

    /// Continues at unreached instructions for which a frame gives the stack depth.
    fn follow_unreached_frames(
        &mut self,
        class: &ClassFile<'a>,
        method: &ClassFileMethod<'a>,
    ) -> Result<(), BytecodeError> {
        let mut frame = StackMapFrame::at_method_entry(class, method)?;
        for attribute in self.code.attributes() {
            let (name, body) = attribute?;
            if self.pool.utf8(name)? != b"StackMapTable" {
                continue;
            }
            let mut frames = FrameReader::new(body)?;
            while let Some(FramePosition { bci, .. }) = frames.next(&mut frame)? {
                let depth: usize = frame
                    .stack
                    .iter()
                    .map(|one: &VerificationType<'_>| one.slot_count())
                    .sum();
                let entry_depth = self.bounds.depths.get(bci as usize);
                if entry_depth == Some(&UNKNOWN) {
                    self.reach_with_depth(i64::from(bci), depth.try_into().unwrap_or(UNKNOWN - 1))?;
                }
            }
        }
        self.follow_pending()
    }

    fn stack_effect(
        &mut self,
        op: u8,
        mut operands: ClassFileReader<'a>,
    ) -> Result<StackEffect, BytecodeError> {
        let at = operands.offset();
        match op {
            opcode::GETSTATIC..=opcode::INVOKEDYNAMIC => {
                let index = operands.u2()?;
                let member = self.bounds.members.get(usize::from(index)).copied();
                if let Some(Some(effect)) = member {
                    return Ok(with_receiver(effect, op));
                }
                let effect = member_effect(self.pool, index, op)?;
                if let Some(slot) = self.bounds.members.get_mut(usize::from(index)) {
                    *slot = Some(effect);
                }
                Ok(with_receiver(effect, op))
            }
            opcode::MULTIANEWARRAY => {
                operands.u2()?;
                let popped = u16::from(operands.u1()?);
                Ok(StackEffect { popped, pushed: 1 })
            }
            opcode::WIDE => fixed_stack_effect(operands.u1()?).ok_or_else(|| out_of_bounds(at)),
            _ => fixed_stack_effect(op).ok_or_else(|| out_of_bounds(at)),
        }
    }
}

fn is_subroutine_call(op: u8) -> bool {
    matches!(op, opcode::JSR | opcode::JSR_W)
}

/// Whether control may continue behind the instruction; behind `jsr`, after the subroutine.
fn may_continue(op: u8, operands: ClassFileReader<'_>) -> bool {
    match op {
        opcode::WIDE => !ends_subroutine(operands),
        _ => is_subroutine_call(op) || opcode::is_conditional(op) || opcode::falls_through(op),
    }
}

fn ends_subroutine(mut operands: ClassFileReader<'_>) -> bool {
    operands.u1() == Ok(opcode::RET)
}

/// Returns the effect of a field or method constant: a field is pushed; a call pops its arguments.
fn member_effect(
    pool: &ConstantPool<'_>,
    index: u16,
    op: u8,
) -> Result<StackEffect, BytecodeError> {
    let descriptor = pool.member_ref(index)?.descriptor;
    if op >= opcode::INVOKEVIRTUAL {
        return call_effect(descriptor);
    }
    let pushed = slot_count(single_field_type(descriptor)?);
    Ok(StackEffect { popped: 0, pushed })
}

/// Adds the receiver of the field or call; for stores, swaps the direction.
fn with_receiver(effect: StackEffect, op: u8) -> StackEffect {
    let StackEffect { popped, pushed } = effect;
    let (popped, pushed) = match op {
        opcode::GETSTATIC | opcode::INVOKESTATIC | opcode::INVOKEDYNAMIC => (popped, pushed),
        opcode::PUTSTATIC => (pushed, 0),
        opcode::PUTFIELD => (pushed + 1, 0),
        _ => (popped.saturating_add(1), pushed),
    };
    StackEffect { popped, pushed }
}

fn call_effect(descriptor: &[u8]) -> Result<StackEffect, BytecodeError> {
    let mut parameters = DescriptorParameters::parse(descriptor)?;
    let mut popped = 0_u16;
    while let Some(parameter) = parameters.next()? {
        popped = popped.saturating_add(slot_count(parameter));
    }
    let pushed = slot_count(parameters.return_type()?);
    Ok(StackEffect { popped, pushed })
}

fn slot_count(descriptor: &[u8]) -> u16 {
    match descriptor {
        b"V" => 0,
        b"J" | b"D" => 2,
        _ => 1,
    }
}

/// Returns the slot behind the last local that the instruction names.
fn locals_end(op: u8, mut operands: ClassFileReader<'_>) -> Result<u32, BytecodeError> {
    let (op, local) = match op {
        21..=25 | 54..=58 | opcode::RET | opcode::IINC => (op, u32::from(operands.u1()?)),
        26..=45 => (21 + (op - 26) / 4, u32::from((op - 26) % 4)),
        59..=78 => (54 + (op - 59) / 4, u32::from((op - 59) % 4)),
        opcode::WIDE => (operands.u1()?, u32::from(operands.u2()?)),
        _ => return Ok(0),
    };
    // long and double: `lload`, `dload`, `lstore`, `dstore`
    let slots = if matches!(op, 22 | 24 | 55 | 57) {
        2
    } else {
        1
    };
    Ok(local + slots)
}

/// Returns the slots popped and pushed by instructions with a fixed effect.
fn fixed_stack_effect(op: u8) -> Option<StackEffect> {
    let (popped, pushed) = match op {
        // nop, iinc, goto, jsr (its target finds one slot more), ret, return
        0 | opcode::IINC | 167..=169 | 177 | 200 | 201 => (0, 0),
        1..=8 | 11..=13 | 16..=19 | 21 | 23 | 25..=29 | 34..=37 | 42..=45 | 187 => (0, 1),
        9 | 10 | 14 | 15 | 20 | 22 | 24 | 30..=33 | 38..=41 => (0, 2),
        46 | 48 | 50..=53 => (2, 1),
        47 | 49 => (2, 2),
        54 | 56 | 58..=62 | 67..=70 | 75..=78 => (1, 0),
        55 | 57 | 63..=66 | 71..=74 => (2, 0),
        79 | 81 | 83..=86 => (3, 0),
        80 | 82 => (4, 0),
        87 => (1, 0),
        88 => (2, 0),
        89 => (1, 2),
        90 => (2, 3),
        91 => (3, 4),
        92 => (2, 4),
        93 => (3, 5),
        94 => (4, 6),
        95 => (2, 2),
        96 | 98 | 100 | 102 | 104 | 106 | 108 | 110 | 112 | 114 => (2, 1),
        97 | 99 | 101 | 103 | 105 | 107 | 109 | 111 | 113 | 115 => (4, 2),
        116 | 118 => (1, 1),
        117 | 119 => (2, 2),
        120 | 122 | 124 | 126 | 128 | 130 => (2, 1),
        121 | 123 | 125 => (3, 2),
        127 | 129 | 131 => (4, 2),
        133 | 135 | 140 | 141 => (1, 2),
        134 | 139 | 145..=147 => (1, 1),
        136 | 137 | 142 | 144 => (2, 1),
        138 | 143 => (2, 2),
        148 | 151 | 152 => (4, 1),
        149 | 150 => (2, 1),
        153..=158 | 170..=172 | 174 | 176 | 191 | 194 | 195 | 198 | 199 => (1, 0),
        159..=166 | 173 | 175 => (2, 0),
        188..=190 | 192 | 193 => (1, 1),
        _ => return None,
    };
    Some(StackEffect { popped, pushed })
}

/// Checks the padding of a switch. `operands` include the padding.
fn check_padding(bci: u32, mut operands: ClassFileReader<'_>) -> Result<(), BytecodeError> {
    let padding = operands.take_bytes(opcode::switch_padding(bci as usize))?;
    match padding.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err(operands.error_here(BytecodeErrorKind::BadOperands)),
    }
}

#[cold]
fn out_of_bounds(offset: usize) -> BytecodeError {
    BytecodeError::new(BytecodeErrorKind::OutOfBounds, offset, "code")
}
