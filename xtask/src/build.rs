//! `build`: everything that a user runs, and the programs of the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
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
    tools::run_quietly(maven_package().args(["-q", "-DskipTests"]))
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
    tools::run(&mut maven_package())
}

/// Maven that packs the Java side.
fn maven_package() -> Command {
    let pom = paths::harness().join("pom.xml");
    let mut mvn = mvn();
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
    mvn
}

/// Maven, run by the JDK of [`with_jdk`].
pub fn mvn() -> Command {
    short_run("mvn", "MAVEN_OPTS")
}

/// Gradle, run by the JDK of [`with_jdk`].
pub fn gradle() -> Command {
    short_run("gradle", "GRADLE_OPTS")
}

/// `flags`: the variable of the JVM's flags. If the user has set it, it stays as it is.
fn short_run(program: &str, flags: &str) -> Command {
    let mut command = Command::new(program);
    if env::var_os(flags).is_none() {
        command.env(flags, jdk::SHORT_RUN.join(" "));
    }
    with_jdk(&mut command);
    command
}

/// One compiler for the helper class and the Java side, wherever it was found.
pub fn with_jdk(command: &mut Command) -> &mut Command {
    match jdk::compiler() {
        Some(jdk) => command.env("JAVA_HOME", jdk.home),
        None => command,
    }
}

/// The programs for JDK 21 and later. Maven leaves them out where no JDK 25 compiles; Eclipse's
/// compiler, which the applications bring along, makes them from the run-time image then. It writes them into `classes`: a folder
/// of the caller's own, since checks run side by side.
///
/// # Errors
/// They cannot be compiled.
pub fn programs_21(new: &Jdk, classes: PathBuf) -> Result<PathBuf, String> {
    let module = paths::harness().join("programs-21");
    let jar = module.join("target/programs-21.jar");
    if jar.exists() {
        return Ok(jar);
    }
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

/// The programs that JDK 11 runs: those that the compiler accepts as its language, and for its library. The others are named
/// in a list, so that no program is left out unseen.
///
/// # Errors
/// The list is not what the compiler refuses, or the compiler cannot be run.
pub fn programs_11() -> Result<PathBuf, String> {
    let programs = paths::harness().join("programs");
    let list = programs.join(NEWER_PROGRAMS);
    let classes = paths::target().join("programs-11");
    let compiled = classes.join("compiled");
    let changed = |file: &Path| fs::metadata(file).and_then(|file| file.modified()).ok();
    let sources_changed = changed(&programs.join("target/programs.jar")).max(changed(&list));
    if changed(&compiled) > sources_changed {
        return Ok(classes);
    }
    let folder = programs.join("src/main/java/io/lucce/programs");
    let files = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut sources: BTreeSet<PathBuf> = files.flatten().map(|file| file.path()).collect();
    let mut refused = BTreeMap::new();
    loop {
        let errors = compile_for_11(&sources, &programs, &classes)?;
        if errors.is_empty() {
            break;
        }
        sources.retain(|source| !errors.contains_key(source));
        refused.extend(errors);
    }
    let text = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    compare_refused(&text, &refused)?;
    fs::write(&compiled, "").map_err(|e| format!("{}: {e}", compiled.display()))?;
    Ok(classes)
}

/// The class path of [`programs_11`], whose classes are in the folder.
pub fn class_path_11(classes: &Path) -> OsString {
    let programs = paths::harness().join("programs");
    let resources = programs.join("src/main/resources");
    let libraries = programs.join("target/lib/*");
    [classes, &resources, &libraries]
        .map(Path::as_os_str)
        .join(OsStr::new(":"))
}

/// Below `java-harness/programs`: names of programs that JDK 11 does not run, one a line.
const NEWER_PROGRAMS: &str = "newer-than-11.txt";

/// Compares the list with the refused sources, which have the compiler's first error.
///
/// # Errors
/// A source is in one of them only.
fn compare_refused(list: &str, refused: &BTreeMap<PathBuf, String>) -> Outcome {
    let lines = list.lines().map(str::trim);
    let listed: BTreeSet<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let mut found = BTreeSet::new();
    let mut faults = Vec::new();
    for (source, error) in refused {
        let name = source.file_stem().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        found.insert(name);
        if !listed.contains(name) {
            faults.push(format!("{name} is not for JDK 11, and not listed: {error}"));
        }
    }
    let compiled = listed.difference(&found);
    faults.extend(compiled.map(|name| format!("{name} is for JDK 11, but listed")));
    match faults.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "java-harness/programs/{NEWER_PROGRAMS}: {}",
            faults.join("\n")
        )),
    }
}

/// Compiles the programs as those of JDK 11 and returns the sources with errors, each with its first one; empty: all are
/// compiled.
fn compile_for_11(
    sources: &BTreeSet<PathBuf>,
    programs: &Path,
    classes: &Path,
) -> Result<BTreeMap<PathBuf, String>, String> {
    let _ = fs::remove_dir_all(classes);
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let mut javac = jdk.javac();
    javac.args(["--release", "11", "-g", "-nowarn", "-proc:none"]);
    javac.args(["-Xmaxerrs", "10000", "-cp"]);
    javac.arg(programs.join("target/lib/*"));
    let output = javac.arg("-d").arg(classes).args(sources).output();
    let output = output.map_err(|e| format!("javac: {e}"))?;
    if output.status.success() {
        return Ok(BTreeMap::new());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let mut refused = BTreeMap::new();
    for line in text.lines() {
        let Some((place, error)) = line.split_once(": error: ") else {
            continue;
        };
        let source = place.rsplit_once(':').map(|(file, _)| PathBuf::from(file));
        if let Some(source) = source.filter(|source| sources.contains(source)) {
            refused.entry(source).or_insert_with(|| error.to_owned());
        }
    }
    match refused.is_empty() || refused.len() == sources.len() {
        true => Err(format!("javac --release 11: {text}")),
        false => Ok(refused),
    }
}

#[cfg(test)]
mod build_tests {
    use super::*;

    #[test]
    fn list_of_newer_programs_is_what_the_compiler_refuses() {
        let refused = |names: &[&str]| -> BTreeMap<PathBuf, String> {
            let source = |name: &&str| PathBuf::from(format!("programs/{name}.java"));
            let error = "records are not supported".to_owned();
            names
                .iter()
                .map(|name| (source(name), error.clone()))
                .collect()
        };
        let list = "# Programs.\n\nRecords\nSealed\n";
        assert_eq!(
            compare_refused(list, &refused(&["Records", "Sealed"])),
            Ok(())
        );
        let error = compare_refused(list, &refused(&["Records", "Lambdas"])).unwrap_err();
        assert!(error.contains("Lambdas is not for JDK 11, and not listed: records are"));
        assert!(error.contains("Sealed is for JDK 11, but listed"));
        assert!(!error.contains("Records is"));
    }
}
