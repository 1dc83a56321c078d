//! `lucce gate`: ends with 1 if a newer run does too much more, for a job of continuous integration.
//!
//! It passes only what it can judge: events that were lost, a log that is cut, samples beside exact counts, or a
//! filter that nothing goes through make the sums meaningless, and it ends with 2 or 3 then. `forms` has what it
//! writes.

mod forms;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use lucce_decoder::escape::{Line, Text};

use super::compare::{Compared, Facts, LineShifts, Remark, Row, Told, Weight, What};
use super::human::{growth, human};
use super::output::{json, spare_own, stdout};
use super::{End, Failure, about};

/// Fails, with exit code 1, if a run has more events than a base allows, and shows the contexts that grew.
///
/// Counts are exact and nearly the same in every run, so a limit of a few percent is useful. The sum of all
/// events is compared, or of those through a method. What cannot be judged ends with 2, a damaged log with 3.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce gate new.lucce --base old.lucce --max-growth 3%
  lucce gate new.lucce --base old.lucce --through 'com\\.acme\\.Search' --per request --junit gate.xml")]
pub struct Args {
    /// Logs of the new version
    #[arg(required = true, value_name = "NEW")]
    new: Vec<PathBuf>,
    /// A log of the old version; several: give it several times
    #[arg(long, required = true, value_name = "OLD")]
    base: Vec<PathBuf>,
    /// The new runs' mean may be so much above the old runs'
    #[arg(long, default_value = "3%", value_name = "PERCENT", value_parser = percent)]
    max_growth: f64,
    /// How many contexts are shown; 0: all that grew
    #[arg(long, default_value_t = 5)]
    top: usize,
    /// Runs are judged even if events were lost, or if their end is missing (the JVM was killed or still runs)
    #[arg(long)]
    allow_incomplete: bool,
    #[command(flatten)]
    what: What,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// The result as JUnit's XML, for CI servers
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// The result as Markdown, for a comment on a change
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// What was found.
struct Found<'c> {
    verdict: Verdict,
    /// `alloc per request`
    title: String,
    /// Not there: no log could be compared.
    sums: Option<Sums>,
    /// Why it is not judged.
    reasons: Vec<String>,
    /// `old: app.Main, OpenJDK 17.0.21, 1 run`
    sides: Vec<String>,
    /// What else is to be known of the runs.
    remarks: Vec<String>,
    runs: &'c [Facts],
    /// Each context that grew.
    grown: Vec<Row>,
}

/// What is judged.
struct Sums {
    event: String,
    unit: String,
    total: Row,
    /// Percent.
    max_growth: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Passed,
    Failed,
    NotJudged,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let mut targets = args.junit.iter().chain(&args.markdown);
    targets.try_for_each(|path| spare_own(path))?;
    let compared = match Compared::open(&args.base, &args.new, &args.what) {
        Ok(compared) => compared,
        Err(failure) => {
            if let Err(too) = write_forms(&Found::nothing(args, &failure), args) {
                too.tell();
            }
            return Err(failure);
        }
    };
    let found = Found::new(&compared, args);
    let mut out = stdout();
    match args.json {
        true => json(&mut out, &found.object())?,
        false => out.write_all(found.text().as_bytes())?,
    }
    out.flush()?;
    write_forms(&found, args)?;
    Ok(found.verdict.end().max(compared.end))
}

fn write_forms(found: &Found, args: &Args) -> Result<(), Failure> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|e| Failure::Usage(about(path, e)))
    };
    if let Some(path) = &args.junit {
        write(path, found.junit())?;
    }
    match &args.markdown {
        Some(path) => write(path, found.markdown()),
        None => Ok(()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|number| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "a growth is a number of percent, from 0 on".to_owned())
}

impl Verdict {
    fn end(self) -> End {
        match self {
            Verdict::Passed => End::Fine,
            Verdict::Failed => End::Finding,
            Verdict::NotJudged => End::Unusable,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::NotJudged => "not judged",
        }
    }
}

impl<'c> Found<'c> {
    fn new(compared: &'c Compared, args: &Args) -> Found<'c> {
        let sums = Sums {
            event: compared.kind.clone(),
            unit: compared.unit.clone(),
            total: Row::new(compared, &compared.whole(), &LineShifts::new()),
            max_growth: args.max_growth,
        };
        let grew = sums.grew();
        let (grown, lines) = match grew {
            true => (grown(compared, args.top), compared.lines_remark()),
            false => (Vec::new(), None),
        };
        let (doubts, remarks): (Vec<_>, Vec<_>) = compared
            .remarks
            .iter()
            .chain(&lines)
            .partition(|remark| is_doubt(remark, args));
        let (old, new) = compared.sides();
        let remarks = remarks.into_iter().map(|remark| remark.text.clone());
        Found {
            verdict: match (doubts.is_empty(), grew) {
                (false, _) => Verdict::NotJudged,
                (true, true) => Verdict::Failed,
                (true, false) => Verdict::Passed,
            },
            title: title(&compared.kind, &args.what),
            sums: Some(sums),
            reasons: doubts.into_iter().map(reason).collect(),
            sides: vec![format!("old: {old}"), format!("new: {new}")],
            remarks: remarks.collect(),
            runs: &compared.facts,
            grown,
        }
    }

    /// Nothing could be compared.
    fn nothing(args: &Args, failure: &Failure) -> Found<'c> {
        let kind = args.what.event.as_deref().unwrap_or("events");
        Found {
            verdict: Verdict::NotJudged,
            title: title(kind, &args.what),
            sums: None,
            reasons: vec![why(failure)],
            sides: Vec::new(),
            remarks: Vec::new(),
            runs: &[],
            grown: Vec::new(),
        }
    }
}

impl Sums {
    fn grew(&self) -> bool {
        let (old, new) = self.total.means();
        new > old * (1.0 + self.max_growth / 100.0)
    }

    /// `951.2 MB → 1.02 GB (+7.2%), allowed +3%`
    fn text(&self) -> String {
        let (old, new) = self.total.means();
        format!(
            "{} → {} ({}), allowed +{}%",
            human(old, &self.unit),
            human(new, &self.unit),
            growth(old, new),
            self.max_growth
        )
    }
}

/// As it is said on standard error.
fn why(failure: &Failure) -> String {
    let text = match failure {
        Failure::Open(path, e) => about(path, e),
        Failure::Output(e) => e.to_string(),
        Failure::Usage(text) | Failure::Absent(text, _) | Failure::Refused(text, _) => text.clone(),
    };
    Line(&text).to_string()
}

/// Whether it keeps the sums from being judged.
fn is_doubt(remark: &Remark, args: &Args) -> bool {
    match remark.weight {
        Weight::Said => false,
        Weight::Incomplete => !args.allow_incomplete,
        Weight::Incomparable => true,
    }
}

fn reason(doubt: &Remark) -> String {
    match doubt.weight {
        Weight::Incomplete => format!("{} (--allow-incomplete judges it)", doubt.text),
        Weight::Said | Weight::Incomparable => doubt.text.clone(),
    }
}

/// `alloc per request through com\.acme\.`
fn title(kind: &str, what: &What) -> String {
    let per = what.per.as_ref();
    let through = what.through.as_ref();
    format!(
        "{}{}{}",
        Text(kind),
        per.map_or_else(String::new, |per| format!(" per {}", Text(per))),
        // As it was typed: its backslashes are not those of an escaped name.
        through.map_or_else(String::new, |through| {
            format!(" through {}", Line(&through.to_string()))
        })
    )
}

/// The contexts that grew.
fn grown(compared: &Compared, top: usize) -> Vec<Row> {
    let top = if top == 0 { usize::MAX } else { top };
    let changes = compared.changes(Told::Context);
    let shifts = compared.line_shifts(&changes);
    let grown = changes.iter().filter(|change| change.by() > 0.0).take(top);
    let row = |change| Row::new(compared, change, &shifts);
    grown.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_in_percent() {
        assert_eq!(
            ["3%", "0", "12.5%"].map(|text| percent(text).unwrap()),
            [3.0, 0.0, 12.5]
        );
        assert!(
            ["", "-1%", "x", "inf"]
                .iter()
                .all(|text| percent(text).is_err())
        );
    }
}
