//! A Java agent puts calls in front of everything that a method does, whichever agent comes first: numbers still
//! decode to the JVM's own traces.

use std::path::PathBuf;

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
    for jdk in setup.jdks_from_11() {
        for way in &WAYS {
            let name = format!("java_agents::{}::{}", jdk.version, way.0);
            let quick = jdk == setup.jdk() && way.0 == "default";
            tests.push(test(name, quick, move || check(setup, jdk, way)));
        }
        for how in ["twice", "full"] {
            let name = format!("java_agents::{}::disabled-{how}", jdk.version);
            tests.push(test(name, false, move || disabled(setup, jdk, how)));
        }
        for how in ["redefine", "retransform"] {
            let name = format!("java_agents::{}::gains-hooks-{how}", jdk.version);
            tests.push(test(name, false, move || {
                changes(setup, jdk, ("GainsHooks", how))
            }));
        }
        let name = format!("java_agents::{}::keeps-watch", jdk.version);
        tests.push(test(name, false, move || {
            changes(setup, jdk, ("KeepsWatch", "retransform"))
        }));
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
    let folder = format!("java-agents-{}-{name}", jdk.version);
    let java = Java::new(setup, jdk, &folder);
    let ours = format!(
        "-agentpath:{}=events=alloc,verify=13,out={}{options}",
        setup.agent.display(),
        java.log().display()
    );
    let theirs = format!(
        "-javaagent:{}={how}",
        agent_jar(setup, "Advised")?.display()
    );
    let flags = match ours_first {
        true => [ours, theirs],
        false => [theirs, ours],
    };
    let scope = (!options.is_empty()).then_some("-Dlucce.scope=outer");
    // In one JVM: what the other agent does at the start takes longer than programs do.
    let main = [&["io.lucce.programs.InTurn"], programs].concat();
    let java = java.flags(flags).flags(scope).main(main);
    let ended = java.run()?.expect(0)?;
    let right = ended.stdout.lines().filter(|line| line.starts_with("OK "));
    ended.ensure(
        right.count() == programs.len(),
        "the programs have numbers, and they are right",
    )?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}

/// A class that its loader cannot read again, so that Java agents have it with its hooks, asks for its number and tells of
/// an event: changed, it has the VM's own trace for both; what keeps the hooks of before is told, and counted.
fn disabled(setup: &Setup, jdk: &Jdk, how: &str) -> Checked {
    let java = Java::new(setup, jdk, &format!("disabled-{}-{how}", jdk.version));
    let theirs = format!("-javaagent:{}", agent_jar(setup, "Silenced")?.display());
    // To fill a constant pool takes 100,000 objects.
    let verify = if how == "full" { 331 } else { 1 };
    let ours = format!("events=alloc,verify={verify}");
    let java = java.agent(&ours).flags([theirs]);
    let java = java.main(["Silenced", how]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.stdout.contains("OK"), "numbers are right")?;
    java.lucce().check(&java.log())?;
    let log = java.log().display().to_string();
    let stats = java.lucce().stats(&log)?;
    let keeps = u64::from(how == "full");
    let kept = stats["agent"]["classes.kept_hooks"].as_u64();
    let warnings = stats["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    let warned = warnings.iter().filter(|warning| {
        let warning = warning.as_str().unwrap_or_default();
        warning.contains("made.Asks, which keeps the hooks of before")
    });
    let found = (
        kept,
        warned.count() as u64,
        ended.stderr.contains("made.Asks, which keeps"),
    );
    ended.ensure(
        found == (Some(keeps), keeps, keeps == 1),
        &format!("kept: {found:?}"),
    )?;
    if how == "twice" {
        let asked = java
            .lucce()
            .json(&["report", "--json", "--event", "asked", &log])?;
        let count = asked["totals"]["count"].as_u64();
        ended.ensure(count == Some(3), &format!("3 events, {count:?} counted"))?;
        let lost = stats["agent"]["events.lost"].as_u64();
        ended.ensure(lost == Some(0), &format!("lost: {lost:?}"))?;
    }
    java.clean();
    Ok(())
}

/// A class gets other code while its methods run, or while one of them is left without hooks: all that happens then has the
/// JVM's own trace. `GainsHooks` compares methods itself: lines of code that is being replaced are another matter.
fn changes(setup: &Setup, jdk: &Jdk, (program, how): (&str, &str)) -> Checked {
    let java = Java::new(
        setup,
        jdk,
        &format!("changes-{}-{program}-{how}", jdk.version),
    );
    let theirs = format!("-javaagent:{}={how}", agent_jar(setup, program)?.display());
    let compares = program == "GainsHooks";
    let verify = if compares { "" } else { ",verify=1" };
    let java = java
        .agent(&format!("events=alloc{verify}"))
        .flags([theirs])
        .main([program, how]);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.last_line().starts_with("OK "), "no result")?;
    match compares {
        true => {
            let log = java.log().display().to_string();
            java.lucce().text(0, &["check", &log])?;
        }
        false => java.lucce().check(&java.log())?,
    }
    java.clean();
    Ok(())
}

/// Nothing but what says where the agent `class` is, and what it needs.
pub fn agent_jar(setup: &Setup, class: &str) -> Result<PathBuf, String> {
    let lines = format!(
        "Premain-Class: {class}\nCan-Retransform-Classes: true\nCan-Redefine-Classes: true\nClass-Path: file:{}/\n  file:{}\n",
        setup.classes.display(),
        setup.asm()?.display()
    );
    setup.manifest_jar(class, &lines)
}
