//! Few rows of known laws: whether densities integrate to one, and whether scores are honest.
//!
//! **Statement.** ∫p dvol = 1; the cross-validated score is within 2σ of that of fresh points for about 95 % of the fits.
//! **Conventions.** Each set is fitted as `minvel fit` does, and from `split` rows on once more with split rows and a correction.
//! **Error.** ∫p by cells that know nothing of the fit's quadrature; what they miss shows in ∫a, the kernels alone, which are
//! normalised.
//! **Checked by** its own claims, tests/lab/experiment_fit.rs.

mod line;
mod plane;

use super::laws::{LAWS, Law, Place, places, unit};
use super::recipe::{Fits, Recipe};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::report::{Claim, Row};
use minvel::Error;
use minvel::estimate::Estimate;
use minvel::fit::{Fit, Model};
use minvel::train::Context;
use serde::{Deserialize, Serialize};

/// Its line in the list.
pub const ENTRY: Entry = Entry {
    name: "integrals",
    source: "Few rows",
    about: "Eight made-up laws on circle, sphere, hyperbolic and flat plane, 20 to 300 rows: integrals of `minvel fit`, and the ± of its scores",
    settings: include_str!("../../experiments/integrals.toml"),
    check: |config| Ok(Box::new(Integrals::check(config)?)),
    hidden: false,
};

/// What is claimed of |∫p − 1|.
const WHOLE: f64 = 1e-4;
/// Draws of a model that tell where it is high, for cells.
const DRAWS: usize = 20_000;

/// The survey: its settings, the manifolds with their names, and how laws on them are fitted.
struct Integrals {
    settings: Settings,
    manifolds: Vec<Place>,
    fits: Fits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    seed: u64,
    seeds: usize,
    manifolds: Vec<String>,
    rows: Vec<usize>,
    split: usize,
    fresh: usize,
    fit: Recipe,
}

/// A density, integrated.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Whole {
    /// ∫p − 1,
    #[serde(with = "minvel::estimate::number")]
    excess: f64,
    /// and that of the kernels alone: the error of the cells.
    #[serde(with = "minvel::estimate::number")]
    kernels: f64,
    /// Share of the correction.
    share: f64,
    /// Error of log Z.
    #[serde(with = "minvel::estimate::number")]
    error: f64,
}

/// What came of one data set.
#[derive(Serialize, Deserialize)]
struct Found {
    /// The model of `minvel fit`.
    own: Whole,
    /// That of split rows with a correction.
    split: Option<Whole>,
    /// The cross-validated NLL less that of fresh points, in its standard errors.
    #[serde(with = "minvel::estimate::number")]
    z: f64,
    seconds: f64,
}

impl Integrals {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let fits = this.fit.fits(this.seed)?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("rows", !this.rows.is_empty() && this.rows.iter().all(|n| *n >= 5), "must be at least 5 each")?;
        demand("split", this.split >= 20, "must be at least 20")?;
        demand("fresh", this.fresh >= 100, "must be at least 100")?;
        let manifolds = places(config, &this.manifolds)?;
        Ok(Integrals { settings: this, manifolds, fits })
    }

    fn find(&self, place: &Place, law: &Law, rows: usize, k: usize, context: &Context) -> Result<Found, Error> {
        let (manifold, this) = (&place.1, &self.settings);
        let [data, fresh] = law.sets(place, [rows, this.fresh], (this.seed, k));
        let settings = self.fits.of(this.seed + k as u64);
        let own_context = context.within("own");
        let fit = Fit::on(manifold).settings(settings.clone()).context(&own_context).points(&data)?;
        let nll = |logs: Vec<f64>| -logs.iter().sum::<f64>() / logs.len() as f64;
        let own = nll(fit.model().log_density(&fresh, context)?);
        let score = fit.record().expect("it was just fitted").evaluation.test_nll;
        let mut split = None;
        if rows >= this.split {
            let mut always = settings.clone();
            always.few.rows = 0;
            let own_context = context.within("split");
            let model = Fit::on(manifold).settings(always).context(&own_context).points(&data)?;
            split = Some(self.whole(model.model(), context)?);
        }
        let own_whole = self.whole(fit.model(), context)?;
        let z = (score.mean - own) / score.std_error;
        Ok(Found { own: own_whole, split, z, seconds: context.seconds() })
    }

    /// A model and its kernels, integrated.
    fn whole(&self, model: &Model, context: &Context) -> Result<Whole, Error> {
        let (manifold, centres) = (&**model.manifold(), model.centres());
        let logs = |points: &[f64]| -> Result<Vec<Vec<f64>>, Error> {
            Ok(vec![model.log_density(points, context)?, model.log_anchor(points, context)?])
        };
        let integrals = match manifold.dim() {
            1 => {
                let grid = line::grid(manifold, &centres);
                let sum = |logs: &Vec<f64>| grid.weights.iter().zip(logs).map(|(w, l)| w * l.exp()).sum();
                logs(&grid.points)?.iter().map(sum).collect()
            }
            _ => {
                let draws = model.sample(DRAWS, model.settings().seed, context)?.points;
                plane::integrals(manifold, &centres, &draws, &logs, context)?
            }
        };
        Ok(Whole {
            excess: integrals[0] - 1.0,
            kernels: integrals[1] - 1.0,
            share: model.share(),
            error: model.log_z().value.std_error,
        })
    }
}

impl Experiment for Integrals {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        runner.plan(self.manifolds.len() * self.settings.rows.len() * LAWS.len());
        let all = runner.each(&self.manifolds, |runner, place| {
            runner.each(&self.settings.rows, |runner, &count| {
                runner.each(LAWS.iter().enumerate(), |runner, (l, law)| {
                    let find = |k: usize, context: &Context| self.find(place, law, count, k, context);
                    unit(runner, (place, count, l), self.settings.seeds, find)
                })
            })
        })?;
        let mut rows = vec![];
        for (place, of_sizes) in self.manifolds.iter().zip(all) {
            let name = &place.0;
            let found: Vec<Found> = of_sizes.into_iter().flatten().flatten().collect();
            rows.extend(summary(name, &found));
        }
        let laws: Vec<&str> = LAWS.iter().map(|law| law.name).collect();
        let notes = vec![
            format!("Laws: {}; {} data sets of each law and size.", laws.join(", "), self.settings.seeds),
            "∫p differs from 1 by the error of log Z and by that of the cells, which is that of the kernels alone."
                .into(),
            self.fits.note(),
        ];
        Ok(Findings { rows, figures: vec![], notes })
    }
}

/// What all data sets on a manifold say together.
fn summary(name: &str, found: &[Found]) -> Vec<Row> {
    // not `max`, which forgets NaN
    let largest =
        |all: Vec<f64>| Estimate::single(all.into_iter().reduce(|a, b| if a >= b { a } else { b }).unwrap_or(f64::NAN));
    let row = |what: &str, value: Estimate| Row::new(&format!("{name}: {what}"), value, found.len());
    let own: Vec<Whole> = found.iter().map(|f| f.own).collect();
    let split: Vec<Whole> = found.iter().filter_map(|f| f.split).collect();
    let excess = |all: &[Whole]| largest(all.iter().map(|w| w.excess.abs()).collect());
    let kernels = |all: &[Whole]| largest(all.iter().map(|w| w.kernels.abs()).collect());
    let within = found.iter().filter(|f| f.z.abs() <= 2.0).count() as f64 / found.len() as f64;
    let mut rows = vec![
        row("largest |∫p − 1|", excess(&own))
            .claim(&format!("{name}: every density integrates to one"), Claim::Below(WHOLE)),
        row("largest |∫ of the kernels − 1|, the error of the cells", kernels(&own)),
        row("share of scores within 2 σ of that of fresh points", Estimate::exact(within)),
        row("seconds of the longest data set", largest(found.iter().map(|f| f.seconds).collect())).unit("s"),
    ];
    if !split.is_empty() {
        let corrected = split.iter().filter(|w| w.share > 0.0).count();
        rows.extend([
            row("split rows: largest |∫p − 1|", excess(&split)).claim(
                &format!("{name}: every density of split rows with a correction integrates to one"),
                Claim::Below(WHOLE),
            ),
            row("split rows: largest |∫ of the kernels − 1|, the error of the cells", kernels(&split)),
            row("split rows: largest error of log Z", largest(split.iter().map(|w| w.error).collect())),
            row("split rows: share of fits with a correction", Estimate::exact(corrected as f64 / split.len() as f64)),
        ]);
    }
    rows
}
