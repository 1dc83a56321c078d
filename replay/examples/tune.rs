//! The versioned graph on recorded calls, with any layout and policy: what `Policy` is chosen by.
//!
//! `tune [layout=12,18,34] [growth=20] [slack=1] [unroll=max] [node=32] [plan=10] [epoch=94] [budget=262144]
//! [adapt=0] FILE.calls…`
//!
//! "anchoring" is the share of encoded calls and events that anchor; "size" is nodes and anchors as
//! a share of the calling context tree's nodes.

use std::path::Path;

use lucce_callgraph::encodings::{Encoding, Statistics, Versioned};
use lucce_callgraph::{Frame, Layout, Policy};
use lucce_recording::{Edge, Recording, Step, ThreadId};
use lucce_replay::Survey;

fn main() {
    let (mut layout, mut policy, mut files) = (Layout::DEFAULT, Policy::LUCCE, Vec::new());
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("layout", bits)) => {
                let bits: Vec<u32> = bits.split(',').map(|n| n.parse().expect("bits")).collect();
                layout = Layout::new(bits[0], bits[1], bits[2]);
            }
            Some((name, value)) => set(&mut policy, name, value.parse().expect("a number")),
            None => files.push(argument),
        }
    }
    println!("{layout:?} {policy:?}");
    println!(
        "{:16} {:>9} {:>9} {:>8} {:>8} {:>7} {:>5} {:>6} {:>9} {:>6} {:>7} {:>8} {:>5}",
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
        "log kB",
        "lost"
    );
    for file in files {
        row(&file, layout, policy);
    }
}

fn set(policy: &mut Policy, name: &str, value: u64) {
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

fn row(file: &str, layout: Layout, policy: Policy) {
    let recording = Recording::open(file).expect(file);
    let survey = Survey::of(&recording, &|_| ());
    let mut encoding = Versioned::new("tuned", layout, policy);
    feed(&recording, &mut encoding);
    let Statistics {
        nodes,
        edges,
        anchors,
        memory,
        log_bytes,
        lost,
        steps,
        anchoring,
        more,
        ..
    } = encoding.statistics();
    let count = |name| {
        more.iter()
            .find(|(key, _)| *key == name)
            .map_or(0, |(_, n)| *n)
    };
    let tree = survey.contexts + survey.event_contexts;
    let name = Path::new(file)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    println!(
        "{name:16} {:9} {tree:9} {nodes:8} {edges:8} {anchors:7} {:5} {:6} {:8.3}% {:5.1}% {:7.1} {:8} {lost:5}",
        survey.calls,
        count("versions"),
        count("bases"),
        100.0 * anchoring as f64 / steps.max(1) as f64,
        100.0 * (nodes + anchors) as f64 / tree.max(1) as f64,
        memory as f64 / 1e6,
        log_bytes / 1000,
    );
}

fn feed(recording: &Recording, encoding: &mut dyn Encoding) {
    let mut stacks: Vec<Vec<Edge>> = Vec::new();
    let mut threads = 0;
    for (thread, step) in recording.steps().map_while(Result::ok) {
        if let Step::Start(_) = step {
            threads = threads.max(thread.0 as usize + 1);
            stacks.resize_with(threads, Vec::new);
        }
        take(encoding, thread, step, &mut stacks[thread.0 as usize]);
    }
}

fn take(encoding: &mut dyn Encoding, thread: ThreadId, step: Step, stack: &mut Vec<Edge>) {
    match step {
        Step::Start(_) => encoding.start(thread, None),
        Step::Enter(edge) => {
            encoding.enter(thread, edge);
            stack.push(edge);
        }
        Step::Event(edge) => {
            let Frame { site, method } = edge.place();
            encoding.current(thread, Frame { site, method });
        }
        Step::Exit => {
            if let Some(edge) = stack.pop() {
                encoding.leave(thread, edge);
            }
        }
        Step::Unwind(frames) => {
            let left = stack.len() - frames as usize;
            encoding.unwind(thread, &stack[left..]);
            stack.truncate(left);
        }
    }
}
