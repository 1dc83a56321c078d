//! Encodes recorded contexts of real programs and prints what that took.
//!
//! `contexts [layout=12,20,32] [growth=50] [slack=4] [unroll=max] [node=30] [share=2]
//! [budget=524288] [verify=17] [tree=1] FILE.zst…`
//!
//! A file holds events: a big-endian u32 length, then that many u32 sites from the thread's entry
//! to the event, outermost first; `site >> 12` is the method. Events that hold a zero are skipped.
//! Recorded ids are sparse; they are counted anew here, as the agent counts them.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use lucce_callgraph::*;

struct Options {
    layout: Layout,
    policy: Policy,
    verify: u64,
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
        let events = read(file);
        println!("{}", Run::of(&options, &events).row(file));
    }
}

fn options(arguments: impl Iterator<Item = String>) -> Options {
    let (layout, policy) = (Layout::DEFAULT, Policy::LUCCE);
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
            options.layout = Layout::new(bits[0], bits[1], bits[2]);
        }
        "growth" => options.policy.growth_percent = number(),
        "slack" => options.policy.slack = u64::from(number()),
        "unroll" => options.policy.unroll = number(),
        "node" => options.policy.max_node_bits = number(),
        "share" => options.policy.epoch_share = number(),
        "budget" => options.policy.anchor_budget = number() as usize,
        "tree" => options.tree = number() != 0,
        "verify" => options.verify = u64::from(number()).max(1),
        _ => panic!("unknown option {name}"),
    }
}

/// Events as frames, outermost first.
fn read(file: &str) -> Vec<Vec<Frame>> {
    let source = std::fs::File::open(file).expect(file);
    let mut bytes = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(source).expect(file);
    decoder.read_to_end(&mut bytes).expect(file);
    let mut words = bytes
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()));
    let mut events = Vec::new();
    let (mut sites, mut methods) = (Dense::default(), Dense::default());
    while let Some(length) = words.next() {
        let event: Vec<u32> = words.by_ref().take(length as usize).collect();
        if !event.is_empty() && !event.contains(&0) {
            let frame = |site: u32| Frame {
                site: SiteId(sites.id(site)),
                method: MethodId(methods.id(site >> 12)),
            };
            events.push(event.into_iter().map(frame).collect());
        }
    }
    events
}

/// Ids from 1 on, in the order of first use.
#[derive(Default)]
struct Dense(HashMap<u32, u32>);

impl Dense {
    fn id(&mut self, recorded: u32) -> u32 {
        let next = self.0.len() as u32 + 1;
        *self.0.entry(recorded).or_insert(next)
    }
}

/// One program's events on their way through an encoder.
struct Run {
    encoder: Encoder<Vec<Change>>,
    events: u64,
    steps: u64,
    anchoring: u64,
    verified: u64,
    cct: HashMap<(u32, u32, u32), u32>,
    seconds: f64,
    /// The frames of the last event: a frame that is still there is not encoded again.
    stack: Vec<(Frame, ContextId)>,
    numbers: HashSet<ContextId>,
}

impl Run {
    fn of(options: &Options, events: &[Vec<Frame>]) -> Run {
        let mut run = Run {
            encoder: Encoder::new(options.layout, options.policy, Vec::new()),
            events: 0,
            steps: 0,
            anchoring: 0,
            verified: 0,
            cct: HashMap::new(),
            seconds: 0.0,
            stack: Vec::new(),
            numbers: HashSet::new(),
        };
        let start = std::time::Instant::now();
        for event in events {
            run.event(event, options.verify);
        }
        run.seconds = start.elapsed().as_secs_f64();
        if options.tree {
            run.count(events);
        }
        run
    }

    fn event(&mut self, frames: &[Frame], verify: u64) {
        self.events += 1;
        let ctx = self.enter(frames);
        let ctx = self.step(ctx, frames[frames.len() - 1], MethodId::EVENT);
        self.numbers.insert(ctx);
        if self.events.is_multiple_of(verify) && ctx != ContextId::UNKNOWN {
            let plain: Vec<Frame> = frames.iter().rev().copied().collect();
            assert_eq!(
                self.encoder.decode(ctx, MethodId::EVENT).as_ref(),
                Ok(&plain)
            );
            self.verified += 1;
        }
    }

    /// The number of the innermost frame, encoding only frames that are new since the last event.
    fn enter(&mut self, frames: &[Frame]) -> ContextId {
        let same = self
            .stack
            .iter()
            .zip(frames)
            .take_while(|((old, _), new)| old == *new)
            .count();
        // The frame above the last equal site is the same frame if it is of the same method.
        let kept = match (self.stack.get(same), frames.get(same)) {
            (Some((old, _)), Some(new)) if old.method == new.method => same + 1,
            _ => same,
        };
        self.stack.truncate(kept);
        for (at, &frame) in frames.iter().enumerate() {
            match self.stack.get_mut(at) {
                Some(kept) => kept.0 = frame,
                None => {
                    let ctx = self.called(frame.method);
                    self.stack.push((frame, ctx));
                }
            }
        }
        self.stack[frames.len() - 1].1
    }

    /// The number of a new frame on top of the stack.
    fn called(&mut self, callee: MethodId) -> ContextId {
        match self.stack.last() {
            Some(&(caller, ctx)) => self.step(ctx, caller, callee),
            None => self.encoder.root(callee),
        }
    }

    fn step(&mut self, ctx: ContextId, caller: Frame, callee: MethodId) -> ContextId {
        let to = self.encoder.step(ctx, caller.site, caller.method, callee);
        self.steps += 1;
        // An additive transition never arrives at callId 0.
        self.anchoring += u64::from(self.encoder.layout().call(to) == 0);
        to
    }

    /// The calling context tree that the numbers replace, and whether they are as many.
    fn count(&mut self, events: &[Vec<Frame>]) {
        let mut leaves = HashSet::new();
        for event in events {
            let mut node = 0;
            for (at, frame) in event.iter().enumerate() {
                let callee = event
                    .get(at + 1)
                    .map_or(MethodId::EVENT.0, |next| next.method.0);
                let next = self.cct.len() as u32 + 1;
                node = *self.cct.entry((node, frame.site.0, callee)).or_insert(next);
            }
            leaves.insert(node);
        }
        let unknown = usize::from(self.numbers.contains(&ContextId::UNKNOWN));
        assert!(unknown > 0 || self.numbers.len() >= leaves.len());
    }

    fn row(&self, file: &str) -> String {
        let program = file
            .rsplit('/')
            .next()
            .unwrap_or(file)
            .trim_end_matches(".contexts.zst");
        let stats = self.encoder.stats();
        format!(
            "{:10} {:7} {:9} {:7} {:7} {:7} {:5} {:5} {:8.3}% {:7} {:7.1} {:7.2} {:8}",
            program,
            self.events,
            self.cct.len(),
            stats.nodes,
            stats.transitions,
            stats.anchors,
            stats.versions,
            stats.bases,
            100.0 * self.anchoring as f64 / self.steps.max(1) as f64,
            stats.unknown,
            stats.memory as f64 / 1_048_576.0,
            self.seconds,
            self.verified
        )
    }
}
