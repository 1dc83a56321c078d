//! The worked examples of the Lucce paper, as far as they speak of numbers.

#![cfg(not(loom))]

use lucce_callgraph::*;

const A: MethodId = MethodId(1);
const B: MethodId = MethodId(2);
const C: MethodId = MethodId(3);
const D: MethodId = MethodId(4);
const E: MethodId = MethodId(5);
const F: MethodId = MethodId(6);
const X: MethodId = MethodId(7);

type Paper = ContextEncoder<Vec<GraphChange>>;

fn encoder() -> Paper {
    ContextEncoder::new(ContextLayout::DEFAULT, EncodingPolicy::LUCCE, Vec::new())
}

/// The site in `caller` from which `callee` is called, the `nth` one of them.
fn site(caller: MethodId, callee: MethodId, nth: u32) -> SiteId {
    SiteId(caller.0 << 8 | callee.0 << 2 | nth)
}

/// The numbers of all frames of a path, the entry first.
fn walk(encoder: &Paper, path: &[MethodId]) -> Vec<ContextId> {
    let mut ctx = encoder.root_context(path[0]);
    let mut numbers = vec![ctx];
    for call in path.windows(2) {
        ctx = encoder.encode_call(ctx, site(call[0], call[1], 0), call[0], call[1]);
        numbers.push(ctx);
    }
    numbers
}

fn trace(path: &[MethodId]) -> Vec<ContextFrame> {
    let frame = |call: &[MethodId]| ContextFrame {
        site: site(call[0], call[1], 0),
        method: call[0],
    };
    path.windows(2).map(frame).rev().collect()
}

fn last(path: &[MethodId]) -> MethodId {
    path[path.len() - 1]
}

/// Every path to a method has its own number, and two call sites in one method are two edges.
#[test]
fn example_1_encoding() {
    let encoder = encoder();
    let d = *walk(&encoder, &[A, B, D]).last().unwrap();
    let once = encoder.encode_call(d, site(D, F, 1), D, F);
    let twice = encoder.encode_call(d, site(D, F, 2), D, F);
    assert_ne!(once, twice);
    assert_eq!(
        encoder.decode_context(once, F).unwrap()[0],
        ContextFrame {
            site: site(D, F, 1),
            method: D
        }
    );
    assert_eq!(
        encoder.decode_context(twice, F).unwrap()[0],
        ContextFrame {
            site: site(D, F, 2),
            method: D
        }
    );
    assert_eq!(
        encoder.decode_context(twice, F).unwrap()[1..],
        trace(&[A, B, D])
    );
}

/// A new edge X → B must not change what the number of A → B → D → E means.
#[test]
fn examples_2_and_3_a_new_edge_leaves_old_numbers_alone() {
    let encoder = encoder();
    let paths = [&[A, B, C, E], &[A, B, D, E], &[X, B, D, E]];
    let numbers = paths.map(|path| *walk(&encoder, path).last().unwrap());
    for (path, number) in paths.into_iter().zip(numbers) {
        assert_eq!(encoder.decode_context(number, E).unwrap(), trace(path));
    }
    let again = paths.map(|path| *walk(&encoder, path).last().unwrap());
    assert_eq!(numbers, again);
}

/// A' → B → C → D → B → C: recursion unrolls into later versions without any special case.
#[test]
fn example_4_recursion_unrolls_into_versions() {
    let encoder = encoder();
    let path = [X, B, C, D, B, C];
    let numbers = walk(&encoder, &path);
    for (depth, number) in numbers.iter().enumerate() {
        let path = &path[..=depth];
        assert_eq!(
            encoder.decode_context(*number, last(path)).unwrap(),
            trace(path)
        );
    }
    let layout = encoder.layout();
    assert_eq!(
        encoder.collect_stats().anchors,
        1,
        "only the thread's entry"
    );
    assert!(layout.version_of(numbers[4]) > layout.version_of(numbers[1]));
}

/// "... and when the recursion reaches that depth again" the same versions are used again.
#[test]
fn example_4_versions_are_reused() {
    let encoder = encoder();
    let path: Vec<MethodId> = [A]
        .into_iter()
        .chain([B, C, D].into_iter().cycle().take(60))
        .collect();
    let first = walk(&encoder, &path);
    let stats = encoder.collect_stats();
    assert_eq!(walk(&encoder, &path), first);
    assert_eq!(walk(&encoder, &path[..20]), first[..20]);
    assert_eq!(encoder.collect_stats(), stats);
    assert_eq!(
        encoder
            .decode_context(*first.last().unwrap(), last(&path))
            .unwrap(),
        trace(&path)
    );
}
