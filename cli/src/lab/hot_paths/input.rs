//! The calls of a log or of a recording.

use std::io::Read;
use std::path::{Path, PathBuf};

use lucce_callfeed::{
    CallLabels, CallMeasure, EventLeaf, feed_log_calls, feed_recorded_calls, recorded_code,
};
use lucce_decoder::escape::EscapedText;
use lucce_decoder::{CodeSymbols, Profile};
use lucce_kcontexts::CallListener;
use lucce_recording::{MAGIC, Recording};
use lucce_tracelog::open_file;

use crate::classes::ClassFilterArgs;
use crate::progress::ProgressMeter;
use crate::{CommandError, CommandStatus, prefix_path, print_diagnostic, report_contexts_damage};

pub struct HotPathsInput {
    pub path: PathBuf,
    file: OpenedInput,
}

enum OpenedInput {
    Log(Box<Profile>),
    Recording(Recording, Box<CodeSymbols>),
}

impl HotPathsInput {
    pub fn open(path: &Path, classes: &ClassFilterArgs) -> Result<HotPathsInput, CommandError> {
        let file = match is_recording(path) {
            true if !classes.is_open() => {
                let text = "--include and --exclude are for logs, not for recorded calls";
                return Err(CommandError::Usage(prefix_path(path, text)));
            }
            true => {
                let failed = |e| CommandError::Open(path.to_owned(), e);
                let recording = Recording::open(path).map_err(failed)?;
                let code = recorded_code(&recording);
                OpenedInput::Recording(recording, code.into())
            }
            false => OpenedInput::Log(classes.open_log(path)?.into()),
        };
        let path = path.to_owned();
        Ok(HotPathsInput { path, file })
    }

    /// What a measure counts: `calls`, `events`, or the unit of the values of the log's main kind of events.
    pub fn measure_name(&self, measure: CallMeasure) -> String {
        match (measure, &self.file) {
            (CallMeasure::Calls, _) => "calls".to_owned(),
            (CallMeasure::Value, OpenedInput::Log(profile)) => profile.main_kind().unit.to_string(),
            (CallMeasure::Events | CallMeasure::Value, _) => "events".to_owned(),
        }
    }

    pub fn is_recording(&self) -> bool {
        matches!(self.file, OpenedInput::Recording(..))
    }

    pub fn code_symbols(&self) -> &CodeSymbols {
        match &self.file {
            OpenedInput::Log(profile) => &profile.code,
            OpenedInput::Recording(_, code) => code,
        }
    }

    /// The shown file name, without its folder.
    pub fn file_name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        EscapedText(&name.to_string_lossy()).to_string()
    }

    /// Feeds all calls, or at most `limit` steps of a recording, and returns how that ended.
    pub fn feed_calls(
        &self,
        what: (CallMeasure, EventLeaf),
        labels: &mut CallLabels,
        listener: &mut impl CallListener,
        limit: u64,
    ) -> Result<CommandStatus, CommandError> {
        let failed = |e| CommandError::Usage(prefix_path(&self.path, e));
        match &self.file {
            OpenedInput::Log(profile) => {
                let bar =
                    ProgressMeter::new("decoding", 2 * profile.events.context_ids().len() as u64);
                let tick = |more| bar.tick(more);
                let contexts = feed_log_calls(profile, what, labels, listener, &tick);
                let contexts = contexts.map_err(failed)?;
                drop(bar);
                Ok(report_contexts_damage(
                    &self.path,
                    &contexts,
                    CommandStatus::Fine,
                ))
            }
            OpenedInput::Recording(recording, _) => {
                // A step takes about two bits in the packed file.
                let bar = ProgressMeter::new("reading", (recording.size() * 4).min(limit));
                let tick = |more| bar.tick(more);
                let outcome = feed_recorded_calls(recording, what, labels, listener, limit, &tick);
                let outcome = outcome.map_err(failed)?;
                drop(bar);
                if outcome.is_cut {
                    print_diagnostic(prefix_path(
                        &self.path,
                        format_args!("only the first {limit} steps"),
                    ));
                }
                if recording.is_cut() {
                    print_diagnostic(prefix_path(&self.path, "the recording's limit was reached"));
                }
                let Some(damage) = outcome.damage else {
                    return Ok(CommandStatus::Fine);
                };
                print_diagnostic(prefix_path(&self.path, damage));
                Ok(CommandStatus::Damaged)
            }
        }
    }
}

/// Whether the file is a recording; false for unreadable files, since opening them reports why.
fn is_recording(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    let read = open_file(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == MAGIC
}
