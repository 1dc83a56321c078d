//! `lucce ctl PID holders`: what holds objects that are followed, as JSON.

use std::sync::OnceLock;

use jvmti_bindings::sys::jni::JavaVM;
use lucce_callgraph::ContextId;
use lucce_control::json::{Object, array};
use lucce_vm::{Failed, Vm};

use crate::leaks::holders::{self, Ahead, Found, Link};
use crate::session::Agent;

static VM: OnceLock<Vm> = OnceLock::new();

/// The VM that has loaded the agent.
pub fn loaded(vm: *mut JavaVM) {
    VM.get_or_init(|| Vm::new(vm));
}

/// Of a context: what a search would take, or with a number of walks what a search finds.
///
/// # Errors
/// One line for the user.
pub fn answer(agent: &Agent, number: u64, walks: Option<u32>) -> Result<String, String> {
    let leaks = agent
        .leaks
        .as_ref()
        .ok_or("no objects are followed: start the JVM with events=leak, or `lucce attach PID --opt events=leak`")?;
    let vm = VM.get().ok_or("the agent does not know its VM")?;
    let context = ContextId(number);
    let failed = |Failed(code)| format!("the VM does not walk through its heap (error {code})");
    let answered = vm.in_thread(|env| {
        let env = agent.env(env);
        match walks {
            None => Ok(told_ahead(&holders::ahead(leaks, env, context))),
            Some(walks) => {
                let found = holders::find((leaks, agent.jvmti), (*vm, env), (context, walks));
                found.map(|found| told(&found))
            }
        }
    });
    answered.and_then(|answered| answered).map_err(failed)
}

fn told_ahead(ahead: &Ahead) -> String {
    let object = Object::default()
        .raw("followed", ahead.followed)
        .raw("alive", ahead.alive);
    let object = match &ahead.of {
        Some(of) => object.text("of", of),
        None => object,
    };
    let bytes = ahead.heap_bytes;
    let bytes = bytes.map_or("null".to_owned(), |bytes| bytes.to_string());
    object.raw("heap_bytes", bytes).end()
}

fn told(found: &Found) -> String {
    let pauses = found
        .pauses
        .iter()
        .map(|pause| pause.as_micros().to_string());
    let ways = found.ways.iter().map(|way| array(way.iter().map(link)));
    Object::default()
        .raw("followed", found.followed)
        .raw("alive", found.alive)
        .raw("looked_for", found.looked_for)
        .raw("pauses_us", array(pauses))
        .raw("references", found.references)
        .raw("cut", found.is_cut)
        .raw("over", found.is_over)
        .raw("changed", found.changed)
        .raw("paths", array(ways))
        .end()
}

fn link(link: &Link) -> String {
    let mut object = Object::default().text("by", link.by);
    for (key, text) in [
        ("class", &link.class),
        ("name", &link.name),
        ("thread", &link.thread),
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
    if link.is_soft {
        object = object.raw("soft", true);
    }
    object.text("of", &link.of).end()
}
