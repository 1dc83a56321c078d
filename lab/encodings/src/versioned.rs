//! `lucce`, `adaptive`, `static`, `cct`: the versioned graph with its four policies.
//!
//! As in the agent, a frame's number is computed when an event below it needs it, from the nearest frame with a known
//! number. Other frames cost nothing.

use super::thread_table::ThreadTable;
use super::{ContextDecodeError, ContextEncoding, EncodedContext, EncodingStatistics};
use lucce_callgraph::ProgramThreadId;
use lucce_callgraph::{
    Anchor, Base, CallEdge, ContextEncoder, ContextFrame, ContextId, ContextLayout, EncodingPolicy,
    GraphChange, GraphJournal, GraphNode, JournalError, MethodId, NumberingPlan, SiteId,
    TableMemory, Transition, TransitionEffect,
};

/// See the module's description.
pub struct VersionedEncoding {
    name: &'static str,
    encoder: ContextEncoder<LogSizeJournal>,
    threads: ThreadTable<NumberedStack>,
    steps: u64,
    anchoring: u64,
}

#[derive(Default)]
struct NumberedStack {
    frames: Vec<(CallEdge, ContextId)>,
    /// How many frames, from the outermost one, have their number.
    numbered: usize,
}

/// Counts the bytes that a log would have.
#[derive(Default)]
pub struct LogSizeJournal {
    bytes: u64,
}

impl VersionedEncoding {
    #[must_use]
    pub fn new(
        name: &'static str,
        layout: ContextLayout,
        policy: EncodingPolicy,
    ) -> VersionedEncoding {
        Self::from_encoder(
            name,
            ContextEncoder::new(layout, policy, LogSizeJournal::default()),
        )
    }

    /// Numbers contexts in advance by a plan.
    #[must_use]
    pub fn with_numbering_plan(
        name: &'static str,
        layout: ContextLayout,
        policy: EncodingPolicy,
        plan: impl NumberingPlan + 'static,
    ) -> VersionedEncoding {
        let encoder =
            ContextEncoder::with_plan(layout, policy, LogSizeJournal::default(), Box::new(plan));
        Self::from_encoder(name, encoder)
    }

    /// Uses the same kind of memory for its tables as the agent: old parts are released.
    #[must_use]
    pub fn with_memory(
        name: &'static str,
        layout: ContextLayout,
        policy: EncodingPolicy,
        memory: &'static dyn TableMemory,
    ) -> VersionedEncoding {
        let encoder = ContextEncoder::with_plan_and_memory(
            layout,
            policy,
            LogSizeJournal::default(),
            None,
            Some(memory),
        );
        Self::from_encoder(name, encoder)
    }

    fn from_encoder(
        name: &'static str,
        encoder: ContextEncoder<LogSizeJournal>,
    ) -> VersionedEncoding {
        VersionedEncoding {
            name,
            encoder,
            threads: ThreadTable::default(),
            steps: 0,
            anchoring: 0,
        }
    }

    /// Returns the number of the innermost frame, and numbers all frames below it.
    fn number_frames(&mut self, thread: ProgramThreadId) -> ContextId {
        let NumberedStack {
            frames,
            numbered: known,
        } = self.threads.get_or_create(thread);
        let below = known.checked_sub(1).and_then(|at| frames.get(at));
        let mut context = below.map_or(ContextId::UNKNOWN, |(_, context)| *context);
        let unknown = frames.get_mut(*known..).unwrap_or_default();
        for (edge, number) in unknown {
            context = match edge.is_entry() {
                true => self.encoder.root_context(edge.callee),
                false => encode_counted_call(&self.encoder, context, *edge, &mut self.anchoring),
            };
            self.steps += 1;
            *number = context;
        }
        *known = frames.len();
        context
    }
}

/// Encodes and counts a call. An additive transition never arrives at callId 0.
fn encode_counted_call(
    encoder: &ContextEncoder<LogSizeJournal>,
    from: ContextId,
    edge: CallEdge,
    anchoring: &mut u64,
) -> ContextId {
    let to = encoder.encode_call(from, edge.site, edge.caller, edge.callee);
    *anchoring += u64::from(encoder.layout().call_id_of(to) == 0);
    to
}

impl ContextEncoding for VersionedEncoding {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start_thread(
        &mut self,
        thread: ProgramThreadId,
        _: Option<(ProgramThreadId, ContextFrame)>,
    ) {
        self.threads.reset_thread(thread);
    }

    fn enter_call(&mut self, thread: ProgramThreadId, edge: CallEdge) {
        let stack = self.threads.get_or_create(thread);
        stack.frames.push((edge, ContextId::UNKNOWN));
    }

    fn leave_call(&mut self, thread: ProgramThreadId, _: CallEdge) {
        let stack = self.threads.get_or_create(thread);
        stack.frames.pop();
        stack.numbered = stack.numbered.min(stack.frames.len());
    }

    fn unwind_calls(&mut self, thread: ProgramThreadId, edges: &[CallEdge]) {
        let stack = self.threads.get_or_create(thread);
        let left = stack.frames.len().saturating_sub(edges.len());
        stack.frames.truncate(left);
        stack.numbered = stack.numbered.min(left);
    }

    fn current_context(&mut self, thread: ProgramThreadId, place: ContextFrame) -> EncodedContext {
        let frame = self.number_frames(thread);
        let number = match place.site {
            SiteId::NONE => frame,
            _ => {
                self.steps += 1;
                encode_counted_call(
                    &self.encoder,
                    frame,
                    CallEdge::from_event_frame(place),
                    &mut self.anchoring,
                )
            }
        };
        EncodedContext::single(place, number.0)
    }

    /// An event's number is decoded alone; a frame's number is decoded for its method.
    fn decode_context(
        &self,
        number: &EncodedContext,
    ) -> Result<Vec<ContextFrame>, ContextDecodeError> {
        if number.id == 0 {
            return Err(ContextDecodeError::Lost);
        }
        let id = ContextId(number.id);
        let decode = |last| {
            self.encoder
                .decode_context(id, last)
                .map_err(ContextDecodeError::Graph)
        };
        match number.frame.site {
            SiteId::NONE => {
                let mut frames = vec![number.frame];
                frames.extend(decode(number.frame.method)?);
                Ok(frames)
            }
            _ => decode(MethodId::EVENT),
        }
    }

    fn collect_statistics(&self) -> EncodingStatistics {
        let stats = self.encoder.collect_stats();
        EncodingStatistics {
            nodes: stats.nodes as u64,
            edges: stats.transitions as u64,
            max_id: self.encoder.layout().call_id_count() - 1,
            memory_bytes: stats.memory_bytes as u64,
            log_bytes: self.encoder.with_journal(|tally| tally.bytes),
            unnumbered: stats.unknown,
            anchors: stats.anchors as u64,
            steps: self.steps,
            anchoring: self.anchoring,
            re_encodings: stats.re_encodings,
            re_encoding_time: stats.re_encoding_time,
            other_counts: vec![
                ("versions", stats.versions as u64),
                ("bases", stats.bases as u64),
                ("slow look-ups", stats.slow_lookups),
            ],
            ..EncodingStatistics::default()
        }
    }
}

impl GraphJournal for LogSizeJournal {
    /// Counts kind, length and fields, as the log writes them.
    fn append_change(&mut self, change: GraphChange) -> Result<(), JournalError> {
        self.bytes += 2 + match change {
            GraphChange::Base(Base {
                version,
                anchor_bits,
            }) => leb128_len(version.0) + anchor_bits.map_or(0, leb128_len),
            GraphChange::Node(GraphNode {
                version,
                method,
                capacity,
            }) => leb128_len(version.0) + leb128_len(method.0) + leb128_len(capacity),
            GraphChange::Transition(transition) => transition_bytes(&transition),
            GraphChange::Anchor(Anchor {
                base,
                id,
                head,
                parent,
            }) => {
                let parent = parent.map_or(0, |(_, site, caller)| {
                    8 + leb128_len(site.0) + leb128_len(caller.0)
                });
                leb128_len(base.0) + leb128_len(id.0) + leb128_len(head.0) + 1 + parent
            }
        };
        Ok(())
    }
}

fn transition_bytes(transition: &Transition) -> u64 {
    let effect = match transition.effect {
        TransitionEffect::Anchoring => 1,
        TransitionEffect::Additive { to, av } => 1 + leb128_len(to.0) + leb128_len(av),
    };
    leb128_len(transition.version.0)
        + leb128_len(transition.site.0)
        + leb128_len(transition.caller.0)
        + leb128_len(transition.callee.0)
        + effect
}

/// Returns the length of a LEB128 number.
fn leb128_len(number: impl Into<u64>) -> u64 {
    u64::from((64 - (number.into() | 1).leading_zeros()).div_ceil(7))
}
