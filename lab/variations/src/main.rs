//! variations LOG FOLDER NAME RELEASE FIRST COUNT START_MS STEP_MS
//!
//! Writes the logs of runs FIRST, FIRST + 1, … to FOLDER, each STEP_MS behind the one before, and prints their ids.

use std::path::Path;
use std::process::ExitCode;

use lucce_tracelog::InMemoryLog;
use lucce_variations::{RunVariation, write_variation};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("variations: {what}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<(), String> {
    let [log, folder, name, numbers @ ..] = args else {
        return Err("LOG FOLDER NAME RELEASE FIRST COUNT START_MS STEP_MS".into());
    };
    let numbers: Result<Vec<u64>, _> = numbers.iter().map(|number| number.parse()).collect();
    let numbers = numbers.map_err(|e| e.to_string())?;
    let [release, first, count, start, step] = numbers[..] else {
        return Err("RELEASE FIRST COUNT START_MS STEP_MS: five numbers".into());
    };
    let recorded = InMemoryLog::open(log).map_err(|e| format!("{log}: {e}"))?;
    for at in 0..count {
        let variation = RunVariation {
            number: first + at,
            release: u32::try_from(release).map_err(|e| e.to_string())?,
            start_ms: start + at * step,
        };
        let to = Path::new(folder).join(format!("{name}-{}.lucce", variation.number));
        let run = write_variation(&recorded, name, variation, &to);
        println!("{}", run.map_err(|e| format!("{}: {e}", to.display()))?);
    }
    Ok(())
}
