//! The report of leaks and their evidence, as text and JSON.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::SystemTime;

use lucce_contentid::StackId;
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ContextId, LeakAnalysis, LeakEvidence, LeakFinding, LeakSuspect, LiveAmount, LiveCourse,
    MissingEvidence, Profile, StackFrame, SuspectVerdict,
};
use lucce_page::{LeakText, LeaksText, SuspectText};
use serde::Serialize;

use super::as_of_time::AsOfTime;
use super::exhaustion::HeapExhaustion;
use super::find_missing_evidence;
use crate::amounts::format_amount;
use crate::holders::{LeakHolders, type_option};
use crate::output::{format_plural, grouped};

/// Number of shown suspects.
pub const SUSPECTS: usize = 3;

#[derive(Serialize)]
pub struct LeaksReport {
    schema: &'static str,
    version: u32,
    /// The run's id; `None`: the log is from before run ids.
    run: Option<String>,
    /// Whether the agent sampled objects.
    followed: bool,
    /// Why the log cannot show leaks.
    missing: Option<String>,
    /// The sampling interval in bytes.
    interval: Option<u64>,
    totals: LeaksTotals,
    /// Time of the last snapshot; `None`: there is none.
    as_of: Option<AsOfTime>,
    /// Set if the JVM ran out of memory.
    exhausted: Option<HeapExhaustion>,
    /// Why a leak cannot be excluded; `None`: it can, or leaks were found.
    unproven: Option<String>,
    /// Whether the JVM ended normally.
    ended: bool,
    /// Process id of the JVM, if it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    damage: Option<LeaksDamage>,
    leaks: Vec<LeakRow>,
    /// Number of leaks that are not listed.
    more: u64,
    /// Other live objects by bytes, without a proof.
    suspects: Vec<SuspectRow>,
    more_suspects: u64,
    /// GC root paths of the first leak's or suspect's objects, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    holders: Option<LeakHolders>,
}

/// Totals until the end of the run, or until the last snapshot of a running JVM.
#[derive(Serialize)]
struct LeaksTotals {
    snapshots: u64,
    millis: u64,
    collections: u64,
    old_collections: u64,
    sampled: u64,
    following: u64,
    thinned: u32,
    lost: u64,
    /// Number of (context, type) pairs with objects proven live.
    alive: u64,
    /// Number of these with enough generations to be judged.
    judged: u64,
}

#[derive(Serialize)]
struct LeaksDamage {
    offset: u64,
    reason: String,
}

#[derive(Serialize)]
struct LeakRow {
    id: String,
    aliases: Vec<String>,
    /// The content id of the trace.
    stack: String,
    class: String,
    /// The probability that any of the judged contexts looks like this without growing.
    chance: f64,
    /// The first and the last live generation, by number of collections before their allocation.
    born: [u64; 2],
    /// Generations with live objects, allocated in each third of that span.
    generations: [u64; 3],
    /// Live objects after one third, two thirds and all of that span.
    live: [LiveRow; 3],
    /// Percentage of the objects live after the first third that are still live.
    kept: f64,
    growth_bytes: u64,
    frames: Vec<StackFrame>,
}

/// Live objects without proof of a leak, of one type and one application frame.
#[derive(Serialize)]
struct SuspectRow {
    /// The id of the context with most bytes.
    id: String,
    /// The content id of that context's trace.
    stack: String,
    /// Number of contexts with this frame and type.
    contexts: u64,
    class: String,
    objects: u64,
    bytes: u64,
    /// Number of live generations; the next field: the number needed for a judgement.
    generations: u64,
    enough: u64,
    /// Approximate number of further old collections needed; `None`: there are enough generations.
    needs_old_collections: Option<u64>,
    /// With enough generations: growth in bytes since earlier in the run.
    growth_bytes: u64,
    verdict: VerdictWord,
    /// Why the earlier number is unknown.
    missing: Option<String>,
    /// Whether more objects live than at an earlier snapshot, regardless of their ages.
    has_grown: bool,
    /// The innermost frame of the application.
    at: Option<StackFrame>,
}

/// The verdict on a suspect; of several contexts, the last in this order.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum VerdictWord {
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
struct LiveRow {
    collections: u64,
    millis: u64,
    generations: u64,
    followed: u64,
    objects: u64,
    bytes: u64,
}

impl LeaksReport {
    /// Builds the report with at most `top` leaks (0: all) and suspects.
    pub fn new(
        profile: &Profile,
        leaks: &LeakAnalysis,
        top: usize,
        suspects: usize,
    ) -> LeaksReport {
        let top = if top == 0 { usize::MAX } else { top };
        let shown = if top == usize::MAX {
            top
        } else {
            top.min(suspects)
        };
        let last = leaks.last_snapshot.unwrap_or_default();
        let rows = leaks.findings.iter().take(top);
        let interval = profile.meta.get("leak.interval");
        let suspects = SuspectRow::from_suspects(profile, &leaks.suspects);
        // The end also counts what followed the last snapshot.
        let until = |key: &str, at_last: u64| at_last.max(profile.stat_value(key));
        LeaksReport {
            schema: "lucce-leaks",
            version: 1,
            run: profile.header.run.map(|run| run.to_string()),
            followed: interval.is_some(),
            missing: find_missing_evidence(profile, leaks),
            interval: interval.and_then(|text| text.parse().ok()),
            totals: LeaksTotals {
                snapshots: leaks.snapshots,
                millis: last.millis,
                collections: until("leak.collections", last.collections),
                old_collections: until("leak.old_collections", last.old),
                sampled: until("leak.sampled", last.sampled),
                following: last.following,
                thinned: last.thinned,
                lost: until("leak.lost", last.lost),
                alive: leaks.alive,
                judged: leaks.judged,
            },
            as_of: leaks
                .last_snapshot
                .map(|last| AsOfTime::new(profile.header.start, last.millis, None)),
            exhausted: None,
            unproven: leaks
                .missing_evidence()
                .filter(|_| leaks.findings.is_empty())
                .map(describe_missing),
            ended: profile.ended,
            pid: None,
            holders: None,
            damage: leaks.damage.as_ref().map(|damage| LeaksDamage {
                offset: damage.offset,
                reason: damage.reason.to_string(),
            }),
            leaks: rows.map(|leak| LeakRow::new(profile, leak)).collect(),
            more: leaks.findings.len().saturating_sub(top) as u64,
            more_suspects: suspects.len().saturating_sub(shown) as u64,
            suspects: suspects.into_iter().take(shown).collect(),
        }
    }

    /// Adds the process id of a running JVM.
    pub fn with_process(
        mut self,
        profile: &Profile,
        leaks: &LeakAnalysis,
        pid: Option<u32>,
    ) -> LeaksReport {
        self.pid = pid;
        if let (Some(_), Some(last)) = (pid, leaks.last_snapshot) {
            let now = Some(SystemTime::now());
            self.as_of = Some(AsOfTime::new(profile.header.start, last.millis, now));
        }
        self
    }

    /// Adds the exhausted heap. Suspects that filled it are not called steady.
    pub fn with_exhaustion(mut self, exhausted: Option<HeapExhaustion>) -> LeaksReport {
        if let Some(exhausted) = &exhausted {
            let filled = |row: &&mut SuspectRow| {
                row.verdict == VerdictWord::Steady && exhausted.is_filled_by(row.bytes)
            };
            for row in self.suspects.iter_mut().filter(filled) {
                row.verdict = VerdictWord::Unknown;
                row.missing = Some("they are a good part of what filled the heap".into());
            }
        }
        self.exhausted = exhausted;
        self
    }

    /// The text for a page.
    pub fn to_text(&self) -> LeaksText {
        let mut says = Vec::new();
        // Writing to memory cannot fail.
        let _ = self
            .write_exhaustion(&mut says)
            .and_then(|()| self.write_totals(&mut says))
            .and_then(|()| self.write_holders(&mut says));
        let found = self.leaks.iter().enumerate();
        LeaksText {
            says: match &self.missing {
                Some(missing) => EscapedText(missing).to_string(),
                None => String::from_utf8_lossy(&says).trim_end().to_owned(),
            },
            found: found.map(|(number, row)| row.to_text(number + 1)).collect(),
            suspects: self.suspects.iter().map(SuspectRow::to_text).collect(),
            more: self.more_suspects,
            alive: None,
        }
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_exhaustion(out)?;
        for (number, row) in self.leaks.iter().enumerate() {
            row.write(number + 1, out)?;
        }
        if self.more > 0 {
            writeln!(out, "{} more (--top 0)", format_plural(self.more, "leak"))?;
        }
        self.write_suspects(out)?;
        self.write_holders(out)?;
        self.write_totals(out)
    }

    fn write_exhaustion(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.exhausted {
            Some(exhausted) => exhausted.write(out),
            None => Ok(()),
        }
    }

    /// Writes other live objects: readers want to know why these are no leaks.
    fn write_suspects(&self, out: &mut impl Write) -> io::Result<()> {
        if self.suspects.is_empty() {
            return Ok(());
        }
        writeln!(out, "not proven, but alive (most bytes first):")?;
        self.suspects.iter().try_for_each(|row| row.write(out))?;
        if self.more_suspects > 0 {
            let places = format_plural(self.more_suspects, "place");
            writeln!(out, "  {places} more with less (--top 0)")?;
        }
        writeln!(out)
    }

    /// The context ids and the type of the first leak or suspect. A context may have several ids, and objects are followed
    /// by the id of their allocation.
    pub fn first_objects(&self) -> Option<(Vec<String>, &str)> {
        let of_leak = |leak: &LeakRow| [std::slice::from_ref(&leak.id), &leak.aliases].concat();
        match (self.leaks.first(), self.suspects.first()) {
            (Some(leak), _) => Some((of_leak(leak), &leak.class)),
            (None, Some(row)) => Some((vec![row.id.clone()], &row.class)),
            (None, None) => None,
        }
    }

    /// Adds the root paths of the first objects.
    pub fn add_holders(&mut self, holders: LeakHolders) {
        self.holders = Some(holders);
    }

    /// Writes the command for root paths, which needs a running JVM.
    fn write_holders(&self, out: &mut impl Write) -> io::Result<()> {
        if let Some(holders) = &self.holders {
            return holders.write(out);
        }
        match (self.pid, self.first_objects()) {
            (Some(pid), Some((ids, class))) => {
                let (ids, of) = (ids.join(" "), type_option(class));
                writeln!(
                    out,
                    "what holds such objects: lucce ctl {pid} holders {ids} {of}\n"
                )
            }
            _ => Ok(()),
        }
    }

    fn write_totals(&self, out: &mut impl Write) -> io::Result<()> {
        let totals = &self.totals;
        if !self.followed {
            return Ok(());
        }
        let found = self.leaks.len() as u64 + self.more;
        let found = match found {
            0 if self.is_denied() => "no leak found".to_owned(),
            0 => "no leak proven".to_owned(),
            _ => format!("{} found", format_plural(found, "leak")),
        };
        let (judged, alive) = (
            grouped(totals.judged),
            format_plural(totals.alive, "context"),
        );
        let collections = match (totals.snapshots, self.ended) {
            // The number of collections is recorded at an old collection.
            (0, false) => "no collection of the old generation yet".to_owned(),
            _ => {
                let collections = format_plural(totals.collections, "collection");
                let old = grouped(totals.old_collections);
                format!("{collections}, {old} of the old generation")
            }
        };
        writeln!(
            out,
            "{found}: {alive} with living objects, {judged} with objects of enough ages to judge; {collections}"
        )?;
        if let Some(as_of) = &self.as_of {
            let old = format_plural(totals.old_collections, "collection");
            let seen = grouped(totals.snapshots);
            writeln!(out, "{as_of}; {old} of the old generation, {seen} seen")?;
        }
        self.write_notes(out)
    }

    /// Whether a leak is excluded: the snapshots suffice, and there is no evidence.
    fn is_denied(&self) -> bool {
        let all: u64 = self.suspects.iter().map(|row| row.bytes).sum();
        let is_part = |row: &SuspectRow| row.bytes > all / 10;
        let is_open = |row: &SuspectRow| {
            row.verdict > VerdictWord::Steady
                || row.has_grown && row.generations > 1 && is_part(row)
        };
        self.unproven.is_none()
            && self.missing.is_none()
            && self.exhausted.is_none()
            && !self.suspects.iter().any(is_open)
    }

    fn write_notes(&self, out: &mut impl Write) -> io::Result<()> {
        let totals = &self.totals;
        if totals.snapshots < 3 && self.missing.is_none() {
            writeln!(
                out,
                "note: too early to tell: it takes some collections of the old generation (`lucce leaks PID --gc` makes one)"
            )?;
        } else if let Some(unproven) = &self.unproven {
            writeln!(
                out,
                "note: it cannot be said that nothing leaks: {unproven}"
            )?;
        }
        if totals.thinned > 0 {
            let times = 1_u64.checked_shl(totals.thinned).unwrap_or(u64::MAX);
            writeln!(
                out,
                "note: only one sampled object in {} is followed, to keep within bounds",
                grouped(times)
            )?;
        }
        if totals.lost > 0 {
            let lost = format_plural(totals.lost, "sampled object");
            writeln!(out, "note: {lost} left out: no context could be told")?;
        }
        match &self.damage {
            Some(damage) => writeln!(
                out,
                "note: the log is damaged at offset {}; what could be read is judged",
                damage.offset
            ),
            None => Ok(()),
        }
    }
}

impl LeakRow {
    fn new(profile: &Profile, leak: &LeakFinding) -> LeakRow {
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

    fn to_text(&self, number: usize) -> LeakText {
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

    fn format_head(&self, number: usize) -> String {
        let [first, _, last] = &self.live;
        let growth = estimated_bytes(self.growth_bytes);
        let seconds = last.millis.saturating_sub(first.millis) as f64 / 1e3;
        let (class, id, stack) = (EscapedText(&self.class), &self.id, &self.stack);
        format!("#{number} {class}  +{growth} in {seconds:.1} s  {id}  {stack}")
    }

    fn format_evidence(&self) -> [String; 3] {
        let [first, second, last] = &self.live;
        let [a, b, c] = self.generations.map(grouped);
        let ages = format!(
            "ages: objects from {} are alive, made between collections {} and {}; from the first third of that time {a}, from the second {b}, from the last {c}",
            format_plural(last.generations, "different time"),
            grouped(self.born[0]),
            grouped(self.born[1])
        );
        let alive = [first, second, last].map(|live| {
            let (objects, bytes) = (grouped(live.objects), estimated_bytes(live.bytes));
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

    fn write(&self, number: usize, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.format_head(number))?;
        for line in self.format_evidence() {
            writeln!(out, "  {line}")?;
        }
        self.frames
            .iter()
            .try_for_each(|frame| writeln!(out, "\tat {frame}"))?;
        writeln!(out)
    }

    /// Formats the probability; below one in a million the exact value does not matter.
    fn describe_chance(&self) -> String {
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
    fn from_suspects(profile: &Profile, suspects: &[LeakSuspect]) -> Vec<SuspectRow> {
        let mut rows: Vec<SuspectRow> = Vec::new();
        let mut known: HashMap<(String, Option<StackFrame>), usize> = HashMap::new();
        for suspect in suspects {
            let row = SuspectRow::new(profile, suspect);
            let key = (row.class.clone(), row.at.clone());
            match known.get(&key).and_then(|at| rows.get_mut(*at)) {
                Some(same) => same.merge_row(&row),
                None => {
                    known.insert(key, rows.len());
                    rows.push(row);
                }
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        rows
    }

    /// Adds another context's row; the verdict of the context with most generations holds.
    fn merge_row(&mut self, other: &SuspectRow) {
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

    fn new(profile: &Profile, suspect: &LeakSuspect) -> SuspectRow {
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

    fn to_text(&self) -> SuspectText {
        SuspectText {
            head: self.format_head(),
            at: self.at.as_ref().map(ToString::to_string),
            verdict: self.describe_verdict(),
        }
    }

    fn format_head(&self) -> String {
        let (bytes, objects) = (
            estimated_bytes(self.bytes),
            format_plural(self.objects, "object"),
        );
        let (class, id, stack) = (EscapedText(&self.class), &self.id, &self.stack);
        let head = format!("about {bytes}  {objects} of {class}  {id}  {stack}");
        match self.contexts {
            0 | 1 => head,
            several => format!("{head} and {}", format_plural(several - 1, "more context")),
        }
    }

    fn describe_verdict(&self) -> String {
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

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
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

fn describe_missing(missing: MissingEvidence) -> String {
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
            "the first collection of the old generation came after {first_percent}% of all collections"
        ),
        MissingEvidence::LateSnapshots { last_percent } => format!(
            "the last collection of the old generation came after {last_percent}% of all collections"
        ),
    }
}

/// The content id and frames of a trace; empty if the log does not explain the context id.
pub fn resolve_trace(profile: &Profile, id: ContextId) -> (String, Vec<StackFrame>) {
    let (stack, frames) = match profile.decode_trace(id) {
        Ok(trace) => (trace.stack, trace.frames),
        Err(_) => (StackId::EMPTY, Vec::new()),
    };
    (stack.to_string(), frames)
}

/// Formats estimated bytes, which are not exact to the byte.
pub fn estimated_bytes(bytes: u64) -> String {
    format_amount(bytes as f64, "bytes")
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
