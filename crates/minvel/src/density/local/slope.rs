//! The score of a density of local kernels.

use super::kernels::{Kind, LocalKernels};
use super::lanes::{BLOCK, Work};
use crate::Error;
use crate::density::by_rows;
use crate::manifold::{Pairs, Space, side};
use crate::special::dot;
use crate::train::Context;

/// Kernels whose part in p is below this are passed over.
const PART: f64 = 1e-10;

/// A point, log p there, and a kernel's centre.
struct Here<'a> {
    x: &'a [f64],
    log_p: f64,
    /// The list of centres, and which of them.
    list: usize,
    i: usize,
    /// |dv/dvol|.
    factor: f64,
}

/// Pulls of the kernels of another manifold, which are brought back together.
#[derive(Default)]
struct Pulls {
    centres: Vec<f64>,
    frames: Vec<f64>,
    pulls: Vec<f64>,
    parts: Vec<f64>,
}

impl Pulls {
    fn add(&mut self, kernels: &LocalKernels, i: usize, pull: &[f64], part: f64) {
        let m = kernels.ambient();
        self.centres.extend_from_slice(&kernels.points()[i * m..][..m]);
        self.frames.extend_from_slice(kernels.frame(i));
        self.pulls.extend_from_slice(pull);
        self.parts.push(part);
    }
}

impl LocalKernels {
    /// ∂ log p in the coordinates of the points, at each point: its tangent part is what counts.
    pub fn derivative(&self, points: &[f64], context: &Context) -> Result<Vec<f64>, Error> {
        Ok(self.with_derivative(points, context)?.1)
    }

    /// log p and ∂ log p at each point.
    pub fn with_derivative(&self, points: &[f64], context: &Context) -> Result<(Vec<f64>, Vec<f64>), Error> {
        let m = self.ambient();
        let logs = self.log_density_of(points, &context.quiet())?;
        let slopes = by_rows(points.len() / m, m, context, |first, out| {
            let mut work = Work::new(self.dim());
            for (i, row) in (first..).zip(out.chunks_mut(m)) {
                self.derivative_at(&points[i * m..][..m], logs[i], &mut work, row);
            }
        })?;
        Ok((logs, slopes))
    }

    /// ∂ log p at a point where log p is known: Σ over kernels of their part in p times −∂(½|C⁻¹v|² + log|dvol/dv|).
    fn derivative_at(&self, x: &[f64], log_p: f64, work: &mut Work<BLOCK>, out: &mut [f64]) {
        let (m, n) = (self.ambient(), self.dim());
        let (mut v, mut pull, mut pulls) = (vec![0.0; n], vec![0.0; n], Pulls::default());
        out.fill(0.0);
        for (list, sites) in self.sites.iter().enumerate() {
            let total = sites.points.len() / m;
            let mut near = vec![];
            self.blocks_near(list, x, log_p + PART.ln(), |block| near.push(block));
            for block in near {
                self.coordinates(x, list, block, work);
                for i in block * BLOCK..((block + 1) * BLOCK).min(total) {
                    (0..n).for_each(|j| v[j] = work.v[j][i % BLOCK]);
                    let here = Here { x, log_p, list, i, factor: work.factor[i % BLOCK] };
                    let all = self.pull_of(&here, &v, &mut pull, out);
                    if all > 0.0 && self.foreign.is_some() {
                        pulls.add(self, i, &pull, all);
                    } else if all > 0.0 {
                        self.pull_back(&sites.points[i * m..][..m], x, &pull, all, out);
                    }
                }
            }
        }
        if let Some(foreign) = &self.foreign {
            let Pulls { centres, frames, pulls, parts } = &pulls;
            foreign.add_slopes(Pairs { centres, frames, points: x }, pulls, parts, out);
        }
    }

    /// The part of a centre's kernels in p, and their pull on v; what natural kernels say is added to `out`.
    fn pull_of(&self, here: &Here, v: &[f64], pull: &mut [f64], out: &mut [f64]) -> f64 {
        let &Here { x, log_p, list, i, factor: stretch } = here;
        let (n, layer) = (self.dim(), &self.layers[list]);
        let square: f64 = v.iter().map(|v| v * v).sum();
        let (mut all, mut y) = (0.0, vec![0.0; n]);
        pull.fill(0.0);
        for member in &layer.members {
            let (mut shape, mut log) = (None, member.base);
            let variance;
            let share = self.families[member.family].share * layer.weights[i];
            match member.kind {
                Kind::Uniform => continue,
                Kind::Natural { .. } | Kind::Component { .. } => {
                    let (mut law, mut kappa) = (self.bump(), member.rate);
                    if let Kind::Component { shape } = member.kind {
                        let own = layer.shapes[shape].as_ref().expect("a shape of this layer");
                        (law, kappa) = (self.component(shape, i), 1.0);
                        log += own.logs[i];
                    }
                    let centre = &self.sites[list].points[i * x.len()..][..x.len()];
                    log += kappa * law.statistic(x, centre);
                    law.add_slope(x, centre, share * (log - log_p).exp() * kappa, out);
                    continue;
                }
                Kind::Fixed { width } | Kind::Grouped { width, .. } => {
                    variance = width * width;
                    log -= 0.5 * square / variance;
                }
                Kind::Local { shape: own, factor } => {
                    let own = &self.shapes[own];
                    own.solve(i, v, &mut y);
                    (shape, variance) = (Some(own), factor);
                    log -= 0.5 * y.iter().map(|y| y * y).sum::<f64>() / factor + own.log_det[i];
                }
            }
            let part = share * (log - log_p).exp() * stretch;
            if part < PART {
                continue;
            }
            all += part;
            match shape {
                None => pull.iter_mut().zip(v).for_each(|(p, v)| *p -= part * v / variance),
                Some(shape) => {
                    shape.solve_transposed(i, &mut y);
                    pull.iter_mut().zip(&y).for_each(|(p, y)| *p -= part * y / variance);
                }
            }
        }
        all
    }

    /// Adds pull·∂v/∂x − part·∂log|dvol/dv|/∂x, space by space.
    fn pull_back(&self, centre: &[f64], x: &[f64], pull: &[f64], part: f64, out: &mut [f64]) {
        let (mut at, mut from) = (0, 0);
        for space in &self.spaces {
            let (own, turned) = (at..at + space.ambient(), from..from + space.dim());
            (at, from) = (own.end, turned.end);
            let (c, x, pull, out) = (&centre[own.clone()], &x[own.clone()], &pull[turned], &mut out[own]);
            match space {
                Space::Euclidean(_) | Space::Torus(_) => out.iter_mut().zip(pull).for_each(|(out, p)| *out += p),
                Space::Sphere(n) => on_sphere(c, x, pull, part * (*n as f64 - 1.0), 1.0, out),
                Space::Projective(n) => on_sphere(c, x, pull, part * (*n as f64 - 1.0), side(c, x), out),
                Space::So3 => {
                    let pull: Vec<f64> = pull.iter().map(|p| 2.0 * p).collect();
                    on_sphere(c, x, &pull, part * 2.0, side(c, x), out);
                }
                Space::Hyperbolic(_) => in_ball(*space, c, x, pull, part, out),
            }
        }
    }
}

/// On a sphere v = (θ/sin θ)·w with w linear in y = side·x ([`Space::to_normal`]) and ∂θ/∂y = −c/sin θ; log|dvol/dv| is a multiple
/// of log(sin θ/θ), and `part` that multiple of the kernel's part. With g = (1 − θ cot θ)/sin² θ, (θ/sin θ)′/sin θ = g and
/// (log(sin θ/θ))′/sin θ = −g·sin θ/θ.
fn on_sphere(c: &[f64], x: &[f64], pull: &[f64], part: f64, side: f64, out: &mut [f64]) {
    let n = c.len() - 1;
    let sign = if c[n] < 0.0 { -1.0 } else { 1.0 };
    let below = 1.0 + sign * c[n];
    let cosine = side * dot(c, x);
    let along = (cosine + sign * side * x[n]) / below;
    let w = |j: usize| side * x[j] - c[j] * along;
    let sine = (0..n).map(|j| w(j) * w(j)).sum::<f64>().sqrt();
    let angle = sine.atan2(cosine);
    let stretch = if sine > 1e-12 { angle / sine } else { 1.0 };
    // Near the centre the quotient would cancel.
    let g =
        if angle < 1e-3 { 1.0 / 3.0 + 2.0 / 15.0 * angle * angle } else { (1.0 - stretch * cosine) / (sine * sine) };
    let turned: f64 = (0..n).map(|j| pull[j] * w(j)).sum();
    let leaning = stretch * (0..n).map(|j| pull[j] * c[j]).sum::<f64>() / below;
    let radial = g * turned + part * g / stretch + leaning;
    for k in 0..n {
        out[k] += side * (stretch * pull[k] - radial * c[k]);
    }
    out[n] -= side * (radial * c[n] + sign * leaning);
}

/// In the ball by central differences, whose steps shrink with the distance from its edge.
fn in_ball(space: Space, c: &[f64], x: &[f64], pull: &[f64], part: f64, out: &mut [f64]) {
    let (mut to, mut up, mut down) = (x.to_vec(), vec![0.0; pull.len()], vec![0.0; pull.len()]);
    let h = 1e-6 * (1.0 - dot(x, x).min(0.999_999));
    for j in 0..x.len() {
        to[j] = x[j] + h;
        let above = space.to_normal(c, &to, &mut up);
        to[j] = x[j] - h;
        let below = space.to_normal(c, &to, &mut down);
        to[j] = x[j];
        let slope: f64 = pull.iter().zip(&up).zip(&down).map(|((p, a), b)| p * (a - b)).sum();
        out[j] += (slope - part * (above - below)) / (2.0 * h);
    }
}
