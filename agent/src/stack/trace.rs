//! Decodes a number for the program: from the code registry, or from the log if classes of the context were unloaded.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use lucce_callgraph::{ContextFrame, ContextId, MethodId, SiteId, VersionedGraph};
use lucce_contentid::{ContentDetail, FrameId, FrameText, StackId};
use lucce_tracelog::{ClassId, LogRecord, for_each_record};
use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedMutex;
use crate::registry::written_records::external_name;
use crate::registry::{CodeRegistry, NO_LINE};
use crate::stack::StackParts;
use crate::stack::tasks::TaskOrigins;

/// The fields of a `StackTraceElement`, and the method's descriptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackElement {
    pub class: String,
    pub method: String,
    pub descriptor: String,
    pub file: Option<String>,
    pub line: i32,
}

/// The content id of a trace, whose innermost frame comes first. The decoder computes the same id from the log.
pub fn stack_id(elements: &[StackElement]) -> StackId {
    let frame = |element: &StackElement| {
        let text = FrameText {
            class: &element.class,
            method: &element.method,
            descriptor: &element.descriptor,
            line: element.line,
        };
        FrameId::from_frame(text, ContentDetail::ByLine)
    };
    let outermost_first = elements.iter().rev().map(frame);
    outermost_first.fold(StackId::EMPTY, StackId::with_callee)
}

/// The frames of the thread itself, innermost first.
///
/// # Errors
/// The reason, if `number` was never handed out.
pub fn decode_trace(agent: StackParts<'_>, number: ContextId) -> Result<Vec<StackElement>, String> {
    let decoded = agent.core.encoder.decode_context(number, MethodId::EVENT);
    let error = match &decoded {
        Ok(frames) => {
            let own = frames
                .get(..agent.stack.tasks.own_frame_count(frames))
                .unwrap_or_default();
            let elements = resolve_elements(&agent.core.registry(), own);
            match elements {
                Some(elements) => return Ok(elements),
                None => "it has a frame that is not known".into(),
            }
        }
        Err(error) => error.to_string(),
    };
    let may_have_left =
        agent.core.encoder.sweep_count() > 0 || agent.core.registry().has_removed_classes();
    match may_have_left {
        true => agent
            .stack
            .archive
            .decode_archived(agent, number)
            .ok_or(error),
        false => Err(error),
    }
}

/// The frames of the thread itself, then those of the thread that submitted its task or started it, and so on.
///
/// # Errors
/// Like [`decode_trace`].
pub fn decode_across_threads(
    agent: StackParts<'_>,
    number: ContextId,
) -> Result<Vec<StackElement>, String> {
    let decoded = agent.core.encoder.decode_context(number, MethodId::EVENT);
    let Some(mut frames) = decoded.ok() else {
        return decode_trace(agent, number);
    };
    frames.retain(|frame| !agent.stack.tasks.is_submission_frame(frame.method));
    let elements = resolve_elements(&agent.core.registry(), &frames);
    match elements {
        Some(elements) => Ok(elements),
        None => decode_trace(agent, number),
    }
}

/// The elements of `frames`. `None`: a frame is not in the code registry.
pub fn resolve_elements(
    registry: &CodeRegistry,
    frames: &[ContextFrame],
) -> Option<Vec<StackElement>> {
    let element = |frame: &ContextFrame| {
        let site = registry.site(frame.site.0)?;
        let method = registry.method(site.method)?;
        let class = registry.class(method.class)?;
        Some(StackElement {
            class: external_name(registry.name_text(class.name)),
            method: registry.name_text(method.name).to_string(),
            descriptor: registry.name_text(method.descriptor).to_string(),
            file: class
                .source
                .map(|name| registry.name_text(name).to_string()),
            line: registry.line_of_site(&site),
        })
    };
    frames.iter().map(element).collect()
}

/// The log's content at its last reading. One number takes as much work as all, so the content is kept for a while.
/// It is as large as if no class had been unloaded.
#[derive(Default)]
pub struct LogArchive(WatchedMutex<Option<Arc<ArchivedLog>>>);

impl LogArchive {
    fn decode_archived(
        &self,
        agent: StackParts<'_>,
        number: ContextId,
    ) -> Option<Vec<StackElement>> {
        let mut last = self.0.lock();
        if let Some(read) = &*last
            && let Some(found) = read.decode_number(&agent.stack.tasks, number)
        {
            return Some(found);
        }
        // More classes were unloaded since, or this is the first reading, or the number does not exist.
        let (file, bytes) = agent.core.log.checkpoint().ok()?;
        if last.as_ref().is_some_and(|read| read.bytes == bytes) {
            return None;
        }
        let read = Arc::new(ArchivedLog::new(agent, &file, bytes));
        *last = Some(Arc::clone(&read));
        read.decode_number(&agent.stack.tasks, number)
    }

    /// Frees the content. It is read again when needed.
    pub fn drop_archive(&self) {
        *self.0.lock() = None;
    }
}

struct ArchivedLog {
    /// The length of the log at the reading.
    bytes: u64,
    graph: VersionedGraph,
    classes: FxHashMap<ClassId, (String, Option<String>)>,
    methods: FxHashMap<MethodId, ArchivedMethod>,
    sites: FxHashMap<SiteId, ArchivedSite>,
}

struct ArchivedMethod {
    class: ClassId,
    name: Box<str>,
    descriptor: Box<str>,
    lines: Box<[(u16, u16)]>,
}

struct ArchivedSite {
    method: MethodId,
    bci: i32,
    line: Option<i32>,
}

impl ArchivedLog {
    fn new(agent: StackParts<'_>, file: &std::fs::File, bytes: u64) -> ArchivedLog {
        let mut read = ArchivedLog {
            bytes,
            graph: VersionedGraph::new(agent.core.encoder.layout()),
            classes: FxHashMap::default(),
            methods: FxHashMap::default(),
            sites: FxHashMap::default(),
        };
        let part = |at: u64, into: &mut [u8]| file.read_exact_at(into, at).is_ok();
        for_each_record(bytes, part, |record| read.add_record(record));
        read
    }

    fn add_record(&mut self, record: LogRecord<'_>) {
        match record {
            // A contradictory change is skipped: it explains no number.
            LogRecord::Change(change) => drop(self.graph.apply_change(change)),
            LogRecord::Class(class) => {
                let file = class.source_file.map(Into::into);
                self.classes.insert(class.id, (class.name.into(), file));
            }
            LogRecord::Method(method) => {
                let archived = ArchivedMethod {
                    class: method.class,
                    name: method.name.into(),
                    descriptor: method.descriptor.into(),
                    lines: method.lines.into(),
                };
                self.methods.insert(method.id, archived);
            }
            LogRecord::Site(site) => {
                let archived = ArchivedSite {
                    method: site.method,
                    bci: site.bci,
                    line: site.line,
                };
                self.sites.insert(site.id, archived);
            }
            _ => {}
        }
    }

    fn decode_number(&self, tasks: &TaskOrigins, number: ContextId) -> Option<Vec<StackElement>> {
        let frames = self.graph.decode_context(number, MethodId::EVENT).ok()?;
        let own = frames.get(..tasks.own_frame_count(&frames))?;
        own.iter()
            .map(|frame| self.resolve_element(frame))
            .collect()
    }

    fn resolve_element(&self, frame: &ContextFrame) -> Option<StackElement> {
        let site = self.sites.get(&frame.site)?;
        let method = self.methods.get(&site.method)?;
        let (class, file) = self.classes.get(&method.class)?;
        Some(StackElement {
            class: class.clone(),
            method: method.name.to_string(),
            descriptor: method.descriptor.to_string(),
            file: file.clone(),
            line: site.line.unwrap_or_else(|| method.line_number(site.bci)),
        })
    }
}

impl ArchivedMethod {
    fn line_number(&self, bci: i32) -> i32 {
        let before = self.lines.partition_point(|&(at, _)| i32::from(at) <= bci);
        let entry = before.checked_sub(1).and_then(|at| self.lines.get(at));
        entry.map_or(NO_LINE, |&(_, line)| line.into())
    }
}
