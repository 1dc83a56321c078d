//! Opens and reads files of other processes, without blocking and without trusting a file's claims about its size.
#![allow(unsafe_code, reason = "lseek for holes is a system call")]

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading.
///
/// Everything else is refused at once: a FIFO, a device or a socket could block the reader forever.
///
/// # Errors
/// The system's error, or the type of a file that is not regular.
pub fn open_file(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    refuse_other(fs::metadata(path)?.file_type())?;
    // The file may have become a FIFO meanwhile; for a regular file the flag has no effect.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    refuse_other(file.metadata()?.file_type())?;
    Ok(file)
}

fn refuse_other(file_type: FileType) -> io::Result<()> {
    let what = match file_type {
        file_type if file_type.is_file() => return Ok(()),
        file_type if file_type.is_dir() => "a directory",
        file_type if file_type.is_fifo() => "a pipe (FIFO)",
        file_type if file_type.is_socket() => "a socket",
        file_type if file_type.is_char_device() || file_type.is_block_device() => "a device",
        _ => "something else",
    };
    let kind = match file_type.is_dir() {
        true => io::ErrorKind::IsADirectory,
        false => io::ErrorKind::InvalidInput,
    };
    let text = format!("{what}, not a file; write what it has to a file, and name that");
    Err(io::Error::new(kind, text))
}

/// Returns the first offset from `at` on that is not in a hole; the file's end if a hole reaches there.
///
/// Returns `at` if the file system does not report holes.
///
/// # Errors
/// The system's error.
pub(crate) fn next_data(file: &File, at: u64) -> io::Result<u64> {
    match seek_data_or_hole(file, at, libc::SEEK_DATA)? {
        Some(data) => Ok(data.max(at)),
        None => Ok(at),
    }
}

/// Returns the first offset from `at` on that is in a hole, at most the file's end.
fn next_hole(file: &File, at: u64) -> io::Result<u64> {
    match seek_data_or_hole(file, at, libc::SEEK_HOLE)? {
        Some(hole) => Ok(hole.max(at)),
        None => Ok(file.metadata()?.len().max(at)),
    }
}

/// `None`: the file system does not report holes. The file's read position does not change.
fn seek_data_or_hole(file: &File, at: u64, whence: libc::c_int) -> io::Result<Option<u64>> {
    let Ok(from) = libc::off_t::try_from(at) else {
        return Ok(None);
    };
    let before = (&*file).stream_position()?;
    // SAFETY: a system call on a file that is open.
    let position = unsafe { libc::lseek(file.as_raw_fd(), from, whence) };
    let error = io::Error::last_os_error().raw_os_error();
    (&*file).seek(io::SeekFrom::Start(before))?;
    match (u64::try_from(position), error) {
        (Ok(position), _) => Ok(Some(position)),
        // Only a hole follows.
        (Err(_), Some(libc::ENXIO)) => Ok(Some(file.metadata()?.len())),
        (Err(_), _) => Ok(None),
    }
}

/// Returns the end of the last bytes of a file that are not in a hole, rounded up to 64 KB or the file's end.
///
/// # Errors
/// The system's error.
pub fn data_end(file: &File) -> io::Result<u64> {
    let (size, mut end) = (file.metadata()?.len(), 0);
    loop {
        let data = next_data(file, end)?;
        if data >= size {
            return Ok(end.min(size));
        }
        end = next_hole(file, data)?.next_multiple_of(64 << 10);
    }
}

#[cfg(test)]
mod files_tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    #[test]
    fn what_is_no_file_is_refused_without_a_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let pipe = std::ffi::CString::new(path("pipe").as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: a system call with a name that ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let _socket = UnixListener::bind(path("socket")).unwrap();
        std::os::unix::fs::symlink(path("pipe"), path("link")).unwrap();
        let cases = [
            (path("pipe"), "a pipe (FIFO)"),
            (path("link"), "a pipe (FIFO)"),
            (path("socket"), "a socket"),
            ("/dev/zero".into(), "a device"),
            (dir.path().to_owned(), "a directory"),
        ];
        for (path, what) in cases {
            let message = open_file(&path).unwrap_err().to_string();
            assert!(message.starts_with(what), "{}: {message}", path.display());
        }
        assert!(open_file(path("none")).is_err());
        fs::write(path("file"), "x").unwrap();
        assert!(open_file(path("file")).is_ok());
    }

    #[test]
    fn holes_are_passed_over() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"data").unwrap();
        file.set_len(1 << 40).unwrap();
        assert_eq!(next_data(&file, 0).unwrap(), 0);
        let behind = next_data(&file, 1 << 20).unwrap();
        // A file system without holes reports data everywhere.
        assert!([1 << 20, 1 << 40].contains(&behind), "{behind}");
        let end = data_end(&file).unwrap();
        assert!(end == 64 << 10 || behind == 1 << 20, "{end}");
        assert_eq!(file.stream_position().unwrap(), 4);
    }
}
