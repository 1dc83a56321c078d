//! `lucce diff`: what a newer run does more or less of.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lucce_decoder::Opening;
use lucce_decoder::escape::Text;
use serde::Serialize;

use super::compare::{Compared, Facts, Row, Told, What};
use super::human::{change as signed, growth, human};
use super::output::{grouped, json, plural, stdout};
use super::{End, Failure, Weigh, view};

/// Compares two runs of a program: what allocates more now, or less.
///
/// Contexts are joined by their content id, 128 bits that name a stack trace alike in every run, so versions
/// and machines may differ. Runs of one program differ by chance: with several on a side the spread is
/// measured, and changes that stand out of it are marked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce diff old.lucce new.lucce
  lucce diff old.lucce new.lucce --by method --through 'com\\.acme\\.' --per request
  lucce diff old.lucce new.lucce --html difference.html
  lucce diff old-1.lucce old-2.lucce old-3.lucce -- new-1.lucce new-2.lucce new-3.lucce")]
pub struct Args {
    /// A log of the old version and one of the new; or several old ones, then `--` and the new ones
    #[arg(required = true, value_name = "RUN")]
    files: Vec<PathBuf>,
    #[arg(last = true, value_name = "NEW")]
    new: Vec<PathBuf>,
    #[arg(long, value_enum, default_value_t = Told::Context)]
    by: Told,
    /// How many changes; 0: all
    #[arg(long, default_value_t = 10)]
    top: usize,
    /// Only changes that stand out of the noise
    #[arg(long)]
    certain: bool,
    #[command(flatten)]
    what: What,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// The page of `lucce view` for both runs in this file, opened at the difference; a file that is there is replaced only if
    /// it is such a page. The page has all changes, and is searched and filtered by itself
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["json", "through", "certain", "top", "no_lines"])]
    html: Option<PathBuf>,
}

#[derive(Serialize)]
struct Diff<'c> {
    schema: &'static str,
    version: u32,
    event: String,
    unit: String,
    per: Option<String>,
    old: Vec<String>,
    new: Vec<String>,
    /// What is to be known of each run, the old ones first.
    runs: &'c [Facts],
    /// What a reader must know before sums are compared, each in a line.
    remarks: Vec<String>,
    #[serde(skip)]
    sides: (String, String),
    total: Row,
    /// Changes that there are, of which the largest follow.
    changes: u64,
    rows: Vec<Row>,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let (old, new) = sides(args)?;
    if let Some(page) = &args.html {
        return page_of(args, (old, new), page);
    }
    if args.what.no_lines && args.by == Told::Line {
        return Err(Failure::Usage(
            "--by line needs the lines that --no-lines leaves out".into(),
        ));
    }
    let compared = Compared::open(old, new, &args.what)?;
    let mut changes = compared.changes(args.by);
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
    let diff = Diff {
        schema: "lucce-diff",
        version: 1,
        event: compared.kind.clone(),
        unit: compared.unit.clone(),
        per: args.what.per.clone(),
        old: names(old),
        new: names(new),
        runs: &compared.facts,
        remarks: remarks(&compared, args.by),
        sides: compared.sides(),
        total: Row::new(&compared, &compared.whole(), &shifts),
        changes: changes.len() as u64,
        rows: changes
            .iter()
            .take(top)
            .map(|change| Row::new(&compared, change, &shifts))
            .collect(),
    };
    let mut out = stdout();
    match args.json {
        true => json(&mut out, &diff)?,
        false => diff.write(args.by, &mut out)?,
    }
    out.flush()?;
    Ok(compared.end)
}

fn remarks(compared: &Compared, by: Told) -> Vec<String> {
    let with_lines = matches!(by, Told::Context | Told::Line);
    let lines = with_lines.then(|| compared.lines_remark()).flatten();
    let remarks = compared.remarks.iter().chain(&lines);
    remarks.map(|remark| remark.text.clone()).collect()
}

/// `--html`: the page of both runs.
fn page_of(args: &Args, sides: (&[PathBuf], &[PathBuf]), page: &Path) -> Result<End, Failure> {
    let ([old], [new]) = sides else {
        return Err(Failure::Usage(
            "a page compares two runs, an old one and a new one".into(),
        ));
    };
    let files = [old.clone(), new.clone()];
    let opening = Opening {
        tab: "difference".into(),
        kind: args.what.event.clone().unwrap_or_default(),
        measure: match args.what.value {
            None => String::new(),
            Some(Weigh::Sum) => "value".into(),
            Some(Weigh::Count) => "count".into(),
        },
        per: args.what.per.clone().unwrap_or_default(),
        group: args.by.name(),
    };
    let what = (&args.what.classes, &args.what.tagged);
    view::make(&files, page, what, opening)
}

fn sides(args: &Args) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
    // Behind `--` everything is a file to the parser of options.
    if let Some(option) = args.new.iter().find(|file| is_option(file)) {
        return Err(Failure::Usage(format!(
            "{} stands behind `--`, where only new logs are: options come before the logs",
            option.display()
        )));
    }
    match (&args.files[..], &args.new[..]) {
        ([old, new], []) => Ok((std::slice::from_ref(old), std::slice::from_ref(new))),
        (_, []) => Err(Failure::Usage(
            "two logs are compared, or several: lucce diff OLD… -- NEW…".into(),
        )),
        (old, new) => Ok((old, new)),
    }
}

/// It looks like an option, and no such file is there.
fn is_option(file: &Path) -> bool {
    file.to_string_lossy().starts_with("--") && !file.exists()
}

impl Row {
    /// `+52.1 MB  +310.2%  16.8 MB → 68.9 MB`
    fn amounts(&self, unit: &str) -> String {
        let (old, new) = self.means();
        let noise = match self.stands_out {
            Some(true) => "",
            Some(false) => "  (within the noise)",
            None => "",
        };
        format!(
            "{}  {}  {} → {}{noise}",
            signed(self.change, unit),
            growth(old, new),
            human(old, unit),
            human(new, unit)
        )
    }
}

impl Diff<'_> {
    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let (old, new) = &self.sides;
        writeln!(out, "old: {old}\nnew: {new}")?;
        let mut remarks = self.remarks.iter();
        remarks.try_for_each(|remark| writeln!(out, "{remark}"))
    }

    fn write(&self, by: Told, out: &mut impl Write) -> io::Result<()> {
        let per = self
            .per
            .as_ref()
            .map_or_else(String::new, |per| format!(" per {}", Text(per)));
        self.write_head(out)?;
        writeln!(
            out,
            "{}{per}: {}",
            Text(&self.event),
            self.total.amounts(&self.unit)
        )?;
        let runs = |files: &[String]| plural(files.len() as u64, "run");
        match self.total.stands_out {
            Some(_) => {
                let noise = human(self.total.noise, &self.unit);
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
                Told::Context => row.write_context(number + 1, &self.unit, out)?,
                _ => {
                    writeln!(out, "{:<58} {}", row.amounts(&self.unit), Text(&row.name))?;
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

impl Row {
    fn write_context(&self, number: usize, unit: &str, out: &mut impl Write) -> io::Result<()> {
        let stack = self.stack.as_deref().unwrap_or_default();
        writeln!(
            out,
            "#{number} {}  {}  {stack}",
            self.amounts(unit),
            Text(&self.name)
        )?;
        writeln!(out, "{}{}", self.shift_line(unit), self.trace())
    }
}
