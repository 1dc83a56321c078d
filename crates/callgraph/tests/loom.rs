//! Every interleaving of two threads that learn and read the same tables, within loom's bounds.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p lucce-callgraph --lib --test loom`
#![cfg(loom)]

use loom::sync::Arc;
use lucce_callgraph::*;

type Shared = Arc<ContextEncoder<Vec<GraphChange>>>;

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 100_000;
    builder.check(check);
}

fn encoder(policy: EncodingPolicy) -> Shared {
    Arc::new(ContextEncoder::new(
        ContextLayout::new(6, 6, 8),
        policy,
        Vec::new(),
    ))
}

const ENTRY: MethodId = MethodId(1);

/// Calls `callees` one after another, each from the one before; gives all numbers.
fn walk(encoder: &Shared, callees: &[u32]) -> Vec<(ContextId, MethodId, Vec<ContextFrame>)> {
    let mut at = (encoder.root_context(ENTRY), ENTRY, Vec::new());
    let mut given = vec![at.clone()];
    for &callee in callees {
        let frame = ContextFrame {
            site: SiteId(at.1.0),
            method: at.1,
        };
        let ctx = encoder.encode_call(at.0, frame.site, at.1, MethodId(callee));
        let mut plain = vec![frame];
        plain.extend(at.2);
        at = (ctx, MethodId(callee), plain);
        given.push(at.clone());
    }
    given
}

fn check(encoder: &Shared, callees: &[u32]) {
    for (id, last, plain) in walk(encoder, callees) {
        assert_ne!(id, ContextId::UNKNOWN);
        assert_eq!(encoder.decode_context(id, last), Ok(plain));
    }
}

/// The tables have 2 slots under loom: the second transition or anchor makes them grow.
fn two_threads(policy: EncodingPolicy, first: &'static [u32], second: &'static [u32]) {
    model(move || {
        let encoder = encoder(policy);
        let shared = encoder.clone();
        let other = loom::thread::spawn(move || check(&shared, first));
        check(&encoder, second);
        other.join().unwrap();
        check(&encoder, first);
    });
}

#[test]
fn transitions_are_published_whole() {
    two_threads(EncodingPolicy::LUCCE, &[2], &[2]);
}

#[test]
fn transitions_are_published_whole_while_the_table_grows() {
    two_threads(EncodingPolicy::LUCCE, &[2, 3, 4], &[2, 3]);
}

#[test]
fn anchors_are_published_whole_while_the_table_grows() {
    two_threads(EncodingPolicy::CCT, &[2, 3], &[2]);
}

#[test]
fn a_forgotten_anchor_is_never_mistaken_for_another() {
    two_threads(
        EncodingPolicy {
            anchor_budget: 1,
            ..EncodingPolicy::CCT
        },
        &[2],
        &[3],
    );
}
