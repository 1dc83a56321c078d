//! Finds code that runs rarely: it ends with a thrown exception, or only exception handlers lead to it.
//!
//! Subroutines (`jsr`) count as frequent.

use crate::code::CodeAttribute;
use crate::error::BytecodeError;
use crate::opcode::{self, Instruction};
use crate::reader::ClassFileReader;

/// Where an instruction may continue, besides the next one.
enum Successors<'a> {
    /// Nowhere else.
    Nothing,
    /// At this bci.
    Branch(i64),
    Switch(Instruction, ClassFileReader<'a>),
}

struct FlowStep<'a> {
    bci: u32,
    opcode: u8,
    successors: Successors<'a>,
}

/// Returns which of `calls`, bcis in ascending order, run rarely.
pub(crate) fn find_rare_calls(
    code: &CodeAttribute<'_>,
    calls: impl Iterator<Item = u16>,
) -> Result<Vec<u16>, BytecodeError> {
    let mut steps = Vec::new();
    let mut instructions = code.instructions();
    while let Some((instruction, operands)) = instructions.next()? {
        steps.push(FlowStep::from_instruction(instruction, operands)?);
    }
    let index_of = |bci: i64| {
        let bci = u32::try_from(bci).ok()?;
        steps.binary_search_by_key(&bci, |step| step.bci).ok()
    };
    let throws = find_throwing(&steps, index_of)?;
    let reached = find_reached(&steps, index_of)?;
    let is_rare = |bci: &u16| {
        index_of(i64::from(*bci)).is_some_and(|index| {
            throws.get(index) == Some(&true) || reached.get(index) == Some(&false)
        })
    };
    Ok(calls.filter(is_rare).collect())
}

impl<'a> FlowStep<'a> {
    fn from_instruction(
        instruction: Instruction,
        mut operands: ClassFileReader<'a>,
    ) -> Result<Self, BytecodeError> {
        let op = instruction.opcode;
        let bci = i64::from(instruction.bci);
        let successors = match op {
            _ if opcode::is_short_branch(op) => Successors::Branch(bci + i64::from(operands.i2()?)),
            _ if opcode::is_wide_branch(op) => Successors::Branch(bci + i64::from(operands.i4()?)),
            _ if opcode::is_switch(op) => Successors::Switch(instruction, operands),
            _ => Successors::Nothing,
        };
        Ok(FlowStep {
            bci: instruction.bci,
            opcode: op,
            successors,
        })
    }

    /// Passes on each bci at which the instruction may continue, besides the next one.
    fn for_each_target(&self, mut each: impl FnMut(i64)) -> Result<(), BytecodeError> {
        match &self.successors {
            Successors::Nothing => {}
            Successors::Branch(bci) => each(*bci),
            Successors::Switch(instruction, operands) => {
                let bci = instruction.bci;
                for offset in opcode::switch_offsets(bci as usize, instruction.opcode, *operands)? {
                    each(i64::from(bci) + i64::from(offset?));
                }
            }
        }
        Ok(())
    }

    /// Whether the next instruction may follow.
    fn continues(&self) -> bool {
        let op = self.opcode;
        opcode::falls_through(op)
            || opcode::is_conditional(op)
            || matches!(op, opcode::JSR | opcode::JSR_W)
    }
}

/// For each instruction, whether every path from it ends with `athrow`. Paths that jump backwards are taken for frequent.
fn find_throwing(
    steps: &[FlowStep<'_>],
    index_of: impl Fn(i64) -> Option<usize>,
) -> Result<Vec<bool>, BytecodeError> {
    let mut throws = vec![false; steps.len()];
    for (index, step) in steps.iter().enumerate().rev() {
        let at = |index: usize| throws.get(index) == Some(&true);
        let mut all = match step.opcode {
            opcode::ATHROW => true,
            opcode::RET | opcode::JSR | opcode::JSR_W => false,
            op if opcode::is_return(op) => false,
            _ => !step.continues() || at(index + 1),
        };
        step.for_each_target(|bci| {
            all &= index_of(bci).is_some_and(|target| target > index && at(target));
        })?;
        if let Some(here) = throws.get_mut(index) {
            *here = all;
        }
    }
    Ok(throws)
}

/// For each instruction, whether control reaches it without an exception.
fn find_reached(
    steps: &[FlowStep<'_>],
    index_of: impl Fn(i64) -> Option<usize>,
) -> Result<Vec<bool>, BytecodeError> {
    let mut reached = vec![false; steps.len()];
    let mut pending = vec![0];
    while let Some(index) = pending.pop() {
        let (Some(step), Some(here)) = (steps.get(index), reached.get_mut(index)) else {
            continue;
        };
        if std::mem::replace(here, true) {
            continue;
        }
        step.for_each_target(|bci| pending.extend(index_of(bci)))?;
        pending.extend(step.continues().then_some(index + 1));
    }
    Ok(reached)
}

#[cfg(test)]
mod rare_code_tests {
    use super::*;

    const CALL: [u8; 3] = [opcode::INVOKESTATIC, 0, 1];
    const THROW: u8 = opcode::ATHROW;
    const RETURN: u8 = opcode::RETURN;

    /// Returns the rare calls of this code with these handlers: start, end, handler.
    fn rare_calls(code: &[u8], handlers: &[[u8; 3]]) -> Vec<u16> {
        let mut body = vec![0, 9, 0, 9, 0, 0, 0, code.len() as u8];
        body.extend(code);
        body.extend([0, handlers.len() as u8]);
        for handler in handlers {
            body.extend(handler.iter().flat_map(|bci| [0, *bci]));
            body.extend([0, 0]);
        }
        body.extend([0, 0]);
        let code = CodeAttribute::parse(ClassFileReader::new(&body, 0, "code")).unwrap();
        let calls = crate::scan::call_bcis(code.bytes);
        find_rare_calls(&code, calls.into_iter()).unwrap()
    }

    fn join(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn calls_before_a_throw_are_rare() {
        // `if (x == 0) throw f(); g();`
        let code = join(&[
            &[opcode::ILOAD_0, opcode::IFEQ + 1, 0, 7],
            &CALL,
            &[THROW],
            &CALL,
            &[RETURN],
        ]);
        assert_eq!(rare_calls(&code, &[]), [4]);
        // Both branches throw: so does what is before them.
        let code = join(&[
            &CALL,
            &[opcode::ILOAD_0, opcode::IFEQ, 0, 7],
            &CALL,
            &[THROW],
            &CALL,
            &[THROW],
        ]);
        assert_eq!(rare_calls(&code, &[]), [0, 7, 11]);
        // One of them returns.
        let code = join(&[
            &CALL,
            &[opcode::ILOAD_0, opcode::IFEQ, 0, 7],
            &CALL,
            &[RETURN],
            &CALL,
            &[THROW],
        ]);
        assert_eq!(rare_calls(&code, &[]), [11]);
    }

    #[test]
    fn a_loop_before_a_throw_is_frequent() {
        // `do f(); while (x != 0); throw g();`
        let code = join(&[
            &CALL,
            &[opcode::ILOAD_0, opcode::IFEQ + 1, 0xff, 0xfc],
            &CALL,
            &[THROW],
        ]);
        assert_eq!(rare_calls(&code, &[]), [7]);
    }

    #[test]
    fn calls_of_handlers_are_rare_until_they_join_other_code() {
        // `try { f(); } catch (E e) { g(); } h();`
        let code = join(&[
            &CALL,
            &[opcode::GOTO, 0, 7],
            &[opcode::POP],
            &CALL,
            &CALL,
            &[RETURN],
        ]);
        assert_eq!(rare_calls(&code, &[[0, 3, 6]]), [7]);
        // Without a handler no control leads there, either.
        assert_eq!(rare_calls(&code, &[]), [7]);
    }

    #[test]
    fn each_case_of_a_switch_counts() {
        let switch = |cases: [u8; 2]| {
            let mut code = vec![opcode::ILOAD_0, opcode::TABLESWITCH, 0, 0];
            code.extend([0, 0, 0, cases[0], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, cases[1]]);
            join(&[&code, &CALL, &[THROW], &CALL, &[RETURN]])
        };
        // Targets are relative to the switch at 1: 20 and 24.
        assert_eq!(rare_calls(&switch([19, 23]), &[]), [20]);
        let both_throw = rare_calls(&switch([19, 19]), &[]);
        // The second call is not reached.
        assert_eq!(both_throw, [20, 24]);
    }
}
