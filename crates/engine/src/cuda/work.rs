//! What the blocks of a part do, as data: how operands are had, what is summed, and what is stored.

use super::emit::Name;
use super::lower::Placement;
use super::parts::{Kind, Part, Partition, Spots, named_spot, quad_spots, row_spots, single_spot};
use super::product::{Product, Rows, Term};
use super::reduce::{Over, Reduce};
use super::strided::Address;
use super::trace::{Entry, Item, Ix, Needs, Spot, Trace, Value};
use crate::graph::Id;

/// One side of a term of a product.
pub(super) enum Operand {
    /// Copied from a buffer.
    Copied(Address),
    /// Computed while it is loaded.
    Computed(Vec<Item>, Value),
}

impl Operand {
    /// True if k runs along memory.
    pub fn k_is_fast(&self) -> bool {
        matches!(self, Operand::Copied(Address { k_is_fast: true, .. }))
    }
}

/// Entry k of what is reduced.
pub(super) enum Addend {
    /// Of the pieces that another part made.
    Piece(usize),
    Value(Vec<Item>, Value),
    /// The value where an entry is the one at hand, else zero.
    Match {
        items: Vec<Item>,
        entry: Entry,
        at: Ix,
        value: Value,
    },
}

/// What a part does.
pub(super) struct Work {
    /// Both sides of each term of a product.
    pub operands: Vec<[Operand; 2]>,
    /// Of a reduction.
    pub addend: Option<Addend>,
    /// What is done with a result while it is at hand.
    pub ending: Vec<Item>,
    /// True if four neighbours are finished at a time.
    pub four: bool,
    pub needs: Needs,
}

/// Values with as many entries as this are mapped four entries a thread.
const FOUR_FROM: usize = 1 << 16;

impl Work {
    /// What part `number` does; `placement` tells where results are stored (everything computed is, if there is none yet).
    pub fn new(partition: &Partition, number: usize, placement: Option<&Placement>) -> Self {
        let mut tracer =
            Tracer { partition, number, part: &partition.parts[number], placement, needs: Needs::default() };
        let (operands, addend) = match &tracer.part.kind {
            Kind::Map | Kind::Rows => (vec![], None),
            Kind::Product(p) => (tracer.operands(p), None),
            Kind::Reduce(r) => (vec![], Some(tracer.addend(r))),
        };
        let four = tracer.by_four();
        let ending = tracer.ending(four);
        Work { operands, addend, ending, four, needs: tracer.needs }
    }
}

struct Tracer<'a> {
    partition: &'a Partition,
    number: usize,
    part: &'a Part,
    placement: Option<&'a Placement>,
    needs: Needs,
}

impl Tracer<'_> {
    /// A scope of the part.
    fn scope<R>(&mut self, follow: impl FnOnce(&mut Trace) -> R) -> (Vec<Item>, R) {
        let place = |id: Id| self.partition.place(Some(self.number), id);
        let mut trace = Trace::new(&self.partition.nodes, &place, self.partition.arithmetic.single);
        let result = follow(&mut trace);
        assert!(!trace.needs.missing, "a part needs a reduction of its own at another entry");
        self.needs.add(&trace.needs);
        (trace.items, result)
    }

    fn operands(&mut self, p: &Product) -> Vec<[Operand; 2]> {
        p.terms.iter().map(|term| [true, false].map(|left| self.operand(p, term, left))).collect()
    }

    fn operand(&mut self, p: &Product, term: &Term, left: bool) -> Operand {
        if let Some(address) = self.partition.address(p, term, left) {
            self.needs.reads.insert(address.root);
            return Operand::Copied(address);
        }
        let id = if left { term.left } else { term.right };
        let (items, value) = self.scope(|trace| {
            let spot = p.spot(trace, term, left);
            trace.value(id, spot)
        });
        Operand::Computed(items, value)
    }

    fn addend(&mut self, r: &Reduce) -> Addend {
        if let (Over::Partials(_), Some(from)) = (r.over, self.part.sums) {
            return Addend::Piece(from);
        }
        // The halves of a split reduction have no anchor; what they reduce is found at the second.
        let anchor = self.part.anchors.first().copied().or_else(|| {
            let after = self.partition.parts.iter().find(|p| p.sums == Some(self.number))?;
            after.anchors.first().copied()
        });
        let args = &self.partition.node(anchor.expect("a reduction has an anchor")).args;
        let (mut out, len) = (named_spot(&self.part.shape), self.part.shape.dims.first().copied());
        if let Over::Matches = r.over {
            let at = out.dims[0];
            let (items, (entry, value)) = self.scope(|trace| {
                let index = trace.shape(args[0]);
                let row = trace.over(Ix::K, index.features());
                let within = trace.modulo(Ix::K, index.features());
                let mut dims = trace.unravel(within, &index.dims);
                let chosen = trace.value(args[0], Spot { row, dims: dims.clone() });
                dims.extend(&out.dims[1..]);
                let value = trace.value(args[1], Spot { row, dims });
                (trace.entry(args[0], chosen, len.expect("a table has an axis")), value)
            });
            return Addend::Match { items, entry, at, value };
        }
        let (items, value) = self.scope(|trace| {
            match r.over {
                Over::Axis(axis) => out.dims.insert(axis, Ix::K),
                Over::Rows => out.row = Ix::K,
                Over::Rank(_) => {
                    let dims = trace.unravel(Ix::K, &trace.shape(args[0]).dims);
                    out = Spot { row: Ix::Number(0), dims };
                }
                Over::Matches | Over::Partials(_) => unreachable!("handled above"),
            }
            trace.value(args[0], out)
        });
        Addend::Value(items, value)
    }

    /// True if results are finished four at a time, along the last axis.
    fn by_four(&self) -> bool {
        let shape = &self.part.shape;
        let last = shape.dims.iter().copied().rfind(|&d| d != 1);
        let fours = self.partition.arithmetic.single && last.is_some_and(|d| d >= 8 && d.is_multiple_of(4));
        fours
            && match &self.part.kind {
                Kind::Map => self.partition.replicas * shape.len() >= FOUR_FROM, // if there are many
                // Large tiles.
                Kind::Product(p) => {
                    let (g, t) = (&p.geometry, p.tile);
                    p.splits == 1 && g.n > 1 && g.rows != Rows::Right && t.m * t.n >= 1024
                }
                Kind::Rows | Kind::Reduce(_) => false,
            }
    }

    fn ending(&mut self, four: bool) -> Vec<Item> {
        let part = self.part;
        let splits = part.splits();
        match &part.kind {
            // The pieces of a reduction are stored by the text around.
            Kind::Reduce(_) if splits > 1 => vec![],
            Kind::Product(_) if splits > 1 => self.piece(splits),
            Kind::Map | Kind::Rows | Kind::Product(_) | Kind::Reduce(_) => {
                let spots: Spots = match (part.by_rows(), four) {
                    (true, _) => row_spots,
                    (false, true) => quad_spots,
                    (false, false) => single_spot,
                };
                self.results(spots)
            }
        }
    }

    /// Stores a piece of a product whose sum is cut.
    fn piece(&mut self, splits: usize) -> Vec<Item> {
        let (shape, part) = (&self.part.shape, self.number);
        let (mut items, at) = self.scope(|trace| trace.flat(&named_spot(shape), shape));
        items.push(Item::StorePiece { part, splits, stride: shape.len(), at });
        items
    }

    /// Everything the part computes at the places at hand, and the stores.
    fn results(&mut self, spots: Spots) -> Vec<Item> {
        let (partition, number, part, placement) = (self.partition, self.number, self.part, self.placement);
        let follow = |trace: &mut Trace| {
            partition.announce(trace, number, spots);
            for &id in part.nodes.iter().chain(&part.copies) {
                let targets: Vec<Name> = placement.map_or(vec![], |p| p.targets(id).collect());
                if placement.is_some() && targets.is_empty() {
                    continue; // needed only by others of this part, which ask for it
                }
                store(trace, id, &spots(trace.shape(id)), &targets);
            }
        };
        self.scope(follow).0
    }
}

/// Stores a value at some places through all pointers that ask for it.
fn store(trace: &mut Trace, id: Id, spots: &[Spot], targets: &[Name]) {
    let shape = trace.shape(id);
    let stride = shape.len();
    let values: Vec<Value> = spots.iter().map(|spot| trace.value(id, spot.clone())).collect();
    if let Some((first, _)) = trace.stretch(&spots[0], shape) {
        let at = trace.flat(&first, shape);
        let stores = targets.iter().map(|&to| Item::Store { to, stride, at, values: values.clone() });
        return trace.items.extend(stores);
    }
    for (spot, value) in spots.iter().zip(values) {
        let at = trace.flat(spot, shape);
        let stores = targets.iter().map(|&to| Item::Store { to, stride, at, values: vec![value] });
        trace.items.extend(stores);
    }
}
