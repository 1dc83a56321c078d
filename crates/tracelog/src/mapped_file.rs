//! A memory-mapped file that grows without moving.
//!
//! A range of addresses is reserved once, without memory behind it. The file is mapped into it from the front, piece by
//! piece: first disk space, then the mapping. A full disk is therefore an error of `grow_to` and never a SIGBUS. Only
//! `grow_to` makes bytes accessible, and it only adds bytes: offsets below `mapped()` stay valid, at the same address,
//! while the `MappedFile` lives.
//!
//! No process should shorten the file below its used size. If one does, the file is lost: `page_loss` handles its
//! pages, the file no longer grows, and [`MappedFile::check_loss`] reports it.
#![allow(
    unsafe_code,
    reason = "memory maps: addresses the compiler knows nothing of"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::memory_limit::MemoryLimit;
use crate::page_loss::WatchedMapping;

/// Growth is in multiples of this many bytes, a multiple of every page size in use.
pub const PIECE: u64 = 64 << 10;

/// If addresses are scarce, one file takes at most 1/`PART` of them.
const PART: u64 = 8;

/// A counter in the file, which one process writes while others read it.
///
/// # Safety
/// Made of atomics alone; every bit pattern is a counter.
pub unsafe trait SharedCounter {}

/// A mapped file that only grows and never moves.
pub struct MappedFile {
    file: File,
    base: NonNull<u8>,
    reserved: u64,
    /// Bytes from `base` on that are backed by the file. Release in `grow_to`, Acquire elsewhere.
    mapped: AtomicU64,
    /// Registration with the SIGBUS handler for lost pages.
    watched_mapping: Option<&'static WatchedMapping>,
    shortened: AtomicBool,
    closed: AtomicBool,
}

/// What happened to a file while it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileLoss {
    /// Another process shortened it.
    Truncated,
    /// The system could not read or write some of its pages.
    Failed,
}

// SAFETY: the addresses belong to the process, not to a thread; all changes go through `write`,
// whose callers own the bytes, or through atomics.
unsafe impl Send for MappedFile {}
// SAFETY: shared changes go through atomics, or through `write`, whose callers own the bytes.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Reserves addresses for up to `most` bytes, fewer if the process may not have as many.
    ///
    /// # Errors
    /// No addresses could be reserved.
    pub fn new(file: File, most: u64) -> io::Result<MappedFile> {
        let most = MemoryLimit::read_current().limit_addresses(most, PART);
        let mut reserved = most.max(PIECE).next_multiple_of(PIECE);
        loop {
            match reserve_addresses(reserved) {
                Ok(base) => {
                    let at = base.as_ptr() as usize;
                    return Ok(MappedFile {
                        // SAFETY: reserved just now; `drop` ends it before the addresses are given back.
                        watched_mapping: unsafe { WatchedMapping::new(at, file.as_raw_fd()) },
                        file,
                        base,
                        reserved,
                        mapped: AtomicU64::new(0),
                        shortened: AtomicBool::new(false),
                        closed: AtomicBool::new(false),
                    });
                }
                Err(e) if reserved <= 16 * PIECE => return Err(e),
                Err(_) => reserved = (reserved / 4).next_multiple_of(PIECE),
            }
        }
    }

    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the number of reserved bytes, which the file cannot exceed.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Returns the number of accessible bytes.
    #[must_use]
    pub fn mapped(&self) -> u64 {
        // Acquire: pairs with the Release in `grow_to`.
        self.mapped.load(Ordering::Acquire)
    }

    /// Allocates disk space up to `to` and maps it. Only the writer calls this, one call at a time.
    ///
    /// # Errors
    /// The disk or the reservation is full.
    pub fn grow_to(&self, to: u64) -> io::Result<()> {
        let from = self.mapped();
        let to = to.next_multiple_of(PIECE);
        if to <= from {
            return Ok(());
        }
        if to > self.reserved {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // Growing would restore the length, but the lost bytes would be zeros.
        if self.check_loss().is_some() {
            return Err(io::Error::other("the file was truncated"));
        }
        allocate_disk_space(&self.file, from, to - from)?;
        let (len, offset) = (as_len(to - from)?, as_offset(from)?);
        // SAFETY: `from..to` lies in our own reservation and above everything in use, so that
        // replacing its mapping takes nothing away from anybody.
        let address = unsafe {
            libc::mmap(
                self.base.as_ptr().add(as_len(from)?).cast(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.file.as_raw_fd(),
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Release: a thread that sees the new length may touch the new pages.
        self.mapped.store(to, Ordering::Release);
        if let (Some(watched), Ok(to)) = (self.watched_mapping, usize::try_from(to)) {
            watched.set_mapped(to);
        }
        Ok(())
    }

    /// Returns what happened to the file; asks the system, unless the file was closed.
    #[must_use]
    pub fn check_loss(&self) -> Option<FileLoss> {
        let loss = self.known_loss();
        if loss == Some(FileLoss::Truncated) || self.closed.load(Ordering::Acquire) {
            return loss;
        }
        let size = self.file.metadata().map_or(0, |found| found.len());
        if size < self.mapped() {
            // Relaxed: no other data depends on it.
            self.shortened.store(true, Ordering::Relaxed);
        }
        self.known_loss()
    }

    /// Returns what has been noticed so far, without asking the system.
    #[must_use]
    pub fn known_loss(&self) -> Option<FileLoss> {
        let replaced = self
            .watched_mapping
            .is_some_and(|watched| watched.replaced() > 0);
        match (self.shortened.load(Ordering::Relaxed), replaced) {
            (true, _) => Some(FileLoss::Truncated),
            (false, true) => Some(FileLoss::Failed),
            (false, false) => None,
        }
    }

    /// Frees the space behind `used`; the file no longer grows. A lost file stays as it is.
    ///
    /// # Errors
    /// The file is lost, or could not be shortened.
    pub fn close(&self, used: u64) -> io::Result<()> {
        if self.check_loss().is_some() {
            return Err(io::Error::other("the file was truncated"));
        }
        // Release: a thread that finds the file shorter sees that it was closed.
        self.closed.store(true, Ordering::Release);
        self.file.set_len(used)
    }

    /// Makes the mapping private: later stores stay in the process, earlier ones are in the file.
    ///
    /// # Errors
    /// The file is lost, or the system has too little memory; then nothing changes.
    pub fn make_private(&self) -> io::Result<()> {
        if self.check_loss().is_some() {
            return Err(io::Error::other("the file was truncated"));
        }
        let mapped = self.mapped();
        // SAFETY: what is mapped now is mapped again, at the same addresses and with the same bytes; a store of another
        // thread goes to either of the two, and both have them writable.
        let address = unsafe {
            libc::mmap(
                self.base.as_ptr().cast(),
                as_len(mapped)?,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE,
                self.file.as_raw_fd(),
                0,
            )
        };
        match address == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(()),
        }
    }

    /// Copies `bytes` to `offset`. `false`: the range is not mapped.
    ///
    /// The caller owns the range: no other thread reads it before a later `publish_u64` or `publish_u32`.
    #[must_use]
    pub fn write(&self, offset: u64, bytes: &[u8]) -> bool {
        let Some(to) = self.pointer_at(offset, bytes.len() as u64) else {
            return false;
        };
        // SAFETY: `at` checked that the whole range is mapped writable; `bytes` is a Rust slice
        // and cannot lie in the map, to which no `&[u8]` is handed out for longer than `read`.
        unsafe {
            to.as_ptr()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
        true
    }

    /// Passes bytes that the caller owns to `f`.
    pub fn read<T>(&self, offset: u64, len: u64, f: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let from = self.pointer_at(offset, len)?;
        // SAFETY: the range is mapped, and its owner, who is the only one to write it, is here.
        let bytes = unsafe { std::slice::from_raw_parts(from.as_ptr(), as_len(len).ok()?) };
        Some(f(bytes))
    }

    /// Stores a number with Release. A thread or process that reads it sees what was written before, even if this
    /// process is killed.
    #[must_use]
    pub fn publish_u64(&self, offset: u64, value: u64) -> bool {
        let Some(to) = self
            .pointer_at(offset, 8)
            .filter(|to| to.cast::<u64>().is_aligned())
        else {
            return false;
        };
        // SAFETY: mapped, aligned, and accessed in this process only through atomics.
        let cell = unsafe { AtomicU64::from_ptr(to.as_ptr().cast()) };
        // Release: pairs with the kernel's view of the page when a reader copies it.
        cell.store(value.to_le(), Ordering::Release);
        true
    }

    /// As [`MappedFile::publish_u64`].
    #[must_use]
    pub fn publish_u32(&self, offset: u64, value: u32) -> bool {
        let Some(to) = self
            .pointer_at(offset, 4)
            .filter(|to| to.cast::<u32>().is_aligned())
        else {
            return false;
        };
        // SAFETY: mapped, aligned, and accessed in this process only through atomics.
        let cell = unsafe { AtomicU32::from_ptr(to.as_ptr().cast()) };
        // Release: pairs with the kernel's view of the page when a reader copies it.
        cell.store(value.to_le(), Ordering::Release);
        true
    }

    /// Releases the process's memory for the whole pages in a range that it will not use again. They stay in the file,
    /// from which a later access reads them.
    pub fn release_pages(&self, offset: u64, len: u64) {
        const PAGE: u64 = 4 << 10;
        let (from, to) = (offset.next_multiple_of(PAGE), (offset + len) / PAGE * PAGE);
        let Some(len) = to.checked_sub(from).filter(|len| *len > 0) else {
            return;
        };
        if let (Some(start), Ok(len)) = (self.pointer_at(from, len), as_len(len)) {
            // SAFETY: a shared mapping of a file: what was written is the file's, and comes back from
            // there. If the system refuses, or its pages are larger, all stays as it is.
            unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_DONTNEED) };
        }
    }

    /// Returns the address of the `len` bytes at `offset`, for code that writes them directly.
    #[must_use]
    pub fn address_of(&self, offset: u64, len: u64) -> Option<usize> {
        Some(self.pointer_at(offset, len)?.as_ptr() as usize)
    }

    /// Returns the first of `count` counters at `offset`.
    pub(crate) fn first_counter<C: SharedCounter>(
        &self,
        offset: u64,
        count: u32,
    ) -> Option<NonNull<C>> {
        let first = self
            .pointer_at(offset, u64::from(count) * size_of::<C>() as u64)?
            .cast::<C>();
        first.is_aligned().then_some(first)
    }

    /// # Safety
    /// `first` and `count` are a result of [`MappedFile::first_counter`] of this map.
    pub(crate) unsafe fn counter_slice<C: SharedCounter>(
        &self,
        first: NonNull<C>,
        count: u32,
    ) -> &[C] {
        // SAFETY: mapped as long as `self` lives; every bit pattern is a counter; counters are atomics.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), count as usize) }
    }

    fn pointer_at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let end = offset.checked_add(len)?;
        if end > self.mapped() {
            return None;
        }
        // SAFETY: inside the reservation, for `mapped` is.
        Some(unsafe { self.base.add(usize::try_from(offset).ok()?) })
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if let Some(watched) = self.watched_mapping {
            watched.stop_watching();
        }
        if let Ok(len) = as_len(self.reserved) {
            // SAFETY: our own reservation, and nothing borrows from it any more.
            unsafe { libc::munmap(self.base.as_ptr().cast(), len) };
        }
    }
}

fn reserve_addresses(len: u64) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            as_len(len)?,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Allocates disk space for `len` zero bytes at `from`.
fn allocate_disk_space(file: &File, from: u64, len: u64) -> io::Result<()> {
    let (from_off, len_off) = (as_offset(from)?, as_offset(len)?);
    loop {
        // SAFETY: a system call on a file descriptor that we own.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, from_off, len_off) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return write_zeros(file, from, len),
            _ => return Err(error),
        }
    }
}

/// For file systems without fallocate.
fn write_zeros(file: &File, from: u64, len: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let zeros = [0; 1 << 12];
    (from..from + len)
        .step_by(zeros.len())
        .try_for_each(|at| file.write_all_at(&zeros, at))
}

/// Returns the largest file size in bytes for this process (`ulimit -f`). Growing past it would raise a signal instead
/// of an error.
#[must_use]
pub fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: fills the struct that it is given.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } {
        0 => limit.rlim_cur,
        _ => u64::MAX,
    }
}

fn as_len(v: u64) -> io::Result<usize> {
    usize::try_from(v).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

fn as_offset(v: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(v).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

#[cfg(test)]
mod mapped_file_tests {
    use super::*;
    use crate::counters::AllocationCounter;

    #[test]
    fn zeros_are_written_where_fallocate_is_missing() {
        let file = tempfile::tempfile().unwrap();
        write_zeros(&file, PIECE, PIECE).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 2 * PIECE);
    }

    #[test]
    fn addresses_stay_while_the_file_grows() {
        let map = MappedFile::new(tempfile::tempfile().unwrap(), 1 << 30).unwrap();
        map.grow_to(PIECE).unwrap();
        let before = map.first_counter::<AllocationCounter>(64, 1).unwrap();
        assert!(map.first_counter::<AllocationCounter>(PIECE, 1).is_none());
        (2..40).for_each(|n| map.grow_to(n * PIECE).unwrap());
        assert_eq!(map.first_counter(64, 1).unwrap(), before);
        assert!(map.write(40 * PIECE - 70, &[1; 70]) == (map.mapped() >= 40 * PIECE));
    }

    #[test]
    fn nothing_is_mapped_past_the_reservation() {
        let map = MappedFile::new(tempfile::tempfile().unwrap(), PIECE).unwrap();
        assert!(map.grow_to(2 * PIECE).is_err());
        assert!(!map.write(0, &[1]));
        assert!(!map.publish_u64(0, 1));
        assert!(!map.publish_u32(0, 1));
    }

    #[test]
    fn a_file_that_is_truncated_is_lost_and_the_process_goes_on() {
        crate::install_sigbus_handler();
        let file = tempfile::NamedTempFile::new().unwrap();
        let map = MappedFile::new(file.reopen().unwrap(), 1 << 20).unwrap();
        map.grow_to(4 * PIECE).unwrap();
        assert!(map.write(0, &[7; 100]) && map.write(3 * PIECE, &[7; 100]));
        assert_eq!(map.check_loss(), None);
        file.as_file().set_len(5000).unwrap();
        // The rest of the last page is the file's; what comes behind is zeros, and can be written.
        assert_eq!(map.read(0, 3, <[u8]>::to_vec), Some(vec![7; 3]));
        assert_eq!(map.read(3 * PIECE, 3, <[u8]>::to_vec), Some(vec![0; 3]));
        assert!(map.write(2 * PIECE, &[1; 100]));
        assert_eq!(map.read(2 * PIECE, 3, <[u8]>::to_vec), Some(vec![1; 3]));
        assert_eq!(map.known_loss(), Some(FileLoss::Failed));
        assert_eq!(map.check_loss(), Some(FileLoss::Truncated));
        assert!(map.grow_to(8 * PIECE).is_err() && map.close(2 * PIECE).is_err());
        assert_eq!(file.as_file().metadata().unwrap().len(), 5000);
    }

    #[test]
    fn a_file_that_was_shortened_does_not_grow_over_the_gap() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let map = MappedFile::new(file.reopen().unwrap(), 1 << 20).unwrap();
        map.grow_to(PIECE).unwrap();
        file.as_file().set_len(0).unwrap();
        assert!(map.grow_to(2 * PIECE).is_err());
        assert_eq!(map.check_loss(), Some(FileLoss::Truncated));
        assert_eq!(file.as_file().metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_file_that_was_closed_is_not_lost() {
        let map = MappedFile::new(tempfile::tempfile().unwrap(), 1 << 20).unwrap();
        map.grow_to(4 * PIECE).unwrap();
        map.close(100).unwrap();
        assert_eq!(map.check_loss(), None);
    }

    #[test]
    fn what_is_written_after_the_map_was_detached_is_not_in_the_file() {
        use std::os::unix::fs::FileExt;
        let map = MappedFile::new(tempfile::tempfile().unwrap(), 1 << 20).unwrap();
        map.grow_to(4 * PIECE).unwrap();
        assert!(map.write(100, &[1; 8]) && map.write(2 * PIECE, &[1; 8]));
        map.make_private().unwrap();
        // The same page, and a page that was not touched before.
        assert!(map.write(104, &[2; 8]) && map.write(PIECE, &[2; 8]));
        assert_eq!(map.read(100, 8, <[u8]>::to_vec).unwrap()[3..6], [1, 2, 2]);
        let in_file = |at| {
            let mut bytes = [9; 8];
            map.file().read_exact_at(&mut bytes, at).unwrap();
            bytes
        };
        assert_eq!(in_file(100), [1; 8]);
        assert_eq!((in_file(108), in_file(PIECE)), ([0; 8], [0; 8]));
        assert_eq!(in_file(2 * PIECE), [1; 8]);
    }

    #[test]
    fn more_than_the_process_may_have_is_made_smaller() {
        let map = MappedFile::new(tempfile::tempfile().unwrap(), 1 << 60).unwrap();
        assert!(map.reserved() < 1 << 60);
    }

    #[test]
    fn released_pages_are_only_in_the_file() {
        use std::os::unix::fs::FileExt;
        let map = MappedFile::new(tempfile::tempfile().unwrap(), 1 << 20).unwrap();
        map.grow_to(4 * PIECE).unwrap();
        let bytes: Vec<u8> = (0..4 * PIECE).map(|n| (n % 251) as u8).collect();
        assert!(map.write(0, &bytes));
        let in_memory = || {
            let pagemap = File::open("/proc/self/pagemap").unwrap();
            let first = map.address_of(0, 1).unwrap() as u64 / 4096;
            let present = |page: u64| {
                let mut entry = [0; 8];
                pagemap
                    .read_exact_at(&mut entry, (first + page) * 8)
                    .unwrap();
                u64::from_ne_bytes(entry) >> 63 == 1
            };
            (0..4 * PIECE / 4096).filter(|page| present(*page)).count()
        };
        assert_eq!(in_memory(), 64);
        // Parts of the first and the last page are outside the range.
        map.release_pages(100, 2 * PIECE);
        assert_eq!(in_memory(), 64 - 31);
        map.release_pages(0, 50);
        map.release_pages(1 << 40, PIECE);
        assert_eq!(in_memory(), 64 - 31);
        let content = map.read(0, 4 * PIECE, <[u8]>::to_vec);
        assert_eq!(content, Some(bytes));
    }
}
