//! `pictures`: those in the documents, of the page that the demo has made, by a headless Chromium.

use std::fs;
use std::process::Command;

use crate::{Outcome, pages, paths, tools};

/// The page's tabs, and the files under `docs/pictures`.
const PICTURES: [(&str, &str); 2] = [("overview", "overview.png"), ("flame", "flame.png")];

/// # Errors
/// There is no page of the demo, or no Chromium.
pub fn make() -> Outcome {
    let page = paths::target().join("demo/lucene.html");
    if !page.is_file() {
        return Err(format!(
            "{} is missing: `cargo xtask demo` makes it",
            paths::short(&page)
        ));
    }
    let folder = paths::root().join("docs/pictures");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for (tab, name) in PICTURES {
        let file = folder.join(name);
        let mut chromium = Command::new(pages::browser()?);
        chromium.args([
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--window-size=1200,640",
            "--virtual-time-budget=4000",
        ]);
        chromium.arg(format!("--screenshot={}", file.display()));
        chromium.arg(format!("file://{}#tab={tab}", page.display()));
        tools::run_quietly(&mut chromium)?;
        println!("{}", paths::short(&file));
    }
    Ok(())
}
