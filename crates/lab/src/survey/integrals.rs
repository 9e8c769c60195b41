//! Few rows of known laws: whether densities integrate to one, and how they score.
//!
//! **Statement.** ∫p dvol = 1; E log(plain/p) ≤ 0.02 in the mean, plain the kernel density of the same rows; the
//! cross-validated score is within 2σ of that of fresh points for about 95 % of the fits.
//! **Source.** Issue 17. **Conventions.** Laws are mixtures of natural kernels at given distances from the origin, the same on every
//! manifold. Each set is fitted as `minvel fit` does, and from `split` rows on once more with split rows and a correction.
//! **Error.** ∫p by a grid, whose error is that of ∫a, the kernels alone, which are normalised.
//! **Checked by** its own claims, tests/lab/experiment_fit.rs.

mod line;

use super::recipe::{Fits, Recipe};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::report::{Claim, Row};
use minvel::density::{Bump, Density, KernelDensity, Search};
use minvel::estimate::Estimate;
use minvel::fit::{FitSettings, Model, Outcome};
use minvel::manifold::Space;
use minvel::train::Context;
use minvel::{Error, Manifold, manifold};
use minvel_engine::random::{Key, Stream};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Its line in the list.
pub const ENTRY: Entry = Entry {
    name: "integrals",
    source: "Few rows",
    about: "Seven made-up laws on circle, sphere, hyperbolic and flat plane, 20 to 300 rows: integrals and scores of `minvel fit`",
    settings: include_str!("../../experiments/integrals.toml"),
    check: |config| Ok(Box::new(Integrals::check(config)?)),
    hidden: false,
};

/// What is claimed of |∫p − 1|.
const WHOLE: f64 = 1e-4;
/// What the model may lose to the kernel density, in nats.
const BEHIND: f64 = 0.02;

/// Share, κ, and distance from the origin of each bump.
type Law = (&'static str, &'static [(f64, f64, f64)]);

const LAWS: [Law; 7] = [
    ("wide", &[(1.0, 0.5, 0.0)]),
    ("one bump", &[(1.0, 4.0, 0.5)]),
    ("narrow", &[(1.0, 60.0, -1.0)]),
    ("two opposite", &[(0.5, 8.0, -1.5), (0.5, 8.0, 1.6)]),
    ("uneven pair", &[(0.8, 20.0, 0.0), (0.2, 5.0, 2.0)]),
    ("peak and background", &[(0.3, 0.3, 0.0), (0.7, 80.0, 1.0)]),
    ("three", &[(0.4, 30.0, -2.0), (0.35, 12.0, 0.2), (0.25, 60.0, 1.8)]),
];

/// The manifolds, and how the laws on them are fitted.
struct Integrals {
    settings: Settings,
    manifolds: Vec<Arc<dyn Manifold>>,
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
    grid: usize,
    fit: Recipe,
}

/// A density on a grid.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Whole {
    /// ∫p − 1,
    #[serde(with = "minvel::estimate::number")]
    excess: f64,
    /// and that of the kernels alone: the error of the grid.
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
    /// The mean NLL of fresh points, less that of the kernel density.
    #[serde(with = "minvel::estimate::number")]
    behind: f64,
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
        demand("grid", this.grid >= 12, "must be at least 12")?;
        demand("manifolds", !this.manifolds.is_empty(), "names no manifold")?;
        let mut manifolds = vec![];
        for name in &this.manifolds {
            let manifold = manifold::parse(name).map_err(|e| config.refuse("manifolds", &format!("is wrong: {e}")))?;
            let known = manifold.dim() <= 2 && manifold.spaces().is_some_and(|s| s.len() == 1);
            demand(
                "manifolds",
                known,
                &format!("names `{name}`: only spaces of one or two dimensions have such laws"),
            )?;
            manifolds.push(manifold);
        }
        Ok(Integrals { settings: this, manifolds, fits })
    }

    fn find(
        &self,
        (name, manifold): (&str, &Arc<dyn Manifold>),
        law: &Law,
        rows: usize,
        k: usize,
        context: &Context,
    ) -> Result<Found, Error> {
        let this = &self.settings;
        let seed = |what: &str| {
            this.seed << 32 | u64::from(minvel::stream::named(&format!("{name} {} {rows} {k} {what}", law.0)))
        };
        let (data, fresh) =
            (points(&**manifold, law, rows, seed("data")), points(&**manifold, law, this.fresh, seed("fresh")));
        let settings = self.fits.of(this.seed + k as u64);
        let fit = Outcome::of(manifold, &settings, &data, &context.within("own"))?;
        let nll = |logs: Vec<f64>| -logs.iter().sum::<f64>() / logs.len() as f64;
        let own = nll(fit.model.log_density(&fresh, context)?);
        let plain = nll(plain(manifold, &settings, &data, &fresh, context)?);
        let score = fit.evaluation.test_nll;
        let mut split = None;
        if rows >= this.split {
            let mut always = settings.clone();
            always.few.rows = 0;
            if manifold.dim() > 1 {
                // A grid of two dimensions does not resolve needles.
                always.kernels = always.kernels.smooth();
            }
            let model = Outcome::of(manifold, &always, &data, &context.within("split"))?.model;
            split = Some(self.whole(&model, context)?);
        }
        let own_whole = self.whole(&fit.model, context)?;
        let (behind, z) = (own - plain, (score.mean - own) / score.std_error);
        Ok(Found { own: own_whole, split, behind, z, seconds: context.seconds() })
    }

    /// A model on a grid; spaces without end are cut off where nothing is left.
    fn whole(&self, model: &Model, context: &Context) -> Result<Whole, Error> {
        let manifold = model.manifold();
        let far = model.centres().iter().fold(0.0, |far: f64, x| far.max(x.abs()));
        let hyperbolic = matches!(manifold.spaces().as_deref(), Some([Space::Hyperbolic(_)]));
        let radius = if hyperbolic { 2.0 * far.atanh() + 5.0 } else { 2.5 * far + 1.0 };
        let grid = match manifold.dim() {
            1 => line::grid(&**manifold, &model.centres()),
            _ => manifold.grid(self.settings.grid, radius).expect("checked: at most two dimensions"),
        };
        let excess = |logs: Vec<f64>| grid.weights.iter().zip(logs).map(|(w, l)| w * l.exp()).sum::<f64>() - 1.0;
        Ok(Whole {
            excess: excess(model.log_density(&grid.points, context)?),
            kernels: excess(model.log_anchor(&grid.points, context)?),
            share: model.share(),
            error: model.log_z().value.std_error,
        })
    }
}

/// Points of a law.
fn points(manifold: &dyn Manifold, (_, parts): &Law, count: usize, seed: u64) -> Vec<f64> {
    let (bump, space) = (Bump::new(manifold).expect("checked"), manifold.spaces().expect("checked")[0]);
    let mut origin = vec![0.0; manifold.ambient()];
    if manifold.ambient() > manifold.dim() {
        origin[0] = 1.0;
    }
    let mut stream = Stream::new(Key::new(seed, 0), 0);
    let mut centre = vec![0.0; manifold.ambient()];
    let mut all = vec![];
    for _ in 0..count {
        let mut left = stream.uniform();
        let k = parts.iter().position(|(share, ..)| {
            left -= share;
            left < 0.0
        });
        let k = k.unwrap_or(0);
        let (_, kappa, distance) = parts[k];
        let turn = 0.7 * k as f64;
        let v = if manifold.dim() == 1 { vec![distance] } else { vec![distance * turn.cos(), distance * turn.sin()] };
        space.from_normal(&origin, &v, &mut centre);
        all.extend(bump.sample(&centre, kappa, &mut stream));
    }
    all
}

/// log p of fresh points under the kernel density that reports compare with.
fn plain(
    manifold: &Arc<dyn Manifold>,
    settings: &FitSettings,
    data: &[f64],
    fresh: &[f64],
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let model = Model::of_few(manifold, settings, data, context)?;
    let search = Search { seed: settings.seed, ..Search::default() };
    let (data, fresh) = (model.standardised(data), model.standardised(fresh));
    let (density, _) = KernelDensity::cross_validated(Bump::new(&**manifold)?, &data, None, &search, context)?;
    Ok(density.log_density(&fresh, context)?.iter().map(|l| l + model.log_unit()).collect())
}

impl Experiment for Integrals {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let Settings { seeds, rows: ref sizes, .. } = self.settings;
        runner.plan(self.manifolds.len() * sizes.len() * LAWS.len());
        let (mut rows, mut details) = (vec![], vec![]);
        for (name, manifold) in self.settings.manifolds.iter().zip(&self.manifolds) {
            let mut found: Vec<Found> = vec![];
            for &count in sizes {
                let mut of_size: Vec<Found> = vec![];
                for (l, law) in LAWS.iter().enumerate() {
                    let unit = format!("{}.rows={count}.law={}", name.replace(':', "-"), l + 1);
                    let one = |context: &Context| -> Result<Vec<Found>, Error> {
                        (0..seeds)
                            .map(|k| self.find((name, manifold), law, count, k, &context.within(&k.to_string())))
                            .collect()
                    };
                    let sets: Vec<Found> = runner.unit(&unit, one)?;
                    let behind = Estimate::of(sets.iter().map(|f| f.behind));
                    let what = format!("{name}, {count} rows, {}: NLL less that of the kernel density", law.0);
                    details.push(Row::new(&what, behind, sets.len()).unit("nats"));
                    of_size.extend(sets);
                }
                let behind = Estimate::of(of_size.iter().map(|f| f.behind));
                let what = format!("{name}, {count} rows: NLL less that of the kernel density, mean over laws");
                rows.push(Row::new(&what, behind, of_size.len()).unit("nats").claim(
                    &format!("{name}, {count} rows: not worse than the kernel density by more than {BEHIND} nats"),
                    Claim::Below(BEHIND),
                ));
                found.extend(of_size);
            }
            rows.extend(summary(name, &found));
        }
        rows.extend(details);
        let laws: Vec<&str> = LAWS.iter().map(|law| law.0).collect();
        let notes = vec![
            format!("Laws: {}; {seeds} data sets of each law and size.", laws.join(", ")),
            "Split rows in two dimensions have kernels that the grid resolves: those shaped by many neighbours.".into(),
            "∫p differs from 1 by the error of log Z and by that of the grid, which is that of the kernels alone."
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
        row("largest |∫ of the kernels − 1|, the error of the grid", kernels(&own)),
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
            row("split rows: largest |∫ of the kernels − 1|, the error of the grid", kernels(&split)),
            row("split rows: largest error of log Z", largest(split.iter().map(|w| w.error).collect())),
            row("split rows: share of fits with a correction", Estimate::exact(corrected as f64 / split.len() as f64)),
        ]);
    }
    rows
}
