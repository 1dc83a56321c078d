//! What an agent costs besides speed: start-up, memory, compilation, more threads.

use lucce_bench::{Plan, Program};

use super::apps::{few, named};
use super::options::BenchOptions;
use super::{apps, growth, measured, show};
use crate::jdk::Jdk;
use crate::{Outcome, paths};

/// With so little work that it is their start that is measured.
const STARTED: [(&str, &str); 2] = [("H2Mix", "0.002"), ("FopRender", "0.01")];
const COMPILED: [&str; 3] = ["H2Mix", "XalanTransform", "EclipseCompile"];
const THREADED: [&str; 2] = ["H2Mix", "XalanTransform"];
const THREADS: [usize; 4] = [1, 2, 4, 8];

const PARTS: [&str; 5] = ["startup", "framework", "compiler", "threads", "log"];

/// # Errors
/// There is no such part or JDK, a program fails, or a log cannot be read.
pub fn run(options: &BenchOptions) -> Outcome {
    let jdk = options.jdk()?;
    let unknown = options
        .names
        .iter()
        .find(|name| !PARTS.contains(&name.as_str()));
    if let Some(name) = unknown {
        return Err(format!(
            "unknown part {name}; there are {}",
            PARTS.join(", ")
        ));
    }
    let wanted =
        |part: &&str| options.names.is_empty() || options.names.iter().any(|name| name == part);
    let part = |name: &str, plan: Plan| {
        let report = measured(&plan, name, &options.out);
        show(name, &report, &options.out)
    };
    let run = |name| match name {
        "startup" => part(name, startup(options, &jdk)),
        "framework" => part(name, framework(options, &jdk)),
        "compiler" => part(name, compiler(options, &jdk)),
        "threads" => part(name, threads(options, &jdk)),
        _ => growth::run(options, &jdk),
    };
    // What fails in one part does not hide the others.
    let done: Vec<Outcome> = PARTS.into_iter().filter(wanted).map(run).collect();
    done.into_iter().collect()
}

/// Whole processes, from start to end.
fn startup(options: &BenchOptions, jdk: &Jdk) -> Plan {
    let hello = paths::harness().join("apps/target/apps.jar");
    let hello = vec![
        "-cp".into(),
        hello.into(),
        "io.lucce.apps.HelloWorld".into(),
    ];
    let mut programs = vec![Program {
        name: "HelloWorld".into(),
        command: options.command(jdk, hello),
        whole: true,
        turns: false,
        warm_up: None,
    }];
    for (name, size) in STARTED {
        let app = named(name);
        let mut arguments = app.class_path_and_main();
        arguments.extend(["--iterations", "1", "--size", size].map(Into::into));
        arguments.extend(app.operand());
        programs.push(Program {
            name: name.into(),
            command: options.command(jdk, arguments),
            whole: true,
            turns: false,
            warm_up: None,
        });
    }
    let mut plan = options.plan(programs);
    plan.rounds = if options.quick { 4 } else { 15 };
    plan.warm_up = 1;
    plan
}

/// The start of a framework: a web shop with Spring Boot, JPA and H2, from the start of the process to the end of a few
/// requests.
fn framework(options: &BenchOptions, jdk: &Jdk) -> Plan {
    let jar = paths::harness().join("shop/target/shop.jar");
    let arguments = vec!["-jar".into(), jar.into(), "--shop.requests=4".into()];
    options.plan(vec![Program {
        name: "SpringShop".into(),
        command: options.command(jdk, arguments),
        whole: true,
        turns: false,
        warm_up: None,
    }])
}

/// The heap is touched before anything runs: what the process needs more is the agent's own, and
/// what the JVM keeps of larger methods.
fn compiler(options: &BenchOptions, jdk: &Jdk) -> Plan {
    let flags = ["-XX:+CITime", "-XX:+PrintCodeCache", "-XX:+AlwaysPreTouch"];
    let programs = few(options, &COMPILED).map(|name| {
        let mut program = apps::program(options, named(name), jdk, options.threads);
        let own = flags.map(Into::into).into_iter();
        let arguments = own.chain(program.command.arguments).collect();
        program.command.arguments = arguments;
        program
    });
    options.plan(programs.collect())
}

fn threads(options: &BenchOptions, jdk: &Jdk) -> Plan {
    let of = |name| {
        THREADS.map(|threads| Program {
            name: format!("{name} {threads}"),
            ..apps::program(options, named(name), jdk, Some(threads))
        })
    };
    options.plan(few(options, &THREADED).flat_map(of).collect())
}
