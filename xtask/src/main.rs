//! Build, test and demo: one subcommand per check, the same here and in continuous integration.

mod coverage;
mod cpu;
mod java_agents;
mod jdk;
mod pictures;
mod pip;
mod place;
mod side_by_side;
mod tools;
mod workloads;

mod apps;
mod arch;
mod arm64;
mod bench;
mod build;
mod checks;
mod demo;
mod dependencies;
mod dist;
mod fleet;
mod formats;
mod guard;
mod ids;
mod jvm;
mod licence;
mod maven;
mod pages;
mod record;
mod shipped;
mod starve;
mod suite;
mod systems;

use std::process::ExitCode;

/// What went wrong, in words for the user.
type Outcome = Result<(), String>;

const USAGE: &str = "usage: cargo xtask COMMAND

  build                 the agent, the lucce command and the Java side, ready to use
  demo                  builds, runs Lucene under the agent and shows what the log tells
  pictures              the documents' pictures, of the demo's page (chromium)
  test [--quick]        every check below; --quick: the fast ones, in under five minutes

  fmt                   formatting
  arch [--draw]         which crate may depend on which, which floor of the agent may import which;
                        --draw: the floors, as ARCHITECTURE.md has them
  dependencies          licences, sources and versions of what others wrote, and NOTICE
  clippy                lints, warnings are errors
  unit [--quick]        unit, property, file-format and command-line tests
  loom                  every interleaving of readers and writers of the graph, and of what Java code reads of the agent, in a model
  memory                what of the agent touches memory by its address, under Miri or else valgrind
  java                  the Java side's own tests
  jvm-tests [FILTER]    whole-system tests on real JVMs, 17, 21 and 25
            [--quick]   a few of them on one JVM
  leak-suite [PROGRAM]  programs that leak in a known way or not at all, under each collector, on 17 and 25
            [--jdk VERSION]  on one JDK only
            [--gc NAME]      with one collector only: Serial, Parallel, G1 or Z
  soak [CLASSES]        as many classes that come and go, of one name and of many, on each JDK: how much
                        the process grows (default 1000000, which takes an hour or more and 2 GB of disk)
  starve [--minutes N]  twelve JVMs on these processors, stopped at random for N minutes (default 10): the longest
                        wait for a lock of the agent, and how long a JVM takes to answer and to end
  page-tests            the pages of `lucce view` and `lucce serve` in Chromium
  format-tests [NAME]   what `lucce export` writes, read by the tools that it is for
  fleet                 the crate fleet/, a workspace of its own: formatting, lints, tests
  fleet-tests [ENGINE]  real runs in a dataset, the same SQL asked by DataFusion, DuckDB and Spark with two workers
                        (duckdb, spark or ballista: that one only; Ballista is compiled for it)
  ids                   contexts of one program that have the same content id on updates of a JDK and on
                        other JDKs, and what the ids take
  verify-apps           real applications, numbers compared with the JVM's own stack traces
      [--events N]      about how many comparisons in all (default 10000000)
      [--jdk VERSION]   on one JDK only
      [--app NAME]      one application only
      [--java-agent NAME]  little work beside a Java agent: empty, byte-buddy, jacoco, mockito, opentelemetry, or
                        all of them, one after the other
      [--first]         the Java agent comes before ours on the command line
      [--quick]         five applications, little work, 400000 comparisons
  shipped               the agent and the command: how large, which glibc they need, memory of each thread
  arm64                 the agent for Linux aarch64, and programs under it in qemu, numbers compared with stack traces
  dist [SYSTEM]         what users install, in target/dist: archives, Debian packages, checksums; SYSTEM: x64 or arm64 only
  maven [FOLDER...]     what Java projects name, in target/maven/repository, and a new project that uses it;
                        FOLDER: of this unpacked archive of `dist`, for systems that are older than this one, and for others
  notice                writes NOTICE: whose packages go into the agent and the command
  coverage              what of the bytes that the JVM allocates is counted: of constructs of all kinds, of applications
      [--jdk VERSION]   on one JDK only
      [--app NAME]      one application only
      [--quick]         of the applications H2Mix only, on two JDKs
  record                recordings of the applications' calls, for `lucce replay`
      [--app NAME]      one application only
      [--limit SIZE]    the largest size of each (default 32m)
  guard                 instructions of rewriting, encoding, decoding and log writing against
                        research/counts/counts.txt, and one quick ratio of the agent's cost
        [--bless]       writes the counts down
  bench [OPTIONS]       applications with and without agents, side by side; --dacapo JAR, --micro,
                        --footprint: other programs, other costs; --fleet: datasets of many runs;
                        bench --help tells all

Set JAVA_HOME, JAVA17_HOME, JAVA21_HOME or JAVA25_HOME if the JDKs are not in /usr/lib/jvm.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Outcome {
    match args {
        ["bench", rest @ ..] if asks_for_help(rest) => {
            println!("{}", bench::help());
            Ok(())
        }
        [_, rest @ ..] if asks_for_help(rest) => {
            println!("{USAGE}");
            Ok(())
        }
        ["build"] => build::all(),
        ["demo"] => demo::run(),
        ["pictures"] => pictures::make(),
        ["test"] => suite::full(),
        ["test", "--quick"] => suite::quick(),
        ["fmt"] => checks::fmt(),
        ["arch"] => arch::check(),
        ["arch", "--draw"] => arch::draw(),
        ["dependencies"] => dependencies::check(),
        ["shipped"] => build::all().and_then(|()| shipped::check()),
        ["arm64"] => build::all().and_then(|()| arm64::check()),
        ["dist"] => dist::make(&systems::ALL),
        ["dist", name] => match systems::System::named(name) {
            Some(system) => dist::make(&[system]),
            None => Err(format!("no such system: {name}")),
        },
        ["maven", archives @ ..] => build::all().and_then(|()| maven::make(archives)),
        ["notice"] => dependencies::write_notice(),
        ["clippy"] => checks::clippy(),
        ["unit"] => checks::unit(),
        ["unit", "--quick"] => checks::unit_quick(),
        ["loom"] => checks::loom(),
        ["memory"] => checks::memory(),
        ["java"] => build::tested_java(),
        ["jvm-tests", rest @ ..] => build::all().and_then(|()| jvm::tests(rest)),
        ["leak-suite", rest @ ..] => build::all().and_then(|()| jvm::leak_suite(rest)),
        ["starve", rest @ ..] => build::all().and_then(|()| starve::check(rest)),
        ["soak"] => build::all().and_then(|()| jvm::soak("1000000")),
        ["soak", classes] => build::all().and_then(|()| jvm::soak(classes)),
        ["page-tests"] => build::all().and_then(|()| pages::tests()),
        ["format-tests"] => build::all().and_then(|()| formats::tests("")),
        ["format-tests", name] => build::all().and_then(|()| formats::tests(name)),
        ["fleet"] => fleet::check(),
        ["fleet-tests"] => build::all().and_then(|()| fleet::tests(&["duckdb", "spark"])),
        ["fleet-tests", engine] => build::all().and_then(|()| fleet::tests(&[engine])),
        ["ids"] => build::all().and_then(|()| ids::run()),
        ["verify-apps", rest @ ..] => {
            let wish = apps::Wish::parse(rest)?;
            build::all().and_then(|()| apps::verify(&wish))
        }
        ["coverage", rest @ ..] => {
            let wish = coverage::Wish::parse(rest)?;
            build::all().and_then(|()| coverage::check(&wish))
        }
        ["bench", rest @ ..] => bench::Wish::parse(rest).and_then(|wish| bench::run(&wish)),
        ["guard"] => build::all().and_then(|()| guard::check()),
        ["guard", "--bless"] => build::all().and_then(|()| guard::bless()),
        ["record", rest @ ..] => {
            let wish = record::Wish::parse(rest)?;
            build::all().and_then(|()| record::run(&wish))
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => Err(format!("no command\n{USAGE}")),
        _ => Err(format!("not understood: {}\n{USAGE}", args.join(" "))),
    }
}

fn asks_for_help(args: &[&str]) -> bool {
    args.iter().any(|arg| ["--help", "-h"].contains(arg))
}
