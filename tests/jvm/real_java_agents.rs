//! Java agents that others wrote, from Maven Central, at work: every number decodes to the JVM's own trace, and no event is
//! lost.

use std::path::PathBuf;

use lucce_tests::{Checked, Ended, Java, Jdk, Setup, ensure};
use serde_json::Value;

use crate::{Test, test};

/// Name, manifest's lines and class of the agents of our own.
const OWN: [(&str, &str, &str); 4] = [
    ("empty", "Empty", ""),
    ("early", "Early", ""),
    ("capable", "Empty", "Can-Retransform-Classes: true\n"),
    (
        "advising",
        "Advising",
        "Can-Retransform-Classes: true\nCan-Redefine-Classes: true\n",
    ),
];

const JACOCO: &str = "org.jacoco.agent-runtime";
const OPEN_TELEMETRY: &str = "opentelemetry-javaagent";
const MOCKITO: &str = "mockito-core";

/// A JVM with Java agents.
struct Way {
    name: &'static str,
    /// On the command line.
    agents: &'static [&'static str],
    program: &'static str,
    /// Agents that are attached, or what else the program is told.
    told: &'static [&'static str],
    /// Every so manieth event is compared.
    verify: u32,
}

const WAYS: [Way; 10] = [
    Way {
        name: "empty",
        agents: &["empty"],
        program: "Work",
        told: &[],
        verify: 1,
    },
    Way {
        name: "first",
        agents: &["early"],
        program: "Work",
        told: &[],
        verify: 1,
    },
    Way {
        name: "advising",
        agents: &["capable", "advising"],
        program: "Work",
        told: &[],
        verify: 13,
    },
    // Of the first one's classes nothing is left that has no hooks, and the second one wants them.
    Way {
        name: "twice",
        agents: &["advising=once"],
        program: "Work",
        told: &["advising"],
        verify: 31,
    },
    Way {
        name: "jacoco",
        agents: &[JACOCO, "advising"],
        program: "Work",
        told: &["capable"],
        verify: 31,
    },
    Way {
        name: "attached",
        agents: &[],
        program: "Work",
        told: &["advising", "empty"],
        verify: 13,
    },
    Way {
        name: "mockito",
        agents: &[],
        program: "Mocks",
        told: &[],
        verify: 31,
    },
    Way {
        name: "mockito-jacoco",
        agents: &[MOCKITO, JACOCO],
        program: "Mocks",
        told: &[],
        verify: 31,
    },
    Way {
        name: "mockito-subclass",
        agents: &["empty"],
        program: "Mocks",
        told: &["subclass"],
        verify: 31,
    },
    Way {
        name: "opentelemetry",
        agents: &[OPEN_TELEMETRY],
        program: "Persist",
        told: &[],
        verify: 499,
    },
];

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in setup.jdks_from_11() {
        for way in &WAYS {
            let name = format!("real_java_agents::{}::{}", jdk.version, way.name);
            let quick = jdk == setup.jdk() && way.name == "empty";
            tests.push(test(name, quick, move || check(setup, jdk, way)));
        }
    }
    tests
}

fn check(setup: &Setup, jdk: &Jdk, way: &Way) -> Checked {
    let folder = format!("real-java-agents-{}-{}", jdk.version, way.name);
    let java = Java::new(setup, jdk, &folder);
    let agents = Agents { setup };
    let mut flags: Vec<String> = Vec::new();
    for agent in way.agents {
        let (name, how) = agent.split_once('=').unwrap_or((agent, ""));
        let jar = agents.jar(name)?;
        let how = match name {
            JACOCO => {
                let file = java.folder().join("jacoco.exec");
                // Without ByteBuddy's classes: there are thousands.
                format!("includes=io.lucce.*:org.*,destfile={}", file.display())
            }
            _ => how.into(),
        };
        flags.push(format!("-javaagent:{}={how}", jar.display()));
    }
    // Nothing is to be sent anywhere.
    for kind in ["traces", "metrics", "logs"] {
        flags.push(format!("-Dotel.{kind}.exporter=none"));
    }
    if jdk.version >= 21 {
        flags.push("-XX:+EnableDynamicAgentLoading".into());
    }
    let libraries = agents.folder();
    let class_path = format!("{0}/agents.jar:{0}/lib/*", libraries.display());
    let mut main = vec![format!("io.lucce.agents.{}", way.program)];
    for told in way.told {
        main.push(match OWN.iter().any(|own| own.0 == *told) {
            true => agents.jar(told)?.display().to_string(),
            false => (*told).into(),
        });
    }
    let ours = format!("events=alloc,verify={}", way.verify);
    let java = match way.name {
        "first" => java.agent_behind(&ours, flags),
        _ => java.agent(&ours).flags(flags),
    };
    let java = java.class_path(class_path).main(main);
    let ended = java.run()?.expect(0)?;
    ended.ensure(ended.stdout.contains("OK"), "the program did its work")?;
    java.lucce().check(&java.log())?;
    let log = java.log().display().to_string();
    let stats = java.lucce().stats(&log)?;
    nothing_is_lost(&stats)?;
    warnings_are_known(&ended, &stats)?;
    if way.name == "first" {
        changing_is_counted(&java, &log)?;
    }
    if way.program == "Work" {
        let here = "io.lucce.agents.Work$Defined";
        let of_work = ["report", "--json", "--top", "1000", "--include", here, &log];
        defined_is_counted(&java.lucce().json(&of_work)?)?;
    }
    java.clean();
    Ok(())
}

fn nothing_is_lost(stats: &Value) -> Checked {
    for key in ["events.lost", "agent.upcalls_lost", "agent.panics"] {
        let count = &stats["agent"][key];
        ensure(count.as_u64() == Some(0), || format!("{key}: {count}"))?;
    }
    Ok(())
}

/// What went to standard error is in the log. Some methods of Java agents are nearly as large as a method can be.
fn warnings_are_known(ended: &Ended, stats: &Value) -> Checked {
    let said = ended.stderr.lines();
    let mut said: Vec<_> = said
        .filter_map(|line| line.strip_prefix("lucce: "))
        .filter(|line| !line.contains(" recorded in "))
        .collect();
    let told = stats["warnings"].as_array().ok_or("no warnings")?;
    let mut told: Vec<_> = told.iter().filter_map(Value::as_str).collect();
    // Threads warn at once.
    said.sort_unstable();
    told.sort_unstable();
    ensure(told == said, || format!("said {said:?}, told {told:?}"))?;
    let mut told = told.into_iter();
    let other = told.find(|warning| !warning.ends_with(": method would be too large"));
    ensure(other.is_none(), || format!("warning: {other:?}"))
}

/// What a Java agent's thread makes in the middle of a change of a class that begins before the program does. Other
/// agents' transformers of classes that are loaded meanwhile may make arrays there, too.
fn changing_is_counted(java: &Java<'_>, log: &str) -> Checked {
    let agents = "io.lucce.agents.Early*";
    let asked = ["report", "--json", "--top", "0", "--include", agents, log];
    let report = java.lucce().json(&asked)?;
    let rows = report["contexts"].as_array().map_or(&[][..], Vec::as_slice);
    let made = |row: &&Value| {
        let frames = row["frames"].as_array().map_or(&[][..], Vec::as_slice);
        let deep = frames
            .first()
            .is_some_and(|frame| frame["method"] == "deep");
        let mut classes = frames.iter().map(|frame| &frame["class"]);
        deep && row["class"] == "int[]"
            && classes.any(|class| class == "io.lucce.agents.Early$Changing")
    };
    let arrays = rows.iter().filter(made);
    let arrays: u64 = arrays.filter_map(|row| row["count"].as_u64()).sum();
    ensure(arrays == 100, || format!("arrays made meanwhile: {arrays}"))
}

/// The class that `Lookup.defineClass` makes runs six times.
fn defined_is_counted(report: &Value) -> Checked {
    let of_defined = |row: &&Value| {
        let first = &row["frames"][0];
        let of = |name| first["class"] == "io.lucce.agents.Work$Defined" && first["method"] == name;
        of("run") || of("makes")
    };
    let rows = report["contexts"].as_array().map_or(&[][..], Vec::as_slice);
    let arrays = |class| {
        let rows = rows.iter().filter(of_defined);
        let rows = rows.filter(|row| row["class"] == class);
        rows.filter_map(|row| row["count"].as_u64()).sum::<u64>()
    };
    let found = (arrays("int[]"), arrays("java.lang.Object[]"));
    ensure(found == (6, 6), || {
        format!("arrays made in Work$Defined: {found:?}")
    })
}

/// Where the agents' jars are.
#[derive(Clone, Copy)]
struct Agents<'a> {
    setup: &'a Setup,
}

impl Agents<'_> {
    fn folder(self) -> PathBuf {
        self.setup.harness.join("agents/target")
    }

    fn jar(self, name: &str) -> Result<PathBuf, String> {
        match OWN.iter().find(|own| own.0 == name) {
            Some((_, class, lines)) => self.own(name, class, lines),
            None => Ok(self.folder().join(format!("lib/{name}.jar"))),
        }
    }

    /// Nothing but a manifest.
    fn own(self, name: &str, class: &str, lines: &str) -> Result<PathBuf, String> {
        let target = self.folder();
        let lines = format!(
            "Premain-Class: io.lucce.agents.{class}\nAgent-Class: io.lucce.agents.{class}\n{lines}Class-Path: file:{0}/agents.jar\n  file:{0}/lib/byte-buddy.jar\n",
            target.display()
        );
        self.setup.manifest_jar(name, &lines)
    }
}
