//! The findings of a run, in order, as text, JSON and page.

use std::io::{self, Write};

use lucce_decoder::escape::{EscapedLine, EscapedText};
use lucce_decoder::{
    ALLOC, FrameDisplay, Profile, StackFrame, describe_sampling, read_sampled_bytes, shorten_trace,
};
use serde::Serialize;

use super::detectors::DETECTORS;
use super::finding::{ContextSums, Finding, share_of};
use super::prepared_run::PreparedRun;
use crate::output::format_plural;
use crate::report::ReportHead;

/// Lines of a finding's trace.
const MAX_TRACE_LINES: usize = 6;

/// What `lucce explain` prints.
#[derive(Serialize)]
pub struct Explanation<'f> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    pub head: ReportHead,
    pub findings: Vec<ExplainedFinding<'f>>,
    /// Findings that are not listed.
    more: u64,
    /// The own line with most events, if nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_line: Option<LargestLine<'f>>,
    /// Detectors without data.
    not_looked_for: Vec<SkippedDetector>,
    /// Why leaks cannot be excluded, if none was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_leaks: Option<String>,
    #[serde(skip)]
    has_no_events: bool,
    /// The sampling interval in bytes, if counts of allocations are estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled_bytes: Option<u64>,
    /// The sampling in words.
    #[serde(skip)]
    sampling: Option<String>,
}

#[derive(Serialize)]
pub struct ExplainedFinding<'f> {
    pub detector: &'static str,
    pub finding: String,
    pub count: u64,
    pub counted: String,
    /// From 0 to 1.
    pub share: f64,
    pub cost: String,
    pub line: String,
    pub frame: &'f StackFrame,
    /// Own frames, and others folded, innermost first.
    pub trace: Vec<String>,
    pub advice: String,
    /// The command that shows more.
    pub command: String,
}

#[derive(Serialize)]
struct LargestLine<'f> {
    frame: &'f StackFrame,
    share: f64,
    kind: &'static str,
}

#[derive(Serialize)]
struct SkippedDetector {
    detector: &'static str,
    /// One of these kinds would do.
    kinds: &'static [&'static str],
}

/// Runs all detectors. `log`: the log's name in commands. `most`: the maximum number of listed findings.
pub fn explain_run<'f>(
    profile: &Profile,
    run: &PreparedRun<'f>,
    log: &str,
    most: usize,
) -> Explanation<'f> {
    let (able, skipped): (Vec<_>, Vec<_>) = DETECTORS
        .iter()
        .partition(|detector| detector.kinds.iter().any(|kind| run.has_kind(kind)));
    let mut findings: Vec<Finding<'f>> = able
        .iter()
        .flat_map(|detector| (detector.find)(run))
        .collect();
    findings.sort_by(|a, b| {
        let by_share = b.cost.share.total_cmp(&a.cost.share);
        by_share.then_with(|| a.sentence.cmp(&b.sentence))
    });
    let listed = findings.len().min(most);
    let more = (findings.len() - listed) as u64;
    let is_none = findings.is_empty();
    let listed = findings.into_iter().take(listed);
    Explanation {
        schema: "lucce-explain",
        version: 1,
        head: ReportHead::new(profile),
        findings: listed
            .map(|finding| explain_finding(run, finding, log))
            .collect(),
        more,
        largest_line: is_none.then(|| find_largest_line(run)).flatten(),
        not_looked_for: skipped
            .iter()
            .map(|detector| SkippedDetector {
                detector: detector.name,
                kinds: detector.kinds,
            })
            .collect(),
        open_leaks: None,
        has_no_events: !run.has_events(),
        sampled_bytes: read_sampled_bytes(profile),
        sampling: describe_sampling(profile),
    }
}

fn explain_finding<'f>(
    run: &PreparedRun<'f>,
    finding: Finding<'f>,
    log: &str,
) -> ExplainedFinding<'f> {
    let trace = FrameDisplay::Focused.fold_frames(run.frames_outwards(finding.path));
    ExplainedFinding {
        detector: finding.detector,
        finding: finding.sentence,
        count: finding.count,
        counted: finding.counted,
        share: finding.cost.share,
        cost: finding.cost.text,
        line: finding.place.to_string(),
        frame: finding.place,
        trace: shorten_trace(trace, MAX_TRACE_LINES)
            .iter()
            .map(ToString::to_string)
            .collect(),
        advice: finding.advice,
        command: format!("lucce {} {}", finding.command, quote_for_shell(log)),
    }
}

/// The own line with most bytes, or with most events of the first kind that has any.
fn find_largest_line<'f>(run: &PreparedRun<'f>) -> Option<LargestLine<'f>> {
    let kinds = [ALLOC.name, "lock", "exception", "io"];
    let kind = kinds.into_iter().find(|kind| run.total(kind).count > 0)?;
    let by_value = run.total(kind).value > 0;
    let amount = |sum: super::prepared_run::EventSum| if by_value { sum.value } else { sum.count };
    let sums = ContextSums::from_contexts(run.contexts_of_kind(kind), |context| {
        run.source_line(context.path)
    });
    let (_, most) = sums
        .into_sorted()
        .into_iter()
        .max_by_key(|(_, sum)| amount(sum.sum))?;
    Some(LargestLine {
        frame: run.place_frame(most.path)?,
        share: share_of(amount(most.sum), amount(run.total(kind))),
        kind,
    })
}

impl Explanation<'_> {
    /// Adds why leaks cannot be excluded.
    pub fn with_open_leaks(mut self, reason: Option<String>) -> Self {
        self.open_leaks = reason;
        self
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.head.write(out)?;
        for line in self.summary_lines() {
            writeln!(out, "{line}")?;
        }
        for (number, finding) in self.findings.iter().enumerate() {
            writeln!(out)?;
            finding.write(number + 1, out)?;
        }
        if self.more > 0 {
            writeln!(
                out,
                "\n{} more (--top 0)",
                format_plural(self.more, "finding")
            )?;
        }
        Ok(())
    }

    /// What was found in all, what was not looked for, and how counts were made.
    pub fn summary_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.findings.is_empty() {
            lines.push(match &self.largest_line {
                Some(largest) => format!(
                    "nothing stands out: the largest own line has {:.1}% of kind {}: {}",
                    largest.share * 100.0,
                    largest.kind,
                    largest.frame
                ),
                None if self.has_no_events => "no events were counted".to_owned(),
                None => "nothing stands out: no event below the program's own code".to_owned(),
            });
        }
        if let Some(reason) = &self.open_leaks {
            lines.push(format!("leaks: {reason}"));
        }
        if !self.not_looked_for.is_empty() {
            let names: Vec<_> = self
                .not_looked_for
                .iter()
                .map(|skipped| skipped.detector)
                .collect();
            let mut kinds: Vec<_> = self
                .not_looked_for
                .iter()
                .filter_map(|skipped| skipped.kinds.first().copied())
                .collect();
            kinds.sort_unstable();
            kinds.dedup();
            lines.push(format!(
                "not looked for: {} (record with events={})",
                names.join(", "),
                kinds.join("+")
            ));
        }
        if let Some(sampling) = &self.sampling {
            lines.push(format!(
                "counts of allocations are estimated from samples, {sampling}"
            ));
        }
        lines
    }
}

impl ExplainedFinding<'_> {
    fn write(&self, number: usize, out: &mut impl Write) -> io::Result<()> {
        let cost = EscapedText(&self.cost);
        writeln!(out, "#{number} {} at {}: {cost}", self.detector, self.line)?;
        writeln!(out, "   {}", EscapedText(&self.finding))?;
        for line in &self.trace {
            writeln!(out, "      {line}")?;
        }
        writeln!(out, "   counted: {}", EscapedText(&self.counted))?;
        writeln!(out, "   do: {}", self.advice)?;
        // The pattern's backslashes are not escapes of a name.
        writeln!(out, "   more: {}", EscapedLine(&self.command))
    }
}

/// A file's name as a word for a shell.
fn quote_for_shell(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+%@".contains(c);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}
