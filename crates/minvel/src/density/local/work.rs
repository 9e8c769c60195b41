//! A block of centres at work: logs of their kernels at one point, added up without overflow.

use super::kernels::{BLOCK, FAR};
use super::shape::Shape;

/// What one thread works with.
pub(super) struct Work {
    pub n: usize,
    pub one: Vec<f64>,
    /// Coordinates of a block, one centre after another.
    pub rows: Vec<f64>,
    pub v: Vec<f64>,
    pub whitened: Vec<f64>,
    pub jacobian: Vec<f64>,
    pub square: Vec<f64>,
    pub quadratic: Vec<f64>,
    pub logs: Vec<f64>,
    /// Largest log so far and Σ e^{log − largest}, family by family.
    pub sums: Vec<(f64, f64)>,
    /// Blocks by their bound.
    pub blocks: Vec<(f64, usize)>,
}

impl Work {
    pub fn new(n: usize, families: usize) -> Self {
        let block = || vec![0.0; BLOCK];
        Work {
            n,
            one: vec![0.0; n],
            rows: vec![0.0; n * BLOCK],
            v: vec![0.0; n * BLOCK],
            whitened: vec![0.0; n * BLOCK],
            jacobian: block(),
            square: block(),
            quadratic: block(),
            logs: block(),
            sums: vec![(f64::NEG_INFINITY, 0.0); families],
            blocks: vec![],
        }
    }

    /// Logs of round kernels, and the largest.
    pub fn fixed(&mut self, len: usize, width: f64) -> f64 {
        let (rate, norm) = (-0.5 / (width * width), self.n as f64 * width.ln());
        let mut top = f64::NEG_INFINITY;
        for i in 0..len {
            self.logs[i] = rate * self.square[i] - norm - self.jacobian[i];
            top = top.max(self.logs[i]);
        }
        top
    }

    /// |C⁻¹v|² about each centre of the block.
    pub fn whiten(&mut self, shape: &Shape, start: usize, total: usize, len: usize) {
        self.quadratic[..len].fill(0.0);
        for a in 0..self.n {
            let (done, rest) = self.whitened.split_at_mut(a * BLOCK);
            let y = &mut rest[..len];
            y.copy_from_slice(&self.v[a * BLOCK..][..len]);
            for b in 0..a {
                let c = &shape.factors[(a * (a + 1) / 2 + b) * total + start..][..len];
                y.iter_mut().zip(c).zip(&done[b * BLOCK..][..len]).for_each(|((y, c), d)| *y -= c * d);
            }
            let c = &shape.factors[(a * (a + 1) / 2 + a) * total + start..][..len];
            let q = &mut self.quadratic[..len];
            y.iter_mut().zip(c).zip(q).for_each(|((y, c), q)| {
                *y *= c;
                *q += *y * *y;
            });
        }
    }

    /// Logs of local kernels, and the largest.
    pub fn local(&mut self, log_det: &[f64], factor: f64) -> f64 {
        let (rate, norm) = (-0.5 / factor, 0.5 * self.n as f64 * factor.ln());
        let mut top = f64::NEG_INFINITY;
        for (i, log_det) in log_det.iter().enumerate() {
            self.logs[i] = rate * self.quadratic[i] - log_det - norm - self.jacobian[i];
            top = top.max(self.logs[i]);
        }
        top
    }
}

/// Adds e^{log} of a block with largest `top` to (largest, sum).
pub(super) fn add_up((largest, sum): &mut (f64, f64), logs: &[f64], top: f64) {
    if top < *largest - FAR || top == f64::NEG_INFINITY {
        return;
    }
    if top > *largest {
        *sum *= (*largest - top).exp();
        *largest = top;
    }
    let limit = *largest - FAR;
    *sum += logs.iter().filter(|l| **l > limit).map(|l| (l - *largest).exp()).sum::<f64>();
}
