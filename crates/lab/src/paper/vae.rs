//! Variational auto-encoders of binarised digits with Euclidean and spherical codes: the paper's first table.
//!
//! **Statement.** −log p(x) of test digits by annealing, for explicit and implicit posteriors, on Rⁿ and Sⁿ.
//! **Source.** wang2020mvl table 1; docs/math §4.6, §5. **Conventions.** Two tables: `corrected` (tanh everywhere, exact von
//! Mises–Fisher sampler with unbiased gradients, charts that do not depend on the state in annealing) and `replicate`
//! (explicit posteriors with ReLU, the official sampler, gradients and annealing).
//! **Error.** ± contains both sources, seeds and test digits; all seeds and cells see the same test digits and share their
//! seeds, so that differences are paired by both.
//! **Checked by** its own claims, tests/lab/experiment_digits.rs.

mod table;

use super::image_models::{ImageModels, Rates, Source, Trained, Variant, curves, dash_of, divergences, given};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::plot::{Figure, Plot};
use minvel::Error;
use minvel::autoencoder::{Evidence, MatchKind, PosteriorKind};
use minvel::manifold::Space;
use minvel::network::Activation;
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

/// The tables, with all that they compare.
struct Comparison {
    settings: Settings,
    tables: Vec<(Version, Vec<(Place, Variant)>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    data: String,
    seed: u64,
    seeds: usize,
    official_seeds: usize,
    tables: Vec<Version>,
    dimensions: Vec<usize>,
    latents: Vec<String>,
    posteriors: Vec<PosteriorKind>,
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
    /// The mean over seeds, digit by digit; runs of earlier versions do not have it.
    #[serde(with = "minvel::estimate::number::list", default)]
    means: Vec<f64>,
}

impl Likelihoods {
    /// Of log p̂ for each seed and digit.
    fn of(logs: &[Vec<f64>]) -> Self {
        let mean = |own: &Vec<f64>| -own.iter().sum::<f64>() / own.len() as f64;
        let digits = logs.first().map_or(vec![], |own| own.iter().map(|l| -l).collect());
        let over_seeds = |k: usize| -logs.iter().map(|own| own[k]).sum::<f64>() / logs.len() as f64;
        let count = logs.first().map_or(0, Vec::len);
        Likelihoods { seeds: logs.iter().map(mean).collect(), digits, means: (0..count).map(over_seeds).collect() }
    }
}

/// A place in the table.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    posterior: PosteriorKind,
    /// A family of manifolds.
    latent: String,
    dimension: usize,
    /// The manifold of the family and the dimension.
    space: Option<Space>,
}

/// How −log p of a cell is estimated.
struct Estimation {
    /// Name of the unit.
    unit: String,
    evidence: Evidence,
    /// In the charts of the official code.
    official: bool,
}

impl Comparison {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("official_seeds", this.official_seeds > 0, "must be positive")?;
        demand("tables", !this.tables.is_empty(), "needs at least one table")?;
        let selected = this.dimensions.len() * this.latents.len() * this.posteriors.len();
        demand("dimensions", selected > 0, "select no model together with `latents` and `posteriors`")?;
        demand("dimensions", this.dimensions.iter().all(|&n| n > 0), "must be positive")?;
        let Evaluation { images, chains, temperatures, group, .. } = this.evaluation;
        let some = images > 0 && chains > 0 && group > 0 && temperatures > 1;
        demand("evaluation", some, "needs at least one image, one chain, a group of one and two temperatures")?;
        let table = |version: &Version| Ok((*version, this.table(*version)?));
        let tables = this.tables.iter().map(table).collect::<Result<_, Error>>()?;
        Ok(Comparison { settings: this, tables })
    }

    /// Trainings of a cell: fewer of those that only the second table has.
    fn seeds_of(&self, cell: &Variant) -> usize {
        let Settings { seeds, official_seeds, .. } = self.settings;
        if cell.settings.official { seeds.min(official_seeds) } else { seeds }
    }

    fn estimation(&self, cell: &Variant, version: Version) -> Estimation {
        let Evaluation { chains, temperatures, group, .. } = self.settings.evaluation;
        let latent = &cell.model().latent;
        let plain = Evidence::on(latent, temperatures, chains, group);
        let official = version == Version::Replicate && matches!(cell.settings.latent.space(), Some(Space::Sphere(_)));
        let unit = format!("{}.{}", cell.name, if official { "official-evidence" } else { "evidence" });
        let evidence = if official { plain.replicating_the_official_charts(latent) } else { plain };
        Estimation { unit, evidence, official }
    }

    /// −log p̂ of all seeds on the chosen digits.
    fn likelihoods(
        &self,
        cell: &Variant,
        Estimation { unit, evidence, official }: &Estimation,
        digits: &ImageModels,
        runner: &mut Runner,
    ) -> Result<Likelihoods, Error> {
        let folder = runner.folder().to_path_buf();
        runner.unit(unit, |context| {
            let images = digits.binarised(self.settings.evaluation.images)?;
            let mut state = cell.state(&folder)?;
            if *official {
                state = first_replicas(&state, self.settings.official_seeds);
            }
            let logs = evidence.log_likelihoods(cell.model(), &state, &images, self.settings.seed, context)?;
            Ok(Likelihoods::of(&logs))
        })
    }

    /// −log p̂ of the first seed on all test digits.
    fn all_digits(&self, cell: &Variant, digits: &ImageModels, runner: &mut Runner) -> Result<Likelihoods, Error> {
        let folder = runner.folder().to_path_buf();
        let Estimation { unit, mut evidence, .. } = self.estimation(cell, Version::Corrected);
        evidence.group *= self.settings.seeds;
        runner.unit(&format!("{unit}-all"), |context| {
            let images = digits.binarised(usize::MAX)?;
            let state = first_replicas(&cell.state(&folder)?, 1);
            let logs = evidence.log_likelihoods(cell.model(), &state, &images, self.settings.seed + 1, context)?;
            Ok(Likelihoods::of(&logs))
        })
    }
}

impl Settings {
    /// All places of a table.
    fn table(&self, version: Version) -> Result<Vec<(Place, Variant)>, Error> {
        let mut table = vec![];
        for &dimension in &self.dimensions {
            for &posterior in &self.posteriors {
                for latent in &self.latents {
                    table.push(self.place(posterior, (latent, dimension), version)?);
                }
            }
        }
        Ok(table)
    }

    /// How a place is filled in a table: what is the same in both has the same name.
    fn place(
        &self,
        posterior: PosteriorKind,
        (latent, dimension): (&str, usize),
        version: Version,
    ) -> Result<(Place, Variant), Error> {
        let explicit = posterior == PosteriorKind::Explicit;
        let official = explicit && version == Version::Replicate;
        let kind = if explicit { MatchKind::Divergence } else { MatchKind::Conditional };
        let mut settings = self.learning.settings((latent, dimension), posterior, kind)?;
        if official {
            (settings.official, settings.activation) = (true, Activation::Relu);
        }
        let place = Place { posterior, latent: latent.to_string(), dimension, space: settings.latent.space() };
        let name = format!("{posterior}-{latent}-{dimension}{}", if official { "-official" } else { "" });
        let title = format!("{posterior}, {latent} {dimension}{}", if official { " (official)" } else { "" });
        let (method, dash, image) = (place.method(), dash_of(&settings.latent), [28, 28, 1]);
        let (learning, shown) = (settings.learning(image)?, !explicit);
        Ok((place, Variant { name, title, method, dash, image, settings, learning, every: 0, shown }))
    }

    fn digits(&self) -> ImageModels {
        ImageModels::new(Source::Mnist(given(&self.data)), self.seed)
    }

    /// Whether a place is evaluated on all digits.
    fn wants_all(&self, place: &Place, version: Version) -> bool {
        self.evaluation.all && version == Version::Corrected && place.is_ours()
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
        self.settings.digits().check()
    }

    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let digits = self.settings.digits();
        let mut cells: Vec<(Variant, Trained)> = vec![];
        // What one table has evaluated the other need not.
        let mut known: BTreeMap<String, Likelihoods> = BTreeMap::new();
        let mut tables = vec![];
        runner.plan(self.units());
        for &(version, ref places) in &self.tables {
            let mut values = vec![];
            for (place, cell) in places {
                if !cells.iter().any(|(known, _)| known.name == cell.name) {
                    let trained = cell.train(runner, &digits, (self.settings.seed, self.seeds_of(cell)));
                    let Some(trained) = runner.if_finished(trained)? else { continue };
                    cells.push((cell.clone(), trained));
                }
                let estimation = self.estimation(cell, version);
                if !known.contains_key(&estimation.unit) {
                    let likelihoods = self.likelihoods(cell, &estimation, &digits, runner);
                    let Some(likelihoods) = runner.if_finished(likelihoods)? else { continue };
                    known.insert(estimation.unit.clone(), likelihoods);
                }
                let likelihoods = known[&estimation.unit].clone();
                let wanted = self.settings.wants_all(place, version);
                let all = wanted.then(|| self.all_digits(cell, &digits, runner)).transpose();
                let all = runner.if_finished(all)?.flatten();
                values.push(Value { place: place.clone(), likelihoods, all });
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
        for &(version, ref places) in &self.tables {
            for (place, cell) in places {
                names.insert(format!("{}.train", cell.name));
                names.insert(self.estimation(cell, version).unit);
                if self.settings.wants_all(place, version) {
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
            let own = |cell: &Variant| {
                let of_dimension = cell.settings.latent.space().is_some_and(|space| space.dim() == *dimension);
                !cell.settings.official && of_dimension
            };
            let pairs: Vec<(&Variant, &Trained)> = cells.iter().filter(|(c, _)| own(c)).map(|(c, t)| (c, t)).collect();
            curves(&format!("{dimension} dimensions"), &pairs)
        };
        let plots = self.settings.dimensions.iter().map(panel).collect();
        let caption = "Learning curves, means over seeds. For implicit posteriors the value is that of the surrogate, \
                       which lacks log Z of the learnt energy: only its gradient is meaningful.";
        findings.figures.push(Figure::new("learning", caption, Plot::Row { plots }));
        for (cell, trained) in cells.iter().filter(|(cell, _)| cell.settings.posterior == PosteriorKind::Implicit) {
            findings.figures.extend(trained.figures(cell));
        }
        let Evaluation { images, chains, temperatures, .. } = self.settings.evaluation;
        findings.notes = vec![
            format!(
                "−log p(x) by annealed importance sampling: {images} test digits, binarised once, the same for all cells and seeds; \
                 {chains} chains each, {temperatures} temperatures. ± is the standard error of both seeds and test digits; the \
                 standard deviation over seeds stands beside it, since the paper's ± are standard deviations over 10 runs and leave \
                 out the digits."
            ),
            "Table `corrected`: tanh in all networks, exact von Mises–Fisher samples with unbiased gradients, charts drawn \
             independently of the state in spherical annealing. Table `replicate`: explicit posteriors with ReLU and the official \
             sampler and gradient, spherical annealing in the chart of the state, which over-estimates log p(x)."
                .into(),
        ];
        findings.notes.push(
            "Differences are paired by seed and by digit; what varies from digit to digit is part of their ± too. Digits are \
             spread evenly over the test set; where all of it was evaluated, a row says how much harder it is than the chosen \
             digits."
                .into(),
        );
        if tables.iter().flat_map(|t| &t.values).any(|v| v.likelihoods.means.is_empty()) {
            findings.notes.push(
                "Some units hold digits of the first seed only: there the scatter over digits is that seed's, which is \
                 larger than that of the mean over seeds."
                    .into(),
            );
        }
        findings.notes.extend(divergences(cells));
        findings
    }
}

impl Place {
    /// What the paper proposes: implicit and spherical.
    fn is_ours(&self) -> bool {
        self.posterior == PosteriorKind::Implicit && matches!(self.space, Some(Space::Sphere(_)))
    }
}
