//! Reports: `report.json` is the truth; Markdown, HTML and pictures are renderings of it.
//!
//! A [`Row`] is a number with its error, the paper's number where it has one, and a claim that a stated [`Claim`] decides.
//! **Checked by** tests/lab/report.rs.

mod html;
pub mod json;
mod machine;
mod markdown;
mod rule;
pub mod student;

pub use machine::{Machine, Versions};
pub use rule::Claim;

use crate::plot::{Figure, Theme};
use minvel::estimate::{Estimate, format, number};
use minvel::{Error, file};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What came out of an experiment, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the experiment, or of the group.
    pub experiment: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// The figure, table or section it reproduces.
    pub source: String,
    /// Every setting, with its value.
    pub config: serde_json::Value,
    /// Whether these are the quick settings.
    pub quick: bool,
    /// Where it ran.
    pub device: String,
    /// Time of the work, also of what an interrupted run had done before.
    pub seconds: f64,
    /// Time of each part.
    pub timings: Vec<Timing>,
    /// The computer.
    pub machine: Machine,
    /// Of what the program is made.
    pub versions: Versions,
    /// Git revision of the program, with `+` if files had changed since; `unknown` where it does not know.
    pub revision: String,
    /// Numbers and claims.
    pub rows: Vec<Row>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
}

/// How long a part took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Which part.
    pub name: String,
    /// How long.
    pub seconds: f64,
}

/// A number of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The number.
    pub value: f64,
    /// Its ±, where it has one.
    pub error: Option<f64>,
}

/// A number, and what is claimed about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// Its value.
    #[serde(with = "number")]
    pub value: f64,
    /// Its standard error; NaN where it is not known.
    #[serde(with = "number")]
    pub std_error: f64,
    /// Its unit; empty for a pure number.
    #[serde(default)]
    pub unit: String,
    /// Trainings (seeds) behind it.
    pub seeds: usize,
    /// The paper's number.
    pub paper: Option<Published>,
    /// What is claimed about it, a sentence.
    pub claim: Option<String>,
    /// Whether it is so.
    pub holds: Option<bool>,
    /// The rule that decided.
    pub rule: Option<String>,
}

impl Row {
    /// A number from so many seeds.
    pub fn new(name: &str, estimate: Estimate, seeds: usize) -> Self {
        Row {
            name: name.to_string(),
            value: estimate.mean,
            std_error: estimate.std_error,
            unit: String::new(),
            seeds,
            paper: None,
            claim: None,
            holds: None,
            rule: None,
        }
    }

    /// The same with a unit.
    pub fn unit(self, unit: &str) -> Self {
        Row { unit: unit.to_string(), ..self }
    }

    /// The same beside the paper's number.
    pub fn paper(self, value: f64, error: Option<f64>) -> Self {
        Row { paper: Some(Published { value, error }), ..self }
    }

    /// The same with a claim, which the rule decides.
    pub fn claim(self, claim: &str, rule: Claim) -> Self {
        let holds = rule.holds(self.value, self.std_error);
        self.decided(claim, &rule.to_string(), holds)
    }

    /// The same, a difference, with the claim that it is below 0, by Student's two-sided test at 5 %; states the test's
    /// numbers.
    pub fn significantly_below(self, claim: &str, freedom: u64) -> Self {
        let sigmas = student::critical(student::CONFIDENCE, freedom);
        let rule = Claim::SurelyBelow { limit: 0.0, sigmas };
        let holds = rule.holds(self.value, self.std_error);
        let words = format!("{rule} ({})", student::words(self.value, self.std_error, freedom));
        self.decided(claim, &words, holds)
    }

    /// The same with a claim that was decided elsewhere by the rule stated.
    pub fn decided(self, claim: &str, rule: &str, holds: bool) -> Self {
        Row { claim: Some(claim.to_string()), holds: Some(holds), rule: Some(rule.to_string()), ..self }
    }

    /// Value ± error and unit, as text.
    pub fn value_text(&self) -> String {
        format!("{} {}", format::with_error(self.value, Some(self.std_error)), self.unit).trim_end().to_string()
    }

    /// The paper's value ± error, as text; empty where there is none.
    pub fn paper_text(&self) -> String {
        self.paper.map_or(String::new(), |p| format::with_error(p.value, p.error))
    }
}

impl Report {
    /// Rows that claim something.
    pub fn claims(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|r| r.claim.is_some())
    }

    /// Whether any number stands beside one of the paper.
    fn has_published(&self) -> bool {
        self.rows.iter().any(|row| row.paper.is_some())
    }

    /// Whether any number comes from several trainings.
    fn has_seeds(&self) -> bool {
        self.rows.iter().any(|row| row.seeds > 1)
    }

    /// How many claims hold, of how many.
    pub fn score(&self) -> (usize, usize) {
        (self.claims().filter(|r| r.holds == Some(true)).count(), self.claims().count())
    }

    /// One report of several: rows and figures carry the name of their experiment.
    pub fn together(name: &str, about: &str, parts: &[Report]) -> Report {
        let first = parts.first().expect("a report of at least one experiment");
        let prefixed = |part: &Report, own: &str, between: &str| format!("{}{between}{own}", part.experiment);
        let rows = |p: &Report| -> Vec<Row> {
            p.rows.iter().map(|r| Row { name: prefixed(p, &r.name, ": "), ..r.clone() }).collect()
        };
        let figures = |p: &Report| -> Vec<Figure> {
            p.figures.iter().map(|f| Figure { name: prefixed(p, &f.name, "-"), ..f.clone() }).collect()
        };
        let configs = parts.iter().map(|p| (p.experiment.clone(), p.config.clone()));
        Report {
            experiment: name.to_string(),
            about: about.to_string(),
            source: parts.iter().map(|p| p.source.as_str()).collect::<Vec<_>>().join("; "),
            config: configs.collect::<serde_json::Map<_, _>>().into(),
            seconds: parts.iter().map(|p| p.seconds).sum(),
            timings: parts.iter().map(|p| Timing { name: p.experiment.clone(), seconds: p.seconds }).collect(),
            rows: parts.iter().flat_map(rows).collect(),
            figures: parts.iter().flat_map(figures).collect(),
            notes: parts.iter().flat_map(|p| p.notes.iter().map(|n| prefixed(p, n, ": "))).collect(),
            ..first.clone()
        }
    }

    /// The truth.
    pub fn json(&self) -> String {
        json::text(self).expect("a report is plain data")
    }

    /// The truth, read back.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = file::read_text(path)?;
        let report: Report =
            serde_json::from_str(&text).map_err(|e| Error::content(path, format!("this is not a report: {e}")))?;
        // names become those of files, which must lie in the folder of the report
        let is_plain = |name: &str| Path::new(name).file_name().is_some_and(|own| own == name) && !name.contains('\\');
        match report.figures.iter().find(|figure| !is_plain(&figure.name)) {
            Some(figure) => {
                let what = format!("figure `{}` does not have a plain file name", figure.name);
                Err(Error::content(path, what))
            }
            None => Ok(report),
        }
    }

    /// As Markdown; pictures are the PNG files beside it.
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// As a page that needs no other file.
    pub fn html(&self) -> String {
        let inline: Vec<String> = self.figures.iter().map(|figure| figure.plot.svg(Theme::Inline)).collect();
        html::render(self, &inline)
    }

    /// Writes figures, renderings and, last of all, `report.json`: where it is, everything is.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        file::create_folder(folder)?;
        let mut inline = vec![];
        for figure in &self.figures {
            let drawn = figure.drawn();
            drawn.write(folder, &figure.name)?;
            inline.push(drawn.inline);
        }
        file::write(&folder.join("report.md"), self.markdown().as_bytes())?;
        file::write(&folder.join("report.html"), html::render(self, &inline).as_bytes())?;
        file::write(&folder.join("report.json"), self.json().as_bytes())
    }
}
