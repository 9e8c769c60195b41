//! Some kernels of a density, for its integrals.

use super::kernels::{Family, Kind, LocalKernels};
use crate::manifold::Space;
use std::f64::consts::TAU;

impl LocalKernels {
    /// Families that have kernels, by number, and their shares.
    pub fn kernel_families(&self) -> impl Iterator<Item = (usize, f64)> {
        let kernels = self.families.iter().enumerate().filter(|(_, f)| f.kind != Kind::Uniform);
        kernels.map(|(k, f)| (k, f.share))
    }

    /// Share of the uniform law, if it has one.
    pub fn uniform_share(&self) -> Option<f64> {
        self.families.iter().find(|f| f.kind == Kind::Uniform).map(|f| f.share)
    }

    /// How many kernels a family has.
    pub fn kernels_of(&self, family: usize) -> usize {
        self.sites[self.list_of(self.families[family].kind)].points.len() / self.ambient()
    }

    /// What kernel i of a family counts; all of them add up to one.
    pub fn weight(&self, family: usize, i: usize) -> f64 {
        self.sites[self.list_of(self.families[family].kind)].weight(i, self.kernels_of(family))
    }

    /// The density of some of the kernels of one family, in the ratio of their weights.
    pub fn part(&self, family: usize, of: &[usize]) -> LocalKernels {
        let mut kind = self.families[family].kind;
        let sites = &self.sites[self.list_of(kind)];
        let mut part = self.with_centres(&sites.points, of);
        if !sites.weights.is_empty() {
            let mass: f64 = of.iter().map(|&i| sites.weights[i]).sum();
            part.sites[0].weights = of.iter().map(|&i| sites.weights[i] / mass).collect();
        }
        match kind {
            Kind::Local { shape, factor } => {
                part.shapes = vec![self.shapes[shape].part(0, of)];
                kind = Kind::Local { shape: 0, factor };
            }
            Kind::Component { shape } => {
                part.shapes = vec![self.shapes[shape].part(0, of)];
                kind = Kind::Component { shape: 0 };
            }
            Kind::Grouped { width, .. } => kind = Kind::Fixed { width },
            Kind::Uniform | Kind::Fixed { .. } | Kind::Natural { .. } => {}
        }
        part.families = vec![Family { kind, share: 1.0 }];
        part.laid_out()
    }

    /// The covariances of a family that has some, and their factor.
    fn shape_of(&self, family: usize) -> (usize, f64) {
        match self.families[family].kind {
            Kind::Local { shape, factor } => (shape, factor),
            Kind::Component { shape } => (shape, 1.0),
            _ => unreachable!("other kernels have no covariances"),
        }
    }

    /// Whether kernel i of a family is a component too wide for a rule in normal coordinates: 3·10⁻⁸ of the narrowest others lie
    /// beyond the end of the rule, for they are heavier there than the normal law.
    pub fn is_wide(&self, family: usize, i: usize) -> bool {
        let sharp = |space: &Space| match space {
            Space::Sphere(_) | Space::Torus(_) => 20.0,
            Space::Projective(_) | Space::So3 => 40.0,
            Space::Euclidean(_) | Space::Hyperbolic(_) => 0.0,
        };
        let Kind::Component { shape } = self.families[family].kind else { return false };
        let narrow = self.spaces.iter().flat_map(|space| std::iter::repeat_n(sharp(space), space.dim()));
        self.kappas(shape, i).zip(narrow).any(|(kappa, narrow)| kappa < narrow)
    }

    /// The deviation of a family's kernels: the geometric mean over directions, and over kernels by their weights.
    pub fn typical_width(&self, family: usize) -> f64 {
        match self.families[family].kind {
            Kind::Uniform => f64::INFINITY,
            Kind::Natural { kappa } => 1.0 / kappa.sqrt(),
            Kind::Fixed { width } | Kind::Grouped { width, .. } => width,
            Kind::Local { .. } | Kind::Component { .. } => {
                let (shape, factor) = self.shape_of(family);
                let logs = self.shapes[shape].log_det.iter().enumerate();
                let mean = logs.map(|(i, log)| self.weight(family, i) * log).sum::<f64>() / self.dim() as f64;
                factor.sqrt() * mean.exp()
            }
        }
    }

    /// The deviation of a kernel in its narrowest direction, or less.
    pub fn narrowest(&self, family: usize, i: usize) -> f64 {
        let n = self.dim();
        match self.families[family].kind {
            Kind::Uniform => f64::INFINITY,
            Kind::Natural { kappa } => 1.0 / kappa.sqrt(),
            Kind::Fixed { width } | Kind::Grouped { width, .. } => width,
            Kind::Local { .. } | Kind::Component { .. } => {
                let (shape, factor) = self.shape_of(family);
                let shape = &self.shapes[shape];
                // The least eigenvalue is at least det/(trace/(n−1))^{n−1}.
                let rest = (shape.trace(i, n) / (n as f64 - 1.0).max(1.0)).powi(n as i32 - 1);
                (factor * (2.0 * shape.log_det[i]).exp() / rest).sqrt()
            }
        }
    }

    /// The length of the manifold in one of its dimensions, as far as a grid about the origin has to cover it, and the radius
    /// of that grid; `None` where no grid is fine enough everywhere.
    pub fn extent(&self) -> Option<(f64, f64)> {
        let widest = |k: usize| match self.families[k].kind {
            Kind::Fixed { width } | Kind::Grouped { width, .. } => width,
            Kind::Natural { kappa } => 1.0 / kappa.sqrt(),
            Kind::Local { .. } | Kind::Component { .. } => {
                let (shape, factor) = self.shape_of(k);
                let trace = |i: usize| self.shapes[shape].trace(i, self.dim());
                (factor * (0..self.kernels_of(k)).map(trace).fold(0.0, f64::max)).sqrt()
            }
            Kind::Uniform => 0.0,
        };
        if self.foreign.is_some() {
            return None;
        }
        let (mut far, mut at) = (0.0f64, 0);
        for space in &self.spaces {
            match space {
                Space::Hyperbolic(_) => return None,
                Space::Euclidean(n) => {
                    let own = self.points().chunks(self.ambient()).flat_map(|c| &c[at..at + n]);
                    far = own.fold(far, |far, x| far.max(x.abs()));
                }
                _ => {}
            }
            at += space.ambient();
        }
        let radius = far + 7.0 * (0..self.families.len()).map(widest).fold(0.0, f64::max);
        Some((TAU.max(2.0 * radius), radius))
    }
}
