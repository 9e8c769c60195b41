//! Diagnostics against closed forms: stationary autoregressive chains x' = φx + √(1−φ²)z have correlations φᵗ.

use minvel::estimate::{
    ChainSummary, Estimate, bridge, effective_sample_size, log_mean_exp, rank_r_hat, split_r_hat, weighted_sample_size,
};
use minvel_engine::random::{Key, Stream};
use minvel_testing::{estimate, within_sigma};

const SIGMAS: f64 = 4.0;
const REPEATS: u32 = 200;

/// Chains of variance 1, from one stream of random numbers.
fn chains(phi: f64, count: usize, length: usize, repeat: u32) -> Vec<Vec<f64>> {
    let mut stream = Stream::new(Key::new(5, repeat), 0);
    let mut chain = || {
        let mut x = stream.normal();
        (0..length)
            .map(|_| {
                let now = x;
                x = phi * x + (1.0 - phi * phi).sqrt() * stream.normal();
                now
            })
            .collect()
    };
    (0..count).map(|_| chain()).collect()
}

/// τ of n draws: n times the variance of their mean, (1+φ)/(1−φ) − 2φ(1−φⁿ)/(n(1−φ)²).
fn correlation_time(phi: f64, n: usize) -> f64 {
    let length = n as f64;
    (1.0 + phi) / (1.0 - phi) - 2.0 * phi * (1.0 - phi.powi(n as i32)) / (length * (1.0 - phi).powi(2))
}

#[test]
fn the_effective_sample_size_of_autoregressive_chains_is_the_closed_form() {
    for (phi, length) in [(0.0, 200), (0.5, 16), (0.5, 400), (0.9, 400), (-0.4, 200)] {
        let times: Vec<f64> = (0..REPEATS)
            .map(|r| {
                let traces = chains(phi, 16, length, r);
                16.0 * length as f64 / effective_sample_size(&traces)
            })
            .collect();
        let (mean, error) = estimate(&times);
        let expected = correlation_time(phi, length);
        // Where the sequence is cut depends on its noise: a bias of up to half the error of one estimate.
        let bias = 0.5 * expected * (4.0 * expected / (16.0 * length as f64)).sqrt();
        println!("φ = {phi}, {length} draws: τ = {mean:.4} ± {error:.4}, expected {expected:.4} ± {bias:.4}");
        let near = |expected: f64| (mean - expected).abs() < SIGMAS * error + bias;
        assert!(near(expected));
        assert!(phi == 0.0 || !near(1.0), "draws taken for independent");
    }
}

#[test]
fn standard_errors_from_the_effective_sample_size_are_those_of_the_mean() {
    let scores = |naive: bool| -> Vec<f64> {
        let score = |r| {
            let ChainSummary { mean, effective, .. } = ChainSummary::of(&chains(0.8, 8, 250, r));
            let error = if naive { mean.std_error * (effective / 2000.0).sqrt() } else { mean.std_error };
            (mean.mean / error).powi(2)
        };
        (0..REPEATS).map(score).collect()
    };
    assert!(within_sigma("squared scores", &scores(false), 1.0, SIGMAS));
    assert!(!within_sigma("squared scores, draws taken for independent", &scores(true), 1.0, SIGMAS));
}

#[test]
fn r_hat_of_autoregressive_chains_is_the_closed_form() {
    let (phi, half) = (0.7, 25);
    let r_squared: Vec<f64> = (0..REPEATS).map(|r| split_r_hat(&chains(phi, 200, 2 * half, r)).powi(2)).collect();
    // V = 1 and W = (1 − τ/n)n/(n−1).
    let n = half as f64;
    let expected = (n - 1.0) / (n - correlation_time(phi, half));
    assert!(within_sigma("R̂²", &r_squared, expected, SIGMAS));
    let whole = (2.0 * n - 1.0) / (2.0 * n - correlation_time(phi, 2 * half));
    assert!(!within_sigma("R̂², as if not split", &r_squared, whole, SIGMAS));
}

#[test]
fn r_hat_sees_chains_with_other_means_other_spreads_and_trends() {
    let good = chains(0.3, 8, 400, 0);
    let with = |f: &dyn Fn(usize, usize, f64) -> f64| -> Vec<Vec<f64>> {
        good.iter().enumerate().map(|(c, t)| t.iter().enumerate().map(|(i, x)| f(c, i, *x)).collect()).collect()
    };
    let threshold = 1.01;
    assert!(rank_r_hat(&good) < threshold && split_r_hat(&good) < threshold);
    let shifted = with(&|c, _, x| if c == 0 { x + 1.0 } else { x });
    assert!(rank_r_hat(&shifted) > threshold && split_r_hat(&shifted) > threshold);
    let drifting = with(&|_, i, x| x + i as f64 / 400.0);
    assert!(rank_r_hat(&drifting) > threshold && split_r_hat(&drifting) > threshold);
    let wider = with(&|c, _, x| if c == 0 { 3.0 * x } else { x });
    assert!(rank_r_hat(&wider) > threshold, "{}", rank_r_hat(&wider));
    assert!(split_r_hat(&wider) < threshold, "plain R̂ does not see the spread, which is why ranks are folded");
    let heavy = with(&|_, _, x| x.powi(15));
    assert!(rank_r_hat(&heavy) < threshold, "ranks need no moments");
}

#[test]
fn chains_that_disagree_are_worth_no_more_than_their_number() {
    let stuck: Vec<Vec<f64>> =
        (0..8).map(|c| chains(0.0, 1, 200, 0)[0].iter().map(|x| x + 100.0 * c as f64).collect()).collect();
    let effective = effective_sample_size(&stuck);
    assert!(effective < 9.0, "{effective}");
    assert!(effective_sample_size(&[vec![1.0; 8], vec![1.0; 8]]).is_nan());
}

#[test]
fn log_weights_of_a_normal_law_have_its_closed_forms() {
    let (sigma, count) = (0.5, 2000);
    let runs: Vec<(Estimate, f64)> = (0..REPEATS)
        .map(|r| {
            let mut stream = Stream::new(Key::new(6, r), 0);
            let weights: Vec<f64> = (0..count).map(|_| 700.0 + sigma * stream.normal()).collect();
            (log_mean_exp(&weights), weighted_sample_size(&weights) / count as f64)
        })
        .collect();
    let means: Vec<f64> = runs.iter().map(|r| r.0.mean).collect();
    assert!(within_sigma("log mean", &means, 700.0 + 0.5 * sigma * sigma, SIGMAS));
    let square = sigma * sigma;
    let errors: Vec<f64> = runs.iter().map(|r| r.0.std_error.powi(2) * count as f64).collect();
    // Both are ratios of means of 2000 draws: biased by a few thousandths of themselves.
    let slack = 5.0 / count as f64;
    let near = |what: &str, samples: &[f64], expected: f64| {
        let (mean, error) = estimate(samples);
        println!("{what}: {mean:.5} ± {error:.5}, expected {expected:.5}");
        (mean - expected).abs() < SIGMAS * error + slack * expected
    };
    assert!(near("variance of the log mean", &errors, square.exp_m1()));
    assert!(near("effective share", &runs.iter().map(|r| r.1).collect::<Vec<_>>(), (-square).exp()));
}

/// m = N(0, 1) and p̃ = Z·N(1, s²): log weights at draws of m, and minus those at draws of p.
fn two_normals(s: f64, log_z: f64, count: [usize; 2], repeat: u32) -> [Vec<f64>; 2] {
    let mut stream = Stream::new(Key::new(17, repeat), 0);
    let weight = |x: f64| log_z - 0.5 * ((x - 1.0) / s).powi(2) - s.ln() + 0.5 * x * x;
    let forward = (0..count[0]).map(|_| weight(stream.normal())).collect();
    let reverse = (0..count[1]).map(|_| -weight(1.0 + s * stream.normal())).collect();
    [forward, reverse]
}

#[test]
fn a_bridge_finds_the_ratio_of_partition_functions_with_its_error() {
    for (s, count) in [(0.7, [400, 400]), (1.5, [1000, 200])] {
        let found: Vec<Estimate> = (0..REPEATS)
            .map(|r| {
                let [forward, reverse] = two_normals(s, 2.3, count, r);
                bridge(&forward, &reverse)
            })
            .collect();
        let means: Vec<f64> = found.iter().map(|e| e.mean).collect();
        assert!(within_sigma("log Z", &means, 2.3, SIGMAS));
        assert!(!within_sigma("another log Z", &means, 2.35, SIGMAS), "the test has no power");
        // the stated error is the scatter, up to its own error
        let stated = found.iter().map(|e| e.std_error).sum::<f64>() / found.len() as f64;
        let scatter = estimate(&means).1 * (means.len() as f64).sqrt();
        println!("s = {s}: scatter {scatter:.4}, stated {stated:.4}");
        assert!((scatter / stated - 1.0).abs() < 4.0 / (2.0 * f64::from(REPEATS)).sqrt());
        // where importance sampling from one side has no variance at all
        if s > 1.4 {
            let forward: Vec<f64> =
                (0..REPEATS).map(|r| log_mean_exp(&two_normals(s, 2.3, count, r)[0]).mean).collect();
            assert!(estimate(&forward).1 > 1.5 * estimate(&means).1, "the bridge is no better than one side");
        }
    }
}
