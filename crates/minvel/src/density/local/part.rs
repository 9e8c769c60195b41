//! Some kernels of a density, for its integrals.

use super::kernels::{Family, Kind, LocalKernels};
use super::shape::Shape;
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

    /// The density of the kernels of one family about some of the centres, in equal shares.
    pub fn part(&self, family: usize, of: &[usize]) -> LocalKernels {
        let (total, mut kind) = (self.centres(), self.families[family].kind);
        let mut part = self.with_centres(&self.centres, of);
        part.shapes = vec![];
        if let Kind::Local { shape, factor } = kind {
            let whole = &self.shapes[shape];
            let factors = whole.factors.chunks(total).flat_map(|entries| of.iter().map(|&i| entries[i])).collect();
            part.shapes = vec![Shape { factors, log_det: of.iter().map(|&i| whole.log_det[i]).collect() }];
            kind = Kind::Local { shape: 0, factor };
        }
        part.families = vec![Family { kind, share: 1.0 }];
        part.bounded()
    }

    /// The deviation of a kernel in its narrowest direction, or less.
    pub fn narrowest(&self, family: usize, i: usize) -> f64 {
        let (n, total) = (self.dim(), self.centres());
        match self.families[family].kind {
            Kind::Uniform => f64::INFINITY,
            Kind::Natural { kappa } => 1.0 / kappa.sqrt(),
            Kind::Fixed { width } => width,
            Kind::Local { shape, factor } => {
                let shape = &self.shapes[shape];
                // The least eigenvalue is at least det/(trace/(n−1))^{n−1}.
                let rest = (shape.trace(i, total, n) / (n as f64 - 1.0).max(1.0)).powi(n as i32 - 1);
                (factor * (2.0 * shape.log_det[i]).exp() / rest).sqrt()
            }
        }
    }

    /// The length of the manifold in one of its dimensions, as far as a grid about the origin has to cover it, and the radius
    /// of that grid; `None` where no grid is fine enough everywhere.
    pub fn extent(&self) -> Option<(f64, f64)> {
        let widest = |k: usize| match self.families[k].kind {
            Kind::Fixed { width } => width,
            Kind::Natural { kappa } => 1.0 / kappa.sqrt(),
            Kind::Local { shape, factor } => {
                let (n, total) = (self.dim(), self.centres());
                let trace = |i: usize| self.shapes[shape].trace(i, total, n);
                (factor * (0..total).map(trace).fold(0.0, f64::max)).sqrt()
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
                    let own = self.centres.chunks(self.ambient()).flat_map(|c| &c[at..at + n]);
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
