//! What frames are made of: classes, methods with their lines, sites.

use std::borrow::Cow;

use lucce_callgraph::{MethodId, SiteId};

use super::Body;
use crate::limits::MAX_LINES;
use crate::wire::{In, Malformed, Out, Parsed};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ClassId(pub u32);

/// A class loader; 0 is the boot loader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct LoaderId(pub u32);

/// A loaded class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class<'a> {
    pub id: ClassId,
    pub loader: LoaderId,
    /// As Java prints it: `a.b.C$D`.
    pub name: Cow<'a, str>,
    pub source_file: Option<Cow<'a, str>>,
}

impl<'a> Body<'a> for Class<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.id.0);
        out.num(self.loader.0);
        out.text(&self.name);
        out.text_or_none(self.source_file.as_deref());
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Class {
            id: ClassId(input.small()?),
            loader: LoaderId(input.small()?),
            name: input.text()?.into(),
            source_file: input.text_or_none()?.map(Cow::from),
        })
    }
}

/// A method of a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Method<'a> {
    pub id: MethodId,
    pub class: ClassId,
    pub name: Cow<'a, str>,
    pub descriptor: Cow<'a, str>,
    pub access: u16,
    /// The line table, in the class file's order: (start bci, line).
    pub lines: Cow<'a, [(u16, u16)]>,
}

impl<'a> Body<'a> for Method<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.id.0);
        out.num(self.class.0);
        out.text(&self.name);
        out.text(&self.descriptor);
        out.num(self.access);
        encode_lines(self.lines.get(..MAX_LINES).unwrap_or(&self.lines), out);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Method {
            id: MethodId(input.small()?),
            class: ClassId(input.small()?),
            name: input.text()?.into(),
            descriptor: input.text()?.into(),
            access: input.small()?,
            lines: decode_lines(input)?.into(),
        })
    }
}

fn encode_lines(lines: &[(u16, u16)], out: &mut Out<'_>) {
    out.num(lines.len() as u64);
    let mut last = (0, 0);
    for &(bci, line) in lines {
        let next = (i64::from(bci), i64::from(line));
        out.signed(next.0 - last.0);
        out.signed(next.1 - last.1);
        last = next;
    }
}

fn decode_lines(input: &mut In<'_>) -> Parsed<Vec<(u16, u16)>> {
    let count: usize = input.small()?;
    // Two bytes at least per entry: a hostile count must not make us allocate.
    if count > MAX_LINES || count > input.0.len() / 2 {
        return Err(Malformed("line table longer than its record"));
    }
    let mut lines = Vec::with_capacity(count);
    let mut last = (0u16, 0u16);
    for _ in 0..count {
        last = (step(last.0, input)?, step(last.1, input)?);
        lines.push(last);
    }
    Ok(lines)
}

fn step(from: u16, input: &mut In<'_>) -> Parsed<u16> {
    let to = i64::from(from).checked_add(input.signed()?);
    to.and_then(|to| u16::try_from(to).ok())
        .ok_or(Malformed("line table out of range"))
}

/// A place in a method from which something is called or where an event happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site<'a> {
    pub id: SiteId,
    pub method: MethodId,
    /// -1: unknown.
    pub bci: i32,
    /// Stands instead of the line table's answer: -2 native, -1 unknown.
    pub line: Option<i32>,
    pub what: SiteKind<'a>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SiteKind<'a> {
    Call,
    /// `new` of the class with this descriptor: `Ljava/lang/String;`.
    New(Cow<'a, str>),
    /// An array with this descriptor: `[I`.
    Array(Cow<'a, str>),
    /// The native method itself.
    Native,
    /// A call of `CallContext.current()`.
    Current,
    Other,
}

impl<'a> Body<'a> for Site<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.id.0);
        out.num(self.method.0);
        out.signed(self.bci.into());
        out.byte(self.line.is_some().into());
        if let Some(line) = self.line {
            out.signed(line.into());
        }
        self.what.encode(out);
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(Site {
            id: SiteId(input.small()?),
            method: MethodId(input.small()?),
            bci: input.small_signed()?,
            line: match input.byte()? {
                0 => None,
                _ => Some(input.small_signed()?),
            },
            what: SiteKind::decode(input)?,
        })
    }
}

impl<'a> Body<'a> for SiteKind<'a> {
    fn encode(&self, out: &mut Out<'_>) {
        let (code, descriptor) = match self {
            SiteKind::Call => (1, None),
            SiteKind::New(descriptor) => (2, Some(descriptor)),
            SiteKind::Array(descriptor) => (3, Some(descriptor)),
            SiteKind::Native => (4, None),
            SiteKind::Current => (5, None),
            SiteKind::Other => (6, None),
        };
        out.byte(code);
        if let Some(descriptor) = descriptor {
            out.text(descriptor);
        }
    }

    fn decode(input: &mut In<'a>) -> Parsed<Self> {
        Ok(match input.byte()? {
            1 => SiteKind::Call,
            2 => SiteKind::New(input.text()?.into()),
            3 => SiteKind::Array(input.text()?.into()),
            4 => SiteKind::Native,
            5 => SiteKind::Current,
            // A later version may know more kinds: their frames are still right.
            _ => SiteKind::Other,
        })
    }
}

/// What one instance allocated at a `new` site takes, known when the class first is allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SiteSize {
    pub site: SiteId,
    pub bytes: u64,
}

impl Body<'_> for SiteSize {
    fn encode(&self, out: &mut Out<'_>) {
        out.num(self.site.0);
        out.num(self.bytes);
    }

    fn decode(input: &mut In<'_>) -> Parsed<Self> {
        Ok(SiteSize {
            site: SiteId(input.small()?),
            bytes: input.num()?,
        })
    }
}
