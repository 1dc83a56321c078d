//! `CallContext.Scope`: frames that continue the context of another thread.
//!
//! `Scope.run` gets the context that a call from the place of `CallContext.capture` would give it. That is one
//! transition in the graph; its result is stored as the memo of the frame's context. Everything that `run` calls then
//! has numbers that decode to the frames above `Scope.run`, followed by the frames of the other thread. The memo is
//! removed when `run` ends. Not with `tracking=cct`, whose memos are nodes of the thread's own tree.

use lucce_callgraph::{ContextEncoder, ContextFrame, ContextId, GraphJournal, MethodId};
use lucce_instrument::assembly::is_signal_method;
use lucce_instrument::continuations::{CONTINUATION, RESUME};

use crate::memory::locks::ReadGuard;
use crate::registry::CodeRegistry;
use crate::stack::StackParts;
use crate::stack::assembly::{is_assembled_method, unassembled_context};
use crate::stack::continuations::{is_resume_method, resumed_context};

const CLASS: &str = "io/lucce/CallContext$Scope";
/// The method that captures the number for its caller.
const CAPTURE: &str = "capture";
/// Methods whose callees continue in the captured context.
const SCOPE_METHODS: [&str; 2] = ["run", "call"];

/// The context of a frame of `method` that continues where `number` was captured. `None`: the number names no such
/// place.
pub fn scope_context(
    agent: StackParts<'_>,
    number: ContextId,
    method: MethodId,
) -> Option<ContextId> {
    let taken = agent
        .counters
        .tracking
        .is_lazy()
        .then(|| find_capture(&agent.core.encoder, || agent.core.registry(), number));
    let (caller, frame) = taken.flatten()?;
    Some(
        agent
            .core
            .encoder
            .encode_call(caller, frame.site, frame.method, method),
    )
}

/// The frame in which a number was captured, and the context of that frame.
fn find_capture<'b, J: GraphJournal>(
    encoder: &ContextEncoder<J>,
    registry: impl FnOnce() -> ReadGuard<'b, CodeRegistry>,
    number: ContextId,
) -> Option<(ContextId, ContextFrame)> {
    let (context, frame) = encoder.find_caller(number, MethodId::EVENT).ok()??;
    // The registry's lock is released before the graph is queried: a thread that changes the graph holds the graph's
    // lock and then needs the registry's.
    let is_capture = method_name(&registry(), frame.method.0)? == (CLASS, CAPTURE);
    match is_capture {
        true => encoder.find_caller(context, frame.method).ok()?,
        false => Some((context, frame)),
    }
}

/// Whether traces may continue in another thread below a frame of this method.
pub fn is_scope_method(registry: &CodeRegistry, method: u32) -> bool {
    method_name(registry, method)
        .is_some_and(|(class, name)| class == CLASS && SCOPE_METHODS.contains(&name))
        || is_resume_method(registry, method)
        || is_assembled_method(registry, method)
}

/// Whether the logical caller of such a method's frame is another one than the caller of the frame.
pub fn continues_elsewhere(class: &str, method: &str) -> bool {
    (class, method) == (CONTINUATION, RESUME) || is_signal_method(class, method)
}

/// The context of a frame of `method`, whose logical caller is unknown. `None`: its callers are those of its thread.
pub fn unknown_caller_context(agent: StackParts<'_>, method: MethodId) -> Option<ContextId> {
    let (is_resume, is_assembled) = {
        let registry = agent.core.registry();
        let is_resume = is_resume_method(&registry, method.0);
        (is_resume, is_assembled_method(&registry, method.0))
    };
    match () {
        () if is_resume => resumed_context(agent, ContextId::UNKNOWN, method),
        () if is_assembled => unassembled_context(agent, method),
        () => None,
    }
}

fn method_name(registry: &CodeRegistry, method: u32) -> Option<(&str, &str)> {
    let info = registry.method(method)?;
    let class = registry.class(info.class)?;
    Some((
        registry.name_text(class.name),
        registry.name_text(info.name),
    ))
}

#[cfg(test)]
mod context_scopes_tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use lucce_callgraph::{ContextLayout, EncodingPolicy, GraphChange, JournalError, SiteId};
    use lucce_instrument::MethodInstrumentation;

    use super::*;
    use crate::memory::locks::WatchedRwLock;
    use crate::registry::{ClassDefinition, ClassLoaderId};

    /// Like the agent's journal: takes the registry's lock while the graph changes.
    struct WithRegistry(Arc<WatchedRwLock<CodeRegistry>>);

    impl GraphJournal for WithRegistry {
        fn append_change(&mut self, _: GraphChange) -> Result<(), JournalError> {
            drop(self.0.read());
            Ok(())
        }
    }

    const TAKEN: SiteId = SiteId(100);
    const CALLED: SiteId = SiteId(101);

    /// Two threads read the frame of the capture, one changes the graph, one changes the registry.
    #[test]
    fn nobody_waits_for_another_for_ever() {
        let mut registry = CodeRegistry::default();
        let ids = registry.add_class(&ClassDefinition {
            name: CLASS,
            source: None,
            loader: ClassLoaderId::BOOT,
            methods: &[(CAPTURE, "()V", 0), ("main", "()V", 0)],
            instrumentations: &[
                MethodInstrumentation::empty(),
                MethodInstrumentation::empty(),
            ],
        });
        let capture = MethodId(ids.unwrap().first_method);
        let main = MethodId(capture.0 + 1);
        let registry = Arc::new(WatchedRwLock::new(registry));
        let journal = WithRegistry(Arc::clone(&registry));
        let encoder = Arc::new(ContextEncoder::new(
            ContextLayout::DEFAULT,
            EncodingPolicy::LUCCE,
            journal,
        ));
        let root = encoder.root_context(main);
        let number = encoder.encode_event(
            encoder.encode_call(root, CALLED, main, capture),
            TAKEN,
            capture,
        );

        let (ended, all) = channel();
        for role in 0..4 {
            let (registry, encoder) = (Arc::clone(&registry), Arc::clone(&encoder));
            let ended = ended.clone();
            thread::spawn(move || {
                let mut right = true;
                for at in 0..200_000 {
                    // A new site changes the graph.
                    let site = SiteId(1000 + at);
                    match role {
                        0 => drop(encoder.encode_event(root, site, main)),
                        1 => drop(registry.write()),
                        _ => {
                            let taken = find_capture(&encoder, || registry.read(), number);
                            right &= taken.is_some_and(|(context, frame)| {
                                (context, frame.site) == (root, CALLED)
                            });
                        }
                    }
                }
                ended.send(right).unwrap();
            });
        }
        for _ in 0..4 {
            let right = all.recv_timeout(Duration::from_secs(60));
            assert_eq!(right, Ok(true), "threads wait for each other");
        }
    }
}
