//! Records that describe frames: classes, methods with their lines, sites.

use std::borrow::Cow;

use lucce_callgraph::{MethodId, SiteId};

use super::RecordBody;
use crate::limits::MAX_LINES;
use crate::record_codec::{MalformedRecord, Parsed, RecordDecoder, RecordEncoder};

/// The id of a loaded class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct ClassId(pub u32);

/// A class loader; 0 is the boot loader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct LoaderId(pub u32);

/// A place that classes were loaded from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct CodeSourceId(pub u32);

/// Where classes were loaded from: the URL of their protection domain's code source (JVM specification, section 5.3.5, and
/// `java.security.CodeSource`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeSourceRecord<'a> {
    pub id: CodeSourceId,
    /// `file:/srv/app/classes/`, `jrt:/java.sql`.
    pub location: Cow<'a, str>,
}

impl<'a> RecordBody<'a> for CodeSourceRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.id.0);
        out.put_text(&self.location);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(CodeSourceRecord {
            id: CodeSourceId(input.read_small()?),
            location: input.read_text()?.into(),
        })
    }
}

/// A loaded class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassRecord<'a> {
    pub id: ClassId,
    pub loader: LoaderId,
    /// In Java's form: `a.b.C$D`.
    pub name: Cow<'a, str>,
    pub source_file: Option<Cow<'a, str>>,
}

impl<'a> RecordBody<'a> for ClassRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.id.0);
        out.put_number(self.loader.0);
        out.put_text(&self.name);
        out.put_optional_text(self.source_file.as_deref());
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(ClassRecord {
            id: ClassId(input.read_small()?),
            loader: LoaderId(input.read_small()?),
            name: input.read_text()?.into(),
            source_file: input.read_optional_text()?.map(Cow::from),
        })
    }
}

/// A class was loaded from a code source. Classes of the boot loader, and classes without a protection domain, have no such
/// record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassSource {
    pub class: ClassId,
    pub source: CodeSourceId,
}

impl RecordBody<'_> for ClassSource {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.class.0);
        out.put_number(self.source.0);
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(ClassSource {
            class: ClassId(input.read_small()?),
            source: CodeSourceId(input.read_small()?),
        })
    }
}

/// A method of a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MethodRecord<'a> {
    pub id: MethodId,
    pub class: ClassId,
    pub name: Cow<'a, str>,
    pub descriptor: Cow<'a, str>,
    pub access: u16,
    /// The line table, in the class file's order: (start bci, line).
    pub lines: Cow<'a, [(u16, u16)]>,
}

impl<'a> RecordBody<'a> for MethodRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.id.0);
        out.put_number(self.class.0);
        out.put_text(&self.name);
        out.put_text(&self.descriptor);
        out.put_number(self.access);
        encode_lines(self.lines.get(..MAX_LINES).unwrap_or(&self.lines), out);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(MethodRecord {
            id: MethodId(input.read_small()?),
            class: ClassId(input.read_small()?),
            name: input.read_text()?.into(),
            descriptor: input.read_text()?.into(),
            access: input.read_small()?,
            lines: decode_lines(input)?.into(),
        })
    }
}

fn encode_lines(lines: &[(u16, u16)], out: &mut RecordEncoder<'_>) {
    out.put_number(lines.len() as u64);
    let mut last = (0, 0);
    for &(bci, line) in lines {
        let next = (i64::from(bci), i64::from(line));
        out.put_signed(next.0 - last.0);
        out.put_signed(next.1 - last.1);
        last = next;
    }
}

fn decode_lines(input: &mut RecordDecoder<'_>) -> Parsed<Vec<(u16, u16)>> {
    let count: usize = input.read_small()?;
    // An entry has at least two bytes: a hostile count must not cause an allocation.
    if count > MAX_LINES || count > input.0.len() / 2 {
        return Err(MalformedRecord("line table longer than its record"));
    }
    let mut lines = Vec::with_capacity(count);
    let mut last = (0u16, 0u16);
    for _ in 0..count {
        last = (decode_step(last.0, input)?, decode_step(last.1, input)?);
        lines.push(last);
    }
    Ok(lines)
}

fn decode_step(from: u16, input: &mut RecordDecoder<'_>) -> Parsed<u16> {
    let to = i64::from(from).checked_add(input.read_signed()?);
    to.and_then(|to| u16::try_from(to).ok())
        .ok_or(MalformedRecord("line table out of range"))
}

/// A position in a method that calls something or at which an event happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteRecord<'a> {
    pub id: SiteId,
    pub method: MethodId,
    /// -1: unknown.
    pub bci: i32,
    /// Overrides the line table: -2 native, -1 unknown.
    pub line: Option<i32>,
    pub kind: SiteKind<'a>,
}

/// What a site does.
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

impl<'a> RecordBody<'a> for SiteRecord<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.id.0);
        out.put_number(self.method.0);
        out.put_signed(self.bci.into());
        out.put_byte(self.line.is_some().into());
        if let Some(line) = self.line {
            out.put_signed(line.into());
        }
        self.kind.encode_fields(out);
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(SiteRecord {
            id: SiteId(input.read_small()?),
            method: MethodId(input.read_small()?),
            bci: input.read_small_signed()?,
            line: match input.read_byte()? {
                0 => None,
                _ => Some(input.read_small_signed()?),
            },
            kind: SiteKind::decode_fields(input)?,
        })
    }
}

impl<'a> RecordBody<'a> for SiteKind<'a> {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        let (code, descriptor) = match self {
            SiteKind::Call => (1, None),
            SiteKind::New(descriptor) => (2, Some(descriptor)),
            SiteKind::Array(descriptor) => (3, Some(descriptor)),
            SiteKind::Native => (4, None),
            SiteKind::Current => (5, None),
            SiteKind::Other => (6, None),
        };
        out.put_byte(code);
        if let Some(descriptor) = descriptor {
            out.put_text(descriptor);
        }
    }

    fn decode_fields(input: &mut RecordDecoder<'a>) -> Parsed<Self> {
        Ok(match input.read_byte()? {
            1 => SiteKind::Call,
            2 => SiteKind::New(input.read_text()?.into()),
            3 => SiteKind::Array(input.read_text()?.into()),
            4 => SiteKind::Native,
            5 => SiteKind::Current,
            // A later version may have more kinds; their frames are still right.
            _ => SiteKind::Other,
        })
    }
}

/// The size in bytes of one instance allocated at a `new` site, known once the class is first allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SiteSize {
    pub site: SiteId,
    pub bytes: u64,
}

impl RecordBody<'_> for SiteSize {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.site.0);
        out.put_number(self.bytes);
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(SiteSize {
            site: SiteId(input.read_small()?),
            bytes: input.read_number()?,
        })
    }
}
