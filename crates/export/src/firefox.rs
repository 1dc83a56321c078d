//! `firefox`: the gzipped processed profile of profiler.firefox.com, which its page and `profiler-cli` read.
//!
//! Tables are lists of columns. Tables that all threads share are written from the run's own lists:
//! ```text
//! strings   names of frames, files, types and threads
//! funcs     a name and a file                 frames   a func and a line
//! stacks    a frame and the callers' stack    the run's nodes, without the root
//! threads   one for each thread and kind: samples (stack, weight), and a marker for each sample with the other values:
//!           type, count, context id and content id
//! ```
//! With the stream, a sample is one event at its time. Without it, a sample is a row, at the start of the run. Columns
//! are written one after the other, so single events are kept until then, in 40 bytes each.
//!
//! The crate `fxprof-processed-profile` is not used: its weights have 32 bits, so a sum of 2 GB overflows, and its
//! frames have no lines.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;
use serde_json::ser::to_writer;

use crate::format::{ExportCount, ExportFormat};
use crate::gzip::GzipWriter;
use crate::proto::InternTable;
use crate::run::{
    ExportEvent, ExportEventKind, ExportEventSource, ExportFrame, ExportNode, ExportRow, ExportRun,
};

pub struct FirefoxFormat;

/// The first version whose threads share their tables; the profiler itself upgrades older profiles.
const VERSION: u32 = 60;
const MARKER: &str = "lucce";

/// The data of a sample and its marker.
#[derive(Clone, Copy)]
struct FirefoxSample {
    node: u32,
    type_index: Option<u32>,
    context: u64,
    value: u64,
    /// In nanoseconds since the run's start.
    end_ns: u64,
    count: u64,
}

/// By thread and kind.
type SamplesByThread = BTreeMap<(Option<u32>, u32), Vec<FirefoxSample>>;

impl ExportFormat for FirefoxFormat {
    fn name(&self) -> &'static str {
        "firefox"
    }

    fn description(&self) -> &'static str {
        "For profiler.firefox.com: single events with their times if there is a stream"
    }

    fn has_times(&self) -> bool {
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
        events: Option<&ExportEventSource<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<ExportCount> {
        let mut threads = SamplesByThread::new();
        let mut number = 0;
        let mut keep = |event: &ExportEvent| {
            number += 1;
            let row = event.row;
            let of = threads.entry((row.thread, row.kind)).or_default();
            of.push(FirefoxSample::from_event(event));
            Ok(())
        };
        match events {
            Some(events) => events(&mut keep)?,
            None => run
                .rows
                .iter()
                .try_for_each(|row| keep(&event_at_start(*row)))?,
        }
        if threads.is_empty() {
            // The profiler treats a profile without threads as not loaded yet.
            threads.insert((None, run.main_kind), Vec::new());
        }
        let mut out = GzipWriter::new(out)?;
        let mut writer = FirefoxWriter {
            run,
            out: &mut out,
            has_times: events.is_some(),
        };
        writer.write_profile(&threads)?;
        out.finish()?;
        Ok(match events {
            Some(_) => ExportCount::Events(number),
            None => ExportCount::Stacks(number),
        })
    }
}

fn event_at_start(row: ExportRow) -> ExportEvent {
    ExportEvent {
        row,
        end_ns: 0,
        duration_ns: None,
    }
}

impl FirefoxSample {
    fn from_event(event: &ExportEvent) -> Self {
        let ExportEvent {
            row, end_ns: at, ..
        } = *event;
        FirefoxSample {
            node: row.node,
            type_index: row.type_index,
            context: row.context,
            value: row.value,
            end_ns: at,
            count: row.count,
        }
    }
}

struct FirefoxWriter<'w> {
    run: &'w ExportRun,
    out: &'w mut dyn Write,
    has_times: bool,
}

/// The weights of a kind.
struct WeightColumn {
    name: &'static str,
    weight_of: fn(&FirefoxSample) -> FirefoxWeight,
}

/// The form of a weight in the profile: an integer, or milliseconds for nanoseconds.
enum FirefoxWeight {
    Whole(u64),
    Nanos(u64),
}

impl WeightColumn {
    fn for_kind(kind: Option<&ExportEventKind>) -> Self {
        match kind.map(|kind| (kind.has_values, &*kind.unit)) {
            Some((true, "bytes")) => WeightColumn {
                name: "bytes",
                weight_of: |sample| FirefoxWeight::Whole(sample.value),
            },
            Some((true, "ns")) => WeightColumn {
                name: "tracing-ms",
                weight_of: |sample| FirefoxWeight::Nanos(sample.value),
            },
            Some((true, _)) => WeightColumn {
                name: "samples",
                weight_of: |sample| FirefoxWeight::Whole(sample.value),
            },
            _ => WeightColumn {
                name: "samples",
                weight_of: |sample| FirefoxWeight::Whole(sample.count),
            },
        }
    }
}

impl Serialize for FirefoxWeight {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            FirefoxWeight::Whole(number) => serializer.serialize_u64(*number),
            FirefoxWeight::Nanos(nanos) => serializer.serialize_f64(nanos_to_millis(*nanos)),
        }
    }
}

fn nanos_to_millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Indices of strings, and of the table rows that refer to them.
struct FirefoxTables {
    strings: InternTable<String>,
    /// Indexed by frame.
    funcs_of_frames: Vec<u64>,
    /// Indexed by func: its name and its source.
    funcs: Vec<(u64, Option<u64>)>,
    /// Indexed by source: its name.
    sources: Vec<u64>,
    /// Indexed by type and by kind.
    types: Vec<u64>,
    kinds: Vec<u64>,
}

impl FirefoxTables {
    fn from_run(run: &ExportRun) -> Self {
        let mut strings = InternTable::with_first_number(0);
        let mut sources = InternTable::with_first_number(0);
        let mut funcs = InternTable::with_first_number(0);
        let mut names = FirefoxTables {
            funcs_of_frames: Vec::with_capacity(run.frames.len()),
            funcs: Vec::new(),
            sources: Vec::new(),
            types: Vec::new(),
            kinds: Vec::new(),
            strings: InternTable::with_first_number(0),
        };
        for frame in &run.frames {
            let name = strings.intern(frame.qualified_name()).0;
            let source = frame.file.as_ref().map(|file| {
                let text = strings.intern(file.clone()).0;
                let (source, is_new) = sources.intern(text);
                if is_new {
                    names.sources.push(text);
                }
                source
            });
            let (func, is_new) = funcs.intern((name, source));
            if is_new {
                names.funcs.push((name, source));
            }
            names.funcs_of_frames.push(func);
        }
        let types = run.types.iter();
        names.types = types.map(|of| strings.intern(of.clone()).0).collect();
        let kinds = run.kinds.iter();
        names.kinds = kinds
            .map(|kind| strings.intern(kind.name.clone()).0)
            .collect();
        names.strings = strings;
        names
    }
}

impl FirefoxWriter<'_> {
    fn write_profile(&mut self, threads: &SamplesByThread) -> io::Result<()> {
        let names = FirefoxTables::from_run(self.run);
        write!(self.out, "{{\"meta\":")?;
        let meta = self.meta_json();
        to_writer(&mut *self.out, &meta)?;
        write!(self.out, ",\"libs\":[],\"shared\":{{")?;
        self.write_stack_table()?;
        self.write_frame_table(&names)?;
        self.write_func_table(&names)?;
        self.write_sources_and_strings(&names)?;
        write!(self.out, "}},\n\"threads\":[")?;
        for (at, (&(thread, kind), samples)) in threads.iter().enumerate() {
            write!(self.out, "{}", if at == 0 { "\n" } else { ",\n" })?;
            self.write_thread(at, (thread, kind), samples, &names)?;
        }
        writeln!(self.out, "]}}")
    }

    fn meta_json(&self) -> serde_json::Value {
        let run = self.run;
        let fields = [
            ("context", "Context", "string"),
            ("content", "Content", "string"),
            ("what", "Type", "unique-string"),
            ("count", "Events", "integer"),
            ("value", "Value", "integer"),
        ];
        let fields = fields
            .map(|(key, label, format)| json!({ "key": key, "label": label, "format": format }));
        json!({
            "interval": 1,
            "startTime": run.start_ns / 1_000_000,
            "processType": 0,
            "product": run.program_name(),
            "arguments": run.command,
            "importedFrom": "lucce",
            "stackwalk": 0,
            "version": 30,
            "preprocessedProfileVersion": VERSION,
            "symbolicated": true,
            "symbolicationNotSupported": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "keepProfileThreadOrder": true,
            "categories": [{ "name": "Other", "color": "grey", "subcategories": ["Other"] }],
            "markerSchema": [{
                "name": MARKER,
                "display": ["marker-chart", "marker-table"],
                "tableLabel": "{marker.data.what} {marker.data.context}",
                "tooltipLabel": "{marker.name}",
                "fields": fields,
            }],
            "extra": [{
                "label": "lucce",
                "entries": [{
                    "label": "Run",
                    "format": "string",
                    "value": run.id_text().unwrap_or_default(),
                }],
            }],
        })
    }

    /// Writes `"name":[…],` with a value for each item.
    fn write_column<T, V: Serialize>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        value: impl Fn(T) -> V,
    ) -> io::Result<()> {
        write!(self.out, "\"{name}\":[")?;
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.out.write_all(b",")?;
            }
            to_writer(&mut *self.out, &value(item))?;
        }
        self.out.write_all(b"],\n")
    }

    fn write_stack_table(&mut self) -> io::Result<()> {
        let nodes = self.run.nodes.get(1..).unwrap_or_default();
        write!(self.out, "\"stackTable\":{{")?;
        self.write_column("frame", nodes, |node: &ExportNode| node.frame)?;
        self.write_column("prefix", nodes, |node: &ExportNode| {
            node.caller.checked_sub(1)
        })?;
        writeln!(self.out, "\"length\":{}}},", nodes.len())
    }

    fn write_frame_table(&mut self, names: &FirefoxTables) -> io::Result<()> {
        let frames = &self.run.frames;
        write!(self.out, "\"frameTable\":{{")?;
        self.write_column("func", &names.funcs_of_frames, |func| *func)?;
        self.write_column("line", frames, ExportFrame::line_number)?;
        self.write_column("address", frames, |_| -1)?;
        for zero in ["inlineDepth", "category", "subcategory", "innerWindowID"] {
            self.write_column(zero, frames, |_| 0)?;
        }
        for none in ["nativeSymbol", "column"] {
            self.write_column(none, frames, |_| ())?;
        }
        writeln!(self.out, "\"length\":{}}},", frames.len())
    }

    fn write_func_table(&mut self, names: &FirefoxTables) -> io::Result<()> {
        let funcs = &names.funcs;
        write!(self.out, "\"funcTable\":{{")?;
        self.write_column("name", funcs, |(name, _)| *name)?;
        self.write_column("source", funcs, |(_, source)| *source)?;
        for no in ["isJS", "relevantForJS"] {
            self.write_column(no, funcs, |_| false)?;
        }
        self.write_column("resource", funcs, |_| -1)?;
        for none in ["lineNumber", "columnNumber"] {
            self.write_column(none, funcs, |_| ())?;
        }
        writeln!(self.out, "\"length\":{}}},", funcs.len())
    }

    /// Writes the strings, and the empty tables.
    fn write_sources_and_strings(&mut self, names: &FirefoxTables) -> io::Result<()> {
        let sources = &names.sources;
        write!(self.out, "\"sources\":{{")?;
        self.write_column("id", sources, |_| ())?;
        self.write_column("filename", sources, |name| *name)?;
        writeln!(self.out, "\"length\":{}}},", sources.len())?;
        write!(
            self.out,
            "\"resourceTable\":{{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]}},\n\
             \"nativeSymbols\":{{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]}},\n"
        )?;
        write!(self.out, "\"stringArray\":[")?;
        for (at, text) in names.strings.keys_in_order().into_iter().enumerate() {
            write!(self.out, "{}", if at == 0 { "\n" } else { ",\n" })?;
            to_writer(&mut *self.out, text)?;
        }
        write!(self.out, "]")
    }

    fn write_thread(
        &mut self,
        at: usize,
        (thread, number): (Option<u32>, u32),
        samples: &[FirefoxSample],
        names: &FirefoxTables,
    ) -> io::Result<()> {
        let run = self.run;
        let of = run.kinds.get(number as usize);
        let kind = of.map_or("", |kind| &*kind.name);
        let name = match thread.and_then(|thread| run.threads.get(thread as usize)) {
            Some(thread) => format!("{thread}: {kind}"),
            None => kind.to_owned(),
        };
        let end = run.duration_ns.map(nanos_to_millis);
        let head = json!({
            "name": name,
            "processType": "default",
            "processName": run.program_name(),
            "processStartupTime": 0,
            "processShutdownTime": end,
            "registerTime": 0,
            "unregisterTime": end,
            "pausedRanges": [],
            "isMainThread": at == 0,
            "showMarkersInTimeline": self.has_times,
            "pid": run.pid.to_string(),
            "tid": at,
        });
        // Its tables are columns, written one by one; the end of the object is written behind them.
        let head = head.to_string();
        let open = head.strip_suffix('}').unwrap_or(&head);
        writeln!(self.out, "{open},")?;
        let by_value = !(run.counts_first && number == run.main_kind);
        self.write_samples(samples, &WeightColumn::for_kind(of.filter(|_| by_value)))?;
        self.write_markers(samples, number, names)?;
        write!(self.out, "}}")
    }

    fn write_samples(
        &mut self,
        samples: &[FirefoxSample],
        weights: &WeightColumn,
    ) -> io::Result<()> {
        write!(self.out, "\"samples\":{{")?;
        self.write_column("stack", samples, |sample| sample.node.checked_sub(1))?;
        self.write_column("time", samples, |sample| nanos_to_millis(sample.end_ns))?;
        self.write_column("weight", samples, weights.weight_of)?;
        let (name, length) = (weights.name, samples.len());
        writeln!(self.out, "\"weightType\":\"{name}\",\"length\":{length}}},")
    }

    fn write_markers(
        &mut self,
        samples: &[FirefoxSample],
        kind: u32,
        names: &FirefoxTables,
    ) -> io::Result<()> {
        let run = self.run;
        let marker = names.kinds.get(kind as usize).copied();
        let kind = run.kinds.get(kind as usize);
        let lasts = self.has_times && kind.is_some_and(ExportEventKind::is_time);
        let start = |sample: &FirefoxSample| match lasts {
            true => nanos_to_millis(sample.end_ns.saturating_sub(sample.value)),
            false => nanos_to_millis(sample.end_ns),
        };
        write!(self.out, "\"markers\":{{")?;
        self.write_column("name", samples, |_| marker.unwrap_or(0))?;
        self.write_column("startTime", samples, start)?;
        self.write_column("endTime", samples, |sample| {
            lasts.then(|| nanos_to_millis(sample.end_ns))
        })?;
        // 0: instants; 1: markers with a start and an end.
        self.write_column("phase", samples, |_| u8::from(lasts))?;
        self.write_column("category", samples, |_| 0)?;
        self.write_column("data", samples, |sample| {
            MarkerData::from_sample(run, names, sample)
        })?;
        write!(self.out, "\"length\":{}}}", samples.len())
    }
}

/// The data of a marker.
#[derive(Serialize)]
struct MarkerData {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<u64>,
    count: u64,
    value: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<MarkerCause>,
}

#[derive(Serialize)]
struct MarkerCause {
    stack: u32,
    time: f64,
}

impl MarkerData {
    fn from_sample(run: &ExportRun, names: &FirefoxTables, sample: &FirefoxSample) -> Self {
        let row = ExportRow {
            node: sample.node,
            kind: 0,
            type_index: sample.type_index,
            thread: None,
            context: sample.context,
            count: sample.count,
            value: sample.value,
        };
        let what = sample
            .type_index
            .and_then(|what| names.types.get(what as usize));
        let stack = sample.node.checked_sub(1);
        MarkerData {
            r#type: MARKER,
            context: run.context_text(&row),
            content: run.content_id_text(&row),
            what: what.copied(),
            count: sample.count,
            value: sample.value,
            cause: stack.map(|stack| MarkerCause {
                stack,
                time: nanos_to_millis(sample.end_ns),
            }),
        }
    }
}
