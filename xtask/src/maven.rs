//! `maven`: what Java projects name, as a repository in `target/maven/repository`; and new projects, of Maven and of Gradle, that use it.
//!
//! Each artifact has its sources, its documentation and a POM that needs no other one, as Maven Central wants it; signatures
//! are the publisher's.

mod benchmarks;
mod gated_build;
mod new_projects;
mod project_files;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::systems::CLibrary;
use crate::{Outcome, build, jdk, paths, systems, tools};

/// Folders of `java-harness/artifacts`: each is an artifact.
const ARTIFACTS: [&str; 14] = [
    "api",
    "lucce",
    "junit",
    "jmh",
    "maven-plugin",
    "gradle-plugin",
    "gradle-marker",
    "logback",
    "log4j2",
    "slf4j",
    "micrometer",
    "opentelemetry",
    "spring-boot",
    "netty",
];

/// The system for which `build` makes what it makes.
const BUILT: &str = "linux-x64";
const LIBRARY: &str = "liblucce.so";
const COMMAND: &str = "lucce";

/// `archives`: unpacked ones of `dist`, whose agent and command the jars have; they run with an old glibc, too. Without one for x64,
/// its jar has what `build` made: that runs with the glibc of this machine and later ones.
///
/// # Errors
/// Something does not build, or the new project cannot use it.
pub fn make<A: AsRef<Path>>(archives: &[A]) -> Outcome {
    let maven = Maven::empty()?;
    maven.deploy(&maven.natives(archives)?)?;
    maven.complete()?;
    maven.check_native_jars()?;
    new_projects::try_out(&maven)?;
    println!("{}", paths::short(&maven.repository()));
    Ok(())
}

struct Maven {
    to: PathBuf,
}

impl Maven {
    fn empty() -> Result<Self, String> {
        let to = paths::target().join("maven");
        let _ = fs::remove_dir_all(&to);
        fs::create_dir_all(&to).map_err(|e| format!("{}: {e}", to.display()))?;
        Ok(Maven { to })
    }

    fn repository(&self) -> PathBuf {
        self.to.join("repository")
    }

    /// The agent and the command without debug information: a folder for each system, with what its jar has.
    fn natives<A: AsRef<Path>>(&self, archives: &[A]) -> Result<PathBuf, String> {
        let natives = self.to.join("natives");
        // Maven keeps resources of earlier runs.
        let resources = paths::harness().join("artifacts/lucce/target/classes");
        for system in platforms() {
            let _ = fs::remove_dir_all(resources.join(jar_folder(&system)));
        }
        let built = natives.join(BUILT).join(jar_folder(BUILT));
        fs::create_dir_all(&built).map_err(|e| e.to_string())?;
        for (file, name) in [(paths::agent(), LIBRARY), (paths::lucce(), COMMAND)] {
            let mut strip = Command::new("objcopy");
            strip
                .arg("--strip-unneeded")
                .arg(file)
                .arg(built.join(name));
            tools::run_quietly(&mut strip)?;
        }
        for archive in archives.iter().map(AsRef::as_ref) {
            let system = platform(archive)?;
            let folder = natives.join(&system).join(jar_folder(&system));
            fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
            for (file, name) in [("lib/liblucce.so", LIBRARY), ("bin/lucce", COMMAND)] {
                let file = archive.join(file);
                fs::copy(&file, folder.join(name))
                    .map_err(|e| format!("{}: {e}", file.display()))?;
            }
        }
        Ok(natives)
    }

    fn deploy(&self, natives: &Path) -> Outcome {
        let modules = ARTIFACTS.map(|name| format!("artifacts/{name}"));
        let mut mvn = self.mvn(&paths::harness());
        mvn.args(["-P", "publish", "-DskipTests", "-pl", &modules.join(",")]);
        mvn.arg(format!("-Dlucce.natives={}", natives.display()));
        let repository = self.repository();
        mvn.arg(format!(
            "-DaltDeploymentRepository=local::{}",
            url(&repository)
        ));
        tools::run_quietly(mvn.arg("deploy"))
    }

    /// Each artifact has what Maven Central asks for.
    fn complete(&self) -> Outcome {
        let version = env!("CARGO_PKG_VERSION");
        let group = self.repository().join("io/lucce");
        let found = fs::read_dir(&group).map_err(|e| format!("{}: {e}", group.display()))?;
        let mut artifacts = 0;
        // Files of the group name the plugin's prefix.
        let folders = found.filter_map(Result::ok);
        for artifact in folders.filter(|entry| entry.path().is_dir()) {
            let name = artifact.file_name().to_string_lossy().into_owned();
            let base = artifact.path().join(version);
            let file = |end: &str| base.join(format!("{name}-{version}{end}"));
            let of = |e: String| format!("{name}: {e}");
            let pom = fs::read_to_string(file(".pom")).map_err(|e| of(e.to_string()))?;
            described(&pom).map_err(of)?;
            // A marker names another artifact, and has no classes.
            if !pom.contains("<packaging>pom</packaging>") {
                let jars =
                    ["", "-sources", "-javadoc"].map(|kind| entries(&file(&format!("{kind}.jar"))));
                let [classes, sources, pages] = jars;
                documented(&classes?, &sources?, &pages?).map_err(of)?;
            }
            artifacts += 1;
        }
        match artifacts == ARTIFACTS.len() {
            true => Ok(()),
            false => Err(format!("{artifacts} artifacts, not {}", ARTIFACTS.len())),
        }
    }

    /// The command of the system for which `build` makes it.
    fn command(&self) -> PathBuf {
        let natives = self.to.join("natives").join(BUILT);
        natives.join(jar_folder(BUILT)).join(COMMAND)
    }

    /// The artifact `lucce` has a jar for each system with a folder of natives, and no other one; `all` has all files.
    fn check_native_jars(&self) -> Outcome {
        let version = env!("CARGO_PKG_VERSION");
        let artifact = self.repository().join("io/lucce/lucce").join(version);
        let jar = |classifier: &str| artifact.join(format!("lucce-{version}{classifier}.jar"));
        let files = |classifier: &str| {
            let mut files = entries(&jar(classifier))?;
            // Jars describe themselves.
            files.retain(|name| !name.ends_with('/') && !name.starts_with("META-INF/"));
            files.sort();
            Ok::<_, String>(files)
        };
        let classes = files("")?;
        if let Some(name) = classes.iter().find(|name| !name.ends_with(".class")) {
            return Err(format!("the jar of classes has {name}"));
        }
        let mut all = classes;
        for system in platforms() {
            let natives = [LIBRARY, COMMAND].map(|name| format!("{}/{name}", jar_folder(&system)));
            let classifier = format!("-{system}");
            if self.to.join("natives").join(&system).exists() {
                expect_files(&classifier, &files(&classifier)?, &natives)?;
                all.extend(natives);
            } else if jar(&classifier).exists() {
                return Err(format!("a jar for {system}, without an agent for it"));
            }
        }
        all.sort();
        expect_files("-all", &files("-all")?, &all)
    }

    /// Has what Maven has filled, and is not on a network.
    fn gradle(&self, folder: &Path) -> Command {
        let mut gradle = build::gradle();
        gradle
            .current_dir(folder)
            .args(["--no-daemon", "--offline", "--quiet", "-g"])
            .arg(self.to.join("gradle"));
        gradle
    }

    fn mvn(&self, folder: &Path) -> Command {
        let mut mvn = build::mvn();
        mvn.current_dir(folder)
            .args(["-q", "--batch-mode", "--no-transfer-progress"]);
        mvn
    }
}

/// The POM says what Maven Central wants to know, and needs no other POM for it.
fn described(pom: &str) -> Outcome {
    let project = pom.split("<dependencies>").next().unwrap_or_default();
    let is_there = |key: &&str| {
        let open = [format!("<{key}>"), format!("<{key} ")];
        open.iter().any(|open| project.contains(open))
    };
    let mut lacking = CENTRAL.iter().filter(|key| !is_there(key));
    match lacking.next() {
        Some(key) => Err(format!("no <{key}> in the POM")),
        None if project.contains("<parent>") => Err("the POM has a parent".into()),
        None if project.contains("SNAPSHOT") => Err("a version that is none yet".into()),
        None => Ok(()),
    }
}

const CENTRAL: [&str; 9] = [
    "groupId",
    "artifactId",
    "version",
    "name",
    "description",
    "url",
    "licenses",
    "developers",
    "scm",
];

/// Each class of the jar is among its sources, and each of its packages has a page.
fn documented(classes: &[String], sources: &[String], pages: &[String]) -> Outcome {
    let classes = classes
        .iter()
        .filter_map(|name| name.strip_suffix(".class"));
    let outer = classes.filter(|name| name.starts_with("io/") && !name.contains('$'));
    let mut packages = Vec::new();
    for class in outer {
        let source = format!("{class}.java");
        if !sources.contains(&source) {
            return Err(format!("no {source} among the sources"));
        }
        packages.extend(class.strip_suffix("/package-info"));
    }
    let is_told = |package: &&str| {
        let page = format!("{package}/package-summary.html");
        pages.iter().any(|name| name.ends_with(&page))
    };
    match packages.iter().find(|package| !is_told(package)) {
        Some(package) => Err(format!("no page of {package}")),
        None if packages.is_empty() => Err("no package is described".into()),
        None => Ok(()),
    }
}

/// What a jar holds.
fn entries(jar: &Path) -> Result<Vec<String>, String> {
    let jdk = jdk::compiler().ok_or("no JDK that compiles")?;
    let said = tools::output(jdk.light_tool("jar").arg("tf").arg(jar))?;
    let said = String::from_utf8_lossy(&said).into_owned();
    Ok(said.lines().map(str::to_owned).collect())
}

fn expect_files(classifier: &str, files: &[String], expected: &[String]) -> Outcome {
    match files == expected {
        true => Ok(()),
        false => Err(format!(
            "lucce{classifier}.jar has {files:?}, not {expected:?}"
        )),
    }
}

/// Where a jar has the agent and the command of a system.
fn jar_folder(system: &str) -> String {
    format!("io/lucce/agent/{system}")
}

/// The systems for which there can be a jar, as classifiers.
fn platforms() -> impl Iterator<Item = String> {
    let with_jvm = systems::ALL.into_iter();
    let with_jvm = with_jvm.filter(|system| system.c_library == CLibrary::Glibc);
    with_jvm.map(|system| format!("linux-{}", system.name))
}

/// Of `lucce-VERSION-linux-NAME`.
fn platform(archive: &Path) -> Result<String, String> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let mut found = platforms().filter(|platform| name.ends_with(&format!("-{platform}")));
    found
        .next()
        .ok_or_else(|| format!("{}: no archive of `dist`", archive.display()))
}

fn url(folder: &Path) -> String {
    format!(
        "file://{}",
        folder.display().to_string().replace(' ', "%20")
    )
}

#[cfg(test)]
mod maven_tests {
    use super::*;

    #[test]
    fn each_system_has_a_classifier() {
        let pom = include_str!("../../java-harness/artifacts/lucce/pom.xml");
        let class = include_str!(
            "../../java-harness/artifacts/lucce/src/main/java/io/lucce/agent/NativeFiles.java"
        );
        let systems: Vec<_> = platforms().map(|system| format!("\"{system}\"")).collect();
        let list = format!("SYSTEMS = List.of({});", systems.join(", "));
        assert!(class.contains(&list), "{list}");
        for system in platforms() {
            let lines = [
                format!("<directory>${{lucce.natives}}/{system}</directory>"),
                format!("<classesDirectory>${{lucce.natives}}/{system}</classesDirectory>"),
                format!("<classifier>{system}</classifier>"),
            ];
            assert!(lines.iter().all(|line| pom.contains(line)), "{system}");
        }
    }

    #[test]
    fn what_is_lacking_is_named() {
        let whole: String = CENTRAL
            .iter()
            .map(|key| format!("<{key}>1</{key}>"))
            .collect();
        assert_eq!(described(&whole), Ok(()));
        let less = whole.replace("<scm>", "<other>");
        assert_eq!(described(&less), Err("no <scm> in the POM".into()));
        assert!(described(&whole.replace('1', "1-SNAPSHOT")).is_err());
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let classes = names(&["io/a/A.class", "io/a/A$B.class", "io/a/package-info.class"]);
        let sources = names(&["io/a/A.java", "io/a/package-info.java"]);
        let pages = names(&["a.module/io/a/package-summary.html"]);
        assert_eq!(documented(&classes, &sources, &pages), Ok(()));
        assert!(documented(&classes, &sources[1..], &pages).is_err());
        assert!(documented(&classes, &sources, &[]).is_err());
    }
}
