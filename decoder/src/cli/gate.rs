//! `lucce gate`: ends with 1 if a newer run does too much more, for a job of continuous integration.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use lucce_decoder::Key;
use lucce_decoder::escape::{Line, Text};

use super::compare::{Change, Compared, Told, What};
use super::human::{change as signed, growth, human};
use super::output::stdout;
use super::{End, Failure, about};

/// Fails, with exit code 1, if a run has more events than a base allows, and shows the contexts that grew.
///
/// Counts are exact and nearly the same in every run, so a limit of a few percent is useful. The sum of all
/// events is compared, or of those through a method.
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
    #[command(flatten)]
    what: What,
    /// The result as JUnit's XML, for CI servers
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// The result as Markdown, for a comment on a change
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// What was found.
struct Found {
    /// `alloc per request`
    title: String,
    /// `951.2 MB → 1.02 GB (+7.2%), allowed +3%`
    sums: String,
    passes: bool,
    /// Each context that grew: how, and its trace.
    grown: Vec<(String, String)>,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let compared = Compared::open(&args.base, &args.new, &args.what)?;
    let found = Found::new(&compared, args);
    let mut out = stdout();
    out.write_all(found.text().as_bytes())?;
    out.flush()?;
    if let Some(path) = &args.junit {
        write(path, &found.junit())?;
    }
    if let Some(path) = &args.markdown {
        write(path, &found.markdown())?;
    }
    let end = match found.passes {
        true => End::Fine,
        false => End::Finding,
    };
    Ok(end.max(compared.end))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| Failure::Usage(about(path, e)))
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|number| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "a growth is a number of percent, from 0 on".to_owned())
}

impl Found {
    fn new(compared: &Compared, args: &Args) -> Found {
        let whole = compared.whole();
        let (old, new) = whole.means();
        let per = args.what.per.as_ref();
        let through = args.what.through.as_ref();
        let title = format!(
            "{}{}{}",
            Text(&compared.kind),
            per.map_or_else(String::new, |per| format!(" per {}", Text(per))),
            // As it was typed: its backslashes are not those of an escaped name.
            through.map_or_else(String::new, |through| {
                format!(" through {}", Line(&through.to_string()))
            })
        );
        let sums = format!(
            "{} → {} ({}), allowed +{}%",
            human(old, &compared.unit),
            human(new, &compared.unit),
            growth(old, new),
            args.max_growth
        );
        let passes = new <= old * (1.0 + args.max_growth / 100.0);
        let top = if args.top == 0 { usize::MAX } else { args.top };
        let grown = match passes {
            true => Vec::new(),
            false => {
                let changes = compared.changes(Told::Context).into_iter();
                let grown = changes.filter(|change| change.by() > 0.0).take(top);
                grown.map(|change| shown(compared, &change)).collect()
            }
        };
        Found {
            title,
            sums,
            passes,
            grown,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.passes {
            true => "passed",
            false => "failed",
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{}: {}: {}\n", self.verdict(), self.title, self.sums);
        for (head, trace) in &self.grown {
            let _ = write!(text, "\n{head}\n{trace}");
        }
        text
    }

    /// One test of one suite, as Maven Surefire writes them.
    fn junit(&self) -> String {
        let title = xml(&self.title);
        let failures = u8::from(!self.passes);
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"lucce gate\" tests=\"1\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">\n  <testcase classname=\"lucce.gate\" name=\"{title}\">\n"
        );
        let sums = xml(&self.sums);
        let _ = match self.passes {
            true => writeln!(text, "    <system-out>{sums}</system-out>"),
            false => writeln!(
                text,
                "    <failure message=\"{sums}\">{}</failure>",
                xml(&self.text())
            ),
        };
        text + "  </testcase>\n</testsuite>\n"
    }

    fn markdown(&self) -> String {
        let mut text = format!(
            "### lucce gate {}\n\n{}: {}\n",
            self.verdict(),
            code(&self.title),
            self.sums
        );
        for (head, trace) in &self.grown {
            let fence = fence(trace);
            let _ = write!(
                text,
                "\n<details><summary>{}</summary>\n\n{fence}\n{trace}{fence}\n\n</details>\n",
                xml(head)
            );
        }
        text
    }
}

/// `+52.1 MB  +310.2%  java.lang.Object[]`, and the trace.
fn shown(compared: &Compared, change: &Change) -> (String, String) {
    let (old, new) = change.means();
    let key = change.key;
    let name = key.map_or_else(String::new, |key| compared.joined.name(key));
    let head = format!(
        "{}  {}  {}",
        signed(change.by(), &compared.unit),
        growth(old, new),
        Text(&name)
    );
    let frames = match key {
        Some(Key::Context(node, _)) => compared.joined.trace(node),
        _ => Vec::new(),
    };
    let trace = frames.iter().fold(String::new(), |mut text, frame| {
        let _ = writeln!(text, "\tat {frame}");
        text
    });
    (head, trace)
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A span of code that no backtick in it ends.
fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    format!("{ticks} {text} {ticks}")
}

fn fence(text: &str) -> String {
    "`".repeat((longest_run(text) + 1).max(3))
}

/// Of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(passes: bool) -> Found {
        Found {
            title: "alloc through <a|b>".into(),
            sums: "1 → 2 (+100.0%), allowed +3%".into(),
            passes,
            grown: vec![(
                "+1  new  a.B<x>[]".into(),
                "\tat a.B.```(B.java:1)\n".into(),
            )],
        }
    }

    #[test]
    fn names_are_no_markup() {
        let junit = found(false).junit();
        assert!(junit.contains("failures=\"1\"") && junit.contains("a.B&lt;x&gt;[]"));
        assert!(!junit.contains("<a|b>") && !junit.contains("B<x>"));
        let markdown = found(false).markdown();
        assert!(markdown.contains("````\n\tat a.B.```(B.java:1)\n````"));
        assert!(markdown.contains("` alloc through <a|b> `"));
    }

    #[test]
    fn what_passes_says_so() {
        let found = Found {
            grown: Vec::new(),
            ..found(true)
        };
        assert!(found.text().starts_with("passed: alloc"));
        assert!(found.junit().contains("failures=\"0\"") && !found.junit().contains("<failure"));
    }

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
