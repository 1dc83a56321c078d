//! The detector of exceptions for control flow, with the handlers that catch them.

use std::collections::HashMap;

use lucce_command::{format_plural, grouped, percent_of};
use lucce_decoder::{ALLOC, StackFrame};

use super::finding::{
    ContextSum, ContextSums, Finding, FindingCost, SourceLine, per_run, share_of, through_pattern,
};
use super::prepared_run::{PathIndex, PreparedRun, RunContext};

/// Thrown exceptions, as the VM reports them.
pub const EXCEPTION: &str = "exception";
/// The same exceptions by their handlers.
const CATCH: &str = "exception-catch";

pub const ADVICE: &str = "Test before the call, or return the outcome: an exception with its stack trace costs far more. A handler that never reads the exception also hides errors.";

/// Fewer exceptions of one line are no finding.
pub const MIN_EXCEPTIONS: u64 = 100;

pub fn find_exceptions<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    match run.has_kind(EXCEPTION) {
        true => find_caught_exceptions(run),
        false => find_made_exceptions(run),
    }
}

/// A caught exception by type and handler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct ExceptionCatch<'f> {
    type_name: &'f str,
    /// The handler's method.
    method: &'f str,
    line: i32,
    /// The handler never reads the exception.
    is_dropped: bool,
}

impl<'f> ExceptionCatch<'f> {
    /// Parses the detail of an event: `a.E at a.b.C.m:12` or `a.E dropped at a.b.C.m:12`.
    fn parse(detail: &'f str) -> Option<ExceptionCatch<'f>> {
        let (thrown, handler) = detail.rsplit_once(" at ")?;
        let (method, line) = handler.rsplit_once(':')?;
        let dropped = thrown.strip_suffix(" dropped");
        Some(ExceptionCatch {
            type_name: dropped.unwrap_or(thrown),
            method,
            line: line.parse().ok()?,
            is_dropped: dropped.is_some(),
        })
    }

    /// The path of the handler's method: the innermost frame of that name.
    fn handler_path(&self, run: &PreparedRun<'_>, path: PathIndex) -> Option<PathIndex> {
        let is_handler = |path: &PathIndex| {
            run.frame(*path).is_some_and(|frame| {
                let method = self.method.strip_prefix(frame.class.as_str());
                method.and_then(|rest| rest.strip_prefix('.')) == Some(frame.method.as_str())
            })
        };
        run.paths_outwards(path).find(is_handler)
    }

    /// The handler's line, as traces show it.
    fn handler_text(&self, run: &PreparedRun<'_>, path: PathIndex) -> String {
        let handler = self.handler_path(run, path);
        match handler.and_then(|handler| run.frame(handler)) {
            Some(frame) => StackFrame {
                line: self.line,
                ..frame.clone()
            }
            .to_string(),
            None => format!("{}:{}", self.method, self.line),
        }
    }

    /// Whether the program's own code is the cause: it throws, itself or by the JDK, or it catches what a library throws. What
    /// is caught below its line is the work of others.
    fn is_own_control_flow(&self, run: &PreparedRun<'_>, path: PathIndex) -> bool {
        let Some(place) = run.place(path).filter(|_| !loads_class(run, path)) else {
            return false;
        };
        // A class loader asks its parent first.
        if self.method.ends_with(".loadClass") {
            return false;
        }
        let Some(handler) = self.handler_path(run, path) else {
            return run.is_direct(path);
        };
        let is_below = run.paths_outwards(path).take_while(|path| *path != place);
        let is_below = { is_below }.any(|path| path == handler);
        let is_own_handler = run.frame(handler).is_some_and(StackFrame::is_own);
        !is_below && (is_own_handler || run.is_direct(path))
    }
}

/// The exceptions of one type at one own line, with each handler.
type CatchGroup<'f> = [((SourceLine<'f>, ExceptionCatch<'f>), ContextSum)];

/// Exceptions that the VM reported, with their handlers.
fn find_caught_exceptions<'f>(run: &PreparedRun<'f>) -> Vec<Finding<'f>> {
    let sums = ContextSums::from_contexts(run.contexts_of_kind(CATCH), |context| {
        let catch = ExceptionCatch::parse(context.detail)?;
        let is_own = catch.is_own_control_flow(run, context.path);
        Some((run.source_line(context.path).filter(|_| is_own)?, catch))
    });
    let sums = sums.into_sorted();
    let traces = sum_stack_traces(run);
    let groups = sums.chunk_by(|a, b| (a.0.0, a.0.1.type_name) == (b.0.0, b.0.1.type_name));
    let findings = groups.filter_map(|group| describe_catches(run, group, &traces));
    findings.collect()
}

fn describe_catches<'f>(
    run: &PreparedRun<'f>,
    group: &CatchGroup<'f>,
    traces: &HashMap<SourceLine<'f>, u64>,
) -> Option<Finding<'f>> {
    let count = group.iter().map(|(_, sum)| sum.sum.count).sum();
    if count < MIN_EXCEPTIONS {
        return None;
    }
    let ((line, catch), most) = group.iter().max_by_key(|(_, sum)| sum.sum.count)?;
    let place = run.place_frame(most.path)?;
    let cost = match traces.get(line) {
        Some(bytes) => stack_trace_cost(run, *bytes),
        None => exception_share(count, run.total(EXCEPTION).count),
    };
    let others = match group.len() {
        1 => String::new(),
        handlers => format!(
            " and by {}",
            format_plural(handlers as u64 - 1, "more handler")
        ),
    };
    let sentence = format!(
        "{} × {} thrown, {} at {}{others}",
        grouped(count),
        catch.type_name,
        match catch.is_dropped {
            true => "caught and dropped",
            false => "caught",
        },
        catch.handler_text(run, most.path),
    );
    Some(Finding {
        detector: "exceptions",
        sentence: sentence + &per_run(run, most.path, count),
        count,
        counted: "exceptions that the VM reported, with their handlers; dropped: the handler never reads it".into(),
        cost,
        place,
        path: most.path,
        advice: ADVICE.into(),
        command: format!(
            "report --event exception-catch --through {}",
            through_pattern(place)
        ),
    })
}

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
                advice: ADVICE.into(),
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
