//! `pprof`: the profile of `go tool pprof` and of all that read it (profile.proto, gzip).
//!
//! | kind | sample types |
//! |---|---|
//! | `alloc` | `alloc_objects`, `alloc_space` |
//! | followed objects that are alive | `inuse_objects`, `inuse_space` |
//! | `lock` | `contentions`, `delay` |
//! | any other | its name, and with a suffix for the unit its values |
//!
//! A sample is a row; its labels are `kind`, `type`, `thread`, `context` (the number that `lucce decode` knows) and, if asked
//! for, `content` (the id that is equal in every run). Fields of the message come in any order: first strings, functions
//! and lines, when a row needs them for the first time, then all samples. What is alike lies together so, which packs better
//! by a tenth than where each sample stands behind what it needs.

use std::io::{self, Write};
use std::mem;

use prost::Message;

use crate::format::{Format, Written};
use crate::gzip::Gzip;
use crate::proto::{Fields, Once};
use crate::run::{Events, Kind, Row, Run};

pub struct Pprof;

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
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
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
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// A kind's first sample type, and how it has a second one.
struct Columns {
    first: usize,
    has_values: bool,
}

impl Format for Pprof {
    fn name(&self) -> &'static str {
        "pprof"
    }

    fn about(&self) -> &'static str {
        "For `go tool pprof`, and all that read its profiles: all kinds of events, with types, threads and numbers as labels"
    }

    /// The number of a location for each frame of each sample.
    fn bytes_of_stacks(&self, run: &Run) -> u64 {
        2 * run.frames_of_rows()
    }

    fn is_packed(&self) -> bool {
        true
    }

    fn has_contents(&self) -> bool {
        true
    }

    fn is_text(&self) -> bool {
        false
    }

    fn write(&self, run: &Run, _: Option<&Events<'_>>, out: &mut dyn Write) -> io::Result<Written> {
        let out = Gzip::new(out)?;
        let mut writer = Writer::new(run, out);
        writer.head()?;
        for row in &run.rows {
            writer.wanted_by(row)?;
        }
        for row in &run.rows {
            writer.row(row)?;
        }
        writer.fields.into_inner().finish()?;
        Ok(Written::Stacks(run.rows.len() as u64))
    }
}

struct Writer<'w, W> {
    run: &'w Run,
    fields: Fields<W>,
    strings: Once<String>,
    functions: Once<(i64, i64, i64)>,
    /// By frame, its location; 0: not yet written.
    locations: Vec<u64>,
    next_location: u64,
    /// By node, whether its frame and its callers' have locations.
    reached: Vec<bool>,
    /// By kind.
    columns: Vec<Columns>,
    width: usize,
}

const MAPPING: u64 = 1;

impl<'w, W: Write> Writer<'w, W> {
    fn new(run: &'w Run, out: W) -> Self {
        let mut width = 0;
        let columns = run.kinds.iter().map(|kind| {
            let first = width;
            width += 1 + usize::from(kind.has_values);
            let has_values = kind.has_values;
            Columns { first, has_values }
        });
        Writer {
            run,
            fields: Fields::new(out),
            strings: Once::from(0),
            functions: Once::from(1),
            locations: vec![0; run.frames.len()],
            reached: vec![false; run.nodes.len()],
            next_location: 1,
            columns: columns.collect(),
            width,
        }
    }

    fn string(&mut self, text: &str) -> io::Result<i64> {
        let (number, is_new) = self.strings.number(text.to_owned());
        if is_new {
            self.fields.text(tag::STRING_TABLE, text)?;
        }
        Ok(number as i64)
    }

    fn head(&mut self) -> io::Result<()> {
        let run = self.run;
        // The format wants the empty one first.
        self.string("")?;
        let mut default = 0;
        for (at, kind) in run.kinds.iter().enumerate() {
            let [count, sum] = names(kind);
            let count = self.sample_type(&count, "count")?;
            let mut shown = count;
            if kind.has_values {
                let sum = self.sample_type(&sum, unit(&kind.unit))?;
                shown = if run.counts_first { count } else { sum };
            }
            if at == run.main_kind as usize {
                default = shown;
            }
        }
        self.fields.number(tag::DEFAULT_SAMPLE_TYPE, default)?;
        let filename = self.string(run.program())?;
        let mapping = Mapping {
            id: MAPPING,
            filename,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
        };
        self.fields.message(tag::MAPPING, &mapping)?;
        self.fields.number(tag::TIME_NANOS, run.start as i64)?;
        if let Some(lasted) = run.lasted {
            self.fields.number(tag::DURATION_NANOS, lasted as i64)?;
        }
        self.comment(&format!("command: {}", run.command))?;
        self.comment(&format!("pid: {}", run.pid))?;
        match run.id_text() {
            Some(id) => self.comment(&format!("run: {id}")),
            None => Ok(()),
        }
    }

    /// The number of its name.
    fn sample_type(&mut self, name: &str, unit: &str) -> io::Result<i64> {
        let (r#type, unit) = (self.string(name)?, self.string(unit)?);
        self.fields
            .message(tag::SAMPLE_TYPE, &ValueType { r#type, unit })?;
        Ok(r#type)
    }

    fn comment(&mut self, text: &str) -> io::Result<()> {
        let text = self.string(text)?;
        self.fields.number(tag::COMMENT, text)
    }

    /// What the row's sample will refer to.
    fn wanted_by(&mut self, row: &Row) -> io::Result<()> {
        let run = self.run;
        let mut at = row.node;
        while let Some(node) = run.nodes.get(at as usize).filter(|_| at != Run::ROOT) {
            // Behind a node that was reached all have been.
            let is_reached = self.reached.get_mut(at as usize);
            if is_reached.is_none_or(|reached| mem::replace(reached, true)) {
                break;
            }
            self.location(node.frame)?;
            at = node.caller;
        }
        self.labels(row).map(drop)
    }

    fn row(&mut self, row: &Row) -> io::Result<()> {
        let run = self.run;
        let mut location_id = Vec::new();
        for frame in run.stack(row.node) {
            location_id.push(self.location(frame)?);
        }
        let mut value = vec![0; self.width];
        if let Some(columns) = self.columns.get(row.kind as usize) {
            let amounts = [row.count, row.value];
            let own = value.iter_mut().skip(columns.first);
            for (cell, amount) in own.zip(amounts).take(1 + usize::from(columns.has_values)) {
                *cell = i64::try_from(amount).unwrap_or(i64::MAX);
            }
        }
        let label = self.labels(row)?;
        let sample = Sample {
            location_id,
            value,
            label,
        };
        self.fields.message(tag::SAMPLE, &sample)
    }

    fn labels(&mut self, row: &Row) -> io::Result<Vec<Label>> {
        let run = self.run;
        let content = run.content(row);
        let number = run.number(row);
        let texts = [
            ("kind", run.kind(row).map(|kind| kind.name.as_str())),
            ("type", run.what(row)),
            ("thread", run.thread(row)),
            ("context", number.as_deref()),
            ("content", content.as_deref()),
        ];
        let mut labels = Vec::with_capacity(texts.len());
        for (key, text) in texts {
            if let Some(text) = text {
                let (key, str) = (self.string(key)?, self.string(text)?);
                labels.push(Label { key, str });
            }
        }
        Ok(labels)
    }

    fn location(&mut self, number: u32) -> io::Result<u64> {
        let run = self.run;
        let known = self.locations.get(number as usize).copied();
        let (Some(known), Some(frame)) = (known, run.frames.get(number as usize)) else {
            return Ok(0);
        };
        if known != 0 {
            return Ok(known);
        }
        let function_id = self.function(frame)?;
        let id = self.next_location;
        self.next_location += 1;
        if let Some(known) = self.locations.get_mut(number as usize) {
            *known = id;
        }
        let line = frame.line().map_or(0, i64::from);
        let location = Location {
            id,
            mapping_id: MAPPING,
            line: vec![Line { function_id, line }],
        };
        self.fields.message(tag::LOCATION, &location)?;
        Ok(id)
    }

    fn function(&mut self, frame: &crate::run::Frame) -> io::Result<u64> {
        let short = frame.name();
        let name = self.string(&short)?;
        let system_name = self.string(&(short + &frame.descriptor))?;
        let filename = self.string(frame.file.as_deref().unwrap_or_default())?;
        let (id, is_new) = self.functions.number((name, system_name, filename));
        if is_new {
            let function = Function {
                id,
                name,
                system_name,
                filename,
            };
            self.fields.message(tag::FUNCTION, &function)?;
        }
        Ok(id)
    }
}

/// What events and their values are called.
pub fn names(kind: &Kind) -> [String; 2] {
    match (kind.words.pprof, kind.unit.as_str()) {
        (Some(names), _) => names.map(str::to_owned),
        (None, "bytes") => [kind.name.clone(), format!("{}_space", kind.name)],
        (None, "ns") => [kind.name.clone(), format!("{}_delay", kind.name)],
        (None, _) => [kind.name.clone(), format!("{}_value", kind.name)],
    }
}

pub fn unit(unit: &str) -> &str {
    match unit {
        "ns" => "nanoseconds",
        "" => "count",
        other => other,
    }
}
