//! The DaCapo suite, as the paper ran it (section 6): `-n 31`, the first iteration dropped, the mean of
//! the other 30 with the agent divided by the mean without it. The table is the paper's Figure 5.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lucce_bench::{Centre, JavaCommand, Program, Report};

use super::calibration::{TimeShare, WorkAmount};
use super::measured;
use super::options::BenchOptions;
use crate::jdk::{self, Jdk};
use crate::{paths, tools};

/// Left out in the paper: "they often failed with runtime errors".
const LEFT_OUT: [&str; 2] = ["tradebeans", "tradesoap"];

/// The sizes that `--minutes` chooses from, largest first.
const SIZES: [&str; 2] = ["default", "small"];

const CALLBACK: &str = "io.lucce.dacapo.IterationTimes";

/// # Errors
/// The jar is no suite, or has no such benchmark.
pub fn run(options: &BenchOptions, jar: &Path) -> Result<Report, String> {
    let suite = Suite::at(jar, &options.jdk()?, &options.out)?;
    let names = suite.wanted(&options.names)?;
    let amounts = suite.amounts(options, &names);
    let programs = names
        .iter()
        .zip(&amounts)
        .map(|(name, amount)| suite.program(options, name, amount));
    let mut plan = options.plan(programs.collect());
    plan.centre = Centre::Mean;
    plan.setting
        .extend(suite.setting(options, &names, &amounts));
    Ok(measured(&plan, "dacapo", &options.out))
}

struct Suite {
    jar: PathBuf,
    jdk: Jdk,
    /// With the callback.
    classes: PathBuf,
    /// Benchmarks make a folder called `scratch` where they are started.
    folder: PathBuf,
    benchmarks: Vec<String>,
    /// What the jar's manifest opens, which `java -jar` would see to; and what the suite needs of a newer JDK.
    flags: Vec<String>,
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
            flags: security_manager(jdk.version)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            jdk: jdk.clone(),
            jar,
        };
        suite.compile_callback()?;
        let opened = opened(&suite.manifest(&out.join("dacapo-manifest"))?);
        suite.flags.extend(opened);
        suite.benchmarks = suite.list()?;
        Ok(suite)
    }

    /// Against this release of the suite.
    fn compile_callback(&self) -> Result<(), String> {
        let jdk = jdk::compiler().ok_or("no JDK with a compiler")?;
        let mut javac = jdk.javac();
        javac.arg("-cp").arg(&self.jar).arg("-d").arg(&self.classes);
        javac.arg(paths::harness().join("dacapo/IterationTimes.java"));
        let compiled = tools::run_quietly(&mut javac);
        compiled.map_err(|e| format!("{} is no DaCapo suite: {e}", self.jar.display()))
    }

    /// The text of it.
    fn manifest(&self, folder: &Path) -> Result<String, String> {
        const FILE: &str = "META-INF/MANIFEST.MF";
        let jdk = jdk::compiler().ok_or("no JDK with its tools")?;
        let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        let mut jar = Command::new(jdk.tool("jar"));
        tools::run_quietly(jar.current_dir(folder).arg("xf").arg(&self.jar).arg(FILE))?;
        // A jar may have none.
        let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
        fs::remove_dir_all(folder).map_err(failed)?;
        Ok(text)
    }

    /// What each benchmark does. With `--minutes`, a short run of each finds out what fits.
    fn amounts(&self, options: &BenchOptions, names: &[&str]) -> Vec<WorkAmount> {
        let size = options.dacapo_size.as_deref();
        let Some(minutes) = options.minutes else {
            let amount = WorkAmount {
                iterations: options.iterations(),
                size: size.unwrap_or(SIZES[0]).to_owned(),
            };
            return vec![amount; names.len()];
        };
        let share = TimeShare {
            whole: minutes / names.len().max(1) as u32,
            jvms: options.variants.len() * options.rounds(),
            most_iterations: options.iterations(),
        };
        let sizes = size.map_or(SIZES.to_vec(), |size| vec![size]);
        let scratch = options.out.join("scratch");
        let chosen = |name: &&str| {
            let amount = share.choose(&sizes, &scratch, |iterations, size| {
                let size = size.to_owned();
                self.command(options, name, &WorkAmount { iterations, size })
            });
            println!("{name}: -n {} -s {}", amount.iterations, amount.size);
            amount
        };
        names.iter().map(chosen).collect()
    }

    fn setting(
        &self,
        options: &BenchOptions,
        names: &[&str],
        amounts: &[WorkAmount],
    ) -> [(String, String); 5] {
        let of = |key: &str, value: String| (key.to_owned(), value);
        let flags = options.jvm().into_iter().chain(self.flags.iter().cloned());
        // One value where all benchmarks have it.
        let each = |value: &dyn Fn(&WorkAmount) -> String| {
            let mut values: Vec<String> = amounts.iter().map(value).collect();
            let named = names.iter().zip(&values);
            let named: Vec<String> = named
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            values.dedup();
            match <[String; 1]>::try_from(values) {
                Ok([one]) => one,
                Err(_) => named.join(", "),
            }
        };
        [
            of("suite", self.jar.display().to_string()),
            of(
                "iterations",
                each(&|amount| format!("-n {}", amount.iterations)),
            ),
            of(
                "iterations_dropped",
                each(&|amount| warm_up(options, amount).to_string()),
            ),
            of("size", each(&|amount| amount.size.clone())),
            of("jvm_flags", flags.collect::<Vec<_>>().join(" ")),
        ]
    }

    /// All but those that are left out. What the suite has to say beside them goes to its standard error, too.
    fn list(&self) -> Result<Vec<String>, String> {
        let mut java = self.jdk.java();
        java.current_dir(&self.folder).args(&self.flags);
        java.arg("-cp").arg(&self.jar).args(["Harness", "-l"]);
        let listed = java
            .output()
            .map_err(|e| format!("{}: {e}", self.jar.display()))?;
        let printed = String::from_utf8_lossy(&listed.stdout);
        let lines = printed.lines().filter(|line| names_only(line));
        let names = lines.flat_map(str::split_whitespace).map(str::to_owned);
        let mut names: Vec<String> = names
            .filter(|name| !LEFT_OUT.contains(&name.as_str()))
            .collect();
        names.sort_unstable();
        match names.is_empty() {
            true => Err(format!(
                "{} lists no benchmarks: {}",
                self.jar.display(),
                String::from_utf8_lossy(&listed.stderr).trim()
            )),
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

    fn command(&self, options: &BenchOptions, name: &str, amount: &WorkAmount) -> JavaCommand {
        let mut class_path = self.jar.clone().into_os_string();
        class_path.push(":");
        class_path.push(&self.classes);
        let iterations = amount.iterations.to_string();
        let mut arguments: Vec<OsString> = self.flags.iter().map(Into::into).collect();
        arguments.extend(["-cp".into(), class_path]);
        let harness = ["Harness", "-n", &iterations, "-c", CALLBACK];
        arguments.extend(harness.map(Into::into));
        arguments.extend(["-s", &amount.size, name].map(Into::into));
        let mut command = options.command(&self.jdk, arguments);
        command.folder = Some(self.folder.clone());
        command
    }

    fn program(&self, options: &BenchOptions, name: &str, amount: &WorkAmount) -> Program {
        Program {
            name: name.to_owned(),
            command: self.command(options, name, amount),
            whole: false,
            turns: false,
            warm_up: Some(warm_up(options, amount)),
        }
    }
}

/// How many iterations are dropped. A short run has no other warm-up than its first half.
fn warm_up(options: &BenchOptions, amount: &WorkAmount) -> usize {
    match options.minutes {
        Some(_) => amount.iterations / 2,
        None => options.warm_up(),
    }
}

/// Some benchmarks set one. From 18 on that has to be allowed, and from 24 on there is none.
fn security_manager(jdk: u32) -> Option<&'static str> {
    (18..24)
        .contains(&jdk)
        .then_some("-Djava.security.manager=allow")
}

/// A line of benchmarks' names, as against a notice.
fn names_only(line: &str) -> bool {
    let is_name = |word: &str| {
        let mut letters = word.bytes();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_lowercase())
            && letters.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    line.split_whitespace().all(is_name)
}

/// Flags for what a manifest opens and exports to code on the class path.
fn opened(manifest: &str) -> Vec<String> {
    // A long line goes on in the next one, after a space.
    let whole = manifest.replace("\r\n", "\n").replace("\n ", "");
    let mut flags = Vec::new();
    for (key, flag) in [
        ("Add-Opens", "--add-opens"),
        ("Add-Exports", "--add-exports"),
    ] {
        let of = |line: &str| {
            let (name, packages) = line.split_once(':')?;
            name.eq_ignore_ascii_case(key).then(|| packages.to_owned())
        };
        let packages = whole.lines().filter_map(of);
        let packages: Vec<String> = packages.collect();
        let each = packages
            .iter()
            .flat_map(|packages| packages.split_whitespace());
        flags.extend(each.map(|package| format!("{flag}={package}=ALL-UNNAMED")));
    }
    flags
}

#[cfg(test)]
mod dacapo_tests {
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
        let mut javac = jdk.javac();
        javac.current_dir(folder.join("src"));
        javac.args(["-d", "../classes", "Harness.java"]);
        tools::run_quietly(&mut javac).unwrap();
        let mut jar = Command::new(jdk.tool("jar"));
        let manifest = "Add-Opens: java.base/java.lang\n";
        fs::write(folder.join("manifest"), manifest).unwrap();
        jar.current_dir(folder)
            .args(["cfm", "dacapo.jar", "manifest", "-C", "classes", "."]);
        tools::run_quietly(&mut jar).unwrap();
        folder.join("dacapo.jar")
    }

    fn report(folder: &Path, jar: &Path, more: &[&str]) -> Result<Report, String> {
        let out = folder.join("out").display().to_string();
        let jar = jar.display().to_string();
        let mut args = vec!["--dacapo", &jar, "--out", &out, "--variants", "xshare-off"];
        args.extend(more);
        if !more.contains(&"--minutes") {
            args.extend(["--iterations", "4", "--dacapo-size", "small"]);
        }
        let options = BenchOptions::parse(&args).unwrap();
        run(&options, jar.as_ref())
    }

    #[test]
    fn both_kinds_of_harness_are_timed_by_their_callback() {
        for stops in ["", "long duration"] {
            let folder = tempfile::tempdir().unwrap();
            let jar = suite(folder.path(), stops);
            let report = report(folder.path(), &jar, &["--apps", "alpha,beta,broken"]).unwrap();
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
            let words = "FAILED broken: the harness calls its result invalid; \
                Digest validation failed for stderr.log, expecting 0x1 found 0x2; \
                ===== broken FAILED; Validation FAILED for broken (exit status: 254)";
            assert_eq!(report.rows[2].outcomes[0], Outcome::Failed(words.into()));
            let tables = fs::read_to_string(folder.path().join("out/dacapo-tables.md")).unwrap();
            assert!(
                tables.contains("FAILED: broken, none: FAILED broken"),
                "{tables}"
            );
            assert_eq!(report.setting["size"], "small");
        }
    }

    #[test]
    fn a_given_time_chooses_iterations() {
        let folder = tempfile::tempdir().unwrap();
        let jar = suite(folder.path(), "long duration");
        let more = ["--apps", "alpha", "--minutes", "10"];
        let report = report(folder.path(), &jar, &more).unwrap();
        let wall = report.quantity(&report.rows[0], 0, Metric::Wall).unwrap();
        // Ten minutes are enough for all 31 iterations, of which the first 15 are dropped.
        assert_eq!(wall.spread.count, 16);
        assert_eq!(report.setting["iterations"], "-n 31");
        assert_eq!(report.setting["iterations_dropped"], "15");
        assert_eq!(report.setting["size"], "default");
    }

    #[test]
    fn a_run_that_takes_too_long_is_told_and_the_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let jar = suite(folder.path(), "");
        let more = ["--apps", "alpha,endless", "--limit", "5"];
        let report = report(folder.path(), &jar, &more).unwrap();
        assert!(report.quantity(&report.rows[0], 1, Metric::Wall).is_some());
        let late = Outcome::Failed("did not end within 5 s".into());
        assert_eq!(report.rows[1].outcomes[0], late);
    }

    #[test]
    fn what_a_manifest_opens_becomes_flags() {
        let text = "Manifest-Version: 1.0\r\nAdd-Exports: java.base/jdk.internal.ref java.b\r\n ase/jdk.internal.misc\r\n\
            Add-Opens: java.base/java.nio\r\n\r\n";
        let expected = [
            "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
            "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
        ];
        assert_eq!(opened(text), expected);
        assert!(opened("").is_empty());
    }

    #[test]
    fn a_security_manager_is_allowed_where_that_can_be() {
        let allowed: Vec<u32> = [17, 18, 21, 23, 24, 25]
            .into_iter()
            .filter(|jdk| security_manager(*jdk).is_some())
            .collect();
        assert_eq!(allowed, [18, 21, 23]);
    }

    #[test]
    fn what_is_no_suite_or_no_benchmark_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let jar = suite(folder.path(), "");
        let unknown = report(folder.path(), &jar, &["--apps", "tradebeans"]).unwrap_err();
        assert!(unknown.contains("there are alpha, beta, broken, endless"));
        fs::write(folder.path().join("no.jar"), "PK").unwrap();
        let foreign = report(folder.path(), &folder.path().join("no.jar"), &[]).unwrap_err();
        assert!(foreign.contains("is no DaCapo suite"), "{foreign}");
        assert!(report(folder.path(), Path::new("/no/such.jar"), &[]).is_err());
    }
}
