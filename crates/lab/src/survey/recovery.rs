//! Known densities, found again from their points.
//!
//! **Statement.** KL(p‖q) = E_p(log p − log q), the excess of the fit q over the truth p, for random laws p ([`truth`]) and fits to points of p; and
//! the same of every single family: the kernel density, the mixture, the kernels and each energy alone.
//! **Source.** Ours. **Conventions.** Fits see the points only: 80 % are training and 10 % validation points, as those of a file; the other 10 % are unused.
//! **Error.** Over fresh points of p, paired row by row. **Checked by** its own claims, tests/lab/experiment_fit.rs.

mod truth;

use super::recipe::{Fits, Recipe};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::plot::{Axis, Dash, Figure, Lines, Plot, Series};
use crate::report::{Claim, Row};
use crate::table::{Column, write_table};
use minvel::estimate::Estimate;
use minvel::fit::{Families, Model, Split};
use minvel::manifold::Space;
use minvel::train::Context;
use minvel::{Error, Manifold, manifold};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use truth::{Kind, Truth};

/// Its line in the list.
pub const ENTRY: Entry = Entry {
    name: "recovery",
    source: "Synthetic recovery",
    about: "Smooth, rough, multimodal and heavy-tailed laws on ten manifolds, recovered by `minvel fit` from their points: the excess \
            over the truth, beside that of every single family",
    settings: include_str!("../../experiments/recovery.toml"),
    check: |config| Ok(Box::new(Recovery::check(config)?)),
    hidden: false,
};

/// What a fit may lose to its best single family, in nats.
const BEHIND: f64 = 0.005;

/// The manifolds, and how points of laws on them are fitted.
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
    laws: Vec<Kind>,
    points: Vec<usize>,
    fresh: usize,
    tables: String,
    fit: Recipe,
}

/// A law, and how many points of it are fitted.
#[derive(Clone, Copy)]
struct Cell {
    manifold: usize,
    kind: Kind,
    points: usize,
    k: usize,
}

/// How near a fit came.
#[derive(Serialize, Deserialize)]
struct Found {
    /// KL(truth‖model).
    excess: Estimate,
    /// Single families: the model's negative log-likelihood less that of each, on the same points.
    families: Vec<(String, Estimate)>,
    log_z: Estimate,
    /// Of learning and judging.
    seconds: f64,
}

impl Found {
    /// The family that the model is least ahead of.
    fn best(&self) -> &(String, Estimate) {
        let best = self.families.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        best.expect("there are kernels at least")
    }
}

impl Recovery {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let fits = this.fit.fits(this.seed)?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("laws", !this.laws.is_empty(), "needs at least one kind of law")?;
        demand("points", !this.points.is_empty(), "needs at least one number")?;
        demand("points", this.points.iter().all(|n| *n >= 100), "must be at least 100")?;
        demand("fresh", this.fresh >= 100, "must be at least 100")?;
        demand("manifolds", !this.manifolds.is_empty(), "needs at least one manifold")?;
        let tables = Path::new(&this.tables);
        demand("tables", this.tables.is_empty() || tables.is_dir(), &format!("is no folder: {}", tables.display()))?;
        let mut manifolds = vec![];
        for (i, name) in this.manifolds.iter().enumerate() {
            let manifold =
                manifold::parse(name).map_err(|e| config.refuse("manifolds", &format!("is invalid: {e}")))?;
            let single = manifold.spaces().is_some_and(|spaces| spaces.len() == 1);
            demand("manifolds", single, &format!("contains `{name}`: only single model spaces have such laws"))?;
            demand("manifolds", !this.manifolds[..i].contains(name), &format!("contains `{name}` twice"))?;
            manifolds.push(manifold);
        }
        Ok(Recovery { settings: this, manifolds, fits })
    }

    /// Cells of one manifold, law by law and size by size.
    fn cells(&self, manifold: usize) -> Vec<Cell> {
        let Settings { laws, points, seeds, .. } = &self.settings;
        let mut cells = vec![];
        for &kind in laws {
            for &points in points {
                cells.extend((0..*seeds).map(|k| Cell { manifold, kind, points, k }));
            }
        }
        cells
    }

    /// Fits a model to points of a law, and compares.
    fn find(&self, cell: Cell, context: &Context) -> Result<Found, Error> {
        let (this, manifold, name) =
            (&self.settings, &self.manifolds[cell.manifold], &self.settings.manifolds[cell.manifold]);
        let Cell { kind, k, points, .. } = cell;
        // Laws and fresh points do not depend on how many points are fitted.
        let seed = |what: &str| {
            let stream = minvel::stream::named(&format!("{name} {} {k} {what}", kind.name()));
            this.seed << 32 | u64::from(stream)
        };
        let law = Truth::new(&**manifold, kind, seed("law"))?;
        let data = law.points(points, seed(&format!("{points} points")));
        let fresh = law.points(this.fresh, seed("fresh"));
        let truth = law.log_density(&fresh);
        let own = format!("{}.{}.law={}", file_name(name), kind.name(), k + 1);
        let write = |what: &str, numbers: &[f64], width: usize| {
            if this.tables.is_empty() {
                return Ok(());
            }
            let column = |j: usize| numbers.iter().skip(j).step_by(width).copied().collect();
            let columns: Vec<Column> = (0..width).map(|j| Column::numbers("", column(j))).collect();
            write_table(&Path::new(&this.tables).join(format!("{own}.{what}.npy")), &columns)
        };
        write(&format!("points={points}"), &data, manifold.ambient())?;
        write("fresh", &fresh, manifold.ambient())?;
        write("truth", &truth, 1)?;
        let settings = self.fits.of(this.seed + k as u64);
        let (m, split) = (manifold.ambient(), Split::new(points, settings.seed));
        let part = |rows: &[usize]| rows.iter().flat_map(|&i| &data[i * m..][..m]).copied().collect::<Vec<f64>>();
        let (train, validation) = (part(&split.train), part(&split.validation));
        let (model, history) = Model::learn(manifold.clone(), &settings, &train, &validation, context)?;
        if !this.tables.is_empty() && !history.judged.is_empty() {
            let parts = model.log_densities_of_parts(&fresh, context)?;
            for (what, logs) in [("judged", history.judged), ("parts", parts)] {
                write(&format!("{what}={points}"), &in_columns(&logs), logs.len())?;
            }
        }
        let compared = Families::of(&model, fresh.as_slice(), settings.seed, context)?;
        let excess = Estimate::paired(&truth, &compared.log_density);
        let baselines = compared.baselines.iter().filter(|b| b.method != "uniform");
        let mut families: Vec<(String, Estimate)> = baselines.map(|b| (b.method.clone(), b.difference)).collect();
        families.extend(compared.ingredients.into_iter().map(|part| (part.name, part.difference)));
        if model.experts().is_empty() {
            families.push(("kernels".into(), Estimate::exact(0.0)));
        }
        Ok(Found { excess, families, log_z: model.log_z().value, seconds: context.seconds() })
    }

    /// What the laws of a manifold say, size by size.
    fn rows(&self, manifold: usize, found: &[Found]) -> Vec<Row> {
        let title = title(&*self.manifolds[manifold]);
        let (mut rows, mut details) = (vec![], vec![]);
        for (cell, found) in self.cells(manifold).into_iter().zip(found) {
            let what = format!("{title}, {} law {}, {} points", cell.kind.name(), cell.k + 1, cell.points);
            let (name, behind) = found.best();
            let row = Row::new(&format!("{what}: minvel minus the best single family"), *behind, 1);
            rows.push(
                row.unit("nats").claim(
                    &format!("{what}: not behind the best single family, {}", plain(name)),
                    Claim::Below(BEHIND),
                ),
            );
            details.push(Row::new(&format!("{what}: excess over the truth"), found.excess, 1).unit("nats"));
            details.extend(found.families.iter().map(|(name, difference)| {
                Row::new(&format!("{what}: minvel minus {}", plain(name)), *difference, 1).unit("nats")
            }));
            details.push(Row::new(
                &format!("{what}: standard error of log Z"),
                Estimate::exact(found.log_z.std_error),
                1,
            ));
            details.push(Row::new(&format!("{what}: seconds"), Estimate::exact(found.seconds), 1).unit("s"));
        }
        rows.extend(details);
        rows
    }

    /// The mean excess over laws for each number of points.
    fn curve(&self, manifold: usize, found: &[Found]) -> Vec<(f64, f64)> {
        let cells = self.cells(manifold);
        let mean = |points: usize| {
            let own = cells.iter().zip(found).filter(|(cell, _)| cell.points == points);
            Estimate::of(own.map(|(_, found)| found.excess.mean)).mean
        };
        self.settings.points.iter().map(|&points| (points as f64, mean(points))).collect()
    }
}

/// Rows of a table that has these columns.
fn in_columns(columns: &[Vec<f64>]) -> Vec<f64> {
    (0..columns[0].len()).flat_map(|i| columns.iter().map(move |column| column[i])).collect()
}

/// A manifold's name in that of a file.
fn file_name(manifold: &str) -> String {
    manifold.replace(':', "-")
}

/// A family's name in a row.
fn plain(name: &str) -> &str {
    match name {
        "kde" => "the kernel density",
        "vmf-mixture" => "the mixture",
        "kernels" => "the kernels alone",
        other => other,
    }
}

impl Experiment for Recovery {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let all = 0..self.manifolds.len();
        runner.plan(all.clone().map(|m| self.cells(m).len()).sum());
        let found = runner.each(all.clone(), |runner, manifold| {
            runner.each(self.cells(manifold), |runner, cell| {
                let name = file_name(&self.settings.manifolds[manifold]);
                let unit = format!("{name}.{}.points={}.law={}", cell.kind.name(), cell.points, cell.k + 1);
                runner.unit(&unit, |context| self.find(cell, context))
            })
        })?;
        let mut panel =
            Lines::new("", Axis::log("points of the law"), Axis::log("excess over the truth, mean over laws (nats)"));
        let mut rows = vec![];
        for (manifold, found) in all.zip(&found) {
            rows.extend(self.rows(manifold, found));
            let title = title(&*self.manifolds[manifold]);
            let (colour, dash) = look(&self.settings.manifolds[manifold]);
            panel = panel.with(Series::new(&title, colour).dashed(dash).values(self.curve(manifold, found)));
        }
        let Settings { fresh, .. } = self.settings;
        let caption = format!(
            "KL(truth‖model) against the number of points, mean over laws, each by {fresh} fresh points. Families of \
             manifolds have a colour, more dimensions are dashed."
        );
        let notes = vec![
            format!(
                "Of the points, 80 % are training and 10 % validation points; the other 10 % are unused. ± are standard errors over \
                 {fresh} fresh points of the law, paired. A claim allows {BEHIND} nats."
            ),
            self.fits.note(),
        ];
        Ok(Findings { rows, figures: vec![Figure::new("excess", &caption, Plot::Lines(panel))], notes })
    }
}

/// Whose colour a manifold's curve takes, and its dashes.
fn look(manifold: &str) -> (&str, Dash) {
    match manifold {
        "sphere:5" => ("sphere:2", Dash::Dashed),
        "torus:4" => ("torus:2", Dash::Dashed),
        "torus:7" => ("torus:2", Dash::Dotted),
        "euclidean:8" => ("euclidean:2", Dash::Dashed),
        other => (other, Dash::Solid),
    }
}

/// A manifold as one writes it: S², T⁷, SO(3).
fn title(manifold: &dyn Manifold) -> String {
    let letter = match manifold.spaces().as_deref() {
        Some([Space::Sphere(_)]) => "S",
        Some([Space::Torus(_)]) => "T",
        Some([Space::Hyperbolic(_)]) => "H",
        Some([Space::Projective(_)]) => "RP",
        Some([Space::So3]) => return "SO(3)".into(),
        _ => "R",
    };
    let digit = |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(c as usize - '0' as usize).expect("a digit");
    format!("{letter}{}", manifold.dim().to_string().chars().map(digit).collect::<String>())
}
