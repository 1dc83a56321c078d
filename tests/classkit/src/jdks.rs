//! The JDKs of this machine and their classes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// Flags of a JVM that ends after seconds: its slow compiler takes more CPU time than it saves.
pub const SHORT_RUN: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// A JDK, with a compiler unless it is one of [`images`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Jdk {
    pub home: PathBuf,
    pub version: u32,
}

/// A class of a JDK.
pub struct Class {
    pub module: String,
    /// Internal name.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// One JDK of each version: from the environment, from PATH, and from where systems keep them.
pub fn all() -> Vec<Jdk> {
    let mut found = images();
    found.retain(Jdk::compiles);
    found
}

/// One JDK of each version, and images that only run and have classes.
pub fn images() -> Vec<Jdk> {
    let named = [
        "JAVA_HOME",
        "JAVA11_HOME",
        "JAVA17_HOME",
        "JAVA21_HOME",
        "JAVA25_HOME",
    ];
    let mut homes: Vec<PathBuf> = named
        .iter()
        .filter_map(|name| std::env::var_os(name).map(PathBuf::from))
        .collect();
    homes.extend(on_path());
    for folder in fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten() {
        homes.push(folder.path());
    }
    let mut found = BTreeMap::new();
    for jdk in homes.into_iter().filter_map(Jdk::at) {
        let known = found.entry(jdk.version).or_insert_with(|| jdk.clone());
        if !known.compiles() && jdk.compiles() {
            *known = jdk;
        }
    }
    found.into_values().collect()
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let java = std::env::split_paths(&path)
        .map(|folder| folder.join("javac"))
        .find(|file| file.exists())?;
    Some(java.canonicalize().ok()?.parent()?.parent()?.to_path_buf())
}

impl Jdk {
    fn at(home: PathBuf) -> Option<Self> {
        let release = fs::read_to_string(home.join("release")).ok()?;
        let version = release
            .lines()
            .find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
        let version = version.split(['.', '"']).next()?.parse().ok()?;
        let runs = home.join("bin/java").exists();
        (runs && version >= 11).then_some(Self { home, version })
    }

    /// Fewer classes mean that some were not read. Run-time images lack modules.
    pub fn least_classes(&self) -> usize {
        if self.compiles() { 20_000 } else { 15_000 }
    }

    fn compiles(&self) -> bool {
        self.home.join("bin/javac").exists()
    }

    pub fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.home.join("bin").join(name));
        command.env_remove("JAVA_TOOL_OPTIONS");
        command
    }

    pub fn compile(&self, into: &Path, options: &[&str], sources: &[PathBuf]) {
        let mut javac = self.tool("javac");
        let output = javac
            .args(SHORT_RUN.map(|flag| format!("-J{flag}")))
            .args(options)
            .arg("-d")
            .arg(into)
            .args(sources)
            .output();
        let output = output.expect("javac starts");
        assert!(output.status.success(), "javac: {}", text(&output));
    }

    /// Calls `visit` with every class of the run-time image.
    pub fn for_each_class(&self, mut visit: impl FnMut(Class)) {
        let classes = self.read_classes();
        let mut rest = classes.as_slice();
        while !rest.is_empty() {
            let path = String::from_utf8(take_block::<2>(&mut rest).to_vec()).expect("a path");
            let bytes = take_block::<4>(&mut rest).to_vec();
            let (module, name) = path.split_once('/').expect("module and class");
            visit(Class {
                module: module.to_owned(),
                name: name.trim_end_matches(".class").to_owned(),
                bytes,
            });
        }
    }

    /// The classes of the run-time image as `DumpClasses` writes them. A JDK that compiles reads them, once for all tests of a
    /// program: that takes seconds.
    fn read_classes(&self) -> Arc<Vec<u8>> {
        let mut images = IMAGES.lock().expect("no panic while noting");
        let image = JdkClasses::clone(images.entry(self.home.clone()).or_default());
        drop(images);
        let read = || {
            let reader = all().pop().expect("a JDK with a compiler");
            let mut java = reader.tool("java");
            let output = java
                .args(SHORT_RUN)
                .arg(source("DumpClasses.java"))
                .arg(&self.home)
                .output();
            let output = output.expect("java starts");
            assert!(output.status.success(), "{}", text(&output));
            Arc::new(output.stdout)
        };
        Arc::clone(image.get_or_init(read))
    }
}

/// What was read of each JDK, by its folder.
static IMAGES: Mutex<BTreeMap<PathBuf, JdkClasses>> = Mutex::new(BTreeMap::new());

/// Empty until a test wants them.
type JdkClasses = Arc<OnceLock<Arc<Vec<u8>>>>;

/// A length of `N` bytes, then that many bytes.
fn take_block<'a, const N: usize>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (len, tail) = rest.split_at(N);
    let len = len
        .iter()
        .fold(0, |len, &byte| len << 8 | usize::from(byte));
    let (block, tail) = tail.split_at(len);
    *rest = tail;
    block
}

pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../bytecode/tests/java")
        .join(name)
}

pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A new folder that is removed with the value.
pub struct Folder(pub PathBuf);

static FOLDERS: LazyLock<Mutex<u32>> = LazyLock::new(|| Mutex::new(0));

impl Folder {
    pub fn create() -> Self {
        let mut count = FOLDERS.lock().expect("no panic while counting");
        *count += 1;
        let name = format!("lucce-bytecode-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("folders");
        fs::write(&path, bytes).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
