//! Facts of runs that decide whether their counts are comparable.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ALLOC, KindTotal, Profile, RunInterval, explain_sample_bias, read_counting_delay,
    read_recorded_options, read_sampled_bytes, summarize_bursts,
};
use lucce_options::kinds::OBJECTS;
use lucce_options::{AllocationSampling, RecordingOptions};
use serde::Serialize;

use super::super::output::{format_plural, grouped};

/// Facts of one run; the fields are in `lucce diff --json`.
#[derive(Serialize)]
pub struct RunFacts {
    file: String,
    command: Option<String>,
    jvm: Option<String>,
    /// Whether the log has its end: the JVM was not killed and does not run any more.
    ended: bool,
    /// Number of dropped events.
    lost: u64,
    /// Why counters have fewer events than the program had.
    interrupted: Option<String>,
    /// The sampling interval in bytes, if allocations are estimated from samples.
    sampled_bytes: Option<u64>,
    /// A known bias of the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_bias: Option<&'static str>,
    damage: Option<String>,
    #[serde(skip)]
    pub kinds: Vec<KindTotal>,
    /// Whether objects of the VM itself and of native code are counted.
    #[serde(skip)]
    has_vm_objects: bool,
    /// The marks between which events are counted; `None`: the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<RunInterval>,
    /// The part of the run that options left out, if any.
    #[serde(skip)]
    part: Option<String>,
}

/// The effect of a remark on a judgement of counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemarkSeverity {
    /// None; for information.
    Note,
    /// A run lacks events, so sums are too small by an unknown amount.
    Incomplete,
    /// The sums are not comparable.
    Incomparable,
}

/// A remark of one line, which names its subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompareRemark {
    pub severity: RemarkSeverity,
    pub text: String,
}

impl CompareRemark {
    pub fn new(weight: RemarkSeverity, text: String) -> Self {
        CompareRemark {
            severity: weight,
            text,
        }
    }
}

/// The agent's text if classes were left out from the start.
const OUT_OF_SCOPE: &str = "classes out of scope";
/// The agent's text if a user interrupted counting.
const BY_COMMAND: &str = "(lucce ctl ";

/// Maximum number of characters of a command in a line.
const MOST_OF_COMMAND: usize = 100;

impl RunFacts {
    pub fn new(file: &Path, profile: &Profile) -> Self {
        let meta = |key: &str| profile.meta.get(key).filter(|text| !text.is_empty());
        let jvm: Vec<_> = ["jvm.name", "jvm"].into_iter().filter_map(meta).collect();
        let jvm: Vec<_> = jvm.into_iter().map(String::as_str).collect();
        let coverage = meta("coverage.none");
        let interrupted = coverage.filter(|reason| reason.contains(BY_COMMAND));
        let scope = coverage.filter(|reason| reason.starts_with(OUT_OF_SCOPE));
        let options = read_recorded_options(profile);
        let bursts = summarize_bursts(profile).map(|of| format!("burst={}", of.option_value));
        let delay = read_counting_delay(profile).map(|of| format!("delay={}", of.delay));
        RunFacts {
            file: file.display().to_string(),
            command: meta("command").cloned(),
            jvm: (!jvm.is_empty()).then(|| jvm.join(" ")),
            ended: profile.ended,
            lost: profile.dropped_events(),
            interrupted: interrupted.cloned(),
            sampled_bytes: read_sampled_bytes(profile),
            sample_bias: explain_sample_bias(profile),
            damage: profile.damage.as_ref().map(ToString::to_string),
            kinds: profile.counted_kinds(),
            has_vm_objects: options.is_some_and(|options| selects_vm_objects(&options)),
            interval: profile.interval.clone(),
            part: bursts.or(delay).or_else(|| scope.cloned()),
        }
    }

    /// Number of events of a kind.
    fn event_count(&self, kind: &str) -> u64 {
        let of = self.kinds.iter().find(|of| of.name == kind);
        of.map_or(0, |of| of.count)
    }

    /// Remarks from this run's log alone.
    fn own_remarks(&self, kind: &str) -> Vec<CompareRemark> {
        let mut remarks = Vec::new();
        let mut add = |weight, text: String| {
            let text = format!("{}: {text}", EscapedText(&self.file));
            remarks.push(CompareRemark::new(weight, text));
        };
        if let Some(interval) = &self.interval {
            add(RemarkSeverity::Note, interval.to_string());
        }
        if let Some(damage) = &self.damage {
            add(RemarkSeverity::Incomparable, damage.clone());
        }
        if self.lost > 0 {
            let counted = self.kinds.iter().map(|kind| kind.count);
            let all = counted.fold(self.lost, u64::saturating_add);
            let lost = grouped(self.lost);
            let text = format!("{lost} of {} were lost", format_plural(all, "event"));
            add(RemarkSeverity::Incomplete, text);
        }
        if !self.ended && self.damage.is_none() {
            let text = "its end is missing: the JVM was killed or still runs";
            add(RemarkSeverity::Incomplete, text.to_owned());
        }
        if let Some(reason) = &self.interrupted {
            add(RemarkSeverity::Note, EscapedText(reason).to_string());
        }
        if let Some(bytes) = self.sampling_interval(kind) {
            let bytes = format_plural(bytes, "byte");
            let text = format!("estimated from samples, one for {bytes} on average");
            add(RemarkSeverity::Note, text);
            if let Some(bias) = self.sample_bias {
                add(RemarkSeverity::Note, bias.to_owned());
            }
        }
        remarks
    }

    fn sampling_interval(&self, kind: &str) -> Option<u64> {
        self.sampled_bytes.filter(|_| ALLOC.is_kind(kind))
    }

    /// The method of counting.
    fn counting_method(&self, kind: &str) -> String {
        match (self.sampling_interval(kind), &self.part) {
            (Some(_), _) => "from samples".to_owned(),
            (None, Some(part)) => format!("in part ({})", EscapedText(part)),
            (None, None) if self.has_vm_objects && ALLOC.is_kind(kind) => {
                "exactly, with objects of the VM".to_owned()
            }
            (None, None) => "exactly".to_owned(),
        }
    }

    /// The main class or the jar, without its folder.
    fn program_name(&self) -> Option<String> {
        let first = self.command.as_deref()?.split_whitespace().next()?;
        let name = first.rsplit('/').next().unwrap_or(first);
        Some(EscapedText(name).to_string())
    }
}

/// Whether the run's options select objects that the VM makes for itself.
fn selects_vm_objects(options: &RecordingOptions) -> bool {
    options.events.has_kind(&OBJECTS) || options.attached_alloc == Some(AllocationSampling::Every)
}

/// All remarks. `is_whole`: all events of a run are compared, not only some tags.
pub fn all_remarks(runs: &[RunFacts], kind: &str, is_whole: bool) -> Vec<CompareRemark> {
    let mut remarks: Vec<_> = runs.iter().flat_map(|run| run.own_remarks(kind)).collect();
    // A log may be given twice; each remark is kept once.
    let mut seen = HashSet::new();
    remarks.retain(|remark| seen.insert(remark.text.clone()));
    let differ = [
        difference_text(runs, "programs", RunFacts::program_name),
        difference_text(runs, "JVMs", |run| {
            run.jvm.as_ref().map(|jvm| EscapedText(jvm).to_string())
        }),
    ];
    let differences = differ.into_iter().flatten();
    remarks.extend(differences.map(|text| CompareRemark::new(RemarkSeverity::Note, text)));
    remarks.extend(counting_remark(runs, kind));
    remarks.extend(unit_remark(runs, kind));
    if is_whole {
        remarks.extend(uncounted_remarks(runs, kind));
    }
    remarks
}

/// `the JVMs differ: 17.0.9, 21.0.4`
fn difference_text(
    runs: &[RunFacts],
    what: &str,
    of: impl Fn(&RunFacts) -> Option<String>,
) -> Option<String> {
    let all: BTreeSet<String> = runs.iter().filter_map(of).collect();
    let all: Vec<String> = all.into_iter().collect();
    (all.len() > 1).then(|| format!("the {what} differ: {}", all.join(", ")))
}

/// A remark if runs counted differently: samples see objects that were really allocated, hooks see all that the code
/// allocates, bursts and scopes leave out a part.
fn counting_remark(runs: &[RunFacts], kind: &str) -> Option<CompareRemark> {
    let counted = |run: &RunFacts| {
        Some(format!(
            "{} {}",
            EscapedText(&run.file),
            run.counting_method(kind)
        ))
    };
    let ways: BTreeSet<String> = runs.iter().map(|run| run.counting_method(kind)).collect();
    let each = difference_text(runs, "ways of counting", counted).filter(|_| ways.len() > 1);
    each.map(|text| CompareRemark::new(RemarkSeverity::Incomparable, text))
}

/// A remark if units differ: such values are not comparable.
fn unit_remark(runs: &[RunFacts], kind: &str) -> Option<CompareRemark> {
    let unit = |run: &RunFacts| {
        let of = run.kinds.iter().find(|of| of.name == kind)?;
        let unit = if of.unit.is_empty() { "none" } else { &of.unit };
        Some(EscapedText(unit).to_string())
    };
    let units = difference_text(runs, &format!("units of {}", EscapedText(kind)), unit);
    units.map(|text| CompareRemark::new(RemarkSeverity::Incomparable, text))
}

/// Remarks on runs without allocations: every JVM allocates, so they were not counted.
fn uncounted_remarks(runs: &[RunFacts], kind: &str) -> Vec<CompareRemark> {
    let is_counted = |run: &&RunFacts| run.event_count(kind) > 0;
    if !ALLOC.is_kind(kind) || !runs.iter().any(|run| is_counted(&run)) {
        return Vec::new();
    }
    let without = runs.iter().filter(|run| !is_counted(run));
    let remark = |run: &RunFacts| {
        let text = format!("{}: no allocation was counted", EscapedText(&run.file));
        CompareRemark::new(RemarkSeverity::Incomparable, text)
    };
    without.map(remark).collect()
}

/// Describes one side in a line: `app.Main --fast, OpenJDK 17.0.21, 2 runs`.
pub fn describe_side(runs: &[RunFacts]) -> String {
    let command = first_and_others(runs, |run| run.command.as_deref());
    let jvm = first_and_others(runs, |run| run.jvm.as_deref());
    let count = format_plural(runs.len() as u64, "run");
    [command, jvm, Some(count)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// The first value, and the number of others.
fn first_and_others<'r>(
    runs: &'r [RunFacts],
    of: impl Fn(&'r RunFacts) -> Option<&'r str>,
) -> Option<String> {
    let first = runs.iter().find_map(&of)?;
    let different: BTreeSet<&str> = runs.iter().filter_map(of).collect();
    let text = EscapedText(first).to_string();
    let text = match text.char_indices().nth(MOST_OF_COMMAND) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    };
    Some(match different.len() {
        0 | 1 => text,
        all => format!("{text} (and {} more)", all - 1),
    })
}

#[cfg(test)]
mod run_facts_tests {
    use super::*;

    fn run(file: &str, kind: &str, unit: &str) -> RunFacts {
        RunFacts {
            file: file.into(),
            command: Some("target/shop.jar 3".into()),
            jvm: None,
            ended: true,
            lost: 0,
            interrupted: None,
            sampled_bytes: None,
            sample_bias: None,
            damage: None,
            kinds: vec![KindTotal {
                name: kind.into(),
                unit: unit.into(),
                count: 1,
            }],
            has_vm_objects: false,
            interval: None,
            part: None,
        }
    }

    fn remark_texts(runs: &[RunFacts], kind: &str) -> Vec<(RemarkSeverity, String)> {
        let remarks = all_remarks(runs, kind, true).into_iter();
        remarks
            .map(|remark| (remark.severity, remark.text))
            .collect()
    }

    #[test]
    fn runs_alike_need_no_remark() {
        let other_folder = RunFacts {
            command: Some("build/shop.jar 4".into()),
            ..run("b", "alloc", "bytes")
        };
        let runs = [run("a", "alloc", "bytes"), other_folder];
        assert_eq!(remark_texts(&runs, "alloc"), []);
        assert_eq!(
            describe_side(&runs),
            "target/shop.jar 3 (and 1 more), 2 runs"
        );
    }

    #[test]
    fn units_and_bursts_are_distinguished() {
        let units = [run("a", "job", ""), run("b", "job", "ms")];
        let text = "the units of job differ: ms, none".to_owned();
        assert_eq!(
            remark_texts(&units, "job"),
            [(RemarkSeverity::Incomparable, text)]
        );
        let bursts = RunFacts {
            part: Some("burst=1s/9s".into()),
            ..run("b", "job", "")
        };
        let text = "the ways of counting differ: a exactly, b in part (burst=1s/9s)".to_owned();
        let runs = [run("a", "job", ""), bursts];
        assert_eq!(
            remark_texts(&runs, "job"),
            [(RemarkSeverity::Incomparable, text)]
        );
    }

    #[test]
    fn objects_of_the_vm_are_distinguished() {
        let with = || RunFacts {
            has_vm_objects: true,
            ..run("b", "alloc", "bytes")
        };
        let text = "the ways of counting differ: a exactly, b exactly, with objects of the VM";
        let runs = [run("a", "alloc", "bytes"), with()];
        assert_eq!(
            remark_texts(&runs, "alloc"),
            [(RemarkSeverity::Incomparable, text.into())]
        );
        assert_eq!(remark_texts(&[with(), with()], "alloc"), []);
        let other = [
            run("a", "job", ""),
            RunFacts {
                kinds: run("b", "job", "").kinds,
                ..with()
            },
        ];
        assert_eq!(remark_texts(&other, "job"), []);
        let options = [
            "events=alloc=all",
            "out=a,events=lock+alloc=all,verify=1",
            "alloc=all",
        ];
        let selects = |text| selects_vm_objects(&RecordingOptions::parse_recorded(text));
        assert!(options.into_iter().all(selects));
        let others = [
            "",
            "events=alloc",
            "events=alloc+lock",
            "out=alloc=all/a.lucce,alloc=64k",
        ];
        assert!(!others.into_iter().any(selects));
    }

    #[test]
    fn a_long_command_is_cut() {
        let long = RunFacts {
            command: Some("é".repeat(300)),
            ..run("a", "alloc", "bytes")
        };
        assert_eq!(
            describe_side(&[long]),
            format!("{}…, 1 run", "é".repeat(100))
        );
    }
}
