//! Which values are worth a buffer: those that are dear, and needed often.

use super::{NARROW, Partition};
use crate::cuda::product::Term;
use crate::graph::{Id, Node};
use crate::op::{Op, Unary};
use crate::random::Draw;

/// How a value is needed by those who use it.
#[derive(Clone, Copy, Default)]
struct Demand {
    /// By how many.
    uses: usize,
    /// An entry is read many times over, as in a product.
    often: bool,
    /// It is copied by address: windows of it are read, or a large product reads it.
    copied: bool,
    /// How many entries of a user share one entry.
    repeat: usize,
}

/// Operands of products that cost no more than this are computed while they are loaded.
const CHEAP: usize = 3;
/// Products of as many multiplications are large.
const LARGE: usize = 1 << 27;
/// Values that several use are kept if they cost more than this.
const SHARED: usize = 12;
/// Values repeated over many entries are kept if they cost more than this.
const REPEATED: usize = 80;
/// Nothing dearer than this is written out in another kernel.
const DEAR: usize = 400;

/// True for operations that only rename entries.
pub(super) fn renames(op: &Op) -> bool {
    matches!(
        op,
        Op::Broadcast
            | Op::Reshape
            | Op::Transpose(_)
            | Op::Slice { .. }
            | Op::Collect
            | Op::Distribute
            | Op::StopGradient
            | Op::Pin
    )
}

/// About how many instructions an operation itself takes.
fn own_cost(op: &Op) -> usize {
    match op {
        Op::Unary(Unary::Neg | Unary::Abs | Unary::Floor | Unary::Sign) | Op::Binary(_) | Op::Select => 1,
        Op::Unary(Unary::Recip | Unary::Sqrt | Unary::Rsqrt) => 8,
        Op::Unary(_) => 20,
        Op::Random(Draw::Normal, _) => 90,
        Op::Random(Draw::Permutation(_) | Draw::Epoch(_), _) => 600,
        Op::Random(..) => 50,
        Op::Pad { .. } | Op::Gather | Op::Im2col(_) => 2,
        Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Step => 0,
        Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } | Op::Collect | Op::Distribute => 0,
        Op::StopGradient | Op::Pin | Op::Concat { .. } | Op::Scatter | Op::Col2im(_) => 0,
        Op::Sum { .. } | Op::Max { .. } | Op::SumRows | Op::MaxRows | Op::Matmul | Op::Contract | Op::Kth(_) => 0,
    }
}

impl Partition {
    /// True for reductions that need threads of their own.
    pub(super) fn is_anchor(&self, id: Id) -> bool {
        let node = self.node(id);
        let arg = |k: usize| &self.node(node.args[k]).shape;
        match &node.op {
            Op::SumRows | Op::MaxRows | Op::Contract | Op::Scatter | Op::Kth(_) => true,
            Op::Sum { axis } | Op::Max { axis } => arg(0).dims[*axis] > NARROW,
            Op::Matmul => arg(0).dims[arg(0).rank() - 1] > NARROW,
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::StopGradient | Op::Pin => false,
            Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } | Op::Pad { .. } => false,
            Op::Concat { .. } | Op::Collect | Op::Distribute | Op::Gather | Op::Im2col(_) | Op::Col2im(_) => false,
            Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => false,
        }
    }

    /// True for products whose tiles are large: these wait for operands that are computed while they are loaded.
    fn is_large(&self, id: Id) -> bool {
        let node = self.node(id);
        matches!(node.op, Op::Matmul | Op::Contract)
            && self.replicas * node.shape.len() * Term::new(&self.nodes, id, 1.0).depth >= LARGE
    }

    /// Which nodes are kept in buffers (or at least in a part of their own choosing).
    pub(super) fn kept(&self) -> Vec<bool> {
        let demands = self.demands();
        let mut kept = vec![false; self.nodes.len()];
        let mut work = vec![0usize; self.nodes.len()];
        for id in (0..self.nodes.len()).filter(|&id| self.live[id]) {
            let node = &self.nodes[id];
            let leaf = matches!(node.op, Op::Input(..) | Op::Variable(_) | Op::Table(_) | Op::Fill(_) | Op::Step);
            let args: usize = node.args.iter().map(|&a| work[a as usize]).fold(0, usize::saturating_add);
            work[id] = if leaf { 1 } else { (args + own_cost(&node.op)).saturating_mul(self.turns(node)) };
            let d = demands[id];
            let dear = (d.often && work[id] > CHEAP)
                || (d.copied && work[id] > 1 && !matches!(node.op, Op::Im2col(_)))
                || (d.uses >= 2 && work[id] > SHARED)
                || (d.repeat >= 8 && work[id] > REPEATED)
                || work[id] > DEAR;
            kept[id] = !leaf && (self.is_anchor(id as Id) || (dear && !renames(&node.op)));
            if kept[id] {
                work[id] = 1;
            }
        }
        kept
    }

    /// Entries of the arguments that make one entry of a node that is written out.
    fn turns(&self, node: &Node) -> usize {
        let arg = || &self.node(node.args[0]).shape;
        match &node.op {
            Op::Sum { axis } | Op::Max { axis } => arg().dims[*axis],
            Op::Matmul => arg().dims[arg().rank() - 1],
            Op::Col2im(w) => w.kernel[0] * w.kernel[1],
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::StopGradient | Op::Pin => 1,
            Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } | Op::Pad { .. } => 1,
            Op::Concat { .. } | Op::Collect | Op::Distribute | Op::Gather | Op::Im2col(_) => 1,
            Op::SumRows | Op::MaxRows | Op::Contract | Op::Scatter | Op::Kth(_) => 1, // never written out
            Op::Input(..) | Op::Variable(_) | Op::Fill(_) | Op::Table(_) | Op::Random(..) | Op::Step => 1,
        }
    }

    /// How each node is needed, seen through renamings.
    fn demands(&self) -> Vec<Demand> {
        let mut demands = vec![Demand::default(); self.nodes.len()];
        for id in self.results() {
            demands[id as usize].uses += 1;
        }
        for id in (0..self.nodes.len()).rev().filter(|&id| self.live[id]) {
            let node = &self.nodes[id];
            for (k, &arg) in node.args.iter().enumerate() {
                let shared = node.shape.len() / self.node(arg).shape.len().max(1);
                let own = demands[id];
                let d = &mut demands[arg as usize];
                if renames(&node.op) {
                    d.uses += own.uses;
                    d.often |= own.often;
                    d.copied |= own.copied;
                    d.repeat = d.repeat.max(own.repeat.max(1) * shared.max(1));
                    continue;
                }
                d.uses += 1;
                d.often |= matches!(node.op, Op::Matmul | Op::Contract | Op::Kth(_) | Op::Scatter);
                d.copied |= matches!(node.op, Op::Im2col(_)) || self.is_large(id as Id);
                d.repeat = d.repeat.max(if node.op == Op::Gather && k == 1 { shared } else { 1 });
            }
        }
        demands
    }
}
