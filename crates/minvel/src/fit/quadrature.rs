//! The mean of a function over a density of kernels, to a given error.
//!
//! **Statement.** E_a g = Σ_k w_k E g(x_k(z)) + u·E_uniform g, z normal, x_k(z) the point of kernel k at standard coordinates z.
//! Each kernel climbs a ladder of rules until two of them agree: one node, Gauss–Hermite with 3, 5 and 9 nodes a dimension,
//! then the trapezoidal rule with steps 0.8, 0.4, … Where that would cost more than a grid of the whole manifold, the kernels
//! that are left, all of them wide, go there together, with the uniform part: grids, each twice as fine as the one before.
//! **Source.** The classical rules; the trapezoidal rule converges faster than any power for analytic g.
//! **Conventions.** Only g has to be resolved, never a sum of needles, which are cheap here. **Error.** Σ_k w_k |last two
//! rules| and the difference of the last two grids: those of the coarser ones, so that the result is better than it says.
//! **Checked by** tests/densities/integrals.rs, against other grids.

use crate::Error;
use crate::density::LocalKernels;
use crate::manifold::Manifold;
use crate::manifold::quadrature::gauss_hermite;
use crate::train::Context;

/// A mean, a bound of its error, and at how many points the function was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mean {
    pub value: f64,
    pub error: f64,
    pub nodes: usize,
}

/// A positive function of points, given row-major.
pub(super) type Function<'a> = &'a mut dyn FnMut(&[f64]) -> Result<Vec<f64>, Error>;

/// How far to go.
pub(super) struct Effort {
    /// The error that is asked for, as a share of the mean.
    pub tolerance: f64,
    /// Points at most; beyond, the error is what it is.
    pub nodes: usize,
}

/// Points that are asked for at once.
const BATCH: usize = 1 << 17;
/// Trapezoidal rules end at this distance from the centre, where e^{−z²/2} is 10⁻⁹.
const END: f64 = 6.4;
/// The first of their steps.
const STEP: f64 = 0.8;
/// Half the first grid, in points a dimension.
const GRID: usize = 12;
/// Points of a grid for each deviation of the narrowest kernel, and kernels that cost as much as the function itself.
const FINE: f64 = 3.0;
const KERNELS: usize = 500;

/// Nodes in standard coordinates, n numbers each, and weights that add up to one.
struct Rule {
    nodes: Vec<f64>,
    weights: Vec<f64>,
}

/// Nodes a dimension of a rung of the ladder.
fn nodes_of(rung: usize) -> usize {
    if rung < 4 { [1, 3, 5, 9][rung] } else { (END / STEP) as usize * (2 << (rung - 4)) + 1 }
}

impl Rule {
    /// A rung of the ladder in n dimensions.
    fn new(rung: usize, n: usize) -> Rule {
        let each = nodes_of(rung);
        let (nodes, weights) = if rung < 4 {
            gauss_hermite(each)
        } else {
            let z = |j: usize| END * (2.0 * j as f64 / (each - 1) as f64 - 1.0);
            let all = || (0..each).map(z);
            (all().collect(), all().map(|z| (-0.5 * z * z).exp()).collect())
        };
        let mut rule = Rule { nodes: vec![], weights: vec![] };
        for k in 0..each.pow(n as u32) {
            let digits = (0..n).map(|j| k / each.pow(j as u32) % each);
            // Corners of the cube have no weight.
            if rung < 4 || digits.clone().map(|d| nodes[d] * nodes[d]).sum::<f64>() <= END * END * 1.0001 {
                rule.weights.push(digits.clone().map(|d| weights[d]).product());
                rule.nodes.extend(digits.map(|d| nodes[d]));
            }
        }
        let total: f64 = rule.weights.iter().sum();
        rule.weights.iter_mut().for_each(|w| *w /= total);
        rule
    }
}

/// A kernel under way.
struct Pending {
    family: usize,
    centre: usize,
    mass: f64,
    /// Mean over this kernel by the last rule.
    mean: f64,
}

/// E_a g, of a density on a manifold of at most three dimensions.
pub(super) fn mean_over_kernels(
    density: &LocalKernels,
    manifold: &dyn Manifold,
    g: Function,
    effort: &Effort,
    context: &Context,
) -> Result<Mean, Error> {
    let (mut pending, mut wide) = (kernels(density), vec![]);
    let (mut done, mut scale) = (Mean::default(), 0.0);
    for rung in 0.. {
        let rule = Rule::new(rung, density.dim());
        let before: Vec<f64> = pending.iter().map(|p| p.mean).collect();
        climb(&mut pending, &rule, density, g, context)?;
        done.nodes += pending.len() * rule.weights.len();
        if rung == 0 {
            scale = pending.iter().map(|p| p.mass * p.mean).sum::<f64>();
            // Components that reach around the manifold are left to the grid.
            (wide, pending) = pending.into_iter().partition(|p| density.is_wide(p.family, p.centre));
            continue;
        }
        let next = pending.len().saturating_mul(nodes_of(rung + 1).pow(density.dim() as u32));
        let exhausted = done.nodes.saturating_add(next) > effort.nodes;
        let mut left = vec![];
        for (p, before) in pending.into_iter().zip(before) {
            let change = (p.mean - before).abs();
            if change <= effort.tolerance * scale || exhausted || !p.mean.is_finite() {
                done.value += p.mass * p.mean;
                done.error += p.mass * change;
            } else {
                left.push(p);
            }
        }
        pending = left;
        let next = pending.len() * nodes_of(rung + 1).pow(density.dim() as u32);
        if pending.is_empty() || rung >= 2 && cost_of_grid(density, &pending) < next as f64 {
            break;
        }
    }
    pending.extend(wide);
    let on_grid =
        on_grid(density, manifold, &pending, g, &Effort { tolerance: effort.tolerance * scale, ..*effort }, context)?;
    Ok(Mean { value: done.value + on_grid.value, error: done.error + on_grid.error, nodes: done.nodes + on_grid.nodes })
}

/// All kernels of a density.
fn kernels(density: &LocalKernels) -> Vec<Pending> {
    let of = |(family, share): (usize, f64)| {
        let one = move |i: usize| Pending { family, centre: i, mass: share * density.weight(family, i), mean: 0.0 };
        (0..density.kernels_of(family)).map(one)
    };
    density.kernel_families().flat_map(of).collect()
}

/// The means of all kernels by a rule.
fn climb(
    pending: &mut [Pending],
    rule: &Rule,
    density: &LocalKernels,
    g: Function,
    context: &Context,
) -> Result<(), Error> {
    let each = rule.weights.len();
    let mut points = vec![];
    for batch in pending.chunks_mut((BATCH / each).max(1)) {
        context.go_on()?;
        points.clear();
        let batch_len = batch.len();
        batch.iter().for_each(|p| density.spread(p.family, p.centre, &rule.nodes, &mut points));
        let values = g(&points)?;
        for ((p, values), points) in
            batch.iter_mut().zip(values.chunks(each)).zip(points.chunks(points.len() / batch_len))
        {
            let over = density.over_normal(p.family, p.centre, &rule.nodes, points);
            let weight = |k: usize| rule.weights[k] * over.as_ref().map_or(1.0, |over| over[k]);
            p.mean = values.iter().enumerate().map(|(k, g)| weight(k) * g).sum();
        }
    }
    Ok(())
}

/// Points of a grid that resolves the kernels, their own cost counted in.
fn cost_of_grid(density: &LocalKernels, pending: &[Pending]) -> f64 {
    let Some((extent, _)) = density.extent() else { return f64::INFINITY };
    let narrowest = pending.iter().map(|p| density.narrowest(p.family, p.centre)).fold(f64::INFINITY, f64::min);
    (FINE * extent / narrowest).powi(density.dim() as i32) * (1.0 + (pending.len() / KERNELS) as f64)
}

/// ∫ g over the kernels that are left and the uniform part, to an error of `tolerance` itself.
fn on_grid(
    density: &LocalKernels,
    manifold: &dyn Manifold,
    pending: &[Pending],
    g: Function,
    effort: &Effort,
    context: &Context,
) -> Result<Mean, Error> {
    let uniform = density.uniform_share().unwrap_or(0.0);
    if pending.is_empty() && uniform == 0.0 {
        return Ok(Mean::default());
    }
    let (m, n) = (manifold.ambient(), manifold.dim());
    let parts: Vec<(f64, LocalKernels)> = density
        .kernel_families()
        .filter_map(|(family, share)| {
            let of: Vec<usize> = pending.iter().filter(|p| p.family == family).map(|p| p.centre).collect();
            let mass = share * of.iter().map(|&i| density.weight(family, i)).sum::<f64>();
            (!of.is_empty()).then(|| (mass, density.part(family, &of)))
        })
        .collect();
    let radius = density.extent().map_or(0.0, |(_, radius)| radius);
    let (mut mean, mut resolution) = (Mean { value: 0.0, error: f64::INFINITY, nodes: 0 }, GRID);
    let most = effort.nodes / (1 + pending.len() / KERNELS);
    while mean.error > effort.tolerance && (mean.nodes == 0 || 2 * (2 * resolution).pow(n as u32) < most) {
        resolution *= 2;
        let grid = manifold.grid(resolution, radius).ok_or_else(|| {
            Error::config(format!(
                "{manifold} has no quadrature grid: it has no `grid`, and no `volume` to derive one from"
            ))
        })?;
        let (mut sum, volume) = (0.0, grid.weights.iter().sum::<f64>());
        for (points, weights) in grid.points.chunks(BATCH * m).zip(grid.weights.chunks(BATCH)) {
            context.go_on()?;
            let mut heights = vec![uniform / volume; weights.len()];
            for (mass, part) in &parts {
                let logs = part.log_density_of(points, context)?;
                heights.iter_mut().zip(logs).for_each(|(h, log)| *h += mass * log.exp());
            }
            sum += g(points)?.iter().zip(weights).zip(&heights).map(|((g, w), h)| h * w * g).sum::<f64>();
        }
        mean = Mean { value: sum, error: (sum - mean.value).abs(), nodes: mean.nodes + grid.weights.len() };
    }
    Ok(mean)
}
