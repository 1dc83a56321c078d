//! Build, test and demo: one subcommand per check, the same here and in continuous integration.

mod arguments;
mod coverage;
mod cpu;
mod java_agents;
mod jdk;
mod paths;
mod pictures;
mod pip;
mod requirements;
mod side_by_side;
mod tools;
mod workloads;
mod workspace_compiler;

mod apps;
mod arch;
mod arm64;
mod bench;
mod build;
mod checks;
mod command_line;
mod compiled_bytes;
mod demo;
mod dependencies;
mod dist;
mod doc_tests;
mod fleet;
mod formats;
mod ids;
mod jvm;
mod licence;
mod linked;
mod maven;
mod pages;
mod perf_check;
mod record;
mod reference;
mod shipped;
mod starve;
mod store_server;
mod suite;
mod systems;

use std::process::ExitCode;

use bench::BenchOptions;
use command_line::XtaskCommand;
use dist::DistProduct;
use workspace_compiler::WorkspaceCompiler;

/// What went wrong, in words for the user.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    match run(command_line::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: XtaskCommand) -> Outcome {
    if command.needs_build() {
        build::all()?;
    }
    match command {
        XtaskCommand::Build => build::all(),
        XtaskCommand::BuildLab => build::lab_agent(),
        XtaskCommand::Demo(options) => demo::run(&options),
        XtaskCommand::Pictures => pictures::make(),
        XtaskCommand::Test(options) => suite::run(&options),
        XtaskCommand::Fmt => checks::fmt(),
        XtaskCommand::Arch { draw: false } => arch::check(),
        XtaskCommand::Arch { draw: true } => arch::draw(),
        XtaskCommand::Docs { check: false } => reference::write(),
        XtaskCommand::Docs { check: true } => reference::check(),
        XtaskCommand::Dependencies => dependencies::check(),
        XtaskCommand::Notice => dependencies::write_notice(),
        XtaskCommand::Clippy => checks::clippy(WorkspaceCompiler::Rustc),
        XtaskCommand::Unit { quick: false } => checks::unit(WorkspaceCompiler::Rustc),
        XtaskCommand::Unit { quick: true } => checks::unit_quick(),
        XtaskCommand::Loom => checks::loom(),
        XtaskCommand::Memory => checks::memory(),
        XtaskCommand::Java => build::tested_java(),
        XtaskCommand::Fleet => fleet::check(),
        XtaskCommand::Dist { system, product } => {
            let systems = system.map_or(systems::ALL.to_vec(), |system| vec![system]);
            let products = product.map_or(DistProduct::ALL.to_vec(), |product| vec![product]);
            dist::make(&systems, &products)
        }
        XtaskCommand::Bench(arguments) => {
            BenchOptions::new(*arguments).and_then(|options| bench::run(&options))
        }
        XtaskCommand::JvmTests(options) => jvm::tests(&options),
        XtaskCommand::LeakSuite(options) => jvm::leak_suite(&options),
        XtaskCommand::Soak { classes } => jvm::soak(classes),
        XtaskCommand::Starve(options) => starve::check(&options),
        XtaskCommand::PageTests => pages::tests(),
        XtaskCommand::FormatTests { name } => formats::tests(&name),
        XtaskCommand::FleetTests { engines } => fleet::tests(&engines),
        XtaskCommand::Ids => ids::run(),
        XtaskCommand::VerifyApps(options) => apps::verify(&options),
        XtaskCommand::Coverage(options) => coverage::check(&options),
        XtaskCommand::Shipped => shipped::check(),
        XtaskCommand::Arm64 => arm64::check(),
        XtaskCommand::Maven { archives } => maven::make(&archives),
        XtaskCommand::RecordCalls(options) => record::run(&options),
        XtaskCommand::PerfCheck { bless: false } => perf_check::check(),
        XtaskCommand::PerfCheck { bless: true } => perf_check::bless(),
    }
}
