//! Secrets appear nowhere: not in the log at any level, not in what a run shows, not in what it answers or stores.

use std::fs;

use crate::api::Api;
use crate::cluster::{Topic, shared};
use crate::site::Site;

const PASSWORD: &str = "canary-9d1c7e";
const TOKEN: &str = "canary-42b8aa";

fn pipeline(from: &str, to: &str, password: &str) -> String {
    // Not used by a listener without TLS and SASL, but given to the client all the same.
    let properties = format!(
        "{{sasl.password: {password}, ssl.key.password: {password}, sasl.username: somebody}}"
    );
    format!(
        "name: secret\ncontrol: {{listen: \"127.0.0.1:0\", token_file: token}}\n\
         inputs:\n  in:\n    kafka: {{brokers: \"{servers}\", topic: {from}, properties: {properties}}}\n\
         outputs:\n  out:\n    kafka: {{brokers: \"{servers}\", topic: {to}, properties: {properties}}}\n",
        servers = shared(),
    )
}

#[test]
fn a_canary_appears_nowhere() {
    let from = Topic::new(&shared(), "se-from", 1, 1).filled(100);
    let to = Topic::new(&shared(), "se-to", 1, 1);
    let site = Site::new(&pipeline(&from.name, &to.name, PASSWORD));
    site.write("token", TOKEN);
    let mut command = site.command(&["run", "pipeline.yaml"]);
    command.env("LOCKGATE_LOG", "trace");
    let mut running = site.begin_command(command);
    let api = Api::of(&site, "secret", &mut running);
    to.grows(&mut running, 0);
    let mut seen = Vec::new();
    // With the wrong token, or none.
    for path in ["", "metrics", "healthz", "readyz", "api/v1/status", "api/v1/nothing"] {
        seen.push(api.get(path).1);
    }
    let (code, refused) = api.post("api/v1/reload");
    assert_eq!(code, 401);
    seen.push(refused);
    let api = api.knowing(TOKEN);
    for path in [
        "metrics",
        "api/v1/status",
        "api/v1/partitions",
        "api/v1/openapi.json",
        "api/v1/tap?input=nobody",
        "api/v1/nothing",
    ] {
        seen.push(api.get(path).1);
    }
    site.write("pipeline.yaml", pipeline(&from.name, &to.name, &format!("{PASSWORD}-new")));
    let (code, refused) = api.post("api/v1/reload");
    assert!(code != 200 && refused.contains("sasl.password"), "{code} {refused}");
    seen.push(refused);
    for command in
        [&["status"][..], &["status", "--json"], &["reload"], &["check", "pipeline.yaml"]]
    {
        let ended = site.lockgate(command);
        seen.extend([ended.stdout, ended.stderr]);
    }
    assert_eq!(site.lockgate(&["suspend"]).code, 0);
    seen.push(running.end().stderr);
    for text in &seen {
        assert!(!text.contains(PASSWORD) && !text.contains(TOKEN), "{text}");
    }
    for entry in fs::read_dir(site.path(".lockgate/secret")).unwrap() {
        let content = fs::read(entry.unwrap().path()).unwrap();
        for canary in [PASSWORD, TOKEN] {
            assert!(!content.windows(canary.len()).any(|part| part == canary.as_bytes()));
        }
    }
}
