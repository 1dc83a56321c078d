//! The options of `bench`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lucce_bench::{JavaCommand, Plan, Program, Tools, Variant};

use super::{LIMIT, async_profiler, method_variants};
use crate::jdk::{self, Jdk};
use crate::{arguments, fleet, paths};

/// What all variants have: a collector whose own work differs little from run to run.
pub const DEFAULT_FLAGS: [&str; 3] = ["-XX:+UseParallelGC", "-Xms1g", "-Xmx1g"];

/// What the suite is run with: the paper's figure, beside what others have since.
const FIGURE_5: &str = "tracking,alloc,cct,paper,async-alloc,async-alloc-1,jfr";

/// Datasets of so many runs.
const RUNS: [u64; 4] = [10, 100, 1_000, 10_000];

/// Which programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Programs {
    Apps,
    /// The suite's jar.
    Dacapo(PathBuf),
    Micro,
    /// Calls of named methods.
    Methods,
    Footprint,
    Fleet,
}

/// The command line of `bench`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArguments {
    /// Run the DaCapo suite of this jar as the paper ran it
    #[arg(long, value_name = "JAR", group = "programs", help_heading = PROGRAMS)]
    dacapo: Option<PathBuf>,
    /// Run JMH benchmarks, construct by construct: call depth, polymorphism, recursion, …
    #[arg(long, group = "programs", help_heading = PROGRAMS)]
    micro: bool,
    /// Measure named methods: 1 to 1,000 of them, beside Flight Recorder's timing and tracing of methods (--jdk 25)
    #[arg(long, group = "programs", help_heading = PROGRAMS)]
    methods: bool,
    /// Measure start-up, compilation, memory, 1 to 8 threads and the size of the log
    #[arg(long, group = "programs", help_heading = PROGRAMS)]
    footprint: bool,
    /// Measure datasets of many runs (adding, compacting, questions, decoding) in time, memory and bytes; the runs are variations of recorded applications
    #[arg(long, group = "programs", help_heading = PROGRAMS)]
    fleet: bool,
    /// Run these only: applications; with --dacapo benchmarks; with --micro benchmarks whose names contain one; with --footprint startup, framework, compiler, threads, log
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = PROGRAMS)]
    apps: Vec<String>,

    /// Variants, or one variant of your own as 'NAME=FLAGS' ({lucce} and {out} stand for the agent and its log) [default: tracking,alloc; with --dacapo the seven variants of a figure]; `none` is always compared
    #[arg(long, visible_alias = "variant", value_name = "A,B", help_heading = VARIANTS, long_help = variants_help())]
    variants: Vec<String>,

    /// Run less work and fewer rounds
    #[arg(long, help_heading = DURATION)]
    quick: bool,
    /// JVMs per program and variant [default: 3; DaCapo 1]
    #[arg(long, value_name = "N", help_heading = DURATION)]
    rounds: Option<usize>,
    /// Iterations per JVM [default: 45; DaCapo 31]
    #[arg(long, value_name = "N", help_heading = DURATION)]
    iterations: Option<usize>,
    /// Iterations at the start that are not measured [default: 30; DaCapo 1]
    #[arg(long, value_name = "N", help_heading = DURATION)]
    warm_up: Option<usize>,
    /// Factor of work per iteration [default: 0.3]
    #[arg(long, value_name = "FACTOR", help_heading = DURATION)]
    size: Option<f64>,
    /// Size of the suite's benchmarks
    #[arg(long, value_name = "SIZE", requires = "dacapo", value_parser = SIZES, help_heading = DURATION)]
    dacapo_size: Option<String>,
    /// Run the suite in about this time: each benchmark has an equal share, and a short run without an agent chooses its iterations (the first half is dropped) and its size, `default` or `small`
    #[arg(long, value_name = "N", requires = "dacapo", conflicts_with_all = ["iterations", "warm_up"], value_parser = clap::value_parser!(u64).range(1..), help_heading = DURATION)]
    minutes: Option<u64>,
    /// Maximum duration of a run in seconds; a longer run is ended and reported as failed
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT.as_secs(), help_heading = DURATION)]
    limit: u64,
    /// Threads of programs with a choice
    #[arg(long, value_name = "N", help_heading = DURATION)]
    threads: Option<usize>,
    /// Numbers of runs per dataset, ascending; a dataset without space, or one that would take longer than --limit, is left out and reported
    #[arg(long, value_name = "N,M", value_delimiter = ',', requires = "fleet", default_values_t = RUNS, help_heading = DURATION)]
    runs: Vec<u64>,
    /// Other engines to ask the last dataset's questions
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = fleet::ENGINES, requires = "fleet", help_heading = PROGRAMS)]
    engines: Vec<String>,
    /// Logs to make runs of, instead of recording applications: SERVICE-JDK.lucce
    #[arg(long, value_name = "A,B", value_delimiter = ',', requires = "fleet", conflicts_with = "apps", help_heading = PROGRAMS)]
    logs: Vec<PathBuf>,
    /// Keep the datasets that grow on an S3 server in memory, on this machine
    #[arg(long, requires = "fleet", help_heading = ENVIRONMENT)]
    s3: bool,

    /// Java version to run on [default: the oldest from 17 on]
    #[arg(long, value_name = "VERSION", help_heading = ENVIRONMENT)]
    jdk: Option<u32>,
    /// JVM flag of all variants, repeatable [default: ParallelGC and a heap of 1 GB]
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true, help_heading = ENVIRONMENT)]
    jvm: Vec<String>,
    /// Folder for reports [default: target/bench]
    #[arg(long, value_name = "DIR", help_heading = ENVIRONMENT)]
    out: Option<PathBuf>,
    /// Measure the previous build
    #[arg(long, help_heading = ENVIRONMENT)]
    no_build: bool,
}

const PROGRAMS: &str = "Programs (default: the applications of java-harness/apps)";
const VARIANTS: &str = "Variants";
const DURATION: &str = "Amount of work";
const ENVIRONMENT: &str = "Environment";

const EXAMPLES: &str = "\
In each round every variant runs once, in a JVM of its own; results are ratios to the same program without an agent.
Tables are printed; tables, report.json and charts are written to the folder for reports after each JVM.
docs/internals/performance.md explains how to read them.

Examples:
  cargo xtask bench --quick --apps H2Mix,XalanTransform
  cargo xtask bench --variants tracking,alloc,paper,cct,jfr,async-alloc-1
  cargo xtask bench --variant 'old=-agentpath:old/liblucce.so=events=none,out={out}'
  cargo xtask bench --dacapo dacapo-23.11-chopin.jar --apps xalan,h2 --dacapo-size small --limit 600
  cargo xtask bench --dacapo dacapo-23.11-chopin.jar --minutes 90 --variants tracking,alloc
  cargo xtask bench --micro --apps CallDepth
  cargo xtask bench --methods --jdk 25
  cargo xtask bench --footprint --apps startup --jdk 25
  cargo xtask bench --footprint --apps framework --variants tracking,alloc,alloc-app,leak
  cargo xtask bench --fleet --runs 10,100 --apps H2Mix,SpringOrders
  cargo xtask bench --fleet --runs 10000 --logs shop-17.lucce,shop-25.lucce --s3 --engines duckdb,spark";

const SIZES: [&str; 5] = ["small", "default", "large", "vlarge", "huge"];

fn variants_help() -> String {
    let names: Vec<String> = Variant::known().into_iter().map(|v| v.name).collect();
    format!(
        "Variants, or one variant of your own as 'NAME=FLAGS' ({{lucce}} and {{out}} stand for the agent and its log) \
         [default: tracking,alloc; with --dacapo the seven variants of a figure]; `none` is always compared\n\n\
         Known variants: {}",
        names.join(", ")
    )
}

/// The arguments of `bench`, checked and completed.
pub struct BenchOptions {
    pub kind: Programs,
    /// Programs' names; empty: all.
    pub names: Vec<String>,
    pub variants: Vec<Variant>,
    iterations: Option<usize>,
    warm_up: Option<usize>,
    rounds: Option<usize>,
    size: Option<f64>,
    /// The suite's own word for how much a benchmark does.
    pub dacapo_size: Option<String>,
    /// What the whole suite may take.
    pub minutes: Option<Duration>,
    limit: Duration,
    pub threads: Option<usize>,
    /// So many runs a dataset has, one number after the other.
    pub runs: Vec<u64>,
    /// Other engines that are asked what the dataset is asked.
    pub engines: Vec<String>,
    /// What runs are made of, instead of recordings of applications.
    pub logs: Vec<PathBuf>,
    /// Datasets that grow are on an S3 server.
    pub on_s3: bool,
    jdk: Option<u32>,
    jvm: Vec<String>,
    pub out: PathBuf,
    pub build: bool,
    pub quick: bool,
}

impl BenchOptions {
    /// # Errors
    /// An unknown option or a malformed value.
    pub fn parse(arguments: &[&str]) -> Result<BenchOptions, String> {
        arguments::parse_arguments(arguments).and_then(BenchOptions::new)
    }

    /// # Errors
    /// A malformed value, or nothing to measure.
    pub fn new(arguments: BenchArguments) -> Result<BenchOptions, String> {
        let kind = match arguments {
            BenchArguments {
                dacapo: Some(jar), ..
            } => Programs::Dacapo(jar),
            BenchArguments { micro: true, .. } => Programs::Micro,
            BenchArguments { methods: true, .. } => Programs::Methods,
            BenchArguments {
                footprint: true, ..
            } => Programs::Footprint,
            BenchArguments { fleet: true, .. } => Programs::Fleet,
            _ => Programs::Apps,
        };
        if !arguments.runs.is_sorted() || arguments.runs.first() == Some(&0) {
            return Err("--runs: give ascending numbers above 0".into());
        }
        let default = match kind {
            Programs::Dacapo(_) => vec![FIGURE_5.to_owned()],
            Programs::Methods => method_variants::default_variants(),
            _ => vec!["tracking,alloc".to_owned()],
        };
        let variants = match arguments.variants.is_empty() {
            true => &default,
            false => &arguments.variants,
        };
        let options = BenchOptions {
            variants: Variant::list(variants.iter().map(String::as_str))?,
            kind,
            names: arguments.apps,
            iterations: arguments.iterations,
            warm_up: arguments.warm_up,
            rounds: arguments.rounds,
            size: arguments.size,
            dacapo_size: arguments.dacapo_size,
            minutes: arguments
                .minutes
                .map(|minutes| Duration::from_secs(60 * minutes)),
            limit: Duration::from_secs(arguments.limit),
            threads: arguments.threads,
            runs: arguments.runs,
            engines: arguments.engines,
            logs: arguments.logs,
            on_s3: arguments.s3,
            jdk: arguments.jdk,
            jvm: arguments.jvm,
            out: arguments
                .out
                .unwrap_or_else(|| paths::target().join("bench")),
            build: !arguments.no_build,
            quick: arguments.quick,
        };
        match options.warm_up() < options.iterations() && options.rounds() > 0 {
            true => Ok(options),
            false => Err("nothing to measure: give more --iterations or --rounds".into()),
        }
    }

    /// A number that differs between the programs, for a full and for a quick run.
    fn default<N>(
        &self,
        apps: [N; 2],
        dacapo: [N; 2],
        micro: [N; 2],
        footprint: [N; 2],
        fleet: [N; 2],
    ) -> N {
        let [full, quick] = match self.kind {
            Programs::Apps => apps,
            Programs::Dacapo(_) => dacapo,
            Programs::Micro => micro,
            // Whole processes.
            Programs::Footprint | Programs::Methods => footprint,
            Programs::Fleet => fleet,
        };
        if self.quick { quick } else { full }
    }

    /// Per JVM.
    pub fn iterations(&self) -> usize {
        let default = self.default([45, 8], [31, 5], [5, 3], [12, 8], [2, 1]);
        self.iterations.unwrap_or(default)
    }

    /// How many of them are dropped.
    pub fn warm_up(&self) -> usize {
        let default = self.default([30, 5], [1, 1], [0, 0], [6, 5], [0, 0]);
        self.warm_up.unwrap_or(default)
    }

    /// JVMs per program and variant.
    pub fn rounds(&self) -> usize {
        let default = self.default([3, 2], [1, 1], [3, 1], [3, 1], [1, 1]);
        self.rounds.unwrap_or(default)
    }

    pub fn size(&self) -> f64 {
        let default = self.default([0.3, 0.5], [1.0, 1.0], [1.0, 1.0], [1.0, 0.5], [1.0, 0.5]);
        self.size.unwrap_or(default)
    }

    /// The JVM's flags where none are asked for.
    pub fn jvm(&self) -> Vec<String> {
        match (&self.kind, self.jvm.is_empty()) {
            // As it is in the paper: with defaults.
            (Programs::Dacapo(_), true) => Vec::new(),
            (_, true) => DEFAULT_FLAGS.map(str::to_owned).into(),
            _ => self.jvm.clone(),
        }
    }

    /// Which JDK was asked for.
    pub fn jdk_version(&self) -> Option<u32> {
        self.jdk
    }

    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// # Errors
    /// There is no such JDK.
    pub fn jdk(&self) -> Result<Jdk, String> {
        let Some(version) = self.jdk else {
            return jdk::runner();
        };
        let found = jdk::all().into_iter().find(|jdk| jdk.version == version);
        found.ok_or_else(|| format!("no JDK {version} on this machine"))
    }

    /// A command of that JDK; what follows are its arguments.
    pub fn command(&self, jdk: &Jdk, arguments: Vec<std::ffi::OsString>) -> JavaCommand {
        let flags = self.jvm().into_iter().map(Into::into);
        JavaCommand {
            java: jdk.tool("java").into(),
            arguments: flags.chain(arguments).collect(),
            folder: None,
            without_env: vec!["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"],
        }
    }

    /// What a report tells of how it was measured.
    pub fn setting(&self) -> BTreeMap<String, String> {
        let flags = self.jvm().join(" ");
        BTreeMap::from([("jvm_flags".to_owned(), flags)])
    }

    pub fn plan(&self, programs: Vec<Program>) -> Plan {
        let wants = self.variants.iter().any(Variant::wants_async_profiler);
        let mut tools = Tools::from_env(Some(paths::agent()));
        if wants && tools.async_profiler.is_none() {
            tools.async_profiler = async_profiler::fetched();
        }
        Plan {
            programs,
            variants: self.variants.clone(),
            rounds: self.rounds(),
            warm_up: self.warm_up(),
            centre: lucce_bench::Centre::Median,
            limit: self.limit,
            tools,
            setting: self.setting(),
            scratch: self.out.join("scratch"),
        }
    }
}

#[cfg(test)]
mod options_tests {
    use super::*;

    #[test]
    fn sizes_are_the_suites() {
        let parse = |size| BenchOptions::parse(&["--dacapo", "dacapo.jar", "--dacapo-size", size]);
        assert_eq!(
            parse("large").unwrap().dacapo_size.as_deref(),
            Some("large")
        );
        assert!(parse("medium").is_err());
        assert!(BenchOptions::parse(&["--dacapo-size", "large"]).is_err());
        let parse =
            |minutes| BenchOptions::parse(&["--dacapo", "dacapo.jar", "--minutes", minutes]);
        let minutes = parse("90").unwrap().minutes;
        assert_eq!(minutes, Some(Duration::from_secs(5400)));
        assert!(parse("0").is_err());
        assert!(BenchOptions::parse(&["--minutes", "90"]).is_err());
        let limited = BenchOptions::parse(&["--limit", "90"]).unwrap();
        assert_eq!(limited.plan(Vec::new()).limit, Duration::from_secs(90));
    }

    #[test]
    fn a_fleet_grows() {
        let parse = |runs| BenchOptions::parse(&["--fleet", "--runs", runs]);
        assert_eq!(parse("10,100").unwrap().runs, [10, 100]);
        assert_eq!(BenchOptions::parse(&["--fleet"]).unwrap().runs, RUNS);
        for wrong in ["100,10", "0", "", "x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(BenchOptions::parse(&["--runs", "10"]).is_err());
    }

    #[test]
    fn dacapo_runs_as_in_the_paper() {
        let options = BenchOptions::parse(&["--dacapo", "dacapo.jar"]).unwrap();
        assert_eq!(options.variants.len(), 8);
        assert_eq!(
            (options.iterations(), options.warm_up(), options.rounds()),
            (31, 1, 1)
        );
        assert!(options.jvm().is_empty(), "the JVM's defaults");
    }
}
