//! Whatever happens to a log, the reader gives what precedes the damage, and never panics.

mod sample;

use std::ops::ControlFlow;
use std::path::Path;

use lucce_tracelog::{InMemoryLog, LogFile, LogHeader, LogItem, LogWriter, SealState, StatRecord};

/// Where the sample's records block begins: after the file header and three blocks of counters.
const BLOCK: usize = 64 + 3 * (64 + 128);

fn bytes() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    sample::write(&path);
    std::fs::read(path).unwrap()
}

/// The number of whole items, and where the damage is.
fn items(bytes: &[u8]) -> Option<(usize, Option<u64>)> {
    let log = InMemoryLog::from_bytes(bytes.to_vec()).ok()?;
    let mut count = 0;
    for item in log.items() {
        match item {
            Ok(LogItem::Record(_)) => count += 1,
            Ok(LogItem::Counters(cells)) => count += cells.iter().count(),
            Ok(LogItem::EventCounters(cells)) => count += cells.iter().count(),
            Ok(LogItem::Totals(totals)) => count += totals.iter().count(),
            Ok(LogItem::VmCounters(cells)) => count += cells.iter().count(),
            Err(damage) => return Some((count, Some(damage.offset))),
        }
    }
    Some((count, None))
}

/// As `items`, as text, with one block of the file in memory at a time.
fn block_by_block(path: &Path) -> Option<Vec<String>> {
    let log = LogFile::open(path).ok()?;
    let mut all = Vec::new();
    let read = log.for_each_item(|item| {
        all.push(format!("{item:?}"));
        ControlFlow::Continue(())
    });
    read.unwrap();
    assert!(log.is_settled().unwrap());
    Some(all)
}

#[test]
fn single_blocks_read_the_same_as_the_whole_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let bytes = bytes();
    let cut = (0..bytes.len()).map(|len| bytes[..len].to_vec());
    let flipped = (0..bytes.len()).map(|at| {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        flipped
    });
    let longer = [vec![0; 100], vec![1; 100], vec![0; 3], vec![7; 3]].map(|more| {
        let longer = bytes.iter().copied().chain(more);
        longer.collect::<Vec<u8>>()
    });
    // Of a JVM that was killed: the last block of records is open.
    let mut killed = bytes.clone();
    killed[BLOCK + 36] = 0;
    let cut_and_killed = (0..killed.len())
        .step_by(7)
        .map(|len| killed[..len].to_vec());
    let all = cut.chain(flipped).chain(longer).chain(cut_and_killed);
    let mut compared = 0;
    for bytes in all.chain([bytes.clone(), killed.clone()]) {
        std::fs::write(&path, &bytes).unwrap();
        let Some(read) = block_by_block(&path) else {
            assert!(
                InMemoryLog::from_bytes(bytes).is_err(),
                "what is a log is read"
            );
            continue;
        };
        let log = InMemoryLog::from_bytes(bytes).unwrap();
        let all: Vec<String> = log.items().map(|item| format!("{item:?}")).collect();
        assert!(read == all, "{read:?} is not {all:?}");
        compared += 1;
    }
    assert!(compared > 100, "{compared} logs were compared");
}

/// What a log says to a reader who looks at seals; none: it is damaged, and says so.
fn undamaged(bytes: Vec<u8>) -> Option<String> {
    let log = InMemoryLog::from_bytes(bytes).ok()?;
    let mut content = format!("{:?}", log.header());
    for item in log.items() {
        let seal = match item.as_ref().ok()? {
            LogItem::Record(_) => SealState::Right,
            LogItem::Counters(cells) => cells.seal,
            LogItem::EventCounters(cells) => cells.seal,
            LogItem::Totals(totals) => totals.seal,
            LogItem::VmCounters(cells) => cells.seal,
        };
        if seal != SealState::Right {
            return None;
        }
        content += &format!("{item:?}");
    }
    Some(content)
}

/// No bit of a log that its JVM has ended can change what it says without being noticed.
#[test]
fn a_flipped_bit_of_an_ended_log_is_noticed_or_changes_nothing() {
    let bytes = bytes();
    let content = undamaged(bytes.clone()).unwrap();
    let (mut noticed, mut without_effect) = (0, 0);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            match undamaged(flipped) {
                None => noticed += 1,
                Some(now) => {
                    assert!(now == content, "bit {bit} of byte {at} was not noticed");
                    without_effect += 1;
                }
            }
        }
    }
    // Padding is all that nothing depends on.
    assert!(noticed > 2 * without_effect, "{noticed}, {without_effect}");
}

#[test]
fn cut_anywhere() {
    let bytes = bytes();
    let (all, damage) = items(&bytes).unwrap();
    assert_eq!(damage, None);
    let mut last = 0;
    for len in 0..bytes.len() {
        let Some((count, damage)) = items(&bytes[..len]) else {
            assert!(len < 64, "a log with its header is read");
            continue;
        };
        assert!(count >= last && count <= all);
        assert!(damage.is_none_or(|at| at <= len as u64));
        last = count;
    }
    assert_eq!(items(&bytes[..64]), Some((0, None)));
    assert_eq!(last, all - 1, "only the last record is missing");
}

#[test]
fn every_bit_of_every_byte() {
    let bytes = bytes();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            // A longer `committed` is the same as a shorter file: all that is there is read.
            let committed = (BLOCK + 24..BLOCK + 32).contains(&at);
            if let Some((_, Some(offset))) = items(&flipped).filter(|_| !committed) {
                // A block that does not match its header is reported where its payload begins.
                assert!(offset <= at as u64 + 64, "damage at {at} was passed over");
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_a_sealed_block_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut writer = LogWriter::create(&path, &LogHeader::default()).unwrap();
    for value in 0..20_000 {
        writer
            .append(StatRecord {
                key: "n".into(),
                value,
            })
            .unwrap();
    }
    writer.close().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let (all, _) = items(&whole).unwrap();
    for at in (128..whole.len()).step_by(7_777) {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        let (count, damage) = items(&flipped).unwrap();
        assert!(count < all);
        let damage = damage.unwrap();
        assert!(damage <= at as u64 && at as u64 - damage < 64 << 10);
    }
}

#[test]
fn random_bytes_behind_a_header() {
    let header = bytes()[..64].to_vec();
    // A linear congruential generator: the same bytes in every run.
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    for _ in 0..2_000 {
        let len = usize::from(random()) * 4;
        let tail: Vec<u8> = (0..len).map(|_| random()).collect();
        items(&[&header[..], &tail].concat());
        let block = [&header[..], b"LBLK", &tail].concat();
        items(&block);
    }
}

#[test]
fn random_records_in_a_block() {
    let whole = bytes();
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..5_000 {
        let mut bytes = whole.clone();
        // Not sealed, so that the records themselves are looked at.
        bytes[BLOCK + 36] = 0;
        for _ in 0..=random(8) {
            let at = BLOCK + 64 + random(bytes.len() - BLOCK - 64);
            bytes[at] = random(256) as u8;
        }
        items(&bytes);
    }
}

#[test]
fn a_cut_header_is_damage_not_foreign() {
    let bytes = bytes();
    for size in [1, 7, 8, 40, 63] {
        let error = InMemoryLog::from_bytes(bytes[..size].to_vec())
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            format!("damaged at offset {size}: file ends inside its header of 64 bytes")
        );
    }
}

#[test]
fn space_obtained_in_advance_is_not_damage() {
    let mut bytes = bytes();
    let before = items(&bytes);
    bytes.resize(1 << 20, 0);
    // The last block's unused part is there too, then nothing.
    assert_eq!(items(&bytes), before);
    bytes[(1 << 20) - 1] = 1;
    assert!(items(&bytes).unwrap().1.is_some());
}
