//! `lucce lab replay`: replays recorded calls with an encoding, and compares it with the plain stack.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lucce_callfeed::recorded_code;
use lucce_callgraph::ContextFrame;
use lucce_decoder::CodeSymbols;
use lucce_decoder::escape::{EscapedLine, EscapedText};
use lucce_recording::Recording;
use lucce_replay::{
    ComparedProgram, ContextMismatch, EncodingComparison, EncodingOutcome, NAMES, RecordingSurvey,
    ReplaySettings, draw_comparison, render_tables, run as pass,
};
use serde::Serialize;

use crate::output::{format_plural, grouped, lock_stdout, write_chart, write_json};
use crate::progress::ProgressMeter;
use crate::{CommandError, CommandStatus, prefix_path, print_diagnostic};

/// Replay recorded calls with an encoding, and compare its numbers with the plain stack.
#[derive(clap::Args)]
#[command(
    long_about = "Replays recorded calls with an encoding, decodes every k-th number and compares it with the plain \
    stack. Mismatches are printed; the exit code is 1. With --compare, it runs every encoding of the papers on every \
    recording: PCCE's Table 2, DACCE's Table 1, the data of its Figures 9 and 10, and the cost of each encoding.",
    after_help = "Examples:
  java -agentpath:/path/to/liblucce-lab.so=out=run.lucce,calls=on -jar app.jar
  lucce lab replay run.lucce.calls --encoding dacce
  lucce lab replay --compare run.lucce.calls other.lucce.calls --plot charts"
)]
pub struct ReplayArgs {
    /// Recordings of calls
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Encoding: lucce, adaptive, static, cct, lucce-paper, pcce, pcce-hybrid, dacce or pcc
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "compare",
        conflicts_with = "compare"
    )]
    encoding: Option<String>,
    /// Compare all encodings, as tables
    #[arg(long)]
    compare: bool,
    /// Decode every K-th number; 0: none [default: 100, with --compare 1000]
    #[arg(long, value_name = "K")]
    check_every: Option<u64>,
    /// With --compare: also draw the comparison as SVG in this folder
    #[arg(long, value_name = "FOLDER", requires = "compare")]
    plot: Option<PathBuf>,
    /// Print one JSON object (per file, without --compare)
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ReplayArgs) -> Result<CommandStatus, CommandError> {
    match &args.encoding {
        Some(encoding) => replay_files(args, encoding),
        None => compare_encodings(args),
    }
}

/// A recording in memory, surveyed.
struct SurveyedRecording {
    recording: Recording,
    survey: RecordingSurvey,
}

fn open_recording(path: &Path) -> Result<SurveyedRecording, CommandError> {
    let failed = |e| CommandError::Open(path.to_owned(), e);
    let recording = Recording::open(path).map_err(failed)?;
    let bar = ProgressMeter::new("reading", 0);
    let survey = RecordingSurvey::from_recording(&recording, &|steps| bar.tick(steps));
    Ok(SurveyedRecording { recording, survey })
}

/// Reports damage, if any, and returns the command's result.
fn report_survey_damage(path: &Path, survey: &RecordingSurvey, mismatches: u64) -> CommandStatus {
    match &survey.damage {
        Some(damage) => {
            print_diagnostic(prefix_path(path, damage));
            CommandStatus::Damaged
        }
        None if mismatches > 0 => CommandStatus::Finding,
        None => CommandStatus::Fine,
    }
}

fn replay_files(args: &ReplayArgs, encoding: &str) -> Result<CommandStatus, CommandError> {
    if !NAMES.contains(&encoding) {
        let names = NAMES.join(", ");
        let message = format!("no encoding is called {encoding}; there are {names}");
        return Err(CommandError::Usage(message));
    }
    let mut end = CommandStatus::Fine;
    for file in &args.files {
        let replayed = match replay_file(args, encoding, file) {
            Err(CommandError::Output(e)) => return Err(e.into()),
            // An error does not prevent the replay of the other files.
            replayed => replayed.unwrap_or_else(CommandError::report_to_stderr),
        };
        end = end.max(replayed);
    }
    Ok(end)
}

#[derive(Serialize)]
struct ReplayResult<'a, O> {
    file: String,
    calls: u64,
    events: u64,
    contexts: u64,
    damaged: bool,
    #[serde(flatten)]
    outcome: &'a O,
}

fn replay_file(
    args: &ReplayArgs,
    encoding: &str,
    file: &Path,
) -> Result<CommandStatus, CommandError> {
    let SurveyedRecording { recording, survey } = open_recording(file)?;
    let settings = ReplaySettings {
        check_every: args.check_every.unwrap_or(100),
        timed: true,
    };
    let bar = ProgressMeter::new(
        NAMES.iter().find(|name| **name == encoding).unwrap_or(&""),
        survey.steps,
    );
    let outcome = pass(encoding, &recording, &survey, settings, &|steps| {
        bar.tick(steps)
    });
    drop(bar);
    let Some(outcome) = outcome else {
        return Err(CommandError::Usage(format!(
            "no encoding is called {encoding}"
        )));
    };
    let mut out = lock_stdout();
    if args.json {
        let replayed = ReplayResult {
            file: file.display().to_string(),
            calls: survey.calls,
            events: survey.events,
            contexts: survey.requested_contexts(),
            damaged: survey.damage.is_some(),
            outcome: &outcome.to_json(&survey),
        };
        write_json(&mut out, &replayed)?;
    } else {
        if let Some(mismatch) = &outcome.first {
            write_mismatch(mismatch, &recorded_code(&recording), &mut out)?;
        }
        write_outcome(file, &outcome, &survey, &mut out)?;
    }
    out.flush()?;
    Ok(report_survey_damage(file, &survey, outcome.mismatches))
}

fn write_mismatch(
    mismatch: &ContextMismatch,
    code: &CodeSymbols,
    out: &mut impl Write,
) -> io::Result<()> {
    let number = &mismatch.number;
    writeln!(
        out,
        "number {} differs: {:#x} {:?}",
        mismatch.at, number.id, number.extra_numbers
    )?;
    let mut trace = |title: &str, frames: &[ContextFrame]| {
        writeln!(out, "  {title}:")?;
        let mut frames = frames.iter();
        frames.try_for_each(|frame| writeln!(out, "\tat {}", code.resolve_frame(*frame)))
    };
    trace("the plain stack", &mismatch.plain)?;
    match &mismatch.decoded {
        Ok(frames) => trace("the number's trace", frames)?,
        Err(error) => writeln!(out, "  the number's trace: {error}")?,
    }
    writeln!(out)
}

fn write_outcome(
    file: &Path,
    outcome: &EncodingOutcome,
    survey: &RecordingSurvey,
    out: &mut impl Write,
) -> io::Result<()> {
    let statistics = &outcome.statistics;
    let file = file.display().to_string();
    let (file, name) = (EscapedLine(&file), outcome.name);
    let calls = format_plural(survey.calls, "call");
    let contexts = format_plural(survey.requested_contexts(), "context");
    writeln!(
        out,
        "{file}: {name}, {calls}, {} in {contexts}",
        format_plural(outcome.request_count, "number")
    )?;
    match outcome.decodes {
        true => writeln!(
            out,
            "  {} decoded, {} differ, {} lost",
            grouped(outcome.checked),
            grouped(outcome.mismatches),
            grouped(statistics.unnumbered)
        )?,
        false => writeln!(
            out,
            "  cannot be decoded; {} contexts have another one's number",
            grouped(statistics.collisions)
        )?,
    }
    writeln!(
        out,
        "  numbers kept: {:.2} on average, at most {}; bits: {:.1}, at most {}",
        outcome.numbers_mean, outcome.numbers_max, outcome.bits_mean, outcome.bits_max
    )?;
    writeln!(
        out,
        "  graph: {}, {}, largest number {}",
        format_plural(statistics.nodes, "node"),
        format_plural(statistics.edges, "edge"),
        grouped(statistics.max_id)
    )?;
    writeln!(
        out,
        "  stack: {}, at most {} deep",
        format_plural(statistics.stack_operations, "operation"),
        outcome.depths.max_depth()
    )?;
    writeln!(
        out,
        "  memory {} bytes, log {} bytes, {:.1} per context",
        grouped(statistics.memory_bytes),
        grouped(statistics.log_bytes),
        outcome.log_per_context(survey)
    )?;
    let micros = statistics.re_encoding_time.as_micros() as u64;
    writeln!(
        out,
        "  numbered anew {} times in {} us; {:.3}% of steps anchor",
        statistics.re_encodings,
        grouped(micros),
        outcome.anchoring_percent()
    )?;
    for (name, count) in &statistics.other_counts {
        writeln!(out, "  {name}: {}", grouped(*count))?;
    }
    writeln!(out, "  {:.1} ns per call", outcome.nanos_per_call)
}

fn compare_encodings(args: &ReplayArgs) -> Result<CommandStatus, CommandError> {
    let settings = ReplaySettings {
        check_every: args.check_every.unwrap_or(1000),
        timed: true,
    };
    let mut end = CommandStatus::Fine;
    let mut programs = Vec::new();
    for file in &args.files {
        let SurveyedRecording { recording, survey } = match open_recording(file) {
            Ok(opened) => opened,
            Err(failure) => {
                end = end.max(failure.report_to_stderr());
                continue;
            }
        };
        let bar = ProgressMeter::new("comparing", survey.steps * NAMES.len() as u64);
        let tick = |steps| bar.tick(steps);
        let program =
            ComparedProgram::from_outcomes(program_name(file), &recording, survey, settings, &tick);
        drop(bar);
        end = end.max(report_survey_damage(
            file,
            &program.survey,
            program.count_mismatches(),
        ));
        programs.push(program);
    }
    let comparison = EncodingComparison { programs };
    if let Some(folder) = &args.plot {
        write_chart(folder, "encodings.svg", &draw_comparison(&comparison))?;
    }
    let mut out = lock_stdout();
    match args.json {
        true => write_json(&mut out, &comparison)?,
        false => out.write_all(render_tables(&comparison).as_bytes())?,
    }
    out.flush()?;
    Ok(end)
}

/// The program's name: `dir/fop.lucce.calls` is `fop`.
fn program_name(file: &Path) -> String {
    let name = file
        .file_name()
        .unwrap_or(file.as_os_str())
        .to_string_lossy();
    let name = name.strip_suffix(".calls").unwrap_or(&name);
    let name = name.strip_suffix(".lucce").unwrap_or(name);
    EscapedText(name).to_string()
}

#[cfg(test)]
mod replay_tests {
    use super::*;

    #[test]
    fn a_difference_is_a_finding() {
        let (file, survey) = (Path::new("run.calls"), RecordingSurvey::default());
        assert!(matches!(
            report_survey_damage(file, &survey, 0),
            CommandStatus::Fine
        ));
        assert!(matches!(
            report_survey_damage(file, &survey, 1),
            CommandStatus::Finding
        ));
    }
}
