//! Measures the cost of content ids of a log's contexts:
//!
//! ```text
//! cargo run --release -p lucce-decoder --example ids -- run.lucce
//! ```
//! Each number that has a counter is decoded first. Then the frames and paths of all of them are hashed as `lucce fleet add` hashes them:
//! each frame of the graph once, each path once, its callers' first. That is done ten times; the example
//! prints the median CPU time of the thread.

use std::collections::HashSet;

use lucce_callgraph::ContextFrame;
use lucce_contentid::{ContentDetail, FrameId, StackId};
use lucce_decoder::{Profile, TraceTree};
use rustc_hash::FxHashMap;

const TIMES: usize = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which log?")?;
    let profile = Profile::open(&path)?;
    let mut traces = TraceTree::new(&profile);
    let mut contexts = 0_u32;
    for id in profile.events.context_ids() {
        traces.insert_trace(id)?;
        contexts += 1;
    }
    let mut hashed = Vec::new();
    let mut took = Vec::new();
    for _ in 0..TIMES {
        let begun = on_processor()?;
        hashed = paths(&traces, &profile);
        took.push(on_processor()? - begun);
    }
    took.sort();
    let median = took.get(TIMES / 2).copied().unwrap_or_default();
    let frames: HashSet<u128> = hashed.iter().map(|path| path.frame.0).collect();
    println!(
        "{contexts} contexts, {} paths, {} frames; two ids of each: {:.0} ns for each path, {:.0} ns for each context",
        hashed.len(),
        frames.len(),
        median as f64 / hashed.len() as f64,
        median as f64 / f64::from(contexts)
    );
    Ok(())
}

/// Nanoseconds that this thread was on a processor: a busy machine changes them little.
fn on_processor() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split(' ').next().unwrap_or_default();
    Ok(first.parse()?)
}

#[derive(Clone, Copy)]
struct Path {
    frame: FrameId,
    by_line: StackId,
    by_method: StackId,
}

fn paths(traces: &TraceTree<'_>, profile: &Profile) -> Vec<Path> {
    let mut frames: FxHashMap<ContextFrame, [FrameId; 2]> = FxHashMap::default();
    let mut paths: Vec<Path> = Vec::new();
    for (caller, frame, shown) in traces.nodes_from(0) {
        let [by_line, by_method] = *frames.entry(frame).or_insert_with(|| {
            let id = |detail| profile.code.frame_id(frame, shown, detail);
            [ContentDetail::ByLine, ContentDetail::ByMethod].map(id)
        });
        let above = caller.and_then(|caller| paths.get(caller.to_u32() as usize));
        let (lines, methods) = above.map_or((StackId::EMPTY, StackId::EMPTY), |above| {
            (above.by_line, above.by_method)
        });
        paths.push(Path {
            frame: by_line,
            by_line: lines.with_callee(by_line),
            by_method: methods.with_callee(by_method),
        });
    }
    paths
}
