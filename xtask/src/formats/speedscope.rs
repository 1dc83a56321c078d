//! speedscope, in a browser.

use std::process::Command;

use super::{Logs, consumers, totals};
use crate::{Outcome, pages, tools};

/// Its page shows the profiles of a file with their names and sums.
pub fn page(logs: &Logs) -> Outcome {
    let file = logs.export(&logs.shop, "speedscope", "shop.speedscope.json", &[])?;
    let mut node = Command::new("node");
    node.arg("--test")
        .arg(consumers::sources().join("speedscope.test.mjs"));
    node.env("FILE", &file)
        .env("ALLOCATED", totals(&logs.shop, "alloc")?.0.to_string())
        .env("DELAY", totals(&logs.shop, "lock")?.0.to_string())
        .env("SPEEDSCOPE", consumers::npm("speedscope/dist/release")?)
        .env("CHROMIUM", pages::browser()?)
        .env("PLAYWRIGHT", pages::installed()?);
    tools::run_quietly(&mut node)
}
