//! Names of all runs: texts, methods and frames, each once.

use std::collections::HashMap;
use std::hash::Hash;

use lucce_callgraph::{ContextFrame, MethodId, SiteId};
use lucce_contentid::{ContentDetail, FrameId};

use crate::call_tree::TreeFrameKey;
use crate::frame::CodeOrigin;
use crate::frame::StackFrame;
use crate::profile::Profile;

/// Interned values, numbered in order of insertion.
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
        // Memory holds fewer than 2^32 values, since each takes dozens of bytes.
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value.clone());
        self.index.insert(value, number);
        number
    }

    /// Adds a value with a new number, even if it has one already.
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

/// A method by its shown name: overloads are equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MethodName {
    pub class: u32,
    pub name: String,
    pub file: Option<String>,
}

/// A frame; its content id distinguishes overloads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FrameName {
    pub method: u32,
    pub line: i32,
    pub id: FrameId,
    /// Its content id without the line.
    pub by_method: FrameId,
}

/// The identity of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameIdentity {
    /// Frames are equal by shown name, for comparing runs.
    ByName,
    /// Frames are equal by content id without lines, for comparing versions of a program whose lines have moved.
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

/// A thread, and the tags of its events.
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

/// All names of the merged runs.
#[derive(Default, Debug)]
pub struct MergedNames {
    pub classes: ValueInterner<String>,
    /// Whose code each class is, by the class's number.
    class_origins: Vec<CodeOrigin>,
    pub methods: ValueInterner<MethodName>,
    pub frames: ValueInterner<FrameName>,
    pub types: ValueInterner<String>,
    pub threads: ValueInterner<String>,
    /// Tags as [`Profile::tags_of`] formats them.
    pub tags: ValueInterner<String>,
    pub tagged_threads: ValueInterner<TaggedThread>,
    pub kinds: ValueInterner<KindName>,
    /// Frames that are identified by content id only.
    by_id: HashMap<FrameId, TreeFrameKey>,
}

impl MergedNames {
    /// A function that numbers a run's frames.
    pub fn number_frames<'n>(
        &'n mut self,
        profile: &'n Profile,
        apart: FrameIdentity,
    ) -> impl FnMut(ContextFrame) -> Option<TreeFrameKey> + 'n {
        let mut cache: HashMap<(SiteId, MethodId), TreeFrameKey> = HashMap::new();
        move |frame| {
            let key = cache.entry((frame.site, frame.method));
            Some(*key.or_insert_with(|| self.number_frame(profile, frame, apart)))
        }
    }

    /// A frame's names and line.
    pub fn resolve_frame(&self, key: TreeFrameKey) -> Option<StackFrame> {
        let frame = self.frames.get(key.0)?;
        let method = self.methods.get(frame.method)?;
        Some(StackFrame {
            class: self.classes.get(method.class)?.clone(),
            method: method.name.clone(),
            file: method.file.clone(),
            line: frame.line,
            origin: self.class_origin(method.class),
        })
    }

    /// Whose code a class is, by its number.
    #[must_use]
    pub fn class_origin(&self, class: u32) -> CodeOrigin {
        let origin = self.class_origins.get(class as usize);
        origin.copied().unwrap_or_default()
    }

    /// Whose code a frame is.
    #[must_use]
    pub fn frame_origin(&self, key: TreeFrameKey) -> CodeOrigin {
        let method = self.frames.get(key.0).map(|frame| frame.method);
        let method = method.and_then(|method| self.methods.get(method));
        method.map_or(CodeOrigin::default(), |method| {
            self.class_origin(method.class)
        })
    }

    /// Whether traces can be folded: some frames are own code, and some are not.
    #[must_use]
    pub fn is_own_code_mixed(&self) -> bool {
        let is_own = |frame| self.frame_origin(TreeFrameKey(frame)) == CodeOrigin::Application;
        let frames = || 0..self.frames.as_slice().len() as u32;
        frames().any(is_own) && !frames().all(is_own)
    }

    /// Of classes of one name, one that is the program's own decides.
    fn record_origin(&mut self, class: u32, origin: CodeOrigin) {
        let at = class as usize;
        match self.class_origins.get_mut(at) {
            Some(known) if origin == CodeOrigin::Application => *known = origin,
            Some(_) => {}
            None => {
                self.class_origins.resize(at, CodeOrigin::default());
                self.class_origins.push(origin);
            }
        }
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
        self.record_origin(class, shown.origin);
        let method = self.methods.intern_value(MethodName {
            class,
            name: shown.method,
            file: shown.file,
        });
        let line = match apart {
            FrameIdentity::ByName => shown.line,
            // An unknown line; native methods keep theirs.
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
