//! The kernels themselves, and their density.

use super::card::Resident;
use super::lanes::BLOCK;
use super::layer::Layer;
use super::shape::Shape;
use crate::Error;
use crate::density::{Bump, Density, Sample, slope};
use crate::manifold::{InNumbers, Manifold, Space};
use crate::train::Context;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One kind of kernel about every centre.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// No kernel at all: the uniform law.
    Uniform,
    /// Round, of one width.
    Fixed {
        /// σ.
        width: f64,
    },
    /// The natural kernel of a product of model spaces ([`Bump`]), normalised at any width.
    Natural {
        /// κ.
        kappa: f64,
    },
    /// Round, of one width, about groups of points that lie close together for it.
    Grouped {
        /// Which of the lists of groups.
        group: usize,
        /// σ.
        width: f64,
    },
    /// The natural kernel with κ of its own about each centre, one for each angle and each factor of other kind: a component of a mixture.
    Component {
        /// Which of the lists of covariances: about those of such kernels where they are sharp.
        shape: usize,
    },
    /// As the neighbours lie.
    Local {
        /// Which of the lists of covariances.
        shape: usize,
        /// c.
        factor: f64,
    },
}

impl Kind {
    /// Whether its kernels are natural ones, which need no normal coordinates.
    pub(super) fn is_natural(self) -> bool {
        matches!(self, Kind::Natural { .. } | Kind::Component { .. })
    }
}

/// A kind of kernel and its share π.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Family {
    /// Which kernel.
    pub kind: Kind,
    /// Its share of the mass.
    pub share: f64,
}

/// Centres, and what each counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sites {
    /// Row-major.
    pub points: Vec<f64>,
    /// They add up to one; none where all are equal.
    pub weights: Vec<f64>,
    /// Numbers of the groups that the rows belong to; none where every row is one, or sites are no rows.
    pub groups: Vec<f64>,
}

impl Sites {
    /// Of one of `total` centres.
    pub fn weight(&self, i: usize, total: usize) -> f64 {
        self.weights.get(i).copied().unwrap_or(1.0 / total as f64)
    }
}

/// A normalised density of local kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalKernels {
    pub(super) dim: usize,
    pub(super) ambient: usize,
    /// The model spaces that the manifold is a product of; none where it is another one.
    pub(super) spaces: Vec<Space>,
    /// Any other manifold.
    pub(super) foreign: Option<Arc<InNumbers>>,
    pub(super) log_volume: Option<f64>,
    /// The points that most kernels stand on; after them lists of groups of points, for wide kernels.
    pub(super) sites: Vec<Sites>,
    /// A frame at each point, on other manifolds.
    pub(super) frames: Vec<f64>,
    pub(super) shapes: Vec<Shape>,
    /// The list of each shape and the neighbours that shaped it, to be kept in a file.
    pub(super) shape_lists: Vec<f64>,
    pub(super) shape_neighbours: Vec<f64>,
    pub(super) families: Vec<Family>,
    /// Where there are model spaces.
    pub(super) bump: Option<Bump>,
    /// Relative error of sums over kernels.
    pub(super) tolerance: f64,
    /// The families about each list of centres.
    pub(super) layers: Vec<Layer>,
    /// The same on a GPU, once it is asked for there.
    pub(super) resident: Resident,
}

/// κ times the variance of a sharp natural kernel, in each direction.
pub(super) fn sharp(space: Space) -> f64 {
    match space {
        Space::Projective(_) => 0.5,
        Space::So3 => 2.0,
        _ => 1.0,
    }
}

/// Relative error of sums over kernels, unless it is set.
pub(super) const TOLERANCE: f64 = 1e-6;

/// Rows of `width` numbers in blocks `[block, number, lane]`; lanes beyond the last row repeat it.
pub(super) fn padded(rows: &[f64], width: usize) -> Vec<f64> {
    let total = rows.len() / width;
    let mut out = Vec::with_capacity(total.next_multiple_of(BLOCK) * width);
    for start in (0..total).step_by(BLOCK) {
        for j in 0..width {
            out.extend((start..start + BLOCK).map(|i| rows[i.min(total - 1) * width + j]));
        }
    }
    out
}

impl LocalKernels {
    /// On a manifold, without centres; an error where its geometry contradicts itself.
    pub(super) fn blank(manifold: &Arc<dyn Manifold>) -> Result<Self, Error> {
        let (spaces, bump, foreign) = match manifold.spaces() {
            Some(spaces) => (spaces, Some(Bump::new(&**manifold)?), None),
            None => (vec![], None, Some(Arc::new(InNumbers::new(manifold)?))),
        };
        Ok(LocalKernels {
            dim: manifold.dim(),
            ambient: manifold.ambient(),
            spaces,
            foreign,
            log_volume: manifold.volume().map(f64::ln),
            sites: vec![],
            frames: vec![],
            shapes: vec![],
            shape_lists: vec![],
            shape_neighbours: vec![],
            families: vec![],
            bump,
            tolerance: TOLERANCE,
            layers: vec![],
            resident: Resident::default(),
        })
    }

    pub(super) fn with_centres(&self, points: &[f64], of: &[usize]) -> Self {
        let m = self.ambient();
        let points = of.iter().flat_map(|&i| &points[i * m..][..m]).copied().collect();
        self.standing_on(Sites { points, ..Sites::default() })
    }

    pub(super) fn standing_on(&self, sites: Sites) -> Self {
        let frames = self.foreign.as_ref().map(|m| m.frames(&sites.points)).unwrap_or_default();
        let LocalKernels { dim, ambient, log_volume, tolerance, .. } = *self;
        let (spaces, foreign, bump) = (self.spaces.clone(), self.foreign.clone(), self.bump.clone());
        let (shapes, families, layers, sites) = (vec![], vec![], vec![], vec![sites]);
        let (shape_lists, shape_neighbours) = (vec![], vec![]);
        LocalKernels {
            dim,
            ambient,
            spaces,
            foreign,
            log_volume,
            sites,
            frames,
            shapes,
            shape_lists,
            shape_neighbours,
            families,
            bump,
            tolerance,
            layers,
            resident: Resident::default(),
        }
    }

    /// The same with another relative error of its sums; 0 adds up everything.
    pub fn with_tolerance(self, tolerance: f64) -> Self {
        assert!((0.0..1.0).contains(&tolerance), "a relative error is in [0, 1), not {tolerance}");
        LocalKernels { tolerance, ..self }
    }

    /// The same with these shares; families without a share are dropped.
    pub(super) fn with_shares(mut self, shares: &[f64]) -> Self {
        self.families.iter_mut().zip(shares).for_each(|(family, share)| family.share = *share);
        self.families.retain(|family| family.share > 0.0);
        self.without_idle_groups().laid_out()
    }

    /// The same without lists of groups and shapes that no family stands on.
    fn without_idle_groups(mut self) -> Self {
        let shaped = |shape: usize| {
            self.families
                .iter()
                .any(|f| matches!(f.kind, Kind::Local { shape: s, .. } | Kind::Component { shape: s } if s == shape))
        };
        let idle: Vec<bool> = (0..self.shapes.len()).map(|s| self.shapes[s].list > 0 && !shaped(s)).collect();
        let used: Vec<usize> = self.families.iter().map(|f| self.list_of(f.kind)).collect();
        let kept: Vec<usize> = (0..self.sites.len()).filter(|k| *k == 0 || used.contains(k)).collect();
        let place = |list: usize| kept.iter().position(|k| *k == list).expect("it is used");
        for family in &mut self.families {
            match &mut family.kind {
                Kind::Grouped { group, .. } => *group = place(*group + 1) - 1,
                Kind::Local { shape, .. } | Kind::Component { shape } => {
                    *shape -= idle[..*shape].iter().filter(|idle| **idle).count()
                }
                Kind::Uniform | Kind::Fixed { .. } | Kind::Natural { .. } => {}
            }
        }
        let mut number = 0..;
        self.shapes.retain(|_| !number.next().is_some_and(|s: usize| idle[s]));
        self.shapes.iter_mut().for_each(|shape| shape.list = place(shape.list));
        self.sites = kept.iter().map(|k| std::mem::take(&mut self.sites[*k])).collect();
        self
    }

    /// The list of centres that kernels stand on: 0 for the points themselves.
    pub(super) fn list_of(&self, kind: Kind) -> usize {
        match kind {
            Kind::Grouped { group, .. } => group + 1,
            Kind::Local { shape, .. } | Kind::Component { shape } => self.shapes[shape].list,
            Kind::Uniform | Kind::Fixed { .. } | Kind::Natural { .. } => 0,
        }
    }

    /// κ of component i of a mixture in each direction, from its variances where it is sharp.
    pub(super) fn kappas(&self, shape: usize, i: usize) -> impl Iterator<Item = f64> {
        let sharp = self.spaces.iter().flat_map(|space| std::iter::repeat_n(sharp(*space), space.dim()));
        sharp.enumerate().map(move |(a, sharp)| self.shapes[shape].entry(a, a, i).powi(2) * sharp)
    }

    /// The natural kernel about centre i of a mixture: that of κ = 1.
    pub(super) fn law_of(&self, shape: usize, i: usize) -> Bump {
        let (apart, kappas) = (self.bump().clone().by_circle(), self.kappas(shape, i).collect::<Vec<f64>>());
        let first = apart.spaces().iter().scan(0, |next, space| Some(std::mem::replace(next, *next + space.dim())));
        let own: Vec<f64> = first.map(|a| kappas[a]).collect();
        apart.with_kappas(own)
    }

    /// The same, kept with the lists.
    pub(super) fn component(&self, shape: usize, i: usize) -> &Bump {
        let own = &self.layers[self.shapes[shape].list].shapes[shape];
        &own.as_ref().expect("a shape of this layer").natural[i]
    }

    /// The same with kernels laid out for summing as they are now.
    pub(super) fn laid_out(mut self) -> Self {
        self.shape_lists = self.shapes.iter().map(|shape| shape.list as f64).collect();
        self.shape_neighbours = self.shapes.iter().map(|shape| shape.neighbours as f64).collect();
        self.layers = (0..self.sites.len()).map(|k| Layer::of(&self, k)).collect();
        self.resident = Resident::default();
        self
    }

    /// The same where only weights of centres have changed: what is laid out, and what kernels promise, does not depend on these.
    pub(super) fn weighed_anew(mut self) -> Self {
        for (layer, sites) in self.layers.iter_mut().zip(&self.sites) {
            layer.weigh(sites, sites.points.len() / self.ambient);
        }
        self.resident = Resident::default();
        self
    }

    /// All numbers of the density but the shares, each list under a name, to be kept in a file.
    pub fn tensors(&self) -> Vec<(String, &[f64])> {
        let shapes = self.shapes.iter().enumerate().flat_map(|(k, shape)| {
            [(format!("shape{k}"), shape.factors.as_slice()), (format!("log-det{k}"), shape.log_det.as_slice())]
        });
        let groups = self.sites.iter().enumerate().skip(1).flat_map(|(k, sites)| {
            let k = k - 1;
            [(format!("group{k}"), sites.points.as_slice()), (format!("group-weights{k}"), sites.weights.as_slice())]
        });
        let own = &self.sites[0];
        let weights = (!own.weights.is_empty()).then_some(("weights".to_string(), own.weights.as_slice()));
        let belonging = (!own.groups.is_empty()).then_some(("groups".to_string(), own.groups.as_slice()));
        let centres = std::iter::once(("centres".to_string(), own.points.as_slice()));
        let lists = (self.sites.len() > 1).then_some(("shape-lists".to_string(), self.shape_lists.as_slice()));
        let neighbours =
            (!self.shapes.is_empty()).then_some(("shape-neighbours".to_string(), self.shape_neighbours.as_slice()));
        centres.chain(weights).chain(belonging).chain(shapes).chain(groups).chain(lists).chain(neighbours).collect()
    }

    /// The inverse of [`LocalKernels::tensors`]; `None` where something is missing or does not fit.
    pub fn from_tensors<'a>(
        manifold: &Arc<dyn Manifold>,
        families: &[Family],
        find: impl Fn(&str) -> Option<&'a [f64]>,
    ) -> Option<Self> {
        let m = manifold.ambient();
        let sites = |points: &str, weights: &str| {
            let points = find(points)?.to_vec();
            let weights = find(weights).unwrap_or_default().to_vec();
            let total = points.len() / m;
            let whole = total > 0 && points.len() == total * m && (weights.is_empty() || weights.len() == total);
            let sound = weights.iter().all(|w| *w > 0.0 && *w <= 1.0);
            (whole && sound).then_some(Sites { points, weights, groups: vec![] })
        };
        let mut this = Self::blank(manifold).ok()?.standing_on(sites("centres", "weights")?);
        let belonging = find("groups").unwrap_or_default();
        if !belonging.is_empty() && belonging.len() != this.centres() {
            return None;
        }
        this.sites[0].groups = belonging.to_vec();
        this.families = families.to_vec();
        let n = this.dim();
        // Numbers of lists of centres, as numbers like all others.
        let whole = |name: &str| find(name).unwrap_or_default().iter().map(|k| *k as usize).collect::<Vec<_>>();
        let (lists, neighbours) = (whole("shape-lists"), whole("shape-neighbours"));
        while find(&format!("group{}", this.sites.len() - 1)).is_some() {
            let k = this.sites.len() - 1;
            this.sites.push(sites(&format!("group{k}"), &format!("group-weights{k}"))?);
        }
        while let (Some(factors), Some(log_det)) =
            (find(&format!("shape{}", this.shapes.len())), find(&format!("log-det{}", this.shapes.len())))
        {
            let list = lists.get(this.shapes.len()).copied().unwrap_or(0);
            let total = this.sites.get(list)?.points.len() / m;
            if factors.len() != n * (n + 1) / 2 * total || log_det.len() != total {
                return None;
            }
            let neighbours = neighbours.get(this.shapes.len()).copied().unwrap_or(0);
            this.shapes.push(Shape { list, neighbours, factors: factors.to_vec(), log_det: log_det.to_vec() });
        }
        let known = |family: &Family| match family.kind {
            Kind::Local { shape, factor } => shape < this.shapes.len() && factor > 0.0,
            Kind::Component { shape } => shape < this.shapes.len() && this.bump.is_some(),
            Kind::Fixed { width } => width > 0.0,
            Kind::Grouped { group, width } => group + 1 < this.sites.len() && width > 0.0 && this.foreign.is_none(),
            Kind::Natural { kappa } => kappa > 0.0 && kappa.is_finite() && this.bump.is_some(),
            Kind::Uniform => this.log_volume.is_some(),
        };
        if families.is_empty() || families.iter().any(|family| !(0.0..=1.0).contains(&family.share)) {
            return None;
        }
        families.iter().all(known).then(|| this.laid_out())
    }

    /// Coordinates of the centres, row-major.
    pub fn points(&self) -> &[f64] {
        &self.sites[0].points
    }

    /// Neighbours that shaped covariances of this number; none where they are those of a mixture, or the file is old.
    pub fn neighbours_of(&self, shape: usize) -> Option<usize> {
        self.shapes.get(shape).map(|shape| shape.neighbours).filter(|count| *count > 0)
    }

    /// Intrinsic dimension.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Numbers of a point.
    pub fn ambient(&self) -> usize {
        self.ambient
    }

    /// Number of centres.
    pub fn centres(&self) -> usize {
        self.sites[0].points.len() / self.ambient()
    }

    /// The centres, with what each counts and the groups that their rows belong to.
    pub fn made_of(&self) -> Sample<'static> {
        let Sites { points, weights, groups } = &self.sites[0];
        Sample::new(points.clone(), weights, groups.iter().map(|group| *group as u32).collect())
    }

    /// Kinds of kernels and their shares.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// log vol, where it is finite.
    pub(super) fn log_volume(&self) -> Option<f64> {
        self.log_volume
    }

    /// The natural kernel; panics where there is none, and no density has one then.
    pub(super) fn bump(&self) -> &Bump {
        self.bump.as_ref().expect("natural kernels stand on model spaces")
    }

    pub(super) fn blended(&self, logs: &[f64]) -> f64 {
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        top + logs.iter().zip(&self.families).map(|(l, f)| f.share * (l - top).exp()).sum::<f64>().ln()
    }
}

impl Density for LocalKernels {
    fn name(&self) -> &str {
        "local kernels"
    }

    fn manifold(&self) -> Arc<dyn Manifold> {
        self.foreign.as_ref().map_or_else(|| Space::product(&self.spaces), |other| other.manifold.clone())
    }

    fn log_density(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        self.log_density_of(points, context)
    }

    fn score(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        let derivative = self.derivative(points, context)?;
        slope::gradient(&*self.manifold(), points, &derivative, context)
    }

    fn sample(&self, count: usize, seed: u64, _: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.sample(count, seed))
    }
}
