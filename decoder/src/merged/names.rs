//! Texts, methods and frames of all runs, each once.

use std::collections::HashMap;
use std::hash::Hash;

use lucce_callgraph::{ContextFrame, MethodId, SiteId};
use lucce_contentid::{ContentDetail, FrameId};

use crate::frame::StackFrame;
use crate::profile::Profile;
use crate::tree::TreeFrameKey;

/// Values by number, in the order in which they were first met.
#[derive(Debug)]
pub struct ValueInterner<T> {
    values: Vec<T>,
    index: HashMap<T, u32>,
}

impl<T> Default for ValueInterner<T> {
    fn default() -> Self {
        ValueInterner {
            values: Vec::new(),
            index: HashMap::new(),
        }
    }
}

impl<T: Hash + Eq + Clone> ValueInterner<T> {
    pub fn intern_value(&mut self, value: T) -> u32 {
        if let Some(known) = self.index.get(&value) {
            return *known;
        }
        // As many values as memory holds are fewer than 2^32: each takes dozens of bytes.
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value.clone());
        self.index.insert(value, number);
        number
    }

    /// A number of its own, even if the value has one already.
    pub fn push(&mut self, value: T) -> u32 {
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value.clone());
        self.index.entry(value).or_insert(number);
        number
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }

    pub fn as_slice(&self) -> &[T] {
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
pub enum FrameIdentity {
    /// Those that a person cannot tell apart: frames of several runs are compared.
    ByName,
    /// Those of one id without lines: versions of a program are compared whose lines have moved.
    WithoutLines,
}

impl FrameIdentity {
    fn id_detail(self) -> ContentDetail {
        match self {
            FrameIdentity::ByName => ContentDetail::ByLine,
            FrameIdentity::WithoutLines => ContentDetail::ByMethod,
        }
    }
}

/// What counts together: a thread's events under the same tags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TaggedThread {
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
pub struct MergedNames {
    pub classes: ValueInterner<String>,
    pub methods: ValueInterner<MethodName>,
    pub frames: ValueInterner<FrameName>,
    pub types: ValueInterner<String>,
    pub threads: ValueInterner<String>,
    /// As [`Profile::tags_of`] says them.
    pub tags: ValueInterner<String>,
    pub tagged_threads: ValueInterner<TaggedThread>,
    pub kinds: ValueInterner<KindName>,
    /// Frames that are told apart by their ids alone.
    by_id: HashMap<FrameId, TreeFrameKey>,
}

impl MergedNames {
    /// The number of a frame.
    pub fn number_frames<'n>(
        &'n mut self,
        profile: &'n Profile,
        apart: FrameIdentity,
    ) -> impl FnMut(ContextFrame) -> Option<TreeFrameKey> + 'n {
        let mut known: HashMap<(SiteId, MethodId), TreeFrameKey> = HashMap::new();
        move |frame| {
            let key = known.entry((frame.site, frame.method));
            Some(*key.or_insert_with(|| self.number_frame(profile, frame, apart)))
        }
    }

    /// A frame as the JVM prints it.
    pub fn resolve_frame(&self, key: TreeFrameKey) -> Option<StackFrame> {
        let frame = self.frames.get(key.0)?;
        let method = self.methods.get(frame.method)?;
        Some(StackFrame {
            class: self.classes.get(method.class)?.clone(),
            method: method.name.clone(),
            file: method.file.clone(),
            line: frame.line,
        })
    }

    fn number_frame(
        &mut self,
        profile: &Profile,
        frame: ContextFrame,
        apart: FrameIdentity,
    ) -> TreeFrameKey {
        let shown = profile.code.resolve_frame(frame);
        let id = profile.code.frame_id(frame, &shown, apart.id_detail());
        let known = self
            .by_id
            .get(&id)
            .filter(|_| apart == FrameIdentity::WithoutLines);
        if let Some(known) = known {
            return *known;
        }
        let by_method = profile
            .code
            .frame_id(frame, &shown, ContentDetail::ByMethod);
        let class = self.classes.intern_value(shown.class);
        let method = self.methods.intern_value(MethodName {
            class,
            name: shown.method,
            file: shown.file,
        });
        let line = match apart {
            FrameIdentity::ByName => shown.line,
            // Unknown; a native method is still one.
            FrameIdentity::WithoutLines => shown.line.min(-1),
        };
        let name = FrameName {
            method,
            line,
            id,
            by_method,
        };
        let key = TreeFrameKey(self.frames.intern_value(name));
        if apart == FrameIdentity::WithoutLines {
            self.by_id.insert(id, key);
        }
        key
    }
}
