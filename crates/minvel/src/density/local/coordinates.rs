//! Normal coordinates about the centres: by closed forms on model spaces, by programs elsewhere.

use super::kernels::{BLOCK, LocalKernels};
use super::work::Work;
use crate::manifold::{Pairs, Space};

/// Kernels on curved compact spaces end at this share of the injectivity radius, and are at most this much narrower: what
/// they leave beyond is e^{−26} in two dimensions.
const END: f64 = 0.9;
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
    fn end(&self, v: &[f64], logs: &mut [f64]) {
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

    /// The point with normal coordinates v about centre i.
    pub(super) fn place(&self, i: usize, v: &[f64], x: &mut [f64]) {
        let c = &self.centres[i * self.ambient..][..self.ambient];
        if let Some(foreign) = &self.foreign {
            x.copy_from_slice(&foreign.points(c, self.frame(i), v));
            return;
        }
        let (mut at, mut from) = (0, 0);
        for s in &self.spaces {
            let (m, n) = (s.ambient(), s.dim());
            s.from_normal(&c[at..at + m], &v[from..from + n], &mut x[at..at + m]);
            (at, from) = (at + m, from + n);
        }
    }

    /// Normal coordinates of x about the centres of a block, one coordinate after another.
    pub(super) fn coordinates(&self, x: &[f64], start: usize, len: usize, work: &mut Work) {
        let (m, n) = (self.ambient(), self.dim());
        if self.foreign.is_some() {
            return self.foreign_coordinates(x, start, len, work);
        }
        for i in 0..len {
            work.jacobian[i] = self.to_normal(&self.centres[(start + i) * m..][..m], x, &mut work.one);
            let mut square = 0.0;
            for j in 0..n {
                work.v[j * BLOCK + i] = work.one[j];
                square += work.one[j] * work.one[j];
            }
            work.square[i] = square;
        }
    }

    fn foreign_coordinates(&self, x: &[f64], start: usize, len: usize, work: &mut Work) {
        let foreign = self.foreign.as_ref().expect("another manifold");
        let (m, n) = (self.ambient, self.dim);
        let (centres, frames) = (&self.centres[start * m..][..len * m], &self.frames[start * n * m..][..len * n * m]);
        let (v, logs) = (&mut work.rows[..len * n], &mut work.jacobian[..len]);
        foreign.coordinates(Pairs { centres, frames, points: x }, v, logs);
        self.end(v, logs);
        for (i, v) in v.chunks(n).enumerate() {
            v.iter().enumerate().for_each(|(j, v)| work.v[j * BLOCK + i] = *v);
            work.square[i] = v.iter().map(|v| v * v).sum();
        }
    }
}
