//! How many addresses a process may still reserve. The JVM and the program need most of them.
#![allow(unsafe_code, reason = "a system call")]

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// Addresses left to others if addresses are scarce, in bytes.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// Reserves `bytes` of addresses for the JVM, which has not requested them yet.
pub fn keep_addresses(bytes: u64) {
    // Relaxed: the thread that stores it also reads it next.
    KEPT.store(bytes, Ordering::Relaxed);
}

/// What the system allows the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryLimit {
    /// No limit.
    Unlimited,
    /// `ulimit -v`: `limit` bytes of addresses, of which the JVM leaves `free`.
    Addresses { limit: u64, free: u64 },
    /// The system accounts all writable memory (`vm.overcommit_memory=2`): `free` bytes are free.
    Memory { free: u64 },
}

impl MemoryLimit {
    /// Reads the limits of this process.
    #[must_use]
    pub fn read_current() -> MemoryLimit {
        if let Some(limit) = address_limit() {
            let others = addresses_in_use().saturating_add(KEPT.load(Ordering::Relaxed));
            let free = limit.saturating_sub(others);
            return MemoryLimit::Addresses { limit, free };
        }
        match counted_memory() {
            Some(free) => MemoryLimit::Memory { free },
            None => MemoryLimit::Unlimited,
        }
    }

    /// Returns `most` bytes of addresses, or 1/`part` of the free ones.
    #[must_use]
    pub fn limit_addresses(self, most: u64, part: u64) -> u64 {
        match self {
            MemoryLimit::Addresses { free, .. } => most.min(free / part),
            MemoryLimit::Unlimited | MemoryLimit::Memory { .. } => most,
        }
    }

    /// Returns `most` bytes, or 1/`part` of the free ones, for memory that is written without further checks.
    #[must_use]
    pub fn limit_written_bytes(self, most: u64, part: u64) -> u64 {
        match self {
            MemoryLimit::Memory { free } => most.min(free / part),
            MemoryLimit::Unlimited | MemoryLimit::Addresses { .. } => {
                self.limit_addresses(most, part)
            }
        }
    }
}

/// Explains the limit to the user.
impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MemoryLimit::Unlimited => f.write_str("the system gives no more"),
            MemoryLimit::Addresses { limit, free } => {
                let (limit, free) = (ByteSize(limit), ByteSize(free));
                write!(f, "ulimit -v is {limit}, of which the JVM leaves {free}")
            }
            MemoryLimit::Memory { free } => {
                let free = ByteSize(free);
                write!(f, "vm.overcommit_memory is 2, and {free} are free")
            }
        }
    }
}

/// Displays a number of bytes with a unit.
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB")];
        let unit_and_name = UNITS.into_iter().find(|(unit, _)| self.0 >= *unit);
        let (unit, name) = unit_and_name.unwrap_or((1 << 10, "KB"));
        match self.0 % unit {
            0 => write!(f, "{} {name}", self.0 / unit),
            _ => write!(f, "{:.1} {name}", self.0 as f64 / unit as f64),
        }
    }
}

fn address_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: fills the struct that it is given.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (status == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

fn addresses_in_use() -> u64 {
    const PAGE: u64 = 4096;
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split(' ')
        .next()
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(PAGE)
}

/// Returns the free memory in bytes, if the system accounts it.
fn counted_memory() -> Option<u64> {
    let mode = fs::read_to_string("/proc/sys/vm/overcommit_memory").ok()?;
    if mode.trim() != "2" {
        return None;
    }
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(
        meminfo_bytes(&text, "CommitLimit:")?
            .saturating_sub(meminfo_bytes(&text, "Committed_AS:")?),
    )
}

/// Returns a field of `/proc/meminfo` in bytes.
fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let value = lines.find_map(|line| line.strip_prefix(name))?;
    let kilobytes = value.split_whitespace().next()?.parse::<u64>().ok()?;
    kilobytes.checked_mul(1 << 10)
}

#[cfg(test)]
mod memory_limit_tests {
    use super::*;

    #[test]
    fn a_part_of_what_is_free_is_taken() {
        let few = MemoryLimit::Addresses {
            limit: 10 << 30,
            free: 8 << 30,
        };
        assert_eq!(few.limit_addresses(32 << 40, 8), 1 << 30);
        assert_eq!(few.limit_written_bytes(64 << 20, 8), 64 << 20);
        let counted = MemoryLimit::Memory { free: 8 << 30 };
        assert_eq!(counted.limit_addresses(32 << 40, 8), 32 << 40);
        assert_eq!(counted.limit_written_bytes(32 << 40, 64), 128 << 20);
        assert_eq!(
            MemoryLimit::Unlimited.limit_written_bytes(32 << 40, 64),
            32 << 40
        );
        assert_eq!(
            few.to_string(),
            "ulimit -v is 10 GB, of which the JVM leaves 8 GB"
        );
    }

    #[test]
    fn sizes_are_formatted_in_their_unit() {
        for (bytes, text) in [
            (32 << 40, "32 TB"),
            (3 << 29, "1.5 GB"),
            (64 << 20, "64 MB"),
            (4096, "4 KB"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
    }

    #[test]
    fn what_the_system_counts_is_read() {
        let text = "MemTotal: 5 kB\nCommitLimit:    12 kB\nCommitted_AS:   2 kB\n";
        assert_eq!(meminfo_bytes(text, "CommitLimit:"), Some(12 << 10));
        assert_eq!(meminfo_bytes(text, "Absent:"), None);
        assert!(addresses_in_use() > 0);
    }
}
