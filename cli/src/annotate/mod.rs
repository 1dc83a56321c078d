//! `lucce annotate`: prints lines of a log file with the traces of their context ids.
//!
//! Reading order: `line_reader` (lines and ids), `run_traces` (traces from logs), `fleet_traces` (traces from a service),
//! `logging_frames` (removes frames of logging libraries).

mod fleet_traces;
mod line_reader;
mod logging_frames;
mod run_traces;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use lucce_decoder::{ContextNumber, StackFrame, StackTrace};

use super::classes::ClassFilterArgs;
use super::output::lock_stdout;
use super::{CommandError, CommandStatus, prefix_path};
use fleet_traces::FleetTraceSource;
use line_reader::{LinePiece, LineReader};
use run_traces::RunTraceSource;

/// Print the lines of a log file, each with the stack traces of its numbers (lucce:RUN:0x…) below it.
///
/// Lines are printed as they are read, unchanged. A number's run id chooses among several runs. Numbers of other runs are named, and
/// the exit code is 1. With --fleet a service decodes the numbers of all its runs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce annotate app.log run-1234.lucce
  lucce annotate app.log symbols/*.lsym > app.traces.log
  tail -f app.log | lucce annotate - run-1234.lucce --inline
  lucce annotate app.log --fleet http://127.0.0.1:7070")]
pub struct AnnotateArgs {
    /// File with the lines; `-`: standard input
    #[arg(value_name = "TEXT")]
    text: PathBuf,
    /// Logs of runs, or their symbols (`lucce symbols`)
    #[arg(required_unless_present = "fleet", value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Ask this decoding service (`lucce fleet serve`)
    #[arg(long, value_name = "URL", conflicts_with = "runs")]
    fleet: Option<String>,
    /// Read the service's token, one word, from this file [default: LUCCE_FLEET_TOKEN]
    #[arg(long, value_name = "FILE", requires = "fleet")]
    token_file: Option<PathBuf>,
    /// Replace each number by the innermost frame outside of the JDK, and print no traces
    #[arg(long)]
    inline: bool,
    #[command(flatten)]
    classes: ClassFilterArgs,
}

pub fn run(args: &AnnotateArgs) -> Result<CommandStatus, CommandError> {
    let knows = match &args.fleet {
        Some(url) => TraceSource::Fleet(FleetTraceSource::new(url, args.token_file.as_deref())?),
        None => TraceSource::Runs(RunTraceSource::from_paths(&args.runs, &args.classes)?),
    };
    let mut annotator = LineAnnotator {
        source: knows,
        inline: args.inline,
        out: lock_stdout(),
        below: Vec::new(),
        ends_open: false,
    };
    match args.text.as_os_str() == "-" {
        true => annotator.annotate_input(&args.text, io::stdin())?,
        false => {
            let file = File::open(&args.text);
            let file = file.map_err(|e| CommandError::Usage(prefix_path(&args.text, e)))?;
            annotator.annotate_input(&args.text, file)?;
        }
    }
    Ok(match &annotator.source {
        TraceSource::Runs(runs) => runs.report_outcome(),
        TraceSource::Fleet(fleet) => fleet.report_outcome(),
    })
}

/// The source of traces.
enum TraceSource<'a> {
    Runs(RunTraceSource<'a>),
    Fleet(FleetTraceSource),
}

struct LineAnnotator<'a, W: Write> {
    source: TraceSource<'a>,
    inline: bool,
    out: W,
    /// The ids of the current line, each once, in order.
    below: Vec<(ContextNumber, StackTrace)>,
    /// Whether the last output has no line break at its end.
    ends_open: bool,
}

impl<W: Write> LineAnnotator<'_, W> {
    fn annotate_input(&mut self, path: &Path, input: impl Read) -> Result<(), CommandError> {
        let mut lines = LineReader::new(input);
        // Lines that were already read, so that one request asks for all their ids.
        let mut held = Vec::new();
        loop {
            // The next line may take long, so the known lines are printed first.
            if lines.would_wait() {
                self.annotate_held(&mut held)?;
                self.out.flush()?;
            }
            let unread = |e| CommandError::Usage(prefix_path(path, e));
            let Some(piece) = lines.next_piece().map_err(unread)? else {
                break;
            };
            match self.source {
                TraceSource::Runs(_) => self.annotate_piece(&piece)?,
                TraceSource::Fleet(_) => held.push(piece.into_owned()),
            }
        }
        self.annotate_held(&mut held)?;
        self.write_traces()?;
        self.out.flush()?;
        Ok(())
    }

    fn annotate_held(&mut self, held: &mut Vec<LinePiece<'static>>) -> Result<(), CommandError> {
        if let TraceSource::Fleet(fleet) = &mut self.source {
            let numbers = held.iter().flat_map(|piece| piece.numbers());
            fleet.fetch_traces(numbers.map(|(_, number)| *number))?;
        }
        held.drain(..)
            .try_for_each(|piece| self.annotate_piece(&piece))
    }

    /// Annotates a line, or a part of a very long one.
    fn annotate_piece(&mut self, piece: &LinePiece<'_>) -> Result<(), CommandError> {
        let mut printed = 0;
        for (place, number) in piece.numbers() {
            let trace = match &mut self.source {
                TraceSource::Runs(runs) => runs.find_trace(*number, &mut self.out)?,
                TraceSource::Fleet(fleet) => fleet.find_trace(*number),
            };
            let Some(mut trace) = trace else {
                continue;
            };
            logging_frames::remove_logging_frames(&mut trace);
            if !self.inline {
                self.add_trace(*number, trace);
                continue;
            }
            if let Some(frame) = StackFrame::innermost_application_frame(&trace.frames) {
                self.out.write_all(piece.bytes_in(printed..place.start))?;
                write!(self.out, "{frame}")?;
                printed = place.end;
            }
        }
        self.out.write_all(piece.bytes_in(printed..piece.len()))?;
        self.ends_open = !piece.ends_line();
        match piece.ends_line() {
            true => self.write_traces(),
            false => Ok(()),
        }
    }

    fn add_trace(&mut self, number: ContextNumber, trace: StackTrace) {
        if self.below.iter().all(|(other, _)| *other != number) {
            self.below.push((number, trace));
        }
    }

    /// Writes the traces below the complete line.
    fn write_traces(&mut self) -> Result<(), CommandError> {
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
