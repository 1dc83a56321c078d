//! The runs whose numbers are known. A run's file is read when a line has the first number of it.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use lucce_decoder::{DecodeError, Number, Profile, RunId, StackTrace, header_of};

use super::super::classes::Classes;
use super::super::decode::unknown;
use super::super::output::plural;
use super::super::{End, Failure, about, complain, ending};

/// Other runs are named when their first number comes, so many of them; then they are counted only.
const NAMED: usize = 20;

pub struct Runs<'a> {
    files: Vec<RunFile<'a>>,
    classes: &'a Classes,
    /// How many numbers each other run had, and numbers of these runs that no file explains.
    others: BTreeMap<RunId, u64>,
    unnamed: u64,
    unknown: BTreeMap<Number, u64>,
    end: End,
}

struct RunFile<'a> {
    path: &'a Path,
    run: RunId,
    /// `None`: it could not be read, which was told.
    profile: OnceCell<Option<Profile>>,
}

impl<'a> Runs<'a> {
    pub fn of(paths: &'a [PathBuf], classes: &'a Classes) -> Result<Self, Failure> {
        let files: Result<_, _> = paths.iter().map(|path| RunFile::of(path)).collect();
        Ok(Runs {
            files: files?,
            classes,
            others: BTreeMap::new(),
            unnamed: 0,
            unknown: BTreeMap::new(),
            end: End::Fine,
        })
    }

    /// What the number stands for; else that is told, in order with what was printed to `out`.
    pub fn trace(
        &mut self,
        number: Number,
        out: &mut impl Write,
    ) -> Result<Option<StackTrace>, Failure> {
        let Some(run) = number.run else {
            return Ok(None);
        };
        let (mut refused, mut is_of_another) = (None, true);
        for file in self.files.iter().filter(|file| file.run == run) {
            is_of_another = false;
            let (profile, end) = file.profile(self.classes);
            self.end = self.end.max(end);
            match profile.map(|profile| profile.trace(number.id)) {
                Some(Ok(trace)) => return Ok(Some(trace)),
                Some(Err(error)) => refused = Some((file.path, error)),
                None => {}
            }
        }
        self.end = self.end.max(End::Finding);
        match (refused, is_of_another) {
            (Some((path, error)), _) => self.unknown(path, number, &error, out)?,
            (None, true) => self.other(run, number, out)?,
            // Its file could not be read.
            (None, false) => {}
        }
        Ok(None)
    }

    fn unknown(
        &mut self,
        path: &Path,
        number: Number,
        error: &DecodeError,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        if let Some(times) = self.unknown.get_mut(&number) {
            *times += 1;
        } else if self.unknown.len() < NAMED {
            self.unknown.insert(number, 1);
            out.flush()?;
            complain(about(path, unknown(number, error)));
        } else {
            self.unnamed += 1;
        }
        Ok(())
    }

    fn other(&mut self, run: RunId, number: Number, out: &mut impl Write) -> Result<(), Failure> {
        if let Some(times) = self.others.get_mut(&run) {
            *times += 1;
        } else if self.others.len() < NAMED {
            self.others.insert(run, 1);
            out.flush()?;
            complain(format_args!(
                "{number} is a number of run {run}, of which no file was given"
            ));
        } else {
            self.unnamed += 1;
        }
        Ok(())
    }

    /// Says how much was left as it was, and how the command ends.
    pub fn end(&self) -> End {
        for (run, numbers) in self.others.iter().filter(|(_, numbers)| **numbers > 1) {
            complain(format_args!("{numbers} numbers of run {run} in all"));
        }
        for (number, times) in self.unknown.iter().filter(|(_, times)| **times > 1) {
            complain(format_args!("{number} stands there {times} times"));
        }
        if self.unnamed > 0 {
            let numbers = plural(self.unnamed, "more number");
            complain(format_args!(
                "{numbers} of other runs, or that no file explains"
            ));
        }
        self.end
    }
}

impl<'a> RunFile<'a> {
    fn of(path: &'a Path) -> Result<Self, Failure> {
        let header = header_of(path).map_err(|e| Failure::Open(path.to_owned(), e))?;
        let run = header.run.ok_or_else(|| {
            let message = "a log from before runs had ids: its numbers cannot be found in text; `lucce decode` takes them bare";
            Failure::Usage(about(path, message))
        })?;
        Ok(RunFile {
            path,
            run,
            profile: OnceCell::new(),
        })
    }

    /// The run, and what is wrong with its file, the first time.
    fn profile(&self, classes: &Classes) -> (Option<&Profile>, End) {
        let mut end = End::Fine;
        let profile = self
            .profile
            .get_or_init(|| match classes.open_for_numbers(self.path) {
                Ok(profile) => {
                    end = ending(self.path, profile.damage.as_ref(), End::Fine);
                    Some(profile)
                }
                Err(failure) => {
                    end = failure.tell();
                    None
                }
            });
        (profile.as_ref(), end)
    }
}
