//! `lucce leaks --alive`: lists live objects, as text and JSON.

use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{AgeClass, AliveAmount, AliveObjects, AliveRow, Profile, StackFrame};
use lucce_page::AliveText;
use serde::Serialize;

use super::as_of_time::AsOfTime;
use super::rows::{estimated_bytes, resolve_trace};
use crate::amounts::{format_amount, round_estimate};
use crate::frame_args::fold_own_trace;
use crate::output::{format_plural, grouped};
use crate::style::write_trace;

/// Live objects by context and type.
#[derive(Serialize)]
pub struct AliveReport {
    schema: &'static str,
    version: u32,
    /// The run's id; `None`: the log is from before run ids.
    run: Option<String>,
    /// Whether the JVM ended normally.
    ended: bool,
    /// Process id of the JVM, if it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(flatten)]
    listing: AliveListing,
}

/// The live objects at a census.
#[derive(Serialize)]
pub struct AliveListing {
    as_of: AsOfTime,
    /// Milliseconds since sampling of objects began.
    millis: u64,
    collections: u64,
    /// Number of collections of the whole heap; `None`: the JVM does not count them.
    full_collections: Option<u64>,
    /// Used bytes of the heap after the last collection, and its maximum; `None`: unknown.
    heap_bytes: Option<u64>,
    max_heap_bytes: Option<u64>,
    /// The sum of all live objects, listed or not.
    total: AliveSum,
    alive: Vec<AliveListingRow>,
    /// Number of rows that are not listed.
    more: u64,
}

#[derive(Serialize)]
struct AliveListingRow {
    id: String,
    aliases: Vec<String>,
    /// The content id of the trace.
    stack: String,
    class: String,
    objects: u64,
    bytes: u64,
    followed: u64,
    /// Percentage of all live bytes.
    share: f64,
    ages: AliveAges,
    frames: Vec<StackFrame>,
}

/// Sums by age class.
#[derive(Serialize)]
struct AliveAges {
    /// Survived a collection of the old generation.
    old: AliveSum,
    /// Survived a collection.
    survived: AliveSum,
    /// No collection has run since the allocation.
    new: AliveSum,
}

#[derive(Serialize, Clone, Copy)]
struct AliveSum {
    objects: u64,
    bytes: u64,
    followed: u64,
}

impl From<AliveAmount> for AliveSum {
    fn from(amount: AliveAmount) -> AliveSum {
        AliveSum {
            objects: amount.objects,
            bytes: amount.bytes,
            followed: amount.followed,
        }
    }
}

impl AliveReport {
    /// Builds the report. `pid`: the JVM, if it runs.
    pub fn new(profile: &Profile, pid: Option<u32>, listing: AliveListing) -> AliveReport {
        AliveReport {
            schema: "lucce-alive",
            version: 1,
            run: profile.header.run.map(|run| run.to_string()),
            ended: profile.ended,
            pid,
            listing,
        }
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let listing = &self.listing;
        writeln!(out, "alive {}", listing.format_headline())?;
        writeln!(out)?;
        listing.write_rows(out)
    }
}

impl AliveListing {
    /// Lists at most `top` rows.
    pub fn new(
        profile: &Profile,
        objects: &AliveObjects,
        as_of: AsOfTime,
        top: usize,
    ) -> AliveListing {
        let total = objects.total_amount();
        let rows = objects.rows.iter().take(top);
        AliveListing {
            as_of,
            millis: objects.census.millis,
            collections: objects.census.collections,
            full_collections: objects.census.full,
            heap_bytes: objects.census.used_bytes,
            max_heap_bytes: objects.census.max_bytes,
            total: total.into(),
            alive: rows
                .map(|row| AliveListingRow::new(profile, row, total))
                .collect(),
            more: objects.rows.len().saturating_sub(top) as u64,
        }
    }

    pub fn as_of(&self) -> &AsOfTime {
        &self.as_of
    }

    /// Whether a collection has tested most of the listed objects.
    pub fn is_collected(&self) -> bool {
        let new: u64 = self.alive.iter().map(|row| row.ages.new.bytes).sum();
        let all: u64 = self.alive.iter().map(|row| row.bytes).sum();
        new < all / 4
    }

    pub fn total_bytes(&self) -> u64 {
        self.total.bytes
    }

    pub fn millis(&self) -> u64 {
        self.millis
    }

    /// Whether at most a quarter of the heap was free after the last collection; the collector keeps a part of that for
    /// itself.
    pub fn is_full(&self) -> bool {
        let bytes = self.heap_bytes.zip(self.max_heap_bytes);
        bytes.is_some_and(|(used, most)| used >= most / 4 * 3)
    }

    /// Used and maximum size of the heap after the last collection.
    pub fn format_heap(&self) -> Option<String> {
        // Zero: there was no collection.
        let used = self.heap_bytes.filter(|used| *used > 0)?;
        let used = format_amount(used as f64, "bytes");
        let most = format_amount(self.max_heap_bytes? as f64, "bytes");
        Some(format!("{used} of at most {most} of the heap in use"))
    }

    pub fn format_estimate(&self) -> String {
        let bytes = estimated_bytes(self.total.bytes);
        let followed = format_plural(self.total.followed, "followed object");
        format!("about {bytes} as estimated from {followed}")
    }

    pub fn format_headline(&self) -> String {
        let full = self
            .full_collections
            .map(|full| format!(", {} of the whole heap", grouped(full)));
        let collections = format_plural(self.collections, "collection");
        format!(
            "{}; {collections}{}: {}; whether it leaks is not judged here",
            self.as_of,
            full.unwrap_or_default(),
            self.format_estimate()
        )
    }

    pub fn write_rows(&self, out: &mut impl Write) -> io::Result<()> {
        self.alive.iter().try_for_each(|row| row.write(out))?;
        if self.more > 0 {
            writeln!(
                out,
                "{} more with less (--top 0)",
                format_plural(self.more, "context")
            )?;
        }
        Ok(())
    }

    /// The rows for a page.
    pub fn to_texts(&self) -> Vec<AliveText> {
        self.alive.iter().map(AliveListingRow::to_text).collect()
    }
}

impl AliveListingRow {
    fn new(profile: &Profile, row: &AliveRow, all: AliveAmount) -> AliveListingRow {
        let (stack, frames) = resolve_trace(profile, row.id);
        let total = row.total_amount();
        let amount = |class: AgeClass| {
            let amount = row.ages.get(class as usize).copied();
            AliveSum::from(amount.unwrap_or_default())
        };
        let number = |id: &_| profile.context_number(*id).to_string();
        AliveListingRow {
            id: number(&row.id),
            aliases: row.aliases.iter().map(number).collect(),
            stack,
            class: row.type_name.clone(),
            objects: total.objects,
            bytes: total.bytes,
            followed: total.followed,
            share: match all.bytes {
                0 => 0.0,
                all => total.bytes as f64 / all as f64 * 100.0,
            },
            ages: AliveAges {
                old: amount(AgeClass::Old),
                survived: amount(AgeClass::Survived),
                new: amount(AgeClass::New),
            },
            frames,
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (bytes, objects) = (
            estimated_bytes(self.bytes),
            format_plural(round_estimate(self.objects), "object"),
        );
        let (class, id, stack) = (EscapedText(&self.class), &self.id, &self.stack);
        writeln!(
            out,
            "about {bytes}  {:.0}%  {objects} of {class}  {id}  {stack}",
            self.share
        )?;
        writeln!(out, "  ages: {}", self.ages)?;
        write_trace(&fold_own_trace(&self.frames), out)?;
        writeln!(out)
    }

    fn to_text(&self) -> AliveText {
        AliveText {
            bytes: self.bytes,
            objects: self.objects,
            class: EscapedText(&self.class).to_string(),
            old_bytes: self.ages.old.bytes,
            survived_bytes: self.ages.survived.bytes,
            new_bytes: self.ages.new.bytes,
            at: StackFrame::innermost_application_frame(&self.frames).map(ToString::to_string),
            trace: self
                .frames
                .iter()
                .map(|frame| format!("\tat {frame}\n"))
                .collect(),
        }
    }
}

impl std::fmt::Display for AliveAges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = [
            (self.old, "survived a collection of the old generation"),
            (self.survived, "survived a collection"),
            (self.new, "no collection since they were made"),
        ];
        let words = words.into_iter().filter(|(amount, _)| amount.objects > 0);
        let words =
            words.map(|(amount, what)| format!("about {} {what}", estimated_bytes(amount.bytes)));
        f.write_str(&words.collect::<Vec<_>>().join(", "))
    }
}
