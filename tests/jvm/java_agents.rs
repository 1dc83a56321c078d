//! A Java agent puts calls in front of everything that a method does, whichever agent comes first: numbers still
//! decode to the JVM's own traces.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use lucce_tests::{Checked, Java, Jdk, Setup};

use crate::{Test, test};

/// The order on the command line, the Java agent's options, and ours beside those that all have.
const WAYS: [(&str, bool, &str, &str); 5] = [
    ("default", true, "", ""),
    ("last", false, "", ""),
    ("retransform", true, "retransform", ""),
    ("loaded", true, "loaded", ""),
    ("scope", true, "", ",exclude=*$*"),
];

const PROGRAMS: [&str; 3] = ["Exceptions", "Lambdas", "Constructors"];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for way in &WAYS {
            let name = format!("java_agents::{}::{}", jdk.version, way.0);
            let quick = jdk == setup.jdk() && way.0 == "default";
            tests.push(test(name, quick, move || check(setup, jdk, way)));
        }
    }
    tests
}

fn check(
    setup: &Setup,
    jdk: &Jdk,
    &(name, ours_first, how, options): &(&str, bool, &str, &str),
) -> Checked {
    // Where ours comes first is what matters.
    let programs = match name {
        "last" => &PROGRAMS[..1],
        _ => &PROGRAMS,
    };
    for program in programs {
        let folder = format!("java-agents-{}-{name}-{program}", jdk.version);
        let java = Java::new(setup, jdk, &folder);
        let ours = format!(
            "-agentpath:{}=events=alloc,verify=13,out={}{options}",
            setup.agent.display(),
            java.log().display()
        );
        fs::create_dir_all(java.folder()).map_err(|e| e.to_string())?;
        let theirs = format!("-javaagent:{}={how}", agent_jar(setup, &java)?.display());
        let flags = match ours_first {
            true => [ours, theirs],
            false => [theirs, ours],
        };
        let scope = (!options.is_empty()).then_some("-Dlucce.scope=outer");
        let java = java
            .flags(flags)
            .flags(scope)
            .main([format!("io.lucce.programs.{program}")]);
        let ended = java.run()?.expect(0)?;
        ended.ensure(
            ended.stdout.lines().any(|line| line.starts_with("OK ")),
            "the program has numbers, and they are right",
        )?;
        java.lucce().check(&java.log())?;
        java.clean();
    }
    Ok(())
}

/// Nothing but what says where `Advised` is, and what it needs.
fn agent_jar(setup: &Setup, java: &Java<'_>) -> Result<PathBuf, String> {
    let (manifest, jar) = (
        java.folder().join("manifest"),
        java.folder().join("agent.jar"),
    );
    let lines = format!(
        "Premain-Class: Advised\nCan-Retransform-Classes: true\nClass-Path: file:{}/\n  file:{}\n",
        setup.classes.display(),
        setup.asm()?.display()
    );
    fs::write(&manifest, lines).map_err(|e| e.to_string())?;
    let mut tool = Command::new(setup.jdk().tool("jar"));
    let made = tool
        .arg("cfm")
        .arg(&jar)
        .arg(&manifest)
        .output()
        .map_err(|e| e.to_string())?;
    match made.status.success() {
        true => Ok(jar),
        false => Err(String::from_utf8_lossy(&made.stderr).into_owned()),
    }
}
