//! The files of a run: created at the start, all of them new.
//!
//! An existing file of the same name stays unchanged, because it may be the log of another run or of a running JVM.
//! If it is a log or empty, this run's files get a number:
//!
//! ```text
//! run.lucce exists ─► run-2.lucce ─► run-3.lucce …   with run-3.lucce.events, if requested
//! ```
//!
//! If two JVMs start at the same time, the system creates a file for only one of them. A JVM that has the process id
//! of an earlier one, in a container or after an `exec`, gets a number as well.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lucce_tracelog::{LogHeader, LogWriter, MAGIC};

use crate::core::EventStreamer;
use crate::options::AgentOptions;
#[cfg(feature = "lab")]
use lucce_recording::RecordingWriter;

/// Maximum number that is tried.
const MAX_NUMBER: u32 = 100_000;

/// New files, which are removed if the agent does not start.
pub struct OutputFiles {
    pub log: Option<LogWriter>,
    pub streamer: Option<EventStreamer>,
    /// With `calls=on`.
    #[cfg(feature = "lab")]
    pub calls: Option<CallsFile>,
    created: CreatedFiles,
}

/// A recording of calls that no thread has written to yet.
#[cfg(feature = "lab")]
pub struct CallsFile {
    pub writer: RecordingWriter,
    pub path: PathBuf,
}

#[cfg(feature = "lab")]
impl CallsFile {
    fn create(path: &Path, limit: u64) -> io::Result<CallsFile> {
        let writer = RecordingWriter::create(path, limit)?;
        let path = path.to_owned();
        Ok(CallsFile { writer, path })
    }

    /// The path that belongs to a log: the log's name and `.calls`.
    fn path_beside(log: &Path) -> PathBuf {
        let mut path = log.as_os_str().to_owned();
        path.push(".calls");
        path.into()
    }
}

impl OutputFiles {
    /// Creates the files that the options request, and sets the log's name in the options.
    ///
    /// # Errors
    /// One line for the user: why nothing can be written there.
    pub fn create_files(
        options: &mut AgentOptions,
        header: &LogHeader,
    ) -> Result<OutputFiles, String> {
        let wanted = options.out.clone();
        for number in 1..=MAX_NUMBER {
            options.out = numbered_path(&wanted, number);
            match try_create(options, header) {
                Ok(outputs) => {
                    if number > 1 {
                        warn_renumbered(options, &wanted);
                    }
                    return Ok(outputs);
                }
                Err(OutputError::AlreadyExists) if number > 1 => {}
                Err(OutputError::AlreadyExists) => check_is_log(&wanted)?,
                Err(OutputError::CannotCreate(path, why)) => {
                    return Err(format!("cannot write {}: {why}", path.display()));
                }
            }
        }
        let wanted = wanted.display();
        Err(format!(
            "cannot write {wanted}: it exists, as do {MAX_NUMBER} more of the name"
        ))
    }

    /// Keeps the files, because the agent has started.
    pub fn keep_files(&mut self) {
        self.created.0.clear();
    }
}

enum OutputError {
    /// A file of one of the names exists.
    AlreadyExists,
    CannotCreate(PathBuf, io::Error),
}

/// Creates all files under one name, or none.
fn try_create(options: &AgentOptions, header: &LogHeader) -> Result<OutputFiles, OutputError> {
    let mut created = CreatedFiles::default();
    let path = &options.out;
    let file = created.record_created(path, lucce_tracelog::new_file(path))?;
    let log = LogWriter::from_file(file, header, options.limit).map_err(to_output_error(path))?;
    let mut streamer = None;
    #[cfg(feature = "lab")]
    let mut calls = None;
    if options.stream {
        let path = lucce_stream::events_path(path);
        let stream = EventStreamer::create(&path, header, options.stream_limit);
        streamer = Some(created.record_created(&path, stream)?);
    }
    #[cfg(feature = "lab")]
    if options.calls {
        let path = CallsFile::path_beside(path);
        let writer = CallsFile::create(&path, options.calls_limit);
        calls = Some(created.record_created(&path, writer)?);
    }
    Ok(OutputFiles {
        log: Some(log),
        streamer,
        #[cfg(feature = "lab")]
        calls,
        created,
    })
}

fn to_output_error(path: &Path) -> impl Fn(io::Error) -> OutputError {
    move |error| match error.kind() {
        io::ErrorKind::AlreadyExists => OutputError::AlreadyExists,
        _ => OutputError::CannotCreate(path.to_owned(), error),
    }
}

/// Files that this run has created. Those left in the list are removed when it is dropped.
#[derive(Default)]
struct CreatedFiles(Vec<PathBuf>);

impl CreatedFiles {
    fn record_created<T>(&mut self, path: &Path, created: io::Result<T>) -> Result<T, OutputError> {
        let created = created.map_err(to_output_error(path))?;
        self.0.push(path.to_owned());
        Ok(created)
    }
}

impl Drop for CreatedFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // If it cannot be removed, a log without events stays.
            let _ = fs::remove_file(path);
        }
    }
}

/// `run.lucce`, `run-2.lucce`, …
fn numbered_path(path: &Path, number: u32) -> PathBuf {
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

/// Whether another log may be created beside the existing file.
fn check_is_log(path: &Path) -> Result<(), String> {
    let refused = |why: String| Err(format!("cannot write {}: {why}", path.display()));
    match detect_file_kind(path) {
        Ok(ExistingFileKind::Log | ExistingFileKind::Empty) => Ok(()),
        Ok(ExistingFileKind::Other) => {
            refused("there is a file that is no log; it stays as it is".into())
        }
        Ok(ExistingFileKind::Special) => refused("not an ordinary file".into()),
        Err(error) => refused(format!("it exists and cannot be read: {error}")),
    }
}

enum ExistingFileKind {
    Log,
    /// Empty, or removed meanwhile: another JVM may just have created it.
    Empty,
    Other,
    Special,
}

fn detect_file_kind(path: &Path) -> io::Result<ExistingFileKind> {
    match fs::metadata(path) {
        // A link without a target, or a file that was removed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(ExistingFileKind::Empty);
        }
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Ok(ExistingFileKind::Special),
        Ok(_) => {}
    }
    // Without O_NONBLOCK, a file that has become a pipe would block the program.
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let mut begin = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    Ok(match &begin[..] {
        [] => ExistingFileKind::Empty,
        begin if begin == MAGIC => ExistingFileKind::Log,
        _ => ExistingFileKind::Other,
    })
}

/// Warns that the files got a number: a user who reads the requested file would read another run's.
fn warn_renumbered(options: &mut AgentOptions, wanted: &Path) {
    let stream = options.stream.then(|| lucce_stream::events_path(wanted));
    #[cfg(feature = "lab")]
    let calls = options.calls.then(|| CallsFile::path_beside(wanted));
    #[cfg(not(feature = "lab"))]
    let calls = None;
    let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
    let there = [Some(wanted.to_owned()), stream, calls]
        .into_iter()
        .flatten();
    let there = there
        .into_iter()
        .find(is_there)
        .unwrap_or(wanted.to_owned());
    options.add_warning(format!(
        "{} exists already and stays as it is: the log of this run is {}",
        there.display(),
        options.out.display()
    ));
}

#[cfg(test)]
mod output_files_tests {
    use super::*;

    #[test]
    fn numbers_come_before_the_extension() {
        for (path, second) in [
            ("run.lucce", "run-2.lucce"),
            ("/a.b/run", "/a.b/run-2"),
            ("x/run-1.lucce", "x/run-1-2.lucce"),
            (".lucce", ".lucce-2"),
        ] {
            assert_eq!(numbered_path(path.as_ref(), 1), PathBuf::from(path));
            assert_eq!(numbered_path(path.as_ref(), 2), PathBuf::from(second));
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lucce-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn options(folder: &Path, more: &str) -> AgentOptions {
        let out = folder.join("run.lucce");
        AgentOptions::parse(&format!("log=none,out={}{more}", out.display())).unwrap()
    }

    #[test]
    fn each_run_has_files_of_its_own() {
        let folder = folder("outputs");
        let names = |more| {
            let mut options = options(&folder, more);
            OutputFiles::create_files(&mut options, &LogHeader::default()).map(|mut outputs| {
                outputs.keep_files();
                options.out.file_name().unwrap().to_owned()
            })
        };
        assert_eq!(names("").unwrap(), "run.lucce");
        assert_eq!(names("").unwrap(), "run-2.lucce");
        // One existing file beside the log is enough.
        fs::write(folder.join("run-3.lucce.events"), b"x").unwrap();
        assert_eq!(names(",stream=on").unwrap(), "run-4.lucce");
        assert!(!folder.join("run-3.lucce").exists());
        assert_eq!(names("").unwrap(), "run-3.lucce");
        fs::write(folder.join("run.lucce"), b"").unwrap();
        assert_eq!(names(",calls=on").unwrap(), "run-5.lucce");
        fs::write(folder.join("run.lucce"), b"precious").unwrap();
        assert!(names("").unwrap_err().contains("no log"));
        assert_eq!(fs::read(folder.join("run.lucce")).unwrap(), b"precious");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_run_that_does_not_start_leaves_nothing() {
        let folder = folder("nothing");
        let mut options = options(&folder, ",stream=on");
        drop(OutputFiles::create_files(&mut options, &LogHeader::default()).unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn those_that_start_at_once_take_different_names() {
        let folder = folder("at-once");
        let create = || {
            let mut options = options(&folder, "");
            let mut outputs =
                OutputFiles::create_files(&mut options, &LogHeader::default()).unwrap();
            outputs.keep_files();
            options.out.clone()
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
