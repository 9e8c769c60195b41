//! Views: operations that only rename entries (broadcast, transpose, slice, most reshapes) cost nothing.

use crate::graph::{Graph, Id};
use crate::op::Op;

/// How a node's entries are found in the buffer of its root. Strides count features.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub root: Id,
    pub offset: usize,
    pub strides: Vec<usize>,
    /// True if the root has one value per row.
    pub lane: bool,
}

impl View {
    /// True if the entries lie one after another, as in a buffer of their own.
    pub fn is_dense(&self, dims: &[usize]) -> bool {
        let mut expected = 1;
        for (&d, &s) in dims.iter().zip(&self.strides).rev() {
            if d != 1 && s != expected {
                return false;
            }
            expected *= d;
        }
        self.offset == 0
    }
}

/// The view of every live node, in order. A node that is its own root has a buffer.
pub(crate) fn views(graph: &Graph, live: &[bool]) -> Vec<View> {
    let nodes = graph.nodes();
    let mut views: Vec<View> = Vec::with_capacity(live.len());
    for (id, &live) in live.iter().enumerate() {
        let node = &nodes[id];
        let own = View {
            root: id as Id,
            offset: 0,
            strides: if matches!(node.op, Op::Fill(_)) { vec![0; node.shape.rank()] } else { node.shape.strides() },
            lane: node.shape.rows.is_some() && !matches!(node.op, Op::Fill(_)),
        };
        let arg = || &views[node.args[0] as usize];
        if !live {
            views.push(own);
            continue;
        }
        let view = match &node.op {
            Op::StopGradient | Op::Pin => arg().clone(),
            Op::Broadcast => {
                let (from, dims) = (&nodes[node.args[0] as usize].shape.dims, &node.shape.dims);
                let lead = dims.len() - from.len();
                let stride = |i: usize| if i < lead || from[i - lead] == 1 { 0 } else { arg().strides[i - lead] };
                View { strides: (0..dims.len()).map(stride).collect(), ..arg().clone() }
            }
            Op::Transpose(order) => {
                View { strides: order.iter().map(|&i| arg().strides[i]).collect(), ..arg().clone() }
            }
            Op::Slice { axis, start } => View { offset: arg().offset + start * arg().strides[*axis], ..arg().clone() },
            Op::Reshape => match regroup(&nodes[node.args[0] as usize].shape.dims, &arg().strides, &node.shape.dims) {
                Some(strides) => View { strides, ..arg().clone() },
                None => own,
            },
            Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => own,
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Pad { .. } | Op::Concat { .. } => own,
            Op::Sum { .. } | Op::Max { .. } | Op::SumRows | Op::MaxRows | Op::Kth(_) => own,
            Op::Matmul | Op::Contract | Op::Collect | Op::Distribute => own,
            Op::Gather | Op::Scatter | Op::Im2col(_) | Op::Col2im(_) => own,
        };
        views.push(view);
    }
    views
}

/// Feature axes longer than one: values of one space are visited together.
pub(crate) fn space(dims: &[usize]) -> Vec<usize> {
    dims.iter().copied().filter(|&d| d != 1).collect()
}

/// Strides of the same entries under other axes, if they can be expressed.
pub(crate) fn regroup(from: &[usize], strides: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let (mut i, mut j) = (0, 0);
    let mut result = vec![0; to.len()];
    while i < from.len() || j < to.len() {
        // The shortest runs of axes on both sides with equally many entries.
        let (i0, j0) = (i, j);
        let (mut a, mut b) = (1, 1);
        if i < from.len() {
            a *= from[i];
            i += 1;
        }
        if j < to.len() {
            b *= to[j];
            j += 1;
        }
        while a != b {
            if a < b {
                a *= from[i];
                i += 1;
            } else {
                b *= to[j];
                j += 1;
            }
        }
        let kept: Vec<usize> = (i0..i).filter(|&k| from[k] != 1).collect();
        let contiguous = kept.windows(2).all(|w| strides[w[0]] == strides[w[1]] * from[w[1]]);
        if !contiguous {
            return None;
        }
        let mut stride = kept.last().map_or(0, |&k| strides[k]);
        for k in (j0..j).rev() {
            result[k] = stride;
            stride *= to[k];
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::regroup;

    #[test]
    fn axes_that_lie_together_can_be_regrouped() {
        assert_eq!(regroup(&[2, 3], &[3, 1], &[6]), Some(vec![1]));
        assert_eq!(regroup(&[6], &[2], &[2, 3]), Some(vec![6, 2]));
        assert_eq!(regroup(&[2, 3], &[1, 2], &[6]), None);
        assert_eq!(regroup(&[2, 3], &[1, 2], &[2, 1, 3]).map(|s| [s[0], s[2]]), Some([1, 2]));
        assert_eq!(regroup(&[], &[], &[1]), Some(vec![0]));
        assert_eq!(regroup(&[1, 4], &[0, 1], &[4]), Some(vec![1]));
    }
}
