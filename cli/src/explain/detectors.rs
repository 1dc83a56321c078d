//! The table of detectors, and the detectors of exceptions, locks, leaks and threads.

use std::collections::HashMap;

use lucce_command::{format_plural, grouped, percent_of};
use lucce_decoder::{ALLOC, LEAK, StackFrame, is_jdk_name};

use super::allocation_rules::find_wasteful_allocations;
use super::finding::{
    ContextSums, Finding, FindingCost, SourceLine, per_run, share_of, through_pattern,
};
use super::prepared_run::{LeakedObjects, PathIndex, PreparedRun, RunContext};
use super::repeated_calls::find_repeated_calls;
use super::requested_collections::{REQUESTED_COLLECTIONS, find_requested_collections};
use crate::amounts::format_amount;

/// A detector of one kind of problem.
pub struct Detector {
    pub name: &'static str,
    /// What it finds.
    pub summary: &'static str,
    /// The kinds of events it needs; one of them suffices.
    pub kinds: &'static [&'static str],
    pub find: for<'f> fn(&PreparedRun<'f>) -> Vec<Finding<'f>>,
}

const EXCEPTION: &str = "exception";
const LOCK: &str = "lock";
const THREAD: &str = "thread";

/// All detectors.
pub static DETECTORS: [Detector; 7] = [
    Detector {
        name: "leak",
        summary: "objects of one context of which ever more live on; proven by collections of the old generation",
        kinds: &[LEAK.name],
        find: find_leaks,
    },
    Detector {
        name: "n+1",
        summary: "a query, an HTTP call or a cache call that each run of an entry makes several times",
        kinds: &[ALLOC.name],
        find: find_repeated_calls,
    },
    Detector {
        name: "exceptions",
        summary: "exceptions for control flow: thrown and caught again and again at one own line",
        kinds: &[EXCEPTION, ALLOC.name],
        find: find_exceptions,
    },
    Detector {
        name: "lock",
        summary: "a monitor or lock at which own lines wait for each other",
        kinds: &[LOCK],
        find: find_contention,
    },
    Detector {
        name: "threads",
        summary: "threads that one own line starts again and again",
        kinds: &[THREAD],
        find: find_thread_starts,
    },
    Detector {
        name: "gc",
        summary: "System.gc() called by own code again and again",
        kinds: &[REQUESTED_COLLECTIONS],
        find: find_requested_collections,
    },
    Detector {
        name: "allocations",
        summary: "boxing, iterators, capturing lambdas, String.format, patterns and formats built in a loop, BigDecimal, JSON mappers, growing collections, large and empty arrays",
        kinds: &[ALLOC.name],
        find: find_wasteful_allocations,
    },
];

/// Fewer exceptions of one line are no finding.
const MIN_EXCEPTIONS: u64 = 100;

fn find_exceptions<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    match run.has_kind(EXCEPTION) {
        true => find_caught_exceptions(run),
        false => find_made_exceptions(run),
    }
}

/// Exceptions that the VM reported.
fn find_caught_exceptions<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(EXCEPTION), |context| {
        let type_name = context.detail.strip_suffix(" (caught)")?;
        let is_own = run.is_direct(context.path) && !loads_class(run, context.path);
        Some((run.source_line(context.path).filter(|_| is_own)?, type_name))
    });
    let traces = sum_stack_traces(run);
    let findings = sums
        .into_sorted()
        .into_iter()
        .filter_map(|((line, type_name), sum)| {
            let place = run.place_frame(sum.path)?;
            let cost = match traces.get(&line) {
                Some(bytes) => stack_trace_cost(run, *bytes),
                None => exception_share(sum.sum.count, run.total(EXCEPTION).count),
            };
            let sentence = format!("{} × {type_name} thrown and caught", grouped(sum.sum.count));
            (sum.sum.count >= MIN_EXCEPTIONS).then(|| Finding {
                detector: "exceptions",
                sentence: sentence + &per_run(run, sum.path, sum.sum.count),
                count: sum.sum.count,
                counted: "exceptions that the VM reported as caught".into(),
                cost,
                place,
                path: sum.path,
                advice: EXCEPTION_ADVICE.into(),
                command: format!(
                    "report --event exception --through {}",
                    through_pattern(place)
                ),
            })
        });
    findings.collect()
}

const EXCEPTION_ADVICE: &str = "Test before the call, or return the outcome: an exception with its stack trace costs far more.";

fn exception_share(count: u64, whole: u64) -> FindingCost {
    FindingCost {
        // A share of exceptions is no share of work: it is below shares of bytes.
        share: share_of(count, whole) / 100.0,
        text: format!("{:.1}% of all exceptions", percent_of(count, whole)),
    }
}

/// Exceptions made, for runs without the kind `exception`: objects of types named so.
fn find_made_exceptions<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(ALLOC.name), |context| {
        let is_exception = ["Exception", "Error"]
            .iter()
            .any(|end| context.detail.ends_with(end));
        let is_own = run.is_direct(context.path) && !loads_class(run, context.path);
        let line = run
            .source_line(context.path)
            .filter(|_| is_exception && is_own)?;
        Some((line, context.detail))
    });
    let traces = sum_stack_traces(run);
    let about = if run.is_sampled(ALLOC.name) {
        "about "
    } else {
        ""
    };
    let findings = sums
        .into_sorted()
        .into_iter()
        .filter_map(|((line, type_name), sum)| {
            let count = sum.sum.count;
            if count < MIN_EXCEPTIONS || !run.is_reliable(sum.sum) {
                return None;
            }
            let place = run.place_frame(sum.path)?;
            let bytes = traces.get(&line).copied().unwrap_or_default();
            let sentence = format!("{about}{} × {type_name} made", grouped(count));
            Some(Finding {
                detector: "exceptions",
                sentence: sentence + &per_run(run, sum.path, count),
                count,
                counted: format!(
                    "objects of {type_name}; events=exception counts what is thrown and caught"
                ),
                cost: stack_trace_cost(run, bytes.saturating_add(sum.sum.value)),
                place,
                path: sum.path,
                advice: EXCEPTION_ADVICE.into(),
                command: format!("report --through {}", through_pattern(place)),
            })
        });
    findings.collect()
}

/// The bytes of the exceptions' stack traces, by the own line that makes the exceptions.
fn sum_stack_traces<'f>(run: &PreparedRun<'f>) -> HashMap<SourceLine<'f>, u64> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(ALLOC.name), |context| {
        run.source_line(thrower_of_trace(run, context)?)
    });
    let sums = sums.into_sorted().into_iter();
    sums.map(|(line, sum)| (line, sum.sum.value)).collect()
}

fn stack_trace_cost(run: &PreparedRun<'_>, bytes: u64) -> FindingCost {
    let whole = run.total(ALLOC.name).value;
    FindingCost {
        share: share_of(bytes, whole),
        text: format!(
            "{:.1}% of the allocated bytes, for stack traces",
            percent_of(bytes, whole)
        ),
    }
}

fn is_stack_trace(run: &PreparedRun<'_>, context: &RunContext<'_>) -> bool {
    let leaf = run.frame(context.path);
    leaf.is_some_and(|leaf| {
        leaf.class == "java.lang.Throwable" && leaf.method == "fillInStackTrace"
    })
}

/// The outermost constructor of the exception whose stack trace is filled in.
fn exception_constructor(run: &PreparedRun<'_>, path: PathIndex) -> Option<PathIndex> {
    let constructs =
        |frame: &StackFrame| frame.method == "<init>" || frame.method == "fillInStackTrace";
    let outwards = run.paths_outwards(path);
    let constructors = outwards.take_while(|path| run.frame(*path).is_some_and(constructs));
    constructors.last()
}

/// The path that makes the exception.
fn thrower_path(run: &PreparedRun<'_>, path: PathIndex) -> Option<PathIndex> {
    run.caller(exception_constructor(run, path)?)
}

/// The path that makes an exception at an own line or by the JDK alone, if the allocation is a part of its stack trace.
fn thrower_of_trace(run: &PreparedRun<'_>, context: &RunContext<'_>) -> Option<PathIndex> {
    let thrower = is_stack_trace(run, context).then(|| thrower_path(run, context.path))??;
    (run.is_direct(thrower) && !loads_class(run, thrower)).then_some(thrower)
}

/// Whether a class loader searches: it throws for each loader that does not have the class.
fn loads_class(run: &PreparedRun<'_>, path: PathIndex) -> bool {
    run.frames_between(path)
        .any(|frame| frame.method == "loadClass")
}

/// Shorter waits in sum are no finding.
const MIN_WAIT_NS: u64 = 50_000_000;
/// Fewer waits are no finding.
const MIN_WAITS: u64 = 10;
/// Frames of the JDK between an own line and a monitor of a class that the line uses, such as a synchronized collection.
const MAX_MONITOR_DEPTH: usize = 3;

/// Lines of own code that wait for a monitor or lock which another thread holds.
fn find_contention<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(LOCK), |context| {
        let monitor = contended_lock(run, context)?;
        Some((monitor, run.source_line(context.path)?))
    });
    let lines = sums.into_sorted();
    let groups = lines.chunk_by(|a, b| a.0.0 == b.0.0);
    let findings = groups.filter_map(|group| {
        let most = group.iter().max_by_key(|(_, sum)| sum.sum.value)?;
        let ((monitor, _), largest) = most;
        let count: u64 = group.iter().map(|(_, sum)| sum.sum.count).sum();
        let wait: u64 = group.iter().map(|(_, sum)| sum.sum.value).sum();
        if wait < MIN_WAIT_NS || count < MIN_WAITS {
            return None;
        }
        let place = run.place_frame(largest.path)?;
        let others = group.iter().filter(|(_, sum)| sum.path != largest.path);
        let others: Vec<String> = others
            .filter_map(|(_, sum)| Some(run.place_frame(sum.path)?.to_string()))
            .collect();
        let also = match others.is_empty() {
            true => String::new(),
            false => format!(", also at {}", others.join(", ")),
        };
        Some(Finding {
            detector: "lock",
            sentence: format!(
                "{} for {monitor}: {} in sum{also}",
                format_plural(count, "wait"),
                format_amount(wait as f64, "ns")
            ),
            count,
            counted: format!("waits to acquire locks of class {monitor}"),
            cost: FindingCost {
                share: share_of(wait, run.duration_ns()),
                text: format!(
                    "{:.1}% of the run's time, over all threads",
                    percent_of(wait, run.duration_ns())
                ),
            },
            place,
            path: largest.path,
            advice: "Hold the lock for less: move slow calls out of it, or split what it protects."
                .into(),
            command: format!("report --event lock --through {}", through_pattern(place)),
        })
    });
    findings.collect()
}

/// The class of the lock that own code waits to acquire, itself or by the JDK's class that it calls. Waiting for a condition
/// or for work is no contention, and a lock deep inside the JDK is none of the program's.
fn contended_lock<'f>(run: &PreparedRun<'f>, context: &RunContext<'f>) -> Option<&'f str> {
    if !run.is_direct(context.path) {
        return None;
    }
    if let Some(monitor) = context.detail.strip_suffix(" (enter)") {
        let depth = run.frames_between(context.path).count();
        return (depth <= MAX_MONITOR_DEPTH).then_some(monitor);
    }
    let parked = context.detail.strip_suffix(" (park)")?;
    let is_lock = parked.starts_with("java.util.concurrent.locks.Reentrant");
    let parks = |frame: &StackFrame| {
        let packages = ["java.util.concurrent.locks.", "jdk.internal.misc."];
        packages
            .iter()
            .any(|package| frame.class.starts_with(package))
    };
    (is_lock && run.frames_between(context.path).all(parks)).then_some(parked)
}

/// One finding for each line of own code, whatever the types of its objects.
fn find_leaks<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let mut lines: Vec<(&'f StackFrame, Vec<&LeakedObjects<'f>>)> = Vec::new();
    for leak in run.leaks() {
        let Some(place) = run.place_frame(leak.path) else {
            continue;
        };
        match lines.iter_mut().find(|(known, _)| *known == place) {
            Some((_, leaks)) => leaks.push(leak),
            None => lines.push((place, vec![leak])),
        }
    }
    let findings = lines.into_iter().filter_map(|(place, leaks)| {
        // The type with most objects among those of the program, else of all.
        let is_own =
            |leak: &LeakedObjects<'_>| leak.type_name.contains('.') && !is_jdk_name(leak.type_name);
        let main = leaks
            .iter()
            .max_by_key(|leak| (is_own(leak), leak.live.count))?;
        let others = match leaks.len() {
            1 => String::new(),
            types => format!(" and {}", format_plural(types as u64 - 1, "more type")),
        };
        let (count, bytes) = leaks.iter().fold((0, 0), |(count, bytes): (u64, u64), leak| {
            (
                count.saturating_add(leak.live.count),
                bytes.saturating_add(leak.live.value),
            )
        });
        Some(Finding {
            detector: "leak",
            sentence: format!(
                "about {} of {}{others} live on, {}, and ever more",
                format_plural(count, "object"),
                main.type_name,
                format_amount(bytes as f64, "bytes")
            ),
            count,
            counted: "objects estimated from followed ones, which collections of the old generation left alive".into(),
            cost: FindingCost {
                // It ends the program in the end, so it comes first.
                share: 1.0,
                text: "the heap, in the end".into(),
            },
            place,
            path: main.path,
            advice: "Remove what is not needed, or bound the collection that holds it.".into(),
            command: "leaks".into(),
        })
    });
    findings.collect()
}

/// Fewer threads of one line are no finding: pools start some.
const MIN_THREADS: u64 = 50;

fn find_thread_starts<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(THREAD), |context| {
        run.source_line(context.path)
    });
    let whole = run.total(THREAD).count;
    let findings = sums.into_sorted().into_iter().filter_map(|(_, sum)| {
        let count = sum.sum.count;
        let place = run.place_frame(sum.path)?;
        (count >= MIN_THREADS).then(|| Finding {
            detector: "threads",
            sentence: format!(
                "{} started{}",
                format_plural(count, "thread"),
                per_run(run, sum.path, count)
            ),
            count,
            counted: "thread starts".into(),
            cost: FindingCost {
                share: share_of(count, whole) / 100.0,
                text: format!("{:.1}% of all thread starts", percent_of(count, whole)),
            },
            place,
            path: sum.path,
            advice: "Keep one pool for all requests.".into(),
            command: format!("report --event thread --through {}", through_pattern(place)),
        })
    });
    findings.collect()
}
