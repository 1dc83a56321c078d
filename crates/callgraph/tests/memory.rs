//! What graph and tables take in memory: the encoder's own count against the allocator's, on recorded
//! contexts of a real program.
#![cfg(not(loom))]
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout as Bytes, System};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use lucce_callgraph::*;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: hands everything to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Bytes) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Bytes) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Takes no note of changes.
struct Nothing;

impl GraphJournal for Nothing {
    fn append_change(&mut self, _: GraphChange) -> Result<(), JournalError> {
        Ok(())
    }
}

#[test]
fn the_encoder_counts_what_the_allocator_counts() {
    let programs: [&[u8]; 2] = [lucce_contextkit::JAVAC, lucce_contextkit::FOP];
    for program in programs {
        let events = lucce_contextkit::read(program);
        let before = LIVE.load(Ordering::Relaxed);
        let encoder = ContextEncoder::new(ContextLayout::DEFAULT, EncodingPolicy::LUCCE, Nothing);
        encode(&encoder, &events);
        let allocated = LIVE.load(Ordering::Relaxed) - before;
        let stats = encoder.collect_stats();
        let difference = allocated.abs_diff(stats.memory_bytes);
        assert!(
            difference * 50 < allocated,
            "{allocated} bytes are allocated, {} counted",
            stats.memory_bytes
        );
        // A tree's node takes 40 at least: its place, its parent, its number, and a place in a table.
        let tree = contexts(&events);
        let each = allocated / (stats.nodes + stats.anchors);
        println!("{tree} contexts, {stats:?}, {allocated} bytes, {each} per node and anchor");
        assert!(each < 200, "{each} bytes per node and anchor");
    }
}

fn encode(encoder: &ContextEncoder<Nothing>, events: &[Vec<ContextFrame>]) {
    let mut shadow = lucce_contextkit::Shadow::new(encoder);
    for event in events {
        shadow.event(event);
    }
}

/// The size of their calling context tree.
fn contexts(events: &[Vec<ContextFrame>]) -> usize {
    let prefixes = events
        .iter()
        .flat_map(|event| (1..=event.len()).map(|end| &event[..end]));
    prefixes.collect::<HashSet<_>>().len()
}
