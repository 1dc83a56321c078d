//! Java agents (`-javaagent`) that applications run beside: real ones from Maven, and an empty one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::jdk::Jdk;
use crate::{paths, tools};

pub struct JavaAgent {
    pub name: &'static str,
    kind: Origin,
}

enum Origin {
    /// A class of the harness, with these lines of a manifest.
    Own(&'static str, &'static str),
    /// A jar beside the harness, and what the agent is told.
    Jar(&'static str, &'static str),
}

pub const JAVA_AGENTS: [JavaAgent; 5] = [
    agent("empty", Origin::Own("Empty", "")),
    // It puts advice into methods of classes, loaded ones as well.
    agent(
        "byte-buddy",
        Origin::Own(
            "Advising",
            "Can-Retransform-Classes: true\nCan-Redefine-Classes: true\n",
        ),
    ),
    agent(
        "jacoco",
        Origin::Jar("org.jacoco.agent-runtime", "destfile=jacoco.exec"),
    ),
    agent("mockito", Origin::Jar("mockito-core", "")),
    agent("opentelemetry", Origin::Jar("opentelemetry-javaagent", "")),
];

const fn agent(name: &'static str, kind: Origin) -> JavaAgent {
    JavaAgent { name, kind }
}

impl JavaAgent {
    /// What the JVM is told. `folder`: where jars may be made; `jdk`: one with the tools for that.
    ///
    /// # Errors
    /// The agent's jar cannot be made, or is not there: the Java side has not been built.
    pub fn flags(&self, folder: &Path, jdk: &Jdk) -> Result<Vec<String>, String> {
        let harness = paths::root().join("java-harness/agents/target");
        let (jar, told) = match self.kind {
            Origin::Own(class, lines) => (self.made(folder, (class, lines), &harness, jdk)?, ""),
            Origin::Jar(name, told) => (harness.join(format!("lib/{name}.jar")), told),
        };
        if !jar.exists() {
            return Err(format!("{} is missing: cargo xtask build", jar.display()));
        }
        let mut flags = vec![format!("-javaagent:{}={told}", jar.display())];
        // Nothing is to be sent anywhere.
        for kind in ["traces", "metrics", "logs"] {
            flags.push(format!("-Dotel.{kind}.exporter=none"));
        }
        Ok(flags)
    }

    /// A jar with nothing but a manifest.
    fn made(
        &self,
        folder: &Path,
        (class, lines): (&str, &str),
        harness: &Path,
        jdk: &Jdk,
    ) -> Result<PathBuf, String> {
        let jar = folder.join(format!("{}.jar", self.name));
        let manifest = folder.join(format!("{}.manifest", self.name));
        let harness = harness.display();
        let text = format!(
            "Premain-Class: io.lucce.agents.{class}\n{lines}Class-Path: file:{harness}/agents.jar\n  file:{harness}/lib/byte-buddy.jar\n"
        );
        fs::write(&manifest, text).map_err(|e| format!("{}: {e}", manifest.display()))?;
        let mut tool = jdk.light_tool("jar");
        tools::run(tool.arg("cfm").arg(&jar).arg(&manifest))?;
        Ok(jar)
    }
}
