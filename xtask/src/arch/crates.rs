//! What a crate must never depend on, directly or through others. Cargo.toml says what it does depend on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::Outcome;

/// A crate, and what must not be below it.
struct Rule {
    of: &'static str,
    never: Never,
    reason: &'static str,
}

enum Never {
    These(&'static [&'static str]),
    AnyOfTheWorkspace,
}

const RULES: [Rule; 8] = [
    Rule {
        of: "lucce-bytecode",
        never: Never::AnyOfTheWorkspace,
        reason: "it turns class bytes into class bytes and knows no JVM",
    },
    Rule {
        of: "lucce-callgraph",
        never: Never::AnyOfTheWorkspace,
        reason: "encoding and decoding need neither files nor a JVM",
    },
    Rule {
        of: "lucce-filter",
        never: Never::AnyOfTheWorkspace,
        reason: "agent and command read the same filters",
    },
    Rule {
        of: "lucce-contentid",
        never: Never::AnyOfTheWorkspace,
        reason: "agent and readers compute the same ids",
    },
    Rule {
        of: "lucce-formats",
        never: Never::AnyOfTheWorkspace,
        reason: "exporters know the model of a run only",
    },
    Rule {
        of: "lucce-control",
        never: Never::AnyOfTheWorkspace,
        reason: "it carries requests and answers as text",
    },
    Rule {
        of: "lucce-decoder",
        never: Never::These(&["lucce-agent", "lucce-bytecode", "lucce-hooks", "lucce-vm"]),
        reason: "logs are read without a JVM",
    },
    Rule {
        of: "lucce-agent",
        never: Never::These(&[
            "lucce-decoder",
            "lucce-formats",
            "lucce-bench",
            "lucce-kcontexts",
            "lucce-replay",
        ]),
        reason: "it runs inside of users' JVMs and writes only",
    },
];

/// For each crate of the workspace those that it depends on; tests may use more.
type Dependencies = BTreeMap<String, BTreeSet<String>>;

/// # Errors
/// Names every dependency that must not be, and every rule about a crate that is gone.
pub fn check() -> Outcome {
    let dependencies = dependencies(&super::metadata()?);
    let wrong: Vec<String> = RULES
        .iter()
        .flat_map(|rule| broken(rule, &dependencies))
        .collect();
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

fn broken(rule: &Rule, dependencies: &Dependencies) -> Vec<String> {
    if !dependencies.contains_key(rule.of) {
        return vec![format!("a rule is about {}, which is gone", rule.of)];
    }
    let below = below(rule.of, dependencies);
    let is_wrong = |name: &&str| match rule.never {
        Never::AnyOfTheWorkspace => true,
        Never::These(names) => names.contains(name),
    };
    let wrong = below.into_iter().filter(is_wrong);
    wrong
        .map(|name| format!("{} → {name}: {}", rule.of, rule.reason))
        .collect()
}

/// What a crate depends on, directly or through others.
fn below<'d>(name: &str, dependencies: &'d Dependencies) -> BTreeSet<&'d str> {
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

fn dependencies(packages: &[Value]) -> Dependencies {
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
        let rule = |of, never| Rule {
            of,
            never,
            reason: "so it is",
        };
        let these = |names| Never::These(names);
        let said = broken(&rule("top", these(&["bottom", "tool"])), &dependencies);
        assert_eq!(said, ["top → bottom: so it is"]);
        let said = broken(&rule("top", Never::AnyOfTheWorkspace), &dependencies);
        assert_eq!(said.len(), 2);
        assert!(broken(&rule("bottom", Never::AnyOfTheWorkspace), &dependencies).is_empty());
        let gone = broken(&rule("gone", Never::AnyOfTheWorkspace), &dependencies);
        assert_eq!(gone, ["a rule is about gone, which is gone"]);
    }
}
