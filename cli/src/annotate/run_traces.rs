//! Traces from the logs of runs. A log is read when its run's first context id appears.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use lucce_decoder::{ContextNumber, DecodeError, Profile, RunId, StackTrace, read_header};

use super::super::classes::ClassFilterArgs;
use super::super::decode::unknown_number_message;
use super::super::output::format_plural;
use super::super::{CommandError, CommandStatus, prefix_path, print_diagnostic, report_damage};

/// Maximum number of other runs that are named at their first id; further ones are only counted.
const NAMED: usize = 20;

pub struct RunTraceSource<'a> {
    files: Vec<RunFile<'a>>,
    classes: &'a ClassFilterArgs,
    /// Number of ids of other runs, and of ids that no log explains, by run.
    others: BTreeMap<RunId, u64>,
    unnamed: u64,
    unknown: BTreeMap<ContextNumber, u64>,
    end: CommandStatus,
}

struct RunFile<'a> {
    path: &'a Path,
    run: RunId,
    /// `None`: the log could not be read, which was reported.
    profile: OnceCell<Option<Profile>>,
}

impl<'a> RunTraceSource<'a> {
    pub fn from_paths(
        paths: &'a [PathBuf],
        classes: &'a ClassFilterArgs,
    ) -> Result<Self, CommandError> {
        let files: Result<_, _> = paths.iter().map(|path| RunFile::from_path(path)).collect();
        Ok(RunTraceSource {
            files: files?,
            classes,
            others: BTreeMap::new(),
            unnamed: 0,
            unknown: BTreeMap::new(),
            end: CommandStatus::Fine,
        })
    }

    /// The trace of an id. Without one, reports that, in order with the output to `out`.
    pub fn find_trace(
        &mut self,
        number: ContextNumber,
        out: &mut impl Write,
    ) -> Result<Option<StackTrace>, CommandError> {
        let Some(run) = number.run else {
            return Ok(None);
        };
        let (mut refused, mut is_of_another) = (None, true);
        for file in self.files.iter().filter(|file| file.run == run) {
            is_of_another = false;
            let (profile, end) = file.open_profile(self.classes);
            self.end = self.end.max(end);
            match profile.map(|profile| profile.decode_trace(number.id)) {
                Some(Ok(trace)) => return Ok(Some(trace)),
                Some(Err(error)) => refused = Some((file.path, error)),
                None => {}
            }
        }
        self.end = self.end.max(CommandStatus::Finding);
        match (refused, is_of_another) {
            (Some((path, error)), _) => self.count_unknown_number(path, number, &error, out)?,
            (None, true) => self.count_other_run(run, number, out)?,
            // The run's log could not be read.
            (None, false) => {}
        }
        Ok(None)
    }

    fn count_unknown_number(
        &mut self,
        path: &Path,
        number: ContextNumber,
        error: &DecodeError,
        out: &mut impl Write,
    ) -> Result<(), CommandError> {
        if let Some(times) = self.unknown.get_mut(&number) {
            *times += 1;
        } else if self.unknown.len() < NAMED {
            self.unknown.insert(number, 1);
            out.flush()?;
            print_diagnostic(prefix_path(path, unknown_number_message(number, error)));
        } else {
            self.unnamed += 1;
        }
        Ok(())
    }

    fn count_other_run(
        &mut self,
        run: RunId,
        number: ContextNumber,
        out: &mut impl Write,
    ) -> Result<(), CommandError> {
        if let Some(times) = self.others.get_mut(&run) {
            *times += 1;
        } else if self.others.len() < NAMED {
            self.others.insert(run, 1);
            out.flush()?;
            print_diagnostic(format_args!(
                "{number} is a number of run {run}, of which no file was given"
            ));
        } else {
            self.unnamed += 1;
        }
        Ok(())
    }

    /// Reports ids that were left in the text, and returns the command's result.
    pub fn report_outcome(&self) -> CommandStatus {
        for (run, numbers) in self.others.iter().filter(|(_, numbers)| **numbers > 1) {
            print_diagnostic(format_args!("{numbers} numbers of run {run} in all"));
        }
        for (number, times) in self.unknown.iter().filter(|(_, times)| **times > 1) {
            print_diagnostic(format_args!("{number} stands there {times} times"));
        }
        if self.unnamed > 0 {
            let numbers = format_plural(self.unnamed, "more number");
            print_diagnostic(format_args!(
                "{numbers} of other runs, or that no file explains"
            ));
        }
        self.end
    }
}

impl<'a> RunFile<'a> {
    fn from_path(path: &'a Path) -> Result<Self, CommandError> {
        let header = read_header(path).map_err(|e| CommandError::Open(path.to_owned(), e))?;
        let run = header.run.ok_or_else(|| {
            let message = "a log from before runs had ids: its numbers cannot be found in text; `lucce decode` takes them bare";
            CommandError::Usage(prefix_path(path, message))
        })?;
        Ok(RunFile {
            path,
            run,
            profile: OnceCell::new(),
        })
    }

    /// The run's profile, and at the first call the result of reading it.
    fn open_profile(&self, classes: &ClassFilterArgs) -> (Option<&Profile>, CommandStatus) {
        let mut end = CommandStatus::Fine;
        let profile = self
            .profile
            .get_or_init(|| match classes.open_for_numbers(self.path) {
                Ok(profile) => {
                    end = report_damage(self.path, profile.damage.as_ref(), CommandStatus::Fine);
                    Some(profile)
                }
                Err(failure) => {
                    end = failure.report_to_stderr();
                    None
                }
            });
        (profile.as_ref(), end)
    }
}
