//! `lucce export --format chrome`: the stream as Chrome's trace events, which `about:tracing`, Perfetto and
//! others show as a time line.
//!
//! Events that last become bars (`ph` X), others marks (`ph` i). Traces are told once, as a tree of
//! frames (`stackFrames`), to which events refer by `sf`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use lucce_decoder::{
    ContextId, Damage, Event, EventTypeId, Profile, StackFrame, Stream, ToldEvent, Window,
};
use serde::Serialize;
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
        frames: Frames::default(),
        written: Written::default(),
    };
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    chrome.threads(out)?;
    for event in stream.events().filter(|event| window.holds(stream, event)) {
        chrome.event(&event, kind, out)?;
    }
    write!(out, "\n],\"stackFrames\":")?;
    serde_json::to_writer(&mut *out, &chrome.frames.by_number())?;
    writeln!(out, "}}")?;
    Ok(chrome.written)
}

struct Chrome<'c> {
    profile: &'c Profile,
    stream: &'c Stream,
    /// What is written, and its innermost frame; none: an event that is left out.
    told: HashMap<(ContextId, EventTypeId), Option<(ToldEvent, usize)>>,
    frames: Frames,
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
                "args": { "name": thread.name },
            });
            write!(out, "{comma}\n{name}")?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, kind: Option<&str>, out: &mut impl Write) -> io::Result<()> {
        let (profile, frames) = (self.profile, &mut self.frames);
        let told = match self.told.entry((event.id, event.event)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => {
                let told = profile.tell(event);
                let told = told.map_err(|damage| self.written.damage.get_or_insert(damage));
                let told = told.ok().filter(|told| {
                    let is_kind = kind.is_none_or(|kind| kind == told.info.kind);
                    is_kind && !told.trace.frames.is_empty()
                });
                free.insert(told.map(|told| {
                    let frame = frames.of(&told.trace.frames);
                    (told, frame)
                }))
            }
        };
        let Some((told, frame)) = told else {
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
            "sf": frame.to_string(),
            "args": {
                "value": told.value(event),
                "unit": told.info.unit,
                "id": profile.number(event.id).to_string(),
                "at": told.trace.frames.first().map(ToString::to_string),
            },
        });
        match lasted {
            Some(lasted) => line["dur"] = micros(lasted).into(),
            None => line["s"] = "t".into(),
        }
        self.written.events += 1;
        write!(out, ",\n{line}")
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// All traces, as a tree whose root is the outermost frame.
#[derive(Default)]
struct Frames {
    list: Vec<Frame>,
    known: HashMap<(Option<usize>, StackFrame), usize>,
}

#[derive(Serialize, Clone)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
}

impl Frames {
    /// The number of the innermost of these, which come leaf first.
    fn of(&mut self, frames: &[StackFrame]) -> usize {
        let mut at = None;
        for frame in frames.iter().rev() {
            let next = self.list.len();
            let number = *self.known.entry((at, frame.clone())).or_insert(next);
            if number == next {
                self.list.push(Frame {
                    name: frame.to_string(),
                    parent: at.map(|parent: usize| parent.to_string()),
                });
            }
            at = Some(number);
        }
        at.unwrap_or(0)
    }

    fn by_number(&self) -> std::collections::BTreeMap<usize, &Frame> {
        self.list.iter().enumerate().collect()
    }
}
