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

/// Without `--` the first word that is no option of `run` begins the command; its own options are not those of `run`.
#[test]
fn the_command_needs_no_separator() {
    let (dir, program) = installed();
    let agent = dir.path().canonicalize().unwrap().join("liblucce.so");
    for options in [
        &[][..],
        &["--events", "alloc,lock"],
        &[
            "--events",
            "alloc+lock",
            "-o",
            "x.lucce",
            "--opt",
            "verify=9",
        ],
        &["--out", "x.lucce", "--opt", "limit=1m"],
    ] {
        let command = [
            "./java",
            "--out",
            "-o",
            "-jar",
            "--events=x",
            "--",
            "a b.jar",
        ];
        let with = run(&program, &[options, &["--"], &command].concat());
        let without = run(&program, &[options, &command].concat());
        assert_eq!(without.1, with.1);
        assert!(
            without
                .1
                .ends_with("><--out><-o><-jar><--events=x><--><a b.jar>")
                && without
                    .1
                    .starts_with(&format!("<-agentpath:{}", agent.display())),
            "{}",
            without.1
        );
        assert_eq!(without.0.status.code(), Some(7));
    }
    let (output, text) = run(&program, &["--evnts", "alloc", "./java"]);
    assert_eq!(output.status.code(), Some(2), "{text}");
}

/// A log that cannot be written ends the command before the program starts.
#[test]
fn a_log_that_cannot_be_written_is_refused_at_once() {
    let (dir, program) = installed();
    let dir = dir.path();
    fs::write(dir.join("notes.txt"), "no log").unwrap();
    fs::write(dir.join("empty.lucce"), "").unwrap();
    lucce_testkit::sample(&dir.join("old.lucce"));
    fs::create_dir(dir.join("folder")).unwrap();
    for (out, why) in [
        (
            "none/a.lucce",
            "cannot write none/a.lucce: No such file or directory",
        ),
        ("notes.txt/a.lucce", "Not a directory"),
        ("folder", "not an ordinary file"),
        ("notes.txt", "no log; it stays as it is"),
        ("/proc/a.lucce", "cannot write /proc/a.lucce"),
        (
            "%{LUCCE_NO_SUCH_VARIABLE}/a.lucce",
            "LUCCE_NO_SUCH_VARIABLE",
        ),
    ] {
        for option in [["--out", out], ["--opt", &format!("out={out}")]] {
            for command in ["./java", "sh"] {
                let (output, text) = run(&program, &[&option[..], &[command]].concat());
                assert_eq!(output.status.code(), Some(2), "{out}: {text}");
                assert!(
                    text.contains(why) && text.lines().count() == 1,
                    "{out}: {text}"
                );
            }
        }
    }
    for out in [
        "empty.lucce",
        "old.lucce",
        "new.lucce",
        "folder/a-%p-%t%%.lucce",
    ] {
        let (output, text) = run(&program, &["--out", out, "./java"]);
        assert_eq!(output.status.code(), Some(7), "{out}: {text}");
    }
    // The check leaves nothing behind.
    assert_eq!(fs::read_dir(dir.join("folder")).unwrap().count(), 0);
    assert!(!dir.join("new.lucce").exists());
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
