//! `coverage`: what of the bytes that the VM allocates is counted, under `-Xint`, where code allocates what its bytecode says.
//!
//! `Constructs` does what Java code can do to allocate, each by itself, and says what the VM counted meanwhile for the thread;
//! compared with that is what the log has below the construct's frames, with `events=alloc=all`. Applications run with
//! `events=alloc`; their logs say what the VM counted. What is known to stay out is in [`OUT`] and in docs/reference/coverage.md.
//! `compiled_bytes` has the check of compiled code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::jdk::{self, Jdk};
use crate::workloads::{APPS, App};
use crate::{Outcome, build, compiled_bytes, paths, side_by_side, tools};

const LIMIT: Duration = Duration::from_secs(1800);
const PROGRAM: &str = "io.lucce.programs.Constructs";
/// The classes of the constructs: of all JDKs, and of those that have records.
const CONSTRUCTS: [&str; 2] = [
    "io.lucce.programs.Constructs$Way",
    "io.lucce.programs.NewerConstructs",
];
/// How often each construct is done.
const ROUNDS: &str = "200";
/// In percent of what the VM counted.
const CONSTRUCT: RangeInclusive<f64> = 99.5..=100.5;
const APPLICATION: RangeInclusive<f64> = 99.0..=101.0;
/// Applications of a quick check, each on one JDK.
const QUICK: [(&str, u32); 2] = [("H2Mix", jdk::OLD), ("H2Mix", jdk::NEW)];
/// Times a small run: what the VM makes for classes that are loaded, one to seven megabytes, is not to weigh.
const WORK: f64 = 3.0;
/// Of applications that load many classes for little work.
const MORE_WORK: [(&str, f64); 4] = [
    ("BatikRender", 8.0),
    ("JythonRun", 5.0),
    ("SpringOrders", 8.0),
    ("TomcatServe", 18.0),
];

/// What stays out, and at least how much is counted nevertheless.
struct Out {
    names: &'static [&'static str],
    least: f64,
    why: &'static str,
}

const OUT: [Out; 2] = [
    Out {
        names: &["EXCEPTION_MISSING"],
        least: 85.0,
        why: "texts that the VM makes for class loaders",
    },
    Out {
        names: &["KotlinCompile"],
        least: 98.0,
        why: "8 MB that the VM makes for 11000 classes",
    },
];

#[derive(clap::Args, Default)]
pub struct CoverageOptions {
    /// Run on this JDK only
    #[arg(long, value_name = "VERSION")]
    jdk: Option<u32>,
    /// Run this application only
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Run all constructs, and of the applications H2Mix on two JDKs only
    #[arg(long)]
    quick: bool,
    /// Compare only what the VM allocates in compiled code, with hooks and without
    #[arg(long, conflicts_with = "quick")]
    compiled: bool,
}

impl CoverageOptions {
    /// What belongs to every test run, on one JDK or on all.
    pub fn quick(jdk: Option<u32>) -> CoverageOptions {
        CoverageOptions {
            jdk,
            quick: true,
            ..CoverageOptions::default()
        }
    }

    fn wants(&self, run: &Run) -> bool {
        let jdk = run.jdk;
        let is_long = |app: &App| !QUICK.contains(&(app.name, jdk.version));
        match run.app {
            _ if self.compiled => false,
            None => self.app.is_none() && self.wants_jdk(jdk),
            Some(app) => self.wants_app(app, jdk) && !(self.quick && is_long(app)),
        }
    }

    fn wants_jdk(&self, jdk: &Jdk) -> bool {
        self.jdk.is_none_or(|version| version == jdk.version)
    }

    /// Whether the application is selected and can run.
    fn wants_app(&self, app: &App, jdk: &Jdk) -> bool {
        let is_selected = self.app.as_ref().is_none_or(|name| name == app.name);
        is_selected && app.runs_on(jdk) && self.wants_jdk(jdk)
    }
}

/// An application, or the constructs, on a JDK.
struct Run<'a> {
    app: Option<&'a App>,
    jdk: &'a Jdk,
}

/// What was compared.
struct Found {
    name: String,
    counted: u64,
    allocated: u64,
}

/// # Errors
/// Something is counted that was not allocated, or the other way round.
pub fn check(options: &CoverageOptions) -> Outcome {
    let jdks = jdk::all_tested()?;
    let all = [None].into_iter().chain(APPS.iter().map(Some));
    let runs: Vec<Run> = all
        .flat_map(|app| jdks.iter().map(move |jdk| Run { app, jdk }))
        .filter(|run| options.wants(run))
        .collect();
    let folder = paths::target().join("coverage");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    println!(
        "{:<28} {:>3} {:>9}",
        "construct, application", "JDK", "counted"
    );
    // Each row as soon as it is known: all of them take hours.
    let failed = side_by_side::map(runs, |run| match run.found(&folder) {
        Ok(found) => found.iter().filter_map(|found| run.told(found)).collect(),
        Err(message) => vec![message],
    });
    let failed = failed.concat();
    match failed.is_empty() {
        true if options.quick => Ok(()),
        true => compiled_bytes::check(|app, jdk| options.wants_app(app, jdk)),
        false => Err(format!("{} are off:\n{}", failed.len(), failed.join("\n"))),
    }
}

impl Run<'_> {
    /// Prints the row, if it is worth one; what is wrong with it.
    fn told(&self, found: &Found) -> Option<String> {
        let percent = found.percent();
        let (expected, why) = self.expected(&found.name);
        let is_fine = expected.contains(&percent);
        let (name, version) = (&found.name, self.jdk.version);
        if self.app.is_some() || !why.is_empty() || !is_fine {
            println!("{name:<28} {version:>3} {percent:>8.2}%  {why}");
        }
        (!is_fine).then(|| {
            let Found {
                counted, allocated, ..
            } = found;
            format!("{name} on {version}: {percent:.2}%, {counted} of {allocated} bytes")
        })
    }

    fn expected(&self, name: &str) -> (RangeInclusive<f64>, &'static str) {
        let usual = match self.app {
            Some(_) => APPLICATION,
            None => CONSTRUCT,
        };
        let out = OUT.iter().find(|out| out.names.contains(&name));
        let least = out.map_or(*usual.start(), |out| out.least);
        (least..=*usual.end(), out.map_or("", |out| out.why))
    }

    fn found(&self, folder: &Path) -> Result<Vec<Found>, String> {
        let name = format!(
            "{}-{}",
            self.app.map_or("Constructs", |app| app.name),
            self.jdk.version
        );
        let log = folder.join(format!("{name}.lucce"));
        let fail = |e: String| format!("{name}: {e}");
        let printed = self.java(&log).map_err(fail)?;
        let found = match self.app {
            None => constructs(&log, &printed),
            Some(app) => application(&log, app),
        };
        let found = found.map_err(fail)?;
        let _ = fs::remove_file(&log);
        Ok(found)
    }

    /// What the program prints.
    fn java(&self, log: &Path) -> Result<String, String> {
        let _ = fs::remove_file(log);
        let printed = log.with_extension("out");
        let file = File::create(&printed).map_err(|e| e.to_string())?;
        let errors = file.try_clone().map_err(|e| e.to_string())?;
        let events = if self.app.is_some() {
            "alloc"
        } else {
            "alloc=all"
        };
        let size = |app: &App| (work(app) * app.small).to_string();
        let mut java = self.jdk.java();
        java.current_dir(log.parent().unwrap_or(Path::new(".")));
        java.arg("-Xint").arg(format!(
            "-agentpath:{}=out={},events={events}",
            paths::agent().display(),
            log.display()
        ));
        match self.app {
            None => java
                .arg("-cp")
                .arg(programs(self.jdk)?)
                .args([PROGRAM, ROUNDS]),
            Some(app) => java
                .args(app.class_path_and_main())
                .args(["--iterations", "1", "--size", &size(app)])
                .args(app.operand()),
        };
        java.stdout(Stdio::from(file)).stderr(Stdio::from(errors));
        let ended = tools::within(LIMIT, &mut java);
        let text = fs::read_to_string(&printed).unwrap_or_default();
        match ended {
            Ok(status) if status.success() => Ok(text),
            Ok(status) => Err(format!("{status}\n{text}")),
            Err(e) => Err(format!("{e}\n{text}")),
        }
    }
}

impl Found {
    fn percent(&self) -> f64 {
        match (self.counted, self.allocated) {
            (0, 0) => 100.0,
            (counted, allocated) => counted as f64 * 100.0 / allocated as f64,
        }
    }
}

fn work(app: &App) -> f64 {
    let more = MORE_WORK.iter().find(|(name, _)| *name == app.name);
    more.map_or(WORK, |(_, times)| *times)
}

/// The class path of the constructs.
fn programs(jdk: &Jdk) -> Result<OsString, String> {
    match jdk.version {
        jdk::OLDEST => Ok(build::class_path_11(&build::programs_11()?)),
        _ => Ok(paths::harness().join("programs/target/programs.jar").into()),
    }
}

/// Lines of `NAME CLASS BYTES`, and the stacks below `measured` by the construct's class.
fn constructs(log: &Path, printed: &str) -> Result<Vec<Found>, String> {
    let mut lucce = Command::new(paths::lucce());
    lucce.args(["export", "--format", "collapsed", "--measure", "value"]);
    let stacks = tools::output(lucce.arg(log))?;
    let counted = by_construct(&String::from_utf8_lossy(&stacks));
    let found: Vec<Found> = printed
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [name, class, bytes] = words[..] else {
                return None;
            };
            Some(Found {
                name: name.to_owned(),
                counted: counted.get(class).copied().unwrap_or(0),
                allocated: bytes.parse().ok()?,
            })
        })
        .collect();
    match found.len() {
        0 => Err(format!("no construct was done\n{printed}")),
        _ => Ok(found),
    }
}

fn by_construct(stacks: &str) -> BTreeMap<String, u64> {
    let measured = format!("{PROGRAM}.measured");
    let is_construct = |frame: &&str| {
        let mut classes = CONSTRUCTS.iter();
        classes.any(|class| {
            frame
                .strip_prefix(class)
                .is_some_and(|rest| rest.starts_with('$'))
        })
    };
    let mut counted = BTreeMap::new();
    for line in stacks.lines() {
        let Some((stack, bytes)) = line.rsplit_once(' ') else {
            continue;
        };
        let mut frames = stack.split(';').skip_while(|frame| *frame != measured);
        let class = frames
            .find(is_construct)
            .and_then(|frame| frame.rsplit_once('.'));
        if let (Some((class, _)), Ok(bytes)) = (class, bytes.parse::<u64>()) {
            *counted.entry(class.to_owned()).or_default() += bytes;
        }
    }
    counted
}

fn application(log: &Path, app: &App) -> Result<Vec<Found>, String> {
    let mut lucce = Command::new(paths::lucce());
    let stats = tools::output(lucce.args(["stats", "--json"]).arg(log))?;
    let stats: Value = serde_json::from_slice(&stats).map_err(|e| e.to_string())?;
    let of = |key: &str| {
        let value = stats["coverage"][key].as_u64();
        value.ok_or_else(|| format!("the log says nothing of {key}: {}", stats["coverage_none"]))
    };
    Ok(vec![Found {
        name: app.name.to_owned(),
        counted: of("counted")?,
        allocated: of("allocated")?,
    }])
}

#[cfg(test)]
mod coverage_tests {
    use super::*;

    #[test]
    fn bytes_are_those_below_the_construct() {
        let stacks = "\
            M.main;io.lucce.programs.Constructs.say;io.lucce.programs.Constructs$Way$1.make 5\n\
            M.main;io.lucce.programs.Constructs.measured;io.lucce.programs.Constructs$Way$1.make;A.b 7\n\
            M.main;io.lucce.programs.Constructs.measured;io.lucce.programs.Constructs$Way$1.make 8\n\
            M.main;io.lucce.programs.Constructs.measured;io.lucce.programs.Constructs$Way$12.make;A 1\n\
            M.main;io.lucce.programs.Constructs.measured;io.lucce.programs.NewerConstructs$3.make;A 2\n";
        let counted = by_construct(stacks);
        let expected = [
            ("io.lucce.programs.Constructs$Way$1", 15),
            ("io.lucce.programs.Constructs$Way$12", 1),
            ("io.lucce.programs.NewerConstructs$3", 2),
        ];
        let expected = expected.map(|(class, bytes)| (class.to_owned(), bytes));
        assert_eq!(counted, BTreeMap::from(expected));
    }
}
