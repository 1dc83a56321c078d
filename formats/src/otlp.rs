//! `otlp`: the profiles signal of OpenTelemetry (`opentelemetry.proto.profiles.v1development`), as its collector receives it.
//!
//! ```text
//! ProfilesData = ResourceProfiles ─ ScopeProfiles ─ Profile, Profile, …    one for each kind's events, one for their values
//!                dictionary: strings, functions, lines, stacks, attributes  all refer to it by number; number 0 is none
//! ```
//! A sample is a row, with attributes: `thread.name`, `lucce.type`, `lucce.context` (the number), `lucce.content`.
//! A profile lies in two other messages, and before a message stands its length: profiles are written twice, the first time
//! to see how long they become. The dictionary follows, so what it has is known by then.
//!
//! Bytes are those of `ExportProfilesServiceRequest`, too: [`OtlpRequests`] makes as many of them of a run as a collector wants, which
//! takes no message that is too large. The crate `opentelemetry-proto` is not used: it brings the whole
//! SDK into the command, and holds a message whole.

use std::io::{self, Write};

use prost::Message;

use crate::format::{Format, Written};
use crate::proto::{Fields, Once};
use crate::run::{Events, Kind, Row, Run};

pub struct Otlp;

/// Tags of the messages that are written in parts.
mod tag {
    pub const RESOURCE_PROFILES: u32 = 1;
    pub const DICTIONARY: u32 = 2;
    pub const RESOURCE: u32 = 1;
    pub const SCOPE_PROFILES: u32 = 2;
    pub const SCOPE: u32 = 1;
    pub const PROFILES: u32 = 2;
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLES: u32 = 2;
    pub const PROFILE_ID: u32 = 7;
    pub const TIME: u32 = 3;
    pub const DURATION: u32 = 4;
    pub const MAPPINGS: u32 = 1;
    pub const LOCATIONS: u32 = 2;
    pub const FUNCTIONS: u32 = 3;
    pub const LINKS: u32 = 4;
    pub const STRINGS: u32 = 5;
    pub const ATTRIBUTES: u32 = 6;
    pub const STACKS: u32 = 7;
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int32, tag = "1")]
    r#type: i32,
    #[prost(int32, tag = "2")]
    unit: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(int32, tag = "1")]
    stack: i32,
    #[prost(int32, repeated, tag = "2")]
    attributes: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Stack {
    /// Innermost first.
    #[prost(int32, repeated, tag = "1")]
    locations: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(message, repeated, tag = "3")]
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(int32, tag = "1")]
    function: i32,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
struct Function {
    #[prost(int32, tag = "1")]
    name: i32,
    #[prost(int32, tag = "2")]
    system_name: i32,
    #[prost(int32, tag = "3")]
    file: i32,
}

/// A key and its value, with its key's number in attributes of samples, or by its text in those of the resource.
#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(int32, tag = "1")]
    key: i32,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

/// Of its kinds of values these two.
#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(int64, optional, tag = "3")]
    number: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Nothing {}

impl Format for Otlp {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn about(&self) -> &'static str {
        "For OpenTelemetry: profiles as its collector receives them (v1development)"
    }

    /// The number of a location for each frame of a stack.
    fn bytes_of_stacks(&self, run: &Run) -> u64 {
        2 * run.frames_of_stacks()
    }

    fn has_contents(&self) -> bool {
        true
    }

    fn is_text(&self) -> bool {
        false
    }

    fn write(&self, run: &Run, _: Option<&Events<'_>>, out: &mut dyn Write) -> io::Result<Written> {
        Part {
            run,
            rows: &run.rows,
            number: 0,
        }
        .write(out)?;
        Ok(Written::Stacks(run.rows.len() as u64))
    }
}

/// Requests to a collector, which have all rows of a run together.
pub struct OtlpRequests<'r> {
    run: &'r Run,
    rows: &'r [Row],
    /// No two requests of the same times have the same part.
    part: u32,
    /// How many rows to try with.
    guess: usize,
}

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtlpRequest {
    pub bytes: Vec<u8>,
    /// How many of the run's rows, from the first one that is left, it has.
    pub rows: usize,
}

impl<'r> OtlpRequests<'r> {
    /// Those behind the first `done` ones.
    #[must_use]
    pub fn new(run: &'r Run, done: usize, part: u32) -> Self {
        OtlpRequests {
            run,
            rows: run.rows.get(done..).unwrap_or_default(),
            part,
            guess: 1 << 12,
        }
    }

    /// The next rows that fit into so many bytes; one row is a request whatever it takes. `None`: there are no more.
    pub fn next(&mut self, limit: usize) -> Option<OtlpRequest> {
        let mut many = self.guess.min(self.rows.len());
        while let Some(rows) = self.rows.get(..many).filter(|rows| !rows.is_empty()) {
            let (run, number) = (self.run, self.part);
            let limit = if many == 1 { usize::MAX } else { limit };
            let mut bytes = Bounded::new(limit);
            if (Part { run, rows, number }).write(&mut bytes).is_ok() {
                self.rows = self.rows.get(many..).unwrap_or_default();
                self.part += 1;
                // Others may be smaller.
                self.guess = many.saturating_mul(2);
                let bytes = bytes.bytes;
                return Some(OtlpRequest { bytes, rows: many });
            }
            many /= 2;
        }
        None
    }
}

/// Takes no more than so many bytes.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Bounded {
    fn new(limit: usize) -> Self {
        let bytes = Vec::new();
        Bounded { bytes, limit }
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Some of a run's rows.
struct Part<'r> {
    run: &'r Run,
    rows: &'r [Row],
    number: u32,
}

impl Part<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let run = self.run;
        let mut dictionary = Dictionary::new(run);
        let columns = Column::all(run);
        let has_rows = |column: &Column| self.rows.iter().any(|row| row.kind == column.kind);
        let columns: Vec<_> = columns.into_iter().filter(has_rows).collect();
        let mut lengths = Vec::with_capacity(columns.len());
        for column in &columns {
            let mut length = Length(0);
            column.write(self, &mut dictionary, &mut length)?;
            lengths.push(length.0);
        }
        let mut inner = Vec::new();
        Fields::new(&mut inner).message(tag::SCOPE, &scope())?;
        let profiles: u64 = lengths.iter().map(|length| framed(*length)).sum();
        let scope_length = inner.len() as u64 + profiles;
        let mut outer = Vec::new();
        Fields::new(&mut outer).message(tag::RESOURCE, &resource(run))?;
        let resource_length = outer.len() as u64 + framed(scope_length);

        Fields::new(&mut *out).length(tag::RESOURCE_PROFILES, resource_length)?;
        out.write_all(&outer)?;
        Fields::new(&mut *out).length(tag::SCOPE_PROFILES, scope_length)?;
        out.write_all(&inner)?;
        for (column, length) in columns.iter().zip(lengths) {
            Fields::new(&mut *out).length(tag::PROFILES, length)?;
            column.write(self, &mut dictionary, out)?;
        }
        let mut length = Length(0);
        dictionary.write(&mut length)?;
        Fields::new(&mut *out).length(tag::DICTIONARY, length.0)?;
        dictionary.write(out)
    }
}

/// A message's length with its tag, which is a small one, and its length before it.
fn framed(length: u64) -> u64 {
    1 + prost::encoding::encoded_len_varint(length) as u64 + length
}

/// Counts what is written.
struct Length(u64);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn scope() -> Scope {
    Scope {
        name: "lucce".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn resource(run: &Run) -> Resource {
    let text = |key: &str, text: &str| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            text: Some(text.to_owned()),
            number: None,
        }),
    };
    let pid = KeyValue {
        key: "process.pid".to_owned(),
        value: Some(AnyValue {
            text: None,
            number: Some(i64::from(run.pid)),
        }),
    };
    let mut attributes = vec![
        text("service.name", run.program()),
        text("process.command_line", &run.command),
        text("process.runtime.name", "java"),
        pid,
    ];
    if let Some(id) = run.id_text() {
        attributes.push(text("lucce.run", &id));
    }
    Resource { attributes }
}

/// What becomes a profile: events of a kind, or their values.
struct Column {
    kind: u32,
    name: String,
    unit: String,
    of: fn(&Row) -> u64,
}

impl Column {
    /// Those of the kind that is shown first come first.
    fn all(run: &Run) -> Vec<Self> {
        let mut all = Vec::new();
        for (number, kind) in run.kinds.iter().enumerate() {
            let number = number as u32;
            let mut own = Self::of(number, kind);
            if run.counts_first && number == run.main_kind {
                own.reverse();
            }
            let at = if number == run.main_kind {
                0
            } else {
                all.len()
            };
            all.splice(at..at, own);
        }
        all
    }

    fn of(number: u32, kind: &Kind) -> Vec<Self> {
        let [count, sum] = crate::pprof::names(kind);
        let counts = Column {
            kind: number,
            name: count,
            unit: "count".to_owned(),
            of: |row| row.count,
        };
        let sums = kind.has_values.then(|| Column {
            kind: number,
            name: sum,
            unit: crate::pprof::unit(&kind.unit).to_owned(),
            of: |row| row.value,
        });
        sums.into_iter().chain([counts]).collect()
    }

    fn write(
        &self,
        of: &Part<'_>,
        dictionary: &mut Dictionary<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let run = of.run;
        let mut fields = Fields::new(out);
        let sample_type = ValueType {
            r#type: dictionary.string(&self.name),
            unit: dictionary.string(&self.unit),
        };
        fields.message(tag::SAMPLE_TYPE, &sample_type)?;
        for row in of.rows.iter().filter(|row| row.kind == self.kind) {
            let sample = Sample {
                stack: dictionary.stack(row.node),
                attributes: dictionary.attributes_of(row),
                values: vec![i64::try_from((self.of)(row)).unwrap_or(i64::MAX)],
            };
            fields.message(tag::SAMPLES, &sample)?;
        }
        fields.fixed(tag::TIME, run.start)?;
        if let Some(lasted) = run.lasted {
            fields.number(tag::DURATION, lasted as i64)?;
        }
        fields.bytes(tag::PROFILE_ID, &self.id(of))
    }

    /// 16 bytes that are another profile's only if it is of the same run, kind, values, times and part: a request that is sent
    /// twice, because its answer was lost, is known by them.
    fn id(&self, of: &Part<'_>) -> [u8; 16] {
        let run = of.run;
        let times = [run.start, run.lasted.unwrap_or(0), of.number.into()];
        let times = crc32fast::hash(times.map(u64::to_be_bytes).as_flattened());
        let name = crc32fast::hash(self.name.as_bytes());
        let id = run.id.unwrap_or(run.start ^ u64::from(run.pid));
        let own = u64::from(times) << 32 | u64::from(name) | 1 << 63;
        (u128::from(id) << 64 | u128::from(own)).to_be_bytes()
    }
}

/// What samples refer to. Number 0 of each table is none.
struct Dictionary<'d> {
    run: &'d Run,
    strings: Once<String>,
    functions: Once<Function>,
    /// By frame, its location, and by node, its stack; 0: it has none yet.
    locations: Numbers,
    stacks: Numbers,
    attributes: Once<(&'static str, String)>,
}

/// Numbers in the order of first use.
struct Numbers {
    of: Vec<i32>,
    /// By number.
    in_order: Vec<u32>,
}

impl Numbers {
    fn for_each_of(number: usize) -> Self {
        Numbers {
            of: vec![0; number],
            in_order: Vec::new(),
        }
    }

    fn number(&mut self, of: u32) -> i32 {
        let Some(number) = self.of.get_mut(of as usize) else {
            return 0;
        };
        if *number == 0 {
            self.in_order.push(of);
            *number = self.in_order.len() as i32;
        }
        *number
    }
}

impl<'d> Dictionary<'d> {
    fn new(run: &'d Run) -> Self {
        let mut strings = Once::from(0);
        strings.number(String::new());
        let mut attributes = Once::from(0);
        attributes.number(("", String::new()));
        let mut dictionary = Dictionary {
            run,
            strings,
            functions: Once::from(0),
            locations: Numbers::for_each_of(run.frames.len()),
            stacks: Numbers::for_each_of(run.nodes.len()),
            attributes,
        };
        dictionary.functions.number(Function::default());
        for key in [
            "thread.name",
            "lucce.type",
            "lucce.context",
            "lucce.content",
        ] {
            dictionary.string(key);
        }
        dictionary
    }

    fn string(&mut self, text: &str) -> i32 {
        self.strings.number(text.to_owned()).0 as i32
    }

    /// Its locations and their names have numbers from now on, too.
    fn stack(&mut self, node: u32) -> i32 {
        if node == Run::ROOT {
            return 0;
        }
        let run = self.run;
        let known = self.stacks.in_order.len();
        let number = self.stacks.number(node);
        if self.stacks.in_order.len() > known {
            for frame in run.stack(node) {
                self.location(frame);
            }
        }
        number
    }

    fn location(&mut self, frame: u32) -> i32 {
        let known = self.locations.in_order.len();
        let number = self.locations.number(frame);
        if self.locations.in_order.len() > known {
            self.function(frame);
        }
        number
    }

    fn function(&mut self, frame: u32) -> i32 {
        let Some(frame) = self.run.frames.get(frame as usize) else {
            return 0;
        };
        let name = frame.name();
        let function = Function {
            name: self.string(&name),
            system_name: self.string(&(name + &frame.descriptor)),
            file: self.string(frame.file.as_deref().unwrap_or_default()),
        };
        self.functions.number(function).0 as i32
    }

    fn attributes_of(&mut self, row: &Row) -> Vec<i32> {
        let run = self.run;
        let texts = [
            ("thread.name", run.thread(row).map(str::to_owned)),
            ("lucce.type", run.what(row).map(str::to_owned)),
            ("lucce.context", run.number(row)),
            ("lucce.content", run.content(row)),
        ];
        let texts = texts.into_iter();
        let number = |(key, text): (&'static str, Option<String>)| {
            Some(self.attributes.number((key, text?)).0 as i32)
        };
        texts.filter_map(number).collect()
    }

    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let run = self.run;
        let mut fields = Fields::new(out);
        fields.message(tag::MAPPINGS, &Nothing {})?;
        fields.message(tag::LINKS, &Nothing {})?;
        fields.message(tag::LOCATIONS, &Location::default())?;
        for frame in self.locations.in_order.clone() {
            let line = run
                .frames
                .get(frame as usize)
                .and_then(|frame| frame.line());
            let line = Line {
                function: self.function(frame),
                line: line.map_or(0, i64::from),
            };
            fields.message(tag::LOCATIONS, &Location { lines: vec![line] })?;
        }
        for function in self.functions.in_order() {
            fields.message(tag::FUNCTIONS, function)?;
        }
        fields.message(tag::STACKS, &Stack::default())?;
        for node in self.stacks.in_order.clone() {
            let locations = run.stack(node).map(|frame| self.locations.number(frame));
            let locations = locations.collect();
            fields.message(tag::STACKS, &Stack { locations })?;
        }
        for (key, text) in self.attributes.in_order() {
            let key = self.strings.known(&(*key).to_owned()).unwrap_or(0) as i32;
            let value = (key != 0).then(|| AnyValue {
                text: Some(text.clone()),
                number: None,
            });
            fields.message(tag::ATTRIBUTES, &Attribute { key, value })?;
        }
        for text in self.strings.in_order() {
            fields.text(tag::STRINGS, text)?;
        }
        Ok(())
    }
}
