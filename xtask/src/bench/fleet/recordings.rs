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
    pub app: String,
    pub jdk: u32,
    pub log: PathBuf,
}

/// One run of each application; of the first one, which questions are asked of, one for each JDK, in which objects are followed,
/// too. Or the logs that the options name.
///
/// # Errors
/// An application is unknown, or fails; or the name of a log has another form.
pub fn take(options: &BenchOptions, folder: &Path) -> Result<Vec<Recording>, String> {
    if !options.logs.is_empty() {
        return options.logs.iter().map(|log| parse_name(log)).collect();
    }
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
                app: app.name.to_owned(),
                jdk: jdk.version,
                log,
            });
        }
    }
    Ok(recordings)
}

/// `SERVICE-JDK.lucce`.
fn parse_name(log: &Path) -> Result<Recording, String> {
    let name = log.file_name().and_then(|name| name.to_str());
    let parts = name
        .and_then(|name| name.strip_suffix(".lucce")?.rsplit_once('-'))
        .and_then(|(app, jdk)| Some((app, jdk.parse().ok()?)));
    let (app, jdk) =
        parts.ok_or_else(|| format!("{}: not named SERVICE-JDK.lucce", log.display()))?;
    Ok(Recording {
        app: app.to_owned(),
        jdk,
        log: log.to_owned(),
    })
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

#[cfg(test)]
mod recordings_tests {
    use super::*;

    #[test]
    fn logs_are_named_by_service_and_jdk() {
        let recording = parse_name(Path::new("logs/web-shop-17.lucce")).unwrap();
        assert_eq!((recording.app.as_str(), recording.jdk), ("web-shop", 17));
        for name in ["shop.lucce", "shop-17.log", "shop-new.lucce"] {
            assert!(parse_name(Path::new(name)).is_err(), "{name}");
        }
    }
}
