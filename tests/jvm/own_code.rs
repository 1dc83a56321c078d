//! A report names the program's own code, however the program was started.

use std::fs;

use lucce_tests::{Checked, Java, Jdk, Setup, ensure};
use serde_json::json;

use crate::{Test, test};

const SOURCE: &str = "public class Hello {
    public static void main(String[] args) {
        System.out.println(String.join(\" \", args));
    }
}
";

pub fn tests(setup: &'static Setup) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in &setup.jdks {
        let name = |way| format!("own_code::{}::{way}", jdk.version);
        // A run-time image without a compiler cannot run a source file.
        if jdk.has_module("jdk.compiler") {
            let quick = jdk == setup.jdk();
            tests.push(test(name("source"), quick, move || source_file(setup, jdk)));
        }
        tests.push(test(name("jar"), false, move || {
            jar_of_main_class(setup, jdk)
        }));
        tests.push(test(name("walked"), false, move || {
            without_hooks(setup, jdk)
        }));
    }
    tests
}

/// `java Hello.java`: the JDK compiles the file in memory.
fn source_file(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("own-code-source-{}", jdk.version));
    fs::create_dir_all(java.folder()).map_err(|e| e.to_string())?;
    let file = java.folder().join("Hello.java");
    fs::write(&file, SOURCE).map_err(|e| e.to_string())?;
    let java = java
        .agent("events=alloc")
        .main([&*file.to_string_lossy(), "a"]);
    names_own_code(&java, &["Hello.java"])
}

/// `-cp programs.jar MAIN`. The API's jar has classes below the main class's package.
fn jar_of_main_class(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("own-code-jar-{}", jdk.version));
    let java = java
        .agent("events=alloc")
        .main(["io.lucce.programs.Lambdas"]);
    names_own_code(&java, &["io.lucce.*", "programs.jar"])
}

/// The agent sees classes on stacks only, and asks the VM for their protection domains.
fn without_hooks(setup: &Setup, jdk: &Jdk) -> Checked {
    let java = Java::new(setup, jdk, &format!("own-code-walked-{}", jdk.version));
    let java = java
        .agent("events=exception")
        .main(["io.lucce.programs.Exceptions"]);
    names_own_code(&java, &["programs.jar"])
}

fn names_own_code(java: &Java<'_>, expected: &[&str]) -> Checked {
    java.run()?.expect(0)?;
    let log = java.log().to_string_lossy().into_owned();
    let report = java
        .lucce()
        .json(&["report", "--json", "--top", "1", &log])?;
    ensure(report["own_code"] == json!(expected), || {
        format!("own code: {}, not {expected:?}", report["own_code"])
    })?;
    java.clean();
    Ok(())
}
