//! Inserting hooks into a class on its way into the VM.
//!
//! ```text
//! class bytes ─► parse ─► decide instrumentation ─► register: ids ─► plan ─► rewrite ─► VM
//!                  └ duplicate of another loader, or in the class cache: the same bytes again
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

use lucce_bytecode::{
    BytecodeError, ClassFile, ClassFileMethod, ClassPlan, RewrittenClass, rewrite,
};
use lucce_instrument::kinds::ALLOC;

use crate::classes::AgentClasses;
use crate::classes::cache::{
    self, CacheableClass, NATIVE_PLACEHOLDERS, PLACEHOLDER_IDS, PlaceholderConstants,
    UntrackedQueries, find_placeholders, replace_placeholders,
};
use crate::core::{is_in_scope, is_jdk_excluded, may_be_created, may_create};
use crate::memory::counter::increment_counter;
use crate::options::LogLevel;
use crate::registry::{ClassDefinition, ClassLoaderId, FirstClassIds, may_be_untracked};
use crate::thread::carrier;
use lucce_instrument::{
    self as hooks, FrameKind, HookOptions, HookSiteKind, InstrumentationOptions,
    MethodInstrumentation,
};

/// Why a class arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClassArrival {
    Load,
    /// A loaded class gets other code. Present frames continue in the old code.
    Change,
}

/// New bytes for a class. `None`: it stays unchanged.
pub fn transform_class(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    bytes: &[u8],
    arrival: ClassArrival,
) -> Option<Vec<u8>> {
    if arrival == ClassArrival::Load {
        if let Some(known) = classes.duplicates.find_hooked(classes, loader, bytes) {
            return Some(known);
        }
        if let Some(known) = classes.cache.find_class(classes, loader, bytes) {
            return known;
        }
    }
    let class = match ClassFile::parse(bytes) {
        Ok(class) => class,
        Err(_) => return pass_unreadable(classes),
    };
    if class.name() == "module-info" {
        return None;
    }
    let acts_as_carrier = hooks::acts_as_carrier(class.name(), class.methods());
    if acts_as_carrier {
        carrier::enable_carrier_lookup();
    }
    report_jdk_differences(classes, loader, &class);
    classes.method_watch.forget_class(loader, class.name());
    if !is_in_scope(classes, loader, class.name()) {
        return rewrite_outside_scope(classes, loader, &class);
    }
    let asked = UntrackedQueries::default();
    let Ok(mut shapes) = decide_instrumentation(classes, loader, &class, &asked) else {
        return pass_unreadable(classes);
    };
    if arrival == ClassArrival::Change {
        set_vm_entered_if_old_callers(classes, loader, &class, &mut shapes);
    }
    let Some(ids) = register_class(classes, loader, &class, &shapes) else {
        increment_counter(&classes.counts.classes_skipped);
        classes.report_skipped(class.name(), None, "no more ids for methods and sites");
        // Its frames have no numbers, but its callees find their slots.
        for method in class.methods() {
            let place = (loader, class.name());
            let _ = classes.method_watch.add_method(
                classes.jvmti,
                place,
                (&method.name, &method.descriptor),
            );
        }
        return None;
    };
    let planned = PlannedClass {
        class: &class,
        plain: bytes,
        acts_as_carrier,
        shapes: &shapes,
        untracked_queries: &asked,
        arrival,
    };
    insert_hooks(classes, loader, &planned, ids)
}

/// A class whose instrumentation is decided.
struct PlannedClass<'p> {
    class: &'p ClassFile<'p>,
    plain: &'p [u8],
    acts_as_carrier: bool,
    shapes: &'p [MethodInstrumentation],
    untracked_queries: &'p UntrackedQueries,
    arrival: ClassArrival,
}

/// The number of differences from known JDKs so far.
static DIFFERENCES: AtomicU32 = AtomicU32::new(0);

/// Compares a class of an unknown JDK with a known JDK, and reports the first differences.
fn report_jdk_differences(classes: &AgentClasses, loader: ClassLoaderId, class: &ClassFile<'_>) {
    const MOST: u32 = 20;
    let Some(like) = classes
        .options
        .compared_jdk
        .filter(|_| loader == ClassLoaderId::BOOT)
    else {
        return;
    };
    for difference in hooks::jdk::find_differences(class, like) {
        // Relaxed: a number; no other data depends on it.
        match DIFFERENCES.fetch_add(1, Ordering::Relaxed) {
            ..MOST => classes.report_message(LogLevel::Warn, &difference),
            MOST => classes.report_message(
                LogLevel::Warn,
                "this JDK differs in more ways from those that lucce knows",
            ),
            _ => {}
        }
    }
}

/// The VM will reject the class with an error of its own. If it accepts the class, the class is watched.
fn pass_unreadable(classes: &AgentClasses) -> Option<Vec<u8>> {
    if classes
        .method_watch
        .watch_unreadable(classes.jvmti)
        .is_err()
    {
        classes.report_message(LogLevel::Warn, "a class cannot be read, nor watched");
    }
    None
}

/// Decides the hooks of a class. Lookups of untracked methods are added to `asked`.
fn decide_instrumentation(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    asked: &UntrackedQueries,
) -> Result<Vec<MethodInstrumentation>, BytecodeError> {
    let book = classes.registry();
    let is_quiet = |class: &str, name: &str, descriptor: &str| {
        if may_be_untracked(class) {
            cache::record_untracked_query(asked, &book, class);
        }
        book.is_untracked(class, name, descriptor)
    };
    let wants = InstrumentationOptions {
        events: classes.options.hooked_events().kinds_in_code(),
        idle: classes.options.is_idle(),
        trusted: classes.loaders.is_trusted(loader),
        holds: &|class| is_in_scope(classes, ClassLoaderId::BOOT, class),
        jdk_is_out_of_scope: is_jdk_excluded(&classes.options),
        calls_untracked: &|call| is_quiet(&call.owner, &call.name, &call.descriptor),
    };
    let mut shapes = hooks::analyze_class(class, wants)?;
    set_vm_entered_if_untracked(&is_quiet, class, &mut shapes);
    Ok(shapes)
}

/// Another agent has changed untracked methods. They ask the VM for their callers.
fn set_vm_entered_if_untracked(
    is_quiet: &dyn Fn(&str, &str, &str) -> bool,
    class: &ClassFile<'_>,
    shapes: &mut [MethodInstrumentation],
) {
    for (method, shape) in class.methods().iter().zip(shapes) {
        let was_quiet = || is_quiet(class.name(), &method.name, &method.descriptor);
        if shape.frame == FrameKind::OwnSlot && was_quiet() {
            set_vm_entered(shape);
        }
    }
}

/// The method asks the VM for its caller.
fn set_vm_entered(shape: &mut MethodInstrumentation) {
    shape.frame = FrameKind::VmEntered;
    shape.keeps_no_slot = false;
}

/// The method had no hooks, so other methods of its class call it without hooks. Now it gets some, while present frames continue
/// in the old code without limit. A method that has asked the VM once continues to ask: an old frame may still exist.
fn set_vm_entered_if_old_callers(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    shapes: &mut [MethodInstrumentation],
) {
    let book = classes.registry();
    let Some(before) = book.find_class(loader, class.name()) else {
        return;
    };
    let has_silent_callers = |method: &ClassFileMethod<'_>| {
        let id = book.find_method(before, &method.name, &method.descriptor);
        let info = id.and_then(|id| book.method(id));
        info.is_some_and(|info| matches!(info.frame, FrameKind::Leaf | FrameKind::VmEntered))
            && hooks::is_bound(class, method)
    };
    for (method, shape) in class.methods().iter().zip(shapes) {
        if shape.frame == FrameKind::OwnSlot && has_silent_callers(method) {
            set_vm_entered(shape);
        }
    }
}

/// Rewrites a class outside the instrumentation scope.
fn rewrite_outside_scope(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
) -> Option<Vec<u8>> {
    let creates = |of: &str| may_create(classes, loader, of);
    let options = hooks_for_loader(classes, loader);
    let plan = hooks::plan_outside(class, &creates, options).ok()?;
    rewrite_untraced(
        classes,
        (loader, class),
        set_inherited(plan, classes.loaders.is_own(loader)),
    )
}

/// `own`: the class's loader belongs to the program.
fn set_inherited(mut plan: ClassPlan<'static>, own: bool) -> ClassPlan<'static> {
    plan.inherited = own.then_some(hooks::INHERITED);
    plan
}

/// Removes our fields from the plan if the class has them: a Java agent got the class with our fields.
fn remove_present_fields(class: &ClassFile<'_>, plan: &mut ClassPlan<'_>) {
    plan.fields.retain(|field| !class.has_field(field.name));
}

fn is_empty_plan(plan: &ClassPlan<'_>) -> bool {
    plan.methods.is_empty() && plan.fields.is_empty() && plan.new_methods.is_empty()
}

/// Rewrites a class that no trace shows.
fn rewrite_untraced(
    classes: &AgentClasses,
    (loader, class): (ClassLoaderId, &ClassFile<'_>),
    mut plan: ClassPlan<'_>,
) -> Option<Vec<u8>> {
    remove_present_fields(class, &mut plan);
    if is_empty_plan(&plan) {
        return None;
    }
    match rewrite(class, &plan) {
        Ok(done) => {
            classes
                .long_methods
                .report_outgrown(classes, class, &done.outgrown);
            for (index, _) in &done.skipped {
                watch_method(classes, loader, class, *index);
            }
            Some(done.bytes)
        }
        Err(error) => {
            increment_counter(&classes.counts.classes_skipped);
            classes.report_message(LogLevel::Debug, &format!("{}: {error}", class.name()));
            classes.report_skipped(class.name(), None, &error.to_string());
            for index in plan.methods.keys() {
                watch_method(classes, loader, class, *index);
            }
            None
        }
    }
}

fn register_class(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    shapes: &[MethodInstrumentation],
) -> Option<FirstClassIds> {
    let source = class.source_file();
    let methods: Vec<_> = class
        .methods()
        .iter()
        .map(|m| (&*m.name, &*m.descriptor, m.access))
        .collect();
    let new = ClassDefinition {
        name: class.name(),
        source: source.as_deref(),
        loader,
        methods: &methods,
        instrumentations: shapes,
    };
    let mut book = classes.registry_mut();
    let ids = book.add_class(&new)?;
    if classes.tracking.records_calls() {
        for (method, (name, ..)) in (ids.first_method..).zip(&methods) {
            classes
                .tracking
                .on_method_loaded(class.name(), name, method);
        }
    }
    Some(ids)
}

/// What hooks of a loader's classes depend on besides the classes and the kinds of events.
pub fn hooks_for_loader(classes: &AgentClasses, loader: ClassLoaderId) -> HookOptions {
    HookOptions {
        exits: classes.tracking.records_calls(),
        at_entry: !classes.tracking.is_lazy(),
        restores: classes.options.is_partial(),
        trusted: classes.loaders.is_trusted(loader),
        inherits: classes.loaders.is_own(loader),
        kinds: classes.options.hooked_events().kinds_in_code(),
    }
}

/// The plan with these ids. `native_site` gives the sites of natives with a bracket.
fn build_plan(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    planned: &PlannedClass<'_>,
    ids: FirstClassIds,
    native_site: &dyn Fn(usize) -> u32,
) -> ClassPlan<'static> {
    let mut plan = hooks::plan_class(
        planned.class,
        planned.shapes,
        ids.first_method,
        ids.first_site,
        native_site,
        hooks_for_loader(classes, loader),
    );
    remove_present_fields(planned.class, &mut plan);
    plan
}

fn insert_hooks(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    planned: &PlannedClass<'_>,
    ids: FirstClassIds,
) -> Option<Vec<u8>> {
    let natives = bracketed_natives(planned.shapes);
    let sites = cache::add_native_sites(classes, &natives, ids);
    let is_usual = planned.arrival == ClassArrival::Load;
    if is_usual
        && classes.cache.accepts_loader(loader)
        && let Some(made) = insert_and_cache(classes, loader, planned, (ids, &natives, &sites))
    {
        return made;
    }
    let site = |index: usize| {
        let mut all = natives.iter().zip(&sites);
        all.find(|(native, _)| **native == index)
            .map_or(0, |(_, site)| *site)
    };
    let plan = build_plan(classes, loader, planned, ids, &site);
    if is_empty_plan(&plan) {
        return None;
    }
    let class = planned.class;
    match rewrite(class, &plan) {
        Ok(done) => {
            increment_counter(&classes.counts.classes);
            let is_whole = is_usual && done.skipped.is_empty();
            let hooked = accept_rewritten(classes, loader, class, ids, done);
            if is_whole {
                let (plain, shapes) = (planned.plain, planned.shapes);
                classes
                    .duplicates
                    .record_hooked(classes, loader, (class, plain), shapes, &hooked);
            }
            Some(hooked)
        }
        Err(error) => {
            increment_counter(&classes.counts.classes_skipped);
            for index in plan.methods.keys() {
                leave_unhooked(classes, loader, class, ids, *index);
            }
            classes.report_skipped(class.name(), None, &error.to_string());
            None
        }
    }
}

/// Like `insert_hooks`, through a class with placeholders for ids that other runs can use. `None`: this is impossible for the
/// class.
fn insert_and_cache(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    planned: &PlannedClass<'_>,
    (ids, natives, sites): (FirstClassIds, &[usize], &[u32]),
) -> Option<Option<Vec<u8>>> {
    let keep = |hooked: Option<(&[u8], &PlaceholderConstants)>| {
        let kept = CacheableClass {
            plain: planned.plain,
            acts_as_carrier: planned.acts_as_carrier,
            name: planned.class.name(),
            shapes: planned.shapes,
            untracked_queries: planned.untracked_queries,
            natives,
            hooked,
        };
        classes.cache.add_class(classes, &kept);
    };
    let standing_for = |index: usize| {
        let native = natives.iter().position(|native| *native == index);
        native.map_or(0, |native| NATIVE_PLACEHOLDERS + native as u32)
    };
    let plan = build_plan(classes, loader, planned, PLACEHOLDER_IDS, &standing_for);
    if is_empty_plan(&plan) {
        keep(None);
        return Some(None);
    }
    let done = rewrite(planned.class, &plan).ok()?;
    // A cached class would not report methods that are too long for compilers.
    if !done.skipped.is_empty() || !done.outgrown.is_empty() {
        return None;
    }
    let constants = find_placeholders(&done.integers?)?;
    let mut hooked = done.bytes.clone();
    replace_placeholders(&mut hooked, constants.iter().copied(), ids, sites)?;
    keep(Some((&done.bytes, &constants)));
    increment_counter(&classes.counts.classes);
    Some(Some(hooked))
}

fn accept_rewritten(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    ids: FirstClassIds,
    done: RewrittenClass,
) -> Vec<u8> {
    classes
        .long_methods
        .report_outgrown(classes, class, &done.outgrown);
    for (index, error) in &done.skipped {
        increment_counter(&classes.counts.methods_skipped);
        leave_unhooked(classes, loader, class, ids, *index);
        let name = class.methods().get(*index).map_or("", |m| &m.name);
        classes.report_skipped(class.name(), Some(name), &error.to_string());
    }
    done.bytes
}

/// Leaves a method without hooks.
fn leave_unhooked(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    ids: FirstClassIds,
    index: usize,
) {
    let is_watched = watch_method(classes, loader, class, index);
    let id = ids.first_method + index as u32;
    classes.registry_mut().mark_uninstrumented(id, is_watched);
}

/// Makes the VM stop in a method without hooks, whose callees would not know their slots. `false`: the VM refuses.
fn watch_method(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    index: usize,
) -> bool {
    let Some(method) = class.methods().get(index) else {
        return false;
    };
    let watched = classes.method_watch.add_method(
        classes.jvmti,
        (loader, class.name()),
        (&method.name, &method.descriptor),
    );
    if watched.is_err() {
        let text = format!(
            "{}.{} calls without being watched: traces of what it calls may show frames that have ended",
            class.name(),
            method.name
        );
        classes.report_message(LogLevel::Warn, &text);
    }
    watched.is_ok()
}

/// Natives that are called with a bracket, each once, by their methods' indices.
pub fn bracketed_natives(shapes: &[MethodInstrumentation]) -> Vec<usize> {
    let mut natives = Vec::new();
    for place in shapes.iter().flat_map(|shape| &shape.places) {
        if let HookSiteKind::NativeBracket(index) | HookSiteKind::CreatingBracket(index) =
            place.kind
            && !natives.contains(&index)
        {
            natives.push(index);
        }
    }
    natives
}

/// New bytes for a hidden class. Its frames are not shown, but its callees must find their slots, and its objects are counted for
/// its caller.
pub fn transform_hidden_class(
    classes: &AgentClasses,
    loader: ClassLoaderId,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).ok()?;
    let alloc = classes.options.hooked_events().has_kind(&ALLOC);
    let trusted = classes.loaders.is_trusted(loader);
    let plan = match classes.options.is_partial() {
        true => {
            let creates = |of: &str| may_be_created(classes, of);
            let counts = alloc && is_in_scope(classes, loader, class.name());
            let holds = |of: &str| is_in_scope(classes, ClassLoaderId::BOOT, of);
            hooks::hidden_plan_outside(&class, trusted, &creates, (counts, &holds))
        }
        false => hooks::plan_hidden_class(&class, trusted, alloc),
    };
    // A hidden class is in the package of a class of its loader.
    rewrite_untraced(
        classes,
        (loader, &class),
        set_inherited(plan.ok()?, !trusted),
    )
}
