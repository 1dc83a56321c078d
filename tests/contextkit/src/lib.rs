//! Recorded contexts of real programs, encoded as the agent would.
//!
//! A file holds events: a big-endian u32 length, then that many u32 sites from the thread's entry
//! to the event, outermost first; `site >> 12` is the method. Events that hold a zero are skipped.
//! Recorded ids are sparse; they are counted anew here, as the agent counts them.

use std::collections::HashMap;
use std::io::Read;

use lucce_callgraph::*;

/// The compiler of the JDK.
pub const JAVAC: &[u8] = include_bytes!("../data/javac.contexts.zst");
/// Apache FOP.
pub const FOP: &[u8] = include_bytes!("../data/fop.contexts.zst");

/// Events as frames, outermost first.
pub fn read(source: impl Read) -> Vec<Vec<ContextFrame>> {
    let mut bytes = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(source).expect("zstd");
    decoder.read_to_end(&mut bytes).expect("zstd");
    let mut words = bytes
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()));
    let mut events = Vec::new();
    let (mut sites, mut methods) = (Dense::default(), Dense::default());
    while let Some(length) = words.next() {
        let event: Vec<u32> = words.by_ref().take(length as usize).collect();
        if !event.is_empty() && !event.contains(&0) {
            let frame = |site: u32| ContextFrame {
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

/// One thread's lazy shadow stack: a frame that was there at the last event is not encoded again.
pub struct Shadow<'a, J> {
    encoder: &'a ContextEncoder<J>,
    stack: Vec<(ContextFrame, ContextId)>,
    pub steps: u64,
    pub anchoring: u64,
}

impl<'a, J: GraphJournal> Shadow<'a, J> {
    pub fn new(encoder: &'a ContextEncoder<J>) -> Self {
        Shadow {
            encoder,
            stack: Vec::new(),
            steps: 0,
            anchoring: 0,
        }
    }

    /// The number of an event with these frames, outermost first.
    pub fn event(&mut self, frames: &[ContextFrame]) -> ContextId {
        let innermost = self.enter(frames);
        self.step(innermost, frames[frames.len() - 1], MethodId::EVENT)
    }

    /// Panics if the number is not that of the frames.
    pub fn verify(&self, number: ContextId, frames: &[ContextFrame]) {
        let plain: Vec<ContextFrame> = frames.iter().rev().copied().collect();
        assert_eq!(
            self.encoder
                .decode_context(number, MethodId::EVENT)
                .as_ref(),
            Ok(&plain)
        );
    }

    fn enter(&mut self, frames: &[ContextFrame]) -> ContextId {
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
            None => self.encoder.root_context(callee),
        }
    }

    fn step(&mut self, ctx: ContextId, caller: ContextFrame, callee: MethodId) -> ContextId {
        let to = self
            .encoder
            .encode_call(ctx, caller.site, caller.method, callee);
        self.steps += 1;
        // An additive transition never arrives at callId 0.
        self.anchoring += u64::from(self.encoder.layout().call_id_of(to) == 0);
        to
    }
}
