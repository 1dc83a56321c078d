//! Hands out blocks of the file, one lock for all: a thread comes every few thousand events.
//!
//! Nothing here panics, and the file never outgrows its limit. When a block would, or the disk has no
//! room, the file is full for good: all threads go on until their blocks are, so each thread's events are
//! there up to some time, and all events up to the time when the first one found no room.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lucce_tracelog::{FileLoss, MappedFile, PIECE, ThreadId, file_size_limit, new_file};

use crate::StreamThread;
use crate::event_cursor::EventCursor;
use crate::layout::{
    ALIGN, AT_ENDED, AT_FULL, AT_SUM, AT_USED, BLOCK_HEADER, BLOCK_MAGIC, BlockKind, FILE_HEADER,
    StreamBlockHeader, StreamHeader,
};
use crate::limits::{ADDRESSES, FIRST_BLOCK, LARGEST_BLOCK, MAX_NAME};

/// The file grows by at least and at most this much ahead.
const GROWTH: (u64, u64) = (1 << 20, 16 << 20);

/// The events' file: the log's name and `.events`.
#[must_use]
pub fn events_path(log: &Path) -> PathBuf {
    let mut path: OsString = log.as_os_str().to_owned();
    path.push(".events");
    path.into()
}

/// The file, shared by all threads.
pub struct StreamWriter {
    map: MappedFile,
    limit: u64,
    full: AtomicBool,
    state: Mutex<StreamWriterState>,
}

struct StreamWriterState {
    /// Where the next block begins.
    end: u64,
    threads: u32,
    closed: bool,
}

/// A block of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappedBlock {
    /// Of its header, in the file.
    pub at: u64,
    /// Of its first entry, in memory.
    pub address: usize,
    pub capacity: u64,
    pub clock: u64,
}

impl StreamWriter {
    /// `limit` is the largest size of the file in bytes.
    ///
    /// # Errors
    /// The file cannot be made, or something has the name already.
    pub fn create(path: &Path, header: &StreamHeader, limit: u64) -> io::Result<StreamWriter> {
        let limit = limit.min(file_size_limit()).min(ADDRESSES) / PIECE * PIECE;
        let map = MappedFile::new(new_file(path)?, limit.max(PIECE))?;
        let writer = StreamWriter {
            limit: limit.min(map.reserved()),
            map,
            full: AtomicBool::new(false),
            state: Mutex::new(StreamWriterState {
                end: FILE_HEADER,
                threads: 0,
                closed: false,
            }),
        };
        let made = writer.map.grow_to(PIECE).is_ok() && writer.map.write(0, &header.encode());
        match made {
            true => Ok(writer),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// A thread that has its first event. `None`: the file is full.
    pub fn add_thread(&self, lane: ThreadId, name: &str, is_virtual: bool) -> Option<StreamThread> {
        let name = clip_name(name).as_bytes();
        let mut shared = self.lock();
        let thread = StreamThread(shared.threads.checked_add(1)?);
        let capacity = (name.len() as u64).max(1).next_multiple_of(ALIGN);
        let head = StreamBlockHeader {
            kind: BlockKind::Thread,
            is_virtual,
            capacity: u32::try_from(capacity).ok()?,
            log_thread: lane.0,
            thread: thread.0,
            clock: 0,
        };
        self.append_block(&mut shared, &head, name)?;
        shared.threads = thread.0;
        Some(thread)
    }

    /// Room for a thread's events from `now` on: about `bytes` of it.
    pub(crate) fn allocate_cursor(
        &self,
        lane: ThreadId,
        thread: StreamThread,
        bytes: u64,
        now: u64,
    ) -> EventCursor {
        let placed = self.add_event_block(lane, thread, bytes, now);
        placed.map_or_else(|| self.refuse_event(now), EventCursor::new)
    }

    /// A place where nothing can be written: an event at the time `now` found no room.
    pub fn refuse_event(&self, now: u64) -> EventCursor {
        // After the end there is no room either, but the file is not full.
        let is_closed = self.lock().closed;
        // Relaxed: who is first does not matter much, and the file says only that.
        if !is_closed && !self.full.swap(true, Ordering::Relaxed) {
            // On failure the file does not say since when it is full.
            let _ = self.map.publish_u64(AT_FULL, now);
        }
        EventCursor::without_room()
    }

    fn add_event_block(
        &self,
        lane: ThreadId,
        thread: StreamThread,
        bytes: u64,
        now: u64,
    ) -> Option<MappedBlock> {
        let capacity = bytes.clamp(FIRST_BLOCK, LARGEST_BLOCK) - BLOCK_HEADER;
        let clock = now.wrapping_sub(1);
        let head = StreamBlockHeader {
            kind: BlockKind::Events,
            is_virtual: false,
            capacity: u32::try_from(capacity).ok()?,
            log_thread: lane.0,
            thread: thread.0,
            clock,
        };
        let at = self.append_block(&mut self.lock(), &head, &[])?;
        let address = self.map.address_of(at + BLOCK_HEADER, capacity)?;
        Some(MappedBlock {
            at,
            address,
            capacity,
            clock,
        })
    }

    /// Where it begins. Once a block found no room, none does.
    fn append_block(
        &self,
        shared: &mut StreamWriterState,
        head: &StreamBlockHeader,
        payload: &[u8],
    ) -> Option<u64> {
        let at = shared.end;
        let next = at + BLOCK_HEADER + u64::from(head.capacity);
        let is_over = shared.closed || self.map.known_loss().is_some();
        let fits = !is_over && !self.is_full() && next <= self.limit;
        if !fits || !self.ensure_room(next) {
            return None;
        }
        let sealed = payload.is_empty() || self.seal_bytes(at, payload);
        let written = sealed
            && self.map.write(at + 4, &head.encode())
            && self.map.publish_u32(at, BLOCK_MAGIC);
        shared.end = next;
        written.then_some(at)
    }

    fn seal_bytes(&self, at: u64, payload: &[u8]) -> bool {
        self.map.write(at + BLOCK_HEADER, payload)
            && self.map.publish_u32(at + AT_SUM, crc32fast::hash(payload))
            && self.map.publish_u32(at + AT_USED, payload.len() as u32)
    }

    fn ensure_room(&self, end: u64) -> bool {
        let mapped = self.map.mapped();
        if end <= mapped {
            return true;
        }
        let ahead = mapped.clamp(GROWTH.0, GROWTH.1);
        let most = end.max(mapped + ahead).min(self.limit);
        let grown = self.map.grow_to(most).or_else(|_| self.map.grow_to(end));
        grown.is_ok()
    }

    /// Its thread writes no more into the block: a checksum over what it wrote.
    pub(crate) fn seal_block(&self, block: MappedBlock, used: u64) {
        let sum = self
            .map
            .read(block.at + BLOCK_HEADER, used, crc32fast::hash);
        if let Some(sum) = sum
            && used > 0
            && self.map.publish_u32(block.at + AT_SUM, sum)
        {
            // On failure the block stays open, which is as good.
            let _ = self.map.publish_u32(block.at + AT_USED, used as u32);
        }
    }

    /// The program has ended; threads may go on writing in the blocks that they have.
    pub fn finish_stream(&self, now: u64) {
        let mut shared = self.lock();
        if !shared.closed {
            shared.closed = true;
            let _ = self.map.publish_u64(AT_ENDED, now);
            // On failure the file is longer than it need be. Blocks in use stay in it.
            let _ = self.map.close(shared.end);
        }
    }

    /// Whether an event found no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// What has become of the file, if it is not what was written.
    #[must_use]
    pub fn file_loss(&self) -> Option<FileLoss> {
        self.map.check_loss()
    }

    /// The file, to be read.
    ///
    /// # Errors
    /// The system's.
    pub fn clone_file(&self) -> io::Result<File> {
        self.map.file().try_clone()
    }

    /// The file's size.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lock().end
    }

    /// A panic in another thread leaves no half block behind, so poison is no reason to stop.
    fn lock(&self) -> MutexGuard<'_, StreamWriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn clip_name(name: &str) -> &str {
    let end = (0..=MAX_NAME.min(name.len()))
        .rev()
        .find(|at| name.is_char_boundary(*at));
    name.get(..end.unwrap_or(0)).unwrap_or_default()
}
