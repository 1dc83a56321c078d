//! `jfr`: a recording as Flight Recorder writes it, for `jfr`, JDK Mission Control and all that read those.
//!
//! | kind | event |
//! |---|---|
//! | `alloc` | `jdk.ObjectAllocationSample`: `weight` is the bytes |
//! | `lock` | `jdk.JavaMonitorEnter`, `jdk.JavaMonitorWait`, `jdk.ThreadPark` |
//! | `exception` | `jdk.JavaExceptionThrow` |
//! | `exception`, once more | `jdk.ExceptionStatistics`: 0 at the beginning, and at the end how many there were |
//! | `io-time` | `jdk.FileRead`, `jdk.FileWrite`, `jdk.SocketRead`, `jdk.SocketWrite`, with the bytes of the `io` event before |
//! | any other: objects that are followed, too, which would be allocated twice else | `lucce.Event` |
//!
//! What a log does not know is there, since views of `jfr` ask for it, and has no value: the path, the host and the
//! message are null, a monitor's address is 0, and so are the bytes where kinds are exported without `io`.
//!
//! Each has its whole stack, and two fields more: `count` and `context`, the number. With the stream every event is one, at
//! its time. Without it each row is one, at the start of the run: `count` events that lasted so long together.
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

use crate::format::{Format, Written};
use crate::run::{Event, Events, Kind, Row, Run};

use chunk::{Bytes, Chunk};
use metadata::{Fields, Shape, THROWABLES};
use pools::Pools;

pub struct Jfr;

/// A chunk of this size is written.
const FULL: usize = 16 << 20;

impl Format for Jfr {
    fn name(&self) -> &'static str {
        "jfr"
    }

    fn about(&self) -> &'static str {
        "For `jfr` and JDK Mission Control: single events with their times if there is a stream"
    }

    fn has_times(&self) -> bool {
        true
    }

    /// Method, line, index of the bytecode and type for each frame of a stack.
    fn bytes_of_stacks(&self, run: &Run) -> u64 {
        5 * run.frames_of_stacks()
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
        let mut writer = Writer {
            run,
            out,
            chunk: Chunk::default(),
            pools: Pools::default(),
            times: (u64::MAX, 0),
            last: 0,
            written: 0,
            thrown: 0,
            moved: Moved::of(run),
        };
        match events {
            Some(events) => events(&mut |event| writer.single(event))?,
            None => {
                run.rows.iter().for_each(|row| writer.moved.keep(row));
                for row in &run.rows {
                    let is_time = run.kind(row).is_some_and(Kind::is_time);
                    writer.event(&Event {
                        row: *row,
                        at: if is_time { row.value } else { 0 },
                        lasted: is_time.then_some(row.value),
                    })?;
                }
            }
        }
        writer.finish()?;
        Ok(Written::Events(writer.written))
    }
}

struct Writer<'w> {
    run: &'w Run,
    out: &'w mut dyn Write,
    chunk: Chunk,
    pools: Pools,
    /// Of the chunk: from the first event's beginning to the last one's end.
    times: (u64, u64),
    /// Of all chunks until now, the last event's end.
    last: u64,
    written: u64,
    /// How many exceptions were written.
    thrown: u64,
    moved: Moved,
}

/// What kind's values are the bytes that events of which other kind moved; and those whose other event is still to come.
struct Moved {
    kinds: Vec<Option<u32>>,
    bytes: HashMap<Operation, u64>,
}

/// An operation is counted under both kinds by the same thread, context and type.
type Operation = (u32, Option<u32>, u64, u32, Option<u32>);

impl Moved {
    fn of(run: &Run) -> Self {
        let kinds = run.kinds.iter().map(|kind| {
            let is_moved = |moved: &Kind| moved.times == Some(&*kind.name);
            let moved = run.kinds.iter().position(is_moved)?;
            u32::try_from(moved).ok()
        });
        Moved {
            kinds: kinds.collect(),
            bytes: HashMap::new(),
        }
    }

    fn operation(row: &Row, kind: u32) -> Operation {
        (kind, row.thread, row.number, row.node, row.what)
    }

    fn keep(&mut self, row: &Row) {
        if self.kinds.contains(&Some(row.kind)) {
            let bytes = self.bytes.entry(Self::operation(row, row.kind));
            let bytes = bytes.or_default();
            *bytes = bytes.saturating_add(row.value);
        }
    }

    fn forget(&mut self, row: &Row) {
        self.bytes.remove(&Self::operation(row, row.kind));
    }

    /// 0: not known.
    fn take(&mut self, row: &Row) -> u64 {
        let kind = self.kinds.get(row.kind as usize).copied().flatten();
        let bytes = kind.and_then(|kind| self.bytes.remove(&Self::operation(row, kind)));
        bytes.unwrap_or(0)
    }
}

impl Writer<'_> {
    /// One of the stream.
    fn single(&mut self, event: &Event) -> io::Result<()> {
        // Of one before, whose time was lost, they are not this one's.
        self.moved.forget(&event.row);
        self.moved.keep(&event.row);
        self.event(event)
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        let (run, row) = (self.run, &event.row);
        let what = run.what(row).unwrap_or_default();
        let shape = Shape::of(run.kind(row), what);
        let kind = run.kind(row).map_or("", |kind| &*kind.name);
        let lasted = event.lasted.unwrap_or(0);
        let start = event.at.saturating_sub(lasted);
        if self.written == 0 && self.has_exceptions() {
            self.throwables(start, 0);
        }
        self.times = (self.times.0.min(start), self.times.1.max(event.at));
        let mut bytes = Bytes::default();
        bytes.number(shape.id);
        bytes.number(start);
        if shape.fields.lasts() {
            bytes.number(lasted);
        }
        bytes.number(self.pools.thread(run, row.thread));
        bytes.number(self.pools.stack(run, row.node));
        self.own(&mut bytes, shape.fields, row, (kind, what));
        bytes.number(row.count);
        bytes.number(row.number);
        self.chunk.events.sized(&bytes);
        self.written += 1;
        if self.chunk.events.len() + self.pools.size() > FULL {
            self.flush()?;
        }
        Ok(())
    }

    /// What an event of this type has beside time, thread and stack.
    fn own(&mut self, bytes: &mut Bytes, fields: Fields, row: &Row, (kind, what): (&str, &str)) {
        let class = |pools: &mut Pools| pools.class(pools::descriptor(what));
        match fields {
            Fields::Allocation => {
                bytes.number(class(&mut self.pools));
                bytes.number(row.value);
            }
            Fields::Monitor => {
                bytes.number(class(&mut self.pools));
                bytes.number(0);
            }
            Fields::Thrown => {
                self.thrown = self.thrown.saturating_add(row.count);
                bytes.no_text();
                bytes.number(class(&mut self.pools));
            }
            Fields::File | Fields::Socket => {
                bytes.no_text();
                bytes.number(self.moved.take(row));
            }
            Fields::Slept | Fields::Throwables => {}
            Fields::Other => {
                bytes.text(kind);
                bytes.text(what);
                bytes.number(row.value);
            }
        }
    }

    /// How many exceptions there were until then.
    fn throwables(&mut self, at: u64, count: u64) {
        let mut bytes = Bytes::default();
        for number in [THROWABLES.id, at, count] {
            bytes.number(number);
        }
        self.chunk.events.sized(&bytes);
        self.times = (self.times.0.min(at), self.times.1.max(at));
    }

    fn has_exceptions(&self) -> bool {
        let mut kinds = self.run.kinds.iter();
        kinds.any(|kind| Shape::of(Some(kind), "").fields == Fields::Thrown)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.last = self.last.max(self.times.1);
        let mut chunk = std::mem::take(&mut self.chunk);
        let pools = std::mem::take(&mut self.pools);
        let (from, to) = std::mem::replace(&mut self.times, (u64::MAX, 0));
        let from = from.min(to);
        pools.write(from, &mut chunk.pools);
        metadata::write(from, &mut chunk.metadata);
        chunk.write(self.run.start.saturating_add(from), from..to, self.out)
    }

    /// A file has a chunk, also one without events.
    fn finish(&mut self) -> io::Result<()> {
        if self.has_exceptions() && self.written > 0 {
            self.throwables(self.last.max(self.times.1), self.thrown);
        }
        match self.chunk.events.len() == 0 && self.written > 0 {
            true => Ok(()),
            false => self.flush(),
        }
    }
}
