//! Variational auto-encoders of binarised digits with Euclidean and spherical codes: the paper's first table.
//!
//! **Statement.** −log p(x) of test digits by annealing, for explicit and implicit posteriors, on Rⁿ and Sⁿ.
//! **Source.** wang2020mvl table 1; docs/math §4.6, §5. **Conventions.** Two tables: `corrected` (tanh everywhere, exact von
//! Mises–Fisher sampler with unbiased gradients, charts that do not depend on the state in annealing) and `replicate`
//! (explicit posteriors with ReLU, the official sampler, gradients and annealing).
//! **Error.** ± is over seeds; all seeds and cells see the same test digits.
//! **Checked by** its own claims, tests/experiment_digits.rs.

mod table;

use super::image_models::{ImageModels, Rates, Source, Trained, Variant, curves, dash_of, divergences, given};
use super::{Config, Entry, Experiment, Findings, Runner};
use crate::plot::Plot;
use crate::report::Figure;
use minvel::Error;
use minvel::autoencoder::Evidence;
use minvel_engine::State;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use table::{Table, Value};

/// The line in the list.
pub const ENTRY: Entry = Entry {
    name: "vae",
    source: "Table 1",
    about: "Likelihood of digits under variational auto-encoders, explicit and implicit, Euclidean and spherical",
    settings: include_str!("../../experiments/vae.toml"),
    check: |config| Ok(Box::new(Comparison::check(config)?)),
    hidden: false,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comparison {
    data: String,
    seed: u64,
    seeds: usize,
    official_seeds: usize,
    tables: Vec<Version>,
    dimensions: Vec<usize>,
    latents: Vec<String>,
    posteriors: Vec<String>,
    learning: Rates,
    evaluation: Evaluation,
}

/// How likelihoods are estimated.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evaluation {
    images: usize,
    chains: usize,
    temperatures: usize,
    group: usize,
    all: bool,
}

/// Which of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Version {
    Corrected,
    Replicate,
}

/// −log p̂ for each seed and digit.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Likelihoods {
    #[serde(with = "minvel::estimate::number::list")]
    seeds: Vec<f64>,
    /// Of the first seed, digit by digit.
    #[serde(with = "minvel::estimate::number::list")]
    digits: Vec<f64>,
}

/// A place in the table.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    posterior: String,
    latent: String,
    dimension: usize,
}

impl Comparison {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Comparison = config.read()?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("official_seeds", this.official_seeds > 0, "must be positive")?;
        demand("tables", !this.tables.is_empty(), "needs at least one table")?;
        demand("dimensions", !this.places().is_empty(), "select no model together with `latents` and `posteriors`")?;
        demand("dimensions", this.dimensions.iter().all(|&n| n > 0), "must be positive")?;
        let Evaluation { images, chains, temperatures, group, .. } = this.evaluation;
        let some = images > 0 && chains > 0 && group > 0 && temperatures > 1;
        demand("evaluation", some, "needs at least one image, one chain, a group of one and two temperatures")?;
        for version in &this.tables {
            for place in this.places() {
                this.cell(&place, *version).learning()?;
            }
        }
        Ok(this)
    }

    fn places(&self) -> Vec<Place> {
        let mut places = vec![];
        for &dimension in &self.dimensions {
            for posterior in &self.posteriors {
                for latent in &self.latents {
                    places.push(Place { posterior: posterior.clone(), latent: latent.clone(), dimension });
                }
            }
        }
        places
    }

    /// How a place is filled in a table: what is the same in both has the same name.
    fn cell(&self, place: &Place, version: Version) -> Variant {
        let Place { posterior, latent, dimension } = place;
        let explicit = posterior == "explicit";
        let official = explicit && version == Version::Replicate;
        let kind = if explicit { "divergence" } else { "conditional" };
        let mut settings = self.learning.settings(format!("{latent}:{dimension}"), posterior, kind);
        if official {
            (settings.official, settings.activation) = (true, "relu".into());
        }
        let name = format!("{posterior}-{latent}-{dimension}{}", if official { "-official" } else { "" });
        let title = format!("{posterior}, {latent} {dimension}{}", if official { " (official)" } else { "" });
        let (method, dash) = (place.method(), dash_of(latent));
        Variant { name, title, method, dash, image: [28, 28, 1], settings, every: 0, shown: !explicit }
    }

    /// Trainings of a cell: fewer of those that only the second table has.
    fn seeds_of(&self, cell: &Variant) -> usize {
        if cell.settings.official { self.seeds.min(self.official_seeds) } else { self.seeds }
    }

    fn evidence(&self, cell: &Variant, version: Version) -> Result<(String, Evidence), Error> {
        let Evaluation { chains, temperatures, group, .. } = self.evaluation;
        let model = cell.model()?;
        let plain = Evidence::on(&model.latent, temperatures, chains, group);
        let official = version == Version::Replicate && cell.settings.latent.starts_with("sphere");
        Ok(if official {
            (format!("{}.official-evidence", cell.name), plain.replicating_the_official_charts(&model.latent))
        } else {
            (format!("{}.evidence", cell.name), plain)
        })
    }

    /// −log p̂ of all seeds on the chosen digits.
    fn likelihoods(
        &self,
        cell: &Variant,
        unit: &str,
        evidence: &Evidence,
        digits: &ImageModels,
        runner: &mut Runner,
    ) -> Result<Likelihoods, Error> {
        let folder = runner.folder().to_path_buf();
        runner.unit(unit, |context| {
            let images = digits.binarised(self.evaluation.images)?;
            let mut state = cell.state(&folder)?;
            if unit.ends_with("official-evidence") {
                state = first_replicas(&state, self.official_seeds);
            }
            let logs = evidence.log_likelihoods(&cell.model()?, &state, &images, self.seed, context)?;
            let negative = |own: &Vec<f64>| own.iter().map(|l| -l).collect::<Vec<f64>>();
            let mean = |own: &Vec<f64>| -own.iter().sum::<f64>() / own.len() as f64;
            Ok(Likelihoods { seeds: logs.iter().map(mean).collect(), digits: logs.first().map_or(vec![], negative) })
        })
    }

    /// −log p̂ of the first seed on all test digits.
    fn all_digits(&self, cell: &Variant, digits: &ImageModels, runner: &mut Runner) -> Result<Likelihoods, Error> {
        let folder = runner.folder().to_path_buf();
        let (unit, mut evidence) = self.evidence(cell, Version::Corrected)?;
        evidence.group *= self.seeds;
        runner.unit(&format!("{unit}-all"), |context| {
            let images = digits.binarised(usize::MAX)?;
            let state = first_replicas(&cell.state(&folder)?, 1);
            let logs = evidence.log_likelihoods(&cell.model()?, &state, &images, self.seed + 1, context)?;
            let digits: Vec<f64> = logs[0].iter().map(|l| -l).collect();
            Ok(Likelihoods { seeds: vec![digits.iter().sum::<f64>() / digits.len() as f64], digits })
        })
    }
}

/// The first seeds alone.
fn first_replicas(state: &State<f32>, count: usize) -> State<f32> {
    let count = count.min(state.replicas());
    let mut first = State::new(count);
    for (name, values) in state.iter() {
        let len = values.len() / state.replicas();
        first.set(name, &values[..count * len], len);
    }
    first
}

impl Experiment for Comparison {
    fn ready(&self) -> Result<(), Error> {
        ImageModels::new(Source::Mnist(given(&self.data)), self.seed).check()
    }

    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let digits = ImageModels::new(Source::Mnist(given(&self.data)), self.seed);
        let mut cells: Vec<(Variant, Trained)> = vec![];
        // What one table has evaluated the other need not.
        let mut known: BTreeMap<String, Likelihoods> = BTreeMap::new();
        let mut tables = vec![];
        runner.plan(self.units());
        for &version in &self.tables {
            let mut values = vec![];
            for place in self.places() {
                let cell = self.cell(&place, version);
                if !cells.iter().any(|(known, _)| known.name == cell.name) {
                    let trained = cell.train(runner, &digits, (self.seed, self.seeds_of(&cell)));
                    let Some(trained) = runner.if_finished(trained)? else { continue };
                    cells.push((cell.clone(), trained));
                }
                let (unit, evidence) = self.evidence(&cell, version)?;
                if !known.contains_key(&unit) {
                    let likelihoods = self.likelihoods(&cell, &unit, &evidence, &digits, runner);
                    let Some(likelihoods) = runner.if_finished(likelihoods)? else { continue };
                    known.insert(unit.clone(), likelihoods);
                }
                let likelihoods = known[&unit].clone();
                let wanted = self.evaluation.all && version == Version::Corrected && place.is_ours();
                let all = wanted.then(|| self.all_digits(&cell, &digits, runner)).transpose();
                let all = runner.if_finished(all)?.flatten();
                values.push(Value { place, likelihoods, all });
            }
            tables.push(Table { version, values });
        }
        Ok(self.findings(&cells, &tables))
    }
}

impl Comparison {
    /// Units that will be run: trainings, likelihoods and those on all digits, each once.
    fn units(&self) -> usize {
        let mut names = BTreeSet::new();
        for &version in &self.tables {
            for place in self.places() {
                let cell = self.cell(&place, version);
                names.insert(format!("{}.train", cell.name));
                names.extend(self.evidence(&cell, version).map(|(unit, _)| unit));
                if self.evaluation.all && version == Version::Corrected && place.is_ours() {
                    names.insert(format!("{}.all", cell.name));
                }
            }
        }
        names.len()
    }

    fn findings(&self, cells: &[(Variant, Trained)], tables: &[Table]) -> Findings {
        let mut findings = Findings::default();
        for table in tables {
            findings.rows.extend(table.rows());
        }
        findings.figures.extend(tables.iter().map(Table::figure));
        let panel = |dimension: &usize| {
            let own =
                |cell: &Variant| !cell.settings.official && cell.settings.latent.ends_with(&format!(":{dimension}"));
            let pairs: Vec<(&Variant, &Trained)> = cells.iter().filter(|(c, _)| own(c)).map(|(c, t)| (c, t)).collect();
            curves(&format!("{dimension} dimensions"), &pairs)
        };
        let plots = self.dimensions.iter().map(panel).collect();
        let caption = "Learning curves, means over seeds. For implicit posteriors the value is that of the surrogate, \
                       which lacks log Z of the learnt energy: only its gradient is meaningful.";
        findings.figures.push(Figure::new("learning", caption, Plot::Row { plots }));
        for (cell, trained) in cells.iter().filter(|(cell, _)| cell.settings.posterior == "implicit") {
            findings.figures.extend(trained.figures(cell));
        }
        let Evaluation { images, chains, temperatures, .. } = self.evaluation;
        findings.notes = vec![
            format!(
                "−log p(x) by annealed importance sampling: {images} test digits, binarised once, the same for all cells and seeds; \
                 {chains} chains each, {temperatures} temperatures. ± is the standard error over seeds; the paper's ± are standard \
                 deviations over 10 runs."
            ),
            "Table `corrected`: tanh in all networks, exact von Mises–Fisher samples with unbiased gradients, charts drawn \
             independently of the state in spherical annealing. Table `replicate`: explicit posteriors with ReLU and the official \
             sampler and gradient, spherical annealing in the chart of the state, which over-estimates log p(x)."
                .into(),
        ];
        findings.notes.extend(divergences(cells));
        findings
    }
}

impl Place {
    /// What the paper proposes: implicit and spherical.
    fn is_ours(&self) -> bool {
        self.posterior == "implicit" && self.latent == "sphere"
    }
}
