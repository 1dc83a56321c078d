//! Descriptors (JVMS 4.3).

use crate::error::{BytecodeError, BytecodeErrorKind};

/// The parameters of a method descriptor, then its return type.
#[derive(Debug, Clone)]
pub(crate) struct DescriptorParameters<'a> {
    rest: &'a [u8],
}

impl<'a> DescriptorParameters<'a> {
    pub(crate) fn parse(descriptor: &'a [u8]) -> Result<Self, BytecodeError> {
        match descriptor.split_first() {
            Some((b'(', rest)) => Ok(Self { rest }),
            _ => Err(bad_descriptor()),
        }
    }

    /// The next parameter's descriptor.
    pub(crate) fn next(&mut self) -> Result<Option<&'a [u8]>, BytecodeError> {
        if self.rest.first() == Some(&b')') {
            return Ok(None);
        }
        let (one, rest) = split_field_type(self.rest)?;
        self.rest = rest;
        Ok(Some(one))
    }

    /// The return descriptor, once all parameters are read.
    pub(crate) fn return_type(&self) -> Result<&'a [u8], BytecodeError> {
        match self.rest.split_first() {
            Some((b')', b"V")) => Ok(b"V"),
            Some((b')', rest)) => single_field_type(rest),
            _ => Err(bad_descriptor()),
        }
    }
}

pub(crate) fn single_field_type(descriptor: &[u8]) -> Result<&[u8], BytecodeError> {
    match split_field_type(descriptor)? {
        (one, []) => Ok(one),
        _ => Err(bad_descriptor()),
    }
}

fn split_field_type(bytes: &[u8]) -> Result<(&[u8], &[u8]), BytecodeError> {
    let dimensions = bytes.iter().take_while(|&&b| b == b'[').count();
    let len = match bytes.get(dimensions) {
        Some(b'L') => {
            1 + bytes
                .iter()
                .position(|&b| b == b';')
                .ok_or_else(bad_descriptor)?
        }
        Some(b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z') => dimensions + 1,
        _ => return Err(bad_descriptor()),
    };
    bytes.split_at_checked(len).ok_or_else(bad_descriptor)
}

/// Returns the name in a `Class` constant of a reference type: `p/C` for `Lp/C;`; arrays are unchanged.
pub(crate) fn class_name(descriptor: &[u8]) -> &[u8] {
    match descriptor {
        [b'L', name @ .., b';'] => name,
        other => other,
    }
}

#[cold]
fn bad_descriptor() -> BytecodeError {
    BytecodeError::new(BytecodeErrorKind::BadDescriptor, 0, "descriptor")
}

#[cfg(test)]
mod descriptor_tests {
    use super::*;

    #[test]
    fn parameters_in_order() {
        let mut p = DescriptorParameters::parse(b"(I[[JLa/B;[Lc/D;Z)Le/F;").unwrap();
        let mut seen = vec![];
        while let Some(one) = p.next().unwrap() {
            seen.push(String::from_utf8_lossy(one).into_owned());
        }
        assert_eq!(seen, ["I", "[[J", "La/B;", "[Lc/D;", "Z"]);
        assert_eq!(p.return_type().unwrap(), b"Le/F;");
    }

    #[test]
    fn malformed_ones_are_refused() {
        for bad in ["", "I", "(", "(L", "(V)V", "([)V", "()", "()VV", "()II"] {
            let all = DescriptorParameters::parse(bad.as_bytes()).and_then(|mut p| {
                while p.next()?.is_some() {}
                p.return_type()
            });
            assert!(all.is_err(), "{bad}");
        }
    }
}
