//! Kernels laid out for summing: the families about one list of centres, block by block, with what each block promises.
//!
//! **Statement.** A kernel is at most e^{a + b d²} at a point d or more away: a the log of its peak, b = −½ over its largest
//! variance + κ, where log|dv/dvol| ≤ κ·d² up to where kernels end (spheres and rotations; elsewhere κ = 0). The kernels of a
//! family in a block are taken in four parts by their widths, each with its highest a and b: wide kernels are low, and
//! would promise too much together with narrow ones. λ_max(S) ≤ (tr S⁸)^{1/8}. **Error.** None: these are bounds.
//! **Checked by** tests/densities/kernel_sums.rs.

use super::index::{GROUP, Index};
use super::kernels::{Kind, LocalKernels, Sites, padded};
use super::lanes::BLOCK;
use super::shape::Shape;
use crate::density::Bump;
use crate::manifold::Space;
use std::f64::consts::{PI, TAU};

/// The families about one list of centres.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layer {
    /// `[block, coordinate, lane]`.
    pub centres: Vec<f64>,
    /// For natural kernels, coordinates in which t is a sum of squares, `[block, coordinate, lane]`; none where it is not.
    pub embedded: Vec<f64>,
    /// The direction of each of these coordinates.
    pub directions: Vec<usize>,
    /// `[block, lane]`, 0 beyond the last centre.
    pub weights: Vec<f64>,
    /// Of the shapes that belong to these centres.
    pub shapes: Vec<Option<Shaped>>,
    pub members: Vec<Member>,
    pub index: Index,
    /// Of each block and member.
    promises: Vec<Promise>,
    /// Of each group of blocks and member.
    group_promises: Vec<Promise>,
}

/// Covariances in the order of the lanes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shaped {
    /// `[block, entry, lane]`; the first entries of natural kernels are their κ in each direction.
    pub factors: Vec<f64>,
    /// −log det C, or −log N of natural kernels.
    pub logs: Vec<f64>,
    /// Natural kernels, one about each centre.
    pub natural: Vec<Bump>,
}

/// A family of the layer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub family: usize,
    pub kind: Kind,
    /// log of what the kernels have in common at their peaks.
    pub base: f64,
    /// What a kernel's square, or t, is multiplied with in its exponent.
    pub rate: f64,
    /// log π.
    pub log_share: f64,
    /// Bounds a + b d² of log share + log kernel for each centre, `[block, lane]`; a = −∞ beyond the last.
    pub highs: Vec<f64>,
    pub rates: Vec<f64>,
}

/// Parts of the kernels of a block.
const PARTS: usize = 4;

/// Bounds of log share + log kernel, a + b d² for each part of the kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Promise([(f64, f64); PARTS]);

impl Promise {
    const NONE: Promise = Promise([(f64::NEG_INFINITY, 0.0); PARTS]);

    /// Of kernels given by a and b each, which are sorted.
    fn of(kernels: &mut [(f64, f64)]) -> Promise {
        kernels.sort_unstable_by(|x, y| x.1.total_cmp(&y.1).then(x.0.total_cmp(&y.0)));
        let mut promise = Promise::NONE;
        for (part, own) in promise.0.iter_mut().zip(kernels.chunks(kernels.len().div_ceil(PARTS).max(1))) {
            let log = own.iter().map(|k| k.0).fold(f64::NEG_INFINITY, f64::max);
            *part = (log, own.last().map_or(0.0, |k| k.1));
        }
        promise
    }

    #[inline]
    pub fn at(&self, square: f64) -> f64 {
        self.0.iter().map(|(log, rate)| log + rate * square).fold(f64::NEG_INFINITY, f64::max)
    }

    /// a and b of each part; a is −∞ where there are no kernels.
    pub fn parts(&self) -> &[(f64, f64)] {
        &self.0
    }

    fn or(&self, other: &Promise) -> Promise {
        let mut both = *self;
        for (own, other) in both.0.iter_mut().zip(&other.0) {
            // Parts without kernels have no rate of their own.
            *own = match (own.0 == f64::NEG_INFINITY, other.0 == f64::NEG_INFINITY) {
                (true, _) => *other,
                (_, true) => *own,
                _ => (own.0.max(other.0), own.1.max(other.1)),
            };
        }
        both
    }
}

/// The highest of several.
pub(super) fn highest(promises: &[Promise], square: f64) -> f64 {
    promises.iter().map(|p| p.at(square)).fold(f64::NEG_INFINITY, f64::max)
}

/// κ with log|dv/dvol| ≤ κ·d²: the ratio grows with d, and is taken where kernels end.
fn curvature(spaces: &[Space]) -> f64 {
    let of = |space: &Space| match space {
        Space::Sphere(n) => 0.28 * (*n as f64 - 1.0),
        Space::Projective(n) => 0.18 * (*n as f64 - 1.0),
        Space::So3 => 0.1,
        Space::Euclidean(_) | Space::Torus(_) | Space::Hyperbolic(_) => 0.0,
    };
    spaces.iter().map(of).fold(0.0, f64::max)
}

impl Layer {
    /// Of the families about list `k` of the centres.
    pub fn of(kernels: &LocalKernels, k: usize) -> Layer {
        let (n, m) = (kernels.dim(), kernels.ambient());
        let sites = &kernels.sites[k];
        let total = sites.points.len() / m;
        let member = |(family, kind): (usize, Kind)| {
            let (base, rate) = match kind {
                Kind::Uniform => return None,
                _ if kernels.families[family].share == 0.0 => return None,
                Kind::Natural { kappa } => (-kernels.bump().log_normaliser(kappa), kappa),
                Kind::Fixed { width } | Kind::Grouped { width, .. } => {
                    (-(n as f64) * (width.ln() + 0.5 * TAU.ln()), -0.5 / (width * width))
                }
                Kind::Component { .. } => (0.0, 1.0),
                Kind::Local { factor, .. } => (-0.5 * n as f64 * (factor.ln() + TAU.ln()), -0.5 / factor),
            };
            (kernels.list_of(kind) == k).then(|| Member {
                family,
                kind,
                base,
                rate,
                log_share: kernels.families[family].share.ln(),
                highs: vec![],
                rates: vec![],
            })
        };
        let kinds = kernels.families.iter().map(|f| f.kind).enumerate();
        let members: Vec<Member> = kinds.filter_map(member).collect();
        let natural = |s: usize| members.iter().any(|member| member.kind == Kind::Component { shape: s });
        let shaped = |(s, shape): (usize, &Shape)| {
            let entries = n * (n + 1) / 2;
            let rows: Vec<f64> = (0..total)
                .flat_map(|i| (0..entries).map(move |e| (i, e)))
                .map(|(i, e)| shape.factors[e * total + i])
                .collect();
            let law = |i: usize| kernels.law_of(s, i);
            let laws: Vec<Bump> = if natural(s) { (0..total).map(law).collect() } else { vec![] };
            let mut logs = vec![0.0; total.next_multiple_of(BLOCK)];
            for (i, log) in logs[..total].iter_mut().enumerate() {
                *log = laws.get(i).map_or(-shape.log_det[i], |law| -law.log_normaliser(1.0));
            }
            let mut factors = padded(&rows, entries);
            for (at, block) in factors.chunks_mut(entries * BLOCK).enumerate().filter(|_| natural(s)) {
                for lane in 0..BLOCK {
                    let kappas = kernels.kappas(s, (at * BLOCK + lane).min(total - 1));
                    kappas.enumerate().for_each(|(a, kappa)| block[a * BLOCK + lane] = kappa);
                }
            }
            Shaped { factors, logs, natural: laws }
        };
        let shapes = kernels.shapes.iter().enumerate().map(|own| (own.1.list == k).then(|| shaped(own))).collect();
        let index = Index::of(kernels, &sites.points);
        let mut embedded = vec![];
        if members.iter().any(|member| member.kind.is_natural()) && kernels.bump().is_flat() {
            let mut rows = vec![];
            sites.points.chunks(m).for_each(|c| kernels.bump().embed(c, &mut rows));
            embedded = padded(&rows, rows.len() / total);
        }
        let mut layer = Layer {
            centres: padded(&sites.points, m),
            directions: if embedded.is_empty() { vec![] } else { kernels.bump().directions() },
            embedded,
            weights: vec![],
            shapes,
            members,
            index,
            promises: vec![],
            group_promises: vec![],
        };
        layer.weigh(sites, total);
        layer.promise(kernels, total);
        layer
    }

    /// What each of so many centres counts.
    pub fn weigh(&mut self, sites: &Sites, total: usize) {
        self.weights = (0..total).map(|i| sites.weight(i, total)).collect();
        self.weights.resize(total.next_multiple_of(BLOCK), 0.0);
    }

    fn promise(&mut self, kernels: &LocalKernels, total: usize) {
        let (n, members) = (kernels.dim(), self.members.len());
        let bend = curvature(&kernels.spaces);
        let used = |s: usize| self.shapes[s].is_some();
        let widest = kernels.shapes.iter().enumerate().map(|(s, shape)| if used(s) { shape.widest(n) } else { vec![] });
        let widest: Vec<Vec<f64>> = widest.collect();
        let one = |member: &Member, i: usize| {
            let (log, variance, bend) = match member.kind {
                Kind::Uniform => return (f64::NEG_INFINITY, 0.0),
                // t is at most −⅛ of the squared chord on every space.
                Kind::Natural { kappa } => (0.0, 4.0 / kappa, 0.0),
                Kind::Component { shape } => {
                    let (own, least) = (&self.shapes[shape], kernels.kappas(shape, i).fold(f64::INFINITY, f64::min));
                    (own.as_ref().expect("a shape of this layer").logs[i], 4.0 / least, 0.0)
                }
                Kind::Fixed { width } | Kind::Grouped { width, .. } => (0.0, width * width, bend),
                Kind::Local { shape, factor } => (-kernels.shapes[shape].log_det[i], factor * widest[shape][i], bend),
            };
            let rate = bend - 0.5 / variance;
            let far = if rate > 0.0 { rate * PI * PI * kernels.spaces.len() as f64 } else { 0.0 };
            (member.log_share + member.base + log + far, rate.min(0.0))
        };
        let each: Vec<Vec<(f64, f64)>> =
            self.members.iter().map(|member| (0..total).map(|i| one(member, i)).collect()).collect();
        let blocks = total.div_ceil(BLOCK);
        for block in 0..blocks {
            for own in &each {
                let mut own = own[block * BLOCK..((block + 1) * BLOCK).min(total)].to_vec();
                self.promises.push(Promise::of(&mut own));
            }
        }
        for (member, own) in self.members.iter_mut().zip(each) {
            (member.highs, member.rates) = own.into_iter().unzip();
            member.highs.resize(blocks * BLOCK, f64::NEG_INFINITY);
            member.rates.resize(blocks * BLOCK, 0.0);
        }
        self.group_promises = vec![Promise::NONE; blocks.div_ceil(GROUP) * members];
        for (at, promise) in self.promises.iter().enumerate() {
            let (block, s) = (at / members, at % members);
            let own = &mut self.group_promises[block / GROUP * members + s];
            *own = own.or(promise);
        }
    }

    /// One bound a + b d² of all kernels of a block, which is quicker and promises more.
    pub fn roughly(&self, block: usize) -> (f64, f64) {
        let parts = self.of_block(block).iter().flat_map(Promise::parts).filter(|part| part.0 > f64::NEG_INFINITY);
        parts.fold((f64::NEG_INFINITY, f64::NEG_INFINITY), |all, part| (all.0.max(part.0), all.1.max(part.1)))
    }

    pub fn of_block(&self, block: usize) -> &[Promise] {
        &self.promises[block * self.members.len()..][..self.members.len()]
    }

    pub fn of_group(&self, group: usize) -> &[Promise] {
        &self.group_promises[group * self.members.len()..][..self.members.len()]
    }
}
