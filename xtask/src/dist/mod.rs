//! `dist`: what users install, in `target/dist`, for each system.
//!
//! ```text
//! lucce-VERSION-linux-{x64,arm64,x64-musl}.tar.gz
//!                                            bin/lucce  lib/liblucce.so  include/lucce.h  java/lucce-{api,junit,…}-VERSION.jar
//!                                            share/man/man1/*.1  share/bash-completion/…  share/zsh/…  share/fish/…
//!                                            share/doc/lucce/…
//!                                            LICENSE  NOTICE  README.md  sbom.cdx.json
//! lucce-VERSION-linux-{x64,arm64,x64-musl}-debug.tar.gz        debug information, found by debuggers when it lies beside
//! lucce_VERSION_{amd64,arm64}.deb
//! lucce-fleet-VERSION-linux-{x64,arm64}.tar.gz    bin/lucce-fleet  docs/guide/fleet.md  LICENSE  NOTICE  sbom.cdx.json
//! lucce-fleet_VERSION_{amd64,arm64}.deb
//! SHA256SUMS
//! ```
//! Archives of equal files have equal bytes: times are that of the last commit, names are sorted. Compilers are told to
//! name no folder of this machine in what they make. What is built runs with glibc 2.17 and later, or with musl (`x64-musl`). For
//! musl there is no JVM to try the agent with: a C program loads it.

mod archive;
mod documents;
mod fleet;
mod manual;
mod sbom;
mod tried;

use std::fs;
use std::path::{Path, PathBuf};

use crate::shipped::FLOOR;
use crate::shipped::glibc::{self, Glibc};
use crate::systems::{BuildSources, CLibrary, System, Tools};
use crate::{Outcome, build, dependencies, linked, paths, tools};

/// What programs and their tests put on the class path: folders of `java-harness/artifacts`, and how a jar's name ends.
const JARS: [(&str, &str); 10] = [
    ("api", ""),
    ("junit", ""),
    ("logback", ""),
    ("log4j2", ""),
    ("slf4j", ""),
    ("micrometer", ""),
    ("opentelemetry", ""),
    // For OpenTelemetry's Java agent.
    ("opentelemetry", "-extension"),
    ("spring-boot", ""),
    ("netty", ""),
];

/// The list of what is in an archive, as CycloneDX has it.
const SBOM: &str = "sbom.cdx.json";

const PACKAGES: [&str; 2] = ["lucce-agent", "lucce-cli"];

/// What has archives and packages of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum DistProduct {
    /// The agent and the lucce command
    #[value(name = "lucce")]
    Lucce,
    /// lucce-fleet, which `lucce fleet` starts
    #[value(name = "lucce-fleet")]
    Fleet,
}

impl DistProduct {
    pub const ALL: [DistProduct; 2] = [DistProduct::Lucce, DistProduct::Fleet];
}

/// What is made, and of what.
struct Dist {
    version: &'static str,
    /// Seconds since 1970: of the last commit.
    epoch: String,
    tools: Tools,
    /// Where it goes.
    to: PathBuf,
}

/// # Errors
/// A tool cannot be had, something does not build, wants a newer glibc than it should, or does not run where there is nothing
/// but a JDK.
pub fn make(systems: &[System], products: &[DistProduct]) -> Outcome {
    let to = paths::target().join("dist");
    let _ = fs::remove_dir_all(&to);
    created(&to)?;
    if products.contains(&DistProduct::Lucce) {
        build::java()?;
    }
    for system in systems {
        let dist = Dist {
            version: env!("CARGO_PKG_VERSION"),
            epoch: epoch()?,
            tools: system.tools()?,
            to: to.clone(),
        };
        for product in products {
            match (product, system.c_library) {
                (DistProduct::Lucce, _) => dist.make()?,
                (DistProduct::Fleet, CLibrary::Glibc) => fleet::make(&dist)?,
                (DistProduct::Fleet, CLibrary::Musl) => {
                    println!("not made: lucce-fleet for {}", system.name);
                }
            }
        }
    }
    archive::sums(&to)
}

impl Dist {
    fn make(&self) -> Outcome {
        let built = self
            .tools
            .built(BuildSources::Workspace(&PACKAGES), "dist", &self.epoch)?;
        let name = self.name();
        let stage = self.stage(&name, &built)?;
        let debug = self.split(&name, &stage)?;
        archive::tar(&self.to, &name, &self.epoch)?;
        archive::tar(&self.to, &debug, &self.epoch)?;
        self.print_sizes(&[&format!("{name}.tar.gz")])?;
        match self.tools.system.c_library {
            CLibrary::Glibc => self.make_deb(&name, &stage)?,
            CLibrary::Musl => {
                tried::musl_archive(&self.to, &name, &self.tools)?;
                println!("{name}: a program of musl loads the agent; not tried with a JVM");
            }
        }
        for folder in [&name, &debug] {
            fs::remove_dir_all(self.to.join(folder)).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// The Debian package of the files in `stage`; it and the archive are tried.
    fn make_deb(&self, name: &str, stage: &Path) -> Outcome {
        let newest = wanted_glibc(stage, &["bin/lucce", "lib/liblucce.so"])?;
        let package = package(self.version, self.tools.system.debian, newest);
        let files = installed_files(stage, self.version);
        archive::deb(&self.to, &files, &package, &self.epoch)?;
        tried::archive(&self.to, name, &self.tools)?;
        tried::deb(&self.to, &package.file(), &self.tools)?;
        println!("{name}: the archive and the package run where there is nothing but a JDK");
        self.print_sizes(&[&package.file()])
    }

    fn print_sizes(&self, files: &[&str]) -> Outcome {
        for file in files {
            let file = self.to.join(file);
            let size = fs::metadata(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            println!("{}: {} bytes", paths::short(&file), size.len());
        }
        Ok(())
    }

    fn name(&self) -> String {
        format!("lucce-{}-linux-{}", self.version, self.tools.system.name)
    }

    fn stage(&self, name: &str, built: &Path) -> Result<PathBuf, String> {
        let stage = self.to.join(name);
        let root = paths::root();
        let files = [
            (built.join("lucce"), "bin/lucce".to_owned()),
            (built.join("liblucce.so"), "lib/liblucce.so".to_owned()),
            (
                root.join("agent/include/lucce.h"),
                "include/lucce.h".to_owned(),
            ),
            (root.join("LICENSE"), "LICENSE".to_owned()),
            (root.join("NOTICE"), "NOTICE".to_owned()),
        ];
        let jars = JARS.map(|(module, ending)| {
            let jar = format!("lucce-{module}-{}{ending}.jar", self.version);
            let from = paths::artifacts().join(module).join("target").join(&jar);
            (from, format!("java/{jar}"))
        });
        for (from, to) in files.into_iter().chain(jars) {
            let to = stage.join(to);
            created(to.parent().unwrap_or(&stage))?;
            fs::copy(&from, &to).map_err(|e| format!("{}: {e}", from.display()))?;
        }
        manual::write(&stage.join("share"), &|| {
            self.tools.command(&stage.join("bin/lucce"))
        })?;
        documents::write(&stage)?;
        let made = linked::Made::read(&stage.join("bin/lucce"))?;
        let packages = dependencies::shipped()?;
        let library = self.tools.system.c_library;
        let sbom = sbom::text("lucce", self.version, &packages, &made, library)?;
        fs::write(stage.join(SBOM), sbom).map_err(|e| e.to_string())?;
        Ok(stage)
    }

    /// Takes the debug information out; the folder's name that it goes to.
    fn split(&self, name: &str, stage: &Path) -> Result<String, String> {
        let debug = format!("{name}-debug");
        for file in ["bin/lucce", "lib/liblucce.so"] {
            let own = stage.join(file);
            let apart = self.to.join(&debug).join(format!("{file}.debug"));
            created(apart.parent().unwrap_or(stage))?;
            let objcopy = |args: &[&str], files: &[&Path]| {
                tools::run_quietly(self.tools.objcopy().args(args).args(files))
            };
            objcopy(&["--only-keep-debug"], &[&own, &apart])?;
            objcopy(&["--strip-unneeded"], &[&own])?;
            let link = format!("--add-gnu-debuglink={}", apart.display());
            objcopy(&[&link], &[&own])?;
        }
        Ok(debug)
    }
}

/// What the agent's and the command's Debian package says of itself.
fn package<'a>(
    version: &'a str,
    architecture: &'a str,
    glibc: Glibc,
) -> archive::DebianPackage<'a> {
    archive::DebianPackage {
        name: "lucce",
        version,
        architecture,
        glibc,
        description: "Calling contexts of Java programs\n \
            Counts every allocation of a Java program under the stack of calls that leads to it.",
        recommends: None,
    }
}

/// The files of the Debian package: the command on the PATH, the agent beside the system's libraries.
fn installed_files(stage: &Path, version: &str) -> Vec<(PathBuf, PathBuf)> {
    let files = [
        ("bin/lucce".to_owned(), "usr/bin/lucce".to_owned()),
        (
            "lib/liblucce.so".to_owned(),
            "usr/lib/liblucce.so".to_owned(),
        ),
        (
            "include/lucce.h".to_owned(),
            "usr/include/lucce.h".to_owned(),
        ),
        (
            "LICENSE".to_owned(),
            "usr/share/doc/lucce/copyright".to_owned(),
        ),
        (SBOM.to_owned(), format!("usr/{}/{SBOM}", documents::FOLDER)),
    ];
    let jars = JARS.map(|(module, ending)| {
        let jar = format!("lucce-{module}-{version}{ending}.jar");
        (format!("java/{jar}"), format!("usr/share/java/{jar}"))
    });
    let both = files.into_iter().chain(jars);
    let both = both.map(|(own, there)| (stage.join(own), there.into()));
    both.chain(manual::installed(&stage.join("share")))
        .collect()
}

/// The newest glibc that one of these files asks for.
fn wanted_glibc(stage: &Path, files: &[&str]) -> Result<Glibc, String> {
    let mut newest = Glibc(2, 0);
    for file in files {
        let file = stage.join(file);
        let wanted = glibc::linked(&file)?;
        let size = fs::metadata(&file).map_or(0, |file| file.len());
        println!("{}: {size} bytes, glibc {wanted}", paths::short(&file));
        if wanted > FLOOR {
            return Err(format!("{}: wants glibc {wanted}", file.display()));
        }
        newest = newest.max(wanted);
    }
    Ok(newest)
}

/// When the last commit was made.
pub fn epoch() -> Result<String, String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let mut git = std::process::Command::new("git");
    git.current_dir(paths::root())
        .args(["log", "-1", "--format=%ct"]);
    Ok(String::from_utf8_lossy(&tools::output(&mut git)?)
        .trim()
        .to_owned())
}

fn created(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}
