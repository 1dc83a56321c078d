//! The performance data that a HotSpot JVM publishes in a file for its user: `/tmp/hsperfdata_USER/PID`.
//!
//! HotSpot's `perfMemory.hpp` is the specification of the format.
//!
//! ```text
//! +0  magic ca fe c0 c0   +4 byte order, 1: little   +24 u32 first entry   +28 u32 entries
//! entry: +0 u32 length   +4 u32 offset of the name   +16 u32 offset of the value   both end with a byte 0
//! ```

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::peer;
use crate::socket_location::SocketLocation;

const MAGIC: [u8; 5] = [0xca, 0xfe, 0xc0, 0xc0, 1];
/// HotSpot writes some ten KB.
const MOST: u64 = 1 << 20;
/// Its first character says whether agents may be loaded: `1` yes, `0` no.
const CAPABILITIES: &[u8] = b"sun.rt.jvmCapabilities";

/// The time when the VM had started; 0 until then: 8 bytes.
const STARTED: &[u8] = b"sun.rt.createVmEndTime";

/// The main class, or the jar, and the program's arguments.
const COMMAND: &[u8] = b"sun.rt.javaCommand";

/// Returns the main class or jar of a JVM and the program's arguments.
///
/// `None`: unknown, for example with `-XX:-UsePerfData`, or the JVM belongs to another user.
#[must_use]
pub fn java_command(place: &SocketLocation) -> Option<String> {
    let file = read_perf_file(place)?;
    let command = find_text(&file, COMMAND)?;
    Some(String::from_utf8_lossy(command).into_owned())
}

/// Whether the JVM has started. `None`: as for [`java_command`].
///
/// A starting JVM may take a request for a leftover of an earlier process with its number.
pub fn has_started(place: &SocketLocation) -> Option<bool> {
    let file = read_perf_file(place)?;
    let time = find_entry(&file, STARTED)?.first_chunk()?;
    Some(u64::from_le_bytes(*time) != 0)
}

/// Whether the JVM has published data and has not started yet. The name of its program may be missing until then.
#[must_use]
pub fn is_starting(place: &SocketLocation) -> bool {
    let Some(file) = read_perf_file(place).filter(|file| file.starts_with(&MAGIC)) else {
        return false;
    };
    let time = find_entry(&file, STARTED).and_then(|value| value.first_chunk());
    time.is_none_or(|time| u64::from_le_bytes(*time) == 0)
}

/// Whether the JVM allows agents to be loaded. `None`: unknown, for example with `-XX:-UsePerfData`.
pub fn lets_attach(place: &SocketLocation) -> Option<bool> {
    match find_text(&read_perf_file(place)?, CAPABILITIES)?.first()? {
        b'1' => Some(true),
        b'0' => Some(false),
        _ => None,
    }
}

/// Reads the file. The folder is named after the user, as the JVM's own system names the user.
fn read_perf_file(place: &SocketLocation) -> Option<Vec<u8>> {
    let folders = fs::read_dir(place.folder()).ok()?.flatten();
    let folders = folders.filter(|folder| {
        let name = folder.file_name();
        name.to_string_lossy().starts_with("hsperfdata_")
    });
    let files = folders.map(|folder| folder.path().join(place.inner_pid().to_string()));
    let mut own = files.filter(|file| {
        let about = fs::symlink_metadata(file);
        about.is_ok_and(|about| {
            about.is_file() && about.uid() == peer::effective_user() && about.len() <= MOST
        })
    });
    fs::read(own.next()?).ok()
}

/// Returns the value of an entry that is a text.
fn find_text<'f>(file: &'f [u8], name: &[u8]) -> Option<&'f [u8]> {
    until_nul(find_entry(file, name)?)
}

/// Returns the bytes from an entry's value on.
fn find_entry<'f>(file: &'f [u8], name: &[u8]) -> Option<&'f [u8]> {
    if !file.starts_with(&MAGIC) {
        return None;
    }
    let mut at = read_u32(file, 24)?;
    for _ in 0..read_u32(file, 28)? {
        let length = read_u32(file, at)?;
        let entry = file.get(at..at.checked_add(length)?)?;
        if until_nul(entry.get(read_u32(entry, 4)?..)?)? == name {
            return entry.get(read_u32(entry, 16)?..);
        }
        // An entry has at least its header, so that the search ends.
        at = at.checked_add(length.max(20))?;
    }
    None
}

/// Returns the text before the first byte 0.
fn until_nul(text: &[u8]) -> Option<&[u8]> {
    text.split(|byte| *byte == 0).next()
}

fn read_u32(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*word)).ok()
}

#[cfg(test)]
mod perf_data_tests {
    use super::*;

    /// Returns performance data in HotSpot's format, with two entries; the second one is the requested one.
    fn written(name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut file = [&MAGIC[..], &[2, 0, 1]].concat();
        file.extend([0; 16]);
        file.extend(32_u32.to_le_bytes());
        file.extend(2_u32.to_le_bytes());
        for (name, value) in [(&b"java.x"[..], &b"abc"[..]), (name, value)] {
            let data = 20 + name.len() + 1;
            let length = data + value.len() + 1;
            for word in [length, 20, value.len(), 0, data] {
                file.extend((word as u32).to_le_bytes());
            }
            file.extend([name, &[0], value, &[0]].concat());
        }
        file
    }

    #[test]
    fn perf_data_shows_whether_agents_are_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let place = SocketLocation::in_folder(folder.path().to_owned(), 7);
        assert_eq!(lets_attach(&place), None);
        let own = folder.path().join("hsperfdata_somebody");
        fs::create_dir(&own).unwrap();
        for (capabilities, wanted) in [
            (&b"1100"[..], Some(true)),
            (b"0100", Some(false)),
            (b"?", None),
            (b"", None),
        ] {
            fs::write(own.join("7"), written(CAPABILITIES, capabilities)).unwrap();
            assert_eq!(lets_attach(&place), wanted, "{capabilities:?}");
            assert_eq!(has_started(&place), None);
        }
    }

    #[test]
    fn perf_data_shows_whether_the_jvm_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let place = SocketLocation::in_folder(folder.path().to_owned(), 7);
        let own = folder.path().join("hsperfdata_somebody");
        fs::create_dir(&own).unwrap();
        for (time, wanted) in [
            (&0_u64.to_le_bytes()[..], Some(false)),
            (&(1_u64 << 40).to_le_bytes(), Some(true)),
            (&[1; 3], None),
        ] {
            fs::write(own.join("7"), written(STARTED, time)).unwrap();
            assert_eq!(has_started(&place), wanted, "{time:?}");
            assert_eq!(is_starting(&place), wanted != Some(true), "{time:?}");
        }
        // The JVM publishes the program's name before it has started, and creates the file before that.
        fs::write(own.join("7"), written(COMMAND, b"app.Main")).unwrap();
        assert!(is_starting(&place));
        fs::write(own.join("7"), b"").unwrap();
        assert!(!is_starting(&place));
        fs::remove_file(own.join("7")).unwrap();
        assert!(!is_starting(&place));
    }

    #[test]
    fn perf_data_has_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let place = SocketLocation::in_folder(folder.path().to_owned(), 7);
        assert_eq!(java_command(&place), None);
        let own = folder.path().join("hsperfdata_somebody");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("7"), written(COMMAND, b"app.Main --fast")).unwrap();
        assert_eq!(java_command(&place).as_deref(), Some("app.Main --fast"));
    }

    #[test]
    fn a_damaged_file_has_no_or_the_same_content() {
        let file = written(CAPABILITIES, b"0");
        for length in 0..file.len() {
            let cut = find_text(&file[..length], CAPABILITIES);
            assert!(cut.is_none_or(|value| value == b"0"), "{length}");
        }
        for at in 0..file.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = byte;
                // The search must return.
                let _ = find_text(&damaged, CAPABILITIES);
            }
        }
    }
}
