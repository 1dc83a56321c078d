//! Frames as the VM reports them, matched with the book.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jvmti_bindings::sys::jni::{jmethodID, jobject};
use lucce_bytecode::{call_bcis, last_bcis};
use lucce_callgraph::MethodId;
use rustc_hash::FxHashMap;

use crate::core::is_in_scope;
use crate::memory::locks::WatchedRwLock;
use crate::registry::{ClassLoaderId, NATIVE_LINE, NO_LINE};
use crate::stack::StackTracker;
use crate::stack::class_versions::{ClassVersions, VersionedClass};
use crate::stack::{late_classes, unloading};
use lucce_instrument::{FrameKind, INHERITED, is_leaf};
use lucce_jvmti::{FieldId, FrameInfo, JniEnvironment, JvmError};

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
pub struct ResolvedMethod {
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
    located_by_caller: bool,
    /// Its frames have no slot, and put the pointer back when they end.
    pub restores: bool,
    /// It has hooks behind calls of natives that make objects for it: see `hooks::object_creation`.
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
    loader: ClassLoaderId,
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
        field: FieldId,
        count: i32,
    },
}

impl MethodVersion {
    fn redefinition_count(&self) -> i32 {
        match self {
            MethodVersion::Counted { count, .. } => *count,
            MethodVersion::Fixed | MethodVersion::Early => 0,
        }
    }
}

impl ResolvedMethod {
    /// Whether the method still has the code that was resolved. It must be alive, as one that the current thread runs.
    /// `can_watch`: see [`can_watch`].
    pub fn is_current(&self, env: JniEnvironment, can_watch: bool) -> bool {
        match &self.version {
            _ if !can_watch => true,
            MethodVersion::Fixed => true,
            MethodVersion::Early => false,
            MethodVersion::Counted {
                class,
                field,
                count,
            } => class.redefinition_count(env, *field) == *count,
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

    pub fn loader(&self) -> ClassLoaderId {
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
    /// `vm_entry::callers_at_native_call`.
    pub fn is_located_by_caller(&self) -> bool {
        self.located_by_caller
    }

    /// As `StackTraceElement` has it.
    pub fn line_number(&self, location: i64) -> i32 {
        match self.native {
            true => NATIVE_LINE,
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
impl ResolvedMethod {
    /// A method whose frames have a slot or not, with a line for each location.
    pub fn new_simulated(method: MethodId, slot: bool, lines: Vec<(i64, i32)>) -> ResolvedMethod {
        ResolvedMethod {
            vm_id: 0,
            kind: MethodKind::Known(method.0),
            native: false,
            slot,
            vm: None,
            entered_with_lock: false,
            located_by_caller: false,
            restores: false,
            counts_what_it_makes: false,
            unwind: None,
            lines,
            last_location: -1,
            version: MethodVersion::Fixed,
            older_lines: false,
            loader: ClassLoaderId::BOOT,
            class_name: "a/B".into(),
            method_name: "m".into(),
        }
    }
}

/// Method ids live as long as their class; the VM does not reuse them. A method whose class has other code now is resolved
/// anew.
#[derive(Default)]
pub struct FrameCache {
    methods: WatchedRwLock<ResolvedMethods>,
    pub versions: ClassVersions,
    /// How often a method was resolved.
    resolutions: AtomicU64,
}

#[derive(Default)]
struct ResolvedMethods {
    methods: FxHashMap<usize, Arc<ResolvedMethod>>,
    /// Which of them are of loaders that may go.
    by_loader: FxHashMap<ClassLoaderId, Vec<usize>>,
    /// Methods that their classes did not have when the agent was given them: by the class's id, name and descriptor.
    added: FxHashMap<(u32, String, String), u32>,
}

impl ResolvedMethods {
    fn get(&self, method: jmethodID) -> Option<&Arc<ResolvedMethod>> {
        self.methods.get(&(method as usize))
    }
}

impl FrameCache {
    pub fn resolve_method(
        &self,
        stack: &StackTracker,
        env: JniEnvironment,
        method: jmethodID,
    ) -> Arc<ResolvedMethod> {
        let known = {
            let map = self.methods.read();
            map.get(method).cloned()
        };
        let current = known.filter(|known| known.is_current(env, can_watch(stack, env)));
        current.unwrap_or_else(|| self.resolve_new(stack, env, method))
    }

    /// A number that changes when a method is resolved. What is current after frames were asked for, and the number is what it
    /// was before, holds for the code that these frames run.
    pub fn resolution_count(&self) -> u64 {
        self.resolutions.load(Ordering::Acquire)
    }

    /// What `found` are, without the helper's own frames.
    pub fn resolve_all(
        &self,
        stack: &StackTracker,
        env: JniEnvironment,
        found: &[FrameInfo],
    ) -> Vec<ResolvedFrame> {
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
                frames.push(ResolvedFrame { method, location });
            }
        }
        frames
    }

    /// Methods may have other code now, and their lines begin elsewhere.
    pub fn forget_all(&self) {
        let mut map = self.methods.write();
        *map = ResolvedMethods {
            added: std::mem::take(&mut map.added),
            ..ResolvedMethods::default()
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
    pub fn forget_loaders(&self, loaders: &[ClassLoaderId]) {
        let mut map = self.methods.write();
        for loader in loaders {
            for method in map.by_loader.remove(loader).unwrap_or_default() {
                map.methods.remove(&method);
            }
        }
        self.versions.forget_loaders(loaders);
    }

    fn resolve_new(
        &self,
        stack: &StackTracker,
        env: JniEnvironment,
        method: jmethodID,
    ) -> Arc<ResolvedMethod> {
        let before = {
            let map = self.methods.read();
            map.get(method).cloned()
        };
        if before.is_some() {
            // The code of its class was replaced.
            stack.vm_entry_cache.forget_all();
            stack.verified_traces.forget_all();
        }
        let mut resolved = resolve_uncached(stack, env, method);
        resolved.older_lines = has_older_lines(stack, &resolved, before.as_deref());
        let resolved = Arc::new(resolved);
        let mut map = self.methods.write();
        let known = map.methods.insert(method as usize, Arc::clone(&resolved));
        self.resolutions.fetch_add(1, Ordering::Release);
        if known.is_none() && resolved.loader != ClassLoaderId::BOOT {
            let of_loader = map.by_loader.entry(resolved.loader).or_default();
            of_loader.push(method as usize);
        }
        resolved
    }
}

/// Whether the VM counts how often classes were changed, and can be asked for it.
pub fn can_watch(stack: &StackTracker, env: JniEnvironment) -> bool {
    stack.is_live() && stack.frames.versions.count_field().is_some() && !env.has_exception()
}

/// Whether frames may run older code that the VM calls by the id of `resolved`, with other lines. `before`: what the id meant
/// before.
///
/// Code that differs in its instructions gets an id of its own. If only lines differ, the older code shares the id.
fn has_older_lines(
    stack: &StackTracker,
    resolved: &ResolvedMethod,
    before: Option<&ResolvedMethod>,
) -> bool {
    let count = resolved.version.redefinition_count();
    if count == 0 || resolved.native || stack.jvmti.is_obsolete(resolved.vm_id()) {
        return false;
    }
    let Some(before) = before else {
        // What it was before it was seen first is not known.
        return true;
    };
    let is_next = count == before.version.redefinition_count() + 1;
    let is_shared =
        resolved.last_location == before.last_location && resolved.lines != before.lines;
    before.older_lines || !is_next || is_shared
}

fn resolve_uncached(
    stack: &StackTracker,
    env: JniEnvironment,
    method: jmethodID,
) -> ResolvedMethod {
    let mut resolved = ResolvedMethod {
        vm_id: method as usize,
        kind: MethodKind::Unknown,
        native: stack.jvmti.is_native(method),
        slot: false,
        vm: None,
        entered_with_lock: false,
        located_by_caller: false,
        restores: false,
        counts_what_it_makes: false,
        unwind: None,
        lines: Vec::new(),
        last_location: -1,
        version: MethodVersion::Early,
        older_lines: false,
        loader: ClassLoaderId::BOOT,
        class_name: String::new(),
        method_name: String::new(),
    };
    if let Some(class) = stack.jvmti.declaring_class(method) {
        fill_method(stack, env, method, class, &mut resolved);
        env.delete_local(class);
    }
    if let (MethodVersion::Early, true) = (&resolved.version, can_watch(stack, env)) {
        // The VM does not say what it is, nor will it.
        resolved.version = MethodVersion::Fixed;
    }
    resolved
}

fn fill_method(
    stack: &StackTracker,
    env: JniEnvironment,
    method: jmethodID,
    class: jobject,
    resolved: &mut ResolvedMethod,
) -> Option<()> {
    let loader = stack.jvmti.class_loader(class)?;
    let id = stack.loaders.loader_id(stack.jvmti, env, loader);
    env.delete_local(loader);
    resolved.loader = id;
    let signature = stack.jvmti.class_signature(class)?;
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
    if !is_in_scope(stack, id, name) {
        resolved.kind = MethodKind::Hidden;
        return None;
    }
    let is_known = || {
        let book = stack.registry();
        let class = book.find_class(id, name)?;
        book.find_method(class, &resolved.method_name, &descriptor)
    };
    // A class that was replaced may have more methods than it had, if the VM was told to allow that.
    if stack.hookless.is_some() && is_known().is_none() {
        let gone = stack.loaders.remove_unloaded(env);
        if !gone.is_empty() {
            unloading::forget_loaders(stack, &gone);
        }
        late_classes::add_class(stack, class, id, name)?;
    }
    let book = stack.registry();
    let class = book.find_class_id(id, name)?;
    let known = book.find_method(book.class(class)?, &resolved.method_name, &descriptor);
    drop(book);
    let id = match known {
        Some(id) => id,
        None => {
            let method_name = (&*resolved.method_name, &*descriptor);
            let access = stack.jvmti.method_modifiers(method);
            let cache = &stack.frames;
            cache.added_method(class, method_name, || {
                late_classes::add_method(stack, class, method_name, access)
            })?
        }
    };
    let book = stack.registry();
    let info = book.method(id)?;
    resolved.kind = if info.transparent {
        MethodKind::Hidden
    } else {
        MethodKind::Known(id)
    };
    resolved.slot = info.has_slot();
    resolved.restores = matches!(info.frame, FrameKind::NoSlot | FrameKind::NoSlotVmEntered);
    resolved.counts_what_it_makes = info.frame != FrameKind::Leaf;
    // Constructors of exceptions run without asking the VM, and they call fillInStackTrace.
    resolved.located_by_caller =
        resolved.native && name != "java/lang/Throwable" && !is_leaf(name, &resolved.method_name);
    let vm = info.frame == FrameKind::VmEntered;
    resolved.entered_with_lock =
        info.frame == FrameKind::OwnSlot && info.access & SYNCHRONIZED != 0 && !resolved.native;
    drop(book);
    if vm {
        resolved.vm = Some(location_behind_entry(stack, method));
        if resolved.method_name != "<init>" {
            resolved.unwind = find_unwind_handler(stack, method);
        }
    }
    Some(())
}

/// Lines and version of one and the same code.
fn read_lines(
    stack: &StackTracker,
    env: JniEnvironment,
    method: jmethodID,
    (class, name): (jobject, &str),
    resolved: &mut ResolvedMethod,
) {
    let versions = &stack.frames.versions;
    let field = versions.count_field().filter(|_| can_watch(stack, env));
    let watched = field.map(|field| {
        let class = versions.watch_class(env, class, (resolved.loader, name));
        (class, field)
    });
    let count = || {
        watched
            .as_ref()
            .map(|(class, field)| class.redefinition_count(env, *field))
    };
    let count = loop {
        let before = count();
        resolved.lines = stack.jvmti.line_table(method);
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
fn location_behind_entry(stack: &StackTracker, method: jmethodID) -> i64 {
    const CALL: i64 = 3;
    let code = stack.jvmti.method_bytecodes(method);
    let first = call_bcis(&code).first().copied();
    i64::from(first.unwrap_or(0)) + CALL
}

/// The last instructions of a method that the VM enters: `lload N; invokestatic exitVm; athrow`.
fn find_unwind_handler(stack: &StackTracker, method: jmethodID) -> Option<(i64, i64)> {
    let code = stack.jvmti.method_bytecodes(method);
    let [load, _, throw] = last_bcis(&code).map(i64::from);
    (throw > 0).then_some((load, throw))
}

/// Of `GetStackTrace`: there are no more frames than were skipped.
const ILLEGAL_ARGUMENT: i32 = 103;

/// How many frames the VM is asked for when all are needed.
pub const PIECE: usize = 256;

/// A frame with what it is.
#[derive(Clone)]
pub struct ResolvedFrame {
    pub method: Arc<ResolvedMethod>,
    pub location: i64,
}

impl ResolvedFrame {
    /// Whether there is a slot that belongs to this frame.
    pub fn has_slot(&self) -> bool {
        self.method.slot && self.method.vm.is_none_or(|from| self.location >= from)
    }

    pub fn line_number(&self) -> i32 {
        self.method.line_number(self.location)
    }
}

/// A thread's frames without the helper's, innermost first.
pub struct StackWalk<'a> {
    stack: &'a StackTracker,
    env: JniEnvironment,
    /// Null: the current one.
    thread: jobject,
    /// Of the last piece, those that are not given yet.
    frames: std::vec::IntoIter<ResolvedFrame>,
    depth: usize,
    wanted: usize,
    /// The VM gave fewer frames than were asked for.
    ended: bool,
    /// The VM gave none, though there are: it has ended, say, while this thread has not.
    failed: bool,
    /// Where the innermost frame stands, if that is not where the VM says.
    innermost_location: Option<i64>,
    /// Whether the innermost frame is the helper's.
    in_helper: bool,
    /// So many of the innermost frames are none of a trace.
    own: usize,
}

impl<'a> StackWalk<'a> {
    /// Asks the VM for `piece` frames, the helper's among them, then for more each time: it walks from the innermost frame
    /// whenever it is asked.
    pub fn new(stack: &'a StackTracker, env: JniEnvironment, piece: usize) -> StackWalk<'a> {
        StackWalk {
            stack,
            env,
            thread: std::ptr::null_mut(),
            frames: Vec::new().into_iter(),
            depth: 0,
            wanted: piece,
            ended: false,
            failed: false,
            innermost_location: None,
            in_helper: false,
            own: 0,
        }
    }

    /// Once a frame was asked for: whether the innermost one is the helper's, which is not given.
    pub fn is_in_helper(&self) -> bool {
        self.in_helper
    }

    /// The frames of `thread`, which is suspended.
    pub fn for_thread(mut self, thread: jobject) -> StackWalk<'a> {
        self.thread = thread;
        self
    }

    /// The innermost frame stands at `location`.
    pub fn with_innermost_location(mut self, location: Option<i64>) -> StackWalk<'a> {
        self.innermost_location = location;
        self
    }

    /// For a comparison: the innermost `own` frames, the helper's aside, are left out.
    pub fn without_own_frames(mut self, own: usize) -> StackWalk<'a> {
        self.own = own;
        self
    }

    pub fn own_frame_count(&self) -> usize {
        self.own
    }

    /// Whether the innermost frame stands at another location than the VM says.
    pub fn has_other_location(&self) -> bool {
        self.innermost_location.is_some()
    }

    pub fn env(&self) -> JniEnvironment {
        self.env
    }

    /// What the VM says of all frames, the helper's among them. `None`: it does not say them.
    pub fn into_frame_infos(mut self) -> Option<Vec<FrameInfo>> {
        let mut all = self.read_piece();
        while !self.ended {
            all.append(&mut self.read_piece());
        }
        (!self.failed).then_some(all)
    }

    /// All frames that are left. `None`: the VM does not say them.
    pub fn collect_rest(&mut self) -> Option<Vec<ResolvedFrame>> {
        self.wanted = self.wanted.max(PIECE);
        let frames = self.collect();
        (!self.failed).then_some(frames)
    }

    /// Whether there may be frames that were not given.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// What the VM says of the next frames.
    fn read_piece(&mut self) -> Vec<FrameInfo> {
        if self.depth > 0 {
            self.wanted *= 2;
        }
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        let mut found = vec![empty; self.wanted];
        let count = match self
            .stack
            .jvmti
            .read_stack_from(self.thread, self.depth, &mut found)
        {
            Ok(count) => count,
            // The last piece ended with the outermost frame.
            Err(JvmError(ILLEGAL_ARGUMENT)) if self.depth > 0 => 0,
            Err(_) => {
                self.failed = true;
                0
            }
        };
        found.truncate(count);
        self.ended = found.len() < self.wanted;
        self.depth += found.len();
        if let (Some(location), Some(innermost)) =
            (self.innermost_location.take(), found.first_mut())
        {
            innermost.location = location;
        }
        found
    }

    fn resolve_more(&mut self) {
        let found = self.read_piece();
        let cache = &self.stack.frames;
        if let (true, Some(innermost)) = (self.depth == found.len(), found.first()) {
            let innermost = cache.resolve_method(self.stack, self.env, innermost.method);
            self.in_helper = innermost.kind == MethodKind::Helper;
        }
        self.frames = cache.resolve_all(self.stack, self.env, &found).into_iter();
    }
}

impl Iterator for StackWalk<'_> {
    type Item = ResolvedFrame;

    fn next(&mut self) -> Option<ResolvedFrame> {
        loop {
            match self.frames.next() {
                None if !self.ended => self.resolve_more(),
                next => return next,
            }
        }
    }
}
