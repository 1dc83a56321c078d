//! New projects of Maven and of Gradle, into which `lucce init` puts the plugins: a first build makes the base, later ones
//! allocate a tenth more. The logs of Maven's go through the GitHub action's script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::project_files::{failure, fill_in, local, write_files};
use super::{BUILT, Maven, paths, platforms, url};
use crate::{Outcome, tools};

const POM: &str = include_str!("gated.xml");
const GRADLE: &str = include_str!("gated.gradle");
const SETTINGS: &str = include_str!("gated_settings.gradle");
/// A module of Gradle's project that has no tests.
const PLAIN: &str = include_str!("plain.gradle");
const TEST: &str = include_str!("GrowthTest.java");

/// The selection of allocations: the test's own alone.
const THROUGH: &str = r"^com\.acme\.GrowthTest\.makes$";

/// What a build prints that does not pass.
const EXCEEDED: &str = "the tests allocate more than the base, by over 3%";

/// Values of `os.arch`, and what a build prints there: no jar, and a jar that Maven has not resolved.
const OTHER_PROCESSORS: [(&str, &str); 2] = [
    (
        "riscv64",
        "there is no agent for linux-riscv64, only for linux-x64 and linux-arm64",
    ),
    ("aarch64", "no io.lucce:lucce:jar:linux-arm64:VERSION: "),
];

/// # Errors
/// A build does not pass or fail as it must, or the reports lack the result.
pub fn try_maven(maven: &Maven) -> Outcome {
    let project = maven.to.join("new gated project");
    let files = [
        ("pom.xml", POM),
        ("src/test/java/com/acme/GrowthTest.java", TEST),
    ];
    write_files(maven, &project, &files)?;
    add_plugins(maven, &project)?;
    let mvn = |arguments: &[&str]| {
        let mut mvn = maven.mvn(&project);
        mvn.env("LUCCE_HOME", maven.to.join("unpacked"))
            .arg(format!("-Dmaven.repo.local={}", local(maven).display()))
            .arg(format!("-Dlucce.through={THROUGH}"))
            .args(arguments);
        mvn
    };
    tools::run_quietly(&mut mvn(&["install"]))?;
    has_one_system(maven)?;
    let prepare = fill_in(maven, "io.lucce:lucce-maven-plugin:VERSION:prepare-agent");
    for (processor, message) in OTHER_PROCESSORS {
        // Offline: a repository of several systems has their jars.
        let other = format!("-Dos.arch={processor}");
        let text = failure(&mut mvn(&["-o", &prepare, &other]))?;
        has(&text, &fill_in(maven, message))?;
    }
    let base = local(maven).join("com/acme/gated/1/gated-1-allocations.lucce");
    let grown = ["-Drevision=2", "-Dlucce.baseVersion=1", "-Darrays=11000"];
    let text = failure(&mut mvn(&[&["verify"], &grown[..]].concat()))?;
    has(&text, EXCEEDED)?;
    has_report(&project.join("target/lucce/gate.md"))?;
    let gate = fill_in(maven, "io.lucce:lucce-maven-plugin:VERSION:gate");
    let allowed = [&gate, "-Dlucce.maxGrowth=11%"];
    tools::run_quietly(&mut mvn(&[&allowed[..], &grown[..]].concat()))?;
    try_action(maven, &project, &base)
}

/// Gradle before 4.6 runs tests of JUnit 4 alone. Debian's cannot publish: the base's files are put where that would.
///
/// # Errors
/// A build does not pass or fail as it must, or the report lacks the result.
pub fn try_gradle(maven: &Maven) -> Outcome {
    let project = maven.to.join("new gated gradle project");
    let test = TEST.replace("org.junit.jupiter.api.Test", "org.junit.Test");
    let files = [
        ("build.gradle", GRADLE),
        ("settings.gradle", SETTINGS),
        ("plain/build.gradle", PLAIN),
        ("src/test/java/com/acme/GrowthTest.java", &test),
    ];
    write_files(maven, &project, &files)?;
    add_plugins(maven, &project)?;
    let gradle = |arguments: &[&str]| {
        let mut gradle = maven.gradle(&project);
        gradle
            .env("LUCCE_HOME", maven.to.join("unpacked"))
            .arg(format!("-Plucce.through={THROUGH}"))
            .args(arguments);
        gradle
    };
    let pom = "generatePomFileForLucceAllocationsPublication";
    tools::run_quietly(&mut gradle(&["check", pom]))?;
    let published = project.join("published/com/acme/gated-allocations/1");
    fs::create_dir_all(&published).map_err(|e| e.to_string())?;
    for (made, name) in [
        ("build/lucce/allocations.lucce", "gated-allocations-1.lucce"),
        (
            "build/publications/lucceAllocations/pom-default.xml",
            "gated-allocations-1.pom",
        ),
    ] {
        fs::copy(project.join(made), published.join(name)).map_err(|e| format!("{made}: {e}"))?;
    }
    let grown = ["-Prevision=2", "-Plucce.baseVersion=1", "-Parrays=11000"];
    let text = failure(&mut gradle(&[&["check"], &grown[..]].concat()))?;
    has(&text, EXCEEDED)?;
    has_report(&project.join("build/lucce/gate.md"))?;
    let allowed = ["check", "-Plucce.maxGrowth=11%"];
    tools::run_quietly(&mut gradle(&[&allowed[..], &grown[..]].concat()))
}

/// Of the jars with an agent, Maven has resolved that of this system alone.
fn has_one_system(maven: &Maven) -> Outcome {
    let folder = local(maven)
        .join("io/lucce/lucce")
        .join(env!("CARGO_PKG_VERSION"));
    let of =
        |classifier: &str| folder.join(fill_in(maven, &format!("lucce-VERSION-{classifier}.jar")));
    for system in platforms() {
        let is_resolved = of(&system).exists();
        if is_resolved != (system == BUILT) {
            return Err(format!("{system}: resolved is {is_resolved}"));
        }
    }
    Ok(())
}

/// Puts the plugin into the project's build file, and the repository that has it.
fn add_plugins(maven: &Maven, project: &Path) -> Outcome {
    let mut lucce = Command::new(paths::lucce());
    lucce.args(["init", "--repository", &url(&maven.repository())]);
    tools::run_quietly(lucce.current_dir(project))
}

fn has_report(report: &Path) -> Outcome {
    let markdown = fs::read_to_string(report).map_err(|e| format!("{}: {e}", report.display()))?;
    has(&markdown, "com.acme.GrowthTest.makes")
}

/// The action's script, as a job runs it.
fn try_action(maven: &Maven, project: &Path, base: &Path) -> Outcome {
    let action = paths::root().join(".github/actions/lucce-gate/gate.sh");
    let folder = project.join("target/lucce");
    let logs = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut logs = logs.filter_map(Result::ok).map(|log| log.path());
    let is_log = |log: &PathBuf| log.extension().is_some_and(|end| end == "lucce");
    let log = logs.find(is_log).ok_or("no log of the tests")?;
    let summary = project.join("summary.md");
    let gate = |limit: &str| {
        let mut bash = Command::new("bash");
        bash.arg(&action)
            .current_dir(project)
            .env("NEW", &log)
            .env("BASE", base)
            .env("MAX_GROWTH", limit)
            .env("THROUGH", THROUGH)
            .env("WITH_LINES", "false")
            .env("LUCCE", maven.command())
            .env("GITHUB_STEP_SUMMARY", &summary);
        bash
    };
    tools::run_quietly(&mut gate("11%"))?;
    failure(&mut gate("3%"))?;
    let text = fs::read_to_string(&summary).map_err(|e| format!("{}: {e}", summary.display()))?;
    match text.matches("com.acme.GrowthTest.makes").count() {
        0 => Err(format!("the summary does not name the method: {text}")),
        _ => has(&text, "failed"),
    }
}

fn has(text: &str, part: &str) -> Outcome {
    match text.contains(part) {
        true => Ok(()),
        false => Err(format!("no {part:?} in: {text}")),
    }
}
