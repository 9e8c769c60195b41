//! The unit sphere Sⁿ in R^{n+1}, n ≥ 1.
//!
//! **Statement.** exp_x(v) = cos|v| x + sin|v| v/|v|; stereographic chart with G = 4/(1+r²)² I, b = (1 − n/2)(1+r²)y.
//! **Source.** docs/math §3.2 (chart, per-point flip), §3.5 (embedding); wang2020mvl with erratum P5.
//! **Conventions.** Points are unit vectors; the chart at x is the projection from the pole that is farther away: where
//! x_{n+1} < 0 the whole vector is negated first (flip = −1), so that chosen coordinates have |y| ≤ 1.
//! **Error.** Rounding only: exp_delta and log are expressed by x − y and sines of half angles, which do not cancel.
//! **Checked by** tests/theory/manifold_laws.rs, tests/theory/manifold_facts.rs (F32, F36).

use super::{Grid, Manifold, Metric, Space, check_numbers, quadrature, radial};
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::PI;
use std::fmt;

/// Sⁿ ⊂ R^{n+1}.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sphere(pub usize);

/// (0, …, 0, 1): the centre of the chart.
pub(super) fn pole(m: usize) -> Vec<f64> {
    (1..=m).map(|k| f64::from(k == m)).collect()
}

/// What a quotient of the sphere by ±1 has from the sphere above it, point by point and vector by vector.
macro_rules! from_the_sphere_above {
    ($this:ident, $cover:expr) => {
        fn project<'g>(&$this, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
            $cover.project(x, v)
        }

        fn exp_delta<'g>(&$this, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
            $cover.exp_delta(x, v)
        }

        fn log<'g>(&$this, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
            $cover.log(x, nearer(x, y))
        }

        fn settle<'g>(&$this, x: Expr<'g>) -> Expr<'g> {
            $cover.settle(x)
        }

        fn land<'g>(&$this, h: Expr<'g>) -> Expr<'g> {
            $cover.land(h)
        }

        fn charts(&$this) -> usize {
            $cover.charts()
        }

        fn choose_chart<'g>(&$this, x: Expr<'g>) -> Expr<'g> {
            $cover.choose_chart(x)
        }

        fn to_chart<'g>(&$this, x: Expr<'g>, flip: Expr<'g>) -> Expr<'g> {
            $cover.to_chart(x, flip)
        }

        fn from_chart<'g>(&$this, y: Expr<'g>, flip: Expr<'g>) -> Expr<'g> {
            $cover.from_chart(y, flip)
        }

        fn sample_base<'g>(&$this, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
            $cover.sample_base(graph, rows, stream)
        }

        fn features<'g>(&$this, x: Expr<'g>) -> Expr<'g> {
            upper_triangle(x)
        }
    };
}
pub(super) use from_the_sphere_above;

/// ±y, whichever is nearer to x.
pub(super) fn nearer<'g>(x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
    let side = x.dot(y).less(0.0).select(x.graph().scalar(-1.0), x.graph().scalar(1.0));
    side.expand(-1) * y
}

/// The upper triangle of x xᵀ.
pub(super) fn upper_triangle(x: Expr) -> Expr {
    let m = x.shape().features();
    let rows: Vec<Expr> = (0..m).map(|i| x.slice(-1, i, 1) * x.slice(-1, i, m - i)).collect();
    concat(&rows, -1)
}

/// How far from 1 the length of a user's point may be: data are often rounded to five or six digits.
pub(super) const LENGTH_TOLERANCE: f64 = 1e-5;

impl fmt::Display for Sphere {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "sphere:{}", self.0)
    }
}

impl Manifold for Sphere {
    fn dim(&self) -> usize {
        self.0
    }

    fn ambient(&self) -> usize {
        self.0 + 1
    }

    fn origin(&self) -> Vec<f64> {
        pole(self.ambient())
    }

    fn injectivity(&self) -> f64 {
        PI
    }

    fn inner<'g>(&self, _: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        u.dot(v)
    }

    fn project<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        v - x.dot(v).expand(-1) * x
    }

    fn gradient<'g>(&self, x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
        self.project(x, derivative)
    }

    fn tangent_normal<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        self.project(x, z)
    }

    /// sin|v|/|v| v − 2 sin²(|v|/2) x.
    fn exp_delta<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        let s = v.square().sum(-1);
        let fall = 0.5 * s * radial::sinc(0.25 * s).square();
        radial::sinc(s).expand(-1) * v - fall.expand(-1) * x
    }

    /// ϑ/sin ϑ times the tangent part w of y − x: for near points by ϑ/2 = arcsin(|y − x|/2), elsewhere as ϑ w/|w|, whose
    /// length is right even where its direction is lost. At the antipode it is zero: no shortest vector is the only one.
    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        let (sine2, cosine2) = chords(x, y);
        let w = self.project(x, y - x);
        let close = sine2.less(0.25);
        let near = radial::asinc(sine2, cosine2) / radial::norm(close.select(cosine2, cosine2.like(1.0)));
        let length = radial::norm(close.select(cosine2.like(1.0), w.square().sum(-1))).max(1e-18);
        close.select(near, self.distance(x, y) / length).expand(-1) * w
    }

    /// 2 arctan(|x − y|/|x + y|): to full precision for near points and for antipodes.
    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        let (sine2, cosine2) = chords(x, y);
        2.0 * radial::norm(sine2).atan2(radial::norm(cosine2))
    }

    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x * x.square().sum(-1).rsqrt().expand(-1)
    }

    /// h/√max(|h|², 10⁻¹²).
    fn land<'g>(&self, h: Expr<'g>) -> Expr<'g> {
        h * h.square().sum(-1).max(1e-12).rsqrt().expand(-1)
    }

    fn charts(&self) -> usize {
        1
    }

    /// The flip: −1 where x_{n+1} < 0, else 1.
    fn choose_chart<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let last = x.slice(-1, self.0, 1);
        last.less(0.0).select(last.like(-1.0), last.like(1.0)).stop_gradient()
    }

    fn to_chart<'g>(&self, x: Expr<'g>, flip: Expr<'g>) -> Expr<'g> {
        let x = flip * x;
        x.slice(-1, 0, self.0) / (1.0 + x.slice(-1, self.0, 1))
    }

    /// flip·(2y, 1 − r²)/(1 + r²).
    fn from_chart<'g>(&self, y: Expr<'g>, flip: Expr<'g>) -> Expr<'g> {
        let r2 = y.square().sum(-1).expand(-1);
        flip * concat(&[2.0 * y, 1.0 - r2], -1) / (1.0 + r2)
    }

    fn metric<'g>(&self, y: Expr<'g>) -> Metric<'g> {
        Metric::of_constant_curvature(y, 1.0, 1.0)
    }

    /// 2π^{(n+1)/2}/Γ((n+1)/2), by |Sⁿ| = 2π/(n−1) |Sⁿ⁻²|.
    fn volume(&self) -> Option<f64> {
        let first = if self.0.is_multiple_of(2) { 2.0 } else { 2.0 * PI };
        Some((2..=self.0).filter(|k| (self.0 - k).is_multiple_of(2)).fold(first, |v, k| v * 2.0 * PI / (k - 1) as f64))
    }

    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
        self.settle(graph.random_rows(Draw::Normal, stream, rows, [self.ambient()])).stop_gradient()
    }

    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let volume = self.volume().expect("a sphere has a volume");
        x.graph().fill(volume.ln(), x.shape().with_dims([]))
    }

    /// Polar angles by the Gauss rule of their measure, azimuths (twice as many) uniform: exact for polynomials of
    /// degree < 2·resolution.
    fn grid(&self, resolution: usize, _: f64) -> Option<Grid> {
        match self.0 {
            1 => Some(circle(resolution)),
            2 => Some(cone(&circle(2 * resolution), quadrature::gauss_legendre(resolution))),
            3 => Some(cone(&Sphere(2).grid(resolution, 0.0)?, quadrature::gauss_chebyshev(resolution))),
            _ => None,
        }
    }

    fn spaces(&self) -> Option<Vec<Space>> {
        Some(vec![Space::Sphere(self.0)])
    }

    fn check(&self, point: &[f64]) -> Result<(), String> {
        check_numbers(self, point)?;
        let length = point.iter().map(|x| x * x).sum::<f64>().sqrt();
        match (length - 1.0).abs() <= LENGTH_TOLERANCE {
            true => Ok(()),
            false => Err(format!("the point has length {length}, but points of {self} have length 1: divide by it")),
        }
    }
}

/// sin² and cos² of half the angle between unit vectors: |x − y|²/4 and |x + y|²/4.
fn chords<'g>(x: Expr<'g>, y: Expr<'g>) -> (Expr<'g>, Expr<'g>) {
    (0.25 * (y - x).square().sum(-1), 0.25 * (y + x).square().sum(-1))
}

fn circle(count: usize) -> Grid {
    let (angles, weights) = quadrature::angles(count);
    Grid { points: angles.iter().flat_map(|a| [a.cos(), a.sin()]).collect(), weights }
}

/// The grid of Sⁿ from one of Sⁿ⁻¹ and a rule for t = cos ϑ with weight (1−t²)^{n/2−1}: points (√(1−t²) ω, t).
fn cone(base: &Grid, (heights, weights): quadrature::Rule) -> Grid {
    let m = base.points.len() / base.weights.len();
    let mut grid = Grid { points: vec![], weights: vec![] };
    for (t, v) in heights.iter().zip(&weights) {
        let s = ((1.0 - t) * (1.0 + t)).sqrt();
        for (omega, w) in base.points.chunks(m).zip(&base.weights) {
            grid.points.extend(omega.iter().map(|x| s * x));
            grid.points.push(*t);
            grid.weights.push(v * w);
        }
    }
    grid
}
