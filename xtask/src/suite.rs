//! `test`: all checks, one after the other; one that fails does not hide what the others find.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::{
    Outcome, apps, arch, arm64, build, checks, coverage, cpu, dependencies, fleet, formats, guard,
    jvm, maven, pages, shipped,
};

struct Step {
    name: &'static str,
    run: fn() -> Outcome,
    /// Runs what `build` makes.
    built: bool,
}

const fn step(name: &'static str, run: fn() -> Outcome) -> Step {
    Step {
        name,
        run,
        built: false,
    }
}

const fn built(name: &'static str, run: fn() -> Outcome) -> Step {
    Step {
        name,
        run,
        built: true,
    }
}

const BUILD: &str = "build";

/// # Errors
/// A check failed.
pub fn full() -> Outcome {
    all(&[
        step("fmt", checks::fmt),
        step("arch", arch::check),
        step("dependencies", dependencies::check),
        step("clippy", checks::clippy),
        step(BUILD, build::all),
        step("java", build::tested_java),
        step("unit", checks::unit),
        step("loom", checks::loom),
        step("memory", checks::memory),
        built("jvm-tests", || jvm::tests(&jvm::JvmTestOptions::default())),
        built("page-tests", pages::tests),
        built("format-tests", || formats::tests("")),
        built("fleet", fleet::check),
        built("shipped", shipped::check),
        built("arm64", arm64::check),
        built("maven", || maven::make::<&Path>(&[])),
        built("guard", guard::check),
        built("verify-apps", || {
            apps::verify(&apps::VerifyOptions::quick(None))
        }),
        built("coverage", || {
            coverage::check(&coverage::CoverageOptions::quick(None))
        }),
    ])
}

/// # Errors
/// A check failed.
pub fn quick() -> Outcome {
    all(&[
        step("fmt", checks::fmt),
        step("arch", arch::check),
        step(BUILD, build::all),
        step("unit", checks::unit_quick),
        built("jvm-tests", || {
            jvm::tests(&jvm::JvmTestOptions {
                quick: true,
                filter: Vec::new(),
            })
        }),
    ])
}

struct Done {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
    cpu: Duration,
}

fn all(steps: &[Step]) -> Outcome {
    let mut done: Vec<Done> = Vec::new();
    for step in steps {
        println!("\n=== {} ===", step.name);
        let (started, cpu) = (Instant::now(), cpu::of_children());
        let lacks_build = step.built
            && done
                .iter()
                .any(|done| done.name == BUILD && done.outcome.is_err());
        let outcome = match lacks_build {
            true => Err("not run: the build failed".to_owned()),
            false => (step.run)(),
        };
        if let Err(message) = &outcome {
            println!("{}: {message}", step.name);
        }
        done.push(Done {
            name: step.name,
            outcome,
            took: started.elapsed(),
            cpu: cpu::of_children().saturating_sub(cpu),
        });
    }
    summary(&done)
}

fn summary(done: &[Done]) -> Outcome {
    println!("\n=== summary ===");
    for Done {
        name,
        outcome,
        took,
        cpu,
    } in done
    {
        let result = outcome
            .as_ref()
            .map_or_else(|e| e.lines().next().unwrap_or("failed"), |()| "ok");
        let (took, cpu) = (took.as_secs_f64(), cpu.as_secs_f64());
        println!("{name:<13} {took:>6.1} s  {cpu:>6.1} s of CPU  {result}");
    }
    let sum = |of: fn(&Done) -> Duration| done.iter().map(of).sum::<Duration>().as_secs_f64();
    let (took, cpu) = (sum(|done| done.took), sum(|done| done.cpu));
    println!("{:<13} {took:>6.1} s  {cpu:>6.1} s of CPU", "all");
    let failed: Vec<&str> = done
        .iter()
        .filter(|done| done.outcome.is_err())
        .map(|done| done.name)
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: {}", failed.join(", "))),
    }
}
