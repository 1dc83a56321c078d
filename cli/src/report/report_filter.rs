//! Selects the events of a report: by type, by method, and without idle threads.

use lucce_decoder::{
    ContextCounters, EventContext, KindTotal, MergedCounter, MergedProfile, Profile, TraceTree,
};
use regex_lite::Regex;

use super::ReportArgs;

pub struct ReportFilter<'a> {
    class: Option<&'a Regex>,
    through: Option<&'a Regex>,
    /// Whether idle threads are left out.
    without_idle: bool,
}

impl<'a> ReportFilter<'a> {
    pub fn new(args: &'a ReportArgs, kind: &KindTotal) -> Self {
        ReportFilter {
            class: args.type_pattern.as_ref(),
            through: args.through.as_ref(),
            without_idle: kind.is_time() && !args.idle && args.through.is_none(),
        }
    }

    fn is_type(&self, name: &str) -> bool {
        self.class.is_none_or(|class| class.is_match(name))
    }

    /// Splits events into listed ones, and waits of idle threads.
    pub fn split_idle(
        &self,
        profile: &Profile,
        events: ContextCounters,
    ) -> (ContextCounters, ContextCounters) {
        if !self.without_idle {
            return (events, ContextCounters::default());
        }
        let idle = profile.find_idle_contexts(&events);
        events.partition_counters(|share| !idle.is_idle(share.id, share.event))
    }

    /// Keeps contexts that match `--type` and `--through`.
    pub fn retain_wanted(&self, profile: &Profile, list: &mut Vec<EventContext>) {
        let is_type = |context: &EventContext| {
            context.count > 0 && self.is_type(profile.context_detail(context).unwrap_or_default())
        };
        list.retain(is_type);
        let Some(through) = self.through else {
            return;
        };
        let mut traces = TraceTree::new(profile);
        let with_trace = list.drain(..).filter_map(|context| {
            let trace = traces.insert_trace(context.id).ok()?;
            Some((context, trace))
        });
        let with_trace: Vec<_> = with_trace.collect();
        let matches =
            traces.sum_frames(|_, frame| u64::from(through.is_match(&frame.qualified_method())));
        let wanted = with_trace
            .into_iter()
            .filter(|(_, trace)| matches.trace_sum(*trace) > 0);
        list.extend(wanted.map(|(context, _)| context));
    }

    /// A filter of a run's events, by nodes of the tree.
    pub fn build_row_filter<'j>(&'j self, joined: &'j MergedProfile) -> RowFilter<'j> {
        let through = |regex: &Regex| joined.mark_paths_through(|method| regex.is_match(method));
        RowFilter {
            filter: self,
            joined,
            through: self.through.map(through),
        }
    }
}

/// The filter of a run's events.
pub struct RowFilter<'j> {
    filter: &'j ReportFilter<'j>,
    joined: &'j MergedProfile,
    /// Matching paths, by node.
    through: Option<Vec<bool>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowClass {
    Wanted,
    /// It matches, but its thread is idle.
    Idle,
    Other,
}

impl RowFilter<'_> {
    pub fn classify_row(&self, row: &MergedCounter) -> RowClass {
        let what = row.what.and_then(|what| self.joined.names.types.get(what));
        let at = |of: &Vec<bool>| of.get(row.node.0 as usize) == Some(&true);
        let is_chosen = row.count > 0
            && self.filter.is_type(what.map_or("", String::as_str))
            && self.through.as_ref().is_none_or(at);
        match is_chosen {
            false => RowClass::Other,
            true if self.filter.without_idle && row.is_idle => RowClass::Idle,
            true => RowClass::Wanted,
        }
    }
}
