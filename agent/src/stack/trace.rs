//! The frames of a number, for a program that asks for its own: from the book, or from the log, if classes of the
//! context are gone.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use lucce_callgraph::{ContextId, Frame, Graph, MethodId, SiteId};
use lucce_contentid::{Detail, FrameId, FrameText, StackId};
use lucce_tracelog::{ClassId, Record, each_record};
use rustc_hash::FxHashMap;

use crate::book::names::external;
use crate::book::{Book, NO_LINE};
use crate::memory::locks::WatchedMutex;
use crate::stack::Stack;
use crate::stack::tasks::Tasks;

/// What `StackTraceElement` is made of, and the method's descriptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    pub class: String,
    pub method: String,
    pub descriptor: String,
    pub file: Option<String>,
    pub line: i32,
}

/// The content id of a trace, whose innermost frame comes first: as the decoder computes it from the log.
pub fn stack_id(elements: &[Element]) -> StackId {
    let frame = |element: &Element| {
        let text = FrameText {
            class: &element.class,
            method: &element.method,
            descriptor: &element.descriptor,
            line: element.line,
        };
        FrameId::of(text, Detail::ByLine)
    };
    let outermost_first = elements.iter().rev().map(frame);
    outermost_first.fold(StackId::EMPTY, StackId::then)
}

/// The frames of the thread itself.
///
/// # Errors
/// Why `number` is none that was given out.
pub fn of(stack: &Stack, number: ContextId) -> Result<Vec<Element>, String> {
    let decoded = stack.encoder.decode(number, MethodId::EVENT);
    let error = match &decoded {
        Ok(frames) => {
            let own = frames.get(..stack.tasks.own(frames)).unwrap_or_default();
            let elements = elements(&stack.book(), own);
            match elements {
                Some(elements) => return Ok(elements),
                None => "it has a frame that is not known".into(),
            }
        }
        Err(error) => error.to_string(),
    };
    let may_have_left = stack.encoder.sweeps() > 0 || stack.book().has_gone();
    match may_have_left {
        true => stack.archive.trace(stack, number).ok_or(error),
        false => Err(error),
    }
}

/// The frames of the thread itself, then those of the thread that submitted its task or started it, and so on.
///
/// # Errors
/// As [`of`].
pub fn across_threads(stack: &Stack, number: ContextId) -> Result<Vec<Element>, String> {
    let decoded = stack.encoder.decode(number, MethodId::EVENT);
    let Some(mut frames) = decoded.ok() else {
        return of(stack, number);
    };
    frames.retain(|frame| !stack.tasks.is_between(frame.method));
    let found = elements(&stack.book(), &frames);
    match found {
        Some(elements) => Ok(elements),
        None => of(stack, number),
    }
}

/// `None`: a frame is not in the book.
pub fn elements(book: &Book, frames: &[Frame]) -> Option<Vec<Element>> {
    let element = |frame: &Frame| {
        let site = book.site(frame.site.0)?;
        let method = book.method(site.method)?;
        let class = book.class(method.class)?;
        Some(Element {
            class: external(book.text(class.name)),
            method: book.text(method.name).to_string(),
            descriptor: book.text(method.descriptor).to_string(),
            file: class.source.map(|name| book.text(name).to_string()),
            line: book.line(&site),
        })
    };
    frames.iter().map(element).collect()
}

/// What the log had to say when it was read last. Asking for one number is as much work as for all, so it is kept for a
/// while; it is as large as if nothing had ever gone.
#[derive(Default)]
pub struct Archive(WatchedMutex<Option<Arc<Read>>>);

impl Archive {
    fn trace(&self, stack: &Stack, number: ContextId) -> Option<Vec<Element>> {
        let mut last = self.0.lock();
        if let Some(read) = &*last
            && let Some(found) = read.trace(&stack.tasks, number)
        {
            return Some(found);
        }
        // Some classes have gone since, or it is the first time, or there is no such number.
        let (file, bytes) = stack.log.checkpoint().ok()?;
        if last.as_ref().is_some_and(|read| read.bytes == bytes) {
            return None;
        }
        let read = Arc::new(Read::new(stack, &file, bytes));
        *last = Some(Arc::clone(&read));
        read.trace(&stack.tasks, number)
    }

    /// Gives the memory back. It is read again when it is needed.
    pub fn forget(&self) {
        *self.0.lock() = None;
    }
}

struct Read {
    /// Of the log.
    bytes: u64,
    graph: Graph,
    classes: FxHashMap<ClassId, (String, Option<String>)>,
    methods: FxHashMap<MethodId, Method>,
    sites: FxHashMap<SiteId, Site>,
}

struct Method {
    class: ClassId,
    name: Box<str>,
    descriptor: Box<str>,
    lines: Box<[(u16, u16)]>,
}

struct Site {
    method: MethodId,
    bci: i32,
    line: Option<i32>,
}

impl Read {
    fn new(stack: &Stack, file: &std::fs::File, bytes: u64) -> Read {
        let mut read = Read {
            bytes,
            graph: Graph::new(stack.encoder.layout()),
            classes: FxHashMap::default(),
            methods: FxHashMap::default(),
            sites: FxHashMap::default(),
        };
        let part = |at: u64, into: &mut [u8]| file.read_exact_at(into, at).is_ok();
        each_record(bytes, part, |record| read.note(record));
        read
    }

    fn note(&mut self, record: Record<'_>) {
        match record {
            // What contradicts itself explains no number.
            Record::Change(change) => drop(self.graph.apply(change)),
            Record::Class(class) => {
                let file = class.source_file.map(Into::into);
                self.classes.insert(class.id, (class.name.into(), file));
            }
            Record::Method(method) => {
                let known = Method {
                    class: method.class,
                    name: method.name.into(),
                    descriptor: method.descriptor.into(),
                    lines: method.lines.into(),
                };
                self.methods.insert(method.id, known);
            }
            Record::Site(site) => {
                let known = Site {
                    method: site.method,
                    bci: site.bci,
                    line: site.line,
                };
                self.sites.insert(site.id, known);
            }
            _ => {}
        }
    }

    fn trace(&self, tasks: &Tasks, number: ContextId) -> Option<Vec<Element>> {
        let frames = self.graph.decode(number, MethodId::EVENT).ok()?;
        let own = frames.get(..tasks.own(&frames))?;
        own.iter().map(|frame| self.element(frame)).collect()
    }

    fn element(&self, frame: &Frame) -> Option<Element> {
        let site = self.sites.get(&frame.site)?;
        let method = self.methods.get(&site.method)?;
        let (class, file) = self.classes.get(&method.class)?;
        Some(Element {
            class: class.clone(),
            method: method.name.to_string(),
            descriptor: method.descriptor.to_string(),
            file: file.clone(),
            line: site.line.unwrap_or_else(|| method.line(site.bci)),
        })
    }
}

impl Method {
    fn line(&self, bci: i32) -> i32 {
        let before = self.lines.partition_point(|&(at, _)| i32::from(at) <= bci);
        let found = before.checked_sub(1).and_then(|at| self.lines.get(at));
        found.map_or(NO_LINE, |&(_, line)| line.into())
    }
}
