//! Runs of the applications, which all other runs are made of.

use std::fs;
use std::path::{Path, PathBuf};

use crate::bench::apps;
use crate::bench::options::BenchOptions;
use crate::jdk::{self, Jdk};
use crate::workloads::App;
use crate::{Outcome, paths, tools};

/// A log of a run of an application.
pub struct Recording {
    pub app: &'static str,
    pub jdk: u32,
    pub log: PathBuf,
}

/// One run of each application; of the first one, which questions are asked of, one for each JDK, in which objects are followed,
/// too.
///
/// # Errors
/// An application is unknown, or fails.
pub fn take(options: &BenchOptions, folder: &Path) -> Result<Vec<Recording>, String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let jdks: Vec<Jdk> = match options.jdk_version() {
        Some(_) => vec![options.jdk()?],
        None => jdk::tested()?,
    };
    let first = jdks.first().ok_or("no JDK")?;
    let last = jdks.last().ok_or("no JDK")?;
    let mut recordings = Vec::new();
    let mut wanted = apps::wanted(options)?;
    // One that runs on each JDK first.
    wanted.sort_by_key(|app| app.wants_whole_jdk);
    for (at, app) in wanted.into_iter().enumerate() {
        let on = match at == 0 && first.version != last.version {
            true => vec![first, last],
            false => vec![first],
        };
        for jdk in on.into_iter().filter(|jdk| app.runs_on(jdk)) {
            let log = folder.join(format!("{}-{}.lucce", app.name, jdk.version));
            if options.build || !log.exists() {
                record(options, app, jdk, at == 0, &log)?;
            }
            recordings.push(Recording {
                app: app.name,
                jdk: jdk.version,
                log,
            });
        }
    }
    Ok(recordings)
}

fn record(options: &BenchOptions, app: &App, jdk: &Jdk, follows: bool, log: &Path) -> Outcome {
    println!("recording {} on JDK {}", app.name, jdk.version);
    // The agent replaces no log.
    let _ = fs::remove_file(log);
    let events = if follows { "alloc+leak" } else { "alloc" };
    let mut java = jdk.java();
    java.arg(format!(
        "-agentpath:{}=out={},events={events}",
        paths::agent().display(),
        log.display()
    ));
    java.args(options.jvm()).args(app.class_path_and_main());
    let size = app.small * options.size();
    java.args([
        "--iterations",
        &options.iterations().to_string(),
        "--size",
        &size.to_string(),
    ]);
    tools::run_quietly(java.args(app.operand()))
}
