//! How large a program may be, so that nothing that is multiplied or added while it is planned leaves a `usize`; and vectors
//! for which there may be no memory.

use crate::device::DeviceError;
use crate::graph::{Expr, Graph};
use crate::plan::live;
use crate::shape::Shape;

/// Rows and lanes that are stored beside those of the data: tiles and pitches are rounded up, and sums have partial results.
const BESIDE: u128 = 128;

/// An error unless all values of a program together, of all replicas, padded and copied once or twice, could be counted in bytes.
///
/// A plan stores each value at most a few times, so every offset, distance and total of it is far below `usize::MAX`: the
/// arithmetic of `cpu` and `cuda` relies on this. Whether there is as much memory shows when it is asked for.
pub(crate) fn check(
    graph: &Graph,
    outputs: &[Expr],
    updates: &[(Expr, Expr)],
    replicas: usize,
) -> Result<(), DeviceError> {
    let nodes = graph.nodes();
    let roots = outputs.iter().chain(updates.iter().flat_map(|(variable, value)| [variable, value]));
    let live = live(&nodes, roots.map(|e| e.id));
    let needed = nodes.iter().zip(live).filter(|(_, live)| *live);
    let total: u128 = needed.map(|(node, _)| entries(&node.shape) * replicas as u128).sum();
    if total <= Shape::LIMIT as u128 { Ok(()) } else { Err(DeviceError::no_room(None)) }
}

fn entries(shape: &Shape) -> u128 {
    (shape.features().max(1) as u128) * (shape.rows.unwrap_or(1) as u128 + BESIDE)
}

/// A vector of equal entries, or an error if there is no memory for it.
pub(crate) fn filled<V: Clone>(value: V, len: usize) -> Result<Vec<V>, DeviceError> {
    let mut values = vec![];
    values.try_reserve_exact(len).map_err(|_| DeviceError::no_room(len.checked_mul(size_of::<V>())))?;
    values.resize(len, value);
    Ok(values)
}
