//! Tests of fit: how often they notice a bad model, and how often they reject a good one.
//!
//! **Statement.** Power: the share of tables that are rejected at 1 %, where the rows are of another law than the model. Level: the share
//! that are rejected at 5 %, where the rows are draws of the model. **Conventions.** A model is fitted to rows of a law as `minvel fit` does;
//! tables are of the law with half of the space missing, one mode twice as heavy, or all widths times or over 1.5. All are tested as `minvel evaluate`
//! does ([`Fitness`]), and by the kernel Stein test with one median length, which earlier versions had. **Error.** Binomial.
//! **Checked by** its own claims, tests/lab/experiment_fit.rs.

use super::laws::{LAWS, Law, Place, places};
use super::recipe::{Fits, Recipe};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::report::{Claim, Row};
use minvel::Error;
use minvel::density::{TestPlan, goodness_of_fit};
use minvel::estimate::Estimate;
use minvel::fit::{Fitness, Model};
use minvel::stream::subseed;
use minvel::train::Context;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;

/// Its line in the list.
pub const ENTRY: Entry = Entry {
    name: "power",
    source: "Tests of fit",
    about: "Two made-up laws on sphere, torus and plane: how often the tests of `minvel evaluate` notice a bad model and reject a good one",
    settings: include_str!("../../experiments/power.toml"),
    check: |config| Ok(Box::new(Power::check(config)?)),
    hidden: false,
};

/// Tables of a unit of the level.
const TOGETHER: usize = 50;
/// What is claimed: misfits are rejected at 1 % in all but one of 20 tables, good models at 5 % as often as that.
const REJECTED: f64 = 0.95;
const LEVEL: f64 = 0.05;
const LEVEL_WITHIN: f64 = 0.015;

/// The survey: its settings, and what they name.
struct Power {
    settings: Settings,
    manifolds: Vec<Place>,
    laws: Vec<&'static Law>,
    fits: Fits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    seed: u64,
    seeds: usize,
    manifolds: Vec<String>,
    laws: Vec<String>,
    fitted: usize,
    rows: usize,
    level: usize,
    resamples: usize,
    level_resamples: usize,
    fit: Recipe,
}

/// What is wrong with a model, or with the rows.
#[derive(Clone, Copy, PartialEq)]
enum Misfit {
    /// Rows on one side of the space only: of its last coordinate, or of the one before it.
    Half { coordinate: usize },
    /// The first mode's mass.
    Mass(f64),
    /// All widths.
    Width(f64),
}

const MISFITS: [(&str, &str, Misfit); 5] = [
    ("north", "the northern (upper) half only", Misfit::Half { coordinate: 1 }),
    ("east", "the eastern (right) half only", Misfit::Half { coordinate: 2 }),
    ("mass", "a mode twice as heavy", Misfit::Mass(2.0)),
    ("wide", "widths times 1.5", Misfit::Width(1.5)),
    ("narrow", "widths over 1.5", Misfit::Width(1.0 / 1.5)),
];

/// p-values of a table.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Tested {
    both: f64,
    stein: f64,
    two_sample: f64,
    /// The Stein test with one length.
    single: f64,
    /// Of both tests, in seconds.
    seconds: f64,
}

impl Misfit {
    /// Rows of a law with the misfit.
    fn rows(self, law: &Law, place: &Place, count: usize, seed: u64) -> Vec<f64> {
        let (manifold, m) = (&*place.1, place.1.ambient());
        match self {
            Misfit::Mass(factor) => law.distorted(factor, 1.0).points(manifold, count, seed),
            Misfit::Width(factor) => law.distorted(1.0, factor).points(manifold, count, seed),
            Misfit::Half { coordinate } => {
                let mut rows = vec![];
                for part in 0.. {
                    let all = law.points(manifold, count, subseed(seed, part));
                    rows.extend(all.chunks(m).filter(|x| x[m - coordinate] > 0.0).flatten());
                    if rows.len() >= count * m || part > 1000 {
                        break;
                    }
                }
                rows.truncate(count * m);
                rows
            }
        }
    }
}

impl Power {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let fits = this.fit.fits(this.seed)?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("level", this.level > 0, "must be positive")?;
        demand("fitted", this.fitted >= 100, "must be at least 100")?;
        demand("rows", (8..=1000).contains(&this.rows), "must be 8 to 1000: as many as a test uses")?;
        demand("resamples", this.resamples >= 399, "must be at least 399: two tests at half of 1 % need them")?;
        demand("level_resamples", this.level_resamples >= 99, "must be at least 99: p-values of 5 % need them")?;
        demand("laws", !this.laws.is_empty(), "names no law")?;
        let find = |name: &String| {
            let names = || LAWS.iter().map(|law| law.name).collect::<Vec<_>>().join(", ");
            let found = LAWS.iter().find(|law| law.name == name);
            found.ok_or_else(|| config.refuse("laws", &format!("names `{name}`; expected of {}", names())))
        };
        let laws = this.laws.iter().map(find).collect::<Result<_, Error>>()?;
        let manifolds = places(config, &this.manifolds)?;
        if let Some(place) = manifolds.iter().find(|place| place.1.dim() < 2) {
            return Err(config.refuse("manifolds", &format!("names `{}`: halves need two dimensions", place.0)));
        }
        Ok(Power { settings: this, manifolds, laws, fits })
    }

    /// A seed that nothing else has.
    fn seed(&self, place: &Place, law: &Law, what: &str) -> u64 {
        self.settings.seed << 32 | u64::from(minvel::stream::named(&format!("{} {} {what}", place.0, law.name)))
    }

    /// Learns the model of a law.
    fn learn(&self, place: &Place, law: &Law, context: &Context) -> Result<Model, Error> {
        let rows = |count: usize, what: &str| law.points(&*place.1, count, self.seed(place, law, what));
        let (fitted, settings) = (self.settings.fitted, self.fits.of(self.settings.seed));
        let (train, validation) = (rows(fitted, "fitted"), rows(fitted.div_ceil(10), "validation"));
        Ok(Model::learn(place.1.clone(), &settings, &train, &validation, context)?.0)
    }

    /// The p-values of rows.
    fn test(&self, model: &Model, rows: &[f64], plan: &TestPlan, context: &Context) -> Result<Tested, Error> {
        let begun = std::time::Instant::now();
        let draws = model.sample(plan.draws(self.settings.rows), subseed(plan.seed, 1), context)?.points;
        let fitness = Fitness::of(model, rows, &draws, plan, context)?;
        let seconds = begun.elapsed().as_secs_f64();
        let p = |test: Option<minvel::density::Goodness>| test.map_or(f64::NAN, |test| test.p_value);
        let single = goodness_of_fit(model, rows, &TestPlan { scales: 1, ..*plan }, context)?.p_value;
        Ok(Tested {
            both: fitness.p_value,
            stein: p(fitness.stein),
            two_sample: p(fitness.two_sample),
            single,
            seconds,
        })
    }

    /// Tables with a misfit.
    fn power(&self, model: &Learnt, misfit: usize, context: &Context) -> Result<Vec<Tested>, Error> {
        let (Learnt { place, law, .. }, model) = (model, model.model(self, context)?);
        let (name, _, misfit) = MISFITS[misfit];
        let table = |k: usize| {
            let seed = self.seed(place, law, &format!("{name} {k}"));
            let plan = TestPlan { resamples: self.settings.resamples, ..TestPlan::seeded(seed) };
            context.worked(1);
            self.test(model, &misfit.rows(law, place, self.settings.rows, seed), &plan, &context.quiet())
        };
        context.stage("tables", self.settings.seeds, "tables", || (0..self.settings.seeds).map(table).collect())
    }

    /// Tables of the model's own draws, from one to another.
    fn level(&self, model: &Learnt, tables: [usize; 2], context: &Context) -> Result<Vec<Tested>, Error> {
        let (Learnt { place, law, .. }, model) = (model, model.model(self, context)?);
        let table = |k: usize| {
            let seed = self.seed(place, law, &format!("level {k}"));
            let plan = TestPlan { resamples: self.settings.level_resamples, ..TestPlan::seeded(seed) };
            context.worked(1);
            let rows = model.sample(self.settings.rows, subseed(seed, 2), context)?.points;
            self.test(model, &rows, &plan, &context.quiet())
        };
        let [from, to] = tables;
        context.stage("tables", to - from, "tables", || (from..to).map(table).collect())
    }
}

/// The model of a law, learnt where the first unit asks for it.
struct Learnt<'a> {
    place: &'a Place,
    law: &'a Law,
    model: OnceCell<Model>,
}

impl Learnt<'_> {
    fn model(&self, power: &Power, context: &Context) -> Result<&Model, Error> {
        if self.model.get().is_none() {
            let model = power.learn(self.place, self.law, &context.within("fit"))?;
            assert!(self.model.set(model).is_ok(), "nobody else learns it");
        }
        Ok(self.model.get().expect("just learnt"))
    }
}

impl Experiment for Power {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let count = self.manifolds.len() * self.laws.len();
        let of_each = self.settings.level.div_ceil(count);
        let parts = of_each.div_ceil(TOGETHER);
        runner.plan(count * (parts + MISFITS.len()));
        let (mut rows, mut own, mut tested) = (vec![], vec![], vec![]);
        for place in &self.manifolds {
            let name = place.0.replace(':', "-");
            let mut drawn = vec![];
            for (l, law) in self.laws.iter().enumerate() {
                let model = Learnt { place, law, model: OnceCell::new() };
                for (k, (short, what, _)) in MISFITS.iter().enumerate() {
                    let unit = format!("{name}.law={}.{short}", l + 1);
                    let found = runner.unit(&unit, |context| self.power(&model, k, context));
                    let Some(found) = runner.if_finished(found)? else { continue };
                    let what = format!("{}, {}, {what}", place.0, law.name);
                    rows.extend(shares(&what, &found, 0.01, Some(Claim::Above(REJECTED))));
                    tested.extend(found);
                }
                for part in 0..parts {
                    let tables = [part * TOGETHER, ((part + 1) * TOGETHER).min(of_each)];
                    let unit = format!("{name}.law={}.level={}", l + 1, part + 1);
                    let found = runner.unit(&unit, |context| self.level(&model, tables, context));
                    drawn.extend(runner.if_finished(found)?.into_iter().flatten());
                }
            }
            rows.extend(shares(&format!("{}, draws of the models", place.0), &drawn, LEVEL, None));
            own.extend(drawn);
        }
        if !runner.missing().is_empty() {
            return Err(Error::Interrupted);
        }
        let claim = Claim::Within { of: LEVEL, by: LEVEL_WITHIN };
        rows.extend(shares("all draws of the models", &own, LEVEL, Some(claim)));
        tested.extend(own);
        let seconds = Estimate::of(tested.iter().map(|t| t.seconds));
        rows.push(Row::new("seconds of both tests", seconds, tested.len()).unit("s"));
        let laws: Vec<&str> = self.laws.iter().map(|law| law.name).collect();
        let Settings { rows: size, fitted, seeds, level, resamples, level_resamples, .. } = &self.settings;
        let notes = vec![
            format!(
                "Laws: {}. Models are fitted to {fitted} rows; tables have {size} rows: {seeds} of each misfit and {level} of draws of \
                 the models in all. {resamples} resamples, and {level_resamples} of draws of the models.",
                laws.join(", ")
            ),
            "Halves: of the last coordinate (z, the second angle or y) and of the one before it. ± is binomial.".into(),
            self.fits.note(),
        ];
        Ok(Findings { rows, figures: vec![], notes })
    }
}

/// The share that each test rejects at a level.
fn shares(what: &str, tested: &[Tested], level: f64, claim: Option<Claim>) -> Vec<Row> {
    let row = |name: &str, of: &dyn Fn(&Tested) -> f64| {
        // A p-value of 1 % itself is not below it.
        let rejected = |t: &Tested| f64::from(if level < LEVEL { of(t) < level } else { of(t) <= level });
        Row::new(
            &format!("{what}: rejected at {} % by {name}", 100.0 * level),
            Estimate::of(tested.iter().map(rejected)),
            tested.len(),
        )
    };
    let claimed = if level < LEVEL { "noticed" } else { "the level is kept" };
    let both = row("both tests", &|t| t.both);
    let both = if let Some(claim) = claim { both.claim(&format!("{what}: {claimed}"), claim) } else { both };
    vec![
        both,
        row("the Stein test on all scales", &|t| t.stein),
        row("rows against draws on all scales", &|t| t.two_sample),
        row("the Stein test with one length", &|t| t.single),
    ]
}
