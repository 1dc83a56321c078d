//! Emits the instructions of hooks, each in its shortest form: inserted bytes count against the JIT compilers' inlining
//! budget.

use crate::descriptor::DescriptorParameters;
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::opcode;
use crate::plan::{HelperMethod, NewInstruction};
use crate::pool::{PoolAdditions, PoolCapacity};
use crate::verification_type::VerificationType;

/// Appends instructions to code.
pub(crate) struct Assembler<'x, 'c, 'a, 'p> {
    pub(crate) out: &'x mut Vec<u8>,
    pub(crate) pool: &'x mut PoolAdditions<'c, 'a, 'p>,
}

impl<'p> Assembler<'_, '_, '_, 'p> {
    pub(crate) fn emit_op(&mut self, op: u8) {
        self.out.push(op);
    }

    pub(crate) fn emit_op_u2(&mut self, op: u8, operand: u16) {
        self.out.push(op);
        self.out.extend(operand.to_be_bytes());
    }

    /// Pushes an int. If the constant pool has little room, this uses a second slot of the stack.
    pub(crate) fn push_int(&mut self, value: i32) -> Result<(), BytecodeError> {
        if let Ok(value @ -1..=5) = i8::try_from(value) {
            self.emit_op(opcode::ICONST_0.wrapping_add_signed(value));
        } else if let Ok(value) = i8::try_from(value) {
            self.out.extend([opcode::BIPUSH, value.cast_unsigned()]);
        } else if let Ok(value) = i16::try_from(value) {
            self.emit_op_u2(opcode::SIPUSH, value.cast_unsigned());
        } else if self.pool.capacity() == PoolCapacity::Ample {
            let index = self.pool.intern_integer(value)?;
            self.load_constant(index);
        } else if let Some((index, distance)) = self.pool.near_integer(value) {
            self.load_constant(index);
            if distance != 0 {
                self.push_int(distance.into())?;
                self.emit_op(opcode::IADD);
            }
        } else {
            self.push_halves(value)?;
        }
        Ok(())
    }

    /// Loads a constant of one stack slot.
    pub(crate) fn load_constant(&mut self, index: u16) {
        match u8::try_from(index) {
            Ok(index) => self.out.extend([opcode::LDC, index]),
            Err(_) => self.emit_op_u2(opcode::LDC_W, index),
        }
    }

    /// Computes `high << 16 + low` without a constant.
    fn push_halves(&mut self, value: i32) -> Result<(), BytecodeError> {
        let low = value as i16;
        let high = value.wrapping_sub(low.into()) >> 16;
        self.push_int(high)?;
        self.push_int(16)?;
        self.emit_op(opcode::ISHL);
        if low != 0 {
            self.push_int(low.into())?;
            self.emit_op(opcode::IADD);
        }
        Ok(())
    }

    pub(crate) fn aload(&mut self, local: u8) {
        self.emit_local_access(opcode::ALOAD, opcode::ALOAD_0, local.into());
    }

    pub(crate) fn lload(&mut self, local: u16) {
        self.emit_local_access(opcode::LLOAD, opcode::LLOAD_0, local);
    }

    pub(crate) fn lstore(&mut self, local: u16) {
        self.emit_local_access(opcode::LSTORE, opcode::LSTORE_0, local);
    }

    /// Emits `lload_0` to `lload_3`, else `lload`, else `wide lload`; other loads and stores alike.
    fn emit_local_access(&mut self, op: u8, op_0: u8, local: u16) {
        match u8::try_from(local) {
            Ok(local @ 0..=3) => self.emit_op(op_0 + local),
            Ok(local) => self.out.extend([op, local]),
            Err(_) => {
                self.emit_op(opcode::WIDE);
                self.emit_op_u2(op, local);
            }
        }
    }

    /// Emits a straight line of instructions.
    pub(crate) fn emit_instructions(
        &mut self,
        code: &[NewInstruction<'p>],
    ) -> Result<(), BytecodeError> {
        for instruction in code {
            match instruction {
                NewInstruction::Plain(op) => self.emit_op(*op),
                NewInstruction::Long(value) => {
                    let index = self.pool.add_long(*value)?;
                    self.emit_op_u2(opcode::LDC2_W, index);
                }
                NewInstruction::Field(op, class, name, descriptor) => {
                    let class = self.pool.intern_class(class.as_bytes())?;
                    let index = self.pool.add_field(class, name, descriptor)?;
                    self.emit_op_u2(*op, index);
                }
                NewInstruction::Call(op, method) => {
                    let index = self.pool.intern_method(method)?;
                    self.emit_op_u2(*op, index);
                }
            }
        }
        Ok(())
    }

    /// Emits the body of a static method that passes its arguments on to `helper`, which has the same parameters.
    pub(crate) fn forward_arguments(
        &mut self,
        helper: &HelperMethod<'p>,
    ) -> Result<(), BytecodeError> {
        let mut parameters = DescriptorParameters::parse(helper.descriptor.as_bytes())?;
        let mut slots = 0;
        while let Some(parameter) = parameters.next()? {
            let one = VerificationType::from_descriptor(parameter);
            let (op, op_0) = match one {
                VerificationType::Int => (opcode::ILOAD, opcode::ILOAD_0),
                VerificationType::Long => (opcode::LLOAD, opcode::LLOAD_0),
                VerificationType::Float | VerificationType::Double => {
                    return Err(BytecodeError::new(
                        BytecodeErrorKind::BadPlan("no such parameters"),
                        0,
                        "plan",
                    ));
                }
                _ => (opcode::ALOAD, opcode::ALOAD_0),
            };
            self.emit_local_access(op, op_0, slots);
            slots += one.slot_count() as u16;
        }
        self.call_helper(helper)?;
        self.emit_op(match parameters.return_type()? {
            b"V" => opcode::RETURN,
            b"J" => opcode::LRETURN,
            b"I" => opcode::IRETURN,
            _ => opcode::ARETURN,
        });
        Ok(())
    }

    /// Reads or writes a field of type `J` of this class.
    pub(crate) fn access_field(
        &mut self,
        op: u8,
        (class, name): (u16, &str),
    ) -> Result<(), BytecodeError> {
        let index = self.pool.add_field(class, name, "J")?;
        self.emit_op_u2(op, index);
        Ok(())
    }

    pub(crate) fn call_helper(&mut self, helper: &HelperMethod<'p>) -> Result<(), BytecodeError> {
        let index = self.pool.intern_method(helper)?;
        self.emit_op_u2(opcode::INVOKESTATIC, index);
        Ok(())
    }
}

#[cfg(test)]
mod assemble_tests {
    use super::*;
    use crate::pool::ConstantPool;
    use crate::reader::ClassFileReader;

    fn assembled_in(room: PoolCapacity, emit: impl Fn(&mut Assembler<'_, '_, '_, '_>)) -> Vec<u8> {
        let bytes = [0; 2];
        let pool =
            ConstantPool::parse(&bytes, &mut ClassFileReader::new(&[0, 1], 0, "pool")).unwrap();
        let (mut out, mut pool) = (vec![], PoolAdditions::new(&pool, room, None));
        emit(&mut Assembler {
            out: &mut out,
            pool: &mut pool,
        });
        out
    }

    fn assembled(emit: impl Fn(&mut Assembler<'_, '_, '_, '_>)) -> Vec<u8> {
        assembled_in(PoolCapacity::Ample, emit)
    }

    /// Returns what the instructions leave on the stack; constant 1 is `constant`.
    fn run(code: &[u8], constant: i32) -> i32 {
        let mut stack: Vec<i32> = vec![];
        let mut code = code.iter().map(|byte| i32::from(*byte));
        while let Some(op) = code.next() {
            let mut next = || code.next().unwrap();
            match op {
                2..=8 => stack.push(op - 3),
                16 => stack.push(i32::from(next() as i8)),
                17 => stack.push(i32::from((next() << 8 | next()) as i16)),
                18 => {
                    assert_eq!(next(), 1);
                    stack.push(constant);
                }
                96 | 120 => {
                    let (b, a) = (stack.pop().unwrap(), stack.pop().unwrap());
                    stack.push(if op == 96 { a.wrapping_add(b) } else { a << b });
                }
                other => panic!("{other}"),
            }
            assert!(stack.len() <= 2);
        }
        assert_eq!(stack.len(), 1);
        stack[0]
    }

    #[test]
    fn numbers_are_made_of_others_where_there_is_no_room() {
        for value in [
            32_768,
            40_000,
            65_535,
            1 << 20,
            -70_000,
            i32::MAX,
            i32::MIN,
            -(1 << 30),
        ] {
            let halves = assembled(|a| a.push_halves(value).unwrap());
            assert_eq!(run(&halves, 0), value);
            // One constant serves all values near it.
            let first = value.saturating_sub(i32::from(i16::MIN));
            for near in [value, value.saturating_add(1), value.saturating_add(65_535)] {
                let both = assembled_in(PoolCapacity::Tight, |a| {
                    a.push_int(value).unwrap();
                    a.out.clear();
                    a.push_int(near).unwrap();
                });
                assert_eq!(run(&both, first), near);
            }
        }
    }

    #[test]
    fn constants_are_short() {
        let push = |value| assembled(|a| a.push_int(value).unwrap());
        assert_eq!(push(-1), [2]);
        assert_eq!(push(5), [8]);
        assert_eq!(push(6), [16, 6]);
        assert_eq!(push(-128), [16, 128]);
        assert_eq!(push(128), [17, 0, 128]);
        assert_eq!(push(-32768), [17, 128, 0]);
        assert_eq!(push(32768), [18, 1]);
    }

    #[test]
    fn locals_are_short() {
        let lload = |local| assembled(|a| a.lload(local));
        assert_eq!(lload(3), [33]);
        assert_eq!(lload(4), [22, 4]);
        assert_eq!(lload(255), [22, 255]);
        assert_eq!(lload(256), [196, 22, 1, 0]);
        assert_eq!(assembled(|a| a.lstore(1)), [64]);
    }
}
