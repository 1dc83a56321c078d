//! Fields: LEB128 numbers, zigzag for signed ones, texts with their length in front.

use crate::limits::MAX_TEXT;

/// Why bytes are not a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed(pub &'static str);

pub(crate) type Parsed<T> = Result<T, Malformed>;

pub(crate) struct Out<'v>(pub &'v mut Vec<u8>);

impl Out<'_> {
    pub fn byte(&mut self, v: u8) {
        self.0.push(v);
    }

    pub fn num(&mut self, v: impl Into<u64>) {
        let mut v = v.into();
        while v >= 0x80 {
            self.0.push((v & 0x7f) as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
    }

    pub fn signed(&mut self, v: i64) {
        self.num(((v << 1) ^ (v >> 63)) as u64);
    }

    /// Numbers that use their high bits are shorter without LEB128.
    pub fn fixed(&mut self, v: u64) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }

    pub fn text(&mut self, v: &str) {
        let v = clip(v);
        self.num(v.len() as u64);
        self.0.extend_from_slice(v.as_bytes());
    }

    /// 0 or the length + 1 and the text.
    pub fn text_or_none(&mut self, v: Option<&str>) {
        let Some(v) = v.map(clip) else {
            return self.num(0u8);
        };
        self.num(v.len() as u64 + 1);
        self.0.extend_from_slice(v.as_bytes());
    }
}

fn clip(v: &str) -> &str {
    let end = (0..=MAX_TEXT.min(v.len()))
        .rev()
        .find(|at| v.is_char_boundary(*at));
    v.get(..end.unwrap_or(0)).unwrap_or_default()
}

pub(crate) struct In<'a>(pub &'a [u8]);

impl<'a> In<'a> {
    pub fn byte(&mut self) -> Parsed<u8> {
        let (first, rest) = self.0.split_first().ok_or(Malformed("record ends early"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn num(&mut self) -> Parsed<u64> {
        let mut v = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            v |= bits << shift;
            if byte < 0x80 {
                return Ok(v);
            }
        }
        Err(Malformed("number of more than 64 bits"))
    }

    pub fn small<T: TryFrom<u64>>(&mut self) -> Parsed<T> {
        T::try_from(self.num()?).map_err(|_| Malformed("number too large for its field"))
    }

    pub fn signed(&mut self) -> Parsed<i64> {
        let v = self.num()?;
        Ok((v >> 1) as i64 ^ -((v & 1) as i64))
    }

    pub fn small_signed<T: TryFrom<i64>>(&mut self) -> Parsed<T> {
        T::try_from(self.signed()?).map_err(|_| Malformed("number too large for its field"))
    }

    pub fn fixed(&mut self) -> Parsed<u64> {
        let (v, rest) = self
            .0
            .split_first_chunk()
            .ok_or(Malformed("record ends early"))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*v))
    }

    pub fn text(&mut self) -> Parsed<&'a str> {
        let len = self.num()?;
        self.text_of(len)
    }

    pub fn text_or_none(&mut self) -> Parsed<Option<&'a str>> {
        match self.num()? {
            0 => Ok(None),
            len => self.text_of(len - 1).map(Some),
        }
    }

    fn text_of(&mut self, len: u64) -> Parsed<&'a str> {
        let bytes = self.take(len)?;
        if bytes.len() > MAX_TEXT {
            return Err(Malformed("text longer than the format allows"));
        }
        std::str::from_utf8(bytes).map_err(|_| Malformed("text is not UTF-8"))
    }

    pub fn take(&mut self, len: u64) -> Parsed<&'a [u8]> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let (head, rest) = self
            .0
            .split_at_checked(len)
            .ok_or(Malformed("record ends early"))?;
        self.0 = rest;
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut bytes = Vec::new();
        let signed = [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN];
        let plain = [0, 1, 127, 128, 16_383, 16_384, u64::MAX];
        let mut out = Out(&mut bytes);
        signed.iter().for_each(|v| out.signed(*v));
        plain.iter().for_each(|v| out.num(*v));
        plain.iter().for_each(|v| out.fixed(*v));
        let mut input = In(&bytes);
        assert!(signed.iter().all(|v| input.signed() == Ok(*v)));
        assert!(plain.iter().all(|v| input.num() == Ok(*v)));
        assert!(plain.iter().all(|v| input.fixed() == Ok(*v)));
        assert!(input.0.is_empty());
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert!(In(&[0xff; 10]).num().is_err());
        let two_to_the_64 = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2];
        assert!(In(&two_to_the_64).num().is_err());
        assert!(In(&[0x80]).num().is_err());
        assert!(In(&[0x80, 2]).small::<u8>().is_err());
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let long = "é".repeat(MAX_TEXT);
        let mut bytes = Vec::new();
        Out(&mut bytes).text(&format!("x{long}"));
        let text = In(&bytes).text().unwrap();
        assert_eq!(text.len(), MAX_TEXT - 1);
        assert!(text.ends_with('é'));
    }

    #[test]
    fn absent_and_empty_texts_differ() {
        let mut bytes = Vec::new();
        Out(&mut bytes).text_or_none(None);
        Out(&mut bytes).text_or_none(Some(""));
        Out(&mut bytes).text_or_none(Some("a"));
        let mut input = In(&bytes);
        assert_eq!(input.text_or_none(), Ok(None));
        assert_eq!(input.text_or_none(), Ok(Some("")));
        assert_eq!(input.text_or_none(), Ok(Some("a")));
    }
}
