//! Held-out scores on the splits that others published: places on the sphere, RNA backbones, and vectors of measurements.
//!
//! **Statement.** NLL = −mean log p of the test rows of published splits ([`splits`](super::splits)), with the spread over seeds; what kernels and energies
//! score alone, and what energies of minimum velocity add, on the same rows. **Source.** chen2024rfm (splits and scores of the
//! sphere and the torus); the wine and Parkinson's sets of UCI have splits of our own. Two and four neighbouring RNA torsions, on the
//! splits of all seven, stand for other tables of torsions: there mixtures are the strongest opponents.
//! **Conventions.** Validation rows stop and weigh, test rows are looked at once. `-distinct` drops rows that repeat an earlier one;
//! the others keep their part. Sets or splits that are not on this machine are listed and skipped.
//! **Error.** Over seeds, whose splits share rows; with one seed, over its test rows.
//! **Checked by** its own claims, tests/lab/experiment_fit.rs.

use super::recipe::{Fits, Recipe};
use super::splits;
use crate::catalogue::{self, locate};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::report::{Claim, Row};
use crate::table::{Dataset, Layout, Request, Units};
use minvel::Error;
use minvel::estimate::Estimate;
use minvel::fit::{Evaluation, Model, Split, Tried, distinct_indices, leaked_share};
use minvel::train::Context;
use serde::{Deserialize, Serialize};

/// Its line in the list.
pub const ENTRY: Entry = Entry {
    name: "benchmark",
    source: "Published splits",
    about: "Held-out scores of `minvel fit` on the published splits of Earth and RNA sets, and on wine and Parkinson's, with \
            each ingredient alone",
    settings: include_str!("../../experiments/benchmark.toml"),
    check: |config| Ok(Box::new(Benchmark::check(config)?)),
    hidden: false,
};

/// A data set, how it is read, and what others reached.
struct Set {
    name: &'static str,
    /// In the catalogue.
    data: &'static str,
    manifold: &'static str,
    columns: &'static [&'static str],
    layout: Layout,
    /// The file of its published splits.
    splits: Option<&'static str>,
    /// The best published score on these splits that is a likelihood, and its ±.
    published: Option<(f64, f64)>,
    /// The baseline that the fit must not be behind, and by how much it may be, in nats.
    opponent: Option<(&'static str, f64)>,
}

const PLACES: Set = Set {
    name: "",
    data: "",
    manifold: "sphere:2",
    columns: &[],
    layout: Layout::LatLon,
    splits: None,
    published: None,
    opponent: None,
};

const VECTORS: Set = Set { layout: Layout::Vector, ..PLACES };

/// RNA torsions by their columns; all seven have published scores.
const TORSIONS: Set =
    Set { data: "rna", layout: Layout::Angles, splits: Some("rna"), opponent: Some(("vmf-mixture", 0.003)), ..PLACES };
const PAIR: Set = Set { manifold: "torus:2", ..TORSIONS };
const QUADRUPLE: Set = Set { manifold: "torus:4", ..TORSIONS };

/// Columns of the Parkinson's set: no identities, and none that is three times another.
const VOICE: [&str; 15] = ["4", "5", "6", "7", "8", "9", "10", "12", "13", "15", "18", "19", "20", "21", "22"];
const WINE: [&str; 11] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];

#[rustfmt::skip]
const SETS: [Set; 18] = [
    // Repeats make the kernel density of this set the opponent.
    Set { name: "volcano", data: "volcano", splits: Some("volcano"), published: Some((-7.93, 1.67)), opponent: Some(("kde", 0.005)), ..PLACES },
    Set { name: "earthquake", data: "earthquake", splits: Some("earthquake"), published: Some((-0.28, 0.08)), ..PLACES },
    Set { name: "flood", data: "flood", splits: Some("flood"), published: Some((0.42, 0.05)), ..PLACES },
    Set { name: "fire", data: "fire", splits: Some("fire"), published: Some((-1.86, 0.11)), ..PLACES },
    Set { name: "rna", manifold: "torus:7", columns: &["3", "4", "5", "6", "7", "8", "9"], published: Some((-5.20, 0.07)), ..TORSIONS },
    Set { name: "rna-3-4", columns: &["3", "4"], ..PAIR },
    Set { name: "rna-4-5", columns: &["4", "5"], ..PAIR },
    Set { name: "rna-5-6", columns: &["5", "6"], ..PAIR },
    Set { name: "rna-6-7", columns: &["6", "7"], ..PAIR },
    Set { name: "rna-7-8", columns: &["7", "8"], ..PAIR },
    Set { name: "rna-8-9", columns: &["8", "9"], ..PAIR },
    Set { name: "rna-3-6", columns: &["3", "4", "5", "6"], ..QUADRUPLE },
    Set { name: "rna-4-7", columns: &["4", "5", "6", "7"], ..QUADRUPLE },
    Set { name: "rna-5-8", columns: &["5", "6", "7", "8"], ..QUADRUPLE },
    Set { name: "rna-6-9", columns: &["6", "7", "8", "9"], ..QUADRUPLE },
    Set { name: "wine-red", data: "wine/winequality-red.csv", manifold: "euclidean:11", columns: &WINE, ..VECTORS },
    Set { name: "wine-white", data: "wine/winequality-white.csv", manifold: "euclidean:11", columns: &WINE, ..VECTORS },
    Set { name: "parkinsons", data: "parkinsons", manifold: "euclidean:15", columns: &VOICE, ..VECTORS },
];

impl Set {
    fn named(name: &str) -> Option<&'static Set> {
        SETS.iter().find(|set| set.name == name)
    }

    /// Why it cannot be used here, if it cannot.
    fn missing(&self) -> Result<Option<String>, Error> {
        let known = self.data.split('/').next().expect("a name");
        if !catalogue::find(known)?.is_at_hand() {
            return Ok(Some(format!("{}: skipped, {}", self.name, catalogue::advice(&[known]))));
        }
        let absent = self.splits.filter(|name| splits::file_of(name).is_none());
        Ok(absent.map(|name| format!("{}: skipped, there is no data/splits/{name}.csv", self.name)))
    }

    fn read(&self) -> Result<Dataset, Error> {
        let columns = self.columns.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let request = Request {
            manifold: Some(self.manifold.to_string()),
            columns: (!columns.is_empty()).then_some(columns),
            layout: Some(vec![self.layout]),
            units: (self.layout != Layout::Vector).then_some(Units::Degrees),
            ..Request::default()
        };
        Dataset::read(&locate(self.data)?, &request)
    }

    fn split(&self, data: &Dataset, seed: u64) -> Result<Split, Error> {
        match self.splits.and_then(splits::file_of) {
            Some(path) => splits::read(&path, seed, data.rows()),
            None => Ok(data.split(seed)),
        }
    }
}

/// The sets, and how they are fitted.
struct Benchmark {
    first: u64,
    seeds: usize,
    sets: Vec<(&'static Set, bool)>,
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
    rows: [usize; 3],
    leaked_share: f64,
    evaluation: Evaluation,
    log_z: Estimate,
    tried: Vec<Tried>,
    warnings: Vec<String>,
    seconds: f64,
}

impl Benchmark {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let fits = this.fit.fits(this.seed)?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", (1..=5).contains(&this.seeds), "must be from 1 to 5")?;
        demand("seed", this.seed + this.seeds as u64 <= 5, "must be below 5: there are splits for seeds 0 to 4")?;
        demand("sets", !this.sets.is_empty(), "needs at least one set")?;
        let mut sets = vec![];
        for name in &this.sets {
            let (plain, distinct) = match name.strip_suffix("-distinct") {
                Some(plain) => (plain, true),
                None => (name.as_str(), false),
            };
            let known: Vec<&str> = SETS.iter().map(|set| set.name).collect();
            let what = format!("contains `{name}`; expected {}, also with -distinct", known.join(", "));
            sets.push((Set::named(plain).ok_or_else(|| config.refuse("sets", &what))?, distinct));
        }
        Ok(Benchmark { first: this.seed, seeds: this.seeds, sets, fits })
    }

    fn fit(&self, set: &Set, data: &Dataset, distinct: bool, seed: u64, context: &Context) -> Result<Outcome, Error> {
        let mut split = set.split(data, seed)?;
        if distinct {
            let kept = distinct_indices(&data.points, data.manifold.ambient());
            for part in [&mut split.train, &mut split.validation, &mut split.test] {
                part.retain(|row| kept.binary_search(row).is_ok());
            }
        }
        let settings = self.fits.of(seed);
        let (train, validation) = (data.select(&split.train), data.select(&split.validation));
        let (model, history) = Model::learn(data.manifold.clone(), &settings, &train, &validation, context)?;
        Ok(Outcome {
            rows: [split.train.len(), split.validation.len(), split.test.len()],
            leaked_share: leaked_share(&data.points, data.manifold.ambient(), &split),
            evaluation: Evaluation::of(&model, data.select(&split.test), seed, context)?,
            log_z: model.log_z().value,
            tried: history.tried,
            warnings: history.warnings,
            seconds: context.seconds(),
        })
    }
}

/// The mean over seeds; with one of them, what its rows say.
fn over(seeds: &[Outcome], of: impl Fn(&Outcome) -> Estimate) -> Estimate {
    match seeds.iter().map(of).collect::<Vec<_>>().as_slice() {
        [single] => *single,
        several => Estimate::across(several),
    }
}

fn rows(title: &str, set: &Set, distinct: bool, seeds: &[Outcome]) -> Vec<Row> {
    let row = |what: &str, value: Estimate| Row::new(&format!("{title}: {what}"), value, seeds.len());
    let published = set.published.filter(|_| !distinct);
    let mut first = row("test NLL", over(seeds, |s| s.evaluation.test_nll)).unit("nats");
    if let Some((nll, error)) = published {
        first = first.paper(nll, Some(error)).claim(&format!("{title}: below the published score"), Claim::Below(nll));
    }
    let mut rows = vec![first];
    for (k, baseline) in seeds[0].evaluation.baselines.iter().enumerate() {
        let difference = |s: &Outcome| s.evaluation.baselines[k].difference;
        rows.push(
            row(&format!("test NLL, {}", baseline.name), over(seeds, |s| s.evaluation.baselines[k].nll)).unit("nats"),
        );
        let mut versus = row(&format!("minvel minus {}, paired", baseline.name), over(seeds, difference)).unit("nats");
        if let Some((_, limit)) = set.opponent.filter(|(method, _)| *method == baseline.method) {
            versus = versus.claim(&format!("{title}: not behind the {}", baseline.name), Claim::Below(limit));
        }
        rows.push(versus);
    }
    // An energy that was dropped on a split is none of its ingredients.
    let mut names: Vec<&str> = vec![];
    for part in seeds.iter().flat_map(|s| &s.evaluation.ingredients) {
        if !names.contains(&part.name.as_str()) {
            names.push(&part.name);
        }
    }
    for name in names {
        let with: Vec<_> =
            seeds.iter().filter_map(|s| s.evaluation.ingredients.iter().find(|part| part.name == name)).collect();
        let mean = |of: &dyn Fn(usize) -> Estimate| match with.len() {
            1 => of(0),
            count => Estimate::across(&(0..count).map(of).collect::<Vec<_>>()),
        };
        rows.push(row(&format!("minvel minus {name} alone, paired"), mean(&|k| with[k].difference)).unit("nats"));
        let weight = with.iter().map(|part| part.weight).sum::<f64>() / seeds.len() as f64;
        rows.push(row(&format!("mean weight of {name}"), Estimate::single(weight)));
    }
    if seeds.iter().all(|s| s.evaluation.velocity.is_some()) {
        let adds = over(seeds, |s| -s.evaluation.velocity.expect("all have one"));
        rows.push(row("what energies of minimum velocity add", adds).unit("nats"));
    }
    let largest =
        |of: &dyn Fn(&Outcome) -> f64| Estimate::single(seeds.iter().map(of).fold(f64::NEG_INFINITY, f64::max));
    rows.push(row("share of test rows that repeat a training row", Estimate::of(seeds.iter().map(|s| s.leaked_share))));
    rows.push(row("largest standard error of log Z", largest(&|s| s.log_z.std_error)).unit("nats"));
    rows.push(row("seconds of the longest fit", largest(&|s| s.seconds)).unit("s"));
    rows
}

impl Experiment for Benchmark {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let mut findings = Findings::default();
        let mut usable = vec![];
        for &(set, distinct) in &self.sets {
            match set.missing()? {
                Some(why) => findings.notes.push(why),
                None => usable.push((set, distinct)),
            }
        }
        runner.plan(usable.len() * self.seeds);
        for (set, distinct) in usable {
            let title = format!("{}{}", set.name, if distinct { "-distinct" } else { "" });
            let data = set.read()?;
            let mut seeds = vec![];
            for seed in (self.first..).take(self.seeds) {
                let unit = format!("{title}.seed={seed}");
                let found = runner.unit(&unit, |context| self.fit(set, &data, distinct, seed, context));
                seeds.extend(runner.if_finished(found)?);
            }
            if !seeds.is_empty() {
                findings.rows.extend(rows(&title, set, distinct, &seeds));
            }
        }
        findings.notes.push(
            "± are standard errors over seeds, whose splits share rows; with a single seed, over its test rows. The column \
             `paper` has Riemannian flow matching on these very splits, as printed; flood is from memory."
                .into(),
        );
        findings.notes.push(self.fits.note());
        Ok(findings)
    }
}
