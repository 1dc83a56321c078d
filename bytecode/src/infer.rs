//! Infers the type state behind straight-line code (JVMS 4.10.1.9).
//!
//! A branch that became wide needs a frame behind it. Its state follows from the previous frame by executing the
//! instructions in between on types. No paths join in between, because joins have frames. Locals and stack are kept in
//! slots: longs and doubles take two, the second one is `top`, so that `dup2_x1` and similar instructions only move
//! slots.

use crate::class::ClassFile;
use crate::code::CodeAttribute;
use crate::descriptor::{DescriptorParameters, single_field_type};
use crate::edits::is_constructor_call;
use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::frames::StackMapFrame;
use crate::opcode;
use crate::pool;
use crate::reader::ClassFileReader;
use crate::scan::primitive_array;
use crate::verification_type::VerificationType;

/// Advances `frame` from its bci to another one in the same stretch of straight-line code.
pub(crate) fn advance_frame<'a>(
    class: &ClassFile<'a>,
    code: &CodeAttribute<'a>,
    frame: &mut StackMapFrame<'a>,
    from: u32,
    to: u32,
) -> Result<(), BytecodeError> {
    let mut state = TypeState {
        class,
        code,
        locals: to_slots(&frame.locals),
        stack: to_slots(&frame.stack),
    };
    let mut instructions = code.instructions_from(from);
    while let Some((instruction, operands)) = instructions.next()? {
        if instruction.bci >= to {
            break;
        }
        state.execute_instruction(instruction.bci, instruction.opcode, operands)?;
    }
    frame.locals = to_entries(&state.locals);
    frame.stack = to_entries(&state.stack);
    while frame.locals.last() == Some(&VerificationType::Top) {
        frame.locals.pop();
    }
    Ok(())
}

fn to_slots<'a>(types: &[VerificationType<'a>]) -> Vec<VerificationType<'a>> {
    let mut slots = Vec::with_capacity(types.len() + 8);
    for one in types {
        push_slots(&mut slots, *one);
    }
    slots
}

fn push_slots<'a>(slots: &mut Vec<VerificationType<'a>>, one: VerificationType<'a>) {
    slots.push(one);
    if one.is_wide() {
        slots.push(VerificationType::Top);
    }
}

fn to_entries<'a>(slots: &[VerificationType<'a>]) -> Vec<VerificationType<'a>> {
    let mut types = Vec::with_capacity(slots.len());
    let mut slots = slots.iter();
    while let Some(&one) = slots.next() {
        types.push(one);
        if one.is_wide() {
            slots.next();
        }
    }
    types
}

struct TypeState<'x, 'a> {
    class: &'x ClassFile<'a>,
    code: &'x CodeAttribute<'a>,
    locals: Vec<VerificationType<'a>>,
    stack: Vec<VerificationType<'a>>,
}

impl<'a> TypeState<'_, 'a> {
    fn push(&mut self, one: VerificationType<'a>) {
        push_slots(&mut self.stack, one);
    }

    fn push_descriptor(&mut self, descriptor: &'a [u8]) {
        if descriptor != b"V" {
            self.push(VerificationType::from_descriptor(descriptor));
        }
    }

    fn pop_slots(&mut self, count: usize) -> Result<(), BytecodeError> {
        let kept = self.stack.len().checked_sub(count);
        self.stack.truncate(kept.ok_or_else(|| self.type_error())?);
        Ok(())
    }

    fn pop(&mut self) -> Result<VerificationType<'a>, BytecodeError> {
        self.stack.pop().ok_or_else(|| self.type_error())
    }

    fn execute_instruction(
        &mut self,
        bci: u32,
        op: u8,
        mut operands: ClassFileReader<'a>,
    ) -> Result<(), BytecodeError> {
        if let Some((popped, pushed)) = fixed_effect(op) {
            self.pop_slots(popped)?;
            if let Some(pushed) = pushed {
                self.push(pushed);
            }
            return Ok(());
        }
        match op {
            18 => self.load_constant(u16::from(operands.u1()?)),
            19 | 20 => self.load_constant(operands.u2()?),
            25 => self.load_local(u16::from(operands.u1()?)),
            42..=45 => self.load_local(u16::from(op - 42)),
            50 => self.load_element(),
            54..=58 => self.store_local(op - 54, u16::from(operands.u1()?)),
            59..=78 => self.store_local((op - 59) / 4, u16::from((op - 59) % 4)),
            89..=95 => self.shuffle_stack(op),
            178..=181 => self.access_field(op, operands.u2()?),
            182..=186 => self.invoke_method(op, operands),
            187 => {
                self.push(VerificationType::Uninitialized(bci));
                Ok(())
            }
            188 => {
                let array = primitive_array(&mut operands)?;
                self.replace_top(1, VerificationType::from_name(array.as_bytes()))
            }
            189 => self.push_array_of(operands.u2()?),
            192 => self.replace_top(1, VerificationType::Object(operands.u2()?)),
            196 => self.execute_wide(operands),
            197 => {
                let (class, dimensions) = (operands.u2()?, operands.u1()?);
                self.replace_top(usize::from(dimensions), VerificationType::Object(class))
            }
            // Control does not continue behind the others.
            _ => Err(self.type_error()),
        }
    }

    fn replace_top(
        &mut self,
        slots: usize,
        one: VerificationType<'a>,
    ) -> Result<(), BytecodeError> {
        self.pop_slots(slots)?;
        self.push(one);
        Ok(())
    }

    fn load_local(&mut self, local: u16) -> Result<(), BytecodeError> {
        let local_type = self.locals.get(usize::from(local)).copied();
        self.stack
            .push(local_type.ok_or_else(|| self.type_error())?);
        Ok(())
    }

    /// `kind`: int, long, float, double, reference.
    fn store_local(&mut self, kind: u8, local: u16) -> Result<(), BytecodeError> {
        let is_wide = matches!(kind, 1 | 3);
        if is_wide {
            self.pop()?;
        }
        let value = self.pop()?;
        let local = usize::from(local);
        // Half of a long or double is no valid value.
        if let Some(before) = local.checked_sub(1).and_then(|at| self.locals.get_mut(at))
            && before.is_wide()
        {
            *before = VerificationType::Top;
        }
        let end = local + if is_wide { 2 } else { 1 };
        if self.locals.len() < end {
            self.locals.resize(end, VerificationType::Top);
        }
        if let Some(slot) = self.locals.get_mut(local) {
            *slot = value;
        }
        if let Some(slot) = self.locals.get_mut(local + 1).filter(|_| is_wide) {
            *slot = VerificationType::Top;
        }
        Ok(())
    }

    fn execute_wide(&mut self, mut operands: ClassFileReader<'a>) -> Result<(), BytecodeError> {
        let (op, local) = (operands.u1()?, operands.u2()?);
        match op {
            25 => self.load_local(local),
            54..=58 => self.store_local(op - 54, local),
            opcode::IINC => Ok(()),
            _ => match fixed_effect(op) {
                Some((_, Some(pushed))) => {
                    self.push(pushed);
                    Ok(())
                }
                _ => Err(self.type_error()),
            },
        }
    }

    /// `dup` to `swap`: inserts a copy of the top below the slots under it.
    fn shuffle_stack(&mut self, op: u8) -> Result<(), BytecodeError> {
        if op == 95 {
            let (top, below) = (self.pop()?, self.pop()?);
            self.stack.extend([top, below]);
            return Ok(());
        }
        let (copied, skipped) = match op {
            89 => (1, 0),
            90 => (1, 1),
            91 => (1, 2),
            92 => (2, 0),
            93 => (2, 1),
            _ => (2, 2),
        };
        let len = self.stack.len();
        let from = len.checked_sub(copied).ok_or_else(|| self.type_error())?;
        let to = from.checked_sub(skipped).ok_or_else(|| self.type_error())?;
        let copies = self.stack.get(from..).unwrap_or_default().to_vec();
        self.stack.splice(to..to, copies);
        Ok(())
    }

    fn load_constant(&mut self, index: u16) -> Result<(), BytecodeError> {
        let (tag, _) = self.class.pool.entry(index)?;
        let one = match tag {
            pool::INTEGER => VerificationType::Int,
            pool::FLOAT => VerificationType::Float,
            pool::LONG => VerificationType::Long,
            pool::DOUBLE => VerificationType::Double,
            pool::STRING => VerificationType::from_name(b"java/lang/String"),
            pool::CLASS => VerificationType::from_name(b"java/lang/Class"),
            pool::METHOD_HANDLE => VerificationType::from_name(b"java/lang/invoke/MethodHandle"),
            pool::METHOD_TYPE => VerificationType::from_name(b"java/lang/invoke/MethodType"),
            pool::DYNAMIC => {
                let descriptor = self.class.pool.member_ref(index)?.descriptor;
                VerificationType::from_descriptor(single_field_type(descriptor)?)
            }
            _ => return Err(self.type_error()),
        };
        self.push(one);
        Ok(())
    }

    fn access_field(&mut self, op: u8, index: u16) -> Result<(), BytecodeError> {
        let descriptor = single_field_type(self.class.pool.member_ref(index)?.descriptor)?;
        let value = VerificationType::from_descriptor(descriptor);
        match op {
            178 => self.push(value),
            179 => self.pop_slots(value.slot_count())?,
            180 => self.replace_top(1, value)?,
            _ => self.pop_slots(1 + value.slot_count())?,
        }
        Ok(())
    }

    fn invoke_method(
        &mut self,
        op: u8,
        mut operands: ClassFileReader<'a>,
    ) -> Result<(), BytecodeError> {
        let pool = &self.class.pool;
        let creates = is_constructor_call(pool, op, operands.remaining_bytes());
        let member = pool.member_ref(operands.u2()?)?;
        let mut parameters = DescriptorParameters::parse(member.descriptor)?;
        let mut slots = 0;
        while let Some(parameter) = parameters.next()? {
            slots += VerificationType::from_descriptor(parameter).slot_count();
        }
        self.pop_slots(slots)?;
        if !matches!(op, opcode::INVOKESTATIC | opcode::INVOKEDYNAMIC) {
            let receiver = self.pop()?;
            if creates {
                self.initialize_object(receiver)?;
            }
        }
        self.push_descriptor(parameters.return_type()?);
        Ok(())
    }

    /// Turns every copy of an uninitialized object into an initialized one.
    fn initialize_object(&mut self, receiver: VerificationType<'a>) -> Result<(), BytecodeError> {
        let class = match receiver {
            VerificationType::UninitializedThis => self.class.this_class,
            VerificationType::Uninitialized(bci) => self.class_created_at(bci)?,
            _ => return Err(self.type_error()),
        };
        for slot in self.locals.iter_mut().chain(&mut self.stack) {
            if *slot == receiver {
                *slot = VerificationType::Object(class);
            }
        }
        Ok(())
    }

    fn class_created_at(&self, bci: u32) -> Result<u16, BytecodeError> {
        match self.code.instructions_from(bci).next()? {
            Some((instruction, mut operands)) if instruction.opcode == opcode::NEW => operands.u2(),
            _ => Err(self.type_error()),
        }
    }

    /// `aaload`
    fn load_element(&mut self) -> Result<(), BytecodeError> {
        self.pop()?;
        let array = self.pop()?;
        let element = match array {
            VerificationType::Null => VerificationType::Null,
            VerificationType::Object(index) => {
                self.element_type(self.class.pool.class_name(index)?)?
            }
            VerificationType::Named { array_of: 0, name } => self.element_type(name)?,
            VerificationType::Named { array_of, name } => VerificationType::Named {
                array_of: array_of - 1,
                name,
            },
            _ => return Err(self.type_error()),
        };
        self.push(element);
        Ok(())
    }

    fn element_type(&self, array: &'a [u8]) -> Result<VerificationType<'a>, BytecodeError> {
        let element = array.strip_prefix(b"[").ok_or_else(|| self.type_error())?;
        Ok(VerificationType::from_descriptor(element))
    }

    fn push_array_of(&mut self, class: u16) -> Result<(), BytecodeError> {
        let name = self.class.pool.class_name(class)?;
        self.replace_top(1, VerificationType::Named { array_of: 1, name })
    }

    #[cold]
    fn type_error(&self) -> BytecodeError {
        BytecodeError::new(
            BytecodeErrorKind::BadTypeState,
            self.code.offset(),
            "inference",
        )
    }
}

/// Returns slots popped and type pushed by instructions with a fixed effect.
fn fixed_effect(op: u8) -> Option<(usize, Option<VerificationType<'static>>)> {
    use VerificationType::{Double, Float, Int, Long, Null};
    Some(match op {
        0 | 116..=119 | opcode::IINC => (0, None),
        1 => (0, Some(Null)),
        2..=8 | 16 | 17 | 21 | 26..=29 => (0, Some(Int)),
        9 | 10 | 22 | 30..=33 => (0, Some(Long)),
        11..=13 | 23 | 34..=37 => (0, Some(Float)),
        14 | 15 | 24 | 38..=41 => (0, Some(Double)),
        // Array loads and stores.
        46 | 51..=53 => (2, Some(Int)),
        47 => (2, Some(Long)),
        48 => (2, Some(Float)),
        49 => (2, Some(Double)),
        79 | 81 | 83..=86 => (3, None),
        80 | 82 => (4, None),
        // pop, monitors, conditions
        87 | 153..=158 | 194 | 195 | 198 | 199 => (1, None),
        88 | 159..=166 => (2, None),
        // Arithmetic: int, long, float, double in turn; shifts take an int.
        96 | 100 | 104 | 108 | 112 | 120 | 122 | 124 | 126 | 128 | 130 => (2, Some(Int)),
        97 | 101 | 105 | 109 | 113 | 127 | 129 | 131 => (4, Some(Long)),
        121 | 123 | 125 => (3, Some(Long)),
        98 | 102 | 106 | 110 | 114 => (2, Some(Float)),
        99 | 103 | 107 | 111 | 115 => (4, Some(Double)),
        // Conversions and comparisons.
        139 | 145..=147 | 190 | 193 => (1, Some(Int)),
        136 | 142 | 149 | 150 => (2, Some(Int)),
        148 | 151 | 152 => (4, Some(Int)),
        133 | 140 => (1, Some(Long)),
        143 => (2, Some(Long)),
        134 => (1, Some(Float)),
        137 | 144 => (2, Some(Float)),
        135 | 141 => (1, Some(Double)),
        138 => (2, Some(Double)),
        _ => return None,
    })
}
