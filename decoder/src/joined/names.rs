//! Texts, methods and frames of all runs, each once.

use std::collections::HashMap;
use std::hash::Hash;

use lucce_callgraph::{Frame, MethodId, SiteId};
use lucce_contentid::{Detail, FrameId};

use crate::frame::StackFrame;
use crate::profile::Profile;
use crate::tree::FrameKey;

/// Values by number, in the order in which they were first met.
#[derive(Debug)]
pub struct Numbered<T> {
    values: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered {
            values: Vec::new(),
            known: HashMap::new(),
        }
    }
}

impl<T: Hash + Eq + Clone> Numbered<T> {
    pub fn number(&mut self, value: T) -> u32 {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        // As many values as memory holds are fewer than 2^32: each takes dozens of bytes.
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value.clone());
        self.known.insert(value, number);
        number
    }

    /// A number of its own, even if the value has one already.
    pub fn push(&mut self, value: T) -> u32 {
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value.clone());
        self.known.entry(value).or_insert(number);
        number
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }

    pub fn all(&self) -> &[T] {
        &self.values
    }
}

/// A method as a person reads it: overloads are one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MethodName {
    pub class: u32,
    pub name: String,
    pub file: Option<String>,
}

/// A frame: its id tells overloads apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FrameName {
    pub method: u32,
    pub line: i32,
    pub id: FrameId,
    /// Its id without the line.
    pub by_method: FrameId,
}

/// Which frames are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Apart {
    /// Those that a person cannot tell apart: frames of several runs are compared.
    ByName,
    /// Those of one id without lines: versions of a program are compared whose lines have moved.
    WithoutLines,
}

impl Apart {
    fn detail(self) -> Detail {
        match self {
            Apart::ByName => Detail::ByLine,
            Apart::WithoutLines => Detail::ByMethod,
        }
    }
}

/// What counts together: a thread's events under the same tags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaneName {
    pub thread: u32,
    pub tags: u32,
}

/// A kind of event, with its unit.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KindName {
    pub name: String,
    pub unit: String,
}

/// Everything that has a name.
#[derive(Default, Debug)]
pub struct Names {
    pub classes: Numbered<String>,
    pub methods: Numbered<MethodName>,
    pub frames: Numbered<FrameName>,
    pub types: Numbered<String>,
    pub threads: Numbered<String>,
    /// As [`Profile::tags_of`] says them.
    pub tags: Numbered<String>,
    pub lanes: Numbered<LaneName>,
    pub kinds: Numbered<KindName>,
    /// Frames that are told apart by their ids alone.
    by_id: HashMap<FrameId, FrameKey>,
}

impl Names {
    /// The number of a frame.
    pub fn frames<'n>(
        &'n mut self,
        profile: &'n Profile,
        apart: Apart,
    ) -> impl FnMut(Frame) -> Option<FrameKey> + 'n {
        let mut known: HashMap<(SiteId, MethodId), FrameKey> = HashMap::new();
        move |frame| {
            let key = known.entry((frame.site, frame.method));
            Some(*key.or_insert_with(|| self.frame(profile, frame, apart)))
        }
    }

    /// A frame as the JVM prints it.
    pub fn shown(&self, key: FrameKey) -> Option<StackFrame> {
        let frame = self.frames.get(key.0)?;
        let method = self.methods.get(frame.method)?;
        Some(StackFrame {
            class: self.classes.get(method.class)?.clone(),
            method: method.name.clone(),
            file: method.file.clone(),
            line: frame.line,
        })
    }

    fn frame(&mut self, profile: &Profile, frame: Frame, apart: Apart) -> FrameKey {
        let shown = profile.code.frame(frame);
        let id = profile.code.frame_id(frame, &shown, apart.detail());
        let known = self.by_id.get(&id).filter(|_| apart == Apart::WithoutLines);
        if let Some(known) = known {
            return *known;
        }
        let by_method = profile.code.frame_id(frame, &shown, Detail::ByMethod);
        let class = self.classes.number(shown.class);
        let method = self.methods.number(MethodName {
            class,
            name: shown.method,
            file: shown.file,
        });
        let line = match apart {
            Apart::ByName => shown.line,
            // Unknown; a native method is still one.
            Apart::WithoutLines => shown.line.min(-1),
        };
        let name = FrameName {
            method,
            line,
            id,
            by_method,
        };
        let key = FrameKey(self.frames.number(name));
        if apart == Apart::WithoutLines {
            self.by_id.insert(id, key);
        }
        key
    }
}
