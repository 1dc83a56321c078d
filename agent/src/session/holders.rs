//! `lucce ctl PID holders`: what holds objects that are followed, as JSON.

use std::sync::OnceLock;

use jvmti_bindings::sys::jni::JavaVM;
use lucce_callgraph::ContextId;
use lucce_control::Walks;
use lucce_control::json::{Object, array};
use lucce_vm::{Failed, Vm};

use crate::leaks::holders::{self, Ahead, Found, Link, OfType};
use crate::leaks::search::HoldStrength;
use crate::session::Agent;

/// Bytes of a reply, which has room for paths besides.
const LISTED: usize = lucce_control::wire::MAX_REPLY / 8;
/// What stands around the name of a type.
const COUNTS: usize = 128;

static VM: OnceLock<Vm> = OnceLock::new();

/// The VM that has loaded the agent.
pub fn loaded(vm: *mut JavaVM) {
    VM.get_or_init(|| Vm::new(vm));
}

pub fn vm() -> Option<Vm> {
    VM.get().copied()
}

/// Of contexts, by their numbers: what a search would take, or with a number of walks what a search finds.
///
/// # Errors
/// One line for the user.
pub fn answer(agent: &Agent, numbers: &[u64], walks: Option<&Walks>) -> Result<String, String> {
    let leaks = agent
        .leaks
        .as_ref()
        .ok_or("no objects are followed: start the JVM with events=leak, or `lucce attach PID --opt events=leak`")?;
    let vm = VM.get().ok_or("the agent does not know its VM")?;
    let contexts: Vec<_> = numbers.iter().copied().map(ContextId).collect();
    let failed = |Failed(code)| format!("the VM does not walk through its heap (error {code})");
    let answered = vm.in_thread(|env| {
        let env = agent.env(env);
        match walks {
            None => Ok(told_ahead(&holders::ahead(leaks, env, &contexts))),
            Some(walks) => {
                let found = holders::find((leaks, agent.jvmti), (*vm, env), (&contexts, walks));
                found.map(|found| told(&found))
            }
        }
    });
    answered.and_then(|answered| answered).map_err(failed)
}

fn told_ahead(ahead: &Ahead) -> String {
    let object = sums(&ahead.types);
    let object = match ahead.types.first() {
        Some(first) => object.text("of", &first.of),
        None => object,
    };
    let bytes = ahead.heap_bytes;
    let bytes = bytes.map_or("null".to_owned(), |bytes| bytes.to_string());
    let object = object.raw("heap_bytes", bytes).raw("budget", true);
    let types = listed(&ahead.types).map(|of_type| counts(of_type).end());
    object.raw("types", array(types)).end()
}

/// Paths lie in the order of types; with `types` older commands can do nothing, and have paths of all.
fn told(found: &Found) -> String {
    let pauses = found
        .pauses
        .iter()
        .map(|pause| pause.as_micros().to_string());
    let all = found.types.iter();
    let ways = all.clone().flat_map(|of_type| &of_type.ways);
    let unfinished = all.clone().flat_map(|of_type| &of_type.unfinished);
    let collection = found.collection;
    let collection = collection.map_or("null".to_owned(), |time| time.as_micros().to_string());
    let types = listed(&found.types).map(|of_type| {
        counts(of_type)
            .raw("looked_for", of_type.looked_for)
            .raw("changed", of_type.changed)
            .raw("paths", of_type.ways.len())
            .raw("unfinished", of_type.unfinished.len())
            .raw("collected", of_type.collected)
            .raw("unreported", of_type.unreported)
            .end()
    });
    sums(&found.types)
        .raw(
            "looked_for",
            all.clone().map(|of| of.looked_for).sum::<usize>(),
        )
        .raw("pauses_us", array(pauses))
        .raw("references", found.references)
        .raw("cut", found.is_cut)
        .raw("over", found.is_over)
        .raw("out_of_budget", found.is_out_of_budget)
        .raw("collection_us", collection)
        .raw("changed", all.map(|of| of.changed).sum::<usize>())
        .raw("types", array(types))
        .raw("paths", array(ways.map(|way| array(way.iter().map(link)))))
        .raw(
            "unfinished",
            array(unfinished.map(|way| array(way.iter().map(link)))),
        )
        .end()
}

/// Of all types together.
fn sums(types: &[OfType]) -> Object {
    let sum = |number: fn(&OfType) -> usize| types.iter().map(number).sum::<usize>();
    Object::default()
        .raw("followed", sum(|of_type| of_type.followed))
        .raw("alive", sum(|of_type| of_type.alive))
}

fn counts(of_type: &OfType) -> Object {
    Object::default()
        .text("of", &of_type.of)
        .raw("followed", of_type.followed)
        .raw("alive", of_type.alive)
}

/// Those that have room in a reply: there may be thousands, with names as long as a program likes. What is looked for comes first.
fn listed(types: &[OfType]) -> impl Iterator<Item = &OfType> {
    let mut bytes = 0;
    types.iter().take_while(move |of_type| {
        bytes += COUNTS + of_type.of.len();
        bytes < LISTED
    })
}

fn link(link: &Link) -> String {
    let mut object = Object::default().text("by", link.by);
    for (key, text) in [
        ("class", &link.class),
        ("name", &link.name),
        ("thread", &link.thread),
        ("names", &link.names),
    ] {
        if let Some(text) = text {
            object = object.text(key, text);
        }
    }
    for (key, number) in [("index", link.index), ("line", link.line)] {
        if let Some(number) = number {
            object = object.raw(key, number);
        }
    }
    match link.strength {
        HoldStrength::Strong => {}
        HoldStrength::Soft => object = object.raw("soft", true),
        HoldStrength::Finalizer => object = object.raw("finalizer", true),
    }
    if link.times > 1 {
        object = object.raw("times", link.times);
    }
    object.text("of", &link.of).end()
}
