//! A positive semi-definite matrix as a square, and the singular values of any matrix.
//!
//! **Statement.** Σ = LLᵀ by Cholesky's method with the largest remaining diagonal entry as pivot; L is `[n, r]` with r the
//! numerical rank. A = UBVᵀ by Householder's reflections with B bidiagonal; the eigenvalues of the symmetric tridiagonal
//! matrix with zero diagonal and off-diagonals b₁₁, b₁₂, b₂₂, b₂₃, … are ±σ, found by the implicit QL iteration.
//! **Source.** golub2013matrix, sections 4.2.8, 5.4.8, 8.3.3 and 8.6.1. **Conventions.** Matrices are row-major.
//! **Error.** |Σ − LLᵀ| ≤ n·ε·max Σ_ii, where Cholesky's method stops; singular values some ε of the largest.
//! O(nr²) and O(mn²) operations. **Checked by** crates/lab/tests/lab/frechet.rs.

use super::dot_in_lanes;

/// L of Σ = LLᵀ, row-major `[n, rank]`, and the rank.
pub fn semidefinite_root(matrix: &[f64], n: usize) -> (Vec<f64>, usize) {
    assert!(matrix.len() == n * n, "semidefinite_root: {} entries are not {n} × {n}", matrix.len());
    let mut left: Vec<f64> = (0..n).map(|i| matrix[i * n + i]).collect();
    let most = left.iter().copied().fold(0.0, f64::max);
    let least = n as f64 * f64::EPSILON * most;
    // rows of n, of which the first r are used in the end: columns of L are appended
    let mut l = vec![0.0; n * n];
    for r in 0..n {
        let pivot = (0..n).max_by(|a, b| left[*a].total_cmp(&left[*b])).expect("there are pivots left");
        if left[pivot] <= least {
            return ((0..n).flat_map(|i| l[i * n..][..r].to_vec()).collect(), r);
        }
        let root = left[pivot].sqrt();
        let row = l[pivot * n..][..r].to_vec();
        for i in 0..n {
            // pivots of before have nothing left
            if left[i] == f64::NEG_INFINITY {
                continue;
            }
            let entry = (matrix[i * n + pivot] - dot_in_lanes(&l[i * n..][..r], &row)) / root;
            l[i * n + r] = entry;
            left[i] -= entry * entry;
        }
        l[pivot * n + r] = root;
        left[pivot] = f64::NEG_INFINITY;
    }
    (l, n)
}

/// All singular values of a matrix `[rows, columns]`, in no order.
pub fn singular_values(matrix: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    assert!(matrix.len() == rows * columns, "singular_values: {} entries are not {rows} × {columns}", matrix.len());
    if rows < columns {
        let turned: Vec<f64> = (0..rows * columns).map(|i| matrix[i % rows * columns + i / rows]).collect();
        return singular_values(&turned, columns, rows);
    }
    let between = bidiagonal(matrix.to_vec(), rows, columns);
    let mut values = tridiagonal_eigenvalues(vec![0.0; 2 * columns], between);
    values.sort_by(|a, b| b.total_cmp(a));
    values[..columns].iter().map(|v| v.max(0.0)).collect()
}

/// b₁₁, b₁₂, b₂₂, …, b_nn of A = UBVᵀ, with as many rows as columns or more.
fn bidiagonal(mut a: Vec<f64>, rows: usize, columns: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(2 * columns);
    for k in 0..columns {
        // from the left: what is below the diagonal of column k
        let mut v: Vec<f64> = (k..rows).map(|i| a[i * columns + k]).collect();
        let (entry, factor) = reflection(&mut v);
        out.push(entry);
        let mut w = vec![0.0; columns - k - 1];
        for (row, v) in a[k * columns..].chunks(columns).zip(&v) {
            add(&mut w, *v, &row[k + 1..]);
        }
        for (row, v) in a[k * columns..].chunks_mut(columns).zip(&v) {
            add(&mut row[k + 1..], -factor * v, &w);
        }
        if k + 1 == columns {
            break;
        }
        // from the right: what is right of the entry beside the diagonal of row k
        let mut u = a[k * columns..][k + 1..columns].to_vec();
        let (entry, factor) = reflection(&mut u);
        out.push(entry);
        for row in a[(k + 1) * columns..].chunks_mut(columns) {
            let inner = dot_in_lanes(&row[k + 1..], &u);
            add(&mut row[k + 1..], -factor * inner, &u);
        }
    }
    out
}

/// Turns x into v such that (I − βvvᵀ)x = (α, 0, …); returns α and β.
fn reflection(x: &mut [f64]) -> (f64, f64) {
    let size = x.iter().fold(0.0f64, |a, x| a.max(x.abs()));
    if size == 0.0 {
        return (0.0, 0.0);
    }
    let norm = size * x.iter().map(|x| (x / size).powi(2)).sum::<f64>().sqrt();
    let alpha = -norm.copysign(x[0]);
    // v scaled to length of order 1, so that vᵀv neither overflows nor vanishes
    x[0] -= alpha;
    x.iter_mut().for_each(|x| *x /= norm);
    (alpha, 2.0 / dot_in_lanes(x, x))
}

/// Eigenvalues of a symmetric tridiagonal matrix from its diagonal and what stands beside it.
fn tridiagonal_eigenvalues(mut d: Vec<f64>, mut e: Vec<f64>) -> Vec<f64> {
    let n = d.len();
    e.resize(n, 0.0);
    let size = d.iter().chain(&e).fold(0.0f64, |a, x| a.max(x.abs()));
    for l in 0..n {
        loop {
            // the block l..=m that does not fall apart; the scale keeps zero diagonals from asking for the impossible
            let splits = |m: &usize| {
                e[*m].abs() <= 0.5 * f64::EPSILON * (d[*m].abs() + d[*m + 1].abs()).max(f64::EPSILON * size)
            };
            let m = (l..n - 1).find(splits).unwrap_or(n - 1);
            if m == l {
                break;
            }
            ql_sweep(&mut d, &mut e, l, m);
        }
    }
    d
}

/// One sweep of the implicit QL iteration on the block l..=m, with Wilkinson's shift.
fn ql_sweep(d: &mut [f64], e: &mut [f64], l: usize, m: usize) {
    let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let mut g = d[m] - d[l] + e[l] / (g + g.hypot(1.0).copysign(g));
    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
    for i in (l..m).rev() {
        let (f, b) = (s * e[i], c * e[i]);
        let r = f.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            // the block falls apart here
            d[i + 1] -= p;
            e[m] = 0.0;
            return;
        }
        (s, c) = (f / r, g / r);
        g = d[i + 1] - p;
        let r = (d[i] - g) * s + 2.0 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0.0;
}

/// y ← y + ax.
fn add(y: &mut [f64], a: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
}
