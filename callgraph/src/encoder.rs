//! Numbers for calling contexts: a lock-free lookup, and one mutex for what is seen first.

use std::sync::{PoisonError, TryLockError};

use crate::anchor_table::Call;
use crate::graph::{Graph, Survey, ascending};
use crate::learner::{Learner, Lost, Step};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use crate::tables::{RawTables, Tables};
use crate::transition_table::{ANCHORING, Key};
use crate::{
    ContextId, DecodeError, Frame, Gone, Journal, Layout, LockWait, MethodId, Plan, Policy, SiteId,
    Stats, TableMemory,
};

/// So many numbers are looked at before others may learn again.
const NUMBERS_AT_ONCE: usize = 1024;

/// Shared by all threads. A site must always come with the same caller. Ids out of range and
/// numbers of other encoders give [`ContextId::UNKNOWN`] at the latest when they are learned.
pub struct Encoder<J> {
    layout: Layout,
    tables: Tables,
    learner: Mutex<Learner<J>>,
    learner_wait: LockWait,
    unknown: AtomicU64,
    sweeps: AtomicU64,
}

impl<J: Journal> Encoder<J> {
    pub fn new(layout: Layout, policy: Policy, journal: J) -> Self {
        Self::with(layout, policy, journal, None, None)
    }

    /// With numbers that are decided in advance, for the policy `static`.
    pub fn with_plan(layout: Layout, policy: Policy, journal: J, plan: Box<dyn Plan>) -> Self {
        Self::with(layout, policy, journal, Some(plan), None)
    }

    /// With tables in a memory of their own.
    pub fn with(
        layout: Layout,
        policy: Policy,
        journal: J,
        plan: Option<Box<dyn Plan>>,
        memory: Option<&'static dyn TableMemory>,
    ) -> Self {
        let mut learner = Learner::new(Graph::new(layout), policy, journal);
        learner.plan = plan;
        Encoder {
            layout,
            tables: Tables::new(layout, policy.anchor_budget, memory),
            learner: Mutex::new(learner),
            learner_wait: LockWait::new(),
            unknown: AtomicU64::new(0),
            sweeps: AtomicU64::new(0),
        }
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The number of a thread's first frame.
    pub fn root(&self, head: MethodId) -> ContextId {
        match self.tables.anchors.find(Call::entry(head)) {
            Some(known) => known,
            None => self.given(self.lock().root(&self.tables, head)),
        }
    }

    /// The number of `callee`, called at `site` by the frame of `caller` with number `ctx`.
    #[inline]
    pub fn step(
        &self,
        ctx: ContextId,
        site: SiteId,
        caller: MethodId,
        callee: MethodId,
    ) -> ContextId {
        let step = Step {
            context: ctx,
            site,
            caller,
            callee,
        };
        let key = Key::new(self.layout.version(ctx), site, callee);
        match key.and_then(|key| self.tables.transition(key)) {
            Some(ANCHORING) => match self.tables.anchors.find(Call::new(ctx, site, callee)) {
                Some(known) => known,
                None => self.learn(step),
            },
            Some(delta) => ContextId(ctx.0.wrapping_add(delta)),
            None => self.learn(step),
        }
    }

    /// The number to hand out for an event at `site` in the frame of `caller` with number `ctx`.
    #[inline]
    pub fn event(&self, ctx: ContextId, site: SiteId, caller: MethodId) -> ContextId {
        self.step(ctx, site, caller, MethodId::EVENT)
    }

    /// The callers of `last` in context `id`, innermost first. `last` is [`MethodId::EVENT`] for a
    /// number from [`event`](Self::event): the first frame is then the event's own place.
    ///
    /// # Errors
    /// If `id` is not a number that was handed out for `last`.
    pub fn decode(&self, id: ContextId, last: MethodId) -> Result<Vec<Frame>, DecodeError> {
        self.lock().graph.decode(id, last)
    }

    /// The caller of `last` in context `id`, and the caller's own context: see [`Graph::caller`].
    ///
    /// # Errors
    /// As `decode`.
    pub fn caller(
        &self,
        id: ContextId,
        last: MethodId,
    ) -> Result<Option<(ContextId, Frame)>, DecodeError> {
        self.lock().graph.caller(id, last)
    }

    /// Code that will never run again leaves the graph and the tables. Numbers of contexts with such code are then
    /// unknown here; they are given to nothing else.
    pub fn sweep(&self, gone: &dyn Gone) {
        if self.lock().sweep(&self.tables, gone) {
            // Relaxed: a count, nothing depends on it.
            self.sweeps.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often something has left.
    pub fn sweeps(&self) -> u64 {
        // Relaxed: as above.
        self.sweeps.load(Ordering::Relaxed)
    }

    /// Which of these are numbers for `last` of contexts that have not left.
    pub fn living(&self, numbers: &[ContextId], last: MethodId) -> Vec<bool> {
        let mut survey = Survey::new();
        let mut living = vec![false; numbers.len()];
        for piece in ascending(numbers).chunks(NUMBERS_AT_ONCE) {
            let learner = self.lock();
            for (number, at) in piece {
                if let Some(lives) = living.get_mut(*at) {
                    *lives = survey.lives(&learner.graph, *number, last);
                }
            }
        }
        living
    }

    /// For readers that look numbers up by themselves; see the layout in [`RawTables`].
    pub fn tables(&self) -> RawTables {
        self.tables.raw()
    }

    /// How long threads waited until they could change or read the graph.
    pub fn lock_wait(&self) -> &LockWait {
        &self.learner_wait
    }

    pub fn stats(&self) -> Stats {
        let learner = self.lock();
        Stats {
            nodes: learner.graph.nodes(),
            transitions: learner.graph.transitions(),
            anchors: learner.graph.anchors(),
            versions: learner.graph.versions(),
            bases: learner.graph.bases(),
            slow_lookups: learner.slow_lookups,
            // Relaxed: a count, nothing depends on it.
            unknown: self.unknown.load(Ordering::Relaxed),
            refused: learner.refused,
            re_encodings: learner.adaptation.done,
            re_encoding: learner.adaptation.took,
            memory: learner.memory() + self.tables.bytes(),
        }
    }

    /// The journal, under the lock that orders all changes. `f` must not ask for numbers.
    pub fn journal<R>(&self, f: impl FnOnce(&mut J) -> R) -> R {
        f(&mut self.lock().journal)
    }

    #[cold]
    fn learn(&self, step: Step) -> ContextId {
        if step.context == ContextId::UNKNOWN {
            return self.given(Err(Lost));
        }
        self.given(self.lock().step(&self.tables, step))
    }

    fn given(&self, number: Result<ContextId, Lost>) -> ContextId {
        number.unwrap_or_else(|Lost| {
            // Relaxed: a count, nothing depends on it.
            self.unknown.fetch_add(1, Ordering::Relaxed);
            ContextId::UNKNOWN
        })
    }

    /// A panic of the journal leaves no half change behind, so poison is no reason to stop.
    fn lock(&self) -> MutexGuard<'_, Learner<J>> {
        self.learner_wait.acquire(
            || match self.learner.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            },
            || self.learner.lock().unwrap_or_else(PoisonError::into_inner),
        )
    }
}
