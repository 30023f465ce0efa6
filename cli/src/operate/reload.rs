//! The settings in force, and putting others in their place while the pipeline runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockgate_controller::Reload;

use crate::compose::reload;
use crate::control::report::Change;
use crate::control::{Board, ReloadError, Reloaded};
use crate::exit::Failed;
use crate::pipeline::{self, Pipeline};

/// The pipeline as it is run now.
pub(crate) struct Reloader {
    file: PathBuf,
    /// What was read last and could be put in force; an opened pipeline takes it as it is then.
    current: Mutex<Pipeline>,
    /// What the command line says in place of the file.
    overrides: Box<dyn Fn(&mut Pipeline) + Send + Sync>,
    /// What else takes over settings, beside the run.
    apply: Box<dyn Fn(&Pipeline) + Send + Sync>,
}

impl Reloader {
    /// Of the pipeline that was read from `file`, after `overrides`.
    pub(crate) fn new(
        file: PathBuf,
        pipeline: Pipeline,
        overrides: Box<dyn Fn(&mut Pipeline) + Send + Sync>,
        apply: Box<dyn Fn(&Pipeline) + Send + Sync>,
    ) -> Self {
        Self { file, current: Mutex::new(pipeline), overrides, apply }
    }

    /// The pipeline file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The pipeline in force.
    pub(crate) fn current(&self) -> MutexGuard<'_, Pipeline> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again and puts it in force, as a whole or not at all. Waits for the pipeline to be open, and
    /// until all of it is in force.
    pub(super) async fn reload(self: Arc<Self>, board: Arc<Board>) -> Reloaded {
        let outcome = self.try_reload(&board).await;
        match &outcome {
            Ok(changes) if changes.is_empty() => tracing::info!("nothing has changed"),
            Ok(changes) => {
                for Change { path, was, is } in changes {
                    tracing::info!(path, was, is, "changed while running");
                }
            }
            Err(error) => tracing::warn!("the settings stay as they are: {error}"),
        }
        board.reloaded(&outcome);
        outcome
    }

    async fn try_reload(&self, board: &Board) -> Reloaded {
        let mut runs = board.runs();
        let open = runs.wait_for(Option::is_some).await;
        let run = open.ok().and_then(|run| run.clone()).ok_or(ReloadError::Stopping)?;
        let (changes, wanted) = self.take_in()?;
        if !changes.is_empty() {
            // What is asked for first is in force first: nothing is waited for in between.
            if run.reload(wanted).await.is_err() {
                // The pipeline is being closed. If it is to be opened again, it takes what is current.
                for is_open in [false, true] {
                    let reopened = runs.wait_for(|run| run.is_some() == is_open).await;
                    reopened.map_err(|_| ReloadError::Stopping)?;
                }
            }
        }
        Ok(changes)
    }

    /// Takes in the file; what has changed, and all that may change while the pipeline runs.
    fn take_in(&self) -> Result<(Vec<Change>, Reload), ReloadError> {
        let read = pipeline::load(&self.file).map_err(Failed::from);
        let mut newer = read.map_err(|failed| ReloadError::Invalid(failed.message))?;
        (self.overrides)(&mut newer);
        let mut current = self.current();
        let changes = current.changes_to(&newer);
        if let Some(refusal) = pipeline::refusal(&changes) {
            return Err(ReloadError::NotLive(refusal));
        }
        (self.apply)(&newer);
        *current = newer;
        let shown = changes.into_iter().map(|change| {
            let pipeline::Change { path, was, is, .. } = change;
            Change { path, was, is }
        });
        Ok((shown.collect(), reload(&current)))
    }
}
