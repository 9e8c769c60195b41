//! How the kernels of some of the points are made: neighbours once, then covariances, groups and families for each part.

use super::clusters::Clusters;
use super::components::{Components, Form, Rows};
use super::kernels::{Family, Kind, LocalKernels, Sites};
use super::lanes::BLOCK;
use super::natural_mixture::{NaturalMixture, Rates};
use super::neighbours::Neighbours;
use super::shape::Shape;
use super::{FEW_DIMENSIONS, LocalSettings, classes, groups, shape, together};
use crate::Error;
use crate::density::{MANY_AT_ONCE, side_by_side};
use crate::train::Context;

/// A family of kernels that is to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Planned {
    Uniform,
    Fixed {
        width: f64,
    },
    Local {
        neighbours: usize,
        factor: f64,
        /// About groups of points.
        coarse: bool,
        /// Which of the classes of its centres.
        class: usize,
    },
    /// Of normal laws in normal coordinates; of clusters by their means.
    Mixture {
        components: usize,
        form: Form,
    },
    /// Of natural laws, likewise.
    NaturalMixture {
        components: usize,
        rates: Rates,
    },
}

impl Planned {
    fn width(&self) -> Option<f64> {
        if let Planned::Fixed { width } = self { Some(*width) } else { None }
    }

    fn components(&self) -> Option<usize> {
        match self {
            Planned::Mixture { components, .. } | Planned::NaturalMixture { components, .. } => Some(*components),
            Planned::Uniform | Planned::Fixed { .. } | Planned::Local { .. } => None,
        }
    }
}

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
    /// Into which shaped kernels are cut by the distances of their neighbours.
    classes: usize,
    /// The least variance of a component of a mixture.
    floor: f64,
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
        let neighbours = context.stage("neighbours", rows, "rows", || {
            Neighbours::of(&blank, (points, clusters.masses()), 2 * longest + 8, context)
        })?;
        let widths = settings.widths_of(&blank, &neighbours);
        let grouped = rows >= settings.grouped && blank.foreign.is_none();
        let classes = if blank.foreign.is_none() { classes::borne(settings.classes, rows) } else { 1 };
        let floor = (0.1 * neighbours.near).powi(2) / blank.dim() as f64;
        Ok(Kit { settings, clusters, blank, neighbours, counts, widths, grouped, classes, floor })
    }

    /// All families that there may be, each once.
    pub fn plan(&self) -> Vec<Planned> {
        let (settings, rows) = (self.settings, self.clusters.points.len() / self.blank.ambient());
        let uniform = self.blank.log_volume().map(|_| Planned::Uniform);
        let mut plan: Vec<Planned> = uniform.into_iter().collect();
        plan.extend(self.widths.iter().map(|&width| Planned::Fixed { width }));
        for &neighbours in &self.counts {
            let few = self.blank.dim() <= FEW_DIMENSIONS;
            let coarse = |factor: f64| self.grouped && few && neighbours / SHARED >= 2 && factor >= 1.0;
            for &factor in &settings.factors {
                let own = |class| Planned::Local { neighbours, factor, coarse: coarse(factor), class };
                plan.extend((0..self.classes).map(own));
            }
        }
        if self.blank.foreign.is_none() {
            // Of a part of the points as many mixtures as of all, so that shares can be carried over.
            let rows = rows / settings.folds * (settings.folds - 1);
            plan.extend(settings.mixtures.iter().filter_map(|&components| {
                let form = Form::borne(&self.blank, rows, components)?;
                Some(Planned::Mixture { components, form })
            }));
            for rates in [Rates::Common, Rates::Own] {
                let borne = |count: &usize| NaturalMixture::is_borne(&self.blank, rows, *count, rates);
                let own = settings.mixtures.iter().copied().filter(borne);
                plan.extend(own.map(|components| Planned::NaturalMixture { components, rates }));
            }
        }
        let first = |k: &usize| !plan[..*k].contains(&plan[*k]);
        (0..plan.len()).filter(first).map(|k| plan[k]).collect()
    }

    /// The density of the points `of` that has these families, with equal shares; those `outside` do not shape it.
    pub fn build(
        &self,
        of: &[usize],
        outside: &(dyn Fn(usize) -> bool + Sync),
        plan: &[Planned],
        context: &Context,
    ) -> Result<LocalKernels, Error> {
        let LocalSettings { factors, shrinkage, .. } = self.settings;
        // The largest factor must not take a kernel over the cut locus.
        let widest = self.blank.widest() / factors.iter().copied().fold(1.0, f64::max).sqrt();
        let (clusters, neighbours, m) = (self.clusters, &self.neighbours, self.blank.ambient());
        let of = &self.ordered(of);
        let mut density = self.blank.with_centres(&clusters.points, of);
        density.sites[0].weights = clusters.weights(of);
        density.sites[0].groups = clusters.groups(of);
        let around = shape::Surroundings { clusters, neighbours, outside, shrinkage: *shrinkage, widest };
        let widths: Vec<f64> = plan.iter().filter_map(Planned::width).collect();
        let mut groups = match self.grouped {
            true => groups::grouped(&self.blank, clusters, of, &widths, context)?,
            false => vec![None; widths.len()],
        }
        .into_iter();
        // In the order of the rows, which does not turn with the axes of the coordinates.
        let mut by_row = of.clone();
        by_row.sort_unstable();
        let mut mixtures = self.mixtures(&Rows::of(&self.blank, clusters, &by_row), plan, context)?.into_iter();
        let mut shaped: Vec<((usize, bool), Vec<usize>)> = vec![];
        for &planned in plan {
            let kind = match planned {
                Planned::Uniform => Kind::Uniform,
                Planned::Fixed { width } => match groups.next().flatten() {
                    None => Kind::Fixed { width },
                    Some(sites) => {
                        density.sites.push(sites);
                        Kind::Grouped { group: density.sites.len() - 2, width }
                    }
                },
                Planned::Local { neighbours: count, factor, coarse, class } => {
                    let key = (count, coarse);
                    if shaped.iter().all(|(known, _)| *known != key) {
                        let mut members = of.clone();
                        if coarse {
                            let groups = groups::grouped_by(&self.blank, clusters, of, count / SHARED, context);
                            let mut order: Vec<usize> = (0..groups.1.len()).collect();
                            order.sort_by_key(|&k| self.class(groups.1[k]));
                            density.sites.push(groups.0.reordered(&order, m));
                            members = order.iter().map(|&k| groups.1[k]).collect();
                        }
                        let list = if coarse { density.sites.len() - 1 } else { 0 };
                        density.add_shape(list, &members, count, &around, context)?;
                        shaped.push((key, density.classed(self.classes, &self.distances(&members, outside))));
                    }
                    let (_, shapes) = shaped.iter().find(|(known, _)| *known == key).expect("it is known by now");
                    Kind::Local { shape: shapes[class], factor }
                }
                Planned::Mixture { .. } | Planned::NaturalMixture { .. } => {
                    let mixture = mixtures.next().expect("each that is planned was made");
                    let (sites, own) = mixture.laid_out_as(density.sites.len(), &self.blank);
                    density.sites.push(sites);
                    density.shapes.push(own);
                    let shape = density.shapes.len() - 1;
                    match mixture {
                        Mixture::Normal(_) => Kind::Local { shape, factor: 1.0 },
                        Mixture::Natural(_) => Kind::Component { shape },
                    }
                }
            };
            density.families.push(Family { kind, share: 1.0 / plan.len() as f64 });
        }
        Ok(density.laid_out())
    }

    /// The mixtures of a plan, in its order.
    fn mixtures(&self, rows: &Rows, plan: &[Planned], context: &Context) -> Result<Vec<Mixture>, Error> {
        let (space, floor) = (&self.blank, self.floor);
        // The longest work first.
        let planned: Vec<&Planned> = plan.iter().filter(|planned| planned.components().is_some()).collect();
        let mut order: Vec<usize> = (0..planned.len()).collect();
        order.sort_by_key(|&k| std::cmp::Reverse(planned[k].components()));
        let made = side_by_side(order.len(), MANY_AT_ONCE, context, |k, context| match *planned[order[k]] {
            Planned::Mixture { components, form } => {
                Components::of(space, rows, components, (form, floor), context).map(Mixture::Normal)
            }
            Planned::NaturalMixture { components, rates } => {
                NaturalMixture::of(space, rows, components, (rates, floor), context).map(Mixture::Natural)
            }
            _ => unreachable!("it has components"),
        })?;
        let mut made: Vec<(usize, Mixture)> = order.into_iter().zip(made).collect();
        made.sort_by_key(|(place, _)| *place);
        Ok(made.into_iter().map(|(_, mixture)| mixture).collect())
    }
}

/// A mixture that stands beside the kernels.
enum Mixture {
    Normal(Components),
    Natural(NaturalMixture),
}

impl Mixture {
    /// Centres with their weights, and a shape for a list of that number.
    fn laid_out_as(&self, list: usize, space: &LocalKernels) -> (Sites, Shape) {
        match self {
            Mixture::Normal(mixture) => mixture.laid_out_as(list, space.dim()),
            Mixture::Natural(mixture) => mixture.laid_out_as(list, space),
        }
    }
}

/// Kernels that are shaped by so many neighbours and not narrower than these lie are shared by the sixth part of them, in few
/// dimensions: in more, groups of near points reach from one cluster to another.
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

    /// For each point the distance to the neighbour that decides on its class, among those that are not outside.
    fn distances(&self, of: &[usize], outside: &(dyn Fn(usize) -> bool + Sync)) -> Vec<f64> {
        let count = self.counts.iter().copied().min().unwrap_or(1);
        let (points, m) = (&self.clusters.points, self.blank.ambient());
        let point = |i: usize| &points[i * m..][..m];
        let distance = |&i: &usize| {
            let inside = self.neighbours.list(i).iter().map(|&j| j as usize).filter(|&j| !outside(j));
            let Some(last) = inside.take(count).last() else { return f64::INFINITY };
            let mut square = [0.0];
            self.blank.chords_squared(point(last), point(i), &mut square);
            square[0]
        };
        of.iter().map(distance).collect()
    }

    /// How far the kernels of a point reach, in powers of four.
    fn class(&self, i: usize) -> i64 {
        (self.neighbours.reach[i].max(f64::MIN_POSITIVE).log2() / 2.0).floor() as i64
    }
}
