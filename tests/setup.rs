//! What xtask says in the environment.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::run::LIGHT_VM;

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Setup {
    pub agent: PathBuf,
    /// The agent with the papers' systems.
    pub lab_agent: PathBuf,
    pub lucce: PathBuf,
    pub harness: PathBuf,
    pub programs_21: PathBuf,
    /// The programs that JDK 11 runs.
    pub programs_11: PathBuf,
    pub jdks: Vec<Jdk>,
    /// The oldest one. It runs the tests that name it, whose classes are compiled for it; `--every` runs all of them.
    pub jdk_11: Jdk,
    /// Classes compiled from `tests/java`.
    pub classes: PathBuf,
    /// The natives that call back.
    pub natives: PathBuf,
    /// The agent that samples allocations.
    pub sampler: PathBuf,
    /// A library with so many bytes of variables of threads.
    pub room: PathBuf,
    /// An agent in C that samples allocations.
    pub sampling_agent: PathBuf,
    /// The natives that allocate memory.
    pub memory: PathBuf,
    /// A library that allocates while it is loaded.
    pub constructor: PathBuf,
    /// For logs and output; what a test that passed leaves here is removed.
    pub scratch: PathBuf,
}

/// Sources of `tests/java` that need a later JDK than 11.
const NEWER_THAN_11: [&str; 2] = ["Covered.java", "Debugs.java"];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Jdk {
    pub home: PathBuf,
    pub version: u32,
}

impl Jdk {
    fn at(home: PathBuf) -> Result<Jdk, String> {
        let release = home.join("release");
        let text =
            fs::read_to_string(&release).map_err(|e| format!("{}: {e}", release.display()))?;
        let version = text
            .lines()
            .find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
        let version =
            version.and_then(|rest| rest.split(['.', '"', '-', '+']).next()?.parse().ok());
        let version = version.ok_or_else(|| format!("{} names no version", release.display()))?;
        Ok(Jdk { home, version })
    }

    pub fn tool(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }

    /// As its `release` says.
    pub fn has_module(&self, name: &str) -> bool {
        let release = fs::read_to_string(self.home.join("release")).unwrap_or_default();
        let mut lines = release.lines();
        let modules = lines.find_map(|line| line.strip_prefix("MODULES=\""));
        modules.is_some_and(|modules| modules.split([' ', '"']).any(|module| module == name))
    }
}

impl Setup {
    /// # Errors
    /// xtask did not say where things are, or they are not there.
    pub fn from_env(scratch: &Path) -> Result<Setup, String> {
        let homes = variable("LUCCE_JAVA_HOMES")?;
        let jdks: Vec<Jdk> = env::split_paths(&homes)
            .map(Jdk::at)
            .collect::<Result<_, _>>()?;
        let setup = Setup {
            agent: existing("LUCCE_AGENT")?,
            lab_agent: existing("LUCCE_LAB_AGENT")?,
            lucce: existing("LUCCE_BIN")?,
            harness: existing("LUCCE_HARNESS")?,
            programs_21: existing("LUCCE_PROGRAMS_21")?,
            programs_11: existing("LUCCE_PROGRAMS_11")?,
            jdks,
            jdk_11: Jdk::at(existing("LUCCE_JAVA_11_HOME")?)?,
            classes: scratch.join("classes"),
            natives: scratch.join("liblucce_callback.so"),
            sampler: scratch.join("sampler.so"),
            room: scratch.join("room.so"),
            sampling_agent: scratch.join("sampling_agent.so"),
            memory: scratch.join("libnative_memory.so"),
            constructor: scratch.join("liblibrary_constructor.so"),
            scratch: scratch.to_owned(),
        };
        fs::create_dir_all(&setup.classes).map_err(|e| e.to_string())?;
        setup.compile_java()?;
        setup.compile_natives()?;
        Ok(setup)
    }

    /// The JDK that compiles, and that tests use which need only one.
    pub fn jdk(&self) -> &Jdk {
        let compiler = self.jdks.iter().find(|jdk| jdk.tool("javac").exists());
        compiler.unwrap_or(&self.jdks[0])
    }

    /// All JDKs, the oldest one first.
    pub fn jdks_from_11(&self) -> impl Iterator<Item = &Jdk> {
        [&self.jdk_11].into_iter().chain(&self.jdks)
    }

    pub fn programs(&self) -> PathBuf {
        self.harness.join("programs/target/programs.jar")
    }

    /// The library by which a Java agent of the tests changes classes: one that the applications bring along.
    ///
    /// # Errors
    /// They have not been built.
    pub fn asm(&self) -> Result<PathBuf, String> {
        let folder = self.harness.join("apps/target/lib");
        let files = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut names = files.flatten().map(|file| file.path());
        let is_asm = |file: &PathBuf| {
            let name = file.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with("asm-") && name.ends_with(".jar"))
        };
        names
            .find(is_asm)
            .ok_or_else(|| format!("no asm in {}", folder.display()))
    }

    /// A jar that has nothing but a manifest of these lines. It is made once for each name.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn manifest_jar(&self, name: &str, lines: &str) -> Result<PathBuf, String> {
        static MADE: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jar) = made.get(name) {
            return Ok(jar.clone());
        }
        let folder = self.scratch.join("jars");
        fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let manifest = folder.join(format!("{name}.manifest"));
        fs::write(&manifest, lines).map_err(|e| e.to_string())?;
        let jar = folder.join(format!("{name}.jar"));
        let mut tool = Command::new(self.jdk().tool("jar"));
        finish(tool.arg("cfm").arg(&jar).arg(&manifest))?;
        made.insert(name.to_owned(), jar.clone());
        Ok(jar)
    }

    fn compile_java(&self) -> Result<(), String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("java");
        let sources = fs::read_dir(&folder).map_err(|e| e.to_string())?;
        let sources = sources.flatten().map(|entry| entry.path());
        let is_newer = |file: &PathBuf| NEWER_THAN_11.iter().any(|name| file.ends_with(name));
        let (newer, others): (Vec<_>, Vec<_>) = sources.partition(is_newer);
        self.compile_java_for("11", &others)?;
        self.compile_java_for("17", &newer)
    }

    /// Not `--release`: some call methods that older JDKs lack, if they are there.
    fn compile_java_for(&self, version: &str, sources: &[PathBuf]) -> Result<(), String> {
        let mut javac = Command::new(self.jdk().tool("javac"));
        javac
            .args(LIGHT_VM.map(|flag| format!("-J{flag}")))
            .args(["-source", version, "-target", version, "-g", "-cp"])
            .arg(env::join_paths([self.programs(), self.asm()?]).map_err(|e| e.to_string())?);
        finish(javac.arg("-d").arg(&self.classes).args(sources))
    }

    fn compile_natives(&self) -> Result<(), String> {
        let callback = self.harness.join("programs/src/main/c/lucce_callback.c");
        self.compile_c(&callback, &self.natives)?;
        self.compile_c(&self.harness.join("native/sampler.c"), &self.sampler)?;
        let room = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/room.c");
        self.compile_c(&room, &self.room)?;
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/sampling_agent.c");
        self.compile_c(&agent, &self.sampling_agent)?;
        let memory = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/native_memory.c");
        self.compile_c(&memory, &self.memory)?;
        let constructor = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/library_constructor.c");
        self.compile_c(&constructor, &self.constructor)
    }

    fn compile_c(&self, source: &Path, library: &Path) -> Result<(), String> {
        let include = self.jdk().home.join("include");
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/include");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-Wall", "-Wextra", "-DROOM=1024", "-I"])
            .arg(&include)
            .arg("-I")
            .arg(include.join("linux"));
        cc.arg("-I").arg(header).arg("-o").arg(library);
        finish(cc.arg(source).args(["-lpthread", "-ldl"]))
    }
}

fn variable(name: &str) -> Result<std::ffi::OsString, String> {
    env::var_os(name)
        .ok_or_else(|| format!("{name} is not set: run these tests with `cargo xtask jvm-tests`"))
}

fn existing(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(variable(name)?);
    match path.exists() {
        true => Ok(path),
        false => Err(format!(
            "{} is missing: run these tests with `cargo xtask jvm-tests`",
            path.display()
        )),
    }
}

fn finish(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|e| format!("cannot start {name}: {e}"))?;
    let text = || String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{name}: {}", text()))
    }
}
