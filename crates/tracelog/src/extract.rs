//! Extracts a part of a log as a log of its own: selected records without counters.

use std::io;
use std::ops::ControlFlow;

use crate::block_file::content_checksum;
use crate::error::LogDamage;
use crate::layout::{
    ALIGN, AT_COMMITTED, AT_CRC, AT_SEALED, BLOCK_HEADER, BLOCK_MAGIC, LogBlockHead, RECORDS,
};
use crate::reader::{LogEntry, LogFile, LogItem};
use crate::record::LogRecord;

/// Payload of a records block in bytes; one flipped bit can destroy at most this much.
const BLOCK: usize = (64 << 10) - BLOCK_HEADER as usize;

impl LogFile {
    /// Returns a log of this run with the records `first`, followed by the records that `keep` selects.
    ///
    /// Selected records keep their order and bytes. Records behind damage are missing; the damage is returned.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn extract_records(
        &self,
        first: &[LogRecord<'_>],
        keep: impl Fn(&LogEntry<'_>) -> bool,
    ) -> io::Result<(Vec<u8>, Option<LogDamage>)> {
        let mut blocks = BlockBuilder {
            file: self.header().encode().to_vec(),
            payload: Vec::new(),
        };
        for record in first {
            let mut bytes = Vec::new();
            record.append_to(&mut bytes);
            blocks.push_record(&bytes);
        }
        let mut damage = None;
        self.for_each_item(|item| {
            match item {
                Ok(LogItem::Record(entry)) if keep(&entry) => blocks.push_record(entry.bytes),
                Ok(_) => {}
                Err(found) => damage = Some(found),
            }
            ControlFlow::Continue(())
        })?;
        blocks.seal_block();
        Ok((blocks.file, damage))
    }
}

/// The file so far, and the content of the next block.
struct BlockBuilder {
    file: Vec<u8>,
    payload: Vec<u8>,
}

impl BlockBuilder {
    fn push_record(&mut self, record: &[u8]) {
        if self.payload.len() + record.len() > BLOCK {
            self.seal_block();
        }
        self.payload.extend_from_slice(record);
    }

    /// Writes the block, whole and sealed, unless it is empty.
    fn seal_block(&mut self) {
        if self.payload.is_empty() {
            return;
        }
        let used = self.payload.len();
        let capacity = used.next_multiple_of(ALIGN as usize);
        let head = LogBlockHead {
            kind: RECORDS,
            // A block has 64 KB, or one record, whose limit is far lower.
            capacity: u32::try_from(capacity).unwrap_or(u32::MAX),
            thread: 0,
            cells: 0,
        };
        let at = self.file.len();
        self.file.extend(BLOCK_MAGIC.to_le_bytes());
        self.file.extend(head.encode());
        self.file.resize(at + AT_COMMITTED as usize, 0);
        self.file.extend((used as u64).to_le_bytes());
        self.file.resize(at + AT_CRC as usize, 0);
        self.file
            .extend(content_checksum(&self.payload).to_le_bytes());
        self.file.resize(at + AT_SEALED as usize, 0);
        self.file.extend(1u32.to_le_bytes());
        self.file.resize(at + BLOCK_HEADER as usize, 0);
        self.file.append(&mut self.payload);
        self.file.resize(at + BLOCK_HEADER as usize + capacity, 0);
    }
}

#[cfg(test)]
mod extract_tests {
    use super::*;
    use crate::layout::LogHeader;
    use crate::reader::InMemoryLog;
    use crate::record::{EndRecord, MetaRecord, RecordKind, StatRecord};
    use crate::writer::LogWriter;

    fn kinds(log: &InMemoryLog) -> Vec<(RecordKind, u64)> {
        let entries = log.items().map(Result::unwrap);
        let entries = entries.filter_map(|item| match item {
            LogItem::Record(entry) => Some((entry.kind, entry.size)),
            _ => None,
        });
        entries.collect()
    }

    #[test]
    fn an_extract_is_a_log_of_the_chosen_records() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = LogWriter::create(dir.path().join("log"), &LogHeader::default()).unwrap();
        writer.add_counters(Default::default(), 8).unwrap();
        let text = "x".repeat(1000);
        for _ in 0..200 {
            let (key, value) = ("key".into(), text.as_str().into());
            writer.append(MetaRecord { key, value }).unwrap();
            let key = "count".into();
            writer.append(StatRecord { key, value: 1 }).unwrap();
        }
        writer.append(EndRecord).unwrap();
        writer.close().unwrap();
        let log = InMemoryLog::open(dir.path().join("log")).unwrap();
        let is_kept = |entry: &LogEntry<'_>| !matches!(entry.record, Some(LogRecord::Stat(_)));
        let first = MetaRecord {
            key: "part".into(),
            value: "1".into(),
        };
        let file = LogFile::open(dir.path().join("log")).unwrap();
        let (bytes, damage) = file
            .extract_records(&[first.clone().into()], is_kept)
            .unwrap();
        assert_eq!(damage, None);
        let part = InMemoryLog::from_bytes(bytes).unwrap();
        assert_eq!(part.header(), log.header());
        let mut expected = kinds(&log);
        expected.retain(|(kind, _)| kind.name() != "stat");
        let kinds_read = kinds(&part);
        assert_eq!(kinds_read.get(1..).unwrap(), expected);
        let Some(Ok(LogItem::Record(entry))) = part.items().next() else {
            panic!("no record");
        };
        assert_eq!(entry.record, Some(first.into()));
    }

    #[test]
    fn an_extract_of_a_damaged_log_ends_at_the_damage() {
        let mut bytes = LogHeader::default().encode().to_vec();
        bytes.extend([1; 100]);
        let log = LogFile::from(InMemoryLog::from_bytes(bytes).unwrap());
        let (bytes, damage) = log.extract_records(&[], |_| true).unwrap();
        assert!(damage.is_some());
        assert_eq!(bytes.len(), 64);
    }
}
