//! `speedscope`: the JSON of speedscope.app, whose page shows it in a browser.
//!
//! The file has a profile for each kind of events, with all threads together. It is `evented`: a walk of the tree opens
//! and closes each path of frames once. So a file of deep stacks is as large as the tree, not as all traces together.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::to_writer;

use crate::format::{ExportCount, ExportFormat};
use crate::run::{ExportEventSource, ExportRow, ExportRun};

pub struct SpeedscopeFormat;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct SpeedscopeFrame<'f> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// `type` is `O` for open and `C` for close.
#[derive(Serialize)]
struct SpeedscopeEvent {
    r#type: char,
    frame: u32,
    at: u64,
}

impl ExportFormat for SpeedscopeFormat {
    fn name(&self) -> &'static str {
        "speedscope"
    }

    fn description(&self) -> &'static str {
        "For speedscope.app: a profile for each kind of events"
    }

    fn write(
        &self,
        run: &ExportRun,
        _: Option<&ExportEventSource<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<ExportCount> {
        write!(
            out,
            "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"lucce\",\"name\":"
        )?;
        to_writer(&mut *out, &run.command)?;
        write!(out, ",\"activeProfileIndex\":")?;
        let kinds = kinds_with_events(run);
        let active = kinds.iter().position(|kind| *kind == run.main_kind);
        to_writer(&mut *out, &active.unwrap_or(0))?;
        write!(out, ",\"shared\":{{\"frames\":[")?;
        write_frames(run, out)?;
        write!(out, "]}},\"profiles\":[")?;
        for (at, kind) in kinds.iter().enumerate() {
            write_separator(at, out)?;
            write_profile(run, *kind, out)?;
        }
        writeln!(out, "]}}")?;
        Ok(ExportCount::Stacks(run.rows.len() as u64))
    }
}

/// Returns the kinds that have events.
fn kinds_with_events(run: &ExportRun) -> Vec<u32> {
    let all = 0..run.kinds.len() as u32;
    all.filter(|kind| run.rows.iter().any(|row| row.kind == *kind))
        .collect()
}

fn write_separator(at: usize, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(if at == 0 { b"\n" } else { b",\n" })
}

fn write_frames(run: &ExportRun, out: &mut dyn Write) -> io::Result<()> {
    for (at, frame) in run.frames.iter().enumerate() {
        write_separator(at, out)?;
        let frame = SpeedscopeFrame {
            name: frame.qualified_name(),
            file: frame.file.as_deref(),
            line: frame.line_number(),
        };
        to_writer(&mut *out, &frame)?;
    }
    Ok(())
}

fn write_profile(run: &ExportRun, kind: u32, out: &mut dyn Write) -> io::Result<()> {
    let Some(info) = run.kinds.get(kind as usize) else {
        return Ok(());
    };
    let by_value = info.has_values && !(run.counts_first && kind == run.main_kind);
    let weight = |row: &ExportRow| if by_value { row.value } else { row.count };
    let (unit, what) = match (by_value, &*info.unit) {
        (true, "bytes") => ("bytes", "bytes"),
        (true, "ns") => ("nanoseconds", "time"),
        (true, _) => ("none", "value"),
        (false, _) => ("none", "count"),
    };
    let rows = || run.rows.iter().filter(|row| row.kind == kind);
    let whole = rows().map(weight).fold(0, u64::saturating_add);
    write!(out, "{{\"type\":\"evented\",\"name\":")?;
    to_writer(&mut *out, &format!("{}: {what}", info.name))?;
    write!(
        out,
        ",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{whole},\"events\":["
    )?;
    let mut walk = SpeedscopeTreeWalk {
        run,
        out,
        open: Vec::new(),
        at: 0,
        events: 0,
    };
    for row in rows() {
        walk.move_to(row.node)?;
        walk.at = walk.at.saturating_add(weight(row));
    }
    walk.move_to(ExportRun::ROOT)?;
    write!(out, "]}}")
}

/// Opens and closes frames during a walk through the tree.
struct SpeedscopeTreeWalk<'w> {
    run: &'w ExportRun,
    out: &'w mut dyn Write,
    /// Nodes from the root on.
    open: Vec<u32>,
    at: u64,
    events: usize,
}

impl SpeedscopeTreeWalk<'_> {
    fn move_to(&mut self, node: u32) -> io::Result<()> {
        let mut path = self.run.node_path(node);
        path.reverse();
        let both = self.open.iter().zip(&path);
        let common = both.take_while(|(open, wanted)| open == wanted).count();
        while self.open.len() > common {
            let closed = self.open.pop().unwrap_or_default();
            self.write_event('C', closed)?;
        }
        for node in path.into_iter().skip(common) {
            self.write_event('O', node)?;
            self.open.push(node);
        }
        Ok(())
    }

    fn write_event(&mut self, r#type: char, node: u32) -> io::Result<()> {
        let frame = self
            .run
            .nodes
            .get(node as usize)
            .map_or(0, |node| node.frame);
        write_separator(self.events, self.out)?;
        self.events += 1;
        let at = self.at;
        Ok(to_writer(
            &mut *self.out,
            &SpeedscopeEvent { r#type, frame, at },
        )?)
    }
}
