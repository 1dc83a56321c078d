//! Resources by the context that opened them: those that are open, with their ages, and those that nothing has closed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use lucce_callgraph::{ContextId, DecodeError, MethodId};
use lucce_contentid::StackId;
use lucce_options::kinds::{OPEN_RESOURCES, OPENINGS, split_open_resource_value};
use lucce_tracelog::{EventTypeId, ThreadId};

use crate::events::{ContextCounter, ContextCounters};
use crate::frame::{CodeOrigin, StackFrame, is_jdk_name};
use crate::profile::{Profile, StackTrace};

/// Number of equal parts of the run in which openings are counted.
pub const GROWTH_PARTS: usize = 4;

/// What the agent adds to the type of a resource.
const TYPE_ENDING: &str = " (open)";
/// Mapped files. They have no method that closes them.
const MAPPED: &str = "java.nio.DirectByteBuffer";
/// The classes of the JDK that load classes and resources. What they open stays open for the next one.
const CLASS_LOADING: [&str; 3] = [
    "jdk.internal.loader.",
    "java.net.URLClassLoader",
    "sun.net.www.protocol.jar.",
];

/// Resources of one type that one context opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenedContext {
    pub trace: StackTrace,
    /// The Java name of the class.
    pub type_name: String,
    /// Whether the JDK keeps it for itself: to load classes, or in a static field.
    pub kept_by_jdk: bool,
    pub opened: u64,
    /// Number of resources that were collected, and that nothing had closed.
    pub collected: u64,
    /// Those that are open, oldest first.
    pub open: Vec<OpenResource>,
}

/// An open resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OpenResource {
    /// When it was opened, in milliseconds since 1970.
    pub opened_ms: u64,
    /// The thread that opened it; 0: unknown.
    pub thread: ThreadId,
}

/// All resources of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenedResources {
    /// Contexts with the oldest open resources first. What the JDK keeps for itself comes last.
    pub rows: Vec<OpenedContext>,
    /// Openings in contexts without any frame of the selected classes. They are not in the rows.
    pub outside: u64,
    /// Start of the run, and the time for which ages hold, in milliseconds since 1970.
    pub start_ms: u64,
    pub now_ms: u64,
}

impl OpenedContext {
    /// Number of resources that the program closed.
    #[must_use]
    pub fn closed(&self) -> u64 {
        self.opened
            .saturating_sub(self.open.len() as u64)
            .saturating_sub(self.collected)
    }

    /// Whether the resource has a method that closes it.
    #[must_use]
    pub fn has_close(&self) -> bool {
        !self.type_name.starts_with(MAPPED)
    }
}

/// Whether the JDK keeps a resource for itself: to load classes, or in a static field. `frames`: all frames of the context that
/// opened it.
fn is_kept_by_jdk(frames: &[StackFrame]) -> bool {
    let frames = frames.iter();
    let mut inner = frames.take_while(|frame| frame.origin != CodeOrigin::Application);
    inner.any(|frame| {
        let loads = CLASS_LOADING
            .iter()
            .any(|name| frame.class.starts_with(name));
        loads || frame.method == "<clinit>" && is_jdk_name(&frame.class)
    })
}

impl OpenedResources {
    /// The age of a resource in milliseconds.
    #[must_use]
    pub fn age_ms(&self, resource: &OpenResource) -> u64 {
        self.now_ms.saturating_sub(resource.opened_ms)
    }

    /// How many open resources of the context were opened in each part of the run.
    #[must_use]
    pub fn count_openings_by_part(&self, context: &OpenedContext) -> [u64; GROWTH_PARTS] {
        let mut parts = [0; GROWTH_PARTS];
        let run = self.now_ms.saturating_sub(self.start_ms).max(1);
        for resource in &context.open {
            let since = resource.opened_ms.saturating_sub(self.start_ms);
            let part = since.saturating_mul(GROWTH_PARTS as u64) / run;
            let part = (part as usize).min(GROWTH_PARTS - 1);
            if let Some(count) = parts.get_mut(part) {
                *count += 1;
            }
        }
        parts
    }
}

impl Profile {
    /// Adds what is open to the events, as a kind of its own. Events of an interval stay as they are.
    pub fn count_open_resources(&mut self) {
        if self.open_resources.is_empty() || self.interval.is_some() {
            return;
        }
        let open = open_counters(self).map(|counter| {
            let (_, thread) = split_open_resource_value(counter.value);
            ContextCounter {
                thread: ThreadId(thread),
                value: 0,
                ..*counter
            }
        });
        let events = self.events.as_slice().iter().copied();
        self.events = ContextCounters::new(open.chain(events).collect());
    }
}

/// Lists resources by the context that opened them. `now_ms`: the time, if the JVM runs. `None`: the run does not record
/// resources.
///
/// # Errors
/// The log does not explain a context.
pub fn list_open_resources(
    profile: &Profile,
    now_ms: Option<u64>,
) -> Result<Option<OpenedResources>, DecodeError> {
    if !profile.types.has_kind(OPEN_RESOURCES.name) {
        return Ok(None);
    }
    let mut rows = ResourceRows::default();
    for counter in profile.events.as_slice() {
        if profile.types.is_of_kind(counter.event, OPENINGS.name) {
            let row = rows.find_row(profile, counter)?;
            row.opened = row.opened.saturating_add(counter.count);
        }
    }
    for counter in &profile.collected_resources {
        let row = rows.find_row(profile, counter)?;
        row.collected = row.collected.saturating_add(counter.count);
    }
    for counter in open_counters(profile) {
        let (opened_ms, thread) = split_open_resource_value(counter.value);
        let thread = ThreadId(thread);
        let resource = OpenResource { opened_ms, thread };
        rows.find_row(profile, counter)?.open.push(resource);
    }
    let mut rows: Vec<_> = rows.0.into_values().collect();
    let mut outside = 0_u64;
    rows.retain(|row| {
        let is_outside = profile.is_restricted() && row.trace.frames.is_empty();
        if is_outside {
            outside = outside.saturating_add(row.opened);
        }
        !is_outside
    });
    for row in &mut rows {
        row.open.sort_unstable();
        // An opening may not be counted yet.
        row.opened = row
            .opened
            .max((row.open.len() as u64).saturating_add(row.collected));
    }
    rows.sort_by_cached_key(|row| {
        let oldest = row.open.first().map_or(u64::MAX, |first| first.opened_ms);
        (row.kept_by_jdk, oldest, Reverse(row.opened), row.trace.id)
    });
    let times = profile.open_resources.iter();
    let times = times.map(|counter| split_open_resource_value(counter.value).0);
    Ok(Some(OpenedResources {
        rows,
        outside,
        start_ms: profile.header.start / 1_000_000,
        now_ms: now_ms.unwrap_or_else(|| profile.end_ms(times)),
    }))
}

/// Rows by content of the trace and type.
#[derive(Default)]
struct ResourceRows(BTreeMap<(StackId, String), OpenedContext>);

impl ResourceRows {
    fn find_row(
        &mut self,
        profile: &Profile,
        counter: &ContextCounter,
    ) -> Result<&mut OpenedContext, DecodeError> {
        let trace = profile.decode_trace(counter.id)?;
        let type_name = resource_type(profile, counter.event);
        let key = (trace.stack, type_name.clone());
        match self.0.entry(key) {
            Entry::Occupied(row) => Ok(row.into_mut()),
            Entry::Vacant(free) => {
                let all = profile.graph.decode_context(counter.id, MethodId::EVENT)?;
                let all = profile.resolve_trace(counter.id, all);
                Ok(free.insert(OpenedContext {
                    kept_by_jdk: is_kept_by_jdk(&all.frames),
                    trace,
                    type_name,
                    opened: 0,
                    collected: 0,
                    open: Vec::new(),
                }))
            }
        }
    }
}

fn resource_type(profile: &Profile, event: EventTypeId) -> String {
    let detail = profile
        .types
        .get(event)
        .and_then(|info| info.detail.as_deref());
    let detail = detail.unwrap_or_default();
    detail
        .strip_suffix(TYPE_ENDING)
        .unwrap_or(detail)
        .to_owned()
}

/// The counters of open resources; the counter with the time is none of them.
fn open_counters(profile: &Profile) -> impl Iterator<Item = &ContextCounter> {
    let all = profile.open_resources.iter();
    all.filter(|counter| {
        let info = profile.types.get(counter.event);
        let detail = info.and_then(|info| info.detail.as_deref());
        counter.count > 0
            && counter.id != ContextId::UNKNOWN
            && detail.is_some_and(|detail| detail.ends_with(TYPE_ENDING))
    })
}

#[cfg(test)]
mod open_resources_tests {
    use super::*;

    fn frame(class: &str, method: &str, origin: CodeOrigin) -> StackFrame {
        StackFrame {
            class: class.into(),
            method: method.into(),
            file: None,
            line: 1,
            origin,
        }
    }

    fn context(opened: u64, collected: u64, open_ms: &[u64]) -> OpenedContext {
        let open = open_ms.iter().map(|&opened_ms| OpenResource {
            opened_ms,
            thread: ThreadId(1),
        });
        OpenedContext {
            trace: StackTrace {
                id: ContextId(7),
                stack: StackId(1),
                allocated: None,
                frames: vec![
                    frame("java.util.zip.ZipFile", "<init>", CodeOrigin::Jdk),
                    frame("com.acme.Store", "read", CodeOrigin::Application),
                    frame("java.lang.Thread", "<clinit>", CodeOrigin::Jdk),
                ],
            },
            type_name: "java.util.zip.ZipFile".into(),
            kept_by_jdk: false,
            opened,
            collected,
            open: open.collect(),
        }
    }

    #[test]
    fn what_is_neither_open_nor_collected_was_closed() {
        assert_eq!(context(10, 3, &[1, 2]).closed(), 5);
        // The openings are counted later than the open ones.
        assert_eq!(context(1, 0, &[1, 2]).closed(), 0);
    }

    #[test]
    fn openings_are_counted_by_quarter_of_the_run() {
        let row = context(6, 0, &[100, 149, 150, 299, 300, 400]);
        let resources = OpenedResources {
            rows: Vec::new(),
            outside: 0,
            start_ms: 100,
            now_ms: 300,
        };
        assert_eq!(resources.count_openings_by_part(&row), [2, 1, 0, 3]);
        assert_eq!(resources.age_ms(&row.open[0]), 200);
        assert_eq!(resources.age_ms(&row.open[5]), 0);
    }

    #[test]
    fn what_the_jdk_keeps_is_found_between_the_opening_and_own_code() {
        let mut row = context(1, 0, &[1]);
        // The initializer of a class that calls own code keeps nothing for itself.
        assert!(!is_kept_by_jdk(&row.trace.frames));
        let loader = frame(
            "jdk.internal.loader.URLClassPath",
            "getLoader",
            CodeOrigin::Jdk,
        );
        row.trace.frames.insert(1, loader);
        assert!(is_kept_by_jdk(&row.trace.frames));
        let own = row.trace.focus_frame().map(|frame| frame.method.as_str());
        assert_eq!(own, Some("read"));
    }
}
