//! Special functions against values of arbitrary precision arithmetic (60 digits, rounded to f64).

use minvel::special::*;
use std::f64::consts::PI;

/// Error in rounding errors of `scale`, the size of the largest term that goes into the value.
fn ulps(got: f64, expected: f64, scale: f64) -> f64 {
    (got - expected).abs() / (f64::EPSILON * scale.abs().max(f64::MIN_POSITIVE))
}

/// Asserts that a function is within `limit` rounding errors, and says how near it comes.
fn check(what: &str, at: &[f64], got: f64, expected: f64, scale: f64, limit: f64) {
    let error = ulps(got, expected, scale);
    assert!(error <= limit, "{what} at {at:?}: {got:e} instead of {expected:e}, {error:.1} ulps");
}

/// v, x, log e^{-x}I_v, I_{v+1}/I_v, 1 minus that, its derivative, log e^x K_v, K_{v+1}/K_v.
const BESSEL: &[[f64; 8]] = &[
    [0.0, 1e-08, -9.999999975e-09, 5e-09, 0.999999995, 0.5, 2.91974782742244, 5394729.015176565],
    [
        0.0,
        0.3,
        -0.2776253113779581,
        0.14833742694087526,
        0.8516625730591247,
        0.48353791796564294,
        0.616604794192566,
        2.226652797637961,
    ],
    [
        0.0,
        29.0,
        -2.5981989628497697,
        0.9826045649212051,
        0.017395435078794902,
        0.0006053529642435445,
        -1.4620951260975086,
        1.017097614057055,
    ],
    [
        0.0,
        31.0,
        -2.6318325376335863,
        0.9837364720129979,
        0.016263527987002126,
        0.0005291190503558034,
        -1.4951715534016368,
        1.0160029569430573,
    ],
    [
        0.0,
        1000.0,
        -4.3726911101305355,
        0.9994998748748043,
        0.0005001251251957198,
        5.002503757832876e-07,
        -3.228211224411344,
        1.000499875124805,
    ],
    [
        0.0,
        1000000.0,
        -7.826693687186747,
        0.999999499999875,
        5.00000125000125e-07,
        5.00000250000375e-13,
        -6.6819640513373475,
        1.000000499999875,
    ],
    [
        0.5,
        2.0,
        -1.283997570310532,
        0.537314720727548,
        0.4626852792724519,
        0.1739781701619289,
        -0.12078223763524522,
        1.5,
    ],
    [
        0.5,
        1e-08,
        -9.43613173462091,
        3.3333333333333334e-09,
        0.9999999966666666,
        0.3333333333333333,
        9.43613172462091,
        100000001.0,
    ],
    [0.5, 1000000.0, -7.82669381218681, 0.999999, 1e-06, 1e-12, -6.68196392633741, 1.000001],
    [
        1.0,
        7.5,
        -1.980203003997499,
        0.8077648629727797,
        0.19223513702722028,
        0.024409980957454523,
        -0.7346591343160487,
        1.205905519481757,
    ],
    [
        3.5,
        1e-08,
        -69.35213431663553,
        1.111111111111111e-09,
        0.9999999988888889,
        0.1111111111111111,
        67.40622416758022,
        700000000.0,
    ],
    [
        3.5,
        10.0,
        -2.6957196049879455,
        0.6644859669060801,
        0.33551403309391986,
        0.026869626260027694,
        -0.35735050346703534,
        1.453541076487252,
    ],
    [
        3.5,
        28.0,
        -2.8029932992286035,
        0.8650512660737552,
        0.13494873392624482,
        0.004528802471691762,
        -1.2299675845802478,
        1.1502251670296408,
    ],
    [
        3.5,
        40.0,
        -2.915200922858415,
        0.9038396835500591,
        0.0961603164499409,
        0.0023058897301171913,
        -1.4705651716951844,
        1.1036532372161962,
    ],
    [
        15.5,
        1.0,
        -41.00639085051392,
        0.030276836804152992,
        0.9697231631958471,
        0.030224535420238986,
        37.570318219553165,
        31.034438840378694,
    ],
    [
        15.5,
        24.0,
        -7.442604278209667,
        0.5299521530398431,
        0.47004784696015695,
        0.01254784476864398,
        3.397045577926198,
        1.8510104713412405,
    ],
    [
        15.5,
        27.0,
        -6.973182394504313,
        0.5650943276013191,
        0.4349056723986809,
        0.010926975607545996,
        2.841750530881819,
        1.741091487613294,
    ],
    [
        15.5,
        10000.0,
        -5.5361093168520545,
        0.9984012001192977,
        0.0015987998807022836,
        1.5975996428094174e-07,
        -4.367379435682651,
        1.0016011998792982,
    ],
    [
        31.5,
        1e-08,
        -681.9067650457522,
        1.5384615384615385e-10,
        0.9999999998461538,
        0.015384615384615385,
        677.7636303193606,
        6300000000.0,
    ],
    [
        31.5,
        0.5,
        -123.98753476716112,
        0.00769186616244261,
        0.9923081338375573,
        0.015381966402284999,
        119.84427395333655,
        126.00819615201841,
    ],
    [
        31.5,
        100.0,
        -8.165555741585237,
        0.7288847028091355,
        0.2711152971908645,
        0.0022408802129914944,
        2.819941357339783,
        1.3679820293956422,
    ],
    [
        499.0,
        1e-08,
        -12142.915984703377,
        1.0000000000000001e-11,
        0.99999999999,
        0.001,
        12136.010231427066,
        99800000000.0,
    ],
    [
        499.0,
        1.0,
        -2951.9957934613963,
        0.000999999001997996,
        0.999000000998002,
        0.0009999970059979641,
        2945.0900381770566,
        998.0010040150502,
    ],
    [
        499.0,
        400.0,
        -286.58658049815153,
        0.3508410446722581,
        0.6491589553277419,
        0.0006850523043140029,
        279.43269663320746,
        2.8468190369451394,
    ],
    [
        499.0,
        700.0,
        -175.56616481422012,
        0.5147431588087175,
        0.4852568411912825,
        0.0004274581026108921,
        168.1164902803117,
        1.9414046687927884,
    ],
    [
        499.0,
        10000.0,
        -17.972186546471598,
        0.9512943539059403,
        0.04870564609405965,
        4.746271476071814e-06,
        8.067455537632995,
        1.0511941055236567,
    ],
    [
        499.0,
        1000000.0,
        -7.951194246853661,
        0.9995006245004917,
        0.0004993754995082497,
        4.992509989074989e-10,
        -6.557463616170917,
        1.0004996245002427,
    ],
    [
        2.3,
        11.0,
        -2.3574275148268975,
        0.7681711431019207,
        0.23182885689807928,
        0.01884414932632883,
        -0.7542578146831396,
        1.2735436849036266,
    ],
];

#[test]
fn bessel_functions_agree_with_sixty_digits_from_order_0_to_500_and_argument_1e_8_to_1e6() {
    for &[v, x, log_i, ratio, complement, slope, log_k, k_ratio] in BESSEL {
        let at = [v, x];
        // The largest term of the logarithms, v arsinh(v/x) or v log x/2 and log Γ: what they can know.
        let scale = 1.0 + v * (v / x).asinh() + v * (0.5 * x).ln().abs();
        check("log I", &at, log_bessel_i_scaled(v, x), log_i, scale, 8.0);
        check("log K", &at, log_bessel_k_scaled(v, x), log_k, scale, 8.0);
        check("I ratio", &at, bessel_i_ratio(v, x), ratio, ratio, 8.0);
        check("1 - I ratio", &at, bessel_i_ratio_complement(v, x), complement, complement, 64.0);
        check("I slope", &at, bessel_i_ratio_slope(v, x), slope, slope, 64.0);
        check("K ratio", &at, bessel_k_ratio(v, x), k_ratio, k_ratio, 32.0);
        check("log I", &at, log_bessel_i(v, x), log_i + x, scale + x, 8.0);
        check("log K", &at, log_bessel_k(v, x), log_k - x, scale + x, 8.0);
    }
}

#[test]
fn the_two_regions_of_the_bessel_functions_meet() {
    // On both sides of p = 30 the recurrences hold, and the Wronskian I_v K_{v+1} + I_{v+1} K_v = 1/x ties I to K.
    for (v, x) in [(0.0, 29.99), (0.0, 30.01), (28.5, 9.2), (29.0, 8.0), (10.0, 28.28), (10.0, 28.3)] {
        let i = |k: f64| (log_bessel_i_scaled(v + k, x) - log_bessel_i_scaled(v, x)).exp();
        check("I recurrence", &[v, x], i(2.0) + 2.0 * (v + 1.0) / x * i(1.0), 1.0, 1.0, 256.0);
        let k = |k: f64| (log_bessel_k_scaled(v + k, x) - log_bessel_k_scaled(v, x)).exp();
        check("K recurrence", &[v, x], k(2.0) - 2.0 * (v + 1.0) / x * k(1.0), 1.0, k(2.0), 256.0);
        let product = |a: f64, b: f64| (log_bessel_i(v + a, x) + log_bessel_k(v + b, x)).exp();
        check("Wronskian", &[v, x], (product(0.0, 1.0) + product(1.0, 0.0)) * x, 1.0, 1.0, 256.0);
    }
}

/// m, κ, log mean e^{κμ·z}, KL to uniform, its derivative.
const SPHERE: &[(usize, [f64; 4])] = &[
    (2, [1e-08, 2.5e-17, 2.5e-17, 5e-09]),
    (3, [1e-08, 1.6666666666666667e-17, 1.6666666666666667e-17, 3.3333333333333334e-09]),
    (1000, [1e-08, 5.0000000000000005e-20, 5.0000000000000005e-20, 1.0000000000000001e-11]),
    (2, [0.5, 0.06154971918548131, 0.05970008710491967, 0.22809735636827855]),
    (3, [29.9, 25.808994339043412, 3.091005660956586, 0.033444816053511704]),
    (3, [31.0, 26.872865614954907, 3.1271343850450917, 0.03225806451612903]),
    (9, [80.0, 66.35724407584965, 9.718674497820544, 0.04809080728677344]),
    (9, [95.0, 80.68181896582124, 10.381992576057998, 0.04075510663229402]),
    (33, [125.0, 85.88695942238803, 24.077036390381956, 0.11257407104371576]),
    (1000, [1.0, 0.0004999997504993334, 0.0004999992514986627, 0.0009999970059979641]),
    (1000, [600.0, 157.2193589111211, 123.87033544044675, 0.299965120209806]),
    (1000, [700.0, 206.44104146026754, 153.8791697058347, 0.29922067182762446]),
    (1000, [1000000.0, 996049.1053307902, 3451.5191697016303, 0.0004992509989074989]),
    (2, [1000000.0, 999992.1733063128, 7.326693562186622, 5.00000250000375e-07]),
    (65, [100000.0, 99732.31780816424, 235.68715188523632, 0.0003199007985168908]),
];

#[test]
fn divergences_on_the_sphere_keep_their_digits_for_tiny_and_for_huge_concentrations() {
    for &(m, [kappa, log_mean, divergence, slope]) in SPHERE {
        let at = [m as f64, kappa];
        check("log mean", &at, log_mean_exp(m, kappa), log_mean, log_mean, 64.0);
        // Far out log Γ(m/2) is one of the terms.
        let far = kappa * kappa > 450.0 * m as f64;
        let scale = divergence + if far { log_gamma(0.5 * m as f64).abs() } else { 0.0 };
        check("KL", &at, vmf_divergence(m, kappa), divergence, scale, 64.0);
        check("dKL", &at, vmf_divergence_slope(m, kappa), slope, slope, 64.0);
    }
    assert_eq!((mean_resultant(5, 0.0), mean_resultant_slope(5, 0.0), vmf_divergence(5, 0.0)), (0.0, 0.2, 0.0));
}

const LOG_GAMMA: &[[f64; 2]] = &[
    [0.25, 1.2880225246980774],
    [0.5, 0.5723649429247001],
    [1.0, 0.0],
    [1.5, -0.12078223763524522],
    [2.0, 0.0],
    [3.7, 1.428072326665388],
    [11.5, 16.292000476567242],
    [12.0, 17.502307845873887],
    [16.5, 29.277754515040815],
    [33.0, 81.55795945611504],
    [500.0, 2605.115850361734],
    [1000000.0, 12815504.569147611],
];

#[test]
fn log_gamma_agrees_with_sixty_digits() {
    for &[x, expected] in LOG_GAMMA {
        // Arguments below 12 are moved up, to where log Γ is 17, unless twice the argument is whole.
        let scale = if x < 12.0 && (2.0 * x).fract() != 0.0 { 17.0 } else { expected };
        check("log Γ", &[x], log_gamma(x), expected, scale, 4.0);
    }
}

/// x, erf x, erfc x.
const ERROR_FUNCTION: &[[f64; 3]] = &[
    [-6.0, -1.0, 2.0],
    [-2.0, -0.9953222650189527, 1.9953222650189528],
    [-0.5, -0.5204998778130465, 1.5204998778130465],
    [0.0, 0.0, 1.0],
    [1e-05, 1.1283791670579e-05, 0.9999887162083294],
    [0.7, 0.6778011938374184, 0.32219880616258156],
    [1.49, 0.9648978648432042, 0.03510213515679579],
    [1.5, 0.9661051464753108, 0.033894853524689274],
    [2.5, 0.999593047982555, 0.0004069520174449589],
    [5.0, 0.9999999999984626, 1.537459794428035e-12],
    [20.0, 1.0, 5.395865611607901e-176],
];

#[test]
fn the_error_function_keeps_its_digits_in_the_tail() {
    for &[x, inside, outside] in ERROR_FUNCTION {
        check("erf", &[x], erf(x), inside, inside, 8.0);
        // Near 0 erfc is 1 less something; far out it is an exponential of x².
        let scale = if (0.0..1.5).contains(&x) { 1.0 } else { outside * (1.0 + x * x) };
        check("erfc", &[x], erfc(x), outside, scale, 8.0);
        assert!(minvel_testing::within_ulps(normal_cdf(-x * 2f64.sqrt()), 0.5 * outside, 8.0));
    }
}

#[test]
fn jacobi_rotations_diagonalise_a_symmetric_matrix() {
    let n = 6;
    let matrix: Vec<f64> = (0..n * n).map(|i| ((1 + i / n) as f64 * (1 + i % n) as f64).sqrt().sin() * 3.0).collect();
    let Eigen { values, vectors } = Eigen::new(&matrix, n);
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let entry = |d: &dyn Fn(usize) -> f64| (0..n).map(|k| vectors[i * n + k] * d(k) * vectors[j * n + k]).sum();
        check("QΛQᵀ", &[i as f64, j as f64], entry(&|k| values[k]), matrix[i * n + j], 10.0, 16.0);
        check("QQᵀ", &[i as f64, j as f64], entry(&|_| 1.0), if i == j { 1.0 } else { 0.0 }, 1.0, 16.0);
    }
}

#[test]
fn watsons_mean_and_spread_agree_with_quadrature_near_and_far() {
    for m in [2, 3, 4, 9] {
        for kappa in [1e-3f64, 0.7, 12.0, 49.0, 60.0, 200.0, 5e3, 1e6] {
            // In angles from the pole, which sharp laws are near: f = sin², so that the weight is sin^{m−2}.
            let top = std::f64::consts::FRAC_PI_2.min(12.0 / kappa.sqrt());
            let (nodes, weights) = minvel::manifold::quadrature::interval(0.0, top, 200);
            let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
                let term = |(t, w): (&f64, &f64)| w * t.sin().powi(m as i32 - 2) * f(t.sin().powi(2));
                nodes.iter().zip(&weights).map(term).sum()
            };
            let area = (log_gamma(0.5 * m as f64) - log_gamma(0.5 * (m as f64 - 1.0))).exp() * 2.0 / PI.sqrt();
            let (mean, spread) = (sum(&|f| (-kappa * f).exp()), sum(&|f| f * (-kappa * f).exp()));
            let (own, other) = (log_watson_mean(m, kappa), (area * mean).ln());
            assert!((own - other).abs() < 1e-12 * (1.0 + other.abs()), "m = {m}, κ = {kappa}: {own}, not {other}");
            let (own, other) = (watson_spread(m, kappa), spread / mean);
            assert!((own - other).abs() < 1e-12 * other, "m = {m}, κ = {kappa}: {own}, not {other}");
        }
    }
}
