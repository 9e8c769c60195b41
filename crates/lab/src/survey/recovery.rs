//! Known densities, found again from their points.
//!
//! **Statement.** KL(p‖q) = E_p(log p − log q) for random mixtures p and fits q to points of p; ∫q dvol = 1.
//! **Source.** Issue 5. **Conventions.** Fits see the points only: 80 % to learn from, 10 % to stop by, as those of a file.
//! **Error.** KL by fresh points of p, with its standard error; ∫q by two grids, whose difference is told.
//! **Checked by** its own claims, tests/lab/experiment_fit.rs.

mod truth;

use super::recipe::{Fits, Recipe};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::plot::{Axis, Figure, Lines, Plot, Series};
use crate::report::{Claim, Row};
use minvel::energy::{Energy, log_prob, points};
use minvel::estimate::Estimate;
use minvel::fit::{Model, Split};
use minvel::manifold::Space;
use minvel::train::Context;
use minvel::{Error, Manifold, manifold};
use minvel_engine::{Clock, Graph, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use truth::Truths;

/// Its line in the list.
pub const ENTRY: Entry = Entry {
    name: "recovery",
    source: "Synthetic recovery",
    about: "Random mixtures on sphere, circle, torus and plane, recovered by `minvel fit` from their points",
    settings: include_str!("../../experiments/recovery.toml"),
    check: |config| Ok(Box::new(Recovery::check(config)?)),
    hidden: false,
};

/// What is claimed of KL(truth‖model), in nats,
const NEAR: f64 = 0.05;
/// for this share of the mixtures.
const MOST: f64 = 0.9;
/// What is claimed of |∫q − 1|.
const WHOLE: f64 = 1e-3;
/// Nodes on the circle for each that a dimension has elsewhere.
const ON_CIRCLE: usize = 20;
/// The coarser grid has 2/3 of the nodes.
const COARSER: (usize, usize) = (2, 3);

/// The manifolds, and how mixtures on them are fitted.
struct Recovery {
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
    points: usize,
    fresh: usize,
    grid: usize,
    mixtures: Truths,
    fit: Recipe,
}

/// How near a fit came.
#[derive(Serialize, Deserialize)]
struct Found {
    components: usize,
    /// KL(truth‖model).
    divergence: Estimate,
    /// KL(truth‖kernels), without the correction.
    kernels: Estimate,
    /// ∫q on the finer grid,
    #[serde(with = "minvel::estimate::number")]
    integral: f64,
    /// and on the coarser one.
    #[serde(with = "minvel::estimate::number")]
    coarser: f64,
    /// log Z.
    log_z: Estimate,
    /// t.
    share: f64,
    /// Of learning and judging.
    seconds: f64,
}

impl Recovery {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let fits = this.fit.fits(this.seed)?;
        this.mixtures.check(config)?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("points", this.points >= 100, "must be at least 100")?;
        demand("fresh", this.fresh >= 100, "must be at least 100")?;
        demand("grid", this.grid >= 12, "must be at least 12")?;
        demand("manifolds", !this.manifolds.is_empty(), "needs at least one manifold")?;
        let mut manifolds = vec![];
        for (i, name) in this.manifolds.iter().enumerate() {
            let manifold =
                manifold::parse(name).map_err(|e| config.refuse("manifolds", &format!("is invalid: {e}")))?;
            let what =
                format!("contains `{name}`: only spheres, tori and flat spaces of dimension 1 to 3 have such mixtures");
            demand("manifolds", Truths::live_on(&*manifold), &what)?;
            demand("manifolds", !this.manifolds[..i].contains(name), &format!("contains `{name}` twice"))?;
            manifolds.push(manifold);
        }
        Ok(Recovery { settings: this, manifolds, fits })
    }

    /// Fits a model to points of mixture number k, and compares.
    fn find(&self, (name, manifold): (&str, &Arc<dyn Manifold>), k: usize, context: &Context) -> Result<Found, Error> {
        let this = &self.settings;
        let m = manifold.ambient();
        let seed = |what: &str| this.seed << 32 | u64::from(minvel::stream::named(&format!("{name} {k} {what}")));
        let (components, law) = this.mixtures.draw(&**manifold, seed("law"));
        let known = |count: usize, what: &str| points(&*law, count, seed(what)).expect("mixtures can be sampled");
        let data = known(this.points, "points");
        let settings = self.fits.of(this.seed + k as u64);
        let split = Split::new(this.points, settings.seed);
        let part = |rows: &[usize]| rows.iter().flat_map(|&i| &data[i * m..][..m]).copied().collect::<Vec<f64>>();
        let (train, validation) = (part(&split.train), part(&split.validation));
        let (model, _) = Model::learn(manifold.clone(), &settings, &train, &validation, context)?;

        context.begin("judging", 3, 0);
        let fresh = known(this.fresh, "fresh");
        let truth = log_densities(&*law, &fresh, m, context)?;
        let divergence = |logs: Vec<f64>| Estimate::paired(&truth, &logs);
        let (own, kernels) = (model.log_density(&fresh, context)?, model.log_anchor(&fresh, context)?);
        context.advance(1, "KL");
        let integral = |resolution: usize| integral(&model, &**manifold, resolution, &data, context);
        let nodes = if manifold.dim() == 1 { ON_CIRCLE * this.grid } else { this.grid };
        let coarser = integral(nodes * COARSER.0 / COARSER.1)?;
        context.advance(2, "quadrature");
        let finer = integral(nodes)?;
        context.end();
        Ok(Found {
            components,
            divergence: divergence(own),
            kernels: divergence(kernels),
            integral: finer,
            coarser,
            log_z: model.log_z().value,
            share: model.share(),
            seconds: context.seconds(),
        })
    }
}

/// log p of a law at points.
fn log_densities(law: &dyn Energy, points: &[f64], m: usize, context: &Context) -> Result<Vec<f64>, Error> {
    let g = Graph::new();
    let x = g.input_rows("x", points.len() / m, [m]);
    let log_p = log_prob(law, x).expect("mixtures are normalised");
    let mut program = g.try_compile::<f64>(&[log_p], &[], &context.options(1))?;
    program.try_run(&mut State::new(1), &[("x", points)], Clock { seed: 0, step: 0 })?;
    Ok(program.try_output(0)?.to_vec())
}

/// ∫q; flat space is cut off at twice the distance of the furthest point.
fn integral(
    model: &Model,
    manifold: &dyn Manifold,
    resolution: usize,
    data: &[f64],
    context: &Context,
) -> Result<f64, Error> {
    let radius = 2.0 * data.iter().fold(0.0, |far: f64, x| far.max(x.abs()));
    let grid = manifold.grid(resolution, radius).expect("checked: at most three dimensions");
    let logs = model.log_density(&grid.points, context)?;
    Ok(grid.weights.iter().zip(logs).map(|(w, l)| w * l.exp()).sum())
}

impl Experiment for Recovery {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let Settings { seeds, points, fresh, .. } = self.settings;
        runner.plan(self.manifolds.len() * seeds);
        let (mut rows, mut details) = (vec![], vec![]);
        let mut panel = Lines::new(
            "",
            Axis::linear("mixtures, from best to worst recovery").every(1.0),
            Axis::log("KL(truth‖model) (nats)"),
        );
        for (name, manifold) in self.settings.manifolds.iter().zip(&self.manifolds) {
            let mut found = vec![];
            for k in 0..seeds {
                let unit = format!("{}.mixture={}", name.replace(':', "-"), k + 1);
                found.push(runner.unit(&unit, |context| self.find((name, manifold), k, context))?);
            }
            let title = title(&**manifold);
            rows.extend(summary(&title, &found));
            details.extend(found.iter().enumerate().map(|(k, f)| {
                let what = format!("{title}, mixture {} of {} components: KL(truth‖model)", k + 1, f.components);
                Row::new(&what, f.divergence, 1).unit("nats")
            }));
            let mut sorted: Vec<Estimate> = found.iter().map(|f| f.divergence).collect();
            sorted.sort_by(|a, b| a.mean.total_cmp(&b.mean));
            let places = sorted.into_iter().enumerate().map(|(i, e)| (i as f64 + 1.0, e));
            panel = panel.with(Series::new(&title, name).estimates(places));
        }
        rows.extend(details);
        let caption = format!(
            "KL(truth‖model) of {seeds} random mixtures on each manifold, from {points} points each; bands are 95 % \
             intervals over {fresh} fresh points. The level is the limit claimed for nine mixtures in ten."
        );
        let figure = Figure::new("divergence", &caption, Plot::Lines(panel.level(NEAR, "0.05 nats")));
        let notes = vec![
            format!(
                "Of {points} points, 80 % are training and 10 % validation points; the other 10 % are unused. ∫q is \
                 computed on two grids, of which the finer one counts; on flat space it is truncated at twice the \
                 distance of the furthest point."
            ),
            "∫q differs from 1 by the error of log Z and by that of the grid.".into(),
            self.fits.note(),
        ];
        Ok(Findings { rows, figures: vec![figure], notes })
    }
}

/// What the mixtures on a manifold say together.
fn summary(title: &str, found: &[Found]) -> Vec<Row> {
    let row = |what: &str, value: Estimate| Row::new(&format!("{title}: {what}"), value, found.len());
    let mean = |of: &dyn Fn(&Found) -> f64| Estimate::of(found.iter().map(of));
    // not `max`, which forgets NaN
    let largest = |of: &dyn Fn(&Found) -> f64| {
        Estimate::single(found.iter().map(of).reduce(|a, b| if a >= b { a } else { b }).unwrap_or(f64::NAN))
    };
    let near = found.iter().filter(|f| f.divergence.mean < NEAR).count();
    let enough = (MOST * found.len() as f64).ceil() as usize;
    vec![
        row(&format!("mixtures with KL(truth‖model) < {NEAR}"), Estimate::exact(near as f64))
            .unit(&format!("of {}", found.len()))
            .decided(
                &format!("{title}: KL(truth‖model) is below {NEAR} nats for nine mixtures in ten"),
                &format!("value ≥ {enough} of {}", found.len()),
                near >= enough,
            ),
        row("KL(truth‖model), mean over mixtures", mean(&|f| f.divergence.mean)).unit("nats"),
        row("KL(truth‖model), largest", largest(&|f| f.divergence.mean)).unit("nats"),
        row("KL(truth‖kernels alone), mean over mixtures", mean(&|f| f.kernels.mean)).unit("nats"),
        row("largest |∫q − 1|", largest(&|f| (f.integral - 1.0).abs()))
            .claim(&format!("{title}: every density integrates to one"), Claim::Below(WHOLE)),
        row("largest difference between ∫q on two grids", largest(&|f| (f.integral - f.coarser).abs())),
        row("largest standard error of log Z", largest(&|f| f.log_z.std_error)),
        row("share t of the correction", mean(&|f| f.share)),
        row("seconds of the longest fit", largest(&|f| f.seconds)).unit("s"),
    ]
}

/// A manifold as one writes it: S², T², R².
fn title(manifold: &dyn Manifold) -> String {
    let letter = match manifold.spaces().as_deref() {
        Some([Space::Sphere(_)]) => "S",
        Some([Space::Torus(_)]) => "T",
        _ => "R",
    };
    format!("{letter}{}", ["¹", "²", "³"][manifold.dim() - 1])
}
