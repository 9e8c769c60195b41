//! A program as a GPU likes it: the same values from other operations, before the program is cut into parts.
//!
//! Windows that are added up become sums over windows: a product followed by `col2im` would write every entry of every
//! window, many times the image. The pixels of one remainder (modulo the stride) are a convolution of their own, whose windows
//! are copied while it is computed. And elementwise work on a value under other axes is done under the axes that the value was computed
//! with, so that it can be done while the value is at hand.

use crate::cuda::parts::space;
use crate::graph::{Id, Node};
use crate::op::{Binary, Op, Window};
use crate::shape::Shape;
use std::collections::HashMap;
use std::sync::Arc;

/// The program's nodes, and where the old ones went.
pub(super) fn rewrite(old: &[Node], roots: &mut [&mut Id]) -> Vec<Node> {
    let mut new = Rewritten::default();
    let mut moved: Vec<Id> = Vec::with_capacity(old.len());
    for node in old {
        let args: Vec<Id> = node.args.iter().map(|&a| moved[a as usize]).collect();
        let node = Node { op: node.op.clone(), args, shape: node.shape.clone() };
        moved.push(if node.op == Op::Reshape {
            new.reshape(node.args[0], &node.shape.dims)
        } else {
            new.summed(&node).or_else(|| new.regrouped(&node)).unwrap_or_else(|| new.put(node))
        });
    }
    roots.iter_mut().for_each(|root| **root = moved[**root as usize]);
    new.nodes
}

#[derive(Default)]
struct Rewritten {
    nodes: Vec<Node>,
    index: HashMap<Node, Id>,
}

/// Images of fewer channels are better added up: their windows are small, and products of so few columns slow.
const CHANNELS: usize = 16;

/// Pixels of one remainder along one axis: the windows of what is added up that reach them.
struct Phase {
    /// Which entries of the old window they meet, first to last.
    entries: Vec<usize>,
    pad: [usize; 2],
}

/// The phases of an axis, by remainder, if all have as many pixels.
fn phases(kernel: usize, stride: usize, before: usize, length: usize, windows: usize) -> Option<Vec<Phase>> {
    if stride == 0 || !length.is_multiple_of(stride) {
        return None;
    }
    let phase = |remainder: usize| {
        // Pixel y is entry first + stride·j of window last − j, where y + before = stride·last + first.
        let first = (remainder + before) % stride;
        let taps = kernel.checked_sub(first).filter(|&left| left > 0)?.div_ceil(stride);
        let last = |pixel: usize| (pixel + before) / stride;
        let pad =
            [(taps - 1).checked_sub(last(remainder))?, (last(length - stride + remainder) + 1).checked_sub(windows)?];
        Some(Phase { entries: (0..taps).rev().map(|j| first + stride * j).collect(), pad })
    };
    (0..stride).map(phase).collect()
}

impl Rewritten {
    fn put(&mut self, node: Node) -> Id {
        if let Some(&id) = self.index.get(&node) {
            return id;
        }
        let id = self.nodes.len() as Id;
        self.nodes.push(node.clone());
        self.index.insert(node, id);
        id
    }

    fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    /// The same rows with axes of other lengths.
    fn unary(&mut self, op: Op, arg: Id, dims: Vec<usize>) -> Id {
        let shape = self.node(arg).shape.with_dims(dims);
        self.put(Node { op, args: vec![arg], shape })
    }

    /// The value that a reshaped one is.
    fn source(&self, id: Id) -> Id {
        if self.node(id).op == Op::Reshape { self.node(id).args[0] } else { id }
    }

    fn reshape(&mut self, arg: Id, dims: &[usize]) -> Id {
        let source = self.node(self.source(arg));
        let shape = source.shape.with_dims(dims);
        if source.shape.dims == dims {
            return self.source(arg);
        }
        if let Op::Fill(bits) = source.op {
            return self.put(Node { op: Op::Fill(bits), args: vec![], shape });
        }
        self.put(Node { op: Op::Reshape, args: vec![self.source(arg)], shape })
    }

    fn concat(&mut self, args: Vec<Id>, axis: usize) -> Id {
        if let [only] = args[..] {
            return only;
        }
        let mut shape = self.node(args[0]).shape.clone();
        shape.dims[axis] = args.iter().map(|&a| self.node(a).shape.dims[axis]).sum();
        self.put(Node { op: Op::Concat { axis }, args, shape })
    }

    /// Windows added up, if they are a product: a product for each remainder, interleaved.
    fn summed(&mut self, node: &Node) -> Option<Id> {
        let &Op::Col2im(window) = &node.op else { return None };
        let [h, w, c] = node.shape.dims[..] else { return None };
        let (product, factor) = self.scaled(self.node(node.args[0]));
        if product.op != Op::Matmul || self.node(product.args[1]).shape.rows.is_some() || c < CHANNELS {
            return None;
        }
        let (left, right) = (product.args[0], product.args[1]);
        let Window { kernel: [kh, kw], stride, pad } = window;
        let [oh, ow] = window.output([h, w]);
        let bands = phases(kh, stride, pad[0][0], h, oh)?;
        let columns = phases(kw, stride, pad[1][0], w, ow)?;
        let inner = self.node(right).shape.dims[0];
        let image = self.reshape(left, &[oh, ow, inner]);
        let taps = self.reshape(right, &[inner, kh * kw, c]);
        let taps = self.unary(Op::Transpose(vec![1, 0, 2]), taps, vec![kh * kw, inner, c]);
        let mut rows = vec![];
        for band in &bands {
            let piece = |column: &Phase| {
                let piece = self.piece(image, taps, [band, column], kw, h / stride * (w / stride));
                self.reshape(piece, &[h / stride, 1, w / stride, 1, c])
            };
            let pieces = columns.iter().map(piece).collect();
            rows.push(self.concat(pieces, 3));
        }
        let image = self.concat(rows, 1);
        let image = self.reshape(image, &[h, w, c]);
        Some(factor.map_or(image, |bits| {
            let factor = self.put(Node { op: Op::Fill(bits), args: vec![], shape: node.shape.clone() });
            let scaled = Node { op: Op::Binary(Binary::Mul), args: vec![factor, image], shape: node.shape.clone() };
            self.regrouped(&scaled).unwrap_or_else(|| self.put(scaled))
        }))
    }

    /// The convolution of one remainder along each axis, `[places, channels]`: windows of the image with those weights,
    /// `[kernel, inner, channels]`, that its pixels meet.
    fn piece(&mut self, image: Id, taps: Id, [band, column]: [&Phase; 2], width: usize, places: usize) -> Id {
        let place =
            |y: &usize| column.entries.iter().map(move |x| ((y * width + x) as f64).to_bits()).collect::<Vec<_>>();
        let chosen: Arc<[u64]> = band.entries.iter().flat_map(place).collect();
        let [_, inner, c] = self.node(taps).shape.dims[..] else { unreachable!("weights have three axes") };
        let count = chosen.len();
        let chosen = self.put(Node { op: Op::Table(chosen), args: vec![], shape: Shape::whole([count]) });
        let shape = Shape::whole([count, inner, c]);
        let weights = self.put(Node { op: Op::Gather, args: vec![taps, chosen], shape });
        let weights = self.reshape(weights, &[count * inner, c]);
        let kernel = [band.entries.len(), column.entries.len()];
        let window = Window { kernel, stride: 1, pad: [band.pad, column.pad] };
        let windows = self.unary(Op::Im2col(window), image, vec![places, count * inner]);
        let shape = self.node(windows).shape.with_dims([places, c]);
        self.put(Node { op: Op::Matmul, args: vec![windows, weights], shape })
    }

    /// What a number is multiplied with, and that number.
    fn scaled<'a>(&'a self, node: &'a Node) -> (&'a Node, Option<u64>) {
        match (&node.op, node.args.first().map(|&a| &self.node(a).op)) {
            (Op::Binary(Binary::Mul), Some(&Op::Fill(bits))) => (self.node(node.args[1]), Some(bits)),
            _ => (node, None),
        }
    }

    /// Elementwise work on what has other axes by itself: done there.
    fn regrouped(&mut self, node: &Node) -> Option<Id> {
        if !matches!(node.op, Op::Unary(_) | Op::Binary(_) | Op::Select | Op::StopGradient | Op::Pin) {
            return None;
        }
        let made = |id: &Id| !self.node(*id).args.is_empty() && self.node(*id).op != Op::Broadcast;
        let latest = node.args.iter().map(|&a| self.source(a)).filter(made).max()?;
        let shape = self.node(latest).shape.clone();
        if shape.rows != node.shape.rows || space(&shape) == space(&node.shape) {
            return None;
        }
        let args = node.args.iter().map(|&a| self.reshape(a, &shape.dims)).collect();
        let own = self.put(Node { op: node.op.clone(), args, shape });
        Some(self.reshape(own, &node.shape.dims))
    }
}

#[cfg(test)]
mod tests {
    use super::{Op, rewrite};
    use crate::derive::grad;
    use crate::graph::{Graph, Id};
    use crate::op::Window;
    use crate::random::{Key, Stream};
    use crate::reference::{Values, evaluate};

    /// Values before and after, and how many windows are still added up.
    fn both(graph: &Graph, roots: &[Id], values: &Values) -> (Vec<Vec<f64>>, Vec<Vec<f64>>, usize) {
        let mut after = roots.to_vec();
        let nodes = rewrite(&graph.nodes(), &mut after.iter_mut().collect::<Vec<_>>());
        let summed = nodes.iter().filter(|n| matches!(n.op, Op::Col2im(_))).count();
        let lowered = Graph::new();
        nodes.into_iter().enumerate().for_each(|(k, node)| assert_eq!(lowered.intern(node).id, k as Id));
        let value = |graph: &Graph, ids: &[Id]| {
            evaluate(&ids.iter().map(|&id| graph.at(id)).collect::<Vec<_>>(), values, 0, 0, 0)
        };
        (value(graph, roots), value(&lowered, &after), summed)
    }

    #[test]
    fn lowered_programs_have_the_same_values_and_add_up_no_windows_of_many_channels() {
        let windows = [
            ([5, 5], 2, [[2, 2]; 2]),
            ([5, 5], 2, [[1, 2]; 2]),
            ([3, 2], 1, [[1, 1], [0, 1]]),
            ([4, 4], 4, [[0; 2]; 2]),
        ];
        for ((kernel, stride, pad), (channels, expected)) in
            windows.into_iter().flat_map(|w| [(16, 0), (3, 1)].map(|c| (w, c)))
        {
            let window = Window { kernel, stride, pad };
            let g = Graph::new();
            let (x, w) = (g.input_rows("x", 2, [8, 4, channels]), g.input("w", [kernel[0] * kernel[1] * channels, 5]));
            // Elementwise work under other axes than the product's, with a factor before the windows are added up.
            let y = x.conv2d(w, window) + g.input("b", [5]);
            let y = y.reshape([y.shape().features()]).tanh();
            let loss = (y.square() * 3.0).sum(-1).sum_rows();
            let roots = [y.id, grad(loss, &[x])[0].id, grad(loss, &[w])[0].id];
            let mut normals = Stream::new(Key::new(7, 0), 0);
            let mut draw = |n: usize| (0..n).map(|_| normals.normal()).collect::<Vec<f64>>();
            let values = [("x", draw(64 * channels)), ("w", draw(w.shape().len())), ("b", draw(5))].into();
            let (before, after, summed) = both(&g, &roots, &values);
            assert_eq!(summed, expected, "{window:?}, {channels} channels");
            for (a, b) in before.concat().into_iter().zip(after.concat()) {
                assert!((a - b).abs() <= 1e4 * f64::EPSILON * (1.0 + a.abs()), "{window:?}: {a} and {b}");
            }
        }
    }
}
