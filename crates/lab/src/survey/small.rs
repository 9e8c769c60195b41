//! Few rows of known laws: how far `minvel fit` is from the truth, beside the kernel density of the same rows.
//!
//! **Statement.** Excess = E_q log(q/p), q the law: of the model, and of the kernel density with one cross-validated bandwidth that
//! reports compare with. The mean of their difference over laws is claimed to be at most 0.02 nats.
//! **Conventions.** Both densities see the same rows and the same fresh points, so that differences are paired; their ± is that over
//! data sets. Below 500 rows `minvel fit` makes the model of [`Model::of_few`]; its cross-validation only scores it.
//! **Checked by** its own claims, tests/lab/experiment_fit.rs.

use super::laws::{LAWS, Law, Place, places, unit};
use super::recipe::{Fits, Recipe};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::report::{Claim, Row};
use minvel::Error;
use minvel::density::{Bump, Density, KernelDensity, Sample, Search};
use minvel::estimate::Estimate;
use minvel::fit::{FitSettings, Model};
use minvel::train::Context;
use serde::{Deserialize, Serialize};

/// Its line in the list.
pub const ENTRY: Entry = Entry {
    name: "small",
    source: "Few rows",
    about: "Eight made-up laws on circle, sphere and plane, 20 to 300 rows: the excess of `minvel fit` and of a kernel density over the truth",
    settings: include_str!("../../experiments/small.toml"),
    check: |config| Ok(Box::new(Small::check(config)?)),
    hidden: false,
};

/// What the model may lose to the kernel density, in nats.
const BEHIND: f64 = 0.02;

/// The survey: its settings, the manifolds with their names, and how laws on them are fitted.
struct Small {
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
    fresh: usize,
    fit: Recipe,
}

/// The excess of both densities of a data set, in nats.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Excess {
    #[serde(with = "minvel::estimate::number")]
    own: f64,
    #[serde(with = "minvel::estimate::number")]
    plain: f64,
}

impl Small {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let fits = this.fit.fits(this.seed)?;
        let settings = fits.of(this.seed);
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        let most = settings.few.correction.min(settings.few.rows);
        let few = |n: &usize| (5..most).contains(n);
        demand("rows", !this.rows.is_empty() && this.rows.iter().all(few), &format!("must be 5 to {} each", most - 1))?;
        demand("fresh", this.fresh >= 100, "must be at least 100")?;
        let manifolds = places(config, &this.manifolds)?;
        Ok(Small { settings: this, manifolds, fits })
    }

    fn find(&self, place: &Place, law: &Law, rows: usize, k: usize, context: &Context) -> Result<Excess, Error> {
        let (manifold, this) = (&place.1, &self.settings);
        let [data, fresh] = law.sets(place, [rows, this.fresh], (this.seed, k));
        let settings = self.fits.of(this.seed + k as u64);
        let model = Model::of_few(manifold, &settings, &data, context)?;
        let truth = law.log_density(&**manifold, &fresh);
        let excess = |logs: Vec<f64>| truth.iter().zip(logs).map(|(q, p)| q - p).sum::<f64>() / truth.len() as f64;
        let plain = compared(&model, &settings, &data, &fresh, context)?;
        Ok(Excess { own: excess(model.log_density(&fresh, context)?), plain: excess(plain) })
    }
}

/// log p of fresh points under the kernel density that reports compare with.
fn compared(
    model: &Model,
    settings: &FitSettings,
    data: &[f64],
    fresh: &[f64],
    context: &Context,
) -> Result<Vec<f64>, Error> {
    let bump = Bump::new(&**model.manifold())?;
    let search = Search { seed: settings.seed, ..Search::default() };
    let data = Sample::from(model.standardised(data));
    let data = data.select(&bump.outwards(data.points()), bump.ambient());
    let (density, _) = KernelDensity::cross_validated(bump, &data, None, &search, context)?;
    let logs = density.log_density(&model.standardised(fresh), context)?;
    Ok(logs.iter().map(|l| l + model.log_unit()).collect())
}

impl Experiment for Small {
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
        let mut all = all.into_iter().flatten().flatten();
        let (mut rows, mut details) = (vec![], vec![]);
        for place in &self.manifolds {
            let name = &place.0;
            for &count in &self.settings.rows {
                let mut of_size: Vec<Excess> = vec![];
                for law in &LAWS {
                    let sets: Vec<Excess> = all.next().expect("one of each");
                    details.extend(lines(&format!("{name}, {count} rows, {}", law.name), &sets));
                    of_size.extend(sets);
                }
                let what = format!("{name}, {count} rows, mean over laws");
                let [own, plain, difference] = lines(&what, &of_size);
                let claim =
                    format!("{name}, {count} rows: at most {BEHIND} nats behind the kernel density, beyond doubt");
                rows.extend([own, plain, difference.claim(&claim, Claim::SurelyBelow { limit: BEHIND, sigmas: 2.0 })]);
            }
        }
        rows.extend(details);
        let laws: Vec<&str> = LAWS.iter().map(|law| law.name).collect();
        let notes = vec![
            format!("Laws: {}; {} data sets of each law and size.", laws.join(", "), self.settings.seeds),
            "Excess: mean over fresh points of log q − log p, q the law. ± is that over data sets.".into(),
            "Widths and rounds of the stacked kernels were chosen on other data sets (seed = 1 and earlier surveys)."
                .into(),
            self.fits.note(),
        ];
        Ok(Findings { rows, figures: vec![], notes })
    }
}

/// What some data sets say: the excess of each density, and the difference.
fn lines(what: &str, sets: &[Excess]) -> [Row; 3] {
    let row = |of: &str, estimate: Estimate| Row::new(&format!("{what}: {of}"), estimate, sets.len()).unit("nats");
    [
        row("excess of the model", Estimate::of(sets.iter().map(|e| e.own))),
        row("excess of the kernel density", Estimate::of(sets.iter().map(|e| e.plain))),
        row("the model less the kernel density, paired", Estimate::of(sets.iter().map(|e| e.own - e.plain))),
    ]
}
