//! Packages of Debian's for two processors, unpacked into a folder: nothing of this machine changes.
//!
//! apt installs packages of two architectures in one version only, so a JDK for the other processor would change the JDK that
//! is there. Here apt has a state of its own, and only fetches; the user need not be root.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{quoted, word};
use crate::{Outcome, tools};

/// Folders of `usr` and of the root in which programs of this machine's processor look for libraries.
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
/// What every machine has on which these programs run, and what compiles programs for itself.
const HERE: [&str; 7] = [
    "libc6",
    "libgcc-s1",
    "libstdc++6",
    "libc6-dev",
    "gcc",
    "binutils",
    "qemu-user-static",
];

/// What is wanted.
pub struct Wanted<'a> {
    /// With all that they need.
    pub whole: &'a [&'a str],
    /// As they are.
    pub alone: &'a [&'a str],
    /// Of a package a single file.
    pub file: Option<(&'a str, &'a str)>,
}

/// A folder with the packages in it, as if it were the root of a system.
pub struct Root(PathBuf);

impl Root {
    /// Fetches what is not there yet.
    ///
    /// # Errors
    /// apt or dpkg is missing, or a package cannot be had.
    pub fn with(folder: &Path, wanted: &Wanted) -> Result<Root, String> {
        let root = Root(folder.join("root"));
        let mut list = [wanted.whole, wanted.alone].concat();
        list.extend(wanted.file.map(|(package, _)| package));
        let list = list.join("\n") + "\n";
        let noted = folder.join("packages.txt");
        if fs::read_to_string(&noted).is_ok_and(|noted| noted == list) {
            return Ok(root);
        }
        println!(
            "fetching from Debian: {}",
            list.trim_end().replace('\n', " ")
        );
        let _ = fs::remove_dir_all(&root.0);
        root.fill(&Apt::at(folder)?, wanted)?;
        fs::write(&noted, list).map_err(|e| format!("{}: {e}", noted.display()))?;
        Ok(root)
    }

    fn fill(&self, apt: &Apt, wanted: &Wanted) -> Outcome {
        apt.run(&["update", "-qq"])?;
        let mut packages = apt.with_dependencies(wanted.whole)?;
        packages.extend(wanted.alone.iter().map(|&name| name.to_owned()));
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        made(&self.0)?;
        for file in apt.downloaded(&packages)? {
            let mut unpack = Command::new("dpkg-deb");
            tools::run_quietly(unpack.arg("--extract").arg(&file).arg(&self.0))?;
        }
        if let Some((package, part)) = wanted.file {
            for file in apt.downloaded(&[package])? {
                let script = "dpkg-deb --fsys-tarfile \"$1\" | tar -x -C \"$2\" \"./$3\"";
                let mut unpack = Command::new("sh");
                unpack.args(["-c", script, "unpack"]).arg(&file);
                tools::run_quietly(unpack.arg(&self.0).arg(part))?;
            }
        }
        fs::remove_dir_all(&apt.folder).map_err(|e| e.to_string())?;
        links_stay_inside(&self.0, &self.0)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A script that runs a program of this machine's processor with the libraries that came along.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn script(&self, file: &Path, program: &str) -> Outcome {
        let paths = LIBRARIES.map(|folder| self.0.join(folder).display().to_string());
        let (paths, program) = (quoted(&paths.join(":")), word(&self.0.join(program)));
        script(file, &format!("LD_LIBRARY_PATH={paths} exec {program}"))
    }
}

/// A shell's script that is called with arguments.
///
/// # Errors
/// It cannot be written.
pub fn script(file: &Path, command: &str) -> Outcome {
    let said = |e| format!("{}: {e}", file.display());
    made(file.parent().unwrap_or(file))?;
    fs::write(file, format!("#!/bin/sh\n{command} \"$@\"\n")).map_err(said)?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).map_err(said)
}

/// apt with lists of its own.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn at(folder: &Path) -> Result<Apt, String> {
        let folder = folder.join("apt");
        let _ = fs::remove_dir_all(&folder);
        for part in ["state/lists/partial", "cache/archives/partial", "files"] {
            made(&folder.join(part))?;
        }
        let at = folder.display();
        let text = format!(
            "Dir::State \"{at}/state\";\nDir::State::status \"{at}/state/status\";\nDir::Cache \"{at}/cache\";\n\
             APT::Architectures {{ \"amd64\"; \"arm64\"; }};\nAPT::Sandbox::User \"\";\nAcquire::Languages \"none\";\n"
        );
        for (file, text) in [("state/status", ""), ("apt.conf", &text)] {
            fs::write(folder.join(file), text).map_err(|e| format!("{file}: {e}"))?;
        }
        Ok(Apt { folder })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.folder.join("apt.conf"));
        command.current_dir(self.folder.join("files"));
        command
    }

    fn run(&self, args: &[&str]) -> Outcome {
        tools::run_quietly(self.command("apt-get").args(args))
    }

    /// These and all that they need.
    fn with_dependencies(&self, packages: &[&str]) -> Result<BTreeSet<String>, String> {
        let mut all = BTreeSet::new();
        let mut new: Vec<String> = packages.iter().map(|&name| name.to_owned()).collect();
        while !new.is_empty() {
            let mut ask = self.command("apt-cache");
            let said = tools::output(ask.args(["depends", "--important"]).args(&new))?;
            all.extend(new);
            let needed = needed(&String::from_utf8_lossy(&said));
            new = needed.difference(&all).cloned().collect();
        }
        Ok(all)
    }

    fn downloaded(&self, packages: &[&str]) -> Result<Vec<PathBuf>, String> {
        let files = self.folder.join("files");
        let _ = fs::remove_dir_all(&files);
        made(&files)?;
        self.run(&[&["download", "-qq"], packages].concat())?;
        let entries = fs::read_dir(&files).map_err(|e| e.to_string())?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        Ok(files)
    }
}

/// Of what `apt-cache depends` says: lines `Depends: NAME`, of which names in angle brackets are no packages.
fn needed(said: &str) -> BTreeSet<String> {
    let names = said.lines().filter_map(|line| line.split_once("Depends: "));
    let names = names.map(|(_, name)| name.trim());
    let packages = names.filter(|name| !name.starts_with('<') && !HERE.contains(name));
    packages.map(str::to_owned).collect()
}

/// A link to an absolute path means one below the root.
fn links_stay_inside(folder: &Path, root: &Path) -> Outcome {
    let said = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(said)?.flatten() {
        let (path, kind) = (entry.path(), entry.file_type().map_err(said)?);
        if kind.is_dir() {
            links_stay_inside(&path, root)?;
        } else if kind.is_symlink() {
            let to = fs::read_link(&path).map_err(said)?;
            if let Ok(below) = to.strip_prefix("/") {
                fs::remove_file(&path).map_err(said)?;
                symlink(root.join(below), &path).map_err(said)?;
            }
        }
    }
    Ok(())
}

fn made(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

#[cfg(test)]
mod debian_tests {
    use super::*;

    #[test]
    fn what_is_needed_is_read_from_lists() {
        let said = "rustc-web\n  Depends: libc6\n |Depends: libllvm22\n  PreDepends: gcc\n  Depends: <libc-dev>\n    libc6-dev\n";
        assert_eq!(needed(said), BTreeSet::from(["libllvm22".to_owned()]));
    }

    #[test]
    fn absolute_links_lead_below_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        fs::write(root.join("etc/own.cfg"), "text").unwrap();
        symlink("/etc/own.cfg", root.join("usr/lib/own.cfg")).unwrap();
        symlink("../../etc/own.cfg", root.join("usr/lib/other.cfg")).unwrap();
        links_stay_inside(root, root).unwrap();
        for link in ["own.cfg", "other.cfg"] {
            let file = root.join("usr/lib").join(link);
            assert_eq!(fs::read_to_string(file).unwrap(), "text");
        }
    }
}
