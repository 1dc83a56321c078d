//! A class on its way into the VM: parse, plan, note in the book, rewrite.

use std::sync::atomic::{AtomicU32, Ordering};

use lucce_bytecode::{ClassFile, Error, Plan, Rewritten, rewrite};
use lucce_hooks::kinds::ALLOC;

use crate::book::{Book, Ids, Loader, NATIVE, NewClass};
use crate::classes::Classes;
use crate::core::{holds, is_without_the_jdk, may_be_created, may_create};
use crate::memory::counter::count;
use crate::options::Level;
use crate::thread::carrier;
use lucce_hooks::{self as hooks, FrameKind, Hooks, Mark, Shape, Wants};

/// New bytes for a class; `None`: it stays as it is.
pub fn transform(classes: &Classes, loader: Loader, bytes: &[u8]) -> Option<Vec<u8>> {
    if let Some(known) = classes.twins.find(classes, loader, bytes) {
        return Some(known);
    }
    let class = match ClassFile::parse(bytes) {
        Ok(class) => class,
        Err(_) => return unread(classes),
    };
    if class.name() == "module-info" {
        return None;
    }
    if hooks::acts_as_carrier(class.name(), class.methods()) {
        carrier::hooked();
    }
    compare(classes, loader, &class);
    classes.watch.forget(loader, class.name());
    if !holds(classes, loader, class.name()) {
        return outside(classes, loader, &class);
    }
    let Ok(shapes) = shapes(classes, loader, &class) else {
        return unread(classes);
    };
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
    insert(classes, loader, (&class, bytes), &shapes, ids)
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

fn shapes(classes: &Classes, loader: Loader, class: &ClassFile<'_>) -> Result<Vec<Shape>, Error> {
    let book = classes.book();
    let wants = Wants {
        events: classes.options.hooks().in_code(),
        idle: classes.options.is_idle(),
        trusted: classes.loaders.is_trusted(loader),
        holds: &|class| holds(classes, Loader::BOOT, class),
        jdk_is_out_of_scope: is_without_the_jdk(&classes.options),
        calls_quiet: &|call| book.is_quiet(&call.owner, &call.name, &call.descriptor),
    };
    let mut shapes = hooks::shapes(class, wants)?;
    ask_where_nobody_says(&book, class, &mut shapes);
    Ok(shapes)
}

/// Another agent has changed methods before whose calls nothing was said: the VM knows who calls them.
fn ask_where_nobody_says(book: &Book, class: &ClassFile<'_>, shapes: &mut [Shape]) {
    for (method, shape) in class.methods().iter().zip(shapes) {
        let was_quiet = || book.is_quiet(class.name(), &method.name, &method.descriptor);
        if shape.frame == FrameKind::Push && was_quiet() {
            shape.frame = FrameKind::Vm;
            shape.here = false;
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
        class,
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
    class: &ClassFile<'_>,
    mut plan: Plan<'_>,
) -> Option<Vec<u8>> {
    keep_fields(class, &mut plan);
    if is_empty(&plan) {
        return None;
    }
    match rewrite(class, &plan) {
        Ok(done) => Some(done.bytes),
        Err(error) => {
            count(&classes.counts.classes_skipped);
            classes.say(Level::Debug, &format!("{}: {error}", class.name()));
            classes.skipped(class.name(), None, &error.to_string());
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

fn insert(
    classes: &Classes,
    loader: Loader,
    (class, bytes): (&ClassFile<'_>, &[u8]),
    shapes: &[Shape],
    ids: Ids,
) -> Option<Vec<u8>> {
    let natives = native_sites(classes, shapes, ids);
    let native_site = |index: usize| natives.iter().find(|n| n.0 == index).map_or(0, |n| n.1);
    let hooks = Hooks {
        exits: classes.recorder.is_some(),
        at_entry: !classes.comparison.is_off(),
        restores: classes.options.is_partial(),
        trusted: classes.loaders.is_trusted(loader),
        inherits: classes.loaders.is_own(loader),
        kinds: classes.options.hooks().in_code(),
    };
    let mut plan = hooks::plan(
        class,
        shapes,
        ids.first_method,
        ids.first_site,
        &native_site,
        hooks,
    );
    keep_fields(class, &mut plan);
    if is_empty(&plan) {
        return None;
    }
    match rewrite(class, &plan) {
        Ok(done) => {
            count(&classes.counts.classes);
            let is_whole = done.skipped.is_empty();
            let hooked = accept(classes, loader, class, ids, done);
            if is_whole {
                classes
                    .twins
                    .met(classes, loader, (class, bytes), shapes, &hooked);
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

fn accept(
    classes: &Classes,
    loader: Loader,
    class: &ClassFile<'_>,
    ids: Ids,
    done: Rewritten,
) -> Vec<u8> {
    for (index, error) in &done.skipped {
        count(&classes.counts.methods_skipped);
        leave(classes, loader, class, ids, *index);
        let name = class.methods().get(*index).map_or("", |m| &m.name);
        classes.skipped(class.name(), Some(name), &error.to_string());
    }
    done.bytes
}

/// A method stays without hooks. What it calls would not know where its slot is, so it is watched.
fn leave(classes: &Classes, loader: Loader, class: &ClassFile<'_>, ids: Ids, index: usize) {
    let Some(method) = class.methods().get(index) else {
        return;
    };
    let watched = classes.watch.add(
        classes.jvmti,
        (loader, class.name()),
        (&method.name, &method.descriptor),
    );
    let id = ids.first_method + index as u32;
    classes.book_mut().untouched(id, watched.is_ok());
    if watched.is_err() {
        let text = format!(
            "{}.{} calls without being watched: traces of what it calls may show frames that have ended",
            class.name(),
            method.name
        );
        classes.say(Level::Warn, &text);
    }
}

/// The sites of natives that are called with a bracket, by method index.
fn native_sites(classes: &Classes, shapes: &[Shape], ids: Ids) -> Vec<(usize, u32)> {
    let marks = shapes.iter().flat_map(|shape| &shape.places);
    let mut natives = Vec::new();
    for place in marks {
        if let Mark::Bracket(index) | Mark::BracketMaking(index) = place.mark {
            let method = ids.first_method + index as u32;
            natives.push((index, classes.extra_site(method, NATIVE)));
        }
    }
    natives
}

/// New bytes for a hidden class: its frames are not shown, but what it calls must find its slot, and what it makes
/// is counted for its caller.
pub fn hidden(classes: &Classes, loader: Loader, bytes: &[u8]) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).ok()?;
    let alloc = classes.options.hooks().has(&ALLOC);
    let plan = match classes.options.is_partial() {
        true => {
            let creates = |of: &str| may_be_created(classes, of);
            let counts = alloc && holds(classes, loader, class.name());
            let holds = |of: &str| holds(classes, Loader::BOOT, of);
            hooks::hidden_plan_outside(&class, &creates, (counts, &holds))
        }
        false => hooks::hidden_plan(&class, alloc),
    };
    // Those of the JDK's own loaders have the names of its packages.
    let own = !class.name().starts_with("java/");
    rewrite_quietly(classes, &class, inherits(plan.ok()?, own))
}
