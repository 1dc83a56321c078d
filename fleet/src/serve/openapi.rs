//! What is served, as OpenAPI 3.1 describes it: made of the same list of routes, and of the questions' own parameters.

use serde_json::{Map, Value, json};

use super::numbers::MAX_NUMBERS;
use super::routes::{ApiRoute, FORMAT};
use crate::questions::{ALL, Question};

/// All questions: `[{"name": …, "about": …, "parameters": [{"name": …, "default": …, "meaning": …}]}]`.
pub fn questions_json() -> Value {
    let all = ALL.iter().map(|question| {
        let parameters = question.parameter_specs().map(
            |slot| json!({ "name": slot.name, "default": slot.default, "meaning": slot.meaning }),
        );
        json!({
            "name": question.name,
            "about": question.description(),
            "parameters": parameters.collect::<Vec<_>>(),
        })
    });
    all.collect()
}

/// The document.
pub fn openapi_document() -> Value {
    let mut paths = Map::new();
    for route in ApiRoute::ALL {
        match route {
            ApiRoute::Ask | ApiRoute::View => {
                for question in ALL {
                    let path = route.path_template().replace("{question}", question.name);
                    paths.insert(path, describe_question(route, question));
                }
            }
            other => {
                let method = other.method().to_ascii_lowercase();
                paths.insert(
                    other.path_template().into(),
                    json!({ method: describe_operation(other) }),
                );
            }
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "lucce fleet serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Traces of numbers of any run of a dataset, and answers to questions about it.",
        },
        "security": [{}, { "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": component_schemas(),
        },
    })
}

fn component_schemas() -> Value {
    let trace = json!({
        "type": "object",
        "required": ["number", "stack", "allocated", "frames"],
        "properties": {
            "number": { "type": "string" },
            "stack": { "type": "string", "description": "The content id of the trace, 32 hexadecimal digits: equal in every run." },
            "allocated": { "type": ["string", "null"], "description": "The type that the context allocates, if it does." },
            "frames": {
                "type": "array",
                "description": "The innermost first.",
                "items": {
                    "type": "object",
                    "required": ["class", "method", "file", "line"],
                    "properties": {
                        "class": { "type": "string" },
                        "method": { "type": "string" },
                        "file": { "type": ["string", "null"] },
                        "line": { "type": "integer", "description": "-1: not known; -2: native." },
                    },
                },
            },
        },
    });
    json!({
        "Trace": trace,
        "Unknown": {
            "type": "object",
            "required": ["number", "what", "error"],
            "properties": {
                "number": { "type": "string" },
                "what": { "enum": ["run", "number", "symbols"], "description": "What is not known, or cannot be read." },
                "error": { "type": "string" },
            },
        },
        "Question": {
            "type": "object",
            "required": ["name", "about", "parameters"],
            "additionalProperties": false,
            "properties": {
                "name": { "type": "string" },
                "about": { "type": "string", "description": "What is asked." },
                "parameters": { "type": "array", "items": {
                    "type": "object",
                    "required": ["name", "default", "meaning"],
                    "additionalProperties": false,
                    "properties": {
                        "name": { "type": "string" },
                        "default": { "type": ["string", "null"], "description": "null: it must be given." },
                        "meaning": { "type": "string" },
                    },
                } },
            },
        },
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": { "error": { "type": "string", "description": "A sentence." } },
        },
    })
}

fn describe_operation(route: ApiRoute) -> Value {
    let text = json!({ "text/plain": { "schema": { "type": "string" } } });
    let trace = json!({
        "text/plain": { "schema": { "type": "string" } },
        "application/json": { "schema": { "$ref": "#/components/schemas/Trace" } },
    });
    let any = |schema: Value| json!({ "application/json": { "schema": schema } });
    let number = json!({
        "name": "number", "in": "path", "required": true,
        "description": "0xNUMBER, or lucce:RUN:0xNUMBER; with .json or .txt behind it, the answer has that form.",
        "schema": { "type": "string", "minLength": 1 },
    });
    match route {
        ApiRoute::Health => json!({
            "summary": "Whether the server is there; needs no token.",
            "security": [{}],
            "responses": describe_responses("It is.", text, &[]),
        }),
        ApiRoute::Context => json!({
            "summary": "The trace of a number of a run.",
            "parameters": [{
                "name": "run", "in": "path", "required": true,
                "description": "The run's id: 16 hexadecimal digits.",
                "schema": { "type": "string", "minLength": 1 },
            }, number],
            "responses": describe_responses("The trace.", trace, &[400, 404]),
        }),
        ApiRoute::Number => json!({
            "summary": "The trace of a number as programs print it: lucce:RUN:0xNUMBER.",
            "parameters": [number],
            "responses": describe_responses("The trace.", trace, &[400, 404]),
        }),
        ApiRoute::Decode => json!({
            "summary": "The traces of many numbers.",
            "requestBody": {
                "required": true,
                "content": any(json!({
                    "type": "object",
                    "required": ["numbers"],
                    "additionalProperties": false,
                    "properties": { "numbers": {
                        "type": "array",
                        "maxItems": MAX_NUMBERS,
                        "items": { "type": "string", "description": "lucce:RUN:0xNUMBER" },
                    } },
                })),
            },
            "responses": describe_responses("In the order of the numbers.", any(json!({
                "type": "object",
                "required": ["traces"],
                "properties": { "traces": { "type": "array", "items": { "anyOf": [
                    { "$ref": "#/components/schemas/Trace" },
                    { "$ref": "#/components/schemas/Unknown" },
                ] } } },
            })), &[400, 408, 413]),
        }),
        ApiRoute::Metrics => json!({
            "summary": "What the server counts of itself, as Prometheus reads it.",
            "responses": describe_responses("Metrics.", text, &[]),
        }),
        // Ask and View are described for each question.
        ApiRoute::Questions => json!({
            "summary": "The questions and their parameters.",
            "responses": describe_responses("All of them.", any(json!({
                "type": "array",
                "items": { "$ref": "#/components/schemas/Question" },
            })), &[]),
        }),
        ApiRoute::OpenApi | ApiRoute::Ask | ApiRoute::View => json!({
            "summary": "This document.",
            "responses": describe_responses("It.", any(json!({ "type": "object", "required": ["openapi", "paths"] })), &[]),
        }),
    }
}

fn describe_question(route: ApiRoute, question: &Question) -> Value {
    let slots = question.parameter_specs().map(|slot| {
        let mut schema = json!({ "type": "string" });
        if let (Some(default), Some(schema)) = (slot.default, schema.as_object_mut()) {
            schema.insert("default".into(), default.into());
        }
        json!({
            "name": slot.name, "in": "query", "required": slot.default.is_none(),
            "description": slot.meaning, "schema": schema,
        })
    });
    let mut parameters: Vec<Value> = slots.collect();
    let content = match route {
        ApiRoute::View => json!({ "text/html": { "schema": { "type": "string" } } }),
        _ => {
            parameters.push(json!({
                "name": FORMAT, "in": "query", "required": false,
                "description": "Else the header Accept says it.",
                "schema": { "enum": ["json", "csv", "table"] },
            }));
            json!({
                "application/json": { "schema": { "type": "array", "items": { "type": "object" } } },
                "text/csv": { "schema": { "type": "string" } },
                "text/plain": { "schema": { "type": "string" } },
            })
        }
    };
    let also: &[u16] = match route {
        ApiRoute::View => &[400, 404, 504, 507],
        _ => &[400, 504, 507],
    };
    let summary = match route {
        ApiRoute::View => format!("As the page of lucce view: {}", question.description()),
        _ => question.description().to_owned(),
    };
    json!({ "get": {
        "summary": summary,
        "parameters": parameters,
        "responses": describe_responses("The answer.", content, also),
    } })
}

/// With those that every route may have.
fn describe_responses(description: &str, content: Value, also: &[u16]) -> Value {
    let mut all = Map::new();
    all.insert(
        "200".into(),
        json!({ "description": description, "content": content }),
    );
    for status in [401, 403, 500, 503].iter().chain(also) {
        let why = match status {
            400 => "It cannot be asked so.",
            401 => "The token is missing or wrong.",
            403 => "Not by this name of the server, or not from this page.",
            404 => "It is not known.",
            408 => "The body did not come in time.",
            413 => "The body is too large.",
            503 => "Too many requests are being answered.",
            504 => "No answer in time.",
            507 => "The answer is too large, or has no room in memory.",
            _ => "The dataset cannot be read.",
        };
        let schema = json!({ "$ref": "#/components/schemas/Error" });
        let content = json!({ "application/json": { "schema": schema } });
        all.insert(
            status.to_string(),
            json!({ "description": why, "content": content }),
        );
    }
    all.into()
}
