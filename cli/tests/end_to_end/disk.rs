//! A full disk, with a small file system of its own.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::data;
use crate::site::{Running, Site};

/// A file system of a few megabytes at a folder of the site. Mounting it takes root.
struct SmallDisk<'a> {
    site: &'a Site,
}

impl<'a> SmallDisk<'a> {
    fn mount(site: &'a Site, megabytes: u32) -> Self {
        fs::create_dir_all(site.path("small")).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(site.path("small"))
            .status();
        let mounted = mounted.is_ok_and(|status| status.success());
        assert!(mounted, "this test mounts a tmpfs; run it as root");
        Self { site }
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.site.path("small")).status();
    }
}

fn full_disk(pipeline: &str, expected: &[u8]) {
    let site = Site::new(pipeline);
    site.write("in.log", expected);
    let disk = SmallDisk::mount(&site, 24);
    site.write("small/ballast", vec![0; 12 << 20]);
    let mut running = site.start();
    let waits = running.until(|| running_log(&site).contains("paused until there is space"));
    assert!(waits, "{}", running.stderr());
    fs::remove_file(site.path("small/ballast")).unwrap();
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("there is space again"), "{}", ended.stderr);
    let out: Vec<u8> =
        site.files("small/out").into_iter().flat_map(|(_, content)| content).collect();
    assert!(out == expected, "the output differs");
    drop(disk);
}

fn running_log(site: &Site) -> String {
    fs::read_to_string(site.path("stderr.log")).unwrap_or_default()
}

/// A full disk once left a panic, or half a record.
#[test]
fn a_full_disk_is_waited_for_and_leaves_no_trace() {
    let expected = data::lines("x", 15 << 20, 1);
    full_disk(
        "name: full\ninputs: {all: {file: {paths: in.log}}}\n\
         outputs: {out: {file: {path: small/out/all.log}}}\n",
        &expected,
    );
    full_disk(
        "name: full\ninputs: {all: {file: {paths: in.log}}}\n\
         outputs: {out: {file: {path: \"small/out/{segment}\", segment_bytes: 1MiB}}}\n",
        &expected,
    );
}

/// What was recorded up to then can be read, and the pipeline goes on as if nothing had happened.
#[test]
fn a_full_disk_ends_a_recording_and_does_no_other_harm() {
    let site = Site::new(
        "name: full\ncheckpoint_interval: 10ms\ninputs: {in: {file: {paths: in.log}}}\n\
         outputs: {out: {file: {path: all.log}}}\n",
    );
    let expected = data::lines("x", 15 << 20, 1);
    site.write("in.log", &expected);
    let disk = SmallDisk::mount(&site, 1);
    let ended = site.lockgate(&["run", "pipeline.yaml", "--record", "small/take"]);
    let names_it = ended.stderr.contains("small/take/in-0001.parquet: No space left on device");
    assert!(ended.code == 74 && names_it, "{}: {}", ended.code, ended.stderr);
    let verified = site.lockgate(&["verify", "small/take"]);
    assert!(verified.code == 0 && verified.stdout.contains("cut short"), "{}", verified.stderr);
    drop(disk);
    let ended = site.lockgate(&["run", "pipeline.yaml", "--record", "take"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(site.read("all.log") == expected);
    assert_eq!(site.lockgate(&["verify", "take"]).code, 0);
}

const STOPPED: &str = "name: full\nshutdown_timeout: 500ms\ninputs: {all: {file: {paths: in.log}}}\n\
                       outputs: {out: {file: {path: small/out/all.log}}}\n";

/// Starts a run that fills the disk, does `work` while it waits for space, and checks that all comes out in the end.
fn on_a_full_disk(pipeline: &str, work: impl FnOnce(&Site, Running)) {
    let site = Site::new(pipeline);
    let expected = data::lines("x", 15 << 20, 1);
    site.write("in.log", &expected);
    let disk = SmallDisk::mount(&site, 24);
    site.write("small/ballast", vec![0; 16 << 20]);
    let mut running = site.start();
    let waits = running.until(|| running_log(&site).contains("paused until there is space"));
    assert!(waits, "{}", running.stderr());
    work(&site, running);
    assert!(site.read("small/out/all.log") == expected, "the output differs");
    drop(disk);
}

/// Does `stop` to a run that waits for space, and checks that it ends with 75, saying `said`, and that the next run
/// goes on.
fn stopped_on_a_full_disk(pipeline: &str, stop: impl FnOnce(&mut Running), said: &str) {
    on_a_full_disk(pipeline, |site, mut running| {
        stop(&mut running);
        let ended = running.end();
        assert_eq!(ended.code, 75, "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        fs::remove_file(site.path("small/ballast")).unwrap();
        site.run();
    });
}

/// Stopped while it waits for space, it ends in time, says so, and goes on later.
#[test]
fn a_stop_while_the_disk_is_full_ends_and_the_next_run_goes_on() {
    let stop = |running: &mut Running| running.signal("TERM");
    stopped_on_a_full_disk(STOPPED, stop, "without a last checkpoint");
}

/// Without its checkpoint a suspended pipeline would start with a replay; it runs on instead, and says so.
#[test]
fn a_suspension_on_a_full_disk_fails_and_the_pipeline_runs_on() {
    let pipeline = format!("control: {{listen: \"127.0.0.1:0\"}}\n{STOPPED}");
    on_a_full_disk(&pipeline, |site, running| {
        for command in ["suspend", "checkpoint"] {
            let refused = site.lockgate(&[command]);
            assert_ne!(refused.code, 0, "{}", refused.stdout);
            let names_it = refused.stderr.contains("No space left on device")
                && refused.stderr.contains("the last one covers step ");
            assert!(names_it, "{}", refused.stderr);
        }
        let status = site.lockgate(&["status"]).stdout;
        assert!(status.contains("nothing can be stored"), "{status}");
        fs::remove_file(site.path("small/ballast")).unwrap();
        let ended = running.end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    });
}

#[test]
fn a_second_signal_ends_at_once() {
    let stop = |running: &mut Running| {
        running.signal("TERM");
        let log = running.log();
        assert!(running.until(|| fs::read_to_string(&log).unwrap().contains("stopping in order")));
        // The next one counts as another wish only after a moment.
        while running.child.try_wait().unwrap().is_none() {
            running.signal("INT");
            std::thread::sleep(Duration::from_millis(50)); // polls: the end of another process
        }
    };
    let pipeline = STOPPED.replace("500ms", "1h");
    stopped_on_a_full_disk(&pipeline, stop, "ended at once by a second signal");
}
