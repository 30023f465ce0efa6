//! Processes of brokers: whether one is still ours, and signals to it.
//!
//! A number of a process may by now belong to another one, so its command line is looked at first.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The class that a broker's process runs.
pub(super) const BROKER_CLASS: &str = "kafka.Kafka";

/// How to end a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Signal {
    /// In order.
    Term,
    /// At once.
    Kill,
}

impl Signal {
    pub(super) fn name(self) -> &'static str {
        match self {
            Signal::Term => "TERM",
            Signal::Kill => "KILL",
        }
    }
}

/// Whether the process runs and is the broker with these settings. One that ended but is not yet collected
/// has no command line.
pub(super) fn is_broker(pid: u32, settings: &Path) -> bool {
    command_line(pid).is_some_and(|words| is_command_of_broker(&words, settings))
}

/// Sends the signal if the process is the broker with these settings.
pub(super) fn signal(pid: u32, settings: &Path, signal: Signal) -> Result<()> {
    if !is_broker(pid, settings) {
        return Ok(());
    }
    // The shell's own `kill`: there is not always a program of that name.
    let status = Command::new("sh")
        .args(["-c", "kill -s \"$0\" \"$1\"", signal.name(), &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .context("cannot start `sh`")?;
    let ended_meanwhile = !is_broker(pid, settings);
    ensure!(status.success() || ended_meanwhile, "cannot send {} to {pid}", signal.name());
    Ok(())
}

/// Waits until the new process can be recognised, or has ended: just after its start it has no command line.
pub(super) fn wait_until_named(child: &mut Child) -> Result<()> {
    while command_line(child.id()).is_none_or(|words| words.is_empty())
        && child.try_wait()?.is_none()
    {
        thread::sleep(Duration::from_millis(1)); // polls: the process's command line
    }
    Ok(())
}

/// The words of a process's command line.
fn command_line(pid: u32) -> Option<Vec<String>> {
    if let Ok(bytes) = fs::read(format!("/proc/{pid}/cmdline")) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        return Some(text.split_terminator('\0').map(str::to_owned).collect());
    }
    if Path::new("/proc/self").exists() {
        return None;
    }
    // Where there is no /proc, blanks in paths cannot be told from those between words.
    let listed =
        Command::new("ps").args(["-ww", "-o", "command=", "-p", &pid.to_string()]).output();
    let text = String::from_utf8_lossy(&listed.ok()?.stdout).into_owned();
    Some(text.split_whitespace().map(str::to_owned).collect())
}

fn is_command_of_broker(words: &[String], settings: &Path) -> bool {
    let runs_java = words.first().is_some_and(|program| Path::new(program).ends_with("java"));
    let runs_broker =
        words.windows(2).any(|pair| pair[0] == BROKER_CLASS && Path::new(&pair[1]) == settings);
    runs_java && runs_broker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: bool) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(is_command_of_broker(&words, Path::new("/k/1/server.properties")), expected);
    }

    #[test]
    fn only_the_broker_with_our_settings_is_ours() {
        check("/usr/bin/java -cp jars/* kafka.Kafka /k/1/server.properties", true);
        check("java kafka.Kafka /k/1/server.properties", true);
        check("java kafka.Kafka /k/2/server.properties", false);
        check("java kafka.tools.StorageTool /k/1/server.properties", false);
        check("vi kafka.Kafka /k/1/server.properties", false);
        check("", false);
    }

    #[test]
    fn a_process_that_is_not_ours_gets_no_signal() {
        let settings = Path::new("/k/1/server.properties");
        let mut other = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(!is_broker(other.id(), settings));
        signal(other.id(), settings, Signal::Kill).unwrap();
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(!is_broker(other.id(), settings));
    }

    #[test]
    fn a_broker_gets_the_signal() {
        // A shell that is called java and has the words of a broker.
        let folder = std::env::temp_dir().join(format!("lockgate-java-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let java = folder.join("java");
        std::os::unix::fs::symlink("/bin/sh", &java).unwrap();
        let settings = folder.join("server.properties");
        let mut broker = Command::new(&java)
            .args(["-c", "read line", BROKER_CLASS])
            .arg(&settings)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_named(&mut broker).unwrap();
        assert!(is_broker(broker.id(), &settings));
        signal(broker.id(), &settings, Signal::Kill).unwrap();
        assert!(!broker.wait().unwrap().success());
        fs::remove_dir_all(&folder).unwrap();
    }
}
