//! Shapes: an optional row axis (data points) and any number of feature axes.
//!
//! The replica axis is not part of a shape: every value exists once per replica, and an expression never mixes them.

use std::fmt;

/// The shape of an expression: `rows × [dims]`, or `[dims]` when it has no row axis.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of data rows, if the value has one entry per row.
    pub rows: Option<usize>,
    /// Feature axes, outermost first.
    pub dims: Vec<usize>,
}

impl Shape {
    /// Most entries that a value may have: numbers of eight bytes, counted in bytes by an `isize`, with room for the padding
    /// of rows.
    pub(crate) const LIMIT: usize = isize::MAX as usize / 64;

    /// A value without row axis: parameters, scalars, tables.
    pub fn whole(dims: impl Into<Vec<usize>>) -> Self {
        Shape { rows: None, dims: dims.into() }.checked()
    }

    /// One block of `dims` for each of `rows` data points.
    pub fn rowed(rows: usize, dims: impl Into<Vec<usize>>) -> Self {
        Shape { rows: Some(rows), dims: dims.into() }.checked()
    }

    /// The shape itself; panics if no memory could hold a value of it, or if it has a row axis without rows.
    pub(crate) fn checked(self) -> Self {
        assert!(self.rows != Some(0), "shape: a row axis needs at least one row");
        let _ = self.len();
        self
    }

    /// Number of feature axes.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Entries per row (or in all, without row axis). Panics if no memory could hold them.
    pub fn features(&self) -> usize {
        self.entries(1)
    }

    /// Entries in all, of one replica. Panics if no memory could hold them.
    pub fn len(&self) -> usize {
        self.entries(self.rows.unwrap_or(1))
    }

    /// The product of all axes and `rows`. Axes without entries count as one for the limit, so that strides have no overflow
    /// either.
    fn entries(&self, rows: usize) -> usize {
        let room = self.dims.iter().try_fold(rows.max(1), |n, &d| n.checked_mul(d.max(1)));
        let fits = room.is_some_and(|n| n <= Self::LIMIT);
        assert!(fits, "shape: {self} has more entries than fit into memory (at most {})", Self::LIMIT);
        self.dims.iter().product::<usize>() * rows
    }

    /// True if the shape holds no entry at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same row axis with other feature axes.
    pub fn with_dims(&self, dims: impl Into<Vec<usize>>) -> Self {
        Shape { rows: self.rows, dims: dims.into() }.checked()
    }

    /// Axis number from a possibly negative one (`-1` is the last).
    pub(crate) fn axis(&self, what: &str, axis: isize) -> usize {
        let rank = self.rank() as isize;
        let a = if axis < 0 { axis + rank } else { axis };
        assert!((0..rank).contains(&a), "{what}: axis {axis} does not exist in {self}");
        a as usize
    }

    /// The smallest shape both operands can be broadcast to (NumPy's rule on features, right-aligned).
    pub(crate) fn broadcast(what: &str, a: &Shape, b: &Shape) -> Shape {
        let mismatch = || -> ! { panic!("{what}: shapes {a} and {b} do not match and cannot be broadcast") };
        let rows = match (a.rows, b.rows) {
            (Some(x), Some(y)) if x != y => mismatch(),
            (x, y) => x.or(y),
        };
        let rank = a.rank().max(b.rank());
        let at = |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).map_or(1, |k| s.dims[k]);
        let dims = (0..rank)
            .map(|i| match (at(a, i), at(b, i)) {
                (x, y) if x == y => x,
                (1, y) => y,
                (x, 1) => x,
                _ => mismatch(),
            })
            .collect();
        Shape { rows, dims }
    }

    /// Row-major strides of the feature axes.
    pub(crate) fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.rank()];
        for i in (1..self.rank()).rev() {
            strides[i - 1] = strides[i] * self.dims[i];
        }
        strides
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(rows) = self.rows {
            write!(f, "{rows} rows × ")?;
        }
        write!(f, "{:?}", self.dims)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
