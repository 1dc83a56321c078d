//! Modified UTF-8 (JVMS 4.4.7): NUL takes two bytes, supplementary characters are surrogate pairs.
//!
//! Only this module converts names between the JVM's forms and text. The JVM has bytes in class files and from JVMTI,
//! and UTF-16 units in its strings. No two names become the same text. Content that text cannot hold is escaped:
//! `\ud800` is an unpaired surrogate, `\xff` a byte that is no modified UTF-8. In a name that contains such an escape,
//! or could be misread as one, its own backslashes are doubled.

use std::borrow::Cow;
use std::fmt::Write;

/// A UTF-16 unit, or a byte that is no part of one.
type Unit = Result<u16, u8>;

/// Returns the text for a name.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let is_plain = |byte: &u8| !matches!(*byte, 0 | b'\\' | 0xf0..);
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(is_plain) => Cow::Borrowed(text),
        _ => Cow::Owned(decode_slowly(bytes)),
    }
}

/// Returns the bytes from which [`decode`] made this text.
pub fn encode(text: &str) -> Cow<'_, [u8]> {
    let is_plain = |c: char| !matches!(c, '\0' | '\\' | '\u{1_0000}'..);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len() * 2);
    for unit in parse_units(text) {
        match unit {
            Ok(unit) => encode_unit(&mut bytes, unit),
            Err(byte) => bytes.push(byte),
        }
    }
    Cow::Owned(bytes)
}

/// Returns the text for a string of the JVM.
#[must_use]
pub fn from_utf16(units: &[u16]) -> String {
    let units: Vec<Unit> = units.iter().map(|unit| Ok(*unit)).collect();
    spell_units(&units)
}

/// Returns the UTF-16 units from which [`from_utf16`] or [`decode`] made this text.
#[must_use]
pub fn to_utf16(text: &str) -> Vec<u16> {
    let units = parse_units(text).into_iter();
    units.map(|unit| unit.unwrap_or_else(u16::from)).collect()
}

#[cold]
fn decode_slowly(mut bytes: &[u8]) -> String {
    let mut units = Vec::with_capacity(bytes.len());
    while let Some((unit, rest)) = decode_unit(bytes) {
        units.push(unit);
        bytes = rest;
    }
    spell_units(&units)
}

/// Returns one UTF-16 unit in its shortest form, or `None` if the bytes do not begin with one.
fn decode_unit(bytes: &[u8]) -> Option<(Unit, &[u8])> {
    let tail = |b: u8| u16::from(b & 0x3f);
    Some(match *bytes {
        [] => return None,
        [a @ 1..=0x7f, ref rest @ ..] => (Ok(u16::from(a)), rest),
        [0xc0, 0x80, ref rest @ ..] => (Ok(0), rest),
        [a @ 0xc2..=0xdf, b @ 0x80..=0xbf, ref rest @ ..] => {
            (Ok(u16::from(a & 0x1f) << 6 | tail(b)), rest)
        }
        [0xe0, b @ 0xa0..=0xbf, c @ 0x80..=0xbf, ref rest @ ..] => {
            (Ok(tail(b) << 6 | tail(c)), rest)
        }
        [
            a @ 0xe1..=0xef,
            b @ 0x80..=0xbf,
            c @ 0x80..=0xbf,
            ref rest @ ..,
        ] => (Ok(u16::from(a & 0xf) << 12 | tail(b) << 6 | tail(c)), rest),
        [a, ref rest @ ..] => (Err(a), rest),
    })
}

fn spell_units(units: &[Unit]) -> String {
    let mut text = String::with_capacity(units.len());
    let is_whole = write_units(units, false, &mut text);
    if !is_whole || is_spelled(&text) {
        text.clear();
        write_units(units, true, &mut text);
    }
    text
}

/// Whether the text contains a sequence that [`decode`] writes as an escape.
fn is_spelled(text: &str) -> bool {
    let mut pairs = text.as_bytes().windows(2);
    pairs.any(|pair| matches!(pair, [b'\\', b'\\' | b'u' | b'x']))
}

/// Writes the units. Returns whether text can hold all of them.
fn write_units(units: &[Unit], doubles: bool, text: &mut String) -> bool {
    let mut is_whole = true;
    let mut rest = units;
    while let [first, tail @ ..] = rest {
        rest = tail;
        let (one, more) = decode_char(*first, tail);
        if more {
            rest = rest.get(1..).unwrap_or_default();
        }
        // Writing to a `String` cannot fail.
        let _ = match one {
            Ok('\\') if doubles => text.write_str("\\\\"),
            Ok(c) => text.write_char(c),
            Err(Ok(unit)) => write!(text, "\\u{unit:04x}"),
            Err(Err(byte)) => write!(text, "\\x{byte:02x}"),
        };
        is_whole &= one.is_ok();
    }
    is_whole
}

/// Returns the character at the begin, and whether it takes two units.
fn decode_char(first: Unit, rest: &[Unit]) -> (Result<char, Unit>, bool) {
    let Ok(unit) = first else {
        return (Err(first), false);
    };
    if let Some(c) = char::from_u32(u32::from(unit)) {
        return (Ok(c), false);
    }
    let pair = rest.first().and_then(|low| low.ok());
    let pair = pair.and_then(|low| char::decode_utf16([unit, low]).next()?.ok());
    match pair {
        Some(c) => (Ok(c), true),
        None => (Err(first), false),
    }
}

/// The inverse of [`spell_units`].
fn parse_units(text: &str) -> Vec<Unit> {
    let mut units = Vec::with_capacity(text.len());
    let spelled = is_spelled(text);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let escape = if spelled { parse_escape(rest) } else { None };
        let (unit, len) = match escape {
            Some((unit, len)) => (Some(unit), len),
            None => (None, c.len_utf8()),
        };
        match unit {
            Some(unit) => units.push(unit),
            None => units.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| Ok(*unit))),
        }
        rest = rest.get(len..).unwrap_or_default();
    }
    units
}

/// Returns the escaped unit at the start, and its length in bytes.
fn parse_escape(text: &str) -> Option<(Unit, usize)> {
    match text.as_bytes() {
        [b'\\', b'\\', ..] => Some((Ok(u16::from(b'\\')), 2)),
        [b'\\', b'u', ..] => {
            let unit = u16::from_str_radix(text.get(2..6)?, 16).ok()?;
            Some((Ok(unit), 6))
        }
        [b'\\', b'x', ..] => {
            let byte = u8::from_str_radix(text.get(2..4)?, 16).ok()?;
            Some((Err(byte), 4))
        }
        _ => None,
    }
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
mod mutf8_tests {
    use proptest::prelude::*;

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
            "a\\b",
        ] {
            let bytes = encode(text);
            assert_eq!(decode(&bytes), text);
        }
        assert_eq!(&*encode("\0"), [0xc0, 0x80]);
        assert_eq!(encode("\u{1f600}").len(), 6);
        assert_eq!(to_utf16("\u{1f600}x"), [0xd83d, 0xde00, 0x78]);
    }

    #[test]
    fn no_loss_in_broken_text() {
        assert_eq!(decode(b"a\xed\xa0\x80b"), "a\\ud800b");
        assert_eq!(decode(b"a\xffb\xc0"), "a\\xffb\\xc0");
        assert_eq!(from_utf16(&[0xdc00, 0x78]), "\\udc00x");
        // Not the JVM's form, so not the same name.
        assert_eq!(decode("\u{1f600}".as_bytes()), "\\xf0\\x9f\\x98\\x80");
    }

    #[test]
    fn two_names_are_two_texts() {
        let names: [&[u8]; 8] = [
            b"\\ud800",
            b"\xed\xa0\x80",
            b"\\\xed\xa0\x80",
            b"\\\\ud800",
            b"\\xed\\xa0\\x80",
            b"\\",
            b"\\\\",
            b"\xc1\x9c",
        ];
        let texts: std::collections::HashSet<_> = names.iter().map(|name| decode(name)).collect();
        assert_eq!(texts.len(), names.len(), "{texts:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_is_lost(bytes in prop::collection::vec(prop_oneof![
            Just(b'\\'), Just(b'u'), Just(b'x'), Just(b'd'), Just(b'8'), Just(b'0'),
            Just(0xed_u8), Just(0xa0_u8), Just(0xb0_u8), Just(0x80_u8), any::<u8>(),
        ], 0..24)) {
            let text = decode(&bytes);
            prop_assert_eq!(&*encode(&text), &*bytes);
        }

        #[test]
        fn strings_come_back(units in prop::collection::vec(prop_oneof![
            Just(0x5c_u16), Just(0x75), Just(0xd83d), Just(0xde00), any::<u16>(),
        ], 0..16)) {
            let text = from_utf16(&units);
            prop_assert_eq!(to_utf16(&text), &*units);
            let bytes = encode(&text);
            prop_assert_eq!(&*decode(&bytes), &*text);
        }
    }
}
