//! The expansion of I_v and K_v that holds uniformly in order and argument.
//!
//! **Statement.** With p = √(v² + x²) and η = p − v arsinh(v/x),
//! I_v(x) = e^η/√(2πp) · S(x), K_v(x) = √(π/2p) e^{−η} · S₋(x), S = Σ_k u_k(v²/p²)/pᵏ, S₋ = Σ_k (−1)ᵏ u_k(v²/p²)/pᵏ.
//! **Source.** DLMF 10.41.3–10.41.9, with U_k(t) = tᵏ u_k(t²), which leaves no singularity at v = 0: there it is
//! Hankel's expansion. **Conventions.** v ≥ 0, x > 0. **Error.** Below 2·10⁻¹⁶ relatively from p = [`FAR`] on.
//! **Checked by** tests/theory/special.rs.

use std::sync::LazyLock;

/// The least p for which [`TERMS`] terms are enough.
pub const FAR: f64 = 30.0;

/// Terms of the expansion: the last is ≈ 3·10⁻¹⁷ at p = 30, v = 0.
const TERMS: usize = 16;

/// Coefficients of u_0, u_1, …: u_k has k + 1 of them.
static COEFFICIENTS: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
    let mut all = vec![vec![1.0]];
    for k in 0..TERMS - 1 {
        let mut next = vec![0.0; k + 2];
        for (j, c) in all[k].iter().enumerate() {
            // U_{k+1} = ½t²(1−t²)U_k' + ⅛∫(1−5t²)U_k, for the power t^a of U_k.
            let a = (k + 2 * j) as f64;
            next[j] += c * (0.5 * a + 0.125 / (a + 1.0));
            next[j + 1] -= c * (0.5 * a + 0.625 / (a + 3.0));
        }
        all.push(next);
    }
    all
});

/// S(x) and its first two derivatives in x, with the given sign: u_k(v²/p²)·(sign/p)ᵏ summed up.
pub fn sum(v: f64, x: f64, sign: f64) -> [f64; 3] {
    let p2 = v * v + x * x;
    let (q, s) = (sign / p2.sqrt(), v * v / p2);
    let (mut total, mut power) = ([0.0; 3], 1.0);
    for (k, row) in COEFFICIENTS.iter().enumerate() {
        let mut term = power;
        for (j, c) in row.iter().enumerate() {
            // (1/p)^a has derivatives −a x/p² and (−a/p² + a(a+2)x²/p⁴) times itself.
            let a = (k + 2 * j) as f64;
            total[0] += c * term;
            total[1] -= c * term * a * x / p2;
            total[2] += c * term * (a * (a + 2.0) * x * x / p2 - a) / p2;
            term *= s;
        }
        power *= q;
    }
    total
}
