//! `perfetto`: a trace for ui.perfetto.dev and its trace processor, with the stream's events on the tracks of their
//! threads.
//!
//! ```text
//! file    = packet, packet, …          each is written as it comes
//! packet  = time, event                an event with a duration has two, for its begin and its end; else it is an instant
//!           + names, frames, stacks    that the event is the first to refer to
//! ```
//! An event's name is its type, and its category is the kind. It has its whole stack, its value, and the context id.
//! Without the stream, each row is an instant at the start of the run, with its count.
//!
//! An end closes the slice that began last on its track, so partly overlapping slices would get wrong ends: see
//! [`SliceNesting`].

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

use prost::Message;

use crate::format::{ExportCount, ExportFormat};
use crate::proto::{InternTable, ProtobufWriter};
use crate::run::{ExportEvent, ExportEventSource, ExportRow, ExportRun};

pub struct PerfettoFormat;

/// `Trace.packet`.
const PACKET: u32 = 1;
const SEQUENCE: u32 = 1;
/// Flags of a packet: earlier packets' data is invalid; this packet needs earlier packets' data.
const CLEARED: u32 = 1;
const NEEDED: u32 = 2;
const BOOT_TIME: u32 = 6;
const REAL_TIME: u32 = 1;
const PROCESS: u64 = 1;

#[derive(Clone, Copy)]
enum TrackEventPhase {
    Begin = 1,
    End = 2,
    Instant = 3,
}

#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(message, optional, tag = "6")]
    clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    clocks: Vec<PerfettoClock>,
}

#[derive(Clone, PartialEq, Message)]
struct PerfettoClock {
    #[prost(uint32, optional, tag = "1")]
    clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    cmdline: Vec<String>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(uint64, repeated, tag = "3")]
    category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(uint64, optional, tag = "56")]
    callstack_iid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
    #[prost(uint64, optional, tag = "17")]
    string_value_iid: Option<u64>,
}

/// Data to which later packets refer by index.
#[derive(Clone, PartialEq, Message)]
struct InternedData {
    #[prost(message, repeated, tag = "1")]
    event_categories: Vec<InternedString>,
    #[prost(message, repeated, tag = "2")]
    event_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "3")]
    debug_annotation_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "5")]
    function_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "6")]
    frames: Vec<PerfettoFrame>,
    #[prost(message, repeated, tag = "7")]
    callstacks: Vec<PerfettoCallstack>,
    #[prost(message, repeated, tag = "18")]
    source_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "29")]
    debug_annotation_string_values: Vec<InternedString>,
}

/// `EventName`, `InternedString` and similar messages, which all have these two fields.
#[derive(Clone, PartialEq, Message)]
struct InternedString {
    #[prost(uint64, optional, tag = "1")]
    iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    text: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct PerfettoFrame {
    #[prost(uint64, optional, tag = "1")]
    iid: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    function_name_id: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    source_path_iid: Option<u64>,
    #[prost(uint32, optional, tag = "6")]
    line_number: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct PerfettoCallstack {
    #[prost(uint64, optional, tag = "1")]
    iid: Option<u64>,
    /// Outermost first.
    #[prost(uint64, repeated, tag = "2")]
    frame_ids: Vec<u64>,
}

impl ExportFormat for PerfettoFormat {
    fn name(&self) -> &'static str {
        "perfetto"
    }

    fn description(&self) -> &'static str {
        "For ui.perfetto.dev: the stream's events as a time line, with their stacks (agent option stream=on)"
    }

    fn has_times(&self) -> bool {
        true
    }

    /// The index of a frame for each frame of a stack.
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
        events: Option<&ExportEventSource<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<ExportCount> {
        let mut writer = PerfettoWriter::new(run, out);
        writer.write_header()?;
        let mut number = 0;
        match events {
            Some(events) => events(&mut |event| {
                number += 1;
                writer.write_event(event)
            })?,
            None => {
                for row in &run.rows {
                    number += 1;
                    writer.write_row(row)?;
                }
            }
        }
        Ok(match events {
            Some(_) => ExportCount::Events(number),
            None => ExportCount::Stacks(number),
        })
    }
}

/// Indices of texts to which packets refer, from 1: 0 is none.
struct StringInterner(InternTable<String>);

impl StringInterner {
    fn new() -> Self {
        StringInterner(InternTable::with_first_number(1))
    }

    /// Returns the text's index; adds it to `new` if it is not in the file yet.
    fn intern_text(&mut self, text: &str, new: &mut Vec<InternedString>) -> u64 {
        let (iid, is_new) = self.0.intern(text.to_owned());
        if is_new {
            new.push(InternedString {
                iid: Some(iid),
                text: Some(text.to_owned()),
            });
        }
        iid
    }
}

struct PerfettoWriter<'w> {
    run: &'w ExportRun,
    fields: ProtobufWriter<&'w mut dyn Write>,
    categories: StringInterner,
    names: StringInterner,
    annotations: StringInterner,
    values: StringInterner,
    functions: StringInterner,
    sources: StringInterner,
    /// Indexed by frame and by node: whether it is in the file.
    frames: Vec<bool>,
    stacks: Vec<bool>,
    threads: HashMap<Option<u32>, SliceNesting>,
    flags: u32,
}

impl<'w> PerfettoWriter<'w> {
    fn new(run: &'w ExportRun, out: &'w mut dyn Write) -> Self {
        PerfettoWriter {
            run,
            fields: ProtobufWriter::new(out),
            categories: StringInterner::new(),
            names: StringInterner::new(),
            annotations: StringInterner::new(),
            values: StringInterner::new(),
            functions: StringInterner::new(),
            sources: StringInterner::new(),
            frames: vec![false; run.frames.len()],
            stacks: vec![false; run.nodes.len()],
            threads: HashMap::new(),
            flags: CLEARED | NEEDED,
        }
    }

    fn write_packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(std::mem::replace(&mut self.flags, NEEDED)),
            ..packet
        };
        self.fields.write_message(PACKET, &packet)
    }

    fn write_header(&mut self) -> io::Result<()> {
        let run = self.run;
        let clock = |id, at| PerfettoClock {
            clock_id: Some(id),
            timestamp: Some(at),
        };
        let clocks = vec![clock(BOOT_TIME, 0), clock(REAL_TIME, run.start_ns)];
        self.write_packet(TracePacket {
            clock_snapshot: Some(ClockSnapshot { clocks }),
            ..TracePacket::default()
        })?;
        self.write_track(TrackDescriptor {
            uuid: Some(PROCESS),
            process: Some(ProcessDescriptor {
                pid: Some(run.pid as i32),
                cmdline: run.command.split(' ').map(str::to_owned).collect(),
                process_name: Some(run.program_name().to_owned()),
            }),
            ..TrackDescriptor::default()
        })
    }

    fn write_track(&mut self, track: TrackDescriptor) -> io::Result<()> {
        self.write_packet(TracePacket {
            timestamp: Some(0),
            track_descriptor: Some(track),
            ..TracePacket::default()
        })
    }

    /// Returns the track of a thread. Events without a thread are on the track of the process.
    fn thread_track(&mut self, thread: Option<u32>) -> io::Result<u64> {
        let Some(number) = thread else {
            return Ok(PROCESS);
        };
        let uuid = PROCESS + 1 + u64::from(number);
        if self.threads.contains_key(&thread) {
            return Ok(uuid);
        }
        self.threads.insert(thread, SliceNesting::default());
        let name = self.run.threads.get(number as usize).cloned();
        self.write_track(TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid: Some(PROCESS),
            thread: Some(ThreadDescriptor {
                pid: Some(self.run.pid as i32),
                tid: Some(i64::from(number) + 1),
                thread_name: name,
            }),
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    fn write_event(&mut self, event: &ExportEvent) -> io::Result<()> {
        let track = self.thread_track(event.row.thread)?;
        let Some(lasted) = event.duration_ns else {
            return self.write_track_event(
                TrackEventPhase::Instant,
                event.end_ns,
                track,
                &event.row,
            );
        };
        let from = event.end_ns.saturating_sub(lasted);
        let nest = self.threads.entry(event.row.thread).or_default();
        let from = nest.insert_slice(from, event.end_ns);
        self.write_track_event(TrackEventPhase::Begin, from, track, &event.row)?;
        self.write_packet(TracePacket {
            timestamp: Some(event.end_ns),
            track_event: Some(TrackEvent {
                r#type: Some(TrackEventPhase::End as i32),
                track_uuid: Some(track),
                ..TrackEvent::default()
            }),
            ..TracePacket::default()
        })
    }

    fn write_row(&mut self, row: &ExportRow) -> io::Result<()> {
        let track = self.thread_track(row.thread)?;
        self.write_track_event(TrackEventPhase::Instant, 0, track, row)
    }

    /// Writes an event, preceded by the data to which it refers.
    fn write_track_event(
        &mut self,
        phase: TrackEventPhase,
        at: u64,
        track: u64,
        row: &ExportRow,
    ) -> io::Result<()> {
        let run = self.run;
        let mut new = InternedData::default();
        let kind = run.event_kind(row);
        let category = kind.map_or("?", |kind| &*kind.name);
        let name = run.type_name(row).unwrap_or(category);
        let event = TrackEvent {
            r#type: Some(phase as i32),
            track_uuid: Some(track),
            category_iids: vec![
                self.categories
                    .intern_text(category, &mut new.event_categories),
            ],
            name_iid: Some(self.names.intern_text(name, &mut new.event_names)),
            debug_annotations: self.row_annotations(row, &mut new),
            callstack_iid: self.intern_stack(row.node, &mut new),
        };
        self.write_packet(TracePacket {
            timestamp: Some(at),
            track_event: Some(event),
            interned_data: (new != InternedData::default()).then_some(new),
            ..TracePacket::default()
        })
    }

    fn row_annotations(&mut self, row: &ExportRow, new: &mut InternedData) -> Vec<DebugAnnotation> {
        let run = self.run;
        let kind = run.event_kind(row);
        let unit = kind
            .filter(|kind| kind.has_values)
            .map(|kind| match &*kind.unit {
                "" => "value",
                unit => unit,
            });
        let numbers = [
            ("count", (row.count != 1).then_some(row.count)),
            (unit.unwrap_or_default(), unit.map(|_| row.value)),
        ];
        let texts = [
            ("context", run.context_text(row)),
            ("content", run.content_id_text(row)),
        ];
        let mut all = Vec::with_capacity(4);
        for (name, number) in numbers {
            if number.is_some() {
                all.push(DebugAnnotation {
                    name_iid: Some(self.intern_annotation_name(name, new)),
                    uint_value: number,
                    string_value_iid: None,
                });
            }
        }
        for (name, text) in texts {
            if let Some(text) = text {
                let values = &mut new.debug_annotation_string_values;
                let value = self.values.intern_text(&text, values);
                all.push(DebugAnnotation {
                    name_iid: Some(self.intern_annotation_name(name, new)),
                    uint_value: None,
                    string_value_iid: Some(value),
                });
            }
        }
        all
    }

    fn intern_annotation_name(&mut self, name: &str, new: &mut InternedData) -> u64 {
        self.annotations
            .intern_text(name, &mut new.debug_annotation_names)
    }

    /// Returns a stack's index, which is that of its node.
    fn intern_stack(&mut self, node: u32, new: &mut InternedData) -> Option<u64> {
        let iid = (node != ExportRun::ROOT).then_some(u64::from(node))?;
        let is_written = self.stacks.get_mut(node as usize)?;
        if std::mem::replace(is_written, true) {
            return Some(iid);
        }
        let mut frame_ids = Vec::new();
        for frame in self.run.stack_frames(node) {
            frame_ids.push(u64::from(frame) + 1);
            self.intern_frame(frame, new);
        }
        frame_ids.reverse();
        new.callstacks.push(PerfettoCallstack {
            iid: Some(iid),
            frame_ids,
        });
        Some(iid)
    }

    fn intern_frame(&mut self, number: u32, new: &mut InternedData) {
        let at = number as usize;
        let (Some(known), Some(frame)) = (self.frames.get_mut(at), self.run.frames.get(at)) else {
            return;
        };
        if std::mem::replace(known, true) {
            return;
        }
        let name = self
            .functions
            .intern_text(&frame.qualified_name(), &mut new.function_names);
        let source = frame.file.as_deref();
        new.frames.push(PerfettoFrame {
            iid: Some(u64::from(number) + 1),
            function_name_id: Some(name),
            source_path_iid: source
                .map(|file| self.sources.intern_text(file, &mut new.source_paths)),
            line_number: frame.line_number(),
        });
    }
}

/// The recent slices of a thread. It keeps slices from overlapping in part: each lies inside another, or behind it.
///
/// Events come in the order of their ends. The begin is computed from a clock reading shortly after the end, so an
/// event may seem to begin before the previous one ended.
#[derive(Default)]
struct SliceNesting {
    /// Begin and end of each slice, in order; slices inside others are removed.
    slices: VecDeque<(u64, u64)>,
}

/// A slice further back than this many slices does not overlap new ones.
const MAX_SLICES: usize = 64;

impl SliceNesting {
    /// Returns the begin at which to draw a slice with these times.
    fn insert_slice(&mut self, from: u64, to: u64) -> u64 {
        let mut from = from.min(to);
        // If two slices begin at the same time, the inner one, which was written first, would be taken for the outer
        // one.
        let mut inner: Option<(u64, u64)> = None;
        while let Some(bar) = self.slices.back().copied().filter(|bar| bar.0 >= from) {
            inner = Some((bar.0, inner.map_or(bar.1, |inner| inner.1)));
            if bar.0 == from {
                from = from.saturating_sub(1);
            }
            self.slices.pop_back();
        }
        if let Some((_, end)) = self.slices.back() {
            from = from.max(*end).min(to);
        }
        if let Some((_, end)) = inner.filter(|inner| inner.0 <= from) {
            from = end.min(to);
        }
        self.slices.push_back((from, to));
        if self.slices.len() > MAX_SLICES {
            self.slices.pop_front();
        }
        from
    }
}

#[cfg(test)]
mod perfetto_tests {
    use super::*;

    fn placed(bars: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut nest = SliceNesting::default();
        let place = |&(from, to): &(u64, u64)| (nest.insert_slice(from, to), to);
        bars.iter().map(place).collect()
    }

    #[test]
    fn bars_lie_in_each_other_or_behind_each_other() {
        let apart = [(1, 5), (5, 9), (20, 21)];
        assert_eq!(placed(&apart), apart);
        let within = [(3, 4), (5, 6), (2, 8), (1, 9)];
        assert_eq!(placed(&within), within);
        assert_eq!(placed(&[(1, 6), (5, 9)]), [(1, 6), (6, 9)]);
        assert_eq!(placed(&[(5, 6), (5, 9)]), [(5, 6), (4, 9)]);
        assert_eq!(placed(&[(1, 5), (5, 6), (5, 9)]), [(1, 5), (5, 6), (6, 9)]);
        assert_eq!(placed(&[(0, 6), (0, 9)]), [(0, 6), (6, 9)]);
    }
}
