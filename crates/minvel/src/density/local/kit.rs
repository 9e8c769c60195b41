//! How the kernels of some of the points are made: neighbours once, then covariances, groups and families for each part.

use super::clusters::Clusters;
use super::components::{Bounds, Components};
use super::kernels::{Family, Kind, LocalKernels};
use super::lanes::BLOCK;
use super::neighbours::Neighbours;
use super::{LocalSettings, groups, shape, together};
use crate::Error;
use crate::train::Context;

/// What densities of some of the points are built with.
pub(super) struct Kit<'a> {
    settings: &'a LocalSettings,
    clusters: &'a Clusters<'a>,
    pub blank: LocalKernels,
    neighbours: Neighbours,
    /// Neighbours of each shape.
    counts: Vec<usize>,
    widths: Vec<f64>,
    /// Whether wide kernels stand on groups of points.
    grouped: bool,
    /// Of the covariances of mixtures.
    bounds: Bounds,
}

impl<'a> Kit<'a> {
    pub fn new(
        settings: &'a LocalSettings,
        blank: LocalKernels,
        clusters: &'a Clusters<'a>,
        context: &Context,
    ) -> Result<Self, Error> {
        let counts: Vec<usize> = settings.neighbours.iter().map(|k| (k * blank.dim() as f64).ceil() as usize).collect();
        let longest = counts.iter().copied().max().unwrap_or(1);
        let points = &clusters.points;
        let rows = points.len() / blank.ambient();
        let neighbours =
            context.stage("neighbours", rows, "rows", || Neighbours::of(&blank, points, 2 * longest + 8, context))?;
        let widths = settings.widths_of(&blank, &neighbours);
        let grouped = rows >= settings.grouped && blank.foreign.is_none();
        let bounds = Bounds { widest: blank.widest(), floor: (0.1 * neighbours.near).powi(2) / blank.dim() as f64 };
        Ok(Kit { settings, clusters, blank, neighbours, counts, widths, grouped, bounds })
    }

    /// The density of the points `of`, with equal shares; those `outside` do not shape it.
    pub fn build(
        &self,
        of: &[usize],
        outside: &(dyn Fn(usize) -> bool + Sync),
        context: &Context,
    ) -> Result<LocalKernels, Error> {
        let LocalSettings { factors, shrinkage, .. } = self.settings;
        // The largest factor must not take a kernel over the cut locus.
        let widest = self.blank.widest() / factors.iter().copied().fold(1.0, f64::max).sqrt();
        let (clusters, neighbours, m) = (self.clusters, &self.neighbours, self.blank.ambient());
        let of = &self.ordered(of);
        let mut density = self.blank.with_centres(&clusters.points, of);
        density.sites[0].weights = clusters.weights(of);
        let around = shape::Surroundings { clusters, neighbours, outside, shrinkage: *shrinkage, widest };
        for &count in &self.counts {
            density.add_shape(0, of, count, &around, context)?;
        }
        let mut fixed: Vec<Kind> = self.widths.iter().map(|&width| Kind::Fixed { width }).collect();
        if self.grouped {
            for (kind, sites) in
                fixed.iter_mut().zip(groups::grouped(&self.blank, clusters, of, &self.widths, context)?)
            {
                if let (Kind::Fixed { width }, Some(sites)) = (*kind, sites) {
                    density.sites.push(sites);
                    *kind = Kind::Grouped { group: density.sites.len() - 2, width };
                }
            }
            for count in self.coarse() {
                let (sites, members) = groups::grouped_by(&self.blank, clusters, of, count / SHARED, context);
                let mut order: Vec<usize> = (0..members.len()).collect();
                order.sort_by_key(|&k| self.class(members[k]));
                density.sites.push(sites.reordered(&order, m));
                let members: Vec<usize> = order.iter().map(|&k| members[k]).collect();
                density.add_shape(density.sites.len() - 1, &members, count, &around, context)?;
            }
        }
        let first = density.shapes.len();
        self.add_mixtures(&mut density, of, context)?;
        density.families = self.families(&density, fixed, first);
        Ok(density.laid_out())
    }

    /// Neighbours of the shapes that have a second list of kernels, about groups.
    fn coarse(&self) -> impl Iterator<Item = usize> {
        self.counts.iter().copied().filter(|count| self.grouped && count / SHARED >= 2)
    }

    /// Mixtures of the points `of`, each as kernels of shapes of their own; of clusters by their means, which count alike.
    fn add_mixtures(&self, density: &mut LocalKernels, of: &[usize], context: &Context) -> Result<(), Error> {
        let (m, n) = (self.blank.ambient(), self.blank.dim());
        // In the order of the rows, which does not turn with the axes of the coordinates.
        let mut of = of.to_vec();
        of.sort_unstable();
        let own: Vec<f64> = of.iter().flat_map(|&i| &self.clusters.points[i * m..][..m]).copied().collect();
        // Of a part of the points as many mixtures as of all, so that shares can be carried over.
        let rows = self.clusters.points.len() / m / self.settings.folds * (self.settings.folds - 1);
        let borne = |count: &&usize| self.blank.foreign.is_none() && Components::bears(&self.blank, rows, **count);
        for &count in self.settings.mixtures.iter().filter(borne) {
            let mixture = Components::of(&self.blank, &own, count, self.bounds, context)?;
            let (sites, shape) = mixture.laid_out_as(density.sites.len(), n);
            density.sites.push(sites);
            density.shapes.push(shape);
        }
        Ok(())
    }

    /// All kinds of kernels, with equal shares; the shapes from `first` on are those of mixtures.
    fn families(&self, density: &LocalKernels, fixed: Vec<Kind>, first: usize) -> Vec<Family> {
        let uniform = density.log_volume().map(|_| Kind::Uniform);
        let factors = &self.settings.factors;
        let mut kinds: Vec<Kind> = uniform.into_iter().chain(fixed).collect();
        for (shape, count) in self.counts.iter().enumerate() {
            let coarse = self.coarse().any(|c| c == *count);
            let own = factors.iter().filter(|factor| !coarse || **factor < 1.0);
            kinds.extend(own.map(|&factor| Kind::Local { shape, factor }));
        }
        for (k, _) in self.coarse().enumerate() {
            let own = factors.iter().filter(|factor| **factor >= 1.0);
            kinds.extend(own.map(|&factor| Kind::Local { shape: self.counts.len() + k, factor }));
        }
        kinds.extend((first..density.shapes.len()).map(|shape| Kind::Local { shape, factor: 1.0 }));
        let share = 1.0 / kinds.len() as f64;
        kinds.into_iter().map(|kind| Family { kind, share }).collect()
    }
}

/// Kernels that are shaped by so many neighbours and not narrower than these lie are shared by the sixth part of them.
const SHARED: usize = 6;

impl Kit<'_> {
    /// Points whose kernels reach about as far, and of these near ones, together: a wide kernel among narrow ones would have
    /// all of them looked at from afar.
    fn ordered(&self, of: &[usize]) -> Vec<usize> {
        let mut of = of.to_vec();
        of.sort_by_key(|&i| self.class(i));
        let classes = of.chunk_by(|a, b| self.class(*a) == self.class(*b));
        let (points, m) = (&self.clusters.points, self.blank.ambient());
        classes.flat_map(|own| together(points, m, BLOCK, own.to_vec())).collect()
    }

    /// How far the kernels of a point reach, in powers of four.
    fn class(&self, i: usize) -> i64 {
        (self.neighbours.reach[i].max(f64::MIN_POSITIVE).log2() / 2.0).floor() as i64
    }
}
