//! `build`: everything that a user runs, and the programs of the tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use crate::jdk::{self, Jdk};
use crate::{Outcome, paths, requirements, tools};

/// # Errors
/// A tool is missing, or something does not compile.
pub fn all() -> Outcome {
    requirements::check(&[requirements::BUILD])?;
    // Beside each other: neither uses all processors all the time.
    let (rust, java) = thread::scope(|scope| {
        let java = scope.spawn(java);
        (rust(), java.join())
    });
    rust?;
    java.map_err(|_| "the Java build panicked".to_owned())?
}

/// The Java side, without its tests.
///
/// # Errors
/// It does not compile.
pub fn java() -> Outcome {
    println!("building the Java side with Maven");
    tools::run_quietly(maven(&mut Command::new("mvn")).args(["-q", "-DskipTests"]))
}

fn rust() -> Outcome {
    tools::run(with_jdk(paths::cargo().args(["build", "--release"])))
}

/// The agent with the papers' systems, for tests and measurements.
///
/// # Errors
/// It does not compile, or the library cannot get its name: cargo allows no hyphen in it.
pub fn lab_agent() -> Outcome {
    let mut cargo = paths::cargo();
    tools::run(with_jdk(cargo.args([
        "build",
        "--release",
        "-p",
        "lucce-lab-agent",
    ])))?;
    let library = paths::lab_agent();
    let built = library.with_file_name("liblucce_lab.so");
    // A JVM that has the old library loaded keeps it.
    let _ = fs::remove_file(&library);
    fs::hard_link(&built, &library)
        .or_else(|_| fs::copy(&built, &library).map(|_| ()))
        .map_err(|e| format!("{}: {e}", library.display()))
}

/// The Java side and its own tests.
///
/// # Errors
/// A tool is missing, something does not compile, or a test fails.
pub fn tested_java() -> Outcome {
    requirements::check(&[requirements::BUILD])?;
    tools::run(maven(&mut Command::new("mvn")))
}

fn maven(mvn: &mut Command) -> &mut Command {
    let pom = paths::harness().join("pom.xml");
    mvn.args([
        "--batch-mode",
        "--no-transfer-progress",
        "-Dstyle.color=never",
    ]);
    mvn.arg("-f").arg(pom).arg("package");
    let compiles = |jdk: &Jdk| jdk.version >= jdk::NEW && jdk.compiles();
    if let Some(new) = jdk::all().into_iter().find(compiles) {
        mvn.arg(format!("-Djdk25.home={}", new.home.display()));
    }
    with_jdk(mvn)
}

/// One compiler for the helper class and the Java side, wherever it was found.
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
    let module = paths::harness().join("programs-21");
    let jar = module.join("target/programs-21.jar");
    if jar.exists() {
        return Ok(jar);
    }
    let classes = paths::target().join("programs-21");
    let old = jdk::runner()?;
    let programs = paths::harness().join("programs/target/programs.jar");
    let mut ecj = old.java();
    ecj.arg("-cp").arg(paths::apps());
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
