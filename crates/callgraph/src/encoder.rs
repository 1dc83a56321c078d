//! Gives numbers to calling contexts: a lock-free look-up for known calls, and one mutex for new ones.

use std::sync::{PoisonError, TryLockError};

use crate::anchor_table::AnchorKey;
use crate::graph::{LivenessSurvey, VersionedGraph, sort_ascending};
use crate::learner::{CallStep, EncodeError, GraphLearner};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::tables::{EncoderTables, RawTables};
use crate::transition_table::{ANCHORING, TransitionKey};
use crate::{
    ContextFrame, ContextId, ContextLayout, DeadCode, DecodeError, EncoderStats, EncodingPolicy,
    GraphJournal, LockWait, MethodId, NumberingPlan, SiteId, TableMemory,
};

/// How many numbers are checked before other threads may take the mutex again.
const NUMBERS_AT_ONCE: usize = 1024;

/// The encoder, shared by all threads.
///
/// A site must always come with the same caller. Ids that are out of range, and numbers of other encoders, give
/// [`ContextId::UNKNOWN`] at the latest when the call is learned.
pub struct ContextEncoder<J> {
    layout: ContextLayout,
    tables: EncoderTables,
    learner: Mutex<GraphLearner<J>>,
    learner_wait: LockWait,
    unknown: AtomicU64,
    sweeps: AtomicU64,
}

impl<J: GraphJournal> ContextEncoder<J> {
    /// Creates an encoder that numbers contexts when they are first seen.
    pub fn new(layout: ContextLayout, policy: EncodingPolicy, journal: J) -> Self {
        Self::with_plan_and_memory(layout, policy, journal, None, None)
    }

    /// Creates an encoder with planned numbers, for the policy `static`.
    pub fn with_plan(
        layout: ContextLayout,
        policy: EncodingPolicy,
        journal: J,
        plan: Box<dyn NumberingPlan>,
    ) -> Self {
        Self::with_plan_and_memory(layout, policy, journal, Some(plan), None)
    }

    /// Creates an encoder whose tables are in the given memory.
    pub fn with_plan_and_memory(
        layout: ContextLayout,
        policy: EncodingPolicy,
        journal: J,
        plan: Option<Box<dyn NumberingPlan>>,
        memory: Option<&'static dyn TableMemory>,
    ) -> Self {
        let mut learner = GraphLearner::new(VersionedGraph::new(layout), policy, journal);
        learner.plan = plan;
        ContextEncoder {
            layout,
            tables: EncoderTables::new(layout, policy.anchor_budget, memory),
            learner: Mutex::new(learner),
            learner_wait: LockWait::new(),
            unknown: AtomicU64::new(0),
            sweeps: AtomicU64::new(0),
        }
    }

    pub fn layout(&self) -> ContextLayout {
        self.layout
    }

    /// Returns the number of a thread's first frame.
    pub fn root_context(&self, head: MethodId) -> ContextId {
        match self.tables.anchors.find(AnchorKey::from_thread_entry(head)) {
            Some(known) => known,
            None => self.count_unknown(self.lock_learner().learn_root(&self.tables, head)),
        }
    }

    /// Returns the number of `callee`, called at `site` by the frame of `caller` with the number `ctx`.
    #[inline]
    pub fn encode_call(
        &self,
        ctx: ContextId,
        site: SiteId,
        caller: MethodId,
        callee: MethodId,
    ) -> ContextId {
        let step = CallStep {
            context: ctx,
            site,
            caller,
            callee,
        };
        let key = TransitionKey::new(self.layout.version_of(ctx), site, callee);
        match key.and_then(|key| self.tables.find_transition(key)) {
            Some(ANCHORING) => match self.tables.anchors.find(AnchorKey::new(ctx, site, callee)) {
                Some(known) => known,
                None => self.learn_step(step),
            },
            Some(delta) => ContextId(ctx.0.wrapping_add(delta)),
            None => self.learn_step(step),
        }
    }

    /// Returns the number of an event at `site` in the frame of `caller` with the number `ctx`.
    #[inline]
    pub fn encode_event(&self, ctx: ContextId, site: SiteId, caller: MethodId) -> ContextId {
        self.encode_call(ctx, site, caller, MethodId::EVENT)
    }

    /// Returns the callers of `last` in context `id`, innermost first.
    ///
    /// For a number from [`encode_event`](Self::encode_event), `last` is [`MethodId::EVENT`]; the first frame is then
    /// the event's own place.
    ///
    /// # Errors
    /// If `id` is not a number that was handed out for `last`.
    pub fn decode_context(
        &self,
        id: ContextId,
        last: MethodId,
    ) -> Result<Vec<ContextFrame>, DecodeError> {
        self.lock_learner().graph.decode_context(id, last)
    }

    /// Returns the caller of `last` in context `id`, and the caller's own context: see [`VersionedGraph::find_caller`].
    ///
    /// # Errors
    /// As [`ContextEncoder::decode_context`].
    pub fn find_caller(
        &self,
        id: ContextId,
        last: MethodId,
    ) -> Result<Option<(ContextId, ContextFrame)>, DecodeError> {
        self.lock_learner().graph.find_caller(id, last)
    }

    /// Removes code that will never run again from the graph and the tables.
    ///
    /// Numbers of contexts with such code become unknown here; they are not reused.
    pub fn sweep_dead_code(&self, gone: &dyn DeadCode) {
        if self.lock_learner().sweep_dead_code(&self.tables, gone) {
            // Relaxed: a count on which no other data depends.
            self.sweeps.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how often dead code was removed.
    pub fn sweep_count(&self) -> u64 {
        // Relaxed: as above.
        self.sweeps.load(Ordering::Relaxed)
    }

    /// Returns, for each number, whether it belongs to `last` and its context has not been removed.
    pub fn check_liveness(&self, numbers: &[ContextId], last: MethodId) -> Vec<bool> {
        let mut survey = LivenessSurvey::new();
        let mut living = vec![false; numbers.len()];
        for piece in sort_ascending(numbers).chunks(NUMBERS_AT_ONCE) {
            let learner = self.lock_learner();
            for (number, at) in piece {
                if let Some(lives) = living.get_mut(*at) {
                    *lives = survey.is_live(&learner.graph, *number, last);
                }
            }
        }
        living
    }

    /// Returns the tables for readers that look up numbers themselves; see the layout in [`RawTables`].
    pub fn raw_tables(&self) -> RawTables {
        self.tables.as_raw()
    }

    /// Returns how long threads waited to change or read the graph.
    pub fn lock_wait(&self) -> &LockWait {
        &self.learner_wait
    }

    pub fn collect_stats(&self) -> EncoderStats {
        let learner = self.lock_learner();
        EncoderStats {
            nodes: learner.graph.node_count(),
            transitions: learner.graph.transition_count(),
            anchors: learner.graph.anchor_count(),
            versions: learner.graph.version_count(),
            bases: learner.graph.base_count(),
            slow_lookups: learner.slow_lookups,
            // Relaxed: a count on which no other data depends.
            unknown: self.unknown.load(Ordering::Relaxed),
            refused: learner.refused,
            re_encodings: learner.adaptation.re_encodings,
            re_encoding_time: learner.adaptation.duration,
            memory_bytes: learner.memory_bytes() + self.tables.memory_bytes(),
        }
    }

    /// Passes the journal to `f`, under the lock that orders all changes. `f` must not request numbers.
    pub fn with_journal<R>(&self, f: impl FnOnce(&mut J) -> R) -> R {
        f(&mut self.lock_learner().journal)
    }

    #[cold]
    fn learn_step(&self, step: CallStep) -> ContextId {
        if step.context == ContextId::UNKNOWN {
            return self.count_unknown(Err(EncodeError));
        }
        self.count_unknown(self.lock_learner().learn_step(&self.tables, step))
    }

    fn count_unknown(&self, number: Result<ContextId, EncodeError>) -> ContextId {
        number.unwrap_or_else(|EncodeError| {
            // Relaxed: a count on which no other data depends.
            self.unknown.fetch_add(1, Ordering::Relaxed);
            ContextId::UNKNOWN
        })
    }

    /// Locks the learner. A panic of the journal leaves no partial change, so a poisoned lock can be used.
    fn lock_learner(&self) -> MutexGuard<'_, GraphLearner<J>> {
        self.learner_wait.acquire_lock(
            || match self.learner.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            },
            || self.learner.lock().unwrap_or_else(PoisonError::into_inner),
        )
    }
}
