//! `test`: all checks, or the parts that are named, one after the other; a failed check does not hide the others' findings.
//!
//! Tests on JVMs wait often, so the whole has a second process beside them. It runs at a lower priority what needs no JVM
//! of this machine: [`TestPart::BESIDE`].
//!
//! ```text
//! lint ─► build ─┬─► unit ─► jvm ─► pages ─► … ─► cost ─┬─► summary
//!                └─► models ─► fleet ─► arm64 ──────────┘
//! ```

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::jvm::JvmTestOptions;
use crate::requirements::{self, ALLOCATOR, BUILD, GIT, GO, GRADLE, PAGES, PIP, Requirement};
use crate::requirements::{TERMINAL, VALGRIND};
use crate::workspace_compiler::WorkspaceCompiler;
use crate::{
    Outcome, apps, arch, arm64, build, checks, coverage, cpu, dependencies, fleet, formats, jdk,
    jvm, maven, pages, paths, perf_check, shipped,
};

#[derive(clap::Args)]
pub struct TestOptions {
    /// Parts to run [default: all]: lint, unit, models, jvm, pages, formats, fleet, packages, arm64, cost; `jvm 17` is the part of one JDK
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    /// The build has been made
    #[arg(long, hide = true)]
    built: bool,
    /// Run the fast checks only, in under five minutes
    #[arg(long, conflicts_with = "parts")]
    quick: bool,
    #[command(flatten)]
    installation: InstallOptions,
}

#[derive(clap::Args)]
pub struct InstallOptions {
    /// Name missing programs and stop, in place of installing them by the system's package manager
    #[arg(long)]
    no_install: bool,
}

impl InstallOptions {
    /// Whether missing programs are installed.
    pub fn installs(&self) -> bool {
        !self.no_install
    }
}

/// A part of all checks. The parts together are the whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum TestPart {
    /// What reads sources only.
    Lint,
    /// Tests of crates and of the Java side.
    Unit,
    /// Concurrency by loom, memory by Miri.
    Models,
    /// Whole systems on one tested JDK, or on all.
    Jvm(Option<u32>),
    /// Pages in a browser.
    Pages,
    /// Output of `lucce export`, read by other tools.
    Formats,
    /// The workspace of `fleet/`.
    Fleet,
    /// What users get.
    Packages,
    /// The agent on aarch64, emulated.
    Arm64,
    /// Instructions, and the agent's cost.
    Cost,
}

impl TestPart {
    /// In the whole these run beside the others.
    const BESIDE: [TestPart; 3] = [TestPart::Models, TestPart::Fleet, TestPart::Arm64];

    const ALL: [(&str, TestPart); 10] = [
        ("lint", TestPart::Lint),
        ("unit", TestPart::Unit),
        ("models", TestPart::Models),
        ("jvm", TestPart::Jvm(None)),
        ("pages", TestPart::Pages),
        ("formats", TestPart::Formats),
        ("fleet", TestPart::Fleet),
        ("packages", TestPart::Packages),
        ("arm64", TestPart::Arm64),
        ("cost", TestPart::Cost),
    ];

    /// Parses names of parts; versions of JDKs stand behind `jvm`. Without names: all parts.
    fn parse_all(words: &[String]) -> Result<Vec<TestPart>, String> {
        let mut parts: Vec<TestPart> = Vec::new();
        for word in words {
            let named = TestPart::ALL.iter().find(|(name, _)| name == word);
            match (named, word.parse(), parts.last().copied()) {
                (Some((_, part)), ..) => parts.push(*part),
                (None, Ok(version), Some(TestPart::Jvm(other)))
                    if jdk::TESTED.contains(&version) || version == jdk::OLDEST =>
                {
                    if other.is_none() {
                        parts.pop();
                    }
                    parts.push(TestPart::Jvm(Some(version)));
                }
                _ => return Err(TestPart::explain(word)),
            }
        }
        if parts.is_empty() {
            parts.extend(TestPart::ALL.map(|(_, part)| part));
        }
        parts.sort_unstable();
        parts.dedup();
        if parts.contains(&TestPart::Jvm(None)) {
            parts.retain(|part| !matches!(part, TestPart::Jvm(Some(_))));
        }
        Ok(parts)
    }

    fn explain(word: &str) -> String {
        let names = TestPart::ALL.map(|(name, _)| name).join(", ");
        let tested = jdk::TESTED.map(|version| version.to_string());
        let versions = format!("{}, {}", jdk::OLDEST, tested.join(", "));
        format!("no part {word}: parts are {names}; versions behind jvm are {versions}")
    }

    fn needs(self) -> &'static [&'static [Requirement]] {
        match self {
            TestPart::Lint => &[BUILD, GIT],
            TestPart::Unit | TestPart::Arm64 => &[BUILD, PIP],
            TestPart::Jvm(_) => &[BUILD, PIP, TERMINAL, ALLOCATOR],
            TestPart::Pages => &[BUILD, PAGES],
            TestPart::Formats => &[BUILD, PAGES, GO, PIP],
            TestPart::Fleet => &[BUILD, GO, PIP],
            TestPart::Models => &[BUILD],
            TestPart::Packages => &[BUILD, PIP, GRADLE],
            TestPart::Cost => &[BUILD, VALGRIND],
        }
    }

    /// `compiler`: of what tests compile for themselves.
    fn steps(self, compiler: WorkspaceCompiler) -> Vec<TestStep> {
        match self {
            TestPart::Lint => vec![
                step("fmt", checks::fmt),
                step("arch", arch::check),
                step("dependencies", dependencies::check),
                step("clippy", move || checks::clippy(compiler)),
            ],
            TestPart::Unit => vec![
                step("java", build::tested_java),
                step("unit", move || checks::unit(compiler)),
            ],
            TestPart::Models => vec![step("loom", checks::loom), step("memory", checks::memory)],
            TestPart::Jvm(version) => jvm_steps(version, compiler),
            TestPart::Pages => vec![built("page-tests", pages::tests)],
            TestPart::Formats => vec![built("format-tests", || formats::tests(""))],
            TestPart::Fleet => vec![built("fleet", fleet::check)],
            TestPart::Packages => vec![
                built("shipped", shipped::check),
                built("maven", || maven::make::<&Path>(&[])),
            ],
            TestPart::Arm64 => vec![built("arm64", arm64::check)],
            TestPart::Cost => vec![built("perf-check", perf_check::check)],
        }
    }
}

fn jvm_steps(version: Option<u32>, compiler: WorkspaceCompiler) -> Vec<TestStep> {
    let name = |step: &str| match version {
        Some(version) => format!("{step} {version}"),
        None => step.to_owned(),
    };
    let tests = built(name("jvm-tests"), move || {
        jvm::tests(&JvmTestOptions {
            compiler,
            ..JvmTestOptions::of_version(version)
        })
    });
    vec![
        tests,
        built(name("verify-apps"), move || {
            apps::verify(&apps::VerifyOptions::quick(version))
        }),
        built(name("coverage"), move || {
            coverage::check(&coverage::CoverageOptions::quick(version))
        }),
    ]
}

struct TestStep {
    name: String,
    run: Box<dyn Fn() -> Outcome>,
    /// Runs what `build` makes.
    built: bool,
}

fn step(name: impl Into<String>, run: impl Fn() -> Outcome + 'static) -> TestStep {
    TestStep {
        name: name.into(),
        run: Box::new(run),
        built: false,
    }
}

fn built(name: impl Into<String>, run: impl Fn() -> Outcome + 'static) -> TestStep {
    TestStep {
        built: true,
        ..step(name, run)
    }
}

const BUILD_STEP: &str = "build";
const BESIDE_STEP: &str = "beside";
/// So that both processes end at about the same time on two cores.
const NICENESS: &str = "3";

/// # Errors
/// A part is unknown, a program is missing, or a check failed.
pub fn run(options: &TestOptions) -> Outcome {
    let install = options.installation.installs();
    if options.quick {
        requirements::provide(&[BUILD, GIT, PIP, TERMINAL], install)?;
        return run_steps(&quick_steps(), &[]);
    }
    let parts = TestPart::parse_all(&options.parts)?;
    let mut needs: Vec<&[Requirement]> = parts
        .iter()
        .flat_map(|part| part.needs())
        .copied()
        .collect();
    if parts.contains(&TestPart::Models) {
        requirements::provide_miri(install);
        if !requirements::has_miri() {
            needs.push(VALGRIND);
        }
    }
    requirements::provide(&needs, install)?;
    let is_whole = parts.len() == TestPart::ALL.len();
    let (beside, parts): (Vec<_>, Vec<_>) = parts
        .into_iter()
        .partition(|part| is_whole && TestPart::BESIDE.contains(part));
    let mut steps = steps_of(&parts);
    steps.retain(|step| !options.built || step.name != BUILD_STEP);
    run_steps(&steps, &beside)
}

/// Parts that run in a process of their own, with a lower priority; what it prints is printed when it has ended.
struct PartsBeside {
    process: Child,
    started: Instant,
    output: std::path::PathBuf,
}

impl PartsBeside {
    /// # Errors
    /// The process does not start.
    fn start(parts: &[TestPart]) -> Result<PartsBeside, String> {
        let output = paths::target().join("beside.txt");
        let failed = |e: std::io::Error| format!("{}: {e}", output.display());
        let file = File::create(&output).map_err(failed)?;
        let own = std::env::current_exe().map_err(failed)?;
        let names = TestPart::ALL
            .iter()
            .filter(|(_, part)| parts.contains(part));
        let mut command = Command::new("nice");
        command.args(["-n", NICENESS]).arg(own).arg("test");
        command.args(names.map(|(name, _)| name));
        command.args(["--built", "--no-install"]);
        command.stdin(Stdio::null());
        command
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file);
        Ok(PartsBeside {
            process: command.spawn().map_err(failed)?,
            started: Instant::now(),
            output,
        })
    }

    /// Waits for its end, and prints what it has printed.
    fn wait(mut self) -> StepResult<'static> {
        println!("\n=== {BESIDE_STEP} ===");
        let cpu = cpu::of_children();
        let ended = self.process.wait();
        let printed = std::fs::read(&self.output).unwrap_or_default();
        println!("{}", String::from_utf8_lossy(&printed));
        StepResult {
            name: BESIDE_STEP,
            outcome: match ended {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("its summary stands above: {status}")),
                Err(error) => Err(error.to_string()),
            },
            took: self.started.elapsed(),
            cpu: cpu::of_children().saturating_sub(cpu),
        }
    }
}

/// The steps of all parts. The build comes before the first part that may take long, so that it fails early.
fn steps_of(parts: &[TestPart]) -> Vec<TestStep> {
    // The lints compile what the unit tests run.
    let compiler = match parts.contains(&TestPart::Lint) && parts.contains(&TestPart::Unit) {
        true => WorkspaceCompiler::Clippy,
        false => WorkspaceCompiler::Rustc,
    };
    let mut steps = Vec::new();
    let mut rest: Vec<TestStep> = Vec::new();
    for part in parts {
        match part {
            TestPart::Lint => steps.extend(part.steps(compiler)),
            _ => rest.extend(part.steps(compiler)),
        }
    }
    if rest.iter().any(|step| step.built) {
        steps.push(step(BUILD_STEP, build::all));
    }
    steps.extend(rest);
    steps
}

fn quick_steps() -> Vec<TestStep> {
    let options = JvmTestOptions {
        quick: true,
        ..JvmTestOptions::default()
    };
    vec![
        step("fmt", checks::fmt),
        step("arch", arch::check),
        step(BUILD_STEP, build::all),
        step("unit", checks::unit_quick),
        built("jvm-tests", move || jvm::tests(&options)),
    ]
}

struct StepResult<'s> {
    name: &'s str,
    outcome: Outcome,
    took: Duration,
    cpu: Duration,
}

/// `beside`: parts that run meanwhile, from the end of the build on.
fn run_steps(steps: &[TestStep], beside: &[TestPart]) -> Outcome {
    let begun = Instant::now();
    let mut done: Vec<StepResult> = Vec::new();
    let mut running: Option<PartsBeside> = None;
    for step in steps {
        println!("\n=== {} ===", step.name);
        let (started, cpu) = (Instant::now(), cpu::of_children());
        let lacks_build = step.built
            && done
                .iter()
                .any(|done| done.name == BUILD_STEP && done.outcome.is_err());
        let outcome = match lacks_build {
            true => Err("not run: the build failed".to_owned()),
            false => (step.run)(),
        };
        if let Err(message) = &outcome {
            println!("{}: {message}", step.name);
        }
        done.push(StepResult {
            name: &step.name,
            outcome,
            took: started.elapsed(),
            cpu: cpu::of_children().saturating_sub(cpu),
        });
        if step.name == BUILD_STEP && !beside.is_empty() {
            running = Some(PartsBeside::start(beside)?);
        }
    }
    done.extend(running.map(PartsBeside::wait));
    summary(&done, begun.elapsed())
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or("failed")
}

/// Prints the times of all steps, and what the failed ones said. `took`: of all steps, some of which ran side by side.
fn summary(done: &[StepResult], took: Duration) -> Outcome {
    println!("\n=== summary ===");
    for StepResult {
        name,
        outcome,
        took,
        cpu,
    } in done
    {
        let result = outcome.as_ref().map_or_else(|e| first_line(e), |()| "ok");
        let (took, cpu) = (took.as_secs_f64(), cpu.as_secs_f64());
        println!("{name:<13} {took:>6.1} s  {cpu:>6.1} s of CPU  {result}");
    }
    let cpu = done.iter().map(|done| done.cpu).sum::<Duration>();
    let (took, cpu) = (took.as_secs_f64(), cpu.as_secs_f64());
    println!("{:<13} {took:>6.1} s  {cpu:>6.1} s of CPU", "all");
    let mut failed = Vec::new();
    for StepResult { name, outcome, .. } in done {
        if let Err(message) = outcome {
            println!("\n{name}: {message}");
            failed.push(*name);
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: {}", failed.join(", "))),
    }
}

#[cfg(test)]
mod suite_tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Vec<TestPart>, String> {
        TestPart::parse_all(
            &words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn versions_stand_behind_jvm() {
        let some = |version| TestPart::Jvm(Some(version));
        assert_eq!(parse(&["jvm", "17"]), Ok(vec![some(17)]));
        let both = Ok(vec![TestPart::Unit, some(17), some(25)]);
        assert_eq!(parse(&["jvm", "25", "17", "unit"]), both);
        assert_eq!(parse(&["jvm"]), Ok(vec![TestPart::Jvm(None)]));
        assert_eq!(parse(&["jvm", "21", "jvm"]), Ok(vec![TestPart::Jvm(None)]));
        for wrong in [&["17"][..], &["jvm", "12"], &["lint", "17"], &["all"]] {
            assert!(
                parse(wrong)
                    .unwrap_err()
                    .contains("lint, unit, models, jvm"),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn jobs_of_the_workflow_are_the_whole() {
        let workflow = include_str!("../../.github/workflows/ci.yml");
        let jobs = workflow
            .lines()
            .filter_map(|line| line.trim().strip_prefix("parts: "));
        let jobs = jobs.map(|words| parse(&words.split(' ').collect::<Vec<_>>()).unwrap());
        let mut parts: Vec<TestPart> = jobs.flatten().collect();
        parts.sort_unstable();
        let mut all: Vec<TestPart> = TestPart::ALL.map(|(_, part)| part).into();
        all.retain(|part| *part != TestPart::Jvm(None));
        all.extend(jdk::TESTED.map(|version| TestPart::Jvm(Some(version))));
        all.push(TestPart::Jvm(Some(jdk::OLDEST)));
        all.sort_unstable();
        assert_eq!(parts, all);
    }

    #[test]
    fn the_parts_are_the_whole() {
        let all = parse(&[]).unwrap();
        assert_eq!(all.len(), TestPart::ALL.len());
        let whole: Vec<String> = steps_of(&all).into_iter().map(|step| step.name).collect();
        let mut sum = Vec::new();
        for part in all {
            let steps = steps_of(&[part]).into_iter().map(|step| step.name);
            sum.extend(steps.filter(|name| name != BUILD_STEP));
        }
        let without_build: Vec<String> = whole
            .into_iter()
            .filter(|name| name != BUILD_STEP)
            .collect();
        assert_eq!(sum, without_build);
    }

    #[test]
    fn only_what_runs_the_build_is_built() {
        let names = |words: &[&str]| -> Vec<String> {
            let steps = steps_of(&parse(words).unwrap()).into_iter();
            steps.map(|step| step.name).collect()
        };
        assert_eq!(names(&["lint"]), ["fmt", "arch", "dependencies", "clippy"]);
        assert_eq!(names(&["lint", "cost"])[4..], ["build", "perf-check"]);
        let jvm = ["build", "jvm-tests 21", "verify-apps 21", "coverage 21"];
        assert_eq!(names(&["jvm", "21"]), jvm);
        let jvm = ["build", "jvm-tests 11", "verify-apps 11", "coverage 11"];
        assert_eq!(names(&["jvm", "11"]), jvm);
    }
}
