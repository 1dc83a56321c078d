//! The run's files: made at the start, all of them new.
//!
//! A file that has one of the names stays as it is, for it may be the log of another run, or of a JVM that
//! runs. If it is a log, or still empty, this run's files get a number:
//!
//! ```text
//! run.lucce exists ─► run-2.lucce ─► run-3.lucce …    with run-3.lucce.events beside it, if asked for
//! ```
//! Two JVMs that start at once are told apart by the system, which makes a file for one of them only. A JVM
//! whose container gives it the process id of an earlier one, or that is the same process after an `exec`, gets a
//! number, too.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lucce_tracelog::{Header, MAGIC, Writer};

use crate::book::calls;
use crate::book::calls::Calls;
use crate::core::Streamer;
use crate::options::{Options, Record};

/// The numbers that are tried.
const MOST: u32 = 100_000;

/// New files, removed again if the agent does not start.
pub struct Outputs {
    pub log: Option<Writer>,
    pub streamer: Option<Streamer>,
    pub calls: Option<Calls>,
    made: Made,
}

impl Outputs {
    /// Makes the files that the options ask for and says in the options what the log is called.
    ///
    /// # Errors
    /// One line for the user: why nothing can be written there.
    pub fn create(options: &mut Options, header: &Header) -> Result<Outputs, String> {
        let wanted = options.out.clone();
        for number in 1..=MOST {
            options.out = numbered(&wanted, number);
            match attempt(options, header) {
                Ok(outputs) => {
                    if number > 1 {
                        tell(options, &wanted);
                    }
                    return Ok(outputs);
                }
                Err(Refused::Taken) if number > 1 => {}
                Err(Refused::Taken) => may_have_neighbours(&wanted)?,
                Err(Refused::Failed(path, why)) => {
                    return Err(format!("cannot write {}: {why}", path.display()));
                }
            }
        }
        let wanted = wanted.display();
        Err(format!(
            "cannot write {wanted}: it exists, as do {MOST} more of the name"
        ))
    }

    /// The agent has started: the files stay.
    pub fn keep(&mut self) {
        self.made.0.clear();
    }
}

enum Refused {
    /// One of the names is.
    Taken,
    Failed(PathBuf, io::Error),
}

/// All files under one name, or none.
fn attempt(options: &Options, header: &Header) -> Result<Outputs, Refused> {
    let mut made = Made::default();
    let path = &options.out;
    let file = made.note(path, lucce_tracelog::new_file(path))?;
    let log = Writer::within(file, header, options.limit).map_err(failed(path))?;
    let (mut streamer, mut calls) = (None, None);
    match options.record {
        Record::None => {}
        Record::Stream => {
            let path = lucce_stream::path_beside(path);
            let stream = Streamer::create(&path, header, options.record_limit);
            streamer = Some(made.note(&path, stream)?);
        }
        Record::Calls => {
            let path = calls::path_beside(path);
            let writer = Calls::create(&path, options.record_limit);
            calls = Some(made.note(&path, writer)?);
        }
    }
    Ok(Outputs {
        log: Some(log),
        streamer,
        calls,
        made,
    })
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Refused {
    move |error| match error.kind() {
        io::ErrorKind::AlreadyExists => Refused::Taken,
        _ => Refused::Failed(path.to_owned(), error),
    }
}

/// What this run has made and not kept goes.
#[derive(Default)]
struct Made(Vec<PathBuf>);

impl Made {
    fn note<T>(&mut self, path: &Path, made: io::Result<T>) -> Result<T, Refused> {
        let made = made.map_err(failed(path))?;
        self.0.push(path.to_owned());
        Ok(made)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in &self.0 {
            // What cannot be removed is a log without events.
            let _ = fs::remove_file(path);
        }
    }
}

/// `run.lucce`, `run-2.lucce`, …
fn numbered(path: &Path, number: u32) -> PathBuf {
    let Some(stem) = path.file_stem().filter(|_| number > 1) else {
        return path.to_owned();
    };
    let mut name = OsString::from(stem);
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Whether another log may lie beside what has the name.
fn may_have_neighbours(path: &Path) -> Result<(), String> {
    let refused = |why: String| Err(format!("cannot write {}: {why}", path.display()));
    match begins_as(path) {
        Ok(Begin::Log | Begin::Nothing) => Ok(()),
        Ok(Begin::Other) => refused("there is a file that is no log; it stays as it is".into()),
        Ok(Begin::Special) => refused("not an ordinary file".into()),
        Err(error) => refused(format!("it exists and cannot be read: {error}")),
    }
}

enum Begin {
    Log,
    /// Empty, or gone again: another JVM may just have made it.
    Nothing,
    Other,
    Special,
}

fn begins_as(path: &Path) -> io::Result<Begin> {
    match fs::metadata(path) {
        // A link that leads nowhere, or to a file that is gone again.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Begin::Nothing),
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Ok(Begin::Special),
        Ok(_) => {}
    }
    // What is no ordinary file any more must not keep the program waiting.
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let mut begin = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    Ok(match &begin[..] {
        [] => Begin::Nothing,
        begin if begin == MAGIC => Begin::Log,
        _ => Begin::Other,
    })
}

/// Who reads the file that was asked for would read another run's.
fn tell(options: &mut Options, wanted: &Path) {
    let beside = match options.record {
        Record::None => None,
        Record::Stream => Some(lucce_stream::path_beside(wanted)),
        Record::Calls => Some(calls::path_beside(wanted)),
    };
    let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
    let there = [Some(wanted.to_owned()), beside].into_iter().flatten();
    let there = there
        .into_iter()
        .find(is_there)
        .unwrap_or(wanted.to_owned());
    options.warn(format!(
        "{} exists already and stays as it is: the log of this run is {}",
        there.display(),
        options.out.display()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_the_extension() {
        for (path, second) in [
            ("run.lucce", "run-2.lucce"),
            ("/a.b/run", "/a.b/run-2"),
            ("x/run-1.lucce", "x/run-1-2.lucce"),
            (".lucce", ".lucce-2"),
        ] {
            assert_eq!(numbered(path.as_ref(), 1), PathBuf::from(path));
            assert_eq!(numbered(path.as_ref(), 2), PathBuf::from(second));
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lucce-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn options(folder: &Path, more: &str) -> Options {
        let out = folder.join("run.lucce");
        Options::parse(&format!("log=none,out={}{more}", out.display())).unwrap()
    }

    #[test]
    fn each_run_has_files_of_its_own() {
        let folder = folder("outputs");
        let names = |more| {
            let mut options = options(&folder, more);
            Outputs::create(&mut options, &Header::default()).map(|mut outputs| {
                outputs.keep();
                options.out.file_name().unwrap().to_owned()
            })
        };
        assert_eq!(names("").unwrap(), "run.lucce");
        assert_eq!(names("").unwrap(), "run-2.lucce");
        // One of the files beside the log is enough.
        fs::write(folder.join("run-3.lucce.events"), b"x").unwrap();
        assert_eq!(names(",record=stream").unwrap(), "run-4.lucce");
        assert!(!folder.join("run-3.lucce").exists());
        assert_eq!(names("").unwrap(), "run-3.lucce");
        fs::write(folder.join("run.lucce"), b"").unwrap();
        assert_eq!(names(",record=calls").unwrap(), "run-5.lucce");
        fs::write(folder.join("run.lucce"), b"precious").unwrap();
        assert!(names("").unwrap_err().contains("no log"));
        assert_eq!(fs::read(folder.join("run.lucce")).unwrap(), b"precious");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_run_that_does_not_start_leaves_nothing() {
        let folder = folder("nothing");
        let mut options = options(&folder, ",record=stream");
        drop(Outputs::create(&mut options, &Header::default()).unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn those_that_start_at_once_take_different_names() {
        let folder = folder("at-once");
        let create = || {
            let mut options = options(&folder, "");
            let mut outputs = Outputs::create(&mut options, &Header::default()).unwrap();
            outputs.keep();
            options.out
        };
        let names: Vec<PathBuf> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let different: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(different.len(), 8);
        fs::remove_dir_all(&folder).unwrap();
    }
}
