//! `lucce run`, with a shell script in Java's place.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lucce_testkit::programs::{copy_program, write_script};

/// A directory with the command, an agent beside it, and a `java` that prints its arguments.
fn installed() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("lucce");
    let built = Path::new(env!("CARGO_BIN_EXE_lucce"));
    if fs::hard_link(built, &program).is_err() {
        copy_program(env!("CARGO_BIN_EXE_lucce"), &program);
    }
    fs::write(dir.path().join("liblucce.so"), "").unwrap();
    let java = dir.path().join("java");
    write_script(&java, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n");
    (dir, program)
}

fn run(program: &Path, args: &[&str]) -> (Output, String) {
    let mut command = Command::new(program);
    let output = command
        .arg("run")
        .args(args)
        .current_dir(program.parent().unwrap())
        .output();
    let output = output.unwrap();
    let text = String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap();
    (output, text)
}

#[test]
fn the_agent_comes_right_after_java_and_the_exit_code_is_the_programs() {
    let (dir, program) = installed();
    let dir = dir.path().canonicalize().unwrap();
    let (output, text) = run(&program, &["--", "./java", "-jar", "a b.jar"]);
    let agent = dir.join("liblucce.so");
    assert_eq!(
        text,
        format!("<-agentpath:{}><-jar><a b.jar>", agent.display())
    );
    assert_eq!(output.status.code(), Some(7));
}

/// A script that starts JVMs hands the agent on to them.
#[test]
fn other_commands_get_the_agent_by_their_environment() {
    let (dir, program) = installed();
    let dir = dir.path().canonicalize().unwrap();
    let agent = dir.join("liblucce.so");
    let script = "printf '%s' \"$JAVA_TOOL_OPTIONS\"; exit 3";
    let (output, text) = run(
        &program,
        &["--events", "alloc,lock", "--", "sh", "-c", script],
    );
    let option = format!("-agentpath:{}=events=alloc+lock", agent.display());
    assert!(
        text == option || text.ends_with(&format!(" {option}")),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(3));
    let (_, text) = run(&program, &["--out", "a b.lucce", "--", "sh", "-c", script]);
    let out = dir.join("a b.lucce");
    let option = format!("\"-agentpath:{}=out={}\"", agent.display(), out.display());
    assert!(text.ends_with(&option), "{text}");
    // What the script starts may run in another folder.
    for out in [["--out", "a.lucce"], ["--opt", "out=a.lucce"]] {
        let (_, text) = run(&program, &[&out[..], &["--", "sh", "-c", script]].concat());
        let option = format!("=out={}", dir.join("a.lucce").display());
        assert!(text.ends_with(&option), "{text}");
    }
    let (output, text) = run(&program, &["--out", "a' b.lucce", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(2), "{text}");
}

#[test]
fn options_are_handed_on() {
    let (_dir, program) = installed();
    let options = [
        "--events",
        "alloc",
        "--out",
        "x-%p.lucce",
        "--opt",
        "verify=9",
        "--opt",
        "limit=1024k",
    ];
    let (_, text) = run(
        &program,
        &[&options[..], &["--", "./java", "Main"]].concat(),
    );
    assert!(
        text.ends_with("liblucce.so=out=x-%p.lucce,limit=1m,verify=9><Main>"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_started_is_named() {
    let (dir, program) = installed();
    let refused = |args: &[&str], why: &str| {
        let (output, text) = run(&program, args);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(why), "{text}");
    };
    refused(&["--", "./no-java"], "cannot start ./no-java");
    refused(&["--opt", "verify", "--", "./java"], "must be KEY=VALUE");
    refused(
        &["--out", "a,b", "--", "./java"],
        "cannot hold a comma: out=a,b",
    );
    refused(
        &["--opt", "evnts=alloc", "--", "./java"],
        "unknown option 'evnts', did you mean 'events'?",
    );
    refused(
        &["--events", "alloc,lok", "--", "./java"],
        "unknown event 'lok', did you mean 'lock'?",
    );
    refused(&[], "COMMAND");
    fs::remove_file(dir.path().join("liblucce.so")).unwrap();
    refused(&["--", "./java"], "liblucce.so is missing");
}
