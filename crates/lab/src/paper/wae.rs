//! Wasserstein auto-encoders of digits: velocity, adversarial and MMD matching, Euclidean and spherical codes.
//!
//! **Statement.** Fréchet distance between features of 10 000 samples and of the 10 000 test digits, binarised.
//! **Source.** wang2020mvl table 2; docs/math §4.7. **Conventions.** FeatureMap are the 512 of a LeNet that is trained first, as
//! the paper's code did, and the 2048 of Inception: values compare within one network only.
//! **Error.** ± is over seeds; methods share seeds, so that differences are paired by seed and decided by Student's test. The
//! bias of N = 10 000 is the same for all.
//! **Checked by** its own claims, tests/lab/experiment_digits.rs.

mod table;

use super::image_models::{
    ImageModels, Judging, Rates, Source, Trained, Variant, beside_paper, curves, dash_of, divergences, given,
};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::fid::{FeatureMap, Fid, Grey, Inception, Lenet, Origin, Schooling};
use crate::image::mnist;
use crate::plot::Figure;
use crate::report::{Row, student};
use minvel::Error;
use minvel::autoencoder::{AutoencoderSettings, MatchKind, PosteriorKind};
use minvel::estimate::Estimate;
use minvel::manifold::Space;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use table::{Judge, Value};

/// The line in the list.
pub const ENTRY: Entry = Entry {
    name: "wae",
    source: "Table 2",
    about: "Fréchet distance of digits under Wasserstein auto-encoders: ours, adversarial and MMD, Euclidean and spherical",
    settings: include_str!("../../experiments/wae.toml"),
    check: |config| Ok(Box::new(Comparison::check(config)?)),
    hidden: false,
};

/// The table, with all that it compares.
struct Comparison {
    settings: Settings,
    /// With the family of the latent manifold.
    cells: Vec<(String, Variant)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    data: String,
    lenet: String,
    epochs: u32,
    inception: SecondJudge,
    seed: u64,
    seeds: usize,
    dimension: usize,
    latents: Vec<String>,
    methods: Vec<MatchKind>,
    samples: usize,
    learning: Rates,
}

/// Whether Inception judges too.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SecondJudge {
    /// If its weights are on this machine.
    Auto,
    Yes,
    No,
}

impl Comparison {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Settings = config.read()?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("epochs", this.epochs > 0, "must be positive")?;
        demand("samples", this.samples > 1, "must be at least 2")?;
        demand("dimension", this.dimension > 0, "must be positive")?;
        demand("latents", !this.latents.is_empty(), "needs at least one manifold")?;
        demand("methods", !this.methods.is_empty(), "needs at least one method")?;
        let mut cells = vec![];
        for &method in &this.methods {
            for latent in &this.latents {
                cells.push((latent.clone(), this.cell(method, latent)?));
            }
        }
        Ok(Comparison { settings: this, cells })
    }
}

impl Settings {
    fn cell(&self, method: MatchKind, latent: &str) -> Result<Variant, Error> {
        let settings = self.learning.settings((latent, self.dimension), PosteriorKind::Point, method)?;
        let image = [28, 28, 1];
        Ok(Variant {
            name: format!("{method}-{latent}"),
            title: format!("{method}, {latent}"),
            method: method.to_string(),
            dash: dash_of(&settings.latent),
            image,
            learning: settings.learning(image)?,
            settings,
            every: 0,
            shown: true,
        })
    }

    fn digits(&self) -> ImageModels {
        ImageModels::new(Source::Mnist(given(&self.data)), self.seed)
    }
}

impl Comparison {
    /// The network that judges, given or trained first: where it is, and where it comes from.
    fn judge(&self, runner: &mut Runner) -> Result<(PathBuf, Origin), Error> {
        let Settings { data, lenet, epochs, .. } = &self.settings;
        if !lenet.is_empty() {
            let path = PathBuf::from(lenet);
            let origin = Lenet::read(&path)?.origin;
            return Ok((path, origin));
        }
        let folder = given(data);
        let models = runner.folder().join("models");
        let path = models.join("lenet.safetensors");
        let origin = runner.unit("lenet", |context| {
            let (train, test) = (mnist::train(folder.as_deref())?, mnist::test(folder.as_deref())?);
            let schooling = Schooling { epochs: *epochs, ..Schooling::default() };
            let network = Lenet::train(&train, &test, &schooling, context)?;
            minvel::file::create_folder(&models)?;
            network.write(&path)?;
            Ok(network.origin)
        })?;
        Ok((path, origin))
    }

    /// Those who judge.
    fn judges(&self) -> Vec<Judge> {
        let second = match self.settings.inception {
            SecondJudge::Auto => Inception::home().is_ok(),
            SecondJudge::Yes => true,
            SecondJudge::No => false,
        };
        if second { vec![Judge::Lenet, Judge::Inception] } else { vec![Judge::Lenet] }
    }

    /// One of them, given where the LeNet is.
    fn network(judge: Judge, lenet: &Path) -> Result<Box<dyn FeatureMap>, Error> {
        Ok(match judge {
            Judge::Lenet => Box::new(Lenet::read(lenet)?),
            Judge::Inception => Box::new(Grey::new(Inception::find()?.of([28, 28]))),
        })
    }

    fn judging(&self) -> Judging {
        Judging { samples: self.settings.samples, seed: self.settings.seed }
    }

    /// The distance of each seed's samples from the test digits.
    fn distances(
        &self,
        cell: &Variant,
        (judge, lenet): (Judge, &Path),
        reference: &Path,
        runner: &mut Runner,
    ) -> Result<Vec<Fid>, Error> {
        let folder = runner.folder().to_path_buf();
        let unit = match judge {
            Judge::Lenet => "fid",
            Judge::Inception => judge.name(),
        };
        runner.unit(&format!("{}.{unit}", cell.name), |context| {
            context.begin(unit, self.settings.seeds as u64, 0);
            let (network, model) = (Self::network(judge, lenet)?, (cell, cell.state(&folder)?));
            let distances = self.judging().distances(&*network, reference, model, context, 0)?;
            context.end();
            Ok(distances)
        })
    }
}

impl Experiment for Comparison {
    fn ready(&self) -> Result<(), Error> {
        let lenet = &self.settings.lenet;
        if !lenet.is_empty() {
            Lenet::read(Path::new(lenet))?;
        }
        if self.judges().contains(&Judge::Inception) {
            Inception::find()?;
        }
        self.settings.digits().check()
    }

    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let Settings { seed, seeds, ref lenet, .. } = self.settings;
        let digits = self.settings.digits();
        let own = usize::from(lenet.is_empty());
        let judges = self.judges();
        runner.plan(own + judges.len() + (1 + judges.len()) * self.cells.len());
        let network = self.judge(runner);
        let network = runner.if_finished(network)?;
        let mut references = vec![];
        for &judge in judges.iter().filter(|_| network.is_some()) {
            let (lenet, _) = network.as_ref().expect("filtered above");
            let unit = format!("reference-{}", judge.name());
            let reference = self.judging().reference(&unit, || Self::network(judge, lenet), &digits, runner);
            references.extend(runner.if_finished(reference)?.map(|reference| (judge, reference)));
        }
        let (mut cells, mut values) = (vec![], vec![]);
        for (latent, cell) in &self.cells {
            let trained = cell.train(runner, &digits, (seed, seeds));
            let Some(trained) = runner.if_finished(trained)? else { continue };
            for &(judge, ref reference) in &references {
                let (lenet, _) = network.as_ref().expect("there are references");
                let distances = self.distances(cell, (judge, lenet), reference, runner);
                let Some(distances) = runner.if_finished(distances)? else { continue };
                let AutoencoderSettings { latent: manifold, matching, .. } = &cell.settings;
                let (method, space) = (matching.kind, manifold.space());
                values.push(Value { judge, method, latent: latent.clone(), space, distances });
            }
            cells.push((cell.clone(), trained));
        }
        let (_, origin) = network.ok_or(Error::Interrupted)?;
        Ok(self.findings(&origin, &cells, &values))
    }
}

/// How many seeds would show a difference with this scatter.
fn seeds_needed(difference: Estimate) -> String {
    let deviation = difference.std_error * (difference.count as f64).sqrt();
    if deviation.is_nan() {
        return "unknown (one seed)".into();
    }
    student::pairs_needed(difference.mean, deviation).map_or("more than 100 000".into(), |n| n.to_string())
}

impl Comparison {
    fn findings(&self, origin: &Origin, cells: &[(Variant, Trained)], values: &[Value]) -> Findings {
        let mut rows: Vec<Row> = values.iter().map(|value| value.row(self.settings.seeds)).collect();
        let mut needed = vec![];
        let mut compare = |better: Option<&Value>, worse: Option<&Value>| {
            let (Some(better), Some(worse)) = (better, worse) else { return };
            let (one, other) = (better.title(), worse.title());
            let name = format!("{}, {one} minus {other}", better.kind());
            let difference = Fid::paired(&better.distances, 1.0, &worse.distances);
            let claim = format!("{one} is better than {other}{}", better.by());
            let pairs = difference.count as usize;
            let row =
                Row::new(&name, difference, pairs).significantly_below(&claim, difference.count.saturating_sub(1));
            needed.push(format!("{one} against {other}{} {}", better.by(), seeds_needed(difference)));
            rows.push(row);
        };
        let judges = self.judged(values);
        for judge in &judges {
            let of = |method: MatchKind| values.iter().filter(move |v| v.judge == *judge && v.method == method);
            let on = |method, space| of(method).find(|v| v.space == Some(space));
            for &method in &self.settings.methods {
                let n = self.settings.dimension;
                compare(on(method, Space::Sphere(n)), on(method, Space::Euclidean(n)));
            }
            for latent in &self.settings.latents {
                let on = |method| of(method).find(|v| v.latent == *latent);
                compare(on(MatchKind::Velocity), on(MatchKind::Adversarial));
            }
        }
        let pairs: Vec<(&Variant, &Trained)> = cells.iter().map(|(c, t)| (c, t)).collect();
        let caption =
            "Loss of encoder and decoder, means over seeds; the matching term is scaled differently in each method.";
        let mut figures: Vec<Figure> = judges.iter().map(|judge| self.figure(*judge, values)).collect();
        figures.push(Figure::new("learning", caption, curves("", &pairs)));
        figures.extend(cells.iter().flat_map(|(cell, trained)| trained.figures(cell)));
        let Origin { schooling, test_error, .. } = origin;
        let mut notes = vec![
            format!(
                "FID with the 512 features of a LeNet that we trained for {} epochs (test error {:.2} %) on binarised \
                 pixels: {} samples of each model against the 10 000 test digits. The paper's network is not known, \
                 so absolute values are only roughly comparable.",
                schooling.epochs,
                100.0 * test_error,
                self.settings.samples
            ),
            "± is the standard error over seeds; the paper's ± are standard deviations. Differences are paired by seed: \
             methods share first weights, batches and noise."
                .into(),
            format!(
                "Seeds that would decide a claim with probability 0.8, if difference and scatter are as found: {}.",
                needed.join("; ")
            ),
        ];
        if judges.contains(&Judge::Inception) {
            notes.push(
                "Inception was given the same binarised digits as three equal channels; the paper has no such \
                        values."
                    .into(),
            );
        }
        notes.extend(divergences(cells));
        Findings { rows, figures, notes }
    }

    /// Those who judged something.
    fn judged(&self, values: &[Value]) -> Vec<Judge> {
        [Judge::Lenet, Judge::Inception].into_iter().filter(|judge| values.iter().any(|v| v.judge == *judge)).collect()
    }

    /// Ours and the paper's, one below another.
    fn figure(&self, judge: Judge, values: &[Value]) -> Figure {
        let entry = |v: &Value| (v.title(), v.method.to_string(), v.fid(), v.paper());
        let entries = values.iter().filter(|v| v.judge == judge).map(entry);
        if judge == Judge::Lenet {
            let caption = "FID of each model and, below it, the paper's (with another LeNet; of an unstated number of \
                           runs, taken to be ten); whiskers are 95 % intervals of the mean over seeds.";
            return Figure::new("table", caption, beside_paper("Fréchet distance of LeNet features", entries));
        }
        let caption = "The same with Inception's features.";
        Figure::new(
            &format!("table-{}", judge.name()),
            caption,
            beside_paper("Fréchet distance of Inception's features", entries),
        )
    }
}
