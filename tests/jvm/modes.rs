//! A program under several JVM flags and options of the agent, on each JDK.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use lucce_tests::{Checked, Java, Jdk, Setup};

use crate::{Test, test};

/// Name, the JVM's flags, options of the agent.
pub type Mode = (&'static str, &'static [&'static str], &'static str);

/// A mode on a JDK.
#[derive(Clone, Copy)]
pub struct Case {
    setup: &'static Setup,
    jdk: &'static Jdk,
    group: &'static str,
    pub name: &'static str,
    flags: &'static [&'static str],
    pub options: &'static str,
}

impl Case {
    /// A JVM with the mode's flags and the agent with these options, in the case's own folder.
    pub fn java(&self, options: &str) -> Java<'static> {
        let folder = format!("{}-{}-{}", self.group, self.jdk.version, self.name);
        let java = Java::new(self.setup, self.jdk, &folder);
        java.agent(options).flags(self.flags)
    }

    /// A JVM with the mode's flags and without the agent.
    pub fn plain_java(&self) -> Java<'static> {
        let folder = format!("{}-{}-{}-plain", self.group, self.jdk.version, self.name);
        Java::new(self.setup, self.jdk, &folder).flags(self.flags)
    }

    /// The folder of the Java programs.
    pub fn harness(&self) -> &Path {
        &self.setup.harness
    }

    pub fn jdk_version(&self) -> u32 {
        self.jdk.version
    }
}

/// `GROUP::VERSION::MODE` for each mode and JDK from 17 on; the mode called `default`, on one JDK, is a quick one.
pub fn each(
    setup: &'static Setup,
    group: &'static str,
    modes: &[Mode],
    check: fn(&Case) -> Checked,
) -> Vec<Test> {
    on(setup.jdks.iter(), setup, (group, modes), check)
}

/// As [`each`], on JDK 11, too: for programs that it runs.
pub fn each_from_11(
    setup: &'static Setup,
    group: &'static str,
    modes: &[Mode],
    check: fn(&Case) -> Checked,
) -> Vec<Test> {
    on(setup.jdks_from_11(), setup, (group, modes), check)
}

fn on(
    jdks: impl Iterator<Item = &'static Jdk>,
    setup: &'static Setup,
    (group, modes): (&'static str, &[Mode]),
    check: fn(&Case) -> Checked,
) -> Vec<Test> {
    let mut tests = Vec::new();
    for jdk in jdks {
        for &(name, flags, options) in modes {
            let quick = jdk == setup.jdk() && name == "default";
            let case = Case {
                setup,
                jdk,
                group,
                name,
                flags,
                options,
            };
            tests.push(test(
                format!("{group}::{}::{name}", jdk.version),
                quick,
                move || check(&case),
            ));
        }
    }
    tests
}

/// The keys whose sums differ, with both sums.
pub fn differences<V: PartialEq + Debug>(
    expected: &BTreeMap<String, V>,
    found: &BTreeMap<String, V>,
) -> String {
    let keys = expected.keys().chain(found.keys());
    let different = keys.filter(|key| expected.get(*key) != found.get(*key));
    let lines = different.map(|key| {
        let (expected, found) = (expected.get(key), found.get(key));
        format!("{key}: expected {expected:?}, reported {found:?}")
    });
    lines.take(40).collect::<Vec<_>>().join("\n")
}
