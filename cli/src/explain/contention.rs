//! The detector of contended locks.
//!
//! A log tells the class of a lock, not which object it is. Methods that wait for locks of one class are one finding if the
//! log shows that they wait for each other (`LockPair`): then the lock is the same.

use std::collections::{BTreeMap, HashMap};

use lucce_command::{format_plural, percent_of};
use lucce_decoder::{LockPairs, StackFrame};
use lucce_options::kinds::LOCK_WAITS;

use super::finding::{ContextSum, ContextSums, Finding, FindingCost, share_of, through_pattern};
use super::prepared_run::{PreparedRun, RunContext};
use crate::amounts::format_amount;

pub const ADVICE: &str =
    "Hold the lock for less: move slow calls out of it, or split what it protects.";

/// Shorter waits in sum are no finding.
const MIN_WAIT_NS: u64 = 50_000_000;
/// The class of the VM's locks of class initialization: each is waited for once.
const INITIALIZATION_LOCK: &str = "int[]";
/// Fewer waits are no finding.
const MIN_WAITS: u64 = 10;
/// Frames of the JDK between an own line and a monitor of a class that the line uses, such as a synchronized collection.
const MAX_MONITOR_DEPTH: usize = 3;

/// A method that waits for locks of a class, or holds them: the lock's class, the method's class and name.
type LockUser<'p> = (&'p str, &'p str, &'p str);

/// Which methods use the same lock, as far as the log shows it.
struct LockRelations<'p>(HashMap<LockUser<'p>, LockUser<'p>>);

impl<'p> LockRelations<'p> {
    fn from_pairs(pairs: &'p LockPairs) -> LockRelations<'p> {
        let mut relations = LockRelations(HashMap::new());
        for pair in &pairs.pairs {
            let user = |frame: &'p StackFrame| (&*pair.lock, &*frame.class, &*frame.method);
            if let (Some(waiting), Some(holder)) =
                (pair.waiting.focus_frame(), pair.holder.focus_frame())
            {
                let [waiting, holder] =
                    [waiting, holder].map(|frame| relations.find_root(user(frame)));
                if waiting != holder {
                    relations.0.insert(waiting, holder);
                }
            }
        }
        relations
    }

    /// The method that stands for all with the same lock.
    fn find_root<'q>(&self, user: LockUser<'q>) -> LockUser<'q>
    where
        'p: 'q,
    {
        let mut root = user;
        while let Some(next) = self.0.get(&root) {
            root = *next;
        }
        root
    }
}

/// Lines of own code that wait for a monitor or lock which another thread holds.
pub fn find_contention<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(LOCK_WAITS.name), |context| {
        let monitor = contended_lock(run, context)?;
        Some((monitor, run.source_line(context.path)?))
    });
    let pairs = run.lock_pairs();
    let relations = LockRelations::from_pairs(pairs);
    let mut groups: BTreeMap<LockUser<'_>, Vec<ContextSum>> = BTreeMap::new();
    for ((monitor, _), sum) in sums.into_sorted() {
        let Some(place) = run.place_frame(sum.path) else {
            continue;
        };
        let key = match pairs.pairs.is_empty() && !monitor.starts_with("java.") {
            // Without holders, locks of a class of the program are taken for one.
            true => (monitor, "", ""),
            false => relations.find_root((monitor, &place.class, &place.method)),
        };
        groups.entry(key).or_default().push(sum);
    }
    let findings = groups.into_iter().filter_map(|(root, lines)| {
        let holder = describe_holder(pairs, &relations, root);
        build_finding(run, root.0, &lines, &holder)
    });
    findings.collect()
}

fn build_finding<'f>(
    run: &PreparedRun<'f>,
    monitor: &str,
    lines: &[ContextSum],
    holder: &str,
) -> Option<Finding<'f>> {
    let largest = lines.iter().max_by_key(|sum| sum.sum.value)?;
    let count: u64 = lines.iter().map(|sum| sum.sum.count).sum();
    let wait: u64 = lines.iter().map(|sum| sum.sum.value).sum();
    if wait < MIN_WAIT_NS || count < MIN_WAITS {
        return None;
    }
    let place = run.place_frame(largest.path)?;
    let others = lines.iter().filter(|sum| sum.path != largest.path);
    let others = others.filter_map(|sum| Some(run.place_frame(sum.path)?.to_string()));
    let others: Vec<String> = others.collect();
    let also = match others.is_empty() {
        true => String::new(),
        false => format!(", also at {}", others.join(", ")),
    };
    // A synchronized method of the JDK may take the lock.
    let taken_in = run.frame(largest.path).filter(|frame| *frame != place);
    let taken_in = taken_in.map_or_else(String::new, |frame| {
        format!(" in {}", frame.qualified_method())
    });
    Some(Finding {
        detector: "lock",
        sentence: format!(
            "{} for {monitor}{taken_in}: {} in sum{also}{holder}",
            format_plural(count, "wait"),
            format_amount(wait as f64, "ns"),
        ),
        count,
        counted: format!("waits to acquire locks of class {monitor}"),
        cost: FindingCost {
            share: share_of(wait, run.duration_ns()),
            text: match run.duration_ns() {
                0 => "the time of the run is not known".to_owned(),
                duration => format!(
                    "{:.1}% of the run's time, over all threads",
                    percent_of(wait, duration)
                ),
            },
        },
        place,
        path: largest.path,
        advice: ADVICE.into(),
        command: format!("report --event lock --through {}", through_pattern(place)),
    })
}

/// The context that held the lock longest while others waited: `, held at … for 50.0 ms`. Empty: none is known.
fn describe_holder(pairs: &LockPairs, relations: &LockRelations<'_>, root: LockUser<'_>) -> String {
    let is_of_group = |frame: &StackFrame| {
        let user = relations.find_root((root.0, &frame.class, &frame.method));
        user == root
    };
    let mut of_lock = pairs.pairs.iter().filter(|pair| pair.lock == root.0);
    let longest = of_lock.find(|pair| pair.holder.focus_frame().is_some_and(is_of_group));
    let longest = longest.and_then(|pair| Some((pair.holder.focus_frame()?, pair.held_ns)));
    longest.map_or_else(String::new, |(frame, nanos)| {
        let time = format_amount(nanos as f64, "ns");
        format!(", held at {frame} for {time}")
    })
}

/// The class of the lock that own code waits to acquire, itself or by the JDK's class that it calls. Waiting for a condition
/// or for work is no contention, and a lock deep inside the JDK is none of the program's.
fn contended_lock<'f>(run: &PreparedRun<'f>, context: &RunContext<'f>) -> Option<&'f str> {
    if !run.is_direct(context.path) {
        return None;
    }
    if let Some(monitor) = context.detail.strip_suffix(" (enter)") {
        let depth = run.frames_between(context.path).count();
        let is_own = depth <= MAX_MONITOR_DEPTH && monitor != INITIALIZATION_LOCK;
        return is_own.then_some(monitor);
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
