//! Annealed importance sampling brackets log Z: from below out of the base law, from above out of the target's own points.

use minvel::energy::{Energy, Gaussian, VonMises, VonMisesFisher};
use minvel::estimate::Estimate;
use minvel::manifold::{Euclidean, Sphere, Torus};
use minvel::sampler::{Annealing, AnnealingSchedule, ChainDivergence, Hamiltonian, LogWeights};
use minvel::{Error, Manifold, energy};
use minvel_engine::math::Real;
use minvel_engine::{Expr, Graph, Options, State};
use std::cell::Cell;
use std::sync::Arc;

const SIGMAS: f64 = 3.0;
const CHAINS: usize = 512;
const SEED: u64 = 9;

fn run<T: Real>(annealing: &Annealing, law: &dyn Energy, points: Option<&[f64]>) -> LogWeights {
    let points: Option<Vec<T>> = points.map(|p| p.iter().map(|&x| T::from_f64(x)).collect());
    annealing
        .run(law, CHAINS, &Options { threads: 1, ..Options::default() }, &State::new(1), points.as_deref(), SEED)
        .unwrap()
}

fn score(what: &str, found: Estimate, exact: f64) -> f64 {
    let z = (found.mean - exact) / found.std_error;
    println!("{what}: {:.4} ± {:.4}, exact {exact:.4}, z = {z:+.2}", found.mean, found.std_error);
    z
}

fn gaussian() -> Gaussian {
    Gaussian::new(&[1.0, -1.0, 0.5], &[3.0, 0.5, 0.0, 0.5, 2.0, -0.3, 0.0, -0.3, 0.5])
}

fn annealings(manifold: impl Manifold + 'static) -> [Annealing; 2] {
    let m: Arc<dyn Manifold> = Arc::new(manifold);
    // Fewer temperatures than the official thousand, so larger steps to start with.
    let short = |a: Annealing| Annealing { schedule: AnnealingSchedule::Sigmoid { count: 100 }, step: 0.1, ..a };
    [short(Annealing::langevin(m.clone())), short(Annealing::hamiltonian(m))]
}

/// 1.1 times an energy.
#[derive(Debug)]
struct Steeper<'a>(&'a dyn Energy);

impl Energy for Steeper<'_> {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        1.1 * self.0.energy(x)
    }
}

/// Forward and reverse agree with log Z, and are told apart from those of a slightly steeper energy.
fn bracketed<T: Real>(law: &dyn Energy, annealings: [Annealing; 2]) {
    let exact = law.log_partition().unwrap();
    let target = energy::points(law, CHAINS, 1).unwrap();
    for annealing in annealings {
        let m = annealing.sampler.manifold();
        let forward = run::<T>(&annealing, law, None);
        let reverse = run::<T>(&annealing.clone().reversed(), law, Some(&target));
        println!(
            "{m}, acceptance {:?} {:?}, worth {:.0} chains",
            forward.acceptance,
            reverse.acceptance,
            forward.effective()
        );
        assert!(score("forward", forward.log_partition(), exact).abs() < SIGMAS);
        assert!(score("reverse", reverse.log_partition(), exact).abs() < SIGMAS);
        let steeper = run::<T>(&annealing, &Steeper(law), None);
        assert!(score("steeper", steeper.log_partition(), exact).abs() > SIGMAS);
    }
}

#[test]
fn annealing_brackets_the_partition_of_a_gaussian() {
    bracketed::<f64>(&gaussian(), annealings(Euclidean(3)));
}

#[test]
fn annealing_brackets_the_partition_of_von_mises_fisher() {
    bracketed::<f32>(&VonMisesFisher::new(&[1.0, 1.0, -2.0], 6.0), annealings(Sphere(2)));
}

#[test]
fn annealing_brackets_the_partition_of_angles() {
    bracketed::<f32>(&VonMises::new(&[0.3, -2.0], &[4.0, 2.0]), annealings(Torus(2)));
}

#[test]
fn single_chains_lie_below_on_the_way_there_and_above_on_the_way_back() {
    let law = gaussian();
    let exact = law.log_partition().unwrap();
    let target = energy::points(&law, CHAINS, 1).unwrap();
    let [coarse, _] =
        annealings(Euclidean(3)).map(|a| Annealing { schedule: AnnealingSchedule::Linear { count: 10 }, ..a });
    let single = |w: LogWeights| Estimate::of(w.log_partitions(1).into_iter().map(|e| e.mean));
    let forward = run::<f64>(&coarse, &law, None);
    let reverse = run::<f64>(&coarse.reversed(), &law, Some(&target));
    // Jensen's inequality is strict: means of logarithms are off by far more than their errors, logarithms of means not.
    assert!(score("forward, all", forward.log_partition(), exact).abs() < SIGMAS);
    assert!(score("reverse, all", reverse.log_partition(), exact).abs() < SIGMAS);
    assert!(score("forward, one by one", single(forward), exact) < -SIGMAS);
    assert!(score("reverse, one by one", single(reverse), exact) > SIGMAS);
}

#[test]
fn every_schedule_is_unbiased() {
    let law = gaussian();
    let schedules = [
        AnnealingSchedule::Sigmoid { count: 40 },
        AnnealingSchedule::Linear { count: 40 },
        AnnealingSchedule::Geometric { count: 40, first: 0.01 },
    ];
    for schedule in schedules {
        let betas = schedule.betas();
        assert!(betas[0] == 0.0 && betas[39] == 1.0 && betas.windows(2).all(|w| w[0] < w[1]), "{betas:?}");
        let [annealing, _] = annealings(Euclidean(3)).map(|a| Annealing { schedule, ..a });
        let found = run::<f64>(&annealing, &law, None).log_partition();
        assert!(score(&format!("{schedule:?}"), found, law.log_partition().unwrap()).abs() < SIGMAS);
    }
}

#[test]
fn the_error_from_all_chains_is_the_scatter_between_replicas() {
    let (replicas, chains) = (50, 64);
    let [annealing, _] =
        annealings(Euclidean(3)).map(|a| Annealing { schedule: AnnealingSchedule::Sigmoid { count: 30 }, ..a });
    let options = Options { replicas, threads: 1, ..Options::default() };
    let weights = annealing.run::<f32>(&gaussian(), chains, &options, &State::new(replicas), None, SEED).unwrap();
    let pooled = weights.log_partition();
    let between = Estimate::of(weights.log_partitions(chains).into_iter().map(|e| e.mean));
    println!("{pooled:?} from all chains, {between:?} between replicas");
    // A standard error from 50 numbers is uncertain by a tenth of itself.
    let ratio = between.std_error / pooled.std_error;
    assert!((ratio - 1.0).abs() < SIGMAS / (2.0 * (replicas as f64 - 1.0)).sqrt(), "ratio {ratio}");
}

/// log(x − 3), which most normal numbers do not have.
#[derive(Debug)]
struct Undefined;

impl Energy for Undefined {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        (x - 3.0).log().sum(-1)
    }
}

#[test]
fn an_energy_that_is_not_a_number_is_reported() {
    let [annealing, _] = annealings(Euclidean(1));
    let lost = annealing
        .run::<f32>(&Undefined, 8, &Options { threads: 1, ..Options::default() }, &State::new(1), None, SEED)
        .unwrap_err();
    assert!(matches!(lost, Error::Chains(ChainDivergence { step: 1, .. })), "{lost}");
}

/// −2x₀, and that it was asked for.
fn counted<'g>(x: Expr<'g>, count: &Cell<usize>) -> Expr<'g> {
    count.set(count.get() + 1);
    -2.0 * x.at(-1, 0)
}

#[test]
fn a_temperature_evaluates_the_energy_once_for_each_proposal() {
    let m: Arc<dyn Manifold> = Arc::new(Sphere(2));
    let leapfrogs = Hamiltonian::LEAPFROGS;
    for (annealing, proposals) in [(Annealing::langevin(m.clone()), 5), (Annealing::hamiltonian(m), leapfrogs)] {
        let (graph, count) = (Graph::new(), Cell::new(0));
        let extra = |x| counted(x, &count);
        let _ = annealing.compile::<f64>(&graph, &extra, 8, &Options { threads: 1, ..Options::default() });
        // Once more for the points to start from, in a program that is run once.
        assert_eq!(count.get(), proposals + 1);
    }
}
