//! Collapsed stacks for flame graphs: `a.b.C.m;a.b.C.n 24`, root first.

use std::collections::HashMap;
use std::io::{self, Write};

use lucce_callgraph::{ContextId, Frame, MethodId, SiteId};
use lucce_tracelog::EventTypeId;

use crate::contexts::Context;
use crate::prints::{Printed, fingerprint};
use crate::profile::{Profile, Tick};

/// What the number at a line's end says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Value {
    /// In the unit of the events' type.
    #[default]
    Sum,
    Count,
}

impl Value {
    #[must_use]
    pub fn of(self, context: &Context) -> u64 {
        match self {
            Value::Sum => context.value,
            Value::Count => context.count,
        }
    }
}

/// What the end of a stack is called by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Leaf {
    id: ContextId,
    event: EventTypeId,
    site: SiteId,
}

/// Stacks of methods: contexts that differ in lines only are one.
pub struct Collapsed {
    /// One context of each stack, and the sum; the largest first.
    stacks: Vec<(Leaf, u64)>,
    leaf_type: bool,
}

impl Collapsed {
    /// `leaf_type`: the allocated type is one more frame at the end. Contexts that were asked for
    /// are decoded again, so that memory does not grow with stacks' lengths.
    #[must_use]
    pub fn new(
        profile: &Profile,
        contexts: &[Context],
        value: Value,
        leaf_type: bool,
        tick: Tick<'_>,
    ) -> Self {
        let ids: Vec<_> = contexts.iter().map(|context| context.id).collect();
        let stacks = profile.prints(&ids, tick, |frame| frame.method);
        let mut sums: HashMap<u128, (Leaf, u64)> = HashMap::new();
        for (context, stack) in contexts.iter().zip(stacks) {
            let Ok(stack) = stack else { continue };
            let print = print(profile, &stack, context, leaf_type);
            let leaf = Leaf {
                id: context.id,
                event: context.event,
                site: context.site,
            };
            let sum = sums.entry(print).or_insert((leaf, 0));
            sum.1 = sum.1.saturating_add(value.of(context));
        }
        let mut stacks: Vec<_> = sums.into_values().filter(|(_, sum)| *sum > 0).collect();
        stacks.sort_unstable_by_key(|(leaf, sum)| (u64::MAX - sum, *leaf));
        Collapsed { stacks, leaf_type }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// `tick` is told how many stacks were written.
    ///
    /// # Errors
    /// The output's.
    pub fn write(&self, profile: &Profile, out: &mut dyn Write, tick: Tick<'_>) -> io::Result<()> {
        let mut names = HashMap::new();
        for (leaf, value) in &self.stacks {
            let frames = profile.frames(leaf.id).unwrap_or_default();
            write_stack(profile, &frames, &mut names, out)?;
            if self.leaf_type
                && let Some(name) = profile.detail_at(leaf.event, leaf.site)
            {
                write!(out, ";{name}")?;
            }
            writeln!(out, " {value}")?;
            tick(1);
        }
        Ok(())
    }
}

fn write_stack(
    profile: &Profile,
    frames: &[Frame],
    names: &mut HashMap<MethodId, String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut separator = "";
    for frame in frames.iter().rev() {
        let name = names.entry(frame.method);
        let name = name.or_insert_with(|| profile.code.method_name(frame.method));
        write!(out, "{separator}{name}")?;
        separator = ";";
    }
    Ok(())
}

/// `stack`: the fingerprint of the methods.
fn print(profile: &Profile, stack: &Printed, context: &Context, leaf_type: bool) -> u128 {
    let leaf = profile.detail_at(context.event, site(stack.leaf.as_ref()));
    fingerprint((stack.print, leaf.filter(|_| leaf_type)))
}

fn site(leaf: Option<&Frame>) -> SiteId {
    leaf.map_or(SiteId::NONE, |leaf| leaf.site)
}
