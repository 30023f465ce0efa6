//! `lockgate top`: a running pipeline, live in the terminal.
//!
//! One thread asks, the other draws and listens to keys, so that keys count also while nothing answers.

mod rates;
mod screen;

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::status::Lags;
use crate::args::At;
use crate::client::Client;
use crate::control::report::Report;
use crate::exit::{Code, Failed};
use rates::Rates;
use screen::Screen;

/// How often the pipeline is asked,
const ASKED: Duration = Duration::from_secs(1);
/// and how often keys are looked at.
const KEYS: Duration = Duration::from_millis(100);

/// What was answered, and when.
struct Seen {
    at: Instant,
    report: Report,
    lags: Lags,
}

pub(crate) fn top(at: &At) -> Result<(), Failed> {
    let client = Client::new(at)?;
    if !std::io::stdout().is_terminal() {
        let message = "standard output is no terminal; use `lockgate status`";
        return Err(Failed::new(Code::Usage, message));
    }
    // What is wrong with the first answer is said as any command does.
    let first = look(&client)?;
    let (tell, seen) = sync_channel(1);
    let ask = move || follow(&client, &tell);
    let thread = std::thread::Builder::new().name("ask".into()).spawn(ask);
    thread.map_err(|error| Failed::storage("starting a thread", &error))?;
    let mut terminal =
        ratatui::try_init().map_err(|error| Failed::storage("taking the terminal", &error))?;
    let shown = show(&mut terminal, first, &seen);
    ratatui::restore();
    shown.map_err(|error| Failed::storage("drawing", &error))
}

fn look(client: &Client) -> Result<Seen, Failed> {
    let report = client.get("/api/v1/status")?;
    // While the pipeline is being opened nobody knows.
    let lags = client.get("/api/v1/partitions").unwrap_or_default();
    Ok(Seen { at: Instant::now(), report, lags })
}

/// Asks again and again, until nobody wants to know.
fn follow(client: &Client, tell: &SyncSender<Result<Seen, Failed>>) {
    loop {
        std::thread::sleep(ASKED);
        if tell.send(look(client)).is_err() {
            return;
        }
    }
}

fn show(
    terminal: &mut DefaultTerminal,
    first: Seen,
    answers: &Receiver<Result<Seen, Failed>>,
) -> std::io::Result<()> {
    let mut before: Option<Seen> = None;
    let mut seen = first;
    let mut failed: Option<Failed> = None;
    loop {
        let rates = Rates::between(before.as_ref().map(|seen| (seen.at, &seen.report)), &seen);
        let error = failed.as_ref().map(|failed| failed.message.as_str());
        let screen = Screen { report: &seen.report, lags: &seen.lags, rates: &rates, error };
        terminal.draw(|frame| screen.draw(frame))?;
        loop {
            if event::poll(Duration::ZERO)? {
                match event::read()? {
                    Event::Key(key) if ends(key) => return Ok(()),
                    Event::Resize(..) => break,
                    _ => continue,
                }
            }
            match answers.recv_timeout(KEYS) {
                Ok(Ok(new)) => {
                    before = Some(std::mem::replace(&mut seen, new));
                    failed = None;
                    break;
                }
                Ok(Err(error)) => {
                    failed = Some(error);
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }
}

/// Whether somebody wants no more.
fn ends(key: KeyEvent) -> bool {
    let is_control_c =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind != KeyEventKind::Release
        && (is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_keys_end_it() {
        let key = |code, modifiers| ends(KeyEvent::new(code, modifiers));
        assert!(key(KeyCode::Char('q'), KeyModifiers::NONE));
        assert!(key(KeyCode::Esc, KeyModifiers::NONE));
        assert!(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE));
    }
}
