//! The modules of a crate form no circle: read from the code's own imports. The agent's have floors (`floors`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Outcome, place};

use super::floors::{files, imported, without_comments};

/// Folders of crates. Not among them: `bytecode`, `stream`, `tracelog`, `research/recording` and `xtask`, each of which has
/// small files that know each other.
const CRATES: [&str; 12] = [
    "bench",
    "callgraph",
    "contentid",
    "control",
    "decoder",
    "filter",
    "formats",
    "hooks",
    "research/counts",
    "research/kcontexts",
    "research/replay",
    "vm",
];

/// Which module imports which.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// # Errors
/// Names the modules of each circle.
pub fn check() -> Outcome {
    let mut wrong = Vec::new();
    for name in CRATES {
        let imports = imports(&place::root().join(name).join("src"))?;
        let circle: Vec<&str> = in_circles(&imports).into_iter().collect();
        if !circle.is_empty() {
            wrong.push(format!("{name}: {}", circle.join(", ")));
        }
    }
    if !wrong.is_empty() {
        return Err(format!(
            "modules that import each other in a circle:\n  {}",
            wrong.join("\n  ")
        ));
    }
    println!(
        "architecture: the modules of {} crates form no circle",
        CRATES.len()
    );
    Ok(())
}

/// Folders below the crate's root count as one module, the crate's own file as none.
fn imports(root: &Path) -> Result<Imports, String> {
    let mut imports = Imports::new();
    for path in files(root)? {
        let module = module(root, &path);
        if ["lib", "main"].contains(&&*module) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        // Tests may know what they like.
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let mut found = imported(&without_comments(code));
        found.remove(&module);
        imports.entry(module).or_default().extend(found);
    }
    Ok(imports)
}

fn module(root: &Path, path: &Path) -> String {
    let inner = path.strip_prefix(root).unwrap_or(path);
    let first: PathBuf = inner.iter().take(1).collect();
    first.with_extension("").display().to_string()
}

/// Modules from which imports lead back to them.
fn in_circles(imports: &Imports) -> BTreeSet<&str> {
    let leads_back = |module: &&String| {
        let mut seen = BTreeSet::new();
        let mut open = vec![*module];
        while let Some(next) = open.pop() {
            for found in imports.get(next).into_iter().flatten() {
                if found == *module {
                    return true;
                }
                if seen.insert(found) {
                    open.push(found);
                }
            }
        }
        false
    };
    let modules = imports.keys().filter(leads_back);
    modules.map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_and_what_hangs_on_it_is_not() {
        let of = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let mut imports = Imports::from([
            ("a".into(), of(&["b"])),
            ("b".into(), of(&["c", "d"])),
            ("c".into(), of(&["std"])),
        ]);
        assert!(in_circles(&imports).is_empty());
        imports.insert("c".into(), of(&["b"]));
        assert_eq!(in_circles(&imports), BTreeSet::from(["b", "c"]));
    }
}
