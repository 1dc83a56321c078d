//! `lucce bench`: measures the agent's cost for a program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, process};

use lucce_bench::{Centre, JavaCommand, Outcome, Plan, Program, Report, Step, Tools, Variant};
use lucce_options::units::parse_interval;

use super::output;
use super::progress::ProgressMeter;
use super::{CommandError, CommandStatus, agent_path};

/// Run a Java program with and without agents, in turns, and compare their cost.
#[derive(clap::Args)]
#[command(after_help = "Example:
  lucce bench --rounds 5 --variants tracking,alloc --plot charts -- java -jar app.jar

Compared are the CPU time of the program's own threads (without threads of JIT compilers, collector,
JVM and agents), wall time, the CPU time of the whole process, and its peak memory. The first run of each
variant is dropped. Lines of the program such as
  iteration 3: 1219 ms wall, 1892 ms cpu, checksum 0a1b2c3d
give times per iteration, without each run's first iterations; the checksums must be equal. The CPU time of
an iteration begins at the line before, or at a line such as
  iteration 3 begins

Variants: none (always runs), xshare-off, tracking, tracking-app, alloc, paper, cct, jfr;
async-alloc and async-alloc-1 if ASYNC_PROFILER names libasyncProfiler.so.")]
pub struct BenchArgs {
    /// Variants to run, separated by commas
    #[arg(long, value_name = "LIST", default_value = "tracking,alloc")]
    variants: String,
    /// Run another variant: its name and the JVM's flags; {lucce} is the agent's library, {out} a file; repeatable
    #[arg(long = "variant", value_name = "NAME=FLAGS")]
    own: Vec<String>,
    /// Number of runs per variant
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Number of iterations dropped at the start of each run
    #[arg(long, value_name = "N", default_value_t = 1)]
    warm_up: u32,
    /// Maximum time of a run
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_interval)]
    timeout: Duration,
    /// Print all measurements as one JSON object
    #[arg(long)]
    json: bool,
    /// Draw the ratios of CPU time as SVG in this folder
    #[arg(long, value_name = "FOLDER")]
    plot: Option<PathBuf>,
    /// The java command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn run(args: &BenchArgs) -> Result<CommandStatus, CommandError> {
    let plan = build_plan(args)?;
    let bar = ProgressMeter::new("measuring", 0);
    let report = lucce_bench::measure(&plan, &|step: &Step, _: &Report| {
        bar.set_progress(step.done as u64, step.total as u64);
    });
    drop(bar);
    // The folder is a temporary one, which the system may have removed.
    let _ = fs::remove_dir_all(&plan.scratch);
    print_report(args, &report)?;
    if let Some(folder) = &args.plot {
        let chart = lucce_bench::chart(&report, report.first());
        output::write_chart(folder, "cost.svg", &chart)?;
    }
    Ok(report_status(&report))
}

fn build_plan(args: &BenchArgs) -> Result<Plan, CommandError> {
    let (java, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| usage_error("no command"))?;
    let own = args.own.iter().map(String::as_str);
    let mut wanted = vec![args.variants.as_str()];
    for variant in own {
        match variant.contains('=') {
            true => wanted.push(variant),
            false => {
                return Err(usage_error(format!(
                    "--variant {variant}: must be NAME=FLAGS"
                )));
            }
        }
    }
    Ok(Plan {
        programs: vec![Program {
            name: program_name(arguments).unwrap_or_else(|| java.to_string_lossy().into_owned()),
            command: JavaCommand {
                java: java.clone(),
                arguments: arguments.to_vec(),
                folder: None,
                without_env: Vec::new(),
            },
            whole: false,
            turns: false,
            warm_up: None,
        }],
        variants: Variant::list(wanted).map_err(usage_error)?,
        rounds: args.rounds as usize,
        warm_up: args.warm_up as usize,
        centre: Centre::Median,
        limit: args.timeout,
        tools: Tools::from_env(Some(agent_path::agent_beside()?)),
        setting: BTreeMap::new(),
        scratch: env::temp_dir().join(format!("lucce-bench-{}", process::id())),
    })
}

/// The program's name: the jar, the module, or the main class.
fn program_name(arguments: &[OsString]) -> Option<String> {
    const WITH_VALUE: [&str; 8] = [
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--add-modules",
        "--add-opens",
        "--add-exports",
    ];
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if WITH_VALUE.iter().any(|option| argument == option) {
            arguments.next();
        } else if !argument.as_encoded_bytes().starts_with(b"-") {
            let file = Path::new(argument).file_name().unwrap_or(argument);
            return Some(file.to_string_lossy().into_owned());
        }
    }
    None
}

fn print_report(args: &BenchArgs, report: &Report) -> Result<(), CommandError> {
    let mut out = output::lock_stdout();
    if args.json {
        writeln!(out, "{}", report.json().map_err(usage_error)?)?;
    } else {
        writeln!(out, "{}\n", lucce_bench::side_by_side(report))?;
        for metric in report.metrics() {
            writeln!(out, "{}\n", lucce_bench::table(report, metric))?;
        }
        write!(out, "{}", lucce_bench::remarks(report))?;
    }
    Ok(out.flush()?)
}

/// If the baseline does not run, the command is wrong; this is not a finding about the agent.
fn report_status(report: &Report) -> CommandStatus {
    let no_baseline =
        |row: &lucce_bench::Row| !matches!(row.outcomes.first(), Some(Outcome::Measured(_)));
    match () {
        () if report.rows.iter().any(no_baseline) => CommandStatus::Unusable,
        () if !report.failures().is_empty() => CommandStatus::Finding,
        () => CommandStatus::Fine,
    }
}

fn usage_error(message: impl Into<String>) -> CommandError {
    CommandError::Usage(message.into())
}

#[cfg(test)]
mod bench_tests {
    use super::*;

    #[test]
    fn a_program_is_called_by_its_jar_or_main_class() {
        let name = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            program_name(&words)
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(name("-Xmx1g -jar lib/app.jar --port 80"), some("app.jar"));
        assert_eq!(
            name("-cp a.jar:b.jar -ea org.app.Main x"),
            some("org.app.Main")
        );
        assert_eq!(name("-version"), None);
    }
}
