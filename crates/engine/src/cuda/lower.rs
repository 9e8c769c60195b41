//! From a graph to a plan: a program as a GPU likes it, cut into parts, placed in memory and written as kernels.

mod place;
mod rewrite;

pub(super) use place::Placement;

use super::Trouble;
use super::emit;
use super::parts::{Arithmetic, Partition};
use super::plan::Plan;
use super::work::Work;
use crate::device::DeviceErrorKind;
use crate::graph::{Expr, Graph, Id};
use crate::op::Op;
use std::fmt::Write;

pub(super) fn plan(
    graph: &Graph,
    outputs: &[Expr],
    updates: &[(Expr, Expr)],
    replicas: usize,
    arithmetic: Arithmetic,
) -> Result<Plan, Trouble> {
    let mut outputs: Vec<Id> = outputs.iter().map(|e| e.id).collect();
    let mut updates: Vec<(Id, Id)> = updates.iter().map(|(v, e)| (v.id, e.id)).collect();
    let ends = updates.iter_mut().flat_map(|(v, e)| [v, e]);
    let nodes = rewrite::rewrite(&graph.nodes(), &mut outputs.iter_mut().chain(ends).collect::<Vec<_>>());
    let partition = Partition::new(nodes, outputs, updates, replicas, arithmetic);
    let mut plan = Plan::default();
    let placement = plan.place(&partition);
    check(&partition, &placement)?;
    for level in 0..partition.levels() {
        let parts = works(&partition, &placement, level);
        let (kernel, summary) = emit::kernel(&partition, &placement, &parts);
        if kernel.blocks > LARGEST {
            return Err(too_large(&format!("kernel {level} of {} blocks", kernel.blocks)));
        }
        plan.checks |= parts.iter().any(|(_, work)| work.needs.checks);
        let _ = writeln!(plan.summary, "kernel {level}:{summary}");
        plan.kernels.push(kernel);
    }
    Ok(plan)
}

/// What the parts of a level do. Blocks start in order: those that take longest first, so that none is left over at the end.
fn works(partition: &Partition, placement: &Placement, level: usize) -> Vec<(usize, Work)> {
    let parts = &partition.parts;
    let mut numbers: Vec<usize> = (0..parts.len()).filter(|&number| parts[number].level == level).collect();
    numbers.sort_by_key(|&number| std::cmp::Reverse(parts[number].effort()));
    numbers.into_iter().map(|number| (number, Work::new(partition, number, Some(placement)))).collect()
}

/// Kernels count places in an `int`, with some room for blocks and pieces that are rounded up.
const LARGEST: usize = i32::MAX as usize - (1 << 20);

/// An error if kernels would have to count further than they can.
///
/// A table that is only read may be larger: it is addressed by entry and place in it (see `trace::Site`).
fn check(partition: &Partition, placement: &Placement) -> Result<(), Trouble> {
    for (id, node) in partition.nodes.iter().enumerate().filter(|&(id, _)| partition.live[id]) {
        let shape = &node.shape;
        let stored = placement.is_stored(id as Id, partition);
        let leaf = matches!(node.op, Op::Input(..) | Op::Variable(_) | Op::Table(_));
        let table = leaf && shape.rows.is_none() && shape.rank() > 1;
        let counted = match (stored, leaf) {
            (true, _) => shape.len(),
            (false, true) if table => shape.dims[0].max(shape.len() / shape.dims[0].max(1)),
            (false, true) => shape.len(),
            (false, false) => shape.features().max(shape.rows.unwrap_or(1)),
        };
        if counted > LARGEST || partition.replicas.saturating_mul(shape.rows.unwrap_or(1)) > LARGEST {
            return Err(too_large(&format!("a value of shape {shape} for {} replicas", partition.replicas)));
        }
    }
    let part = partition.parts.iter().find(|part| part.shape.len() > LARGEST);
    part.map_or(Ok(()), |part| Err(too_large(&format!("a value of shape {}", part.shape))))
}

fn too_large(what: &str) -> Trouble {
    let kind = DeviceErrorKind::OutOfMemory;
    Trouble::new(
        kind,
        format!("{what} is too large to be indexed on the GPU; use fewer rows or replicas, or use the CPU"),
    )
}
