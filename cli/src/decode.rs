//! `lucce decode`: decodes context ids to stack traces.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use lucce_decoder::escape::EscapedText;
use lucce_decoder::{
    ContextId, ContextNumber, DecodeError, FrameDisplay, Profile, RunId, StackFrame, StackTrace,
    SubmissionIndex, index_submissions,
};
use serde::Serialize;

use super::classes::ClassFilterArgs;
use super::output::{lock_stdout, write_json};
use super::thread_start::ThreadStartTraces;
use super::{CommandError, CommandStatus, prefix_path, print_diagnostic, report_damage};

/// Print the stack traces of context numbers, as the JVM prints traces.
///
/// A number of the form lucce:RUN:0x… names its run and is found in any text; numbers of other runs than the log's are refused. A
/// bare number belongs to the log's run.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce decode run-1234.lucce lucce:0123456789abcdef:0x100000000002a
  lucce decode run-1234.lucce 'WARN pool: lucce:0123456789abcdef:0x100000000002a leaked'
  lucce decode run-1234.lucce --json - < app.log")]
pub struct DecodeArgs {
    /// Log of the run, or its symbols (`lucce symbols`)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Text with numbers of the form lucce:RUN:0x…, or one bare number, decimal or 0x…; `-`: standard input
    #[arg(required = true, value_name = "TEXT", allow_negative_numbers = true)]
    texts: Vec<String>,
    #[command(flatten)]
    classes: ClassFilterArgs,
    /// Continue in the context that started the thread (agent option events=thread)
    #[arg(long)]
    across_threads: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DecodedLine<'a> {
    /// The id as given: a bare number does not name its run.
    id: String,
    run: Option<String>,
    /// The content id of the trace.
    stack: String,
    thread: Option<&'a str>,
    frames: &'a [StackFrame],
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<ThreadStartTraces>,
}

pub fn run(args: &DecodeArgs) -> Result<CommandStatus, CommandError> {
    let is_given = |text: &String| text == "-" || !ContextNumber::parse_all(text).is_empty();
    if let Some(bad) = args.texts.iter().find(|text| !is_given(text)) {
        return Err(CommandError::Usage(no_number_message(bad)));
    }
    let profile = args.classes.open_for_numbers(&args.file)?;
    let submissions = args.across_threads.then(|| index_submissions(&profile));
    let log = LogDecoder {
        path: &args.file,
        profile,
        submissions,
        json: args.json,
    };
    let mut end = CommandStatus::Fine;
    let mut out = lock_stdout();
    for text in &args.texts {
        let ended = match text.as_str() {
            "-" => log.decode_lines(&mut out)?,
            text => log.decode_all(text, &mut out)?,
        };
        end = end.max(ended);
    }
    out.flush()?;
    Ok(report_damage(&args.file, log.profile.damage.as_ref(), end))
}

/// The message for a context id that the log's run never assigned.
pub fn unknown_number_message(number: ContextNumber, error: &DecodeError) -> String {
    match number.run {
        _ if number.id == ContextId::UNKNOWN => format!(
            "{number} is no context: a program gets 0 where there is no agent, or where the agent does not know the context"
        ),
        Some(_) => format!(
            "no context of this run has the number {number}, which may have been cut short ({error})"
        ),
        None => format!(
            "no context of this run has the number {number}, which may have been cut short or be of another run \
             ({error}); `lucce report` prints numbers with their run, lucce:RUN:0x…"
        ),
    }
}

fn no_number_message(text: &str) -> String {
    format!("{text:?} holds no number: lucce:RUN:0x…, or 0x… or a decimal number alone")
}

/// The log, and its submissions with `--across-threads`.
struct LogDecoder<'a> {
    path: &'a Path,
    profile: Profile,
    submissions: Option<SubmissionIndex>,
    json: bool,
}

impl LogDecoder<'_> {
    /// Decodes each line; skips lines of a log file without a context id.
    fn decode_lines(&self, out: &mut impl Write) -> io::Result<CommandStatus> {
        let (mut end, mut found) = (CommandStatus::Fine, false);
        for line in io::stdin().lock().split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let numbers = ContextNumber::parse_all(&line);
            found |= !numbers.is_empty();
            for number in &numbers {
                end = end.max(self.decode_number(*number, out)?);
            }
            // A single word was meant to be a context id.
            let words = line.split_whitespace().count();
            if numbers.is_empty() && words == 1 {
                out.flush()?;
                print_diagnostic(no_number_message(line.trim()));
                (end, found) = (end.max(CommandStatus::Finding), true);
            }
        }
        if !found {
            print_diagnostic(
                "standard input holds no number: lucce:RUN:0x…, or bare ones, one on each line",
            );
            end = end.max(CommandStatus::Finding);
        }
        Ok(end)
    }

    fn decode_all(&self, text: &str, out: &mut impl Write) -> io::Result<CommandStatus> {
        let mut end = CommandStatus::Fine;
        for number in ContextNumber::parse_all(text) {
            end = end.max(self.decode_number(number, out)?);
        }
        Ok(end)
    }

    fn decode_number(
        &self,
        number: ContextNumber,
        out: &mut impl Write,
    ) -> io::Result<CommandStatus> {
        let refused = match (number.run, self.profile.decode_trace(number.id)) {
            (Some(run), _) if self.profile.header.run != Some(run) => {
                self.foreign_run_message(number, run)
            }
            (_, Ok(trace)) => {
                match self.json {
                    true => self.write_json_line(number, &trace, out)?,
                    false => self.write_text(number, &trace, out)?,
                }
                return Ok(CommandStatus::Fine);
            }
            (_, Err(error)) => unknown_number_message(number, &error),
        };
        // Keeps the order with earlier output if both go to one terminal.
        out.flush()?;
        print_diagnostic(prefix_path(self.path, refused));
        Ok(CommandStatus::Finding)
    }

    /// The message for a context id of another run.
    fn foreign_run_message(&self, number: ContextNumber, run: RunId) -> String {
        match self.profile.header.run {
            Some(own) => format!("the log of run {own}; {number} is a number of run {run}"),
            None => format!(
                "a log without a run's id, older than those; {number} is a number of run {run}"
            ),
        }
    }

    fn started_by(&self, id: ContextId) -> Option<ThreadStartTraces> {
        let submissions = self.submissions.as_ref()?;
        Some(ThreadStartTraces::new(&self.profile, submissions, id))
    }

    fn write_json_line(
        &self,
        number: ContextNumber,
        trace: &StackTrace,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let line = DecodedLine {
            id: number.to_string(),
            run: number.run.map(|run| run.to_string()),
            stack: trace.stack.to_string(),
            thread: self.profile.single_thread_name(trace.id),
            frames: &trace.frames,
            started_by: self.started_by(trace.id),
        };
        write_json(out, &line)
    }

    fn write_text(
        &self,
        number: ContextNumber,
        trace: &StackTrace,
        out: &mut impl Write,
    ) -> io::Result<()> {
        write!(out, "context {number}  {}", trace.stack)?;
        if let Some(thread) = self.profile.single_thread_name(trace.id) {
            write!(out, " in thread \"{}\"", EscapedText(thread))?;
        }
        if let Some(class) = &trace.allocated {
            write!(out, ": new {}", EscapedText(class))?;
        }
        write!(out, "\n{trace}")?;
        match self.started_by(trace.id) {
            Some(started_by) => started_by.write(FrameDisplay::All, out),
            None => Ok(()),
        }
    }
}
