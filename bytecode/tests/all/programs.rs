//! Programs compute with all hooks on what they compute without.

use std::fs;
use std::path::Path;
use std::process::Command;

use lucce_bytecode::RewrittenClass;

use crate::assembled;
use lucce_classkit::jdks::{self, Folder, Jdk, source, text};
use lucce_classkit::plans::{rewrite_everything, rewrite_everything_wide};

fn rewrite_folder(from: &Path, to: &Folder, rewrite: fn(&[u8]) -> RewrittenClass) {
    for file in fs::read_dir(from).expect("a folder").flatten() {
        let bytes = fs::read(file.path()).expect("a class");
        let rewritten = rewrite(&bytes);
        assert!(
            rewritten.skipped.is_empty(),
            "{:?}: {:?}",
            file.path(),
            rewritten.skipped
        );
        to.write(&file.file_name().to_string_lossy(), &rewritten.bytes);
    }
}

fn java(jdk: &Jdk, classes: &Path, hooks: &Path) -> Command {
    let mut java = jdk.tool("java");
    java.args(["-Xverify:all", "-Dlucce.report=true", "-cp"]);
    java.arg(std::env::join_paths([classes, hooks]).expect("a path"));
    java
}

fn output(java: &mut Command) -> (String, String) {
    let output = java.output().expect("java starts");
    assert!(output.status.success(), "{}", text(&output));
    let to_text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (to_text(&output.stdout), to_text(&output.stderr))
}

/// Runs the classes as they are and rewritten both ways; the output must be the same.
fn compare(jdk: &Jdk, plain: &Path, main: &[&str]) {
    let hooks = Folder::create();
    jdk.compile(&hooks.0, &[], &[source("Hooks.java"), source("Run.java")]);
    let (expected, _) = output(java(jdk, plain, &hooks.0).args(main));
    for rewrite in [rewrite_everything, rewrite_everything_wide] {
        let hooked = Folder::create();
        rewrite_folder(plain, &hooked, rewrite);
        let (stdout, report) = output(java(jdk, &hooked.0, &hooks.0).args(main));
        assert_eq!(stdout, expected);
        let report = report.lines().rfind(|line| line.starts_with("hooks:"));
        println!(
            "JDK {}: {main:?} {}",
            jdk.version,
            report.expect("a report")
        );
        assert!(report.is_some_and(|report| report.ends_with("errors=0")));
    }
}

#[test]
fn compiled_programs_compute_the_same() {
    for jdk in jdks::all() {
        for options in [
            &["-g", "--release", "8"][..],
            &["-g"],
            &["-g:none", "--release", "11"],
        ] {
            let plain = Folder::create();
            let options = [options, &["-nowarn", "-Xlint:-options"]].concat();
            jdk.compile(&plain.0, &options, &[source("Edges.java")]);
            compare(&jdk, &plain.0, &["Edges"]);
        }
    }
}

#[test]
fn assembled_classes_compute_the_same() {
    let plain = Folder::create();
    let classes = assembled::all();
    for (name, bytes) in &classes {
        plain.write(&format!("{name}.class"), bytes);
    }
    let mut main = vec!["Run"];
    main.extend(classes.iter().map(|(name, _)| name.as_str()));
    for jdk in jdks::all() {
        compare(&jdk, &plain.0, &main);
    }
}
