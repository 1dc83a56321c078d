//! A log on its way to a collector, generation by generation. The log on the disk is the spool: nothing of it is kept in memory but
//! one part, and 8 bytes for each 4 KB of counters to know those that have changed.
//!
//! ```text
//! log ─► cells that changed ─► records that are new ─► parts of 256 KB ─► collector
//!                                                         │ it has another generation than this sender believes:
//!         the whole log, as the next generation ◄─────────┘ another one has sent, or it has lost what it had
//! ```
//! What a round could not send the next one sends: it reads the log again.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use lucce_tracelog::{CELLS, Content, FILE_START, RunId, Span};

use crate::wire::{Head, Known, Labels, MOST_PARTS, Writing};

/// Bytes of a part, about.
const PART: usize = 256 << 10;
/// Records in one piece.
const PIECE: usize = 64 << 10;

/// A collector.
pub trait Wire {
    /// The last generation that it has.
    ///
    /// # Errors
    /// It does not say.
    fn known(&mut self, run: RunId) -> Result<Known, Fault>;

    /// Hands it a part.
    ///
    /// # Errors
    /// Whether it has the part is not known.
    fn send(&mut self, run: RunId, part: &[u8]) -> Result<Sent, Fault>;
}

/// What a collector says of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It is on its disk.
    Taken,
    /// The dataset has the whole run.
    Ended,
    /// It has another generation than the one that this changes.
    Other,
}

/// Why a round was in vain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub why: String,
    /// When the collector wants to be asked again.
    pub asked: Option<Duration>,
}

impl Fault {
    pub fn new(why: impl Into<String>) -> Self {
        Fault {
            why: why.into(),
            asked: None,
        }
    }
}

/// What a round has sent.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Round {
    /// That the collector has now, of this run.
    pub events: u64,
    /// Sent in this round.
    pub bytes: u64,
    /// The dataset has the whole run.
    pub ended: bool,
}

/// Reads a log: fills the bytes with what begins at an offset, or says that it cannot.
pub type Read<'r> = dyn FnMut(u64, &mut [u8]) -> bool + 'r;

/// What the collector has of this sender.
#[derive(Default)]
struct Has {
    /// Of the last generation.
    token: u64,
    /// Of chunks that are not zeros, by offset.
    hashes: HashMap<u64, u64>,
    /// Records before this offset are all there, and will not change.
    sealed: u64,
}

/// A generation that was sent, so far as it was.
struct Generation {
    number: u64,
    token: u64,
    is_whole: bool,
    changed: Vec<(u64, u64)>,
    sealed: u64,
    events: u64,
    ends: bool,
}

/// Sends one log.
pub struct Sender {
    run: RunId,
    labels: Labels,
    /// The program's arguments are sent as they are; else they are masked.
    shows_arguments: bool,
    /// The last number that the collector is known to have. `None`: it must be asked.
    number: Option<u64>,
    has: Option<Has>,
    /// The last part was sent, and nothing was heard of it.
    in_doubt: Option<Generation>,
    /// A generation with the log's end was sent, whether it has arrived or not.
    has_sent_end: bool,
    /// The log's end was seen: counters that are read from now on are the last ones.
    has_end: bool,
    random: RandomState,
    block: Vec<u8>,
}

impl Sender {
    #[must_use]
    pub fn new(run: RunId, labels: Labels) -> Self {
        Sender {
            run,
            labels,
            shows_arguments: false,
            number: None,
            has: None,
            in_doubt: None,
            has_sent_end: false,
            has_end: false,
            random: RandomState::new(),
            block: Vec::new(),
        }
    }

    /// Sends the program's arguments as they are. Without it, they do not leave this machine.
    #[must_use]
    pub fn with_arguments(self) -> Self {
        Sender {
            shows_arguments: true,
            ..self
        }
    }

    #[must_use]
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Whether the collector may have the log to its end by this sender: else somebody else has sent it, or the collector errs.
    #[must_use]
    pub fn has_sent_end(&self) -> bool {
        self.has_sent_end
    }

    /// Sends what is new.
    ///
    /// # Errors
    /// Not all of it was taken: the next round sends it again.
    pub fn round(&mut self, log: &mut Read<'_>, wire: &mut dyn Wire) -> Result<Round, Fault> {
        let mut bytes = 0;
        // Another sender may have been faster, once, and the log may end, once.
        for _ in 0..4 {
            if self.number.is_none() && self.ask(wire)?.ended {
                return Ok(Round {
                    ended: true,
                    bytes,
                    ..Round::default()
                });
            }
            let knew_end = self.has_end;
            let (sent, events) = self.generation(log, wire, &mut bytes)?;
            if self.has_end && !knew_end {
                continue;
            }
            match sent {
                Sent::Taken => {
                    return Ok(Round {
                        events,
                        bytes,
                        ended: false,
                    });
                }
                Sent::Ended => {
                    return Ok(Round {
                        events,
                        bytes,
                        ended: true,
                    });
                }
                Sent::Other => self.number = None,
            }
        }
        Err(Fault::new("another sender is faster"))
    }

    fn ask(&mut self, wire: &mut dyn Wire) -> Result<Known, Fault> {
        let known = wire.known(self.run)?;
        if let Some(generation) = self.in_doubt.take()
            && (generation.number, generation.token) == (known.number, known.token)
        {
            self.taken(generation);
        }
        if self
            .has
            .as_ref()
            .is_some_and(|has| has.token != known.token)
        {
            self.has = None;
        }
        self.number = Some(known.number);
        Ok(known)
    }

    fn taken(&mut self, generation: Generation) {
        if generation.is_whole {
            self.has = None;
        }
        let has = self.has.get_or_insert_default();
        has.token = generation.token;
        has.sealed = generation.sealed;
        has.hashes.extend(generation.changed);
        self.number = Some(generation.number);
    }

    fn generation(
        &mut self,
        log: &mut Read<'_>,
        wire: &mut dyn Wire,
        bytes: &mut u64,
    ) -> Result<(Sent, u64), Fault> {
        let number = self.number.unwrap_or(0).saturating_add(1);
        let base = self.has.as_ref().map_or(0, |has| has.token);
        let mut generation = Generation {
            number,
            token: RunId::random().bits(),
            is_whole: base == 0,
            changed: Vec::new(),
            sealed: self.has.as_ref().map_or(FILE_START, |has| has.sealed),
            events: 0,
            ends: false,
        };
        let head = Head {
            run: self.run,
            number,
            token: generation.token,
            base,
            part: 0,
            last: false,
            size: 0,
            labels: self.labels.clone(),
        };
        let mut out = Out {
            part: Writing::new(&head),
            head,
            wire,
            bytes,
            refused: None,
            is_empty: true,
        };
        let mut block = std::mem::take(&mut self.block);
        let size = self.all(log, (&mut generation, &mut out), &mut block);
        block.clear();
        block.shrink_to(PIECE);
        self.block = block;
        let (size, events) = (size?, generation.events);
        let ends = std::mem::take(&mut generation.ends);
        if ends && !self.has_end {
            // Its counters were read before the end was written: a collector would take them for the last ones.
            self.has_end = true;
            return Ok((Sent::Other, events));
        }
        if let Some(sent) = out.refused {
            return Ok((sent, events));
        }
        if out.is_empty {
            return Ok((Sent::Taken, events));
        }
        out.part.is_last(size);
        self.has_sent_end |= self.has_end;
        match out.send() {
            Ok(Sent::Taken) => {
                self.taken(generation);
                Ok((Sent::Taken, events))
            }
            Ok(sent) => Ok((sent, events)),
            Err(fault) => {
                self.in_doubt = Some(generation);
                self.number = None;
                Err(fault)
            }
        }
    }

    /// All that has changed: cells first, what explains them behind them. The log's size. The header of cells is read before
    /// them: if it has their seal, they do not change any more.
    fn all(
        &self,
        log: &mut Read<'_>,
        (generation, out): (&mut Generation, &mut Out<'_>),
        block: &mut Vec<u8>,
    ) -> Result<u64, Fault> {
        let mut at = FILE_START;
        while let Some(span) = Span::read(at, log) {
            if let Content::Cells { .. } = span.content {
                self.chunk(span.at, &span.header, (generation, out))?;
                let events = self.chunks(&span, log, (generation, out), block)?;
                generation.events = generation.events.saturating_add(events);
            }
            at = span.next();
        }
        let counted = at;
        fill(block, FILE_START, 0, log)?;
        self.chunk(0, block, (generation, out))?;
        (at, generation.sealed) = (FILE_START, FILE_START);
        let already = self.has.as_ref().map_or(FILE_START, |has| has.sealed);
        let mut size = FILE_START;
        let mut is_sealed = true;
        while let Some(mut span) = Span::read(at, log) {
            match span.content {
                Content::Cells { .. } if span.at < counted => {}
                // Cells that were made meanwhile stay zeros until the next round.
                Content::Cells { .. } => {
                    self.chunk(span.at, &span.unsealed_header(), (generation, out))?;
                }
                Content::Other { .. } => {
                    self.chunk(span.at, &span.header, (generation, out))?;
                    self.chunks(&span, log, (generation, out), block)?;
                }
                Content::Records { .. } => {
                    if span.at >= already {
                        span = records(span, log, block)?;
                        if !self.shows_arguments {
                            span.mask_arguments(block);
                        }
                        self.records(&span, block, (generation, out))?;
                    }
                    is_sealed &= matches!(span.content, Content::Records { sealed: true, .. });
                }
            }
            size = span.end();
            at = span.next();
            if is_sealed {
                generation.sealed = at;
            }
            if out.refused.is_some() {
                break;
            }
        }
        Ok(size)
    }

    /// What of a block's content has changed. How many events it counts.
    fn chunks(
        &self,
        span: &Span,
        log: &mut Read<'_>,
        (generation, out): (&mut Generation, &mut Out<'_>),
        block: &mut Vec<u8>,
    ) -> Result<u64, Fault> {
        let mut events = 0_u64;
        let mut at = span.start();
        while at < span.end() && out.refused.is_none() {
            let bytes = CELLS.min(span.end() - at);
            fill(block, bytes, at, log)?;
            events = events.saturating_add(span.events(block));
            self.chunk(at, block, (generation, out))?;
            at += bytes;
        }
        Ok(events)
    }

    fn chunk(
        &self,
        at: u64,
        chunk: &[u8],
        (generation, out): (&mut Generation, &mut Out<'_>),
    ) -> Result<(), Fault> {
        if self.is_new(at, self.random.hash_one(chunk), chunk, generation) {
            out.piece(at, chunk)?;
        }
        Ok(())
    }

    fn records(
        &self,
        span: &Span,
        content: &[u8],
        (generation, out): (&mut Generation, &mut Out<'_>),
    ) -> Result<(), Fault> {
        let hash = self.random.hash_one((span.header, content));
        if !self.is_new(span.at, hash, &span.header, generation) {
            return Ok(());
        }
        generation.ends |= span.has_end(content);
        out.piece(span.at, &span.header)?;
        for (at, piece) in (span.start()..).step_by(PIECE).zip(content.chunks(PIECE)) {
            out.piece(at, piece)?;
        }
        Ok(())
    }

    /// Whether the collector has something else. What it has nothing of is zeros there.
    fn is_new(&self, at: u64, hash: u64, bytes: &[u8], generation: &mut Generation) -> bool {
        let has = self.has.as_ref().and_then(|has| has.hashes.get(&at));
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

/// A block's records, and its header as it was with them.
fn records(span: Span, log: &mut Read<'_>, block: &mut Vec<u8>) -> Result<Span, Fault> {
    let mut span = span;
    for _ in 0..3 {
        fill(block, span.content.bytes(), span.start(), log)?;
        if span.is_of(block) {
            return Ok(span);
        }
        // The block was sealed while its header was read.
        span = Span::read(span.at, log).ok_or_else(unreadable)?;
    }
    Err(Fault::new("the log is damaged: a block's checksum differs"))
}

fn fill(block: &mut Vec<u8>, bytes: u64, at: u64, log: &mut Read<'_>) -> Result<(), Fault> {
    let bytes = usize::try_from(bytes).map_err(|_| unreadable())?;
    block.resize(bytes, 0);
    match log(at, block) {
        true => Ok(()),
        false => Err(unreadable()),
    }
}

fn unreadable() -> Fault {
    Fault::new("the log cannot be read")
}

/// Parts on their way.
struct Out<'w> {
    head: Head,
    part: Writing,
    wire: &'w mut dyn Wire,
    bytes: &'w mut u64,
    /// The collector wants no more of this generation.
    refused: Option<Sent>,
    is_empty: bool,
}

impl Out<'_> {
    fn piece(&mut self, at: u64, piece: &[u8]) -> Result<(), Fault> {
        if self.refused.is_some() {
            return Ok(());
        }
        if !self.is_empty && self.part.len() + piece.len() > PART {
            match self.send()? {
                Sent::Taken => {}
                sent => {
                    self.refused = Some(sent);
                    return Ok(());
                }
            }
            self.head.part += 1;
            if self.head.part >= MOST_PARTS {
                return Err(Fault::new("the log is too large to be sent"));
            }
            self.part.begin(&self.head);
        }
        self.is_empty = false;
        self.part.piece(at, piece);
        Ok(())
    }

    fn send(&mut self) -> Result<Sent, Fault> {
        let part = self.part.end();
        *self.bytes += part.len() as u64;
        self.wire.send(self.head.run, part)
    }
}
