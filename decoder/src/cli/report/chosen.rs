//! Which events a report is of: types, stacks through a method, and no threads that wait for work.

use lucce_decoder::{Context, Counted, Joined, Kind, Profile, Sums, Traces};
use regex_lite::Regex;

use super::Args;

/// Methods in which a thread waits because there is nothing to do, as `a.b.C.m`. The queues' and locks'
/// own methods, which threads wait in for other reasons too, are below these.
const IDLE: [&str; 10] = [
    "java.util.concurrent.ThreadPoolExecutor.getTask",
    "java.util.concurrent.ForkJoinPool.awaitWork",
    "java.util.TimerThread.mainLoop",
    "java.lang.ref.ReferenceQueue.remove",
    "java.lang.ref.Reference.waitForReferencePendingList",
    "org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask",
    "org.eclipse.jetty.util.thread.QueuedThreadPool.idleJobPoll",
    "org.eclipse.jetty.util.thread.QueuedThreadPool$Runner.idleJobPoll",
    "io.netty.util.concurrent.SingleThreadEventExecutor.takeTask",
    "io.netty.util.HashedWheelTimer$Worker.waitForNextTick",
];

pub struct Chosen<'a> {
    class: Option<&'a Regex>,
    through: Option<&'a Regex>,
    /// Idle threads are left out.
    without_idle: bool,
}

impl<'a> Chosen<'a> {
    pub fn new(args: &'a Args, kind: &Kind) -> Self {
        Chosen {
            class: args.class.as_ref(),
            through: args.through.as_ref(),
            without_idle: kind.unit == "ns" && !args.idle && args.through.is_none(),
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

    /// Which of the counted events of a run are meant.
    pub fn rows<'j>(&'j self, joined: &'j Joined, kind: u32) -> impl Fn(&Counted) -> bool + 'j {
        let through = self
            .through
            .map(|regex| joined.through(|method| regex.is_match(method)));
        let idle = self.without_idle.then(|| joined.through(is_idle));
        let at = |of: &[bool], row: &Counted| of.get(row.node.0 as usize).copied();
        move |row| {
            let what = row.what.and_then(|what| joined.names.types.get(what));
            row.kind == kind
                && row.count > 0
                && self.is_type(what.map_or("", String::as_str))
                && through.as_ref().is_none_or(|of| at(of, row) == Some(true))
                && idle.as_ref().is_none_or(|of| at(of, row) != Some(true))
        }
    }
}

fn is_idle(method: &str) -> bool {
    IDLE.contains(&method)
}
