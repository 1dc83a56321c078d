//! The detector of allocations that a line could do without: one rule for each pattern.

use std::collections::HashMap;
use std::io::{self, Write};

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
    Built { types: &'static [&'static str] },
    /// At least this share of all allocated objects, half of which stay empty.
    Unfilled,
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

/// The name of the detector.
pub const ALLOCATIONS: &str = "allocations";

/// Objects of this mean size are arrays of at most eight references.
const ARGUMENT_BYTES: u64 = 48;

const GROWING: &str = "growing collections";
const LARGE_ARRAYS: &str = "large arrays";

/// The first rule that matches an allocation counts it.
static RULES: [AllocationRule; 14] = [
    // First: it may build number formats.
    AllocationRule {
        name: "String.format",
        advice: "Join with + or a StringBuilder: a format is parsed at each call.",
        matches: |view| view.is_below("java.lang.String", &["format", "formatted"]),
        threshold: Threshold::Bytes(MIN_SHARE),
    },
    AllocationRule {
        name: "patterns compiled",
        advice: "Compile the pattern once, into a static field; String.split, matches and replaceAll compile at each call.",
        matches: |view| view.is_below("java.util.regex.Pattern", &["compile"]),
        threshold: Threshold::Built {
            types: &["java.util.regex.Pattern"],
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
            types: &[
                "java.text.SimpleDateFormat",
                "java.text.DecimalFormat",
                "java.time.format.DateTimeFormatter",
            ],
        },
    },
    AllocationRule {
        name: "JSON mappers built",
        advice: "Build the mapper once; it caches what it learns of each class.",
        matches: |view| view.is_own() && MAPPERS.contains(&view.detail),
        threshold: Threshold::Built { types: &MAPPERS },
    },
    AllocationRule {
        name: "thread pools built",
        advice: "Keep one pool for all requests.",
        matches: |view| POOLS.contains(&view.detail) && view.is_near(),
        threshold: Threshold::Built { types: &POOLS },
    },
    AllocationRule {
        name: GROWING,
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
        // On JDK 17, a method handle makes it.
        matches: |view| view.is_near() && view.detail.contains("$$Lambda"),
        threshold: Threshold::Bytes(MIN_SHARE),
    },
    AllocationRule {
        name: "argument arrays",
        advice: "A call with variable arguments makes an Object[]: call an overload with fixed arguments, or keep the array.",
        matches: |view| {
            view.is_own()
                && view.detail == "java.lang.Object[]"
                && (EMPTY_BYTES + 1..=ARGUMENT_BYTES).contains(&view.mean_bytes())
        },
        threshold: Threshold::Bytes(MIN_SHARE),
    },
    AllocationRule {
        name: "collections that stay empty",
        advice: "Make the collection when there is an element, or use List.of() and Map.of().",
        matches: |view| view.is_near() && EmptyCollection::with_type(view.detail).is_some(),
        threshold: Threshold::Unfilled,
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
        name: LARGE_ARRAYS,
        advice: "Keep one buffer and use it again.",
        matches: |view| {
            view.detail.ends_with("[]")
                && view.mean_bytes() >= LARGE_BYTES
                && view.run.frames_between(view.path).count() <= MAX_ARRAY_DEPTH
        },
        threshold: Threshold::Bytes(5.0 * MIN_SHARE),
    },
];

/// A collection that makes its storage when it gets its first element.
struct EmptyCollection {
    types: &'static [&'static str],
    /// Objects of this type in methods of these classes are storage.
    storage: &'static str,
    fillers: &'static [&'static str],
}

/// Frames from a storage to the method of the collection that makes it, such as the copy constructor.
const MAX_FILL_DEPTH: usize = 5;

static EMPTY_COLLECTIONS: [EmptyCollection; 3] = [
    EmptyCollection {
        types: &["java.util.ArrayList"],
        storage: "java.lang.Object[]",
        fillers: &["java.util.ArrayList"],
    },
    EmptyCollection {
        types: &["java.util.HashMap", "java.util.LinkedHashMap"],
        storage: "java.util.HashMap$Node[]",
        fillers: &["java.util.HashMap"],
    },
    EmptyCollection {
        types: &["java.util.LinkedList"],
        storage: "java.util.LinkedList$Node",
        fillers: &["java.util.LinkedList"],
    },
];

impl EmptyCollection {
    fn with_type(name: &str) -> Option<&'static EmptyCollection> {
        let mut all = EMPTY_COLLECTIONS.iter();
        all.find(|collection| collection.types.contains(&name))
    }

    /// The number of storages that the whole run made, or more. Each filled collection has one at least, so all others are
    /// empty.
    fn count_storages(&self, run: &PreparedRun<'_>) -> u64 {
        let is_filler = |path: PathIndex| {
            let frame = run.frame(path);
            frame.is_some_and(|frame| self.fillers.contains(&frame.class.as_str()))
        };
        let contexts = run.contexts_of_kind(ALLOC.name);
        let storages = contexts.filter(|context| {
            let mut innermost = run.paths_outwards(context.path).take(MAX_FILL_DEPTH);
            context.detail == self.storage && innermost.any(is_filler)
        });
        storages.fold(0, |count, context| count.saturating_add(context.sum.count))
    }
}

/// The collections of each line that stay empty, at least. Of samples, and of a run that did not count what the JDK makes,
/// nothing can be said.
fn count_unfilled<'f>(run: &PreparedRun<'f>, rule: usize) -> HashMap<SourceLine<'f>, EventSum> {
    let mut unfilled: HashMap<SourceLine<'f>, EventSum> = HashMap::new();
    if run.is_sampled(ALLOC.name) || !run.counts_jdk() {
        return unfilled;
    }
    for collection in &EMPTY_COLLECTIONS {
        let made = ContextSums::from_contexts(run.contexts_of_kind(ALLOC.name), |context| {
            let is_made =
                collection.types.contains(&context.detail) && find_rule(run, context) == Some(rule);
            run.source_line(context.path).filter(|_| is_made)
        });
        let storages = collection.count_storages(run);
        for (line, sum) in made.into_sorted() {
            unfilled.entry(line).or_default().add(EventSum {
                count: sum.sum.count.saturating_sub(storages),
                value: sum.sum.value,
            });
        }
    }
    unfilled
}

/// Prints the rules: what the line makes, from which share on, and what to do.
pub fn write_rules(out: &mut impl Write) -> io::Result<()> {
    for rule in &RULES {
        let threshold = match rule.threshold {
            Threshold::Bytes(share) => format!("{}% of the allocated bytes", share * 100.0),
            Threshold::Objects(share) => format!("{}% of the allocated objects", share * 100.0),
            Threshold::Built { .. } => format!("{MIN_BUILT}, and one for each run of the entry"),
            Threshold::Unfilled => format!(
                "half of the line's, and {}% of the allocated objects; needs exact counts",
                MIN_SHARE * 100.0
            ),
        };
        writeln!(
            out,
            "   rule {}, from {threshold}: {}",
            rule.name, rule.advice
        )?;
    }
    Ok(())
}

/// The bytes of a map's first table, at most: 16 references.
const FIRST_TABLE_BYTES: u64 = 16 + 16 * 8;

/// Whether it is the new storage of a collection that outgrew the old one. The first storage copies nothing.
fn is_growth(view: &AllocationView<'_, '_>) -> bool {
    let grows = |frame: &StackFrame| match frame.class.as_str() {
        "java.util.ArrayList"
        | "java.util.ArrayDeque"
        | "java.util.PriorityQueue"
        | "java.util.Vector" => frame.method == "grow",
        "java.lang.AbstractStringBuilder" => frame.method.starts_with("ensureCapacity"),
        "java.io.ByteArrayOutputStream" => frame.method == "ensureCapacity",
        _ => false,
    };
    let copies = |frame: &StackFrame| frame.class == "java.util.Arrays";
    let resizes =
        |frame: &StackFrame| frame.class == "java.util.HashMap" && frame.method == "resize";
    view.detail.ends_with("[]")
        && (view.any_frame(grows) && view.any_frame(copies)
            || view.any_frame(resizes) && view.mean_bytes() > FIRST_TABLE_BYTES)
}

/// Finds lines with allocations that match a rule.
pub fn find_wasteful_allocations<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(ALLOC.name), |context| {
        let rule = find_rule(run, context)?;
        Some((rule, run.source_line(context.path)?))
    });
    let sums = sums.into_sorted();
    let built = count_built(run);
    let unfilled = RULES
        .iter()
        .position(|rule| matches!(rule.threshold, Threshold::Unfilled));
    let unfilled = unfilled
        .map(|rule| count_unfilled(run, rule))
        .unwrap_or_default();
    let findings = sums.iter().filter_map(|((number, line), sum)| {
        let rule = RULES.get(*number)?;
        let count = match rule.threshold {
            Threshold::Built { .. } => built.get(&(*number, *line)).copied().unwrap_or_default(),
            Threshold::Unfilled => unfilled.get(line).copied().unwrap_or_default(),
            Threshold::Bytes(_) | Threshold::Objects(_) => sum.sum,
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
            Threshold::Built { types } => {
                // A part of another one, such as the number format of a date format.
                let is_part = run
                    .frames_between(context.path)
                    .any(|frame| frame.method == "<init>" && types.contains(&frame.class.as_str()));
                types.contains(&context.detail) && !is_part
            }
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
            Threshold::Unfilled => {
                counted.count.saturating_mul(2) >= all.sum.count
                    && share_of(counted.count, whole.count) >= MIN_SHARE
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
        LARGE_ARRAYS => thrown_away(run, all.sum, mean),
        GROWING => format!(
            ", arrays of {} on average",
            format_amount(mean as f64, "bytes")
        ),
        _ => String::new(),
    };
    let what = match rule.threshold {
        Threshold::Built { .. } => format!("{about}{} {}", grouped(counted.count), rule.name),
        Threshold::Unfilled => format!(
            "{}: at least {} of {}",
            rule.name,
            grouped(counted.count),
            format_plural(all.sum.count, "object")
        ),
        _ => format!(
            "{}: {about}{}{size}",
            rule.name,
            format_plural(all.sum.count, "object")
        ),
    };
    is_finding.then(|| Finding {
        detector: ALLOCATIONS,
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

/// The mean size of large arrays. What exceeds the largest heap cannot be alive: it was thrown away.
fn thrown_away(run: &PreparedRun<'_>, sum: EventSum, mean: u64) -> String {
    let mean = format_amount(mean as f64, "bytes");
    let rest = run
        .max_heap_bytes()
        .map(|heap| sum.value.saturating_sub(heap));
    match rest.filter(|rest| *rest > 0) {
        Some(rest) => format!(
            " of {mean} on average, {} at least thrown away",
            format_amount(rest as f64, "bytes")
        ),
        None => format!(", arrays of {mean} on average"),
    }
}

/// Whether something is built at least once for each run of the entry, or the runs are unknown.
fn is_repeated(run: &PreparedRun<'_>, path: PathIndex, count: u64) -> bool {
    let runs = run.entry(path).and_then(|entry| run.entry_runs(entry));
    runs.is_none_or(|runs| count >= runs.sum.count)
}
