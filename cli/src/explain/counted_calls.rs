//! Detectors of calls that are counted by `events=call`: collections of the heap, and logging that is off. Also classes that
//! are generated again and again, by the objects that their generators make.

use std::collections::HashMap;

use lucce_command::{format_plural, grouped, percent_of};
use lucce_decoder::{ALLOC, StackFrame};
use lucce_options::LOGGERS;
use lucce_options::kinds::{CLASS_LOADERS, CLASS_UNLOADS, CLASSES};

use super::finding::{
    ContextSums, Finding, FindingCost, SourceLine, per_run, share_of, through_pattern,
};
use super::prepared_run::{CALL, EventSum, PathIndex, PreparedRun, RunContext};

/// Fewer collections of one line are no finding.
pub const MIN_COLLECTIONS: u64 = 5;
pub const GC_ADVICE: &str = "Remove the call: the JVM collects when it needs memory. -XX:+ExplicitGCInvokesConcurrent makes those of libraries cheaper.";

/// Lines that make the VM collect the whole heap.
pub fn find_collections<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(CALL), |context| {
        let is_collection = run.frame(context.path).is_some_and(is_collection_call);
        run.source_line(context.path).filter(|_| is_collection)
    });
    let findings = sums.into_sorted().into_iter().filter_map(|(_, sum)| {
        let count = sum.sum.count;
        let place = run.place_frame(sum.path)?;
        (count >= MIN_COLLECTIONS).then(|| Finding {
            detector: "gc",
            sentence: format!(
                "{} of System.gc(){}",
                format_plural(count, "call"),
                per_run(run, sum.path, count)
            ),
            count,
            counted: "entries of java.lang.System.gc".into(),
            cost: FindingCost {
                // No event says how long the program stood still: it comes before shares of bytes that are small.
                share: 0.1,
                text: "a collection of the whole heap each".into(),
            },
            place,
            path: sum.path,
            advice: GC_ADVICE.into(),
            command: format!("report --event call --through {}", through_pattern(place)),
        })
    });
    findings.collect()
}

fn is_collection_call(frame: &StackFrame) -> bool {
    frame.class == "java.lang.System" && frame.method == "gc"
}

/// Fewer calls of one line are no finding.
pub const MIN_LOG_CALLS: u64 = 100;
/// Objects below the logger, for each hundred calls: a logger that prints makes more.
const MAX_PERCENT_BELOW: u64 = 1;
/// A smaller share of all allocated bytes is no finding.
const MIN_SHARE: f64 = 0.02;
pub const LOGGING_ADVICE: &str =
    "Test isDebugEnabled() first, or pass a lambda: arguments are built before the logger returns.";

/// The logger's method that a line calls.
fn is_logger_call(frame: &StackFrame) -> bool {
    !frame.is_own() && LOGGERS.contains_method(&frame.class, &frame.method)
}

/// What one line spends on a logger.
#[derive(Clone, Copy, Default)]
struct LogLine {
    /// Calls of the logger, with the path of one.
    calls: u64,
    call_path: Option<PathIndex>,
    /// Objects that the line makes, itself or by methods of the JDK.
    arguments: EventSum,
    /// Objects, reads and writes below the logger.
    below: u64,
}

/// Lines that make objects for a logger that prints nothing: the logger neither allocates nor writes.
pub fn find_dropped_logging<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let lines = sum_log_lines(run);
    let whole = run.total(ALLOC.name).value;
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|(line, _)| *line);
    let findings = lines.into_iter().filter_map(|(_, line)| {
        let path = line.call_path?;
        let place = run.place_frame(path)?;
        let logger = run.frame(path)?;
        let is_off = line.below.saturating_mul(100) <= line.calls * MAX_PERCENT_BELOW;
        let share = share_of(line.arguments.value, whole);
        let is_finding = is_off && line.calls >= MIN_LOG_CALLS && share >= MIN_SHARE;
        is_finding.then(|| Finding {
            detector: "logging",
            sentence: format!(
                "{} for {} of {} that print nothing{}",
                format_plural(line.arguments.count, "object"),
                format_plural(line.calls, "call"),
                logger.qualified_method(),
                per_run(run, path, line.calls)
            ),
            count: line.arguments.count,
            counted: "objects of the line; below the logger there are no objects, reads and writes"
                .into(),
            cost: FindingCost {
                share,
                text: format!(
                    "{:.1}% of the allocated bytes",
                    percent_of(line.arguments.value, whole)
                ),
            },
            place,
            path,
            advice: LOGGING_ADVICE.into(),
            command: format!("report --through {}", through_pattern(place)),
        })
    });
    findings.collect()
}

fn sum_log_lines<'f>(run: &PreparedRun<'f>) -> HashMap<SourceLine<'f>, LogLine> {
    let mut lines: HashMap<SourceLine<'f>, LogLine> = HashMap::new();
    for context in run.contexts_of_kind(CALL) {
        let is_call = run.caller(context.path) == run.place(context.path)
            && run.frame(context.path).is_some_and(is_logger_call);
        if let Some(line) = run.source_line(context.path).filter(|_| is_call) {
            let line = lines.entry(line).or_default();
            line.calls = line.calls.saturating_add(context.sum.count);
            line.call_path.get_or_insert(context.path);
        }
    }
    for context in [ALLOC.name, "io"]
        .into_iter()
        .flat_map(|kind| run.contexts_of_kind(kind))
    {
        let line = run.source_line(context.path);
        let Some(line) = line.and_then(|line| lines.get_mut(&line)) else {
            continue;
        };
        if run.frames_between(context.path).any(is_logger_call) {
            line.below = line.below.saturating_add(context.sum.count);
        } else if run.is_direct(context.path) && ALLOC.is_kind(context.kind) {
            line.arguments.add(context.sum);
        }
    }
    lines
}

/// Fewer classes of one line are no finding: the JDK makes a class for each lambda and string concatenation.
pub const MIN_CLASSES: u64 = 100;
/// An entry that ran less often is start-up: it may generate classes by libraries.
const MIN_RUNS: u64 = 10;
pub const CLASS_ADVICE: &str =
    "Generate once and keep the class, script, proxy or class loader, in a static field or a map.";

/// Types of which a generator makes one object for each class.
const GENERATORS: [(&str, &str); 2] = [
    (
        "java.lang.invoke.MethodHandles$Lookup$ClassDefiner",
        "hidden classes defined",
    ),
    (
        "java.lang.reflect.ProxyGenerator",
        "proxy classes generated",
    ),
];

/// Loaders that define each of their classes once.
const USUAL_LOADERS: [&str; 3] = [
    "boot loader",
    "jdk.internal.loader.ClassLoaders$PlatformClassLoader",
    "jdk.internal.loader.ClassLoaders$AppClassLoader",
];

/// What stands for a class that is generated or loaded again.
fn classify_generation(run: &PreparedRun<'_>, context: &RunContext<'_>) -> Option<&'static str> {
    if CLASSES.is_kind(context.kind) || CLASS_UNLOADS.is_kind(context.kind) {
        return classify_definition(context.detail);
    }
    if CALL == context.kind {
        let leaf = run.frame(context.path)?;
        let caller = run.frame(run.caller(context.path)?)?;
        // Overloads call each other.
        let defines = |frame: &StackFrame| {
            frame.class == "java.lang.ClassLoader" && frame.method == "defineClass"
        };
        return (defines(leaf) && !defines(caller)).then_some("classes defined");
    }
    let generator = GENERATORS.iter().find(|(name, _)| *name == context.detail);
    if let Some((_, words)) = generator {
        return Some(words);
    }
    let makes_loader = context.detail.ends_with("ClassLoader") && run.is_direct(context.path);
    makes_loader.then_some("class loaders made")
}

/// What a defined class is: the detail names its loader.
fn classify_definition(detail: &str) -> Option<&'static str> {
    match detail.rsplit_once(' ')? {
        (_, "(hidden)") => Some("hidden classes defined"),
        (_, "(generated)") => Some("generated classes defined"),
        (loader, _) if USUAL_LOADERS.contains(&loader) => None,
        _ => Some(LOADED_AGAIN),
    }
}

const LOADED_AGAIN: &str = "classes defined by loaders of the program";

/// Lines at which classes are generated or loaded again and again. Exact counts of classes are preferred.
pub fn find_generated_classes<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let has_classes = run.has_kind(CLASSES.name);
    let kinds = match has_classes {
        true => &[CLASSES.name][..],
        false => &[ALLOC.name, CALL],
    };
    let key = |context: &RunContext<'f>| {
        let words = classify_generation(run, context)?;
        Some((run.source_line(context.path)?, words))
    };
    let contexts = kinds.iter().flat_map(|kind| run.contexts_of_kind(kind));
    let sums = ContextSums::from_contexts(contexts, key);
    let unloads = ContextSums::from_contexts(run.contexts_of_kind(CLASS_UNLOADS.name), key);
    let unloads: HashMap<_, _> = unloads.into_sorted().into_iter().collect();
    let loaders = run.contexts_of_kind(CLASS_LOADERS.name);
    let loaders = ContextSums::from_contexts(loaders, |context| run.source_line(context.path));
    let loaders: HashMap<_, _> = loaders.into_sorted().into_iter().collect();
    let findings = sums.into_sorted().into_iter().filter_map(|(key, sum)| {
        let (line, words) = key;
        let count = sum.sum.count;
        let place = run.place_frame(sum.path)?;
        let runs = run.entry(sum.path).and_then(|entry| run.entry_runs(entry));
        let is_repeated = runs.is_some_and(|runs| {
            runs.sum.count >= MIN_RUNS && count >= runs.sum.count
        });
        let loaders = loaders.get(&line).map_or(0, |sum| sum.sum.count);
        let is_finding = (has_classes || run.is_reliable(sum.sum))
            // A lambda is linked once, by a trace of its own; a loop has one trace.
            && sum.most >= MIN_CLASSES
            // One loader defines a class once.
            && (words != LOADED_AGAIN || loaders >= MIN_RUNS)
            && (is_repeated || run.is_within_jdk(sum.path));
        let unloaded = unloads.get(&key).map_or(0, |sum| sum.sum.count);
        let alive = match has_classes && !run.is_interval {
            true => format!(", {} of them alive", grouped(count.saturating_sub(unloaded))),
            false => String::new(),
        };
        let share = match has_classes {
            true => 0.0,
            false => share_of(sum.sum.value, run.total(ALLOC.name).value),
        };
        is_finding.then(|| Finding {
            detector: "classes",
            sentence: format!("{} {words}{}", grouped(count), per_run(run, sum.path, count)),
            count,
            counted: "classes, or objects that the JDK makes once for each class, class loaders, or entries of ClassLoader.defineClass".into(),
            cost: FindingCost {
                // Loading and compiling a class costs far more than the counted object.
                share: share.max(0.05),
                text: format!("{} to load, link and compile{alive}", format_plural(count, "class")),
            },
            place,
            path: sum.path,
            advice: CLASS_ADVICE.into(),
            command: match has_classes {
                true => format!("report --event class --through {}", through_pattern(place)),
                false => format!("report --through {}", through_pattern(place)),
            },
        })
    });
    findings.collect()
}
