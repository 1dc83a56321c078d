//! Random programs, written down step by step beside the recording.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use lucce_callgraph::{ContextFrame, MethodId, SiteId};
use lucce_recording::*;
use proptest::prelude::*;

/// A file in memory that can still be read when the writer is gone.
#[derive(Clone, Default)]
pub struct Memory(pub Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Act {
    Start,
    Call { site: u32, callee: u32 },
    Event { site: u32 },
    Return,
    Throw { frames: u32 },
    Flush,
}

pub fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let act = prop_oneof![
        1 => Just(Act::Start),
        12 => (0..3u32, 1..40u32).prop_map(|(site, callee)| Act::Call { site, callee }),
        6 => (0..3u32).prop_map(|site| Act::Event { site }),
        8 => Just(Act::Return),
        2 => (1..4u32).prop_map(|frames| Act::Throw { frames }),
        1 => Just(Act::Flush),
    ];
    prop::collection::vec((0..5usize, act), 1..400)
}

/// What the recording must say, by thread.
pub type Plain = Vec<Vec<RecordedStep>>;

struct Live {
    writer: ThreadWriter,
    stack: Vec<u32>,
}

pub fn record<W: Write>(writer: &RecordingWriter<W>, acts: &[(usize, Act)]) -> Plain {
    let mut plain: Plain = vec![vec![RecordedStep::Start(NOBODY)]];
    let mut threads = vec![Live {
        writer: writer.start("main", None),
        stack: Vec::new(),
    }];
    for &(thread, act) in acts {
        let thread = thread % threads.len();
        if let Act::Start = act {
            let position = plain[thread].len() as u64 - 1;
            let parent = Some(ProgramThreadId(thread as u32));
            let started = writer.start("wörker", Some(&mut threads[thread].writer));
            threads.push(Live {
                writer: started,
                stack: Vec::new(),
            });
            plain.push(vec![RecordedStep::Start(RecordedStart {
                parent,
                position,
            })]);
            continue;
        }
        let Live { writer: to, stack } = &mut threads[thread];
        let top = stack.last().copied();
        let step = match (act, top) {
            (Act::Flush, _) => {
                to.flush(writer);
                continue;
            }
            (Act::Call { callee, .. }, None) => {
                RecordedStep::Enter(CallEdge::from_thread_entry(MethodId(callee)))
            }
            (Act::Call { site, callee }, Some(caller)) => RecordedStep::Enter(CallEdge {
                callee: MethodId(callee),
                ..CallEdge::from_event_frame(place(caller, site))
            }),
            (Act::Event { site }, Some(caller)) => {
                RecordedStep::Event(CallEdge::from_event_frame(place(caller, site)))
            }
            (Act::Return, Some(_)) => RecordedStep::Exit,
            (Act::Throw { frames }, Some(_)) => {
                RecordedStep::Unwind(frames.min(stack.len() as u32))
            }
            _ => continue,
        };
        match step {
            RecordedStep::Enter(edge) => {
                stack.push(edge.callee.0);
                to.enter(writer, edge);
            }
            RecordedStep::Event(edge) => to.event(writer, edge),
            RecordedStep::Exit => {
                stack.pop();
                to.exit(writer);
            }
            RecordedStep::Unwind(frames) => {
                stack.truncate(stack.len() - frames as usize);
                to.unwind(writer, frames);
            }
            RecordedStep::Start(_) => {}
        }
        plain[thread].push(step);
    }
    for thread in &mut threads {
        thread.writer.flush(writer);
    }
    plain
}

pub const NOBODY: RecordedStart = RecordedStart {
    parent: None,
    position: 0,
};

fn place(method: u32, site: u32) -> ContextFrame {
    ContextFrame {
        site: SiteId(method * 3 + site + 1),
        method: MethodId(method),
    }
}

/// All steps by thread, and the damage that ended them.
pub fn read(recording: &Recording) -> (Plain, Option<LogDamage>) {
    let mut plain = Plain::new();
    for step in recording.steps() {
        match step {
            Ok((thread, step)) => {
                let thread = thread.0 as usize;
                plain.resize(plain.len().max(thread + 1), Vec::new());
                plain[thread].push(step);
            }
            Err(damage) => return (plain, Some(damage)),
        }
    }
    (plain, None)
}

/// Whether every thread of `part` is the beginning of the same thread of `whole`.
pub fn is_beginning(part: &Plain, whole: &Plain) -> bool {
    part.len() <= whole.len()
        && part
            .iter()
            .zip(whole)
            .all(|(part, whole)| whole.starts_with(part))
}

pub fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
