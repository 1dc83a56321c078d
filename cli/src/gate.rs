//! `lucce gate`: ends with exit code 1 if a newer run exceeds a limit, for continuous integration.
//!
//! It passes only runs that it can judge. Dropped events, a truncated log, samples beside exact counts, or a pattern
//! without a match make the sums meaningless; it then ends with 2 or 3. `result_formats` writes the result.

mod result_formats;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use lucce_decoder::GroupBy;
use lucce_decoder::escape::{EscapedLine, EscapedText};

use super::amounts::{format_amount, format_growth};
use super::compare::{
    ChangeRow, CompareArgs, CompareRemark, LineShifts, RemarkSeverity, RunComparison, RunFacts,
    SideErrors,
};
use super::output::{lock_stdout, refuse_lucce_file, write_json};
use super::{CommandError, CommandStatus, SortArg, prefix_path};

/// Fail, with exit code 1, if new runs exceed old ones by more than a limit; print the contexts that grew.
///
/// Counts are exact and nearly equal in every run, so a limit of a few percent is useful. The sum of all
/// events is compared, or of events through a method. Runs that cannot be judged end with 2, a damaged log with 3.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce gate new.lucce --base old.lucce --max-growth 3%
  lucce gate new.lucce --base old.lucce --through 'com\\.acme\\.Search' --per request --junit gate.xml")]
pub struct GateArgs {
    /// Logs of the new version
    #[arg(required = true, value_name = "NEW")]
    new: Vec<PathBuf>,
    /// Log of the old version; repeatable
    #[arg(long, required = true, value_name = "OLD")]
    base: Vec<PathBuf>,
    /// Maximum growth of the runs' mean
    #[arg(long, default_value = "3%", value_name = "PERCENT", value_parser = parse_growth_percent)]
    max_growth: f64,
    /// Maximum number of contexts to print; 0: all that grew
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Judge runs with dropped events or a missing end (the JVM was killed or still runs)
    #[arg(long)]
    allow_incomplete: bool,
    /// Judge runs of different programs, and new runs without any event of the selection
    #[arg(long)]
    allow_different: bool,
    #[command(flatten)]
    what: CompareArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Write the result as JUnit XML, for CI servers
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the result as Markdown, for a comment on a change
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// The result of a gate.
struct GateResult<'c> {
    verdict: GateVerdict,
    /// `alloc per request`
    title: String,
    /// `None`: no logs could be compared.
    sums: Option<GateSums>,
    /// Reasons why the runs are not judged.
    reasons: Vec<String>,
    /// `old: app.Main, OpenJDK 17.0.21, 1 run`
    sides: Vec<String>,
    /// Further remarks on the runs.
    remarks: Vec<String>,
    runs: &'c [RunFacts],
    /// The contexts that grew most.
    grown: Vec<ChangeRow>,
    /// Number and sum of the other contexts that grew.
    other_grown: (usize, f64),
}

/// The judged sums.
struct GateSums {
    event: String,
    unit: String,
    total: ChangeRow,
    /// Limit in percent.
    max_growth: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GateVerdict {
    Passed,
    Failed,
    NotJudged,
}

pub fn run(args: &GateArgs) -> Result<CommandStatus, CommandError> {
    // A gate compares contexts, which have no callees.
    SortArg::check_total(args.what.order.sort, false)?;
    SortArg::check_heap(args.what.order.sort, false, false)?;
    let mut targets = args.junit.iter().chain(&args.markdown);
    targets.try_for_each(|path| refuse_lucce_file(path))?;
    let compared = match RunComparison::open_runs(&args.base, &args.new, &args.what) {
        Ok(compared) => compared,
        Err(failure) => {
            if let Err(too) = write_result_files(&GateResult::from_failure(args, &failure), args) {
                too.report_to_stderr();
            }
            return Err(failure);
        }
    };
    let result = GateResult::new(&compared, args);
    let mut out = lock_stdout();
    match args.json {
        true => write_json(&mut out, &result.to_json())?,
        false => out.write_all(result.to_text().as_bytes())?,
    }
    out.flush()?;
    write_result_files(&result, args)?;
    Ok(result.verdict.to_status().max(compared.end))
}

fn write_result_files(result: &GateResult, args: &GateArgs) -> Result<(), CommandError> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|e| CommandError::Usage(prefix_path(path, e)))
    };
    if let Some(path) = &args.junit {
        write(path, result.to_junit())?;
    }
    match &args.markdown {
        Some(path) => write(path, result.to_markdown()),
        None => Ok(()),
    }
}

fn parse_growth_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|number| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "a growth is a number of percent, from 0 on".to_owned())
}

impl GateVerdict {
    fn to_status(self) -> CommandStatus {
        match self {
            GateVerdict::Passed => CommandStatus::Fine,
            GateVerdict::Failed => CommandStatus::Finding,
            GateVerdict::NotJudged => CommandStatus::Unusable,
        }
    }

    fn display_name(self) -> &'static str {
        match self {
            GateVerdict::Passed => "passed",
            GateVerdict::Failed => "failed",
            GateVerdict::NotJudged => "not judged",
        }
    }
}

impl<'c> GateResult<'c> {
    fn new(compared: &'c RunComparison, args: &GateArgs) -> GateResult<'c> {
        let sums = GateSums {
            event: compared.kind.clone(),
            unit: compared.unit.clone(),
            total: ChangeRow::new(compared, &compared.total_change(), &LineShifts::new()),
            max_growth: args.max_growth,
        };
        let grew = sums.has_grown();
        let ((grown, other_grown), lines) = match grew {
            true => (
                collect_grown_rows(compared, args.top),
                compared.lines_remark(),
            ),
            false => ((Vec::new(), (0, 0.0)), None),
        };
        let (doubts, remarks): (Vec<_>, Vec<_>) = compared
            .remarks
            .iter()
            .chain(&lines)
            .partition(|remark| is_doubt(remark, args));
        let reasons = doubts.into_iter().map(format_reason);
        let reasons: Vec<_> = reasons.chain(sums.sampling_doubt(compared)).collect();
        let (old, new) = compared.describe_sides();
        let remarks = remarks.into_iter().map(|remark| remark.text.clone());
        GateResult {
            verdict: match (reasons.is_empty(), grew) {
                (false, _) => GateVerdict::NotJudged,
                (true, true) => GateVerdict::Failed,
                (true, false) => GateVerdict::Passed,
            },
            title: format_title(&compared.kind, &args.what),
            sums: Some(sums),
            reasons,
            sides: vec![format!("old: {old}"), format!("new: {new}")],
            remarks: remarks.collect(),
            runs: &compared.facts,
            grown,
            other_grown,
        }
    }

    /// The result if nothing could be compared.
    fn from_failure(args: &GateArgs, failure: &CommandError) -> GateResult<'c> {
        let kind = args.what.selection.event().unwrap_or("events");
        GateResult {
            verdict: GateVerdict::NotJudged,
            title: format_title(kind, &args.what),
            sums: None,
            reasons: vec![describe_failure(failure)],
            sides: Vec::new(),
            remarks: Vec::new(),
            runs: &[],
            grown: Vec::new(),
            other_grown: (0, 0.0),
        }
    }
}

impl GateSums {
    fn has_grown(&self) -> bool {
        self.limit_distance() > 0.0
    }

    /// Why samples do not tell whether the sum has grown by more than the limit.
    fn sampling_doubt(&self, compared: &RunComparison) -> Option<String> {
        let error = match compared.side_errors()? {
            SideErrors::Known { old, new } => self.difference_error(old, new),
            SideErrors::Unknown => {
                let text = "numbers of objects that are estimated from samples have no known error: compare bytes";
                return Some(text.to_owned());
            }
        };
        let distance = self.limit_distance().abs();
        (distance <= error).then(|| {
            let [distance, error] = [distance, error].map(|amount| format_amount(amount, &self.unit));
            format!(
                "estimated from samples: the distance from the limit, {distance}, is within their error of ±{error}; \
                 record longer, or every allocation"
            )
        })
    }

    /// By how much the new sum exceeds the limit.
    fn limit_distance(&self) -> f64 {
        let (old, new) = self.total.side_means();
        new - old * self.allowed_factor()
    }

    /// The error of [`Self::limit_distance`], from those of both sums.
    fn difference_error(&self, old: f64, new: f64) -> f64 {
        (old * self.allowed_factor()).hypot(new)
    }

    fn allowed_factor(&self) -> f64 {
        1.0 + self.max_growth / 100.0
    }

    /// `951.2 MB → 1.02 GB (+7.2%), allowed +3%`
    fn to_text(&self) -> String {
        let (old, new) = self.total.side_means();
        format!(
            "{} → {} ({}), allowed +{}%",
            format_amount(old, &self.unit),
            format_amount(new, &self.unit),
            format_growth(old, new),
            self.max_growth
        )
    }
}

/// The failure's message, as on standard error.
fn describe_failure(failure: &CommandError) -> String {
    let text = match failure {
        CommandError::Open(path, e) => prefix_path(path, e),
        CommandError::Output(e) => e.to_string(),
        CommandError::Usage(text)
        | CommandError::Absent(text, _)
        | CommandError::Refused(text, _) => text.clone(),
    };
    EscapedLine(&text).to_string()
}

/// Whether a remark prevents judging the sums.
fn is_doubt(remark: &CompareRemark, args: &GateArgs) -> bool {
    match remark.severity {
        RemarkSeverity::Note => false,
        RemarkSeverity::Incomplete => !args.allow_incomplete,
        RemarkSeverity::Different => !args.allow_different,
        RemarkSeverity::Incomparable => true,
    }
}

fn format_reason(doubt: &CompareRemark) -> String {
    match doubt.severity {
        RemarkSeverity::Incomplete => format!("{} (--allow-incomplete judges it)", doubt.text),
        RemarkSeverity::Different => format!("{} (--allow-different judges it)", doubt.text),
        RemarkSeverity::Note | RemarkSeverity::Incomparable => doubt.text.clone(),
    }
}

/// The title: `alloc per request of byte\[\] through com\.acme\. with route=GET /`
fn format_title(kind: &str, what: &CompareArgs) -> String {
    let counts = &what.selection.counts;
    let patterns = &counts.patterns;
    let per = what.per.as_ref();
    let per = per.map(|per| format!(" per {}", EscapedText(per)));
    // Patterns as typed: their backslashes are not escapes of a name.
    let of_type = patterns.type_pattern.as_ref();
    let of_type = of_type.map(|of| format!(" of {}", EscapedLine(of.as_str())));
    let through = patterns.through.as_ref();
    let through = through.map(|through| format!(" through {}", EscapedLine(through.as_str())));
    let tags = counts.tagged.pairs().iter();
    let tags = tags.map(|tag| format!(" with {}", EscapedText(tag)));
    let parts = per.into_iter().chain(of_type).chain(through).chain(tags);
    format!("{}{}", EscapedText(kind), parts.collect::<String>())
}

/// The contexts that grew most; number and sum of the others that grew.
fn collect_grown_rows(compared: &RunComparison, top: usize) -> (Vec<ChangeRow>, (usize, f64)) {
    let top = if top == 0 { usize::MAX } else { top };
    let changes = compared.list_changes(GroupBy::Context);
    let shifts = compared.line_shifts(&changes);
    let grown = changes.iter().filter(|change| change.difference() > 0.0);
    let grown: Vec<_> = grown.collect();
    let (largest, others) = grown.split_at(top.min(grown.len()));
    let row = |change: &&_| ChangeRow::new(compared, change, &shifts);
    let sum = others.iter().map(|change| change.difference()).sum();
    (largest.iter().map(row).collect(), (others.len(), sum))
}

#[cfg(test)]
mod gate_tests {
    use super::*;

    #[test]
    fn growth_is_in_percent() {
        assert_eq!(
            ["3%", "0", "12.5%"].map(|text| parse_growth_percent(text).unwrap()),
            [3.0, 0.0, 12.5]
        );
        assert!(
            ["", "-1%", "x", "inf"]
                .iter()
                .all(|text| parse_growth_percent(text).is_err())
        );
    }
}
