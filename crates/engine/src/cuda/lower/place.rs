//! Where everything lives.

use crate::cuda::emit::Name;
use crate::cuda::parts::Partition;
use crate::cuda::plan::{Home, Param, Plan};
use crate::cuda::work::Work;
use crate::graph::Id;
use crate::inputs::Named;
use crate::op::{Element, Op};
use crate::plan::{Interval, pack};
use std::collections::HashMap;

/// Where parts find what they read, and store what they compute.
#[derive(Default)]
pub(in crate::cuda) struct Placement {
    homes: HashMap<Id, Home>,
    targets: HashMap<Id, Vec<(Name, Home)>>,
    pieces: HashMap<usize, Home>,
    updated: Vec<usize>,
}

impl Placement {
    /// Where a value is read from.
    pub fn home(&self, id: Id) -> Home {
        self.homes[&id]
    }

    /// The pointers a value is stored through.
    pub fn targets(&self, id: Id) -> impl Iterator<Item = Name> + '_ {
        self.targets.get(&id).into_iter().flatten().map(|&(name, _)| name)
    }

    /// The same, with what they are.
    pub fn stores(&self, id: Id) -> impl Iterator<Item = (Name, Param)> + '_ {
        self.targets.get(&id).into_iter().flatten().map(|&(name, home)| (name, Param::Pointer(home)))
    }

    /// Where the pieces of a part's reduction are kept, if it is cut.
    pub fn pieces(&self, part: usize) -> Option<Home> {
        self.pieces.get(&part).copied()
    }

    /// True if kernels write a value.
    pub fn is_stored(&self, id: Id, partition: &Partition) -> bool {
        self.targets.contains_key(&id) || (partition.part_of[id as usize].is_some() && self.homes.contains_key(&id))
    }

    /// True if all replicas may share one copy, which is known only when the program runs.
    pub fn shared(&self, home: Home) -> bool {
        match home {
            Home::Input(_) | Home::Bytes(_) => true,
            Home::Variable(slot) => !self.updated.contains(&slot),
            Home::Memory(_) | Home::Next(_) => false,
        }
    }

    /// A result; readers find the value there too, unless it is a leaf.
    fn store(&mut self, id: Id, name: Name, home: Home, partition: &Partition) {
        self.targets.entry(id).or_default().push((name, home));
        // Readers prefer the first place; a new value of a variable is as good as any.
        if partition.part_of[id as usize].is_some() {
            self.homes.entry(id).or_insert(home);
        }
    }
}

/// Buffers start on lines of the cache.
const LINE: usize = 64;

impl Plan {
    /// Decides where everything lives.
    pub(super) fn place(&mut self, partition: &Partition) -> Placement {
        let mut placement = Placement::default();
        let slots = self.place_leaves(partition, &mut placement);
        for (k, &id) in partition.outputs.iter().enumerate() {
            let shape = partition.node(id).shape.clone();
            let at = self.take(shape.len() * partition.replicas);
            self.outputs.push((at, shape));
            placement.store(id, Name::Output(k), Home::Memory(at), partition);
        }
        for (variable, value) in &partition.updates {
            let slot = slots[variable];
            self.updated.push(slot);
            placement.store(*value, Name::Next(slot), Home::Next(slot), partition);
        }
        placement.updated = self.updated.clone();
        self.place_kept(partition, &mut placement);
        placement
    }

    /// Inputs, variables and constants; and the numbers of the variables.
    fn place_leaves(&mut self, partition: &Partition, placement: &mut Placement) -> HashMap<Id, usize> {
        let mut slots: HashMap<Id, usize> = HashMap::new();
        for (id, node) in partition.nodes.iter().enumerate().filter(|&(id, _)| partition.live[id]) {
            let named = |name: &str| Named { name: name.to_string(), shape: node.shape.clone() };
            let home = match &node.op {
                Op::Input(name, Element::Real) => {
                    self.inputs.push(named(name));
                    Home::Input(self.inputs.len() - 1)
                }
                Op::Input(name, Element::Byte) => {
                    self.bytes.push(named(name));
                    Home::Bytes(self.bytes.len() - 1)
                }
                Op::Variable(name) => {
                    self.variables.push(named(name));
                    slots.insert(id as Id, self.variables.len() - 1);
                    Home::Variable(self.variables.len() - 1)
                }
                Op::Table(bits) => {
                    let at = self.take(node.shape.len());
                    self.constants.push((at, bits.iter().map(|&b| f64::from_bits(b)).collect()));
                    Home::Memory(at)
                }
                Op::Fill(_) | Op::Random(..) | Op::Step => continue, // written where they are used
                Op::Unary(_) | Op::Binary(_) | Op::Select | Op::StopGradient | Op::Pin => continue,
                Op::Broadcast | Op::Reshape | Op::Transpose(_) | Op::Slice { .. } => continue,
                Op::Pad { .. } | Op::Concat { .. } | Op::Collect | Op::Distribute => continue,
                Op::Sum { .. } | Op::Max { .. } | Op::SumRows | Op::MaxRows | Op::Kth(_) => continue,
                Op::Matmul | Op::Contract | Op::Gather | Op::Scatter | Op::Im2col(_) | Op::Col2im(_) => continue,
            };
            placement.homes.insert(id as Id, home);
        }
        slots
    }

    /// Room that lasts as long as the program.
    fn take(&mut self, len: usize) -> usize {
        let at = self.memory;
        self.memory += len.next_multiple_of(LINE);
        at
    }

    /// Room for what one part computes for another, shared by values whose levels do not meet.
    fn place_kept(&mut self, partition: &Partition, placement: &mut Placement) {
        let mut last: HashMap<Id, usize> = HashMap::new();
        for (number, part) in partition.parts.iter().enumerate() {
            for id in Work::new(partition, number, None).needs.reads {
                let l = last.entry(id).or_insert(part.level);
                *l = part.level.max(*l);
            }
        }
        let mut intervals = vec![];
        let mut read: Vec<(Id, usize)> = last.into_iter().collect();
        read.sort_unstable();
        for &(id, until) in &read {
            let Some(part) = partition.part_of[id as usize] else { continue };
            if !placement.homes.contains_key(&id) {
                let len = (partition.node(id).shape.len() * partition.replicas).next_multiple_of(LINE);
                let (first, last) = (partition.parts[part].level, until);
                intervals.push(Interval { first, last, len, buffer: id as usize });
            }
        }
        let first_piece = partition.nodes.len();
        for (number, part) in partition.parts.iter().enumerate().filter(|(_, part)| part.splits() > 1) {
            let len = (part.shape.len() * partition.replicas * part.splits()).next_multiple_of(LINE);
            intervals.push(Interval { first: part.level, last: part.level + 1, len, buffer: first_piece + number });
        }
        let (offsets, total) = pack(intervals);
        for (buffer, at) in offsets {
            let home = Home::Memory(self.memory + at);
            if buffer >= first_piece {
                placement.pieces.insert(buffer - first_piece, home);
            } else {
                placement.homes.insert(buffer as Id, home);
                placement.targets.entry(buffer as Id).or_default().push((Name::Kept(buffer as Id), home));
            }
        }
        self.memory += total;
    }
}
