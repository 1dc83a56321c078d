//! The checks that need nothing built before.

use crate::{Outcome, build, jdk, place, tools};

pub fn fmt() -> Outcome {
    tools::run(place::cargo().args(["fmt", "--all", "--check"]))
}

pub fn clippy() -> Outcome {
    let mut cargo = place::cargo();
    cargo.args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        "lucce-tests/jvm",
    ]);
    tools::run(build::with_jdk(
        cargo.args(["--quiet", "--", "-D", "warnings"]),
    ))
}

/// With the classes of all JDKs that programs run on.
pub fn unit() -> Outcome {
    let mut cargo = place::cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    for jdk in jdk::tested()? {
        cargo.env(format!("JAVA{}_HOME", jdk.version), jdk.home);
    }
    tools::run(build::with_jdk(&mut cargo))
}

/// Without the tests that go through whole JDKs.
pub fn unit_quick() -> Outcome {
    let mut cargo = place::cargo();
    cargo.args([
        "test",
        "--workspace",
        "--exclude",
        "lucce-bytecode",
        "--no-fail-fast",
    ]);
    tools::run(build::with_jdk(&mut cargo))
}

/// In a target folder of its own: the flag would rebuild everything.
pub fn loom() -> Outcome {
    let mut cargo = place::cargo();
    cargo.env("RUSTFLAGS", "--cfg loom");
    cargo.env("CARGO_TARGET_DIR", place::target().join("loom"));
    cargo.args([
        "test",
        "--release",
        "-p",
        "lucce-callgraph",
        "--lib",
        "--test",
        "loom",
    ]);
    tools::run(&mut cargo)
}
