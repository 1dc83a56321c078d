//! Own code: which classes belong to the program itself, apart from its libraries and the JDK.
//!
//! ```text
//! location of the class, its loader, the program's main class ─► application, library or JDK
//! ```
//!
//! The rules, in order; the first one that applies decides.
//!
//! 0. Patterns of the user (`--app`, agent option `app=`): the classes that match, and no others.
//! 1. The JDK: the boot loader, modules of the JDK.
//! 2. Folders of classes (also in an archive: `BOOT-INF/classes`, `WEB-INF/classes`), source files that Java runs.
//! 3. The archive of the main class. If it holds merged artifacts: its classes below the main class's package.
//! 4. Archives that the project has just built: in `target` or `build` below the working directory.
//! 5. Classes below the main class's package, wherever they came from.
//!
//! Proxies that frameworks generate are library code. If a log names no locations, all classes but the JDK's are the program's own.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use lucce_filter::PatternList;
use lucce_tracelog::COMMAND;

use crate::code::{CodeSymbols, LoadedClass};
use crate::frame::{CodeOrigin, is_jdk_name};
use crate::profile::Profile;
use crate::recorded_options::read_recorded_options;

impl Profile {
    /// Decides the origin of each class. `app`: the classes of the program; empty: those that the agent's option `app=`
    /// names, or else those that the rules find.
    pub fn classify_code(&mut self, app: &PatternList) {
        let recorded = match app.is_empty() {
            true => read_recorded_options(self).map(|options| options.app),
            false => None,
        };
        let app = recorded.unwrap_or_else(|| app.clone());
        let launch = ProgramLaunch::from_facts(&self.meta, &self.code, app);
        let origins = self.code.loaded_classes();
        let origins: Vec<_> = origins.map(|class| launch.classify_class(&class)).collect();
        self.own_places = launch.list_places(&self.code, &origins);
        self.code.set_class_origins(&origins);
    }

    /// What counts as the program's own code, for people, sorted: `shop.jar!BOOT-INF/classes`, `com.acme.*`.
    #[must_use]
    pub fn own_code(&self) -> &BTreeSet<String> {
        &self.own_places
    }
}

/// How the program was started.
#[derive(Default, Debug)]
struct ProgramLaunch<'p> {
    /// The part of the command in front of the arguments: a jar, a main class, or a module and its main class.
    program: &'p str,
    /// The package below which classes are the program's own. `None`: the main class is a launcher's, or unknown.
    own_package: Option<&'p str>,
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
const LAUNCHERS: [&str; 20] = [
    "com.intellij.rt.",
    "com.sun.tools.javac.launcher.",
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
        let program = command.strip_suffix(" *").unwrap_or(command);
        let main_class = match meta("main.class") {
            // Logs without the key: the command names the class.
            "" => program.rsplit('/').next().unwrap_or_default(),
            named => named,
        };
        let is_launcher = LAUNCHERS
            .iter()
            .any(|prefix| main_class.starts_with(prefix));
        let is_jar = main_class.ends_with(".jar");
        let own_package = (!is_launcher && !is_jar).then(|| project_package(main_class));
        ProgramLaunch {
            program,
            own_package: own_package.flatten(),
            main_location: match is_launcher {
                true => None,
                false => code.class_location(main_class),
            },
            is_merged: meta("main.jar") == "merged",
            working_directory: meta("directory"),
            app,
            has_no_locations: code.has_no_locations(),
        }
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
        if class.is_boot || self.has_no_locations && is_jdk_name(class.name) {
            return CodeOrigin::Jdk;
        }
        if let Some(module) = class.location.and_then(|at| at.strip_prefix("jrt:/")) {
            return self.classify_module(module, class.name);
        }
        if is_generated_proxy(class.name) {
            return CodeOrigin::Library;
        }
        let is_own = match class.location {
            None => self.has_no_locations || self.is_below_own_package(class.name),
            Some(location) => {
                self.is_own_location(location)
                    || !is_launcher(class.name) && self.is_own_archive(location, class.name)
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
        let locations: HashSet<Option<&str>> = own.map(|(class, _)| class.location).collect();
        let places = locations.into_iter();
        places
            .map(|location| self.describe_place(location))
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
                true => !self.is_merged,
                false => self.is_built_here(location),
            }
    }

    /// The archive of `java -jar`, unless a launcher of another project is its main class.
    fn is_started_archive(&self, location: &str) -> bool {
        let path = location.strip_prefix("file:");
        let is_started = path
            .is_some_and(|path| self.program.ends_with(".jar") && is_same_file(path, self.program));
        is_started && self.own_package.is_some()
    }

    /// An archive that a build of the project made: no library that the build copied.
    fn is_built_here(&self, location: &str) -> bool {
        let path = location.strip_prefix("file:").unwrap_or(location);
        let below = path.strip_prefix(self.working_directory);
        let is_below = !self.working_directory.is_empty() && self.working_directory != "/";
        below.filter(|_| is_below).is_some_and(|path| {
            let is_built = path.contains("/target/") || path.contains("/build/");
            is_built && !path.contains("/lib/") && !path.contains("/dependency/")
        })
    }

    fn is_below_own_package(&self, class: &str) -> bool {
        self.own_package.is_some_and(|own| {
            let rest = class.strip_prefix(own);
            rest.is_some_and(|rest| rest.starts_with('.'))
        })
    }

    /// The place of own code from a location, as a person knows it. If only its package makes it own code, the package.
    fn describe_place(&self, location: Option<&str>) -> String {
        let by_package = self.own_package.map(|package| format!("{package}.*"));
        match (location, by_package) {
            (None, by_package) => by_package.unwrap_or_default(),
            (Some(location), Some(package)) if !self.is_own_place(location) => package,
            (Some(location), _) => short_location(location, self.working_directory),
        }
    }

    /// Whether a location alone makes code the program's own.
    fn is_own_place(&self, location: &str) -> bool {
        self.is_own_location(location)
            || Some(location) == self.main_location
            || self.is_started_archive(location)
            || self.is_built_here(location)
    }
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

/// Whether frameworks generated the class as a proxy of another one: it has the package of the program, but no source.
fn is_generated_proxy(class: &str) -> bool {
    const MARKS: [&str; 6] = [
        "$$SpringCGLIB$$",
        "$$EnhancerBySpringCGLIB$$",
        "$$FastClassBySpringCGLIB$$",
        "$HibernateProxy$",
        "$Proxy$_$$_WeldClientProxy",
        "_ClientProxy",
    ];
    MARKS.iter().any(|mark| class.contains(mark))
}

fn is_launcher(class: &str) -> bool {
    LAUNCHERS.iter().any(|prefix| class.starts_with(prefix))
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
