//! Products of manifolds.
//!
//! **Statement.** Points, tangent vectors and charts of the factors stand one after another; ⟨·,·⟩ adds, so does log det G;
//! the distance is the root of the sum of squares. **Source.** docs/math §3.4.
//! **Conventions.** Names read `product(sphere:2,torus:1)`. **Error.** That of the factors; the grid covers the product of
//! the factors' balls.
//! **Checked by** tests/theory/manifold_laws.rs.

use super::{Grid, Manifold, Metric, Space, check_numbers, quadrature, radial};
use minvel_engine::{Expr, Graph, concat};
use std::fmt;
use std::sync::Arc;

/// M₁ × … × M_k.
#[derive(Clone, Debug)]
pub struct Product {
    factors: Vec<Arc<dyn Manifold>>,
}

impl Product {
    /// The product of at least one manifold and at most 256, factors of factors counted.
    pub fn new(factors: Vec<Arc<dyn Manifold>>) -> Self {
        let product = Product { factors };
        let count = product.charts();
        assert!((1..=256).contains(&count), "a product has 1 to 256 factors, not {count}");
        product
    }

    /// The factors in their order.
    pub fn factors(&self) -> &[Arc<dyn Manifold>] {
        &self.factors
    }

    /// Factor k's part of values that stand one after another, `width` numbers for each.
    fn part<'g>(&self, value: Expr<'g>, k: usize, width: fn(&dyn Manifold) -> usize) -> Expr<'g> {
        let start = self.factors[..k].iter().map(|m| width(&**m)).sum();
        value.slice(-1, start, width(&*self.factors[k]))
    }

    fn point<'g>(&self, value: Expr<'g>, k: usize) -> Expr<'g> {
        self.part(value, k, |m| m.ambient())
    }

    /// A vector put together from the factors' own.
    fn join<'g>(&self, part: impl Fn(&dyn Manifold, usize) -> Expr<'g>) -> Expr<'g> {
        let parts: Vec<Expr> = self.factors.iter().enumerate().map(|(k, m)| part(&**m, k)).collect();
        concat(&parts, -1)
    }

    /// A number added up over the factors.
    fn add<'g>(&self, part: impl Fn(&dyn Manifold, usize) -> Expr<'g>) -> Expr<'g> {
        let parts = self.factors.iter().enumerate().map(|(k, m)| part(&**m, k));
        parts.reduce(|a, b| a + b).expect("a product has factors")
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<String> = self.factors.iter().map(|m| m.to_string()).collect();
        write!(f, "product({})", names.join(","))
    }
}

impl Manifold for Product {
    fn dim(&self) -> usize {
        self.factors.iter().map(|m| m.dim()).sum()
    }

    fn ambient(&self) -> usize {
        self.factors.iter().map(|m| m.ambient()).sum()
    }

    fn origin(&self) -> Vec<f64> {
        self.factors.iter().flat_map(|m| m.origin()).collect()
    }

    fn injectivity(&self) -> f64 {
        self.factors.iter().map(|m| m.injectivity()).fold(f64::INFINITY, f64::min)
    }

    fn inner<'g>(&self, x: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        self.add(|m, k| m.inner(self.point(x, k), self.point(u, k), self.point(v, k)))
    }

    fn project<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.project(self.point(x, k), self.point(v, k)))
    }

    fn gradient<'g>(&self, x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.gradient(self.point(x, k), self.point(derivative, k)))
    }

    fn tangent_normal<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.tangent_normal(self.point(x, k), self.point(z, k)))
    }

    fn exp_delta<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.exp_delta(self.point(x, k), self.point(v, k)))
    }

    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.log(self.point(x, k), self.point(y, k)))
    }

    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        radial::norm(self.add(|m, k| m.distance(self.point(x, k), self.point(y, k)).square()))
    }

    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.settle(self.point(x, k)))
    }

    fn land<'g>(&self, h: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.land(self.point(h, k)))
    }

    fn charts(&self) -> usize {
        self.factors.iter().map(|m| m.charts()).sum()
    }

    fn choose_chart<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.choose_chart(self.point(x, k)))
    }

    fn to_chart<'g>(&self, x: Expr<'g>, choice: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.to_chart(self.point(x, k), self.part(choice, k, |m| m.charts())))
    }

    fn from_chart<'g>(&self, y: Expr<'g>, choice: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.from_chart(self.part(y, k, |m| m.dim()), self.part(choice, k, |m| m.charts())))
    }

    fn metric<'g>(&self, y: Expr<'g>) -> Metric<'g> {
        let metric = |m: &dyn Manifold, k| m.metric(self.part(y, k, |m| m.dim()));
        Metric {
            inverse: self.join(|m, k| metric(m, k).inverse),
            log_det: self.add(|m, k| metric(m, k).log_det),
            divergence: self.join(|m, k| metric(m, k).divergence),
            brownian: self.join(|m, k| metric(m, k).brownian),
        }
    }

    fn features<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        self.join(|m, k| m.features(self.point(x, k)))
    }

    fn volume(&self) -> Option<f64> {
        self.factors.iter().map(|m| m.volume()).product()
    }

    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
        let before = |k: usize| self.factors[..k].iter().map(|m| m.charts()).sum::<usize>() as u32;
        self.join(|m, k| m.sample_base(graph, rows, stream + (before(k) << 24))).stop_gradient()
    }

    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        self.add(|m, k| m.base_energy(self.point(x, k)))
    }

    fn grid(&self, resolution: usize, radius: f64) -> Option<Grid> {
        if self.dim() > 3 {
            return None;
        }
        let grids: Option<Vec<Grid>> = self.factors.iter().map(|m| m.grid(resolution, radius)).collect();
        grids?.into_iter().reduce(|a, b| quadrature::product(&a, &b))
    }

    fn spaces(&self) -> Option<Vec<Space>> {
        let spaces: Option<Vec<Vec<Space>>> = self.factors.iter().map(|m| m.spaces()).collect();
        Some(spaces?.concat())
    }

    fn check(&self, point: &[f64]) -> Result<(), String> {
        check_numbers(self, point)?;
        let mut rest = point;
        for (k, m) in self.factors.iter().enumerate() {
            let (own, after) = rest.split_at(m.ambient());
            m.check(own).map_err(|why| format!("factor {k}, {m}: {why}"))?;
            rest = after;
        }
        Ok(())
    }
}
