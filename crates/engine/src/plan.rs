//! What planning a program for any device needs: which nodes matter, how their entries lie, and how buffers share memory.

mod memory;
mod views;

pub(crate) use memory::{Interval, pack};
#[cfg(feature = "cuda")]
pub(crate) use views::regroup;
pub(crate) use views::{View, space, views};

use crate::graph::{Id, Node};

/// Which nodes are needed for some of them.
pub(crate) fn live(nodes: &[Node], roots: impl IntoIterator<Item = Id>) -> Vec<bool> {
    let mut live = vec![false; nodes.len()];
    roots.into_iter().for_each(|id| live[id as usize] = true);
    for id in (0..nodes.len()).rev() {
        if live[id] {
            nodes[id].args.iter().for_each(|&a| live[a as usize] = true);
        }
    }
    live
}
