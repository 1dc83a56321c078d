//! Own code: which classes belong to the program itself, apart from its libraries and the JDK.
//!
//! ```text
//! location of the class, its loader, the program's main class ─► application, library or JDK
//! ```
//!
//! The rules, in order; the first one that applies decides.
//!
//! 0. Patterns of the user (`--app`, agent option `app=`): the classes that match, and no others.
//! 1. The JDK: its packages in the boot loader, its modules, its proxies and accessors.
//! 2. Libraries: classes that a library generates, the classes of the launcher.
//! 3. Folders of classes (also in an archive: `BOOT-INF/classes`, `WEB-INF/classes`), source files that Java runs.
//! 4. The archive of the main class. If it holds merged artifacts: its classes below the main class's package.
//! 5. Archives that the project has just built: in `target` or `build` below the working directory. Quarkus's `app`.
//! 6. Classes below the main class's package, wherever they came from, unless they were relocated.
//!
//! The main class of a launcher has no such package. The packages of classes in folders (3), or of
//! Quarkus's program, take its place. If a log names no locations, all classes but the JDK's are the program's own.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use lucce_filter::PatternList;
use lucce_tracelog::COMMAND;

use crate::code::{CodeSymbols, LoadedClass};
use crate::frame::{CodeOrigin, is_jdk_name};
use crate::profile::Profile;

/// The origin of each class, in the order of `CodeSymbols::loaded_classes`, and what people know own code by.
pub(crate) struct ClassOrigins {
    pub origins: Vec<CodeOrigin>,
    /// Sorted: `shop.jar!BOOT-INF/classes`, `com.acme.*`.
    pub own_places: BTreeSet<String>,
}

/// Decides the origin of each class. `app`: the classes of the program; empty: the rules decide.
pub(crate) fn find_class_origins(profile: &Profile, app: PatternList) -> ClassOrigins {
    let launch = ProgramLaunch::from_facts(&profile.meta, &profile.code, app);
    let origins = profile.code.loaded_classes();
    let origins: Vec<_> = origins.map(|class| launch.classify_class(&class)).collect();
    ClassOrigins {
        own_places: launch.list_places(&profile.code, &origins),
        origins,
    }
}

/// How the program was started.
#[derive(Default, Debug)]
struct ProgramLaunch<'p> {
    /// The part of the command in front of the arguments: a jar, a main class, or a module and its main class.
    program: &'p str,
    /// The packages below which classes are the program's own.
    own_packages: BTreeSet<&'p str>,
    /// The name that the main class's package begins with, if another project's launcher starts the program.
    launcher: Option<&'static str>,
    /// Where the main class was loaded from.
    main_location: Option<&'p str>,
    /// The archive of the main class holds several artifacts.
    is_merged: bool,
    working_directory: &'p str,
    /// The user's patterns of own code; empty: the rules decide.
    app: PatternList,
    /// The log has no location of any class.
    has_no_locations: bool,
}

/// Packages of programs that start other programs: their package says nothing about the program's own code.
const LAUNCHERS: [&str; 22] = [
    "com.intellij.rt.",
    "com.sun.tools.javac.launcher.",
    "dotty.tools.",
    "io.quarkus.bootstrap.",
    "io.quarkus.runner.",
    "jdk.",
    "org.apache.catalina.startup.",
    "org.apache.maven.surefire.",
    "org.apache.tools.ant.",
    "org.codehaus.plexus.classworlds.",
    "org.eclipse.equinox.launcher.",
    "org.eclipse.jdt.internal.junit.",
    "org.eclipse.jetty.start.",
    "org.gradle.",
    "org.jboss.modules.",
    "org.jetbrains.kotlin.runner.",
    "org.junit.platform.console.",
    "org.openjdk.jmh.",
    "org.springframework.boot.loader.",
    "sbt.",
    "scala.tools.nsc.",
    "worker.org.gradle.",
];

/// Packages that many projects share: what follows tells projects apart.
const SHARED_PACKAGES: [&str; 12] = [
    "com.amazonaws",
    "com.github",
    "com.google",
    "com.ibm",
    "com.microsoft",
    "com.oracle",
    "com.sun",
    "io.github",
    "org.apache",
    "org.eclipse",
    "org.jetbrains",
    "org.springframework",
];

impl<'p> ProgramLaunch<'p> {
    fn from_facts(
        meta: &'p BTreeMap<String, String>,
        code: &'p CodeSymbols,
        app: PatternList,
    ) -> ProgramLaunch<'p> {
        let meta = |key: &str| meta.get(key).map_or("", String::as_str);
        let command = meta(COMMAND);
        let program = command.split(" *").next().unwrap_or(command);
        let main_class = match meta("main.class") {
            // Logs without the key: the command names the class.
            "" => program.rsplit('/').next().unwrap_or_default(),
            named => named,
        };
        let launcher = find_launcher(main_class);
        let is_jar = main_class.ends_with(".jar");
        let main_package = (launcher.is_none() && !is_jar).then(|| project_package(main_class));
        let mut launch = ProgramLaunch {
            program,
            own_packages: main_package.flatten().into_iter().collect(),
            launcher,
            main_location: match launcher {
                Some(_) => None,
                None => code.class_location(main_class),
            },
            is_merged: meta("main.jar") == "merged",
            working_directory: meta("directory"),
            app,
            has_no_locations: code.has_no_locations(),
        };
        if launcher.is_some() {
            launch.add_packages(code.loaded_classes());
        }
        launch
    }

    /// Adds the packages of a launcher's program: those of classes in folders.
    fn add_packages(&mut self, classes: impl Iterator<Item = LoadedClass<'p>>) {
        let own = classes.filter(|class| {
            let is_own = |at| self.is_own_location(at) || self.is_quarkus_application(at);
            !class.is_boot && class.location.is_some_and(is_own) && !self.is_not_written(class.name)
        });
        let packages = own.filter_map(|class| project_package(class.name));
        self.own_packages = packages.collect();
    }

    fn classify_class(&self, class: &LoadedClass<'_>) -> CodeOrigin {
        let by_rules = self.classify_by_rules(class);
        match (self.app.is_empty(), by_rules) {
            (true, _) => by_rules,
            (false, _) if self.app.matches_class(class.name) => CodeOrigin::Application,
            (false, CodeOrigin::Jdk) => CodeOrigin::Jdk,
            (false, _) => CodeOrigin::Library,
        }
    }

    fn classify_by_rules(&self, class: &LoadedClass<'_>) -> CodeOrigin {
        if self.has_no_locations && is_jdk_name(class.name) || is_jdk_proxy(class.name) {
            return CodeOrigin::Jdk;
        }
        if class.is_boot {
            // Java agents add classes to the boot loader.
            return match class.name {
                name if is_boot_name(name) => CodeOrigin::Jdk,
                name if self.is_below_own_package(name) => CodeOrigin::Application,
                _ => CodeOrigin::Library,
            };
        }
        if class.location.is_none() && is_jdk_name(class.name) {
            return CodeOrigin::Jdk;
        }
        if let Some(module) = class.location.and_then(|at| at.strip_prefix("jrt:/")) {
            return self.classify_module(module, class.name);
        }
        let generated = |at: &str| at.ends_with("/quarkus/generated-bytecode.jar");
        if self.is_not_written(class.name) || class.location.is_some_and(generated) {
            return CodeOrigin::Library;
        }
        let is_own = match class.location {
            None => self.has_no_locations || self.is_below_own_package(class.name),
            Some(location) => {
                self.is_own_location(location)
                    || find_launcher(class.name).is_none()
                        && self.is_own_archive(location, class.name)
            }
        };
        match is_own {
            true => CodeOrigin::Application,
            false => CodeOrigin::Library,
        }
    }

    /// The places of the classes that are the program's own. `origins`: of each class, in the order of the log.
    fn list_places(&self, code: &CodeSymbols, origins: &[CodeOrigin]) -> BTreeSet<String> {
        if !self.app.is_empty() {
            return BTreeSet::from([self.app.to_string()]);
        }
        if self.has_no_locations {
            return BTreeSet::new();
        }
        let classes = code.loaded_classes().zip(origins);
        let own = classes.filter(|(_, origin)| **origin == CodeOrigin::Application);
        let places: HashSet<_> = own
            .map(|(class, _)| (class.location, self.find_package(class.name)))
            .collect();
        let places = places.into_iter();
        places
            .map(|(location, package)| self.describe_place(location, package))
            .collect()
    }

    /// A module of a run-time image.
    fn classify_module(&self, module: &str, class: &str) -> CodeOrigin {
        let main_module = self.program.split_once('/').map(|(module, _)| module);
        if module.starts_with("java.") || module.starts_with("jdk.") {
            CodeOrigin::Jdk
        } else if main_module == Some(module) || self.is_below_own_package(class) {
            CodeOrigin::Application
        } else {
            CodeOrigin::Library
        }
    }

    /// A folder of classes, perhaps within an archive, or a source file that Java runs.
    fn is_own_location(&self, location: &str) -> bool {
        if location.contains("BOOT-INF/") || location.contains("WEB-INF/") {
            return location.contains("INF/classes");
        }
        (location.starts_with("file:") && location.ends_with('/')) || location.ends_with(".java")
    }

    /// An archive of which the class is the program's own code.
    fn is_own_archive(&self, location: &str, class: &str) -> bool {
        let is_main = Some(location) == self.main_location || self.is_started_archive(location);
        self.is_below_own_package(class)
            || match is_main {
                true => !self.is_merged && !is_relocated(class),
                false => self.is_built_here(location) || self.is_quarkus_application(location),
            }
    }

    /// The archive of `java -jar`, unless a launcher of another project is its main class.
    fn is_started_archive(&self, location: &str) -> bool {
        let path = location.strip_prefix("file:");
        let is_started = path
            .is_some_and(|path| self.program.ends_with(".jar") && is_same_file(path, self.program));
        is_started && self.launcher.is_none()
    }

    /// An archive that a build of the project made: no library that the build copied.
    fn is_built_here(&self, location: &str) -> bool {
        let path = location.strip_prefix("file:").unwrap_or(location);
        let below = path.strip_prefix(self.working_directory);
        let is_below = !self.working_directory.is_empty() && self.working_directory != "/";
        below.filter(|_| is_below).is_some_and(|path| {
            let is_built = path.contains("/target/") || path.contains("/build/");
            // Copies of libraries, and code that Quarkus generates.
            let others = ["/lib/", "/dependency/", "/quarkus/"];
            is_built && !others.iter().any(|other| path.contains(other))
        })
    }

    /// An archive of the program beside Quarkus's launcher: in the folder `app`.
    fn is_quarkus_application(&self, location: &str) -> bool {
        let folder = self.program.strip_suffix("quarkus-run.jar");
        let path = location.strip_prefix("file:");
        folder.zip(path).is_some_and(|(folder, path)| {
            let below = match folder.starts_with('/') {
                true => path.strip_prefix(folder),
                false => path
                    .strip_prefix(self.working_directory)
                    .and_then(|path| path.strip_prefix('/'))
                    .and_then(|path| path.strip_prefix(folder.trim_start_matches("./"))),
            };
            below.is_some_and(|path| path.starts_with("app/"))
        })
    }

    /// Code that nobody wrote for this program: the launcher's, or what a library generates.
    fn is_not_written(&self, class: &str) -> bool {
        let is_launched = self
            .launcher
            .is_some_and(|prefix| class.starts_with(prefix));
        is_launched || GENERATED_NAMES.iter().any(|part| class.contains(part))
    }

    fn is_below_own_package(&self, class: &str) -> bool {
        self.find_package(class).is_some() && !is_relocated(class)
    }

    /// The program's own package that a class is below.
    fn find_package(&self, class: &str) -> Option<&'p str> {
        let mut packages = self.own_packages.iter().copied();
        packages.find(|own| {
            let rest = class.strip_prefix(own);
            rest.is_some_and(|rest| rest.starts_with('.'))
        })
    }

    /// The place of own code from a location, as a person knows it. If only its package makes it own code, the package.
    fn describe_place(&self, location: Option<&str>, package: Option<&str>) -> String {
        let by_package = package.map(|package| format!("{package}.*"));
        match (location, by_package) {
            (None, by_package) => by_package.unwrap_or_default(),
            (Some(location), Some(package)) if !self.is_own_place(location) => package,
            (Some(location), _) => short_location(location, self.working_directory),
        }
    }

    /// Whether a location alone makes code the program's own.
    fn is_own_place(&self, location: &str) -> bool {
        let is_main = Some(location) == self.main_location || self.is_started_archive(location);
        self.is_own_location(location)
            || match is_main {
                true => !self.is_merged,
                false => self.is_built_here(location) || self.is_quarkus_application(location),
            }
    }
}

/// Parts of the names of classes that libraries generate from a program's classes: Spring, CGLIB, Byte Buddy, Hibernate,
/// Mockito, Javassist, Weld, Quarkus.
const GENERATED_NAMES: [&str; 14] = [
    "$$SpringCGLIB$$",
    "$$EnhancerBy",
    "$$FastClassBy",
    "$$KeyFactoryBy",
    "$ByteBuddy$",
    "$HibernateProxy$",
    "$HibernateInstantiator",
    "$HibernateAccessOptimizer",
    "$MockitoMock$",
    "_$$_jvst",
    "_$$_javassist",
    "$_$$_Weld",
    "_ClientProxy",
    "$quarkusrest",
];

/// Parts of packages into which a build moves the classes of libraries.
const RELOCATED_PACKAGES: [&str; 5] = [
    ".shaded.",
    ".shadow.",
    ".relocated.",
    ".repackaged.",
    ".thirdparty.",
];

/// Whether a library's class was renamed to a package of the program.
fn is_relocated(class: &str) -> bool {
    RELOCATED_PACKAGES.iter().any(|part| class.contains(part))
}

/// `$Proxy12`: `java.lang.reflect.Proxy` makes it, in the package of an interface that is not public.
fn is_jdk_proxy(class: &str) -> bool {
    let simple = class.rsplit('.').next().unwrap_or(class);
    let number = simple.strip_prefix("$Proxy").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// Whether a class of the boot loader is the JDK's own.
fn is_boot_name(class: &str) -> bool {
    const PACKAGES: [&str; 6] = [
        "netscape.javascript.",
        "org.ietf.jgss.",
        "org.jcp.xml.",
        "org.w3c.dom.",
        "org.xml.sax.",
        "apple.",
    ];
    is_jdk_name(class) || PACKAGES.iter().any(|package| class.starts_with(package))
}

/// The package that tells a project's classes from others: two parts, or three where many projects share two.
pub(crate) fn project_package(class: &str) -> Option<&str> {
    let package = package_of(class);
    let ends = package.match_indices('.').map(|(at, _)| at);
    let ends: Vec<_> = ends.chain([package.len()]).collect();
    let two = ends.get(1).and_then(|end| package.get(..*end))?;
    match SHARED_PACKAGES.contains(&two) {
        true => ends.get(2).and_then(|end| package.get(..*end)),
        false => Some(two),
    }
}

fn find_launcher(class: &str) -> Option<&'static str> {
    let mut prefixes = LAUNCHERS.into_iter();
    prefixes.find(|prefix| class.starts_with(prefix))
}

/// `a.b` of `a.b.C$D`; empty: no package.
fn package_of(class: &str) -> &str {
    class.rsplit_once('.').map_or("", |(package, _)| package)
}

/// Whether a path of a URL is the file that the command names, perhaps relative to the working directory.
fn is_same_file(path: &str, named: &str) -> bool {
    let named = named.trim_start_matches("./");
    path.strip_suffix(named)
        .is_some_and(|before| before.is_empty() || before.ends_with('/') || named.starts_with('/'))
}

/// A location relative to the working directory, or else its last parts: `shop.jar!BOOT-INF/classes`, `core/target/classes`,
/// `Main.java`.
fn short_location(location: &str, working_directory: &str) -> String {
    let path = location.trim_end_matches(['/', '!']);
    let (archive, inner) = match path.rsplit_once("!/").or_else(|| path.rsplit_once("/!")) {
        Some((archive, inner)) => (archive, Some(inner)),
        None => (path, None),
    };
    let archive = archive.trim_end_matches('/');
    let file = archive.rsplit(':').next().unwrap_or(archive);
    let below = file.strip_prefix(working_directory);
    let below = below.and_then(|rest| rest.strip_prefix('/'));
    let parts = match inner.is_none() && location.ends_with('/') {
        true => 3,
        false => 1,
    };
    let shown = match below {
        Some(below) if !working_directory.is_empty() && !below.is_empty() => below,
        _ => last_parts(file, parts),
    };
    match inner {
        Some(inner) => format!("{shown}!{inner}"),
        None => shown.to_owned(),
    }
}

fn last_parts(file: &str, parts: usize) -> &str {
    let file = file.trim_start_matches('/');
    let starts = file.rmatch_indices('/').map(|(at, _)| at + 1);
    let start = starts.take(parts).nth(parts - 1).unwrap_or(0);
    file.get(start..).unwrap_or(file)
}

/// Looks up the facts that rules need in the code of a log.
impl CodeSymbols {
    /// Where a class of this name was loaded from.
    fn class_location(&self, name: &str) -> Option<&str> {
        let classes = self.loaded_classes().filter(|class| class.name == name);
        classes.filter_map(|class| class.location).next()
    }
}

#[cfg(test)]
mod code_origin_tests;
