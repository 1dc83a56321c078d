//! Logs that are sent, through a spool that is opened anew between any two steps, into a dataset.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::client::{Served, push_log};
use crate::common::{new_dataset, runs, store};
use lucce_fleet::collect::{
    BatchIngester, LogSpool, PartOutcome, SpoolError, SpoolLimits, parse_run_id,
};
use lucce_fleet::commits::CommitLog;
use lucce_ship::wire::{CollectorGeneration, GenerationPart, PartBuilder, PartHeader, RunLabels};
use lucce_ship::{CollectorClient, CollectorError, LogSender, PartReply};
use lucce_tracelog::RunId;

const LIMITS: SpoolLimits = SpoolLimits {
    log: 64 << 20,
    all: 256 << 20,
};

/// Hands parts to a spool; the collector is killed behind every n-th, and behind every m-th of those the batches have run before.
struct Killed<'d> {
    folder: &'d Path,
    spool: Option<Arc<LogSpool>>,
    limits: SpoolLimits,
    calls: u64,
    every: u64,
}

impl Killed<'_> {
    fn spool(&mut self) -> Arc<LogSpool> {
        self.calls += 1;
        if self.calls.is_multiple_of(self.every) {
            self.spool = None;
        }
        let open = || Arc::new(LogSpool::open(self.folder, self.limits).unwrap());
        self.spool.get_or_insert_with(open).clone()
    }
}

impl CollectorClient for Killed<'_> {
    fn last_generation(&mut self, run: RunId) -> Result<CollectorGeneration, CollectorError> {
        self.spool().last_generation(run).map_err(fault)
    }

    fn send_part(&mut self, run: RunId, part: &[u8]) -> Result<PartReply, CollectorError> {
        let calls = self.calls;
        let spool = self.spool();
        // Each part comes twice.
        let first = spool.store_part(run, part).map_err(fault)?;
        let second = spool.store_part(run, part).map_err(fault)?;
        assert_eq!(first, second);
        if calls.is_multiple_of(7) {
            return Err(CollectorError::new("the answer is lost"));
        }
        Ok(match first {
            PartOutcome::Stored(known) if known.ended => PartReply::RunComplete,
            PartOutcome::Stored(_) => PartReply::Stored,
            PartOutcome::WrongGeneration(_) => PartReply::WrongGeneration,
        })
    }
}

/// Of a run that has ended.
fn log_bytes() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    lucce_testkit::kinds(&path);
    fs::read(path).unwrap()
}

fn fault(refusal: SpoolError) -> CollectorError {
    CollectorError::new(format!("{refusal:?}"))
}

fn labels() -> RunLabels {
    RunLabels {
        service: "shop".into(),
        version: "1".into(),
        host: "h".into(),
    }
}

/// All files, with what is in them.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().display().to_string();
                    found.insert(name, fs::read(path).unwrap());
                }
            }
        }
    }
    found
}

#[test]
fn a_part_that_is_none_or_not_this_runs_or_too_large_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let limits = SpoolLimits {
        log: 1000,
        all: 3 * 4096,
    };
    let spool = LogSpool::open(folder.path(), limits).unwrap();
    let before = files(folder.path());
    let own = RunId::new(1).unwrap();
    let head = |number| PartHeader {
        run: own,
        number,
        token: 5,
        base: 0,
        part: 0,
        last: true,
        size: 100,
        labels: labels(),
    };
    let part = |head: &PartHeader, at: u64, bytes: &[u8]| {
        let mut part = PartBuilder::new(head);
        part.push_piece(at, bytes);
        part.finish_part().to_vec()
    };
    let whole = part(&head(1), 0, b"abc");
    let wrong = |bytes: &[u8], run: RunId| spool.store_part(run, bytes).unwrap_err();
    assert!(matches!(wrong(b"", own), SpoolError::Malformed(_)));
    assert!(matches!(wrong(&whole[1..], own), SpoolError::Malformed(_)));
    let other = RunId::new(2).unwrap();
    assert!(matches!(wrong(&whole, other), SpoolError::Malformed(_)));
    for at in [998, 1001, u64::MAX] {
        let far = part(&head(1), at, b"abc");
        assert!(matches!(wrong(&far, own), SpoolError::TooLarge(_)));
    }
    let other = spool.store_part(own, &part(&head(2), 0, b"abc")).unwrap();
    assert_eq!(
        other,
        PartOutcome::WrongGeneration(CollectorGeneration::default())
    );
    let mut based = head(1);
    based.base = 9;
    let other = spool.store_part(own, &part(&based, 0, b"abc")).unwrap();
    assert_eq!(
        other,
        PartOutcome::WrongGeneration(CollectorGeneration::default())
    );
    assert_eq!(files(folder.path()), before);
    // What waits has a limit, too.
    let mut next = head(1);
    next.last = false;
    let large = part(&next, 0, &[1; 900]);
    assert!(matches!(
        spool.store_part(own, &large),
        Ok(PartOutcome::Stored(_))
    ));
    next.token = 6;
    let more: Vec<_> = (0..4)
        .map(|n| {
            let run = RunId::new(n + 10).unwrap();
            let mut head = next.clone();
            (head.run, head.number) = (run, 1);
            spool.store_part(run, &part(&head, 0, &[1; 900]))
        })
        .collect();
    assert!(
        matches!(more.last(), Some(Err(SpoolError::Full(_)))),
        "{more:?}"
    );
    assert!(
        LogSpool::open(folder.path(), limits).is_err(),
        "there is one collector"
    );
}

/// What a client claims takes no room from others: a few bytes are no log of a gigabyte, and holes are on no disk.
#[test]
fn sizes_that_are_only_claimed_shut_nobody_out() {
    const LARGEST: u64 = 1 << 30;
    let folder = tempfile::tempdir().unwrap();
    let limits = SpoolLimits {
        log: LARGEST,
        all: 4 << 20,
    };
    let spool = LogSpool::open(folder.path(), limits).unwrap();
    let log = log_bytes();
    let head = |run: RunId, size: u64| PartHeader {
        run,
        number: 1,
        token: 7,
        base: 0,
        part: 0,
        last: true,
        size,
        labels: labels(),
    };
    // The header of a block of cells that are all zeros, as large as a block may be.
    let cells = {
        let path = folder.path().join("large");
        let header = lucce_tracelog::LogHeader::decode(&log[..64]).unwrap();
        let mut writer = lucce_tracelog::LogWriter::create(&path, &header).unwrap();
        writer
            .add_counters(lucce_tracelog::ThreadId(1), 1 << 24)
            .unwrap();
        drop(writer);
        let mut block = [0; 64];
        let file = fs::File::open(&path).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut block, 64).unwrap();
        fs::remove_file(path).unwrap();
        block
    };
    let before = files(folder.path());
    for n in 1..=12 {
        let run = RunId::new(0x1000 + n).unwrap();
        // The log's header, then a part of its records, and then some blocks without what is in them.
        for pieces in [
            &[(0, &log[..64])][..],
            &[(0, &log[..64]), (64, &log[64..128])],
            &[(64, &log[64..])],
            &[],
        ] {
            for size in [LARGEST, LARGEST - 64, log.len() as u64 + 64, 63, 0] {
                let mut part = PartBuilder::new(&head(run, size));
                pieces
                    .iter()
                    .for_each(|(at, piece)| part.push_piece(*at, piece));
                let refused = spool.store_part(run, part.finish_part());
                assert!(
                    matches!(refused, Err(SpoolError::Malformed(_))),
                    "{size}: {refused:?}"
                );
            }
        }
    }
    assert_eq!(files(folder.path()), before);
    assert_eq!(spool.slot_count(), 0);
    // These are logs, of which next to nothing is on the disk.
    let size = 128 + (24 << 24);
    for n in 1..=12 {
        let run = RunId::new(0x2000 + n).unwrap();
        let mut part = PartBuilder::new(&head(run, size));
        part.push_piece(0, &log[..64]);
        part.push_piece(64, &cells);
        assert!(matches!(
            spool.store_part(run, part.finish_part()),
            Ok(PartOutcome::Stored(_))
        ));
        let mirror = spool.apply_generations(run).unwrap().unwrap();
        assert_eq!(fs::metadata(mirror.log).unwrap().len(), size);
    }
    let used = spool.update_used_bytes().unwrap();
    assert!(used < 1 << 20, "{used}");
    let honest = lucce_tracelog::LogHeader::decode(&log[..64])
        .unwrap()
        .run
        .unwrap();
    let mut read = |at: u64, to: &mut [u8]| {
        let from = log.get(at as usize..at as usize + to.len());
        from.map(|from| to.copy_from_slice(from)).is_some()
    };
    let mut wire = Killed {
        folder: folder.path(),
        spool: Some(Arc::new(spool)),
        limits,
        calls: 0,
        every: u64::MAX,
    };
    let mut sender = LogSender::new(honest, labels());
    let _ = sender.send_changes(&mut read, &mut wire);
    sender.send_changes(&mut read, &mut wire).unwrap();
}

#[test]
fn runs_that_are_only_asked_for_take_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let spool = LogSpool::open(folder.path(), LIMITS).unwrap();
    for n in 1..=1000 {
        let run = RunId::new(n).unwrap();
        assert_eq!(
            spool.last_generation(run).unwrap(),
            CollectorGeneration::default()
        );
        // Nor do those of which nothing was kept.
        assert!(spool.store_part(run, b"no part").is_err());
        let head = PartHeader {
            run,
            number: 9,
            token: 7,
            base: 0,
            part: 0,
            last: true,
            size: 64,
            labels: labels(),
        };
        let mut part = PartBuilder::new(&head);
        assert!(matches!(
            spool.store_part(run, part.finish_part()),
            Ok(PartOutcome::WrongGeneration(_))
        ));
    }
    assert_eq!(spool.slot_count(), 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn runs_are_sixteen_digits() {
    assert_eq!(parse_run_id("00000000000000aa"), RunId::new(0xaa));
    for hostile in [
        "",
        "aa",
        "..",
        "../../etc/passwd",
        "00000000000000AA",
        "000000000000000/",
        "+0000000000000aa",
        "0000000000000000",
        "00000000000000aa/../x",
        "é000000000000aa",
    ] {
        assert_eq!(parse_run_id(hostile), None, "{hostile}");
    }
}

#[test]
fn generations_that_are_lost_doubled_or_applied_in_part_end_as_the_log() {
    for every in 1..=6 {
        let folder = tempfile::tempdir().unwrap();
        let run = RunId::new(0xaa).unwrap();
        let log = log_bytes();
        let mut wire = Killed {
            folder: folder.path(),
            spool: None,
            limits: LIMITS,
            calls: 0,
            every,
        };
        // The arguments as they are: what arrives is compared byte by byte.
        let mut sender = LogSender::new(run, labels()).with_arguments();
        let mut sent = 0;
        for _ in 0..20 {
            let mut read = |at: u64, to: &mut [u8]| {
                let from = log.get(at as usize..at as usize + to.len());
                from.map(|from| to.copy_from_slice(from)).is_some()
            };
            sent += u64::from(sender.send_changes(&mut read, &mut wire).is_ok());
        }
        assert!(sent > 0);
        // Applied in part, by a collector that was killed then: what is there already is written again.
        let own = folder.path().join(run.to_string());
        fs::write(own.join("log.lucce"), vec![0xff; 3000]).unwrap();
        wire.spool = None;
        let spool = LogSpool::open(folder.path(), LIMITS).unwrap();
        assert_eq!(spool.take_waiting_runs(), [run]);
        let mirror = spool.apply_generations(run).unwrap().unwrap();
        let written = fs::read(&mirror.log).unwrap();
        assert!(
            log.starts_with(&written),
            "{} of {}, first difference at {:?}",
            written.len(),
            log.len(),
            log.iter()
                .zip(&written)
                .position(|(sent, kept)| sent != kept)
        );
        assert!(log[written.len()..].iter().all(|byte| *byte == 0));
        assert_eq!(mirror.labels, labels());
        // Applied again it changes nothing, until the dataset has it.
        assert!(spool.apply_generations(run).unwrap().is_some());
        spool.mark_ingested(&mirror, false).unwrap();
        assert!(spool.apply_generations(run).unwrap().is_none());
    }
}

#[test]
fn a_generation_that_the_disk_has_damaged_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunId::new(0xaa).unwrap();
    let spool = LogSpool::open(folder.path(), LIMITS).unwrap();
    let head = PartHeader {
        run,
        number: 1,
        token: 5,
        base: 0,
        part: 0,
        last: true,
        size: 64,
        labels: labels(),
    };
    let mut part = PartBuilder::new(&head);
    part.push_piece(0, &log_bytes()[..64]);
    let bytes = part.finish_part().to_vec();
    spool.store_part(run, &bytes).unwrap();
    let own = folder.path().join(run.to_string());
    let (name, _) = files(&own).pop_first().unwrap();
    let mut damaged = bytes.clone();
    damaged[70] ^= 1;
    assert!(GenerationPart::parse(&damaged).is_err());
    fs::write(own.join(name), damaged).unwrap();
    assert!(matches!(
        spool.apply_generations(run),
        Err(SpoolError::Malformed(_))
    ));
    assert_eq!(
        spool.last_generation(run).unwrap(),
        CollectorGeneration::default()
    );
    assert!(matches!(
        spool.store_part(run, &bytes),
        Ok(PartOutcome::Stored(_))
    ));
    assert!(spool.apply_generations(run).unwrap().is_some());
}

#[test]
fn what_was_sent_is_in_the_dataset_once_and_a_run_that_has_ended_leaves_the_spool() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = new_dataset(folder.path());
    let spool = folder.path().join("spool");
    let log = log_bytes();
    let run = lucce_tracelog::LogHeader::decode(&log[..64])
        .unwrap()
        .run
        .unwrap();
    let open = || Arc::new(LogSpool::open(&spool, LIMITS).unwrap());
    let mut wire = Killed {
        folder: &spool,
        spool: None,
        limits: LIMITS,
        calls: 0,
        every: 2,
    };
    let mut read = |at: u64, to: &mut [u8]| {
        let from = log.get(at as usize..at as usize + to.len());
        from.map(|from| to.copy_from_slice(from)).is_some()
    };
    let mut sender = LogSender::new(run, labels());
    let round = sender.send_changes(&mut read, &mut wire).unwrap();
    wire.spool = None;
    let complain = &mut |why: String| panic!("{why}");
    let mut batches = BatchIngester::new(open(), &store(&dataset), "unnamed").unwrap();
    let done = batches.add_waiting_runs(complain);
    assert_eq!((done.runs, done.events, done.refused), (1, round.events, 0));
    drop(batches);
    // A collector that has forgotten what it had is sent it again, and the dataset changes no more.
    fs::remove_dir_all(&spool).unwrap();
    let mut again = LogSender::new(run, labels());
    again.send_changes(&mut read, &mut wire).unwrap();
    wire.spool = None;
    let mut batches = BatchIngester::new(open(), &store(&dataset), "unnamed").unwrap();
    let done = batches.add_waiting_runs(complain);
    assert_eq!((done.runs, done.events), (0, 0));
    assert_eq!(batches.add_waiting_runs(complain).runs, 0);
    drop(batches);
    assert!(open().last_generation(run).unwrap().ended == (done.ended == 1));
}

/// A pipe whose reader has gone ends no batch.
#[test]
fn a_collector_whose_output_nobody_reads_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = new_dataset(folder.path());
    let log = folder.path().join("kinds.log");
    lucce_testkit::kinds(&log);
    let more = ["--spool=spool", "--interval=1s", "--no-token"];
    // Its output is closed from here on.
    let served = Served::collect(folder.path(), dataset.to_str().unwrap(), &more);
    let limit = Instant::now() + Duration::from_secs(120);
    for (number, log) in runs(folder.path(), &log, 3).iter().enumerate() {
        push_log(log, || served.address.clone());
        let commits = CommitLog::open(&store(&dataset)).unwrap();
        while commits.read_state().unwrap().runs.len() <= number {
            assert!(Instant::now() < limit, "run {number} is not in the dataset");
            thread::sleep(Duration::from_millis(20));
        }
    }
}
