//! Manifolds: where points live, how gradients and noise live on them, and how to move.
//!
//! **Statement.** A point is a row of [`Manifold::ambient`] numbers. A tangent vector at x is written in the same
//! coordinates. The model density of an energy is w.r.t. the Riemannian volume.
//! **Source.** docs/math §3.1: generator Δ_g f + ⟨grad log π, grad f⟩; in a chart, dy = (g^{ij}∂_j log π + b^i)dt + √(2G⁻¹)dB.
//! **Checked by** tests/theory/manifold_laws.rs and manifold_steps.rs: one suite of laws over every manifold, and
//! manifold_defaults.rs: what is derived, against closed forms.

mod derived;
mod euclidean;
mod hyperbolic;
mod normal;
mod numbers;
mod product;
mod projective;
pub mod quadrature;
pub(crate) mod radial;
mod so3;
mod space;
mod sphere;
mod torus;

pub use euclidean::Euclidean;
pub use hyperbolic::{Hyperbolic, from_hyperboloid, to_hyperboloid};
pub(crate) use normal::{moebius, side, wrap};
pub(crate) use numbers::{InNumbers, Pairs};
pub use product::Product;
pub use projective::Projective;
pub use so3::So3;
pub use space::Space;
pub use sphere::Sphere;
pub use torus::Torus;

use minvel_engine::{Expr, Graph};
use std::fmt;
use std::sync::Arc;

/// The metric of a chart at given coordinates. All our charts are conformal factor by factor, so G is diagonal.
#[derive(Clone, Copy)]
pub struct Metric<'g> {
    /// g^{ii}, `rows × [n]`.
    pub inverse: Expr<'g>,
    /// log det G, `rows × []`.
    pub log_det: Expr<'g>,
    /// ∂_j g^{ij}, `rows × [n]`.
    pub divergence: Expr<'g>,
    /// Brownian drift b^i = ½ g^{ij} ∂_j log det G + ∂_j g^{ij} = Δ_g y^i, `rows × [n]`.
    pub brownian: Expr<'g>,
}

impl<'g> Metric<'g> {
    /// G = I.
    pub fn flat(y: Expr<'g>) -> Self {
        let zero = y.like(0.0);
        Metric { inverse: y.like(1.0), log_det: zero.sum(-1), divergence: zero, brownian: zero }
    }

    /// The metric of constant curvature ±1/a² in stereographic (+) or Poincaré (−) coordinates,
    /// G = (2a/(1 ± r²))² I: log det G = 2n log 2a − 2n log(1 ± r²), ∂_j g^{ij} = ±(1 ± r²)y^i/a²,
    /// b^i = ±(1 − n/2)(1 ± r²)y^i/a².
    pub fn of_constant_curvature(y: Expr<'g>, sign: f64, a: f64) -> Self {
        let n = y.shape().features() as f64;
        let bend = sign * y.square().sum(-1);
        let factor = (1.0 + bend).expand(-1);
        let divergence = factor * y * (sign / (a * a));
        Metric {
            inverse: (factor * (0.5 / a)).square().broadcast(&y.shape()),
            log_det: 2.0 * n * (2.0 * a).ln() - 2.0 * n * bend.log1p(),
            divergence,
            brownian: (1.0 - 0.5 * n) * divergence,
        }
    }
}

/// Points and weights with Σ w f(x) ≈ ∫ f dvol.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Points, row-major `[count, ambient]`.
    pub points: Vec<f64>,
    /// Weights; they add up to the volume where it is finite.
    pub weights: Vec<f64>,
}

/// A Riemannian manifold. All `Expr` arguments are row values `rows × [ambient]` (points and tangent vectors) unless said otherwise.
///
/// Six methods are geometry and required: [`dim`](Manifold::dim), [`origin`](Manifold::origin),
/// [`injectivity`](Manifold::injectivity), [`inner`](Manifold::inner), [`exp_delta`](Manifold::exp_delta) and
/// [`log`](Manifold::log); where a point has more numbers than dimensions, also [`ambient`](Manifold::ambient) and
/// [`settle`](Manifold::settle). All others have defaults that follow from them; closed forms are faster. With them the manifold can be learnt on (flows, objectives, samplers) and fitted.
pub trait Manifold: fmt::Debug + fmt::Display + Send + Sync {
    /// Intrinsic dimension n.
    fn dim(&self) -> usize;

    /// Numbers per point, m. Default: n.
    fn ambient(&self) -> usize {
        self.dim()
    }

    /// A point of the manifold, o: the base law and grids that are derived stand about it.
    fn origin(&self) -> Vec<f64>;

    /// A radius r > 0 such that v ↦ exp_x(v) is one-to-one for |v| < r and `log` inverts it there, at every x; infinite where
    /// it is so everywhere. Kernels of a fit end short of it and are at most an eighth of it wide.
    fn injectivity(&self) -> f64;

    /// ⟨u, v⟩_x of tangent vectors, `rows × []`.
    fn inner<'g>(&self, x: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g>;

    /// The orthogonal projection of coordinates v onto the tangent space at x. Default: the derivative of
    /// [`settle`](Manifold::settle) along v, which it is where `settle` leads to the nearest point.
    fn project<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        derived::project(self, x, v)
    }

    /// The Riemannian gradient from the derivative in coordinates, dE: ⟨grad E, v⟩_x = dE·v for tangent v.
    /// Default: Σ_j (dE·e_j) e_j with an orthonormal frame e at x.
    fn gradient<'g>(&self, x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
        derived::gradient(self, x, derivative)
    }

    /// A tangent vector with the standard normal law of the metric at x, from independent normals z `rows × [m]`.
    /// Default: Σ_j z_j e_j with an orthonormal frame e at x.
    fn tangent_normal<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        derived::spanned(&derived::frame(self, x), z)
    }

    /// exp_x(v) − x, without cancellation for short v.
    fn exp_delta<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g>;

    /// exp_x(v), brought back onto the manifold to rounding.
    fn exp<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        self.settle(x + self.exp_delta(x, v))
    }

    /// log|dvol/dv| of v ↦ exp_x(v), `rows × []`. Default: ½ log det ⟨∂_i exp, ∂_j exp⟩ by automatic differentiation along an
    /// orthonormal frame at x.
    fn exp_log_volume<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        derived::exp_log_volume(self, x, v)
    }

    /// The shortest tangent vector v at x with exp_x(v) = y.
    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g>;

    /// Geodesic distance, `rows × []`. Default: |log_x y|.
    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        let v = self.log(x, y);
        radial::norm(self.inner(x, v, v))
    }

    /// Removes rounding drift: normalises, wraps angles, keeps the ball open; the point itself where all numbers are points.
    /// Where it turns vectors too (a glide reflection), Hamiltonian trajectories do not follow: use Metropolis' steps.
    /// Default: the point itself; panics where there are more numbers than dimensions, since not all numbers are points then.
    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (m, n) = (self.ambient(), self.dim());
        assert!(
            m == n,
            "{self}: points have {m} numbers in {n} dimensions; implement `settle`, which leads back to them"
        );
        x
    }

    /// A point from any m numbers, differentiably: what a network gives becomes a code. The numbers themselves where they
    /// are coordinates of a point, their direction on spheres, exp_0 in hyperbolic space. Default: `settle`.
    fn land<'g>(&self, h: Expr<'g>) -> Expr<'g> {
        self.settle(h)
    }

    /// Numbers that name a chart, k. Those that follow override all five methods of charts or none. Default: m, since charts
    /// are normal coordinates about a point.
    fn charts(&self) -> usize {
        self.ambient()
    }

    /// Which chart is used at x, `rows × [k]` (constant in differentiation); `rows × [1]` of ones where one chart covers.
    /// Default: x itself, the centre of the chart.
    fn choose_chart<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        // A node of its own: of a constant that one differentiates by, stop_gradient would give that constant itself.
        x.pin().stop_gradient()
    }

    /// Chart coordinates `rows × [n]` of x. Default: normal coordinates ⟨e_j, log_c x⟩ about the centre c.
    fn to_chart<'g>(&self, x: Expr<'g>, choice: Expr<'g>) -> Expr<'g> {
        derived::to_chart(self, x, choice)
    }

    /// The point with chart coordinates y. Default: exp_c(Σ_j y_j e_j).
    #[allow(clippy::wrong_self_convention)] // the manifold is not what is converted
    fn from_chart<'g>(&self, y: Expr<'g>, choice: Expr<'g>) -> Expr<'g> {
        self.exp(choice, derived::spanned(&derived::frame(self, choice), y))
    }

    /// The metric at chart coordinates y (the same formula in every chart of ours). Default: that of normal coordinates at
    /// their centre, G = I with derivatives zero: exact at y = 0, where the chart of each point has that point.
    fn metric<'g>(&self, y: Expr<'g>) -> Metric<'g> {
        Metric::flat(y)
    }

    /// Smooth functions of x to feed a network, so that energies are functions on the manifold (angles as cos, sin;
    /// quaternions up to sign); `rows × [k]`. Default: x, which is right where equal points have equal numbers.
    fn features<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x
    }

    /// Total volume, where it is finite and [`sample_base`](Manifold::sample_base) draws from the uniform law. Default: none.
    fn volume(&self) -> Option<f64> {
        None
    }

    /// Points of the uniform law where the manifold is compact, else of the standard (wrapped) normal law.
    /// Default: exp_o(s·z) about the origin, z normal, s = min(1, r/6) with r the injectivity radius.
    ///
    /// A constant of differentiation, which one can differentiate by (an expression like 2·u is not kept as such).
    /// The stream is below 2²⁴: the factors of a product draw from stream + k·2²⁴, k = 0, 1, …
    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
        derived::sample_base(self, graph, rows, stream)
    }

    /// −log density of [`Manifold::sample_base`] w.r.t. the volume, `rows × []`.
    /// Default: |v|²/2s² + (n/2) log 2πs² + log|dvol/dv| at v = log_o x, but for the mass beyond r (10⁻⁸ where n = 2).
    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        derived::base_energy(self, x)
    }

    /// A quadrature grid with about `resolution` points per dimension, for n ≤ 3 (`None` otherwise).
    /// On unbounded manifolds it covers geodesic distance up to `radius` from the origin.
    /// Default: the midpoint rule in normal coordinates about the origin where exp is one-to-one everywhere; points drawn from
    /// the uniform law, with an error of resolution^{−n/2}, where the volume is known; else `None`.
    fn grid(&self, resolution: usize, radius: f64) -> Option<Grid> {
        derived::grid(self, resolution, radius)
    }

    /// The model spaces it is a product of; `None` where it is another manifold, for which no closed forms are known.
    fn spaces(&self) -> Option<Vec<Space>> {
        None
    }

    /// What is wrong with a point given by a user, if anything (off the manifold, out of range).
    /// Default: `settle` may move no number by more than 10⁻⁵ of the largest.
    fn check(&self, point: &[f64]) -> Result<(), String> {
        derived::check(self, point)
    }
}

/// What is wrong with the numbers of a point, whatever the manifold: how many there are, or that one is not finite.
fn check_numbers(manifold: &(impl Manifold + ?Sized), point: &[f64]) -> Result<(), String> {
    let m = manifold.ambient();
    if point.len() != m {
        return Err(format!("a point of {manifold} has {m} numbers, not {}", point.len()));
    }
    match point.iter().position(|x| !x.is_finite()) {
        Some(i) => Err(format!("number {i} of the point is {}, which is not finite", point[i])),
        None => Ok(()),
    }
}

/// How a name becomes a manifold.
enum Family {
    /// `name:n`.
    OfDimension(fn(usize) -> Arc<dyn Manifold>),
    /// `name`.
    Single(fn() -> Arc<dyn Manifold>),
}

/// The list of manifolds, handed to a macro: a new manifold is a file and a line here. A line has its name, its type, `(n)`
/// where that has a dimension, and the members that the laws of tests/theory are tested on. (Products are written
/// `product(…,…)`.)
#[doc(hidden)]
#[macro_export]
macro_rules! every_manifold {
    ($to:ident! $($with:tt)*) => {
        $to! { $($with)*
            [euclidean Euclidean(n): euclidean_2 "euclidean:2"]
            [sphere Sphere(n): sphere_1 "sphere:1", sphere_2 "sphere:2", sphere_3 "sphere:3", sphere_8 "sphere:8"]
            [projective Projective(n): projective_1 "projective:1", projective_2 "projective:2"]
            [torus Torus(n): torus_1 "torus:1", torus_2 "torus:2", torus_7 "torus:7"]
            [hyperbolic Hyperbolic(n): hyperbolic_1 "hyperbolic:1", hyperbolic_2 "hyperbolic:2", hyperbolic_3 "hyperbolic:3"]
            [so3 So3: so3 "so3"]
        }
    };
}

macro_rules! families {
    (@make $type:ident) => { Family::Single(|| Arc::new($type)) };
    (@make $type:ident $n:ident) => { Family::OfDimension(|$n| Arc::new($type($n))) };
    ($([$name:ident $type:ident $(($n:ident))?: $($member:ident $text:literal),*])*) => {
        &[$((stringify!($name), families!(@make $type $($n)?))),*]
    };
}

/// How each name becomes a manifold.
const FAMILIES: &[(&str, Family)] = every_manifold!(families!);

/// The most numbers of a point: a table has no more columns.
const MOST_NUMBERS: usize = 1 << 16;

/// How many products may stand inside each other.
const DEEPEST: usize = 16;

/// The longest name: 256 factors need less.
const LONGEST_NAME: usize = 1 << 13;

/// The manifold of a name: the inverse of `Display`.
///
/// ```
/// let manifold = minvel::manifold::parse("product(sphere:2, torus:1)").unwrap();
/// assert_eq!((manifold.dim(), manifold.ambient()), (3, 4));
/// assert_eq!(manifold.to_string(), "product(sphere:2,torus:1)");
/// assert!(minvel::manifold::parse("sphere").unwrap_err().contains("sphere:2"));
/// ```
pub fn parse(name: &str) -> Result<Arc<dyn Manifold>, String> {
    match name.len() {
        0..=LONGEST_NAME => parse_inside(name, 0),
        length => Err(format!("the name of the manifold has {length} bytes: at most {LONGEST_NAME} are allowed")),
    }
}

/// The manifold of a name that stands inside so many products.
fn parse_inside(name: &str, depth: usize) -> Result<Arc<dyn Manifold>, String> {
    let name = name.trim();
    if let Some(inside) = name.strip_prefix("product") {
        if depth == DEEPEST {
            return Err(format!("products are nested more than {DEEPEST} deep: write one product of all factors"));
        }
        let inside = inside.trim().strip_prefix('(').and_then(|i| i.strip_suffix(')'));
        let inside = inside.ok_or(format!("`{name}`: write a product as product(sphere:2,torus:1)"))?;
        let factors: Vec<Arc<dyn Manifold>> = split_at_commas(inside)
            .map_err(|why| format!("`{name}`: {why}"))?
            .into_iter()
            .map(|factor| parse_inside(factor, depth + 1))
            .collect::<Result<_, _>>()?;
        let count: usize = factors.iter().map(|m| m.charts()).sum();
        let numbers: usize = factors.iter().map(|m| m.ambient()).sum();
        return match (count, numbers) {
            (257.., _) => Err(format!("a product has at most 256 factors, not {count}")),
            (_, 0..=MOST_NUMBERS) => Ok(Arc::new(Product::new(factors))),
            _ => Err(format!("points of the product have {numbers} numbers: at most {MOST_NUMBERS} are allowed")),
        };
    }
    let (family, dimension) = match name.split_once(':') {
        Some((family, n)) => (family.trim(), Some(n.trim())),
        None => (name, None),
    };
    match (FAMILIES.iter().find(|(known, _)| *known == family), dimension) {
        (Some((_, Family::OfDimension(make))), Some(n)) => match n.parse() {
            Ok(n @ 1..MOST_NUMBERS) => Ok(make(n)),
            Ok(MOST_NUMBERS..) => Err(format!("`{name}`: the dimension must be at most {}", MOST_NUMBERS - 1)),
            _ => Err(format!(
                "`{name}`: the dimension must be a whole number of at least 1, as in {family}:2, not `{n}`"
            )),
        },
        (Some((_, Family::OfDimension(_))), None) => Err(format!("`{name}` needs its dimension, as in {family}:2")),
        (Some((_, Family::Single(make))), None) => Ok(make()),
        (Some((_, Family::Single(_))), Some(_)) => Err(format!("`{name}`: {family} takes no dimension")),
        (None, _) => {
            let known: Vec<&str> = FAMILIES.iter().map(|(known, _)| *known).collect();
            Err(format!("unknown manifold `{name}`; expected {} or product(…,…)", known.join(", ")))
        }
    }
}

/// The parts between commas that stand in no parenthesis.
fn split_at_commas(text: &str) -> Result<Vec<&str>, &'static str> {
    let (mut parts, mut start, mut depth) = (vec![], 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Err("a closing parenthesis has no opening one"),
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    if depth > 0 { Err("an opening parenthesis has no closing one") } else { Ok(parts) }
}
