//! Compiles the helper class in its editions, with the JDK's own compiler, and the JNI brackets.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Name, and whether it is live, verifies, records calls.
const EDITIONS: [(&str, [&str; 3]); 5] = [
    ("boot", ["false", "false", "false"]),
    ("live", ["true", "false", "false"]),
    ("verify", ["true", "true", "false"]),
    ("record", ["true", "false", "true"]),
    ("record-verify", ["true", "true", "true"]),
];

fn main() {
    println!("cargo::rerun-if-changed=java");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-env-changed=JAVA_HOME");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    cc::Build::new()
        .file("c/bracket.c")
        .warnings(true)
        .compile("bracket");
    for (name, constants) in EDITIONS {
        edition(&out.join(name), constants);
    }
}

fn edition(out: &Path, [live, verify, record]: [&str; 3]) {
    let text = fs::read_to_string("java/java/lang/LucceRt.java").expect("the helper's source");
    let text = text.replace("__LIVE__", live).replace("__VERIFY__", verify);
    let text = text.replace("__RECORD__", record);
    let source = out.join("java/lang/LucceRt.java");
    fs::create_dir_all(source.parent().expect("a folder")).expect("OUT_DIR is writable");
    fs::write(&source, text).expect("OUT_DIR is writable");
    compile(out, &source);
}

fn compile(out: &Path, source: &Path) {
    let javac = env::var_os("JAVA_HOME")
        .map_or("javac".into(), |home| PathBuf::from(home).join("bin/javac"));
    let patch = format!("java.base=java/stub:{}", out.display());
    let done = Command::new(&javac)
        .args([
            "-nowarn",
            "-XDignore.symbol.file",
            "-source",
            "17",
            "-target",
            "17",
            "-g:none",
        ])
        .args([
            "-Xlint:-options",
            "-proc:none",
            "--patch-module",
            &patch,
            "-d",
        ])
        .arg(out)
        .arg(source)
        .arg("java/stub/java/lang/Thread.java")
        .status();
    match done {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} failed on the helper class: {status}", javac.display()),
        Err(e) => panic!(
            "cannot run {}: {e}; install a JDK (17 or later), e.g. `apt-get install openjdk-17-jdk-headless`, or set JAVA_HOME",
            javac.display()
        ),
    }
}
