//! `lucce ctl PID holders`: the holders of followed objects, as JSON.

use std::sync::OnceLock;

use jvmti_bindings::sys::jni::JavaVM;
use lucce_callgraph::ContextId;
use lucce_control::HolderSearchOptions;
use lucce_control::json::{ReplyObject, join_array};
use lucce_jvmti::{JvmError, VmHandle};

use crate::leaks::heap_search::HoldStrength;
use crate::leaks::holder_search::{
    self, HolderPathLink, HolderSearchPreview, HolderSearchResult, HoldersOfType,
};
use crate::session::Agent;

/// Maximum bytes of types in a reply, which also needs room for paths.
const MAX_TYPE_BYTES: usize = lucce_control::wire::MAX_REPLY / 8;
/// Bytes around the name of a type.
const TYPE_OVERHEAD_BYTES: usize = 128;

static VM: OnceLock<VmHandle> = OnceLock::new();

/// Remembers the VM that has loaded the agent.
pub fn remember_vm(vm: *mut JavaVM) {
    VM.get_or_init(|| VmHandle::new(vm));
}

/// The VM that has loaded the agent, once [`remember_vm`] was called.
pub fn loading_vm() -> Option<VmHandle> {
    VM.get().copied()
}

/// Answers for contexts, given by their numbers: a preview, or with `walks` the result of a search.
///
/// # Errors
/// One line for the user.
pub fn answer_holders(
    agent: &Agent,
    numbers: &[u64],
    walks: Option<&HolderSearchOptions>,
) -> Result<String, String> {
    let leaks = agent
        .leaks
        .as_ref()
        .ok_or("no objects are followed: start the JVM with events=leak, or `lucce attach PID --events leak`")?;
    let vm = VM.get().ok_or("the agent does not know its VM")?;
    let contexts: Vec<_> = numbers.iter().copied().map(ContextId).collect();
    let failed = |JvmError(code)| format!("the VM does not walk through its heap (error {code})");
    let answered = vm.run_attached(|env| {
        let env = agent.core.jni_env(env);
        match walks {
            None => Ok(preview_json(&holder_search::preview_search(
                leaks, env, &contexts,
            ))),
            Some(walks) => {
                let result = holder_search::find_holders(
                    (leaks, agent.core.jvmti),
                    (*vm, env),
                    (&contexts, walks),
                );
                result.map(|result| result_json(&result))
            }
        }
    });
    answered.and_then(|answered| answered).map_err(failed)
}

fn preview_json(ahead: &HolderSearchPreview) -> String {
    let object = sums_object(&ahead.types);
    let object = match ahead.types.first() {
        Some(first) => object.with_text("of", &first.descriptor),
        None => object,
    };
    let bytes = ahead.heap_bytes;
    let bytes = bytes.map_or("null".to_owned(), |bytes| bytes.to_string());
    let object = object
        .with_raw("heap_bytes", bytes)
        .with_raw("budget", true);
    let types = types_within_limit(&ahead.types).map(|of_type| counts_object(of_type).into_json());
    object.with_raw("types", join_array(types)).into_json()
}

/// Paths are in the order of types. Older commands ignore `types`, and have the paths of all types.
fn result_json(result: &HolderSearchResult) -> String {
    let pauses = result
        .pauses
        .iter()
        .map(|pause| pause.as_micros().to_string());
    let all = result.types.iter();
    let ways = all.clone().flat_map(|of_type| &of_type.paths);
    let unfinished = all.clone().flat_map(|of_type| &of_type.unfinished);
    let collection = result.collection;
    let collection = collection.map_or("null".to_owned(), |time| time.as_micros().to_string());
    let types = types_within_limit(&result.types).map(|of_type| {
        counts_object(of_type)
            .with_raw("looked_for", of_type.looked_for)
            .with_raw("changed", of_type.changed)
            .with_raw("paths", of_type.paths.len())
            .with_raw("unfinished", of_type.unfinished.len())
            .with_raw("collected", of_type.collected)
            .with_raw("unreported", of_type.unreported)
            .into_json()
    });
    sums_object(&result.types)
        .with_raw(
            "looked_for",
            all.clone().map(|of| of.looked_for).sum::<usize>(),
        )
        .with_raw("pauses_us", join_array(pauses))
        .with_raw("references", result.references)
        .with_raw("cut", result.is_truncated)
        .with_raw("over", result.is_incomplete)
        .with_raw("out_of_budget", result.is_out_of_budget)
        .with_raw("collection_us", collection)
        .with_raw("changed", all.map(|of| of.changed).sum::<usize>())
        .with_raw("types", join_array(types))
        .with_raw(
            "paths",
            join_array(ways.map(|way| join_array(way.iter().map(link_json)))),
        )
        .with_raw(
            "unfinished",
            join_array(unfinished.map(|way| join_array(way.iter().map(link_json)))),
        )
        .into_json()
}

/// Sums over all types.
fn sums_object(types: &[HoldersOfType]) -> ReplyObject {
    let sum = |number: fn(&HoldersOfType) -> usize| types.iter().map(number).sum::<usize>();
    ReplyObject::default()
        .with_raw("followed", sum(|of_type| of_type.followed))
        .with_raw("alive", sum(|of_type| of_type.alive))
}

fn counts_object(of_type: &HoldersOfType) -> ReplyObject {
    ReplyObject::default()
        .with_text("of", &of_type.descriptor)
        .with_raw("followed", of_type.followed)
        .with_raw("alive", of_type.alive)
}

/// The types that fit into a reply: there may be thousands, with names of any length. Types with targets come first.
fn types_within_limit(types: &[HoldersOfType]) -> impl Iterator<Item = &HoldersOfType> {
    let mut bytes = 0;
    types.iter().take_while(move |of_type| {
        bytes += TYPE_OVERHEAD_BYTES + of_type.descriptor.len();
        bytes < MAX_TYPE_BYTES
    })
}

fn link_json(link: &HolderPathLink) -> String {
    let mut object = ReplyObject::default().with_text("by", link.by);
    for (key, text) in [
        ("class", &link.class),
        ("name", &link.name),
        ("thread", &link.thread),
        ("names", &link.named_class),
    ] {
        if let Some(text) = text {
            object = object.with_text(key, text);
        }
    }
    for (key, number) in [("index", link.index), ("line", link.line)] {
        if let Some(number) = number {
            object = object.with_raw(key, number);
        }
    }
    match link.strength {
        HoldStrength::Strong => {}
        HoldStrength::Soft => object = object.with_raw("soft", true),
        HoldStrength::Finalizer => object = object.with_raw("finalizer", true),
    }
    if link.times > 1 {
        object = object.with_raw("times", link.times);
    }
    object.with_text("of", &link.target_type).into_json()
}
