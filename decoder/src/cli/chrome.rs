//! `lucce export --format chrome`: the stream as Chrome's trace events, which `about:tracing`, Perfetto and
//! others show as a time line.
//!
//! Events that last become bars (`ph` X), others marks (`ph` i). Traces are told once, as a tree of
//! frames (`stackFrames`), to which events refer by `sf`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use lucce_decoder::escape;
use lucce_decoder::{
    ContextId, Damage, Event, EventTypeId, Profile, Stream, ToldEvent, Traces, Window,
};
use serde::{Serialize, Serializer};
use serde_json::json;

/// What was written.
#[derive(Default)]
pub struct Written {
    pub events: u64,
    /// The first event that the log does not explain.
    pub damage: Option<Damage>,
}

/// Writes the events of the window, of one kind or all.
pub fn write(
    profile: &Profile,
    stream: &Stream,
    (window, kind): (&Window<'_>, Option<&str>),
    out: &mut impl Write,
) -> io::Result<Written> {
    let mut chrome = Chrome {
        profile,
        stream,
        told: HashMap::new(),
        traces: Traces::new(profile),
        written: Written::default(),
    };
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    chrome.threads(out)?;
    for event in stream.events().filter(|event| window.holds(stream, event)) {
        chrome.event(&event, kind, out)?;
    }
    write!(out, "\n],\"stackFrames\":")?;
    escape::json(out, &Frames(&chrome.traces))?;
    writeln!(out, "}}")?;
    Ok(chrome.written)
}

struct Chrome<'c> {
    profile: &'c Profile,
    stream: &'c Stream,
    /// What is written; none: an event that is left out.
    told: HashMap<(ContextId, EventTypeId), Option<ToldEvent>>,
    traces: Traces<'c>,
    written: Written,
}

impl Chrome<'_> {
    /// Their names.
    fn threads(&self, out: &mut impl Write) -> io::Result<()> {
        for (index, thread) in self.stream.threads().iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let name = json!({
                "ph": "M",
                "name": "thread_name",
                "pid": self.profile.header.pid,
                "tid": index + 1,
                "args": { "name": self.profile.streamed_name(thread) },
            });
            writeln!(out, "{comma}")?;
            escape::json(out, &name)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, kind: Option<&str>, out: &mut impl Write) -> io::Result<()> {
        let (profile, traces) = (self.profile, &mut self.traces);
        let is_kind = |kind: &str| {
            let info = profile.types.get(event.event);
            info.is_none_or(|info| info.kind == kind)
        };
        // Frames of other kinds are not in the file.
        if !kind.is_none_or(is_kind) {
            return Ok(());
        }
        let told = match self.told.entry((event.id, event.event)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => {
                let told = profile.tell(traces, event);
                let told = told.map_err(|damage| self.written.damage.get_or_insert(damage));
                free.insert(told.ok().filter(|told| !traces.is_outside(told.trace)))
            }
        };
        let Some(told) = told else {
            return Ok(());
        };
        let name = told.detail.as_deref().unwrap_or(&told.info.kind);
        let lasted = told.lasted(event);
        let since = self
            .stream
            .since_start(event.clock)
            .saturating_sub(lasted.unwrap_or(0));
        let mut line = json!({
            "ph": if lasted.is_some() { "X" } else { "i" },
            "name": name,
            "cat": told.info.kind,
            "pid": profile.header.pid,
            "tid": event.thread.0,
            "ts": micros(since),
            "sf": told.trace.number().to_string(),
            "args": {
                "value": told.value(event),
                "unit": told.info.unit,
                "id": profile.number(event.id).to_string(),
                "stack": traces.stack(told.trace).to_string(),
                "at": traces.shown(told.trace).next().map(ToString::to_string),
            },
        });
        match lasted {
            Some(lasted) => line["dur"] = micros(lasted).into(),
            None => line["s"] = "t".into(),
        }
        self.written.events += 1;
        writeln!(out, ",")?;
        escape::json(out, &line)
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// All traces, by number, each with its callers' number.
struct Frames<'f>(&'f Traces<'f>);

#[derive(Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frames = self.0.nodes().enumerate();
        serializer.collect_map(frames.map(|(number, (caller, _, shown))| {
            let frame = Frame {
                name: shown.to_string(),
                parent: caller.map(|caller| caller.number().to_string()),
            };
            (number.to_string(), frame)
        }))
    }
}
