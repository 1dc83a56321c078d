//! `jfr`: a recording in Flight Recorder's format, for `jfr`, JDK Mission Control and other readers.
//!
//! | kind | event |
//! |---|---|
//! | `alloc` | `jdk.ObjectAllocationSample`: `weight` is the bytes |
//! | `lock` | `jdk.JavaMonitorEnter`, `jdk.JavaMonitorWait`, `jdk.ThreadPark` |
//! | `exception` | `jdk.JavaExceptionThrow` |
//! | `exception`, additionally | `jdk.ExceptionStatistics`: 0 at the beginning, the number of exceptions at the end |
//! | `io-time` | `jdk.FileRead`, `jdk.FileWrite`, `jdk.SocketRead`, `jdk.SocketWrite`, with the bytes of the preceding `io` event |
//! | any other, also followed objects, whose allocations would be counted twice | `lucce.Event` |
//!
//! Views of `jfr` require fields that a log does not know, so these have no value. The path, the host and the message
//! are null, and a monitor's address is 0. The bytes are 0 if kinds are exported without `io`.
//!
//! Each event has its whole stack and two additional fields: `count` and `context`, the context id. With the stream,
//! every event is written at its time. Without it, each row is one event at the start of the run: `count` events with
//! their total duration.
//!
//! ```text
//! chunk = header (68 bytes), events, constant pools, metadata      all lengths are in the header, so a chunk is
//! file  = chunk, chunk, …                                          kept until it is full, and has its own pools
//! ```
//! Reading order: `chunk` (bytes), `metadata` (types), `pools`, this file.

mod chunk;
mod metadata;
mod pools;

use std::collections::HashMap;
use std::io::{self, Write};

use crate::format::{ExportCount, ExportFormat};
use crate::run::{ExportEvent, ExportEventKind, ExportEventSource, ExportRow, ExportRun};

use chunk::{JfrBuffer, JfrChunk};
use metadata::{EXCEPTION_STATISTICS, JfrEventFields, JfrEventType};
use pools::JfrConstantPools;

pub struct JfrFormat;

/// A chunk of this size in bytes is written.
const FULL: usize = 16 << 20;

impl ExportFormat for JfrFormat {
    fn name(&self) -> &'static str {
        "jfr"
    }

    fn description(&self) -> &'static str {
        "For `jfr` and JDK Mission Control: single events with their times if there is a stream"
    }

    fn has_times(&self) -> bool {
        true
    }

    /// Method, line, bytecode index and type for each frame of a stack.
    fn estimate_stack_bytes(&self, run: &ExportRun) -> u64 {
        5 * run.count_stack_frames()
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
        let mut writer = JfrWriter {
            run,
            out,
            chunk: JfrChunk::default(),
            pools: JfrConstantPools::default(),
            times: (u64::MAX, 0),
            last: 0,
            written: 0,
            thrown: 0,
            transferred_bytes: TransferredBytes::for_run(run),
        };
        match events {
            Some(events) => events(&mut |event| writer.write_stream_event(event))?,
            None => {
                run.rows
                    .iter()
                    .for_each(|row| writer.transferred_bytes.add_row(row));
                for row in &run.rows {
                    let is_time = run.event_kind(row).is_some_and(ExportEventKind::is_time);
                    writer.write_event(&ExportEvent {
                        row: *row,
                        end_ns: if is_time { row.value } else { 0 },
                        duration_ns: is_time.then_some(row.value),
                    })?;
                }
            }
        }
        writer.finish()?;
        Ok(ExportCount::Events(writer.written))
    }
}

struct JfrWriter<'w> {
    run: &'w ExportRun,
    out: &'w mut dyn Write,
    chunk: JfrChunk,
    pools: JfrConstantPools,
    /// The times of the chunk: from the first event's start to the last one's end.
    times: (u64, u64),
    /// The end of the last event in all chunks so far.
    last: u64,
    written: u64,
    /// The number of exceptions written.
    thrown: u64,
    transferred_bytes: TransferredBytes,
}

/// The kinds whose values are the bytes moved by events of another kind, and the bytes whose other event is still
/// missing.
struct TransferredBytes {
    kinds: Vec<Option<u32>>,
    bytes: HashMap<OperationKey, u64>,
}

/// The key of an operation: thread, context and type are the same in both kinds.
type OperationKey = (u32, Option<u32>, u64, u32, Option<u32>);

impl TransferredBytes {
    fn for_run(run: &ExportRun) -> Self {
        let kinds = run.kinds.iter().map(|kind| {
            let is_moved = |moved: &ExportEventKind| moved.timed_kind == Some(&*kind.name);
            let moved = run.kinds.iter().position(is_moved)?;
            u32::try_from(moved).ok()
        });
        TransferredBytes {
            kinds: kinds.collect(),
            bytes: HashMap::new(),
        }
    }

    fn operation_key(row: &ExportRow, kind: u32) -> OperationKey {
        (kind, row.thread, row.context, row.node, row.type_index)
    }

    fn add_row(&mut self, row: &ExportRow) {
        if self.kinds.contains(&Some(row.kind)) {
            let bytes = self.bytes.entry(Self::operation_key(row, row.kind));
            let bytes = bytes.or_default();
            *bytes = bytes.saturating_add(row.value);
        }
    }

    fn remove_row(&mut self, row: &ExportRow) {
        self.bytes.remove(&Self::operation_key(row, row.kind));
    }

    /// Returns 0 if the bytes are unknown.
    fn take_bytes(&mut self, row: &ExportRow) -> u64 {
        let kind = self.kinds.get(row.kind as usize).copied().flatten();
        let bytes = kind.and_then(|kind| self.bytes.remove(&Self::operation_key(row, kind)));
        bytes.unwrap_or(0)
    }
}

impl JfrWriter<'_> {
    /// Writes an event of the stream.
    fn write_stream_event(&mut self, event: &ExportEvent) -> io::Result<()> {
        // Bytes left by an earlier event, whose time was dropped, do not belong to this one.
        self.transferred_bytes.remove_row(&event.row);
        self.transferred_bytes.add_row(&event.row);
        self.write_event(event)
    }

    fn write_event(&mut self, event: &ExportEvent) -> io::Result<()> {
        let (run, row) = (self.run, &event.row);
        let what = run.type_name(row).unwrap_or_default();
        let event_type = JfrEventType::for_kind(run.event_kind(row), what);
        let kind = run.event_kind(row).map_or("", |kind| &*kind.name);
        let lasted = event.duration_ns.unwrap_or(0);
        let start = event.end_ns.saturating_sub(lasted);
        if self.written == 0 && self.has_exceptions() {
            self.write_exception_statistics(start, 0);
        }
        self.times = (self.times.0.min(start), self.times.1.max(event.end_ns));
        let mut bytes = JfrBuffer::default();
        bytes.push_number(event_type.id);
        bytes.push_number(start);
        if event_type.fields.has_duration() {
            bytes.push_number(lasted);
        }
        bytes.push_number(self.pools.intern_thread(run, row.thread));
        bytes.push_number(self.pools.intern_stack(run, row.node));
        self.write_event_fields(&mut bytes, event_type.fields, row, (kind, what));
        bytes.push_number(row.count);
        bytes.push_number(row.context);
        self.chunk.events.push_sized(&bytes);
        self.written += 1;
        if self.chunk.events.len() + self.pools.estimate_bytes() > FULL {
            self.flush_chunk()?;
        }
        Ok(())
    }

    /// Writes the fields of an event of this type beyond time, thread and stack.
    fn write_event_fields(
        &mut self,
        bytes: &mut JfrBuffer,
        fields: JfrEventFields,
        row: &ExportRow,
        (kind, what): (&str, &str),
    ) {
        let class =
            |pools: &mut JfrConstantPools| pools.intern_class(pools::internal_class_name(what));
        match fields {
            JfrEventFields::Allocation => {
                bytes.push_number(class(&mut self.pools));
                bytes.push_number(row.value);
            }
            JfrEventFields::Monitor => {
                bytes.push_number(class(&mut self.pools));
                bytes.push_number(0);
            }
            JfrEventFields::Exception => {
                self.thrown = self.thrown.saturating_add(row.count);
                bytes.push_null_text();
                bytes.push_number(class(&mut self.pools));
            }
            JfrEventFields::File | JfrEventFields::Socket => {
                bytes.push_null_text();
                bytes.push_number(self.transferred_bytes.take_bytes(row));
            }
            JfrEventFields::Sleep | JfrEventFields::ExceptionStatistics => {}
            JfrEventFields::Other => {
                bytes.push_text(kind);
                bytes.push_text(what);
                bytes.push_number(row.value);
            }
        }
    }

    /// Writes the number of exceptions until then.
    fn write_exception_statistics(&mut self, at: u64, count: u64) {
        let mut bytes = JfrBuffer::default();
        for number in [EXCEPTION_STATISTICS.id, at, count] {
            bytes.push_number(number);
        }
        self.chunk.events.push_sized(&bytes);
        self.times = (self.times.0.min(at), self.times.1.max(at));
    }

    fn has_exceptions(&self) -> bool {
        let mut kinds = self.run.kinds.iter();
        kinds.any(|kind| JfrEventType::for_kind(Some(kind), "").fields == JfrEventFields::Exception)
    }

    fn flush_chunk(&mut self) -> io::Result<()> {
        self.last = self.last.max(self.times.1);
        let mut chunk = std::mem::take(&mut self.chunk);
        let pools = std::mem::take(&mut self.pools);
        let (from, to) = std::mem::replace(&mut self.times, (u64::MAX, 0));
        let from = from.min(to);
        pools.write_pools(from, &mut chunk.pools);
        metadata::write_metadata(from, &mut chunk.metadata);
        chunk.write_chunk(self.run.start_ns.saturating_add(from), from..to, self.out)
    }

    /// Writes the last chunk. A file has at least one chunk, even without events.
    fn finish(&mut self) -> io::Result<()> {
        if self.has_exceptions() && self.written > 0 {
            self.write_exception_statistics(self.last.max(self.times.1), self.thrown);
        }
        match self.chunk.events.len() == 0 && self.written > 0 {
            true => Ok(()),
            false => self.flush_chunk(),
        }
    }
}
