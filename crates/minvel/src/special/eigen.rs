//! Eigenvalues of a small symmetric matrix.
//!
//! **Statement.** A = Q diag(λ) Qᵀ by Jacobi's rotations: each makes one off-diagonal entry zero, and sweeps over all
//! entries converge quadratically. **Source.** golub2013matrix, section 8.5. **Conventions.** Matrices are
//! row-major. **Error.** Some rounding errors of the
//! largest eigenvalue. **Checked by** tests/theory/special.rs.

/// Eigenvalues and orthonormal eigenvectors of a symmetric matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Eigen {
    /// λ_k, in no order.
    pub values: Vec<f64>,
    /// Row-major `[n, n]`: column k belongs to λ_k.
    pub vectors: Vec<f64>,
}

impl Eigen {
    /// Of the matrix given row-major; it must be symmetric to rounding.
    pub fn new(matrix: &[f64], n: usize) -> Self {
        assert!(matrix.len() == n * n, "eigen: {} entries are not {n} × {n}", matrix.len());
        let size = matrix.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let gap = matrix[i * n + j] - matrix[j * n + i];
            assert!(gap.abs() <= 1e-12 * size, "eigen: entries ({i}, {j}) and ({j}, {i}) differ by {gap}");
        }
        let mut a = matrix.to_vec();
        let mut vectors: Vec<f64> = (0..n * n).map(|i| if i / n == i % n { 1.0 } else { 0.0 }).collect();
        let off = |a: &[f64]| (0..n * n).filter(|i| i / n != i % n).fold(0.0, |sum, i| sum + a[i] * a[i]);
        while off(&a) > (1e-17 * size).powi(2) {
            for (p, q) in (0..n).flat_map(|q| (0..q).map(move |p| (p, q))) {
                rotate(&mut a, &mut vectors, n, p, q);
            }
        }
        Eigen { values: (0..n).map(|i| a[i * n + i]).collect(), vectors }
    }
}

/// A ← RᵀAR and Q ← QR with the rotation R that makes A_pq zero.
fn rotate(a: &mut [f64], vectors: &mut [f64], n: usize, p: usize, q: usize) {
    if a[p * n + q] == 0.0 {
        return;
    }
    let cotangent = 0.5 * (a[q * n + q] - a[p * n + p]) / a[p * n + q];
    let tangent = cotangent.signum() / (cotangent.abs() + cotangent.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    let turn = |values: &mut [f64], i: usize, j: usize| {
        let (x, y) = (values[i], values[j]);
        (values[i], values[j]) = (cosine * x - sine * y, sine * x + cosine * y);
    };
    for k in 0..n {
        turn(a, k * n + p, k * n + q);
        turn(vectors, k * n + p, k * n + q);
    }
    for k in 0..n {
        turn(a, p * n + k, q * n + k);
    }
    // Exactly, not to rounding: else the sweeps would never end.
    (a[p * n + q], a[q * n + p]) = (0.0, 0.0);
}
