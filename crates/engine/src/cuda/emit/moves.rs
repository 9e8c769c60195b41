//! Movements of data as arithmetic on indices.

use super::{Emitter, Ix, Spot};
use crate::graph::{Id, Node};
use crate::op::{Op, Window};
use crate::random::Draw;

/// Whole numbers up to this are the same in f32.
const EXACT: usize = 1 << 24;

impl Emitter<'_> {
    /// The value of a node that only moves entries.
    pub(super) fn moved(&mut self, id: Id, node: &Node, spot: &Spot) -> String {
        let from = node.args.first().map(|&a| self.shape(a));
        let at = |row: &Ix, dims: Vec<Ix>| Spot { row: row.clone(), dims };
        let source = match (&node.op, from) {
            (Op::StopGradient | Op::Pin, _) => spot.clone(),
            (Op::Broadcast, Some(from)) => at(&spot.row, spot.dims[spot.dims.len() - from.rank()..].to_vec()),
            (Op::Reshape, Some(from)) => {
                let dims = self.regroup(&spot.dims, &node.shape.dims, &from.dims);
                at(&spot.row, dims)
            }
            (Op::Transpose(order), _) => {
                let mut dims = spot.dims.clone();
                order.iter().zip(&spot.dims).for_each(|(&o, ix)| dims[o] = ix.clone());
                at(&spot.row, dims)
            }
            (Op::Slice { axis, start }, _) => {
                let mut dims = spot.dims.clone();
                dims[*axis] = self.plus(&dims[*axis], &Ix::Number(*start as i64));
                at(&spot.row, dims)
            }
            (Op::Collect, _) => at(&spot.dims[0], spot.dims[1..].to_vec()),
            (Op::Distribute, _) => {
                let dims = std::iter::once(&spot.row).chain(&spot.dims).cloned().collect();
                at(&Ix::Number(0), dims)
            }
            (Op::Pad { axis, before }, Some(from)) => {
                return self.part(node.args[0], spot, *axis, *before, from.dims[*axis], None);
            }
            (Op::Concat { axis }, _) => return self.concat(node, spot, *axis),
            (Op::Gather, _) => return self.gather(node, spot),
            (Op::Im2col(window), _) => return self.im2col(window, node, spot),
            _ => unreachable!("{:?} of node {id} has a kernel of its own", node.op),
        };
        self.value(node.args[0], source)
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
            let from: Vec<Ix> = own[i0..i].iter().map(|&k| index[k].clone()).collect();
            let flat = self.ravel(&from, &pick(&own[i0..i], dims));
            for (&k, ix) in other[j0..j].iter().zip(self.unravel(&flat, &pick(&other[j0..j], to))) {
                result[k] = ix;
            }
        }
        result
    }

    /// True at `low ≤ ix < high`, and an index that is within bounds either way.
    fn within(&mut self, ix: &Ix, low: i64, length: i64) -> (Option<bool>, String, Ix) {
        match ix {
            Ix::Number(n) => {
                let inside = (low..low + length).contains(n);
                (Some(inside), String::new(), Ix::Number(if inside { n - low } else { 0 }))
            }
            _ => {
                let name = ix.text();
                let test = self.bind("bool", format!("{name} >= {low} && {name} < {}", low + length));
                let safe = self.index(format!("{test} ? {name} - {low} : 0"));
                (None, test, safe)
            }
        }
    }

    /// The value of `arg`, which lies at `start..start + length` of an axis; elsewhere `other`, or zero.
    fn part(
        &mut self,
        arg: Id,
        spot: &Spot,
        axis: usize,
        start: usize,
        length: usize,
        other: Option<String>,
    ) -> String {
        let (known, test, safe) = self.within(&spot.dims[axis], start as i64, length as i64);
        let other = other.unwrap_or_else(|| self.literal(0.0));
        if known == Some(false) {
            return other;
        }
        let mut from = spot.clone();
        from.dims[axis] = safe;
        let value = self.value(arg, from);
        if known == Some(true) { value } else { self.bind("real", format!("{test} ? {value} : {other}")) }
    }

    fn concat(&mut self, node: &Node, spot: &Spot, axis: usize) -> String {
        let (mut start, mut result) = (0, None);
        for &arg in &node.args {
            let length = self.shape(arg).dims[axis];
            result = Some(self.part(arg, spot, axis, start, length, result));
            start += length;
        }
        result.unwrap_or_else(|| self.literal(0.0))
    }

    fn gather(&mut self, node: &Node, spot: &Spot) -> String {
        let (table, index) = (node.args[0], node.args[1]);
        let rank = self.shape(index).rank();
        let chosen = self.value(index, Spot { row: spot.row.clone(), dims: spot.dims[..rank].to_vec() });
        let entry = self.entry(index, &chosen, self.shape(table).dims[0]);
        let entry = self.index(entry);
        let dims = std::iter::once(entry).chain(spot.dims[rank..].iter().cloned()).collect();
        self.value(table, Spot { row: Ix::Number(0), dims })
    }

    /// The value of an index as an entry of a table: noted if it is outside, unless it cannot be.
    pub fn entry(&self, index: Id, value: &str, len: usize) -> String {
        match self.below(index) {
            Some(bound) if bound <= len.min(EXACT) => format!("(int){value}"),
            _ => format!("entry_({value}, {len}, clock)"),
        }
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
            Op::Random(Draw::Integer(n) | Draw::Permutation(n) | Draw::Epoch(n), _) => Some(*n as usize),
            Op::Reshape | Op::Transpose(_) | Op::Broadcast | Op::Slice { .. } | Op::Collect | Op::Distribute => {
                self.below(node.args[0])
            }
            Op::Concat { .. } => {
                node.args.iter().map(|&a| self.below(a)).collect::<Option<Vec<_>>>()?.into_iter().max()
            }
            Op::StopGradient | Op::Pin => self.below(node.args[0]),
            _ => None,
        }
    }

    fn im2col(&mut self, window: &Window, node: &Node, spot: &Spot) -> String {
        let image = self.shape(node.args[0]).dims.clone();
        let [oh, ow] = window.output([image[0], image[1]]);
        let [kh, kw] = window.kernel;
        let place = self.unravel(&spot.dims[0], &[oh, ow]);
        let entry = self.unravel(&spot.dims[1], &[kh, kw, image[2]]);
        let mut at = |window_place: &Ix, offset: &Ix| {
            let scaled = self.times(window_place, window.stride);
            self.plus(&scaled, offset)
        };
        let (y, x) = (at(&place[0], &entry[0]), at(&place[1], &entry[1]));
        let (ky, ty, y) = self.within(&y, window.pad[0][0] as i64, image[0] as i64);
        let (kx, tx, x) = self.within(&x, window.pad[1][0] as i64, image[1] as i64);
        if ky == Some(false) || kx == Some(false) {
            return self.literal(0.0);
        }
        let value = self.value(node.args[0], Spot { row: spot.row.clone(), dims: vec![y, x, entry[2].clone()] });
        self.chosen(&[(ky, ty), (kx, tx)], value)
    }

    /// The value where all tests hold, else zero.
    fn chosen(&mut self, tests: &[(Option<bool>, String)], value: String) -> String {
        let open: Vec<&str> = tests.iter().filter(|t| t.0.is_none()).map(|t| t.1.as_str()).collect();
        if open.is_empty() {
            return value;
        }
        let zero = self.literal(0.0);
        self.bind("real", format!("{} ? {value} : {zero}", open.join(" && ")))
    }

    /// The sum over the windows that cover a pixel.
    pub(super) fn col2im(&mut self, window: &Window, node: &Node, spot: &Spot) -> String {
        let image = &node.shape.dims;
        let output = window.output([image[0], image[1]]);
        let [kh, kw] = window.kernel;
        let mut sum: Option<String> = None;
        for (ky, kx) in (0..kh).flat_map(|ky| (0..kw).map(move |kx| (ky, kx))) {
            let mut tests = vec![];
            let mut places = vec![];
            for (axis, offset) in [(0, ky), (1, kx)] {
                // pixel + pad − offset must be a multiple of the stride, and the multiple a window.
                let shift = window.pad[axis][0] as i64 - offset as i64;
                let shifted = self.plus(&spot.dims[axis], &Ix::Number(shift));
                let (known, test, safe) = self.within(&shifted, 0, (output[axis] * window.stride) as i64);
                tests.push((known, test));
                let rest = self.modulo(&safe, window.stride);
                tests.push(match &rest {
                    Ix::Number(n) => (Some(*n == 0), String::new()),
                    other => (None, format!("{} == 0", other.text())),
                });
                places.push(self.over(&safe, window.stride));
            }
            if tests.iter().any(|t| t.0 == Some(false)) {
                continue;
            }
            let flat = self.ravel(&places, &output);
            let entry = self.times(&Ix::Number((ky * kw + kx) as i64), image[2]);
            let entry = self.plus(&entry, &spot.dims[2]);
            let value = self.value(node.args[0], Spot { row: spot.row.clone(), dims: vec![flat, entry] });
            let value = self.chosen(&tests, value);
            sum = Some(match sum {
                None => value,
                Some(so_far) => self.bind("real", format!("{so_far} + {value}")),
            });
        }
        sum.unwrap_or_else(|| self.literal(0.0))
    }
}
