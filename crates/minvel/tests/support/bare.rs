//! A manifold of ours with the required methods only: what is derived can be compared with closed forms.

use minvel::{Manifold, manifold};
use minvel_engine::Expr;
use std::fmt;
use std::sync::Arc;

/// Another manifold, of which only the geometry is known.
#[derive(Clone, Debug)]
pub struct Bare(pub Arc<dyn Manifold>);

impl Bare {
    /// By the name of the other.
    pub fn of(name: &str) -> Self {
        Bare(manifold::parse(name).unwrap())
    }
}

impl fmt::Display for Bare {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "bare-{}", self.0)
    }
}

impl Manifold for Bare {
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn ambient(&self) -> usize {
        self.0.ambient()
    }
    fn origin(&self) -> Vec<f64> {
        self.0.origin()
    }
    fn injectivity(&self) -> f64 {
        self.0.injectivity()
    }
    fn inner<'g>(&self, x: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        self.0.inner(x, u, v)
    }
    fn exp_delta<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        self.0.exp_delta(x, v)
    }
    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        self.0.log(x, y)
    }
    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        self.0.settle(x)
    }
}
