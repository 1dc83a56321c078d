//! A JVM goes on while its files are read: what the stream holds then, the log explains.
#![allow(unsafe_code, reason = "inotify is system calls")]

use std::ffi::CString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::FromRawFd;
use std::path::Path;
use std::process::Command;

/// Tells which files of a folder are opened and closed.
struct Watch(File);

impl Watch {
    fn new(folder: &Path) -> Watch {
        let folder = CString::new(folder.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: system calls; the descriptor is owned by the file, and the name ends with a zero.
        unsafe {
            let watch = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
            assert!(watch >= 0);
            let what = libc::IN_OPEN | libc::IN_CLOSE_NOWRITE;
            assert!(libc::inotify_add_watch(watch, folder.as_ptr(), what) >= 0);
            Watch(File::from_raw_fd(watch))
        }
    }

    /// Names of files, and whether they were opened or closed, in order.
    fn events(&mut self) -> Vec<(String, bool)> {
        const HEAD: usize = 16;
        let (mut bytes, mut block) = (Vec::new(), [0; 4096]);
        loop {
            match self.0.read(&mut block) {
                Ok(read) => bytes.extend_from_slice(&block[..read]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => panic!("{e}"),
            }
        }
        let (mut events, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let word = |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
            let (mask, length) = (word(4), word(12) as usize);
            let name = &rest[HEAD..HEAD + length];
            let name = name.split(|byte| *byte == 0).next().unwrap();
            let name = String::from_utf8(name.to_vec()).unwrap();
            events.push((name, mask & libc::IN_OPEN != 0));
            rest = &rest[HEAD + length..];
        }
        events
    }
}

/// What a JVM adds to the stream once the log is opened may be events that what was read of the log does not explain.
#[test]
fn the_stream_is_read_before_the_log() {
    for verb in [
        &["stream"][..],
        &["report", "--stream"],
        &["export", "--stream"],
        &["export", "--format", "chrome"],
    ] {
        let dir = tempfile::tempdir().unwrap();
        lucce_testkit::stream::streams(dir.path());
        let mut watch = Watch::new(dir.path());
        let output = Command::new(env!("CARGO_BIN_EXE_lucce"))
            .args(verb)
            .arg("kinds.log")
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{verb:?}: {output:?}");
        let events = watch.events();
        let is_closed = |(name, is_open): &(String, bool)| name == "kinds.log.events" && !is_open;
        let is_opened = |(name, is_open): &(String, bool)| name == "kinds.log" && *is_open;
        let stream = events
            .iter()
            .rposition(is_closed)
            .expect("the stream is read");
        let log = events.iter().position(is_opened).expect("the log is read");
        assert!(stream < log, "{verb:?}: {events:?}");
    }
}
