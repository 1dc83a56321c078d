//! `pprof`: the profile of `go tool pprof` and other readers (profile.proto, gzip).
//!
//! | kind | sample types |
//! |---|---|
//! | `alloc` | `alloc_objects`, `alloc_space` |
//! | live followed objects | `inuse_objects`, `inuse_space` |
//! | `lock` | `contentions`, `delay` |
//! | any other | its name, and its values with a suffix for the unit |
//!
//! A sample is a row. Its labels are `kind`, `type`, `thread`, `context` (the id that `lucce decode` accepts) and, if
//! requested, `content` (the id that is equal in every run). Fields of the message may come in any order: first
//! strings, functions and lines, when a row first needs them, then all samples. Similar data then lies together, which
//! compresses by a tenth better than samples behind the data that they need.

use std::io::{self, Write};
use std::mem;

use prost::Message;

use crate::format::{ExportCount, ExportFormat};
use crate::gzip::GzipWriter;
use crate::proto::{InternTable, ProtobufWriter};
use crate::run::{ExportEventKind, ExportEventSource, ExportRow, ExportRun};

pub struct PprofFormat;

/// Tags of `message Profile`.
mod tag {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING_TABLE: u32 = 6;
    pub const TIME_NANOS: u32 = 9;
    pub const DURATION_NANOS: u32 = 10;
    pub const COMMENT: u32 = 13;
    pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

#[derive(Clone, PartialEq, Message)]
struct PprofValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct PprofSample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<PprofLabel>,
}

#[derive(Clone, PartialEq, Message)]
struct PprofLabel {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct PprofMapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
}

#[derive(Clone, PartialEq, Message)]
struct PprofLocation {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<PprofLine>,
}

#[derive(Clone, PartialEq, Message)]
struct PprofLine {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct PprofFunction {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The index of a kind's first sample type, and whether it has a second one.
struct SampleColumns {
    first: usize,
    has_values: bool,
}

impl ExportFormat for PprofFormat {
    fn name(&self) -> &'static str {
        "pprof"
    }

    fn description(&self) -> &'static str {
        "For `go tool pprof`, and all that read its profiles: all kinds of events, with types, threads and numbers as labels"
    }

    /// The index of a location for each frame of each sample.
    fn estimate_stack_bytes(&self, run: &ExportRun) -> u64 {
        2 * run.count_row_frames()
    }

    fn is_compressed(&self) -> bool {
        true
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
        let out = GzipWriter::new(out)?;
        let mut writer = PprofWriter::new(run, out);
        writer.write_header()?;
        for row in &run.rows {
            writer.write_dependencies(row)?;
        }
        for row in &run.rows {
            writer.write_sample(row)?;
        }
        writer.fields.into_inner().finish()?;
        Ok(ExportCount::Stacks(run.rows.len() as u64))
    }
}

struct PprofWriter<'w, W> {
    run: &'w ExportRun,
    fields: ProtobufWriter<W>,
    strings: InternTable<String>,
    functions: InternTable<(i64, i64, i64)>,
    /// Indexed by frame: its location; 0: not written yet.
    locations: Vec<u64>,
    next_location: u64,
    /// Indexed by node: whether its frame and its callers' frames have locations.
    has_locations: Vec<bool>,
    /// Indexed by kind.
    columns: Vec<SampleColumns>,
    width: usize,
}

const MAPPING: u64 = 1;

impl<'w, W: Write> PprofWriter<'w, W> {
    fn new(run: &'w ExportRun, out: W) -> Self {
        let mut width = 0;
        let columns = run.kinds.iter().map(|kind| {
            let first = width;
            width += 1 + usize::from(kind.has_values);
            let has_values = kind.has_values;
            SampleColumns { first, has_values }
        });
        PprofWriter {
            run,
            fields: ProtobufWriter::new(out),
            strings: InternTable::with_first_number(0),
            functions: InternTable::with_first_number(1),
            locations: vec![0; run.frames.len()],
            has_locations: vec![false; run.nodes.len()],
            next_location: 1,
            columns: columns.collect(),
            width,
        }
    }

    fn intern_string(&mut self, text: &str) -> io::Result<i64> {
        let (number, is_new) = self.strings.intern(text.to_owned());
        if is_new {
            self.fields.write_string(tag::STRING_TABLE, text)?;
        }
        Ok(number as i64)
    }

    fn write_header(&mut self) -> io::Result<()> {
        let run = self.run;
        // The format requires the empty string first.
        self.intern_string("")?;
        let mut default = 0;
        for (at, kind) in run.kinds.iter().enumerate() {
            let [count, sum] = sample_type_names(kind);
            let count = self.write_sample_type(&count, "count")?;
            let mut shown = count;
            if kind.has_values {
                let sum = self.write_sample_type(&sum, pprof_unit(&kind.unit))?;
                shown = if run.counts_first { count } else { sum };
            }
            if at == run.main_kind as usize {
                default = shown;
            }
        }
        self.fields
            .write_varint(tag::DEFAULT_SAMPLE_TYPE, default)?;
        let filename = self.intern_string(run.program_name())?;
        let mapping = PprofMapping {
            id: MAPPING,
            filename,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
        };
        self.fields.write_message(tag::MAPPING, &mapping)?;
        self.fields
            .write_varint(tag::TIME_NANOS, run.start_ns as i64)?;
        if let Some(lasted) = run.duration_ns {
            self.fields
                .write_varint(tag::DURATION_NANOS, lasted as i64)?;
        }
        self.write_comment(&format!("command: {}", run.command))?;
        self.write_comment(&format!("pid: {}", run.pid))?;
        match run.id_text() {
            Some(id) => self.write_comment(&format!("run: {id}")),
            None => Ok(()),
        }
    }

    /// Returns the index of its name.
    fn write_sample_type(&mut self, name: &str, unit: &str) -> io::Result<i64> {
        let (r#type, unit) = (self.intern_string(name)?, self.intern_string(unit)?);
        self.fields
            .write_message(tag::SAMPLE_TYPE, &PprofValueType { r#type, unit })?;
        Ok(r#type)
    }

    fn write_comment(&mut self, text: &str) -> io::Result<()> {
        let text = self.intern_string(text)?;
        self.fields.write_varint(tag::COMMENT, text)
    }

    /// Writes the data to which the row's sample will refer.
    fn write_dependencies(&mut self, row: &ExportRow) -> io::Result<()> {
        let run = self.run;
        let mut at = row.node;
        while let Some(node) = run.nodes.get(at as usize).filter(|_| at != ExportRun::ROOT) {
            // All callers of a reached node have been reached.
            let is_reached = self.has_locations.get_mut(at as usize);
            if is_reached.is_none_or(|reached| mem::replace(reached, true)) {
                break;
            }
            self.intern_location(node.frame)?;
            at = node.caller;
        }
        self.intern_labels(row).map(drop)
    }

    fn write_sample(&mut self, row: &ExportRow) -> io::Result<()> {
        let run = self.run;
        let mut location_id = Vec::new();
        for frame in run.stack_frames(row.node) {
            location_id.push(self.intern_location(frame)?);
        }
        let mut value = vec![0; self.width];
        if let Some(columns) = self.columns.get(row.kind as usize) {
            let amounts = [row.count, row.value];
            let own = value.iter_mut().skip(columns.first);
            for (cell, amount) in own.zip(amounts).take(1 + usize::from(columns.has_values)) {
                *cell = i64::try_from(amount).unwrap_or(i64::MAX);
            }
        }
        let label = self.intern_labels(row)?;
        let sample = PprofSample {
            location_id,
            value,
            label,
        };
        self.fields.write_message(tag::SAMPLE, &sample)
    }

    fn intern_labels(&mut self, row: &ExportRow) -> io::Result<Vec<PprofLabel>> {
        let run = self.run;
        let content = run.content_id_text(row);
        let number = run.context_text(row);
        let texts = [
            ("kind", run.event_kind(row).map(|kind| kind.name.as_str())),
            ("type", run.type_name(row)),
            ("thread", run.thread_name(row)),
            ("context", number.as_deref()),
            ("content", content.as_deref()),
        ];
        let mut labels = Vec::with_capacity(texts.len());
        for (key, text) in texts {
            if let Some(text) = text {
                let (key, str) = (self.intern_string(key)?, self.intern_string(text)?);
                labels.push(PprofLabel { key, str });
            }
        }
        Ok(labels)
    }

    fn intern_location(&mut self, number: u32) -> io::Result<u64> {
        let run = self.run;
        let location = self.locations.get(number as usize).copied();
        let (Some(location), Some(frame)) = (location, run.frames.get(number as usize)) else {
            return Ok(0);
        };
        if location != 0 {
            return Ok(location);
        }
        let function_id = self.intern_function(frame)?;
        let id = self.next_location;
        self.next_location += 1;
        if let Some(location) = self.locations.get_mut(number as usize) {
            *location = id;
        }
        let line = frame.line_number().map_or(0, i64::from);
        let location = PprofLocation {
            id,
            mapping_id: MAPPING,
            line: vec![PprofLine { function_id, line }],
        };
        self.fields.write_message(tag::LOCATION, &location)?;
        Ok(id)
    }

    fn intern_function(&mut self, frame: &crate::run::ExportFrame) -> io::Result<u64> {
        let short = frame.qualified_name();
        let name = self.intern_string(&short)?;
        let system_name = self.intern_string(&(short + &frame.descriptor))?;
        let filename = self.intern_string(frame.file.as_deref().unwrap_or_default())?;
        let (id, is_new) = self.functions.intern((name, system_name, filename));
        if is_new {
            let function = PprofFunction {
                id,
                name,
                system_name,
                filename,
            };
            self.fields.write_message(tag::FUNCTION, &function)?;
        }
        Ok(id)
    }
}

/// Returns the names of the sample types of events and of their values.
pub fn sample_type_names(kind: &ExportEventKind) -> [String; 2] {
    match (kind.tool_names.pprof, kind.unit.as_str()) {
        (Some(names), _) => names.map(str::to_owned),
        (None, "bytes") => [kind.name.clone(), format!("{}_space", kind.name)],
        (None, "ns") => [kind.name.clone(), format!("{}_delay", kind.name)],
        (None, _) => [kind.name.clone(), format!("{}_value", kind.name)],
    }
}

pub fn pprof_unit(unit: &str) -> &str {
    match unit {
        "ns" => "nanoseconds",
        "" => "count",
        other => other,
    }
}
