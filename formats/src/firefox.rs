//! `firefox`: the processed profile of profiler.firefox.com, gzipped, whose page and `profiler-cli` read it.
//!
//! Tables are lists of columns. What all threads share is written from the run's own lists:
//! ```text
//! strings   frames' names, files, types, threads' names
//! funcs     a name and a file                 frames   a func and a line
//! stacks    a frame and the callers' stack    the run's nodes, without the root
//! threads   one for each thread and kind: samples (stack, weight), and a marker for each with what a sample has no room for:
//!           type, count, the context's number and its content id
//! ```
//! With the stream a sample is one event, at its time. Without it a sample is a row, and all are at the start of the run.
//! Columns are written one after the other, so single events are kept until then, packed: 40 bytes each.
//!
//! The crate `fxprof-processed-profile` is not used: its weights have 32 bits, so a sum of 2 GB is wrong, and its frames
//! have no lines.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;
use serde_json::ser::to_writer;

use crate::format::{Format, Written};
use crate::gzip::Gzip;
use crate::proto::Once;
use crate::run::{Event, Events, Frame, Kind, Node, Row, Run};

pub struct Firefox;

/// The first version whose threads share their tables; later ones are made from it by the profiler itself.
const VERSION: u32 = 60;
const MARKER: &str = "lucce";

/// What a sample and its marker are written from.
#[derive(Clone, Copy)]
struct Sample {
    node: u32,
    what: Option<u32>,
    number: u64,
    value: u64,
    /// Nanoseconds.
    at: u64,
    count: u64,
}

/// By thread and kind.
type Threads = BTreeMap<(Option<u32>, u32), Vec<Sample>>;

impl Format for Firefox {
    fn name(&self) -> &'static str {
        "firefox"
    }

    fn about(&self) -> &'static str {
        "For profiler.firefox.com: single events with their times if there is a stream"
    }

    fn has_times(&self) -> bool {
        true
    }

    fn has_contents(&self) -> bool {
        true
    }

    fn is_text(&self) -> bool {
        false
    }

    fn write(
        &self,
        run: &Run,
        events: Option<&Events<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<Written> {
        let mut threads = Threads::new();
        let mut number = 0;
        let mut keep = |event: &Event| {
            number += 1;
            let row = event.row;
            let of = threads.entry((row.thread, row.kind)).or_default();
            of.push(Sample::of(event));
            Ok(())
        };
        match events {
            Some(events) => events(&mut keep)?,
            None => run.rows.iter().try_for_each(|row| keep(&at_start(*row)))?,
        }
        if threads.is_empty() {
            // The profiler takes a profile without a thread for one that is not loaded yet.
            threads.insert((None, run.main_kind), Vec::new());
        }
        let mut out = Gzip::new(out)?;
        let mut writer = Writer {
            run,
            out: &mut out,
            has_times: events.is_some(),
        };
        writer.profile(&threads)?;
        out.finish()?;
        Ok(match events {
            Some(_) => Written::Events(number),
            None => Written::Stacks(number),
        })
    }
}

fn at_start(row: Row) -> Event {
    Event {
        row,
        at: 0,
        lasted: None,
    }
}

impl Sample {
    fn of(event: &Event) -> Self {
        let Event { row, at, .. } = *event;
        Sample {
            node: row.node,
            what: row.what,
            number: row.number,
            value: row.value,
            at,
            count: row.count,
        }
    }
}

struct Writer<'w> {
    run: &'w Run,
    out: &'w mut dyn Write,
    has_times: bool,
}

/// What weights of a kind are.
struct Weights {
    name: &'static str,
    of: fn(&Sample) -> Weight,
}

/// As the profile has it: whole, or milliseconds of nanoseconds.
enum Weight {
    Whole(u64),
    Nanos(u64),
}

impl Weights {
    fn of(kind: Option<&Kind>) -> Self {
        match kind.map(|kind| (kind.has_values, &*kind.unit)) {
            Some((true, "bytes")) => Weights {
                name: "bytes",
                of: |sample| Weight::Whole(sample.value),
            },
            Some((true, "ns")) => Weights {
                name: "tracing-ms",
                of: |sample| Weight::Nanos(sample.value),
            },
            Some((true, _)) => Weights {
                name: "samples",
                of: |sample| Weight::Whole(sample.value),
            },
            _ => Weights {
                name: "samples",
                of: |sample| Weight::Whole(sample.count),
            },
        }
    }
}

impl Serialize for Weight {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Weight::Whole(number) => serializer.serialize_u64(*number),
            Weight::Nanos(nanos) => serializer.serialize_f64(millis(*nanos)),
        }
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Numbers of strings, and what refers to them.
struct Names {
    strings: Once<String>,
    /// By frame.
    funcs_of_frames: Vec<u64>,
    /// By func, its name and its source.
    funcs: Vec<(u64, Option<u64>)>,
    /// By source, its name.
    sources: Vec<u64>,
    /// By type and by kind.
    types: Vec<u64>,
    kinds: Vec<u64>,
}

impl Names {
    fn of(run: &Run) -> Self {
        let mut strings = Once::from(0);
        let mut sources = Once::from(0);
        let mut funcs = Once::from(0);
        let mut names = Names {
            funcs_of_frames: Vec::with_capacity(run.frames.len()),
            funcs: Vec::new(),
            sources: Vec::new(),
            types: Vec::new(),
            kinds: Vec::new(),
            strings: Once::from(0),
        };
        for frame in &run.frames {
            let name = strings.number(frame.name()).0;
            let source = frame.file.as_ref().map(|file| {
                let text = strings.number(file.clone()).0;
                let (source, is_new) = sources.number(text);
                if is_new {
                    names.sources.push(text);
                }
                source
            });
            let (func, is_new) = funcs.number((name, source));
            if is_new {
                names.funcs.push((name, source));
            }
            names.funcs_of_frames.push(func);
        }
        let types = run.types.iter();
        names.types = types.map(|of| strings.number(of.clone()).0).collect();
        let kinds = run.kinds.iter();
        names.kinds = kinds
            .map(|kind| strings.number(kind.name.clone()).0)
            .collect();
        names.strings = strings;
        names
    }
}

impl Writer<'_> {
    fn profile(&mut self, threads: &Threads) -> io::Result<()> {
        let names = Names::of(self.run);
        write!(self.out, "{{\"meta\":")?;
        let meta = self.meta();
        to_writer(&mut *self.out, &meta)?;
        write!(self.out, ",\"libs\":[],\"shared\":{{")?;
        self.stacks()?;
        self.frames(&names)?;
        self.funcs(&names)?;
        self.named(&names)?;
        write!(self.out, "}},\n\"threads\":[")?;
        for (at, (&(thread, kind), samples)) in threads.iter().enumerate() {
            write!(self.out, "{}", if at == 0 { "\n" } else { ",\n" })?;
            self.thread(at, (thread, kind), samples, &names)?;
        }
        writeln!(self.out, "]}}")
    }

    fn meta(&self) -> serde_json::Value {
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
            "startTime": run.start / 1_000_000,
            "processType": 0,
            "product": run.program(),
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

    /// `"name":[…],` of something for each item.
    fn column<T, V: Serialize>(
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

    fn stacks(&mut self) -> io::Result<()> {
        let nodes = self.run.nodes.get(1..).unwrap_or_default();
        write!(self.out, "\"stackTable\":{{")?;
        self.column("frame", nodes, |node: &Node| node.frame)?;
        self.column("prefix", nodes, |node: &Node| node.caller.checked_sub(1))?;
        writeln!(self.out, "\"length\":{}}},", nodes.len())
    }

    fn frames(&mut self, names: &Names) -> io::Result<()> {
        let frames = &self.run.frames;
        write!(self.out, "\"frameTable\":{{")?;
        self.column("func", &names.funcs_of_frames, |func| *func)?;
        self.column("line", frames, Frame::line)?;
        self.column("address", frames, |_| -1)?;
        for zero in ["inlineDepth", "category", "subcategory", "innerWindowID"] {
            self.column(zero, frames, |_| 0)?;
        }
        for none in ["nativeSymbol", "column"] {
            self.column(none, frames, |_| ())?;
        }
        writeln!(self.out, "\"length\":{}}},", frames.len())
    }

    fn funcs(&mut self, names: &Names) -> io::Result<()> {
        let funcs = &names.funcs;
        write!(self.out, "\"funcTable\":{{")?;
        self.column("name", funcs, |(name, _)| *name)?;
        self.column("source", funcs, |(_, source)| *source)?;
        for no in ["isJS", "relevantForJS"] {
            self.column(no, funcs, |_| false)?;
        }
        self.column("resource", funcs, |_| -1)?;
        for none in ["lineNumber", "columnNumber"] {
            self.column(none, funcs, |_| ())?;
        }
        writeln!(self.out, "\"length\":{}}},", funcs.len())
    }

    /// Strings, and tables that are empty.
    fn named(&mut self, names: &Names) -> io::Result<()> {
        let sources = &names.sources;
        write!(self.out, "\"sources\":{{")?;
        self.column("id", sources, |_| ())?;
        self.column("filename", sources, |name| *name)?;
        writeln!(self.out, "\"length\":{}}},", sources.len())?;
        write!(
            self.out,
            "\"resourceTable\":{{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]}},\n\
             \"nativeSymbols\":{{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]}},\n"
        )?;
        write!(self.out, "\"stringArray\":[")?;
        for (at, text) in names.strings.in_order().into_iter().enumerate() {
            write!(self.out, "{}", if at == 0 { "\n" } else { ",\n" })?;
            to_writer(&mut *self.out, text)?;
        }
        write!(self.out, "]")
    }

    fn thread(
        &mut self,
        at: usize,
        (thread, number): (Option<u32>, u32),
        samples: &[Sample],
        names: &Names,
    ) -> io::Result<()> {
        let run = self.run;
        let of = run.kinds.get(number as usize);
        let kind = of.map_or("", |kind| &*kind.name);
        let name = match thread.and_then(|thread| run.threads.get(thread as usize)) {
            Some(thread) => format!("{thread}: {kind}"),
            None => kind.to_owned(),
        };
        let end = run.lasted.map(millis);
        let head = json!({
            "name": name,
            "processType": "default",
            "processName": run.program(),
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
        // Its tables are columns, written as they come: the end of the object is written behind them.
        let head = head.to_string();
        let open = head.strip_suffix('}').unwrap_or(&head);
        writeln!(self.out, "{open},")?;
        let by_value = !(run.counts_first && number == run.main_kind);
        self.samples(samples, &Weights::of(of.filter(|_| by_value)))?;
        self.markers(samples, number, names)?;
        write!(self.out, "}}")
    }

    fn samples(&mut self, samples: &[Sample], weights: &Weights) -> io::Result<()> {
        write!(self.out, "\"samples\":{{")?;
        self.column("stack", samples, |sample| sample.node.checked_sub(1))?;
        self.column("time", samples, |sample| millis(sample.at))?;
        self.column("weight", samples, weights.of)?;
        let (name, length) = (weights.name, samples.len());
        writeln!(self.out, "\"weightType\":\"{name}\",\"length\":{length}}},")
    }

    fn markers(&mut self, samples: &[Sample], kind: u32, names: &Names) -> io::Result<()> {
        let run = self.run;
        let marker = names.kinds.get(kind as usize).copied();
        let kind = run.kinds.get(kind as usize);
        let lasts = self.has_times && kind.is_some_and(Kind::is_time);
        let start = |sample: &Sample| match lasts {
            true => millis(sample.at.saturating_sub(sample.value)),
            false => millis(sample.at),
        };
        write!(self.out, "\"markers\":{{")?;
        self.column("name", samples, |_| marker.unwrap_or(0))?;
        self.column("startTime", samples, start)?;
        self.column("endTime", samples, |sample| {
            lasts.then(|| millis(sample.at))
        })?;
        // Instants, and what has a start and an end.
        self.column("phase", samples, |_| u8::from(lasts))?;
        self.column("category", samples, |_| 0)?;
        self.column("data", samples, |sample| Data::of(run, names, sample))?;
        write!(self.out, "\"length\":{}}}", samples.len())
    }
}

/// What a marker says.
#[derive(Serialize)]
struct Data {
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
    cause: Option<Cause>,
}

#[derive(Serialize)]
struct Cause {
    stack: u32,
    time: f64,
}

impl Data {
    fn of(run: &Run, names: &Names, sample: &Sample) -> Self {
        let row = Row {
            node: sample.node,
            kind: 0,
            what: sample.what,
            thread: None,
            number: sample.number,
            count: sample.count,
            value: sample.value,
        };
        let what = sample.what.and_then(|what| names.types.get(what as usize));
        let stack = sample.node.checked_sub(1);
        Data {
            r#type: MARKER,
            context: run.number(&row),
            content: run.content(&row),
            what: what.copied(),
            count: sample.count,
            value: sample.value,
            cause: stack.map(|stack| Cause {
                stack,
                time: millis(sample.at),
            }),
        }
    }
}
