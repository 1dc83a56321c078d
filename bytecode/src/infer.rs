//! The type state behind straight-line code (JVMS 4.10.1.9).

use crate::class::ClassFile;
use crate::code::Code;
use crate::error::{Error, ErrorKind};
use crate::frames::Frame;

/// Advances `frame` from its bci to another one in the same stretch of straight-line code.
pub(crate) fn advance<'a>(
    _class: &ClassFile<'a>,
    _code: &Code<'a>,
    _frame: &mut Frame<'a>,
    from: u32,
    _to: u32,
) -> Result<(), Error> {
    Err(Error::new(
        ErrorKind::BadTypeState,
        from as usize,
        "inference",
    ))
}
