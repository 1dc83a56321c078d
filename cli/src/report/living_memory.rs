//! Memory outside of the heap by the context that allocated it: the part of `--event native` before the allocations.

use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{BlockSum, LivingMemory, MemorySource, Profile, StackFrame};
use serde::Serialize;

use crate::amounts::format_amount;
use crate::output::{format_plural, grouped};

/// The part of `--top` that lists sources in text: the allocations follow on the same screen.
const TEXT_PART: usize = 2;

/// Living and released memory.
#[derive(Serialize)]
pub(super) struct LivingMemoryReport {
    allocated: BlockSum,
    living: BlockSum,
    oldest_millis: Option<u64>,
    /// Memory that threads without a Java frame allocated, or whose context is unknown.
    no_context: BlockSum,
    /// Blocks of which it is unknown whether they live.
    unlisted: BlockSum,
    sources: Vec<MemorySourceRow>,
    /// Number of sources in text, and of all.
    #[serde(skip)]
    shown: usize,
    #[serde(skip)]
    different: usize,
}

#[derive(Serialize)]
struct MemorySourceRow {
    id: String,
    stack: String,
    how: String,
    allocated: BlockSum,
    living: BlockSum,
    oldest_millis: Option<u64>,
    frames: Vec<StackFrame>,
    /// The frame by which people know the context.
    #[serde(skip)]
    place: String,
}

impl LivingMemoryReport {
    /// `top`: maximum number of sources; 0: all.
    pub(super) fn new(profile: &Profile, memory: &LivingMemory, top: usize) -> LivingMemoryReport {
        let limit = if top == 0 { usize::MAX } else { top };
        let sum = |amount: fn(&MemorySource) -> BlockSum| {
            let amounts = memory.rows.iter().map(amount);
            amounts.fold(BlockSum::default(), BlockSum::plus)
        };
        let rows = memory.rows.iter().take(limit);
        LivingMemoryReport {
            allocated: sum(|row| row.allocated),
            living: sum(|row| row.living),
            oldest_millis: memory.rows.iter().filter_map(|row| row.oldest_ms).max(),
            no_context: memory.no_context,
            unlisted: memory.unlisted,
            sources: rows.map(|row| MemorySourceRow::new(profile, row)).collect(),
            shown: match top {
                0 => usize::MAX,
                top => top.div_ceil(TEXT_PART),
            },
            different: memory.rows.len(),
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let amounts = format_amounts(self.living, self.oldest_millis, self.allocated);
        writeln!(out, "outside of the heap: {amounts}")?;
        let living = |row: &&MemorySourceRow| row.living.blocks > 0;
        let rows: Vec<_> = self
            .sources
            .iter()
            .filter(living)
            .take(self.shown)
            .collect();
        for row in &rows {
            let amounts = format_amounts(row.living, row.oldest_millis, row.allocated);
            let how = EscapedText(&row.how);
            writeln!(out, "  {amounts}: {} {how}", row.place)?;
        }
        let left = self.different.saturating_sub(rows.len());
        if left > 0 {
            writeln!(
                out,
                "  {} more (--json has all with --top 0)",
                grouped(left as u64)
            )?;
        }
        for (amount, why) in [
            (self.no_context, "by threads without a known Java frame"),
            (
                self.unlisted,
                "not followed for want of room: unknown whether alive",
            ),
        ] {
            if amount.blocks > 0 {
                writeln!(out, "  {}: {why}", format_blocks(amount))?;
            }
        }
        writeln!(out)
    }
}

fn format_blocks(sum: BlockSum) -> String {
    let bytes = format_amount(sum.bytes as f64, "bytes");
    format!("{bytes} in {}", format_plural(sum.blocks, "block"))
}

/// `125.8 MB in 120 blocks alive, the oldest for 1.01 s; allocated 126.2 MB in 6,120 blocks`
fn format_amounts(living: BlockSum, oldest_millis: Option<u64>, allocated: BlockSum) -> String {
    let age = oldest_millis.map_or_else(String::new, |millis| {
        let age = format_amount(millis as f64 * 1_000_000.0, "ns");
        format!(", the oldest for {age}")
    });
    let [living, allocated] = [living, allocated].map(format_blocks);
    format!("{living} alive{age}; allocated {allocated}")
}

impl MemorySourceRow {
    fn new(profile: &Profile, row: &MemorySource) -> MemorySourceRow {
        MemorySourceRow {
            id: profile.context_number(row.allocation.id).to_string(),
            stack: row.allocation.stack.to_string(),
            how: row.how.clone(),
            allocated: row.allocated,
            living: row.living,
            oldest_millis: row.oldest_ms,
            frames: row.allocation.frames.clone(),
            place: row.allocation.place_text(),
        }
    }
}
