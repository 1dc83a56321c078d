//! Classes of the JDK that an earlier run has kept: found again, in several JVMs at once, never where the file is not as it
//! was written, and never in the way of a program.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        let version = jdk.version;
        let mut add = |what: &str, quick, run: fn(&Setup, &Jdk) -> Checked| {
            let name = format!("cache::{version}::{what}");
            tests.push(test(name, quick, move || run(setup, jdk)));
        };
        add("found-again", true, found_again);
        add("damaged", false, damaged);
        add("at-once", false, at_once);
        add("nowhere", false, nowhere);
    }
    tests.push(test("cache::slow", false, move || slow(setup)));
    tests
}

const PROGRAM: &str = "io.lucce.programs.Constructors";
/// It loads twice as many classes of the JDK, and makes hidden ones.
const LARGE: &str = "io.lucce.programs.Lambdas";
/// A JVM loads more of the JDK.
const MOST: u64 = 200;

fn java<'a>(setup: &'a Setup, jdk: &'a Jdk, (name, options): (&str, &str)) -> Java<'a> {
    let java = Java::new(setup, jdk, &format!("cache-{name}-{}", jdk.version));
    java.agent(&format!("verify=97,{options}")).main([PROGRAM])
}

/// Runs it, compared with the VM's own traces; how many classes came out of the cache, and how many were rewritten.
fn run(java: &Java) -> Result<(u64, u64), String> {
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.agent_lines().len() == 1, "no word of the cache")?;
    counts(java, &java.log())
}

fn counts(java: &Java, log: &Path) -> Result<(u64, u64), String> {
    java.lucce().check(log)?;
    let stats = java.lucce().stats(log)?;
    let agent = |key: &str| stats["agent"][key].as_u64();
    let cached = agent("classes.cached").ok_or("no count of the cache")?;
    let all = agent("classes.rewritten").ok_or("no count")?;
    Ok((cached, all - cached))
}

/// A busy machine loads little in the seconds until the file is written: the next runs add what is missing.
fn found_after_some_runs(java: &Java) -> Checked {
    let mut found = Vec::new();
    for _ in 0..6 {
        found.push(run(java)?.0);
        if found.last() > Some(&MOST) {
            return Ok(());
        }
    }
    Err(format!("found, run by run: {found:?}"))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let files = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(files.flatten().map(|file| file.path()).collect())
}

/// The only file in the folder.
fn file(folder: &Path) -> Result<PathBuf, String> {
    let all = files(folder)?;
    let [file] = &all[..] else {
        return Err(format!("one file: {all:?}"));
    };
    Ok(file.clone())
}

fn found_again(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, ("again", "cache=kept")).main([LARGE]);
    let folder = java.folder().join("kept");
    // Of a run that failed.
    let _ = fs::remove_dir_all(&folder);
    let (cached, made) = run(&java)?;
    ensure(cached == 0 && made > MOST, || {
        format!("the first run: {cached}, {made}")
    })?;
    let mode = |path: &Path| fs::metadata(path).map_or(0, |found| found.mode() & 0o7777);
    let kept = file(&folder)?;
    ensure((mode(&folder), mode(&kept)) == (0o700, 0o600), || {
        format!("{:o} {:o}", mode(&folder), mode(&kept))
    })?;
    // What a busy machine loads after seconds in which it has loaded nothing comes with one of the next runs; at last nothing
    // is written for so few.
    let mut runs = Vec::new();
    let mut is_settled = false;
    for _ in 0..12 {
        let before = fs::read(&kept).map_err(|e| e.to_string())?;
        let (cached, made) = run(&java)?;
        runs.push((cached, made));
        let is_unchanged = fs::read(file(&folder)?).is_ok_and(|now| now == before);
        // The rest are the program's own.
        is_settled = is_unchanged && cached > MOST && made < cached / 4;
        if is_settled {
            break;
        }
    }
    ensure(is_settled, || {
        format!("found and made, run by run: {runs:?}")
    })?;
    // Other hooks, other classes.
    let options = "cache=kept,events=alloc+lock+thread+io";
    let (cached, made) = run(&self::java(setup, jdk, ("again", options)).main([LARGE]))?;
    ensure(cached == 0 && made > MOST, || format!("{cached}, {made}"))?;
    ensure(files(&folder)?.len() == 2, || "two files".into())?;
    java.clean();
    Ok(())
}

/// A program that starts for long finds all of it again, not what it had loaded after some seconds.
fn slow(setup: &Setup) -> Checked {
    let java = java(setup, setup.jdk(), ("slow", "cache=kept")).main(["Slowly"]);
    let _ = fs::remove_dir_all(java.folder().join("kept"));
    let mut runs = Vec::new();
    for _ in 0..4 {
        let (cached, made) = run(&java)?;
        if cached > MOST && made < cached / 20 {
            java.clean();
            return Ok(());
        }
        runs.push((cached, made));
    }
    Err(format!("found and made, run by run: {runs:?}"))
}

/// What is not as it was written is not taken, and replaced.
fn damaged(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, ("damaged", "cache=kept"));
    let folder = java.folder().join("kept");
    let _ = fs::remove_dir_all(&folder);
    run(&java)?;
    let path = file(&folder)?;
    let whole = fs::read(&path).map_err(|e| e.to_string())?;
    let mut flipped = whole.clone();
    // In most entries, and in none of the table's rows.
    for byte in flipped.iter_mut().skip(whole.len() / 16).step_by(2000) {
        *byte ^= 4;
    }
    let mut head = whole.clone();
    head[60] ^= 1;
    let third = whole[..whole.len() / 3].to_vec();
    for (what, bytes) in [
        ("flipped", flipped),
        ("head", head),
        ("cut", third),
        ("empty", Vec::new()),
    ] {
        fs::write(&path, &bytes).map_err(|e| e.to_string())?;
        let (_, made) = run(&java)?;
        ensure(made > MOST / 2, || format!("{what}: {made} made"))?;
        found_after_some_runs(&java).map_err(|why| format!("{what}: {why}"))?;
    }
    java.clean();
    Ok(())
}

/// JVMs that start together write one file after the other, and each is whole.
fn at_once(setup: &Setup, jdk: &Jdk) -> Checked {
    const JVMS: usize = 4;
    let names: Vec<String> = (0..JVMS).map(|n| format!("at-once-{n}")).collect();
    let shared = setup.scratch.join(format!("cache-shared-{}", jdk.version));
    let _ = fs::remove_dir_all(&shared);
    let options = format!("cache={}", shared.display());
    let all: Vec<Java> = names
        .iter()
        .map(|name| java(setup, jdk, (name, &options)))
        .collect();
    let children: Vec<_> = all.iter().map(Java::spawn).collect::<Result<_, _>>()?;
    for (java, mut child) in all.iter().zip(children) {
        let status = child.wait().map_err(|e| e.to_string())?;
        ensure(status.success(), || java.so_far().text())?;
        counts(java, &java.log())?;
    }
    file(&shared)?;
    found_after_some_runs(&all[0])?;
    all.iter().for_each(Java::clean);
    fs::remove_dir_all(&shared).map_err(|e| e.to_string())
}

/// Where nothing can be kept, or others could have written what is there, it is as if there were none.
fn nowhere(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = java(setup, jdk, ("nowhere", "cache=kept"));
    let folder = java.folder().join("kept");
    run(&java)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).map_err(|e| e.to_string())?;
    let kept = fs::read(file(&folder)?).map_err(|e| e.to_string())?;
    let (cached, made) = run(&java)?;
    ensure(cached == 0 && made > MOST, || format!("{cached}, {made}"))?;
    ensure(
        fs::read(file(&folder)?).is_ok_and(|now| now == kept),
        || "nothing is written there".into(),
    )?;
    for options in ["cache=off", "cache=/dev/null/below"] {
        let (cached, _) = run(&self::java(setup, jdk, ("nowhere", options)))?;
        ensure(cached == 0, || format!("{options}: {cached}"))?;
    }
    // The user has no folder for caches, or none that can be written.
    for home in ["", "/proc"] {
        let mut env = Command::new("env");
        env.args(["-u", "XDG_CACHE_HOME", &format!("HOME={home}")]);
        env.arg(jdk.tool("java"));
        let java = self::java(setup, jdk, ("nowhere", "cache=on"));
        let ended = java.run_as(&mut env, &java.arguments())?.expect(0)?;
        ended.ensure(ended.agent_lines().len() == 1, "no word of the cache")?;
        let (cached, _) = counts(&java, &java.log())?;
        ensure(cached == 0, || format!("{home}: {cached}"))?;
    }
    java.clean();
    Ok(())
}
