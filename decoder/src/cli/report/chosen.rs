//! Which events a report is of: types, stacks through a method, and no threads that wait for work.

use lucce_decoder::{Context, Counted, Events, Joined, KindTotal, Profile, Traces};
use regex_lite::Regex;

use super::Args;

pub struct Chosen<'a> {
    class: Option<&'a Regex>,
    through: Option<&'a Regex>,
    /// Idle threads are left out.
    without_idle: bool,
}

impl<'a> Chosen<'a> {
    pub fn new(args: &'a Args, kind: &KindTotal) -> Self {
        Chosen {
            class: args.class.as_ref(),
            through: args.through.as_ref(),
            without_idle: kind.is_time() && !args.idle && args.through.is_none(),
        }
    }

    fn is_type(&self, name: &str) -> bool {
        self.class.is_none_or(|class| class.is_match(name))
    }

    /// Parts the events into those that are listed and those of threads that wait for work.
    pub fn part_idle(&self, profile: &Profile, events: Events) -> (Events, Events) {
        if !self.without_idle {
            return (events, Events::default());
        }
        let idle = profile.idle_contexts(&events);
        events.partition(|share| !idle.holds(share.id, share.event))
    }

    /// Keeps contexts of the type and through the method that were asked for.
    pub fn keep_wanted(&self, profile: &Profile, list: &mut Vec<Context>) {
        let is_type = |context: &Context| {
            context.count > 0 && self.is_type(profile.detail(context).unwrap_or_default())
        };
        list.retain(is_type);
        let Some(through) = self.through else {
            return;
        };
        let mut traces = Traces::new(profile);
        let with_trace = list.drain(..).filter_map(|context| {
            let trace = traces.of(context.id).ok()?;
            Some((context, trace))
        });
        let with_trace: Vec<_> = with_trace.collect();
        let matches = traces.sums(|_, frame| u64::from(through.is_match(&frame.called())));
        let wanted = with_trace
            .into_iter()
            .filter(|(_, trace)| matches.of(*trace) > 0);
        list.extend(wanted.map(|(context, _)| context));
    }

    /// Which of a run's events are listed, by nodes of a tree.
    pub fn sorted<'j>(&'j self, joined: &'j Joined) -> Sorted<'j> {
        let through = |regex: &Regex| joined.through(|method| regex.is_match(method));
        Sorted {
            chosen: self,
            joined,
            through: self.through.map(through),
        }
    }
}

/// Events of a run, as they were chosen.
pub struct Sorted<'j> {
    chosen: &'j Chosen<'j>,
    joined: &'j Joined,
    /// By node.
    through: Option<Vec<bool>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    Wanted,
    /// Wanted, but for a thread that waits for work.
    Idle,
    Other,
}

impl Sorted<'_> {
    pub fn sort(&self, row: &Counted) -> Sort {
        let what = row.what.and_then(|what| self.joined.names.types.get(what));
        let at = |of: &Vec<bool>| of.get(row.node.0 as usize) == Some(&true);
        let is_chosen = row.count > 0
            && self.chosen.is_type(what.map_or("", String::as_str))
            && self.through.as_ref().is_none_or(at);
        match is_chosen {
            false => Sort::Other,
            true if self.chosen.without_idle && row.is_idle => Sort::Idle,
            true => Sort::Wanted,
        }
    }
}
