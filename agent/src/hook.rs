//! A class on its way into the VM: parse, plan, note in the book, rewrite.

use lucce_bytecode::{ClassFile, Error, Plan, Rewritten, rewrite};

use crate::agent::{Agent, count};
use crate::book::{Book, Ids, Loader, NATIVE, NewClass};
use crate::options::{Level, Tracking};
use crate::planner::{self, FrameKind, Hooks, Mark, Shape, Wants};
use crate::{acting, outside, scope};

/// New bytes for a class; `None`: it stays as it is.
pub fn transform(agent: &Agent, loader: Loader, bytes: &[u8]) -> Option<Vec<u8>> {
    if let Some(known) = agent.twins.find(agent, loader, bytes) {
        return Some(known);
    }
    let class = match ClassFile::parse(bytes) {
        Ok(class) => class,
        Err(_) => return unread(agent),
    };
    if class.name() == "module-info" {
        return None;
    }
    agent.watch.forget(loader, class.name());
    if !scope::holds(agent, loader, class.name()) {
        return outside(agent, loader, &class);
    }
    let Ok(shapes) = shapes(agent, loader, &class) else {
        return unread(agent);
    };
    let Some(ids) = note(agent, loader, &class, &shapes) else {
        count(&agent.counts.classes_skipped);
        agent.skipped(class.name(), None, "no more ids for methods and sites");
        // Its frames have no numbers, but what they call finds its slot.
        for method in class.methods() {
            let place = (loader, class.name());
            let _ = agent
                .watch
                .add(agent.jvmti, place, (&method.name, &method.descriptor));
        }
        return None;
    };
    insert(agent, loader, (&class, bytes), &shapes, ids)
}

/// The VM will refuse the class, and tell its user, or else say that it has accepted it.
fn unread(agent: &Agent) -> Option<Vec<u8>> {
    if agent.watch.unread(agent.jvmti).is_err() {
        agent.say(Level::Warn, "a class cannot be read, nor watched");
    }
    None
}

fn shapes(agent: &Agent, loader: Loader, class: &ClassFile<'_>) -> Result<Vec<Shape>, Error> {
    let book = agent.book();
    let wants = Wants {
        events: &agent.options.hooks(),
        idle: agent.options.is_idle(),
        trusted: agent.loaders.is_trusted(loader),
        holds: &|class| scope::holds(agent, Loader::BOOT, class),
        jdk_is_out_of_scope: scope::is_without_the_jdk(&agent.options),
        calls_quiet: &|call| book.is_quiet(&call.owner, &call.name, &call.descriptor),
    };
    let mut shapes = planner::shapes(class, wants)?;
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
fn outside(agent: &Agent, loader: Loader, class: &ClassFile<'_>) -> Option<Vec<u8>> {
    let creates = |of: &str| scope::may_create(agent, loader, of);
    let counts = agent.options.hooks();
    let trusted = agent.loaders.is_trusted(loader);
    let plan = outside::plan(class, trusted, &creates, &counts).ok()?;
    rewrite_quietly(agent, class, inherits(plan, agent.loaders.is_own(loader)))
}

/// `own`: the class's loader is one of the program's.
fn inherits(mut plan: Plan<'static>, own: bool) -> Plan<'static> {
    plan.inherited = own.then_some(planner::INHERITED);
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
fn rewrite_quietly(agent: &Agent, class: &ClassFile<'_>, mut plan: Plan<'_>) -> Option<Vec<u8>> {
    keep_fields(class, &mut plan);
    if is_empty(&plan) {
        return None;
    }
    match rewrite(class, &plan) {
        Ok(done) => Some(done.bytes),
        Err(error) => {
            count(&agent.counts.classes_skipped);
            agent.say(Level::Debug, &format!("{}: {error}", class.name()));
            agent.skipped(class.name(), None, &error.to_string());
            None
        }
    }
}

fn note(agent: &Agent, loader: Loader, class: &ClassFile<'_>, shapes: &[Shape]) -> Option<Ids> {
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
    let mut book = agent.book_mut();
    let ids = book.add(&new)?;
    if let Some(recorder) = &agent.recorder {
        for (method, (name, ..)) in (ids.first_method..).zip(&methods) {
            recorder.loaded(class.name(), name, method);
        }
    }
    Some(ids)
}

fn insert(
    agent: &Agent,
    loader: Loader,
    (class, bytes): (&ClassFile<'_>, &[u8]),
    shapes: &[Shape],
    ids: Ids,
) -> Option<Vec<u8>> {
    let natives = native_sites(agent, shapes, ids);
    let native_site = |index: usize| natives.iter().find(|n| n.0 == index).map_or(0, |n| n.1);
    let hooks = Hooks {
        exits: agent.recorder.is_some(),
        at_entry: agent.options.tracking != Tracking::Lazy,
        restores: agent.options.is_partial(),
        tasks: agent.options.hooks().thread,
        trusted: agent.loaders.is_trusted(loader),
        inherits: agent.loaders.is_own(loader),
        alloc: agent.options.hooks().alloc,
    };
    let mut plan = planner::plan(
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
            count(&agent.counts.classes);
            let acts = |shape: &Shape| shape.frame == FrameKind::ToCarrier;
            if shapes.iter().any(acts) {
                acting::hooked();
            }
            let is_whole = done.skipped.is_empty();
            let hooked = accept(agent, loader, class, ids, done);
            if is_whole {
                agent
                    .twins
                    .met(agent, loader, (class, bytes), shapes, &hooked);
            }
            Some(hooked)
        }
        Err(error) => {
            count(&agent.counts.classes_skipped);
            for index in plan.methods.keys() {
                leave(agent, loader, class, ids, *index);
            }
            agent.skipped(class.name(), None, &error.to_string());
            None
        }
    }
}

fn accept(
    agent: &Agent,
    loader: Loader,
    class: &ClassFile<'_>,
    ids: Ids,
    done: Rewritten,
) -> Vec<u8> {
    for (index, error) in &done.skipped {
        count(&agent.counts.methods_skipped);
        leave(agent, loader, class, ids, *index);
        let name = class.methods().get(*index).map_or("", |m| &m.name);
        agent.skipped(class.name(), Some(name), &error.to_string());
    }
    done.bytes
}

/// A method stays without hooks. What it calls would not know where its slot is, so it is watched.
fn leave(agent: &Agent, loader: Loader, class: &ClassFile<'_>, ids: Ids, index: usize) {
    let Some(method) = class.methods().get(index) else {
        return;
    };
    let watched = agent.watch.add(
        agent.jvmti,
        (loader, class.name()),
        (&method.name, &method.descriptor),
    );
    let id = ids.first_method + index as u32;
    agent.book_mut().untouched(id, watched.is_ok());
    if watched.is_err() {
        let text = format!(
            "{}.{} calls without being watched: traces of what it calls may show frames that have ended",
            class.name(),
            method.name
        );
        agent.say(Level::Warn, &text);
    }
}

/// The sites of natives that are called with a bracket, by method index.
fn native_sites(agent: &Agent, shapes: &[Shape], ids: Ids) -> Vec<(usize, u32)> {
    let marks = shapes.iter().flat_map(|shape| &shape.places);
    let mut natives = Vec::new();
    for place in marks {
        if let Mark::Bracket(index) | Mark::BracketMaking(index) = place.mark {
            let method = ids.first_method + index as u32;
            natives.push((index, extra_site(agent, method, NATIVE)));
        }
    }
    natives
}

/// The site for a frame of `method` at `line` that no hook marks. 0: no ids are left.
pub fn extra_site(agent: &Agent, method: u32, line: i32) -> u32 {
    agent.book_mut().extra_site(method, line).unwrap_or(0)
}

/// The site in `method` at `line` that allocates `what`, a descriptor, in code without hooks.
pub fn extra_allocation(agent: &Agent, method: u32, line: i32, what: &str) -> Option<u32> {
    if let Some(known) = agent.book().known_allocation(method, line, what) {
        return Some(known);
    }
    agent.book_mut().extra_allocation(method, line, what)
}

/// New bytes for a hidden class: its frames are not shown, but what it calls must find its slot, and what it makes
/// is counted for whoever has called it.
pub fn hidden(agent: &Agent, loader: Loader, bytes: &[u8]) -> Option<Vec<u8>> {
    let class = ClassFile::parse(bytes).ok()?;
    let alloc = agent.options.hooks().alloc;
    let plan = match agent.options.is_partial() {
        true => {
            let creates = |of: &str| scope::may_be_created(agent, of);
            let counts = alloc && scope::holds(agent, loader, class.name());
            let holds = |of: &str| scope::holds(agent, Loader::BOOT, of);
            outside::hidden_plan(&class, &creates, (counts, &holds))
        }
        false => planner::hidden_plan(&class, alloc),
    };
    // Those of the JDK's own loaders have the names of its packages.
    let own = !class.name().starts_with("java/");
    rewrite_quietly(agent, &class, inherits(plan.ok()?, own))
}
