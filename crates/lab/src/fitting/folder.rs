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
use minvel::fit::{Evaluation, Fit, FitSettings, Goal, History, Leak, LogZ, Model, Procedure, Record, Split};
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

    /// Writes the model and its numbers: what a fit leaves behind, but for its settings and its report.
    fn write_model(&self, model: &Model, summary: &FitSummary) -> Result<(), Error> {
        model.write(&self.model(), &summary.data.coordinates)?;
        file::write(&self.0.join("metrics.csv"), metrics(&summary.history).as_bytes())?;
        file::write(&self.summary(), &serde_json::to_vec_pretty(summary).expect("a summary is plain data"))
    }

    /// Writes a fit that was made without a folder: all that `minvel fit` leaves behind.
    pub fn write(&self, model: &Model, summary: &FitSummary, config: &Config, report: &Report) -> Result<(), Error> {
        file::create_folder(&self.0)?;
        file::write(&self.0.join("config.toml"), config.commented(DEFAULTS).as_bytes())?;
        self.write_model(model, summary)?;
        report.write(&self.0)
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
    /// How near test rows lie to training rows; none of few rows, and in summaries of earlier versions.
    #[serde(default)]
    pub leak: Option<Leak>,
    /// The score where near rows stay together, of kernels alone; where the leak is large.
    #[serde(default)]
    pub blocked: Option<BlockedScore>,
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
    /// Which rows of the data are in which part; not in the file.
    #[serde(skip)]
    pub split: Option<Split>,
}

impl FitSummary {
    /// Of a model that was just fitted, with what else a reader should know.
    pub(super) fn of(
        model: &Model,
        settings: &FitSettings,
        record: Record,
        data: Provenance,
        said: Vec<String>,
        context: &Context,
    ) -> Self {
        let Record { history, evaluation, procedure, leaked_share, leak, split } = record;
        FitSummary {
            version: env!("CARGO_PKG_VERSION").to_string(),
            rows: data.rows,
            distinct_rows: data.distinct_rows,
            data,
            leaked_share,
            leak,
            blocked: None,
            procedure,
            centres: model.kernels().centres(),
            log_z: model.log_z().value,
            partition: model.log_z().clone(),
            objective: settings.objective,
            share: model.share(),
            seeds: settings.seeds,
            kernels: model.kernels().families().to_vec(),
            device: context.device.to_string(),
            seconds: context.seconds(),
            warnings: [history.warnings.clone(), said].concat(),
            evaluation,
            history,
            split,
        }
    }
}

/// A score with near rows kept together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockedScore {
    /// Rows within this distance stay together, as an option: `3.1km`.
    pub distance: String,
    /// Held-out rows of other blocks, judged.
    pub evaluation: Evaluation,
}

/// A fit to be made.
pub struct FitRun<'a> {
    /// The points.
    pub dataset: &'a Dataset,
    /// Rows within this distance, in the units of the manifold, stay together.
    pub block: Option<f64>,
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

/// The error of log Z that is worth a warning, as a part of that of the score.
const NOTICED: f64 = 0.3;
/// Share of repeated rows that is worth a warning.
const MANY: f64 = 0.02;

impl FitRun<'_> {
    /// Fits, judges, and writes everything into the folder, from its checkpoints if there are some; a finished fit is only
    /// read.
    pub fn perform(&self, folder: &RunFolder) -> Result<FitSummary, Error> {
        settings(self.config)?;
        if folder.0.join("report.json").exists() && !folder.work().exists() {
            return folder.read_summary();
        }
        file::create_folder(&folder.work())?;
        file::write(&folder.0.join("config.toml"), self.config.commented(DEFAULTS).as_bytes())?;
        let purpose = format!("fit {} {} {:?}", self.dataset.sha256, self.config.text(), self.block);
        let mut context = Context::new(self.observer, self.stop.clone(), &folder.work(), &purpose);
        (context.threads, context.device, context.save_every) = (self.threads, self.device, self.save_every);

        let (model, summary) = self.learn(&context)?;
        context.go_on()?;
        folder.write_model(&model, &summary)?;
        let report = self.report(&summary, &model, &context)?;
        context.stage("report", 0, "files", || report.write(&folder.0))?;
        remove(&folder.work())?;
        Ok(summary)
    }

    /// The model and the numbers of the fit; writes nothing but checkpoints, where the context keeps some.
    pub fn learn(&self, context: &Context) -> Result<(Model, FitSummary), Error> {
        let settings = settings(self.config)?;
        let fit = fit_of(self.dataset, &settings, self.block).context(context);
        let (model, record) = fit.points(&self.dataset.points)?.into_parts();
        let record = record.expect("it was just fitted");
        let blocked = self.blocked(&settings, record.leak.as_ref(), context)?;
        let known = Known {
            leaked: record.leaked_share,
            leak: record.leak.as_ref(),
            blocked: blocked.as_ref(),
            setting: "kernels.centres",
        };
        let said = warnings(&known, &record.evaluation, &model, &self.dataset.coordinates);
        let summary = FitSummary::of(&model, &settings, record, self.dataset.provenance(), said, context);
        Ok((model, FitSummary { blocked, ..summary }))
    }

    /// The score of kernels where near rows stay together, if random rows leak and nobody said what belongs together.
    fn blocked(
        &self,
        settings: &FitSettings,
        leak: Option<&Leak>,
        context: &Context,
    ) -> Result<Option<BlockedScore>, Error> {
        let facts = &self.dataset.facts;
        let told = self.block.is_some() || facts.groups.is_some() || facts.parts.is_some();
        let Some(leak) = leak.filter(|leak| leak.is_large() && !told) else { return Ok(None) };
        let distance = self.dataset.coordinates.written(leak.distance);
        let block = self.dataset.coordinates.distance(&distance)?;
        let context = context.within("blocked");
        let kernels = FitSettings { objective: Goal::None, ..settings.clone() };
        let mut fit = Fit::on(&self.dataset.manifold).settings(kernels).block(block).context(&context);
        if let Some(weights) = &facts.weights {
            fit = fit.weights(weights);
        }
        match fit.points(&self.dataset.points) {
            Ok(fitted) => {
                let evaluation = fitted.record().expect("it was just fitted").evaluation.clone();
                Ok(Some(BlockedScore { distance, evaluation }))
            }
            Err(Error::Interrupted) => Err(Error::Interrupted),
            // Nearly all rows are linked: no split keeps them together.
            Err(_) => Ok(None),
        }
    }

    fn report(&self, summary: &FitSummary, model: &Model, context: &Context) -> Result<Report, Error> {
        let all = || self.dataset.points.clone();
        let shown = summary.split.as_ref().map_or_else(all, |split| self.dataset.select(&split.train));
        let report = fit_report(summary, model, &shown, self.config, context)?;
        Ok(Report { versions: self.versions.clone(), revision: self.revision.to_string(), ..report })
    }
}

/// The report of a fit, with figures that show some rows of its data.
pub fn fit_report(
    summary: &FitSummary,
    model: &Model,
    shown: &[f64],
    config: &Config,
    context: &Context,
) -> Result<Report, Error> {
    let look = pages::look(&summary.data.file, &summary.data.coordinates);
    let figures = pages::figures(summary, model, shown, &look, context)?;
    Ok(pages::report(summary, config.json(), config.is_quick(), figures))
}

/// The fit to a data set, with what it says about its rows and the distance within which rows stay together.
pub fn fit_of(dataset: &Dataset, settings: &FitSettings, block: Option<f64>) -> Fit<'static> {
    let (mut fit, facts) = (Fit::on(&dataset.manifold).settings(settings.clone()), &dataset.facts);
    if let Some(weights) = &facts.weights {
        fit = fit.weights(weights);
    }
    if let Some(groups) = &facts.groups {
        fit = fit.groups(groups);
    }
    if let Some(parts) = &facts.parts {
        fit = fit.split(parts);
    }
    if let Some(distance) = block {
        fit = fit.block(distance);
    }
    fit
}

/// What is known about rows that a split tears apart.
pub(super) struct Known<'a> {
    pub leaked: f64,
    pub leak: Option<&'a Leak>,
    pub blocked: Option<&'a BlockedScore>,
    /// What sets the number of clusters.
    pub setting: &'static str,
}

pub(super) fn warnings(
    known: &Known,
    evaluation: &Evaluation,
    model: &Model,
    coordinates: &Coordinates,
) -> Vec<String> {
    let (mut all, leaked) = (vec![], known.leaked);
    if let Some(leak) = known.leak.filter(|leak| leak.is_large()) {
        let distance = coordinates.written(leak.distance);
        let mut what = format!(
            "{:.0} % of the test rows lie within {distance} of a training row; of independent rows of a smooth density {:.0} % would. If near rows \
             belong together (one event, one track), the score is that of further rows of events that the model knows: \
             --block {distance} or --group COLUMN keeps them together.",
            100.0 * leak.share,
            100.0 * leak.expected
        );
        if let Some(blocked) = known.blocked {
            let blocked = &blocked.evaluation;
            what += &format!(
                " Random rows score {}, rows in other blocks {} (kernels alone, fitted again).",
                evaluation.test_nll, blocked.test_nll
            );
        }
        all.push(what);
    }
    if model.kernels().centres() < model.rows() {
        all.push(format!(
            "The kernels stand on {} clusters of the {} training rows, the baselines on the means of these; \
             {} sets how many.",
            model.kernels().centres(),
            model.rows(),
            known.setting
        ));
    }
    if leaked > MANY {
        all.push(format!(
            "{:.0} % of the test rows repeat a training row, so that the score rewards remembering: models that narrow \
             their kernels on repeated points can score without bound. Without --split, repeats stay together.",
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
    let (log_z, score) = (model.log_z(), evaluation.test_nll);
    if log_z.value.std_error > NOTICED * score.std_error {
        all.push(format!(
            "log Z is known to {:.1e} only ({}), which is not small beside the error of the score; {:.0} % of its draws count.",
            log_z.value.std_error,
            log_z.method,
            100.0 * log_z.efficiency
        ));
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
