//! The instruction set (JVMS 6.5): names that the rewriter needs, lengths, and decoding.

use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::reader::ClassFileReader;

pub(crate) const ICONST_0: u8 = 3;
pub(crate) const LCONST_0: u8 = 9;
pub(crate) const BIPUSH: u8 = 16;
pub(crate) const SIPUSH: u8 = 17;
pub(crate) const LDC: u8 = 18;
pub(crate) const LDC_W: u8 = 19;
pub(crate) const LDC2_W: u8 = 20;
pub(crate) const ILOAD: u8 = 21;
pub(crate) const ILOAD_0: u8 = 26;
pub(crate) const LLOAD: u8 = 22;
pub(crate) const LLOAD_0: u8 = 30;
pub(crate) const ALOAD: u8 = 25;
pub(crate) const ALOAD_0: u8 = 42;
pub(crate) const ALOAD_3: u8 = 45;
pub(crate) const ISTORE: u8 = 54;
pub(crate) const LSTORE: u8 = 55;
pub(crate) const ASTORE: u8 = 58;
pub(crate) const ISTORE_0: u8 = 59;
pub(crate) const LSTORE_0: u8 = 63;
pub(crate) const FSTORE_0: u8 = 67;
pub(crate) const DSTORE_0: u8 = 71;
pub(crate) const ASTORE_0: u8 = 75;
pub(crate) const ASTORE_3: u8 = 78;
pub(crate) const POP: u8 = 87;
pub(crate) const DUP: u8 = 89;
pub(crate) const DUP2: u8 = 92;
pub(crate) const IADD: u8 = 96;
pub(crate) const ISHL: u8 = 120;
pub(crate) const IINC: u8 = 132;
pub(crate) const IFEQ: u8 = 153;
pub(crate) const IF_ACMPNE: u8 = 166;
pub(crate) const GOTO: u8 = 167;
pub(crate) const JSR: u8 = 168;
pub(crate) const RET: u8 = 169;
pub(crate) const TABLESWITCH: u8 = 170;
pub(crate) const LOOKUPSWITCH: u8 = 171;
pub(crate) const IRETURN: u8 = 172;
pub(crate) const LRETURN: u8 = 173;
pub(crate) const ARETURN: u8 = 176;
pub(crate) const RETURN: u8 = 177;
pub(crate) const GETSTATIC: u8 = 178;
pub(crate) const PUTSTATIC: u8 = 179;
pub(crate) const GETFIELD: u8 = 180;
pub(crate) const PUTFIELD: u8 = 181;
pub(crate) const INVOKEVIRTUAL: u8 = 182;
pub(crate) const INVOKESPECIAL: u8 = 183;
pub(crate) const INVOKESTATIC: u8 = 184;
pub(crate) const INVOKEDYNAMIC: u8 = 186;
pub(crate) const NEW: u8 = 187;
pub(crate) const NEWARRAY: u8 = 188;
pub(crate) const ANEWARRAY: u8 = 189;
pub(crate) const ATHROW: u8 = 191;
pub(crate) const CHECKCAST: u8 = 192;
pub(crate) const INSTANCEOF: u8 = 193;
pub(crate) const MONITORENTER: u8 = 194;
pub(crate) const MONITOREXIT: u8 = 195;
pub(crate) const WIDE: u8 = 196;
pub(crate) const MULTIANEWARRAY: u8 = 197;
pub(crate) const IFNULL: u8 = 198;
pub(crate) const IFNONNULL: u8 = 199;
pub(crate) const GOTO_W: u8 = 200;
pub(crate) const JSR_W: u8 = 201;

/// Lengths by opcode; 0: the operands determine it (switches and `wide`), or there is no such instruction.
const LENGTHS: [u8; 256] = build_lengths();

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn build_lengths() -> [u8; 256] {
    let mut table = [0; 256];
    let mut op = 0;
    while op < 202 {
        table[op] = match op {
            170 | 171 | 196 => 0,
            16 | 18 | 21..=25 | 54..=58 | 169 | 188 => 2,
            17 | 19 | 20 | 132 | 153..=168 | 178..=184 | 187 | 189 | 192 | 193 | 198 | 199 => 3,
            197 => 4,
            185 | 186 | 200 | 201 => 5,
            _ => 1,
        };
        op += 1;
    }
    table
}

/// `if*`, `goto`, `jsr`: a 16-bit branch offset.
pub(crate) fn is_short_branch(op: u8) -> bool {
    matches!(op, IFEQ..=JSR | IFNULL | IFNONNULL)
}

pub(crate) fn is_conditional(op: u8) -> bool {
    matches!(op, IFEQ..=IF_ACMPNE | IFNULL | IFNONNULL)
}

pub(crate) fn is_wide_branch(op: u8) -> bool {
    matches!(op, GOTO_W | JSR_W)
}

pub(crate) fn is_switch(op: u8) -> bool {
    matches!(op, TABLESWITCH | LOOKUPSWITCH)
}

pub(crate) fn is_return(op: u8) -> bool {
    matches!(op, IRETURN..=RETURN)
}

pub(crate) fn is_invoke(op: u8) -> bool {
    matches!(op, INVOKEVIRTUAL..=INVOKEDYNAMIC)
}

/// Whether control always continues with the next instruction, unless an exception is thrown.
pub(crate) fn falls_through(op: u8) -> bool {
    let jumps = is_short_branch(op) || is_wide_branch(op) || is_switch(op) || op == RET;
    !(jumps || is_return(op) || op == ATHROW)
}

/// Returns the inverse condition of `op`. Conditions come in pairs: 153/154 … 198/199.
pub(crate) fn invert_condition(op: u8) -> u8 {
    if op >= IFNULL {
        op ^ 1
    } else {
        ((op + 1) ^ 1) - 1
    }
}

/// An instruction in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instruction {
    pub(crate) bci: u32,
    pub(crate) opcode: u8,
}

/// Decodes one instruction after the other.
pub(crate) struct InstructionDecoder<'a> {
    code: &'a [u8],
    bci: usize,
    /// The offset of the code in the class file.
    offset: usize,
}

impl<'a> InstructionDecoder<'a> {
    pub(crate) fn starting_at(code: &'a [u8], offset: usize, bci: usize) -> Self {
        Self { code, bci, offset }
    }

    /// Returns the next instruction and its operands, including the padding of switches.
    #[inline]
    pub(crate) fn next(
        &mut self,
    ) -> Result<Option<(Instruction, ClassFileReader<'a>)>, BytecodeError> {
        let Some((&opcode, tail)) = self.code.get(self.bci..).and_then(<[u8]>::split_first) else {
            return Ok(None);
        };
        let bci = self.bci;
        let mut operands = ClassFileReader::new(tail, self.offset + bci + 1, "instruction");
        let len = match LENGTHS.get(usize::from(opcode)) {
            Some(&len) if len != 0 => usize::from(len) - 1,
            _ => variable_length(opcode, bci, operands)?,
        };
        let operands = operands.take_part(len)?;
        self.bci = bci + 1 + len;
        // The length field limits code to 4 GiB.
        let bci = bci as u32;
        Ok(Some((Instruction { bci, opcode }, operands)))
    }
}

/// Returns the zero bytes between a switch's opcode and its first operand: operands are aligned to 4.
pub(crate) fn switch_padding(position: usize) -> usize {
    3 - position % 4
}

/// Length of the operands of `wide`, `tableswitch` and `lookupswitch`.
fn variable_length(
    opcode: u8,
    bci: usize,
    mut operands: ClassFileReader<'_>,
) -> Result<usize, BytecodeError> {
    let padding = switch_padding(bci);
    match opcode {
        WIDE => wide_length(operands),
        TABLESWITCH => {
            operands.take_bytes(padding + 4)?;
            let (low, high) = (i64::from(operands.i4()?), i64::from(operands.i4()?));
            let count = usize::try_from(high - low + 1)
                .map_err(|_| operands.error_here(BytecodeErrorKind::BadOperands))?;
            Ok(padding + 12 + 4 * count)
        }
        LOOKUPSWITCH => {
            operands.take_bytes(padding + 4)?;
            let count = usize::try_from(operands.i4()?)
                .map_err(|_| operands.error_here(BytecodeErrorKind::BadOperands))?;
            Ok(padding + 8 + 8 * count)
        }
        _ => Err(operands.error_here(BytecodeErrorKind::BadOpcode(opcode))),
    }
}

/// Returns the targets of a switch: offsets from its own position.
pub(crate) fn switch_offsets<'a>(
    bci: usize,
    op: u8,
    mut operands: ClassFileReader<'a>,
) -> Result<impl Iterator<Item = Result<i32, BytecodeError>> + use<'a>, BytecodeError> {
    operands.take_bytes(switch_padding(bci))?;
    let otherwise = operands.i4()?;
    let has_keys = op == LOOKUPSWITCH;
    operands.take_bytes(if has_keys { 4 } else { 8 })?;
    let offsets = std::iter::from_fn(move || {
        if operands.is_empty() {
            return None;
        }
        let key = if has_keys { operands.i4() } else { Ok(0) };
        Some(key.and_then(|_| operands.i4()))
    });
    Ok(std::iter::once(Ok(otherwise)).chain(offsets))
}

fn wide_length(mut operands: ClassFileReader<'_>) -> Result<usize, BytecodeError> {
    match operands.u1()? {
        IINC => Ok(5),
        21..=25 | 54..=58 | RET => Ok(3),
        op => Err(operands.error_here(BytecodeErrorKind::BadOpcode(op))),
    }
}
