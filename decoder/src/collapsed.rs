//! Writes collapsed stacks for flame graphs: `a.b.C.m;a.b.C.n 24`, outermost frame first.

use std::collections::HashMap;
use std::io::{self, Write};

use lucce_callgraph::{ContextFrame, ContextId, MethodId, SiteId};
use lucce_tracelog::EventTypeId;

use crate::contexts::EventContext;
use crate::escape::CollapsedFrameText;
use crate::fingerprint::fingerprint_traces;
use crate::fingerprint::{TraceFingerprint, fingerprint_value};
use crate::measure::Measure;
use crate::profile::{Profile, ProgressTick};
use crate::traces::{TraceId, TraceTree};

/// The leaf of a stack: a context and its detail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StackLeaf {
    id: ContextId,
    event: EventTypeId,
    site: SiteId,
}

/// Stacks as they are printed. Contexts that differ only in lines or in methods' parameters are one stack.
pub struct CollapsedStacks {
    /// One context of each stack, and the stack's sum; largest first.
    stacks: Vec<(StackLeaf, u64)>,
    leaf_type: bool,
    /// The sum of the merged small stacks.
    rest: u64,
}

impl CollapsedStacks {
    /// Groups contexts by stack. `leaf_type`: whether the allocated type is one more frame at the end.
    #[must_use]
    pub fn new(
        profile: &Profile,
        contexts: &[EventContext],
        measure: Measure,
        leaf_type: bool,
        tick: ProgressTick<'_>,
    ) -> Self {
        let ids: Vec<_> = contexts.iter().map(|context| context.id).collect();
        let stacks = fingerprint_traces(profile, &ids, tick, |frame| {
            profile.code.name_key(frame.method)
        });
        let mut sums: HashMap<u128, (StackLeaf, u64)> = HashMap::new();
        for (context, stack) in contexts.iter().zip(stacks) {
            let Ok(stack) = stack else { continue };
            let print = fingerprint_context(profile, &stack, context, leaf_type);
            let leaf = StackLeaf {
                id: context.id,
                event: context.event,
                site: context.site,
            };
            let sum = sums.entry(print).or_insert((leaf, 0));
            sum.1 = sum.1.saturating_add(context.amount(measure));
        }
        let mut stacks: Vec<_> = sums.into_values().filter(|(_, sum)| *sum > 0).collect();
        stacks.sort_unstable_by_key(|(leaf, sum)| (u64::MAX - sum, *leaf));
        CollapsedStacks {
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
    pub fn total_value(&self) -> u64 {
        let sums = self.stacks.iter().map(|(_, sum)| *sum);
        sums.fold(0, u64::saturating_add)
    }

    /// Merges all stacks for which `is_large` is false into one, `[rest]`.
    pub fn merge_small_stacks(&mut self, is_large: impl Fn(u64) -> bool) {
        let number = self.stacks.partition_point(|(_, sum)| is_large(*sum));
        let rest = self.stacks.split_off(number);
        let rest = rest.into_iter().map(|(_, sum)| sum);
        self.rest = rest.fold(self.rest, u64::saturating_add);
    }

    /// Resolves all names, for writing.
    #[must_use]
    pub fn prepare_writer<'c>(&'c self, profile: &'c Profile) -> CollapsedWriter<'c> {
        let mut traces = TraceTree::new(profile);
        let stacks = self.stacks.iter().map(|(leaf, sum)| {
            let trace = traces.insert_trace(leaf.id).unwrap_or(TraceId::EMPTY);
            (*leaf, trace, *sum)
        });
        let stacks = stacks.collect();
        let mut names = HashMap::new();
        for (_, frame, _) in traces.nodes() {
            let name = || CollapsedFrameText(&profile.code.method_name(frame.method)).to_string();
            names.entry(frame.method).or_insert_with(name);
        }
        CollapsedWriter {
            collapsed: self,
            profile,
            traces,
            stacks,
            names,
        }
    }
}

/// See [`CollapsedStacks::prepare_writer`].
pub struct CollapsedWriter<'c> {
    collapsed: &'c CollapsedStacks,
    profile: &'c Profile,
    traces: TraceTree<'c>,
    stacks: Vec<(StackLeaf, TraceId, u64)>,
    names: HashMap<MethodId, String>,
}

impl CollapsedWriter<'_> {
    /// Approximate size of the output in bytes.
    #[must_use]
    pub fn estimate_bytes(&self) -> u64 {
        const LINE: u64 = 10;
        let sums = self
            .traces
            .sum_frames(|frame, _| self.escaped_method_name(frame).len() as u64 + 1);
        let lines = self
            .stacks
            .iter()
            .map(|(_, trace, _)| sums.trace_sum(*trace).saturating_add(LINE));
        lines.fold(0, u64::saturating_add)
    }

    fn escaped_method_name(&self, frame: ContextFrame) -> &str {
        self.names.get(&frame.method).map_or("?", String::as_str)
    }

    /// Writes all stacks. Calls `tick` with the number of written stacks.
    ///
    /// # Errors
    /// The output's errors.
    pub fn write(&self, out: &mut dyn Write, tick: ProgressTick<'_>) -> io::Result<()> {
        self.for_each_stack(&mut |stack, value| {
            tick(1);
            writeln!(out, "{stack} {value}")
        })
    }

    /// Calls `tell` with each stack's text and sum.
    fn for_each_stack(&self, tell: &mut dyn FnMut(&str, u64) -> io::Result<()>) -> io::Result<()> {
        let (mut frames, mut text) = (Vec::new(), String::new());
        for (leaf, trace, value) in &self.stacks {
            frames.extend(self.traces.frames_of_trace(*trace));
            text.clear();
            for frame in frames.drain(..).rev() {
                text.push_str(self.escaped_method_name(frame));
                text.push(';');
            }
            let detail = self.profile.event_detail(leaf.event, leaf.site);
            match detail.filter(|_| self.collapsed.leaf_type) {
                Some(name) => text.push_str(&CollapsedFrameText(name).to_string()),
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
    fn sum_by_stack(&self) -> HashMap<u128, u64> {
        let mut sums = HashMap::new();
        let added = self.for_each_stack(&mut |stack, value| {
            let sum: &mut u64 = sums.entry(fingerprint_value(stack)).or_default();
            *sum = sum.saturating_add(value);
            Ok(())
        });
        debug_assert!(added.is_ok());
        sums
    }
}

/// Writes a line for each stack of two runs: `a.b.C.m;a.b.C.n 20 24`, with the old and the new sum, like `difffolded.pl`
/// of FlameGraph. Stacks whose larger sum `admits` rejects are one, `[rest]`. Returns the number of lines.
///
/// # Errors
/// The output's errors.
pub fn write_difference(
    (old, new): (&CollapsedWriter<'_>, &CollapsedWriter<'_>),
    admits: impl Fn(u64) -> bool,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let (mut both, mut now) = (old.sum_by_stack(), new.sum_by_stack());
    let (mut lines, mut rest) = (0, (0_u64, 0_u64));
    let mut line = |stack: &str, sums: (u64, u64)| {
        if !admits(sums.0.max(sums.1)) {
            rest = (rest.0.saturating_add(sums.0), rest.1.saturating_add(sums.1));
            return Ok(());
        }
        lines += 1;
        writeln!(out, "{stack} {} {}", sums.0, sums.1)
    };
    new.for_each_stack(&mut |stack, _| {
        let print = fingerprint_value(stack);
        let Some(sum) = now.remove(&print) else {
            return Ok(());
        };
        line(stack, (both.remove(&print).unwrap_or(0), sum))
    })?;
    old.for_each_stack(
        &mut |stack, _| match both.remove(&fingerprint_value(stack)) {
            Some(sum) => line(stack, (sum, 0)),
            None => Ok(()),
        },
    )?;
    if rest != (0, 0) {
        writeln!(out, "{REST} {} {}", rest.0, rest.1)?;
        lines += 1;
    }
    Ok(lines)
}

/// The name of all merged stacks.
const REST: &str = "[rest]";

/// Fingerprint of a context's line of output. `stack`: the fingerprint of the methods.
fn fingerprint_context(
    profile: &Profile,
    stack: &TraceFingerprint,
    context: &EventContext,
    leaf_type: bool,
) -> u128 {
    let leaf = profile.event_detail(context.event, leaf_site(stack.leaf.as_ref()));
    fingerprint_value((stack.fingerprint, leaf.filter(|_| leaf_type)))
}

fn leaf_site(leaf: Option<&ContextFrame>) -> SiteId {
    leaf.map_or(SiteId::NONE, |leaf| leaf.site)
}
