//! `record`: recordings of the applications' calls, large ones, for `lucce lab replay` and tuning.

use std::fs;
use std::process::Stdio;

use crate::workloads::{APPS, App};
use crate::{Outcome, build, jdk, paths, tools};

#[derive(clap::Args)]
pub struct RecordOptions {
    /// Record this application only
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Maximum size of each recording
    #[arg(long, value_name = "SIZE", default_value = "32m")]
    limit: String,
}

/// Each application runs once, with little work; its recording is `target/recordings/NAME.calls`.
///
/// # Errors
/// An application fails, or there is none of this name.
pub fn run(options: &RecordOptions) -> Outcome {
    let wanted = |app: &&App| options.app.as_ref().is_none_or(|name| name == app.name);
    let apps: Vec<&App> = APPS.iter().filter(wanted).collect();
    if apps.is_empty() {
        let names = APPS.map(|app| app.name);
        return Err(format!("the applications are {}", names.join(", ")));
    }
    build::lab_agent()?;
    let folder = paths::target().join("recordings");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    apps.into_iter().try_for_each(|app| record(app, options))
}

fn record(app: &App, options: &RecordOptions) -> Outcome {
    let folder = paths::target().join("recordings");
    let log = folder.join(format!("{}.lucce", app.name));
    let recording = log.with_extension("lucce.calls");
    // Of a run that was interrupted: the agent would not replace it.
    for stale in [&log, &recording] {
        let _ = fs::remove_file(stale);
    }
    let mut java = jdk::runner()?.java();
    java.arg(format!(
        "-agentpath:{}=out={},calls=on,calls-limit={},limit=1g,log=warn",
        paths::lab_agent().display(),
        log.display(),
        options.limit
    ));
    java.args(app.class_path_and_main());
    java.args(["--iterations", "1", "--size", &app.small.to_string()]);
    java.current_dir(&folder).args(app.operand());
    tools::run(java.stdout(Stdio::null()))?;
    // The log is not what was asked for.
    fs::remove_file(&log).map_err(|e| e.to_string())?;
    let kept = folder.join(format!("{}.calls", app.name));
    fs::rename(&recording, &kept).map_err(|e| e.to_string())?;
    let bytes = fs::metadata(&kept).map_err(|e| e.to_string())?.len();
    println!("{:<16} {bytes:>12} bytes  {}", app.name, kept.display());
    Ok(())
}
