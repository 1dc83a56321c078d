//! Writes a gate's result as text, JSON, JUnit XML and Markdown.

use std::fmt::Write as _;

use lucce_decoder::escape::EscapedText;
use serde::Serialize;

use super::super::amounts::{format_change as signed, format_growth};
use super::super::compare::{ChangeRow, RunFacts};
use super::super::output::format_plural;
use super::{GateResult, GateSums, GateVerdict};

/// The output of `--json`.
#[derive(Serialize)]
pub(super) struct GateResultJson<'f> {
    schema: &'static str,
    version: u32,
    verdict: &'static str,
    title: &'f str,
    event: Option<&'f str>,
    unit: Option<&'f str>,
    max_growth: Option<f64>,
    reasons: &'f [String],
    runs: &'f [RunFacts],
    remarks: &'f [String],
    total: Option<&'f ChangeRow>,
    /// The contexts that grew most.
    rows: &'f [ChangeRow],
}

impl GateResult<'_> {
    pub(super) fn to_json(&self) -> GateResultJson<'_> {
        let sums = self.sums.as_ref();
        GateResultJson {
            schema: "lucce-gate",
            version: 1,
            verdict: self.verdict.display_name(),
            title: &self.title,
            event: sums.map(|sums| &*sums.event),
            unit: sums.map(|sums| &*sums.unit),
            max_growth: sums.map(|sums| sums.max_growth),
            reasons: &self.reasons,
            runs: self.runs,
            remarks: &self.remarks,
            total: sums.map(|sums| &sums.total),
            rows: &self.grown,
        }
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!(
            "{}: {}{}\n",
            self.verdict.display_name(),
            self.title,
            self.format_sums()
        );
        for reason in &self.reasons {
            let _ = writeln!(text, "because {reason}");
        }
        for line in self.sides.iter().chain(&self.remarks) {
            let _ = writeln!(text, "{line}");
        }
        for row in &self.grown {
            let shift = row.shift_line(self.unit());
            let _ = write!(
                text,
                "\n{}\n{shift}{}",
                self.format_row_head(row),
                row.trace_text()
            );
        }
        if let (others @ 1.., sum) = self.other_grown {
            let _ = writeln!(
                text,
                "\n{} grew, {} in sum (--top 0); by method: lucce diff --no-lines --by method",
                format_plural(others as u64, "more context"),
                signed(sum, self.unit())
            );
        }
        text
    }

    /// The sums, written after the title.
    fn format_sums(&self) -> String {
        let sums = self.sums.as_ref();
        sums.map_or_else(String::new, |sums| format!(": {}", sums.to_text()))
    }

    /// The unit of amounts.
    fn unit(&self) -> &str {
        self.sums.as_ref().map_or("", |sums| &sums.unit)
    }

    /// `+52.1 MB  +310.2%  java.lang.Object[]  edfe891c…`
    fn format_row_head(&self, row: &ChangeRow) -> String {
        let unit = self.unit();
        let (old, new) = row.side_means();
        format!(
            "{}  {}  {}  {}",
            signed(row.change, unit),
            format_growth(old, new),
            EscapedText(&row.name),
            row.stack.as_deref().unwrap_or_default()
        )
    }

    /// A suite with one test, like Maven Surefire's files.
    pub(super) fn to_junit(&self) -> String {
        let title = escape_xml(&self.title);
        let failures = u8::from(self.verdict == GateVerdict::Failed);
        let errors = u8::from(self.verdict == GateVerdict::NotJudged);
        let text = escape_xml(&self.to_text());
        let result = match self.verdict {
            GateVerdict::Passed => format!("<system-out>{text}</system-out>"),
            GateVerdict::Failed => {
                let sums = self
                    .sums
                    .as_ref()
                    .map_or_else(String::new, GateSums::to_text);
                format!(
                    "<failure message=\"{}\">{text}</failure>",
                    escape_xml(&sums)
                )
            }
            GateVerdict::NotJudged => {
                let why = escape_xml(&self.reasons.join("; "));
                format!("<error message=\"not judged: {why}\">{text}</error>")
            }
        };
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"lucce gate\" tests=\"1\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\">\n  <testcase classname=\"lucce.gate\" name=\"{title}\">\n    {result}\n  </testcase>\n</testsuite>\n"
        )
    }

    pub(super) fn to_markdown(&self) -> String {
        let mut text = format!(
            "### lucce gate {}\n\n{}{}\n",
            self.verdict.display_name(),
            format_code_span(&self.title),
            self.format_sums()
        );
        text += &format_list("Not judged, because", &self.reasons);
        text += &format_list("Runs", &[&self.sides[..], &self.remarks[..]].concat());
        for row in &self.grown {
            let (head, trace) = (self.format_row_head(row), row.trace_text());
            let shift = match row.shift_line(self.unit()) {
                line if line.is_empty() => line,
                line => line + "\n",
            };
            let fence = code_fence(&trace);
            let _ = write!(
                text,
                "\n<details><summary>{}</summary>\n\n{shift}{fence}\n{trace}{fence}\n\n</details>\n",
                escape_xml(&head)
            );
        }
        text
    }
}

/// A Markdown list; empty without lines.
fn format_list(head: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines
        .iter()
        .map(|line| format!("- {}\n", format_code_span(line)));
    format!("\n{head}:\n{}", lines.collect::<String>())
}

fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A Markdown code span, delimited so that no backtick in the text ends it.
fn format_code_span(text: &str) -> String {
    let ticks = "`".repeat(longest_backtick_run(text) + 1);
    format!("{ticks} {text} {ticks}")
}

fn code_fence(text: &str) -> String {
    "`".repeat((longest_backtick_run(text) + 1).max(3))
}

/// The length of the longest sequence of backticks.
fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod result_formats_tests {
    use lucce_decoder::{CodeOrigin, FrameDisplay, StackFrame};

    use super::*;

    fn result_of(verdict: GateVerdict) -> GateResult<'static> {
        let frame = StackFrame {
            class: "a.B".into(),
            method: "```".into(),
            file: Some("B.java".into()),
            line: 1,
            origin: CodeOrigin::Application,
        };
        let row = |name: &str, frames| ChangeRow {
            name: name.into(),
            stack: Some("0f".into()),
            old: vec![1.0],
            new: vec![2.0],
            change: 1.0,
            noise: 0.0,
            stands_out: None,
            moved: None,
            frames,
            display: FrameDisplay::Focused,
        };
        GateResult {
            verdict,
            title: "alloc through <a|b>".into(),
            sums: Some(GateSums {
                event: "alloc".into(),
                unit: "bytes".into(),
                total: row("all", Vec::new()),
                max_growth: 3.0,
            }),
            reasons: Vec::new(),
            sides: vec!["old: <m>, 1 run".into()],
            remarks: Vec::new(),
            runs: &[],
            grown: vec![row("a.B<x>[]", vec![frame])],
            other_grown: (2, 12.0),
        }
    }

    #[test]
    fn names_are_no_markup() {
        let junit = result_of(GateVerdict::Failed).to_junit();
        assert!(junit.contains("failures=\"1\"") && junit.contains("a.B&lt;x&gt;[]"));
        assert!(!junit.contains("<a|b>") && !junit.contains("B<x>"));
        let markdown = result_of(GateVerdict::Failed).to_markdown();
        assert!(markdown.contains("````\n\tat a.B.```(B.java:1)\n````"));
        assert!(markdown.contains("` alloc through <a|b> `"));
    }

    #[test]
    fn passed_gates_are_reported() {
        let result = GateResult {
            grown: Vec::new(),
            other_grown: (0, 0.0),
            ..result_of(GateVerdict::Passed)
        };
        assert!(result.to_text().starts_with("passed: alloc"));
        assert!(
            result.to_junit().contains("failures=\"0\"") && !result.to_junit().contains("<failure")
        );
    }

    #[test]
    fn an_unjudged_gate_has_a_reason_and_is_no_success() {
        let result = GateResult {
            reasons: vec!["a.lucce: 1 of 2 events were lost".into()],
            ..result_of(GateVerdict::NotJudged)
        };
        let junit = result.to_junit();
        assert!(junit.contains("failures=\"0\" errors=\"1\""), "{junit}");
        assert!(junit.contains("<error message=\"not judged: a.lucce: 1 of 2 events were lost\">"));
        let markdown = result.to_markdown();
        assert!(markdown.starts_with("### lucce gate not judged\n"));
        assert!(markdown.contains("- ` a.lucce: 1 of 2 events were lost `"));
        assert!(!markdown.contains("passed") && !junit.contains("passed"));
    }
}
