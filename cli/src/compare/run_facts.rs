//! Facts of runs that decide whether their counts are comparable.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ALLOC, KindTotal, Profile, RunInterval, describe_sampling, explain_sample_bias,
    read_counting_delay, read_recorded_options, read_sampled_bytes, summarize_bursts,
};
use lucce_options::kinds::{ALL, EventKindInfo, EventKindSet, OBJECTS};
use lucce_options::{AllocationSampling, ControlMode, RecordingOptions};
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
    /// The sampling in words.
    #[serde(skip)]
    sampling: Option<String>,
    /// A known bias of the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_bias: Option<&'static str>,
    damage: Option<String>,
    #[serde(skip)]
    pub kinds: Vec<KindTotal>,
    /// Whether objects of the VM itself and of native code are counted.
    #[serde(skip)]
    has_vm_objects: bool,
    /// The kinds that the run recorded from the start; `None`: a log without options, or counting came later.
    #[serde(skip)]
    recorded: Option<EventKindSet>,
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
    /// The runs are of different programs, or one side has no event of the selection.
    Different,
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
            sampling: describe_sampling(profile),
            sample_bias: explain_sample_bias(profile),
            damage: profile.damage.as_ref().map(ToString::to_string),
            kinds: profile.counted_kinds(),
            has_vm_objects: options.as_ref().is_some_and(selects_vm_objects),
            recorded: options.as_ref().and_then(recorded_kinds),
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
        if let Some(sampling) = self.sampling.as_ref().filter(|_| ALLOC.is_kind(kind)) {
            let text = format!("estimated from samples, {sampling}");
            add(RemarkSeverity::Note, text);
            if let Some(bias) = self.sample_bias {
                add(RemarkSeverity::Note, bias.to_owned());
            }
        }
        remarks
    }

    /// Whether the run may have counted the kind; true for kinds of the program itself.
    fn is_recorded(&self, kind: &str) -> bool {
        let writes_kind =
            |known: &&EventKindInfo| known.log_kinds.iter().any(|log| log.is_kind(kind));
        let mut writers = ALL.into_iter().filter(writes_kind).peekable();
        let Some(recorded) = self.recorded else {
            return true;
        };
        writers.peek().is_none() || writers.any(|writer| recorded.contains(writer))
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

/// The kinds that a run records all the time; `None`: `lucce ctl` may add kinds.
fn recorded_kinds(options: &RecordingOptions) -> Option<EventKindSet> {
    (options.ctl != ControlMode::All).then(|| options.events.kinds())
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
    remarks.extend(program_remark(runs));
    let jvms = difference_text(runs, "JVMs", |run| {
        run.jvm.as_ref().map(|jvm| EscapedText(jvm).to_string())
    });
    remarks.extend(jvms.map(|text| CompareRemark::new(RemarkSeverity::Note, text)));
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

/// A remark if runs are of different programs. An archive of another version is the same program.
fn program_remark(runs: &[RunFacts]) -> Option<CompareRemark> {
    let names = runs.iter().filter_map(RunFacts::program_name);
    let programs: BTreeSet<String> = names.map(|name| strip_version(&name).to_owned()).collect();
    let text = difference_text(runs, "programs", RunFacts::program_name);
    let text = text.filter(|_| programs.len() > 1);
    text.map(|text| CompareRemark::new(RemarkSeverity::Different, text))
}

/// `shop` of `shop-1.4.2-SNAPSHOT.jar`; other names are returned as they are.
fn strip_version(name: &str) -> &str {
    let Some(archive) = name.strip_suffix(".jar").or(name.strip_suffix(".war")) else {
        return name;
    };
    let is_version = |(at, _): &(usize, &str)| {
        let rest = archive.get(at + 1..).unwrap_or_default();
        rest.starts_with(|first: char| first.is_ascii_digit())
    };
    let version = archive.match_indices('-').find(is_version);
    version.map_or(archive, |(at, _)| archive.get(..at).unwrap_or(archive))
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

/// Remarks on runs that did not count the kind. Every JVM allocates, so a run without allocations did not count them.
fn uncounted_remarks(runs: &[RunFacts], kind: &str) -> Vec<CompareRemark> {
    let has_events = |run: &&RunFacts| run.event_count(kind) > 0;
    if !runs.iter().any(|run| has_events(&run)) {
        return Vec::new();
    }
    let is_counted = |run: &RunFacts| !ALLOC.is_kind(kind) && run.is_recorded(kind);
    let without = runs
        .iter()
        .filter(|run| !has_events(run) && !is_counted(run));
    let remark = |run: &RunFacts| {
        let file = EscapedText(&run.file);
        let text = match ALLOC.is_kind(kind) {
            true => format!("{file}: no allocation was counted"),
            false => format!("{file}: {} was not recorded", EscapedText(kind)),
        };
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
            sampling: None,
            sample_bias: None,
            damage: None,
            kinds: vec![KindTotal {
                name: kind.into(),
                unit: unit.into(),
                count: 1,
            }],
            has_vm_objects: false,
            recorded: None,
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
    fn another_program_is_distinguished_from_another_version() {
        let of = |command: &str| RunFacts {
            command: Some(command.into()),
            ..run("a", "alloc", "bytes")
        };
        let versions = [
            of("lib/shop-1.2.jar"),
            of("shop-1.3-SNAPSHOT.jar 9"),
            of("shop.jar"),
        ];
        assert_eq!(remark_texts(&versions, "alloc"), []);
        let text = "the programs differ: app.Load, app.Server".to_owned();
        assert_eq!(
            remark_texts(&[of("app.Load 3"), of("app.Server")], "alloc"),
            [(RemarkSeverity::Different, text)]
        );
        let names = ["shop-web.jar", "shop-3d-1.jar", "app.Main", "-1.jar"].map(strip_version);
        assert_eq!(names, ["shop-web", "shop", "app.Main", ""]);
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
    fn a_run_that_did_not_record_the_kind_is_distinguished() {
        let with_options = |file: &str, options: &str| RunFacts {
            kinds: Vec::new(),
            recorded: recorded_kinds(&RecordingOptions::parse_recorded(options)),
            ..run(file, "lock", "ns")
        };
        let text = "b: lock was not recorded".to_owned();
        let runs = [run("a", "lock", "ns"), with_options("b", "events=alloc")];
        assert_eq!(
            remark_texts(&runs, "lock"),
            [(RemarkSeverity::Incomparable, text)]
        );
        for (kind, options) in [
            ("lock", "events=alloc+lock"),
            ("lock", "events=alloc,ctl=all"),
            ("job", "events=alloc"),
        ] {
            let runs = [run("a", kind, ""), with_options("b", options)];
            assert_eq!(remark_texts(&runs, kind), [], "{kind} {options}");
        }
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
