//! All events by stack trace.
//!
//! A trace may have several numbers: the encoder may forget an anchor and number it again. They are
//! one context here, told apart by a 128-bit hash of the trace.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread;

use lucce_callgraph::{ContextId, DecodeError, Frame, SiteId};

use crate::events::Share;
use crate::profile::{Profile, Tick};

/// Contexts that a worker takes at a time.
const PART: usize = 256;

/// The events of one stack trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Context {
    /// The smallest number of this trace.
    pub id: ContextId,
    /// Its other numbers.
    pub aliases: Vec<ContextId>,
    /// Where the events happened.
    pub site: SiteId,
    pub count: u64,
    pub bytes: u64,
}

/// See [`Profile::contexts`].
#[derive(Default, Debug)]
pub struct Contexts {
    pub list: Vec<Context>,
    /// Numbers with events that the log does not explain.
    pub unknown: Vec<(ContextId, DecodeError)>,
}

impl Contexts {
    #[must_use]
    pub fn count(&self) -> u64 {
        self.list
            .iter()
            .fold(0, |sum, context| sum.saturating_add(context.count))
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.list
            .iter()
            .fold(0, |sum, context| sum.saturating_add(context.bytes))
    }
}

impl Profile {
    /// All contexts with events, in the order of their numbers. `tick` is told how many were
    /// decoded.
    #[must_use]
    pub fn contexts(&self, tick: Tick<'_>) -> Contexts {
        let ids = self.events.ids();
        let decoded = self.decode_all(&ids, tick, |frames| {
            (
                frames.first().map_or(SiteId::NONE, |leaf| leaf.site),
                fingerprint(frames),
            )
        });
        let mut contexts = Contexts::default();
        let mut known = HashMap::new();
        for (id, decoded) in ids.into_iter().zip(decoded) {
            match decoded {
                Ok((site, print)) => {
                    let context = self.context(id, site);
                    contexts.add(context, known.entry(print));
                }
                Err(error) => contexts.unknown.push((id, error)),
            }
        }
        contexts
    }

    /// `f` of every context's frames, in the order of `ids`, on all processors.
    pub fn decode_all<T: Send>(
        &self,
        ids: &[ContextId],
        tick: Tick<'_>,
        f: impl Fn(&[Frame]) -> T + Sync,
    ) -> Vec<Result<T, DecodeError>> {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let part = ids.len().div_ceil(workers).max(PART);
        let decode = |ids: &[ContextId]| -> Vec<_> {
            let each = ids.iter().map(|id| {
                tick(1);
                self.frames(*id).map(|frames| f(&frames))
            });
            each.collect()
        };
        thread::scope(|scope| {
            let decode = &decode;
            let workers: Vec<_> = ids
                .chunks(part)
                .map(|ids| scope.spawn(move || decode(ids)))
                .collect();
            let joined = workers.into_iter().flat_map(|worker| match worker.join() {
                Ok(results) => results,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        })
    }

    fn context(&self, id: ContextId, site: SiteId) -> Context {
        let shares = self.events.of(id);
        let sum = |of: fn(&Share) -> u64| shares.iter().map(of).fold(0, u64::saturating_add);
        let count = sum(|share| share.count);
        let each = self.code.size(site).unwrap_or(0);
        let bytes = sum(|share| share.bytes).saturating_add(count.saturating_mul(each));
        Context {
            id,
            aliases: Vec::new(),
            site,
            count,
            bytes,
        }
    }
}

impl Contexts {
    fn add(&mut self, context: Context, at: Entry<'_, u128, usize>) {
        match at {
            Entry::Vacant(free) => {
                free.insert(self.list.len());
                self.list.push(context);
            }
            Entry::Occupied(index) => {
                if let Some(known) = self.list.get_mut(*index.get()) {
                    known.aliases.push(context.id);
                    known.count = known.count.saturating_add(context.count);
                    known.bytes = known.bytes.saturating_add(context.bytes);
                }
            }
        }
    }
}

/// Equal for equal values, and for others not, as far as 128 bits can tell.
pub(crate) fn fingerprint(value: impl Hash) -> u128 {
    let half = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, &value).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(2)
}
