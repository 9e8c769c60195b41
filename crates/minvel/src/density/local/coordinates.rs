//! Normal coordinates about the centres: by closed forms on model spaces, by programs elsewhere.

use super::kernels::LocalKernels;
use crate::manifold::{Pairs, Space};

/// Kernels on curved compact spaces end at this share of the injectivity radius, and are at most this much narrower: what
/// they leave beyond is e^{−26} in two dimensions.
pub(super) const END: f64 = 0.9;
const NARROWER: f64 = 8.0;

impl LocalKernels {
    /// Squares at most those of the distances of some points from x.
    pub(super) fn chords_squared(&self, points: &[f64], x: &[f64], out: &mut [f64]) {
        match &self.foreign {
            Some(foreign) => foreign.squares(points, x, out),
            None => points.chunks(self.ambient).zip(out).for_each(|(c, out)| *out = self.chord_squared(c, x)),
        }
    }

    fn chord_squared(&self, c: &[f64], x: &[f64]) -> f64 {
        let mut at = 0;
        let mut part = |s: &Space| {
            let own = at..at + s.ambient();
            at = own.end;
            s.chord_squared(&c[own.clone()], &x[own])
        };
        self.spaces.iter().map(&mut part).sum()
    }

    /// The widest kernel that stays clear of the cut locus.
    pub(super) fn widest(&self) -> f64 {
        let foreign = self.foreign.as_ref().map_or(f64::INFINITY, |m| m.injectivity);
        self.spaces.iter().map(|s| s.injectivity()).fold(foreign, f64::min) / NARROWER
    }

    /// Normal coordinates of points about c, and log|dvol/dv| of each.
    pub(super) fn normals(&self, c: &[f64], points: &[f64], v: &mut [f64], logs: &mut [f64]) {
        let Some(foreign) = &self.foreign else {
            let rows = points.chunks(self.ambient).zip(v.chunks_mut(self.dim)).zip(logs);
            rows.for_each(|((x, v), log)| *log = self.to_normal(c, x, v));
            return;
        };
        foreign.coordinates(Pairs { centres: c, frames: &foreign.frames(c), points }, v, logs);
        self.end(v, logs);
    }

    /// Kernels on another manifold end where log is no longer to be trusted.
    pub(super) fn end(&self, v: &[f64], logs: &mut [f64]) {
        let end = END * NARROWER * self.widest();
        for (v, log) in v.chunks(self.dim).zip(logs) {
            if v.iter().map(|v| v * v).sum::<f64>() > end * end {
                *log = f64::INFINITY;
            }
        }
    }

    /// Normal coordinates of x about c and log|dvol/dv|; infinite near the cut locus of a curved space, where kernels end.
    pub(super) fn to_normal(&self, c: &[f64], x: &[f64], v: &mut [f64]) -> f64 {
        let (mut at, mut from, mut log) = (0, 0, 0.0);
        for s in &self.spaces {
            let (m, n) = (s.ambient(), s.dim());
            let own = &mut v[from..from + n];
            log += s.to_normal(&c[at..at + m], &x[at..at + m], own);
            if matches!(s, Space::Sphere(_) | Space::Projective(_) | Space::So3) {
                let end = END * s.injectivity();
                if own.iter().map(|v| v * v).sum::<f64>() > end * end {
                    log = f64::INFINITY;
                }
            }
            (at, from) = (at + m, from + n);
        }
        log
    }

    /// The frame at a centre, where there are frames.
    pub(super) fn frame(&self, i: usize) -> &[f64] {
        let width = self.frames.len() / self.centres().max(1);
        &self.frames[i * width..][..width]
    }

    /// The point with normal coordinates v about centre i of a list.
    pub(super) fn place(&self, list: usize, i: usize, v: &[f64], x: &mut [f64]) {
        let c = &self.sites[list].points[i * self.ambient..][..self.ambient];
        if let Some(foreign) = &self.foreign {
            x.copy_from_slice(&foreign.points(c, self.frame(i), v));
            return;
        }
        self.point_at(c, v, x);
    }

    /// Appends the points with normal coordinates v (n numbers each) about c.
    pub(super) fn points_about(&self, c: &[f64], v: &[f64], points: &mut Vec<f64>) {
        if let Some(foreign) = &self.foreign {
            points.extend(foreign.points(c, &foreign.frames(c), v));
            return;
        }
        for v in v.chunks(self.dim) {
            let at = points.len();
            points.resize(at + self.ambient, 0.0);
            self.point_at(c, v, &mut points[at..]);
        }
    }

    /// The point with normal coordinates v about c, on model spaces.
    pub(super) fn point_at(&self, c: &[f64], v: &[f64], x: &mut [f64]) {
        let (mut at, mut from) = (0, 0);
        for s in &self.spaces {
            let (m, n) = (s.ambient(), s.dim());
            s.from_normal(&c[at..at + m], &v[from..from + n], &mut x[at..at + m]);
            (at, from) = (at + m, from + n);
        }
    }
}
