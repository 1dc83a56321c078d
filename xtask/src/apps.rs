//! `verify-apps`: real applications under the agent; numbers are compared with the JVM's own traces.
//!
//! Each application runs twice on each JDK. The first run counts its allocations, the second
//! compares every n-th of them, n chosen so that all runs together make as many comparisons as asked
//! for. Both must compute equal results. The first run is a short one without the JVM's slow compiler, and the second has
//! the JVM as it is: so the results of two compilers are compared, too.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::java_agents::{JAVA_AGENTS, JavaAgent};
use crate::jdk::{self, Jdk};
use crate::workloads::{APPS, App};
use crate::{Outcome, paths, side_by_side, tools};

const MANY_EVENTS: u64 = 10_000_000;
const FEW_EVENTS: u64 = 400_000;
const LIMIT: Duration = Duration::from_secs(900);

/// What of it belongs to every test run.
const SMALL: [&str; 5] = [
    "LuceneIndex",
    "H2Mix",
    "XalanTransform",
    "FopRender",
    "JavacCompile",
];

/// The one of them that runs on the other JDKs, too.
const SMALL_BETWEEN: &str = "H2Mix";

#[derive(clap::Args, Default)]
pub struct VerifyOptions {
    /// Approximate number of comparisons over all runs [default: 10000000; 400000 with --quick]
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// Run on this JDK only
    #[arg(long, value_name = "VERSION")]
    jdk: Option<u32>,
    /// Run this application only
    #[arg(long, value_name = "NAME")]
    app: Option<String>,
    /// Run little work beside this Java agent: empty, byte-buddy, jacoco, mockito, opentelemetry, or all of them in turn
    #[arg(long, value_name = "NAME", value_parser = JavaAgentChoice::from_name)]
    java_agent: Option<JavaAgentChoice>,
    /// Put the Java agent before lucce's on the command line
    #[arg(long)]
    first: bool,
    /// Run five applications with little work
    #[arg(long)]
    quick: bool,
}

impl VerifyOptions {
    /// What belongs to every test run, on one JDK or on all.
    pub fn quick(jdk: Option<u32>) -> VerifyOptions {
        VerifyOptions {
            jdk,
            quick: true,
            ..VerifyOptions::default()
        }
    }

    fn events(&self) -> u64 {
        self.events
            .unwrap_or(if self.quick { FEW_EVENTS } else { MANY_EVENTS })
    }

    fn java_agents(&self) -> &[&'static JavaAgent] {
        self.java_agent
            .as_ref()
            .map_or(&[], |choice| choice.0.as_slice())
    }

    fn wants(&self, app: &App, jdk: &Jdk) -> bool {
        let few = self.quick && !SMALL.contains(&app.name);
        let other = self.app.as_ref().is_some_and(|name| name != app.name);
        let other_jdk = self.jdk.is_some_and(|version| version != jdk.version);
        let is_one = ![jdk::OLD, jdk::NEW].contains(&jdk.version);
        let few = few || self.quick && is_one && app.name != SMALL_BETWEEN;
        !(few || other || other_jdk) && app.runs_on(jdk)
    }
}

/// Java agents that applications run beside.
#[derive(Clone)]
struct JavaAgentChoice(Vec<&'static JavaAgent>);

impl JavaAgentChoice {
    fn from_name(name: &str) -> Result<JavaAgentChoice, String> {
        let known = JAVA_AGENTS.iter();
        let found: Vec<_> = known
            .filter(|agent| [agent.name, "all"].contains(&name))
            .collect();
        if found.is_empty() {
            let names = JAVA_AGENTS.map(|agent| agent.name);
            return Err(format!("choose {} or all", names.join(", ")));
        }
        Ok(JavaAgentChoice(found))
    }
}

/// # Errors
/// A number does not decode to the JVM's trace, or an application does not compute what it should.
pub fn verify(options: &VerifyOptions) -> Outcome {
    let jdks = jdk::all_tested()?;
    let pairs = APPS
        .iter()
        .flat_map(|app| jdks.iter().map(move |jdk| (app, jdk)))
        .filter(|(app, jdk)| options.wants(app, jdk));
    let runs: Vec<(&App, &Jdk, Option<&JavaAgent>)> = match options.java_agents().is_empty() {
        true => pairs.map(|(app, jdk)| (app, jdk, None)).collect(),
        false => pairs
            .flat_map(|(app, jdk)| {
                options
                    .java_agents()
                    .iter()
                    .map(move |agent| (app, jdk, Some(*agent)))
            })
            .collect(),
    };
    let tools = jdks
        .iter()
        .find(|jdk| jdk.compiles())
        .ok_or("no JDK with its tools")?;
    if runs.is_empty() {
        let names = APPS.map(|app| app.name);
        return Err(format!(
            "nothing to run; the applications are {}",
            names.join(", ")
        ));
    }
    let folder = paths::target().join("verify-apps");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    println!(
        "{:<16} {:>3} {:<13} {:>12} {:>5} {:>10} {:>10} {:>6} {:>8}",
        "application",
        "JDK",
        "beside",
        "allocations",
        "every",
        "compared",
        "mismatches",
        "lost",
        "wall"
    );
    let each = (options.events() / runs.len() as u64).max(1);
    let results = side_by_side::map(runs, |(app, jdk, beside)| {
        let run = Run {
            app,
            jdk,
            beside,
            first: options.first,
            tools,
            folder: &folder,
            small: options.quick,
        };
        let result = run.verify(each);
        if let Err(message) = &result {
            println!("{message}");
        }
        result
    });
    total(&results)
}

struct Row {
    compared: u64,
    mismatches: u64,
    /// Events without a context.
    lost: u64,
}

fn total(results: &[Result<Row, String>]) -> Outcome {
    let rows = || results.iter().flatten();
    let compared: u64 = rows().map(|row| row.compared).sum();
    let mismatches: u64 = rows().map(|row| row.mismatches).sum();
    let lost: u64 = rows().map(|row| row.lost).sum();
    println!(
        "total: {compared} compared, {mismatches} mismatches, {lost} lost, {} runs",
        results.len()
    );
    let failed = results.iter().filter(|result| result.is_err()).count();
    match failed {
        0 => Ok(()),
        n => Err(format!("{n} of {} runs failed", results.len())),
    }
}

struct Run<'a> {
    app: &'a App,
    jdk: &'a Jdk,
    /// A Java agent, and whether it comes before ours on the command line.
    beside: Option<&'a JavaAgent>,
    first: bool,
    /// A JDK with its tools.
    tools: &'a Jdk,
    folder: &'a Path,
    small: bool,
}

impl Run<'_> {
    fn verify(&self, wanted: u64) -> Result<Row, String> {
        let beside = self.beside.map_or("", |agent| agent.name);
        let name = format!("{}-{}{beside}", self.app.name, self.jdk.version);
        let log = self.folder.join(format!("{name}.lucce"));
        let fail = |e: String| format!("{name}: {e}");
        let mut counted = self.jdk.light_java();
        let checksum = self.run(&mut counted, &log, "").map_err(fail)?;
        let allocations = recorded(&log).map_err(fail)?;
        let every = (allocations / wanted).max(1);
        let started = Instant::now();
        let options = format!(",verify={every}");
        let again = self.run(&mut self.jdk.java(), &log, &options);
        let again = again.map_err(fail)?;
        let wall = started.elapsed();
        let row = check(&log).map_err(fail)?;
        println!(
            "{:<16} {:>3} {beside:<13} {allocations:>12} {every:>5} {:>10} {:>10} {:>6} {:>6.1} s",
            self.app.name,
            self.jdk.version,
            row.compared,
            row.mismatches,
            row.lost,
            wall.as_secs_f64()
        );
        match () {
            () if again != checksum => Err(fail(format!(
                "computed {again}, without comparing {checksum}"
            ))),
            () if row.lost > 0 => Err(fail(format!("{} events were lost", row.lost))),
            () if row.compared == 0 => Err(fail("nothing was compared".into())),
            () if row.mismatches > 0 => {
                Err(fail(format!("see lucce check {}", paths::short(&log))))
            }
            () => {
                let _ = fs::remove_file(&log);
                Ok(row)
            }
        }
    }

    /// Runs the application in this JVM and gives the checksum that it prints.
    fn run(&self, java: &mut Command, log: &Path, options: &str) -> Result<String, String> {
        let _ = fs::remove_file(log);
        let printed = log.with_extension("out");
        let file = fs::File::create(&printed).map_err(|e| e.to_string())?;
        let errors = file.try_clone().map_err(|e| e.to_string())?;
        java.current_dir(self.folder);
        let ours = format!(
            "-agentpath:{}=out={},events=alloc{options}",
            paths::agent().display(),
            log.display()
        );
        let theirs = match self.beside {
            Some(beside) => beside.flags(self.folder, self.tools)?,
            None => Vec::new(),
        };
        match self.first {
            true => java.args(theirs).arg(ours),
            false => java.arg(ours).args(theirs),
        };
        java.args(self.app.class_path_and_main());
        java.args(["--iterations", "1", "--size", &self.size()])
            .args(self.app.operand());
        let ended = tools::within(
            LIMIT,
            java.stdout(Stdio::from(file)).stderr(Stdio::from(errors)),
        );
        let text = fs::read_to_string(&printed).unwrap_or_default();
        match ended {
            Ok(status) if status.success() => checksum(&text),
            Ok(status) => Err(format!("{status}\n{}", tail(&text))),
            Err(e) => Err(format!("{e}\n{}", tail(&text))),
        }
    }

    fn size(&self) -> String {
        let small = self.small || self.beside.is_some();
        if small { self.app.small } else { 1.0 }.to_string()
    }
}

fn checksum(printed: &str) -> Result<String, String> {
    let found = printed.rsplit_once("checksum ").map(|(_, rest)| rest);
    let word = found.and_then(|rest| rest.split([',', ' ', '\n']).next());
    word.map(str::to_owned)
        .ok_or_else(|| format!("no checksum was printed\n{}", tail(printed)))
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

fn recorded(log: &Path) -> Result<u64, String> {
    let stats = lucce("stats", log)?;
    stats["events"]["events"]
        .as_u64()
        .ok_or_else(|| "the log says no number of events".into())
}

fn check(log: &Path) -> Result<Row, String> {
    let checked = lucce("check", log)?;
    let count = |key: &str| checked[key].as_u64().unwrap_or_default();
    if count("unknown") > 0 {
        return Err(format!("{} numbers do not decode", count("unknown")));
    }
    if checked["ended"] != true {
        return Err("the log was not ended".into());
    }
    let stats = lucce("stats", log)?;
    Ok(Row {
        compared: count("compared"),
        mismatches: count("mismatches"),
        lost: stats["agent"]["events.lost"]
            .as_u64()
            .ok_or("the log says nothing of lost events")?,
    })
}

/// What a verb prints with `--json`; a finding is no failure of the command.
fn lucce(verb: &str, log: &Path) -> Result<Value, String> {
    let output = Command::new(paths::lucce())
        .arg(verb)
        .arg("--json")
        .arg(log)
        .output();
    let output = output.map_err(|e| format!("cannot start lucce: {e}"))?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!(
            "lucce {verb}: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("lucce {verb}: {e}"))
}
