//! A class on its way into the VM: parse, plan, note in the book, rewrite.

use std::sync::atomic::{AtomicU32, Ordering};

use lucce_bytecode::{ClassFile, Error, Method, Plan, Rewritten, rewrite};
use lucce_hooks::kinds::ALLOC;

use crate::book::{Ids, Loader, NewClass, may_be_quiet};
use crate::classes::Classes;
use crate::classes::cache::{
    self, Asked, Constants, Kept, NATIVES, STANDING_FOR, put_ids, standing_for_ids,
};
use crate::core::{holds, is_without_the_jdk, may_be_created, may_create};
use crate::memory::counter::count;
use crate::options::Level;
use crate::thread::carrier;
use lucce_hooks::{self as hooks, FrameKind, Hooks, Mark, Shape, Wants};

/// Why a class comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    Load,
    /// The class is loaded, and gets other code. Frames that are there go on in the code of before.
    Change,
}

/// New bytes for a class; `None`: it stays as it is.
pub fn transform(
    classes: &Classes,
    loader: Loader,
    bytes: &[u8],
    arrival: Arrival,
) -> Option<Vec<u8>> {
    if arrival == Arrival::Load {
        if let Some(known) = classes.twins.find(classes, loader, bytes) {
            return Some(known);
        }
        if let Some(known) = classes.cache.find(classes, loader, bytes) {
            return known;
        }
    }
    let class = match ClassFile::parse(bytes) {
        Ok(class) => class,
        Err(_) => return unread(classes),
    };
    if class.name() == "module-info" {
        return None;
    }
    let acts_as_carrier = hooks::acts_as_carrier(class.name(), class.methods());
    if acts_as_carrier {
        carrier::hooked();
    }
    compare(classes, loader, &class);
    classes.watch.forget(loader, class.name());
    if !holds(classes, loader, class.name()) {
        return outside(classes, loader, &class);
    }
    let asked = Asked::default();
    let Ok(mut shapes) = shapes(classes, loader, &class, &asked) else {
        return unread(classes);
    };
    if arrival == Arrival::Change {
        ask_where_old_code_calls(classes, loader, &class, &mut shapes);
    }
    let Some(ids) = note(classes, loader, &class, &shapes) else {
        count(&classes.counts.classes_skipped);
        classes.skipped(class.name(), None, "no more ids for methods and sites");
        // Its frames have no numbers, but what they call finds its slot.
        for method in class.methods() {
            let place = (loader, class.name());
            let _ = classes
                .watch
                .add(classes.jvmti, place, (&method.name, &method.descriptor));
        }
        return None;
    };
    let planned = Planned {
        class: &class,
        plain: bytes,
        acts_as_carrier,
        shapes: &shapes,
        asked: &asked,
        arrival,
    };
    insert(classes, loader, &planned, ids)
}

/// A class of which it is known where hooks go.
struct Planned<'p> {
    class: &'p ClassFile<'p>,
    plain: &'p [u8],
    acts_as_carrier: bool,
    shapes: &'p [Shape],
    asked: &'p Asked,
    arrival: Arrival,
}

/// How many differences to JDKs that are known there were.
static DIFFERENCES: AtomicU32 = AtomicU32::new(0);

/// Where the JDK may be another one than those that are known: says what differs, some of it.
fn compare(classes: &Classes, loader: Loader, class: &ClassFile<'_>) {
    const MOST: u32 = 20;
    let Some(like) = classes.options.like.filter(|_| loader == Loader::BOOT) else {
        return;
    };
    for difference in hooks::jdk::differences(class, like) {
        // Relaxed: a number, nothing is read by it.
        match DIFFERENCES.fetch_add(1, Ordering::Relaxed) {
            ..MOST => classes.say(Level::Warn, &difference),
            MOST => classes.say(
                Level::Warn,
                "this JDK differs in more ways from those that lucce knows",
            ),
            _ => {}
        }
    }
}

/// The VM will refuse the class, and tell its user, or else say that it has accepted it.
fn unread(classes: &Classes) -> Option<Vec<u8>> {
    if classes.watch.unread(classes.jvmti).is_err() {
        classes.say(Level::Warn, "a class cannot be read, nor watched");
    }
    None
}

/// `asked`: is told what the book was asked for.
fn shapes(
    classes: &Classes,
    loader: Loader,
    class: &ClassFile<'_>,
    asked: &Asked,
) -> Result<Vec<Shape>, Error> {
    let book = classes.book();
    let is_quiet = |class: &str, name: &str, descriptor: &str| {
        if may_be_quiet(class) {
            cache::asks(asked, &book, class);
        }
        book.is_quiet(class, name, descriptor)
    };
    let wants = Wants {
        events: classes.options.hooks().in_code(),
        idle: classes.options.is_idle(),
        trusted: classes.loaders.is_trusted(loader),
        holds: &|class| holds(classes, Loader::BOOT, class),
        jdk_is_out_of_scope: is_without_the_jdk(&classes.options),
        calls_quiet: &|call| is_quiet(&call.owner, &call.name, &call.descriptor),
    };
    let mut shapes = hooks::shapes(class, wants)?;
    ask_where_nobody_says(&is_quiet, class, &mut shapes);
    Ok(shapes)
}

/// Another agent has changed methods before whose calls nothing was said: the VM knows who calls them.
fn ask_where_nobody_says(
    is_quiet: &dyn Fn(&str, &str, &str) -> bool,
    class: &ClassFile<'_>,
    shapes: &mut [Shape],
) {
    for (method, shape) in class.methods().iter().zip(shapes) {
        let was_quiet = || is_quiet(class.name(), &method.name, &method.descriptor);
        if shape.frame == FrameKind::Push && was_quiet() {
            ask_at_entry(shape);
        }
    }
}

/// The method asks the VM who has called it.
fn ask_at_entry(shape: &mut Shape) {
    shape.frame = FrameKind::Vm;
    shape.here = false;
}

/// A method had no hooks, so other methods of its class say nothing before they call it. Now it has some. Frames that are there go
/// on in the old code, for as long as they like. What has asked once asks for ever: such a frame may be older.
fn ask_where_old_code_calls(
    classes: &Classes,
    loader: Loader,
    class: &ClassFile<'_>,
    shapes: &mut [Shape],
) {
    let book = classes.book();
    let Some(before) = book.class_named(loader, class.name()) else {
        return;
    };
    let has_silent_callers = |method: &Method<'_>| {
        let id = book.find_method(before, &method.name, &method.descriptor);
        let info = id.and_then(|id| book.method(id));
        info.is_some_and(|info| matches!(info.frame, FrameKind::Leaf | FrameKind::Vm))
            && hooks::is_bound(class, method)
    };
    for (method, shape) in class.methods().iter().zip(shapes) {
        if shape.frame == FrameKind::Push && has_silent_callers(method) {
            ask_at_entry(shape);
        }
    }
}

/// A class that is not in scope.
fn outside(classes: &Classes, loader: Loader, class: &ClassFile<'_>) -> Option<Vec<u8>> {
    let creates = |of: &str| may_create(classes, loader, of);
    let counts = classes.options.hooks().in_code();
    let trusted = classes.loaders.is_trusted(loader);
    let plan = hooks::plan_outside(class, trusted, &creates, counts).ok()?;
    rewrite_quietly(
        classes,
        (loader, class),
        inherits(plan, classes.loaders.is_own(loader)),
    )
}

/// `own`: the class's loader is one of the program's.
fn inherits(mut plan: Plan<'static>, own: bool) -> Plan<'static> {
    plan.inherited = own.then_some(hooks::INHERITED);
    plan
}

/// A class that a Java agent was given with our fields has them.
fn keep_fields(class: &ClassFile<'_>, plan: &mut Plan<'_>) {
    plan.fields.retain(|field| !class.has_field(field.name));
}

fn is_empty(plan: &Plan<'_>) -> bool {
    plan.methods.is_empty() && plan.fields.is_empty() && plan.new_methods.is_empty()
}

/// A class that is in no trace.
fn rewrite_quietly(
    classes: &Classes,
    (loader, class): (Loader, &ClassFile<'_>),
    mut plan: Plan<'_>,
) -> Option<Vec<u8>> {
    keep_fields(class, &mut plan);
    if is_empty(&plan) {
        return None;
    }
    match rewrite(class, &plan) {
        Ok(done) => {
            classes.long.met(classes, class, &done.outgrown);
            for (index, _) in &done.skipped {
                watch_method(classes, loader, class, *index);
            }
            Some(done.bytes)
        }
        Err(error) => {
            count(&classes.counts.classes_skipped);
            classes.say(Level::Debug, &format!("{}: {error}", class.name()));
            classes.skipped(class.name(), None, &error.to_string());
            for index in plan.methods.keys() {
                watch_method(classes, loader, class, *index);
            }
            None
        }
    }
}

fn note(classes: &Classes, loader: Loader, class: &ClassFile<'_>, shapes: &[Shape]) -> Option<Ids> {
    let source = class.source_file();
    let methods: Vec<_> = class
        .methods()
        .iter()
        .map(|m| (&*m.name, &*m.descriptor, m.access))
        .collect();
    let new = NewClass {
        name: class.name(),
        source: source.as_deref(),
        loader,
        methods: &methods,
        shapes,
    };
    let mut book = classes.book_mut();
    let ids = book.add(&new)?;
    if let Some(recorder) = &classes.recorder {
        for (method, (name, ..)) in (ids.first_method..).zip(&methods) {
            recorder.loaded(class.name(), name, method);
        }
    }
    Some(ids)
}

/// What hooks of a loader's classes depend on beside the classes and the kinds of events.
pub fn hooks_of(classes: &Classes, loader: Loader) -> Hooks {
    Hooks {
        exits: classes.recorder.is_some(),
        at_entry: !classes.comparison.is_off(),
        restores: classes.options.is_partial(),
        trusted: classes.loaders.is_trusted(loader),
        inherits: classes.loaders.is_own(loader),
        kinds: classes.options.hooks().in_code(),
    }
}

/// The plan with these ids; `native_site` says those of natives with a bracket.
fn plan(
    classes: &Classes,
    loader: Loader,
    planned: &Planned<'_>,
    ids: Ids,
    native_site: &dyn Fn(usize) -> u32,
) -> Plan<'static> {
    let mut plan = hooks::plan(
        planned.class,
        planned.shapes,
        ids.first_method,
        ids.first_site,
        native_site,
        hooks_of(classes, loader),
    );
    keep_fields(planned.class, &mut plan);
    plan
}

fn insert(classes: &Classes, loader: Loader, planned: &Planned<'_>, ids: Ids) -> Option<Vec<u8>> {
    let natives = bracketed(planned.shapes);
    let sites = cache::native_sites(classes, &natives, ids);
    let is_usual = planned.arrival == Arrival::Load;
    if is_usual
        && classes.cache.keeps(loader)
        && let Some(made) = insert_and_keep(classes, loader, planned, (ids, &natives, &sites))
    {
        return made;
    }
    let site = |index: usize| {
        let mut all = natives.iter().zip(&sites);
        all.find(|(native, _)| **native == index)
            .map_or(0, |(_, site)| *site)
    };
    let plan = plan(classes, loader, planned, ids, &site);
    if is_empty(&plan) {
        return None;
    }
    let class = planned.class;
    match rewrite(class, &plan) {
        Ok(done) => {
            count(&classes.counts.classes);
            let is_whole = is_usual && done.skipped.is_empty();
            let hooked = accept(classes, loader, class, ids, done);
            if is_whole {
                let (plain, shapes) = (planned.plain, planned.shapes);
                classes
                    .twins
                    .met(classes, loader, (class, plain), shapes, &hooked);
            }
            Some(hooked)
        }
        Err(error) => {
            count(&classes.counts.classes_skipped);
            for index in plan.methods.keys() {
                leave(classes, loader, class, ids, *index);
            }
            classes.skipped(class.name(), None, &error.to_string());
            None
        }
    }
}

/// As `insert`, by way of a class in which something else stands for ids, which other runs can use, too. `None`: it cannot
/// be done so.
fn insert_and_keep(
    classes: &Classes,
    loader: Loader,
    planned: &Planned<'_>,
    (ids, natives, sites): (Ids, &[usize], &[u32]),
) -> Option<Option<Vec<u8>>> {
    let keep = |hooked: Option<(&[u8], &Constants)>| {
        let kept = Kept {
            plain: planned.plain,
            acts_as_carrier: planned.acts_as_carrier,
            name: planned.class.name(),
            shapes: planned.shapes,
            asked: planned.asked,
            natives,
            hooked,
        };
        classes.cache.keep(classes, &kept);
    };
    let standing_for = |index: usize| {
        let native = natives.iter().position(|native| *native == index);
        native.map_or(0, |native| NATIVES + native as u32)
    };
    let plan = plan(classes, loader, planned, STANDING_FOR, &standing_for);
    if is_empty(&plan) {
        keep(None);
        return Some(None);
    }
    let done = rewrite(planned.class, &plan).ok()?;
    // One from the cache would not say which methods are too long for compilers.
    if !done.skipped.is_empty() || !done.outgrown.is_empty() {
        return None;
    }
    let constants = standing_for_ids(&done.integers?)?;
    let mut hooked = done.bytes.clone();
    put_ids(&mut hooked, constants.iter().copied(), ids, sites)?;
    keep(Some((&done.bytes, &constants)));
    count(&classes.counts.classes);
    Some(Some(hooked))
}

fn accept(
    classes: &Classes,
    loader: Loader,
    class: &ClassFile<'_>,
    ids: Ids,
    done: Rewritten,
) -> Vec<u8> {
    classes.long.met(classes, class, &done.outgrown);
    for (index, error) in &done.skipped {
        count(&classes.counts.methods_skipped);
        leave(classes, loader, class, ids, *index);
        let name = class.methods().get(*index).map_or("", |m| &m.name);
        classes.skipped(class.name(), Some(name), &error.to_string());
    }
    done.bytes
}

/// A method stays without hooks.
fn leave(classes: &Classes, loader: Loader, class: &ClassFile<'_>, ids: Ids, index: usize) {
    let is_watched = watch_method(classes, loader, class, index);
    let id = ids.first_method + index as u32;
    classes.book_mut().untouched(id, is_watched);
}

/// What a method without hooks calls would not know where its slot is, so the VM stops in it. `false`: the VM does not.
fn watch_method(classes: &Classes, loader: Loader, class: &ClassFile<'_>, index: usize) -> bool {
    let Some(method) = class.methods().get(index) else {
        return false;
    };
    let watched = classes.watch.add(
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
        classes.say(Level::Warn, &text);
    }
    watched.is_ok()
}

/// Natives that are called with a bracket, each once, by their methods' indices.
pub fn bracketed(shapes: &[Shape]) -> Vec<usize> {
    let mut natives = Vec::new();
    for place in shapes.iter().flat_map(|shape| &shape.places) {
        if let Mark::Bracket(index) | Mark::BracketMaking(index) = place.mark
            && !natives.contains(&index)
        {
            natives.push(index);
        }
    }
    natives
}

/// New bytes for a hidden class: its frames are not shown, but what it calls must find its slot, and what it makes
/// is counted for its caller.
pub fn hidden(classes: &Classes, loader: Loader, bytes: &[u8]) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).ok()?;
    let alloc = classes.options.hooks().has(&ALLOC);
    let trusted = classes.loaders.is_trusted(loader);
    let plan = match classes.options.is_partial() {
        true => {
            let creates = |of: &str| may_be_created(classes, of);
            let counts = alloc && holds(classes, loader, class.name());
            let holds = |of: &str| holds(classes, Loader::BOOT, of);
            hooks::hidden_plan_outside(&class, trusted, &creates, (counts, &holds))
        }
        false => hooks::hidden_plan(&class, trusted, alloc),
    };
    // A hidden class is in the package of a class of its loader.
    rewrite_quietly(classes, (loader, &class), inherits(plan.ok()?, !trusted))
}
