//! Laws of samplers: what one step must leave as it is, over every manifold, and how sizes, clocks and failures behave.
//!
//! Expectations under q ∝ e^{−E₀−V} are taken with points of the base law e^{−E₀}, which every manifold can draw, weighted
//! by e^{−V}: rows are independent, so are their errors.

use crate::support::bare::Bare;
use crate::support::geometry::wave;
use crate::support::klein::KleinBottle;
use crate::support::sampling::Untested;
use crate::support::values;
use minvel::energy::{Energy, Gaussian, VonMisesFisher};
use minvel::flow::{FlowForm, RiemannianLangevin};
use minvel::manifold::{Euclidean, Manifold, Sphere};
use minvel::sampler::{
    Adaptation, ChainDivergence, Chains, ChartLaw, Hamiltonian, Metropolis, Repeated, Sampler, Spot, leapfrog,
};
use minvel::{Error, manifold};
use minvel_engine::{Expr, Graph, State};
use minvel_testing::{estimate, within_order};
use std::sync::Arc;

const ROWS: usize = 60_000;
const SEED: u64 = 7;
/// Standard errors that what is exact may be off, and that what is wrong must be off by at least.
const SIGMAS: f64 = 4.0;

fn shared(m: &dyn Manifold) -> Arc<dyn Manifold> {
    manifold::parse(&m.to_string()).unwrap()
}

fn langevin(m: Arc<dyn Manifold>) -> Repeated {
    Repeated::on(m.clone(), RiemannianLangevin { manifold: m, form: FlowForm::Geodesic })
}

/// V, of height 4.
fn bump<'g>(m: &dyn Manifold, x: Expr<'g>) -> Expr<'g> {
    2.0 * wave(m, x, 1.3)
}

fn momentum<'g>(m: &dyn Manifold, x: Expr<'g>, stream: u32) -> Expr<'g> {
    m.tangent_normal(x, x.graph().normal_like(stream, x))
}

/// Standard scores for one step from x ~ q to x': of E[f(x)V(x') − f(x')V(x)], which detailed balance makes zero, and of
/// E[f(x') − f(x)] and E[V(x') − V(x)], which stationarity does.
fn scores(sampler: &dyn Sampler, step: f64) -> [f64; 3] {
    let (m, g) = (sampler.manifold(), Graph::new());
    let x = m.sample_base(&g, ROWS, 1);
    let energy = |x| m.base_energy(x) + bump(m, x);
    let moved = sampler.transition(&|x| Spot::of(&energy, x), Spot::of(&energy, x), g.scalar(step), 2);
    let y = moved.to.at;
    let weight = (-bump(m, x)).exp();
    let (f, v) = ((wave(m, x, 0.7), wave(m, y, 0.7)), (bump(m, x), bump(m, y)));
    let rate = moved.acceptance.unwrap_or(weight.like(1.0));
    let differences = [f.0 * v.1 - f.1 * v.0, f.1 - f.0, v.1 - v.0].map(|d| weight * d);
    let rows = values(&[differences[0], differences[1], differences[2], weight * rate, weight], &[], SEED);
    let z = [0, 1, 2].map(|k| {
        let (mean, error) = estimate(&rows[k]);
        mean / error
    });
    let rate = estimate(&rows[3]).0 / estimate(&rows[4]).0;
    println!("{m}, {sampler:?}: balance {:+.2}, stationarity {:+.2} {:+.2}, acceptance {rate:.2}", z[0], z[1], z[2]);
    z
}

fn assert_exact(sampler: &dyn Sampler, step: f64) {
    assert!(scores(sampler, step).iter().all(|z| z.abs() < SIGMAS), "{sampler:?} does not keep the law");
}

fn assert_wrong(sampler: &dyn Sampler, step: f64) {
    assert!(scores(sampler, step).iter().any(|z| z.abs() > SIGMAS), "the test does not see that {sampler:?} is wrong");
}

mod law {
    use super::*;

    pub fn corrected_langevin_steps_are_in_detailed_balance_and_uncorrected_ones_are_not(m: &dyn Manifold) {
        let (m, step) = (shared(m), 0.5 / m.dim() as f64);
        assert_exact(&Metropolis::on(m.clone()), step);
        assert_wrong(&langevin(m), step);
    }

    pub fn tested_trajectories_are_in_detailed_balance_and_untested_ones_are_not(m: &dyn Manifold) {
        let (m, step) = (shared(m), 1.2 / (m.dim() as f64).sqrt());
        assert_exact(&Hamiltonian::on(m.clone(), 2), step);
        assert_wrong(&Untested(Hamiltonian::on(m, 2)), step);
    }

    pub fn trajectories_keep_their_energy_to_second_order_and_run_back(m: &dyn Manifold) {
        let g = Graph::new();
        let x = m.sample_base(&g, 64, 1);
        let energy = |x| m.base_energy(x) + bump(m, x);
        let (start, p) = (Spot::of(&energy, x), momentum(m, x, 2));
        let hamiltonian = |s: Spot<'_>, p| values(&[s.energy + 0.5 * m.inner(s.at, p, p)], &[], SEED).remove(0);
        let before = hamiltonian(start, p);
        let counts = [8, 16, 32];
        let errors = counts.map(|count| {
            let (end, q) = leapfrog(m, &|x| Spot::of(&energy, x), start, p, g.scalar(1.0 / count as f64), count);
            let after = hamiltonian(end, q);
            before.iter().zip(after).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        });
        assert!(within_order(&m.to_string(), &counts.map(|c| 1.0 / c as f64), &errors, 2.0, 0.03));

        let step = g.scalar(0.1);
        let (end, q) = leapfrog(m, &|x| Spot::of(&energy, x), start, p, step, 8);
        let (back, _) = leapfrog(m, &|x| Spot::of(&energy, x), Spot::of(&energy, end.at), -q, step, 8);
        let way = values(&[m.distance(x, back.at), m.distance(x, end.at)], &[], SEED);
        let worst = |v: &[f64]| v.iter().fold(0.0, |a: f64, b| a.max(*b));
        // Angles close to zero are known to the root of a rounding error only.
        assert!(worst(&way[0]) < 100.0 * f64::EPSILON.sqrt() * worst(&way[1]), "back to {:e}", worst(&way[0]));
    }
}

for_every_manifold! {
    corrected_langevin_steps_are_in_detailed_balance_and_uncorrected_ones_are_not
    tested_trajectories_are_in_detailed_balance_and_untested_ones_are_not
    trajectories_keep_their_energy_to_second_order_and_run_back
}

#[test]
fn a_chart_chosen_by_the_state_breaks_detailed_balance() {
    let official = |n| Metropolis { charts: ChartLaw::OfState, ..Metropolis::new(Sphere(n)) };
    assert_wrong(&official(1), 0.5);
    // Flat space has one chart: nothing to choose.
    assert_exact(&Metropolis { charts: ChartLaw::OfState, ..Metropolis::new(Euclidean(2)) }, 0.5);
}

fn gaussian() -> Gaussian {
    Gaussian::new(&[1.0, -1.0, 0.5], &[2.0, 0.5, 0.0, 0.5, 1.0, -0.3, 0.0, -0.3, 1.5])
}

#[test]
fn adaptation_finds_the_acceptance_it_is_told_in_every_replica() {
    // The rule of 2 % reacts to a mean over ten steps, so ε swings by some 15 % and acceptance by a third of that.
    let swing = 0.05;
    let multiplicative = Adaptation::Multiplicative { target: 0.65, bounds: (1e-4, 4.0) };
    let robbins_monro = Adaptation::RobbinsMonro { target: 0.65 };
    // Trajectories are accepted up to the edge of stability and not beyond: only a rule that converges settles there.
    let cases = [("metropolis", multiplicative), ("metropolis", robbins_monro), ("hamiltonian", robbins_monro)];
    for (name, adaptation) in cases {
        let sampler = minvel::sampler::parse(name, Arc::new(Euclidean(3))).unwrap();
        let chains =
            Chains { step: 0.01, warm_up: 600, draws: 100, replicas: 3, adaptation, threads: 1, ..Chains::default() };
        let draws = chains.run::<f32>(&*sampler, &gaussian(), &State::new(3)).unwrap();
        println!("{name}, {adaptation:?}: acceptance {:?}, steps {:?}", draws.acceptance, draws.steps);
        assert!(draws.acceptance.iter().all(|a| (a - 0.65).abs() < swing));
        assert!(draws.steps.iter().any(|s| *s != draws.steps[0]), "replicas adapt by themselves");
        let fixed = Chains { adaptation: Adaptation::Fixed, ..chains };
        let fixed = fixed.run::<f32>(&*sampler, &gaussian(), &State::new(3)).unwrap();
        assert!(fixed.acceptance.iter().all(|a| *a > 0.65 + swing), "without adaptation: {:?}", fixed.acceptance);
    }
}

#[test]
fn adaptation_stays_within_its_bounds() {
    let adaptation = Adaptation::Multiplicative { target: 0.65, bounds: (1e-4, 0.02) };
    let chains = Chains { step: 0.01, warm_up: 200, draws: 1, adaptation, threads: 1, ..Chains::default() };
    let draws = chains.run::<f64>(&Metropolis::new(Euclidean(3)), &gaussian(), &State::new(1)).unwrap();
    assert_eq!(draws.steps, [0.02]);
}

#[test]
fn a_draw_depends_on_its_clock_and_replica_and_on_nothing_else() {
    let sampler = Metropolis::new(Euclidean(3));
    let all = Chains { count: 5, warm_up: 3, draws: 9, replicas: 3, threads: 2, ..Chains::default() };
    let every = all.run::<f64>(&sampler, &gaussian(), &State::new(3)).unwrap();
    let third = Chains { draws: 3, thin: 3, replicas: 1, threads: 1, ..all.clone() };
    let alone = third.run::<f64>(&sampler, &gaussian(), &State::of_replicas(2..3)).unwrap();
    for (draw, chain) in (0..3).flat_map(|draw| (0..5).map(move |chain| (draw, chain))) {
        assert_eq!(alone.point(draw, 0, chain), every.point(3 * draw + 2, 2, chain));
    }
    let other = Chains { seed: 1, ..all }.run::<f64>(&sampler, &gaussian(), &State::new(3)).unwrap();
    assert_ne!(other.points, every.points);
}

/// E = x⁴/4, too steep for large steps.
#[derive(Debug)]
struct Quartic;

impl Energy for Quartic {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        0.25 * x.powi(4).sum(-1)
    }
}

#[test]
fn a_chain_that_explodes_is_a_value_and_a_corrected_one_does_not_explode() {
    let line: Arc<dyn Manifold> = Arc::new(Euclidean(1));
    let chains = Chains { count: 8, step: 1.0, warm_up: 0, draws: 50, threads: 1, ..Chains::default() };
    let lost = chains.run::<f32>(&langevin(line.clone()), &Quartic, &State::new(1)).unwrap_err();
    println!("{lost}");
    let Error::Chains(lost) = lost else { panic!("{lost}") };
    assert!(lost.step > 0 && lost.step <= 50 && lost.chain < 8);
    assert!(lost.to_string().contains("step size"));
    let kept = chains.run::<f32>(&Metropolis::on(line), &Quartic, &State::new(1)).unwrap();
    assert!(kept.points.iter().all(|x| x.is_finite()) && kept.acceptance[0] > 0.0);
}

/// log x, which negative numbers do not have.
#[derive(Debug)]
struct Logarithm;

impl Energy for Logarithm {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x.log().sum(-1)
    }
}

#[test]
fn a_chain_that_starts_where_there_is_no_energy_is_reported_not_stuck() {
    let chains = Chains { count: 2, draws: 2, threads: 1, ..Chains::default() };
    let graph = Graph::new();
    let mut walk = chains.compile(&graph, &Metropolis::new(Euclidean(1)), &|x| Logarithm.energy(x)).unwrap();
    let lost = walk.run(&mut State::<f64>::new(1), &[], Some(&[2.0, -1.0])).unwrap_err();
    assert!(matches!(lost, Error::Chains(ChainDivergence { step: 0, replica: 0, chain: 1 })), "{lost}");
}

#[test]
fn a_million_steps_on_the_sphere_stay_on_it_in_single_precision() {
    let law = VonMisesFisher::new(&[1.0, 1.0, 1.0], 5.0);
    let chains = Chains { count: 8, step: 0.1, warm_up: 0, draws: 100, thin: 10_000, threads: 1, ..Chains::default() };
    let draws = chains.run::<f32>(&langevin(Arc::new(Sphere(2))), &law, &State::new(1)).unwrap();
    let length = |p: &[f64]| p.iter().map(|x| x * x).sum::<f64>().sqrt();
    let worst = draws.points.chunks(3).map(|p| (length(p) - 1.0).abs()).fold(0.0, f64::max);
    println!("lengths are off by {worst:e}");
    assert!(worst < 1e-6);
}

/// On manifolds without charts of their own steps are along geodesics.
#[test]
fn corrected_langevin_steps_are_in_detailed_balance_on_manifolds_of_others() {
    for m in [Arc::new(Bare::of("sphere:2")) as Arc<dyn Manifold>, Arc::new(KleinBottle)] {
        assert_exact(&Metropolis::on(m.clone()), 0.25);
        assert_wrong(&langevin(m), 0.25);
    }
}
