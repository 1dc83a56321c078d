//! `JAVA_TOOL_OPTIONS` and the command line both name the agent: the first one records, the second one is told, the JVM starts.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use lucce_tests::{Checked, Java, Setup, ensure};

use crate::{Test, test};

const PROGRAM: &str = "io.lucce.programs.Counts";

/// What the command line names beside `JAVA_TOOL_OPTIONS`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    Equal,
    OtherOptions,
    /// Options that no agent takes.
    WrongOptions,
    /// A copy of the library, which the VM loads beside the first one.
    Copy,
}

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    [
        ("equal", Second::Equal),
        ("other", Second::OtherOptions),
        ("wrong", Second::WrongOptions),
        ("copy", Second::Copy),
    ]
    .into_iter()
    .map(|(name, second)| {
        test(format!("second_start::{name}"), false, move || {
            starts(setup, name, second)
        })
    })
    .collect()
}

fn starts(setup: &Setup, name: &str, second: Second) -> Checked {
    let java = Java::new(setup, setup.jdk(), &format!("second-start-{name}"));
    fs::create_dir_all(java.folder()).map_err(|e| e.to_string())?;
    let (log, other) = (java.log(), java.folder().join("other.lucce"));
    let first = format!("out={},events=alloc,verify=5", log.display());
    let library = match second {
        Second::Copy => {
            let copy = java.folder().join("libcopy.so");
            fs::copy(&setup.agent, &copy).map_err(|e| e.to_string())?;
            copy
        }
        _ => setup.agent.clone(),
    };
    let options = match second {
        Second::Equal => first.clone(),
        Second::OtherOptions | Second::Copy => format!("out={},events=lock", other.display()),
        Second::WrongOptions => "events=nothing-known".to_owned(),
    };
    let java = java
        .flags([format!("-agentpath:{}={options}", library.display())])
        .main([PROGRAM]);
    let tool_options = format!("-agentpath:{}={first}", setup.agent.display());
    let mut arguments: Vec<OsString> = vec![setup.jdk().tool("java").into()];
    arguments.extend(java.arguments());
    let mut command = Command::new("env");
    command.arg(format!("JAVA_TOOL_OPTIONS={tool_options}"));
    let ended = java.run_as(&mut command, &arguments)?.expect(0)?;
    let said = ended.agent_lines();
    let twice: Vec<_> = said
        .iter()
        .filter(|line| line.contains("named twice"))
        .collect();
    let [line] = twice[..] else {
        return Err(format!("one line of the second start\n{}", ended.text()));
    };
    let is_right = match second {
        Second::Equal => line.contains("the second one is ignored"),
        _ => line.contains(&first) && line.contains(&options) && line.contains("refuses"),
    };
    ended.ensure(is_right, "the line says what is done")?;
    ended.ensure(!other.exists(), "the second one makes no log")?;
    let expected: u64 = ended
        .stdout
        .lines()
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    let log = log.to_string_lossy();
    let report = java
        .lucce()
        .json(&["report", "--json", "--top", "0", &*log])?;
    let counted = crate::bursts::own(&report)?;
    ensure(counted == expected && expected > 10_000, || {
        format!("{counted} of {expected} allocations are counted")
    })?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}
