//! The cache file. It is written once, as a whole, and replaces the previous file.
//!
//! All numbers are little-endian.
//!
//! ```text
//! 16 B          magic
//! u128          key: the agent and options that made the entries (`HookedClassCache::open`)
//! u128          XXH3 of everything between here and the entries
//! u32 count     entries, by the hash of their class: u128 XXH3 of the class's bytes, u128 XXH3 of the entry,
//!               u64 offset, u32 length
//!               the entries
//! ```
//!
//! The file is read by `pread`, not mapped: truncation only makes entries unreadable.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use xxhash_rust::xxh3::xxh3_128;

use crate::registry::class_image::ByteReader;

const MAGIC: &[u8; 16] = b"lucce classes 1\n";
const HEADER_BYTES: usize = 16 + 16 + 16 + 4;
const ROW_BYTES: usize = 16 + 16 + 8 + 4;
/// Maximum number of entries that are read or written.
const MAX_ENTRIES: usize = 1 << 16;
/// Maximum size of an entry.
const MAX_ENTRY_BYTES: u32 = 8 << 20;

/// Hash of a class or of an entry.
pub type CacheHash = u128;

/// The XXH3 hash of a class or of an entry.
pub fn hash_bytes(bytes: &[u8]) -> CacheHash {
    xxh3_128(bytes)
}

#[derive(Clone, Copy)]
struct CacheIndexRow {
    class: CacheHash,
    entry: CacheHash,
    at: u64,
    length: u32,
}

/// An open file with a valid index. Entries are read and checked when they are looked up.
pub struct CacheEntries {
    file: File,
    /// Sorted by class.
    rows: Vec<CacheIndexRow>,
    /// A buffer for entries.
    buffer: Mutex<Vec<u8>>,
}

impl CacheEntries {
    /// `None`: the file is not a cache file, is damaged, or has another key.
    pub fn open(file: File, key: u128) -> Option<CacheEntries> {
        let mut head = [0; HEADER_BYTES];
        file.read_exact_at(&mut head, 0).ok()?;
        let mut from = ByteReader(&head);
        let (magic, its_key) = (from.read_bytes(16)?, read_u128(&mut from)?);
        let (expected, count) = (read_u128(&mut from)?, from.read_u32()? as usize);
        if magic != MAGIC || its_key != key || count > MAX_ENTRIES {
            return None;
        }
        let mut table = vec![0; 4 + count * ROW_BYTES];
        file.read_exact_at(&mut table, (HEADER_BYTES - 4) as u64)
            .ok()?;
        if hash_bytes(&table) != expected {
            return None;
        }
        let rows = table.get(4..)?.chunks_exact(ROW_BYTES).map(|row| {
            let mut row = ByteReader(row);
            Some(CacheIndexRow {
                class: read_u128(&mut row)?,
                entry: read_u128(&mut row)?,
                at: row.read_u64()?,
                length: row.read_u32()?,
            })
        });
        let rows = rows.collect::<Option<_>>()?;
        Some(CacheEntries {
            file,
            rows,
            buffer: Mutex::default(),
        })
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The first result of `look` for an intact entry of this class.
    pub fn find_entry<T>(
        &self,
        class: CacheHash,
        mut look: impl FnMut(&[u8]) -> Option<T>,
    ) -> Option<T> {
        let first = self.rows.partition_point(|row| row.class < class);
        let rows = self.rows.get(first..).unwrap_or_default().iter();
        let mut rows = rows.take_while(|row| row.class == class).peekable();
        rows.peek()?;
        // Another thread may use the buffer.
        let mut own = Vec::new();
        let mut shared = self.buffer.try_lock();
        let buffer = match &mut shared {
            Ok(buffer) => &mut **buffer,
            Err(_) => &mut own,
        };
        rows.find_map(|row| look(self.read_entry(row, buffer)?))
    }

    fn read_entry<'b>(&self, row: &CacheIndexRow, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        let length = row.length as usize;
        if row.length > MAX_ENTRY_BYTES {
            return None;
        }
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        let entry = buffer.get_mut(..length)?;
        self.file.read_exact_at(entry, row.at).ok()?;
        (hash_bytes(entry) == row.entry).then_some(entry)
    }

    /// All intact entries.
    pub fn read_all(&self) -> impl Iterator<Item = (CacheHash, Vec<u8>)> {
        let rows = self.rows.iter();
        rows.filter_map(|row| {
            let mut entry = Vec::new();
            self.read_entry(row, &mut entry)?;
            Some((row.class, entry))
        })
    }

    /// Frees the buffer when few more lookups are expected.
    pub fn free_buffer(&self) {
        if let Ok(mut buffer) = self.buffer.try_lock() {
            *buffer = Vec::new();
        }
    }
}

fn read_u128(from: &mut ByteReader<'_>) -> Option<u128> {
    Some(u128::from_le_bytes(from.read_bytes(16)?.try_into().ok()?))
}

/// The bytes of a file with these entries, of at most `most` bytes of entries. Earlier entries take precedence.
pub fn encode_file(key: u128, mut entries: Vec<(CacheHash, Vec<u8>)>, most: usize) -> Vec<u8> {
    let mut left = most;
    let fits = |(_, entry): &(CacheHash, Vec<u8>)| {
        let fits = entry.len() <= left && entry.len() <= MAX_ENTRY_BYTES as usize;
        left -= if fits { entry.len() } else { 0 };
        fits
    };
    entries.truncate(MAX_ENTRIES);
    let mut kept: Vec<_> = entries.into_iter().filter(fits).collect();
    kept.sort_by_key(|(class, _)| *class);
    let mut table = (kept.len() as u32).to_le_bytes().to_vec();
    let mut at = (HEADER_BYTES + kept.len() * ROW_BYTES) as u64;
    for (class, entry) in &kept {
        table.extend([class.to_le_bytes(), hash_bytes(entry).to_le_bytes()].concat());
        table.extend(at.to_le_bytes());
        table.extend((entry.len() as u32).to_le_bytes());
        at += entry.len() as u64;
    }
    let mut out = Vec::with_capacity(at as usize);
    out.extend(MAGIC);
    out.extend(key.to_le_bytes());
    out.extend(hash_bytes(&table).to_le_bytes());
    out.extend(&table);
    for (_, entry) in &kept {
        out.extend(entry);
    }
    out
}

/// A file without a name.
#[cfg(test)]
pub fn create_temporary(bytes: &[u8]) -> std::io::Result<File> {
    use std::io::Write;
    use std::sync::atomic::{AtomicU32, Ordering};

    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "lucce-classes-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let path = std::env::temp_dir().join(name);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod cache_file_tests {
    use super::*;

    fn entries() -> Vec<(CacheHash, Vec<u8>)> {
        let entry = |n: u8| vec![n; 10 + usize::from(n)];
        [5, 2, 9, 2]
            .map(|n: u8| (CacheHash::from(n), entry(n)))
            .into()
    }

    fn read(bytes: &[u8], key: u128) -> Option<CacheEntries> {
        CacheEntries::open(create_temporary(bytes).unwrap(), key)
    }

    #[test]
    fn what_was_written_is_found_by_its_class() {
        let bytes = encode_file(77, entries(), 1 << 20);
        let file = read(&bytes, 77).unwrap();
        assert_eq!(file.len(), 4);
        let of = |class| {
            let mut all = Vec::new();
            let none: Option<()> = file.find_entry(class, |entry| {
                all.push(entry.to_vec());
                None
            });
            assert_eq!(none, None);
            all
        };
        assert_eq!(of(5), [vec![5; 15]]);
        assert_eq!(of(2), [vec![2; 12], vec![2; 12]]);
        assert_eq!(of(3), Vec::<Vec<u8>>::new());
        let within = file.find_entry(2, |_| file.find_entry(9, |entry| Some(entry.len())));
        assert_eq!(within, Some(19));
        let mut all: Vec<_> = file.read_all().collect();
        let mut expected = entries();
        all.sort();
        expected.sort();
        assert_eq!(all, expected);
        // Another key.
        assert!(read(&bytes, 78).is_none());
    }

    #[test]
    fn what_is_damaged_is_not_there() {
        let whole = encode_file(77, entries(), 1 << 20);
        let table = HEADER_BYTES + 4 * ROW_BYTES;
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            match read(&damaged, 77) {
                None => assert!(at < table, "{at}"),
                Some(file) => assert_eq!((file.read_all().count(), at >= table), (3, true), "{at}"),
            }
        }
        for length in 0..whole.len() {
            let cut = read(&whole[..length], 77);
            assert_eq!(cut.is_none(), length < table, "{length}");
            let left = cut.map_or(0, |file| file.read_all().count());
            assert!(left < 4, "{length}");
        }
    }

    #[test]
    fn there_is_a_largest_file() {
        let bytes = encode_file(1, entries(), 30);
        let file = read(&bytes, 1).unwrap();
        let all: Vec<_> = file.read_all().map(|(class, _)| class).collect();
        assert_eq!(all, [2, 5]);
    }
}
