//! All steps of a recording, checked: a reader never sees an exit without its enter.

use lucce_callgraph::MethodId;
use lucce_tracelog::LogDamage;

use crate::limits::MAX_DEPTH;
use crate::reader::{Block, Recording, inner};
use crate::token::Token;
use crate::{CallEdge, ProgramThreadId, Step};

/// See [`Recording::steps`]. Every step is possible: an edge's caller is the innermost frame's
/// method, and frames that end were entered before.
pub struct Steps<'r> {
    recording: &'r Recording,
    /// Of the next block.
    next: usize,
    block: Option<Open>,
    /// Each thread's methods, outermost first, and how many steps it made.
    threads: Vec<(Vec<MethodId>, u64)>,
    failed: bool,
}

struct Open {
    block: Block,
    bytes: Vec<u8>,
    at: usize,
}

impl Recording {
    /// What all threads did, in the file's order: each thread's steps are in order, and what a
    /// thread did before it started another precedes that start. After an `Err` nothing follows.
    #[must_use]
    pub fn steps(&self) -> Steps<'_> {
        Steps::new(self)
    }
}

impl<'r> Steps<'r> {
    fn new(recording: &'r Recording) -> Self {
        Steps {
            recording,
            next: 0,
            block: None,
            threads: Vec::new(),
            failed: false,
        }
    }

    /// When the present block was written, in nanoseconds since the recording began.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        let before = self.next.checked_sub(1);
        let block = before.and_then(|at| self.recording.blocks().get(at));
        block.map_or(0, |block| block.nanos)
    }

    fn advance(&mut self) -> Option<Result<(ProgramThreadId, Step), LogDamage>> {
        loop {
            if let Some(open) = self.block.take_if(|open| open.at < open.bytes.len()) {
                return Some(self.step(open));
            }
            let Some(&block) = self.recording.blocks().get(self.next) else {
                return self.recording.damage().cloned().map(Err);
            };
            self.next += 1;
            if let Some(start) = block.start {
                return Some(self.started(block, Step::Start(start)));
            }
            match self.recording.unpack(&block) {
                Ok(bytes) => {
                    let at = 0;
                    self.block = Some(Open { block, bytes, at });
                }
                Err(damage) => return Some(Err(damage)),
            }
        }
    }

    fn started(&mut self, block: Block, step: Step) -> Result<(ProgramThreadId, Step), LogDamage> {
        if let Some(start) = block.start
            && let Some(parent) = start.parent
        {
            let steps = self.threads.get(parent.0 as usize).map(|(_, steps)| *steps);
            if steps.is_none_or(|steps| steps < start.position) {
                let reason = "a thread was started at a place that its parent has not reached";
                return Err(inner(block.offset, 0, reason));
            }
        }
        self.threads.push((Vec::new(), 0));
        Ok((block.thread, step))
    }

    fn step(&mut self, mut open: Open) -> Result<(ProgramThreadId, Step), LogDamage> {
        let (offset, within) = (open.block.offset, open.at);
        let failed = |reason| inner(offset, within, reason);
        let mut rest = open.bytes.get(open.at..).unwrap_or_default();
        let token = Token::take_from(&mut rest).map_err(failed)?;
        open.at = open.bytes.len() - rest.len();
        let thread = open.block.thread;
        let step = self.check(&open.block, token).map_err(failed)?;
        self.block = Some(open);
        Ok((thread, step))
    }

    fn check(&mut self, block: &Block, token: Token) -> Result<Step, &'static str> {
        let place = self.threads.get_mut(block.thread.0 as usize);
        let (stack, steps) = place.ok_or("calls of a thread that has not started")?;
        *steps += 1;
        match token {
            Token::Exit => stack
                .pop()
                .map(|_| Step::Exit)
                .ok_or("an exit without an enter"),
            Token::Unwind(frames) => {
                let left = stack.len().checked_sub(frames as usize);
                let left = left.filter(|_| frames > 0);
                stack.truncate(left.ok_or("more frames end than were entered")?);
                Ok(Step::Unwind(frames))
            }
            Token::Edge(number) => {
                let known = number < block.edges;
                let edge = self.recording.edges().get(number as usize);
                let edge = *edge.filter(|_| known).ok_or("an edge that is not known")?;
                taken(stack, edge)
            }
        }
    }
}

fn taken(stack: &mut Vec<MethodId>, edge: CallEdge) -> Result<Step, &'static str> {
    if stack.last().copied().unwrap_or(CallEdge::NO_CALLER) != edge.caller {
        return Err("a call from a method that is not the innermost frame's");
    }
    if edge.callee == MethodId::EVENT {
        return Ok(Step::Event(edge));
    }
    if stack.len() == MAX_DEPTH {
        return Err("more frames than the format allows");
    }
    stack.push(edge.callee);
    Ok(Step::Enter(edge))
}

impl Iterator for Steps<'_> {
    type Item = Result<(ProgramThreadId, Step), LogDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.advance();
        self.failed = matches!(item, None | Some(Err(_)));
        item
    }
}
