//! Indices of entries, as far as they are known while a kernel is written.

use super::{Formula, Trace};
use crate::shape::Shape;

/// A variable of the kernel that holds an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) enum Index {
    Row,
    /// Along the long axes of the part's shape: `d0`, `d1`, …
    Axis(usize),
    /// Along a leading axis of a product.
    Lead(usize),
    /// Row or column of a product.
    X,
    /// What a product or reduction sums over.
    K,
    /// A variable of the scope.
    Bound(usize),
}

/// An index: a number known while the kernel is written, or a variable of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) enum Ix {
    Number(i64),
    Variable(Index),
    /// Four times a variable and a number below four: neighbours share what comes in fours.
    Quad(Index, i64),
}

impl Ix {
    pub const ROW: Ix = Ix::Variable(Index::Row);
    pub const X: Ix = Ix::Variable(Index::X);
    pub const K: Ix = Ix::Variable(Index::K);
}

/// One entry of a value: its row (0 without rows) and its place on each feature axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::cuda) struct Spot {
    pub row: Ix,
    pub dims: Vec<Ix>,
}

impl Spot {
    /// With 0 on axes of length 1 and as the row of a value without rows, so that equal places look equal.
    pub(super) fn canonical(mut self, shape: &Shape) -> Spot {
        if shape.rows.is_none_or(|rows| rows == 1) {
            self.row = Ix::Number(0);
        }
        for (ix, &d) in self.dims.iter_mut().zip(&shape.dims) {
            if d == 1 {
                *ix = Ix::Number(0);
            }
        }
        self
    }
}

impl Trace<'_> {
    pub(super) fn index(&mut self, formula: Formula) -> Ix {
        Ix::Variable(Index::Bound(self.bind(formula)))
    }

    pub fn plus(&mut self, a: Ix, b: Ix) -> Ix {
        match (a, b) {
            (Ix::Number(x), Ix::Number(y)) => Ix::Number(x + y),
            (x, Ix::Number(0)) | (Ix::Number(0), x) => x,
            _ => self.index(Formula::Plus(a, b)),
        }
    }

    pub fn times(&mut self, a: Ix, n: usize) -> Ix {
        match (a, n) {
            (Ix::Number(x), _) => Ix::Number(x * n as i64),
            (x, 1) => x,
            (_, 0) => Ix::Number(0),
            _ => self.index(Formula::Times(a, n)),
        }
    }

    pub fn over(&mut self, a: Ix, n: usize) -> Ix {
        match a {
            Ix::Number(x) => Ix::Number(x / n as i64),
            Ix::Quad(name, _) if n == 4 => Ix::Variable(name),
            x if n == 1 => x,
            Ix::Variable(_) | Ix::Quad(..) => self.index(Formula::Over(a, n)),
        }
    }

    pub fn modulo(&mut self, a: Ix, n: usize) -> Ix {
        match a {
            Ix::Number(x) => Ix::Number(x % n as i64),
            Ix::Quad(_, i) if n == 4 => Ix::Number(i),
            Ix::Variable(_) | Ix::Quad(..) if n == 1 => Ix::Number(0),
            Ix::Variable(_) | Ix::Quad(..) => self.index(Formula::Modulo(a, n)),
        }
    }

    /// Position of a multi-index, row-major.
    pub fn ravel(&mut self, index: &[Ix], dims: &[usize]) -> Ix {
        let mut flat = Ix::Number(0);
        for (&ix, &d) in index.iter().zip(dims) {
            flat = self.times(flat, d);
            flat = self.plus(flat, ix);
        }
        flat
    }

    /// The multi-index of a position.
    pub fn unravel(&mut self, flat: Ix, dims: &[usize]) -> Vec<Ix> {
        let mut index = vec![Ix::Number(0); dims.len()];
        let mut rest = flat;
        let outermost = dims.iter().position(|&d| d != 1);
        for i in (0..dims.len()).rev().filter(|&i| dims[i] != 1) {
            index[i] = if Some(i) == outermost { rest } else { self.modulo(rest, dims[i]) };
            rest = self.over(rest, dims[i]);
        }
        index
    }

    /// Position within one replica.
    pub fn flat(&mut self, spot: &Spot, shape: &Shape) -> Ix {
        let spot = spot.clone().canonical(shape);
        let features = self.ravel(&spot.dims, &shape.dims);
        let row = self.times(spot.row, shape.features());
        self.plus(row, features)
    }
}
