//! Collapsed stacks for flame graphs: `a.b.C.m;a.b.C.n 24`, root first.

use std::collections::HashMap;
use std::io::{self, Write};

use lucce_callgraph::{ContextId, Frame, MethodId, SiteId};
use lucce_tracelog::EventTypeId;

use crate::contexts::Context;
use crate::escape::Collapsed as Escaped;
use crate::prints::{Printed, fingerprint};
use crate::profile::{Profile, Tick};
use crate::traces::{Trace, Traces};

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

/// Stacks as they are printed: contexts that differ in lines or in methods' parameters only are one.
pub struct Collapsed {
    /// One context of each stack, and the sum; the largest first.
    stacks: Vec<(Leaf, u64)>,
    leaf_type: bool,
    /// The sum of those that are not among the stacks.
    rest: u64,
}

impl Collapsed {
    /// `leaf_type`: the allocated type is one more frame at the end.
    #[must_use]
    pub fn new(
        profile: &Profile,
        contexts: &[Context],
        value: Value,
        leaf_type: bool,
        tick: Tick<'_>,
    ) -> Self {
        let ids: Vec<_> = contexts.iter().map(|context| context.id).collect();
        let stacks = profile.prints(&ids, tick, |frame| profile.code.name_key(frame.method));
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
        Collapsed {
            stacks,
            leaf_type,
            rest: 0,
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The sum of all stacks.
    #[must_use]
    pub fn sum(&self) -> u64 {
        let sums = self.stacks.iter().map(|(_, sum)| *sum);
        sums.fold(0, u64::saturating_add)
    }

    /// From now on, all stacks that are not large enough are one, `[rest]`.
    pub fn sum_up(&mut self, is_large: impl Fn(u64) -> bool) {
        let number = self.stacks.partition_point(|(_, sum)| is_large(*sum));
        let rest = self.stacks.split_off(number);
        let rest = rest.into_iter().map(|(_, sum)| sum);
        self.rest = rest.fold(self.rest, u64::saturating_add);
    }

    /// The stacks with all that is needed to write them.
    #[must_use]
    pub fn written<'c>(&'c self, profile: &'c Profile) -> Written<'c> {
        let mut traces = Traces::new(profile);
        let stacks = self.stacks.iter().map(|(leaf, sum)| {
            let trace = traces.of(leaf.id).unwrap_or(Trace::EMPTY);
            (*leaf, trace, *sum)
        });
        let stacks = stacks.collect();
        let mut names = HashMap::new();
        for (_, frame, _) in traces.nodes() {
            let name = || Escaped(&profile.code.method_name(frame.method)).to_string();
            names.entry(frame.method).or_insert_with(name);
        }
        Written {
            collapsed: self,
            profile,
            traces,
            stacks,
            names,
        }
    }
}

/// See [`Collapsed::written`].
pub struct Written<'c> {
    collapsed: &'c Collapsed,
    profile: &'c Profile,
    traces: Traces<'c>,
    stacks: Vec<(Leaf, Trace, u64)>,
    names: HashMap<MethodId, String>,
}

impl Written<'_> {
    /// About how many bytes they are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        const LINE: u64 = 10;
        let sums = self
            .traces
            .sums(|frame, _| self.name(frame).len() as u64 + 1);
        let lines = self
            .stacks
            .iter()
            .map(|(_, trace, _)| sums.of(*trace).saturating_add(LINE));
        lines.fold(0, u64::saturating_add)
    }

    fn name(&self, frame: Frame) -> &str {
        self.names.get(&frame.method).map_or("?", String::as_str)
    }

    /// `tick` is told how many stacks were written.
    ///
    /// # Errors
    /// The output's.
    pub fn write(&self, out: &mut dyn Write, tick: Tick<'_>) -> io::Result<()> {
        self.each(&mut |stack, value| {
            tick(1);
            writeln!(out, "{stack} {value}")
        })
    }

    /// Each stack as text, and what is summed up.
    fn each(&self, tell: &mut dyn FnMut(&str, u64) -> io::Result<()>) -> io::Result<()> {
        let (mut frames, mut text) = (Vec::new(), String::new());
        for (leaf, trace, value) in &self.stacks {
            frames.extend(self.traces.frames(*trace));
            text.clear();
            for frame in frames.drain(..).rev() {
                text.push_str(self.name(frame));
                text.push(';');
            }
            let detail = self.profile.detail_at(leaf.event, leaf.site);
            match detail.filter(|_| self.collapsed.leaf_type) {
                Some(name) => text.push_str(&Escaped(name).to_string()),
                None => {
                    text.pop();
                }
            }
            tell(&text, *value)?;
        }
        match self.collapsed.rest {
            0 => Ok(()),
            rest => tell(REST, rest),
        }
    }

    /// The sum of each stack, by its text.
    fn sums(&self) -> HashMap<u128, u64> {
        let mut sums = HashMap::new();
        let added = self.each(&mut |stack, value| {
            let sum: &mut u64 = sums.entry(fingerprint(stack)).or_default();
            *sum = sum.saturating_add(value);
            Ok(())
        });
        debug_assert!(added.is_ok());
        sums
    }
}

/// Two runs, a line for each stack that either has: `a.b.C.m;a.b.C.n 20 24`, the old sum and the new one, as
/// `difffolded.pl` of FlameGraph prints it. Stacks whose larger sum `admits` does not want are one, `[rest]`. Says how many lines
/// there are.
///
/// # Errors
/// The output's.
pub fn write_difference(
    (old, new): (&Written<'_>, &Written<'_>),
    admits: impl Fn(u64) -> bool,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let (mut both, mut now) = (old.sums(), new.sums());
    let (mut lines, mut rest) = (0, (0_u64, 0_u64));
    let mut line = |stack: &str, sums: (u64, u64)| {
        if !admits(sums.0.max(sums.1)) {
            rest = (rest.0.saturating_add(sums.0), rest.1.saturating_add(sums.1));
            return Ok(());
        }
        lines += 1;
        writeln!(out, "{stack} {} {}", sums.0, sums.1)
    };
    new.each(&mut |stack, _| {
        let print = fingerprint(stack);
        let Some(sum) = now.remove(&print) else {
            return Ok(());
        };
        line(stack, (both.remove(&print).unwrap_or(0), sum))
    })?;
    old.each(&mut |stack, _| match both.remove(&fingerprint(stack)) {
        Some(sum) => line(stack, (sum, 0)),
        None => Ok(()),
    })?;
    if rest != (0, 0) {
        writeln!(out, "{REST} {} {}", rest.0, rest.1)?;
        lines += 1;
    }
    Ok(lines)
}

/// What stands for all stacks that are not shown.
const REST: &str = "[rest]";

/// `stack`: the fingerprint of the methods.
fn print(profile: &Profile, stack: &Printed, context: &Context, leaf_type: bool) -> u128 {
    let leaf = profile.detail_at(context.event, site(stack.leaf.as_ref()));
    fingerprint((stack.print, leaf.filter(|_| leaf_type)))
}

fn site(leaf: Option<&Frame>) -> SiteId {
    leaf.map_or(SiteId::NONE, |leaf| leaf.site)
}
