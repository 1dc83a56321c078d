//! The detector of allocations that a line could do without: one rule for each pattern.

use std::collections::HashMap;

use lucce_command::{format_plural, grouped, percent_of};
use lucce_decoder::{ALLOC, StackFrame};

use super::finding::{
    ContextSum, ContextSums, Finding, FindingCost, SourceLine, per_run, share_of, through_pattern,
};
use super::prepared_run::{EventSum, PathIndex, PreparedRun, RunContext};
use crate::amounts::format_amount;

/// A pattern of allocations at one line.
struct AllocationRule {
    /// What the line allocates.
    name: &'static str,
    advice: &'static str,
    matches: fn(&AllocationView<'_, '_>) -> bool,
    threshold: Threshold,
}

/// When a line's sum is a finding.
enum Threshold {
    /// At least this share of all allocated bytes.
    Bytes(f64),
    /// At least this share of all allocated objects.
    Objects(f64),
    /// At least this number of objects of the rule's own type, built for each run of the entry.
    Built { type_ends: &'static [&'static str] },
}

/// Fewer objects that are made to be kept are no finding.
const MIN_BUILT: u64 = 100;

/// An allocation, and the frames between the own line and it.
struct AllocationView<'r, 'f> {
    run: &'r PreparedRun<'f>,
    path: PathIndex,
    detail: &'f str,
    sum: EventSum,
}

impl AllocationView<'_, '_> {
    /// Whether the line calls a method, directly or by other methods of the JDK.
    fn is_below(&self, class: &str, methods: &[&str]) -> bool {
        self.any_frame(|frame| frame.class == class && methods.contains(&frame.method.as_str()))
    }

    /// Whether a method matches that the line calls by a few others at most.
    fn any_frame(&self, matches: impl Fn(&StackFrame) -> bool) -> bool {
        let place = self.run.place(self.path);
        let below = self.run.paths_outwards(self.path);
        let mut below = below.take_while(|path| Some(*path) != place);
        below.any(|path| self.run.is_direct(path) && self.run.frame(path).is_some_and(&matches))
    }

    /// Whether the line makes the object by a few methods at most.
    fn is_near(&self) -> bool {
        self.run.is_direct(self.path)
    }

    /// Whether the own line makes the object itself.
    fn is_own(&self) -> bool {
        self.run.place(self.path) == Some(self.path)
    }

    fn mean_bytes(&self) -> u64 {
        self.sum.value / self.sum.count.max(1)
    }
}

const BOXES: [&str; 8] = [
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Double",
    "java.lang.Float",
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Short",
];

const ITERATORS: [&str; 5] = [
    "$Itr",
    "$KeyIterator",
    "$ValueIterator",
    "$EntryIterator",
    "$ListItr",
];

const FORMATS: [&str; 4] = [
    "java.text.SimpleDateFormat",
    "java.text.DecimalFormat",
    "java.time.format.DateTimeFormatterBuilder",
    "java.time.format.DateTimeFormatter",
];

const MAPPERS: [&str; 4] = [
    "com.fasterxml.jackson.databind.ObjectMapper",
    "com.fasterxml.jackson.databind.json.JsonMapper",
    "com.google.gson.Gson",
    "tools.jackson.databind.json.JsonMapper",
];

const POOLS: [&str; 3] = [
    "java.util.concurrent.ThreadPoolExecutor",
    "java.util.concurrent.ScheduledThreadPoolExecutor",
    "java.util.concurrent.ForkJoinPool",
];

/// Arrays of this mean size are large.
const LARGE_BYTES: u64 = 64 << 10;
/// Frames of the JDK between an own line and a large array that it gets, such as the bytes of a file.
const MAX_ARRAY_DEPTH: usize = 4;
/// The size of an array without elements.
const EMPTY_BYTES: u64 = 16;

/// A smaller share of all allocated bytes is no finding.
const MIN_SHARE: f64 = 0.02;

/// The first rule that matches an allocation counts it.
static RULES: [AllocationRule; 12] = [
    AllocationRule {
        name: "patterns compiled",
        advice: "Compile the pattern once, into a static field; String.split, matches and replaceAll compile at each call.",
        matches: |view| view.is_below("java.util.regex.Pattern", &["compile"]),
        threshold: Threshold::Built {
            type_ends: &["java.util.regex.Pattern"],
        },
    },
    AllocationRule {
        name: "formats built",
        advice: "Build a DateTimeFormatter once, into a static field.",
        matches: |view| {
            FORMATS.contains(&view.detail) && view.is_near()
                || view.any_frame(|frame| {
                    frame.method == "<init>" && FORMATS.contains(&frame.class.as_str())
                })
        },
        threshold: Threshold::Built {
            type_ends: &FORMATS,
        },
    },
    AllocationRule {
        name: "JSON mappers built",
        advice: "Build the mapper once; it caches what it learns of each class.",
        matches: |view| view.is_own() && MAPPERS.contains(&view.detail),
        threshold: Threshold::Built {
            type_ends: &MAPPERS,
        },
    },
    AllocationRule {
        name: "thread pools built",
        advice: "Keep one pool for all requests.",
        matches: |view| POOLS.contains(&view.detail) && view.is_near(),
        threshold: Threshold::Built { type_ends: &POOLS },
    },
    AllocationRule {
        name: "String.format",
        advice: "Join with + or a StringBuilder: a format is parsed at each call.",
        matches: |view| view.is_below("java.lang.String", &["format", "formatted"]),
        threshold: Threshold::Bytes(MIN_SHARE),
    },
    AllocationRule {
        name: "growing collections",
        advice: "Give the expected size to the constructor: each growth copies what is there.",
        matches: is_growth,
        threshold: Threshold::Bytes(MIN_SHARE),
    },
    AllocationRule {
        name: "boxed numbers",
        advice: "Use primitive types, their streams and arrays, or a collection for primitive types.",
        matches: |view| {
            BOXES.contains(&view.detail)
                && view.any_frame(|frame| frame.method == "valueOf" && frame.class == view.detail)
        },
        threshold: Threshold::Bytes(MIN_SHARE),
    },
    AllocationRule {
        name: "iterators",
        advice: "In a loop over short lists, an index makes no iterator.",
        matches: |view| {
            view.is_near()
                && view.detail.starts_with("java.util.")
                && ITERATORS.iter().any(|end| view.detail.ends_with(end))
        },
        threshold: Threshold::Bytes(MIN_SHARE),
    },
    AllocationRule {
        name: "capturing lambdas",
        advice: "A lambda that captures nothing is made once; pass what it captures as an argument.",
        matches: |view| view.is_own() && view.detail.contains("$$Lambda"),
        threshold: Threshold::Bytes(MIN_SHARE),
    },
    AllocationRule {
        name: "BigDecimal and BigInteger",
        advice: "Count in long, in the smallest unit, where the range allows it.",
        matches: |view| view.detail.starts_with("java.math.Big") && view.is_near(),
        threshold: Threshold::Bytes(MIN_SHARE),
    },
    AllocationRule {
        name: "arrays without elements",
        advice: "Share one empty array.",
        matches: |view| {
            view.is_near()
                && view.detail.ends_with("[]")
                && view.mean_bytes() == EMPTY_BYTES
                && !view.detail.starts_with("byte")
        },
        threshold: Threshold::Objects(MIN_SHARE),
    },
    AllocationRule {
        name: "large arrays",
        advice: "Keep one buffer and use it again.",
        matches: |view| {
            view.detail.ends_with("[]")
                && view.mean_bytes() >= LARGE_BYTES
                && view.run.frames_between(view.path).count() <= MAX_ARRAY_DEPTH
        },
        threshold: Threshold::Bytes(5.0 * MIN_SHARE),
    },
];

fn is_growth(view: &AllocationView<'_, '_>) -> bool {
    let grows = |frame: &StackFrame| match frame.class.as_str() {
        "java.util.ArrayList"
        | "java.util.ArrayDeque"
        | "java.util.PriorityQueue"
        | "java.util.Vector" => frame.method == "grow",
        "java.util.HashMap" => frame.method == "resize",
        "java.lang.AbstractStringBuilder" => frame.method.starts_with("ensureCapacity"),
        "java.io.ByteArrayOutputStream" => frame.method == "ensureCapacity",
        _ => false,
    };
    view.detail.ends_with("[]") && view.any_frame(grows)
}

/// Finds lines with allocations that match a rule.
pub fn find_wasteful_allocations<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(ALLOC.name), |context| {
        let rule = find_rule(run, context)?;
        Some((rule, run.source_line(context.path)?))
    });
    let sums = sums.into_sorted();
    let built = count_built(run);
    let findings = sums.iter().filter_map(|((number, line), sum)| {
        let rule = RULES.get(*number)?;
        let count = match rule.threshold {
            Threshold::Built { .. } => built.get(&(*number, *line)).copied().unwrap_or_default(),
            _ => sum.sum,
        };
        describe_allocations(run, rule, *sum, count)
    });
    findings.collect()
}

/// The number of the rule that an allocation of own code matches.
fn find_rule(run: &PreparedRun<'_>, context: &RunContext<'_>) -> Option<usize> {
    if !run.is_within_jdk(context.path) {
        return None;
    }
    let view = AllocationView {
        run,
        path: context.path,
        detail: context.detail,
        sum: context.sum,
    };
    RULES.iter().position(|rule| (rule.matches)(&view))
}

/// The objects of the rules' own types, by rule and line.
fn count_built<'f>(run: &PreparedRun<'f>) -> HashMap<(usize, SourceLine<'f>), EventSum> {
    let mut built: HashMap<_, EventSum> = HashMap::new();
    for context in run.contexts_of_kind(ALLOC.name) {
        let Some(number) = find_rule(run, context) else {
            continue;
        };
        let is_built = RULES.get(number).is_some_and(|rule| match rule.threshold {
            Threshold::Built { type_ends } => type_ends.contains(&context.detail),
            _ => false,
        });
        if let Some(line) = run.source_line(context.path).filter(|_| is_built) {
            built.entry((number, line)).or_default().add(context.sum);
        }
    }
    built
}

fn describe_allocations<'f>(
    run: &PreparedRun<'f>,
    rule: &AllocationRule,
    all: ContextSum,
    counted: EventSum,
) -> Option<Finding<'f>> {
    let whole = run.total(ALLOC.name);
    let share = share_of(all.sum.value, whole.value);
    let is_finding = run.is_reliable(all.sum)
        && match rule.threshold {
            Threshold::Bytes(least) => share >= least,
            Threshold::Objects(least) => share_of(counted.count, whole.count) >= least,
            Threshold::Built { .. } => {
                counted.count >= MIN_BUILT && is_repeated(run, all.path, counted.count)
            }
        };
    let place = run.place_frame(all.path)?;
    let about = if run.is_sampled(ALLOC.name) {
        "about "
    } else {
        ""
    };
    let mean = all.sum.value / all.sum.count.max(1);
    let size = match rule.name {
        "growing collections" | "large arrays" => format!(
            ", arrays of {} on average",
            format_amount(mean as f64, "bytes")
        ),
        _ => String::new(),
    };
    let what = match rule.threshold {
        Threshold::Built { .. } => format!("{about}{} {}", grouped(counted.count), rule.name),
        _ => format!(
            "{}: {about}{}{size}",
            rule.name,
            format_plural(all.sum.count, "object")
        ),
    };
    is_finding.then(|| Finding {
        detector: "allocations",
        sentence: what + &per_run(run, all.path, counted.count),
        count: counted.count,
        counted: "objects at this line, made by it or by methods of the JDK that it calls".into(),
        cost: FindingCost {
            share,
            text: format!(
                "{:.1}% of the allocated bytes",
                percent_of(all.sum.value, whole.value)
            ),
        },
        place,
        path: all.path,
        advice: rule.advice.into(),
        command: format!("report --through {}", through_pattern(place)),
    })
}

/// Whether something is built at least once for each run of the entry, or the runs are unknown.
fn is_repeated(run: &PreparedRun<'_>, path: PathIndex, count: u64) -> bool {
    let runs = run.entry(path).and_then(|entry| run.entry_runs(entry));
    runs.is_none_or(|runs| count >= runs.sum.count)
}
