//! What is in `docs/deploy` agrees with the program. For tests only.
//!
//! That the image is built from what CI installs is a rule of `cargo xtask rules`.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command as Process;
use std::time::Duration;

use clap::Parser;
use saphyr_parser::{Event, Parser as YamlParser};

use crate::args::{Args, Command, Run};
use crate::exit::Code;
use crate::pipeline::{Pipeline, parse};

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/deploy");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The values of a key, line by line: `KEY=VALUE` of units, `KEY: VALUE` of YAML.
fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let line = |line: &'t str| {
        let rest = line.trim_start().strip_prefix(key)?;
        rest.strip_prefix('=').or_else(|| rest.strip_prefix(": "))
    };
    text.lines().filter_map(line).collect()
}

#[track_caller]
fn value<'t>(text: &'t str, key: &str) -> &'t str {
    let values = values(text, key);
    assert_eq!(values.len(), 1, "{key}: {values:?}");
    values[0]
}

/// What follows the program's name on the command line.
#[track_caller]
fn run_of(words: &[&str]) -> Run {
    match Args::try_parse_from([&["lockgate"], words].concat()).map(|args| args.command) {
        Ok(Command::Run(run)) => run,
        other => panic!("{words:?}: {other:?}"),
    }
}

/// A list in JSON, as YAML and Dockerfiles have it, too.
fn list(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn run_of_list(text: &str) -> Run {
    let words = list(text);
    run_of(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn usual_shutdown_timeout() -> Duration {
    let text = "name: a\ninputs: {a: {file: {paths: [a]}}}\noutputs: {a: 'null'}\n";
    let text = text.replace("'null'", "{'null': {}}");
    parse(&text, Path::new("pipeline.yaml"), &|_| None).unwrap().shutdown_timeout
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.trim_end_matches('s').parse().unwrap())
}

#[test]
fn the_unit_gives_the_pipeline_time_to_stop_and_says_when_not_to_restart() {
    let unit = read("lockgate.service");
    assert_eq!(value(&unit, "Type"), "notify");
    assert!(seconds(value(&unit, "WatchdogSec")) >= Duration::from_secs(10));
    assert!(seconds(value(&unit, "TimeoutStopSec")) > usual_shutdown_timeout());
    let lasting = [Code::Usage, Code::Data, Code::Configuration];
    let lasting: Vec<_> = lasting.iter().map(|code| (*code as i32).to_string()).collect();
    assert_eq!(value(&unit, "RestartPreventExitStatus"), lasting.join(" "));
    let words: Vec<&str> = value(&unit, "ExecStart").split(' ').collect();
    assert!(words[0].ends_with("/lockgate"));
    assert!(run_of(&words[1..]).state_dir.unwrap().starts_with("${STATE_DIRECTORY}"));
}

/// The pipeline in the ConfigMap.
fn pipeline_of_manifest(manifest: &str) -> Pipeline {
    let (_, rest) = manifest.split_once("\n  pipeline.yaml: |\n").unwrap();
    let text: Vec<&str> = rest.lines().map_while(|line| line.strip_prefix("    ")).collect();
    let token = tempfile::NamedTempFile::new().unwrap();
    fs::write(token.path(), "a-token\n").unwrap();
    let mounted = "/run/secrets/lockgate/token";
    let text = text.join("\n").replace(mounted, token.path().to_str().unwrap());
    let environment =
        |name: &str| (name == "POD_NAME").then(|| OsString::from("lockgate-orders-0"));
    parse(&text, Path::new("/etc/lockgate/pipeline.yaml"), &environment).unwrap()
}

#[test]
fn the_manifest_is_yaml_with_a_pipeline_that_can_run() {
    let manifest = read("kubernetes.yaml");
    let events: Result<Vec<_>, _> = YamlParser::new_from_str(&manifest).collect();
    let events = events.unwrap();
    let is_start = |event: &&(Event<'_>, _)| matches!(event.0, Event::DocumentStart(_));
    assert_eq!(events.iter().filter(is_start).count(), 3);

    let pipeline = pipeline_of_manifest(&manifest);
    let control = pipeline.control.as_ref().unwrap();
    assert_eq!(
        control.listen.port().to_string(),
        value(&manifest, "prometheus.io/port").trim_matches('"')
    );
    assert!(manifest.contains(&format!("containerPort: {} }}", control.listen.port())));
    assert!(control.token.is_some());
    let grace = seconds(value(&manifest, "terminationGracePeriodSeconds"));
    assert!(grace > pipeline.shutdown_timeout);
    run_of_list(value(&manifest, "args"));
}

#[test]
fn the_image_runs_the_pipeline_as_nobody_in_particular() {
    let (image, manifest) = (read("Dockerfile"), read("kubernetes.yaml"));
    let last = |key: &str| {
        let found = image.lines().rev().find_map(|line| line.strip_prefix(key));
        found.and_then(|found| found.strip_prefix(' ')).unwrap()
    };
    assert_eq!(list(last("ENTRYPOINT")), ["lockgate"]);
    let (run, run_in_pod) = (run_of_list(last("CMD")), run_of_list(value(&manifest, "args")));
    assert_eq!((run.pipeline, run.state_dir), (run_in_pod.pipeline, run_in_pod.state_dir));
    let user = value(&manifest, "runAsUser");
    assert!(user != "0");
    assert_eq!(last("USER"), format!("{user}:{}", value(&manifest, "runAsGroup")));
}

/// Which package of Debian brings a library; those of `libc6` and `libgcc-s1` are in every image.
const LIBRARIES: [(&str, Option<&str>); 8] = [
    ("libssl.so", Some("libssl3")),
    ("libcrypto.so", Some("libssl3")),
    ("libz.so", Some("zlib1g")),
    ("libgcc_s.so", None),
    ("libc.so", None),
    ("libm.so", None),
    ("linux-vdso.so", None),
    ("ld-linux", None),
];

#[cfg(target_os = "linux")]
#[test]
fn the_image_has_the_libraries_that_the_program_asks_for() {
    let image = read("Dockerfile");
    let (_, runs_in) = image.rsplit_once("\nFROM ").unwrap();
    // What this test is linked with is what the program is linked with.
    let output = Process::new("ldd").arg(std::env::current_exe().unwrap()).output().unwrap();
    assert!(output.status.success());
    let output = String::from_utf8(output.stdout).unwrap();
    assert!(output.contains("libc.so"));
    for line in output.lines() {
        let path = line.split_whitespace().next().unwrap();
        let library = path.rsplit('/').next().unwrap();
        let known = LIBRARIES.iter().find(|(known, _)| library.starts_with(known));
        let (_, package) = known.unwrap_or_else(|| panic!("{library} is in no known package"));
        if let Some(package) = package {
            assert!(runs_in.split_whitespace().any(|word| word == *package), "{package}");
        }
    }
}
