//! A run folder: what a fit leaves behind, and how it goes on after an interruption.
//!
//! | file | what |
//! |---|---|
//! | `config.toml` | every setting |
//! | `model.safetensors` | the model ([`Model::write`]) |
//! | `metrics.csv` | objectives while learning |
//! | `summary.json` | the numbers ([`FitSummary`]) |
//! | `report.json`, `.md`, `.html`, figures | the report |
//! | `work/` | checkpoints, while the fit is at work |
//!
//! All are written wholly or not at all; the report comes last: where it is, everything is.

use super::pages;
use super::settings::{DEFAULTS, settings};
use crate::experiment::Config;
use crate::report::{Report, Versions};
use crate::table::{Coordinates, Dataset, Provenance};
use minvel::density::Family;
use minvel::estimate::Estimate;
use minvel::fit::{Evaluation, Fit, Goal, History, LogZ, Model, Procedure, Record};
use minvel::train::{Context, Observer, Stop};
use minvel::{Device, Error, file};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFolder(pub PathBuf);

impl RunFolder {
    /// The model's file.
    pub fn model(&self) -> PathBuf {
        self.0.join("model.safetensors")
    }

    /// The numbers' file.
    pub fn summary(&self) -> PathBuf {
        self.0.join("summary.json")
    }

    fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// The model of a finished run, and the columns its points were.
    pub fn read_model(&self) -> Result<(Model, Coordinates), Error> {
        let path = self.model();
        let what = match (path.is_file(), self.0.is_dir(), self.0.join("config.toml").is_file()) {
            (true, ..) => return read_model(&path),
            (_, true, true) => "this fit is not finished (no model.safetensors): go on with `minvel fit --resume`",
            (_, true, false) => "there is no fit in this folder (no model.safetensors)",
            (_, false, _) => "there is no such folder: give that of a fit, which holds its model.safetensors",
        };
        Err(Error::content(&self.0, what))
    }

    /// The numbers of a finished run.
    pub fn read_summary(&self) -> Result<FitSummary, Error> {
        let path = self.summary();
        let text = file::read_text_if_there(&path)?;
        let text = text.ok_or_else(|| Error::content(&self.0, "there is no finished fit here (no summary.json)"))?;
        serde_json::from_str(&text).map_err(|e| Error::content(&path, format!("unreadable: {e}")))
    }
}

/// The model of a file, and the columns its points were.
pub fn read_model(path: &Path) -> Result<(Model, Coordinates), Error> {
    let (model, coordinates) = Model::read::<Coordinates>(path)?;
    match coordinates.table(&[]) {
        Ok(_) => Ok((model, coordinates)),
        Err(_) => Err(Error::content(path, "the model is broken: fit it again")),
    }
}

/// What came out of a fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitSummary {
    /// Version of the program.
    pub version: String,
    /// Which data, and what was guessed about it.
    pub data: Provenance,
    /// Rows of the data.
    pub rows: usize,
    /// Different points among them.
    pub distinct_rows: usize,
    /// Share of the test rows that repeat a training row.
    pub leaked_share: f64,
    /// Which rows the model is made of, and which score it.
    pub procedure: Procedure,
    /// Points that kernels and baselines stand on: all rows that the model is made of, or means of clusters of them.
    pub centres: usize,
    /// Held-out rows, judged.
    #[serde(flatten)]
    pub evaluation: Evaluation,
    /// log Z of the energy, with its error.
    pub log_z: Estimate,
    /// How it was found, from below and above where by draws, and how evenly they weigh.
    pub partition: LogZ,
    /// What the correction minimised.
    pub objective: Goal,
    /// Share t of the correction, chosen by the validation rows, or 0 where it was dropped.
    pub share: f64,
    /// Networks, of which the mean was taken.
    pub seeds: usize,
    /// Kernels and their shares.
    pub kernels: Vec<Family>,
    /// Where it ran.
    pub device: String,
    /// How long it took, also before an interruption.
    pub seconds: f64,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// How the model came about.
    pub history: History,
}

/// A fit to be made.
pub struct FitRun<'a> {
    /// The points.
    pub dataset: &'a Dataset,
    /// The settings as written.
    pub config: &'a Config,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// Whether to stop.
    pub stop: Stop,
    /// Threads; 0 means all cores.
    pub threads: usize,
    /// Where networks learn.
    pub device: Device,
    /// Time between two checkpoints.
    pub save_every: Duration,
    /// Of what the program is made.
    pub versions: Versions,
    /// Its git revision.
    pub revision: &'a str,
}

/// Share of repeated rows that is worth a warning.
const MANY: f64 = 0.02;

impl FitRun<'_> {
    /// Fits, judges, and writes everything into the folder, from its checkpoints if there are some; a finished fit is only
    /// read.
    pub fn perform(&self, folder: &RunFolder) -> Result<FitSummary, Error> {
        let settings = settings(self.config)?;
        if folder.0.join("report.json").exists() && !folder.work().exists() {
            return folder.read_summary();
        }
        file::create_folder(&folder.work())?;
        file::write(&folder.0.join("config.toml"), self.config.commented(DEFAULTS).as_bytes())?;
        let purpose = format!("fit {} {}", self.dataset.sha256, self.config.text());
        let mut context = Context::new(self.observer, self.stop.clone(), &folder.work(), &purpose);
        (context.threads, context.device, context.save_every) = (self.threads, self.device, self.save_every);

        let fit = Fit::on(&self.dataset.manifold).settings(settings.clone()).context(&context);
        let (model, record) = fit.points(&self.dataset.points)?.into_parts();
        let Record { history, evaluation, procedure, leaked_share } = record.expect("it was just fitted");
        let summary = FitSummary {
            version: env!("CARGO_PKG_VERSION").to_string(),
            data: self.dataset.provenance(),
            rows: self.dataset.rows(),
            distinct_rows: self.dataset.distinct_rows(),
            leaked_share,
            procedure,
            centres: model.kernels().centres(),
            log_z: model.log_z().value,
            partition: model.log_z().clone(),
            objective: settings.objective,
            share: model.share(),
            seeds: settings.seeds,
            kernels: model.kernels().families().to_vec(),
            device: self.device.to_string(),
            seconds: context.seconds(),
            warnings: [history.warnings.clone(), warnings(leaked_share, &evaluation, &model)].concat(),
            evaluation,
            history,
        };
        context.go_on()?;
        model.write(&folder.model(), &self.dataset.coordinates)?;
        file::write(&folder.0.join("metrics.csv"), metrics(&summary.history).as_bytes())?;
        let text = serde_json::to_vec_pretty(&summary).expect("a summary is plain data");
        file::write(&folder.summary(), &text)?;
        let report = self.report(&summary, &model, &context)?;
        context.stage("report", 0, "files", || report.write(&folder.0))?;
        remove(&folder.work())?;
        Ok(summary)
    }

    fn report(&self, summary: &FitSummary, model: &Model, context: &Context) -> Result<Report, Error> {
        let shown = match summary.procedure {
            Procedure::Split { .. } => self.dataset.select(&self.dataset.split(model.settings().seed).train),
            Procedure::CrossValidation { .. } => self.dataset.points.clone(),
        };
        let look = pages::look(&summary.data.file, &summary.data.coordinates);
        let figures = pages::figures(summary, model, &shown, &look, context)?;
        let report = pages::report(summary, self.config.json(), self.config.is_quick(), figures);
        Ok(Report { versions: self.versions.clone(), revision: self.revision.to_string(), ..report })
    }
}

fn warnings(leaked: f64, evaluation: &Evaluation, model: &Model) -> Vec<String> {
    let mut all = vec![];
    if model.kernels().centres() < model.rows() {
        all.push(format!(
            "The kernels stand on {} clusters of the {} training rows, the baselines on the means of these, all counted alike; \
             kernels.centres sets how many.",
            model.kernels().centres(),
            model.rows()
        ));
    }
    if leaked > MANY {
        all.push(format!(
            "{:.0} % of the test rows repeat a training row, so that the score rewards remembering: models that narrow \
             their kernels on repeated points can score without bound. Compare with --distinct, which drops repeats.",
            100.0 * leaked
        ));
    }
    if evaluation.goodness.p_value < 0.01 {
        all.push(format!(
            "The tests of fit find that the held-out rows do not come from the model exactly (p = {:.3}); with many rows \
             small errors suffice for that.",
            evaluation.goodness.p_value
        ));
    }
    if model.log_z().efficiency < 0.1 {
        all.push(format!("Only {:.0} % of the draws behind log Z count.", 100.0 * model.log_z().efficiency));
    }
    all
}

fn metrics(history: &History) -> String {
    let mut out = String::from("step,seed,train,validation,score\n");
    for curve in &history.curves {
        for (seed, (train, validation)) in curve.train.iter().zip(&curve.validation).enumerate() {
            let train = if train.is_finite() { train.to_string() } else { String::new() };
            out += &format!("{},{seed},{train},{validation},{}\n", curve.step, curve.score[seed]);
        }
    }
    out
}

fn remove(folder: &Path) -> Result<(), Error> {
    std::fs::remove_dir_all(folder).map_err(|e| Error::file(folder, "remove", e))
}
