//! Encodes recorded contexts of real programs and prints what that took.
//!
//! `contexts [layout=12,18,34] [growth=20] [slack=1] [unroll=max] [node=32] [epoch=94]
//! [budget=262144] [adapt=0] [verify=17] [tree=1] FILE.zst…`
//!
//! `lucce-contextkit` describes the file format.

use std::collections::HashMap;

use lucce_callgraph::*;
use lucce_contextkit::Shadow;

struct Options {
    layout: ContextLayout,
    policy: EncodingPolicy,
    verify: usize,
    tree: bool,
    files: Vec<String>,
}

fn main() {
    let options = options(std::env::args().skip(1));
    println!("{:?} {:?}", options.layout, options.policy);
    println!(
        "{:10} {:>7} {:>9} {:>7} {:>7} {:>7} {:>5} {:>5} {:>9} {:>7} {:>7} {:>7} {:>8}",
        "program",
        "events",
        "CCT",
        "nodes",
        "trans",
        "anchors",
        "vers",
        "bases",
        "anchoring",
        "unknown",
        "MiB",
        "secs",
        "verified"
    );
    for file in &options.files {
        let events = lucce_contextkit::read(std::fs::File::open(file).expect(file));
        println!("{}", Run::of(&options, &events).row(file));
    }
}

fn options(arguments: impl Iterator<Item = String>) -> Options {
    let (layout, policy) = (ContextLayout::DEFAULT, EncodingPolicy::LUCCE);
    let mut options = Options {
        layout,
        policy,
        verify: 17,
        tree: true,
        files: Vec::new(),
    };
    for argument in arguments {
        match argument.split_once('=') {
            Some((name, value)) => set(&mut options, name, value),
            None => options.files.push(argument),
        }
    }
    options
}

fn set(options: &mut Options, name: &str, value: &str) {
    let number = || value.parse::<u32>().expect("a number");
    match name {
        "layout" => {
            let bits: Vec<u32> = value
                .split(',')
                .map(|bits| bits.parse().expect("bits"))
                .collect();
            options.layout = ContextLayout::new(bits[0], bits[1], bits[2]);
        }
        "growth" => options.policy.growth_percent = number(),
        "slack" => options.policy.slack = u64::from(number()),
        "unroll" => options.policy.unroll = number(),
        "node" => options.policy.max_node_bits = number(),
        "epoch" => options.policy.epoch_percent = number(),
        "budget" => options.policy.anchor_budget = number() as usize,
        "adapt" => options.policy.adapt_after = u64::from(number()),
        "tree" => options.tree = number() != 0,
        "verify" => options.verify = number().max(1) as usize,
        _ => panic!("unknown option {name}"),
    }
}

/// What encoding one program took.
struct Run {
    stats: EncoderStats,
    events: u64,
    steps: u64,
    anchoring: u64,
    verified: u64,
    tree: usize,
    seconds: f64,
}

impl Run {
    fn of(options: &Options, events: &[Vec<ContextFrame>]) -> Run {
        let encoder = ContextEncoder::new(options.layout, options.policy, Vec::new());
        let mut shadow = Shadow::new(&encoder);
        let start = std::time::Instant::now();
        let numbers: Vec<ContextId> = events.iter().map(|event| shadow.event(event)).collect();
        let seconds = start.elapsed().as_secs_f64();
        let mut run = Run {
            stats: encoder.collect_stats(),
            events: events.len() as u64,
            steps: shadow.steps,
            anchoring: shadow.anchoring,
            verified: 0,
            tree: if options.tree { tree(events) } else { 0 },
            seconds,
        };
        for (event, number) in events.iter().zip(numbers).step_by(options.verify) {
            shadow.verify(number, event);
            run.verified += 1;
        }
        run
    }

    fn row(&self, file: &str) -> String {
        let program = file
            .rsplit('/')
            .next()
            .unwrap_or(file)
            .trim_end_matches(".contexts.zst");
        let stats = self.stats;
        format!(
            "{:10} {:7} {:9} {:7} {:7} {:7} {:5} {:5} {:8.3}% {:7} {:7.1} {:7.2} {:8}",
            program,
            self.events,
            self.tree,
            stats.nodes,
            stats.transitions,
            stats.anchors,
            stats.versions,
            stats.bases,
            100.0 * self.anchoring as f64 / self.steps.max(1) as f64,
            stats.unknown,
            stats.memory_bytes as f64 / 1_048_576.0,
            self.seconds,
            self.verified
        )
    }
}

/// How many nodes the calling context tree has that the numbers replace.
fn tree(events: &[Vec<ContextFrame>]) -> usize {
    let mut nodes: HashMap<(u32, SiteId, MethodId), u32> = HashMap::new();
    for event in events {
        let mut node = 0;
        for (at, frame) in event.iter().enumerate() {
            let callee = event
                .get(at + 1)
                .map_or(MethodId::EVENT, |next| next.method);
            let next = nodes.len() as u32 + 1;
            node = *nodes.entry((node, frame.site, callee)).or_insert(next);
        }
    }
    nodes.len()
}
