//! A log with a given number of contexts, as a large program would leave it, to measure readers by:
//!
//! ```text
//! cargo run --release -p lucce-decoder --example large_log -- target/large.lucce 4600000
//! ```
//! Threads walk at random through a graph of methods, each of which calls a few others and, seldom, itself or one before it.
//! They allocate on the way, each in contexts of its own or in those where others have been. The walk is the same each time.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

use lucce_callgraph::{ContextEncoder, ContextId, ContextLayout, EncodingPolicy, MethodId, SiteId};
use lucce_tracelog::{
    ClassId, ClassRecord, EndRecord, LoaderId, LogHeader, LogWriter, MetaRecord, MethodRecord,
    RunId, SiteKind, SiteRecord, SiteSize, StatRecord, ThreadId, ThreadRecord,
};

const CLASSES: u32 = 2_000;
const METHODS: u32 = 12_000;
/// Of each method: calls, then allocations.
const CALLS: u32 = 3;
const ALLOCATIONS: u32 = 2;
const SITES: u32 = CALLS + ALLOCATIONS;
const THREADS: u32 = 8;
const DEEPEST: usize = 120;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, contexts] = args.as_slice() else {
        return Err("usage: large_log FILE CONTEXTS".into());
    };
    let contexts = contexts.parse()?;
    let written = write(Path::new(path), contexts)?;
    println!("{path}: {written} contexts");
    Ok(())
}

/// How many contexts it has.
pub fn write(path: &Path, contexts: usize) -> Result<usize, Box<dyn Error>> {
    // Those of the layout.
    let header = LogHeader {
        version_bits: 12,
        anchor_bits: 18,
        call_bits: 34,
        pid: 1,
        start: 1_763_730_000_000_000_000,
        run: RunId::new(0x0123_4567_89ab_cdef),
    };
    let mut writer = LogWriter::create(path, &header)?;
    code(&mut writer)?;
    let encoder = ContextEncoder::new(ContextLayout::DEFAULT, EncodingPolicy::LUCCE, writer);
    let counted = walks(&encoder, contexts);
    encoder.with_journal(|writer| -> Result<(), Box<dyn Error>> {
        for (thread, counts) in (1..).zip(&counted) {
            let cells = writer.add_counters(ThreadId(thread), counts.len() as u32)?;
            for (cell, (id, count)) in cells.iter().zip(counts) {
                cell.claim(*id);
                (0..*count).for_each(|_| cell.count_event(0));
            }
        }
        writer.append(StatRecord {
            key: "run.millis".into(),
            value: 60_000,
        })?;
        writer.append(EndRecord)?;
        writer.close()?;
        Ok(())
    })?;
    Ok(counted.iter().map(HashMap::len).sum())
}

fn code(writer: &mut LogWriter) -> Result<(), Box<dyn Error>> {
    writer.append(MetaRecord {
        key: "command".into(),
        value: "com.acme.Large".into(),
    })?;
    for class in 0..CLASSES {
        writer.append(ClassRecord {
            id: ClassId(class),
            loader: LoaderId(0),
            name: format!("com.acme.part{}.Class{class}", class / 40).into(),
            source_file: Some(format!("Class{class}.java").into()),
        })?;
    }
    for method in 1..=METHODS {
        let lines: Vec<_> = (0..SITES as u16)
            .map(|site| (site, 20 + 3 * site))
            .collect();
        writer.append(MethodRecord {
            id: MethodId(method),
            class: ClassId(method % CLASSES),
            name: format!("method{}", method / CLASSES).into(),
            descriptor: "()V".into(),
            access: 1,
            lines: lines.into(),
        })?;
        for at in 0..SITES {
            let class = (method * 7 + at) % CLASSES;
            let allocated = format!("Lcom/acme/part{}/Class{class};", class / 40);
            let id = site(method, at);
            writer.append(SiteRecord {
                id,
                method: MethodId(method),
                bci: at as i32,
                line: None,
                kind: match at < CALLS {
                    true => SiteKind::Call,
                    false => SiteKind::New(allocated.into()),
                },
            })?;
            if at >= CALLS {
                let bytes = 16 + 8 * u64::from(method % 9);
                writer.append(SiteSize { site: id, bytes })?;
            }
        }
    }
    for thread in 1..=THREADS {
        writer.append(ThreadRecord {
            id: ThreadId(thread),
            name: format!("worker-{thread}").into(),
            is_virtual: false,
        })?;
    }
    Ok(())
}

fn site(method: u32, at: u32) -> SiteId {
    SiteId(method * SITES + at)
}

/// What each thread has counted by context, until there are so many contexts in all.
fn walks(encoder: &ContextEncoder<LogWriter>, contexts: usize) -> Vec<HashMap<ContextId, u64>> {
    let mut random = Random(1);
    let mut counted = vec![HashMap::new(); THREADS as usize];
    for (thread, counts) in (1..).zip(&mut counted) {
        walk(
            encoder,
            &mut random,
            (thread, contexts / THREADS as usize),
            counts,
        );
    }
    counted
}

fn walk(
    encoder: &ContextEncoder<LogWriter>,
    random: &mut Random,
    (thread, contexts): (u32, usize),
    counts: &mut HashMap<ContextId, u64>,
) {
    let head = MethodId(thread);
    let mut stack = vec![(encoder.root_context(head), head)];
    while counts.len() < contexts {
        let Some(&(at, method)) = stack.last() else {
            return;
        };
        match random.below(10) {
            0..4 if stack.len() < DEEPEST
                && let Some((call, callee)) = call(method.0, random) =>
            {
                stack.push((
                    encoder.encode_call(at, site(method.0, call), method, callee),
                    callee,
                ));
            }
            4..7 => {
                let place = CALLS + random.below(ALLOCATIONS);
                let id = encoder.encode_event(at, site(method.0, place), method);
                // Most contexts have few events, and some have many.
                let power = random.below(10).saturating_sub(5) * random.below(4);
                *counts.entry(id).or_default() += 1 << power;
            }
            // Back to where it goes on elsewhere, seldom far.
            _ => {
                let back = if random.below(50) == 0 { 10 } else { 1 };
                stack.truncate(stack.len().saturating_sub(back).max(1));
            }
        }
    }
}

/// Calls lead on, to methods that call less and less; of one method in sixty the first leads to itself or a little back.
fn call(method: u32, random: &mut Random) -> Option<(u32, MethodId)> {
    // One method in three has a choice: with more of them there would be more paths than any program has.
    let call = match method % 3 {
        0 => random.below(CALLS),
        _ => 0,
    };
    let mixed = (method * CALLS + call).wrapping_mul(0x9e37_79b1) >> 8;
    let callee = match (method % 60, call) {
        (0, 0) => method - mixed % 8,
        _ => method + 1 + mixed % 400,
    };
    (callee <= METHODS).then_some((call, MethodId(callee)))
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) % u64::from(limit)) as u32
    }
}
