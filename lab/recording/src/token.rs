//! What a block of calls holds: one LEB128 number per step, two for some.
//!
//! | number | step |
//! |---|---|
//! | 0 | exit |
//! | 1, n | unwind n frames |
//! | 2 + e | edge e: an event if its callee is EVENT, otherwise an enter |
//!
//! Example: edge 5 is entered, edge 130 in it, both return.
//! ```text
//! 07           enter edge 5
//! 84 01        enter edge 130
//! 00 00        exit, exit
//! ```

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StepToken {
    Exit,
    Unwind(u32),
    Edge(u32),
}

impl StepToken {
    pub fn append_to(self, bytes: &mut Vec<u8>) {
        match self {
            StepToken::Exit => bytes.push(0),
            StepToken::Unwind(frames) => {
                bytes.push(1);
                append_number(bytes, frames.into());
            }
            StepToken::Edge(edge) => append_number(bytes, u64::from(edge) + 2),
        }
    }

    pub fn take_from(bytes: &mut &[u8]) -> Result<StepToken, &'static str> {
        match read_number(bytes)? {
            0 => Ok(StepToken::Exit),
            1 => read_u32(bytes).map(StepToken::Unwind),
            edge => u32::try_from(edge - 2)
                .map(StepToken::Edge)
                .map_err(|_| "an edge's number is out of range"),
        }
    }
}

pub(crate) fn append_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

pub(crate) fn read_number(bytes: &mut &[u8]) -> Result<u64, &'static str> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or("a number ends early")?;
        *bytes = rest;
        if shift == 63 && *byte > 1 {
            break;
        }
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number has more than 64 bits")
}

pub(crate) fn read_u32(bytes: &mut &[u8]) -> Result<u32, &'static str> {
    u32::try_from(read_number(bytes)?).map_err(|_| "a number is out of range")
}

#[cfg(test)]
mod token_tests {
    use super::*;

    #[test]
    fn the_example() {
        let mut bytes = Vec::new();
        for token in [
            StepToken::Edge(5),
            StepToken::Edge(130),
            StepToken::Exit,
            StepToken::Unwind(1),
        ] {
            token.append_to(&mut bytes);
        }
        assert_eq!(bytes, [7, 0x84, 1, 0, 1, 1]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let two_to_the_64 = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2];
        assert!(read_number(&mut &two_to_the_64[..]).is_err());
        assert!(read_number(&mut &[0xff; 10][..]).is_err());
        assert!(read_number(&mut &[0x80][..]).is_err());
        let mut largest = Vec::new();
        append_number(&mut largest, u64::MAX);
        assert_eq!(read_number(&mut &largest[..]), Ok(u64::MAX));
        assert!(StepToken::take_from(&mut &largest[..]).is_err());
    }
}
