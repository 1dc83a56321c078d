//! `dist`: what users install, in `target/dist`.
//!
//! ```text
//! lucce-VERSION-linux-x64.tar.gz     bin/lucce  lib/liblucce.so  include/lucce.h  java/lucce-{api,junit,…}-VERSION.jar
//!                                    share/man/man1/*.1  share/bash-completion/…  share/zsh/…  share/fish/…
//!                                    LICENSE  NOTICE  README.md  sbom.cdx.json
//! lucce-VERSION-linux-x64-debug.tar.gz        debug information, found by debuggers when it lies beside
//! lucce_VERSION_amd64.deb
//! SHA256SUMS
//! ```
//! Archives of equal files have equal bytes: times are that of the last commit, names are sorted. Compilers are told to
//! name no folder of this machine in what they make. With `cargo-zigbuild` on the PATH (`pip install cargo-zigbuild ziglang`) what is built runs with glibc 2.17
//! and later; without it with the glibc of this machine and later.

mod archive;
mod manual;
mod sbom;
mod tried;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shipped::FLOOR;
use crate::shipped::glibc::{self, Glibc};
use crate::{Outcome, build, dependencies, place, tools};

/// What programs and their tests put on the class path.
const JARS: [&str; 4] = ["api", "junit", "logback", "log4j2"];

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What is made, and of what.
struct Dist {
    version: &'static str,
    /// Seconds since 1970: of the last commit.
    epoch: String,
    /// Where cargo builds it.
    target: PathBuf,
    /// Where it goes.
    to: PathBuf,
}

/// # Errors
/// Something does not build, wants a newer glibc than it should, or does not run where there is nothing but a JDK.
pub fn make() -> Outcome {
    let to = place::target().join("dist");
    let _ = fs::remove_dir_all(&to);
    created(&to)?;
    let dist = Dist {
        version: env!("CARGO_PKG_VERSION"),
        epoch: epoch()?,
        target: place::target().join("dist-build"),
        to,
    };
    build::java()?;
    let built = dist.built()?;
    let name = format!("lucce-{}-linux-x64", dist.version);
    let stage = dist.stage(&name, &built)?;
    let debug = dist.split(&name, &stage)?;
    let mut newest = Glibc(2, 0);
    for file in [stage.join("bin/lucce"), stage.join("lib/liblucce.so")] {
        let wanted = glibc::linked(&file)?;
        let size = fs::metadata(&file).map_or(0, |file| file.len());
        newest = newest.max(wanted);
        println!("{}: {size} bytes, glibc {wanted}", place::short(&file));
        if has_zig() && wanted > FLOOR {
            return Err(format!("{}: wants glibc {wanted}", file.display()));
        }
    }
    archive::tar(&dist.to, &name, &dist.epoch)?;
    archive::tar(&dist.to, &debug, &dist.epoch)?;
    archive::deb(&dist.to, &name, (dist.version, newest), &dist.epoch)?;
    tried::archive(&dist.to, &name)?;
    tried::deb(&dist.to, &format!("lucce_{}_amd64.deb", dist.version))?;
    println!("both packages run where there is nothing but a JDK");
    for folder in [&name, &debug] {
        fs::remove_dir_all(dist.to.join(folder)).map_err(|e| e.to_string())?;
    }
    archive::sums(&dist.to)
}

impl Dist {
    /// The folder with both.
    fn built(&self) -> Result<PathBuf, String> {
        let mut cargo = place::cargo();
        let target = match has_zig() {
            true => {
                cargo.arg("zigbuild");
                format!("{TARGET}.{FLOOR}")
            }
            false => {
                cargo.arg("build");
                TARGET.to_owned()
            }
        };
        cargo.args([
            "--release",
            "--locked",
            "-p",
            "lucce-agent",
            "-p",
            "lucce-decoder",
        ]);
        cargo.args(["--target", &target]);
        let names = self.names();
        let flags = names
            .iter()
            .map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
        let flags: Vec<String> = flags.collect();
        let c_flags = names.iter().map(|(folder, name)| {
            quoted(&format!("-ffile-prefix-map={}={name}", folder.display()))
        });
        let c_flags: Vec<String> = c_flags.collect();
        cargo
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            // As a shell would take them: a folder's name may have spaces.
            .env("CC_SHELL_ESCAPED_FLAGS", "1")
            .env("CFLAGS", c_flags.join(" "))
            .env("SOURCE_DATE_EPOCH", &self.epoch);
        tools::run(build::with_jdk(&mut cargo))?;
        Ok(self.target.join(TARGET).join("release"))
    }

    /// What folders of this machine are called in what is built.
    fn names(&self) -> Vec<(PathBuf, &'static str)> {
        let mut names = vec![(place::root(), "/lucce"), (self.target.clone(), "/target")];
        names.extend(cargo_home().map(|home| (home, "/cargo")));
        names
    }

    fn stage(&self, name: &str, built: &Path) -> Result<PathBuf, String> {
        let stage = self.to.join(name);
        let root = place::root();
        let files = [
            (built.join("lucce"), "bin/lucce".to_owned()),
            (built.join("liblucce.so"), "lib/liblucce.so".to_owned()),
            (
                root.join("agent/include/lucce.h"),
                "include/lucce.h".to_owned(),
            ),
            (root.join("LICENSE"), "LICENSE".to_owned()),
            (root.join("NOTICE"), "NOTICE".to_owned()),
            (root.join("README.md"), "README.md".to_owned()),
        ];
        let jars = JARS.map(|module| {
            let jar = format!("lucce-{module}-{}.jar", self.version);
            let from = place::harness().join(module).join("target").join(&jar);
            (from, format!("java/{jar}"))
        });
        for (from, to) in files.into_iter().chain(jars) {
            let to = stage.join(to);
            created(to.parent().unwrap_or(&stage))?;
            fs::copy(&from, &to).map_err(|e| format!("{}: {e}", from.display()))?;
        }
        manual::write(&stage.join("share"), &stage.join("bin/lucce"))?;
        let sbom = sbom::text(self.version, &dependencies::shipped()?)?;
        fs::write(stage.join("sbom.cdx.json"), sbom).map_err(|e| e.to_string())?;
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
                tools::run_quietly(Command::new("objcopy").args(args).args(files))
            };
            objcopy(&["--only-keep-debug"], &[&own, &apart])?;
            objcopy(&["--strip-unneeded"], &[&own])?;
            let link = format!("--add-gnu-debuglink={}", apart.display());
            objcopy(&[&link], &[&own])?;
        }
        Ok(debug)
    }
}

/// One word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn has_zig() -> bool {
    let probe = Command::new("cargo-zigbuild").arg("--version").output();
    probe.is_ok_and(|probe| probe.status.success())
}

fn cargo_home() -> Option<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

/// When the last commit was made.
fn epoch() -> Result<String, String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let mut git = Command::new("git");
    git.current_dir(place::root())
        .args(["log", "-1", "--format=%ct"]);
    Ok(String::from_utf8_lossy(&tools::output(&mut git)?)
        .trim()
        .to_owned())
}

fn created(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

#[cfg(test)]
mod tests {
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
}
