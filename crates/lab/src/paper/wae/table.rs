//! The numbers of the table, and those of the paper.

use crate::fid::Fid;
use crate::report::Row;
use minvel::autoencoder::MatchKind;
use minvel::estimate::Estimate;
use minvel::manifold::Space;

/// A number of the paper's table.
struct PaperValue {
    method: MatchKind,
    /// Of any dimension.
    space: fn(usize) -> Space,
    mean: f64,
    deviation: f64,
}

/// The paper's table.
const PAPER: [PaperValue; 4] = [
    PaperValue { method: MatchKind::Adversarial, space: Space::Euclidean, mean: 24.59, deviation: 1.16 },
    PaperValue { method: MatchKind::Adversarial, space: Space::Sphere, mean: 19.81, deviation: 1.13 },
    PaperValue { method: MatchKind::Velocity, space: Space::Euclidean, mean: 23.80, deviation: 1.06 },
    PaperValue { method: MatchKind::Velocity, space: Space::Sphere, mean: 18.36, deviation: 0.73 },
];

/// The network whose features are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judge {
    Lenet,
    Inception,
}

impl Judge {
    /// In names of units and files.
    pub fn name(self) -> &'static str {
        match self {
            Judge::Lenet => "lenet",
            Judge::Inception => "inception",
        }
    }
}

/// One number of the table.
pub(super) struct Value {
    pub judge: Judge,
    pub method: MatchKind,
    /// A family of manifolds,
    pub latent: String,
    /// and the one of the dimension.
    pub space: Option<Space>,
    pub distances: Vec<Fid>,
}

impl Value {
    pub fn fid(&self) -> Estimate {
        Fid::across(&self.distances)
    }

    pub fn title(&self) -> String {
        format!("{} {}", self.method, self.latent)
    }

    /// What was measured.
    pub fn kind(&self) -> &'static str {
        if self.judge == Judge::Lenet { "FID" } else { "Inception's FID" }
    }

    /// Who says so, if it is not the paper's kind of judge.
    pub fn by(&self) -> &'static str {
        if self.judge == Judge::Lenet { "" } else { ", by Inception" }
    }

    pub fn paper(&self) -> Option<(f64, f64)> {
        if self.judge != Judge::Lenet {
            return None;
        }
        let space = self.space?;
        let own = PAPER.iter().find(|p| p.method == self.method && (p.space)(space.dim()) == space);
        own.map(|p| (p.mean, p.deviation))
    }

    pub fn row(&self, seeds: usize) -> Row {
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
