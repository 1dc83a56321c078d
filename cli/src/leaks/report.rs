//! The report of leaks and their evidence, as text and JSON.

use std::io::{self, Write};
use std::time::SystemTime;

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{LeakAnalysis, Profile};
use lucce_page::LeaksText;
use serde::Serialize;

use super::as_of_time::AsOfTime;
use super::exhaustion::HeapExhaustion;
use super::find_missing_evidence;
use super::rows::{LeakRow, SuspectRow, VerdictWord, describe_missing};
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
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        let _ = self
            .write_exhaustion(&mut text)
            .and_then(|()| self.write_totals(&mut text))
            .and_then(|()| self.write_holders(&mut text));
        let found = self.leaks.iter().enumerate();
        LeaksText {
            says: match &self.missing {
                Some(missing) => EscapedText(missing).to_string(),
                None => String::from_utf8_lossy(&text).trim_end().to_owned(),
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
        let leaks = self.leaks.len() as u64 + self.more;
        let leaks = match leaks {
            0 if self.is_denied() => "no leak found".to_owned(),
            0 => "no leak proven".to_owned(),
            _ => format!("{} found", format_plural(leaks, "leak")),
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
            "{leaks}: {alive} with living objects, {judged} with objects of enough ages to judge; {collections}"
        )?;
        if let Some(as_of) = &self.as_of {
            let old = format_plural(totals.old_collections, "collection");
            let seen = grouped(totals.snapshots);
            writeln!(out, "{as_of}; {old} of the old generation, {seen} seen")?;
        }
        self.write_notes(out)
    }

    /// `not proven: 0 collections of the old generation of the 4 that are needed; largest suspect: 914 × byte[], 7.50 MB, at …`.
    /// `None`: a leak is excluded.
    pub fn describe_open(&self) -> Option<String> {
        if self.is_denied() {
            return None;
        }
        let reason = self.missing.as_ref().or(self.unproven.as_ref());
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        // Most bytes first.
        let mut open = self.suspects.iter();
        let suspect = open.find(|row| row.verdict != VerdictWord::Steady);
        let suspect = suspect.map(|row| format!("; largest suspect: {}", row.describe_place()));
        Some(format!("not proven{reason}{}", suspect.unwrap_or_default()))
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
        let is_early = totals.snapshots < 3 && self.missing.is_none();
        if let Some(pid) = self.pid.filter(|_| is_early) {
            writeln!(
                out,
                "note: too early to tell: it takes some collections of the old generation (`lucce leaks {pid} --gc` makes one)"
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
