//! Rows of the report: contexts that leak, and suspects.

use std::collections::HashMap;
use std::io::{self, Write};

use lucce_contentid::StackId;
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ContextId, LeakEvidence, LeakFinding, LeakSuspect, LiveAmount, LiveCourse, MissingEvidence,
    Profile, StackFrame, SuspectVerdict,
};
use lucce_page::{LeakText, SuspectText};
use serde::Serialize;

use crate::amounts::{format_estimated_bytes, round_estimate};
use crate::frame_args::fold_own_trace;
use crate::output::{format_plural, grouped};
use crate::style::write_trace;

#[derive(Serialize)]
pub(super) struct LeakRow {
    pub(super) id: String,
    pub(super) aliases: Vec<String>,
    /// The content id of the trace.
    pub(super) stack: String,
    pub(super) class: String,
    /// The probability that any of the judged contexts looks like this without growing.
    pub(super) chance: f64,
    /// The first and the last live generation, by number of collections before their allocation.
    pub(super) born: [u64; 2],
    /// Generations with live objects, allocated in each third of that span.
    pub(super) generations: [u64; 3],
    /// Live objects after one third, two thirds and all of that span.
    pub(super) live: [LiveRow; 3],
    /// Percentage of the objects live after the first third that are still live.
    pub(super) kept: f64,
    pub(super) growth_bytes: u64,
    pub(super) frames: Vec<StackFrame>,
}

/// Live objects without proof of a leak, of one type and one application frame.
#[derive(Serialize)]
pub(super) struct SuspectRow {
    /// The id of the context with most bytes.
    pub(super) id: String,
    /// The content id of that context's trace.
    pub(super) stack: String,
    /// Number of contexts with this frame and type.
    pub(super) contexts: u64,
    pub(super) class: String,
    pub(super) objects: u64,
    pub(super) bytes: u64,
    /// Number of live generations; the next field: the number needed for a judgement.
    pub(super) generations: u64,
    pub(super) enough: u64,
    /// Approximate number of further old collections needed; `None`: there are enough generations.
    pub(super) needs_old_collections: Option<u64>,
    /// With enough generations: growth in bytes since earlier in the run.
    pub(super) growth_bytes: u64,
    pub(super) verdict: VerdictWord,
    /// Why the earlier number is unknown.
    pub(super) missing: Option<String>,
    /// Whether more objects live than at an earlier snapshot, regardless of their ages.
    pub(super) has_grown: bool,
    /// The innermost frame of the application.
    pub(super) at: Option<StackFrame>,
}

/// The verdict on a suspect; of several contexts, the last in this order.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum VerdictWord {
    /// Too few generations.
    Open,
    /// About the same amount lived before.
    Steady,
    /// The earlier amount is unknown.
    Unknown,
    /// More objects live than before.
    Growing,
}

#[derive(Serialize)]
pub(super) struct LiveRow {
    pub(super) collections: u64,
    pub(super) millis: u64,
    pub(super) generations: u64,
    pub(super) followed: u64,
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

impl LeakRow {
    pub(super) fn new(profile: &Profile, leak: &LeakFinding) -> LeakRow {
        let LeakEvidence {
            span,
            thirds,
            live,
            kept_fraction: kept,
            ..
        } = &leak.evidence;
        let number = |id: &ContextId| profile.context_number(*id).to_string();
        let (stack, frames) = resolve_trace(profile, leak.id);
        LeakRow {
            id: number(&leak.id),
            aliases: leak.aliases.iter().map(number).collect(),
            stack,
            class: leak.type_name.clone(),
            chance: leak.chance,
            born: [span.0, span.1],
            generations: *thirds,
            live: live.map(LiveRow::from),
            kept: kept * 100.0,
            growth_bytes: leak.evidence.byte_growth(),
            frames,
        }
    }

    pub(super) fn to_text(&self, number: usize) -> LeakText {
        let mut trace = Vec::new();
        for frame in &self.frames {
            // Writing to memory cannot fail.
            let _ = writeln!(trace, "\tat {frame}");
        }
        LeakText {
            head: self.format_head(number),
            lines: self.format_evidence().into(),
            trace: String::from_utf8_lossy(&trace).into_owned(),
        }
    }

    pub(super) fn format_head(&self, number: usize) -> String {
        let [first, _, last] = &self.live;
        let growth = estimated_bytes(self.growth_bytes);
        let seconds = last.millis.saturating_sub(first.millis) as f64 / 1e3;
        let (class, id, stack) = (EscapedText(&self.class), &self.id, &self.stack);
        format!("#{number} {class}  +{growth} in {seconds:.1} s  {id}  {stack}")
    }

    pub(super) fn format_evidence(&self) -> [String; 3] {
        let [first, second, last] = &self.live;
        let [a, b, c] = self.generations.map(grouped);
        let ages = format!(
            "ages: objects from {} are alive, made between collections {} and {}; from the first third of that time {a}, from the second {b}, from the last {c}",
            format_plural(last.generations, "different time"),
            grouped(self.born[0]),
            grouped(self.born[1])
        );
        let alive = [first, second, last].map(|live| {
            let (objects, bytes) = (
                grouped(round_estimate(live.objects)),
                estimated_bytes(live.bytes),
            );
            let after = grouped(live.collections);
            format!("{objects} ({bytes}) after collection {after}")
        });
        let [a, b, c] = alive;
        let growth = format!(
            "growth: about {a}, {b}, {c}; {:.0}% of the first are still alive",
            self.kept
        );
        let chance = format!(
            "chance: of {} followed objects; {}",
            grouped(last.followed),
            self.describe_chance()
        );
        [ages, growth, chance]
    }

    pub(super) fn write(&self, number: usize, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.format_head(number))?;
        for line in self.format_evidence() {
            writeln!(out, "  {line}")?;
        }
        write_trace(&fold_own_trace(&self.frames), out)?;
        writeln!(out)
    }

    /// Formats the probability; below one in a million the exact value does not matter.
    pub(super) fn describe_chance(&self) -> String {
        match self.chance {
            chance if chance < 1e-6 => {
                "what does not leak would look like this less than once in 1,000,000 times"
                    .to_owned()
            }
            chance => format!(
                "what does not leak would look like this once in {} times",
                grouped((1.0 / chance) as u64)
            ),
        }
    }
}

impl SuspectRow {
    /// Builds rows, most bytes first.
    pub(super) fn from_suspects(profile: &Profile, suspects: &[LeakSuspect]) -> Vec<SuspectRow> {
        let mut rows: Vec<SuspectRow> = Vec::new();
        let mut row_of_key: HashMap<(String, Option<StackFrame>), usize> = HashMap::new();
        for suspect in suspects {
            let row = SuspectRow::new(profile, suspect);
            let key = (row.class.clone(), row.at.clone());
            match row_of_key.get(&key).and_then(|at| rows.get_mut(*at)) {
                Some(same) => same.merge_row(&row),
                None => {
                    row_of_key.insert(key, rows.len());
                    rows.push(row);
                }
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        rows
    }

    /// Adds another context's row; the verdict of the context with most generations holds.
    pub(super) fn merge_row(&mut self, other: &SuspectRow) {
        self.contexts += 1;
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
        if other.generations > self.generations {
            self.generations = other.generations;
            self.needs_old_collections = other.needs_old_collections;
        }
        self.has_grown |= other.has_grown;
        if other.verdict > self.verdict {
            self.verdict = other.verdict;
            self.missing.clone_from(&other.missing);
        }
        self.growth_bytes = self.growth_bytes.saturating_add(other.growth_bytes);
    }

    pub(super) fn new(profile: &Profile, suspect: &LeakSuspect) -> SuspectRow {
        let (stack, frames) = resolve_trace(profile, suspect.id);
        SuspectRow {
            id: profile.context_number(suspect.id).to_string(),
            stack,
            contexts: 1,
            class: suspect.type_name.clone(),
            objects: suspect.objects,
            bytes: suspect.bytes,
            generations: suspect.generations,
            enough: LeakSuspect::NEEDED_GENERATIONS,
            needs_old_collections: match suspect.verdict {
                SuspectVerdict::Open { old_collections } => Some(old_collections),
                SuspectVerdict::Aged(_) => None,
            },
            growth_bytes: match suspect.verdict {
                SuspectVerdict::Aged(LiveCourse::Growing { more_bytes }) => more_bytes,
                _ => 0,
            },
            verdict: VerdictWord::from(suspect.verdict),
            has_grown: suspect.has_grown,
            missing: match suspect.verdict {
                SuspectVerdict::Aged(LiveCourse::Unknown(missing)) => {
                    Some(describe_missing(missing))
                }
                _ => None,
            },
            at: StackFrame::innermost_application_frame(&frames).cloned(),
        }
    }

    pub(super) fn to_text(&self) -> SuspectText {
        SuspectText {
            head: self.format_head(),
            at: self.at.as_ref().map(ToString::to_string),
            verdict: self.describe_verdict(),
        }
    }

    pub(super) fn format_head(&self) -> String {
        let (bytes, objects) = (
            estimated_bytes(self.bytes),
            format_plural(round_estimate(self.objects), "object"),
        );
        let (class, id, stack) = (EscapedText(&self.class), &self.id, &self.stack);
        let head = format!("about {bytes}  {objects} of {class}  {id}  {stack}");
        match self.contexts {
            0 | 1 => head,
            several => format!("{head} and {}", format_plural(several - 1, "more context")),
        }
    }

    /// `about 7.50 MB, 914 objects of byte[] at com.acme.Sessions.open(Sessions.java:13)`
    pub(super) fn describe_place(&self) -> String {
        let at = self.at.as_ref();
        let at = at.map_or_else(String::new, |frame| format!(" at {frame}"));
        format!(
            "about {}, {} of {}{at}",
            estimated_bytes(self.bytes),
            format_plural(round_estimate(self.objects), "object"),
            EscapedText(&self.class)
        )
    }

    pub(super) fn describe_verdict(&self) -> String {
        let ages = format_plural(self.generations, "age");
        match (self.verdict, &self.missing) {
            // With one generation so far, there may never be a second.
            (VerdictWord::Open, _) if self.generations == 1 => format!(
                "cannot be judged: objects of 1 age of the {} that are needed",
                self.enough
            ),
            (VerdictWord::Open, _) => format!(
                "cannot be judged yet: objects of {} of {} ages; needs about {}",
                self.generations,
                self.enough,
                format_plural(
                    self.needs_old_collections.unwrap_or(1),
                    "more old collection"
                )
            ),
            (VerdictWord::Steady, _) => format!(
                "no sign of a leak: objects of {ages} live, and about as much as earlier in the run"
            ),
            (VerdictWord::Growing, _) if self.growth_bytes == 0 => format!(
                "may be a leak: objects of {ages} live, more of them than earlier in the run; that is not enough to be sure"
            ),
            (VerdictWord::Growing, _) => format!(
                "may be a leak: objects of {ages} live, {} more than earlier in the run; that is not enough to be sure",
                estimated_bytes(self.growth_bytes)
            ),
            (VerdictWord::Unknown, missing) => format!(
                "may be a leak: objects of {ages} live, and it is not known how many lived before: {}",
                missing.as_deref().unwrap_or_default()
            ),
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "  {}", self.format_head())?;
        if let Some(frame) = &self.at {
            writeln!(out, "\tat {frame}")?;
        }
        writeln!(out, "    {}", self.describe_verdict())
    }
}

impl From<SuspectVerdict> for VerdictWord {
    fn from(verdict: SuspectVerdict) -> VerdictWord {
        match verdict {
            SuspectVerdict::Open { .. } => VerdictWord::Open,
            SuspectVerdict::Aged(LiveCourse::Steady) => VerdictWord::Steady,
            SuspectVerdict::Aged(LiveCourse::Growing { .. }) => VerdictWord::Growing,
            SuspectVerdict::Aged(LiveCourse::Unknown(_)) => VerdictWord::Unknown,
        }
    }
}

impl From<LiveAmount> for LiveRow {
    fn from(live: LiveAmount) -> LiveRow {
        LiveRow {
            collections: live.collections,
            millis: live.millis,
            generations: live.generations,
            followed: live.followed,
            objects: live.objects,
            bytes: live.bytes,
        }
    }
}

/// The content id and frames of a trace; empty if the log does not explain the context id.
pub(super) fn resolve_trace(profile: &Profile, id: ContextId) -> (String, Vec<StackFrame>) {
    let (stack, frames) = match profile.decode_trace(id) {
        Ok(trace) => (trace.stack, trace.frames),
        Err(_) => (StackId::EMPTY, Vec::new()),
    };
    (stack.to_string(), frames)
}

/// Formats estimated bytes, which are not exact to the byte.
pub(super) fn estimated_bytes(bytes: u64) -> String {
    format_estimated_bytes(bytes)
}

pub(super) fn describe_missing(missing: MissingEvidence) -> String {
    match missing {
        MissingEvidence::Snapshots { seen, needed } => format!(
            "{} of the old generation of the {needed} that are needed",
            format_plural(seen, "collection")
        ),
        MissingEvidence::Collections { seen, needed } => format!(
            "{} of the {needed} that objects of enough ages take",
            format_plural(seen, "collection")
        ),
        MissingEvidence::EarlySnapshots { first_percent } => format!(
            "no collections of the old generation near one third and two thirds of the run; the first came after {first_percent}% of all collections"
        ),
        MissingEvidence::LateSnapshots { last_percent } => format!(
            "no collection of the old generation near the end of the run; the last came after {last_percent}% of all collections"
        ),
    }
}
