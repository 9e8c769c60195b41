//! The Fréchet distance of normal laws, and the factorisations it is made of.

use minvel::special::{Eigen, semidefinite_root, singular_values};
use minvel_engine::Draw;
use minvel_engine::random::{Key, Stream};
use minvel_lab::fid::{Normal, Scatter};
use minvel_testing::{within_digits, within_ulps};
use std::time::Instant;

fn normal(mean: &[f64], covariance: &[f64]) -> Normal {
    Normal { mean: mean.to_vec(), covariance: covariance.to_vec() }
}

/// Standard normals of a stream.
fn normals(stream: u32, count: usize) -> Vec<f64> {
    Stream::new(Key::new(52, 0), stream).samples(Draw::Normal).take(count).collect()
}

/// Correlated features with shifted means, cut at zero as features of a network are.
fn features(stream: u32, rows: usize, d: usize, shift: f64) -> Vec<f32> {
    let z = normals(stream, rows * d);
    let feature = |i: usize| {
        let (row, j) = (i / d, i % d);
        let before = if j > 0 { z[row * d + j - 1] } else { 0.0 };
        ((0.5 + 0.1 * j as f64) * (z[i] + 0.7 * before) + shift).max(0.0) as f32
    };
    (0..rows * d).map(feature).collect()
}

#[test]
fn fact_52_distances_that_are_known() {
    let diagonal = normal(&[1.0, 2.0], &[1.0, 0.0, 0.0, 4.0]).frechet(&normal(&[0.0; 2], &[4.0, 0.0, 0.0, 9.0]));
    assert!(within_ulps(diagonal, 7.0, 16.0), "{diagonal}");
    let turned = normal(&[0.0; 2], &[2.0, 1.0, 1.0, 2.0]).frechet(&normal(&[0.0; 2], &[1.0, 0.0, 0.0, 3.0]));
    assert!(within_digits(turned, 0.5166852265, 10), "{turned}");
    for (mean, first, second) in [(0.5, 1.5f64, 0.25f64), (-2.0, 0.0, 3.0)] {
        let single = normal(&[mean], &[first * first]).frechet(&normal(&[0.0], &[second * second]));
        assert!(within_ulps(single, mean * mean + (first - second).powi(2), 16.0), "{single}");
    }
}

#[test]
fn fact_53_samples_of_one_law_are_apart_by_their_number() {
    let distance = |rows: usize, stream: u32| {
        let d = 64;
        let cloud = |stream| {
            let values: Vec<f32> = normals(stream, rows * d).iter().map(|x| *x as f32).collect();
            Scatter::of(&values, d).normal()
        };
        cloud(stream).frechet(&cloud(stream + 1))
    };
    for (rows, fact) in [(1000, 2.23), (10_000, 0.229)] {
        let draws: Vec<f64> = (0..8).map(|i| distance(rows, 2 * i)).collect();
        let (mean, error) = minvel_testing::estimate(&draws);
        // the fact is a single draw, which scatters as much as each of ours does
        let single = error * (draws.len() as f64 + 1.0).sqrt();
        println!("N = {rows}: {mean:.4} ± {error:.4}, one draw ± {single:.4}; z = {:+.2}", (fact - mean) / single);
        assert!((fact - mean).abs() < 4.0 * single);
        assert!((fact - 0.8 * mean).abs() > 4.0 * single, "a covariance that is a fifth too small would be seen");
    }
}

#[test]
fn distances_are_those_of_the_standard_implementation() {
    // scipy 1.17.1, numpy 2.4.6: |μ₁ − μ₂|² + tr(Σ₁ + Σ₂ − 2 sqrtm(Σ₁Σ₂)), np.cov of these very features in f64.
    for (rows, d, shift, expected) in [(200, 8, 0.3, 0.4458926185568606), (500, 24, -0.2, 1.0070072162071426)] {
        let (a, b) = (features(1, rows, d, 0.0), features(2, rows, d, shift));
        if let Ok(folder) = std::env::var("MINVEL_FEATURES") {
            for (name, values) in [("a", &a), ("b", &b)] {
                let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                std::fs::write(format!("{folder}/{name}-{rows}-{d}.f32"), bytes).unwrap();
            }
        }
        let got = Scatter::of(&a, d).normal().frechet(&Scatter::of(&b, d).normal());
        println!("{rows} × {d}: {got:.15}, with {expected:.15}");
        assert!((got / expected - 1.0f64).abs() < 1e-9, "{got} against {expected}");
    }
}

#[test]
fn fewer_samples_than_features_give_the_exact_distance() {
    let (rows, d) = (10, 40);
    let (a, b) = (features(3, rows, d, 0.0), features(4, rows, d, 0.5));
    let (first, second) = (Scatter::of(&a, d).normal(), Scatter::of(&b, d).normal());
    // tr (Σ₁Σ₂)^½ is also the sum of the singular values of the small matrix of inner products of centred rows.
    let centred = |rows: &[f32], law: &Normal| -> Vec<f64> {
        rows.iter().enumerate().map(|(i, x)| *x as f64 - law.mean[i % d]).collect()
    };
    let (x, y) = (centred(&a, &first), centred(&b, &second));
    let inner = |x: &[f64], y: &[f64], i: usize, j: usize| (0..d).map(|k| x[i * d + k] * y[j * d + k]).sum::<f64>();
    let gram: Vec<f64> = (0..rows * rows).map(|k| inner(&x, &y, k / rows, k % rows)).collect();
    let square: Vec<f64> = (0..rows * rows)
        .map(|k| (0..rows).map(|i| gram[i * rows + k / rows] * gram[i * rows + k % rows]).sum())
        .collect();
    // one singular value is zero, since centred rows add up to nothing
    let roots = Eigen::new(&square, rows).values;
    let largest = roots.iter().copied().fold(0.0, f64::max);
    let fidelity = roots.iter().filter(|v| **v > 1e-12 * largest).map(|v| v.sqrt()).sum::<f64>() / (rows - 1) as f64;
    let trace = |law: &Normal| (0..d).map(|i| law.covariance[i * d + i]).sum::<f64>();
    let shift: f64 = first.mean.iter().zip(&second.mean).map(|(a, b)| (a - b).powi(2)).sum();
    let exact = shift + trace(&first) + trace(&second) - 2.0 * fidelity;
    let got = first.frechet(&second);
    println!("{got:.15} against {exact:.15}");
    assert!(within_ulps(got, exact, 1e4), "{got} against {exact}");
    let own = first.frechet(&first);
    assert!(own < 1e4 * f64::EPSILON * trace(&first), "a law is {own} from itself");
}

#[test]
fn laws_on_different_axes_share_nothing() {
    let axis = |k: usize| {
        let mut covariance = vec![0.0; 9];
        covariance[4 * k] = 4.0;
        normal(&[0.0; 3], &covariance)
    };
    assert!(within_ulps(axis(0).frechet(&axis(1)), 8.0, 16.0));
    assert!(axis(0).frechet(&axis(0)) < 16.0 * f64::EPSILON);
    let point = normal(&[3.0, 0.0, 0.0], &[0.0; 9]);
    assert!(within_ulps(axis(2).frechet(&point), 13.0, 16.0));
    assert!(within_ulps(point.frechet(&normal(&[0.0; 3], &[0.0; 9])), 9.0, 16.0));
}

#[test]
fn moments_do_not_depend_on_the_parts_they_are_made_of() {
    let (rows, d) = (2500, 5);
    let all = features(5, rows, d, 1e3);
    let whole = Scatter::of(&all, d).normal();
    let mut parts = Scatter::new(d);
    for (i, part) in all.chunks(d * 617).enumerate() {
        if i % 2 == 0 { parts.extend(part) } else { parts.merge(&Scatter::of(part, d)) }
    }
    assert_eq!(parts.count(), rows);
    let parts = parts.normal();
    let column = |j: usize| all.iter().skip(j).step_by(d).map(|x| *x as f64).collect::<Vec<f64>>();
    for i in 0..d {
        let mean = minvel_testing::sum(&column(i)) / rows as f64;
        assert!(within_ulps(whole.mean[i], mean, 32.0) && within_ulps(parts.mean[i], mean, 32.0));
        for j in 0..d {
            let other = minvel_testing::sum(&column(j)) / rows as f64;
            let terms: Vec<f64> = column(i).iter().zip(&column(j)).map(|(x, y)| (x - mean) * (y - other)).collect();
            let expected = minvel_testing::sum(&terms) / (rows - 1) as f64;
            let (a, b) = (whole.covariance[i * d + j], parts.covariance[i * d + j]);
            // differences of numbers near 1000 lose three digits
            assert!(within_ulps(a, expected, 1e4) && within_ulps(b, expected, 1e4), "{a}, {b}, {expected}");
        }
    }
}

#[test]
fn singular_values_are_roots_of_eigenvalues() {
    for (rows, columns) in [(1, 1), (7, 4), (4, 7), (12, 12)] {
        let a = normals(6, rows * columns);
        let n = columns;
        let square: Vec<f64> =
            (0..n * n).map(|k| (0..rows).map(|i| a[i * n + k / n] * a[i * n + k % n]).sum()).collect();
        let mut expected = Eigen::new(&square, n).values;
        let mut got: Vec<f64> = singular_values(&a, rows, columns).iter().map(|s| s * s).collect();
        got.resize(n, 0.0);
        expected.sort_by(|x, y| y.total_cmp(x));
        got.sort_by(|x, y| y.total_cmp(x));
        let size = expected[0].max(1.0);
        for (x, y) in got.iter().zip(&expected) {
            assert!(within_ulps(x / size, y / size, 64.0), "{rows} × {columns}: {x} against {y}");
        }
    }
    assert_eq!(singular_values(&[0.0; 6], 2, 3), [0.0; 2]);
    let huge: Vec<f64> = singular_values(&[3e200, 0.0, 0.0, 4e-200], 2, 2);
    assert!(within_ulps(huge[0] / 3e200, 1.0, 8.0), "{huge:?}");
}

#[test]
fn a_semidefinite_matrix_is_the_square_of_its_root() {
    let n = 9;
    for rank in [0, 1, 4, 9] {
        let a = normals(7, n * rank.max(1));
        let matrix: Vec<f64> =
            (0..n * n).map(|k| (0..rank).map(|c| a[k / n * rank + c] * a[k % n * rank + c]).sum()).collect();
        let (l, r) = semidefinite_root(&matrix, n);
        assert_eq!((r, l.len()), (rank, n * rank));
        for k in 0..n * n {
            let entry: f64 = (0..r).map(|c| l[k / n * r + c] * l[k % n * r + c]).sum();
            assert!(within_ulps(entry, matrix[k], 64.0), "rank {rank}: {entry} against {}", matrix[k]);
        }
    }
}

#[test]
fn five_hundred_features_take_no_time() {
    let (rows, d) = (600, 512);
    let (a, b) = (Scatter::of(&features(8, rows, d, 0.0), d), Scatter::of(&features(9, rows, d, 0.1), d));
    let begun = Instant::now();
    let distance = a.normal().frechet(&b.normal());
    println!("distance {distance:.4} of 512 features in {:.2} s", begun.elapsed().as_secs_f64());
    assert!(distance.is_finite());
}
