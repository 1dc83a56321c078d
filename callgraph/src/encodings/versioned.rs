//! `lucce`, `adaptive`, `static`, `cct`: the versioned graph with its four policies.
//!
//! As in the agent, a frame's number is computed when an event below it asks for it, from the nearest
//! frame whose number is known. Frames that are not asked for cost nothing.

use super::threads::Threads;
use super::{Encoding, Number, Statistics, ThreadId, Undecodable};
use crate::{
    Anchor, Base, Change, ContextId, Edge, Effect, Encoder, Frame, Journal, Layout, MethodId, Node,
    Plan, Policy, Refused, SiteId, TableMemory, Transition,
};

/// See the module's description.
pub struct Versioned {
    name: &'static str,
    encoder: Encoder<Tally>,
    threads: Threads<Stack>,
    steps: u64,
    anchoring: u64,
}

#[derive(Default)]
struct Stack {
    frames: Vec<(Edge, ContextId)>,
    /// So many frames, from the outermost one, have their number.
    known: usize,
}

/// How long a log would be.
#[derive(Default)]
pub struct Tally {
    bytes: u64,
}

impl Versioned {
    #[must_use]
    pub fn new(name: &'static str, layout: Layout, policy: Policy) -> Versioned {
        Self::of(name, Encoder::new(layout, policy, Tally::default()))
    }

    /// Numbered in advance.
    #[must_use]
    pub fn planned(
        name: &'static str,
        layout: Layout,
        policy: Policy,
        plan: impl Plan + 'static,
    ) -> Versioned {
        let encoder = Encoder::with_plan(layout, policy, Tally::default(), Box::new(plan));
        Self::of(name, encoder)
    }

    /// With its tables where the agent has them: memory whose old parts are given back.
    #[must_use]
    pub fn with_memory(
        name: &'static str,
        layout: Layout,
        policy: Policy,
        memory: &'static dyn TableMemory,
    ) -> Versioned {
        let encoder = Encoder::with(layout, policy, Tally::default(), None, Some(memory));
        Self::of(name, encoder)
    }

    fn of(name: &'static str, encoder: Encoder<Tally>) -> Versioned {
        Versioned {
            name,
            encoder,
            threads: Threads::default(),
            steps: 0,
            anchoring: 0,
        }
    }

    /// The number of the innermost frame, and of all below it.
    fn walk(&mut self, thread: ThreadId) -> ContextId {
        let Stack { frames, known } = self.threads.at(thread);
        let below = known.checked_sub(1).and_then(|at| frames.get(at));
        let mut context = below.map_or(ContextId::UNKNOWN, |(_, context)| *context);
        let unknown = frames.get_mut(*known..).unwrap_or_default();
        for (edge, number) in unknown {
            context = match edge.is_entry() {
                true => self.encoder.root(edge.callee),
                false => step(&self.encoder, context, *edge, &mut self.anchoring),
            };
            self.steps += 1;
            *number = context;
        }
        *known = frames.len();
        context
    }
}

/// An additive transition never arrives at callId 0.
fn step(encoder: &Encoder<Tally>, from: ContextId, edge: Edge, anchoring: &mut u64) -> ContextId {
    let to = encoder.step(from, edge.site, edge.caller, edge.callee);
    *anchoring += u64::from(encoder.layout().call(to) == 0);
    to
}

impl Encoding for Versioned {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&mut self, thread: ThreadId, _: Option<(ThreadId, Frame)>) {
        self.threads.start(thread);
    }

    fn enter(&mut self, thread: ThreadId, edge: Edge) {
        let stack = self.threads.at(thread);
        stack.frames.push((edge, ContextId::UNKNOWN));
    }

    fn leave(&mut self, thread: ThreadId, _: Edge) {
        let stack = self.threads.at(thread);
        stack.frames.pop();
        stack.known = stack.known.min(stack.frames.len());
    }

    fn unwind(&mut self, thread: ThreadId, edges: &[Edge]) {
        let stack = self.threads.at(thread);
        let left = stack.frames.len().saturating_sub(edges.len());
        stack.frames.truncate(left);
        stack.known = stack.known.min(left);
    }

    fn current(&mut self, thread: ThreadId, place: Frame) -> Number {
        let frame = self.walk(thread);
        let number = match place.site {
            SiteId::NONE => frame,
            _ => {
                self.steps += 1;
                step(
                    &self.encoder,
                    frame,
                    Edge::event(place),
                    &mut self.anchoring,
                )
            }
        };
        Number {
            place,
            id: number.0,
            beside: Vec::new(),
        }
    }

    /// An event's number alone says everything; a frame's is decoded for its method.
    fn decode(&self, number: &Number) -> Result<Vec<Frame>, Undecodable> {
        if number.id == 0 {
            return Err(Undecodable::Lost);
        }
        let id = ContextId(number.id);
        let decode = |last| self.encoder.decode(id, last).map_err(Undecodable::Graph);
        match number.place.site {
            SiteId::NONE => {
                let mut frames = vec![number.place];
                frames.extend(decode(number.place.method)?);
                Ok(frames)
            }
            _ => decode(MethodId::EVENT),
        }
    }

    fn statistics(&self) -> Statistics {
        let stats = self.encoder.stats();
        Statistics {
            nodes: stats.nodes as u64,
            edges: stats.transitions as u64,
            max_id: self.encoder.layout().calls() - 1,
            memory: stats.memory as u64,
            log_bytes: self.encoder.journal(|tally| tally.bytes),
            lost: stats.unknown,
            anchors: stats.anchors as u64,
            steps: self.steps,
            anchoring: self.anchoring,
            re_encodings: stats.re_encodings,
            re_encoding: stats.re_encoding,
            more: vec![
                ("versions", stats.versions as u64),
                ("bases", stats.bases as u64),
                ("slow look-ups", stats.slow_lookups),
            ],
            ..Statistics::default()
        }
    }
}

impl Journal for Tally {
    /// As the log writes it: kind, length, fields.
    fn append(&mut self, change: Change) -> Result<(), Refused> {
        self.bytes += 2 + match change {
            Change::Base(Base {
                version,
                anchor_bits,
            }) => bytes(version.0) + anchor_bits.map_or(0, bytes),
            Change::Node(Node {
                version,
                method,
                capacity,
            }) => bytes(version.0) + bytes(method.0) + bytes(capacity),
            Change::Transition(transition) => transition_bytes(&transition),
            Change::Anchor(Anchor {
                base,
                id,
                head,
                parent,
            }) => {
                let parent =
                    parent.map_or(0, |(_, site, caller)| 8 + bytes(site.0) + bytes(caller.0));
                bytes(base.0) + bytes(id.0) + bytes(head.0) + 1 + parent
            }
        };
        Ok(())
    }
}

fn transition_bytes(transition: &Transition) -> u64 {
    let effect = match transition.effect {
        Effect::Anchoring => 1,
        Effect::Additive { to, av } => 1 + bytes(to.0) + bytes(av),
    };
    bytes(transition.version.0)
        + bytes(transition.site.0)
        + bytes(transition.caller.0)
        + bytes(transition.callee.0)
        + effect
}

/// Of a LEB128 number.
fn bytes(number: impl Into<u64>) -> u64 {
    u64::from((64 - (number.into() | 1).leading_zeros()).div_ceil(7))
}
