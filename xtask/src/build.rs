//! `build`: everything that a user runs, and the programs of the tests.

use std::path::PathBuf;
use std::process::Command;

use crate::jdk::{self, Jdk};
use crate::{Outcome, place, tools};

/// # Errors
/// A tool is missing, or something does not compile.
pub fn all() -> Outcome {
    tools::needed()?;
    rust()?;
    java("package", &["-q", "-DskipTests"])
}

pub fn rust() -> Outcome {
    tools::run(with_jdk(place::cargo().args(["build", "--release"])))
}

/// Maven's `phase` of the Java side.
pub fn java(phase: &str, options: &[&str]) -> Outcome {
    let mut mvn = Command::new("mvn");
    mvn.args([
        "--batch-mode",
        "--no-transfer-progress",
        "-Dstyle.color=never",
        "-f",
    ]);
    mvn.arg(place::harness().join("pom.xml"))
        .args(options)
        .arg(phase);
    if let Some(new) = jdk::all()
        .iter()
        .find(|jdk| jdk.version >= jdk::NEW && jdk.compiles())
    {
        mvn.arg(format!("-Djdk25.home={}", new.home.display()));
    }
    tools::run(with_jdk(&mut mvn))
}

/// The same compiler for the helper class and the Java side, wherever it was found.
pub fn with_jdk(command: &mut Command) -> &mut Command {
    match jdk::compiler() {
        Some(jdk) => command.env("JAVA_HOME", jdk.home),
        None => command,
    }
}

/// The programs for JDK 21 and later. Maven leaves them out where no JDK 25 compiles; Eclipse's
/// compiler, which the applications bring along, makes them from the run-time image then.
///
/// # Errors
/// They cannot be compiled.
pub fn programs_21(new: &Jdk) -> Result<PathBuf, String> {
    let module = place::harness().join("programs-21");
    let jar = module.join("target/programs-21.jar");
    if jar.exists() {
        return Ok(jar);
    }
    let classes = place::target().join("programs-21");
    let old = jdk::runner()?;
    let programs = place::harness().join("programs/target/programs.jar");
    let mut ecj = old.java();
    ecj.arg("-cp").arg(place::apps());
    ecj.args([
        "org.eclipse.jdt.internal.compiler.batch.Main",
        "-nowarn",
        "-g",
        "-source",
        "21",
        "-target",
        "21",
    ]);
    ecj.arg("--system").arg(&new.home).arg("-cp").arg(programs);
    ecj.arg("-d")
        .arg(&classes)
        .arg(module.join("src/main/java"));
    tools::run(&mut ecj)?;
    Ok(classes)
}
