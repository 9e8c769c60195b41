//! Embeddings of the model spaces, and vector fields that span their tangent spaces.
//!
//! **Statement.** e: the point (Rⁿ, Sⁿ, Hⁿ in the ball), cosines and sines (Tⁿ), xxᵀ (RPⁿ, SO(3)); V_a with D_a = de(V_a) and
//! b_a = div V_a + ⟨V_a, grad log p⟩. **Conventions.** Rⁿ and Tⁿ: V_a = ∂_a. Sⁿ: V_a the projected axes of R^{n+1}, div V_a = −n x_a.
//! Hⁿ: V_a = ½(1−r²)∂_a, div V_a = (n−1)x_a. RPⁿ: V_a the rotations in two coordinates, SO(3): V_a = ½q·(i, j, k), both without
//! divergence. **Error.** None. **Checked by** tests/densities/goodness.rs.

use crate::manifold::Space;
use crate::special::dot;

/// e, D and b of a point of one space with its score.
pub(super) fn parts(space: Space, x: &[f64], score: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>, Vec<f64>) {
    let axis = |i: usize, n: usize| (0..n).map(|j| f64::from(i == j)).collect::<Vec<f64>>();
    match space {
        Space::Euclidean(n) => (x.to_vec(), (0..n).map(|a| axis(a, n)).collect(), score.to_vec()),
        Space::Torus(n) => {
            let embedded = x.iter().flat_map(|x| [x.cos(), x.sin()]).collect();
            let field = |a: usize| {
                let mut field = vec![0.0; 2 * n];
                (field[2 * a], field[2 * a + 1]) = (-x[a].sin(), x[a].cos());
                field
            };
            (embedded, (0..n).map(field).collect(), score.to_vec())
        }
        Space::Sphere(n) => {
            let field = |a: usize| (0..=n).map(|i| f64::from(i == a) - x[a] * x[i]).collect();
            let b = score.iter().zip(x).map(|(s, x)| s - n as f64 * x).collect();
            (x.to_vec(), (0..=n).map(field).collect(), b)
        }
        Space::Hyperbolic(n) => {
            let frame = 0.5 * (1.0 - dot(x, x));
            let field = |a: usize| axis(a, n).iter().map(|e| frame * e).collect();
            let b = score.iter().zip(x).map(|(s, x)| s / frame + (n as f64 - 1.0) * x).collect();
            (x.to_vec(), (0..n).map(field).collect(), b)
        }
        Space::Projective(n) => {
            // Rotations in the planes of two coordinates: tangent fields without divergence, alike at x and −x.
            let pairs = |from: usize| (0..=n).flat_map(move |i| (i + from..=n).map(move |j| (i, j)));
            let turn = |(i, j): (usize, usize)| {
                let mut field = vec![0.0; n + 1];
                (field[i], field[j]) = (-x[j], x[i]);
                field
            };
            let turns: Vec<Vec<f64>> = pairs(1).map(turn).collect();
            let entry = |i: usize, j: usize, m: f64| if i == j { m } else { std::f64::consts::SQRT_2 * m };
            let embedded = pairs(0).map(|(i, j)| entry(i, j, x[i] * x[j])).collect();
            let push = |v: &Vec<f64>| pairs(0).map(|(i, j)| entry(i, j, v[i] * x[j] + x[i] * v[j])).collect();
            (embedded, turns.iter().map(push).collect(), turns.iter().map(|v| dot(v, score)).collect())
        }
        Space::So3 => {
            let [i, j, k, r] = [x[0], x[1], x[2], x[3]].map(|x| 0.5 * x);
            // ½q·i, ½q·j, ½q·k, unit vectors of the metric 4 u·v.
            let fields = [[r, k, -j, -i], [-k, r, i, -j], [j, -i, r, -k]];
            let pairs = || (0..4).flat_map(|i| (i..4).map(move |j| (i, j)));
            let entry = |i: usize, j: usize, m: f64| if i == j { m } else { std::f64::consts::SQRT_2 * m };
            let embedded = pairs().map(|(i, j)| entry(i, j, x[i] * x[j])).collect();
            let push = |v: &[f64; 4]| pairs().map(|(i, j)| entry(i, j, v[i] * x[j] + x[i] * v[j])).collect();
            (embedded, fields.iter().map(push).collect(), fields.iter().map(|v| 4.0 * dot(v, score)).collect())
        }
    }
}
