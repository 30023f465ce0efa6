//! The description of the interface, as OpenAPI 3.1.

use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::http::Response;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Value as JsonValue, json};

use super::answer::{JSON, content};
use crate::control::answers::{
    Checkpointed, Inputs, Nothing, Partitions, Paused, Refused, Reloaded, Stopped,
};
use crate::control::report::Report;

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

pub(super) async fn answer() -> Response<Body> {
    content(JSON, DOCUMENT.clone())
}

/// The document.
pub(super) fn document() -> JsonValue {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let schemas = &mut settings.into_generator();
    let refused = &schema::<Refused>(schemas);
    let partitions = schema::<Partitions>(schemas);
    let text = |what: &str| answered(what, "text/plain", json!({"type": "string"}));
    let ready =
        "The pipeline is being opened, replays, waits for its disk, or stops; the text says which.";
    let paths = json!({
        "/": {"get": open(json!({
            "summary": "The page for people",
            "responses": {"200": answered("The page.", "text/html", json!({"type": "string"}))},
        }))},
        "/healthz": {"get": open(json!({
            "summary": "Whether the process works",
            "responses": {"200": text("It works."), "503": text("It hangs.")},
        }))},
        "/readyz": {"get": open(json!({
            "summary": "Whether the pipeline reads",
            "responses": {"200": text("It reads."), "503": text(ready)},
        }))},
        "/metrics": {"get": {
            "summary": "The metrics, as Prometheus reads them",
            "responses": {"200": text("The metrics.")},
        }},
        "/api/v1/openapi.json": {"get": {
            "summary": "This document",
            "responses": {"200": answered("This document.", JSON, json!({"type": "object"}))},
        }},
        "/api/v1/status": {"get": {
            "summary": "The pipeline at this moment",
            "responses": {"200": answered("The pipeline.", JSON, schema::<Report>(schemas))},
        }},
        "/api/v1/partitions": {"get": {
            "summary": "Where inputs stand in their sources",
            "description": "At most 1,000 partitions of each input, those with the largest lag first.",
            "parameters": [parameter("input", "The name of an input; left out: all of them.", "string")],
            "responses": refusals(refused, &["400", "404", "503"], answered(
                "That of the input; without one, that of each input by its name.",
                JSON,
                json!({"anyOf": [
                    partitions,
                    {"type": "object", "additionalProperties": partitions},
                ]}),
            )),
        }},
        "/api/v1/tap": {"get": {
            "summary": "Records that pass by",
            "description": "One JSON object per line, as of `lockgate show --json`. Ends after n records, or with the \
                run. Nothing waits for whoever looks: those come that it is quick enough for.",
            "parameters": [
                parameter("input", "The input whose records to show.", "string"),
                parameter("output", "The output whose records to show, in place of an input.", "string"),
                parameter("n", "How many, at most 10,000; left out: 10.", "integer"),
            ],
            "responses": refusals(refused, &["400", "404", "503"], answered(
                "The records.", "application/x-ndjson", json!({"type": "string"}),
            )),
        }},
        "/api/v1/pause": {"post": steering::<Inputs, Paused>(
            schemas, refused, "Pause inputs until they are resumed, over restarts too", &["404", "503"],
        )},
        "/api/v1/resume": {"post": steering::<Inputs, Paused>(
            schemas, refused, "Let paused inputs read again", &["404", "503"],
        )},
        "/api/v1/checkpoint": {"post": steering::<Nothing, Checkpointed>(
            schemas, refused, "Take a checkpoint, and wait for it", &["409", "503"],
        )},
        "/api/v1/suspend": {"post": steering::<Nothing, Checkpointed>(
            schemas, refused,
            "Stop with a checkpoint, and wait for it; without one the pipeline keeps running",
            &["409", "503"],
        )},
        "/api/v1/stop": {"post": steering::<Nothing, Stopped>(
            schemas, refused, "Stop in order, and wait for it", &[],
        )},
        "/api/v1/reload": {"post": steering::<Nothing, Reloaded>(
            schemas, refused,
            "Read the pipeline file again and put it in force; a refused one changes nothing",
            &["409", "422", "503"],
        )},
    });
    let definitions = schemas.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "lockgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Looks at a running pipeline and steers it. Errors are JSON with the key `error`: a wrong \
                request has the status 400, a wrong or missing token 401, a foreign Host or Origin 403, another \
                process than the one meant 421.",
        },
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

/// Wants no token.
fn open(mut operation: JsonValue) -> JsonValue {
    operation["security"] = json!([]);
    operation
}

fn steering<Asked: schemars::JsonSchema, Answer: schemars::JsonSchema>(
    schemas: &mut SchemaGenerator,
    refused: &JsonValue,
    summary: &str,
    statuses: &[&str],
) -> JsonValue {
    let done = answered("It is done.", JSON, schema::<Answer>(schemas));
    json!({
        "summary": summary,
        "requestBody": {
            "required": false,
            "content": {JSON: {"schema": schema::<Asked>(schemas)}},
        },
        "responses": refusals(refused, &[&["400", "415"], statuses].concat(), done),
    })
}

/// What is answered if all is well, and the statuses otherwise.
fn refusals(refused: &JsonValue, statuses: &[&str], done: JsonValue) -> JsonValue {
    let mut responses = json!({"200": done});
    for status in statuses {
        responses[*status] = answered("Why it is not done.", JSON, refused.clone());
    }
    responses
}

fn answered(what: &str, kind: &str, schema: JsonValue) -> JsonValue {
    json!({"description": what, "content": {kind: {"schema": schema}}})
}

fn parameter(name: &str, what: &str, kind: &str) -> JsonValue {
    json!({"name": name, "in": "query", "description": what, "schema": {"type": kind}})
}

fn schema<T: schemars::JsonSchema>(schemas: &mut SchemaGenerator) -> JsonValue {
    schemas.subschema_for::<T>().to_value()
}

#[cfg(test)]
mod tests {
    use super::super::routes::routes;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_has_each_route_and_no_other() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let described: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().unwrap().keys();
                methods.map(|method| (method.clone(), path.clone()))
            })
            .collect();
        let there: BTreeSet<(String, String)> = routes()
            .into_iter()
            .map(|(method, path, _)| (method.to_owned(), path.to_owned()))
            .collect();
        assert_eq!(described, there);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references<'a>(value: &'a JsonValue, found: &mut Vec<&'a str>) {
            match value {
                JsonValue::Object(map) => {
                    found.extend(map.get("$ref").and_then(JsonValue::as_str));
                    map.values().for_each(|value| references(value, found));
                }
                JsonValue::Array(all) => all.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.contains(&"#/components/schemas/Report"), "{found:?}");
        for reference in found {
            let place = document.pointer(reference.trim_start_matches('#'));
            assert!(place.is_some_and(JsonValue::is_object), "{reference}");
        }
    }
}
