//! Comparisons with a stated tolerance, and rules for exact expectations over normal noise.

/// True if two numbers agree within `ulps` rounding errors of f64, relative to the largest of the two and 1.
pub fn within_ulps(got: f64, expected: f64, ulps: f64) -> bool {
    (got - expected).abs() <= ulps * f64::EPSILON * got.abs().max(expected.abs()).max(1.0)
}

/// True if a number agrees with one printed with `digits` digits after the point.
pub fn within_digits(got: f64, printed: f64, digits: i32) -> bool {
    (got - printed).abs() <= 0.5000001 * 10f64.powi(-digits)
}

/// A sum by halves, so that rounding errors grow with the logarithm of the count.
pub fn sum(terms: &[f64]) -> f64 {
    match terms.len() {
        n if n > 8 => sum(&terms[..n / 2]) + sum(&terms[n / 2..]),
        _ => terms.iter().sum(),
    }
}

/// Mean and standard error of independent samples.
pub fn estimate(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// True if the mean of independent samples is within `sigmas` of its own standard errors from what is expected.
pub fn within_sigma(what: &str, samples: &[f64], expected: f64, sigmas: f64) -> bool {
    let (mean, error) = estimate(samples);
    let z = (mean - expected) / error;
    println!("{what}: {mean:.6} ± {error:.6}, expected {expected:.6}, z = {z:+.2}");
    z.abs() < sigmas
}

/// The slope of log |error| against log step, by least squares.
pub fn order(steps: &[f64], errors: &[f64]) -> f64 {
    let logs = |v: &[f64]| v.iter().map(|x| x.abs().ln()).collect::<Vec<f64>>();
    let (x, y) = (logs(steps), logs(errors));
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (mx, my) = (mean(&x), mean(&y));
    let covariance: f64 = x.iter().zip(&y).map(|(a, b)| (a - mx) * (b - my)).sum();
    covariance / x.iter().map(|a| (a - mx).powi(2)).sum::<f64>()
}

/// True if errors vanish with the order expected, give or take `slack`.
pub fn within_order(what: &str, steps: &[f64], errors: &[f64], expected: f64, slack: f64) -> bool {
    let slope = order(steps, errors);
    println!("{what}: order {slope:.4}, expected {expected} ± {slack}");
    (slope - expected).abs() <= slack
}

/// Gauss–Hermite for the standard normal law: Σ w f(z) = E f(z), exactly for polynomials of degree < 2·count.
pub fn gauss_hermite(count: usize) -> (Vec<f64>, Vec<f64>) {
    // Orthonormal Hermite functions do not overflow; roots are found between those of the polynomial before.
    let polynomial = |n: usize, z: f64| {
        let (mut before, mut p) = (0.0, 1.0);
        for k in 0..n {
            let next = (z * p - (k as f64).sqrt() * before) / (k as f64 + 1.0).sqrt();
            (before, p) = (p, next);
        }
        (p, (n as f64).sqrt() * before)
    };
    let mut roots: Vec<f64> = vec![];
    for n in 1..=count {
        let edge = 2.0 * (n as f64).sqrt() + 1.0;
        let walls: Vec<f64> = [-edge].into_iter().chain(roots).chain([edge]).collect();
        roots = walls.windows(2).map(|w| root(w[0], w[1], |z| polynomial(n, z))).collect();
    }
    let weights = roots.iter().map(|&z| polynomial(count, z).1.powi(-2)).collect();
    (roots, weights)
}

/// The root of a function between two points of different sign, by bisection and then Newton's method.
fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> (f64, f64)) -> f64 {
    let rising = f(high).0 > 0.0;
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        if (f(middle).0 > 0.0) == rising { high = middle } else { low = middle }
    }
    (0..3).fold(0.5 * (low + high), |z, _| z - f(z).0 / f(z).1)
}

/// All n-tuples of a rule's nodes, row-major `[count^n, n]`, and the products of their weights.
pub fn tensor_rule((nodes, weights): &(Vec<f64>, Vec<f64>), n: usize) -> (Vec<f64>, Vec<f64>) {
    let count = nodes.len();
    let tuple = |i: usize| (0..n).map(move |k| i / count.pow(k as u32) % count);
    let all = 0..count.pow(n as u32);
    let points = all.clone().flat_map(|i| tuple(i).map(|j| nodes[j])).collect();
    (points, all.map(|i| tuple(i).map(|j| weights[j]).product()).collect())
}
