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
use lucce_instrument::jdk::vm_calls;
use lucce_instrument::kinds::ALLOC;

use crate::classes::ClassParts;
use crate::classes::cache::{
    self, CacheableClass, NATIVE_PLACEHOLDERS, PLACEHOLDER_IDS, PlaceholderConstants,
    UntrackedQueries, find_placeholders, replace_placeholders,
};
use crate::classes::rewriting::{RewriteOutcome, has_native_actions, hooks_for_loader};
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

/// Inserts the hooks of a class.
pub fn transform_class(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    bytes: &[u8],
    arrival: ClassArrival,
) -> RewriteOutcome {
    if arrival == ClassArrival::Load {
        if let Some(known) = agent
            .classes
            .shared_copies
            .find_hooked(agent, loader, bytes)
        {
            return RewriteOutcome::Hooked(known);
        }
        if let Some(known) = agent.classes.cache.find_class(agent, loader, bytes) {
            return known;
        }
    }
    let class = match ClassFile::parse(bytes) {
        Ok(class) => class,
        Err(_) => return pass_unreadable(agent),
    };
    if class.name() == "module-info" {
        return RewriteOutcome::NoHooks;
    }
    let acts_as_carrier = hooks::acts_as_carrier(class.name(), class.methods());
    if acts_as_carrier {
        carrier::enable_carrier_lookup();
    }
    report_jdk_differences(agent, loader, &class);
    agent
        .classes
        .method_watch
        .forget_class(loader, class.name());
    if !is_in_scope(agent.core, loader, class.name()) {
        agent.core.report_named_methods(&class, None);
        return rewrite_outside_scope(agent, loader, &class);
    }
    let queries = UntrackedQueries::default();
    let Ok(mut instrumentations) = decide_instrumentation(agent, loader, &class, &queries) else {
        return pass_unreadable(agent);
    };
    agent
        .core
        .report_named_methods(&class, Some(&instrumentations));
    if arrival == ClassArrival::Change {
        set_vm_entered_if_old_callers(agent, loader, &class, &mut instrumentations);
    }
    let Some(ids) = register_class(agent, loader, &class, &instrumentations) else {
        increment_counter(&agent.core.counts.classes_skipped);
        agent
            .core
            .report_skipped(class.name(), None, "no more ids for methods and sites");
        // Its frames have no numbers, but its callees find their slots.
        for method in class.methods() {
            let place = (loader, class.name());
            let _ = agent.classes.method_watch.add_method(
                agent.core.jvmti,
                place,
                (&method.name, &method.descriptor),
            );
        }
        return RewriteOutcome::Failed;
    };
    let planned = PlannedClass {
        class: &class,
        plain: bytes,
        acts_as_carrier,
        instrumentations: &instrumentations,
        untracked_queries: &queries,
        arrival,
    };
    insert_hooks(agent, loader, &planned, ids)
}

/// A class whose instrumentation is decided.
struct PlannedClass<'p> {
    class: &'p ClassFile<'p>,
    plain: &'p [u8],
    acts_as_carrier: bool,
    instrumentations: &'p [MethodInstrumentation],
    untracked_queries: &'p UntrackedQueries,
    arrival: ClassArrival,
}

/// The number of differences from known JDKs so far.
static DIFFERENCES: AtomicU32 = AtomicU32::new(0);

/// Compares a class of an unknown JDK with a known JDK, and reports the first differences.
fn report_jdk_differences(agent: ClassParts<'_>, loader: ClassLoaderId, class: &ClassFile<'_>) {
    const MOST: u32 = 20;
    let Some(like) = agent
        .core
        .options
        .compared_jdk
        .filter(|_| loader == ClassLoaderId::BOOT)
    else {
        return;
    };
    for difference in hooks::jdk::find_differences(class, like) {
        // Relaxed: a number; no other data depends on it.
        match DIFFERENCES.fetch_add(1, Ordering::Relaxed) {
            ..MOST => agent.core.report_message(LogLevel::Warn, &difference),
            MOST => agent.core.report_message(
                LogLevel::Warn,
                "this JDK differs in more ways from those that lucce knows",
            ),
            _ => {}
        }
    }
}

/// The VM will reject the class with an error of its own. If it accepts the class, the class is watched.
fn pass_unreadable(agent: ClassParts<'_>) -> RewriteOutcome {
    if agent
        .classes
        .method_watch
        .watch_unreadable(agent.core.jvmti)
        .is_err()
    {
        agent
            .core
            .report_message(LogLevel::Warn, "a class cannot be read, nor watched");
    }
    RewriteOutcome::Failed
}

/// Decides the hooks of a class. Lookups of untracked methods are added to `queries`.
fn decide_instrumentation(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    queries: &UntrackedQueries,
) -> Result<Vec<MethodInstrumentation>, BytecodeError> {
    let registry = agent.core.registry();
    let is_untracked = |class: &str, name: &str, descriptor: &str| {
        if may_be_untracked(class) {
            cache::record_untracked_query(queries, &registry, class);
        }
        registry.is_untracked(class, name, descriptor)
    };
    let wants = InstrumentationOptions {
        events: agent.core.options.kinds_in_code(),
        idle: agent.core.options.is_idle(),
        trusted: agent.core.loaders.is_trusted(loader),
        holds: &|class| is_in_scope(agent.core, ClassLoaderId::BOOT, class),
        jdk_is_out_of_scope: is_jdk_excluded(&agent.core.options),
        methods: agent.core.options.events.methods(),
        resources: &agent.core.options.resources,
        calls_untracked: &|call| is_untracked(&call.owner, &call.name, &call.descriptor),
    };
    let mut instrumentations = hooks::analyze_class(class, wants)?;
    set_vm_entered_if_untracked(&is_untracked, class, &mut instrumentations);
    if has_native_actions(agent) {
        set_actions_vm_entered(class, &mut instrumentations);
    }
    // Inherited hooks have the code of the live helpers; their calls reach whichever there are.
    if agent.core.loaders.is_own(loader) && !agent.core.has_live_helpers.load(Ordering::Acquire) {
        instrumentations
            .iter_mut()
            .for_each(MethodInstrumentation::set_all_calls_rare);
    }
    Ok(instrumentations)
}

/// Another agent has changed untracked methods. They ask the VM for their callers.
fn set_vm_entered_if_untracked(
    is_untracked: &dyn Fn(&str, &str, &str) -> bool,
    class: &ClassFile<'_>,
    instrumentations: &mut [MethodInstrumentation],
) {
    for (method, instrumentation) in class.methods().iter().zip(instrumentations) {
        let was_untracked = || is_untracked(class.name(), &method.name, &method.descriptor);
        if instrumentation.frame == FrameKind::OwnSlot && was_untracked() {
            set_vm_entered(instrumentation);
        }
    }
}

/// The VM enters privileged actions.
fn set_actions_vm_entered(class: &ClassFile<'_>, instrumentations: &mut [MethodInstrumentation]) {
    for (method, instrumentation) in class.methods().iter().zip(instrumentations) {
        if instrumentation.frame == FrameKind::OwnSlot && vm_calls::is_action(method) {
            set_vm_entered(instrumentation);
        }
    }
}

/// The method asks the VM for its caller.
fn set_vm_entered(instrumentation: &mut MethodInstrumentation) {
    instrumentation.frame = FrameKind::VmEntered;
    instrumentation.needs_no_slot_local = false;
}

/// The method had no hooks, so other methods of its class call it without hooks. Now it gets some, while present frames continue
/// in the old code without limit. A method that has asked the VM once continues to ask: an old frame may still exist.
fn set_vm_entered_if_old_callers(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    instrumentations: &mut [MethodInstrumentation],
) {
    let registry = agent.core.registry();
    let Some(before) = registry.find_class(loader, class.name()) else {
        return;
    };
    let has_untracked_callers = |method: &ClassFileMethod<'_>| {
        let id = registry.find_method(before, &method.name, &method.descriptor);
        let info = id.and_then(|id| registry.method(id));
        info.is_some_and(|info| matches!(info.frame, FrameKind::Leaf | FrameKind::VmEntered))
            && hooks::is_bound(class, method)
    };
    for (method, instrumentation) in class.methods().iter().zip(instrumentations) {
        if instrumentation.frame == FrameKind::OwnSlot && has_untracked_callers(method) {
            set_vm_entered(instrumentation);
        }
    }
}

/// Rewrites a class outside the instrumentation scope.
fn rewrite_outside_scope(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
) -> RewriteOutcome {
    let creates = |of: &str| may_create(agent.core, loader, of);
    let options = hooks_for_loader(agent, loader);
    let resources = &agent.core.options.resources;
    let Ok(plan) = hooks::plan_outside(class, &creates, (options, resources)) else {
        return RewriteOutcome::Failed;
    };
    rewrite_untraced(
        agent,
        (loader, class),
        set_inherited(plan, agent.core.loaders.is_own(loader)),
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
    agent: ClassParts<'_>,
    (loader, class): (ClassLoaderId, &ClassFile<'_>),
    mut plan: ClassPlan<'_>,
) -> RewriteOutcome {
    remove_present_fields(class, &mut plan);
    if is_empty_plan(&plan) {
        return RewriteOutcome::NoHooks;
    }
    match rewrite(class, &plan) {
        Ok(done) => {
            agent
                .classes
                .long_methods
                .report_outgrown(agent, class, &done.outgrown);
            for (index, _) in &done.skipped {
                watch_method(agent, loader, class, *index);
            }
            RewriteOutcome::Hooked(done.bytes)
        }
        Err(error) => {
            increment_counter(&agent.core.counts.classes_skipped);
            agent
                .core
                .report_message(LogLevel::Debug, &format!("{}: {error}", class.name()));
            agent
                .core
                .report_skipped(class.name(), None, &error.to_string());
            for index in plan.methods.keys() {
                watch_method(agent, loader, class, *index);
            }
            RewriteOutcome::Failed
        }
    }
}

fn register_class(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    instrumentations: &[MethodInstrumentation],
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
        instrumentations,
    };
    let mut registry = agent.core.registry_mut();
    let ids = registry.add_class(&new)?;
    if agent.counters.tracking.records_calls() {
        for (method, (name, ..)) in (ids.first_method..).zip(&methods) {
            agent
                .counters
                .tracking
                .on_method_loaded(class.name(), name, method);
        }
    }
    Some(ids)
}

/// The plan with these ids. `native_site` gives the sites of natives with a bracket.
fn build_plan(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    planned: &PlannedClass<'_>,
    ids: FirstClassIds,
    native_site: &dyn Fn(usize) -> u32,
) -> ClassPlan<'static> {
    let mut plan = hooks::plan_class(
        planned.class,
        planned.instrumentations,
        ids.first_method,
        ids.first_site,
        native_site,
        hooks_for_loader(agent, loader),
    );
    remove_present_fields(planned.class, &mut plan);
    plan
}

fn insert_hooks(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    planned: &PlannedClass<'_>,
    ids: FirstClassIds,
) -> RewriteOutcome {
    let natives = bracketed_natives(planned.instrumentations);
    let sites = cache::add_native_sites(agent, &natives, ids);
    let is_usual = planned.arrival == ClassArrival::Load;
    // A class with named methods is reported in each run.
    let methods = agent.core.options.events.methods();
    if is_usual
        && !methods.matches_class(planned.class.name())
        && agent.classes.cache.accepts_loader(loader)
        && let Some(cached) = insert_and_cache(agent, loader, planned, ids, (&natives, &sites))
    {
        return cached;
    }
    let site = |index: usize| {
        let mut all = natives.iter().zip(&sites);
        all.find(|(native, _)| **native == index)
            .map_or(0, |(_, site)| *site)
    };
    let plan = build_plan(agent, loader, planned, ids, &site);
    if is_empty_plan(&plan) {
        return RewriteOutcome::NoHooks;
    }
    let class = planned.class;
    match rewrite(class, &plan) {
        Ok(done) => {
            increment_counter(&agent.core.counts.classes);
            let is_whole = is_usual && done.skipped.is_empty();
            let hooked = accept_rewritten(agent, loader, class, ids, done);
            if is_whole {
                let (plain, instrumentations) = (planned.plain, planned.instrumentations);
                agent.classes.shared_copies.record_hooked(
                    agent,
                    loader,
                    (class, plain),
                    instrumentations,
                    &hooked,
                );
            }
            RewriteOutcome::Hooked(hooked)
        }
        Err(error) => {
            increment_counter(&agent.core.counts.classes_skipped);
            for index in plan.methods.keys() {
                leave_unhooked(agent, loader, class, ids, *index);
            }
            agent
                .core
                .report_skipped(class.name(), None, &error.to_string());
            RewriteOutcome::Failed
        }
    }
}

/// Like `insert_hooks`, through a class with placeholders for ids that other runs can use. `None`: this is impossible for the
/// class.
fn insert_and_cache(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    planned: &PlannedClass<'_>,
    ids: FirstClassIds,
    (natives, sites): (&[usize], &[u32]),
) -> Option<RewriteOutcome> {
    let keep = |hooked: Option<(&[u8], &PlaceholderConstants)>| {
        let kept = CacheableClass {
            plain: planned.plain,
            acts_as_carrier: planned.acts_as_carrier,
            name: planned.class.name(),
            instrumentations: planned.instrumentations,
            untracked_queries: planned.untracked_queries,
            natives,
            hooked,
        };
        agent.classes.cache.add_class(agent, &kept);
    };
    let standing_for = |index: usize| {
        let native = natives.iter().position(|native| *native == index);
        native.map_or(0, |native| NATIVE_PLACEHOLDERS + native as u32)
    };
    let plan = build_plan(agent, loader, planned, PLACEHOLDER_IDS, &standing_for);
    if is_empty_plan(&plan) {
        keep(None);
        return Some(RewriteOutcome::NoHooks);
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
    increment_counter(&agent.core.counts.classes);
    Some(RewriteOutcome::Hooked(hooked))
}

fn accept_rewritten(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    ids: FirstClassIds,
    done: RewrittenClass,
) -> Vec<u8> {
    agent
        .classes
        .long_methods
        .report_outgrown(agent, class, &done.outgrown);
    for (index, error) in &done.skipped {
        increment_counter(&agent.core.counts.methods_skipped);
        leave_unhooked(agent, loader, class, ids, *index);
        let name = class.methods().get(*index).map_or("", |m| &m.name);
        agent
            .core
            .report_skipped(class.name(), Some(name), &error.to_string());
    }
    done.bytes
}

/// Leaves a method without hooks.
fn leave_unhooked(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    ids: FirstClassIds,
    index: usize,
) {
    let is_watched = watch_method(agent, loader, class, index);
    let id = ids.first_method + index as u32;
    agent
        .core
        .registry_mut()
        .mark_uninstrumented(id, is_watched);
}

/// Makes the VM stop in a method without hooks, whose callees would not know their slots. `false`: the VM refuses.
fn watch_method(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    class: &ClassFile<'_>,
    index: usize,
) -> bool {
    let Some(method) = class.methods().get(index) else {
        return false;
    };
    let watched = agent.classes.method_watch.add_method(
        agent.core.jvmti,
        (loader, class.name()),
        (&method.name, &method.descriptor),
    );
    if watched.is_err() {
        let text = format!(
            "{}.{} calls without being watched: traces of what it calls may show frames that have ended",
            class.name(),
            method.name
        );
        agent.core.report_message(LogLevel::Warn, &text);
    }
    watched.is_ok()
}

/// Natives that are called with a bracket, each once, by their methods' indices.
pub fn bracketed_natives(instrumentations: &[MethodInstrumentation]) -> Vec<usize> {
    let mut natives = Vec::new();
    for place in instrumentations
        .iter()
        .flat_map(|instrumentation| &instrumentation.places)
    {
        if let HookSiteKind::NativeBracket(index) | HookSiteKind::CreatingBracket(index) =
            place.kind
            && !natives.contains(&index)
        {
            natives.push(index);
        }
    }
    natives
}

/// Inserts the hooks of a hidden class. Its frames are not shown, but its callees must find their slots, and its objects are counted for
/// its caller.
pub fn transform_hidden_class(
    agent: ClassParts<'_>,
    loader: ClassLoaderId,
    bytes: &[u8],
) -> RewriteOutcome {
    let Ok(class) = ClassFile::parse(bytes) else {
        return RewriteOutcome::Failed;
    };
    let alloc = agent.core.options.hooked_events().has_kind(&ALLOC);
    let trusted = agent.core.loaders.is_trusted(loader);
    let options = HookOptions {
        trusted,
        native_actions: has_native_actions(agent),
        ..HookOptions::default()
    };
    let plan = match agent.core.options.is_partial() {
        true => {
            let creates = |of: &str| may_be_created(agent.core, of);
            let counts = alloc && is_in_scope(agent.core, loader, class.name());
            let holds = |of: &str| is_in_scope(agent.core, ClassLoaderId::BOOT, of);
            hooks::hidden_plan_outside(&class, options, &creates, (counts, &holds))
        }
        false => hooks::plan_hidden_class(&class, options, alloc),
    };
    // A hidden class is in the package of a class of its loader.
    match plan {
        Ok(plan) => rewrite_untraced(agent, (loader, &class), set_inherited(plan, !trusted)),
        Err(_) => RewriteOutcome::Failed,
    }
}
