//! `dependencies`: under which licences, from where and how often others' packages are used; and `NOTICE`, the list of
//! those that go into the agent and the command.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::dist::linked::PARTS;
use crate::licence::{self, Allowed};
use crate::{Outcome, paths, tools};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// What users get.
const SHIPPED: [&str; 2] = ["lucce-agent", "lucce-cli"];
/// Programs that run while others are compiled are in neither.
const IN_IT: &str = "normal,no-proc-macro";
const ALL: &str = "normal,build,dev";

const HEAD: &str = "lucce
Copyright 2026 the lucce authors

Licensed under the Apache License, Version 2.0: see LICENSE.

The agent (liblucce.so) and the lucce command contain the packages below. Where a package may be had under
the Apache License it is used under that one, else under the MIT License, else under the one that is named;
the texts of these licences are at the end. `cargo xtask notice` makes this list.
";

const BESIDE: &str = "
What follows is no package that cargo fetches: compilers and linkers put it into the agent and the command of
the archives and of the Debian packages. The standard library and what it is made of are those of the Rust
compiler; the rest is as Zig, which links, has it.
";

const FLEET_HEAD: &str = "lucce-fleet
Copyright 2026 the lucce authors

Licensed under the Apache License, Version 2.0: see LICENSE.

The lucce-fleet command contains the packages below. Where a package may be had under the Apache License it is
used under that one, else under the MIT License, else under the one that is named; the texts of these licences
are at the end.
";

/// A package that cargo fetched.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub licence: String,
    pub repository: String,
}

const FLEET: &str = "fleet";

/// Folders with a lock file and a `deny.toml`: the workspace, and the workspaces beside it.
const LOCKED: [&str; 3] = [".", FLEET, "fuzz"];

/// # Errors
/// A licence that is not allowed, a source other than the registry, two versions of one package in what
/// users get, a `NOTICE` that is not up to date, or a complaint of `cargo deny`.
pub fn check() -> Outcome {
    let mut wrong = Vec::new();
    let mut counts = Vec::new();
    for folder in LOCKED {
        let all = packages_by(cargo(folder), &["--workspace"], ALL)?;
        let allowed = Allowed::read(&paths::root().join(folder).join("deny.toml"))?;
        let refused = all
            .iter()
            .filter(|package| !allowed.admits(&package.licence));
        wrong.extend(
            refused
                .map(|package| format!("{folder}: {}: licence {}", package.name, package.licence)),
        );
        counts.push(format!("{} of {folder}", all.len()));
    }
    let shipped = shipped()?;
    wrong.extend(twice(&shipped));
    let with_texts = Allowed::with_texts();
    let licences = shipped
        .iter()
        .map(|package| (&*package.name, &*package.licence));
    let parts = PARTS.iter().filter(|part| part.permission.is_none());
    let licences = licences.chain(parts.map(|part| (part.name, part.licence)));
    let bare = licences.filter(|(_, licence)| !with_texts.admits(licence));
    wrong.extend(bare.map(|(name, licence)| format!("{name}: NOTICE has no text of {licence}")));
    let notice = fs::read_to_string(file()).unwrap_or_default();
    if notice != text(&shipped)? {
        wrong.push("NOTICE is not up to date: run `cargo xtask notice`".to_owned());
    }
    if !wrong.is_empty() {
        return Err(format!("dependencies:\n  {}", wrong.join("\n  ")));
    }
    println!(
        "packages under allowed licences: {}; {} in what users get",
        counts.join(", "),
        shipped.len()
    );
    deny()
}

/// What cargo-deny knows beside that: advisories, yanked versions, packages in several versions.
fn deny() -> Outcome {
    let mut probe = paths::cargo();
    if tools::run_quietly(probe.args(["deny", "--version"])).is_err() {
        println!("advisories are not checked: cargo install --locked cargo-deny");
        return Ok(());
    }
    for folder in LOCKED {
        println!("cargo deny: {folder}");
        tools::run(cargo(folder).args(["deny", "--locked", "check", "--hide-inclusion-graph"]))?;
    }
    Ok(())
}

/// Cargo for one of the workspaces.
fn cargo(folder: &str) -> Command {
    let mut cargo = paths::cargo();
    cargo.current_dir(paths::root().join(folder));
    cargo
}

/// Writes `NOTICE`.
///
/// # Errors
/// Cargo does not tell of packages, or the file cannot be written.
pub fn write_notice() -> Outcome {
    fs::write(file(), text(&shipped()?)?).map_err(|e| format!("{}: {e}", file().display()))
}

fn file() -> PathBuf {
    paths::root().join("NOTICE")
}

/// What is in the agent and the command.
///
/// # Errors
/// Cargo does not tell.
pub fn shipped() -> Result<BTreeSet<Package>, String> {
    packages(&SHIPPED.map(|name| ["--package", name]).concat(), IN_IT)
}

/// Others' packages that these ones of the workspace are made of.
fn packages(of: &[&str], edges: &str) -> Result<BTreeSet<Package>, String> {
    packages_by(paths::cargo(), of, edges)
}

/// Others' packages that those of this cargo's workspace are made of.
fn packages_by(mut tree: Command, of: &[&str], edges: &str) -> Result<BTreeSet<Package>, String> {
    tree.args(["tree", "--locked", "--target", TARGET, "--edges", edges])
        .args(["--prefix", "none", "--format", "{p}\t{l}\t{r}"])
        .args(of);
    let printed = tools::output(&mut tree)?;
    let root = paths::root().display().to_string();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    // The workspace's own have their folder.
    let others = printed
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.contains(&format!("({root}")));
    others.map(parse).collect()
}

/// `NAME vVERSION[ (proc-macro)]`, licence and repository, between tabs, perhaps ` (*)` at the end; from anywhere but the
/// registry, the place in parentheses.
fn parse(line: &str) -> Result<Package, String> {
    let line = line.strip_suffix(" (*)").unwrap_or(line);
    let mut fields = line.split('\t');
    let package = fields.next().unwrap_or_default();
    let package = package.strip_suffix(" (proc-macro)").unwrap_or(package);
    let [name, version] = package.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!("not from the registry: {package}"));
    };
    let mut next = || fields.next().unwrap_or_default().trim().to_owned();
    Ok(Package {
        name: name.to_owned(),
        version: version.trim_start_matches('v').to_owned(),
        licence: next(),
        repository: next(),
    })
}

fn twice(packages: &BTreeSet<Package>) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let versions = versions.entry(&package.name).or_default();
        versions.push(&package.version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let line = |(name, versions): (&str, Vec<&str>)| {
        format!(
            "{name} is used in several versions: {}",
            versions.join(", ")
        )
    };
    versions.into_iter().map(line).collect()
}

/// What is in lucce-fleet.
///
/// # Errors
/// Cargo does not tell.
pub fn shipped_fleet() -> Result<BTreeSet<Package>, String> {
    packages_by(cargo(FLEET), &["--package", "lucce-fleet"], IN_IT)
}

/// The list of what is in lucce-fleet, with all licences that are not in [`licence::TEXTS`].
///
/// # Errors
/// Cargo does not tell of packages, or one has a licence whose text is nowhere.
pub fn fleet_notice(packages: &BTreeSet<Package>) -> Result<String, String> {
    let folders = folders(FLEET)?;
    let mut text = listed(FLEET_HEAD, packages, &folders);
    let with_texts = Allowed::with_texts();
    for package in packages {
        if with_texts.admits(&package.licence) {
            continue;
        }
        let Package { name, version, .. } = package;
        let folder = folders.get(&(name.clone(), version.clone()));
        let own = folder
            .map(|folder| licence::texts(folder, &package.licence))
            .unwrap_or_default();
        if own.is_empty() {
            return Err(format!("{name}: no text of {}", package.licence));
        }
        let _ = write!(text, "\n---- {name} {version} ----\n\n{own}");
    }
    Ok(text)
}

fn text(packages: &BTreeSet<Package>) -> Result<String, String> {
    Ok(listed(HEAD, packages, &folders(".")?))
}

/// Packages and what compilers add, with the texts of their licences.
fn listed(head: &str, packages: &BTreeSet<Package>, folders: &Folders) -> String {
    let mut text = head.to_owned();
    for package in packages {
        let Package {
            name,
            version,
            licence,
            repository,
        } = package;
        let _ = write!(text, "\n{name} {version}\n  {licence}\n  {repository}\n");
        let folder = folders.get(&(name.clone(), version.clone()));
        for line in folder.map_or_else(BTreeSet::new, |folder| licence::copyrights(folder)) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text.push_str(BESIDE);
    for part in &PARTS {
        let _ = write!(text, "\n{}\n  {}", part.name, part.licence);
        if let Some(permission) = part.permission {
            let _ = write!(text, ", {permission}");
        }
        let _ = writeln!(text, "\n  {}", part.repository);
        for line in part.copyrights {
            let _ = writeln!(text, "  {line}");
        }
    }
    for (name, licence) in licence::TEXTS {
        let _ = write!(text, "\n---- {name} ----\n\n{licence}");
    }
    text
}

/// Where the sources of packages are, by name and version.
type Folders = BTreeMap<(String, String), PathBuf>;

/// Where the sources of packages are.
fn folders(workspace: &str) -> Result<Folders, String> {
    let mut metadata = cargo(workspace);
    metadata.args(["metadata", "--locked", "--format-version=1"]);
    metadata.args(["--filter-platform", TARGET]);
    let metadata = tools::output(&mut metadata)?;
    let metadata: Value = serde_json::from_slice(&metadata).map_err(|e| e.to_string())?;
    let packages = metadata["packages"].as_array();
    let packages = packages.ok_or("cargo metadata: no packages")?.iter();
    let folder = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        let text = |key: &str| Some(package[key].as_str()?.to_owned());
        let key = (text("name")?, text("version")?);
        Some((key, manifest.parent()?.to_owned()))
    };
    Ok(packages.filter_map(folder).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(line: &str) -> Package {
        parse(line).unwrap()
    }

    #[test]
    fn what_cargo_prints_is_understood() {
        let line =
            "serde_derive v1.0.229 (proc-macro)\tMIT OR Apache-2.0\thttps://example.org/serde (*)";
        let parsed = package(line);
        assert_eq!(
            (&*parsed.name, &*parsed.version),
            ("serde_derive", "1.0.229")
        );
        assert_eq!(parsed.licence, "MIT OR Apache-2.0");
        assert_eq!(parsed.repository, "https://example.org/serde");
    }

    #[test]
    fn other_sources_are_refused() {
        let line = "fast v1.0.0 (https://example.org/fast?rev=1#0123abcd)\tMIT\t";
        assert!(parse(line).unwrap_err().contains("not from the registry"));
    }

    #[test]
    fn the_notice_has_what_is_linked_in_and_the_texts() {
        let text = text(&BTreeSet::new()).unwrap();
        for part in &PARTS {
            let head = format!("\n{}\n  {}", part.name, part.licence);
            assert!(text.contains(&head), "{}", part.name);
        }
        for (name, licence) in licence::TEXTS {
            assert!(text.contains(licence), "{name}");
        }
    }

    #[test]
    fn the_notice_of_fleet_has_texts_of_its_own_licences() {
        let packages = shipped_fleet().unwrap();
        let notice = fleet_notice(&packages).unwrap();
        let (_, texts) = notice.split_once("\n---- snap ").unwrap();
        assert!(texts.contains("Redistribution and use in source and binary forms"));
        let unknown = package("nowhere v1.0.0\tX\t");
        let said = fleet_notice(&BTreeSet::from([unknown])).unwrap_err();
        assert_eq!(said, "nowhere: no text of X");
    }

    #[test]
    fn two_versions_are_told() {
        let lines = ["a v1.0.0\tMIT\t", "a v2.0.0\tMIT\t", "b v1.0.0\tMIT\t"];
        let packages: BTreeSet<Package> = lines.map(package).into_iter().collect();
        let told = twice(&packages);
        assert_eq!(told, ["a is used in several versions: 1.0.0, 2.0.0"]);
    }
}
