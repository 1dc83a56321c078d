//! The detector of `System.gc()`, for runs with `events=call:java.lang.System.gc`.

use lucce_command::format_plural;
use lucce_decoder::StackFrame;

use super::finding::{ContextSums, Finding, FindingCost, per_run, through_pattern};
use super::prepared_run::PreparedRun;

/// The kind of events with its pattern.
pub const REQUESTED_COLLECTIONS: &str = "call:java.lang.System.gc";
const CALL: &str = "call";
/// A program may collect once, such as after its start.
const MIN_CALLS: u64 = 2;

pub fn find_requested_collections<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(CALL), |context| {
        let is_collection = run.frame(context.path).is_some_and(is_gc_method);
        // A library's or the JDK's call is none of the line that led there.
        let is_own = is_collection && run.is_direct(context.path);
        run.source_line(context.path).filter(|_| is_own)
    });
    let findings = sums.into_sorted().into_iter().filter_map(|(_, sum)| {
        let count = sum.sum.count;
        let place = run.place_frame(sum.path)?;
        (count >= MIN_CALLS).then(|| Finding {
            detector: "gc",
            sentence: format!(
                "System.gc() called {}{}",
                format_plural(count, "time"),
                per_run(run, sum.path, count)
            ),
            count,
            counted: "calls of System.gc".into(),
            cost: FindingCost {
                // Its time is not known: it comes behind large shares of bytes, and before small ones.
                share: 0.05,
                text: "a collection of the whole heap each time".into(),
            },
            place,
            path: sum.path,
            advice: "Leave it out: the JVM collects when it must. -XX:+DisableExplicitGC ignores the calls.".into(),
            command: format!("report --event call --through {}", through_pattern(place)),
        })
    });
    findings.collect()
}

fn is_gc_method(frame: &StackFrame) -> bool {
    frame.class == "java.lang.System" && frame.method == "gc"
}
