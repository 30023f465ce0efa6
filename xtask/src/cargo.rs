//! Starting cargo and git in the folder of the workspace.
//!
//! Not for deciding what a missing tool means: that is for the verbs.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The profile that tests and examples are built with, so that nothing is compiled twice.
pub(crate) const TEST_PROFILE: &str = "--profile=ci";

/// The top folder of the repository.
pub(crate) fn workspace_root() -> Result<PathBuf> {
    let crate_folder = env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set: start this program as `cargo xtask`")?;
    let mut root = PathBuf::from(crate_folder);
    root.pop();
    Ok(root)
}

/// The folder that cargo builds in.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let metadata = output(cargo(&["metadata", "--locked", "--no-deps", "--format-version", "1"])?)?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata)?;
    let folder = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    Ok(folder.into())
}

/// A cargo command, to be run in the top folder by the cargo that started us.
pub(crate) fn cargo(arguments: &[&str]) -> Result<Command> {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(workspace_root()?).args(arguments);
    Ok(command)
}

/// Whether cargo finds the program of a subcommand that is not built in, such as `fmt`.
pub(crate) fn has_subcommand(subcommand: &str) -> Result<bool> {
    let status = cargo(&[subcommand, "--version"])?
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `cargo {subcommand} --version`"))?;
    Ok(status.success())
}

/// Shows the command, runs it with our own terminal, and fails unless it succeeds.
pub(crate) fn run(mut command: Command) -> Result<()> {
    let line = shown(&command);
    println!("$ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs the command and returns what it printed; what it complains about goes to our own stderr.
pub(crate) fn output(mut command: Command) -> Result<Vec<u8>> {
    let line = shown(&command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({})", output.status);
    }
    Ok(output.stdout)
}

/// The command as a person would type it.
fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_an_error_that_names_it() {
        let error = run(Command::new("false")).unwrap_err().to_string();
        assert!(error.starts_with("`false` failed"), "{error}");
        assert!(output(Command::new("false")).is_err());
    }

    #[test]
    fn a_command_that_does_not_exist_is_an_error_that_names_it() {
        let mut command = Command::new("/nowhere/lockgate-no-such-program");
        command.arg("--flag");
        let error = run(command).unwrap_err().to_string();
        assert_eq!(error, "cannot start `lockgate-no-such-program --flag`");
    }

    #[test]
    fn a_subcommand_is_there_when_its_program_runs() {
        let cargo_fmt = Command::new("cargo-fmt").arg("--version").output();
        let is_installed = cargo_fmt.is_ok_and(|output| output.status.success());
        assert_eq!(has_subcommand("fmt").unwrap(), is_installed);
        assert!(!has_subcommand("lockgate-no-such-subcommand").unwrap());
    }
}
