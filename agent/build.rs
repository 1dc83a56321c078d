//! Compiles the helper class in its editions, with the JDK's own compiler, and what must be C.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[path = "../stream/src/java.rs"]
mod entry;
#[path = "src/state_layout.rs"]
mod state;

/// The constants that make the editions.
const CONSTANTS: [&str; 6] = ["LIVE", "VERIFY", "RECORD", "STREAM", "TREE", "PAPER"];
/// Name, and which constants are true.
const EDITIONS: [(&str, &[&str]); 13] = [
    ("boot", &[]),
    ("live", &["LIVE"]),
    ("verify", &["LIVE", "VERIFY"]),
    ("record", &["LIVE", "RECORD"]),
    ("record-verify", &["LIVE", "VERIFY", "RECORD"]),
    ("stream", &["LIVE", "STREAM"]),
    ("stream-verify", &["LIVE", "VERIFY", "STREAM"]),
    ("tree-stream", &["LIVE", "STREAM", "TREE"]),
    ("tree-stream-verify", &["LIVE", "VERIFY", "STREAM", "TREE"]),
    ("tree", &["LIVE", "TREE"]),
    ("tree-verify", &["LIVE", "VERIFY", "TREE"]),
    ("paper", &["LIVE", "PAPER"]),
    ("paper-verify", &["LIVE", "VERIFY", "PAPER"]),
];

/// What Java code and Rust both know of memory that both write.
fn layout() -> [(&'static str, i64); 12] {
    [
        ("IO_SINCE", state::IO_SINCE as i64),
        ("IO_BYTES", state::IO_BYTES as i64),
        ("CLONING", state::CLONING as i64),
        ("TEXT", state::TEXT as i64),
        ("PLACE", state::PLACE as i64),
        ("PLACE_NEXT", entry::PLACE_NEXT as i64),
        ("PLACE_END", entry::PLACE_END as i64),
        ("PLACE_CLOCK", entry::PLACE_CLOCK as i64),
        ("TIME_BITS", entry::TIME_BITS.into()),
        ("WORD", entry::WORD as i64),
        ("LONGEST", entry::LONGEST as i64),
        ("HAS_VALUE", entry::HAS_VALUE.cast_signed()),
    ]
}

fn main() {
    println!("cargo::rerun-if-changed=java");
    println!("cargo::rerun-if-changed=../stream/src/java.rs");
    println!("cargo::rerun-if-changed=src/state_layout.rs");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-env-changed=JAVA_HOME");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo::rerun-if-changed=include");
    cc::Build::new()
        .files(["c/bracket.c", "c/allocate.c", "c/place.c"])
        .warnings(true)
        .compile("jni");
    for (name, constants) in EDITIONS {
        edition(&out.join(name), constants);
    }
}

fn edition(out: &Path, set: &[&str]) {
    let mut text = fs::read_to_string("java/java/lang/LucceRt.java").expect("the helper's source");
    for constant in CONSTANTS {
        let value = set.contains(&constant).to_string();
        text = text.replace(&format!("__{constant}__"), &value);
    }
    for (name, value) in layout() {
        text = text.replace(&format!("__{name}__"), &value.to_string());
    }
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
        .arg("java/stub/java/lang/Class.java")
        .arg("java/stub/java/lang/Thread.java")
        .arg("java/stub/jdk/internal/access/JavaLangAccess.java")
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
