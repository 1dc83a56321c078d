//! lucce-fleet, in an archive and a Debian package of its own: the engine in it is many times as large as the command.

use std::fs;
use std::path::{Path, PathBuf};

use super::archive::{self, DebianPackage};
use super::{Dist, SBOM, created, sbom, tried, wanted_glibc};
use crate::systems::BuildSources;
use crate::{Outcome, dependencies, linked, paths, tools};

const NAME: &str = "lucce-fleet";
const PROGRAM: &str = "bin/lucce-fleet";
const DOCUMENT: &str = "docs/guide/fleet.md";

/// # Errors
/// It does not build, wants a newer glibc than it should, or does not answer a question alone.
pub fn make(dist: &Dist) -> Outcome {
    let built = dist
        .tools
        .built(BuildSources::Fleet, "release", &dist.epoch)?;
    let name = format!("{NAME}-{}-linux-{}", dist.version, dist.tools.system.name);
    let stage = dist.to.join(&name);
    fill(dist, &built, &stage)?;
    let package = DebianPackage {
        name: NAME,
        version: dist.version,
        architecture: dist.tools.system.debian,
        glibc: wanted_glibc(&stage, &[PROGRAM])?,
        description: "Many runs of Java programs as one dataset, asked by SQL\n \
            Adds logs of lucce to a dataset of Parquet files and answers questions about all of them.",
        recommends: Some("lucce"),
    };
    archive::tar(&dist.to, &name, &dist.epoch)?;
    archive::deb(&dist.to, &installed_files(&stage), &package, &dist.epoch)?;
    tried::fleet_archive(&dist.to, &name, &dist.tools)?;
    tried::fleet_deb(&dist.to, &package.file(), &dist.tools)?;
    println!("{name}: the archive and the package answer a question where there is nothing else");
    dist.print_sizes(&[&format!("{name}.tar.gz"), &package.file()])?;
    fs::remove_dir_all(&stage).map_err(|e| e.to_string())
}

fn fill(dist: &Dist, built: &Path, stage: &Path) -> Outcome {
    let root = paths::root();
    for (from, to) in [
        (built.join(NAME), PROGRAM),
        (root.join("LICENSE"), "LICENSE"),
        (root.join(DOCUMENT), DOCUMENT),
    ] {
        let to = stage.join(to);
        created(to.parent().unwrap_or(stage))?;
        fs::copy(&from, &to).map_err(|e| format!("{}: {e}", from.display()))?;
    }
    let program = stage.join(PROGRAM);
    let made = linked::Made::read(&program)?;
    let packages = dependencies::shipped_fleet()?;
    let sbom = sbom::text(
        NAME,
        dist.version,
        &packages,
        &made,
        dist.tools.system.c_library,
    )?;
    fs::write(stage.join(SBOM), sbom).map_err(|e| e.to_string())?;
    let notice = dependencies::fleet_notice(&packages)?;
    fs::write(stage.join("NOTICE"), notice).map_err(|e| e.to_string())?;
    let mut strip = dist.tools.objcopy();
    tools::run_quietly(strip.arg("--strip-unneeded").arg(&program))
}

fn installed_files(stage: &Path) -> Vec<(PathBuf, PathBuf)> {
    let files = [
        (PROGRAM, "usr/bin/lucce-fleet"),
        ("LICENSE", "usr/share/doc/lucce-fleet/copyright"),
        ("NOTICE", "usr/share/doc/lucce-fleet/NOTICE"),
        (SBOM, "usr/share/doc/lucce-fleet/sbom.cdx.json"),
        (DOCUMENT, "usr/share/doc/lucce-fleet/fleet.md"),
    ];
    let both = files.map(|(own, there)| (stage.join(own), there.into()));
    both.into()
}
