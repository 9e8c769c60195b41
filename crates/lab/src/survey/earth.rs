//! Held-out scores on public data: places on the sphere, and RNA backbones on the torus.
//!
//! **Statement.** NLL = −mean log p of test rows, over random splits 80/10/10; the model less the kernel density with
//! cross-validated bandwidth, split by split. Beside it the score of kernels where repeats stay together, and where rows within the
//! distance of [`minvel::fit::Leak`] do. **Source.** Issue 5; the data of [`catalogue`]; published
//! splits ([`splits`]). **Conventions.** Split k is the published one of seed k, where it is at hand, or our own of seed k, which the fit has
//! too. What stays together goes where its first row is in that split. Test rows decide nothing: networks are stopped, and
//! the share t of the correction is chosen, by validation rows.
//! **Error.** Standard errors over splits; splits share rows, so that they are somewhat too small.
//! **Checked by** its own claims, tests/lab/experiment_fit.rs, tests/real_data/earth.rs.

mod set;
mod table;

use super::recipe::{Fits, Recipe};
use super::splits;
use crate::catalogue;
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::table::Dataset;
use minvel::Error;
use minvel::estimate::Estimate;
use minvel::fit::{Evaluation, FewSettings, Fit, FitSettings, Goal, Model, Split, leaked_share, linked_rows};
use minvel::train::Context;
use serde::{Deserialize, Serialize};
use set::Set;
use std::collections::BTreeMap;
use std::path::PathBuf;
use table::Table;

/// Its line in the list.
pub const ENTRY: Entry = Entry {
    name: "earth",
    source: "Public data sets",
    about: "Held-out scores of `minvel fit` on locations on Earth and on RNA, against kernel densities and published \
            numbers",
    settings: include_str!("../../experiments/earth.toml"),
    check: |config| Ok(Box::new(Earth::check(config)?)),
    hidden: false,
};

/// The sets, and how they are fitted.
struct Earth {
    seed: u64,
    seeds: usize,
    sets: Vec<&'static Set>,
    splits: Splits,
    fits: Fits,
}

/// Which splits there are.
#[derive(Deserialize)]
#[serde(from = "String")]
enum Splits {
    /// Published ones where they are at hand, else our own.
    Published,
    Own,
    /// Those of files in a folder.
    Folder(PathBuf),
}

impl From<String> for Splits {
    fn from(name: String) -> Self {
        match name.as_str() {
            "published" => Splits::Published,
            "own" => Splits::Own,
            _ => Splits::Folder(PathBuf::from(name)),
        }
    }
}

impl Splits {
    /// The file with those of a set, if there is one.
    fn file_of(&self, set: &Set) -> Option<PathBuf> {
        match self {
            Splits::Published => splits::file_of(set.data),
            Splits::Own => None,
            Splits::Folder(folder) => Some(folder.join(format!("{}.csv", set.data))),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    seed: u64,
    seeds: usize,
    sets: Vec<String>,
    splits: Splits,
    fit: Recipe,
}

/// What a fit to one split led to.
#[derive(Serialize, Deserialize)]
struct Outcome {
    /// Rows of the set.
    rows: usize,
    /// Different ones.
    distinct_rows: usize,
    /// Share of the test rows that repeat a training row.
    leaked_share: f64,
    /// Of the test rows, looked at once.
    evaluation: Evaluation,
    /// Repeats kept together, kernels alone.
    #[serde(default)]
    distinct: Option<View>,
    /// Near rows kept together, kernels alone.
    #[serde(default)]
    blocked: Option<View>,
    /// log Z.
    log_z: Estimate,
    /// Effective share of the draws behind it.
    efficiency: f64,
    /// t.
    share: f64,
    /// Negative log-likelihood of the validation rows at t.
    #[serde(with = "minvel::estimate::number")]
    validation_nll: f64,
    /// Of learning and judging.
    seconds: f64,
}

/// The score of another split.
#[derive(Serialize, Deserialize)]
struct View {
    /// Rows within this distance stay together, as an option of the program; repeats where it is empty.
    distance: String,
    /// Of test rows.
    nll: Estimate,
    /// Less that of the kernel density, row by row.
    gain: Estimate,
}

impl Earth {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let fits = this.fit.fits(this.seed)?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("sets", !this.sets.is_empty(), "needs at least one set")?;
        let mut sets: Vec<&'static Set> = vec![];
        for name in &this.sets {
            let known: Vec<&str> = Set::LIST.iter().map(|s| s.name).collect();
            let what = format!("contains `{name}`; expected {}", known.join(", "));
            let set = Set::named(name).ok_or_else(|| config.refuse("sets", &what))?;
            demand("sets", sets.iter().all(|known| known.name != set.name), &format!("contains `{name}` twice"))?;
            sets.push(set);
        }
        Ok(Earth { seed: this.seed, seeds: this.seeds, sets, splits: this.splits, fits })
    }

    /// The split of a seed: our own, or that of a file of others, in the order of their seeds.
    fn split(&self, set: &Set, data: &Dataset, seed: u64) -> Result<Split, Error> {
        match self.splits.file_of(set) {
            Some(path) => Ok(data.carried(splits::read(&path, seed - self.seed, data.file_rows())?)),
            None => Ok(data.split(seed)),
        }
    }

    /// Kernels on the same data with repeats kept together, and with near rows kept together.
    fn views(&self, data: &Dataset, split: &Split, seed: u64, context: &Context) -> Result<[Option<View>; 2], Error> {
        let settings = self.fits.of(seed);
        let few = FewSettings { rows: 0, ..settings.few.clone() };
        let settings = FitSettings { objective: Goal::None, few, ..settings };
        let view = |distance: String, name: &str| {
            let context = context.within(name);
            let mut fit = Fit::on(&data.manifold).settings(settings.clone()).context(&context);
            let near = (!distance.is_empty()).then(|| data.coordinates.distance(&distance)).transpose()?;
            if let Some(near) = near {
                fit = fit.block(near);
            }
            let groups = linked_rows(&data.manifold, &data.points, near, &context)?;
            let fitted = fit.split(&split.together(&groups).parts()).points(&data.points)?;
            let record = fitted.record().expect("it was just fitted");
            let kde = record.evaluation.baselines.iter().find(|b| b.method == "kde").map(|b| b.difference);
            let gain = kde.unwrap_or(Estimate::single(f64::NAN));
            Ok::<_, Error>((View { distance, nll: record.evaluation.test_nll, gain }, record.leak))
        };
        let (distinct, leak) = view(String::new(), "distinct")?;
        let blocked = leak.map(|leak| data.coordinates.written(leak.distance));
        let blocked = match blocked.map(|distance| view(distance, "blocked")) {
            Some(Err(Error::Interrupted)) => return Err(Error::Interrupted),
            // Where nearly all rows are linked there is no such score.
            found => found.and_then(Result::ok).map(|(view, _)| view),
        };
        Ok([Some(distinct), blocked])
    }

    fn fit(&self, set: &Set, data: &Dataset, seed: u64, context: &Context) -> Result<Outcome, Error> {
        let settings = self.fits.of(seed);
        let split = self.split(set, data, seed)?;
        let (train, validation) = (data.select(&split.train), data.select(&split.validation));
        let (model, history) = Model::learn(data.manifold.clone(), &settings, &train, &validation, context)?;
        let chosen = history.shares.iter().find(|(t, _)| *t == model.share());
        let evaluation = Evaluation::of(&model, data.select(&split.test), seed, context)?;
        // Other views of the same data are no part of the fit.
        let seconds = context.seconds();
        let [distinct, blocked] = self.views(data, &split, seed, context)?;
        Ok(Outcome {
            rows: data.rows(),
            distinct_rows: data.distinct_rows(),
            leaked_share: leaked_share(&data.points, data.manifold.ambient(), &split),
            evaluation,
            distinct,
            blocked,
            log_z: model.log_z().value,
            efficiency: model.log_z().efficiency,
            share: model.share(),
            validation_nll: chosen.map_or(f64::NAN, |(_, nll)| *nll),
            seconds,
        })
    }
}

impl Experiment for Earth {
    fn ready(&self) -> Result<(), Error> {
        let mut missing: Vec<&str> = vec![];
        for set in &self.sets {
            if !catalogue::find(set.data)?.is_at_hand() && !missing.contains(&set.data) {
                missing.push(set.data);
            }
        }
        catalogue::refuse_without(&missing)
    }

    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        runner.plan(self.sets.len() * self.seeds);
        let mut findings = Findings::default();
        let mut files = BTreeMap::new();
        for &set in &self.sets {
            let name = set.name;
            let data = set.read()?;
            files.insert(set.data, data.sha256.clone());
            let splits = runner.each((self.seed..).take(self.seeds), |runner, seed| {
                runner.unit(&format!("{name}.seed={seed}"), |context| self.fit(set, &data, seed, context))
            });
            let Some(splits) = runner.if_finished(splits)? else { continue };
            let table = Table { set, splits };
            findings.rows.extend(table.rows());
            findings.figures.push(table.figure());
            findings.notes.extend(table.warning());
            if matches!(self.splits, Splits::Published) && self.splits.file_of(set).is_none() {
                let what = format!("{name}: our own splits, since there is no data/splits/{}.csv here.", set.data);
                findings.notes.push(what);
            }
        }
        let files: Vec<String> = files.iter().map(|(name, sum)| format!("{name} {}…", &sum[..12])).collect();
        findings.notes.push(
            "± are standard errors over splits, which share rows and so understate the error somewhat; with a single \
             split, over its test rows. Differences are taken within each split, on the same test rows."
                .into(),
        );
        findings.notes.push(set::PUBLISHED.into());
        findings
            .notes
            .push("Seconds cover training and evaluation, on a machine that may have been running other jobs.".into());
        findings.notes.push(self.fits.note());
        findings.notes.push(format!("SHA-256 of the files: {}.", files.join(", ")));
        Ok(findings)
    }
}
