//! Who waits for whom: the part of `--event lock` behind the waits.

use std::io::{self, Write};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{LockPair, LockPairs, Profile, StackFrame, StackTrace};
use serde::Serialize;

use crate::amounts::format_amount;
use crate::output::{format_plural, grouped};

/// The part of `--top` that lists pairs in text.
const TEXT_PART: usize = 5;

/// Waits for locks with an owner, with the holders of the locks.
#[derive(Serialize)]
pub(super) struct LockHolders {
    /// Number and nanoseconds of all waits.
    waits: u64,
    nanos: u64,
    known: u64,
    unknown: u64,
    pairs: Vec<LockPairRow>,
    /// Number of pairs in text, and of all.
    #[serde(skip)]
    shown: usize,
    #[serde(skip)]
    different: usize,
}

#[derive(Serialize)]
struct LockPairRow {
    lock: String,
    waits: u64,
    /// Nanoseconds from the begin of each wait until the release.
    held_nanos: u64,
    waiting: LockContext,
    holder: LockContext,
    /// The two frames by which people know the contexts.
    #[serde(skip)]
    sentence: String,
}

#[derive(Serialize)]
struct LockContext {
    id: String,
    stack: String,
    frames: Vec<StackFrame>,
}

impl LockHolders {
    /// `top`: maximum number of pairs; 0: all. Text has fewer: the waits follow on the same screen.
    pub(super) fn new(profile: &Profile, pairs: &LockPairs, top: usize) -> LockHolders {
        let top = if top == 0 { usize::MAX } else { top };
        let rows = pairs.pairs.iter().take(top);
        LockHolders {
            waits: pairs.waits,
            nanos: pairs.waited_ns,
            known: pairs.known,
            unknown: pairs.unknown(),
            pairs: rows.map(|pair| LockPairRow::new(profile, pair)).collect(),
            shown: if top == usize::MAX {
                top
            } else {
                top.div_ceil(TEXT_PART)
            },
            different: pairs.pairs.len(),
        }
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let waits = format_plural(self.waits, "wait");
        let time = format_amount(self.nanos as f64, "ns");
        let [known, unknown] = [self.known, self.unknown].map(grouped);
        let left = self.different.saturating_sub(self.shown);
        let more = match left {
            0 => String::new(),
            left => format!("; {} more (--top 0)", format_plural(left as u64, "pair")),
        };
        writeln!(
            out,
            "who waits for whom: {waits} for locks, {time}; holder known of {known}, unknown of {unknown}{more}"
        )?;
        for row in self.pairs.iter().take(self.shown) {
            let waits = format_plural(row.waits, "wait");
            let held = format_amount(row.held_nanos as f64, "ns");
            let (lock, sentence) = (EscapedText(&row.lock), &row.sentence);
            writeln!(out, "  {held}, {waits}: {sentence}, for {lock}")?;
        }
        Ok(())
    }
}

impl LockPairRow {
    fn new(profile: &Profile, pair: &LockPair) -> LockPairRow {
        let name = |frame: Option<&StackFrame>| {
            frame.map_or_else(|| "an unknown context".to_owned(), StackFrame::to_string)
        };
        let context = |trace: &StackTrace| LockContext {
            id: profile.context_number(trace.id).to_string(),
            stack: trace.stack.to_string(),
            frames: trace.frames.clone(),
        };
        LockPairRow {
            lock: pair.lock.clone(),
            waits: pair.waits,
            held_nanos: pair.held_ns,
            waiting: context(&pair.waiting),
            holder: context(&pair.holder),
            sentence: format!(
                "{} waits for {}",
                name(pair.waiting.focus_frame()),
                name(pair.holder.focus_frame())
            ),
        }
    }
}
