//! `lucce diff`: compares a newer run with an older one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{GroupBy, Measure};
use lucce_page::PageOpening;
use serde::Serialize;

use super::amounts::{format_amount, format_change as signed, format_growth};
use super::compare::{ChangeRow, CompareArgs, RunComparison, RunFacts};
use super::output::{format_plural, grouped, lock_stdout, write_json};
use super::{CommandError, CommandStatus, SortArg, view};

/// Compare runs of a program: what allocates more now, or less.
///
/// Contexts are joined by their content id, 128 bits that name a stack trace alike in every run, so versions
/// and machines may differ. With several runs on a side, the noise is measured, and changes beyond it are marked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce diff old.lucce new.lucce
  lucce diff old.lucce new.lucce --by method --through 'com\\.acme\\.' --per request
  lucce diff old.lucce new.lucce --html difference.html
  lucce diff old-1.lucce old-2.lucce old-3.lucce -- new-1.lucce new-2.lucce new-3.lucce")]
pub struct DiffArgs {
    /// An old log and a new one; or several old ones, then `--` and the new ones
    #[arg(required = true, value_name = "RUN")]
    files: Vec<PathBuf>,
    /// The new logs, after `--`
    #[arg(last = true, value_name = "NEW")]
    new: Vec<PathBuf>,
    /// Sum up by this
    #[arg(long, value_name = "BY", value_enum, default_value_t = GroupBy::Context)]
    by: GroupBy,
    /// Maximum number of changes; 0: all
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print only changes beyond the noise
    #[arg(long)]
    certain: bool,
    #[command(flatten)]
    what: CompareArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Write the page of `lucce view` for both runs, opened at the difference; replaces only such a page. The page has all
    /// changes, with its own search and filters
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["json", "through", "certain", "top", "no_lines"])]
    html: Option<PathBuf>,
}

#[derive(Serialize)]
struct DiffReport<'c> {
    schema: &'static str,
    version: u32,
    event: String,
    unit: String,
    per: Option<String>,
    old: Vec<String>,
    new: Vec<String>,
    /// Facts of each run, old ones first.
    runs: &'c [RunFacts],
    /// Remarks on whether the sums are comparable, each one line.
    remarks: Vec<String>,
    #[serde(skip)]
    sides: (String, String),
    total: ChangeRow,
    /// Number of changes; the list has the largest.
    changes: u64,
    rows: Vec<ChangeRow>,
}

pub fn run(args: &DiffArgs) -> Result<CommandStatus, CommandError> {
    let (old, new) = split_sides(args)?;
    SortArg::check_total(args.what.order.sort, args.by.includes_callees())?;
    SortArg::check_heap(args.what.order.sort, false, false)?;
    if let Some(page) = &args.html {
        return write_page(args, (old, new), page);
    }
    if args.what.no_lines && args.by == GroupBy::Line {
        return Err(CommandError::Usage(
            "--by line needs the lines that --no-lines leaves out".into(),
        ));
    }
    let compared = RunComparison::open_runs(old, new, &args.what)?;
    let mut changes = compared.list_changes(args.by);
    let shifts = compared.line_shifts(&changes);
    if args.certain {
        changes.retain(|change| change.stands_out() == Some(true));
    }
    let top = if args.top == 0 { usize::MAX } else { args.top };
    let names = |files: &[PathBuf]| {
        files
            .iter()
            .map(|file| file.display().to_string())
            .collect()
    };
    let diff = DiffReport {
        schema: "lucce-diff",
        version: 1,
        event: compared.kind.clone(),
        unit: compared.unit.clone(),
        per: args.what.per.clone(),
        old: names(old),
        new: names(new),
        runs: &compared.facts,
        remarks: remark_texts(&compared, args.by),
        sides: compared.describe_sides(),
        total: ChangeRow::new(&compared, &compared.total_change(), &shifts),
        changes: changes.len() as u64,
        rows: changes
            .iter()
            .take(top)
            .map(|change| ChangeRow::new(&compared, change, &shifts))
            .collect(),
    };
    let mut out = lock_stdout();
    match args.json {
        true => write_json(&mut out, &diff)?,
        false => diff.write(args.by, &mut out)?,
    }
    out.flush()?;
    Ok(compared.end)
}

fn remark_texts(compared: &RunComparison, by: GroupBy) -> Vec<String> {
    let with_lines = matches!(by, GroupBy::Context | GroupBy::Line);
    let lines = with_lines.then(|| compared.lines_remark()).flatten();
    let remarks = compared.remarks.iter().chain(&lines);
    remarks.map(|remark| remark.text.clone()).collect()
}

/// Writes the page of both runs (`--html`).
fn write_page(
    args: &DiffArgs,
    sides: (&[PathBuf], &[PathBuf]),
    page: &Path,
) -> Result<CommandStatus, CommandError> {
    let ([old], [new]) = sides else {
        return Err(CommandError::Usage(
            "a page compares two runs, an old one and a new one".into(),
        ));
    };
    let files = [old.clone(), new.clone()];
    let opening = PageOpening {
        tab: "difference".into(),
        kind: args.what.selection.event().unwrap_or_default().to_owned(),
        measure: match args.what.order.measure() {
            None => String::new(),
            Some(Measure::Value) => "value".into(),
            Some(Measure::Count) => "count".into(),
        },
        per: args.what.per.clone().unwrap_or_default(),
        group: args.by.name().to_owned(),
    };
    view::write_page(&files, page, &args.what.selection, opening)
}

fn split_sides(args: &DiffArgs) -> Result<(&[PathBuf], &[PathBuf]), CommandError> {
    // The parser treats everything after `--` as a file.
    if let Some(option) = args.new.iter().find(|file| looks_like_option(file)) {
        return Err(CommandError::Usage(format!(
            "{} stands behind `--`, where only new logs are: options come before the logs",
            option.display()
        )));
    }
    match (&args.files[..], &args.new[..]) {
        ([old, new], []) => Ok((std::slice::from_ref(old), std::slice::from_ref(new))),
        (_, []) => Err(CommandError::Usage(
            "two logs are compared, or several: lucce diff OLD… -- NEW…".into(),
        )),
        (old, new) => Ok((old, new)),
    }
}

/// Whether it looks like an option and no such file exists.
fn looks_like_option(file: &Path) -> bool {
    file.to_string_lossy().starts_with("--") && !file.exists()
}

impl ChangeRow {
    /// `+52.1 MB  +310.2%  16.8 MB → 68.9 MB`
    fn amounts_text(&self, unit: &str) -> String {
        let (old, new) = self.side_means();
        let noise = match self.stands_out {
            Some(true) => "",
            Some(false) => "  (within the noise)",
            None => "",
        };
        format!(
            "{}  {}  {} → {}{noise}",
            signed(self.change, unit),
            format_growth(old, new),
            format_amount(old, unit),
            format_amount(new, unit)
        )
    }
}

impl DiffReport<'_> {
    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let (old, new) = &self.sides;
        writeln!(out, "old: {old}\nnew: {new}")?;
        let mut remarks = self.remarks.iter();
        remarks.try_for_each(|remark| writeln!(out, "{remark}"))
    }

    fn write(&self, by: GroupBy, out: &mut impl Write) -> io::Result<()> {
        let per = self
            .per
            .as_ref()
            .map_or_else(String::new, |per| format!(" per {}", EscapedText(per)));
        self.write_head(out)?;
        writeln!(
            out,
            "{}{per}: {}",
            EscapedText(&self.event),
            self.total.amounts_text(&self.unit)
        )?;
        let runs = |files: &[String]| format_plural(files.len() as u64, "run");
        match self.total.stands_out {
            Some(_) => {
                let noise = format_amount(self.total.noise, &self.unit);
                let (old, new) = (runs(&self.old), runs(&self.new));
                writeln!(
                    out,
                    "{old} and {new}, which differ by up to {noise} on one side\n"
                )?;
            }
            None => writeln!(
                out,
                "one run on each side: what is noise is not known (lucce diff OLD… -- NEW…)\n"
            )?,
        }
        for (number, row) in self.rows.iter().enumerate() {
            match by {
                GroupBy::Context => row.write_context(number + 1, &self.unit, out)?,
                _ => {
                    writeln!(
                        out,
                        "{:<58} {}",
                        row.amounts_text(&self.unit),
                        EscapedText(&row.name)
                    )?;
                    write!(out, "{}", row.shift_line(&self.unit))?;
                }
            }
        }
        let rest = self.changes.saturating_sub(self.rows.len() as u64);
        match rest {
            0 => Ok(()),
            rest => writeln!(out, "{} smaller changes (--top 0)", grouped(rest)),
        }
    }
}

impl ChangeRow {
    fn write_context(&self, number: usize, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let stack = self.stack.as_deref().unwrap_or_default();
        writeln!(
            out,
            "#{number} {}  {}  {stack}",
            self.amounts_text(unit),
            EscapedText(&self.name)
        )?;
        writeln!(out, "{}{}", self.shift_line(unit), self.trace_text())
    }
}
