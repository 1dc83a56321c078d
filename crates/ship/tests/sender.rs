//! A log that is written while it is sent, to a collector that loses requests and answers, takes them twice, restarts and forgets.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;

use lucce_callgraph::ContextId;
use lucce_ship::wire::{CollectorGeneration, GenerationPart, RunLabels};
use lucce_ship::{CollectorClient, CollectorError, LogSender, PartReply};
use lucce_tracelog::{
    AllocationCounter, CounterBlock, EndRecord, InMemoryLog, LogHeader, LogItem, LogRecord,
    LogWriter, RunId, StatRecord, ThreadId,
};

/// The same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Keeps to the rules of `wire`.
#[derive(Default)]
struct Mirror {
    known: CollectorGeneration,
    log: Vec<u8>,
    parts: BTreeMap<(u64, u32), Vec<u8>>,
}

impl Mirror {
    fn take(&mut self, bytes: &[u8]) -> PartReply {
        let part = GenerationPart::parse(bytes).unwrap();
        let head = &part.head;
        if (head.number, head.token) == (self.known.number, self.known.token) {
            return PartReply::Stored;
        }
        if head.number != self.known.number + 1 || head.base != 0 && head.base != self.known.token {
            return PartReply::WrongGeneration;
        }
        self.parts.insert((head.token, head.part), bytes.to_vec());
        if !head.last {
            return PartReply::Stored;
        }
        let parts: Option<Vec<_>> = (0..=head.part)
            .map(|part| self.parts.get(&(head.token, part)))
            .collect();
        let Some(parts) = parts else {
            return PartReply::WrongGeneration;
        };
        if head.base == 0 {
            self.log.clear();
        }
        self.log.resize(head.size as usize, 0);
        for (at, piece) in parts
            .iter()
            .flat_map(|bytes| GenerationPart::parse(bytes).unwrap().pieces())
        {
            // Inside of the size that the last part says.
            self.log[at as usize..at as usize + piece.len()].copy_from_slice(piece);
        }
        (self.known.number, self.known.token) = (head.number, head.token);
        self.parts.clear();
        PartReply::Stored
    }
}

/// What is between them.
struct Away<'t> {
    mirror: &'t mut Mirror,
    random: &'t mut Random,
    /// One in so many goes wrong; 0: none.
    one_in: u64,
}

impl Away<'_> {
    fn happens(&mut self) -> bool {
        self.one_in != 0 && self.random.below(self.one_in) == 0
    }
}

impl CollectorClient for Away<'_> {
    fn last_generation(&mut self, _: RunId) -> Result<CollectorGeneration, CollectorError> {
        match self.happens() {
            true => Err(CollectorError::new("away")),
            false => Ok(self.mirror.known),
        }
    }

    fn send_part(&mut self, _: RunId, part: &[u8]) -> Result<PartReply, CollectorError> {
        if self.happens() {
            return Err(CollectorError::new("the request is lost"));
        }
        if self.happens() {
            self.mirror.parts.clear();
        }
        if self.random.below(50) == 0 && self.happens() {
            *self.mirror = Mirror::default();
        }
        let sent = self.mirror.take(part);
        if self.happens() {
            // It changes nothing.
            let (known, log) = (self.mirror.known, self.mirror.log.clone());
            self.mirror.take(part);
            if sent == PartReply::Stored
                && known.token == GenerationPart::parse(part).unwrap().head.token
            {
                assert!(self.mirror.known == known && self.mirror.log == log);
            }
        }
        match self.happens() {
            true => Err(CollectorError::new("the answer is lost")),
            false => Ok(sent),
        }
    }
}

/// A program that counts: what a cell counts is explained by a record that was written before.
struct Program {
    log: LogWriter,
    cells: Vec<CounterBlock<AllocationCounter>>,
    next: u64,
    counted: u64,
    ended: bool,
}

impl Program {
    fn end(&mut self) {
        self.ended = true;
        self.log.append(EndRecord {}).unwrap();
        self.log.close().unwrap();
    }

    fn step(&mut self, random: &mut Random) {
        if self.ended {
            return;
        }
        let many = match random.below(8) {
            0 => 800,
            _ => random.below(20),
        };
        for _ in 0..many {
            let stat = StatRecord {
                key: format!("explains {}", "x".repeat(random.below(40) as usize)).into(),
                value: self.next,
            };
            self.log.append(stat).unwrap();
            if self.next.is_multiple_of(200) {
                self.cells
                    .push(self.log.add_counters(ThreadId(1), 200).unwrap());
            }
            let cell = &self.cells.last().unwrap()[(self.next % 200) as usize];
            cell.claim(ContextId(self.next + 1));
            cell.count_event(24);
            self.next += 1;
            self.counted += 1;
        }
        for _ in 0..random.below(40) {
            if self.next > 0 {
                let at = random.below(self.next);
                self.cells[(at / 200) as usize][(at % 200) as usize].count_event(24);
                self.counted += 1;
            }
        }
    }
}

/// Events that the log counts: it is whole, and explains all of them.
fn explained(bytes: &[u8]) -> u64 {
    let log = InMemoryLog::from_bytes(bytes.to_vec()).unwrap();
    let (mut explained, mut events, mut wanted) = (BTreeSet::new(), 0, Vec::new());
    for item in log.items() {
        match item.unwrap() {
            LogItem::Record(entry) => {
                if let Some(LogRecord::Stat(stat)) = entry.record {
                    explained.insert(stat.value + 1);
                }
            }
            LogItem::Counters(cells) => wanted.extend(cells.iter()),
            _ => {}
        }
    }
    for cell in wanted {
        assert!(explained.contains(&cell.id.0), "{cell:?} is not explained");
        events += cell.count;
    }
    events
}

#[test]
fn whatever_goes_wrong_the_collector_has_a_log_that_explains_what_it_counts() {
    for seed in 1..=25_u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let program = RefCell::new(Program {
            log: LogWriter::create(&path, &LogHeader::default()).unwrap(),
            cells: Vec::new(),
            next: 0,
            counted: 0,
            ended: false,
        });
        let file = std::fs::File::open(&path).unwrap();
        let mut mirror = Mirror::default();
        let sender = || LogSender::new(RunId::new(seed).unwrap(), RunLabels::default());
        // Two, as when somebody sends the log of a JVM that sends it by itself.
        let mut senders = [sender(), sender()];
        let mut of_program = Random(seed.wrapping_mul(77));
        let mut restarts = Random(seed.wrapping_mul(31));
        for _ in 0..30 {
            let which = usize::from(random.below(5) == 0);
            program.borrow_mut().step(&mut of_program);
            // Between any two readings the program goes on.
            let mut log = |at: u64, to: &mut [u8]| {
                if of_program.below(80) == 0 {
                    program.borrow_mut().step(&mut of_program);
                }
                if of_program.below(3000) == 0 && !program.borrow().ended {
                    program.borrow_mut().end();
                }
                file.read_exact_at(to, at).is_ok()
            };
            let before = explained_or_empty(&mirror);
            let mut away = Away {
                mirror: &mut mirror,
                random: &mut random,
                one_in: 9,
            };
            if restarts.below(6) == 0 {
                senders[0] = sender();
            }
            let forgot = away.mirror.known.number;
            let round = senders[which].send_changes(&mut log, &mut away);
            let has = explained_or_empty(&mirror);
            if mirror.known.number > forgot {
                assert!(has >= before, "seed {seed}: it has less than before");
            }
            let counted = program.borrow().counted;
            if !mirror.log.is_empty() && has_end(&mirror.log) {
                assert_eq!(has, counted, "seed {seed}: ended, and not all is there");
            }
            if let Ok(round) = round {
                assert!(has >= round.events, "seed {seed}");
            }
        }
        // Nothing is written any more, and nothing goes wrong.
        if !program.borrow().ended {
            program.borrow_mut().end();
        }
        let mut away = Away {
            mirror: &mut mirror,
            random: &mut random,
            one_in: 0,
        };
        let mut log = |at: u64, to: &mut [u8]| file.read_exact_at(to, at).is_ok();
        let round = senders[0].send_changes(&mut log, &mut away).unwrap();
        let counted = program.borrow().counted;
        assert_eq!((round.events, explained(&mirror.log)), (counted, counted));
        let written = std::fs::read(&path).unwrap();
        assert!(mirror.log == written[..mirror.log.len()], "seed {seed}");
        let rest = &written[mirror.log.len()..];
        assert!(rest.iter().all(|byte| *byte == 0));
        // What did not change is not sent.
        let mut away = Away {
            mirror: &mut mirror,
            random: &mut random,
            one_in: 0,
        };
        let round = senders[0].send_changes(&mut log, &mut away).unwrap();
        assert_eq!((round.events, round.bytes), (counted, 0));
    }
}

fn has_end(bytes: &[u8]) -> bool {
    let log = InMemoryLog::from_bytes(bytes.to_vec()).unwrap();
    let is_end = |item| matches!(item, Ok(LogItem::Record(entry)) if matches!(entry.record, Some(LogRecord::End(_))));
    log.items().any(is_end)
}

fn explained_or_empty(mirror: &Mirror) -> u64 {
    match mirror.log.is_empty() {
        true => 0,
        false => explained(&mirror.log),
    }
}
