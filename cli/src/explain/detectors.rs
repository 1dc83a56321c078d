//! The table of detectors, and the detectors of locks, leaks and threads.

use lucce_command::{format_plural, percent_of};
use lucce_decoder::{ALLOC, LEAK, StackFrame, is_jdk_name};
use lucce_options::kinds::{CLASSES, LOCK_WAITS};

use super::allocation_rules::{ALLOCATIONS, find_wasteful_allocations};
use super::contention::{self, find_contention};
use super::counted_calls::{self, find_collections, find_dropped_logging, find_generated_classes};
use super::exceptions::{self, EXCEPTION, find_exceptions};
use super::finding::{ContextSums, Finding, FindingCost, per_run, share_of, through_pattern};
use super::prepared_run::{CALL, COLLECTION_CALLS, LOGGER_CALLS, LeakedObjects, PreparedRun};
use super::repeated_calls::find_repeated_calls;
use crate::amounts::format_amount;

/// A detector of one kind of problem.
pub struct Detector {
    pub name: &'static str,
    /// What it finds.
    pub summary: &'static str,
    /// From which counts on.
    pub threshold: &'static str,
    /// What to do.
    pub advice: &'static str,
    /// The kinds of events it needs; one of them suffices.
    pub kinds: &'static [&'static str],
    pub find: for<'f> fn(&PreparedRun<'f>) -> Vec<Finding<'f>>,
}

const THREAD: &str = "thread";

/// All detectors.
pub static DETECTORS: [Detector; 9] = [
    Detector {
        name: "leak",
        summary: "objects of one context of which ever more live on; proven by collections of the old generation",
        threshold: "the proof of `lucce leaks`",
        advice: LEAK_ADVICE,
        kinds: &[LEAK.name],
        find: find_leaks,
    },
    Detector {
        name: "n+1",
        summary: "a query, an HTTP call or a cache call that each run of an entry makes several times",
        threshold: "100 calls of one line, 4 for each run, 10 runs",
        advice: "Make one call for all of them: a join, a batch, or one request for many keys.",
        kinds: &[ALLOC.name],
        find: find_repeated_calls,
    },
    Detector {
        name: "exceptions",
        summary: "exceptions for control flow, with the handler that catches or drops them: own code throws them, itself or by the JDK, or catches those of a library",
        threshold: "100 of one type at one own line",
        advice: exceptions::ADVICE,
        kinds: &[EXCEPTION, ALLOC.name],
        find: find_exceptions,
    },
    Detector {
        name: "lock",
        summary: "a monitor or lock at which own lines wait for each other",
        threshold: "10 waits, 50 ms in sum",
        advice: contention::ADVICE,
        kinds: &[LOCK_WAITS.name],
        find: find_contention,
    },
    Detector {
        name: "threads",
        summary: "threads that one own line starts again and again",
        threshold: "50 threads",
        advice: THREAD_ADVICE,
        kinds: &[THREAD],
        find: find_thread_starts,
    },
    Detector {
        name: ALLOCATIONS,
        summary: "objects that an own line could do without, by rules",
        threshold: "see the rules",
        advice: "See the rules.",
        kinds: &[ALLOC.name],
        find: find_wasteful_allocations,
    },
    Detector {
        name: "classes",
        summary: "classes, proxies or class loaders that one own line makes again and again: scripts, expressions, method handles",
        threshold: "100 by one stack trace; below a library, also at least one for each of 10 runs of the entry",
        advice: counted_calls::CLASS_ADVICE,
        kinds: &[CLASSES.name, ALLOC.name, CALL],
        find: find_generated_classes,
    },
    Detector {
        name: "gc",
        summary: "System.gc() called again and again",
        threshold: "5 calls of one line",
        advice: counted_calls::GC_ADVICE,
        kinds: &[COLLECTION_CALLS, CALL],
        find: find_collections,
    },
    Detector {
        name: "logging",
        summary: "arguments that a line makes for a logger that prints nothing: below the logger there are no objects, reads and writes",
        threshold: "100 calls, and 2% of the allocated bytes made by their line",
        advice: counted_calls::LOGGING_ADVICE,
        kinds: &[LOGGER_CALLS, CALL],
        find: find_dropped_logging,
    },
];

const LEAK_ADVICE: &str = "Remove what is not needed, or bound the collection that holds it.";
const THREAD_ADVICE: &str = "Keep one pool for all requests.";

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
            advice: LEAK_ADVICE.into(),
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
            advice: THREAD_ADVICE.into(),
            command: format!("report --event thread --through {}", through_pattern(place)),
        })
    });
    findings.collect()
}
