//! New projects, of Maven and of Gradle, that name the artifacts: a program that uses the API, with the agent and the command out of
//! the jar, tests that limit what they allocate, and benchmarks.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::project_files::{failure, local, write_files};
use super::{Maven, benchmarks, gated_build};
use crate::{Outcome, jdk, tools};

const POM: &str = include_str!("pom.xml");
const GRADLE: &str = include_str!("build.gradle");
const SETTINGS: &str = "rootProject.name = 'app'\n";
const APP: &str = include_str!("App.java");
const TEST: &str = include_str!("AppTest.java");
const BENCHMARKS: &str = include_str!("Sizes.java");

const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// # Errors
/// A project cannot use an artifact, or prints anything else than it must.
pub fn try_out(maven: &Maven) -> Outcome {
    of_maven(maven)?;
    gated_build::try_maven(maven)?;
    match has_gradle() {
        true => {
            of_gradle(maven)?;
            gated_build::try_gradle(maven)
        }
        false => {
            println!("not tried: projects of Gradle (apt-get install gradle)");
            Ok(())
        }
    }
}

fn has_gradle() -> bool {
    let probe = Command::new("gradle").arg("--version").output();
    probe.is_ok_and(|probe| probe.status.success())
}

fn of_maven(maven: &Maven) -> Outcome {
    let project = maven.to.join("new project");
    let files = [
        ("pom.xml", POM),
        ("src/main/java/com/acme/Sizes.java", BENCHMARKS),
    ];
    write(maven, &project, &files)?;
    let mvn = |goals: &[&str]| {
        let mut mvn = maven.mvn(&project);
        mvn.args(goals);
        mvn.arg(format!("-Dmaven.repo.local={}", local(maven).display()));
        mvn
    };
    let copied = [
        "compile",
        COPY,
        "-DoutputDirectory=target/lib",
        "-DincludeScope=runtime",
    ];
    tools::run_quietly(&mut mvn(&copied))?;
    let jar = format!("target/lib/lucce-{}-all.jar", env!("CARGO_PKG_VERSION"));
    let agent = run(
        maven,
        &project,
        &["-jar", &jar],
        "target/classes:target/lib/*",
    )?;
    benchmarks::try_out(maven, &project)?;
    // What Maven tells in its quiet mode is failures alone; what was skipped, and why, is in the report.
    let failed = failure(&mut mvn(&["test", &format!("-Dagent={agent}")]))?;
    has_failed(
        "Maven",
        &failed,
        "Tests run: 2, Failures: 1, Errors: 0, Skipped: 0",
    )?;
    tools::run_quietly(&mut mvn(&["test"]))?;
    let report = project.join("target/surefire-reports/TEST-AppTest.xml");
    let report = fs::read_to_string(&report).map_err(|e| format!("{}: {e}", report.display()))?;
    were_skipped("Maven", &report)
}

/// With nothing but the artifacts' repository and the one that Maven has filled.
fn of_gradle(maven: &Maven) -> Outcome {
    let project = maven.to.join("new gradle project");
    let files = [("build.gradle", GRADLE), ("settings.gradle", SETTINGS)];
    write(maven, &project, &files)?;
    let gradle = |args: &[&str]| {
        let mut gradle = maven.gradle(&project);
        gradle.args(args);
        gradle
    };
    tools::run_quietly(&mut gradle(&["classes", "libraries"]))?;
    let lucce = ["-cp", "lib/*", "io.lucce.agent.LucceAgent"];
    let agent = run(maven, &project, &lucce, "build/classes/java/main:lib/*")?;
    let failed = failure(&mut gradle(&["limits", &format!("-Pagent={agent}")]))?;
    has_failed("Gradle", &failed, "[         1 tests successful ")?;
    let skipped = tools::output(&mut gradle(&["limits"]))?;
    were_skipped("Gradle", &String::from_utf8_lossy(&skipped))
}

/// The project, with the program and its test.
fn write(maven: &Maven, project: &Path, files: &[(&str, &str)]) -> Outcome {
    let sources = [
        ("src/main/java/App.java", APP),
        ("src/test/java/AppTest.java", TEST),
    ];
    write_files(maven, project, files)?;
    write_files(maven, project, &sources)
}

/// Runs the program under the agent; the JVM's flag for it. `lucce`: what JVMs are given to run the command.
fn run(maven: &Maven, project: &Path, lucce: &[&str], class_path: &str) -> Result<String, String> {
    let home = maven.to.join("unpacked");
    let java = |args: &[&str]| {
        let mut java = jdk::compiler().ok_or("no JDK that compiles")?.java();
        java.current_dir(project).env("LUCCE_HOME", &home);
        let said = tools::output(java.args(args))?;
        Ok::<_, String>(String::from_utf8_lossy(&said).into_owned())
    };
    let library = java(lucce)?;
    let flag = |log: &str| {
        format!(
            "-agentpath:{}=events=alloc+thread,log=warn,out={log}",
            library.trim_end()
        )
    };
    let number = java(&[&flag("run.lucce"), "-cp", class_path, "App"])?;
    let trace = java(&[lucce, &["decode", "run.lucce", number.trim_end()]].concat())?;
    let expected = "\tat App.inner(App.java:6)\n\tat App.main(App.java:10)\n";
    match trace.contains(expected) {
        true => Ok(flag("tests-%p.lucce")),
        false => Err(format!("{number}: {trace}")),
    }
}

/// One of both tests has failed, with the exact count and the trace. `sum`: what the tool says of both.
fn has_failed(tool: &str, text: &str, sum: &str) -> Outcome {
    let expected = [
        sum,
        "allocates 120 bytes, 1 more than the limit of 119",
        "120 bytes  1 × byte[]  lucce:",
        "at AppTest.make(AppTest.java:9)",
        "at AppTest.doesNotFit(AppTest.java:21)",
    ];
    match expected.iter().find(|part| !text.contains(**part)) {
        Some(part) => Err(format!("{tool} does not say {part:?}: {text}")),
        None => Ok(()),
    }
}

/// Both tests, for the reason that there is no agent.
fn were_skipped(tool: &str, text: &str) -> Outcome {
    let reason = "@AllocatesAtMost cannot count: the lucce agent is not in this JVM";
    match text.matches(reason).count() {
        2 => Ok(()),
        times => Err(format!(
            "{tool} says {times} times, not twice, {reason:?}: {text}"
        )),
    }
}
