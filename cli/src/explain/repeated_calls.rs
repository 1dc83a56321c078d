//! The detector of repeated calls: a query, an HTTP call or a cache call that each run of an entry makes several times.
//!
//! A call has no event of its own. Its driver makes exactly one object of a certain type for each call; these are counted.

use std::collections::HashMap;

use lucce_command::{format_plural, grouped, percent_of};
use lucce_decoder::{ALLOC, StackFrame};

use super::finding::{ContextSum, ContextSums, Finding, FindingCost, SourceLine, share_of};
use super::prepared_run::{EntryMethod, PreparedRun, RunContext};

/// Fewer calls for each run of the entry are no finding.
const MIN_CALLS_PER_RUN: u64 = 4;
/// Fewer calls are no finding.
const MIN_CALLS: u64 = 100;
/// An entry that ran less often is start-up or a job: its calls are its work.
const MIN_RUNS: u64 = 10;

/// A kind of calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum RemoteCall {
    Query,
    Http,
    Cache,
}

impl RemoteCall {
    fn noun(self) -> &'static str {
        match self {
            RemoteCall::Query => "query",
            RemoteCall::Http => "HTTP call",
            RemoteCall::Cache => "cache call",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            RemoteCall::Query => "queries",
            RemoteCall::Http => "HTTP calls",
            RemoteCall::Cache => "cache calls",
        }
    }
}

/// Types of which a client makes one object for each call.
const CALL_OBJECTS: [(RemoteCall, &str); 6] = [
    (RemoteCall::Http, "jdk.internal.net.http.MultiExchange"),
    (
        RemoteCall::Http,
        "sun.net.www.protocol.http.HttpURLConnection",
    ),
    (RemoteCall::Http, "okhttp3.internal.connection.RealCall"),
    (
        RemoteCall::Http,
        "org.apache.hc.client5.http.classic.ExecChain$Scope",
    ),
    (RemoteCall::Cache, "redis.clients.jedis.CommandArguments"),
    (RemoteCall::Cache, "io.lettuce.core.protocol.Command"),
];

/// The calls of one own line for one entry, by type of the counted objects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct CallKey<'f> {
    call: RemoteCall,
    entry: EntryMethod<'f>,
    line: SourceLine<'f>,
    detail: &'f str,
}

/// Finds calls that are repeated for each run of their entry.
pub fn find_repeated_calls<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let contexts = || run.contexts_of_kind(ALLOC.name);
    let sums = ContextSums::from_contexts(contexts(), |context| {
        Some(CallKey {
            call: classify_call(run, context)?,
            entry: run.entry(context.path)?,
            line: run.source_line(context.path)?,
            detail: context.detail,
        })
    });
    let bytes = ContextSums::from_contexts(contexts(), |context| {
        Some((run.entry(context.path)?, run.source_line(context.path)?))
    });
    let bytes: HashMap<_, _> = bytes.into_sorted().into_iter().collect();
    let lines = largest_by_line(sums.into_sorted());
    let findings = lines.iter().filter_map(|(key, sum)| {
        let runs = count_runs(run, key, &lines)?;
        let calls = sum.sum.count;
        if calls < MIN_CALLS || runs.count < MIN_RUNS || calls < runs.count * MIN_CALLS_PER_RUN {
            return None;
        }
        let cost = bytes
            .get(&(key.entry, key.line))
            .map_or(0, |sum| sum.sum.value);
        describe_calls(run, key, *sum, &runs, cost)
    });
    findings.collect()
}

/// The kind of call that an allocation stands for.
fn classify_call(run: &PreparedRun<'_>, context: &RunContext<'_>) -> Option<RemoteCall> {
    let known = CALL_OBJECTS
        .iter()
        .find(|(_, name)| *name == context.detail);
    if let Some((call, _)) = known {
        return Some(*call);
    }
    let is_result = ["ResultSet", "ResultSetImpl"]
        .iter()
        .any(|end| context.detail.ends_with(end));
    let driver = |frame: &StackFrame| {
        is_statement_call(frame) && is_package_of(package(&frame.class), context.detail)
    };
    (is_result && run.frames_between(context.path).any(driver)).then_some(RemoteCall::Query)
}

/// Whether a frame is `execute…` of a `java.sql.Statement` of a driver, by its name.
fn is_statement_call(frame: &StackFrame) -> bool {
    let simple = frame.class.rsplit('.').next().unwrap_or_default();
    simple.ends_with("Statement") && frame.method.starts_with("execute")
}

fn package(class: &str) -> &str {
    class.rsplit_once('.').map_or("", |(package, _)| package)
}

fn is_package_of(package: &str, class: &str) -> bool {
    let rest = class.strip_prefix(package);
    !package.is_empty() && rest.is_some_and(|rest| rest.starts_with('.'))
}

/// Of each line, the type with most objects. A pool's wrapper and the driver's object stand for the same call: the driver's
/// is named.
fn largest_by_line<'f>(sums: Vec<(CallKey<'f>, ContextSum)>) -> Vec<(CallKey<'f>, ContextSum)> {
    let mut lines: Vec<(CallKey<'f>, ContextSum)> = Vec::new();
    for (key, sum) in sums {
        match lines.last_mut() {
            Some((last, most))
                if CallKey {
                    detail: "",
                    ..*last
                } == CallKey { detail: "", ..key } =>
            {
                let rank = |key: &CallKey<'_>, sum: &ContextSum| {
                    (sum.sum.count, !key.detail.contains("Proxy"))
                };
                if rank(&key, &sum) > rank(last, most) {
                    (*last, *most) = (key, sum);
                }
            }
            _ => lines.push((key, sum)),
        }
    }
    lines
}

/// How often an entry ran, and what says so.
struct CountedRuns {
    count: u64,
    /// The samples of which it is estimated; `None`: it is exact.
    samples: Option<u64>,
    counted: String,
}

/// The runs of the entry: objects that it makes itself, else the calls of its line with fewest calls.
fn count_runs(
    run: &PreparedRun<'_>,
    key: &CallKey<'_>,
    lines: &[(CallKey<'_>, ContextSum)],
) -> Option<CountedRuns> {
    if let Some(runs) = run.entry_runs(key.entry)
        && run.is_reliable(runs.sum)
    {
        let place = run.frame(runs.path)?;
        return Some(CountedRuns {
            count: runs.sum.count,
            samples: run.sample_count(runs.sum),
            counted: match runs.detail {
                "" => format!("events at {place}"),
                detail => format!("{detail} made at {place}"),
            },
        });
    }
    let others = lines
        .iter()
        .filter(|(other, _)| other.entry == key.entry && other.line != key.line);
    let reliable = others.filter(|(_, sum)| run.is_reliable(sum.sum));
    let (other, sum) = reliable.min_by_key(|(_, sum)| sum.sum.count)?;
    let place = run.place_frame(sum.path)?;
    Some(CountedRuns {
        count: sum.sum.count,
        samples: run.sample_count(sum.sum),
        counted: format!("{} made below {place}", other.detail),
    })
}

/// Twice the relative standard error of the ratio of two sums that are estimated from so many samples.
fn sampling_error(calls: u64, runs: u64) -> f64 {
    2.0 * (1.0 / calls.max(1) as f64 + 1.0 / runs.max(1) as f64).sqrt()
}

fn describe_calls<'f>(
    run: &PreparedRun<'f>,
    key: &CallKey<'f>,
    sum: ContextSum,
    runs: &CountedRuns,
    bytes: u64,
) -> Option<Finding<'f>> {
    let place = run.place_frame(sum.path)?;
    let whole = run.total(ALLOC.name).value;
    let calls = sum.sum.count;
    let each = calls as f64 / runs.count as f64;
    let about = if run.is_sampled(ALLOC.name) {
        "about "
    } else {
        ""
    };
    let samples = run.sample_count(sum.sum).zip(runs.samples);
    let roughly = samples.map(|(calls, runs)| {
        let error = each * sampling_error(calls, runs);
        format!(" ± {error:.1}")
    });
    let roughly = roughly.unwrap_or_default();
    let EntryMethod { class, method } = key.entry;
    Some(Finding {
        detector: "n+1",
        sentence: format!(
            "{about}{} {} for {about}{} of {class}.{method}: {each:.1}{roughly} each",
            grouped(calls),
            key.call.plural(),
            format_plural(runs.count, "run"),
        ),
        count: calls,
        counted: format!(
            "{} below the line; runs: {}{}",
            key.detail,
            runs.counted,
            if samples.is_some() {
                "; ±: two standard errors of the samples"
            } else {
                ""
            }
        ),
        cost: FindingCost {
            share: share_of(bytes, whole),
            text: format!("{:.1}% of the allocated bytes", percent_of(bytes, whole)),
        },
        place,
        path: sum.path,
        advice: format!(
            "Make one {} for all of them: a join, a batch, or one request for many keys.",
            key.call.noun()
        ),
        command: format!(
            "report --through {}",
            super::finding::through_pattern(place)
        ),
    })
}
