//! Facts F47–F51 of docs/math §6.F: the schedule, annealed importance sampling of known integrals, and the leapfrog.

use crate::support::sampling::Untested;
use crate::support::values;
use minvel::Manifold;
use minvel::energy::VonMisesFisher;
use minvel::estimate::Estimate;
use minvel::manifold::{Euclidean, Sphere};
use minvel::sampler::{Annealing, AnnealingSchedule, ChartLaw, Hamiltonian, LogWeights, Metropolis, Spot, leapfrog};
use minvel::special::log_mean_exp;
use minvel_engine::{Expr, Graph, Options, State};
use minvel_testing::within_digits;
use std::f64::consts::TAU;
use std::sync::Arc;

/// Standard errors that annealing may be off, and that what is wrong must be off by at least.
const SIGMAS: f64 = 3.0;

#[test]
fn fact_47_the_sigmoid_schedule_has_its_temperatures() {
    let betas = AnnealingSchedule::Sigmoid { count: 1000 }.betas();
    assert!(betas.len() == 1000 && betas[0] == 0.0 && betas[999] == 1.0);
    assert!(within_digits(betas[1], 0.00014728874537, 14) && within_digits(betas[2], 0.00029571861346, 14));
    assert!(within_digits(betas[499], 0.49896164831, 11) && within_digits(betas[998], 0.99985271125, 11));
    let largest = betas.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max);
    assert!(within_digits(largest, 0.00207670337, 11));
    let linear = AnnealingSchedule::Linear { count: 1000 }.betas();
    assert!(!within_digits(linear[1], betas[1], 11));
}

/// The standard score of an estimate.
fn score(what: &str, estimate: Estimate, exact: f64) -> f64 {
    let z = (estimate.mean - exact) / estimate.std_error;
    println!("{what}: {:.4} ± {:.4}, exact {exact:.4}, z = {z:+.2}", estimate.mean, estimate.std_error);
    z
}

/// −log p(x|z) for x ~ N(Wz + b, σ²I), each row with its own x; W given by its columns.
fn likelihood<'g>(z: Expr<'g>, x: Expr<'g>, columns: &[f64], bias: f64, variance: f64) -> Expr<'g> {
    let (n, d) = (z.shape().features(), x.shape().features());
    let mean = z.matmul(z.graph().table(columns, [n, d])) + bias;
    0.5 / variance * (x - mean).square().sum(-1) + 0.5 * d as f64 * (TAU * variance).ln()
}

/// x ~ N(Wz + b, σ²I), z ~ N(0, I).
struct Linear {
    /// Columns of W.
    columns: &'static [f64],
    latent: usize,
    bias: f64,
    variance: f64,
}

impl Linear {
    /// log p(x) of each observation from `chains` chains.
    fn evidence(&self, observations: &[f64], chains: usize, annealing: &Annealing) -> LogWeights {
        let d = self.columns.len() / self.latent;
        let rows: Vec<f32> = observations.chunks(d).flat_map(|x| x.repeat(chains)).map(|x| x as f32).collect();
        let graph = Graph::new();
        let x = graph.input_rows("x", rows.len() / d, [d]);
        let extra = |z| likelihood(z, x, self.columns, self.bias, self.variance);
        let mut annealed = annealing
            .compile::<f32>(&graph, &extra, rows.len() / d, &Options { threads: 1, ..Options::default() })
            .unwrap();
        let weights = annealed.run(&mut State::new(1), &[("x", &rows)], None, 3).unwrap();
        println!("acceptance {:?}, step {:?}", weights.acceptance, weights.steps);
        weights
    }

    fn annealing(&self, tested: bool) -> Annealing {
        let annealing = Annealing::hamiltonian(Arc::new(Euclidean(self.latent)));
        let untested = Untested(Hamiltonian::new(Euclidean(self.latent), Hamiltonian::LEAPFROGS));
        if tested { annealing } else { Annealing { sampler: Arc::new(untested), ..annealing } }
    }
}

#[test]
fn fact_48_annealing_finds_the_evidence_of_a_line() {
    let exact = [(3.0, -1.7236574894), (5.0, -2.1236574894), (-2.0, -4.2236574894), (8.0, -4.2236574894)];
    let model = Linear { columns: &[2.0], latent: 1, bias: 3.0, variance: 1.0 };
    let scores = |tested: bool| -> Vec<f64> {
        let weights = model.evidence(&exact.map(|(x, _)| x), 256, &model.annealing(tested));
        let found = exact.iter().zip(weights.log_partitions(256));
        found.map(|((x, exact), found)| score(&format!("x = {x}"), found, *exact)).collect()
    };
    assert!(scores(true).iter().all(|z| z.abs() < SIGMAS));
    assert!(scores(false).iter().any(|z| z.abs() > SIGMAS), "untested trajectories are found out");
}

#[test]
fn fact_49_annealing_finds_the_evidence_of_a_linear_model() {
    // W = ((1,0),(1,1)).
    let model = Linear { columns: &[1.0, 1.0, 0.0, 1.0], latent: 2, bias: 0.0, variance: 0.5 };
    let evidence = |tested| model.evidence(&[1.0, -1.0], 512, &model.annealing(tested)).log_partition();
    assert!(score("tested", evidence(true), -3.4345866).abs() < SIGMAS);
    assert!(score("untested", evidence(false), -3.4345866).abs() > SIGMAS);
}

/// log of the mean of e^{κμ·z} over the sphere in m coordinates, by corrected Langevin steps.
/// 16 runs of 16 chains, each with its own step size.
fn spherical(m: usize, kappa: f64, charts: ChartLaw) -> Estimate {
    let sphere: Arc<dyn Manifold> = Arc::new(Sphere(m - 1));
    let sampler = Arc::new(Metropolis { charts, ..Metropolis::on(sphere.clone()) });
    let annealing = Annealing { sampler, ..Annealing::langevin(sphere.clone()) };
    let law = VonMisesFisher::new(&vec![1.0; m], kappa);
    let options = Options { replicas: 16, threads: 1, ..Options::default() };
    let weights = annealing.run::<f32>(&law, 16, &options, &State::new(16), None, 4).unwrap();
    weights.log_partition() - Estimate::exact(sphere.volume().unwrap().ln())
}

/// m, κ, the exact value, and the one of the official code as an independent program found it.
const SPHERICAL: [(usize, f64, f64, f64); 4] = [
    (3, 5.0, 2.6973695060, 2.7309),
    (9, 10.0, 4.1249842723, 4.2104),
    (9, 40.0, 29.0534726905, 29.2437),
    (33, 100.0, 64.2162691768, 64.5610),
];

#[test]
fn fact_50_annealing_on_spheres_is_exact_with_a_chart_drawn_independently_of_the_state() {
    for (m, kappa, exact, _) in SPHERICAL {
        assert!(within_digits(log_mean_exp(m, kappa), exact, 10));
        let found = spherical(m, kappa, ChartLaw::Independent);
        assert!(score(&format!("m = {m}, κ = {kappa}"), found, exact).abs() < SIGMAS);
    }
}

#[test]
fn fact_50_annealing_on_spheres_is_too_high_with_a_chart_chosen_by_the_state() {
    for (m, kappa, exact, official) in [SPHERICAL[0], SPHERICAL[2]] {
        let found = spherical(m, kappa, ChartLaw::OfState);
        assert!(score(&format!("m = {m}, κ = {kappa}, official"), found, exact) > SIGMAS);
        // The independent program gives no error: about that of ours is assumed.
        let theirs = Estimate { mean: official, ..found };
        assert!(found.z(theirs).abs() < SIGMAS, "{found:?} against {theirs:?}");
    }
}

fn oscillator(q: Expr) -> Expr {
    0.5 * q.square().sum(-1)
}

#[test]
fn fact_51_eleven_leapfrog_steps_of_an_oscillator() {
    let run = |count: usize| {
        let g = Graph::new();
        let (q, p) = (g.input_rows("q", 1, [1]), g.input_rows("p", 1, [1]));
        let (end, momentum) =
            leapfrog(&Euclidean(1), &|x| Spot::of(&oscillator, x), Spot::of(&oscillator, q), p, g.scalar(0.1), count);
        values(&[end.at, momentum, end.energy + 0.5 * momentum.square().sum(-1)], &[("q", &[1.0]), ("p", &[0.0])], 0)
            .concat()
    };
    let end = run(11);
    assert!(within_digits(end[0], 0.4531871434, 10) && within_digits(end[1], -0.8903004322, 10));
    assert!(within_digits(end[2], 0.4990067232, 10));
    assert!(!within_digits(run(10)[0], 0.4531871434, 10), "ten steps end elsewhere");
}
