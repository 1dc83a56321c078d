//! The type state behind straight-line code (JVMS 4.10.1.9).
//!
//! A branch that became wide needs a frame behind it. The state there follows from the frame
//! before by executing the instructions between on types; no paths join on the way, as wherever
//! they do there is a frame. Locals and stack are kept in slots here: longs and doubles take two,
//! the second one `top`, so that `dup2_x1` and its kin only move slots.

use crate::class::ClassFile;
use crate::code::Code;
use crate::descriptor::{Parameters, single_field_type};
use crate::edits::is_constructor_call;
use crate::error::{Error, ErrorKind};
use crate::frames::{Frame, Type};
use crate::opcode;
use crate::pool;
use crate::reader::Reader;
use crate::scan::primitive_array;

/// Advances `frame` from its bci to another one in the same stretch of straight-line code.
pub(crate) fn advance<'a>(
    class: &ClassFile<'a>,
    code: &Code<'a>,
    frame: &mut Frame<'a>,
    from: u32,
    to: u32,
) -> Result<(), Error> {
    let mut state = State {
        class,
        code,
        locals: in_slots(&frame.locals),
        stack: in_slots(&frame.stack),
    };
    let mut instructions = code.instructions_from(from);
    while let Some((instruction, operands)) = instructions.next()? {
        if instruction.bci >= to {
            break;
        }
        state.execute(instruction.bci, instruction.opcode, operands)?;
    }
    frame.locals = in_entries(&state.locals);
    frame.stack = in_entries(&state.stack);
    while frame.locals.last() == Some(&Type::Top) {
        frame.locals.pop();
    }
    Ok(())
}

fn in_slots<'a>(types: &[Type<'a>]) -> Vec<Type<'a>> {
    let mut slots = Vec::with_capacity(types.len() + 8);
    for one in types {
        push_slots(&mut slots, *one);
    }
    slots
}

fn push_slots<'a>(slots: &mut Vec<Type<'a>>, one: Type<'a>) {
    slots.push(one);
    if one.is_wide() {
        slots.push(Type::Top);
    }
}

fn in_entries<'a>(slots: &[Type<'a>]) -> Vec<Type<'a>> {
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

struct State<'x, 'a> {
    class: &'x ClassFile<'a>,
    code: &'x Code<'a>,
    locals: Vec<Type<'a>>,
    stack: Vec<Type<'a>>,
}

impl<'a> State<'_, 'a> {
    fn push(&mut self, one: Type<'a>) {
        push_slots(&mut self.stack, one);
    }

    fn push_descriptor(&mut self, descriptor: &'a [u8]) {
        if descriptor != b"V" {
            self.push(Type::of_descriptor(descriptor));
        }
    }

    fn pop_slots(&mut self, count: usize) -> Result<(), Error> {
        let kept = self.stack.len().checked_sub(count);
        self.stack.truncate(kept.ok_or_else(|| self.error())?);
        Ok(())
    }

    fn pop(&mut self) -> Result<Type<'a>, Error> {
        self.stack.pop().ok_or_else(|| self.error())
    }

    fn execute(&mut self, bci: u32, op: u8, mut operands: Reader<'a>) -> Result<(), Error> {
        if let Some((popped, pushed)) = fixed_effect(op) {
            self.pop_slots(popped)?;
            if let Some(pushed) = pushed {
                self.push(pushed);
            }
            return Ok(());
        }
        match op {
            18 => self.constant(u16::from(operands.u1()?)),
            19 | 20 => self.constant(operands.u2()?),
            25 => self.load(u16::from(operands.u1()?)),
            42..=45 => self.load(u16::from(op - 42)),
            50 => self.load_element(),
            54..=58 => self.store(op - 54, u16::from(operands.u1()?)),
            59..=78 => self.store((op - 59) / 4, u16::from((op - 59) % 4)),
            89..=95 => self.shuffle(op),
            178..=181 => self.field(op, operands.u2()?),
            182..=186 => self.invoke(op, operands),
            187 => {
                self.push(Type::Uninitialized(bci));
                Ok(())
            }
            188 => {
                let array = primitive_array(&mut operands)?;
                self.replace(1, Type::named(array.as_bytes()))
            }
            189 => self.array_of(operands.u2()?),
            192 => self.replace(1, Type::Object(operands.u2()?)),
            196 => self.wide(operands),
            197 => {
                let (class, dimensions) = (operands.u2()?, operands.u1()?);
                self.replace(usize::from(dimensions), Type::Object(class))
            }
            // Control does not go on behind the others.
            _ => Err(self.error()),
        }
    }

    fn replace(&mut self, slots: usize, one: Type<'a>) -> Result<(), Error> {
        self.pop_slots(slots)?;
        self.push(one);
        Ok(())
    }

    fn load(&mut self, local: u16) -> Result<(), Error> {
        let found = self.locals.get(usize::from(local)).copied();
        self.stack.push(found.ok_or_else(|| self.error())?);
        Ok(())
    }

    /// `kind`: int, long, float, double, reference.
    fn store(&mut self, kind: u8, local: u16) -> Result<(), Error> {
        let is_wide = matches!(kind, 1 | 3);
        if is_wide {
            self.pop()?;
        }
        let value = self.pop()?;
        let local = usize::from(local);
        // Half of a long or double is no value any more.
        if let Some(before) = local.checked_sub(1).and_then(|at| self.locals.get_mut(at))
            && before.is_wide()
        {
            *before = Type::Top;
        }
        let end = local + if is_wide { 2 } else { 1 };
        if self.locals.len() < end {
            self.locals.resize(end, Type::Top);
        }
        if let Some(slot) = self.locals.get_mut(local) {
            *slot = value;
        }
        if let Some(slot) = self.locals.get_mut(local + 1).filter(|_| is_wide) {
            *slot = Type::Top;
        }
        Ok(())
    }

    fn wide(&mut self, mut operands: Reader<'a>) -> Result<(), Error> {
        let (op, local) = (operands.u1()?, operands.u2()?);
        match op {
            25 => self.load(local),
            54..=58 => self.store(op - 54, local),
            opcode::IINC => Ok(()),
            _ => match fixed_effect(op) {
                Some((_, Some(pushed))) => {
                    self.push(pushed);
                    Ok(())
                }
                _ => Err(self.error()),
            },
        }
    }

    /// `dup` to `swap`: a copy of the top goes below what is under it.
    fn shuffle(&mut self, op: u8) -> Result<(), Error> {
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
        let from = len.checked_sub(copied).ok_or_else(|| self.error())?;
        let to = from.checked_sub(skipped).ok_or_else(|| self.error())?;
        let copies = self.stack.get(from..).unwrap_or_default().to_vec();
        self.stack.splice(to..to, copies);
        Ok(())
    }

    fn constant(&mut self, index: u16) -> Result<(), Error> {
        let (tag, _) = self.class.pool.entry(index)?;
        let one = match tag {
            pool::INTEGER => Type::Int,
            pool::FLOAT => Type::Float,
            pool::LONG => Type::Long,
            pool::DOUBLE => Type::Double,
            pool::STRING => Type::named(b"java/lang/String"),
            pool::CLASS => Type::named(b"java/lang/Class"),
            pool::METHOD_HANDLE => Type::named(b"java/lang/invoke/MethodHandle"),
            pool::METHOD_TYPE => Type::named(b"java/lang/invoke/MethodType"),
            pool::DYNAMIC => {
                let descriptor = self.class.pool.member(index)?.descriptor;
                Type::of_descriptor(single_field_type(descriptor)?)
            }
            _ => return Err(self.error()),
        };
        self.push(one);
        Ok(())
    }

    fn field(&mut self, op: u8, index: u16) -> Result<(), Error> {
        let descriptor = single_field_type(self.class.pool.member(index)?.descriptor)?;
        let value = Type::of_descriptor(descriptor);
        match op {
            178 => self.push(value),
            179 => self.pop_slots(value.slots())?,
            180 => self.replace(1, value)?,
            _ => self.pop_slots(1 + value.slots())?,
        }
        Ok(())
    }

    fn invoke(&mut self, op: u8, mut operands: Reader<'a>) -> Result<(), Error> {
        let pool = &self.class.pool;
        let creates = is_constructor_call(pool, op, operands.rest());
        let member = pool.member(operands.u2()?)?;
        let mut parameters = Parameters::of(member.descriptor)?;
        let mut slots = 0;
        while let Some(parameter) = parameters.next()? {
            slots += Type::of_descriptor(parameter).slots();
        }
        self.pop_slots(slots)?;
        if !matches!(op, opcode::INVOKESTATIC | opcode::INVOKEDYNAMIC) {
            let receiver = self.pop()?;
            if creates {
                self.initialize(receiver)?;
            }
        }
        self.push_descriptor(parameters.return_type()?);
        Ok(())
    }

    /// Every copy of an uninitialised object becomes an object.
    fn initialize(&mut self, receiver: Type<'a>) -> Result<(), Error> {
        let class = match receiver {
            Type::UninitializedThis => self.class.this_class,
            Type::Uninitialized(bci) => self.created_at(bci)?,
            _ => return Err(self.error()),
        };
        for slot in self.locals.iter_mut().chain(&mut self.stack) {
            if *slot == receiver {
                *slot = Type::Object(class);
            }
        }
        Ok(())
    }

    fn created_at(&self, bci: u32) -> Result<u16, Error> {
        match self.code.instructions_from(bci).next()? {
            Some((instruction, mut operands)) if instruction.opcode == opcode::NEW => operands.u2(),
            _ => Err(self.error()),
        }
    }

    /// `aaload`
    fn load_element(&mut self) -> Result<(), Error> {
        self.pop()?;
        let array = self.pop()?;
        let element = match array {
            Type::Null => Type::Null,
            Type::Object(index) => self.element(self.class.pool.class_name(index)?)?,
            Type::Named { array_of: 0, name } => self.element(name)?,
            Type::Named { array_of, name } => Type::Named {
                array_of: array_of - 1,
                name,
            },
            _ => return Err(self.error()),
        };
        self.push(element);
        Ok(())
    }

    fn element(&self, array: &'a [u8]) -> Result<Type<'a>, Error> {
        let element = array.strip_prefix(b"[").ok_or_else(|| self.error())?;
        Ok(Type::of_descriptor(element))
    }

    fn array_of(&mut self, class: u16) -> Result<(), Error> {
        let name = self.class.pool.class_name(class)?;
        self.replace(1, Type::Named { array_of: 1, name })
    }

    #[cold]
    fn error(&self) -> Error {
        Error::new(ErrorKind::BadTypeState, self.code.offset(), "inference")
    }
}

/// Slots popped and type pushed by instructions that do the same everywhere.
fn fixed_effect(op: u8) -> Option<(usize, Option<Type<'static>>)> {
    use Type::{Double, Float, Int, Long, Null};
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
