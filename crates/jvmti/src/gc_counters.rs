//! The number of HotSpot's collections, and the used bytes of the heap, from its performance counters.
//!
//! HotSpot keeps its counters in memory that it describes to debuggers (`PerfMemory::_start`), in the format of
//! `perfMemory.hpp`; the values change in place. `-XX:-UsePerfData` disables them. All numbers here may be read on any
//! thread at any time, even while all threads are stopped.
//!
//! ```text
//! +0  magic ca fe c0 c0   +4 byte order, 1: little   +8 u32 bytes used   +24 u32 first entry   +28 u32 entries
//! entry: +0 u32 length   +4 u32 offset of the name   +12 u8 type: 'J' u64, 'B' text   +16 u32 offset of the value
//! ```
#![allow(unsafe_code, reason = "reads the VM's own counters")]

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use jvmti_bindings::sys::jni::JavaVM;

use crate::flags;

const MAGIC: [u8; 5] = [0xca, 0xfe, 0xc0, 0xc0, 1];
/// Collectors whose young collections stop all threads, by the names of JDK 17 and later, then of JDK 11.
const YOUNG_COLLECTORS: [&str; 6] = [
    "G1 young collection pauses",
    "Serial young collection pauses",
    "Parallel young collection pauses",
    "G1 incremental collections",
    "Copy",
    "PSScavenge",
];
/// HotSpot reserves 32 KB by default.
const MAX_BYTES: usize = 1 << 20;

/// Addresses of the counters; they are valid as long as the VM runs.
#[derive(Default, Debug)]
pub struct GcCounters {
    full: Option<usize>,
    young: Option<usize>,
    tenuring: Option<usize>,
    major: Option<usize>,
    minor: Option<usize>,
    used: Vec<usize>,
}

/// Pauses of a concurrent collector (ZGC).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CyclePauses {
    /// Pauses of cycles that collect the whole heap.
    pub major: u64,
    /// Pauses of cycles that collect only the young generation; 0 if the collector has none.
    pub minor: u64,
}

impl GcCounters {
    /// Finds the counters of an initialized VM. Counters that it does not have are missing.
    pub fn find_in(vm: *mut JavaVM) -> GcCounters {
        let Some(start) = flags::static_word(vm, c"PerfMemory", b"_start").filter(|at| *at != 0)
        else {
            return GcCounters::default();
        };
        // SAFETY: the VM's counters begin there, with a header of 32 bytes.
        let head = unsafe { copy_bytes(start, 32) };
        let used = read_number(&head, 8).unwrap_or(0).min(MAX_BYTES);
        // SAFETY: `used` bytes are in use.
        GcCounters::parse(&unsafe { copy_bytes(start, used) }, start)
    }

    /// Parses `bytes`, a copy of the memory at the address `start`.
    fn parse(bytes: &[u8], start: usize) -> GcCounters {
        let mut counters = GcCounters::default();
        for entry in parse_entries(bytes) {
            let Some(index) = collector_index(entry.name, "name") else {
                if is_used_bytes(entry.name) {
                    counters.used.extend(entry.value_address(start));
                } else if entry.name == "sun.gc.policy.tenuringThreshold" {
                    counters.tenuring = entry.value_address(start);
                }
                continue;
            };
            let name = read_text(entry.value).unwrap_or_default();
            let wanted = format!("sun.gc.collector.{index}.invocations");
            let invocations = parse_entries(bytes).find(|entry| entry.name == wanted);
            let address = invocations.and_then(|entry| entry.value_address(start));
            match name {
                name if name.contains("full collection") => counters.full = address,
                "Z concurrent cycle pauses" => counters.major = address,
                name if name.starts_with("ZGC major") => counters.major = address,
                name if name.starts_with("ZGC minor") => counters.minor = address,
                name if YOUNG_COLLECTORS.contains(&name) => counters.young = address,
                _ => {}
            }
        }
        counters
    }

    /// Returns the number of stop-the-world collections of the whole heap. `None`: unknown.
    pub fn full_collections(&self) -> Option<u64> {
        self.full.map(read_counter)
    }

    /// Returns the number of collections of the young generation that stopped all threads. `None`: the collector has none
    /// (ZGC, Shenandoah, Epsilon), or does not count.
    pub fn young_collections(&self) -> Option<u64> {
        self.young.map(read_counter)
    }

    /// Returns the number of young collections after which the next one moves an object to the old generation. `None`:
    /// unknown.
    pub fn tenuring_threshold(&self) -> Option<u64> {
        self.tenuring.map(read_counter)
    }

    /// `None`: the collector is not concurrent, or does not count.
    pub fn cycle_pauses(&self) -> Option<CyclePauses> {
        Some(CyclePauses {
            major: read_counter(self.major?),
            minor: self.minor.map_or(0, read_counter),
        })
    }

    /// Returns the used bytes of the heap after the last collection. `None`: unknown.
    pub fn used_bytes(&self) -> Option<u64> {
        let used = self.used.iter().map(|at| read_counter(*at));
        (!self.used.is_empty()).then(|| used.sum())
    }
}

/// An entry of the performance data.
struct PerfDataEntry<'b> {
    name: &'b str,
    /// The bytes from its value on.
    value: &'b [u8],
    /// The offset of the value from the first counter.
    offset: usize,
    is_number: bool,
}

impl PerfDataEntry<'_> {
    fn value_address(&self, start: usize) -> Option<usize> {
        let at = start + self.offset;
        (self.is_number && self.value.len() >= 8 && at.is_multiple_of(8)).then_some(at)
    }
}

fn parse_entries(bytes: &[u8]) -> impl Iterator<Item = PerfDataEntry<'_>> {
    let is_known = bytes.starts_with(&MAGIC);
    let count = read_number(bytes, 28).filter(|_| is_known).unwrap_or(0);
    let mut at = read_number(bytes, 24).unwrap_or(0);
    (0..count).map_while(move |_| {
        let length = read_number(bytes, at)?;
        let entry = bytes.get(at..at.checked_add(length)?)?;
        let (name, value) = (read_number(entry, 4)?, read_number(entry, 16)?);
        let entry = PerfDataEntry {
            name: read_text(entry.get(name..)?)?,
            value: entry.get(value..)?,
            offset: at + value,
            is_number: entry.get(12) == Some(&b'J'),
        };
        // An entry has at least its own header.
        at = at.checked_add(length.max(20))?;
        Some(entry)
    })
}

/// Returns the number in `sun.gc.collector.NUMBER.LAST`.
fn collector_index<'n>(name: &'n str, last: &str) -> Option<&'n str> {
    let rest = name.strip_prefix("sun.gc.collector.")?;
    let (index, found) = rest.split_once('.')?;
    (found == last).then_some(index)
}

/// Whether the name is `sun.gc.generation.N.space.N.used`.
fn is_used_bytes(name: &str) -> bool {
    name.starts_with("sun.gc.generation.") && name.contains(".space.") && name.ends_with(".used")
}

fn read_text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes.split(|byte| *byte == 0).next()?).ok()
}

fn read_number(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*word)).ok()
}

fn read_counter(at: usize) -> u64 {
    // SAFETY: an aligned counter of the VM's, which stays.
    let counter = unsafe { AtomicU64::from_ptr(ptr::with_exposed_provenance_mut(at)) };
    // Relaxed: no other data depends on the number.
    counter.load(Ordering::Relaxed)
}

/// # Safety
/// `length` bytes lie there. They may change meanwhile.
unsafe fn copy_bytes(at: usize, length: usize) -> Vec<u8> {
    let first = ptr::with_exposed_provenance::<u8>(at);
    // SAFETY: the caller says that `length` bytes lie there; volatile reads allow changes meanwhile.
    let byte = |offset| unsafe { first.add(offset).read_volatile() };
    (0..length).map(byte).collect()
}

#[cfg(test)]
mod gc_counters_tests {
    use super::*;

    /// Returns counters in HotSpot's format, at an aligned address.
    fn counters(all: &[(&str, &str, u64)]) -> Vec<u64> {
        let mut bytes = [&MAGIC[..], &[2, 0, 1]].concat();
        bytes.resize(32, 0);
        bytes[24..28].copy_from_slice(&32_u32.to_le_bytes());
        bytes[28..32].copy_from_slice(&(all.len() as u32).to_le_bytes());
        for (name, text, number) in all {
            let value = match text.is_empty() {
                true => number.to_le_bytes().to_vec(),
                false => [text.as_bytes(), &[0; 8]].concat(),
            };
            let data = (20 + name.len() + 1).next_multiple_of(8);
            let length = (data + value.len()).next_multiple_of(8);
            let mut entry = Vec::new();
            let kind = if text.is_empty() { b'J' } else { b'B' };
            for word in [length, 20, 0, usize::from(kind), data] {
                entry.extend((word as u32).to_le_bytes());
            }
            entry.extend(name.as_bytes());
            entry.resize(data, 0);
            entry.extend(value);
            entry.resize(length, 0);
            bytes.extend(entry);
        }
        let words = bytes.chunks(8);
        words
            .map(|word| u64::from_le_bytes(word.try_into().expect("entries are whole words")))
            .collect()
    }

    fn parse(words: &[u64]) -> GcCounters {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        GcCounters::parse(&bytes, words.as_ptr().expose_provenance())
    }

    #[test]
    fn collections_and_bytes_are_read_where_the_vm_counts_them() {
        let words = counters(&[
            ("sun.gc.collector.0.invocations", "", 40),
            (
                "sun.gc.collector.0.name",
                "Serial young collection pauses",
                0,
            ),
            ("sun.gc.collector.1.invocations", "", 3),
            (
                "sun.gc.collector.1.name",
                "Serial full collection pauses",
                0,
            ),
            ("sun.gc.generation.0.space.0.used", "", 5),
            ("sun.gc.generation.1.space.0.used", "", 7),
            ("sun.gc.generation.1.space.0.capacity", "", 100),
        ]);
        let counters = parse(&words);
        assert_eq!(counters.full_collections(), Some(3));
        assert_eq!(counters.used_bytes(), Some(12));
        assert_eq!(counters.cycle_pauses(), None);
    }

    #[test]
    fn pauses_of_cycles_are_distinguished() {
        let words = counters(&[
            ("sun.gc.collector.0.invocations", "", 9),
            ("sun.gc.collector.0.name", "ZGC minor collection pauses", 0),
            ("sun.gc.collector.2.invocations", "", 23),
            ("sun.gc.collector.2.name", "ZGC major collection pauses", 0),
        ]);
        let pauses = CyclePauses {
            major: 23,
            minor: 9,
        };
        assert_eq!(parse(&words).cycle_pauses(), Some(pauses));
        assert_eq!(parse(&words).full_collections(), None);
        let older = counters(&[
            ("sun.gc.collector.2.name", "Z concurrent cycle pauses", 0),
            ("sun.gc.collector.2.invocations", "", 12),
        ]);
        let pauses = CyclePauses {
            major: 12,
            minor: 0,
        };
        assert_eq!(parse(&older).cycle_pauses(), Some(pauses));
    }

    #[test]
    fn young_collections_are_those_that_stop_all_threads() {
        let words = counters(&[
            ("sun.gc.collector.0.name", "G1 young collection pauses", 0),
            ("sun.gc.collector.0.invocations", "", 41),
            ("sun.gc.policy.maxTenuringThreshold", "", 15),
            ("sun.gc.policy.tenuringThreshold", "", 6),
        ]);
        let counters_of_g1 = parse(&words);
        assert_eq!(counters_of_g1.young_collections(), Some(41));
        assert_eq!(counters_of_g1.tenuring_threshold(), Some(6));
        let words = counters(&[
            ("sun.gc.collector.0.name", "ZGC minor collection pauses", 0),
            ("sun.gc.collector.0.invocations", "", 57),
        ]);
        assert_eq!(parse(&words).young_collections(), None);
        assert_eq!(parse(&words).tenuring_threshold(), None);
    }

    #[test]
    fn what_is_no_table_of_counters_has_none() {
        for length in [0, 3, 31, 32, 64] {
            let counters = GcCounters::parse(&vec![0xff; length], 0);
            assert!(counters.full.is_none() && counters.used.is_empty());
            let mut bytes = vec![0xff; length];
            let end = length.min(MAGIC.len());
            bytes[..end].copy_from_slice(&MAGIC[..end]);
            assert!(GcCounters::parse(&bytes, 0).full.is_none());
        }
    }
}
