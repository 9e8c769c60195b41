//! Estimates: their errors are what they say, and combinations are honest.

use minvel::estimate::{Estimate, Line, Moments, OnGrid};
use minvel_engine::random::{Draw, Key, Stream};
use minvel_testing::{within_digits, within_sigma, within_ulps};

fn normals(seed: u64, count: usize) -> Vec<f64> {
    Stream::new(Key::new(seed, 0), 0).samples(Draw::Normal).take(count).collect()
}

#[test]
fn moments_of_a_small_sample_are_those_on_paper() {
    let moments: Moments = [1.0, 2.0, 4.0, 9.0].into_iter().collect();
    // mean 4; squares 9 + 4 + 0 + 25 = 38; fourth powers 81 + 16 + 0 + 625 = 722
    let (s2, m4): (f64, f64) = (38.0 / 3.0, 722.0 / 4.0);
    assert!(within_ulps(moments.mean().mean, 4.0, 4.0));
    assert!(within_ulps(moments.mean().std_error, (s2 / 4.0).sqrt(), 4.0));
    assert!(within_ulps(moments.variance().mean, s2, 4.0));
    assert!(within_ulps(moments.variance().std_error, ((m4 - s2 * s2 / 3.0) / 4.0).sqrt(), 8.0));
}

#[test]
fn merging_parts_is_seeing_all_samples() {
    let samples = normals(1, 1000);
    let whole: Moments = samples.iter().copied().collect();
    for cut in [0, 1, 137, 999, 1000] {
        let mut left: Moments = samples[..cut].iter().copied().collect();
        left.merge(&samples[cut..].iter().copied().collect());
        assert_eq!(left.count(), 1000);
        for (a, b) in [(left.mean(), whole.mean()), (left.variance(), whole.variance())] {
            assert!(within_ulps(a.mean, b.mean, 100.0) && within_ulps(a.std_error, b.std_error, 100.0), "cut {cut}");
        }
    }
}

/// Over many repetitions, (estimate − truth)/error must scatter with variance 1. The twin with errors too small by 1.1 must
/// not: 4000 repetitions tell 1.21 from 1 by nine standard errors.
#[test]
fn standard_errors_cover_the_truth_as_often_as_they_say() {
    let squares = |repetitions: usize, count: usize, z: &dyn Fn(Moments) -> f64| -> Vec<f64> {
        let stream = normals(2, repetitions * count);
        stream.chunks(count).map(|sample| z(sample.iter().copied().collect()).powi(2)).collect()
    };
    let z = |e: Estimate, truth: f64| (e.mean - truth) / e.std_error;
    let covers = |what: &str, squares: &[f64], expected: f64| {
        assert!(within_sigma(&format!("{what}: z²"), squares, expected, 4.0));
        let twin: Vec<f64> = squares.iter().map(|s| 1.21 * s).collect();
        assert!(!within_sigma(&format!("{what}: z² with errors too small"), &twin, expected, 4.0));
    };
    // Student's t with 199 degrees of freedom has variance 199/197.
    covers("mean", &squares(4000, 200, &|m| z(m.mean(), 0.0)), 199.0 / 197.0);
    // The error of s² depends on s²: an effect of order 1/count, which so many samples make small beside the resolution.
    covers("variance", &squares(2000, 4000, &|m| z(m.variance(), 1.0)), 1.0);
}

#[test]
fn an_unknown_error_is_never_taken_for_none() {
    let one = Estimate::of([3.0]);
    assert!(one.std_error.is_nan());
    assert!((one + Estimate::exact(1.0)).std_error.is_nan());
    assert!(Estimate::across(&[Estimate::exact(2.0)]).std_error.is_nan());
    assert!(Estimate::pooled(&[one, Estimate::exact(1.0)]).std_error.is_nan());
    assert!(one.p_value(Estimate::exact(3.0)).is_nan());
}

#[test]
fn errors_combine_as_they_should() {
    let estimate = |mean, std_error, count| Estimate { mean, std_error, count };
    let difference = estimate(5.0, 3.0, 10) - estimate(1.0, 4.0, 20);
    assert_eq!((difference.mean, difference.std_error, difference.count), (4.0, 5.0, 10));
    // pooling the parts of a sample gives the mean of all
    let samples = normals(3, 300);
    let pooled = Estimate::pooled(&[Estimate::of(samples[..100].to_vec()), Estimate::of(samples[100..].to_vec())]);
    assert!(within_ulps(pooled.mean, Estimate::of(samples.clone()).mean, 100.0));
    assert_eq!(pooled.count, 300);
    // common noise cancels in pairs, and only there
    let (a, b): (Vec<f64>, Vec<f64>) = samples.iter().map(|x| (x + 1.0, *x)).unzip();
    let (paired, apart) = (Estimate::paired(&a, &b), Estimate::of(a) - Estimate::of(b));
    assert!(paired.std_error < 1e-10 && apart.std_error > 0.05);
}

#[test]
fn the_z_test_gives_the_p_values_of_the_tables() {
    let p = |z: f64| Estimate { mean: z, std_error: 1.0, count: 2 }.p_value(Estimate::exact(0.0));
    for (z, table) in [(0.0, 1.0), (1.0, 0.3173), (1.96, 0.0500), (2.5758, 0.0100), (-1.0, 0.3173)] {
        assert!(within_digits(p(z), table, 4), "z = {z}: {}", p(z));
    }
}

#[test]
fn a_line_finds_its_slope_within_its_own_error() {
    let noise = normals(4, 400);
    let z: Vec<f64> = noise
        .chunks(8)
        .map(|noise| {
            let y = |x: f64, n: f64| Estimate { mean: 2.0 - 3.0 * x + 0.1 * n, std_error: 0.1, count: 1 };
            let points: Vec<_> = noise.iter().enumerate().map(|(i, n)| (i as f64, y(i as f64, *n))).collect();
            let line = Line::weighted(&points);
            (line.slope.mean + 3.0) / line.slope.std_error
        })
        .collect();
    let squares: Vec<f64> = z.iter().map(|z| z * z).collect();
    assert!(within_sigma("slope: z²", &squares, 1.0, 4.0));
    assert!(!within_sigma(
        "slope: z² with errors too small by 3",
        &squares.iter().map(|s| 9.0 * s).collect::<Vec<_>>(),
        1.0,
        4.0
    ));
}

#[test]
fn a_power_law_gives_its_exponent_exactly() {
    let points: Vec<_> = [1e-4, 1e-3, 1e-2].map(|x: f64| (x, Estimate::exact(5.0 * x.powf(-1.5)))).to_vec();
    let line = Line::power(&points);
    assert!(within_ulps(line.slope.mean, -1.5, 50.0));
    assert!(within_ulps(line.at(1.0f64.ln()), 5f64.ln(), 100.0));
}

#[test]
fn the_divergence_of_two_gaussians_is_its_closed_form() {
    let h = 0.01;
    let x: Vec<f64> = (-2000..=2000).map(|i| i as f64 * h).collect();
    let (weights, m, s) = (vec![h; x.len()], 0.3, 1.2f64);
    let log_p: Vec<f64> = x.iter().map(|x| 7.0 - 0.5 * x * x).collect();
    let log_q: Vec<f64> = x.iter().map(|x| -0.5 * ((x - m) / s).powi(2)).collect();
    let grid = OnGrid::new(&weights, &log_p, &log_q);
    let exact = s.ln() + (1.0 + m * m) / (2.0 * s * s) - 0.5;
    assert!(within_ulps(grid.divergence(), exact, 1e4), "{} {exact}", grid.divergence());
    assert!(OnGrid::new(&weights, &log_p, &log_p).divergence() == 0.0);
    // inside ±1.96 hold 95 %: the largest difference there is at −1.96, where log p − log q = log s − x²/2 + (x−m)²/2s²
    let at = |x: f64| (s.ln() - 0.5 * x * x + 0.5 * ((x - m) / s).powi(2)).abs();
    let largest = grid.largest_log_error(0.95);
    assert!(largest <= at(1.97).max(at(0.0)).max(at(-1.97)) && largest >= at(1.95).max(at(-1.95)), "{largest}");
}
