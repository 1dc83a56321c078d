//! Circles of imports inside crates: of files, and of the modules at a crate's top. The numbers may fall, not rise.
//!
//! A file and the files of its own submodules count as connected already: what leads from one to the other is no circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Outcome, paths};

use super::floors::{files, without_comments};

/// The most circles that a crate may have; a crate that is not listed may have none.
struct CircleLimit {
    of: &'static str,
    files: usize,
    modules: usize,
}

const LIMITS: [CircleLimit; 6] = [
    limit("lucce-agent", 6, 0),
    limit("lucce-bytecode", 1, 1),
    limit("lucce-recording", 1, 1),
    limit("lucce-stream", 2, 2),
    limit("lucce-tracelog", 2, 2),
    limit("xtask", 2, 1),
];

const fn limit(of: &'static str, files: usize, modules: usize) -> CircleLimit {
    CircleLimit { of, files, modules }
}

/// The path of a module below its crate; empty for the crate's own file.
type ModulePath = Vec<String>;
/// Which module imports which.
type ModuleImports = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// # Errors
/// A crate has more circles than its limit.
pub fn check() -> Outcome {
    let mut wrong = Vec::new();
    let mut counted = Vec::new();
    for (name, folder) in crates()? {
        let by_file = file_imports(&folder.join("src"))?;
        let by_module = module_imports(&by_file);
        let allowed = LIMITS.iter().find(|limit| limit.of == name);
        let (files, modules) = allowed.map_or((0, 0), |limit| (limit.files, limit.modules));
        for (what, imports, limit) in [("files", &by_file, files), ("modules", &by_module, modules)]
        {
            let circles = circles(imports);
            if !circles.is_empty() {
                counted.push(format!("{name} {} of {what}", circles.len()));
            }
            if circles.len() > limit {
                let listed = circles.iter().map(|circle| describe(circle));
                let listed: Vec<String> = listed.collect();
                wrong.push(format!(
                    "{name}: {} circles of {what}, {limit} allowed:\n    {}",
                    circles.len(),
                    listed.join("\n    ")
                ));
            }
        }
    }
    if !wrong.is_empty() {
        return Err(format!(
            "circles of imports inside crates:\n  {}",
            wrong.join("\n  ")
        ));
    }
    println!(
        "architecture: circles inside crates: {}",
        counted.join(", ")
    );
    Ok(())
}

fn describe(circle: &BTreeSet<&ModulePath>) -> String {
    let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
    names.join(", ")
}

/// Names and folders of all crates; `fleet` is a workspace of its own.
fn crates() -> Result<Vec<(String, PathBuf)>, String> {
    let mut crates = vec![("lucce-fleet".to_owned(), paths::root().join("fleet"))];
    for package in super::metadata()? {
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().unwrap_or(manifest);
        if folder.join("src").is_dir() {
            crates.push((name, folder.to_owned()));
        }
    }
    crates.sort();
    Ok(crates)
}

/// Between files; test files and files of one module tree left out.
fn file_imports(root: &Path) -> Result<ModuleImports, String> {
    let mut sources = BTreeMap::new();
    for path in files(root)? {
        let module = module(root, &path);
        if !is_test(&module) {
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            sources.insert(module, product_code(&text));
        }
    }
    let known: BTreeSet<&ModulePath> = sources.keys().collect();
    let imports = sources.iter().map(|(module, code)| {
        let found = paths(code)
            .into_iter()
            .map(|path| resolve(module, &path, &known))
            .filter(|to| !to.is_empty() && !to.starts_with(module) && !module.starts_with(to));
        (module.clone(), found.collect())
    });
    Ok(imports.collect())
}

/// Between modules at the crate's top, each with all its files.
fn module_imports(by_file: &ModuleImports) -> ModuleImports {
    let mut imports = ModuleImports::new();
    for (module, found) in by_file {
        let Some(top) = module.first() else {
            continue;
        };
        let tops = found.iter().filter_map(|to| to.first());
        let others = tops.filter(|other| *other != top);
        let own = imports.entry(vec![top.clone()]).or_default();
        own.extend(others.map(|other| vec![other.clone()]));
    }
    imports
}

fn module(root: &Path, path: &Path) -> ModulePath {
    let inner = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let mut module: ModulePath = inner
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if let Some("lib" | "main" | "mod") = module.last().map(String::as_str) {
        module.pop();
    }
    module
}

fn is_test(module: &ModulePath) -> bool {
    let mut parts = module.iter();
    parts.any(|part| part == "tests" || part.ends_with("_tests"))
}

/// Without comments and without the test module at the end.
fn product_code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    without_comments(code)
}

/// The file that a path of names leads to.
fn resolve(from: &ModulePath, path: &[String], known: &BTreeSet<&ModulePath>) -> ModulePath {
    let mut at = from.clone();
    for name in path {
        match name.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop();
            }
            _ => {
                at.push(name.clone());
                if !known.contains(&at) {
                    at.pop();
                    break;
                }
            }
        }
    }
    at
}

/// The paths in code that begin with `crate`, `super` or `self`; those of groups one by one.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for first in ["crate", "super", "self"] {
        let begin = format!("{first}::");
        for (at, _) in code.match_indices(&begin) {
            let before = code[..at].chars().next_back();
            if before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':') {
                let mut rest = &code[at + begin.len()..];
                read_tree(&mut rest, &[first.to_owned()], &mut found);
            }
        }
    }
    found
}

/// Reads `a::b`, `a::{b, c::{d, e}}` or `*`, and takes it from `rest`.
fn read_tree(rest: &mut &str, above: &[String], found: &mut Vec<Vec<String>>) {
    *rest = rest.trim_start();
    if let Some(group) = rest.strip_prefix('{') {
        *rest = group;
        loop {
            *rest = rest.trim_start_matches([' ', '\n', '\t', ',']);
            let length = rest.len();
            match rest.strip_prefix('}') {
                Some(after) => {
                    *rest = after;
                    return;
                }
                None => read_tree(rest, above, found),
            }
            // What is no list of names ends it.
            if rest.len() == length {
                return;
            }
        }
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
    let mut path = above.to_vec();
    *rest = after.strip_prefix('*').unwrap_or(after);
    if !name.is_empty() {
        path.push(name.to_owned());
        if let Some(below) = after.strip_prefix("::") {
            *rest = below;
            return read_tree(rest, &path, found);
        }
        if let Some(alias) = rest.strip_prefix(" as ") {
            *rest = alias.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        }
    }
    found.push(path);
}

/// Groups of modules of which each leads to each other one.
fn circles(imports: &ModuleImports) -> Vec<BTreeSet<&ModulePath>> {
    let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = imports
        .keys()
        .map(|module| (module, reachable(module, imports)))
        .collect();
    let mut circles: Vec<BTreeSet<&ModulePath>> = Vec::new();
    for (module, from) in &reached {
        let is_back =
            |other: &&&ModulePath| reached.get(*other).is_some_and(|to| to.contains(module));
        let circle: BTreeSet<&ModulePath> = from.iter().filter(is_back).copied().collect();
        if !circle.is_empty() && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

fn reachable<'i>(module: &ModulePath, imports: &'i ModuleImports) -> BTreeSet<&'i ModulePath> {
    let mut found = BTreeSet::new();
    let mut open = vec![module];
    while let Some(next) = open.pop() {
        for to in imports.get(next).into_iter().flatten() {
            if found.insert(to) {
                open.push(to);
            }
        }
    }
    found
}

#[cfg(test)]
mod circles_tests {
    use super::*;

    fn name(text: &str) -> ModulePath {
        text.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn a_circle_is_found_and_what_hangs_on_it_is_not() {
        let of = |names: &[&str]| names.iter().copied().map(name).collect();
        let mut imports = ModuleImports::from([
            (name("a"), of(&["b"])),
            (name("b"), of(&["c", "d"])),
            (name("c"), of(&["std"])),
        ]);
        assert!(circles(&imports).is_empty());
        imports.insert(name("c"), of(&["b"]));
        let (b, c) = (name("b"), name("c"));
        assert_eq!(circles(&imports), [BTreeSet::from([&b, &c])]);
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        let code = "use crate::a::{self, b::{C, d}, e as f};\nlet x = super::g::h(); Self::no(); my_self::no;";
        let found: Vec<String> = paths(code).iter().map(|path| path.join("::")).collect();
        let expected = [
            "crate::a::self",
            "crate::a::b::C",
            "crate::a::b::d",
            "crate::a::e",
            "super::g::h",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn files_of_one_module_tree_make_no_circle() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("lib.rs", "use crate::a::b::X;"),
            ("a/mod.rs", "mod b; mod c; use self::b::X;"),
            ("a/b.rs", "use super::Y; use super::c::Z; use crate::d::W;"),
            (
                "a/c.rs",
                "// use super::b::X;\n#[cfg(test)]\nmod tests { use super::super::b::X; }",
            ),
            ("d.rs", "use crate::a::c::Z;"),
            ("d/more_tests.rs", "use crate::a::b::X;"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let by_file = file_imports(folder.path()).unwrap();
        assert!(circles(&by_file).is_empty(), "{by_file:?}");
        let by_module = module_imports(&by_file);
        let (a, d) = (name("a"), name("d"));
        assert_eq!(circles(&by_module), [BTreeSet::from([&a, &d])]);
        fs::write(folder.path().join("a/c.rs"), "use super::b::X;").unwrap();
        let by_file = file_imports(folder.path()).unwrap();
        assert_eq!(circles(&by_file).len(), 1);
    }
}
