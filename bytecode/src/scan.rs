//! The facts about a method's code that a planner needs.

use std::borrow::Cow;

use crate::code::{CodeAttribute, ExceptionHandler};
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::mutf8;
use crate::opcode::{self, Instruction};
use crate::pool::ConstantPool;
use crate::rare_code::find_rare_calls;
use crate::reader::ClassFileReader;

/// The contents of a method's code, in the order of its instructions.
#[derive(Debug, Clone, Default)]
pub struct CodeScan<'a> {
    /// Every `invoke*`.
    pub calls: Vec<MethodCall<'a>>,
    /// The bci of every call in code that ends with an exception, or to which only exception handlers lead.
    pub rare_calls: Vec<u16>,
    /// Every allocation instruction.
    pub allocations: Vec<AllocationInstruction<'a>>,
    /// The bci of every `monitorenter`.
    pub monitors: Vec<u16>,
    /// Every `monitorenter` directly behind `dup; astore L`, with the local that keeps the object, as compilers write it.
    pub kept_monitors: Vec<(u16, u8)>,
    /// The bci of every `monitorexit` where an exception continues in a handler that does not cover itself.
    ///
    /// If inserted code throws there, the handler still releases the monitor. In a handler that covers itself, it would
    /// throw again and again.
    pub guarded_exits: Vec<u16>,
    /// Whether an instruction writes local variable 0.
    pub writes_first_local: bool,
    /// Whether the code may jump backwards, other than to a handler.
    pub has_loops: bool,
    /// The bci of every allocation behind which the method returns or throws, without a branch in between.
    pub last_allocations: Vec<u16>,
    /// The bci of each branch that goes backwards, behind the bci to which it goes.
    pub loops: Vec<(u16, u16)>,
    /// `(bci, line)` sorted by bci, merged from all line number tables.
    pub lines: Vec<(u16, u16)>,
}

/// A method invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodCall<'a> {
    /// The bci of the instruction.
    pub bci: u16,
    /// The opcode, 182 (`invokevirtual`) to 186 (`invokedynamic`).
    pub opcode: u8,
    /// The class that the reference names; empty for `invokedynamic`.
    pub owner: Cow<'a, str>,
    /// Name of the method.
    pub name: Cow<'a, str>,
    /// Descriptor of the method.
    pub descriptor: Cow<'a, str>,
}

/// An allocation by an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocationInstruction<'a> {
    /// The bci of the instruction.
    pub bci: u16,
    /// The instruction.
    pub kind: AllocationOpcode,
    /// The allocated type as a descriptor: `Ljava/lang/String;`, `[[J`.
    pub type_name: Cow<'a, str>,
}

/// The allocation instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationOpcode {
    /// `new`
    New,
    /// `newarray`
    NewArray,
    /// `anewarray`
    ANewArray,
    /// `multianewarray`
    MultiANewArray,
}

impl<'a> CodeScan<'a> {
    pub(crate) fn from_code(
        pool: &ConstantPool<'a>,
        code: &CodeAttribute<'a>,
    ) -> Result<Self, BytecodeError> {
        let mut scan = Self::default();
        let mut instructions = code.instructions();
        // The local of an `astore`, if a `dup` precedes it.
        let (mut after_dup, mut kept) = (false, None);
        let mut throws = false;
        // The number of allocations before the last branch.
        let mut before_branch = 0;
        while let Some((instruction, operands)) = instructions.next()? {
            if let (opcode::MONITORENTER, Some(local)) = (instruction.opcode, kept) {
                scan.kept_monitors
                    .push((short_bci(instruction, operands)?, local));
            }
            kept =
                stored_local(instruction.opcode, operands.remaining_bytes()).filter(|_| after_dup);
            after_dup = instruction.opcode == opcode::DUP;
            throws |= instruction.opcode == opcode::ATHROW;
            scan.scan_instruction(pool, instruction, operands)?;
            if opcode::is_return(instruction.opcode) || instruction.opcode == opcode::ATHROW {
                let last = scan.allocations.iter().skip(before_branch);
                scan.last_allocations.extend(last.map(|made| made.bci));
            }
            if ends_block(instruction.opcode) {
                before_branch = scan.allocations.len();
            }
        }
        if !scan.guarded_exits.is_empty() {
            let handlers: Vec<_> = code.exception_handlers().collect::<Result<_, _>>()?;
            scan.guarded_exits.retain(|bci| is_guarded(*bci, &handlers));
        }
        if throws || code.handler_count > 0 {
            scan.rare_calls = find_rare_calls(code, scan.calls.iter().map(|call| call.bci))?;
        }
        scan.lines = read_line_numbers(pool, code)?;
        Ok(scan)
    }

    fn scan_instruction(
        &mut self,
        pool: &ConstantPool<'a>,
        instruction: Instruction,
        operands: ClassFileReader<'a>,
    ) -> Result<(), BytecodeError> {
        match instruction.opcode {
            opcode::INVOKEVIRTUAL..=opcode::INVOKEDYNAMIC => {
                self.calls.push(read_call(pool, instruction, operands)?);
            }
            opcode::NEW..=opcode::ANEWARRAY | opcode::MULTIANEWARRAY => {
                self.allocations
                    .push(read_allocation(pool, instruction, operands)?);
            }
            opcode::MONITORENTER => self.monitors.push(short_bci(instruction, operands)?),
            opcode::MONITOREXIT => self.guarded_exits.push(short_bci(instruction, operands)?),
            op if writes_first_local(op, operands.remaining_bytes()) => {
                self.writes_first_local = true;
            }
            op => {
                self.has_loops |= jumps_back(op, operands.remaining_bytes());
                let to = backward_target(instruction, operands.remaining_bytes());
                if let Some(to) = to {
                    self.loops.push((to, short_bci(instruction, operands)?));
                }
            }
        }
        Ok(())
    }
}

/// Whether a handler for every exception covers `bci`, and no handler that covers itself contains it.
fn is_guarded(bci: u16, handlers: &[ExceptionHandler]) -> bool {
    let covers = |handler: &ExceptionHandler, bci| (handler.start..handler.end).contains(&bci);
    let catches_all = |handler: &&ExceptionHandler| handler.catch_type == 0;
    let mut all = handlers.iter().filter(catches_all);
    all.any(|handler| covers(handler, bci))
        && !handlers.iter().any(|handler| {
            covers(handler, handler.handler) && (handler.handler..handler.end).contains(&bci)
        })
}

/// The local into which the instruction stores an object; `None` for wide indices too.
fn stored_local(op: u8, operands: &[u8]) -> Option<u8> {
    match op {
        opcode::ASTORE => operands.first().copied(),
        opcode::ASTORE_0..=opcode::ASTORE_3 => Some(op - opcode::ASTORE_0),
        _ => None,
    }
}

/// Whether the instruction stores into local variable 0.
fn writes_first_local(op: u8, operands: &[u8]) -> bool {
    match op {
        opcode::ISTORE..=opcode::ASTORE => operands.first() == Some(&0),
        opcode::WIDE => matches!(operands, [opcode::ISTORE..=opcode::ASTORE, 0, 0, ..]),
        opcode::ISTORE_0
        | opcode::LSTORE_0
        | opcode::FSTORE_0
        | opcode::DSTORE_0
        | opcode::ASTORE_0 => true,
        _ => false,
    }
}

/// Returns the bcis of calls, up to where the code can be read.
#[must_use]
pub fn call_bcis(code: &[u8]) -> Vec<u16> {
    find_bcis(code, opcode::is_invoke)
}

/// Returns the bcis of returns, up to where the code can be read.
#[must_use]
pub fn return_bcis(code: &[u8]) -> Vec<u16> {
    find_bcis(code, opcode::is_return)
}

fn find_bcis(code: &[u8], is_wanted: fn(u8) -> bool) -> Vec<u16> {
    let mut instructions = opcode::InstructionDecoder::starting_at(code, 0, 0);
    let mut places = Vec::new();
    while let Ok(Some((instruction, _))) = instructions.next() {
        if is_wanted(instruction.opcode) {
            places.extend(u16::try_from(instruction.bci));
        }
    }
    places
}

/// Returns the bcis of the last three instructions.
#[must_use]
pub fn last_bcis(code: &[u8]) -> [u32; 3] {
    let mut instructions = opcode::InstructionDecoder::starting_at(code, 0, 0);
    let mut last = [0; 3];
    while let Ok(Some((instruction, _))) = instructions.next() {
        let [_, second, third] = last;
        last = [second, third, instruction.bci];
    }
    last
}

/// Whether the handler that starts at `handler` never reads the exception: it pops it, or no later instruction loads the
/// local variable that has it before that variable gets another value. Compilers write variables in the order of their
/// scopes, so the order of instructions suffices.
#[must_use]
pub fn drops_exception(code: &[u8], handler: u32) -> bool {
    let mut instructions = opcode::InstructionDecoder::starting_at(code, 0, handler as usize);
    let mut next = || instructions.next().ok().flatten();
    let variable = match next() {
        Some((instruction, _)) if instruction.opcode == opcode::POP => return true,
        Some((instruction, operands)) => reference_access(instruction.opcode, operands),
        None => None,
    };
    let Some(LocalAccess::Store(variable)) = variable else {
        return false;
    };
    while let Some((instruction, operands)) = next() {
        match reference_access(instruction.opcode, operands) {
            Some(LocalAccess::Load(loaded)) if loaded == variable => return false,
            Some(LocalAccess::Store(stored)) if stored == variable => return true,
            _ => {}
        }
    }
    true
}

/// An instruction that loads or stores a reference in a local variable.
enum LocalAccess {
    Load(u16),
    Store(u16),
}

fn reference_access(op: u8, mut operands: ClassFileReader<'_>) -> Option<LocalAccess> {
    match op {
        opcode::ALOAD_0..=opcode::ALOAD_3 => {
            Some(LocalAccess::Load(u16::from(op - opcode::ALOAD_0)))
        }
        opcode::ASTORE_0..=opcode::ASTORE_3 => {
            Some(LocalAccess::Store(u16::from(op - opcode::ASTORE_0)))
        }
        opcode::ALOAD => Some(LocalAccess::Load(operands.u1().ok()?.into())),
        opcode::ASTORE => Some(LocalAccess::Store(operands.u1().ok()?.into())),
        opcode::WIDE => match (operands.u1().ok()?, operands.u2().ok()?) {
            (opcode::ALOAD, variable) => Some(LocalAccess::Load(variable)),
            (opcode::ASTORE, variable) => Some(LocalAccess::Store(variable)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a branch goes backwards; for switches and `ret`, whether it may.
fn jumps_back(op: u8, operands: &[u8]) -> bool {
    let is_branch = matches!(op, opcode::IFEQ..=opcode::JSR | opcode::IFNULL..=opcode::JSR_W);
    let is_switch = matches!(op, opcode::TABLESWITCH | opcode::LOOKUPSWITCH);
    is_switch
        || op == opcode::RET
        || is_branch && operands.first().is_some_and(|high| *high >= 0x80)
}

/// Whether control may continue elsewhere than behind the instruction.
fn ends_block(op: u8) -> bool {
    matches!(
        op,
        opcode::IFEQ..=opcode::RETURN | opcode::ATHROW | opcode::IFNULL..=opcode::JSR_W
    )
}

/// Returns the bci to which a branch goes back.
fn backward_target(instruction: Instruction, operands: &[u8]) -> Option<u16> {
    let distance = match (instruction.opcode, operands) {
        (opcode::IFEQ..=opcode::GOTO | opcode::IFNULL..=opcode::IFNONNULL, [a, b, ..]) => {
            i32::from(i16::from_be_bytes([*a, *b]))
        }
        (opcode::GOTO_W, [a, b, c, d, ..]) => i32::from_be_bytes([*a, *b, *c, *d]),
        _ => return None,
    };
    let to = i64::from(instruction.bci) + i64::from(distance);
    (distance < 0).then(|| u16::try_from(to).ok())?
}

/// Code is shorter than 64 KiB (JVMS 4.7.3).
fn short_bci(
    instruction: Instruction,
    operands: ClassFileReader<'_>,
) -> Result<u16, BytecodeError> {
    u16::try_from(instruction.bci)
        .map_err(|_| operands.error_here(BytecodeErrorKind::MethodTooLarge))
}

fn read_call<'a>(
    pool: &ConstantPool<'a>,
    instruction: Instruction,
    mut operands: ClassFileReader<'a>,
) -> Result<MethodCall<'a>, BytecodeError> {
    let member = pool.member_ref(operands.u2()?)?;
    Ok(MethodCall {
        bci: short_bci(instruction, operands)?,
        opcode: instruction.opcode,
        owner: mutf8::decode(member.owner),
        name: mutf8::decode(member.name),
        descriptor: mutf8::decode(member.descriptor),
    })
}

fn read_allocation<'a>(
    pool: &ConstantPool<'a>,
    instruction: Instruction,
    mut operands: ClassFileReader<'a>,
) -> Result<AllocationInstruction<'a>, BytecodeError> {
    let bci = short_bci(instruction, operands)?;
    let (kind, type_name) = match instruction.opcode {
        opcode::NEWARRAY => (
            AllocationOpcode::NewArray,
            primitive_array(&mut operands)?.into(),
        ),
        op => {
            let class = mutf8::decode(pool.class_name(operands.u2()?)?);
            match op {
                opcode::NEW => (AllocationOpcode::New, as_descriptor(class)),
                opcode::ANEWARRAY => (
                    AllocationOpcode::ANewArray,
                    format!("[{}", as_descriptor(class)).into(),
                ),
                _ => (AllocationOpcode::MultiANewArray, class),
            }
        }
    };
    Ok(AllocationInstruction {
        bci,
        kind,
        type_name,
    })
}

fn as_descriptor(class: Cow<'_, str>) -> Cow<'_, str> {
    if class.starts_with('[') {
        class
    } else {
        format!("L{class};").into()
    }
}

/// `atype` of `newarray` (JVMS 6.5).
pub(crate) fn primitive_array(
    operands: &mut ClassFileReader<'_>,
) -> Result<&'static str, BytecodeError> {
    Ok(match operands.u1()? {
        4 => "[Z",
        5 => "[C",
        6 => "[F",
        7 => "[D",
        8 => "[B",
        9 => "[S",
        10 => "[I",
        11 => "[J",
        _ => return Err(operands.error_here(BytecodeErrorKind::BadOperands)),
    })
}

fn read_line_numbers(
    pool: &ConstantPool<'_>,
    code: &CodeAttribute<'_>,
) -> Result<Vec<(u16, u16)>, BytecodeError> {
    let mut lines = Vec::new();
    for attribute in code.attributes() {
        let (name, mut body) = attribute?;
        if pool.utf8(name)? == b"LineNumberTable" {
            for _ in 0..body.u2()? {
                lines.push((body.u2()?, body.u2()?));
            }
        }
    }
    lines.sort_by_key(|&(bci, _)| bci);
    Ok(lines)
}

#[cfg(test)]
mod scan_tests {
    use super::*;

    #[test]
    fn branches_that_go_back_close_loops() {
        let target = |opcode, bci, operands: &[u8]| {
            let instruction = Instruction { bci, opcode };
            backward_target(instruction, operands)
        };
        assert_eq!(target(opcode::GOTO, 10, &[0xff, 0xfa]), Some(4));
        assert_eq!(target(opcode::IFEQ, 300, &[0xfe, 0xd4]), Some(0));
        assert_eq!(
            target(opcode::GOTO_W, 70, &[0xff, 0xff, 0xff, 0xff]),
            Some(69)
        );
        // Forwards; to itself; before the code; subroutines and switches are not followed.
        assert_eq!(target(opcode::IFNONNULL, 10, &[0, 6]), None);
        assert_eq!(target(opcode::GOTO, 10, &[0, 0]), None);
        assert_eq!(target(opcode::GOTO, 4, &[0xff, 0xfa]), None);
        assert_eq!(target(opcode::JSR, 10, &[0xff, 0xfa]), None);
        assert_eq!(target(opcode::TABLESWITCH, 10, &[0xff, 0xfa]), None);
    }

    #[test]
    fn a_handler_reads_its_exception_or_drops_it() {
        const ASTORE_1: u8 = 76;
        const ALOAD_1: u8 = 43;
        const ALOAD_2: u8 = 44;
        const ACONST_NULL: u8 = 1;
        for (code, is_dropped) in [
            // Popped, as by compilers that know that no one reads it.
            (&[opcode::POP, opcode::RETURN][..], true),
            (&[ASTORE_1, opcode::RETURN], true),
            (&[ASTORE_1, ALOAD_1, opcode::ATHROW], false),
            (&[ASTORE_1, ALOAD_2, opcode::RETURN], true),
            // The variable gets another value before it is read.
            (
                &[ASTORE_1, ACONST_NULL, ASTORE_1, ALOAD_1, opcode::ARETURN],
                true,
            ),
            (
                &[opcode::ASTORE, 9, opcode::ALOAD, 9, opcode::ATHROW],
                false,
            ),
            (
                &[opcode::ASTORE, 9, opcode::ALOAD, 8, opcode::ARETURN],
                true,
            ),
            (
                &[
                    opcode::WIDE,
                    opcode::ASTORE,
                    1,
                    0,
                    opcode::WIDE,
                    opcode::ALOAD,
                    1,
                    0,
                    opcode::ATHROW,
                ],
                false,
            ),
            // It is used where it is.
            (&[opcode::ATHROW], false),
            (&[opcode::DUP, opcode::POP, opcode::ATHROW], false),
            (&[], false),
        ] {
            assert_eq!(drops_exception(code, 0), is_dropped, "{code:?}");
            let shifted = [&[opcode::RETURN, opcode::RETURN], code].concat();
            assert_eq!(drops_exception(&shifted, 2), is_dropped, "{code:?}");
        }
    }

    /// What javac makes of `synchronized (x) { … }`: the handler covers its own `monitorexit`.
    #[test]
    fn the_release_of_a_handler_that_covers_itself_is_not_guarded() {
        let handler = |start, end, handler| ExceptionHandler {
            start,
            end,
            handler,
            catch_type: 0,
        };
        let handlers = [handler(4, 14, 17), handler(17, 20, 17)];
        assert!(is_guarded(12, &handlers));
        assert!(!is_guarded(19, &handlers));
        assert!(!is_guarded(14, &handlers));
        // A handler for one type of exception is none for the others.
        let typed = ExceptionHandler {
            catch_type: 7,
            ..handler(4, 14, 17)
        };
        assert!(!is_guarded(12, &[typed]));
    }

    #[test]
    fn stores_into_the_first_local_are_found() {
        for (op, operands) in [
            (opcode::ASTORE_0, &[][..]),
            (opcode::LSTORE_0, &[]),
            (opcode::ASTORE, &[0]),
            (opcode::ISTORE, &[0]),
            (opcode::WIDE, &[opcode::ASTORE, 0, 0]),
        ] {
            assert!(writes_first_local(op, operands), "{op} {operands:?}");
        }
        for (op, operands) in [
            (opcode::ALOAD_0, &[][..]),
            (opcode::ASTORE_0 + 1, &[]),
            (opcode::ASTORE, &[1]),
            (opcode::WIDE, &[opcode::ASTORE, 1, 0]),
            (opcode::WIDE, &[opcode::ALOAD, 0, 0]),
        ] {
            assert!(!writes_first_local(op, operands), "{op} {operands:?}");
        }
    }
}
