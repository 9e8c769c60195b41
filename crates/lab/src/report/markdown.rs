//! Reports as Markdown.

use super::Report;
use minvel::estimate::format;
use std::fmt::Write;

/// The whole report.
pub fn render(report: &Report) -> String {
    let (hold, all) = report.score();
    let mut out = format!("# {}\n\n{} ({}).\n\n", report.experiment, report.about, report.source);
    if all > 0 {
        let _ = writeln!(out, "**{hold} of {all} claims hold.**\n");
    }
    if report.quick {
        out.push_str("Quick settings: smaller samples, larger errors.\n\n");
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
    out.push_str("## Claims\n\n");
    let paper = report.has_published();
    table(out, &[Some(""), Some("claim"), Some("value"), paper.then_some("paper"), Some("decided by")]);
    for row in report.claims() {
        let mark = if row.holds == Some(true) { "✓" } else { "✗" };
        let text = |t: &Option<String>| Some(t.clone().unwrap_or_default());
        let paper = paper.then(|| row.paper_text());
        line(out, &[Some(mark.to_string()), text(&row.claim), Some(row.value_text()), paper, text(&row.rule)]);
    }
    out.push('\n');
}

fn numbers(out: &mut String, report: &Report) {
    out.push_str("## Numbers\n\n");
    let (paper, seeds) = (report.has_published(), report.has_seeds());
    table(out, &[Some(""), Some("value"), paper.then_some("paper"), seeds.then_some("seeds")]);
    for row in &report.rows {
        let (paper, seeds) = (paper.then(|| row.paper_text()), seeds.then(|| row.seeds.to_string()));
        line(out, &[Some(row.name.clone()), Some(row.value_text()), paper, seeds]);
    }
    out.push('\n');
}

/// The head of a table; columns that are `None` are left out.
fn table(out: &mut String, names: &[Option<&str>]) {
    let names: Vec<&str> = names.iter().flatten().copied().collect();
    let heads: String =
        names.iter().map(|name| if name.is_empty() { " |".into() } else { format!(" {name} |") }).collect();
    let _ = writeln!(out, "|{heads}\n|{}", "---|".repeat(names.len()));
}

fn line(out: &mut String, cells: &[Option<String>]) {
    let cells: String = cells.iter().flatten().map(|text| format!(" {} |", cell(text))).collect();
    let _ = writeln!(out, "|{cells}");
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
