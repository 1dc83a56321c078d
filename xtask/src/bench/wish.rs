//! What was asked for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lucce_bench::{JavaCommand, Plan, Program, Tools, Variant};

use super::{LIMIT, async_profiler};
use crate::jdk::{self, Jdk};
use crate::place;

/// What all variants have: a collector whose own work differs little from run to run.
const JVM: [&str; 3] = ["-XX:+UseParallelGC", "-Xms1g", "-Xmx1g"];

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
    Footprint,
    Fleet,
}

pub struct Wish {
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
    limit: Duration,
    pub threads: Option<usize>,
    /// So many runs a dataset has, one number after the other.
    pub runs: Vec<u64>,
    /// Other engines that are asked what the dataset is asked.
    pub engines: Vec<String>,
    jdk: Option<u32>,
    jvm: Vec<String>,
    pub out: PathBuf,
    pub build: bool,
    pub quick: bool,
}

impl Wish {
    /// # Errors
    /// An unknown option or a malformed value.
    pub fn parse(args: &[&str]) -> Result<Wish, String> {
        let mut wish = Wish {
            kind: Programs::Apps,
            names: Vec::new(),
            variants: Vec::new(),
            iterations: None,
            warm_up: None,
            rounds: None,
            size: None,
            dacapo_size: None,
            limit: LIMIT,
            threads: None,
            runs: Vec::new(),
            engines: Vec::new(),
            jdk: None,
            jvm: Vec::new(),
            out: place::target().join("bench"),
            build: true,
            quick: false,
        };
        let mut variants = Vec::new();
        let mut args = args.iter().copied();
        while let Some(key) = args.next() {
            let mut value = || args.next().ok_or(format!("a value is missing after {key}"));
            match key {
                "--quick" => wish.quick = true,
                "--no-build" => wish.build = false,
                "--micro" => wish.kind = Programs::Micro,
                "--footprint" => wish.kind = Programs::Footprint,
                "--fleet" => wish.kind = Programs::Fleet,
                "--runs" => {
                    let runs = value()?.split(',').map(|text| number(key, text));
                    wish.runs = runs.collect::<Result<_, _>>()?;
                }
                "--engines" => wish.engines = value()?.split(',').map(str::to_owned).collect(),
                "--dacapo" => wish.kind = Programs::Dacapo(value()?.into()),
                "--apps" => wish.names = value()?.split(',').map(str::to_owned).collect(),
                "--variants" | "--variant" => variants.push(value()?),
                "--iterations" => wish.iterations = Some(number(key, value()?)?),
                "--warm-up" => wish.warm_up = Some(number(key, value()?)?),
                "--rounds" => wish.rounds = Some(number(key, value()?)?),
                "--size" => wish.size = Some(number(key, value()?)?),
                "--dacapo-size" => wish.dacapo_size = Some(dacapo_size(value()?)?),
                "--limit" => wish.limit = Duration::from_secs(number(key, value()?)?),
                "--threads" => wish.threads = Some(number(key, value()?)?),
                "--jdk" => wish.jdk = Some(number(key, value()?)?),
                "--jvm" => wish.jvm.push(value()?.to_owned()),
                "--out" => wish.out = value()?.into(),
                _ => return Err(format!("unknown option {key}; try --help")),
            }
        }
        if wish.kind != Programs::Fleet && !(wish.runs.is_empty() && wish.engines.is_empty()) {
            return Err("--runs and --engines go with --fleet".into());
        }
        if wish.runs.is_empty() {
            wish.runs = RUNS.into();
        }
        if !wish.runs.is_sorted() || wish.runs.first() == Some(&0) {
            return Err("--runs: numbers that become larger were expected".into());
        }
        let is_dacapo = matches!(wish.kind, Programs::Dacapo(_));
        if variants.is_empty() {
            variants.push(if is_dacapo {
                FIGURE_5
            } else {
                "tracking,alloc"
            });
        }
        if wish.dacapo_size.is_some() && !is_dacapo {
            return Err("--dacapo-size goes with --dacapo".into());
        }
        wish.variants = Variant::list(variants)?;
        match wish.warm_up() < wish.iterations() && wish.rounds() > 0 {
            true => Ok(wish),
            false => Err("nothing would be left to measure".into()),
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
            Programs::Footprint => footprint,
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
            (_, true) => JVM.map(str::to_owned).into(),
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
        let mut tools = Tools::from_env(Some(place::agent()));
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

/// # Errors
/// The suite has no such size.
fn dacapo_size(text: &str) -> Result<String, String> {
    const SIZES: [&str; 5] = ["small", "default", "large", "vlarge", "huge"];
    match SIZES.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "--dacapo-size {text}: there are {}",
            SIZES.join(", ")
        )),
    }
}

fn number<N: std::str::FromStr>(key: &str, value: &str) -> Result<N, String> {
    value
        .parse()
        .map_err(|_| format!("{key} {value}: a number was expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each option that the help names is one.
    #[test]
    fn help_and_parser_know_the_same_options() {
        let help = super::super::help();
        let words = help.split(|c: char| !c.is_ascii_lowercase() && c != '-');
        let mut options: Vec<&str> = words.filter(|word| word.starts_with("--")).collect();
        options.sort_unstable();
        options.dedup();
        assert_eq!(options.len(), 21, "{options:?}");
        for option in options.into_iter().filter(|option| *option != "--help") {
            if let Err(error) = Wish::parse(&[option]) {
                assert_eq!(error, format!("a value is missing after {option}"));
            }
        }
    }

    #[test]
    fn sizes_are_the_suites() {
        let parse = |size| Wish::parse(&["--dacapo", "dacapo.jar", "--dacapo-size", size]);
        assert_eq!(
            parse("large").unwrap().dacapo_size.as_deref(),
            Some("large")
        );
        assert!(parse("medium").is_err());
        assert!(Wish::parse(&["--dacapo-size", "large"]).is_err());
        let limited = Wish::parse(&["--limit", "90"]).unwrap();
        assert_eq!(limited.plan(Vec::new()).limit, Duration::from_secs(90));
    }

    #[test]
    fn a_fleet_grows() {
        let parse = |runs| Wish::parse(&["--fleet", "--runs", runs]);
        assert_eq!(parse("10,100").unwrap().runs, [10, 100]);
        assert_eq!(Wish::parse(&["--fleet"]).unwrap().runs, RUNS);
        for wrong in ["100,10", "0", "", "x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(Wish::parse(&["--runs", "10"]).is_err());
    }

    #[test]
    fn dacapo_runs_as_in_the_paper() {
        let wish = Wish::parse(&["--dacapo", "dacapo.jar"]).unwrap();
        assert_eq!(wish.variants.len(), 8);
        assert_eq!(
            (wish.iterations(), wish.warm_up(), wish.rounds()),
            (31, 1, 1)
        );
        assert!(wish.jvm().is_empty(), "the JVM's defaults");
    }
}
