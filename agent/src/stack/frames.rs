//! Frames that the VM reports, resolved to methods of the code registry.
//!
//! ```text
//! GetStackTrace ─► StackWalk (pieces) ─► FrameCache::resolve_all ─► ResolvedFrame { method, location }
//! jmethodID     ─► FrameCache::resolve_method ─► ResolvedMethod: kind, slot, lines, version
//! ```
//!
//! A resolved method is valid while its class has the same code; [`ResolvedMethod::is_current`] checks that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jvmti_bindings::sys::jni::{jmethodID, jobject};
use lucce_bytecode::{call_bcis, last_bcis};
use lucce_callgraph::MethodId;
use rustc_hash::FxHashMap;

use crate::core::{domain_of_class, is_in_scope, record_code_source};
use crate::memory::locks::WatchedRwLock;
use crate::registry::{ClassLoaderId, NATIVE_LINE, NO_LINE};
use crate::stack::StackParts;
use crate::stack::class_versions::{ClassVersions, VersionedClass};
use crate::stack::{late_classes, unloading};
use lucce_instrument::helpers::NEW_BYTES_FOR;
use lucce_instrument::{FrameKind, INHERITED, is_leaf};
use lucce_jvmti::{FieldId, FrameInfo, JniEnvironment, JvmError};

/// The agent's view of a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MethodKind {
    /// A method of a helper class.
    Helper,
    /// Not shown in stack traces: hidden classes and methods, frames that switch virtual threads, classes out of
    /// scope.
    Hidden,
    /// In the code registry, with this id.
    Known(u32),
    /// Not in the code registry: the class did not pass through the class file hook.
    Unknown,
}

/// A method of the VM, resolved once for each version of its class.
#[derive(Debug)]
pub struct ResolvedMethod {
    /// The VM's `jmethodID`.
    vm_id: usize,
    pub kind: MethodKind,
    pub native: bool,
    /// Whether its frames have a slot.
    pub slot: bool,
    /// For a VM-entered method: the first location at which a frame has its slot, behind the entry hook. That hook
    /// asks the VM.
    vm: Option<i64>,
    /// For a method whose VM entries are deferred: the first location behind the entry hook, and that of the inserted
    /// handler's `athrow`, at which the entry has ended.
    deferred: Option<(i64, i64)>,
    /// The method is synchronized and uses the slot that its caller names.
    entered_with_lock: bool,
    /// A native method; its instrumented callers determine where its slot would be.
    located_by_caller: bool,
    /// Its frames have no slot, and restore the pointer when they end.
    pub restores: bool,
    /// It has hooks after calls of native methods that make objects: see `lucce_instrument`, `object_creation`.
    pub counts_what_it_makes: bool,
    /// Locations of the handler that the agent has inserted: its start, and its `athrow`.
    pub unwind: Option<(i64, i64)>,
    /// (start, line) of the VM's current code, sorted.
    lines: Vec<(i64, i32)>,
    /// The location of the last instruction of that code.
    last_location: i64,
    version: MethodVersion,
    /// Frames may run older code with other lines, for which the VM uses the same id.
    older_lines: bool,
    /// The class loader of its class.
    loader: ClassLoaderId,
    pub class_name: String,
    pub method_name: String,
}

/// The condition under which a method still has the code that was resolved.
#[derive(Clone, Debug)]
enum MethodVersion {
    /// Always.
    Fixed,
    /// Unknown: it was resolved before classes could be watched.
    Early,
    /// While its class has this redefinition count.
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
    /// Whether the method still has the code that was resolved. The method must be alive; for example, the current
    /// thread runs it. `can_watch`: the result of [`can_watch`].
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

    /// The class and its count. Methods with equal keys are current together, or stale together.
    pub fn version_key(&self) -> Option<(usize, i32)> {
        match &self.version {
            MethodVersion::Counted { class, count, .. } => {
                Some((Arc::as_ptr(class).addr(), *count))
            }
            MethodVersion::Fixed | MethodVersion::Early => None,
        }
    }

    /// Whether frames of this method may run older code with other lines. Only a `Throwable` has those lines.
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

    /// Whether the VM enters the method by itself, so that its entry hook asks the VM for the slot.
    pub fn is_entered_by_vm(&self) -> bool {
        self.vm.is_some()
    }

    /// Whether the thread's pointer is valid while this method waits for its monitor at bci 0: its code has not run
    /// yet.
    pub fn is_entered_with_lock(&self) -> bool {
        self.entered_with_lock
    }

    /// Whether the pointer is valid from the hook before a call of this native method on: see
    /// `callers_at_native_call` in `vm_entry`.
    pub fn is_located_by_caller(&self) -> bool {
        self.located_by_caller
    }

    /// The line number, as in `StackTraceElement`.
    pub fn line_number(&self, location: i64) -> i32 {
        match self.native {
            true => NATIVE_LINE,
            false => line_at(&self.lines, location),
        }
    }
}

/// The line of a location, found like in HotSpot: the first entry that starts there, else the last entry of the
/// nearest start below. `lines` is sorted by location; entries of one location stay in the VM's order.
pub fn line_at(lines: &[(i64, i32)], location: i64) -> i32 {
    let before = lines.partition_point(|(start, _)| *start < location);
    let line_number = match lines.get(before) {
        Some((start, line)) if *start == location => Some(*line),
        _ => before
            .checked_sub(1)
            .and_then(|at| lines.get(at))
            .map(|one| one.1),
    };
    line_number.unwrap_or(NO_LINE)
}

#[cfg(test)]
impl ResolvedMethod {
    /// As a method whose VM entries are deferred, from this location on.
    pub fn into_deferrable(self, from: i64) -> ResolvedMethod {
        ResolvedMethod {
            deferred: Some((from, i64::MAX)),
            ..self
        }
    }

    /// As a method out of scope, which no trace shows.
    pub fn into_hidden(self) -> ResolvedMethod {
        ResolvedMethod {
            kind: MethodKind::Hidden,
            slot: false,
            ..self
        }
    }

    /// A method whose frames have a slot or not, with a line for each location.
    pub fn new_simulated(method: MethodId, slot: bool, lines: Vec<(i64, i32)>) -> ResolvedMethod {
        ResolvedMethod {
            vm_id: 0,
            kind: MethodKind::Known(method.0),
            native: false,
            slot,
            vm: None,
            deferred: None,
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

/// Resolved methods by `jmethodID`. These ids live as long as their class, and the VM does not reuse them. If the
/// class of a method has new code, the method is resolved again.
#[derive(Default)]
pub struct FrameCache {
    methods: WatchedRwLock<ResolvedMethods>,
    pub versions: ClassVersions,
    /// The number of resolutions.
    resolutions: AtomicU64,
}

#[derive(Default)]
struct ResolvedMethods {
    methods: FxHashMap<usize, Arc<ResolvedMethod>>,
    /// Methods of loaders that may be unloaded.
    by_loader: FxHashMap<ClassLoaderId, Vec<usize>>,
    /// Methods that were added to their class after the agent read it: by class id, name and descriptor.
    added: FxHashMap<(u32, String, String), u32>,
}

impl ResolvedMethods {
    fn get(&self, method: jmethodID) -> Option<&Arc<ResolvedMethod>> {
        self.methods.get(&(method as usize))
    }
}

impl FrameCache {
    /// Resolves a method; resolves it again if its class has new code.
    pub fn resolve_method(
        &self,
        agent: StackParts<'_>,
        env: JniEnvironment,
        method: jmethodID,
    ) -> Arc<ResolvedMethod> {
        let cached = {
            let map = self.methods.read();
            map.get(method).cloned()
        };
        let current = cached.filter(|cached| cached.is_current(env, can_watch(agent, env)));
        current.unwrap_or_else(|| self.resolve_new(agent, env, method))
    }

    /// A counter that changes when a method is resolved. If it is unchanged after a walk, the methods that are
    /// current then describe the code that the walked frames run.
    pub fn resolution_count(&self) -> u64 {
        self.resolutions.load(Ordering::Acquire)
    }

    /// Resolves the frames `found`, without the frames of helper classes.
    pub fn resolve_all(
        &self,
        agent: StackParts<'_>,
        env: JniEnvironment,
        infos: &[FrameInfo],
    ) -> Vec<ResolvedFrame> {
        let read = || self.methods.read();
        let mut frames = Vec::with_capacity(infos.len());
        let can_watch = can_watch(agent, env);
        let mut map = read();
        for info in infos {
            let cached = map.get(info.method);
            let method = match cached.filter(|cached| cached.is_current(env, can_watch)) {
                Some(cached) => Arc::clone(cached),
                None => {
                    drop(map);
                    let new = self.resolve_new(agent, env, info.method);
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

    /// Forgets all methods, because they may have new code with other lines.
    pub fn forget_all(&self) {
        let mut map = self.methods.write();
        *map = ResolvedMethods {
            added: std::mem::take(&mut map.added),
            ..ResolvedMethods::default()
        };
    }

    /// The id of a method that was added to its class after the agent read the class. `add` creates the id, once.
    fn added_method(
        &self,
        class: u32,
        (name, descriptor): (&str, &str),
        add: impl FnOnce() -> Option<u32>,
    ) -> Option<u32> {
        let key = (class, name.to_owned(), descriptor.to_owned());
        let id = self.methods.read().added.get(&key).copied();
        if id.is_some() {
            return id;
        }
        // Two threads may add the method at once. Both ids are valid.
        let id = add()?;
        self.methods.write().added.insert(key, id);
        Some(id)
    }

    /// Forgets the methods of unloaded loaders.
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
        agent: StackParts<'_>,
        env: JniEnvironment,
        method: jmethodID,
    ) -> Arc<ResolvedMethod> {
        let before = {
            let map = self.methods.read();
            map.get(method).cloned()
        };
        if before.is_some() {
            // The code of its class was replaced.
            agent.stack.vm_entry_sites.forget_all();
            agent.stack.verified_traces.forget_all();
        }
        let mut resolved = resolve_uncached(agent, env, method);
        resolved.older_lines = has_older_lines(agent, &resolved, before.as_deref());
        let resolved = Arc::new(resolved);
        let mut map = self.methods.write();
        let previous = map.methods.insert(method as usize, Arc::clone(&resolved));
        self.resolutions.fetch_add(1, Ordering::Release);
        if previous.is_none() && resolved.loader != ClassLoaderId::BOOT {
            let of_loader = map.by_loader.entry(resolved.loader).or_default();
            of_loader.push(method as usize);
        }
        resolved
    }
}

/// Whether the VM counts class redefinitions and the count can be read now.
pub fn can_watch(agent: StackParts<'_>, env: JniEnvironment) -> bool {
    agent.core.is_live()
        && agent.stack.frames.versions.count_field().is_some()
        && !env.has_exception()
}

/// Whether frames may run older code with other lines for which the VM uses the id of `resolved`. `before`: the
/// method that the id meant at the last resolution.
///
/// Code with different instructions gets an id of its own. If only lines differ, the older code shares the id.
fn has_older_lines(
    agent: StackParts<'_>,
    resolved: &ResolvedMethod,
    before: Option<&ResolvedMethod>,
) -> bool {
    let count = resolved.version.redefinition_count();
    if count == 0 || resolved.native || agent.core.jvmti.is_obsolete(resolved.vm_id()) {
        return false;
    }
    let Some(before) = before else {
        // The versions before the first resolution are not known.
        return true;
    };
    let is_next = count == before.version.redefinition_count() + 1;
    let is_shared =
        resolved.last_location == before.last_location && resolved.lines != before.lines;
    before.older_lines || !is_next || is_shared
}

fn resolve_uncached(
    agent: StackParts<'_>,
    env: JniEnvironment,
    method: jmethodID,
) -> ResolvedMethod {
    let mut resolved = ResolvedMethod {
        vm_id: method as usize,
        kind: MethodKind::Unknown,
        native: agent.core.jvmti.is_native(method),
        slot: false,
        vm: None,
        deferred: None,
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
    if let Some(class) = agent.core.jvmti.declaring_class(method) {
        fill_method(agent, env, method, class, &mut resolved);
        env.delete_local(class);
    }
    if let (MethodVersion::Early, true) = (&resolved.version, can_watch(agent, env)) {
        // The VM reports no class for it, and never will.
        resolved.version = MethodVersion::Fixed;
    }
    resolved
}

fn fill_method(
    agent: StackParts<'_>,
    env: JniEnvironment,
    method: jmethodID,
    class: jobject,
    resolved: &mut ResolvedMethod,
) -> Option<()> {
    let loader = agent.core.jvmti.class_loader(class)?;
    let id = agent.core.loaders.loader_id(agent.core.jvmti, env, loader);
    env.delete_local(loader);
    resolved.loader = id;
    let signature = agent.core.jvmti.class_signature(class)?;
    let name = signature.strip_prefix('L')?.strip_suffix(';')?;
    let (method_name, descriptor) = agent.core.jvmti.method_name(method)?;
    resolved.class_name = name.to_string();
    resolved.method_name = method_name;
    let is_inherited = name == "java/lang/Object" && resolved.method_name.starts_with(INHERITED);
    if name.starts_with("java/lang/LucceRt") || is_inherited {
        resolved.kind = MethodKind::Helper;
        resolved.version = MethodVersion::Fixed;
        return None;
    }
    // The name of a hidden class has a suffix after `/`, which its signature shows after a dot.
    if name.contains('.') {
        resolved.kind = MethodKind::Hidden;
        resolved.restores = !agent.core.options.is_partial();
        // The VM never redefines hidden classes.
        resolved.version = MethodVersion::Fixed;
        // Lambda forms are JDK code that calls these native methods like any other method, without a hook.
        resolved.counts_what_it_makes =
            !agent.core.options.is_partial() && !name.starts_with(FORMS);
        return None;
    }
    read_lines(agent, env, method, (class, name), resolved);
    if !is_in_scope(agent.core, id, name) {
        resolved.kind = MethodKind::Hidden;
        resolved.deferred = find_deferred_entry(agent, method, class);
        return None;
    }
    let is_known = || {
        let registry = agent.core.registry();
        let class = registry.find_class(id, name)?;
        registry.find_method(class, &resolved.method_name, &descriptor)
    };
    // A redefined class may have more methods than before, if the VM was started with the option that allows it.
    if agent.core.hookless.is_some() && is_known().is_none() {
        let gone = agent.core.loaders.remove_unloaded(env);
        if !gone.is_empty() {
            unloading::forget_loaders(agent, &gone);
        }
        late_classes::add_class(agent, class, id, name)?;
        if id != ClassLoaderId::BOOT {
            let release = late_classes::jdk_release(agent.core.jvmti);
            let domain = domain_of_class(env, release, class);
            record_code_source(agent.core, env, id, name, domain);
            env.delete_local(domain);
        }
    }
    let registry = agent.core.registry();
    let class_id = registry.find_class_id(id, name)?;
    let registered = registry.find_method(
        registry.class(class_id)?,
        &resolved.method_name,
        &descriptor,
    );
    drop(registry);
    let id = match registered {
        Some(id) => id,
        None => {
            let method_name = (&*resolved.method_name, &*descriptor);
            let access = agent.core.jvmti.method_modifiers(method);
            let cache = &agent.stack.frames;
            cache.added_method(class_id, method_name, || {
                late_classes::add_method(agent, class_id, method_name, access)
            })?
        }
    };
    let registry = agent.core.registry();
    let info = registry.method(id)?;
    resolved.kind = if info.transparent {
        MethodKind::Hidden
    } else {
        MethodKind::Known(id)
    };
    resolved.slot = info.has_slot();
    resolved.restores = matches!(info.frame, FrameKind::Hidden | FrameKind::HiddenVmEntered);
    resolved.counts_what_it_makes = info.frame != FrameKind::Leaf;
    // Constructors of exceptions run without asking the VM, and they call `fillInStackTrace`.
    resolved.located_by_caller =
        resolved.native && name != "java/lang/Throwable" && !is_leaf(name, &resolved.method_name);
    let vm = info.frame == FrameKind::VmEntered;
    resolved.entered_with_lock =
        info.frame == FrameKind::OwnSlot && info.access & SYNCHRONIZED != 0 && !resolved.native;
    drop(registry);
    if vm {
        resolved.vm = Some(location_behind_entry(agent, method));
        resolved.deferred = find_deferred_entry(agent, method, class);
        if resolved.method_name != "<init>" {
            resolved.unwind = find_unwind_handler(agent, method);
        }
    }
    Some(())
}

/// Reads lines and version of the same code.
fn read_lines(
    agent: StackParts<'_>,
    env: JniEnvironment,
    method: jmethodID,
    (class, name): (jobject, &str),
    resolved: &mut ResolvedMethod,
) {
    let versions = &agent.stack.frames.versions;
    let field = versions.count_field().filter(|_| can_watch(agent, env));
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
        resolved.lines = agent.core.jvmti.line_table(method);
        resolved.last_location = agent.core.jvmti.last_location(method);
        if count() == before {
            break before;
        }
    };
    // A stable sort: entries of one location keep their order.
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

/// The location after the entry hook, which is the first call in a VM-entered method.
fn location_behind_entry(agent: StackParts<'_>, method: jmethodID) -> i64 {
    const CALL: i64 = 3;
    let code = agent.core.jvmti.method_bytecodes(method);
    let first = call_bcis(&code).first().copied();
    i64::from(first.unwrap_or(0)) + CALL
}

/// The location after the entry hook of a method whose VM entries are deferred, and that of the inserted handler's
/// `athrow`. `None`: it has no such hook.
fn find_deferred_entry(
    agent: StackParts<'_>,
    method: jmethodID,
    class: jobject,
) -> Option<(i64, i64)> {
    const INVOKESTATIC: u8 = 0xb8;
    if !agent.defers_entries() || agent.core.jvmti.is_native(method) {
        return None;
    }
    let code = agent.core.jvmti.method_bytecodes(method);
    // Most methods begin otherwise. The constants are those of the current class.
    if code.first() != Some(&INVOKESTATIC) || agent.core.jvmti.is_obsolete(method) {
        return None;
    }
    let (count, pool) = agent.core.jvmti.constant_pool(class)?;
    let from = lucce_instrument::deferred_entry_end(&code, count, &pool)?;
    let (_, ended) = find_unwind_handler(agent, method)?;
    Some((i64::from(from), ended))
}

/// The inserted handler: the last instructions of a VM-entered method, `lload N; invokestatic exitVm; athrow`.
fn find_unwind_handler(agent: StackParts<'_>, method: jmethodID) -> Option<(i64, i64)> {
    let code = agent.core.jvmti.method_bytecodes(method);
    let [load, _, throw] = last_bcis(&code).map(i64::from);
    (throw > 0).then_some((load, throw))
}

/// `GetStackTrace` returns it if the start depth exceeds the number of frames.
const ILLEGAL_ARGUMENT: i32 = 103;

/// Frames of the first request, if all are needed.
pub const PIECE: usize = 256;

/// A frame with its resolved method.
#[derive(Clone)]
pub struct ResolvedFrame {
    pub method: Arc<ResolvedMethod>,
    pub location: i64,
}

impl ResolvedFrame {
    /// Whether a slot belongs to this frame.
    pub fn has_slot(&self) -> bool {
        self.method.slot && self.method.vm.is_none_or(|from| self.location >= from)
    }

    /// Whether this is a VM entry of a method whose entries are deferred.
    pub fn is_deferrable_entry(&self) -> bool {
        self.method
            .deferred
            .is_some_and(|(from, ended)| self.location >= from && self.location != ended)
    }

    pub fn line_number(&self) -> i32 {
        self.method.line_number(self.location)
    }
}

/// A thread's frames without the frames of helper classes, innermost first.
pub struct StackWalk<'a> {
    agent: StackParts<'a>,
    env: JniEnvironment,
    /// Null: the current thread.
    thread: jobject,
    /// The frames of the last piece that were not returned yet.
    frames: std::vec::IntoIter<ResolvedFrame>,
    depth: usize,
    wanted: usize,
    /// The VM returned fewer frames than were requested.
    ended: bool,
    /// The VM returned an error although there are frames: for example, the VM has ended and this thread has not.
    failed: bool,
    /// The location of the innermost frame, if it differs from the one that the VM reports.
    innermost_location: Option<i64>,
    /// Whether the innermost frame belongs to a helper class.
    in_helper: bool,
    creates_for_program: bool,
    /// The number of innermost frames that no trace shows.
    own: usize,
}

impl<'a> StackWalk<'a> {
    /// Requests `piece` frames from the VM, helper frames included, then more in each request: the VM walks from the
    /// innermost frame each time.
    pub fn new(agent: StackParts<'a>, env: JniEnvironment, piece: usize) -> StackWalk<'a> {
        StackWalk {
            agent,
            env,
            thread: std::ptr::null_mut(),
            frames: Vec::new().into_iter(),
            depth: 0,
            wanted: piece,
            ended: false,
            failed: false,
            innermost_location: None,
            in_helper: false,
            creates_for_program: false,
            own: 0,
        }
    }

    /// Whether the innermost frame belongs to a helper class; the walk does not return it. Valid after the first
    /// frame.
    pub fn is_in_helper(&self) -> bool {
        self.in_helper
    }

    /// Whether the innermost frame is the helper that creates arrays in place of the JDK's own method. Valid after the
    /// first frame.
    pub fn creates_for_program(&self) -> bool {
        self.creates_for_program
    }

    /// Walks the frames of `thread`, which is suspended.
    pub fn for_thread(mut self, thread: jobject) -> StackWalk<'a> {
        self.thread = thread;
        self
    }

    /// Replaces the location of the innermost frame.
    pub fn with_innermost_location(mut self, location: Option<i64>) -> StackWalk<'a> {
        self.innermost_location = location;
        self
    }

    /// For a comparison: marks the innermost `own` frames, not counting the helper's, to be left out.
    pub fn without_own_frames(mut self, own: usize) -> StackWalk<'a> {
        self.own = own;
        self
    }

    pub fn own_frame_count(&self) -> usize {
        self.own
    }

    /// Whether the innermost frame has another location than the VM reports.
    pub fn has_other_location(&self) -> bool {
        self.innermost_location.is_some()
    }

    pub fn env(&self) -> JniEnvironment {
        self.env
    }

    /// All frames as the VM reports them, helper frames included. `None`: the VM does not report them.
    pub fn into_frame_infos(mut self) -> Option<Vec<FrameInfo>> {
        let mut all = self.read_piece();
        while !self.ended {
            all.append(&mut self.read_piece());
        }
        (!self.failed).then_some(all)
    }

    /// All remaining frames. `None`: the VM does not report them.
    pub fn collect_rest(&mut self) -> Option<Vec<ResolvedFrame>> {
        self.wanted = self.wanted.max(PIECE);
        let frames = self.collect();
        (!self.failed).then_some(frames)
    }

    /// Whether the VM failed to report frames, so that some may be missing.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The next frames that the VM reports.
    fn read_piece(&mut self) -> Vec<FrameInfo> {
        if self.depth > 0 {
            self.wanted *= 2;
        }
        let empty = FrameInfo {
            method: std::ptr::null_mut(),
            location: 0,
        };
        let mut buffer = vec![empty; self.wanted];
        let count =
            match self
                .agent
                .core
                .jvmti
                .read_stack_from(self.thread, self.depth, &mut buffer)
            {
                Ok(count) => count,
                // The last piece ended exactly with the outermost frame.
                Err(JvmError(ILLEGAL_ARGUMENT)) if self.depth > 0 => 0,
                Err(_) => {
                    self.failed = true;
                    0
                }
            };
        buffer.truncate(count);
        self.ended = buffer.len() < self.wanted;
        self.depth += buffer.len();
        if let (Some(location), Some(innermost)) =
            (self.innermost_location.take(), buffer.first_mut())
        {
            innermost.location = location;
        }
        buffer
    }

    fn resolve_more(&mut self) {
        let piece = self.read_piece();
        let cache = &self.agent.stack.frames;
        if let (true, Some(innermost)) = (self.depth == piece.len(), piece.first()) {
            let innermost = cache.resolve_method(self.agent, self.env, innermost.method);
            self.in_helper = innermost.kind == MethodKind::Helper;
            self.creates_for_program =
                self.in_helper && innermost.method_name == NEW_BYTES_FOR.name;
        }
        self.frames = cache.resolve_all(self.agent, self.env, &piece).into_iter();
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
