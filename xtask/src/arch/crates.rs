//! What a crate must never depend on, directly or through others. Cargo.toml says what it does depend on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::Outcome;

/// A crate, and what must not be below it.
struct DependencyRule {
    of: &'static str,
    never: Forbidden,
    reason: &'static str,
}

const AGENT: &str = "lucce-agent";
/// The agent's sources with the feature `lab`.
const LAB_AGENT: &str = "lucce-lab-agent";

enum Forbidden {
    These(&'static [&'static str]),
    AnyOfTheWorkspace,
}

const RULES: [DependencyRule; 12] = [
    DependencyRule {
        of: "lucce-bytecode",
        never: Forbidden::AnyOfTheWorkspace,
        reason: "it turns class bytes into class bytes and knows no JVM",
    },
    DependencyRule {
        of: "lucce-callgraph",
        never: Forbidden::AnyOfTheWorkspace,
        reason: "encoding and decoding need neither files nor a JVM",
    },
    DependencyRule {
        of: "lucce-encodings",
        never: Forbidden::These(&["lucce-tracelog", "lucce-recording", "lucce-jvmti"]),
        reason: "the papers' encodings need neither files nor a JVM",
    },
    DependencyRule {
        of: "lucce-kcontexts",
        never: Forbidden::These(&["lucce-tracelog", "lucce-recording", "lucce-jvmti"]),
        reason: "k-calling contexts are computed from calls alone",
    },
    DependencyRule {
        of: "lucce-filter",
        never: Forbidden::AnyOfTheWorkspace,
        reason: "agent and command read the same filters",
    },
    DependencyRule {
        of: "lucce-options",
        never: Forbidden::These(&[
            "lucce-agent",
            "lucce-bytecode",
            "lucce-callgraph",
            "lucce-decoder",
            "lucce-instrument",
            "lucce-tracelog",
        ]),
        reason: "agent, commands and readers of logs parse the same options",
    },
    DependencyRule {
        of: "lucce-contentid",
        never: Forbidden::AnyOfTheWorkspace,
        reason: "agent and readers compute the same ids",
    },
    DependencyRule {
        of: "lucce-export",
        never: Forbidden::AnyOfTheWorkspace,
        reason: "exporters know the model of a run only",
    },
    DependencyRule {
        of: "lucce-control",
        never: Forbidden::AnyOfTheWorkspace,
        reason: "it carries requests and answers as text",
    },
    DependencyRule {
        of: "lucce-cli",
        never: Forbidden::These(&[
            "lucce-agent",
            "lucce-bytecode",
            "lucce-instrument",
            "lucce-jvmti",
        ]),
        reason: "logs are read without a JVM",
    },
    DependencyRule {
        of: "lucce-decoder",
        never: Forbidden::These(&[
            "lucce-control",
            "lucce-ship",
            "lucce-bench",
            "lucce-kcontexts",
            "lucce-recording",
        ]),
        reason: "it turns logs into profiles; connections, measurements and the lab are others' work",
    },
    DependencyRule {
        of: "lucce-agent",
        never: Forbidden::These(&[
            "lucce-decoder",
            "lucce-cli",
            "lucce-page",
            "lucce-export",
            "lucce-bench",
            "lucce-kcontexts",
            "lucce-replay",
        ]),
        reason: "it runs inside of users' JVMs and writes only",
    },
];

/// For each crate of the workspace those that it depends on; tests may use more.
type CrateDependencies = BTreeMap<String, BTreeSet<String>>;

/// # Errors
/// Names every dependency that must not be, and every rule about a crate that is gone.
pub fn check() -> Outcome {
    let dependencies = dependencies(&super::metadata()?);
    let mut wrong: Vec<String> = RULES
        .iter()
        .flat_map(|rule| broken(rule, &dependencies))
        .collect();
    if dependencies.get(AGENT) != dependencies.get(LAB_AGENT) {
        wrong.push(format!(
            "{AGENT} and {LAB_AGENT} have the same sources, and different dependencies in Cargo.toml"
        ));
    }
    if !wrong.is_empty() {
        return Err(format!(
            "against the architecture:\n  {}",
            wrong.join("\n  ")
        ));
    }
    println!(
        "architecture: {} crates, {} rules about what is never below one of them",
        dependencies.len(),
        RULES.len()
    );
    Ok(())
}

fn broken(rule: &DependencyRule, dependencies: &CrateDependencies) -> Vec<String> {
    if !dependencies.contains_key(rule.of) {
        return vec![format!("a rule is about {}, which is gone", rule.of)];
    }
    let below = below(rule.of, dependencies);
    let is_wrong = |name: &&str| match rule.never {
        Forbidden::AnyOfTheWorkspace => true,
        Forbidden::These(names) => names.contains(name),
    };
    let wrong = below.into_iter().filter(is_wrong);
    wrong
        .map(|name| format!("{} → {name}: {}", rule.of, rule.reason))
        .collect()
}

/// What a crate depends on, directly or through others.
fn below<'d>(name: &str, dependencies: &'d CrateDependencies) -> BTreeSet<&'d str> {
    let mut found = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        for dependency in dependencies.get(next).into_iter().flatten() {
            if found.insert(dependency.as_str()) {
                open.push(dependency);
            }
        }
    }
    found
}

fn dependencies(packages: &[Value]) -> CrateDependencies {
    let names: BTreeSet<&str> = packages
        .iter()
        .map(|package| text(&package["name"]))
        .collect();
    let of = |package: &Value| {
        let all = package["dependencies"].as_array().into_iter().flatten();
        let own = all
            .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
            .map(|dependency| text(&dependency["name"]))
            .filter(|name| names.contains(name));
        (
            text(&package["name"]).to_owned(),
            own.map(str::to_owned).collect(),
        )
    };
    packages.iter().map(of).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod crates_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dependencies_through_others_break_rules() {
        let package = |name: &str, on: &[(&str, Option<&str>)]| {
            let on: Vec<Value> = on
                .iter()
                .map(|(name, kind)| json!({"name": name, "kind": kind}))
                .collect();
            json!({"name": name, "dependencies": on})
        };
        let dependencies = dependencies(&[
            package("top", &[("middle", None), ("serde", None)]),
            package(
                "middle",
                &[("bottom", Some("build")), ("tool", Some("dev"))],
            ),
            package("bottom", &[]),
            package("tool", &[]),
        ]);
        let rule = |of, never| DependencyRule {
            of,
            never,
            reason: "so it is",
        };
        let these = |names| Forbidden::These(names);
        let said = broken(&rule("top", these(&["bottom", "tool"])), &dependencies);
        assert_eq!(said, ["top → bottom: so it is"]);
        let said = broken(&rule("top", Forbidden::AnyOfTheWorkspace), &dependencies);
        assert_eq!(said.len(), 2);
        assert!(broken(&rule("bottom", Forbidden::AnyOfTheWorkspace), &dependencies).is_empty());
        let gone = broken(&rule("gone", Forbidden::AnyOfTheWorkspace), &dependencies);
        assert_eq!(gone, ["a rule is about gone, which is gone"]);
    }
}
