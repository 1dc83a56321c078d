//! Which crate may depend on which, read from `cargo metadata`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Outcome, place, tools};

const ALLOWED: [(&str, &[&str]); 22] = [
    ("lucce-bytecode", &[]),
    ("lucce-callgraph", &[]),
    ("lucce-filter", &[]),
    ("lucce-contentid", &[]),
    ("lucce-kcontexts", &[]),
    ("lucce-formats", &[]),
    ("lucce-tracelog", &["lucce-callgraph"]),
    ("lucce-recording", &["lucce-callgraph", "lucce-tracelog"]),
    ("lucce-stream", &["lucce-callgraph", "lucce-tracelog"]),
    ("lucce-replay", &["lucce-callgraph", "lucce-recording"]),
    ("lucce-control", &[]),
    ("lucce-ship", &["lucce-tracelog"]),
    ("lucce-vm", &["lucce-bytecode"]),
    ("lucce-hooks", &["lucce-bytecode"]),
    (
        "lucce-agent",
        &[
            "lucce-bytecode",
            "lucce-hooks",
            "lucce-vm",
            "lucce-callgraph",
            "lucce-contentid",
            "lucce-filter",
            "lucce-tracelog",
            "lucce-recording",
            "lucce-stream",
            "lucce-control",
            "lucce-ship",
        ],
    ),
    ("lucce-models", &["lucce-hooks"]),
    ("lucce-bench", &[]),
    (
        "lucce-decoder",
        &[
            "lucce-callgraph",
            "lucce-contentid",
            "lucce-filter",
            "lucce-kcontexts",
            "lucce-formats",
            "lucce-tracelog",
            "lucce-recording",
            "lucce-stream",
            "lucce-replay",
            "lucce-bench",
            "lucce-control",
            "lucce-ship",
        ],
    ),
    (
        "lucce-counts",
        &["lucce-bytecode", "lucce-callgraph", "lucce-tracelog"],
    ),
    ("lucce-variations", &["lucce-callgraph", "lucce-tracelog"]),
    ("lucce-tests", &[]),
    ("xtask", &["lucce-bench"]),
];

/// # Errors
/// Names every dependency that must not be.
pub fn check() -> Outcome {
    let mut metadata = place::cargo();
    metadata.args(["metadata", "--no-deps", "--format-version=1"]);
    let metadata = tools::output(&mut metadata)?;
    let metadata: Value = serde_json::from_slice(&metadata).map_err(|e| e.to_string())?;
    let packages = list(&metadata["packages"]);
    let wrong: Vec<String> = packages.iter().flat_map(wrong).collect();
    if !wrong.is_empty() {
        return Err(format!(
            "against the architecture:\n  {}",
            wrong.join("\n  ")
        ));
    }
    println!(
        "architecture: {} crates depend only on what they may",
        packages.len()
    );
    Ok(())
}

fn wrong(package: &Value) -> Vec<String> {
    let name = text(&package["name"]);
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name} is not in the list of crates")];
    };
    // Tests may use more: they are no part of what is shipped.
    let ours: BTreeSet<&str> = list(&package["dependencies"])
        .iter()
        .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
        .map(|dependency| text(&dependency["name"]))
        .filter(|dependency| ALLOWED.iter().any(|(known, _)| known == dependency))
        .collect();
    let wrong = ours
        .into_iter()
        .filter(|dependency| !allowed.contains(dependency));
    wrong
        .map(|dependency| format!("{name} → {dependency}"))
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
