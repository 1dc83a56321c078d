//! Sends a log to a collector, generation by generation.
//!
//! The log on disk is the buffer. Memory holds only one part, and 8 bytes for each 4 KB of counters to detect changes.
//!
//! ```text
//! log ─► changed counters ─► new records ─► parts of 256 KB ─► collector
//!                                               │ it has another generation than this sender assumes:
//!    the whole log, as the next generation ◄────┘ another sender was active, or it lost data
//! ```
//! If a round fails, the next round reads the log again and sends everything that is missing.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use lucce_tracelog::{BlockSpan, CELLS, FILE_START, RunId, SpanContent};

use crate::wire::{CollectorGeneration, MAX_PARTS, PartBuilder, PartHeader, RunLabels};

/// Approximate size of a part in bytes.
const PART_BYTES: usize = 256 << 10;
/// Maximum bytes of records in one piece.
const PIECE_BYTES: usize = 64 << 10;

/// A collector.
pub trait CollectorClient {
    /// Returns the last generation that the collector has.
    ///
    /// # Errors
    /// The collector gave no answer.
    fn last_generation(&mut self, run: RunId) -> Result<CollectorGeneration, CollectorError>;

    /// Sends a part.
    ///
    /// # Errors
    /// It is unknown whether the collector has the part.
    fn send_part(&mut self, run: RunId, part: &[u8]) -> Result<PartReply, CollectorError>;
}

/// A collector's reply to a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartReply {
    /// The part is on the collector's disk.
    Stored,
    /// The dataset has the whole run.
    RunComplete,
    /// The collector has another generation than the one that the part changes.
    WrongGeneration,
}

/// Why a round failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectorError {
    pub why: String,
    /// The delay before a retry that the collector requests.
    pub retry_after: Option<Duration>,
}

impl CollectorError {
    pub fn new(why: impl Into<String>) -> Self {
        CollectorError {
            why: why.into(),
            retry_after: None,
        }
    }
}

/// The result of a round.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SendReport {
    /// Events of this run that the collector has now.
    pub events: u64,
    /// Bytes sent in this round.
    pub bytes: u64,
    /// The dataset has the whole run.
    pub ended: bool,
}

/// Reads a log: fills a buffer with the bytes at an offset and returns whether it could.
pub type LogReader<'r> = dyn FnMut(u64, &mut [u8]) -> bool + 'r;

/// The content that the collector has from this sender.
#[derive(Default)]
struct CollectorContents {
    /// The token of the last generation.
    token: u64,
    /// Hashes of chunks that are not zero, by offset.
    hashes: HashMap<u64, u64>,
    /// All records before this offset are present and will not change.
    sealed: u64,
}

/// The part of a generation that was sent.
struct SentGeneration {
    number: u64,
    token: u64,
    is_whole: bool,
    changed: Vec<(u64, u64)>,
    sealed: u64,
    events: u64,
    ends: bool,
}

/// Sends one log.
pub struct LogSender {
    run: RunId,
    labels: RunLabels,
    /// Whether the program's arguments are sent unmasked.
    shows_arguments: bool,
    /// The last generation that the collector is known to have. `None`: unknown, to be requested.
    number: Option<u64>,
    collector_contents: Option<CollectorContents>,
    /// Set if the last part was sent without a reply.
    unconfirmed: Option<SentGeneration>,
    /// Whether a generation with the log's end was sent, even without a reply.
    has_sent_end: bool,
    /// Whether the log's end was seen: counters that are read from now on are final.
    has_end: bool,
    random: RandomState,
    block: Vec<u8>,
}

impl LogSender {
    #[must_use]
    pub fn new(run: RunId, labels: RunLabels) -> Self {
        LogSender {
            run,
            labels,
            shows_arguments: false,
            number: None,
            collector_contents: None,
            unconfirmed: None,
            has_sent_end: false,
            has_end: false,
            random: RandomState::new(),
            block: Vec::new(),
        }
    }

    /// Sends the program's arguments unmasked. Without it, they do not leave this machine.
    #[must_use]
    pub fn with_arguments(self) -> Self {
        LogSender {
            shows_arguments: true,
            ..self
        }
    }

    #[must_use]
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Whether this sender may have sent the log to its end. If not, another sender has, or the collector is wrong.
    #[must_use]
    pub fn has_sent_end(&self) -> bool {
        self.has_sent_end
    }

    /// Sends all changes.
    ///
    /// # Errors
    /// The collector did not accept everything; the next round sends the rest again.
    pub fn send_changes(
        &mut self,
        log: &mut LogReader<'_>,
        wire: &mut dyn CollectorClient,
    ) -> Result<SendReport, CollectorError> {
        let mut bytes = 0;
        // One attempt may lose to another sender, and one may see the log's end.
        for _ in 0..4 {
            if self.number.is_none() && self.fetch_generation(wire)?.ended {
                return Ok(SendReport {
                    ended: true,
                    bytes,
                    ..SendReport::default()
                });
            }
            let knew_end = self.has_end;
            let (sent, events) = self.send_generation(log, wire, &mut bytes)?;
            if self.has_end && !knew_end {
                continue;
            }
            match sent {
                PartReply::Stored => {
                    return Ok(SendReport {
                        events,
                        bytes,
                        ended: false,
                    });
                }
                PartReply::RunComplete => {
                    return Ok(SendReport {
                        events,
                        bytes,
                        ended: true,
                    });
                }
                PartReply::WrongGeneration => self.number = None,
            }
        }
        Err(CollectorError::new("another sender is faster"))
    }

    fn fetch_generation(
        &mut self,
        wire: &mut dyn CollectorClient,
    ) -> Result<CollectorGeneration, CollectorError> {
        let stored = wire.last_generation(self.run)?;
        if let Some(generation) = self.unconfirmed.take()
            && (generation.number, generation.token) == (stored.number, stored.token)
        {
            self.mark_stored(generation);
        }
        if self
            .collector_contents
            .as_ref()
            .is_some_and(|has| has.token != stored.token)
        {
            self.collector_contents = None;
        }
        self.number = Some(stored.number);
        Ok(stored)
    }

    fn mark_stored(&mut self, generation: SentGeneration) {
        if generation.is_whole {
            self.collector_contents = None;
        }
        let has = self.collector_contents.get_or_insert_default();
        has.token = generation.token;
        has.sealed = generation.sealed;
        has.hashes.extend(generation.changed);
        self.number = Some(generation.number);
    }

    fn send_generation(
        &mut self,
        log: &mut LogReader<'_>,
        wire: &mut dyn CollectorClient,
        bytes: &mut u64,
    ) -> Result<(PartReply, u64), CollectorError> {
        let number = self.number.unwrap_or(0).saturating_add(1);
        let base = self.collector_contents.as_ref().map_or(0, |has| has.token);
        let mut generation = SentGeneration {
            number,
            token: RunId::random().bits(),
            is_whole: base == 0,
            changed: Vec::new(),
            sealed: self
                .collector_contents
                .as_ref()
                .map_or(FILE_START, |has| has.sealed),
            events: 0,
            ends: false,
        };
        let head = PartHeader {
            run: self.run,
            number,
            token: generation.token,
            base,
            part: 0,
            last: false,
            size: 0,
            labels: self.labels.clone(),
        };
        let mut out = PartSender {
            part: PartBuilder::new(&head),
            head,
            wire,
            bytes,
            refused: None,
            is_empty: true,
        };
        let mut block = std::mem::take(&mut self.block);
        let size = self.send_all_changes(log, (&mut generation, &mut out), &mut block);
        block.clear();
        block.shrink_to(PIECE_BYTES);
        self.block = block;
        let (size, events) = (size?, generation.events);
        let ends = std::mem::take(&mut generation.ends);
        if ends && !self.has_end {
            // Its counters were read before the end was written: the collector would take them for final.
            self.has_end = true;
            return Ok((PartReply::WrongGeneration, events));
        }
        if let Some(sent) = out.refused {
            return Ok((sent, events));
        }
        if out.is_empty {
            return Ok((PartReply::Stored, events));
        }
        out.part.mark_last(size);
        self.has_sent_end |= self.has_end;
        match out.send_part() {
            Ok(PartReply::Stored) => {
                self.mark_stored(generation);
                Ok((PartReply::Stored, events))
            }
            Ok(sent) => Ok((sent, events)),
            Err(fault) => {
                self.unconfirmed = Some(generation);
                self.number = None;
                Err(fault)
            }
        }
    }

    /// Sends all changes, first counters and then the records that explain them. Returns the log's size.
    ///
    /// The header of a block of counters is read before its counters: if it has a seal, the counters do not change any
    /// more.
    fn send_all_changes(
        &self,
        log: &mut LogReader<'_>,
        (generation, out): (&mut SentGeneration, &mut PartSender<'_>),
        block: &mut Vec<u8>,
    ) -> Result<u64, CollectorError> {
        let mut at = FILE_START;
        while let Some(span) = BlockSpan::read_at(at, log) {
            if let SpanContent::Counters { .. } = span.content {
                self.send_chunk(span.at, &span.header, (generation, out))?;
                let events = self.send_chunks(&span, log, (generation, out), block)?;
                generation.events = generation.events.saturating_add(events);
            }
            at = span.next_block();
        }
        let counted = at;
        read_block(block, FILE_START, 0, log)?;
        self.send_chunk(0, block, (generation, out))?;
        (at, generation.sealed) = (FILE_START, FILE_START);
        let already = self
            .collector_contents
            .as_ref()
            .map_or(FILE_START, |has| has.sealed);
        let mut size = FILE_START;
        let mut is_sealed = true;
        while let Some(mut span) = BlockSpan::read_at(at, log) {
            match span.content {
                SpanContent::Counters { .. } if span.at < counted => {}
                // Counters that were created meanwhile stay zero until the next round.
                SpanContent::Counters { .. } => {
                    self.send_chunk(span.at, &span.unsealed_header(), (generation, out))?;
                }
                SpanContent::Other { .. } => {
                    self.send_chunk(span.at, &span.header, (generation, out))?;
                    self.send_chunks(&span, log, (generation, out), block)?;
                }
                SpanContent::Records { .. } => {
                    if span.at >= already {
                        span = read_records(span, log, block)?;
                        if !self.shows_arguments {
                            span.mask_arguments(block);
                        }
                        self.send_records(&span, block, (generation, out))?;
                    }
                    is_sealed &= matches!(span.content, SpanContent::Records { sealed: true, .. });
                }
            }
            size = span.content_end();
            at = span.next_block();
            if is_sealed {
                generation.sealed = at;
            }
            if out.refused.is_some() {
                break;
            }
        }
        Ok(size)
    }

    /// Sends the changed chunks of a block's content. Returns how many events the block counts.
    fn send_chunks(
        &self,
        span: &BlockSpan,
        log: &mut LogReader<'_>,
        (generation, out): (&mut SentGeneration, &mut PartSender<'_>),
        block: &mut Vec<u8>,
    ) -> Result<u64, CollectorError> {
        let mut events = 0_u64;
        let mut at = span.content_start();
        while at < span.content_end() && out.refused.is_none() {
            let bytes = CELLS.min(span.content_end() - at);
            read_block(block, bytes, at, log)?;
            events = events.saturating_add(span.count_events(block));
            self.send_chunk(at, block, (generation, out))?;
            at += bytes;
        }
        Ok(events)
    }

    fn send_chunk(
        &self,
        at: u64,
        chunk: &[u8],
        (generation, out): (&mut SentGeneration, &mut PartSender<'_>),
    ) -> Result<(), CollectorError> {
        if self.is_new(at, self.random.hash_one(chunk), chunk, generation) {
            out.push_piece(at, chunk)?;
        }
        Ok(())
    }

    fn send_records(
        &self,
        span: &BlockSpan,
        content: &[u8],
        (generation, out): (&mut SentGeneration, &mut PartSender<'_>),
    ) -> Result<(), CollectorError> {
        let hash = self.random.hash_one((span.header, content));
        if !self.is_new(span.at, hash, &span.header, generation) {
            return Ok(());
        }
        generation.ends |= span.has_end_record(content);
        out.push_piece(span.at, &span.header)?;
        for (at, piece) in (span.content_start()..)
            .step_by(PIECE_BYTES)
            .zip(content.chunks(PIECE_BYTES))
        {
            out.push_piece(at, piece)?;
        }
        Ok(())
    }

    /// Whether the collector has other data. Where it has no data, it assumes zeros.
    fn is_new(&self, at: u64, hash: u64, bytes: &[u8], generation: &mut SentGeneration) -> bool {
        let has = self
            .collector_contents
            .as_ref()
            .and_then(|has| has.hashes.get(&at));
        let is_new = match has {
            Some(has) => *has != hash,
            None => bytes.iter().any(|byte| *byte != 0),
        };
        if is_new {
            generation.changed.push((at, hash));
        }
        is_new
    }
}

/// Reads a block's records together with the matching header.
fn read_records(
    span: BlockSpan,
    log: &mut LogReader<'_>,
    block: &mut Vec<u8>,
) -> Result<BlockSpan, CollectorError> {
    let mut span = span;
    for _ in 0..3 {
        read_block(block, span.content.bytes(), span.content_start(), log)?;
        if span.matches_content(block) {
            return Ok(span);
        }
        // The block was sealed while its header was read.
        span = BlockSpan::read_at(span.at, log).ok_or_else(unreadable_log)?;
    }
    Err(CollectorError::new(
        "the log is damaged: a block's checksum differs",
    ))
}

fn read_block(
    block: &mut Vec<u8>,
    bytes: u64,
    at: u64,
    log: &mut LogReader<'_>,
) -> Result<(), CollectorError> {
    let bytes = usize::try_from(bytes).map_err(|_| unreadable_log())?;
    block.resize(bytes, 0);
    match log(at, block) {
        true => Ok(()),
        false => Err(unreadable_log()),
    }
}

fn unreadable_log() -> CollectorError {
    CollectorError::new("the log cannot be read")
}

/// The parts of a generation that is being sent.
struct PartSender<'w> {
    head: PartHeader,
    part: PartBuilder,
    wire: &'w mut dyn CollectorClient,
    bytes: &'w mut u64,
    /// The reply by which the collector refused this generation.
    refused: Option<PartReply>,
    is_empty: bool,
}

impl PartSender<'_> {
    fn push_piece(&mut self, at: u64, piece: &[u8]) -> Result<(), CollectorError> {
        if self.refused.is_some() {
            return Ok(());
        }
        if !self.is_empty && self.part.len() + piece.len() > PART_BYTES {
            match self.send_part()? {
                PartReply::Stored => {}
                sent => {
                    self.refused = Some(sent);
                    return Ok(());
                }
            }
            self.head.part += 1;
            if self.head.part >= MAX_PARTS {
                return Err(CollectorError::new("the log is too large to be sent"));
            }
            self.part.start_part(&self.head);
        }
        self.is_empty = false;
        self.part.push_piece(at, piece);
        Ok(())
    }

    fn send_part(&mut self) -> Result<PartReply, CollectorError> {
        let part = self.part.finish_part();
        *self.bytes += part.len() as u64;
        self.wire.send_part(self.head.run, part)
    }
}
