//! The flat Klein bottle, which is no product of model spaces: a manifold as a user would write it.

use minvel::Manifold;
use minvel_engine::{Draw, Expr, Graph, concat};
use std::f64::consts::{PI, TAU};
use std::fmt;

/// The plane up to (x, y) ~ (x + 2π, −y) ~ (x, y + 2π): points have both coordinates in [−π, π).
#[derive(Clone, Copy, Debug)]
pub struct KleinBottle;

impl fmt::Display for KleinBottle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("klein-bottle")
    }
}

/// How many turns an angle is away from [−π, π).
fn turns(angle: Expr) -> Expr {
    ((angle + PI) * (1.0 / TAU)).floor()
}

/// 1 for even numbers, −1 for odd ones.
fn parity(number: Expr) -> Expr {
    1.0 - 2.0 * (number - 2.0 * (0.5 * number).floor())
}

fn parts(x: Expr<'_>) -> (Expr<'_>, Expr<'_>) {
    (x.slice(-1, 0, 1), x.slice(-1, 1, 1))
}

impl Manifold for KleinBottle {
    fn dim(&self) -> usize {
        2
    }
    fn ambient(&self) -> usize {
        2
    }
    fn origin(&self) -> Vec<f64> {
        vec![0.0, 0.0]
    }
    fn injectivity(&self) -> f64 {
        PI
    }
    fn inner<'g>(&self, _: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        u.dot(v)
    }
    fn exp_delta<'g>(&self, _: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        v
    }
    /// To the nearest of the images of y one turn to the left, here, and one to the right.
    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        let ((x0, x1), (y0, y1)) = (parts(x), parts(y));
        let to = |turn: f64| {
            let across = if turn == 0.0 { y1 - x1 } else { -y1 - x1 };
            let v = concat(&[y0 + turn * TAU - x0, across - TAU * turns(across)], -1);
            (v, v.square().sum(-1))
        };
        let shorter = |a: (Expr<'g>, Expr<'g>), b: (Expr<'g>, Expr<'g>)| {
            (b.1.less(a.1).expand(-1).select(b.0, a.0), a.1.min(b.1))
        };
        shorter(shorter(to(0.0), to(1.0)), to(-1.0)).0
    }
    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (x0, x1) = parts(x);
        let k = turns(x0);
        let flipped = parity(k) * x1;
        concat(&[x0 - TAU * k, flipped - TAU * turns(flipped)], -1)
    }
    /// Functions that do not see which image of a point they are given.
    fn features<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (a, b) = parts(x);
        concat(&[a.cos(), a.sin(), b.cos(), (0.5 * a).cos() * b.sin(), (0.5 * a).sin() * b.sin()], -1)
    }
    fn volume(&self) -> Option<f64> {
        Some(TAU * TAU)
    }
    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
        (TAU * (graph.random_rows(Draw::Uniform, stream, rows, [2]) - 0.5)).stop_gradient()
    }
    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x.graph().fill(2.0 * TAU.ln(), x.shape().with_dims([]))
    }
}
