//! All events by stack trace.
//!
//! A trace may have several numbers: the encoder may forget an anchor and number it again. They are
//! one context here, told apart by their traces' fingerprints.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use lucce_callgraph::{ContextId, DecodeError, SiteId};
use lucce_tracelog::Damage;

use crate::events::Share;
use crate::prints::Printed;
use crate::profile::{Profile, Tick};

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
    /// The log's, or the first counter that it does not explain: what a number means is in the log
    /// before anything is counted under it.
    pub damage: Option<Damage>,
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
        let decoded = self.prints(&ids, tick, |frame| frame);
        let mut contexts = Contexts::default();
        let mut known = HashMap::new();
        for (id, decoded) in ids.into_iter().zip(decoded) {
            match decoded {
                Ok(Printed { leaf, print }) => {
                    let site = leaf.map_or(SiteId::NONE, |leaf| leaf.site);
                    contexts.add(self.context(id, site), known.entry(print));
                }
                Err(error) => contexts.unknown.push((id, error)),
            }
        }
        contexts.damage = self
            .damage
            .clone()
            .or_else(|| self.unexplained(&contexts.unknown));
        contexts
    }

    fn unexplained(&self, unknown: &[(ContextId, DecodeError)]) -> Option<Damage> {
        let places = unknown.iter().flat_map(|(id, error)| {
            let shares = self.events.of(*id).iter();
            shares.map(move |share| (share.offset, id, error))
        });
        let (offset, id, error) = places.min_by_key(|(offset, ..)| *offset)?;
        let reason = format!("a counter of {id}, which the log does not explain ({error})");
        Some(Damage {
            offset,
            reason: reason.into(),
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
