//! A JVM goes on while its files are read: what the stream holds then, the log explains.

mod fixture;

use std::fs;
use std::process::Command;
use std::thread;

/// The log is a pipe, so it is known when it is opened: by then the stream must have been read. What a JVM would
/// have added until then is in another stream, with events that the log does not explain.
#[test]
fn the_stream_is_read_before_the_log() {
    for verb in [
        &["stream"][..],
        &["report", "--stream"],
        &["export", "--stream"],
        &["export", "--format", "chrome"],
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fixture::stream::streams(dir.path());
        let log = fs::read(path("kinds.log")).unwrap();
        let made = Command::new("mkfifo").arg(path("pipe.log")).status();
        assert!(made.unwrap().success());
        fs::copy(path("kinds.log.events"), path("pipe.log.events")).unwrap();
        let (pipe, events) = (path("pipe.log"), path("pipe.log.events"));
        let later = path("unexplained.log.events");
        let jvm = thread::spawn(move || {
            let pipe = fs::OpenOptions::new().write(true).open(pipe);
            fs::rename(later, events).unwrap();
            std::io::Write::write_all(&mut pipe.unwrap(), &log).unwrap();
        });
        let output = Command::new(env!("CARGO_BIN_EXE_lucce"))
            .args(verb)
            .arg("pipe.log")
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{verb:?}: {output:?}");
        jvm.join().unwrap();
    }
}
