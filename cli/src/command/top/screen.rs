//! What is drawn.

use indicatif::{HumanBytes, HumanCount};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table, Wrap};

use super::rates::{Rate, Rates};
use crate::command::status::Lags;
use crate::command::status::words::{
    conditions, duration, input_state, latency, output_state, plain,
};
use crate::control::report::{PhaseName, Report, Severity};

/// So many conditions at most: the most important ones come first.
const MAX_CONDITIONS: usize = 5;

/// Everything that is drawn.
pub(super) struct Screen<'a> {
    pub(super) report: &'a Report,
    pub(super) lags: &'a Lags,
    pub(super) rates: &'a Rates,
    /// Why the report is not from now.
    pub(super) error: Option<&'a str>,
}

impl Screen<'_> {
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let conditions = self.conditions();
        let text = Paragraph::new(conditions).wrap(Wrap { trim: false });
        // A line that is too long takes several.
        let lines = self.condition_lines(area.width).min(area.height / 3);
        let inputs = self.report.inputs.len() as u16 + 1;
        let outputs = self.report.outputs.len() as u16 + 1;
        let [head, words, _, above, _, below, _, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(lines),
            Constraint::Length(1),
            Constraint::Length(inputs),
            Constraint::Length(1),
            Constraint::Length(outputs),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Paragraph::new(self.head()), head);
        frame.render_widget(text, words);
        self.inputs(frame, above);
        self.outputs(frame, below);
        let dim = Style::new().add_modifier(Modifier::DIM);
        frame.render_widget(Paragraph::new("q quits").style(dim), foot);
    }

    fn head(&self) -> Vec<Line<'static>> {
        let Report { pipeline, phase, running_seconds, pid, steps, checkpoints, journal, .. } =
            self.report;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let color = match phase {
            PhaseName::Running => Color::Green,
            _ => Color::Yellow,
        };
        let age = checkpoints.age_seconds.map(|age| format!(", {} ago", duration(age)));
        vec![
            Line::from(vec![
                Span::styled(plain(pipeline), bold),
                Span::raw(" is "),
                Span::styled(phase.to_string(), Style::new().fg(color)),
                Span::raw(format!(" ({}, process {pid})", duration(*running_seconds))),
            ]),
            Line::from(format!(
                "step {}, {:.0}/s, {} in flight; checkpoint {}{}; journal {}",
                HumanCount(steps.last),
                self.rates.steps,
                steps.in_flight,
                HumanCount(checkpoints.step),
                age.unwrap_or_default(),
                HumanBytes(journal.bytes),
            )),
        ]
    }

    /// What people should know, with how bad it is.
    fn words(&self) -> Vec<(Severity, String)> {
        let error = self.error.map(|error| (Severity::Error, plain(error)));
        let conditions = conditions(self.report).map(|condition| {
            (condition.severity, format!("{}: {}", condition.about, condition.text))
        });
        error.into_iter().chain(conditions).take(MAX_CONDITIONS).collect()
    }

    fn conditions(&self) -> Vec<Line<'static>> {
        let line = |(severity, text)| {
            let color = match severity {
                Severity::Error => Color::Red,
                Severity::Warning => Color::Yellow,
                Severity::Info => Color::Cyan,
            };
            Line::styled(text, Style::new().fg(color))
        };
        self.words().into_iter().map(line).collect()
    }

    /// How many lines they take at most, wrapped between words.
    fn condition_lines(&self, width: u16) -> u16 {
        let width = usize::from(width.max(1));
        let lines = |text: &String| text.chars().count().div_ceil((width * 9 / 10).max(1)).max(1);
        let lines: usize = self.words().iter().map(|(_, text)| lines(text)).sum();
        u16::try_from(lines).unwrap_or(u16::MAX)
    }

    fn inputs(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.report.inputs.iter().enumerate().map(|(place, input)| {
            let rate = self.rates.inputs.get(place);
            let lag = self.lags.get(&input.name).and_then(|lag| lag.lag);
            Row::new([
                plain(&input.name),
                right(HumanCount(input.records).to_string(), 13),
                right(records(rate), 11),
                right(bytes(rate), 12),
                right(lag.map_or("-".into(), |lag| HumanCount(lag).to_string()), 11),
                right(latency(&input.latency), 7),
                input_state(input),
            ])
        });
        table(frame, area, ["input", "records", "records/s", "bytes/s", "behind", "p99"], rows);
    }

    fn outputs(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.report.outputs.iter().enumerate().map(|(place, output)| {
            let rate = self.rates.outputs.get(place);
            Row::new([
                plain(&output.name),
                right(HumanCount(output.records).to_string(), 13),
                right(records(rate), 11),
                right(bytes(rate), 12),
                String::new(),
                String::new(),
                output_state(output),
            ])
        });
        table(frame, area, ["output", "records", "records/s", "bytes/s", "", ""], rows);
    }
}

fn table<'a>(
    frame: &mut Frame<'_>,
    area: Rect,
    heads: [&str; 6],
    rows: impl Iterator<Item = Row<'a>>,
) {
    let widths = [13, 11, 12, 11, 7];
    let [name, others @ ..] = heads;
    let others = others.iter().zip(widths).map(|(head, width)| right((*head).into(), width));
    let heads = [name.to_owned()].into_iter().chain(others).chain(["state".to_owned()]);
    let widths = widths.map(|width| Constraint::Length(width as u16));
    let widths = [Constraint::Fill(1)].into_iter().chain(widths).chain([Constraint::Length(8)]);
    let head = Row::new(heads).style(Style::new().add_modifier(Modifier::BOLD));
    frame.render_widget(Table::new(rows, widths).header(head), area);
}

fn right(text: String, width: usize) -> String {
    format!("{text:>width$}")
}

fn records(rate: Option<&Rate>) -> String {
    rate.map_or("-".into(), |rate| HumanCount(rate.records as u64).to_string())
}

fn bytes(rate: Option<&Rate>) -> String {
    rate.map_or("-".into(), |rate| HumanBytes(rate.bytes as u64).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::status::tests::{lags, report};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(width: u16, height: u16, error: Option<&str>) -> String {
        let (before, mut now) = (report(), report());
        now.inputs[0].records += 750_000;
        now.inputs[0].bytes += 150 << 20;
        now.outputs[0].records += 1;
        now.steps.count += 41;
        let rates = Rates::over(&before, &now, 1.0);
        let lags = lags();
        let screen = Screen { report: &now, lags: &lags, rates: &rates, error };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn it_fits_an_old_terminal() {
        insta::assert_snapshot!(drawn(80, 24, None));
    }

    #[test]
    fn that_nothing_answers_is_said_above_what_was_last_seen() {
        insta::assert_snapshot!(drawn(80, 12, Some("no lockgate runs on .lockgate/orders")));
    }

    #[test]
    fn any_terminal_is_large_enough() {
        for (width, height) in [(1, 1), (1, 40), (5, 3), (300, 100)] {
            drawn(width, height, Some("gone"));
        }
    }
}
