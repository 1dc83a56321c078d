//! The versioned graph on recorded calls, with any layout and policy: what `Policy` is chosen by.
//!
//! `tune [layout=12,18,34] [growth=20] [slack=1] [unroll=max] [node=32] [plan=10] [epoch=94] [budget=262144]
//! [adapt=0] [tree=1] FILE.calls…`
//!
//! "CCT" are the nodes of the calling context tree, of calls alone; "anchoring" is the share of encoded
//! calls and events that anchor; "size" is nodes and anchors as a share of the tree's nodes. "MB" is all
//! that the encoder keeps, without tables that have moved, which the agent gives back. With `tree=1` the
//! whole tree is built, too, in the same structures: a node as the policy `cct` makes it, found in the same
//! kind of table, for every context of a call. "tree MB" is what that takes, "bytes" the share of it.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use lucce_callgraph::{ContextFrame, ContextLayout, EncodingPolicy, SiteId, TableMemory};
use lucce_encodings::{ContextEncoding, EncodingStatistics, VersionedEncoding};
use lucce_recording::{CallEdge, ProgramThreadId, RecordedStep, Recording};
use lucce_replay::RecordingSurvey;

fn main() {
    let (mut layout, mut policy, mut files) =
        (ContextLayout::DEFAULT, EncodingPolicy::LUCCE, Vec::new());
    let mut tree = false;
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("layout", bits)) => {
                let bits: Vec<u32> = bits.split(',').map(|n| n.parse().expect("bits")).collect();
                layout = ContextLayout::new(bits[0], bits[1], bits[2]);
            }
            Some(("tree", value)) => tree = value == "1",
            Some((name, value)) => set(&mut policy, name, value.parse().expect("a number")),
            None => files.push(argument),
        }
    }
    println!("{layout:?} {policy:?}");
    println!(
        "{:16} {:>11} {:>10} {:>8} {:>8} {:>7} {:>5} {:>5} {:>9} {:>6} {:>7} {:>7} {:>6} {:>8} {:>5}",
        "program",
        "calls",
        "CCT",
        "nodes",
        "trans.",
        "anchors",
        "vers.",
        "bases",
        "anchoring",
        "size",
        "MB",
        "tree MB",
        "bytes",
        "log kB",
        "lost"
    );
    for file in files {
        row(&file, layout, policy, tree);
    }
}

fn set(policy: &mut EncodingPolicy, name: &str, value: u64) {
    match name {
        "growth" => policy.growth_percent = value as u32,
        "slack" => policy.slack = value,
        "unroll" => policy.unroll = value as u32,
        "node" => policy.max_node_bits = value as u32,
        "plan" => policy.plan_bits = value as u32,
        "epoch" => policy.epoch_percent = value as u32,
        "budget" => policy.anchor_budget = value as usize,
        "adapt" => policy.adapt_after = value,
        _ => panic!("unknown option {name}"),
    }
}

/// As the agent's: what is forgotten is not held any more. Here nothing is really given back.
struct Pages;

impl TableMemory for Pages {
    fn allocate_zeroed(&self, words: usize) -> Option<&'static [AtomicU64]> {
        let zeros = (0..words).map(|_| AtomicU64::new(0));
        Some(Box::leak(zeros.collect::<Box<[_]>>()))
    }

    fn release_words(&self, _: &'static [AtomicU64]) {}
}

/// Bytes of the whole calling context tree: a number is requested at every call, and every context is an anchor.
fn tree_memory(recording: &Recording) -> u64 {
    let policy = EncodingPolicy {
        anchor_budget: usize::MAX,
        ..EncodingPolicy::CCT
    };
    // As many anchors as the tree may have nodes.
    let layout = ContextLayout::new(12, 30, 22);
    let mut tree = VersionedEncoding::with_memory("tree", layout, policy, &Pages);
    feed(recording, &mut tree, true);
    let statistics = tree.collect_statistics();
    assert_eq!(statistics.unnumbered, 0, "the tree is whole");
    statistics.memory_bytes
}

fn row(file: &str, layout: ContextLayout, policy: EncodingPolicy, with_tree: bool) {
    let recording = Recording::open(file).expect(file);
    let survey = RecordingSurvey::from_recording(&recording, &|_| ());
    let mut encoding = VersionedEncoding::with_memory("tuned", layout, policy, &Pages);
    feed(&recording, &mut encoding, false);
    let EncodingStatistics {
        nodes,
        edges,
        anchors,
        memory_bytes: memory,
        log_bytes,
        unnumbered: lost,
        steps,
        anchoring,
        other_counts: more,
        ..
    } = encoding.collect_statistics();
    let count = |name| {
        more.iter()
            .find(|(key, _)| *key == name)
            .map_or(0, |(_, n)| *n)
    };
    let tree = survey.contexts;
    let (tree_mb, bytes) = match with_tree {
        true => {
            let bytes = tree_memory(&recording);
            let share = 100.0 * memory as f64 / bytes.max(1) as f64;
            (format!("{:.1}", bytes as f64 / 1e6), format!("{share:.1}%"))
        }
        false => ("-".to_owned(), "-".to_owned()),
    };
    let name = Path::new(file)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    println!(
        "{name:16} {:11} {tree:10} {nodes:8} {edges:8} {anchors:7} {:5} {:5} {:8.3}% {:5.1}% {:7.1} {tree_mb:>7} {bytes:>6} {:8} {lost:5}",
        survey.calls,
        count("versions"),
        count("bases"),
        100.0 * anchoring as f64 / steps.max(1) as f64,
        100.0 * (nodes + anchors) as f64 / tree.max(1) as f64,
        memory as f64 / 1e6,
        log_bytes / 1000,
    );
}

/// Numbers are requested at events, or at calls.
fn feed(recording: &Recording, encoding: &mut dyn ContextEncoding, at_calls: bool) {
    let mut stacks: Vec<Vec<CallEdge>> = Vec::new();
    let mut threads = 0;
    for (thread, step) in recording.steps().map_while(Result::ok) {
        if let RecordedStep::Start(_) = step {
            threads = threads.max(thread.0 as usize + 1);
            stacks.resize_with(threads, Vec::new);
        }
        let stack = &mut stacks[thread.0 as usize];
        take(encoding, thread, step, stack, at_calls);
    }
}

fn take(
    encoding: &mut dyn ContextEncoding,
    thread: ProgramThreadId,
    step: RecordedStep,
    stack: &mut Vec<CallEdge>,
    at_calls: bool,
) {
    match step {
        RecordedStep::Start(_) => encoding.start_thread(thread, None),
        RecordedStep::Enter(edge) => {
            encoding.enter_call(thread, edge);
            stack.push(edge);
            if at_calls {
                let place = ContextFrame {
                    site: SiteId::NONE,
                    method: edge.callee,
                };
                encoding.current_context(thread, place);
            }
        }
        RecordedStep::Event(_) if at_calls => {}
        RecordedStep::Event(edge) => {
            let ContextFrame { site, method } = edge.caller_frame();
            encoding.current_context(thread, ContextFrame { site, method });
        }
        RecordedStep::Exit => {
            if let Some(edge) = stack.pop() {
                encoding.leave_call(thread, edge);
            }
        }
        RecordedStep::Unwind(frames) => {
            let left = stack.len() - frames as usize;
            encoding.unwind_calls(thread, &stack[left..]);
            stack.truncate(left);
        }
    }
}
