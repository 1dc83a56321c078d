//! Renaming in the texts of the constant pool (JVMS 4.4.7).

use crate::error::{BytecodeError, BytecodeErrorKind};
use crate::pool::{ConstantPool, UTF8};

/// Returns the class file with other names: each `(from, to)` replaces `from` by `to` in every text of the constant pool.
///
/// A text is a name, or contains names, as a descriptor does. `from` must not be part of another name. Indices stay, so
/// everything behind the pool is unchanged.
///
/// # Errors
/// The constant pool is malformed, or a text becomes longer than 65,535 bytes.
pub fn rename_texts(bytes: &[u8], names: &[(&str, &str)]) -> Result<Vec<u8>, BytecodeError> {
    let pool = ConstantPool::read_from_class(bytes)?;
    let mut renamed = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    for index in 1..u16::try_from(pool.count()).unwrap_or(u16::MAX) {
        let Some(offset) = pool.constant_offset(index) else {
            continue;
        };
        let (tag, mut text) = pool.entry(index)?;
        if tag != UTF8 {
            continue;
        }
        let len = usize::from(text.u2()?);
        let old = text.take_bytes(len)?;
        let Some(new) = rename_text(old, names) else {
            continue;
        };
        let too_long = || BytecodeError::new(BytecodeErrorKind::PoolFull, offset, "constant");
        let new_len = u16::try_from(new.len()).map_err(|_| too_long())?;
        renamed.extend_from_slice(bytes.get(copied..offset).unwrap_or_default());
        renamed.push(UTF8);
        renamed.extend_from_slice(&new_len.to_be_bytes());
        renamed.extend_from_slice(&new);
        copied = text.offset();
    }
    renamed.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    Ok(renamed)
}

/// `None`: the text has none of the names.
fn rename_text(text: &[u8], names: &[(&str, &str)]) -> Option<Vec<u8>> {
    // Texts that are not UTF-8 have no name of the table, which are ASCII.
    let old = std::str::from_utf8(text).ok()?;
    let has_name = names.iter().any(|(from, _)| old.contains(from));
    let rename = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
    has_name.then(|| names.iter().fold(old.to_owned(), rename).into_bytes())
}

#[cfg(test)]
mod renaming_tests {
    use super::*;

    /// Up to the end of the pool: two texts, a long, a class, a text.
    const POOL: [u8; 41] = [
        0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 55, 0, 7, //
        1, 0, 3, b'a', b'/', b'B', //
        1, 0, 5, b'L', b'a', b'/', b'B', b';', //
        5, 0, 0, 0, 0, 0, 0, 0, 1, //
        7, 0, 1, //
        1, 0, 2, 0xc0, 0x80,
    ];

    #[test]
    fn a_name_has_another_length_and_the_rest_stays() {
        let mut class = POOL.to_vec();
        class.extend(b"a/B");
        let renamed = rename_texts(&class, &[("a/B", "long/Name")]).unwrap();
        let mut expected = POOL[..10].to_vec();
        expected.extend(b"\x01\0\x09long/Name\x01\0\x0bLlong/Name;");
        expected.extend(&POOL[24..]);
        // Behind the pool there is no text.
        expected.extend(b"a/B");
        assert_eq!(renamed, expected);
    }

    #[test]
    fn without_its_name_a_class_is_the_same() {
        assert_eq!(rename_texts(&POOL, &[("b/C", "d/E")]).unwrap(), POOL);
        assert_eq!(rename_texts(&POOL, &[]).unwrap(), POOL);
    }

    #[test]
    fn a_pool_that_ends_early_is_an_error() {
        assert!(rename_texts(&POOL[..12], &[]).is_err());
        let long = "x".repeat(70_000);
        assert!(rename_texts(&POOL, &[("a/B", &long)]).is_err());
    }
}
