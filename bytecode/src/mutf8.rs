//! Modified UTF-8 (JVMS 4.4.7): NUL takes two bytes, supplementary characters are surrogate pairs.

use std::borrow::Cow;
use std::fmt::Write;

/// Decodes; a surrogate without its pair, which no `str` can hold, becomes the text `\ud800`, and
/// a byte that is no modified UTF-8 the text `\xff`.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(decode_slowly(bytes)),
    }
}

#[cold]
fn decode_slowly(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    while let Some((unit, rest)) = unit(bytes) {
        bytes = rest;
        match surrogate_pair(unit, bytes) {
            Some((c, rest)) => {
                text.push(c);
                bytes = rest;
            }
            None => push_unit(&mut text, unit),
        }
    }
    text
}

/// One UTF-16 unit, or the first byte where there is none.
fn unit(bytes: &[u8]) -> Option<(Result<u16, u8>, &[u8])> {
    let tail = |b: u8| u16::from(b & 0x3f);
    Some(match *bytes {
        [] => return None,
        [a @ 0..=0x7f, ref rest @ ..] => (Ok(u16::from(a)), rest),
        [a @ 0xc0..=0xdf, b @ 0x80..=0xbf, ref rest @ ..] => {
            (Ok(u16::from(a & 0x1f) << 6 | tail(b)), rest)
        }
        [
            a @ 0xe0..=0xef,
            b @ 0x80..=0xbf,
            c @ 0x80..=0xbf,
            ref rest @ ..,
        ] => (Ok(u16::from(a & 0xf) << 12 | tail(b) << 6 | tail(c)), rest),
        [a, ref rest @ ..] => (Err(a), rest),
    })
}

fn surrogate_pair(high: Result<u16, u8>, bytes: &[u8]) -> Option<(char, &[u8])> {
    let high = high.ok().filter(|h| (0xd800..0xdc00).contains(h))?;
    let (low, rest) = unit(bytes)?;
    let c = char::decode_utf16([high, low.ok()?]).next()?.ok()?;
    Some((c, rest))
}

fn push_unit(text: &mut String, unit: Result<u16, u8>) {
    // Writing to a String cannot fail.
    let _ = match unit.map(|u| (u, char::from_u32(u32::from(u)))) {
        Ok((_, Some(c))) => text.write_char(c),
        Ok((u, None)) => write!(text, "\\u{u:04x}"),
        Err(byte) => write!(text, "\\x{byte:02x}"),
    };
}

/// Encodes what [`decode`] would decode.
pub(crate) fn encode(text: &str) -> Cow<'_, [u8]> {
    let plain = |c: char| c != '\0' && u32::from(c) < 0x1_0000;
    if text.chars().all(plain) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len() * 2);
    for unit in text.encode_utf16() {
        encode_unit(&mut bytes, unit);
    }
    Cow::Owned(bytes)
}

fn encode_unit(bytes: &mut Vec<u8>, unit: u16) {
    let low = |shift: u16, mask: u16| (unit >> shift & mask) as u8;
    match unit {
        1..=0x7f => bytes.push(low(0, 0x7f)),
        0 | 0x80..=0x7ff => bytes.extend([0xc0 | low(6, 0x1f), 0x80 | low(0, 0x3f)]),
        _ => bytes.extend([
            0xe0 | low(12, 0xf),
            0x80 | low(6, 0x3f),
            0x80 | low(0, 0x3f),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for text in [
            "",
            "java/lang/Object",
            "é",
            "a\0b",
            "\u{1f600}x",
            "\u{ffff}",
        ] {
            assert_eq!(decode(&encode(text)).replace("\\x", "!"), text);
        }
        assert_eq!(&*encode("\0"), [0xc0, 0x80]);
        assert_eq!(encode("\u{1f600}").len(), 6);
    }

    #[test]
    fn no_loss_in_broken_text() {
        assert_eq!(decode(b"a\xed\xa0\x80b"), "a\\ud800b");
        assert_eq!(decode(b"a\xffb\xc0"), "a\\xffb\\xc0");
    }
}
