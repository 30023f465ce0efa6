//! `lockgate pause`, `resume`, `checkpoint`, `suspend`, `stop`, `reload`: what a running pipeline is asked to do.

use super::print;
use crate::args::{At, Choice};
use crate::client::{Client, NotDone};
use crate::control::answers::{Checkpointed, Inputs, Nothing, Paused, Reloaded, Stopped};
use crate::control::report::Change;
use crate::exit::{Code, Failed};

pub(crate) fn pause(choice: &Choice) -> Result<(), Failed> {
    let Paused { inputs, durable } = set_paused("/api/v1/pause", choice)?;
    let until =
        if durable { "" } else { ", until the pipeline is started again: it stores nothing" };
    print(&format!("paused: {}{until}\n", inputs.join(", ")))
}

pub(crate) fn resume(choice: &Choice) -> Result<(), Failed> {
    let Paused { inputs, .. } = set_paused("/api/v1/resume", choice)?;
    print(&format!("resumed: {}\n", inputs.join(", ")))
}

fn set_paused(path: &str, choice: &Choice) -> Result<Paused, Failed> {
    let wish = Inputs { inputs: choice.inputs.clone() };
    Ok(Client::new(&choice.at)?.post(path, &wish)??)
}

pub(crate) fn checkpoint(at: &At) -> Result<(), Failed> {
    let Checkpointed { step } = Client::new(at)?.post("/api/v1/checkpoint", &Nothing {})??;
    print(&format!("the checkpoint covers step {step}\n"))
}

pub(crate) fn suspend(at: &At) -> Result<(), Failed> {
    let client = Client::new(at)?;
    let done = client.post("/api/v1/suspend", &Nothing {})?;
    let Checkpointed { step } = done.map_err(|NotDone { status, words }| {
        let ended = words == "the run has ended";
        let words = if ended { words } else { format!("{words}; the pipeline keeps running") };
        NotDone { status, words }
    })?;
    client.wait_until_gone();
    print(&format!("suspended: the checkpoint covers step {step}\n"))
}

pub(crate) fn stop(at: &At) -> Result<(), Failed> {
    let client = Client::new(at)?;
    let Stopped { step, complete } = client.post("/api/v1/stop", &Nothing {})??;
    client.wait_until_gone();
    match step {
        Some(step) if !complete => {
            let message = format!(
                "stopped, but the last checkpoint covers step {step} only; what came after it comes again with the \
                 next start"
            );
            Err(Failed::new(Code::Temporary, message))
        }
        Some(step) => print(&format!("stopped: the last checkpoint covers step {step}\n")),
        None => print("stopped\n"),
    }
}

pub(crate) fn reload(at: &At) -> Result<(), Failed> {
    let Reloaded { changes } = Client::new(at)?.post("/api/v1/reload", &Nothing {})??;
    print(&reloaded(&changes))
}

fn reloaded(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "nothing has changed\n".into();
    }
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".into());
    let line = |change: &Change| {
        format!("{}: {} is now {}\n", change.path, value(&change.was), value(&change.is))
    };
    changes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_one_a_line() {
        assert_eq!(reloaded(&[]), "nothing has changed\n");
        let change = |was: Option<&str>| Change {
            path: "inputs.a.max_records_per_second".into(),
            was: was.map(Into::into),
            is: Some("10".into()),
        };
        insta::assert_snapshot!(reloaded(&[change(Some("5")), change(None)]), @"
        inputs.a.max_records_per_second: 5 is now 10
        inputs.a.max_records_per_second: unset is now 10
        ");
    }
}
