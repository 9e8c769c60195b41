//! Which part computes what: every kept value joins a part, or opens one.

use super::sums::Sums;
use super::{Kind, NARROW, Part, Partition, narrow, space};
use crate::cuda::product::Product;
use crate::cuda::reduce::Reduce;
use crate::cuda::trace::{Index, Ix, Spot, Trace, Value};
use crate::graph::Id;
use crate::op::Op;
use crate::shape::Shape;

/// What it takes to compute a value inside a part.
struct Trial {
    /// The lowest level at which everything read is there.
    level: usize,
    /// The part of the highest level that is read from.
    latest: Option<usize>,
    possible: bool,
}

/// The places of a value that a thread visits.
pub(in crate::cuda) type Spots = fn(&Shape) -> Vec<Spot>;

/// Names of the kernel's indices for a value of some shape: `row`, `d0`, `d1`, … for axes longer than one.
pub(in crate::cuda) fn named_spot(shape: &Shape) -> Spot {
    let mut next = 0..;
    let dims = shape.dims.iter().map(|&d| match d {
        1 => Ix::Number(0),
        _ => Ix::Variable(Index::Axis(next.next().expect("endless"))),
    });
    Spot { row: Ix::ROW, dims: dims.collect() }
}

/// The entry at hand.
pub(in crate::cuda) fn single_spot(shape: &Shape) -> Vec<Spot> {
    vec![named_spot(shape)]
}

/// All entries of a narrow value in one row.
pub(in crate::cuda) fn row_spots(shape: &Shape) -> Vec<Spot> {
    let strides = shape.strides();
    let dims = |i: usize| {
        let at = |(&s, &d): (&usize, &usize)| Ix::Number((i / s % d) as i64);
        strides.iter().zip(&shape.dims).map(at).collect()
    };
    (0..shape.features()).map(|i| Spot { row: Ix::ROW, dims: dims(i) }).collect()
}

impl Partition {
    pub(super) fn cut(&mut self) {
        let users = self.users();
        let sums = self.find_sums(&users);
        let kept = self.kept();
        let results: Vec<Id> = self.results().collect();
        for id in (0..self.nodes.len() as Id).filter(|&id| self.live[id as usize]).collect::<Vec<_>>() {
            if sums.of.contains_key(&id) {
                continue;
            }
            if sums.terms.contains_key(&id) || (kept[id as usize] && self.is_anchor(id)) {
                self.open(id, &sums);
            } else if kept[id as usize] || (results.contains(&id) && !self.is_leaf(id)) {
                self.join(id);
            } else if results.contains(&id) {
                let (shape, copies) = (self.node(id).shape.clone(), vec![id]);
                self.parts.push(Part {
                    kind: Kind::Map,
                    level: 0,
                    shape,
                    nodes: vec![],
                    anchors: vec![],
                    sums: None,
                    copies,
                });
            }
        }
        self.settle_tiles();
    }

    /// Products of one kernel that have large tiles choose them again, together: they fill the card together.
    fn settle_tiles(&mut self) {
        let arithmetic = self.arithmetic;
        for level in 0..self.levels() {
            let large = |part| match part {
                &mut Part { level: own, kind: Kind::Product(ref mut p), .. } if own == level && p.large() => Some(p),
                _ => None,
            };
            let products: Vec<&mut Product> = self.parts.iter_mut().filter_map(large).collect();
            let broad = |p: &Product| p.choice(0, arithmetic).broad();
            let all: usize = products.iter().map(|p| broad(p)).sum();
            for product in products {
                // More tiles beside it only make larger ones worth while: its sum stays in one piece.
                (product.tile, product.splits) = product.choice(all - broad(product), arithmetic).best();
            }
        }
    }

    fn is_leaf(&self, id: Id) -> bool {
        self.node(id).args.is_empty()
    }

    fn users(&self) -> Vec<Vec<Id>> {
        let mut users = vec![vec![]; self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate().filter(|&(id, _)| self.live[id]) {
            node.args.iter().for_each(|&a| users[a as usize].push(id as Id));
        }
        users
    }

    /// A part for a reduction, or for a sum of products.
    fn open(&mut self, id: Id, sums: &Sums) {
        let alone = [(id, 1.0)];
        let terms = sums.terms.get(&id).map_or(&alone[..], Vec::as_slice);
        let anchors: Vec<Id> = terms.iter().map(|t| t.0).collect();
        let first = anchors[0];
        let shape = self.node(first).shape.clone();
        let product = matches!(self.node(first).op, Op::Matmul | Op::Contract);
        let mut level = anchors.iter().map(|&a| self.operands_ready(a)).max().unwrap_or(0);
        let number = self.parts.len();
        let (kind, partial) = if product {
            let p = Product::new(&self.nodes, terms, self.replicas, self.arithmetic);
            let outputs = self.replicas * shape.len();
            let partial = (p.splits > 1).then(|| Reduce::partials(p.splits, p.factor(), outputs));
            (Kind::Product(p), partial)
        } else {
            let r = Reduce::new(&self.nodes, first, self.replicas);
            let partial = (r.splits > 1).then(|| r.rest());
            (Kind::Reduce(r), partial)
        };
        let part = |kind, level, sums, anchors| Part {
            kind,
            level,
            shape: shape.clone(),
            nodes: vec![],
            anchors,
            sums,
            copies: vec![],
        };
        let own = if let Some(rest) = partial {
            self.parts.push(part(kind, level, None, vec![]));
            level += 1;
            self.parts.push(part(Kind::Reduce(rest), level, Some(number), anchors.clone()));
            number + 1
        } else {
            self.parts.push(part(kind, level, None, anchors.clone()));
            number
        };
        for &a in &anchors {
            self.part_of[a as usize] = Some(own);
        }
        self.parts[own].nodes.extend(if anchors.contains(&id) { &anchors[..] } else { &[] });
        if !anchors.contains(&id) {
            // The sum itself belongs to the part, whatever else it adds.
            let rest = self.try_out(id, Some(own));
            debug_assert!(rest.possible, "a sum of products can always close its part");
            let delay = rest.level.saturating_sub(level);
            self.parts[number..].iter_mut().for_each(|p| p.level += delay);
            self.put(id, own);
        }
    }

    fn put(&mut self, id: Id, part: usize) {
        self.parts[part].nodes.push(id);
        self.part_of[id as usize] = Some(part);
    }

    /// A value that is not a reduction: into the part it follows from, or beside others of its level.
    fn join(&mut self, id: Id) {
        let alone = self.try_out(id, None);
        if let Some(latest) = alone.latest
            && self.fits(id, latest)
        {
            let trial = self.try_out(id, Some(latest));
            if trial.possible && trial.level <= self.parts[latest].level {
                return self.put(id, latest);
            }
        }
        let shape = self.node(id).shape.clone();
        let kind = if narrow(&shape) { Kind::Rows } else { Kind::Map };
        let beside = self.parts.iter().position(|p| {
            p.level == alone.level
                && p.nodes.len() < 64
                && match p.kind {
                    Kind::Rows => narrow(&shape) && p.shape.rows == shape.rows,
                    Kind::Map => !narrow(&shape) && space(&p.shape) == space(&shape),
                    Kind::Product(_) | Kind::Reduce(_) => false,
                }
        });
        let part = beside.unwrap_or_else(|| {
            self.parts.push(Part {
                kind,
                level: alone.level,
                shape,
                nodes: vec![],
                anchors: vec![],
                sums: None,
                copies: vec![],
            });
            self.parts.len() - 1
        });
        self.put(id, part);
    }

    /// True if a part visits the entries of a value.
    fn fits(&self, id: Id, part: usize) -> bool {
        let (p, shape) = (&self.parts[part], &self.node(id).shape);
        // The first half of a split reduction has no entries of its own.
        let whole = p.splits() == 1;
        let fits = if p.by_rows() {
            shape.rows == p.shape.rows && shape.features() <= NARROW
        } else {
            space(&p.shape) == space(shape)
        };
        whole && fits && p.nodes.len() < 64
    }

    /// The level at which the operands of a reduction are there.
    fn operands_ready(&self, id: Id) -> usize {
        let args = &self.node(id).args;
        let ready = |&a: &Id| self.trial(None, |t| _ = t.value(a, named_spot(t.shape(a)))).level;
        args.iter().map(ready).max().unwrap_or(0)
    }

    /// What it takes to compute a value in a part (or in none).
    fn try_out(&self, id: Id, part: Option<usize>) -> Trial {
        let shape = &self.node(id).shape;
        let by_rows = part.map_or(narrow(shape), |p| self.parts[p].by_rows());
        self.trial(part, |trace| {
            let spots = if by_rows { row_spots } else { single_spot };
            if let Some(part) = part {
                self.announce(trace, part, spots);
            }
            spots(shape).into_iter().for_each(|spot| _ = trace.value(id, spot));
        })
    }

    /// What a trace needs.
    fn trial(&self, part: Option<usize>, follow: impl FnOnce(&mut Trace)) -> Trial {
        let place = |id: Id| self.place(part, id);
        let mut trace = Trace::new(&self.nodes, &place, self.arithmetic.single);
        follow(&mut trace);
        let parts = trace.needs.reads.iter().filter_map(|&id| self.part_of[id as usize]);
        let latest = parts.max_by_key(|&p| self.parts[p].level);
        let level = latest.map_or(0, |p| self.parts[p].level + 1);
        Trial { level, latest, possible: !trace.needs.missing }
    }

    /// Tells a trace the values of a part's reductions at the places at hand.
    pub(in crate::cuda) fn announce(&self, trace: &mut Trace, part: usize, spots: Spots) {
        for (k, &anchor) in self.parts[part].anchors.iter().enumerate() {
            let spots = spots(trace.shape(anchor));
            let many = spots.len() > 1 || self.parts[part].by_rows();
            for (i, spot) in spots.into_iter().enumerate() {
                let value = if k == 0 { Value::Own(many.then_some(i)) } else { Value::ZERO };
                trace.set(anchor, spot, value);
            }
        }
    }
}

/// Four neighbours along the last long axis, whose index then counts fours.
pub(in crate::cuda) fn quad_spots(shape: &Shape) -> Vec<Spot> {
    let spot = named_spot(shape);
    let last = shape.dims.iter().rposition(|&d| d != 1).expect("only values with a long axis are taken in fours");
    let neighbour = |i: i64| {
        let mut spot = spot.clone();
        if let Ix::Variable(index) = spot.dims[last] {
            spot.dims[last] = Ix::Quad(index, i);
        }
        spot
    };
    (0..4).map(neighbour).collect()
}
