//! The micro-benchmarks of `java-harness/micro`.
//!
//! JMH repeats and times; it starts a JVM of its own per benchmark, with a variant's flags. Baseline and
//! variants take turns at each benchmark.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use lucce_bench::{Column, Metric, Outcome, Plan, Program, Report, Row, Samples, Variant};
use serde_json::Value;

use super::callbacks;
use super::options::BenchOptions;
use crate::jdk::Jdk;
use crate::{paths, tools};

/// # Errors
/// The benchmarks are not built, or one that was asked for is unknown.
pub fn run(options: &BenchOptions) -> Result<Report, String> {
    let jmh = Jmh::new(options)?;
    let benchmarks = jmh.wanted()?;
    let refused = lucce_bench::refusals(&jmh.plan);
    let mut rows = Vec::new();
    for (at, benchmark) in benchmarks.iter().enumerate() {
        println!("[{:>3}/{}] {benchmark}", at + 1, benchmarks.len());
        rows.extend(jmh.rows(benchmark, &refused));
        callbacks::print_times(&jmh.plan, &jmh.jdk, benchmark, |variant, flags| {
            jmh.command(benchmark, variant, flags)
        })?;
    }
    let column = |variant: &Variant| Column {
        name: variant.name.clone(),
        about: variant.about.clone(),
    };
    let setting = |key: &str, value: String| (key.to_owned(), value);
    let report = Report {
        setting: BTreeMap::from([
            setting(
                "jvm",
                format!("{} {}", jmh.jdk.version, jmh.flags.join(" ")),
            ),
            setting("rounds", options.rounds().to_string()),
            setting("iterations", options.iterations().to_string()),
        ]),
        centre: jmh.plan.centre,
        columns: options.variants.iter().map(column).collect(),
        rows,
    };
    let _ = fs::remove_dir_all(&jmh.plan.scratch);
    Ok(report)
}

struct Jmh<'a> {
    options: &'a BenchOptions,
    jdk: Jdk,
    flags: Vec<String>,
    plan: Plan,
}

impl<'a> Jmh<'a> {
    fn new(options: &'a BenchOptions) -> Result<Jmh<'a>, String> {
        let jdk = options.jdk()?;
        let program = Program {
            name: "JMH".into(),
            command: options.command(&jdk, Vec::new()),
            whole: false,
            turns: false,
            warm_up: None,
        };
        let plan = options.plan(vec![program]);
        fs::create_dir_all(&plan.scratch).map_err(|e| e.to_string())?;
        Ok(Jmh {
            options,
            flags: options.jvm(),
            jdk,
            plan,
        })
    }

    /// The harness itself runs without agent and flags.
    fn java(&self) -> Command {
        let built = paths::harness().join("micro/target");
        let mut java = self.jdk.java();
        java.arg("-Djmh.ignoreLock=true").arg("-cp");
        java.arg(format!("{0}/micro.jar:{0}/lib/*", built.display()));
        java.arg("org.openjdk.jmh.Main");
        java
    }

    /// Full names.
    fn wanted(&self) -> Result<Vec<String>, String> {
        let listed = tools::output(self.java().arg("-l"))?;
        let listed = String::from_utf8_lossy(&listed);
        let all = listed.lines().filter(|line| line.starts_with("io.lucce."));
        let wanted = |name: &&str| {
            let parts = &self.options.names;
            parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
        };
        let names: Vec<String> = all.filter(wanted).map(str::to_owned).collect();
        match names.is_empty() {
            true => Err("no such micro-benchmark".into()),
            false => Ok(names),
        }
    }

    /// A row per set of parameters.
    fn rows(&self, benchmark: &str, refused: &[Option<String>]) -> Vec<Row> {
        let mut table = Table::new(benchmark, refused);
        for round in 0..self.options.rounds() {
            let count = self.plan.variants.len();
            for turn in 0..count {
                let at = (turn + round) % count;
                if table.is_measured(at) {
                    table.add(at, self.once(benchmark, &self.plan.variants[at]));
                }
            }
        }
        table.rows
    }

    fn once(&self, benchmark: &str, variant: &Variant) -> Result<Value, String> {
        let results = self.results();
        tools::run_quietly(&mut self.command(benchmark, variant, &[])?)?;
        let text = fs::read(&results).map_err(|e| format!("{}: {e}", results.display()))?;
        let _ = fs::remove_file(self.recording());
        serde_json::from_slice(&text).map_err(|e| e.to_string())
    }

    fn results(&self) -> PathBuf {
        self.plan.scratch.join("jmh.json")
    }

    fn recording(&self) -> PathBuf {
        self.plan.scratch.join("recording")
    }

    /// `first`: flags of the JVM before those of the variant.
    fn command(
        &self,
        benchmark: &str,
        variant: &Variant,
        first: &[OsString],
    ) -> Result<Command, String> {
        let flags = variant.flags(&self.plan.tools, &self.recording())?;
        let own = self.flags.iter().map(OsString::from);
        let flags: Vec<OsString> = own.chain(first.iter().cloned()).chain(flags).collect();
        let mut java = self.java();
        java.args(self.options()).arg("-rff").arg(self.results());
        java.arg("-jvmArgs").arg(flags.join(" ".as_ref()));
        java.arg(format!("^{}$", benchmark.replace('.', "\\.")));
        Ok(java)
    }

    fn options(&self) -> Vec<String> {
        let (warm_up, time) = if self.options.quick {
            (3, "200ms")
        } else {
            (5, "500ms")
        };
        let iterations = self.options.iterations();
        let options =
            format!("-f 1 -wi {warm_up} -i {iterations} -w {time} -r {time} -foe true -rf json");
        options.split(' ').map(str::to_owned).collect()
    }
}

/// A benchmark's rows while they fill.
struct Table {
    benchmark: String,
    rows: Vec<Row>,
    refused: Vec<Option<String>>,
    failed: Vec<Option<String>>,
}

impl Table {
    fn new(benchmark: &str, refused: &[Option<String>]) -> Table {
        Table {
            benchmark: benchmark.trim_start_matches("io.lucce.micro.").to_owned(),
            rows: Vec::new(),
            refused: refused.to_vec(),
            failed: vec![None; refused.len()],
        }
    }

    fn is_measured(&self, at: usize) -> bool {
        self.refused[at].is_none() && self.failed[at].is_none()
    }

    fn add(&mut self, at: usize, results: Result<Value, String>) {
        let values = results.and_then(|results| values(&results));
        match values {
            Ok(values) => {
                for (parameters, values) in values {
                    let row = self.row(&parameters);
                    if let Outcome::Measured(metrics) = &mut row.outcomes[at] {
                        let samples: &mut Samples =
                            metrics.entry(Metric::PerOperation).or_default();
                        samples.push(values);
                    }
                }
            }
            Err(reason) => {
                let reason = reason.lines().next().unwrap_or("failed").to_owned();
                for row in &mut self.rows {
                    row.outcomes[at] = Outcome::Failed(reason.clone());
                }
                if self.rows.is_empty() {
                    let benchmark = self.benchmark.clone();
                    self.row(&benchmark).outcomes[at] = Outcome::Failed(reason.clone());
                }
                self.failed[at] = Some(reason);
            }
        }
    }

    fn row(&mut self, parameters: &str) -> &mut Row {
        let program = match parameters.is_empty() {
            true => self.benchmark.clone(),
            false => format!("{} {parameters}", self.benchmark),
        };
        let found = self.rows.iter().position(|row| row.program == program);
        let at = found.unwrap_or_else(|| {
            let outcome = |refused: &Option<String>| match refused {
                Some(reason) => Outcome::NotRun(reason.clone()),
                None => Outcome::Measured(BTreeMap::new()),
            };
            self.rows.push(Row {
                program,
                outcomes: self.refused.iter().map(outcome).collect(),
            });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }
}

/// Nanoseconds per operation of each iteration, by parameters.
fn values(results: &Value) -> Result<Vec<(String, Vec<f64>)>, String> {
    let results = results.as_array().ok_or("no results")?;
    let one = |result: &Value| {
        let metric = &result["primaryMetric"];
        if metric["scoreUnit"] != "ns/op" {
            return Err(format!("unexpected unit {}", metric["scoreUnit"]));
        }
        let parameters = result["params"].as_object().into_iter().flatten();
        let parameters: Vec<String> = parameters
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        let forks = metric["rawData"].as_array().into_iter().flatten();
        let values = forks.filter_map(Value::as_array).flatten();
        let values: Vec<f64> = values.filter_map(Value::as_f64).collect();
        Ok((parameters.join(" "), values))
    };
    results.iter().map(one).collect()
}

#[cfg(test)]
mod micro_tests {
    use serde_json::json;

    use super::*;

    fn result(depth: &str, values: &[f64]) -> Value {
        json!({
            "benchmark": "io.lucce.micro.CallDepth.calls",
            "params": { "depth": depth },
            "primaryMetric": { "scoreUnit": "ns/op", "rawData": [values] },
        })
    }

    #[test]
    fn rows_are_parameters_and_rounds_are_kept_apart() {
        let refused = [None, None, Some("no agent".to_owned())];
        let mut table = Table::new("io.lucce.micro.CallDepth.calls", &refused);
        for (at, factor) in [(0, 1.0), (1, 2.0), (1, 3.0), (0, 1.0)] {
            let times = |value: f64| value * factor;
            let results = [
                result("10", &[1.0, 3.0].map(times)),
                result("100", &[5.0].map(times)),
            ];
            table.add(at, Ok(Value::from(results.to_vec())));
        }
        let names: Vec<&str> = table.rows.iter().map(|row| row.program.as_str()).collect();
        assert_eq!(
            names,
            ["CallDepth.calls depth=10", "CallDepth.calls depth=100"]
        );
        let Outcome::Measured(metrics) = &table.rows[0].outcomes[1] else {
            panic!("{:?}", table.rows);
        };
        assert_eq!(metrics[&Metric::PerOperation], [[2.0, 6.0], [3.0, 9.0]]);
        assert_eq!(
            table.rows[1].outcomes[2],
            Outcome::NotRun("no agent".into())
        );
    }

    #[test]
    fn a_benchmark_that_fails_is_told() {
        let mut table = Table::new("io.lucce.micro.Recursion.tree", &[None, None]);
        table.add(
            0,
            Ok(json!([{ "primaryMetric": { "scoreUnit": "ns/op", "rawData": [[1.0]] } }])),
        );
        table.add(1, Err("java: exit status: 1\nmore".into()));
        assert!(!table.is_measured(1) && table.is_measured(0));
        assert_eq!(table.rows[0].program, "Recursion.tree");
        let failed = Outcome::Failed("java: exit status: 1".into());
        assert_eq!(table.rows[0].outcomes[1], failed);
        assert!(values(&json!([{ "primaryMetric": { "scoreUnit": "ops/s" } }])).is_err());
    }
}
