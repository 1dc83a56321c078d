//! `page-tests`: the page of `lucce view` in a real Chromium, driven by Playwright.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, jdk, place, tools};

/// # Errors
/// A tool is missing, or a test failed.
pub fn tests() -> Outcome {
    tools::needed_for_pages()?;
    let folder = place::target().join("page-tests");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    compile(&folder)?;
    let logs = [record(&folder, "old", 1)?, record(&folder, "one", 4)?];
    let [old, one] = &logs;
    view(&[one], &folder.join("one.html"))?;
    view(&[old, one], &folder.join("two.html"))?;
    report(one, "alloc", &folder.join("one.json"))?;
    report(one, "lock", &folder.join("one-lock.json"))?;
    let mut node = Command::new("node");
    node.arg("--test").arg(sources().join("view.test.mjs"));
    node.env("PAGES", &folder)
        .env("CHROMIUM", "/usr/bin/chromium")
        .env("PLAYWRIGHT", installed()?);
    tools::run(&mut node)
}

fn sources() -> PathBuf {
    place::root().join("tests/browser")
}

/// The program that is recorded.
pub fn compile(folder: &Path) -> Outcome {
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let mut javac = Command::new(jdk.tool("javac"));
    javac.arg("-d").arg(folder).arg(sources().join("Shop.java"));
    tools::run_quietly(&mut javac)
}

/// Runs the program under the agent; the log.
pub fn record(folder: &Path, name: &str, rounds: u32) -> Result<PathBuf, String> {
    let log = folder.join(name).with_extension("lucce");
    let agent = place::agent();
    let options = format!("out={},events=alloc+lock,record=stream", log.display());
    let mut java = jdk::compiler().ok_or("no JDK that compiles")?.java();
    java.arg(format!("-agentpath:{}={options}", agent.display()))
        .arg("-cp")
        .arg(folder)
        .arg("Shop")
        .arg(rounds.to_string());
    tools::run_quietly(&mut java)?;
    Ok(log)
}

fn view(logs: &[&PathBuf], page: &Path) -> Outcome {
    let mut lucce = Command::new(place::lucce());
    tools::run_quietly(lucce.arg("view").args(logs).arg("-o").arg(page))
}

fn report(log: &Path, kind: &str, to: &Path) -> Outcome {
    let mut lucce = Command::new(place::lucce());
    let args = ["report", "--json", "--top", "0", "--event", kind];
    let said = tools::output(lucce.args(args).arg(log))?;
    fs::write(to, said).map_err(|e| format!("{}: {e}", to.display()))
}

/// Where playwright-core is, installed if it is not.
pub fn installed() -> Result<PathBuf, String> {
    let folder = place::target().join("browser-tests");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(sources().join(file), folder.join(file)).map_err(|e| format!("{file}: {e}"))?;
    }
    if !folder.join("node_modules/playwright-core").exists() {
        let mut npm = Command::new("npm");
        npm.current_dir(&folder)
            .args(["ci", "--silent", "--no-audit", "--no-fund"]);
        tools::run_quietly(&mut npm)?;
    }
    Ok(folder)
}
