//! The table, what is claimed of it, and its picture.

use super::{Likelihoods, Place, Version};
use crate::paper::image_models::beside_paper;
use crate::plot::Figure;
use crate::report::{Claim, Row};
use minvel::autoencoder::PosteriorKind::{self, Explicit, Implicit};
use minvel::estimate::Estimate;
use minvel::manifold::Space::{self, Euclidean, Sphere};

/// One number of the table.
pub(super) struct Value {
    pub place: Place,
    pub likelihoods: Likelihoods,
    /// On all test digits, of the first seed.
    pub all: Option<Likelihoods>,
}

/// All numbers of a version.
pub(super) struct Table {
    pub version: Version,
    pub values: Vec<Value>,
}

/// The paper's table: posterior, latent space, mean and standard deviation over 10 runs.
const PAPER: [(PosteriorKind, Space, f64, f64); 8] = [
    (Explicit, Euclidean(8), 96.45, 0.10),
    (Explicit, Sphere(8), 95.47, 0.08),
    (Explicit, Euclidean(32), 90.28, 0.37),
    (Explicit, Sphere(32), 91.32, 0.07),
    (Implicit, Euclidean(8), 95.84, 0.19),
    (Implicit, Sphere(8), 94.72, 0.16),
    (Implicit, Euclidean(32), 90.33, 0.26),
    (Implicit, Sphere(32), 88.81, 0.14),
];
/// Standard errors by which one cell must be better than another.
const SURELY: f64 = 2.0;
/// Nats by which we may be worse than the paper.
const NEAR: f64 = 1.0;

impl Place {
    fn paper(&self) -> Option<(f64, f64)> {
        let own = PAPER.iter().find(|(posterior, space, ..)| self.is(*posterior, *space));
        own.map(|&(.., mean, deviation)| (mean, deviation))
    }

    fn is(&self, posterior: PosteriorKind, space: Space) -> bool {
        self.posterior == posterior && self.space == Some(space)
    }

    /// What decides its colour.
    pub fn method(&self) -> String {
        format!("{}-{}", self.posterior, self.latent)
    }

    fn title(&self) -> String {
        format!("{} {} {}", self.posterior, self.latent, self.dimension)
    }
}

impl Version {
    fn name(self) -> &'static str {
        match self {
            Version::Corrected => "corrected",
            Version::Replicate => "replicate",
        }
    }
}

impl Value {
    fn nll(&self) -> Estimate {
        Estimate::of(self.likelihoods.seeds.iter().copied())
    }

    /// Standard deviation over seeds.
    fn deviation(&self) -> f64 {
        let Estimate { std_error, count, .. } = self.nll();
        std_error * (count as f64).sqrt()
    }
}

impl Table {
    fn find(&self, posterior: PosteriorKind, space: Space) -> Option<&Value> {
        self.values.iter().find(|v| v.place.is(posterior, space))
    }

    fn row(&self, name: &str, value: Estimate) -> Row {
        Row::new(&format!("{}: {name}", self.version.name()), value, value.count as usize).unit("nats")
    }

    /// Numbers, then claims.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = vec![];
        for value in &self.values {
            let name = format!("−log p(x), {} (standard deviation {:.2})", value.place.title(), value.deviation());
            let row = self.row(&name, value.nll());
            rows.push(match value.place.paper() {
                Some((mean, deviation)) => row.paper(mean, Some(deviation)),
                None => row,
            });
            if let Some(all) = &value.all {
                let name = format!("−log p(x), {}, first seed, all {} digits", value.place.title(), all.digits.len());
                let row = Row { seeds: 1, ..self.row(&name, Estimate::of(all.digits.iter().copied())) };
                rows.push(
                    value.place.paper().map_or(row.clone(), |(mean, deviation)| row.paper(mean, Some(deviation))),
                );
            }
        }
        let mut dimensions: Vec<usize> = self.values.iter().map(|v| v.place.dimension).collect();
        dimensions.dedup();
        rows.extend(dimensions.iter().flat_map(|&n| self.claims(n)));
        rows
    }

    fn claims(&self, dimension: usize) -> Vec<Row> {
        let mut rows = vec![];
        if let Some(ours) = self.find(Implicit, Sphere(dimension)) {
            for other in self.values.iter().filter(|v| v.place.dimension == dimension && v.place != ours.place) {
                let (title, than) = (ours.place.title(), other.place.title());
                let difference = ours.nll() - other.nll();
                rows.push(self.row(&format!("−log p(x), {title} minus {than}"), difference).claim(
                    &format!("{title} is better than {than}"),
                    Claim::SurelyBelow { limit: 0.0, sigmas: SURELY },
                ));
            }
            if let Some((mean, deviation)) = ours.place.paper() {
                let title = ours.place.title();
                rows.push(
                    self.row(&format!("−log p(x), {title}, beside the paper's"), ours.nll())
                        .paper(mean, Some(deviation))
                        .claim(&format!("{title} is within 1 nat of the paper, or better"), Claim::Below(mean + NEAR)),
                );
            }
        }
        if dimension == 32 {
            let pair = (self.find(Explicit, Euclidean(32)), self.find(Explicit, Sphere(32)));
            if let (Some(flat), Some(round)) = pair {
                let name = "−log p(x), explicit euclidean 32 minus explicit sphere 32";
                rows.push(self.row(name, flat.nll() - round.nll()).claim(
                    "explicit sphere loses to explicit euclidean at 32",
                    Claim::SurelyBelow { limit: 0.0, sigmas: SURELY },
                ));
            }
        }
        rows
    }

    /// Ours and the paper's, one below another.
    pub fn figure(&self) -> Figure {
        let entry = |v: &Value| (v.place.title(), v.place.method(), v.nll(), v.place.paper());
        let plot = beside_paper("−log p(x) of test digits (nats)", self.values.iter().map(entry));
        let caption = format!(
            "Table `{}`: −log p(x) of each model and, below it, the paper's; whiskers are 95 % intervals of the mean \
             over seeds.",
            self.version.name()
        );
        Figure::new(&format!("table-{}", self.version.name()), &caption, plot)
    }
}
