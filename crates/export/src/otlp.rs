//! `otlp`: the profiles signal of OpenTelemetry (`opentelemetry.proto.profiles.v1development`), as its collector
//! accepts it.
//!
//! ```text
//! ProfilesData = ResourceProfiles ─ ScopeProfiles ─ Profile, Profile, …    for each kind: its events, and their values
//!                dictionary: strings, functions, lines, stacks, attributes  referred to by index; index 0 is none
//! ```
//! A sample is a row, with the attributes `thread.name`, `lucce.type`, `lucce.context` (the context id) and
//! `lucce.content`. It has no link to a span: it sums the events of many spans, and tags, which separate events, have
//! 256 values at most. A profile lies in two other messages, and each message is preceded by its length. So profiles are
//! written twice, the first time only for their length. The dictionary follows when its content is known.
//!
//! The bytes are also those of `ExportProfilesServiceRequest`. [`OtlpRequests`] splits a run into several requests,
//! because collectors limit the size of a message. The crate `opentelemetry-proto` is not used: it depends on the whole
//! SDK and keeps a whole message in memory.

use std::io::{self, Write};

use prost::Message;

use crate::format::{ExportCount, ExportFormat};
use crate::proto::{InternTable, ProtobufWriter};
use crate::run::{ExportEventKind, ExportEventSource, ExportRow, ExportRun};

pub struct OtlpFormat;

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
struct OtlpValueType {
    #[prost(int32, tag = "1")]
    r#type: i32,
    #[prost(int32, tag = "2")]
    unit: i32,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpSample {
    #[prost(int32, tag = "1")]
    stack: i32,
    #[prost(int32, repeated, tag = "2")]
    attributes: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpStack {
    /// Innermost first.
    #[prost(int32, repeated, tag = "1")]
    locations: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpLocation {
    #[prost(message, repeated, tag = "3")]
    lines: Vec<OtlpLine>,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpLine {
    #[prost(int32, tag = "1")]
    function: i32,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
struct OtlpFunction {
    #[prost(int32, tag = "1")]
    name: i32,
    #[prost(int32, tag = "2")]
    system_name: i32,
    #[prost(int32, tag = "3")]
    file: i32,
}

/// An attribute. Its key is an index in attributes of samples, and a text in attributes of the resource.
#[derive(Clone, PartialEq, Message)]
struct OtlpAttribute {
    #[prost(int32, tag = "1")]
    key: i32,
    #[prost(message, optional, tag = "2")]
    value: Option<OtlpAnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpKeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<OtlpAnyValue>,
}

/// The two kinds of values that are used.
#[derive(Clone, PartialEq, Message)]
struct OtlpAnyValue {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
    #[prost(int64, optional, tag = "3")]
    number: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpResource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<OtlpKeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct OtlpScope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct EmptyMessage {}

impl ExportFormat for OtlpFormat {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn description(&self) -> &'static str {
        "For OpenTelemetry: profiles as its collector receives them (v1development)"
    }

    /// The index of a location for each frame of a stack.
    fn estimate_stack_bytes(&self, run: &ExportRun) -> u64 {
        2 * run.count_stack_frames()
    }

    fn has_content_ids(&self) -> bool {
        true
    }

    fn is_text(&self) -> bool {
        false
    }

    fn write(
        &self,
        run: &ExportRun,
        _: Option<&ExportEventSource<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<ExportCount> {
        OtlpRowBatch {
            run,
            rows: &run.rows,
            part: 0,
        }
        .write_profiles(out)?;
        Ok(ExportCount::Stacks(run.rows.len() as u64))
    }
}

/// The requests that together have all rows of a run.
pub struct OtlpRequests<'r> {
    run: &'r ExportRun,
    rows: &'r [ExportRow],
    /// Distinguishes requests with the same times.
    part: u32,
    /// How many rows to try next.
    guess: usize,
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtlpRequest {
    pub bytes: Vec<u8>,
    /// The number of rows in it, from the first remaining one.
    pub rows: usize,
}

impl<'r> OtlpRequests<'r> {
    /// Requests for the rows behind the first `done` ones.
    #[must_use]
    pub fn new(run: &'r ExportRun, done: usize, part: u32) -> Self {
        OtlpRequests {
            run,
            rows: run.rows.get(done..).unwrap_or_default(),
            part,
            guess: 1 << 12,
        }
    }

    /// Returns a request with the next rows that fit into `limit` bytes, at least one row. `None`: no rows are left.
    pub fn next_request(&mut self, limit: usize) -> Option<OtlpRequest> {
        let mut many = self.guess.min(self.rows.len());
        while let Some(rows) = self.rows.get(..many).filter(|rows| !rows.is_empty()) {
            let (run, number) = (self.run, self.part);
            let limit = if many == 1 { usize::MAX } else { limit };
            let mut bytes = BoundedBuffer::new(limit);
            if (OtlpRowBatch {
                run,
                rows,
                part: number,
            })
            .write_profiles(&mut bytes)
            .is_ok()
            {
                self.rows = self.rows.get(many..).unwrap_or_default();
                self.part += 1;
                // Later rows may be smaller.
                self.guess = many.saturating_mul(2);
                let bytes = bytes.bytes;
                return Some(OtlpRequest { bytes, rows: many });
            }
            many /= 2;
        }
        None
    }
}

/// A buffer that accepts a limited number of bytes.
struct BoundedBuffer {
    bytes: Vec<u8>,
    limit: usize,
}

impl BoundedBuffer {
    fn new(limit: usize) -> Self {
        let bytes = Vec::new();
        BoundedBuffer { bytes, limit }
    }
}

impl Write for BoundedBuffer {
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

/// A range of a run's rows.
struct OtlpRowBatch<'r> {
    run: &'r ExportRun,
    rows: &'r [ExportRow],
    part: u32,
}

impl OtlpRowBatch<'_> {
    fn write_profiles(&self, out: &mut dyn Write) -> io::Result<()> {
        let run = self.run;
        let mut dictionary = OtlpDictionary::new(run);
        let columns = ProfileColumn::columns_of_run(run);
        let has_rows = |column: &ProfileColumn| self.rows.iter().any(|row| row.kind == column.kind);
        let columns: Vec<_> = columns.into_iter().filter(has_rows).collect();
        let mut lengths = Vec::with_capacity(columns.len());
        for column in &columns {
            let mut length = LengthCounter(0);
            column.write_profile(self, &mut dictionary, &mut length)?;
            lengths.push(length.0);
        }
        let mut inner = Vec::new();
        ProtobufWriter::new(&mut inner).write_message(tag::SCOPE, &instrumentation_scope())?;
        let profiles: u64 = lengths.iter().map(|length| framed_length(*length)).sum();
        let scope_length = inner.len() as u64 + profiles;
        let mut outer = Vec::new();
        ProtobufWriter::new(&mut outer).write_message(tag::RESOURCE, &process_resource(run))?;
        let resource_length = outer.len() as u64 + framed_length(scope_length);

        ProtobufWriter::new(&mut *out)
            .write_length_prefix(tag::RESOURCE_PROFILES, resource_length)?;
        out.write_all(&outer)?;
        ProtobufWriter::new(&mut *out).write_length_prefix(tag::SCOPE_PROFILES, scope_length)?;
        out.write_all(&inner)?;
        for (column, length) in columns.iter().zip(lengths) {
            ProtobufWriter::new(&mut *out).write_length_prefix(tag::PROFILES, length)?;
            column.write_profile(self, &mut dictionary, out)?;
        }
        let mut length = LengthCounter(0);
        dictionary.write_dictionary(&mut length)?;
        ProtobufWriter::new(&mut *out).write_length_prefix(tag::DICTIONARY, length.0)?;
        dictionary.write_dictionary(out)
    }
}

/// Returns the size of a message together with its tag, which is one byte, and its length field.
fn framed_length(length: u64) -> u64 {
    1 + prost::encoding::encoded_len_varint(length) as u64 + length
}

/// Counts the bytes written.
struct LengthCounter(u64);

impl Write for LengthCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn instrumentation_scope() -> OtlpScope {
    OtlpScope {
        name: "lucce".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn process_resource(run: &ExportRun) -> OtlpResource {
    let text = |key: &str, text: &str| OtlpKeyValue {
        key: key.to_owned(),
        value: Some(OtlpAnyValue {
            text: Some(text.to_owned()),
            number: None,
        }),
    };
    let pid = OtlpKeyValue {
        key: "process.pid".to_owned(),
        value: Some(OtlpAnyValue {
            text: None,
            number: Some(i64::from(run.pid)),
        }),
    };
    let mut attributes = vec![
        text("service.name", run.program_name()),
        text("process.command_line", &run.command),
        text("process.runtime.name", "java"),
        pid,
    ];
    if let Some(id) = run.id_text() {
        attributes.push(text("lucce.run", &id));
    }
    OtlpResource { attributes }
}

/// A profile: the events of a kind, or their values.
struct ProfileColumn {
    kind: u32,
    name: String,
    unit: String,
    value_of_row: fn(&ExportRow) -> u64,
}

impl ProfileColumn {
    /// Returns the profiles; those of the main kind come first.
    fn columns_of_run(run: &ExportRun) -> Vec<Self> {
        let mut all = Vec::new();
        for (number, kind) in run.kinds.iter().enumerate() {
            let number = number as u32;
            let mut own = Self::columns_of_kind(number, kind);
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

    fn columns_of_kind(number: u32, kind: &ExportEventKind) -> Vec<Self> {
        let [count, sum] = crate::pprof::sample_type_names(kind);
        let counts = ProfileColumn {
            kind: number,
            name: count,
            unit: "count".to_owned(),
            value_of_row: |row| row.count,
        };
        let sums = kind.has_values.then(|| ProfileColumn {
            kind: number,
            name: sum,
            unit: crate::pprof::pprof_unit(&kind.unit).to_owned(),
            value_of_row: |row| row.value,
        });
        sums.into_iter().chain([counts]).collect()
    }

    fn write_profile(
        &self,
        of: &OtlpRowBatch<'_>,
        dictionary: &mut OtlpDictionary<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let run = of.run;
        let mut fields = ProtobufWriter::new(out);
        let sample_type = OtlpValueType {
            r#type: dictionary.intern_string(&self.name),
            unit: dictionary.intern_string(&self.unit),
        };
        fields.write_message(tag::SAMPLE_TYPE, &sample_type)?;
        for row in of.rows.iter().filter(|row| row.kind == self.kind) {
            let sample = OtlpSample {
                stack: dictionary.intern_stack(row.node),
                attributes: dictionary.intern_attributes(row),
                values: vec![i64::try_from((self.value_of_row)(row)).unwrap_or(i64::MAX)],
            };
            fields.write_message(tag::SAMPLES, &sample)?;
        }
        fields.write_fixed64(tag::TIME, run.start_ns)?;
        if let Some(lasted) = run.duration_ns {
            fields.write_varint(tag::DURATION, lasted as i64)?;
        }
        fields.write_bytes(tag::PROFILE_ID, &self.profile_id(of))
    }

    /// Returns a profile id of 16 bytes. It is equal only for the same run, kind, values, times and part.
    ///
    /// A request that is sent again because its answer was lost is thereby recognized.
    fn profile_id(&self, of: &OtlpRowBatch<'_>) -> [u8; 16] {
        let run = of.run;
        let times = [run.start_ns, run.duration_ns.unwrap_or(0), of.part.into()];
        let times = crc32fast::hash(times.map(u64::to_be_bytes).as_flattened());
        let name = crc32fast::hash(self.name.as_bytes());
        let id = run.id.unwrap_or(run.start_ns ^ u64::from(run.pid));
        let own = u64::from(times) << 32 | u64::from(name) | 1 << 63;
        (u128::from(id) << 64 | u128::from(own)).to_be_bytes()
    }
}

/// The tables to which samples refer. Index 0 of each table is none.
struct OtlpDictionary<'d> {
    run: &'d ExportRun,
    strings: InternTable<String>,
    functions: InternTable<OtlpFunction>,
    /// Locations by frame, stacks by node; 0: none yet.
    locations: IndexNumbering,
    stacks: IndexNumbering,
    attributes: InternTable<(&'static str, String)>,
}

/// Indices in the order of first use.
struct IndexNumbering {
    numbers: Vec<i32>,
    /// Indexed by the new index.
    in_order: Vec<u32>,
}

impl IndexNumbering {
    fn with_index_count(number: usize) -> Self {
        IndexNumbering {
            numbers: vec![0; number],
            in_order: Vec::new(),
        }
    }

    fn intern_index(&mut self, of: u32) -> i32 {
        let Some(number) = self.numbers.get_mut(of as usize) else {
            return 0;
        };
        if *number == 0 {
            self.in_order.push(of);
            *number = self.in_order.len() as i32;
        }
        *number
    }
}

impl<'d> OtlpDictionary<'d> {
    fn new(run: &'d ExportRun) -> Self {
        let mut strings = InternTable::with_first_number(0);
        strings.intern(String::new());
        let mut attributes = InternTable::with_first_number(0);
        attributes.intern(("", String::new()));
        let mut dictionary = OtlpDictionary {
            run,
            strings,
            functions: InternTable::with_first_number(0),
            locations: IndexNumbering::with_index_count(run.frames.len()),
            stacks: IndexNumbering::with_index_count(run.nodes.len()),
            attributes,
        };
        dictionary.functions.intern(OtlpFunction::default());
        for key in [
            "thread.name",
            "lucce.type",
            "lucce.context",
            "lucce.content",
        ] {
            dictionary.intern_string(key);
        }
        dictionary
    }

    fn intern_string(&mut self, text: &str) -> i32 {
        self.strings.intern(text.to_owned()).0 as i32
    }

    /// Returns the index of a node's stack; its locations and names get indices as well.
    fn intern_stack(&mut self, node: u32) -> i32 {
        if node == ExportRun::ROOT {
            return 0;
        }
        let run = self.run;
        let before = self.stacks.in_order.len();
        let number = self.stacks.intern_index(node);
        if self.stacks.in_order.len() > before {
            for frame in run.stack_frames(node) {
                self.intern_location(frame);
            }
        }
        number
    }

    fn intern_location(&mut self, frame: u32) -> i32 {
        let before = self.locations.in_order.len();
        let number = self.locations.intern_index(frame);
        if self.locations.in_order.len() > before {
            self.intern_function(frame);
        }
        number
    }

    fn intern_function(&mut self, frame: u32) -> i32 {
        let Some(frame) = self.run.frames.get(frame as usize) else {
            return 0;
        };
        let name = frame.qualified_name();
        let function = OtlpFunction {
            name: self.intern_string(&name),
            system_name: self.intern_string(&(name + &frame.descriptor)),
            file: self.intern_string(frame.file.as_deref().unwrap_or_default()),
        };
        self.functions.intern(function).0 as i32
    }

    fn intern_attributes(&mut self, row: &ExportRow) -> Vec<i32> {
        let run = self.run;
        let texts = [
            ("thread.name", run.thread_name(row).map(str::to_owned)),
            ("lucce.type", run.type_name(row).map(str::to_owned)),
            ("lucce.context", run.context_text(row)),
            ("lucce.content", run.content_id_text(row)),
        ];
        let texts = texts.into_iter();
        let number = |(key, text): (&'static str, Option<String>)| {
            Some(self.attributes.intern((key, text?)).0 as i32)
        };
        texts.filter_map(number).collect()
    }

    fn write_dictionary(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let run = self.run;
        let mut fields = ProtobufWriter::new(out);
        fields.write_message(tag::MAPPINGS, &EmptyMessage {})?;
        fields.write_message(tag::LINKS, &EmptyMessage {})?;
        fields.write_message(tag::LOCATIONS, &OtlpLocation::default())?;
        for frame in self.locations.in_order.clone() {
            let line = run
                .frames
                .get(frame as usize)
                .and_then(|frame| frame.line_number());
            let line = OtlpLine {
                function: self.intern_function(frame),
                line: line.map_or(0, i64::from),
            };
            fields.write_message(tag::LOCATIONS, &OtlpLocation { lines: vec![line] })?;
        }
        for function in self.functions.keys_in_order() {
            fields.write_message(tag::FUNCTIONS, function)?;
        }
        fields.write_message(tag::STACKS, &OtlpStack::default())?;
        for node in self.stacks.in_order.clone() {
            let locations = run
                .stack_frames(node)
                .map(|frame| self.locations.intern_index(frame));
            let locations = locations.collect();
            fields.write_message(tag::STACKS, &OtlpStack { locations })?;
        }
        for (key, text) in self.attributes.keys_in_order() {
            let key = self.strings.get(&(*key).to_owned()).unwrap_or(0) as i32;
            let value = (key != 0).then(|| OtlpAnyValue {
                text: Some(text.clone()),
                number: None,
            });
            fields.write_message(tag::ATTRIBUTES, &OtlpAttribute { key, value })?;
        }
        for text in self.strings.keys_in_order() {
            fields.write_string(tag::STRINGS, text)?;
        }
        Ok(())
    }
}
