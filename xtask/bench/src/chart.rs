//! The ratios as a picture: a bar for each comparison, with its spread and its aim. Pure.

use std::fmt::Write as _;

use crate::report::{Aim, Report, Row, short};

const WIDTH: f64 = 1020.0;
/// Where bars begin.
const LEFT: f64 = 510.0;
/// Where the longest one ends; the numbers stand behind.
const RIGHT: f64 = 860.0;
const TOP: f64 = 84.0;
const LINE: f64 = 26.0;
/// What is more than this is drawn as long as this.
const MOST: f64 = 2.0;

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#222}.small{font-size:11px;fill:#666}\
    .bar{fill:#3b7dd8}.missed{fill:#d8803b}.line{stroke:#222}.one{stroke:#999;stroke-dasharray:3 3}\
    .aim{stroke:#b02a2a;stroke-width:2}\
    @media(prefers-color-scheme:dark){text{fill:#ddd}.small{fill:#999}.line{stroke:#ddd}}";

/// An SVG of all rows that have a ratio.
pub(crate) fn draw(report: &Report) -> String {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.ratio.is_some()).collect();
    let bottom = TOP + LINE * rows.len() as f64;
    let height = bottom + 34.0;
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>lockgate beside yardsticks: ratio of speeds</title>\n<style>{STYLE}</style>\n\
         <text x=\"12\" y=\"22\">lockgate beside yardsticks: ratio of speeds, more is better</text>"
    );
    for (index, fact) in report.facts().iter().enumerate() {
        let y = 40 + 14 * index;
        let _ = writeln!(svg, "<text class=\"small\" x=\"12\" y=\"{y}\">{}</text>", escaped(fact));
    }
    let one = place(1.0);
    let _ = writeln!(
        svg,
        "<line class=\"one\" x1=\"{one}\" x2=\"{one}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
    );
    for (index, row) in rows.iter().enumerate() {
        bar(&mut svg, row, TOP + LINE * index as f64);
    }
    let _ = writeln!(
        svg,
        "<text class=\"small\" x=\"{LEFT}\" y=\"{}\">dashed: as fast as the yardstick; red: the aim</text>\n</svg>",
        bottom + 20.0
    );
    svg
}

fn bar(svg: &mut String, row: &Row, y: f64) {
    let Some(ratio) = &row.ratio else { return };
    let label =
        format!("{} {}, to {}", row.benchmark, row.case, row.yardstick.as_deref().unwrap_or(""));
    let class = if row.met == Some(false) { "missed" } else { "bar" };
    let (text, middle) = (y + 15.0, y + 11.0);
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\" class=\"small\">{}</text>\n\
         <rect class=\"{class}\" x=\"{LEFT}\" y=\"{}\" width=\"{:.1}\" height=\"14\"/>\n\
         <line class=\"line\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>\n\
         <text x=\"{}\" y=\"{text}\">{} ({} to {})</text>",
        LEFT - 8.0,
        escaped(&label),
        y + 4.0,
        place(ratio.median) - LEFT,
        place(ratio.min),
        place(ratio.max),
        RIGHT + 8.0,
        short(ratio.median),
        short(ratio.min),
        short(ratio.max),
    );
    if let Some(Aim::AtLeast(aim)) = row.aim {
        let x = place(aim);
        let (from, to) = (y + 1.0, y + 21.0);
        let _ = writeln!(
            svg,
            "<line class=\"aim\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from}\" y2=\"{to}\"/>"
        );
    }
}

/// Where a ratio lies.
fn place(ratio: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * ratio.clamp(0.0, MOST) / MOST
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sketch;

    #[test]
    fn ratios_are_bars() {
        insta::assert_snapshot!(draw(&sketch()));
    }

    #[test]
    fn what_is_too_long_is_cut_off() {
        assert_eq!(place(0.0), LEFT);
        assert_eq!(place(40.0), RIGHT);
    }
}
