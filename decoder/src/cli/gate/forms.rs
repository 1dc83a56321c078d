//! What a gate found, as text, as JUnit's XML and as Markdown.

use std::fmt::Write as _;

use super::{Found, Verdict};

impl Found {
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: {}{}\n", self.verdict.name(), self.title, self.sums());
        for reason in &self.reasons {
            let _ = writeln!(text, "because {reason}");
        }
        for line in &self.said {
            let _ = writeln!(text, "{line}");
        }
        for (head, trace) in &self.grown {
            let _ = write!(text, "\n{head}\n{trace}");
        }
        text
    }

    /// Behind the title.
    fn sums(&self) -> String {
        match self.sums.is_empty() {
            true => String::new(),
            false => format!(": {}", self.sums),
        }
    }

    /// One test of one suite, as Maven Surefire writes them.
    pub(super) fn junit(&self) -> String {
        let title = xml(&self.title);
        let failures = u8::from(self.verdict == Verdict::Failed);
        let errors = u8::from(self.verdict == Verdict::NotJudged);
        let text = xml(&self.text());
        let result = match self.verdict {
            Verdict::Passed => format!("<system-out>{text}</system-out>"),
            Verdict::Failed => {
                format!("<failure message=\"{}\">{text}</failure>", xml(&self.sums))
            }
            Verdict::NotJudged => {
                let why = xml(&self.reasons.join("; "));
                format!("<error message=\"not judged: {why}\">{text}</error>")
            }
        };
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"lucce gate\" tests=\"1\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\">\n  <testcase classname=\"lucce.gate\" name=\"{title}\">\n    {result}\n  </testcase>\n</testsuite>\n"
        )
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "### lucce gate {}\n\n{}{}\n",
            self.verdict.name(),
            code(&self.title),
            self.sums()
        );
        text += &list("Not judged, because", &self.reasons);
        text += &list("Runs", &self.said);
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

/// A list in Markdown; nothing, if it has no line.
fn list(head: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter().map(|line| format!("- {}\n", code(line)));
    format!("\n{head}:\n{}", lines.collect::<String>())
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

    fn found(verdict: Verdict) -> Found {
        Found {
            title: "alloc through <a|b>".into(),
            sums: "1 → 2 (+100.0%), allowed +3%".into(),
            verdict,
            reasons: Vec::new(),
            said: vec!["old: <m>, 1 run".into()],
            grown: vec![(
                "+1  new  a.B<x>[]".into(),
                "\tat a.B.```(B.java:1)\n".into(),
            )],
        }
    }

    #[test]
    fn names_are_no_markup() {
        let junit = found(Verdict::Failed).junit();
        assert!(junit.contains("failures=\"1\"") && junit.contains("a.B&lt;x&gt;[]"));
        assert!(!junit.contains("<a|b>") && !junit.contains("B<x>"));
        let markdown = found(Verdict::Failed).markdown();
        assert!(markdown.contains("````\n\tat a.B.```(B.java:1)\n````"));
        assert!(markdown.contains("` alloc through <a|b> `"));
    }

    #[test]
    fn what_passes_says_so() {
        let found = Found {
            grown: Vec::new(),
            ..found(Verdict::Passed)
        };
        assert!(found.text().starts_with("passed: alloc"));
        assert!(found.junit().contains("failures=\"0\"") && !found.junit().contains("<failure"));
    }

    #[test]
    fn what_is_not_judged_says_why_and_is_no_success() {
        let found = Found {
            reasons: vec!["a.lucce: 1 of 2 events were lost".into()],
            ..found(Verdict::NotJudged)
        };
        let junit = found.junit();
        assert!(junit.contains("failures=\"0\" errors=\"1\""), "{junit}");
        assert!(junit.contains("<error message=\"not judged: a.lucce: 1 of 2 events were lost\">"));
        let markdown = found.markdown();
        assert!(markdown.starts_with("### lucce gate not judged\n"));
        assert!(markdown.contains("- ` a.lucce: 1 of 2 events were lost `"));
        assert!(!markdown.contains("passed") && !junit.contains("passed"));
    }
}
