//! Normal coordinates of points side by side about one centre, compiled for the spaces that are met most.
//!
//! **Statement.** v and |dv/dvol|, as [`geometry`](super::geometry) has them. **Error.** Rounding.
//! **Checked by** tests/densities/kernel_sums.rs.

use super::geometry::{Coordinates, place};
use super::kernels::LocalKernels;
use super::lanes::{BLOCK, ROWS, Work};
use crate::manifold::{Pairs, Space};
use minvel_engine::Loop;

/// Numbers for each of the points.
pub(super) type Rows = [f64; ROWS];

/// How points are placed about one centre after another.
pub(super) trait Place {
    /// Room for coordinates, each a number for each of the points.
    type Buffer: AsRef<[Rows]> + AsMut<[Rows]>;

    fn buffer(&self) -> Self::Buffer;

    /// Coordinates about the centre whose numbers are [`BLOCK`] apart; gives |dv/dvol|.
    fn place(&mut self, centre: &[f64], points: &[Rows], v: &mut Self::Buffer) -> Rows;
}

/// In a space of dimension N whose points are M numbers.
pub(super) struct Inside<const M: usize, const N: usize>(Space);

impl<const M: usize, const N: usize> Inside<M, N> {
    #[inline(always)]
    pub fn new(space: Space) -> Self {
        Inside(space)
    }
}

impl<const M: usize, const N: usize> Place for Inside<M, N> {
    type Buffer = [Rows; N];

    #[inline(always)]
    fn buffer(&self) -> [Rows; N] {
        [[0.0; ROWS]; N]
    }

    #[inline(always)]
    fn place(&mut self, centre: &[f64], points: &[Rows], v: &mut [Rows; N]) -> Rows {
        let points: &[Rows; M] = points.first_chunk().expect("M numbers are a point");
        let mut c = [[0.0; ROWS]; M];
        for j in 0..M {
            c[j] = [centre[j * BLOCK]; ROWS];
        }
        let mut factor = [1.0; ROWS];
        place(&self.0, &c, points, v, &mut factor);
        factor
    }
}

/// In any product of model spaces.
pub(super) struct Anywhere<'a> {
    spaces: &'a [Space],
    centre: Vec<Rows>,
    work: Work<ROWS>,
}

impl<'a> Anywhere<'a> {
    pub fn new(kernels: &'a LocalKernels) -> Self {
        let centre = vec![[0.0; ROWS]; kernels.ambient()];
        Anywhere { spaces: &kernels.spaces, centre, work: Work::new(kernels.dim()) }
    }
}

impl Place for Anywhere<'_> {
    type Buffer = Vec<Rows>;

    fn buffer(&self) -> Vec<Rows> {
        self.work.v.clone()
    }

    #[inline(always)]
    fn place(&mut self, centre: &[f64], points: &[Rows], v: &mut Vec<Rows>) -> Rows {
        for (j, c) in self.centre.iter_mut().enumerate() {
            *c = [centre[j * BLOCK]; ROWS];
        }
        Coordinates { spaces: self.spaces, points, centres: &self.centre, work: &mut self.work }.run();
        v.copy_from_slice(&self.work.v);
        self.work.factor
    }
}

/// On another manifold, about the centres of a list, which come one after another.
pub(super) struct Elsewhere {
    n: usize,
    rows: usize,
    v: Vec<f64>,
    logs: Vec<f64>,
    next: usize,
}

impl Elsewhere {
    pub fn new(kernels: &LocalKernels, centres: impl Iterator<Item = usize>, points: &[f64]) -> Self {
        let (m, n) = (kernels.ambient(), kernels.dim());
        let (mut about, mut frames, mut beside) = (vec![], vec![], vec![]);
        for i in centres {
            for x in points.chunks(m) {
                about.extend_from_slice(&kernels.points()[i * m..][..m]);
                frames.extend_from_slice(kernels.frame(i));
                beside.extend_from_slice(x);
            }
        }
        let pairs = beside.len() / m;
        let (mut v, mut logs) = (vec![0.0; pairs * n], vec![0.0; pairs]);
        let given = Pairs { centres: &about, frames: &frames, points: &beside };
        kernels.foreign.as_ref().expect("another manifold").coordinates(given, &mut v, &mut logs);
        kernels.end(&v, &mut logs);
        Elsewhere { n, rows: points.len() / m, v, logs, next: 0 }
    }
}

impl Place for Elsewhere {
    type Buffer = Vec<Rows>;

    fn buffer(&self) -> Vec<Rows> {
        vec![[0.0; ROWS]; self.n]
    }

    fn place(&mut self, _: &[f64], _: &[Rows], v: &mut Vec<Rows>) -> Rows {
        let mut factor = [0.0; ROWS];
        for l in 0..ROWS {
            let pair = self.next * self.rows + l.min(self.rows - 1);
            for (v, own) in v.iter_mut().zip(&self.v[pair * self.n..]) {
                v[l] = *own;
            }
            factor[l] = (-self.logs[pair]).exp();
        }
        self.next += 1;
        factor
    }
}
