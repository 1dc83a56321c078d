//! `lucce annotate`: lines of a log file, with traces where numbers are.

mod fleet;
mod lines;
mod logging;
mod runs;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use lucce_decoder::{Number, StackFrame, StackTrace};

use super::classes::Classes;
use super::output::stdout;
use super::{End, Failure, about};
use fleet::Fleet;
use lines::{Lines, Piece};
use runs::Runs;

/// Prints the lines of a log file with the stack trace below each line that holds a number of the form lucce:RUN:0x…
///
/// Lines are printed as they are read, unchanged. Of several runs, each number's is chosen by the run's id that it has; a number of
/// any other run is named, and the command ends with 1. With --fleet a service decodes the numbers of all runs that it knows.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce annotate app.log run-1234.lucce
  lucce annotate app.log symbols/*.lsym > app.traces.log
  tail -f app.log | lucce annotate - run-1234.lucce --inline
  lucce annotate app.log --fleet http://127.0.0.1:7070")]
pub struct Args {
    /// The lines; `-`: standard input
    text: PathBuf,
    /// Logs of runs, or their symbols (lucce symbols)
    #[arg(required_unless_present = "fleet", value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// A decoding service (lucce fleet serve) that knows the numbers of all its runs; its token is in LUCCE_FLEET_TOKEN
    #[arg(long, value_name = "URL", conflicts_with = "runs")]
    fleet: Option<String>,
    /// The token of the service is what this file has, one word
    #[arg(long, value_name = "FILE", requires = "fleet")]
    token_file: Option<PathBuf>,
    /// In each number's place the innermost frame of the application, which is no class of the JDK; nothing below the line
    #[arg(long)]
    inline: bool,
    #[command(flatten)]
    classes: Classes,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    let knows = match &args.fleet {
        Some(url) => Knows::Fleet(Fleet::new(url, args.token_file.as_deref())?),
        None => Knows::Runs(Runs::of(&args.runs, &args.classes)?),
    };
    let mut annotator = Annotator {
        knows,
        inline: args.inline,
        out: stdout(),
        below: Vec::new(),
        ends_open: false,
    };
    match args.text.as_os_str() == "-" {
        true => annotator.all(&args.text, io::stdin())?,
        false => {
            let file = File::open(&args.text);
            let file = file.map_err(|e| Failure::Usage(about(&args.text, e)))?;
            annotator.all(&args.text, file)?;
        }
    }
    Ok(match &annotator.knows {
        Knows::Runs(runs) => runs.end(),
        Knows::Fleet(fleet) => fleet.end(),
    })
}

/// Who knows what a number stands for.
enum Knows<'a> {
    Runs(Runs<'a>),
    Fleet(Fleet),
}

struct Annotator<'a, W: Write> {
    knows: Knows<'a>,
    inline: bool,
    out: W,
    /// What the line holds, each once, in order.
    below: Vec<(Number, StackTrace)>,
    /// What was printed last has no line break behind it.
    ends_open: bool,
}

impl<W: Write> Annotator<'_, W> {
    fn all(&mut self, path: &Path, input: impl Read) -> Result<(), Failure> {
        let mut lines = Lines::new(input);
        // What was read already, so that a service is asked once for all of it.
        let mut held = Vec::new();
        loop {
            // The next line may be long in coming: what is known is shown before.
            if lines.would_wait() {
                self.held(&mut held)?;
                self.out.flush()?;
            }
            let unread = |e| Failure::Usage(about(path, e));
            let Some(piece) = lines.next().map_err(unread)? else {
                break;
            };
            match self.knows {
                Knows::Runs(_) => self.piece(&piece)?,
                Knows::Fleet(_) => held.push(piece.into_owned()),
            }
        }
        self.held(&mut held)?;
        self.traces()?;
        self.out.flush()?;
        Ok(())
    }

    fn held(&mut self, held: &mut Vec<Piece<'static>>) -> Result<(), Failure> {
        if let Knows::Fleet(fleet) = &mut self.knows {
            let numbers = held.iter().flat_map(|piece| piece.numbers());
            fleet.prepare(numbers.map(|(_, number)| *number))?;
        }
        held.drain(..).try_for_each(|piece| self.piece(&piece))
    }

    /// A line, or a part of one that is too long.
    fn piece(&mut self, piece: &Piece<'_>) -> Result<(), Failure> {
        let mut printed = 0;
        for (place, number) in piece.numbers() {
            let found = match &mut self.knows {
                Knows::Runs(runs) => runs.trace(*number, &mut self.out)?,
                Knows::Fleet(fleet) => fleet.trace(*number),
            };
            let Some(mut trace) = found else {
                continue;
            };
            logging::leave_out(&mut trace);
            if !self.inline {
                self.keep(*number, trace);
                continue;
            }
            if let Some(frame) = StackFrame::of_the_application(&trace.frames) {
                self.out.write_all(piece.part(printed..place.start))?;
                write!(self.out, "{frame}")?;
                printed = place.end;
            }
        }
        self.out.write_all(piece.part(printed..piece.len()))?;
        self.ends_open = !piece.ends_line();
        match piece.ends_line() {
            true => self.traces(),
            false => Ok(()),
        }
    }

    fn keep(&mut self, number: Number, trace: StackTrace) {
        if self.below.iter().all(|(other, _)| *other != number) {
            self.below.push((number, trace));
        }
    }

    /// Below the line that is complete.
    fn traces(&mut self) -> Result<(), Failure> {
        if self.below.is_empty() {
            return Ok(());
        }
        if self.ends_open {
            writeln!(self.out)?;
        }
        for (number, trace) in self.below.drain(..) {
            write!(self.out, "\tcontext {number}  {}\n{trace}", trace.stack)?;
        }
        Ok(())
    }
}
