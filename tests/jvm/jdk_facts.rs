//! `facts=on`: what is known of a JDK by name, compared with the JDK that is there.

use std::fs;
use std::path::Path;
use std::process::Command;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};

use crate::{Test, test};

const MISSING: &str = "this JDK has no";
const UNKNOWN: &str = "is a native method that lucce does not know";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let known = setup.jdks_from_11().map(|jdk| {
        let name = format!("jdk_facts::{}::known", jdk.version);
        test(name, false, move || known(setup, jdk))
    });
    let other = test("jdk_facts::other", false, || other(setup));
    let symbols = setup.jdks.iter().map(|jdk| {
        let name = format!("jdk_facts::{}::symbols", jdk.version);
        test(name, false, move || check_symbol_table(setup, jdk))
    });
    known.chain([other]).chain(symbols).collect()
}

/// The VM says how many buckets its table of symbols has: more than without the agent, and as many as the user wants.
fn check_symbol_table(setup: &Setup, jdk: &Jdk) -> Checked {
    const OF_USER: &str = "-XX:SymbolTableSize=65536";
    const EXPECTED: [(&[&str], &str); 2] = [(&[], "262144"), (&[OF_USER], "65536")];
    for (flags, buckets) in EXPECTED {
        let java = Java::new(setup, jdk, &format!("symbols-{}-{buckets}", jdk.version));
        let unlocked = [
            "-XX:+UnlockExperimentalVMOptions",
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+PrintStringTableStatistics",
        ];
        let java = java
            .agent("events=none")
            .flags(unlocked.into_iter().chain(flags.iter().copied()))
            .main(["io.lucce.programs.Lambdas"]);
        let ended = java.run()?.expect(0)?;
        let table = ended.stdout.split("SymbolTable statistics:").nth(1);
        let line = table.and_then(|table| table.lines().find(|line| line.contains("buckets")));
        let is_right = line.is_some_and(|line| line.split_whitespace().any(|word| word == buckets));
        ensure(is_right, || format!("{buckets}: {line:?}"))?;
        java.clean();
    }
    Ok(())
}

/// Of the JDKs that were tried everything is known that a program loads.
fn known(setup: &Setup, jdk: &Jdk) -> Checked {
    let name = format!("facts-{}", jdk.version);
    let java = Java::new(setup, jdk, &name)
        .agent("facts=on,strict=on")
        .main(["io.lucce.programs.Lambdas"]);
    let ended = java.run()?;
    let differs = ended.stderr.contains(MISSING) || ended.stderr.contains(UNKNOWN);
    ensure(!differs && ended.stderr.contains("recorded in"), || {
        ended.text()
    })?;
    java.clean();
    Ok(())
}

/// A JDK in which one method has gone and a native one has come.
fn other(setup: &Setup) -> Checked {
    let jdk = setup.jdk();
    let java = Java::new(setup, jdk, "facts-other");
    let patch = java.folder().join("patch");
    let source = |name: &str, text: &str| {
        let file = java.folder().join("sources").join(name);
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|e| e.to_string())?;
        fs::write(&file, text).map_err(|e| e.to_string())?;
        Ok::<_, String>(file)
    };
    let made = source(
        "java/lang/Made.java",
        "package java.lang; class Made { static native Object make(int size); }",
    )?;
    let gone = source(
        "java/lang/ref/FinalizerHistogram.java",
        "package java.lang.ref; final class FinalizerHistogram { }",
    )?;
    let mut javac = Command::new(jdk.tool("javac"));
    let sources = java.folder().join("sources");
    javac
        .arg("--patch-module")
        .arg(format!("java.base={}", sources.display()));
    let done = javac
        .arg("-d")
        .arg(&patch)
        .args([made, gone])
        .output()
        .map_err(|e| e.to_string())?;
    ensure(done.status.success(), || {
        String::from_utf8_lossy(&done.stderr).into_owned()
    })?;
    let java = java
        .agent("facts=on")
        .flags([format!("--patch-module=java.base={}", patch.display())])
        .main([
            "LoadNamed",
            "java.lang.Made",
            "java.lang.ref.FinalizerHistogram",
        ]);
    let ended = java.run()?;
    let said = |text: &str| ended.stderr.contains(text);
    let native = format!("java.lang.Made.make(I)Ljava/lang/Object; {UNKNOWN}");
    let missing = format!("{MISSING} java.lang.ref.FinalizerHistogram.getFinalizerHistogram");
    ensure(
        ended.code == Some(0) && said(&native) && said(&missing),
        || ended.text(),
    )?;
    ensure(
        ended.stderr.matches(UNKNOWN).count() == 1 && ended.stderr.matches(MISSING).count() == 1,
        || ended.text(),
    )?;
    java.clean();
    Ok(())
}
