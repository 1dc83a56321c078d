//! `lucce export --format chrome`: writes the stream as Chrome's trace events, which `about:tracing`, Perfetto and others
//! show as a time line.
//!
//! Events with a duration become bars (`ph` X), others marks (`ph` i). Traces are written once, as a tree of frames
//! (`stackFrames`); events refer to them by `sf`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use lucce_decoder::{
    ContextId, EventExplanation, EventStream, EventTypeId, EventWindow, LogDamage, Profile,
    StreamEvent, TraceTree, escape, explain_event,
};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::selection::Selection;

/// The result of an export.
#[derive(Default)]
pub struct ChromeExportResult {
    pub events: u64,
    /// The first event that the log does not explain.
    pub damage: Option<LogDamage>,
}

/// Writes the events of the window, of one kind or of all.
pub fn write_events(
    profile: &Profile,
    stream: &EventStream,
    (window, selection): (&EventWindow<'_>, &Selection),
    out: &mut impl Write,
) -> io::Result<ChromeExportResult> {
    let mut chrome = ChromeTraceWriter {
        profile,
        stream,
        described_events: HashMap::new(),
        traces: TraceTree::new(profile),
        written: ChromeExportResult::default(),
    };
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    chrome.write_thread_names(out)?;
    for event in stream
        .iter_events()
        .filter(|event| window.contains_event(stream, event))
    {
        chrome.write_event(&event, selection, out)?;
    }
    write!(out, "\n],\"stackFrames\":")?;
    escape::write_escaped_json(out, &ChromeFrames(&chrome.traces))?;
    writeln!(out, "}}")?;
    Ok(chrome.written)
}

struct ChromeTraceWriter<'c> {
    profile: &'c Profile,
    stream: &'c EventStream,
    /// Explained events; `None`: the event is left out.
    described_events: HashMap<(ContextId, EventTypeId), Option<EventExplanation>>,
    traces: TraceTree<'c>,
    written: ChromeExportResult,
}

impl ChromeTraceWriter<'_> {
    /// Writes the threads' names.
    fn write_thread_names(&self, out: &mut impl Write) -> io::Result<()> {
        for (index, thread) in self.stream.threads().iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let name = json!({
                "ph": "M",
                "name": "thread_name",
                "pid": self.profile.header.pid,
                "tid": index + 1,
                "args": { "name": self.profile.stream_thread_name(thread) },
            });
            writeln!(out, "{comma}")?;
            escape::write_escaped_json(out, &name)?;
        }
        Ok(())
    }

    fn write_event(
        &mut self,
        event: &StreamEvent,
        selection: &Selection,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (profile, traces) = (self.profile, &mut self.traces);
        let is_kind = |kind: &str| {
            let info = profile.types.get(event.event);
            info.is_none_or(|info| info.kind == kind)
        };
        // The file has no frames of other kinds.
        if !selection.event().is_none_or(is_kind) {
            return Ok(());
        }
        let explanation = match self.described_events.entry((event.id, event.event)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => {
                let explanation = explain_event(profile, traces, event);
                let explanation =
                    explanation.map_err(|damage| self.written.damage.get_or_insert(damage));
                let filter = selection.event_filter();
                free.insert(explanation.ok().filter(|explanation| {
                    !traces.is_outside(explanation.trace)
                        && filter.admits_event(traces, explanation)
                }))
            }
        };
        let Some(explanation) = explanation else {
            return Ok(());
        };
        let name = explanation
            .detail
            .as_deref()
            .unwrap_or(&explanation.info.kind);
        let lasted = explanation.event_duration(event);
        let since = self
            .stream
            .since_start(event.clock)
            .saturating_sub(lasted.unwrap_or(0));
        let mut line = json!({
            "ph": if lasted.is_some() { "X" } else { "i" },
            "name": name,
            "cat": explanation.info.kind,
            "pid": profile.header.pid,
            "tid": event.thread.0,
            "ts": nanos_to_micros(since),
            "sf": explanation.trace.to_u32().to_string(),
            "args": {
                "value": explanation.event_value(event),
                "unit": explanation.info.unit,
                "id": profile.context_number(event.id).to_string(),
                "stack": traces.stack_id(explanation.trace).to_string(),
                "at": traces.stack_frames(explanation.trace).next().map(ToString::to_string),
            },
        });
        match lasted {
            Some(lasted) => line["dur"] = nanos_to_micros(lasted).into(),
            None => line["s"] = "t".into(),
        }
        self.written.events += 1;
        writeln!(out, ",")?;
        escape::write_escaped_json(out, &line)
    }
}

fn nanos_to_micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// All traces by number, each with its callers' number.
struct ChromeFrames<'f>(&'f TraceTree<'f>);

#[derive(Serialize)]
struct ChromeFrame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
}

impl Serialize for ChromeFrames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frames = self.0.nodes().enumerate();
        serializer.collect_map(frames.map(|(number, (caller, _, shown))| {
            let frame = ChromeFrame {
                name: shown.to_string(),
                parent: caller.map(|caller| caller.to_u32().to_string()),
            };
            (number.to_string(), frame)
        }))
    }
}
