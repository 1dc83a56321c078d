//! The checks that need nothing built before.

use std::process::Command;

use crate::requirements::{self, VALGRIND};
use crate::workspace_compiler::{self, WorkspaceCompiler};
use crate::{Outcome, build, doc_tests, jdk, paths, tools};

pub fn fmt() -> Outcome {
    tools::run(paths::cargo().args(["fmt", "--all", "--check"]))
}

/// The lints. If Clippy also compiles for the tests, their programs are made here.
pub fn clippy(compiler: WorkspaceCompiler) -> Outcome {
    let mut cargo = paths::cargo();
    compiler.configure(&mut cargo)?;
    match compiler {
        WorkspaceCompiler::Rustc => cargo.args(["clippy", "--all-targets"]),
        WorkspaceCompiler::Clippy => cargo.args(["test", "--no-run"]),
    };
    cargo.args(["--workspace", "--features", "lucce-tests/jvm", "--quiet"]);
    workspace_compiler::deny_warnings(build::with_jdk(&mut cargo))
}

/// What `cargo test` runs, without documentation: see [`test_documentation`].
const ALL_BUT_DOCUMENTATION: &str = "--tests";

/// With the classes of all JDKs that programs run on.
pub fn unit(compiler: WorkspaceCompiler) -> Outcome {
    let mut cargo = paths::cargo();
    compiler.configure(&mut cargo)?;
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    for jdk in jdk::all_tested()? {
        cargo.env(format!("JAVA{}_HOME", jdk.version), jdk.home);
    }
    tools::run(build::with_jdk(cargo.arg(ALL_BUT_DOCUMENTATION)))?;
    test_documentation(compiler)
}

/// The examples in documentation.
fn test_documentation(compiler: WorkspaceCompiler) -> Outcome {
    let packages = doc_tests::packages()?;
    if packages.is_empty() {
        return Ok(());
    }
    let mut cargo = paths::cargo();
    compiler.configure(&mut cargo)?;
    cargo.args(["test", "--doc"]);
    cargo.args(packages.iter().flat_map(|package| ["-p", package]));
    tools::run(build::with_jdk(&mut cargo))
}

/// Without the tests that go through whole JDKs.
pub fn unit_quick() -> Outcome {
    let mut cargo = paths::cargo();
    cargo.args([
        "test",
        "--workspace",
        "--exclude",
        "lucce-bytecode",
        "--no-fail-fast",
    ]);
    tools::run(build::with_jdk(cargo.arg(ALL_BUT_DOCUMENTATION)))?;
    test_documentation(WorkspaceCompiler::Rustc)
}

/// Those of the agent's tests that touch memory by its address and need no other part of the system than mappings: stacks,
/// files and signals are none of it, which the tests on real JVMs have.
const OF_MEMORY: [&str; 8] = [
    "core::agent_use",
    "memory::bit_set",
    "memory::java_caches",
    "memory::java_table",
    "memory::pages",
    "memory::grow_only_array",
    "memory::text_table",
    "thread::thread_tests",
];

/// The agent's memory, interpreted by Miri, which stops at what the language does not define. Where there is no Miri, valgrind
/// watches the compiled tests.
pub fn memory() -> Outcome {
    let mut cargo = match requirements::has_miri() {
        true => interpreted(),
        false => {
            println!(
                "Miri is missing ({}): valgrind watches memory instead",
                requirements::MIRI
            );
            requirements::check(&[VALGRIND])?;
            watched()
        }
    };
    cargo.arg("--").args(OF_MEMORY);
    tools::run(build::with_jdk(&mut cargo))
}

fn interpreted() -> Command {
    let mut cargo = Command::new("rustup");
    cargo.args([
        "run",
        "nightly",
        "cargo",
        "miri",
        "test",
        "-p",
        "lucce-agent",
        "--lib",
    ]);
    cargo.current_dir(paths::root());
    // The system says how much memory there is; some tables are never given back; Java code has addresses as numbers.
    cargo.env(
        "MIRIFLAGS",
        "-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-permissive-provenance",
    );
    cargo.env("PROPTEST_CASES", "4");
    // Those of the compiler that runs this are not Miri's.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        cargo.env_remove(name);
    }
    cargo.env("CARGO_TARGET_DIR", paths::target().join("miri"));
    cargo
}

fn watched() -> Command {
    let mut cargo = paths::cargo();
    cargo.args(["test", "-p", "lucce-agent", "--lib"]);
    cargo.env("PROPTEST_CASES", "4");
    let runner = "valgrind --quiet --error-exitcode=1";
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    cargo
}

/// The graph, and the words that Java code reads. In a target folder of its own: the flag would rebuild everything. The tests take
/// seconds and their dependencies most of a minute, so they are compiled as other tests are.
pub fn loom() -> Outcome {
    let mut cargo = paths::cargo();
    cargo.env("RUSTFLAGS", "--cfg loom");
    cargo.env("CARGO_TARGET_DIR", paths::target().join("loom"));
    cargo.args([
        "test",
        "-p",
        "lucce-callgraph",
        "-p",
        "lucce-layout",
        "--lib",
        "--test",
        "loom",
    ]);
    tools::run(&mut cargo)
}
