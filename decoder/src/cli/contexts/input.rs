//! A log or a recording: what its calls are.

use std::io::Read;
use std::path::{Path, PathBuf};

use lucce_decoder::escape::Text;
use lucce_decoder::{Code, Count, Labels, Origin, Profile, of_log, of_recording};
use lucce_kcontexts::Listener;
use lucce_recording::{MAGIC, Recording};
use lucce_tracelog::open_file;

use super::super::classes::Classes;
use super::super::progress::Bar;
use super::super::{End, Failure, about, complain, ending_of_all};

pub struct Input {
    pub path: PathBuf,
    file: Opened,
}

enum Opened {
    Log(Box<Profile>),
    Recording(Recording, Box<Code>),
}

impl Input {
    pub fn open(path: &Path, classes: &Classes) -> Result<Input, Failure> {
        let file = match is_recording(path) {
            true if !classes.is_open() => {
                let text = "--include and --exclude are for logs, not for recorded calls";
                return Err(Failure::Usage(about(path, text)));
            }
            true => {
                let failed = |e| Failure::Open(path.to_owned(), e);
                let recording = Recording::open(path).map_err(failed)?;
                let code = Code::from(&recording);
                Opened::Recording(recording, code.into())
            }
            false => Opened::Log(classes.open(path)?.into()),
        };
        let path = path.to_owned();
        Ok(Input { path, file })
    }

    pub fn is_recording(&self) -> bool {
        matches!(self.file, Opened::Recording(..))
    }

    pub fn code(&self) -> &Code {
        match &self.file {
            Opened::Log(profile) => &profile.code,
            Opened::Recording(_, code) => code,
        }
    }

    /// The file's name without its folder, as it is shown.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        Text(&name.to_string_lossy()).to_string()
    }

    /// Tells everything, or so many steps of a recording, and says how that ended.
    pub fn tell(
        &self,
        what: (Count, Origin),
        labels: &mut Labels,
        listener: &mut impl Listener,
        limit: u64,
    ) -> Result<End, Failure> {
        let failed = |e| Failure::Usage(about(&self.path, e));
        match &self.file {
            Opened::Log(profile) => {
                let bar = Bar::new("decoding", 2 * profile.events.ids().len() as u64);
                let tick = |more| bar.tick(more);
                let contexts = of_log(profile, what, labels, listener, &tick);
                let contexts = contexts.map_err(failed)?;
                drop(bar);
                Ok(ending_of_all(&self.path, &contexts, End::Fine))
            }
            Opened::Recording(recording, _) => {
                // A step takes about as many bits as its thread's buffer was packed to.
                let bar = Bar::new("reading", (recording.size() * 4).min(limit));
                let tick = |more| bar.tick(more);
                let told = of_recording(recording, what, labels, listener, limit, &tick);
                let told = told.map_err(failed)?;
                drop(bar);
                if told.is_cut {
                    complain(about(
                        &self.path,
                        format_args!("only the first {limit} steps"),
                    ));
                }
                if recording.is_cut() {
                    complain(about(&self.path, "the recording's limit was reached"));
                }
                let Some(damage) = told.damage else {
                    return Ok(End::Fine);
                };
                complain(about(&self.path, damage));
                Ok(End::Damaged)
            }
        }
    }
}

/// What cannot be read is no recording; opening it says why.
fn is_recording(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    let read = open_file(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == MAGIC
}
