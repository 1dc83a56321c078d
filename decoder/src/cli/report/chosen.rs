//! Which events a report is of: types, stacks through a method, and no threads that wait for work.

use lucce_decoder::{Context, Counted, Joined, KindTotal, Profile, Sums, Traces, is_idle};
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

    pub fn is_type(&self, name: &str) -> bool {
        self.class.is_none_or(|class| class.is_match(name))
    }

    /// Keeps contexts through the method that was asked for, and returns those that are idle.
    pub fn sort_out(&self, profile: &Profile, list: &mut Vec<Context>) -> Vec<Context> {
        if self.through.is_none() && !self.without_idle {
            return Vec::new();
        }
        let mut traces = Traces::new(profile);
        let with_trace = list.drain(..).map(|context| {
            let trace = traces.of(context.id);
            (context, trace.ok())
        });
        let with_trace: Vec<_> = with_trace.collect();
        let matching = |is_it: &dyn Fn(&str) -> bool| {
            traces.sums(|_, frame| u64::from(is_it(&frame.called())))
        };
        let through = self
            .through
            .map(|regex| matching(&|method| regex.is_match(method)));
        let idle = self.without_idle.then(|| matching(&is_idle));
        let has = |sums: &Sums, trace| sums.of(trace) > 0;
        let mut left_out = Vec::new();
        for (context, trace) in with_trace {
            let is_through = match (&through, trace) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(sums), Some(trace)) => has(sums, trace),
            };
            let is_idle = trace
                .zip(idle.as_ref())
                .is_some_and(|(trace, sums)| has(sums, trace));
            match (is_through, is_idle) {
                (true, false) => list.push(context),
                (true, true) => left_out.push(context),
                (false, _) => {}
            }
        }
        left_out
    }

    /// Which of a run's events are listed, by nodes of a tree.
    pub fn sorted<'j>(&'j self, joined: &'j Joined) -> Sorted<'j> {
        let through = |regex: &Regex| joined.through(|method| regex.is_match(method));
        Sorted {
            chosen: self,
            joined,
            through: self.through.map(through),
            idle: self.without_idle.then(|| joined.through(is_idle)),
        }
    }
}

/// Events of a run, as they were chosen.
pub struct Sorted<'j> {
    chosen: &'j Chosen<'j>,
    joined: &'j Joined,
    /// By node.
    through: Option<Vec<bool>>,
    idle: Option<Vec<bool>>,
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
            true if self.idle.as_ref().is_some_and(at) => Sort::Idle,
            true => Sort::Wanted,
        }
    }
}
