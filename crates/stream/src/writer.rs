//! Allocates blocks of the file, under one lock: a thread comes every few thousand events.
//!
//! Nothing here panics, and the file never exceeds its limit. If a block would exceed it, or the disk is full, the file
//! is full permanently. All threads continue until their blocks are full. So each thread's events are present up to
//! some time, and all events up to the time when an event first found no room.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lucce_tracelog::block_file::content_checksum;
use lucce_tracelog::{FileLoss, MappedFile, PIECE, ThreadId, file_size_limit, new_file};

use crate::StreamThread;
use crate::event_cursor::{EventCursor, MappedBlock};
use crate::layout::{
    ALIGN, AT_ENDED, AT_FULL, AT_SUM, AT_USED, BLOCK_HEADER, BLOCK_MAGIC, BlockKind, FILE_HEADER,
    StreamBlockHeader, StreamHeader,
};
use crate::limits::{ADDRESSES, FIRST_BLOCK, LARGEST_BLOCK, MAX_NAME};

/// Least and most bytes by which the file grows ahead.
const GROWTH: (u64, u64) = (1 << 20, 16 << 20);

/// Returns the path of the events' file: the log's name and `.events`.
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
    /// The offset of the next block.
    end: u64,
    threads: u32,
    closed: bool,
}

impl StreamWriter {
    /// Creates the file. `limit` is its maximum size in bytes.
    ///
    /// # Errors
    /// The file cannot be created, or the name is taken.
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
        let is_written = writer.map.grow_to(PIECE).is_ok() && writer.map.write(0, &header.encode());
        match is_written {
            true => Ok(writer),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Adds a thread at its first event. `None`: the file is full.
    pub fn add_thread(
        &self,
        log_thread: ThreadId,
        name: &str,
        is_virtual: bool,
    ) -> Option<StreamThread> {
        let name = clip_name(name).as_bytes();
        let mut shared = self.lock();
        let thread = StreamThread(shared.threads.checked_add(1)?);
        let capacity = (name.len() as u64).max(1).next_multiple_of(ALIGN);
        let head = StreamBlockHeader {
            kind: BlockKind::Thread,
            is_virtual,
            capacity: u32::try_from(capacity).ok()?,
            log_thread: log_thread.0,
            thread: thread.0,
            clock: 0,
        };
        self.append_block(&mut shared, &head, name)?;
        shared.threads = thread.0;
        Some(thread)
    }

    /// Allocates about `bytes` of room for a thread's events from `now` on.
    fn allocate_cursor(
        &self,
        log_thread: ThreadId,
        thread: StreamThread,
        bytes: u64,
        now: u64,
    ) -> EventCursor {
        let placed = self.add_event_block(log_thread, thread, bytes, now);
        placed.map_or_else(|| self.refuse_event(now), EventCursor::new)
    }

    /// Returns a cursor without room: an event at the time `now` found no room.
    pub fn refuse_event(&self, now: u64) -> EventCursor {
        // After the end there is no room either, but the file is not full.
        let is_closed = self.lock().closed;
        // Relaxed: it hardly matters which thread is first, and the file records only that.
        if !is_closed && !self.full.swap(true, Ordering::Relaxed) {
            // On failure the file does not record since when it is full.
            let _ = self.map.publish_u64(AT_FULL, now);
        }
        EventCursor::without_room()
    }

    fn add_event_block(
        &self,
        log_thread: ThreadId,
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
            log_thread: log_thread.0,
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

    /// Appends a block and returns its offset. Once a block found no room, no later one does.
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
            && self.map.publish_u32(at + AT_SUM, content_checksum(payload))
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

    /// Seals a block that its thread no longer writes: stores a checksum of its content.
    fn seal_block(&self, block: MappedBlock, used: u64) {
        let sum = self
            .map
            .read(block.at + BLOCK_HEADER, used, content_checksum);
        if let Some(sum) = sum
            && used > 0
            && self.map.publish_u32(block.at + AT_SUM, sum)
        {
            // On failure the block stays open, which is valid as well.
            let _ = self.map.publish_u32(block.at + AT_USED, used as u32);
        }
    }

    /// Ends the stream with the program; threads may go on writing in their blocks.
    pub fn finish_stream(&self, now: u64) {
        let mut shared = self.lock();
        if !shared.closed {
            shared.closed = true;
            let _ = self.map.publish_u64(AT_ENDED, now);
            // On failure the file is longer than necessary. Blocks in use stay in it.
            let _ = self.map.close(shared.end);
        }
    }

    /// Whether an event found no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Returns what happened to the file, if it is not as written.
    #[must_use]
    pub fn file_loss(&self) -> Option<FileLoss> {
        self.map.check_loss()
    }

    /// Returns a handle of the file for reading.
    ///
    /// # Errors
    /// The system's error.
    pub fn clone_file(&self) -> io::Result<File> {
        self.map.file().try_clone()
    }

    /// Returns the file's size in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lock().end
    }

    /// Locks the state. A panic in another thread leaves no partial block, so a poisoned lock can be used.
    fn lock(&self) -> MutexGuard<'_, StreamWriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventCursor {
    /// Moves the thread's cursor to a new block with room for its next event; if the file is full, it has no room.
    pub fn renew_block(
        &self,
        writer: &StreamWriter,
        (log_thread, thread): (ThreadId, StreamThread),
        now: u64,
    ) {
        let old = self.block();
        if let Some(old) = old {
            writer.seal_block(old, self.used_bytes());
        }
        let capacity = old.map_or(0, |old| old.capacity * 2);
        self.move_to(writer.allocate_cursor(log_thread, thread, capacity, now));
    }
}

fn clip_name(name: &str) -> &str {
    let end = (0..=MAX_NAME.min(name.len()))
        .rev()
        .find(|at| name.is_char_boundary(*at));
    name.get(..end.unwrap_or(0)).unwrap_or_default()
}
