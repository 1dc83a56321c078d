//! `demo`: a real application under the agent, and what its log tells.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::suite::InstallOptions;
use crate::{Outcome, build, jdk, paths, requirements, tools};

/// # Errors
/// A program is missing, something does not build or does not run.
pub fn run(options: &InstallOptions) -> Outcome {
    requirements::provide(&[requirements::BUILD], options.installs())?;
    build::all()?;
    let folder = paths::target().join("demo");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let log = folder.join("lucene.lucce");
    record(&log)?;
    show(&["report", "--top", "2"], &log, &[])?;
    decode(&log)?;
    show(&["report", "--by", "type", "--top", "5"], &log, &[])?;
    show(&["report", "--tree", "--min-share", "15"], &log, &[])?;
    let page = folder.join("lucene.html");
    show(&["view"], &log, &["-o", &paths::short(&page)])?;
    let collapsed = folder.join("lucene.collapsed");
    show(
        &["export", "--format", "collapsed"],
        &log,
        &["-o", &paths::short(&collapsed)],
    )?;
    println!(
        "\na page for a browser: {}\ncollapsed stacks, for any flame graph tool: {}",
        paths::short(&page),
        paths::short(&collapsed)
    );
    Ok(())
}

/// Lucene indexes this very repository.
fn record(log: &Path) -> Outcome {
    let _ = fs::remove_file(log);
    let agent = format!(
        "-agentpath:{}=out={}",
        paths::short(&paths::agent()),
        paths::short(log)
    );
    let apps = "java-harness/apps/target";
    let class_path = format!("{apps}/apps.jar:{apps}/lib/*");
    let work = ["io.lucce.apps.LuceneIndex", ".", "--iterations", "1"];
    println!(
        "\n$ java {agent} \\\n    -cp '{class_path}' {}",
        work.join(" ")
    );
    let mut java = jdk::runner()?.java();
    java.current_dir(paths::root())
        .arg(agent)
        .args(["-cp", &class_path]);
    tools::run(java.args(work))
}

/// The number that allocated most, as a person would look it up.
fn decode(log: &Path) -> Outcome {
    let report = tools::output(lucce().args(["report", "--json", "--top", "1"]).arg(log))?;
    let report: Value = serde_json::from_slice(&report).map_err(|e| e.to_string())?;
    let id = report["contexts"][0]["id"]
        .as_str()
        .ok_or("the log has no events")?;
    show(&["decode"], log, &[id])
}

fn show(verb: &[&str], log: &Path, rest: &[&str]) -> Outcome {
    let log = paths::short(log);
    let args = [verb, &[&log], rest].concat();
    println!("\n$ {} {}", paths::short(&paths::lucce()), args.join(" "));
    tools::run(lucce().args(args))
}

fn lucce() -> Command {
    let mut lucce = Command::new(paths::lucce());
    lucce.current_dir(paths::root());
    lucce
}
