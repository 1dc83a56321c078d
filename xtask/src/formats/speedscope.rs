//! speedscope, in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Logs, totals};
use crate::{Outcome, pages, place, tools};

/// Its page shows the profiles of a file with their names and sums.
pub fn page(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.shop, "speedscope", "shop.speedscope.json", &[])?;
    let mut node = Command::new("node");
    node.arg("--test")
        .arg(sources().join("speedscope.test.mjs"));
    node.env("FILE", &file)
        .env("ALLOCATED", totals(&logs.shop, "alloc")?.0.to_string())
        .env("DELAY", totals(&logs.shop, "lock")?.0.to_string())
        .env("SPEEDSCOPE", installed()?)
        .env("CHROMIUM", "/usr/bin/chromium")
        .env("PLAYWRIGHT", pages::installed()?);
    tools::run_quietly(&mut node)
}

fn sources() -> PathBuf {
    place::root().join("tests/consumers")
}

/// Where its files are.
fn installed() -> Result<PathBuf, String> {
    let folder = place::target().join("consumers");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(sources().join(file), folder.join(file)).map_err(|e| format!("{file}: {e}"))?;
    }
    let page = Path::new("node_modules/speedscope/dist/release");
    if !folder.join(page).exists() {
        let mut npm = Command::new("npm");
        npm.current_dir(&folder)
            .args(["ci", "--silent", "--no-audit", "--no-fund"]);
        tools::run_quietly(&mut npm)?;
    }
    Ok(folder.join(page))
}
