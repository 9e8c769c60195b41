//! An energy written down as a formula of a few named numbers.
//!
//! **Statement.** E(x) = f(θ, x), θ = (θ₁, …, θ_N) scalars. **Conventions.** Each θ_k is a variable of its own name, and every
//! replica starts from the values given. **Error.** None. **Checked by** tests/theory/energy_laws.rs.

use super::Energy;
use crate::network::Parameter;
use minvel_engine::Expr;
use minvel_engine::init::Init;
use std::fmt;

/// E(x) = f(θ, x).
///
/// ```
/// use minvel::energy::{Energy, Formula};
/// let normal = Formula::new([("mean", 0.0), ("precision", 1.0)], |[m, a], x| 0.5 * a * (x - m).square().sum(-1));
/// assert_eq!(normal.parameters().len(), 2);
/// ```
#[derive(Clone)]
pub struct Formula<F, const N: usize> {
    parameters: [Parameter; N],
    formula: F,
}

impl<F, const N: usize> Formula<F, N>
where
    F: for<'g> Fn([Expr<'g>; N], Expr<'g>) -> Expr<'g> + Send + Sync,
{
    /// Parameters with their names and start values, and f: from them and points `rows × [m]` to energies `rows × []`.
    pub fn new(parameters: [(&str, f64); N], formula: F) -> Self {
        let parameter = |(name, value): (&str, f64)| {
            let (name, init) = (name.to_string(), Init::Constant(value));
            Parameter { name, dims: vec![], init }
        };
        Formula { parameters: parameters.map(parameter), formula }
    }
}

impl<F, const N: usize> fmt::Debug for Formula<F, N> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Formula").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

impl<F, const N: usize> Energy for Formula<F, N>
where
    F: for<'g> Fn([Expr<'g>; N], Expr<'g>) -> Expr<'g> + Send + Sync,
{
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        (self.formula)(self.parameters.each_ref().map(|p| p.variable(x.graph())), x)
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.to_vec()
    }
}
