//! Archives whose bytes depend on their files' bytes and names alone.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::manual;
use crate::shipped::glibc::Glibc;
use crate::{Outcome, tools};

/// `FOLDER.tar.gz`, beside the folder.
pub fn tar(at: &Path, folder: &str, epoch: &str) -> Outcome {
    let mut tar = Command::new("tar");
    tar.current_dir(at)
        .args([
            "--sort=name",
            "--format=ustar",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
        ])
        .args([
            "--mode=u=rwX,go=rX",
            &format!("--mtime=@{epoch}"),
            "-cf",
            "-",
            folder,
        ])
        .stdout(Stdio::piped());
    let mut packing = tar.spawn().map_err(|e| format!("cannot start tar: {e}"))?;
    let name = at.join(format!("{folder}.tar.gz"));
    let to = File::create(&name).map_err(|e| format!("{}: {e}", name.display()))?;
    let from = packing.stdout.take().ok_or("tar says nothing")?;
    let mut gzip = Command::new("gzip");
    let pressed = gzip.args(["-n", "-9"]).stdin(from).stdout(to).status();
    let packed = packing.wait().map_err(|e| e.to_string())?;
    match packed.success() && pressed.is_ok_and(|pressed| pressed.success()) {
        true => Ok(()),
        false => Err(format!("{}: tar or gzip failed", name.display())),
    }
}

/// What a package of Debian's says of itself.
pub struct DebianPackage<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// `amd64`, `arm64`.
    pub architecture: &'a str,
    /// The oldest that it runs with.
    pub glibc: Glibc,
    /// A summary, and sentences in lines that begin with a space.
    pub description: &'a str,
    /// Another package that most users of this one want.
    pub recommends: Option<&'a str>,
}

impl DebianPackage<'_> {
    pub fn file(&self) -> String {
        format!("{}_{}_{}.deb", self.name, self.version, self.architecture)
    }

    fn control(&self, kilobytes: u64) -> String {
        let DebianPackage {
            name,
            version,
            architecture,
            glibc,
            description,
            recommends,
        } = self;
        let recommends = recommends.map_or(String::new(), |name| format!("Recommends: {name}\n"));
        format!(
            "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nSection: java\nPriority: optional\n\
             Maintainer: the lucce authors <lucce@localhost>\nInstalled-Size: {kilobytes}\nDepends: libc6 (>= {glibc})\n\
             {recommends}Description: {description}\n"
        )
    }
}

/// A package of Debian's with these files, each with its path in the system.
pub fn deb(
    at: &Path,
    files: &[(PathBuf, PathBuf)],
    package: &DebianPackage,
    epoch: &str,
) -> Outcome {
    let root = at.join("deb");
    for (own, there) in files {
        let to = root.join(there);
        fs::create_dir_all(to.parent().ok_or("no folder")?).map_err(|e| e.to_string())?;
        fs::copy(own, &to).map_err(|e| format!("{}: {e}", own.display()))?;
        if to.extension().is_some_and(|kind| kind == "1") {
            manual::pack(&to)?;
        }
    }
    let control = package.control(kilobytes(&root)?);
    fs::create_dir_all(root.join("DEBIAN")).map_err(|e| e.to_string())?;
    fs::write(root.join("DEBIAN/control"), control).map_err(|e| e.to_string())?;
    let file = at.join(package.file());
    let mut chmod = Command::new("chmod");
    tools::run_quietly(chmod.args(["-R", "u=rwX,go=rX"]).arg(&root))?;
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--build", "--root-owner-group", "-Zgzip"]);
    tools::run_quietly(pack.arg(&root).arg(&file).env("SOURCE_DATE_EPOCH", epoch))?;
    fs::remove_dir_all(&root).map_err(|e| e.to_string())
}

/// What the package takes when it is installed, as Debian counts: each file in whole kilobytes, each folder as one.
fn kilobytes(folder: &Path) -> Result<u64, String> {
    let failed = |e| format!("{}: {e}", folder.display());
    let mut sum = 1;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let about = entry.metadata().map_err(failed)?;
        sum += match about.is_dir() {
            true => kilobytes(&entry.path())?,
            false => about.len().div_ceil(1024),
        };
    }
    Ok(sum)
}

/// `SHA256SUMS` of all that is there.
pub fn sums(at: &Path) -> Outcome {
    let entries = fs::read_dir(at).map_err(|e| e.to_string())?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    let said = tools::output(Command::new("sha256sum").current_dir(at).args(&names))?;
    print!("{}", String::from_utf8_lossy(&said));
    fs::write(at.join("SHA256SUMS"), said).map_err(|e| e.to_string())
}

#[cfg(test)]
mod archive_tests {
    use super::*;
    use crate::paths;

    const FILES: [&str; 19] = [
        "bin/lucce",
        "lib/liblucce.so",
        "include/lucce.h",
        "java/lucce-api-1.jar",
        "java/lucce-junit-1.jar",
        "java/lucce-logback-1.jar",
        "java/lucce-log4j2-1.jar",
        "java/lucce-slf4j-1.jar",
        "java/lucce-micrometer-1.jar",
        "java/lucce-opentelemetry-1.jar",
        "java/lucce-opentelemetry-1-extension.jar",
        "java/lucce-spring-boot-1.jar",
        "java/lucce-netty-1.jar",
        "LICENSE",
        "NOTICE",
        "sbom.cdx.json",
        "share/man/man1/lucce.1",
        "share/zsh/site-functions/_lucce",
        "share/bash-completion/completions/lucce",
    ];

    /// Two folders of equal files, made in different orders: their archives.
    fn made(name: &str, files: &mut dyn Iterator<Item = &&str>) -> [Vec<u8>; 2] {
        let at = paths::target().join("dist-test").join(name);
        let _ = fs::remove_dir_all(&at);
        for file in files {
            let path = at.join("it").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        tar(&at, "it", "1700000000").unwrap();
        let package = super::super::package("1", "amd64", Glibc(2, 17));
        let files = super::super::installed_files(&at.join("it"), "1");
        deb(&at, &files, &package, "1700000000").unwrap();
        ["it.tar.gz", "lucce_1_amd64.deb"].map(|file| fs::read(at.join(file)).unwrap())
    }

    #[test]
    fn archives_of_equal_files_have_equal_bytes() {
        let first = made("first", &mut FILES.iter());
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let second = made("second", &mut FILES.iter().rev());
        assert!(first == second);
        assert!(first.iter().all(|archive| archive.len() > 200));
        let package = paths::target().join("dist-test/first/lucce_1_amd64.deb");
        let said = tools::output(Command::new("dpkg-deb").arg("-c").arg(&package)).unwrap();
        let said = String::from_utf8(said).unwrap();
        for file in [
            "usr/bin/lucce",
            "usr/share/doc/lucce/sbom.cdx.json",
            "usr/share/man/man1/lucce.1.gz",
            "usr/share/zsh/vendor-completions/_lucce",
            "usr/share/bash-completion/completions/lucce",
        ] {
            assert!(said.contains(&format!(" ./{file}\n")), "{file}: {said}");
        }
        let mut size = Command::new("dpkg-deb");
        let size = tools::output(size.arg("-f").arg(package).arg("Installed-Size")).unwrap();
        // A kilobyte for each of these files, which are small, and for each folder.
        let parts = said.lines().count().to_string();
        assert_eq!(String::from_utf8(size).unwrap().trim(), parts);
    }
}
