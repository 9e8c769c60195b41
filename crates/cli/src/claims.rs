//! The table of claims, for the terminal; where nothing is claimed, that of numbers.

use console::{Term, measure_text_width, style};
use minvel::estimate::format;
use minvel_lab::report::Report;
use std::fmt::Write;

const WIDEST: usize = 120;

/// Claims with values and what decided them, the score, and how long it took.
pub fn table(report: &Report) -> String {
    if report.claims().next().is_none() {
        return numbers(report);
    }
    let width = Term::stdout().size_checked().map_or(100, |(_, columns)| columns as usize).clamp(60, WIDEST);
    let longest = |text: &dyn Fn(&minvel_lab::report::Row) -> String| {
        report.claims().map(|r| measure_text_width(&text(r))).max().unwrap_or(0)
    };
    let (value, paper) = (longest(&|r| r.value_text()).max(5), longest(&|r| r.paper_text()));
    let paper = if paper == 0 { 0 } else { paper.max(5) };
    let claim = width.saturating_sub(value + paper + 8).max(24);
    let line = |mark: &str, text: &str, a: &str, b: &str| {
        format!(" {mark}  {}  {}  {}", pad(text, claim), pad(a, value), pad(b, paper)).trim_end().to_string()
    };
    let mut out = String::new();
    let _ = writeln!(out, "{}", line(" ", "claim", "value", if paper > 0 { "paper" } else { "" }));
    for row in report.claims() {
        let holds = row.holds == Some(true);
        let mark = if holds { style("✓").green().to_string() } else { style("✗").red().bold().to_string() };
        for (i, text) in wrap(row.claim.as_deref().unwrap_or(""), claim).iter().enumerate() {
            let cells = if i == 0 {
                (mark.as_str(), row.value_text(), row.paper_text())
            } else {
                (" ", String::new(), String::new())
            };
            let _ = writeln!(out, "{}", line(cells.0, text, &cells.1, &cells.2));
        }
        let why = format!("{}: {}", row.name, row.rule.as_deref().unwrap_or(""));
        for text in wrap(&why, width - 6) {
            let _ = writeln!(out, "      {}", style(text).dim());
        }
    }
    let (hold, all) = report.score();
    let score = format!("{hold} of {all} claims hold");
    let score = if hold == all { style(score).green().bold() } else { style(score).red().bold() };
    let _ = writeln!(out, "\n{score}; {} took {}.", report.experiment, format::duration(report.seconds));
    out
}

/// All numbers, and how long it took.
fn numbers(report: &Report) -> String {
    let longest = report.rows.iter().map(|row| measure_text_width(&row.name)).max().unwrap_or(0);
    let mut out = String::new();
    for row in &report.rows {
        let _ = writeln!(out, "  {}  {}", pad(&row.name, longest), row.value_text());
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let _ = writeln!(out, "\n{} took {}.", report.experiment, format::duration(report.seconds));
    out
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(measure_text_width(text))))
}

/// Lines of at most `width`, broken between words.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is a line");
        if last.is_empty() {
            last.push_str(word);
        } else if measure_text_width(last) + 1 + measure_text_width(word) <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}
