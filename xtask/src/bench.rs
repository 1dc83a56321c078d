//! `bench`: the applications with and without agents, side by side.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lucce_bench::{JavaCommand, Metric, Plan, Program, Report, Step, Tools, Variant};

use crate::jdk::{self, Jdk};
use crate::workloads::{APPS, App};
use crate::{Outcome, build, place};

const LIMIT: Duration = Duration::from_secs(1800);

/// The same for all variants: a collector whose own work differs little from run to run.
const JVM: [&str; 3] = ["-XX:+UseParallelGC", "-Xms1g", "-Xmx1g"];

/// What was asked for.
pub struct Wish {
    apps: Vec<&'static App>,
    variants: Vec<Variant>,
    iterations: usize,
    warm_up: usize,
    rounds: usize,
    size: f64,
    threads: Option<usize>,
    jdk: Option<u32>,
    jvm: Vec<String>,
    out: PathBuf,
    build: bool,
}

impl Wish {
    /// # Errors
    /// An unknown option or a malformed value.
    pub fn parse(args: &[&str]) -> Result<Wish, String> {
        let quick = args.contains(&"--quick");
        let mut wish = Wish {
            apps: APPS.iter().collect(),
            variants: Vec::new(),
            iterations: if quick { 8 } else { 12 },
            warm_up: if quick { 5 } else { 6 },
            rounds: if quick { 2 } else { 3 },
            size: if quick { 0.5 } else { 1.0 },
            threads: None,
            jdk: None,
            jvm: Vec::new(),
            out: place::target().join("bench"),
            build: true,
        };
        let mut variants = Vec::new();
        let mut args = args.iter().copied();
        while let Some(key) = args.next() {
            let mut value = || args.next().ok_or(format!("a value is missing after {key}"));
            match key {
                "--quick" => {}
                "--no-build" => wish.build = false,
                "--apps" => wish.apps = apps(value()?)?,
                "--variants" | "--variant" => variants.push(value()?),
                "--iterations" => wish.iterations = number(key, value()?)?,
                "--warm-up" => wish.warm_up = number(key, value()?)?,
                "--rounds" => wish.rounds = number(key, value()?)?,
                "--size" => wish.size = number(key, value()?)?,
                "--threads" => wish.threads = Some(number(key, value()?)?),
                "--jdk" => wish.jdk = Some(number(key, value()?)?),
                "--jvm" => wish.jvm.push(value()?.to_owned()),
                "--out" => wish.out = value()?.into(),
                _ => return Err(format!("unknown option {key}")),
            }
        }
        if variants.is_empty() {
            variants.push("tracking,alloc");
        }
        wish.variants = Variant::list(variants)?;
        match wish.warm_up < wish.iterations && wish.rounds > 0 {
            true => Ok(wish),
            false => Err("nothing would be left to measure".into()),
        }
    }

    fn jdk(&self) -> Result<Jdk, String> {
        let Some(version) = self.jdk else {
            return jdk::runner();
        };
        let found = jdk::all().into_iter().find(|jdk| jdk.version == version);
        found.ok_or_else(|| format!("no JDK {version} on this machine"))
    }

    fn program(&self, app: &App, jdk: &Jdk) -> Program {
        let mut arguments = self.jvm.clone();
        if arguments.is_empty() {
            arguments = JVM.map(str::to_owned).into();
        }
        let mut arguments: Vec<_> = arguments.into_iter().map(Into::into).collect();
        arguments.extend(app.class_path_and_main());
        let mut option = |key: &str, value: String| {
            arguments.extend([key.into(), value.into()]);
        };
        option("--iterations", self.iterations.to_string());
        option("--size", (app.measured * self.size).to_string());
        if let Some(threads) = self.threads {
            option("--threads", threads.to_string());
        }
        arguments.extend(app.operand());
        Program {
            name: app.name.to_owned(),
            command: JavaCommand {
                java: jdk.tool("java").into(),
                arguments,
                folder: None,
                without_env: vec!["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"],
            },
        }
    }
}

fn apps(names: &str) -> Result<Vec<&'static App>, String> {
    let find = |name: &str| {
        let found = APPS.iter().find(|app| app.name == name);
        found.ok_or_else(|| {
            let known = APPS.map(|app| app.name).join(", ");
            format!("unknown application {name}; there are {known}")
        })
    };
    names.split(',').map(find).collect()
}

fn number<N: std::str::FromStr>(key: &str, value: &str) -> Result<N, String> {
    value
        .parse()
        .map_err(|_| format!("{key} {value}: a number was expected"))
}

/// # Errors
/// Something does not build, or a program ends badly or computes something else under an agent.
pub fn run(wish: &Wish) -> Outcome {
    if wish.build {
        build::all()?;
    }
    show(&measured(wish)?, &wish.out)
}

/// With what is built.
///
/// # Errors
/// There is no such JDK.
pub fn measured(wish: &Wish) -> Result<Report, String> {
    let jdk = wish.jdk()?;
    let (able, unable): (Vec<&App>, Vec<&App>) = wish
        .apps
        .iter()
        .partition(|app| jdk.compiles() || !app.compiles);
    for app in unable {
        println!("not run: {}: JDK {} has no compiler", app.name, jdk.version);
    }
    let plan = Plan {
        programs: able.iter().map(|app| wish.program(app, &jdk)).collect(),
        variants: wish.variants.clone(),
        rounds: wish.rounds,
        warm_up: wish.warm_up,
        limit: LIMIT,
        tools: Tools::from_env(Some(place::agent())),
        scratch: wish.out.join("scratch"),
    };
    let report = lucce_bench::measure(&plan, &tell);
    let _ = fs::remove_dir_all(&plan.scratch);
    Ok(report)
}

fn tell(step: &Step) {
    let ratio = step.ratio.map_or(String::new(), |r| format!("{r:.2}"));
    println!(
        "[{:>3}/{}] {:<16} {:<14} round {:>2}  {ratio}",
        step.done, step.total, step.program, step.variant, step.round
    );
}

/// Prints the tables and writes everything to files.
fn show(report: &Report, folder: &Path) -> Outcome {
    let write = |name: &str, text: String| {
        let file = folder.join(name);
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))
    };
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut tables = String::new();
    for metric in report.metrics() {
        tables += &format!("{}\n\n", lucce_bench::table(report, metric));
    }
    tables += &lucce_bench::remarks(report);
    for (metric, name) in [(Metric::Cpu, "cpu.svg"), (Metric::Wall, "wall.svg")] {
        write(name, lucce_bench::chart(report, metric))?;
    }
    write("report.json", report.json()?)?;
    println!("\n{tables}written to {}", place::short(folder));
    write("tables.md", tables)?;
    let failures = report.failures();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("failed runs:\n  {}", failures.join("\n  "))),
    }
}
