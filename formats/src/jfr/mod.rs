//! `jfr`: a recording as Flight Recorder writes it, for `jfr`, JDK Mission Control and all that read those.
//!
//! | kind | event |
//! |---|---|
//! | `alloc` | `jdk.ObjectAllocationSample`: `weight` is the bytes |
//! | `lock` | `jdk.JavaMonitorEnter`, `jdk.JavaMonitorWait`, `jdk.ThreadPark` |
//! | `exception` | `jdk.JavaExceptionThrow` |
//! | `io-time` | `jdk.FileRead`, `jdk.FileWrite`, `jdk.SocketRead`, `jdk.SocketWrite`, without bytes |
//! | any other: objects that are followed, too, which would be allocated twice else | `lucce.Event` |
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

use std::io::{self, Write};

use crate::format::{Format, Written};
use crate::run::{Event, Events, Kind, Row, Run};

use chunk::{Bytes, Chunk};
use metadata::{Fields, Shape};
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
            written: 0,
        };
        match events {
            Some(events) => events(&mut |event| writer.event(event))?,
            None => {
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
    written: u64,
}

impl Writer<'_> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let (run, row) = (self.run, &event.row);
        let what = run.what(row).unwrap_or_default();
        let shape = Shape::of(run.kind(row), what);
        let kind = run.kind(row).map_or("", |kind| &*kind.name);
        let lasted = event.lasted.unwrap_or(0);
        let start = event.at.saturating_sub(lasted);
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
            Fields::Monitor => bytes.number(class(&mut self.pools)),
            Fields::Thrown => {
                bytes.text(what);
                bytes.number(class(&mut self.pools));
            }
            Fields::File => bytes.text(""),
            Fields::Socket => bytes.text(""),
            Fields::Other => {
                bytes.text(kind);
                bytes.text(what);
                bytes.number(row.value);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
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
        match self.chunk.events.len() == 0 && self.written > 0 {
            true => Ok(()),
            false => self.flush(),
        }
    }
}
