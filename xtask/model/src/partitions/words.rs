//! What happened, in words, for the traces.

use lockgate_core::{CommitOutcome, Stage};

use super::seed::Action;
use super::spec::Set;
use super::wider::WiderAction;

pub(super) fn describe(action: &WiderAction) -> String {
    match action {
        WiderAction::Stage(stage) => stage_of(*stage).into(),
        WiderAction::Poll(p, 1) => format!("a poll hands over 1 record of {p}"),
        WiderAction::Poll(p, n) => format!("a poll hands over {n} records of {p}"),
        WiderAction::Complete(p, epoch, offset) => {
            format!("the record at {offset} of {p}, taken in epoch {epoch}, is complete")
        }
        WiderAction::Answer(commit, outcome) => {
            let outcome = match outcome {
                CommitOutcome::Done => "is stored",
                CommitOutcome::Failed => "fails",
                CommitOutcome::Refused => "is refused",
            };
            format!("the commit of {} up to {} {outcome}", commit.partition.0, commit.offset)
        }
        WiderAction::Revoke(set, true) => format!("revoke of {}, with time for it", list(set)),
        WiderAction::Revoke(set, false) => format!("revoke of {}, at once", list(set)),
        WiderAction::Lose(set) => format!("{} lost", list(set)),
        WiderAction::Assign(set) => format!("{} assigned", list(set)),
        WiderAction::Deadline => "the time of the revoke is over".into(),
        WiderAction::Reload(limit) => format!("reload requested, limit {limit}"),
        WiderAction::Seek(p) => format!("{p} is sought back to its first record"),
    }
}

pub(super) fn describe_seed(action: &Action) -> String {
    match action {
        Action::RequestReload => "RequestPropertyReload".into(),
        Action::Rebalance(rebalance) => format!(
            "InitiateRebalance, revoking {}, adding {}",
            list(&rebalance.revoking),
            list(&rebalance.adding)
        ),
        Action::Revoked => "OnPartitionsRevoked".into(),
        Action::Assigned => "OnPartitionsAssigned".into(),
        Action::Add(Some(p)) => format!("AddRecords of {p}"),
        Action::Add(None) => "AddRecords of nothing".into(),
        Action::Watermark(Some(p)) => format!("UpdateHighWatermark of {p}"),
        Action::Watermark(None) => "UpdateHighWatermark of nothing".into(),
        Action::Stage(Stage::Pause) => "PausePartitions".into(),
        Action::Stage(Stage::Resume) => "ResumePartitions".into(),
        Action::Stage(Stage::Reload) => "HandlePropertyReload".into(),
        Action::Stage(_) => "CommitOffset".into(),
    }
}

fn stage_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Revoke => "stage: revoke",
        Stage::Assign => "stage: assign",
        Stage::Add => "stage: add records",
        Stage::Watermark => "stage: update high watermark",
        Stage::Pause => "stage: pause",
        Stage::Resume => "stage: resume",
        Stage::Reload => "stage: property reload",
        Stage::Commit => "stage: commit",
    }
}

fn list(set: &Set) -> String {
    if set.is_empty() {
        return "nothing".into();
    }
    set.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ")
}
