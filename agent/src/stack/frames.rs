//! Frames as the VM reports them, matched with the book.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jvmti_bindings::sys::jni::{jmethodID, jobject};
use lucce_bytecode::{call_places, last_places};
use lucce_callgraph::MethodId;
use rustc_hash::FxHashMap;

use crate::book::{Loader, NATIVE, NO_LINE};
use crate::core::holds;
use crate::memory::locks::WatchedRwLock;
use crate::stack::Stack;
use crate::stack::class_versions::{ClassVersions, VersionedClass};
use crate::stack::{known, unloading};
use lucce_hooks::{FrameKind, INHERITED, is_leaf};
use lucce_vm::{Env, Failed, Field, FrameInfo};

/// What a method is to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MethodKind {
    /// The helper class itself.
    Helper,
    /// Not shown in stack traces: hidden classes and methods, frames of virtual thread switching,
    /// classes that are not in scope.
    Hidden,
    /// In the book.
    Known(u32),
    /// Not in the book: the class did not come through the hook.
    Unknown,
}

/// A method of the VM, resolved once.
#[derive(Debug)]
pub struct Resolved {
    /// As the VM names it.
    vm_id: usize,
    pub kind: MethodKind,
    pub native: bool,
    /// Whether its frames have a slot.
    pub slot: bool,
    /// They get it by asking the VM, and so only when the entry hook has run: from this location on.
    vm: Option<i64>,
    /// The method is synchronized and takes a slot that its caller names.
    entered_with_lock: bool,
    /// A native method whose callers, if they have hooks, say where its slot would be.
    announced: bool,
    /// Its frames have no slot, and put the pointer back when they end.
    pub restores: bool,
    /// It has hooks behind calls of natives that make objects for it: see `hooks::making`.
    pub counts_what_it_makes: bool,
    /// Where the handler begins that the agent has put in, and where that throws again.
    pub unwind: Option<(i64, i64)>,
    /// (start, line) of the code that the VM runs, sorted.
    lines: Vec<(i64, i32)>,
    /// The last instruction of that code.
    last_location: i64,
    version: MethodVersion,
    /// Frames may run older code, with other lines, that the VM calls by the same id.
    older_lines: bool,
    /// Of its class.
    loader: Loader,
    pub class_name: String,
    pub method_name: String,
}

/// As long as what is, a method has the code that was resolved.
#[derive(Clone, Debug)]
enum MethodVersion {
    /// It always has.
    Fixed,
    /// It was looked at before classes could be watched.
    Early,
    /// Its class has this count.
    Counted {
        class: Arc<VersionedClass>,
        field: Field,
        count: i32,
    },
}

impl MethodVersion {
    fn count(&self) -> i32 {
        match self {
            MethodVersion::Counted { count, .. } => *count,
            MethodVersion::Fixed | MethodVersion::Early => 0,
        }
    }
}

impl Resolved {
    /// Whether the method still has the code that was resolved. It must be alive, as one that the current thread runs.
    /// `can_watch`: see [`can_watch`].
    pub fn is_current(&self, env: Env, can_watch: bool) -> bool {
        match &self.version {
            _ if !can_watch => true,
            MethodVersion::Fixed => true,
            MethodVersion::Early => false,
            MethodVersion::Counted {
                class,
                field,
                count,
            } => class.count(env, *field) == *count,
        }
    }

    /// The class and its count: methods for which this is equal are current or not together.
    pub fn version_key(&self) -> Option<(usize, i32)> {
        match &self.version {
            MethodVersion::Counted { class, count, .. } => {
                Some((Arc::as_ptr(class).addr(), *count))
            }
            MethodVersion::Fixed | MethodVersion::Early => None,
        }
    }

    /// Whether frames of this method may run older code with other lines: only a `Throwable` knows them.
    pub fn has_older_lines(&self) -> bool {
        self.older_lines
    }

    pub fn vm_id(&self) -> jmethodID {
        self.vm_id as jmethodID
    }

    pub fn loader(&self) -> Loader {
        self.loader
    }

    pub fn id(&self) -> Option<MethodId> {
        match self.kind {
            MethodKind::Known(id) => Some(MethodId(id)),
            _ => None,
        }
    }

    /// Whether its frames get their slot by asking the VM.
    pub fn is_entered_by_vm(&self) -> bool {
        self.vm.is_some()
    }

    /// Whether the thread's pointer is right when this method waits for its monitor at bci 0: it has
    /// not run yet.
    pub fn is_entered_with_lock(&self) -> bool {
        self.entered_with_lock
    }

    /// Whether the pointer is right from the hook before a call of this native method on: see
    /// `upcall::called_native`.
    pub fn is_announced(&self) -> bool {
        self.announced
    }

    /// As `StackTraceElement` has it.
    pub fn line(&self, location: i64) -> i32 {
        match self.native {
            true => NATIVE,
            false => line_at(&self.lines, location),
        }
    }
}

/// As HotSpot does: the first entry that begins right there, else the last one of the nearest. `lines`: sorted by location, those
/// of one location as the VM has them.
pub fn line_at(lines: &[(i64, i32)], location: i64) -> i32 {
    let before = lines.partition_point(|(start, _)| *start < location);
    let found = match lines.get(before) {
        Some((start, line)) if *start == location => Some(*line),
        _ => before
            .checked_sub(1)
            .and_then(|at| lines.get(at))
            .map(|one| one.1),
    };
    found.unwrap_or(NO_LINE)
}

#[cfg(test)]
impl Resolved {
    /// A method whose frames have a slot or not, with a line for each location.
    pub fn simulated(method: MethodId, slot: bool, lines: Vec<(i64, i32)>) -> Resolved {
        Resolved {
            vm_id: 0,
            kind: MethodKind::Known(method.0),
            native: false,
            slot,
            vm: None,
            entered_with_lock: false,
            announced: false,
            restores: false,
            counts_what_it_makes: false,
            unwind: None,
            lines,
            last_location: -1,
            version: MethodVersion::Fixed,
            older_lines: false,
            loader: Loader::BOOT,
            class_name: "a/B".into(),
            method_name: "m".into(),
        }
    }
}

/// Method ids live as long as their class; the VM does not reuse them. A method whose class has other code now is resolved
/// anew.
#[derive(Default)]
pub struct FrameCache {
    methods: WatchedRwLock<Known>,
    pub versions: ClassVersions,
    /// How often a method was resolved.
    resolutions: AtomicU64,
}

#[derive(Default)]
struct Known {
    methods: FxHashMap<usize, Arc<Resolved>>,
    /// Which of them are of loaders that may go.
    of_loader: FxHashMap<Loader, Vec<usize>>,
    /// Methods that their classes did not have when the agent was given them: by the class's id, name and descriptor.
    added: FxHashMap<(u32, String, String), u32>,
}

impl Known {
    fn get(&self, method: jmethodID) -> Option<&Arc<Resolved>> {
        self.methods.get(&(method as usize))
    }
}

impl FrameCache {
    pub fn resolve(&self, stack: &Stack, env: Env, method: jmethodID) -> Arc<Resolved> {
        let known = {
            let map = self.methods.read();
            map.get(method).cloned()
        };
        let current = known.filter(|known| known.is_current(env, can_watch(stack, env)));
        current.unwrap_or_else(|| self.resolve_new(stack, env, method))
    }

    /// A number that changes when a method is resolved. What is current after frames were asked for, and the number is what it
    /// was before, holds for the code that these frames run.
    pub fn resolutions(&self) -> u64 {
        self.resolutions.load(Ordering::Acquire)
    }

    /// What `found` are, without the helper's own frames.
    pub fn resolve_all(&self, stack: &Stack, env: Env, found: &[FrameInfo]) -> Vec<Frame> {
        let read = || self.methods.read();
        let mut frames = Vec::with_capacity(found.len());
        let can_watch = can_watch(stack, env);
        let mut map = read();
        for info in found {
            let known = map.get(info.method);
            let method = match known.filter(|known| known.is_current(env, can_watch)) {
                Some(known) => Arc::clone(known),
                None => {
                    drop(map);
                    let new = self.resolve_new(stack, env, info.method);
                    map = read();
                    new
                }
            };
            if method.kind != MethodKind::Helper {
                let location = info.location;
                frames.push(Frame { method, location });
            }
        }
        frames
    }

    /// Methods may have other code now, and their lines begin elsewhere.
    pub fn forget_all(&self) {
        let mut map = self.methods.write();
        *map = Known {
            added: std::mem::take(&mut map.added),
            ..Known::default()
        };
    }

    /// The id of a method that its class did not have when the agent was given it: `add` makes it, once.
    fn added_method(
        &self,
        class: u32,
        (name, descriptor): (&str, &str),
        add: impl FnOnce() -> Option<u32>,
    ) -> Option<u32> {
        let key = (class, name.to_owned(), descriptor.to_owned());
        let known = self.methods.read().added.get(&key).copied();
        if known.is_some() {
            return known;
        }
        // Two threads may add it at once: both ids stand for it.
        let id = add()?;
        self.methods.write().added.insert(key, id);
        Some(id)
    }

    /// The VM has unloaded these loaders' classes.
    pub fn forget(&self, loaders: &[Loader]) {
        let mut map = self.methods.write();
        for loader in loaders {
            for method in map.of_loader.remove(loader).unwrap_or_default() {
                map.methods.remove(&method);
            }
        }
        self.versions.forget(loaders);
    }

    fn resolve_new(&self, stack: &Stack, env: Env, method: jmethodID) -> Arc<Resolved> {
        let before = {
            let map = self.methods.read();
            map.get(method).cloned()
        };
        if before.is_some() {
            // The code of its class was replaced.
            stack.announced.forget_all();
            stack.alike.forget_all();
        }
        let mut resolved = resolve(stack, env, method);
        resolved.older_lines = has_older_lines(stack, &resolved, before.as_deref());
        let resolved = Arc::new(resolved);
        let mut map = self.methods.write();
        let known = map.methods.insert(method as usize, Arc::clone(&resolved));
        self.resolutions.fetch_add(1, Ordering::Release);
        if known.is_none() && resolved.loader != Loader::BOOT {
            let of_loader = map.of_loader.entry(resolved.loader).or_default();
            of_loader.push(method as usize);
        }
        resolved
    }
}

/// Whether the VM counts how often classes were changed, and can be asked for it.
pub fn can_watch(stack: &Stack, env: Env) -> bool {
    stack.is_live() && stack.frames.versions.field().is_some() && !env.has_exception()
}

/// Whether frames may run older code that the VM calls by the id of `resolved`, with other lines. `before`: what the id meant
/// before.
///
/// Code that differs in its instructions gets an id of its own. If only lines differ, the older code shares the id.
fn has_older_lines(stack: &Stack, resolved: &Resolved, before: Option<&Resolved>) -> bool {
    let count = resolved.version.count();
    if count == 0 || resolved.native || stack.jvmti.is_obsolete(resolved.vm_id()) {
        return false;
    }
    let Some(before) = before else {
        // What it was before it was seen first is not known.
        return true;
    };
    let is_next = count == before.version.count() + 1;
    let is_shared =
        resolved.last_location == before.last_location && resolved.lines != before.lines;
    before.older_lines || !is_next || is_shared
}

fn resolve(stack: &Stack, env: Env, method: jmethodID) -> Resolved {
    let mut resolved = Resolved {
        vm_id: method as usize,
        kind: MethodKind::Unknown,
        native: stack.jvmti.is_native(method),
        slot: false,
        vm: None,
        entered_with_lock: false,
        announced: false,
        restores: false,
        counts_what_it_makes: false,
        unwind: None,
        lines: Vec::new(),
        last_location: -1,
        version: MethodVersion::Early,
        older_lines: false,
        loader: Loader::BOOT,
        class_name: String::new(),
        method_name: String::new(),
    };
    if let Some(class) = stack.jvmti.declaring_class(method) {
        fill(stack, env, method, class, &mut resolved);
        env.forget(class);
    }
    if let (MethodVersion::Early, true) = (&resolved.version, can_watch(stack, env)) {
        // The VM does not say what it is, nor will it.
        resolved.version = MethodVersion::Fixed;
    }
    resolved
}

fn fill(
    stack: &Stack,
    env: Env,
    method: jmethodID,
    class: jobject,
    resolved: &mut Resolved,
) -> Option<()> {
    let loader = stack.jvmti.loader(class)?;
    let id = stack.loaders.id(stack.jvmti, env, loader);
    env.forget(loader);
    resolved.loader = id;
    let signature = stack.jvmti.signature(class)?;
    let name = signature.strip_prefix('L')?.strip_suffix(';')?;
    let (method_name, descriptor) = stack.jvmti.method_name(method)?;
    resolved.class_name = name.to_string();
    resolved.method_name = method_name;
    let is_inherited = name == "java/lang/Object" && resolved.method_name.starts_with(INHERITED);
    if name.starts_with("java/lang/LucceRt") || is_inherited {
        resolved.kind = MethodKind::Helper;
        resolved.version = MethodVersion::Fixed;
        return None;
    }
    // The name of a hidden class has a suffix behind a dot, which becomes one in its signature.
    if name.contains('.') {
        resolved.kind = MethodKind::Hidden;
        resolved.restores = !stack.options.is_partial();
        // The VM replaces no code of hidden classes.
        resolved.version = MethodVersion::Fixed;
        // Forms are code of the JDK that calls these natives as it calls any method: without a hook.
        resolved.counts_what_it_makes = !stack.options.is_partial() && !name.starts_with(FORMS);
        return None;
    }
    read_lines(stack, env, method, (class, name), resolved);
    if !holds(stack, id, name) {
        resolved.kind = MethodKind::Hidden;
        return None;
    }
    let is_known = || {
        let book = stack.book();
        let class = book.class_named(id, name)?;
        book.find_method(class, &resolved.method_name, &descriptor)
    };
    // A class that was replaced may have more methods than it had, if the VM was told to allow that.
    if stack.attached.is_some() && is_known().is_none() {
        let gone = stack.loaders.gone(env);
        if !gone.is_empty() {
            unloading::forget(stack, &gone);
        }
        known::add(stack, class, id, name)?;
    }
    let book = stack.book();
    let class = book.class_id(id, name)?;
    let known = book.find_method(book.class(class)?, &resolved.method_name, &descriptor);
    drop(book);
    let id = match known {
        Some(id) => id,
        None => {
            let method_name = (&*resolved.method_name, &*descriptor);
            let access = stack.jvmti.modifiers(method);
            let cache = &stack.frames;
            cache.added_method(class, method_name, || {
                known::add_method(stack, class, method_name, access)
            })?
        }
    };
    let book = stack.book();
    let info = book.method(id)?;
    resolved.kind = if info.transparent {
        MethodKind::Hidden
    } else {
        MethodKind::Known(id)
    };
    resolved.slot = info.has_slot();
    resolved.restores = matches!(info.frame, FrameKind::Peek | FrameKind::PeekVm);
    resolved.counts_what_it_makes = info.frame != FrameKind::Leaf;
    // Constructors of exceptions run without asking the VM, and they call fillInStackTrace.
    resolved.announced =
        resolved.native && name != "java/lang/Throwable" && !is_leaf(name, &resolved.method_name);
    let vm = info.frame == FrameKind::Vm;
    resolved.entered_with_lock =
        info.frame == FrameKind::Push && info.access & SYNCHRONIZED != 0 && !resolved.native;
    drop(book);
    if vm {
        resolved.vm = Some(behind_entry(stack, method));
        if resolved.method_name != "<init>" {
            resolved.unwind = unwind(stack, method);
        }
    }
    Some(())
}

/// Lines and version of one and the same code.
fn read_lines(
    stack: &Stack,
    env: Env,
    method: jmethodID,
    (class, name): (jobject, &str),
    resolved: &mut Resolved,
) {
    let versions = &stack.frames.versions;
    let field = versions.field().filter(|_| can_watch(stack, env));
    let watched = field.map(|field| {
        let class = versions.watch(env, class, (resolved.loader, name));
        (class, field)
    });
    let count = || {
        watched
            .as_ref()
            .map(|(class, field)| class.count(env, *field))
    };
    let count = loop {
        let before = count();
        resolved.lines = stack.jvmti.lines(method);
        resolved.last_location = stack.jvmti.last_location(method);
        if count() == before {
            break before;
        }
    };
    // In a stable order: those that begin at one place stay as they are.
    resolved.lines.sort_by_key(|(start, _)| *start);
    if let (Some((class, field)), Some(count)) = (watched, count) {
        resolved.version = MethodVersion::Counted {
            class,
            field,
            count,
        };
    }
}

const SYNCHRONIZED: u16 = 0x20;
const FORMS: &str = "java/lang/invoke/LambdaForm$";

/// The first call in a method that the VM enters is that of the entry hook.
fn behind_entry(stack: &Stack, method: jmethodID) -> i64 {
    const CALL: i64 = 3;
    let code = stack.jvmti.bytecodes(method);
    let first = call_places(&code).first().copied();
    i64::from(first.unwrap_or(0)) + CALL
}

/// The last instructions of a method that the VM enters: `lload N; invokestatic exitVm; athrow`.
fn unwind(stack: &Stack, method: jmethodID) -> Option<(i64, i64)> {
    let code = stack.jvmti.bytecodes(method);
    let [load, _, throw] = last_places(&code).map(i64::from);
    (throw > 0).then_some((load, throw))
}

/// Of `GetStackTrace`: there are no more frames than were skipped.
const ILLEGAL_ARGUMENT: i32 = 103;

/// How many frames the VM is asked for when all are needed.
pub const PIECE: usize = 256;

/// A frame with what it is.
#[derive(Clone)]
pub struct Frame {
    pub method: Arc<Resolved>,
    pub location: i64,
}

impl Frame {
    /// Whether there is a slot that belongs to this frame.
    pub fn has_slot(&self) -> bool {
        self.method.slot && self.method.vm.is_none_or(|from| self.location >= from)
    }

    pub fn line(&self) -> i32 {
        self.method.line(self.location)
    }
}

/// A thread's frames without the helper's, innermost first.
pub struct Walk<'a> {
    stack: &'a Stack,
    env: Env,
    /// Null: the current one.
    thread: jobject,
    /// Of the last piece, those that are not given yet.
    frames: std::vec::IntoIter<Frame>,
    depth: usize,
    wanted: usize,
    /// The VM gave fewer frames than were asked for.
    ended: bool,
    /// The VM gave none, though there are: it has ended, say, while this thread has not.
    failed: bool,
    /// Where the innermost frame stands, if that is not where the VM says.
    stands: Option<i64>,
    /// Whether the innermost frame is the helper's.
    in_helper: bool,
    /// So many of the innermost frames are none of a trace.
    own: usize,
}

impl<'a> Walk<'a> {
    /// Asks the VM for `piece` frames, the helper's among them, then for more each time: it walks from the innermost frame
    /// whenever it is asked.
    pub fn new(stack: &'a Stack, env: Env, piece: usize) -> Walk<'a> {
        Walk {
            stack,
            env,
            thread: std::ptr::null_mut(),
            frames: Vec::new().into_iter(),
            depth: 0,
            wanted: piece,
            ended: false,
            failed: false,
            stands: None,
            in_helper: false,
            own: 0,
        }
    }

    /// Once a frame was asked for: whether the innermost one is the helper's, which is not given.
    pub fn is_in_helper(&self) -> bool {
        self.in_helper
    }

    /// The frames of `thread`, which is suspended.
    pub fn of_thread(mut self, thread: jobject) -> Walk<'a> {
        self.thread = thread;
        self
    }

    /// The innermost frame stands at `location`.
    pub fn standing_at(mut self, location: Option<i64>) -> Walk<'a> {
        self.stands = location;
        self
    }

    /// For a comparison: the innermost `own` frames, the helper's aside, are left out.
    pub fn below(mut self, own: usize) -> Walk<'a> {
        self.own = own;
        self
    }

    pub fn own(&self) -> usize {
        self.own
    }

    /// Whether the innermost frame stands at another location than the VM says.
    pub fn stands_elsewhere(&self) -> bool {
        self.stands.is_some()
    }

    pub fn env(&self) -> Env {
        self.env
    }

    /// What the VM says of all frames, the helper's among them. `None`: it does not say them.
    pub fn raw(mut self) -> Option<Vec<FrameInfo>> {
        let mut all = self.piece();
        while !self.ended {
            all.append(&mut self.piece());
        }
        (!self.failed).then_some(all)
    }

    /// All frames that are left. `None`: the VM does not say them.
    pub fn rest(&mut self) -> Option<Vec<Frame>> {
        self.wanted = self.wanted.max(PIECE);
        let frames = self.collect();
        (!self.failed).then_some(frames)
    }

    /// Whether there may be frames that were not given.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// What the VM says of the next frames.
    fn piece(&mut self) -> Vec<FrameInfo> {
        if self.depth > 0 {
            self.wanted *= 2;
        }
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        let mut found = vec![empty; self.wanted];
        let count = match self.stack.jvmti.stack(self.thread, self.depth, &mut found) {
            Ok(count) => count,
            // The last piece ended with the outermost frame.
            Err(Failed(ILLEGAL_ARGUMENT)) if self.depth > 0 => 0,
            Err(_) => {
                self.failed = true;
                0
            }
        };
        found.truncate(count);
        self.ended = found.len() < self.wanted;
        self.depth += found.len();
        if let (Some(location), Some(innermost)) = (self.stands.take(), found.first_mut()) {
            innermost.location = location;
        }
        found
    }

    fn more(&mut self) {
        let found = self.piece();
        let cache = &self.stack.frames;
        if let (true, Some(innermost)) = (self.depth == found.len(), found.first()) {
            let innermost = cache.resolve(self.stack, self.env, innermost.method);
            self.in_helper = innermost.kind == MethodKind::Helper;
        }
        self.frames = cache.resolve_all(self.stack, self.env, &found).into_iter();
    }
}

impl Iterator for Walk<'_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        loop {
            match self.frames.next() {
                None if !self.ended => self.more(),
                next => return next,
            }
        }
    }
}
