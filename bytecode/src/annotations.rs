//! Annotations (JVMS 4.7.16): their types, and their lengths for those inside code.

use crate::error::{Error, ErrorKind};
use crate::pool::Pool;
use crate::reader::Reader;

/// Element values nest; javac goes one level deep, and the stack must bear what is hostile.
const MAX_DEPTH: usize = 64;

/// The types of the annotations in a `RuntimeVisibleAnnotations` attribute.
pub(crate) fn types<'a>(
    pool: &Pool<'a>,
    body: Reader<'a>,
    found: &mut Vec<&'a [u8]>,
) -> Result<(), Error> {
    let mut body = body.within("annotations");
    for _ in 0..body.u2()? {
        found.push(pool.utf8(body.u2()?)?);
        skip_elements(&mut body, MAX_DEPTH)?;
    }
    body.expect_end()
}

/// Skips an `annotation` structure.
pub(crate) fn skip(reader: &mut Reader<'_>) -> Result<(), Error> {
    reader.take(2)?;
    skip_elements(reader, MAX_DEPTH)
}

fn skip_elements(reader: &mut Reader<'_>, depth: usize) -> Result<(), Error> {
    for _ in 0..reader.u2()? {
        reader.take(2)?;
        skip_value(reader, depth)?;
    }
    Ok(())
}

/// Skips an `element_value` (JVMS 4.7.16.1).
fn skip_value(reader: &mut Reader<'_>, depth: usize) -> Result<(), Error> {
    let tag = reader.u1()?;
    let Some(depth) = depth.checked_sub(1) else {
        return Err(reader.error(ErrorKind::BadAnnotation(tag)));
    };
    match tag {
        b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => {
            reader.take(2)?;
        }
        b'e' => {
            reader.take(4)?;
        }
        b'@' => {
            reader.take(2)?;
            skip_elements(reader, depth)?;
        }
        b'[' => {
            for _ in 0..reader.u2()? {
                skip_value(reader, depth)?;
            }
        }
        _ => return Err(reader.error(ErrorKind::BadAnnotation(tag))),
    }
    Ok(())
}
