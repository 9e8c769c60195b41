//! Movements of data as arithmetic on indices.

use super::{Entry, Formula, Ix, Spot, Test, Trace, Value};
use crate::graph::{Id, Node};
use crate::op::{Binary, Op, Window};
use crate::random::Draw;

/// Whole numbers up to this are the same in f32.
const EXACT: usize = 1 << 24;

impl Trace<'_> {
    pub(super) fn broadcast(&mut self, node: &Node, spot: &Spot) -> Value {
        let lead = spot.dims.len() - self.shape(node.args[0]).rank();
        self.value(node.args[0], Spot { row: spot.row, dims: spot.dims[lead..].to_vec() })
    }

    pub(super) fn reshape(&mut self, node: &Node, spot: &Spot) -> Value {
        let to = &self.shape(node.args[0]).dims;
        let dims = self.regroup(&spot.dims, &node.shape.dims, to);
        self.value(node.args[0], Spot { row: spot.row, dims })
    }

    pub(super) fn transpose(&mut self, node: &Node, spot: &Spot, order: &[usize]) -> Value {
        let mut from = spot.clone();
        order.iter().zip(&spot.dims).for_each(|(&o, &ix)| from.dims[o] = ix);
        self.value(node.args[0], from)
    }

    pub(super) fn slice(&mut self, node: &Node, spot: &Spot, axis: usize, start: usize) -> Value {
        let mut from = spot.clone();
        from.dims[axis] = self.plus(spot.dims[axis], Ix::Number(start as i64));
        self.value(node.args[0], from)
    }

    pub(super) fn collect(&mut self, node: &Node, spot: &Spot) -> Value {
        self.value(node.args[0], Spot { row: spot.dims[0], dims: spot.dims[1..].to_vec() })
    }

    pub(super) fn distribute(&mut self, node: &Node, spot: &Spot) -> Value {
        let dims = std::iter::once(&spot.row).chain(&spot.dims).copied().collect();
        self.value(node.args[0], Spot { row: Ix::Number(0), dims })
    }

    pub(super) fn pad(&mut self, node: &Node, spot: &Spot, axis: usize, before: usize) -> Value {
        let length = self.shape(node.args[0]).dims[axis];
        self.part(node.args[0], spot, axis, before, length, Value::ZERO)
    }

    /// The same entry under other axes: axes that match one to one keep their index, others meet in a position.
    fn regroup(&mut self, index: &[Ix], dims: &[usize], to: &[usize]) -> Vec<Ix> {
        let keep = |d: &[usize]| (0..d.len()).filter(|&i| d[i] != 1).collect::<Vec<_>>();
        let (own, other) = (keep(dims), keep(to));
        let mut result = vec![Ix::Number(0); to.len()];
        let (mut i, mut j) = (0, 0);
        while i < own.len() && j < other.len() {
            let (i0, j0) = (i, j);
            let (mut a, mut b) = (dims[own[i]], to[other[j]]);
            while a != b {
                if a < b {
                    i += 1;
                    a *= dims[own[i]];
                } else {
                    j += 1;
                    b *= to[other[j]];
                }
            }
            (i, j) = (i + 1, j + 1);
            let pick = |axes: &[usize], d: &[usize]| axes.iter().map(|&k| d[k]).collect::<Vec<_>>();
            let from: Vec<Ix> = own[i0..i].iter().map(|&k| index[k]).collect();
            let flat = self.ravel(&from, &pick(&own[i0..i], dims));
            for (&k, ix) in other[j0..j].iter().zip(self.unravel(flat, &pick(&other[j0..j], to))) {
                result[k] = ix;
            }
        }
        result
    }

    /// Whether `low ≤ ix < low + length`, and `ix − low`, or 0 elsewhere.
    fn within(&mut self, ix: Ix, low: i64, length: i64) -> (Test, Ix) {
        if let Ix::Number(n) = ix {
            let inside = (low..low + length).contains(&n);
            return (Test::Known(inside), Ix::Number(if inside { n - low } else { 0 }));
        }
        let inside = self.bind(Formula::Within { ix, low, high: low + length });
        (Test::Bound(inside), self.index(Formula::Shifted { inside, ix, low }))
    }

    /// The value of `arg`, which lies at `start..start + length` of an axis; elsewhere `other`.
    fn part(&mut self, arg: Id, spot: &Spot, axis: usize, start: usize, length: usize, other: Value) -> Value {
        let (test, safe) = self.within(spot.dims[axis], start as i64, length as i64);
        if test == Test::Known(false) {
            return other;
        }
        let mut from = spot.clone();
        from.dims[axis] = safe;
        let value = self.value(arg, from);
        self.chosen(&[test], value, other)
    }

    pub(super) fn concat(&mut self, node: &Node, spot: &Spot, axis: usize) -> Value {
        let (mut start, mut result) = (0, Value::ZERO);
        for &arg in &node.args {
            let length = self.shape(arg).dims[axis];
            result = self.part(arg, spot, axis, start, length, result);
            start += length;
        }
        result
    }

    pub(super) fn gather(&mut self, node: &Node, spot: &Spot) -> Value {
        let (table, index) = (node.args[0], node.args[1]);
        let rank = self.shape(index).rank();
        let chosen = self.value(index, Spot { row: spot.row, dims: spot.dims[..rank].to_vec() });
        let entry = self.entry(index, chosen, self.shape(table).dims[0]);
        let entry = self.index(Formula::Entry(entry));
        let dims = std::iter::once(entry).chain(spot.dims[rank..].iter().copied()).collect();
        self.value(table, Spot { row: Ix::Number(0), dims })
    }

    /// The value of an index as an entry of a table: noted if it is outside, unless it cannot be.
    pub fn entry(&mut self, index: Id, value: Value, len: usize) -> Entry {
        let safe = self.below(index).is_some_and(|bound| bound <= len.min(EXACT));
        self.needs.checks |= !safe;
        Entry { value, checked: (!safe).then_some(len) }
    }

    /// A number that all values of a node are below, if it is known; none is negative then.
    fn below(&self, id: Id) -> Option<usize> {
        let node = &self.nodes[id as usize];
        let whole = |bits: &u64| {
            let exact = f64::from_bits(*bits);
            let most = exact.max(f64::from(exact as f32)); // as it is in either precision
            (exact >= 0.0 && most < EXACT as f64).then_some(most as usize + 1)
        };
        match &node.op {
            Op::Fill(bits) => whole(bits),
            Op::Table(all) => all.iter().map(whole).collect::<Option<Vec<_>>>()?.into_iter().max(),
            Op::Random(draw, _) => match draw {
                Draw::Integer(n) | Draw::Permutation(n) | Draw::Epoch(n) => Some(*n as usize),
                Draw::Bits | Draw::Uniform | Draw::Normal | Draw::Rademacher => None,
            },
            Op::Reshape | Op::Transpose(_) | Op::Broadcast | Op::Slice { .. } | Op::Collect | Op::Distribute => {
                self.below(node.args[0])
            }
            Op::StopGradient | Op::Pin => self.below(node.args[0]),
            Op::Concat { .. } => {
                node.args.iter().map(|&a| self.below(a)).collect::<Option<Vec<_>>>()?.into_iter().max()
            }
            Op::Input(..) | Op::Variable(_) | Op::Step | Op::Unary(_) | Op::Binary(_) | Op::Select => None,
            Op::Pad { .. } | Op::Sum { .. } | Op::Max { .. } | Op::SumRows | Op::MaxRows | Op::Kth(_) => None,
            Op::Matmul | Op::Contract | Op::Gather | Op::Scatter | Op::Im2col(_) | Op::Col2im(_) => None,
        }
    }

    pub(super) fn im2col(&mut self, window: &Window, node: &Node, spot: &Spot) -> Value {
        let image = &self.shape(node.args[0]).dims;
        let [oh, ow] = window.output([image[0], image[1]]);
        let [kh, kw] = window.kernel;
        let place = self.unravel(spot.dims[0], &[oh, ow]);
        let entry = self.unravel(spot.dims[1], &[kh, kw, image[2]]);
        let mut at = |window_place: Ix, offset: Ix| {
            let scaled = self.times(window_place, window.stride);
            self.plus(scaled, offset)
        };
        let (y, x) = (at(place[0], entry[0]), at(place[1], entry[1]));
        let (in_y, y) = self.within(y, window.pad[0][0] as i64, image[0] as i64);
        let (in_x, x) = self.within(x, window.pad[1][0] as i64, image[1] as i64);
        if [in_y, in_x].contains(&Test::Known(false)) {
            return Value::ZERO;
        }
        let value = self.value(node.args[0], Spot { row: spot.row, dims: vec![y, x, entry[2]] });
        self.chosen(&[in_y, in_x], value, Value::ZERO)
    }

    /// The value where all tests hold, else another. Tests that are known hold.
    fn chosen(&mut self, tests: &[Test], value: Value, other: Value) -> Value {
        let open: Vec<Test> = tests.iter().copied().filter(|t| !matches!(t, Test::Known(_))).collect();
        if open.is_empty() { value } else { self.number(Formula::Choice(open, value, other)) }
    }

    /// The sum over the windows that cover a pixel.
    pub(super) fn col2im(&mut self, window: &Window, node: &Node, spot: &Spot) -> Value {
        let image = &node.shape.dims;
        let output = window.output([image[0], image[1]]);
        let [kh, kw] = window.kernel;
        let mut sum: Option<Value> = None;
        for (ky, kx) in (0..kh).flat_map(|ky| (0..kw).map(move |kx| (ky, kx))) {
            let mut tests = vec![];
            let mut places = vec![];
            for (axis, offset) in [(0, ky), (1, kx)] {
                // pixel + pad − offset must be a multiple of the stride, and the multiple a window.
                let shift = window.pad[axis][0] as i64 - offset as i64;
                let shifted = self.plus(spot.dims[axis], Ix::Number(shift));
                let (test, safe) = self.within(shifted, 0, (output[axis] * window.stride) as i64);
                let rest = self.modulo(safe, window.stride);
                let multiple = if let Ix::Number(n) = rest { Test::Known(n == 0) } else { Test::IsZero(rest) };
                tests.extend([test, multiple]);
                places.push(self.over(safe, window.stride));
            }
            if tests.contains(&Test::Known(false)) {
                continue;
            }
            let flat = self.ravel(&places, &output);
            let entry = self.times(Ix::Number((ky * kw + kx) as i64), image[2]);
            let entry = self.plus(entry, spot.dims[2]);
            let value = self.value(node.args[0], Spot { row: spot.row, dims: vec![flat, entry] });
            let value = self.chosen(&tests, value, Value::ZERO);
            sum = Some(match sum {
                None => value,
                Some(so_far) => self.number(Formula::Binary(Binary::Add, so_far, value)),
            });
        }
        sum.unwrap_or(Value::ZERO)
    }
}
