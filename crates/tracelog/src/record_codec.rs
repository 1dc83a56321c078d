//! Encodes and decodes fields: LEB128 numbers, zigzag for signed ones, texts with their length in front.

use crate::limits::MAX_TEXT;

/// Why bytes are not a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MalformedRecord(pub &'static str);

pub(crate) type Parsed<T> = Result<T, MalformedRecord>;

pub(crate) struct RecordEncoder<'v>(pub &'v mut Vec<u8>);

impl RecordEncoder<'_> {
    pub fn put_byte(&mut self, v: u8) {
        self.0.push(v);
    }

    pub fn put_number(&mut self, v: impl Into<u64>) {
        let mut v = v.into();
        while v >= 0x80 {
            self.0.push((v & 0x7f) as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
    }

    pub fn put_signed(&mut self, v: i64) {
        self.put_number(((v << 1) ^ (v >> 63)) as u64);
    }

    /// Numbers that use their high bits are shorter without LEB128.
    pub fn put_fixed(&mut self, v: u64) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }

    pub fn put_text(&mut self, v: &str) {
        let v = clip_text(v);
        self.put_number(v.len() as u64);
        self.0.extend_from_slice(v.as_bytes());
    }

    /// Writes 0, or the length plus 1 and the text.
    pub fn put_optional_text(&mut self, v: Option<&str>) {
        let Some(v) = v.map(clip_text) else {
            return self.put_number(0u8);
        };
        self.put_number(v.len() as u64 + 1);
        self.0.extend_from_slice(v.as_bytes());
    }
}

fn clip_text(v: &str) -> &str {
    let end = (0..=MAX_TEXT.min(v.len()))
        .rev()
        .find(|at| v.is_char_boundary(*at));
    v.get(..end.unwrap_or(0)).unwrap_or_default()
}

pub(crate) struct RecordDecoder<'a>(pub &'a [u8]);

impl<'a> RecordDecoder<'a> {
    pub fn read_byte(&mut self) -> Parsed<u8> {
        let (first, rest) = self
            .0
            .split_first()
            .ok_or(MalformedRecord("record ends early"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn read_number(&mut self) -> Parsed<u64> {
        let mut v = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.read_byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            v |= bits << shift;
            if byte < 0x80 {
                return Ok(v);
            }
        }
        Err(MalformedRecord("number of more than 64 bits"))
    }

    pub fn read_small<T: TryFrom<u64>>(&mut self) -> Parsed<T> {
        T::try_from(self.read_number()?)
            .map_err(|_| MalformedRecord("number too large for its field"))
    }

    pub fn read_signed(&mut self) -> Parsed<i64> {
        let v = self.read_number()?;
        Ok((v >> 1) as i64 ^ -((v & 1) as i64))
    }

    pub fn read_small_signed<T: TryFrom<i64>>(&mut self) -> Parsed<T> {
        T::try_from(self.read_signed()?)
            .map_err(|_| MalformedRecord("number too large for its field"))
    }

    pub fn read_fixed(&mut self) -> Parsed<u64> {
        let (v, rest) = self
            .0
            .split_first_chunk()
            .ok_or(MalformedRecord("record ends early"))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*v))
    }

    pub fn read_text(&mut self) -> Parsed<&'a str> {
        let len = self.read_number()?;
        self.read_text_of(len)
    }

    pub fn read_optional_text(&mut self) -> Parsed<Option<&'a str>> {
        match self.read_number()? {
            0 => Ok(None),
            len => self.read_text_of(len - 1).map(Some),
        }
    }

    fn read_text_of(&mut self, len: u64) -> Parsed<&'a str> {
        let bytes = self.take_bytes(len)?;
        if bytes.len() > MAX_TEXT {
            return Err(MalformedRecord("text longer than the format allows"));
        }
        std::str::from_utf8(bytes).map_err(|_| MalformedRecord("text is not UTF-8"))
    }

    pub fn take_bytes(&mut self, len: u64) -> Parsed<&'a [u8]> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let (head, rest) = self
            .0
            .split_at_checked(len)
            .ok_or(MalformedRecord("record ends early"))?;
        self.0 = rest;
        Ok(head)
    }
}

#[cfg(test)]
mod record_codec_tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut bytes = Vec::new();
        let signed = [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN];
        let plain = [0, 1, 127, 128, 16_383, 16_384, u64::MAX];
        let mut out = RecordEncoder(&mut bytes);
        signed.iter().for_each(|v| out.put_signed(*v));
        plain.iter().for_each(|v| out.put_number(*v));
        plain.iter().for_each(|v| out.put_fixed(*v));
        let mut input = RecordDecoder(&bytes);
        assert!(signed.iter().all(|v| input.read_signed() == Ok(*v)));
        assert!(plain.iter().all(|v| input.read_number() == Ok(*v)));
        assert!(plain.iter().all(|v| input.read_fixed() == Ok(*v)));
        assert!(input.0.is_empty());
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert!(RecordDecoder(&[0xff; 10]).read_number().is_err());
        let two_to_the_64 = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2];
        assert!(RecordDecoder(&two_to_the_64).read_number().is_err());
        assert!(RecordDecoder(&[0x80]).read_number().is_err());
        assert!(RecordDecoder(&[0x80, 2]).read_small::<u8>().is_err());
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let long = "é".repeat(MAX_TEXT);
        let mut bytes = Vec::new();
        RecordEncoder(&mut bytes).put_text(&format!("x{long}"));
        let text = RecordDecoder(&bytes).read_text().unwrap();
        assert_eq!(text.len(), MAX_TEXT - 1);
        assert!(text.ends_with('é'));
    }

    #[test]
    fn absent_and_empty_texts_differ() {
        let mut bytes = Vec::new();
        RecordEncoder(&mut bytes).put_optional_text(None);
        RecordEncoder(&mut bytes).put_optional_text(Some(""));
        RecordEncoder(&mut bytes).put_optional_text(Some("a"));
        let mut input = RecordDecoder(&bytes);
        assert_eq!(input.read_optional_text(), Ok(None));
        assert_eq!(input.read_optional_text(), Ok(Some("")));
        assert_eq!(input.read_optional_text(), Ok(Some("a")));
    }
}
