//! The DaCapo suite, as the paper ran it (section 6): `-n 31`, the first iteration dropped, the mean of
//! the other 30 with the agent divided by the mean without it. The table is the paper's Figure 5.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lucce_bench::{Centre, Program, Report};

use super::measured;
use super::wish::Wish;
use crate::jdk::{self, Jdk};
use crate::{place, tools};

/// Left out in the paper: "they often failed with runtime errors".
const LEFT_OUT: [&str; 2] = ["tradebeans", "tradesoap"];

const CALLBACK: &str = "io.lucce.dacapo.IterationTimes";

/// # Errors
/// The jar is no suite, or has no such benchmark.
pub fn run(wish: &Wish, jar: &Path) -> Result<Report, String> {
    let suite = Suite::at(jar, &wish.jdk()?, &wish.out)?;
    let programs = suite.wanted(&wish.names)?;
    let programs = programs.into_iter().map(|name| suite.program(wish, name));
    let mut plan = wish.plan(programs.collect());
    plan.centre = Centre::Mean;
    let mut report = measured(&plan);
    let of = |key: &str, value: String| (key.to_owned(), value);
    report.setting.extend([
        of("suite", jar.display().to_string()),
        of("iterations", format!("-n {}", wish.iterations())),
    ]);
    Ok(report)
}

struct Suite {
    jar: PathBuf,
    jdk: Jdk,
    /// With the callback.
    classes: PathBuf,
    /// Benchmarks make a folder called `scratch` where they are started.
    folder: PathBuf,
    benchmarks: Vec<String>,
}

impl Suite {
    fn at(jar: &Path, jdk: &Jdk, out: &Path) -> Result<Suite, String> {
        let found = jar.canonicalize();
        let jar = found.map_err(|e| format!("{}: {e}", jar.display()))?;
        let folder = |name| {
            let folder = out.join(name);
            let made = fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
            made.map_err(|e| format!("{}: {e}", folder.display()))
        };
        let mut suite = Suite {
            classes: folder("dacapo-callback")?,
            folder: folder("dacapo-scratch")?,
            benchmarks: Vec::new(),
            jdk: jdk.clone(),
            jar,
        };
        suite.compile_callback()?;
        suite.benchmarks = suite.list()?;
        Ok(suite)
    }

    /// Against this release of the suite.
    fn compile_callback(&self) -> Result<(), String> {
        let jdk = jdk::compiler().ok_or("no JDK with a compiler")?;
        let mut javac = Command::new(jdk.tool("javac"));
        javac.arg("-cp").arg(&self.jar).arg("-d").arg(&self.classes);
        javac.arg(place::harness().join("dacapo/IterationTimes.java"));
        let compiled = tools::run_quietly(&mut javac);
        compiled.map_err(|e| format!("{} is no DaCapo suite: {e}", self.jar.display()))
    }

    /// All but those that are left out.
    fn list(&self) -> Result<Vec<String>, String> {
        let mut java = self.jdk.java();
        java.current_dir(&self.folder);
        java.arg("-cp").arg(&self.jar).args(["Harness", "-l"]);
        let listed = tools::output(&mut java)?;
        let names = String::from_utf8_lossy(&listed);
        let names = names.split_whitespace().map(str::to_owned);
        let mut names: Vec<String> = names
            .filter(|name| !LEFT_OUT.contains(&name.as_str()))
            .collect();
        names.sort_unstable();
        match names.is_empty() {
            true => Err(format!("{} lists no benchmarks", self.jar.display())),
            false => Ok(names),
        }
    }

    fn wanted<'a>(&'a self, names: &'a [String]) -> Result<Vec<&'a str>, String> {
        let unknown = names.iter().find(|name| !self.benchmarks.contains(name));
        if let Some(name) = unknown {
            let known = self.benchmarks.join(", ");
            return Err(format!("unknown benchmark {name}; there are {known}"));
        }
        let all = if names.is_empty() {
            &self.benchmarks
        } else {
            names
        };
        Ok(all.iter().map(String::as_str).collect())
    }

    fn program(&self, wish: &Wish, name: &str) -> Program {
        let mut class_path = self.jar.clone().into_os_string();
        class_path.push(":");
        class_path.push(&self.classes);
        let iterations = wish.iterations().to_string();
        let mut arguments = vec!["-cp".into(), class_path];
        let harness = ["Harness", "-n", &iterations, "-c", CALLBACK, name];
        arguments.extend(harness.map(Into::into));
        let mut command = wish.command(&self.jdk, arguments);
        command.folder = Some(self.folder.clone());
        Program {
            name: name.to_owned(),
            command,
            whole: false,
            turns: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use lucce_bench::{Metric, Outcome};

    use super::*;

    const FAKE: &str = include_str!("fake_dacapo.java.txt");

    /// A suite with the harness's public interface; iterations end with `stop()` or `stop(long)`.
    fn suite(folder: &Path, stops: &str) -> PathBuf {
        let call = match stops {
            "" => "stop()",
            _ => "stop(40L)",
        };
        let source = FAKE.replace("STOP_ARGS", stops).replace("STOP_CALL", call);
        for part in source.split("//// ").skip(1) {
            let (name, text) = part.split_once('\n').unwrap();
            let file = folder.join("src").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let jdk = jdk::compiler().unwrap();
        let mut javac = Command::new(jdk.tool("javac"));
        javac.current_dir(folder.join("src"));
        javac.args(["-d", "../classes", "Harness.java"]);
        tools::run_quietly(&mut javac).unwrap();
        let mut jar = Command::new(jdk.tool("jar"));
        jar.current_dir(folder)
            .args(["cf", "dacapo.jar", "-C", "classes", "."]);
        tools::run_quietly(&mut jar).unwrap();
        folder.join("dacapo.jar")
    }

    fn report(folder: &Path, jar: &Path, more: &[&str]) -> Result<Report, String> {
        let out = folder.join("out").display().to_string();
        let jar = jar.display().to_string();
        let mut args = vec!["--dacapo", &jar, "--out", &out, "--iterations", "4"];
        args.extend(["--variants", "xshare-off"]);
        args.extend(more);
        let wish = Wish::parse(&args).unwrap();
        run(&wish, jar.as_ref())
    }

    #[test]
    fn both_kinds_of_harness_are_timed_by_their_callback() {
        for stops in ["", "long duration"] {
            let folder = tempfile::tempdir().unwrap();
            let jar = suite(folder.path(), stops);
            let report = report(folder.path(), &jar, &[]).unwrap();
            let names: Vec<&str> = report.rows.iter().map(|row| row.program.as_str()).collect();
            assert_eq!(names, ["alpha", "beta", "broken"]);
            for row in &report.rows[..2] {
                for column in 0..2 {
                    let wall = report.quantity(row, column, Metric::Wall).unwrap();
                    // Four iterations, the first dropped.
                    assert_eq!(wall.spread.count, 3);
                    if !stops.is_empty() {
                        assert_eq!(wall.spread.mean, 40.0, "the harness's own duration");
                    }
                }
            }
            let invalid = Outcome::Failed(
                "FAILED broken: the harness calls its result invalid (exit status: 254)".into(),
            );
            assert_eq!(report.rows[2].outcomes[0], invalid);
        }
    }

    #[test]
    fn what_is_no_suite_or_no_benchmark_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let jar = suite(folder.path(), "");
        let unknown = report(folder.path(), &jar, &["--apps", "tradebeans"]).unwrap_err();
        assert!(unknown.contains("unknown benchmark tradebeans; there are alpha"));
        fs::write(folder.path().join("no.jar"), "PK").unwrap();
        let foreign = report(folder.path(), &folder.path().join("no.jar"), &[]).unwrap_err();
        assert!(foreign.contains("is no DaCapo suite"), "{foreign}");
        assert!(report(folder.path(), Path::new("/no/such.jar"), &[]).is_err());
    }
}
