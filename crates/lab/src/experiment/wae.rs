//! Wasserstein auto-encoders of digits: velocity, adversarial and MMD matching, Euclidean and spherical codes.
//!
//! **Statement.** Fréchet distance between features of 10 000 samples and of the 10 000 test digits, binarised.
//! **Source.** wang2020mvl table 2; docs/math §4.7. **Conventions.** FeatureMap are the 512 of a LeNet that is trained first, as
//! the paper's code did, and the 2048 of Inception: values compare within one network only.
//! **Error.** ± is over seeds; the bias of N = 10 000 is the same for all.
//! **Checked by** its own claims, tests/experiment_digits.rs.

use super::image_models::{
    ImageModels, Judging, Rates, Source, Trained, Variant, beside_paper, curves, dash_of, divergences, given,
};
use super::{Config, Entry, Experiment, Findings, Runner};
use crate::data::mnist;
use crate::fid::{FeatureMap, Fid, Grey, Inception, Lenet, Origin, Schooling};
use crate::report::{Claim, Figure, Row};
use minvel::Error;
use minvel::estimate::Estimate;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The line in the list.
pub const ENTRY: Entry = Entry {
    name: "wae",
    source: "Table 2",
    about: "Fréchet distance of digits under Wasserstein auto-encoders: ours, adversarial and MMD, Euclidean and spherical",
    settings: include_str!("../../experiments/wae.toml"),
    check: |config| Ok(Box::new(Comparison::check(config)?)),
    hidden: false,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comparison {
    data: String,
    lenet: String,
    epochs: u32,
    inception: String,
    seed: u64,
    seeds: usize,
    dimension: usize,
    latents: Vec<String>,
    methods: Vec<String>,
    samples: usize,
    learning: Rates,
}

/// The paper's table: method, latent, mean and standard deviation.
const PAPER: [(&str, &str, f64, f64); 4] = [
    ("adversarial", "euclidean", 24.59, 1.16),
    ("adversarial", "sphere", 19.81, 1.13),
    ("velocity", "euclidean", 23.80, 1.06),
    ("velocity", "sphere", 18.36, 0.73),
];

/// Standard errors by which one cell must be better than another.
const SURELY: f64 = 2.0;

impl Comparison {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Comparison = config.read()?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("epochs", this.epochs > 0, "must be positive")?;
        demand("inception", ["auto", "yes", "no"].contains(&this.inception.as_str()), "must be auto, yes or no")?;
        demand("samples", this.samples > 1, "must be at least 2")?;
        demand("dimension", this.dimension > 0, "must be positive")?;
        demand("latents", !this.latents.is_empty(), "needs at least one manifold")?;
        demand("methods", !this.methods.is_empty(), "needs at least one method")?;
        for method in &this.methods {
            for latent in &this.latents {
                this.cell(method, latent).learning()?;
            }
        }
        Ok(this)
    }

    fn cell(&self, method: &str, latent: &str) -> Variant {
        let settings = self.learning.settings(format!("{latent}:{}", self.dimension), "point", method);
        Variant {
            name: format!("{method}-{latent}"),
            title: format!("{method}, {latent}"),
            method: method.into(),
            dash: dash_of(latent),
            image: [28, 28, 1],
            settings,
            every: 0,
            shown: true,
        }
    }
}

impl Comparison {
    /// The network that judges, given or trained first: where it is, and where it comes from.
    fn judge(&self, runner: &mut Runner) -> Result<(PathBuf, Origin), Error> {
        if !self.lenet.is_empty() {
            let path = PathBuf::from(&self.lenet);
            let origin = Lenet::read(&path)?.origin;
            return Ok((path, origin));
        }
        let folder = given(&self.data);
        let models = runner.folder().join("models");
        let path = models.join("lenet.safetensors");
        let origin = runner.unit("lenet", |context| {
            let (train, test) = (mnist::train(folder.as_deref())?, mnist::test(folder.as_deref())?);
            let schooling = Schooling { epochs: self.epochs, ..Schooling::default() };
            let network = Lenet::train(&train, &test, &schooling, context)?;
            minvel::file::create_folder(&models)?;
            network.write(&path)?;
            Ok(network.origin)
        })?;
        Ok((path, origin))
    }

    /// Those who judge.
    fn judges(&self) -> Vec<&'static str> {
        let second = match self.inception.as_str() {
            "auto" => Inception::home().is_ok(),
            said => said == "yes",
        };
        if second { vec![LENET, INCEPTION] } else { vec![LENET] }
    }

    /// One of them, given where the LeNet is.
    fn network(judge: &str, lenet: &Path) -> Result<Box<dyn FeatureMap>, Error> {
        Ok(if judge == LENET {
            Box::new(Lenet::read(lenet)?)
        } else {
            Box::new(Grey::new(Inception::find()?.of([28, 28])))
        })
    }

    fn judging(&self) -> Judging {
        Judging { samples: self.samples, seed: self.seed }
    }

    /// The distance of each seed's samples from the test digits.
    fn distances(
        &self,
        cell: &Variant,
        (judge, lenet): (&str, &Path),
        reference: &Path,
        runner: &mut Runner,
    ) -> Result<Vec<Fid>, Error> {
        let folder = runner.folder().to_path_buf();
        let unit = if judge == LENET { "fid" } else { judge };
        runner.unit(&format!("{}.{unit}", cell.name), |context| {
            context.begin(unit, self.seeds as u64, 0);
            let (network, model) = (Self::network(judge, lenet)?, (cell, cell.state(&folder)?));
            let distances = self.judging().distances(&*network, reference, model, context, 0)?;
            context.end();
            Ok(distances)
        })
    }
}

impl Experiment for Comparison {
    fn ready(&self) -> Result<(), Error> {
        if !self.lenet.is_empty() {
            Lenet::read(Path::new(&self.lenet))?;
        }
        if self.judges().contains(&INCEPTION) {
            Inception::find()?;
        }
        ImageModels::new(Source::Mnist(given(&self.data)), self.seed).check()
    }

    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let digits = ImageModels::new(Source::Mnist(given(&self.data)), self.seed);
        let own = usize::from(self.lenet.is_empty());
        let judges = self.judges();
        runner.plan(own + judges.len() + (1 + judges.len()) * self.methods.len() * self.latents.len());
        let (lenet, origin) = self.judge(runner)?;
        let mut references = vec![];
        for &judge in &judges {
            let unit = format!("reference-{judge}");
            let reference = self.judging().reference(&unit, || Self::network(judge, &lenet), &digits, runner);
            references.push((judge, runner.if_finished(reference)?.unwrap_or_default()));
        }
        let (mut cells, mut values) = (vec![], vec![]);
        for method in &self.methods {
            for latent in &self.latents {
                let cell = self.cell(method, latent);
                let trained = cell.train(runner, &digits, (self.seed, self.seeds));
                let Some(trained) = runner.if_finished(trained)? else { continue };
                for (judge, reference) in &references {
                    let distances = self.distances(&cell, (judge, &lenet), reference, runner);
                    let Some(distances) = runner.if_finished(distances)? else { continue };
                    values.push(Value { judge, method: method.clone(), latent: latent.clone(), distances });
                }
                cells.push((cell, trained));
            }
        }
        Ok(self.findings(&origin, &cells, &values))
    }
}

impl Comparison {
    fn findings(&self, origin: &Origin, cells: &[(Variant, Trained)], values: &[Value]) -> Findings {
        let mut rows: Vec<Row> = values.iter().map(|value| value.row(self.seeds)).collect();
        let mut compare = |better: Option<&Value>, worse: Option<&Value>| {
            let (Some(better), Some(worse)) = (better, worse) else { return };
            let (one, other) = (better.title(), worse.title());
            let row =
                Row::new(&format!("{}, {one} minus {other}", better.kind()), better.fid() - worse.fid(), self.seeds);
            let claim = format!("{one} is better than {other}{}", better.by());
            rows.push(row.claim(&claim, Claim::SurelyBelow { limit: 0.0, sigmas: SURELY }));
        };
        let judges = self.judged(values);
        for judge in &judges {
            let is =
                |v: &Value, method: &str, latent: &str| v.judge == *judge && v.method == method && v.latent == latent;
            let find = |method: &str, latent: &str| values.iter().find(|v| is(v, method, latent));
            for method in &self.methods {
                compare(find(method, "sphere"), find(method, "euclidean"));
            }
            for latent in &self.latents {
                compare(find("velocity", latent), find("adversarial", latent));
            }
        }
        let pairs: Vec<(&Variant, &Trained)> = cells.iter().map(|(c, t)| (c, t)).collect();
        let caption =
            "Loss of encoder and decoder, means over seeds; the matching term is scaled differently in each method.";
        let mut figures: Vec<Figure> = judges.iter().map(|judge| self.figure(judge, values)).collect();
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
                self.samples
            ),
            "± is the standard error over seeds; the paper's ± are standard deviations.".into(),
        ];
        if judges.contains(&INCEPTION) {
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
    fn judged(&self, values: &[Value]) -> Vec<&'static str> {
        [LENET, INCEPTION].into_iter().filter(|judge| values.iter().any(|v| v.judge == *judge)).collect()
    }

    /// Ours and the paper's, one below another.
    fn figure(&self, judge: &str, values: &[Value]) -> Figure {
        let entry = |v: &Value| (v.title(), v.method.clone(), v.fid(), v.paper());
        let entries = values.iter().filter(|v| v.judge == judge).map(entry);
        if judge == LENET {
            let caption = "FID of each model and, below it, the paper's (with another LeNet); whiskers are 95 % \
                           intervals of the mean over seeds.";
            return Figure::new("table", caption, beside_paper("Fréchet distance of LeNet features", entries));
        }
        let caption = "The same with Inception's features.";
        Figure::new(
            &format!("table-{judge}"),
            caption,
            beside_paper("Fréchet distance of Inception's features", entries),
        )
    }
}

/// Names of those who judge.
const LENET: &str = "lenet";
const INCEPTION: &str = "inception";

/// One number of the table.
struct Value {
    judge: &'static str,
    method: String,
    latent: String,
    distances: Vec<Fid>,
}

impl Value {
    fn fid(&self) -> Estimate {
        Fid::across(&self.distances)
    }

    fn title(&self) -> String {
        format!("{} {}", self.method, self.latent)
    }

    /// What was measured.
    fn kind(&self) -> &'static str {
        if self.judge == LENET { "FID" } else { "Inception's FID" }
    }

    /// Who says so, if it is not the paper's kind of judge.
    fn by(&self) -> &'static str {
        if self.judge == LENET { "" } else { ", by Inception" }
    }

    fn paper(&self) -> Option<(f64, f64)> {
        if self.judge != LENET {
            return None;
        }
        let is = |(method, latent, ..): &&(&str, &str, f64, f64)| *method == self.method && *latent == self.latent;
        PAPER.iter().find(is).map(|&(.., mean, deviation)| (mean, deviation))
    }

    fn row(&self, seeds: usize) -> Row {
        let Estimate { std_error, count, .. } = self.fid();
        let deviation = std_error * (count as f64).sqrt();
        let row = Row::new(
            &format!("{}, {} (standard deviation {deviation:.2})", self.kind(), self.title()),
            self.fid(),
            seeds,
        );
        match self.paper() {
            Some((mean, deviation)) => row.paper(mean, Some(deviation)),
            None => row,
        }
    }
}
