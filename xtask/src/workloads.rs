//! The applications that are verified and measured: `java-harness/apps`.

use std::ffi::OsString;

use crate::jdk::{self, Jdk};
use crate::paths;

pub struct App {
    pub name: &'static str,
    /// Below `java-harness/apps/target`.
    operand: Option<&'static str>,
    /// The amount of work in a small run.
    pub small: f64,
    /// The amount of work in an iteration that is measured: a second or so.
    pub measured: f64,
    /// Needs modules that run-time images leave out: a compiler, the JDK's classes as files, CSS.
    pub wants_whole_jdk: bool,
    /// The oldest JDK that its libraries are compiled for.
    oldest_jdk: u32,
}

const fn app(name: &'static str, operand: Option<&'static str>, small: f64, measured: f64) -> App {
    App {
        name,
        operand,
        small,
        measured,
        wants_whole_jdk: false,
        oldest_jdk: jdk::OLDEST,
    }
}

const fn whole(app: App) -> App {
    App {
        wants_whole_jdk: true,
        ..app
    }
}

const fn newer(app: App) -> App {
    App {
        oldest_jdk: jdk::OLD,
        ..app
    }
}

const LANG: Option<&str> = Some("sources/commons-lang3");

pub const APPS: [App; 12] = [
    app("LuceneIndex", LANG, 0.2, 0.3),
    app("H2Mix", None, 0.1, 0.8),
    app("XalanTransform", None, 0.1, 0.3),
    app("JythonRun", None, 0.1, 0.5),
    whole(app("JavacCompile", LANG, 0.3, 1.0)),
    newer(whole(app("EclipseCompile", LANG, 0.3, 0.3))),
    app("KotlinCompile", None, 0.1, 0.2),
    whole(app("FopRender", None, 0.1, 0.3)),
    whole(app("BatikRender", None, 0.1, 0.5)),
    app("PmdCheck", LANG, 0.1, 0.2),
    app("TomcatServe", None, 0.1, 0.4),
    newer(app("SpringOrders", None, 0.1, 0.4)),
];

impl App {
    /// Whether the JDK has what it needs.
    pub fn runs_on(&self, jdk: &Jdk) -> bool {
        jdk.version >= self.oldest_jdk && (jdk.compiles() || !self.wants_whole_jdk)
    }

    pub fn class_path_and_main(&self) -> Vec<OsString> {
        let main = format!("io.lucce.apps.{}", self.name);
        vec!["-cp".into(), paths::apps().into(), main.into()]
    }

    pub fn operand(&self) -> Option<OsString> {
        let built = paths::harness().join("apps/target");
        self.operand.map(|path| built.join(path).into())
    }
}
