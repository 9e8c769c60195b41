//! Held-out scores on public data: places on the sphere, and RNA backbones on the torus.
//!
//! **Statement.** NLL = −mean log p of test rows, over random splits 80/10/10; the model less the kernel density with
//! cross-validated bandwidth, split by split. **Source.** Issue 5; the data of [`catalogue`].
//! **Conventions.** Split k is that of seed k, which the fit has too. Test rows decide nothing: networks are stopped, and
//! the share t of the correction is chosen, by validation rows.
//! **Error.** Standard errors over splits; splits share rows, so that they are somewhat too small.
//! **Checked by** its own claims, tests/lab/experiment_fit.rs, tests/real_data/earth.rs.

mod set;
mod table;

use super::recipe::{Fits, Recipe};
use crate::catalogue;
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::table::Dataset;
use minvel::Error;
use minvel::estimate::Estimate;
use minvel::fit::{Evaluation, Model, leaked_share};
use minvel::train::Context;
use serde::{Deserialize, Serialize};
use set::Set;
use std::collections::BTreeMap;
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
    fits: Fits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    seed: u64,
    seeds: usize,
    sets: Vec<String>,
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
        Ok(Earth { seed: this.seed, seeds: this.seeds, sets, fits })
    }

    fn fit(&self, data: &Dataset, seed: u64, context: &Context) -> Result<Outcome, Error> {
        let settings = self.fits.of(seed);
        let split = data.split(seed);
        let (train, validation) = (data.select(&split.train), data.select(&split.validation));
        let (model, history) = Model::learn(data.manifold.clone(), &settings, &train, &validation, context)?;
        let chosen = history.shares.iter().find(|(t, _)| *t == model.share());
        Ok(Outcome {
            rows: data.rows(),
            distinct_rows: data.distinct_rows(),
            leaked_share: leaked_share(&data.points, data.manifold.ambient(), &split),
            evaluation: Evaluation::of(&model, &data.select(&split.test), seed, context)?,
            log_z: model.log_z().value,
            efficiency: model.log_z().efficiency,
            share: model.share(),
            validation_nll: chosen.map_or(f64::NAN, |(_, nll)| *nll),
            seconds: context.seconds(),
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
            let mut splits = vec![];
            for seed in (self.seed..).take(self.seeds) {
                splits.push(runner.unit(&format!("{name}.seed={seed}"), |context| self.fit(&data, seed, context))?);
            }
            let table = Table { set, splits };
            findings.rows.extend(table.rows());
            findings.figures.push(table.figure());
            findings.notes.extend(table.warning());
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
