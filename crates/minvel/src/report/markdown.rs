//! Reports as Markdown.

use super::{Report, Row, format};
use std::fmt::Write;

/// The whole report.
pub fn render(report: &Report) -> String {
    let (hold, all) = report.score();
    let mut out = format!("# {}\n\n{} ({}).\n\n", report.experiment, report.about, report.source);
    if all > 0 {
        let _ = writeln!(out, "**{hold} of {all} claims hold.**\n");
    }
    if report.quick {
        out.push_str("These are the quick settings: smaller samples, larger errors.\n\n");
    }
    for figure in &report.figures {
        let _ = writeln!(out, "![{}]({}.png)\n\n*{}*\n", figure.name, figure.name, figure.caption);
    }
    claims(&mut out, report);
    numbers(&mut out, report);
    for note in &report.notes {
        let _ = writeln!(out, "* {note}");
    }
    provenance(&mut out, report);
    out
}

fn claims(out: &mut String, report: &Report) {
    if report.claims().next().is_none() {
        return;
    }
    out.push_str("## Claims\n\n| | claim | value | paper | decided by |\n|---|---|---|---|---|\n");
    for row in report.claims() {
        let mark = if row.holds == Some(true) { "✓" } else { "✗" };
        let cells = [row.claim.as_deref().unwrap_or(""), &row.value_text(), &row.paper_text()];
        let [claim, value, paper] = cells.map(cell);
        let _ = writeln!(out, "| {mark} | {claim} | {value} | {paper} | {} |", cell(row.rule.as_deref().unwrap_or("")));
    }
    out.push('\n');
}

fn numbers(out: &mut String, report: &Report) {
    out.push_str("## Numbers\n\n| | value | paper | seeds |\n|---|---|---|---|\n");
    for row in &report.rows {
        let Row { name, seeds, .. } = row;
        let _ =
            writeln!(out, "| {} | {} | {} | {seeds} |", cell(name), cell(&row.value_text()), cell(&row.paper_text()));
    }
    out.push('\n');
}

fn provenance(out: &mut String, report: &Report) {
    let (machine, versions) = (&report.machine, &report.versions);
    let _ = writeln!(
        out,
        "\n## How\n\n{} on {} ({}, {} cores, {} GiB, {}), minvel {} ({}), {}.\n",
        format::duration(report.seconds),
        report.device,
        machine.cpu,
        machine.cores,
        machine.memory_gib,
        machine.system,
        versions.minvel,
        report.revision,
        versions.rustc
    );
    out.push_str("| part | time |\n|---|---|\n");
    for timing in &report.timings {
        let _ = writeln!(out, "| {} | {} |", cell(&timing.name), format::duration(timing.seconds));
    }
    let config = serde_json::to_string_pretty(&report.config).expect("plain data");
    let _ = writeln!(out, "\n<details><summary>Settings</summary>\n\n```json\n{config}\n```\n\n</details>");
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
