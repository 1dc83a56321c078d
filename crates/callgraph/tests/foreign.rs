//! The raw tables, read as a reader in another language reads them.
#![cfg(not(loom))]
#![allow(
    unsafe_code,
    reason = "reads the tables' memory by address, like the Java helper"
)]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lucce_callgraph::*;
use proptest::prelude::*;
use support::*;

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

fn word(address: u64, index: u64) -> u64 {
    let address = (address + 8 * index) as usize as *const AtomicU64;
    // SAFETY: the encoder outlives the reader and never frees a table, the index is within it.
    unsafe { (*address).load(Ordering::Acquire) }
}

/// The reader's part of `step`, as documented beside the tables; none: slow path.
fn look_up(tables: RawTables, ctx: u64, site: u32, callee: u32) -> Option<u64> {
    let block = tables.block as u64;
    let place = u64::from(site) << 24 | u64::from(callee);
    let table = if callee == MethodId::EVENT.0 { 3 } else { 0 };
    let delta = transition(word(block, table), (ctx >> word(block, 1)) << 52 | place)?;
    match delta {
        u64::MAX => anchor(word(block, 2), ctx, place),
        _ => Some(ctx.wrapping_add(delta)),
    }
}

fn transition(table: u64, key: u64) -> Option<u64> {
    assert_eq!(table % 64, 0);
    let mut slot = key.wrapping_mul(MULTIPLIER) >> word(table, 0);
    loop {
        match word(table, 8 + 2 * slot) {
            0 => return None,
            found if found == key => {
                return Some(word(table, 9 + 2 * slot)).filter(|delta| *delta != 0);
            }
            _ => slot = (slot + 1) & word(table, 1),
        }
    }
}

fn anchor(table: u64, ctx: u64, place: u64) -> Option<u64> {
    assert_eq!(table % 64, 0);
    let mut slot = (ctx ^ place.rotate_left(32)).wrapping_mul(MULTIPLIER) >> word(table, 0);
    for _ in 0..=word(table, 1) {
        let at = 8 + 3 * slot;
        let to = word(table, at + 2);
        if to == 0 {
            return None;
        }
        if word(table, at) == ctx && word(table, at + 1) == place && word(table, at + 2) == to {
            return Some(to);
        }
        slot = (slot + 1) & word(table, 1);
    }
    None
}

/// Encoded frame by frame: caller's number, its frame, the callee, and the callee's number.
type Seen = (ContextId, ContextFrame, MethodId, ContextId);

fn walk(encoder: &ContextEncoder<Vec<GraphChange>>, depth: u32, salt: u32) -> Vec<Seen> {
    let mut at = (MethodId(1), encoder.root_context(MethodId(1)));
    let mut seen = Vec::new();
    for level in 0..depth {
        let site = SiteId(at.0.0 * 64 + (level * salt) % 64);
        let callee = MethodId(1 + (level * salt + salt) % 97);
        let next = encoder.encode_call(at.1, site, at.0, callee);
        let frame = ContextFrame { site, method: at.0 };
        seen.push((at.1, frame, callee, next));
        let event = encoder.encode_event(at.1, site, at.0);
        seen.push((at.1, frame, MethodId::EVENT, event));
        at = (callee, next);
    }
    seen
}

fn read(tables: RawTables, (ctx, frame, callee, _): Seen) -> Option<u64> {
    look_up(tables, ctx.0, frame.site.0, callee.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..config() })]

    #[test]
    fn a_foreign_reader_sees_what_step_gave(layout in layouts(), salts in 1..200u32) {
        let policy = EncodingPolicy { anchor_budget: 1 << 16, ..EncodingPolicy::LUCCE };
        let encoder = ContextEncoder::new(layout, policy, Vec::new());
        let tables = encoder.raw_tables();
        for salt in 0..salts {
            for seen in walk(&encoder, 100, salt) {
                let expected = (seen.3 != ContextId::UNKNOWN).then_some(seen.3.0);
                prop_assert_eq!(read(tables, seen), expected);
            }
        }
    }
}

/// Forgets as an operating system does.
struct Forgetting;

impl TableMemory for Forgetting {
    fn allocate_zeroed(&self, words: usize) -> Option<&'static [AtomicU64]> {
        Some(Box::leak((0..words).map(|_| AtomicU64::new(0)).collect()))
    }

    fn release_words(&self, words: &'static [AtomicU64]) {
        words
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// While tables move on and their old memory is forgotten, a reader finds nothing or the truth.
#[test]
fn a_foreign_reader_of_forgotten_memory_is_never_wrong() {
    for _ in 0..20 {
        let policy = EncodingPolicy::CCT;
        let encoder = ContextEncoder::with_plan_and_memory(
            ContextLayout::DEFAULT,
            policy,
            Vec::new(),
            None,
            Some(&Forgetting),
        );
        let done = AtomicBool::new(false);
        let old: Vec<Seen> = walk(&encoder, 100, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for &seen in &old {
                        let id_read = read(encoder.raw_tables(), seen);
                        assert!(
                            id_read.is_none_or(|id| id == seen.3.0),
                            "{id_read:?} {seen:?}"
                        );
                    }
                }
            });
            for salt in 2..100 {
                walk(&encoder, 100, salt);
            }
            done.store(true, Ordering::Relaxed);
        });
        for seen in old {
            assert_eq!(read(encoder.raw_tables(), seen), Some(seen.3.0));
        }
    }
}

/// While tables grow and the intern table forgets, a reader finds nothing or the truth.
#[test]
fn a_foreign_reader_beside_a_forgetting_writer_is_never_wrong() {
    let policy = EncodingPolicy {
        anchor_budget: 64,
        max_node_bits: 4,
        ..EncodingPolicy::LUCCE
    };
    let encoder = ContextEncoder::new(ContextLayout::DEFAULT, policy, Vec::new());
    let done = AtomicBool::new(false);
    let old: Vec<Seen> = walk(&encoder, 100, 1);
    let pairs = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut pairs = Vec::new();
            while !done.load(Ordering::Relaxed) {
                for &seen in &old {
                    pairs.extend(read(encoder.raw_tables(), seen).map(|id| (seen, ContextId(id))));
                }
                pairs.sort_by_key(|(seen, id)| (seen.0, seen.1.site, *id));
                pairs.dedup();
            }
            pairs
        });
        for salt in 2..300 {
            walk(&encoder, 100, salt % 150);
            walk(&encoder, 100, 1);
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    for ((caller, frame, callee, _), id) in pairs {
        let mut plain = vec![frame];
        plain.extend(encoder.decode_context(caller, frame.method).unwrap());
        assert_eq!(encoder.decode_context(id, callee), Ok(plain));
    }
}
