//! Every operation of the OpenAPI description, driven by generated requests: status, kind and shape of each answer are as described.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::add;
use crate::common::client::{Answer, Served, quoted};
use lucce_fleet::questions::ALL;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::{Map, Value, json};

const RUN: &str = "0123456789abcdef";
/// Requests for each operation.
const CASES: u32 = 10;

/// A dataset of one run; the number of its context A.
fn dataset(dir: &Path) -> String {
    let log = dir.join("kinds.log");
    let ids = lucce_testkit::kinds(&log);
    add(&dir.join("data"), &[log]);
    ids[&'A'].to_string()
}

/// What a client may write into any place: numbers, almost numbers, names that are there, any characters.
fn text(number: &str) -> impl Strategy<Value = String> + use<> {
    let known = [
        "alloc",
        "-1",
        "0",
        "1",
        "20",
        "99999999999999999999",
        "1e9",
        "",
        "x",
        "app.Main",
        "work",
        "shop",
        "1.0",
        "17",
        "json",
        "..",
        "../..",
        "'; DROP TABLE runs --",
        "%",
        RUN,
    ];
    let mut known: Vec<String> = known.map(str::to_owned).into();
    known.extend([
        number.to_owned(),
        format!("{number}.json"),
        format!("lucce:{RUN}:{number}"),
        format!("lucce:{RUN}:{number}.txt"),
    ]);
    prop_oneof![
        4 => proptest::sample::select(known),
        2 => "0x[0-9a-fA-F]{0,18}",
        2 => "lucce:[0-9a-f]{14,18}:0x[0-9a-f]{0,17}(\\.json|\\.txt)?",
        1 => "[0-9]{0,21}",
        2 => any::<String>(),
    ]
}

/// A request apart from the operation.
#[derive(Clone, Debug)]
struct Asked {
    /// For parameters, one after the other.
    texts: Vec<String>,
    /// Whether parameters are given that need not be.
    given: Vec<bool>,
    accept: Option<&'static str>,
    body: Vec<u8>,
}

fn asked(number: &str) -> impl Strategy<Value = Asked> + use<> {
    let accepted = [
        None,
        Some("application/json"),
        Some("text/csv"),
        Some("text/plain, */*"),
        Some("text/html;q=1"),
        Some(",;,"),
    ];
    let numbers = proptest::collection::vec(text(number), 0..4);
    let list = numbers.prop_map(|numbers| json!({ "numbers": numbers }).to_string().into_bytes());
    let own = number.to_owned();
    let known = proptest::collection::vec(0..3, 0..4).prop_map(move |which| {
        let numbers = which.into_iter().map(|which| match which {
            0 => format!("lucce:{RUN}:{own}"),
            1 => format!("lucce:{RUN}:0xfffffff"),
            _ => "lucce:00000000000000aa:0x1".to_owned(),
        });
        json!({ "numbers": numbers.collect::<Vec<_>>() })
            .to_string()
            .into_bytes()
    });
    let body = prop_oneof![
        3 => known,
        2 => list,
        1 => proptest::collection::vec(any::<u8>(), 0..40),
    ];
    (
        proptest::collection::vec(text(number), 8),
        proptest::collection::vec(any::<bool>(), 8),
        proptest::sample::select(accepted.to_vec()),
        body,
    )
        .prop_map(|(texts, given, accept, body)| Asked {
            texts,
            given,
            accept,
            body,
        })
}

/// What must be answered with 200.
fn right(operation: &Value, number: &str) -> Asked {
    let parameters = list(&operation["parameters"]).iter();
    let texts = parameters.map(|parameter| match parameter["name"].as_str().unwrap() {
        "run" => RUN.to_owned(),
        "number" => format!("lucce:{RUN}:{number}"),
        "class" => "app.Main".to_owned(),
        "method" => "work".to_owned(),
        "service" => "shop".to_owned(),
        "from" | "to" => "17".to_owned(),
        _ => "1".to_owned(),
    });
    let texts: Vec<_> = texts.collect();
    Asked {
        given: vec![false; texts.len()],
        texts,
        accept: None,
        body: json!({ "numbers": [format!("lucce:{RUN}:{number}")] })
            .to_string()
            .into_bytes(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// One operation of the description.
struct Operation<'d> {
    path: &'d str,
    method: String,
    says: &'d Value,
}

impl Operation<'_> {
    fn target(&self, asked: &Asked) -> String {
        let mut target = self.path.to_owned();
        let mut query = Vec::new();
        let parameters = list(&self.says["parameters"]).iter();
        for (at, parameter) in parameters.enumerate() {
            let name = parameter["name"].as_str().unwrap();
            let mut value = asked.texts.get(at).cloned().unwrap_or_default();
            if let Some(all) = parameter["schema"]["enum"].as_array() {
                value = all[value.len() % all.len()].as_str().unwrap().to_owned();
            }
            match parameter["in"].as_str().unwrap() {
                "path" => {
                    // No text at all would be another path.
                    let value = if value.is_empty() {
                        "x".to_owned()
                    } else {
                        value
                    };
                    target = target.replace(&format!("{{{name}}}"), &quoted(&value));
                }
                _ if parameter["required"] == true || asked.given.get(at) == Some(&true) => {
                    query.push(format!("{name}={}", quoted(&value)));
                }
                _ => {}
            }
        }
        match query.is_empty() {
            true => target,
            false => format!("{target}?{}", query.join("&")),
        }
    }

    fn send(&self, served: &Served, asked: &Asked) -> (String, Answer) {
        let target = self.target(asked);
        let accept = asked
            .accept
            .map_or_else(String::new, |kind| format!("Accept: {kind}\r\n"));
        let body = match self.says["requestBody"].is_object() {
            true => asked.body.as_slice(),
            false => b"",
        };
        let told = served.send(&self.method, &target, &accept, body);
        (target, told)
    }

    /// The status, kind and shape.
    fn check(&self, told: &Answer, document: &Value) -> Result<(), String> {
        let described = &self.says["responses"][told.status.to_string()];
        let kinds = described["content"]
            .as_object()
            .ok_or("the status is not described")?;
        let (kind, content) = kinds
            .iter()
            .find(|(kind, _)| told.is_kind(kind))
            .ok_or_else(|| format!("the kind is not described: {}", told.head))?;
        if kind != "application/json" {
            return Ok(());
        }
        let json = serde_json::from_str(&told.body).map_err(|e| e.to_string())?;
        fits(&json, &content["schema"], document)
    }
}

/// Whether a value is as a schema says; of JSON Schema what the description uses.
fn fits(value: &Value, schema: &Value, document: &Value) -> Result<(), String> {
    for (keyword, says) in schema.as_object().ok_or("no schema")? {
        let fits = match keyword.as_str() {
            "$ref" => {
                let path = says.as_str().and_then(|path| path.strip_prefix('#'));
                let schema = path.and_then(|path| document.pointer(path));
                fits(value, schema.ok_or("a $ref that leads nowhere")?, document)?;
                true
            }
            "anyOf" => list(says)
                .iter()
                .any(|schema| fits(value, schema, document).is_ok()),
            "enum" => list(says).contains(value),
            "type" => match says.as_str() {
                Some(kind) => is_a(value, kind),
                None => list(says)
                    .iter()
                    .any(|kind| is_a(value, kind.as_str().unwrap_or_default())),
            },
            "required" => {
                let names = list(says).iter().filter_map(Value::as_str);
                let mut missing = names.filter(|name| value.get(name).is_none());
                missing.next().is_none()
            }
            "properties" => {
                for (name, schema) in says.as_object().unwrap_or(&Map::new()) {
                    if let Some(own) = value.get(name) {
                        fits(own, schema, document)?;
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(says, false);
                let known = schema["properties"].as_object().ok_or("no properties")?;
                let mut names = value.as_object().into_iter().flatten();
                names.all(|(name, _)| known.contains_key(name))
            }
            "items" => {
                for item in list(value) {
                    fits(item, says, document)?;
                }
                true
            }
            "maxItems" => list(value).len() as u64 <= says.as_u64().unwrap_or(0),
            "minLength" => value
                .as_str()
                .is_some_and(|text| text.len() as u64 >= says.as_u64().unwrap_or(0)),
            "description" | "default" => true,
            other => panic!("{other}: a keyword that this test does not know"),
        };
        if !fits {
            return Err(format!("{value} is not as {keyword} says: {says}"));
        }
    }
    Ok(())
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other}: a type that this test does not know"),
    }
}

#[test]
fn every_answer_is_as_described() {
    let dir = tempfile::tempdir().unwrap();
    let number = dataset(dir.path());
    let served = Served::start(dir.path(), "data", &[]);
    let document = served.get("/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let operations: Vec<_> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, says)| Operation {
                path,
                method: method.to_ascii_uppercase(),
                says,
            })
        })
        .collect();
    // Two of each question, and what else there is.
    assert_eq!(operations.len(), 2 * ALL.len() + 7);
    let config = Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    };
    // The requests are those of every other run of the test.
    let chance = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, chance);
    for operation in &operations {
        let name = format!("{} {}", operation.method, operation.path);
        let (target, told) = operation.send(&served, &right(operation.says, &number));
        // Rows without frames have no page.
        let has_page = !["coverage", "per-request", "requests", "through"]
            .map(|name| format!("/view/{name}"))
            .contains(&operation.path.to_owned());
        let expected = if has_page { 200 } else { 404 };
        assert_eq!(told.status, expected, "{target}: {}", told.body);
        operation
            .check(&told, &document)
            .unwrap_or_else(|why| panic!("{name}: {why}"));
        let mut statuses = BTreeSet::new();
        let checked = runner.run(&asked(&number), |asked| {
            let (target, told) = operation.send(&served, &asked);
            let said = |why: String| {
                TestCaseError::fail(format!("{target}: {why}: {} {}", told.status, told.body))
            };
            if told.status >= 500 {
                return Err(said("an error of the server's".into()));
            }
            operation.check(&told, &document).map_err(said)
        });
        if let Err(why) = checked {
            panic!("{name}: {why}");
        }
        // Other methods than those that are described change nothing, and say which there are.
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            if method == operation.method {
                continue;
            }
            let told = served.send(method, &target, "", b"");
            statuses.insert(told.status);
            assert!(
                told.head.contains("allow: "),
                "{method} {target}: {}",
                told.head
            );
            let error = &document["components"]["schemas"]["Error"];
            fits(&told.json(), error, &document).unwrap();
        }
        assert_eq!(statuses, BTreeSet::from([405]), "{name}");
    }
    assert_eq!(served.end(), Some(0));
}

#[test]
fn shapes_are_told_apart() {
    let document = json!({ "a": { "type": "string" } });
    let schema = json!({
        "type": "object", "required": ["x"], "additionalProperties": false,
        "properties": { "x": { "type": ["integer", "null"] }, "y": { "type": "array", "maxItems": 1, "items": { "$ref": "#/a" } } },
    });
    for right in [json!({ "x": 1 }), json!({ "x": null, "y": ["b"] })] {
        fits(&right, &schema, &document).unwrap();
    }
    for wrong in [
        json!([]),
        json!({}),
        json!({ "x": "1" }),
        json!({ "x": 1.5 }),
        json!({ "x": 1, "z": 1 }),
        json!({ "x": 1, "y": [1] }),
        json!({ "x": 1, "y": ["b", "c"] }),
    ] {
        assert!(fits(&wrong, &schema, &document).is_err(), "{wrong}");
    }
}
