//! Reports as one page of HTML that needs no other file, light or dark as the reader likes.

use super::{Report, Row};
use crate::plot::escape;
use minvel::estimate::format;
use std::fmt::Write;

const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #1f2328; --paper: #ffffff; --soft: #59636e; --line: #d1d9e0; --good: #00734f; --bad: #b04a00 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16191d; --soft: #a0a8b0; --line: #3a4048; --good: #35c79b; --bad: #ff9a4d } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 860px; margin: 2rem auto; padding: 0 1rem }
h1 { margin-bottom: 0 } .about { color: var(--soft); margin-top: .2rem }
.score { font-size: 1.2rem; font-weight: 600 }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: .92rem }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line) }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums } td.small { color: var(--soft); font-size: .85rem }
.good { color: var(--good); font-weight: 700 } .bad { color: var(--bad); font-weight: 700 }
figure { margin: 1.5rem 0 } figure svg { width: 100%; height: auto } figcaption { color: var(--soft); font-size: .92rem }
@media (prefers-color-scheme: dark) { .dots-0072b2 { filter: brightness(1.4) } [stroke=\"#0072b2\"] { stroke: #3a9bdc } [fill=\"#0072b2\"] { fill: #3a9bdc } }
pre { overflow-x: auto; font-size: .85rem; border: 1px solid var(--line); padding: .8rem; border-radius: 6px }
footer { color: var(--soft); font-size: .85rem; margin-top: 2rem }";

/// The whole report, with its figures as parts of the page.
pub fn render(report: &Report, figures: &[String]) -> String {
    let title = escape(&report.experiment);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>minvel: {title}</title>\n<style>\n{STYLE}\n</style>\n<h1>{title}</h1>\n<p class=\"about\">{} ({})</p>\n",
        escape(&report.about),
        escape(&report.source)
    );
    let (hold, all) = report.score();
    if all > 0 {
        let class = if hold == all { "good" } else { "bad" };
        let _ = writeln!(out, "<p class=\"score {class}\">{hold} of {all} claims hold</p>");
    }
    if report.quick {
        out.push_str("<p>Quick settings: smaller samples, larger errors.</p>\n");
    }
    for (figure, drawn) in report.figures.iter().zip(figures) {
        let caption = escape(&figure.caption);
        let _ = writeln!(out, "<figure>\n{drawn}<figcaption>{caption}</figcaption>\n</figure>");
    }
    claims(&mut out, report);
    numbers(&mut out, report);
    if !report.notes.is_empty() {
        let notes: String = report.notes.iter().map(|n| format!("<li>{}</li>\n", escape(n))).collect();
        let _ = writeln!(out, "<h2>Notes</h2>\n<ul>\n{notes}</ul>");
    }
    provenance(&mut out, report);
    out.push_str("</html>\n");
    out
}

fn claims(out: &mut String, report: &Report) {
    if report.claims().next().is_none() {
        return;
    }
    out.push_str("<h2>Claims</h2>\n<div class=\"scroll\"><table>\n");
    let paper = report.has_published();
    let _ = writeln!(out, "<tr><th></th><th>claim</th><th>value</th>{}<th>decided by</th></tr>", paper_head(paper));
    for row in report.claims() {
        let (class, mark) = if row.holds == Some(true) { ("good", "✓") } else { ("bad", "✗") };
        let text = |t: &Option<String>| escape(t.as_deref().unwrap_or(""));
        let _ = writeln!(
            out,
            "<tr><td class=\"{class}\">{mark}</td><td>{}</td>{}<td class=\"small\">{}</td></tr>",
            text(&row.claim),
            value_cells(row, paper),
            text(&row.rule)
        );
    }
    out.push_str("</table></div>\n");
}

fn numbers(out: &mut String, report: &Report) {
    out.push_str("<h2>Numbers</h2>\n<div class=\"scroll\"><table>\n");
    let paper = report.has_published();
    let seeds = report.has_seeds();
    let head = if seeds { "<th>seeds</th>" } else { "" };
    let _ = writeln!(out, "<tr><th></th><th>value</th>{}{head}</tr>", paper_head(paper));
    for row in &report.rows {
        let seeds = if seeds { format!("<td class=\"number\">{}</td>", row.seeds) } else { String::new() };
        let _ = writeln!(out, "<tr><td>{}</td>{}{seeds}</tr>", escape(&row.name), value_cells(row, paper));
    }
    out.push_str("</table></div>\n");
}

fn paper_head(shown: bool) -> &'static str {
    if shown { "<th>paper</th>" } else { "" }
}

fn value_cells(row: &Row, paper: bool) -> String {
    let cell = |text: &str| format!("<td class=\"number\">{}</td>", escape(text));
    let paper = if paper { cell(&row.paper_text()) } else { String::new() };
    cell(&row.value_text()) + &paper
}

fn provenance(out: &mut String, report: &Report) {
    let config = escape(&super::json::text(&report.config).expect("plain data"));
    let _ = writeln!(out, "<h2>How</h2>\n<details><summary>Settings</summary>\n<pre>{config}</pre>\n</details>");
    out.push_str("<details><summary>Times</summary>\n<table>\n");
    for timing in &report.timings {
        let time = format::duration(timing.seconds);
        let _ = writeln!(out, "<tr><td>{}</td><td class=\"number\">{time}</td></tr>", escape(&timing.name));
    }
    let (machine, versions) = (&report.machine, &report.versions);
    let _ = writeln!(
        out,
        "</table>\n</details>\n<footer>{} on {}: {}, {} cores, {} GiB, {}; minvel {} ({}), {}</footer>",
        format::duration(report.seconds),
        escape(&report.device),
        escape(&machine.cpu),
        machine.cores,
        machine.memory_gib,
        escape(&machine.system),
        escape(&versions.minvel),
        escape(&report.revision),
        escape(&versions.rustc)
    );
}
