//! `lucce decode`: numbers to stack traces.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use lucce_decoder::{ContextId, Profile, StackFrame, StackTrace, Submissions};
use serde::Serialize;

use super::classes::Classes;
use super::output::{json, stdout};
use super::started::StartedBy;
use super::{End, Failure, complain, ending};

/// Prints the stack trace of a context's number, as the JVM prints it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  lucce decode run-1234.lucce 0x100000000002a
  grep -o 'ctx=0x[0-9a-f]*' app.log | cut -c5- | lucce decode run-1234.lucce --json -")]
pub struct Args {
    file: PathBuf,
    /// Numbers, decimal or 0x…; `-`: from standard input, one per line
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    classes: Classes,
    /// Go on in the context that started the thread (agent option events=thread)
    #[arg(long)]
    across_threads: bool,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    id: String,
    thread: Option<&'a str>,
    frames: &'a [StackFrame],
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<StartedBy>,
}

pub fn run(args: &Args) -> Result<End, Failure> {
    if let Some(bad) = args.ids.iter().find(|id| *id != "-" && parse(id).is_none()) {
        return Err(Failure::Usage(format!(
            "{bad} is not a number: decimal, 0x… or -"
        )));
    }
    let profile = args.classes.open(&args.file)?;
    let submissions = args.across_threads.then(|| profile.submissions());
    let log = Log {
        profile,
        submissions,
    };
    let mut end = End::Fine;
    let mut out = stdout();
    for id in &args.ids {
        let ended = match id.as_str() {
            "-" => decode_lines(&log, args, &mut out)?,
            id => decode(&log, args, id, &mut out)?,
        };
        end = end.max(ended);
    }
    out.flush()?;
    Ok(ending(&args.file, log.profile.damage.as_ref(), end))
}

/// The log, and where tasks were submitted if that is asked for.
struct Log {
    profile: Profile,
    submissions: Option<Submissions>,
}

impl Log {
    fn started_by(&self, id: ContextId) -> Option<StartedBy> {
        let submissions = self.submissions.as_ref()?;
        Some(StartedBy::new(&self.profile, submissions, id))
    }
}

fn decode_lines(log: &Log, args: &Args, out: &mut impl Write) -> io::Result<End> {
    let mut end = End::Fine;
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        let id = String::from_utf8_lossy(&line);
        if !id.trim().is_empty() {
            end = end.max(decode(log, args, id.trim(), out)?);
        }
    }
    Ok(end)
}

fn decode(log: &Log, args: &Args, id: &str, out: &mut impl Write) -> io::Result<End> {
    let Some(number) = parse(id) else {
        complain(format_args!("{id:?} is not a number: decimal or 0x…"));
        return Ok(End::Finding);
    };
    match log.profile.trace(number) {
        Ok(trace) if args.json => json_line(log, &trace, out)?,
        Ok(trace) => text(log, &trace, out)?,
        Err(error) => {
            // In order with what was decoded before it, where both go to one terminal.
            out.flush()?;
            complain(format_args!(
                "{} does not know {id} ({error})",
                args.file.display()
            ));
            return Ok(End::Finding);
        }
    }
    Ok(End::Fine)
}

fn json_line(log: &Log, trace: &StackTrace, out: &mut impl Write) -> io::Result<()> {
    let line = Line {
        id: trace.id.to_string(),
        thread: log.profile.only_thread(trace.id),
        frames: &trace.frames,
        started_by: log.started_by(trace.id),
    };
    json(out, &line)
}

fn text(log: &Log, trace: &StackTrace, out: &mut impl Write) -> io::Result<()> {
    write!(out, "context {}", trace.id)?;
    if let Some(thread) = log.profile.only_thread(trace.id) {
        write!(out, " in thread \"{thread}\"")?;
    }
    if let Some(class) = &trace.allocated {
        write!(out, ": new {class}")?;
    }
    write!(out, "\n{trace}")?;
    match log.started_by(trace.id) {
        Some(started_by) => started_by.write(out),
        None => Ok(()),
    }
}

fn parse(id: &str) -> Option<ContextId> {
    let hex = id.strip_prefix("0x").or_else(|| id.strip_prefix("0X"));
    let number = match hex {
        // `from_str_radix` would take a sign.
        Some(hex) if hex.starts_with('+') => return None,
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        // Java's long is signed: the largest numbers are negative there.
        None => id
            .parse()
            .or_else(|_| id.parse().map(i64::cast_unsigned))
            .ok()?,
    };
    Some(ContextId(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        let number = |id| parse(id).map(|id| id.0);
        assert_eq!(number("12"), Some(12));
        assert_eq!(number("0xFf"), Some(255));
        assert_eq!(number("0Xff"), Some(255));
        assert_eq!(number("18446744073709551615"), Some(u64::MAX));
        assert_eq!(number("-1"), Some(u64::MAX));
        let bad = [
            "",
            "0x",
            "0x+1",
            "0x-1",
            "ff",
            "1.0",
            "18446744073709551616",
        ];
        assert!(bad.iter().all(|id| number(id).is_none()));
    }
}
