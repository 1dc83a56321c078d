//! The blocks of a log as byte ranges, for copying a log that is being written.
//!
//! A span says which of its bytes may change and which never do. If the counters are copied first and everything behind
//! them afterwards, the copy explains its counters: the records of a context id precede its first count.

use crate::arguments::{COMMAND, mask_arguments};
use crate::block_file::content_checksum;
use crate::byte_fields::{put_bytes, u32_at, u64_at};
use crate::layout::{
    AT_COMMITTED, AT_CRC, AT_SEALED, BLOCK_HEADER, BLOCK_MAGIC, FILE_HEADER, LogBlockHead, RECORDS,
    cells_size, unseal_header,
};
use crate::layout::{CELL, COUNTERS, EVENT_CELL, EVENT_COUNTERS, TOTALS, VM_COUNTERS};
use crate::limits::{MAX_CAPACITY, MAX_CELLS};
use crate::record::LogRecord;
use crate::record_codec::{MalformedRecord, RecordDecoder};

/// Size of the file header in bytes; it never changes.
pub const FILE_START: u64 = FILE_HEADER;
/// Size in bytes of a group of counters; a whole number of counters of every kind.
pub const CELLS: u64 = 4032;

const _: () = assert!(CELLS.is_multiple_of(crate::layout::TOTAL));
const _: () = assert!(CELLS.is_multiple_of(CELL) && CELLS.is_multiple_of(EVENT_CELL));

/// A block as it was when its header was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockSpan {
    /// The file offset of its header.
    pub at: u64,
    pub header: [u8; BLOCK_HEADER as usize],
    pub content: SpanContent,
    capacity: u64,
}

/// What follows the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanContent {
    /// `bytes` of counters, which change in place until the header has their seal.
    Counters { bytes: u64 },
    /// `bytes` of records, which never change. `sealed`: the header does not change any more either, and `crc` is the
    /// checksum of the bytes.
    Records { bytes: u64, sealed: bool, crc: u32 },
    /// A kind of block that this version does not know.
    Other { bytes: u64 },
}

impl SpanContent {
    /// Returns the size of the content in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            SpanContent::Counters { bytes }
            | SpanContent::Records { bytes, .. }
            | SpanContent::Other { bytes } => bytes,
        }
    }
}

impl BlockSpan {
    /// Returns the header as it was when the block was created: for counters, without their seal.
    #[must_use]
    pub fn unsealed_header(&self) -> [u8; BLOCK_HEADER as usize] {
        let mut header = self.header;
        unseal_header(&mut header);
        header
    }

    /// Returns the file offset of the content.
    #[must_use]
    pub fn content_start(&self) -> u64 {
        self.at + BLOCK_HEADER
    }

    /// Returns the file offset behind the used bytes.
    #[must_use]
    pub fn content_end(&self) -> u64 {
        self.content_start() + self.content.bytes()
    }

    /// Returns the file offset of the next block.
    #[must_use]
    pub fn next_block(&self) -> u64 {
        self.content_start() + self.capacity
    }

    /// Returns the number of events in these counters, which must be whole counters of this block. 0 if they count
    /// something else.
    #[must_use]
    pub fn count_events(&self, cells: &[u8]) -> u64 {
        let (size, count) = match self.header.get(4) {
            Some(&COUNTERS) => (CELL, 8),
            Some(&EVENT_COUNTERS) => (EVENT_CELL, 16),
            _ => return 0,
        };
        let cells = cells.chunks_exact(size as usize);
        // A counter without an id counts nothing yet.
        let used = cells.filter(|cell| u64_at(cell, 0).is_some_and(|id| id != 0));
        used.filter_map(|cell| u64_at(cell, count))
            .fold(0, u64::wrapping_add)
    }

    /// Reads the block at `at`; `None`: there is none.
    ///
    /// `read` fills a buffer with the bytes at an offset; it returns whether it could.
    #[must_use]
    pub fn read_at(at: u64, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> Option<BlockSpan> {
        let mut header = [0; BLOCK_HEADER as usize];
        if !read(at, &mut header) || u32_at(&header, 0) != Some(BLOCK_MAGIC) {
            return None;
        }
        let head = LogBlockHead::decode(header.get(4..24)?)?;
        if head.capacity > MAX_CAPACITY || head.cells > MAX_CELLS {
            return None;
        }
        let capacity = u64::from(head.capacity);
        let content = match head.kind {
            RECORDS => SpanContent::Records {
                bytes: u64_at(&header, AT_COMMITTED as usize)?.min(capacity),
                sealed: u32_at(&header, AT_SEALED as usize) == Some(1),
                crc: u32_at(&header, AT_CRC as usize)?,
            },
            COUNTERS | EVENT_COUNTERS | TOTALS | VM_COUNTERS => SpanContent::Counters {
                bytes: cells_size(head).min(capacity),
            },
            _ => SpanContent::Other { bytes: capacity },
        };
        Some(BlockSpan {
            at,
            header,
            content,
            capacity,
        })
    }

    /// Whether the content has the log's end record; nothing has been counted since before it was written.
    #[must_use]
    pub fn has_end_record(&self, content: &[u8]) -> bool {
        let mut records = RecordDecoder(content);
        let is_of_records = matches!(self.content, SpanContent::Records { .. });
        while is_of_records && !records.0.is_empty() {
            match LogRecord::parse(&mut records) {
                Ok((_, Some(LogRecord::End(_)))) => return true,
                Ok(_) => {}
                Err(MalformedRecord(_)) => return false,
            }
        }
        false
    }

    /// Masks the program's arguments in the content's records (see [`mask_arguments`]).
    ///
    /// Spaces keep the length. The header, here and in the file made of it, gets the checksum of the result.
    pub fn mask_arguments(&mut self, content: &mut [u8]) {
        if !matches!(self.content, SpanContent::Records { .. }) {
            return;
        }
        let (mut at, mut is_changed) = (0, false);
        while let Some((size, value)) = content.get(at..).and_then(first_command) {
            if let Some((start, masked)) = value
                && let Some(place) = content.get_mut(at + start..at + start + masked.len())
            {
                is_changed |= place != masked.as_bytes();
                place.copy_from_slice(masked.as_bytes());
            }
            at += size;
        }
        if let SpanContent::Records {
            sealed: true, crc, ..
        } = &mut self.content
            && is_changed
        {
            *crc = content_checksum(content);
            put_bytes(&mut self.header, AT_CRC as usize, &crc.to_le_bytes());
        }
    }

    /// Whether these are the content's bytes. If the block was being sealed while its header was read, the caller reads
    /// it again.
    #[must_use]
    pub fn matches_content(&self, content: &[u8]) -> bool {
        match self.content {
            SpanContent::Records {
                sealed: true, crc, ..
            } => content_checksum(content) == crc,
            _ => true,
        }
    }
}

/// Returns the end of the last block of a log.
///
/// The blocks must follow each other. `is_there` gets the offset and the size of each block's records, and returns
/// whether the records are present. `read`: see [`BlockSpan::read_at`].
pub fn blocks_end(
    read: &mut dyn FnMut(u64, &mut [u8]) -> bool,
    is_there: &dyn Fn(u64, u64) -> bool,
) -> Option<u64> {
    let mut end = FILE_START;
    let mut at = FILE_START;
    while let Some(span) = BlockSpan::read_at(at, read) {
        if let SpanContent::Records { bytes, .. } = span.content
            && !is_there(span.content_start(), bytes)
        {
            return None;
        }
        end = span.content_end();
        at = span.next_block();
    }
    Some(end)
}

/// Returns the size of the first record; if it has the program's command line, its offset and its masked text. `None`:
/// there is no record.
fn first_command(records: &[u8]) -> Option<(usize, Option<(usize, String)>)> {
    let mut input = RecordDecoder(records);
    let record = match LogRecord::parse(&mut input) {
        Ok((_, record)) => record,
        Err(MalformedRecord(_)) => return None,
    };
    let size = records.len() - input.0.len();
    let Some(LogRecord::Meta(meta)) = record else {
        return Some((size, None));
    };
    let command = (meta.key == COMMAND).then(|| {
        let start = meta.value.as_ptr() as usize - records.as_ptr() as usize;
        let mut masked = mask_arguments(&meta.value);
        let left = meta.value.len().saturating_sub(masked.len());
        masked.extend(std::iter::repeat_n(' ', left));
        (start, masked)
    });
    Some((size, command))
}

#[cfg(test)]
mod block_spans_tests {
    use super::*;
    use crate::layout::LogHeader;
    use crate::record::{EndRecord, MetaRecord, StatRecord, ThreadId};
    use crate::writer::LogWriter;
    use lucce_callgraph::ContextId;

    #[test]
    fn arguments_are_masked_in_a_copy_of_a_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = LogWriter::create(&path, &LogHeader::default()).unwrap();
        let meta = |key: &'static str, value: &'static str| MetaRecord {
            key: key.into(),
            value: value.into(),
        };
        log.append(meta("jvm", "17")).unwrap();
        let command = "app.Main -Dkey=hunter2 hunter3 \u{e9}\u{e9}";
        log.append(meta(COMMAND, command)).unwrap();
        log.append(meta("options", "hunter4")).unwrap();
        log.append(EndRecord {}).unwrap();
        let masked_copy = || {
            let mut bytes = std::fs::read(&path).unwrap();
            let mut read = |at: u64, to: &mut [u8]| {
                to.copy_from_slice(&bytes[at as usize..at as usize + to.len()]);
                true
            };
            let mut span = BlockSpan::read_at(FILE_START, &mut read).unwrap();
            let (start, end) = (span.content_start() as usize, span.content_end() as usize);
            let mut content = bytes[start..end].to_vec();
            span.mask_arguments(&mut content);
            assert!(span.matches_content(&content));
            bytes[start..end].copy_from_slice(&content);
            bytes[span.at as usize..start].copy_from_slice(&span.header);
            bytes
        };
        let open = masked_copy();
        log.close().unwrap();
        for bytes in [open, masked_copy()] {
            let log = crate::InMemoryLog::from_bytes(bytes).unwrap();
            let texts: Vec<_> = log
                .items()
                .filter_map(|item| match item.unwrap() {
                    crate::LogItem::Record(entry) => match entry.record.unwrap() {
                        LogRecord::Meta(meta) => Some(meta.value.trim_end().to_owned()),
                        _ => None,
                    },
                    _ => None,
                })
                .collect();
            assert_eq!(texts, ["17", "app.Main -Dkey=* * *", "hunter4"]);
        }
    }

    #[test]
    fn the_blocks_of_a_log_are_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().with_extension("spans");
        let mut log = LogWriter::create(&path, &LogHeader::default()).unwrap();
        let stat = || StatRecord {
            key: "a".into(),
            value: 1,
        };
        log.append(stat()).unwrap();
        let cells = log.add_counters(ThreadId(1), 10).unwrap();
        cells[0].claim(ContextId(7));
        cells[0].add_events(5, 0);
        cells[1].count_event(0);
        log.append(stat()).unwrap();
        let spans = |path: &std::path::Path| {
            let bytes = std::fs::read(path).unwrap();
            let mut read = |at: u64, to: &mut [u8]| {
                let from = bytes.get(at as usize..at as usize + to.len());
                from.map(|from| to.copy_from_slice(from)).is_some()
            };
            let mut spans = Vec::new();
            let mut ends = false;
            let mut at = FILE_START;
            while let Some(span) = BlockSpan::read_at(at, &mut read) {
                let mut content = vec![0; span.content.bytes() as usize];
                assert!(read(span.content_start(), &mut content));
                assert!(span.matches_content(&content));
                at = span.next_block();
                ends |= span.has_end_record(&content);
                spans.push((span.content, span.count_events(&content)));
            }
            (spans, ends)
        };
        let (spans_read, ends) = spans(&path);
        assert!(!ends);
        assert!(
            matches!(spans_read[0].0, SpanContent::Records { .. }),
            "{spans_read:?}"
        );
        // A counter without an id counts nothing.
        assert_eq!(spans_read[1], (SpanContent::Counters { bytes: 240 }, 5));
        log.append(EndRecord {}).unwrap();
        log.close().unwrap();
        let (spans_read, ends) = spans(&path);
        assert!(ends);
        let sealed = spans_read
            .into_iter()
            .filter(|(content, _)| matches!(content, SpanContent::Records { sealed: true, .. }));
        assert!(sealed.count() > 0);
        std::fs::remove_file(path).unwrap();
    }
}
