//! A debugger beside the agent: it pops frames, has them return at once, and gives classes other code while their methods run. What
//! happens then has the JVM's own trace.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use lucce_tests::{Checked, Java, Jdk, Setup};

use crate::{Test, test};

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        for (name, program, is_partial) in [
            ("frames", "Popped", false),
            ("frames-app", "Popped", true),
            ("gains-hooks", "GainsHooks", false),
        ] {
            let full = format!("debuggers::{}::{name}", jdk.version);
            tests.push(test(full, false, move || {
                check(setup, jdk, program, is_partial)
            }));
        }
    }
    tests
}

/// The debugger starts the JVM, and ends as it does. `is_partial`: the JDK's classes are out of scope.
fn check(setup: &Setup, jdk: &Jdk, program: &str, is_partial: bool) -> Checked {
    let (way, scope, flag) = match is_partial {
        true => ("-app", ",instrument=app", "-Dlucce.scope=app"),
        false => ("", "", ""),
    };
    let name = format!("debuggers-{}-{program}{way}", jdk.version);
    let java = Java::new(setup, jdk, &name);
    let class_path = [setup.programs(), setup.classes.clone(), setup.asm()?];
    let class_path = env::join_paths(class_path).map_err(|e| e.to_string())?;
    let options = format!(
        "-agentpath:{}=out={},events=alloc,verify=1{scope} {flag} -cp {}",
        setup.agent.display(),
        java.log().display(),
        class_path.to_string_lossy()
    );
    let mut debugger: Vec<OsString> = vec!["-cp".into(), setup.classes.clone().into()];
    debugger.push("Debugs".into());
    debugger.push(jdk.home.clone().into());
    debugger.push(options.into());
    debugger.push(format!("{program} debugger").into());
    let mut command = Command::new(setup.jdk().tool("java"));
    let ended = java.run_as(&mut command, &debugger)?.expect(0)?;
    ended.ensure(ended.last_line().starts_with("OK "), "no result")?;
    java.lucce().check(&java.log())?;
    java.clean();
    Ok(())
}
