//! All steps of a recording, checked: a reader never sees an exit without its enter.

use lucce_callgraph::MethodId;
use lucce_tracelog::LogDamage;

use crate::limits::MAX_DEPTH;
use crate::reader::{Recording, StepBlock, damage_within};
use crate::token::StepToken;
use crate::{CallEdge, ProgramThreadId, RecordedStep};

/// See [`Recording::steps`]. Every step is possible: an edge's caller is the innermost frame's
/// method, and frames that end were entered before.
pub struct RecordedSteps<'r> {
    recording: &'r Recording,
    /// Of the next block.
    next: usize,
    block: Option<OpenStepBlock>,
    /// Each thread's methods, outermost first, and how many steps it made.
    threads: Vec<(Vec<MethodId>, u64)>,
    failed: bool,
}

struct OpenStepBlock {
    block: StepBlock,
    bytes: Vec<u8>,
    at: usize,
}

impl Recording {
    /// What all threads did, in the file's order: each thread's steps are in order, and what a
    /// thread did before it started another precedes that start. After an `Err` nothing follows.
    #[must_use]
    pub fn steps(&self) -> RecordedSteps<'_> {
        RecordedSteps::new(self)
    }
}

impl<'r> RecordedSteps<'r> {
    fn new(recording: &'r Recording) -> Self {
        RecordedSteps {
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

    fn advance(&mut self) -> Option<Result<(ProgramThreadId, RecordedStep), LogDamage>> {
        loop {
            if let Some(open) = self.block.take_if(|open| open.at < open.bytes.len()) {
                return Some(self.read_step(open));
            }
            let Some(&block) = self.recording.blocks().get(self.next) else {
                return self.recording.damage().cloned().map(Err);
            };
            self.next += 1;
            if let Some(start) = block.start {
                return Some(self.check_start(block, RecordedStep::Start(start)));
            }
            match self.recording.unpack_block(&block) {
                Ok(bytes) => {
                    let at = 0;
                    self.block = Some(OpenStepBlock { block, bytes, at });
                }
                Err(damage) => return Some(Err(damage)),
            }
        }
    }

    fn check_start(
        &mut self,
        block: StepBlock,
        step: RecordedStep,
    ) -> Result<(ProgramThreadId, RecordedStep), LogDamage> {
        if let Some(start) = block.start
            && let Some(parent) = start.parent
        {
            let steps = self.threads.get(parent.0 as usize).map(|(_, steps)| *steps);
            if steps.is_none_or(|steps| steps < start.position) {
                let reason = "a thread was started at a place that its parent has not reached";
                return Err(damage_within(block.offset, 0, reason));
            }
        }
        self.threads.push((Vec::new(), 0));
        Ok((block.thread, step))
    }

    fn read_step(
        &mut self,
        mut open: OpenStepBlock,
    ) -> Result<(ProgramThreadId, RecordedStep), LogDamage> {
        let (offset, within) = (open.block.offset, open.at);
        let failed = |reason| damage_within(offset, within, reason);
        let mut rest = open.bytes.get(open.at..).unwrap_or_default();
        let token = StepToken::take_from(&mut rest).map_err(failed)?;
        open.at = open.bytes.len() - rest.len();
        let thread = open.block.thread;
        let step = self.check_token(&open.block, token).map_err(failed)?;
        self.block = Some(open);
        Ok((thread, step))
    }

    fn check_token(
        &mut self,
        block: &StepBlock,
        token: StepToken,
    ) -> Result<RecordedStep, &'static str> {
        let place = self.threads.get_mut(block.thread.0 as usize);
        let (stack, steps) = place.ok_or("calls of a thread that has not started")?;
        *steps += 1;
        match token {
            StepToken::Exit => stack
                .pop()
                .map(|_| RecordedStep::Exit)
                .ok_or("an exit without an enter"),
            StepToken::Unwind(frames) => {
                let left = stack.len().checked_sub(frames as usize);
                let left = left.filter(|_| frames > 0);
                stack.truncate(left.ok_or("more frames end than were entered")?);
                Ok(RecordedStep::Unwind(frames))
            }
            StepToken::Edge(number) => {
                let is_defined = number < block.edges;
                let edge = self.recording.edges().get(number as usize);
                let edge = *edge
                    .filter(|_| is_defined)
                    .ok_or("an edge that is not known")?;
                apply_edge(stack, edge)
            }
        }
    }
}

fn apply_edge(stack: &mut Vec<MethodId>, edge: CallEdge) -> Result<RecordedStep, &'static str> {
    if stack.last().copied().unwrap_or(CallEdge::NO_CALLER) != edge.caller {
        return Err("a call from a method that is not the innermost frame's");
    }
    if edge.callee == MethodId::EVENT {
        return Ok(RecordedStep::Event(edge));
    }
    if stack.len() == MAX_DEPTH {
        return Err("more frames than the format allows");
    }
    stack.push(edge.callee);
    Ok(RecordedStep::Enter(edge))
}

impl Iterator for RecordedSteps<'_> {
    type Item = Result<(ProgramThreadId, RecordedStep), LogDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.advance();
        self.failed = matches!(item, None | Some(Err(_)));
        item
    }
}
