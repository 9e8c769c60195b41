//! Particles that see one another: Stein, its blend with Langevin, birth and death. Replicas are independent populations.

use minvel::energy::{Energy, Gaussian, MixtureEnergy};
use minvel::estimate::Estimate;
use minvel::flow::{
    BirthDeath, Blend, DensityEstimate, Displacement, EnergyOf, Flow, Langevin, Noise, Pace, Particles, Stein,
};
use minvel::kernel::{Bandwidth, Kernel};
use minvel::sampler::{Chains, Draws, Repeated, systematic};
use minvel_engine::{Clock, Graph, Options, State};
use minvel_testing::within_sigma;
use std::sync::Arc;

const SIGMAS: f64 = 4.0;

#[test]
fn systematic_children_are_as_many_as_the_shares_say_give_or_take_less_than_one() {
    let (count, turns) = (8, 2000);
    let weights = [0.05, 0.3, 0.0, 0.1, 0.15, 0.2, 0.05, 0.15];
    let g = Graph::new();
    let labels = g.table(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [count, 1]).distribute();
    let children = systematic(labels, g.input_rows("shares", count, []), 0);
    let mut program = g.compile::<f64>(&[children], &[], &Options::default());
    let mut born = vec![vec![]; count];
    for step in 0..turns {
        program.run(&mut State::new(1), &[("shares", &weights)], Clock { seed: 1, step });
        for (label, born) in born.iter_mut().enumerate() {
            born.push(program.output(0).iter().filter(|&&x| x == label as f64).count() as f64);
        }
    }
    for (i, (born, weight)) in born.iter().zip(weights).enumerate() {
        let expected = count as f64 * weight;
        assert!(born.iter().all(|n| (n - expected).abs() < 1.0), "children of {i}: not {expected} give or take one");
        assert!(expected.fract() < 1e-9 || within_sigma("children", born, expected, SIGMAS));
    }
}

fn run(flow: impl Flow + 'static, law: &dyn Energy, chains: Chains, start: Option<&[f32]>) -> Draws {
    let graph = Graph::new();
    let mut walk = chains.compile(&graph, &Repeated::new(1, flow), &|x| law.energy(x)).unwrap();
    walk.run(&mut State::<f32>::new(chains.replicas), &[], start).unwrap()
}

/// Towards another power of the law.
#[derive(Debug)]
struct Tempered<F>(F, f64);

impl<F: Flow> Flow for Tempered<F> {
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        self.0.step(energy, from, Pace { temper: self.1, ..pace }, noise)
    }
}

#[test]
fn stein_particles_come_to_rest_at_the_law_the_closer_the_more_there_are() {
    let stein = Stein { kernel: Kernel::Gaussian(Bandwidth::Fixed(0.5)), ..Stein::default() };
    let law = Gaussian::isotropic(&[1.0], 1.0);
    let moments = |count: usize, temper: f64| {
        let chains = Chains { count, step: 0.2, warm_up: 1500, draws: 1, thin: 1, threads: 1, ..Chains::default() };
        let draws = run(Tempered(stein, temper), &law, chains, None);
        let mean = |f: &dyn Fn(f64) -> f64| draws.points.iter().map(|x| f(*x)).sum::<f64>() / count as f64;
        println!(
            "{count} particles, temper {temper}: mean {:.5}, variance {:.5}",
            mean(&|x| x),
            mean(&|x| (x - 1.0).powi(2))
        );
        (mean(&|x| x), mean(&|x| (x - 1.0).powi(2)))
    };
    let errors: Vec<f64> = [16, 32, 64].map(|count| (moments(count, 1.0).1 - 1.0).abs()).to_vec();
    assert!(errors[2] < errors[1] && errors[1] < errors[0], "{errors:?}");
    assert!(errors[2] < 0.1, "{errors:?}");
    assert!((moments(64, 0.5).1 - 2.0).abs() < 0.2, "towards the root of the law the variance doubles");
}

/// Noise l instead of √l, as in the official code (erratum P12).
#[derive(Debug)]
struct Official(Blend);

impl Flow for Official {
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        let z = self.0.langevin_share.sqrt() * noise.like(from.at);
        self.0.step(energy, from, pace, Noise::given(z))
    }
}

#[test]
fn blended_particles_have_the_variance_of_the_law_and_with_the_official_noise_they_have_not() {
    let blend = Blend::convex(0.5, Stein { kernel: Kernel::Gaussian(Bandwidth::Fixed(0.5)), ..Stein::default() });
    let law = Gaussian::isotropic(&[0.0], 1.0);
    let chains = Chains {
        count: 100,
        step: 0.02,
        warm_up: 300,
        draws: 10,
        thin: 40,
        replicas: 10,
        threads: 1,
        ..Chains::default()
    };
    let variance = |flow: Arc<dyn Flow>| {
        let draws = run(Shared(flow), &law, chains.clone(), None);
        let found = draws.replica_means(|x| x[0] * x[0]);
        println!("variance {:.4} ± {:.4}", found.mean, found.std_error);
        found
    };
    // Two biases of a hundredth: the step's εl/2·…, and that of a hundred particles.
    let bias = 0.5 * 0.02 + 1.0 / 100.0;
    let off = |found: Estimate| (found.mean - 1.0).abs() - SIGMAS * found.std_error - bias;
    assert!(off(variance(Arc::new(blend))) < 0.0);
    assert!(off(variance(Arc::new(Official(blend)))) > 0.0);
}

/// A flow that is shared.
#[derive(Debug)]
struct Shared(Arc<dyn Flow>);

impl Flow for Shared {
    fn step<'g>(
        &self,
        energy: EnergyOf<'_, 'g>,
        from: Particles<'g>,
        pace: Pace<'g>,
        noise: Noise<'g>,
    ) -> Displacement<'g> {
        self.0.step(energy, from, pace, noise)
    }
}

#[test]
fn birth_and_death_move_mass_between_modes_that_langevin_dynamics_cannot_leave() {
    let mode = |at: f64| -> Arc<dyn Energy> { Arc::new(Gaussian::isotropic(&[at], 0.5)) };
    let law = MixtureEnergy::new(vec![(0.25, mode(-4.0)), (0.75, mode(4.0))]);
    let share = |flow: Arc<dyn Flow>, count: usize| {
        // Half of the particles in each mode.
        let start: Vec<f32> = (0..count).map(|i| if i % 2 == 0 { -4.0 } else { 4.0 }).collect();
        let chains = Chains {
            count,
            step: 0.05,
            warm_up: 160,
            draws: 10,
            thin: 20,
            replicas: 16,
            threads: 1,
            ..Chains::default()
        };
        let draws = run(Shared(flow), &law, chains, Some(&start));
        let share = draws.replica_means(|x| if x[0] < 0.0 { 1.0 } else { 0.0 });
        println!("{count} particles: share of the left mode {:.4} ± {:.4}", share.mean, share.std_error);
        share
    };
    let kernel = DensityEstimate::Kernel { bandwidth: 0.2, leave_one_out: true };
    let moving = |count| share(Arc::new(BirthDeath::new(Langevin, kernel.clone())), count);
    let [few, many] = [64, 128].map(moving);
    // A small mode's own kernels miss more of it: a bias of order 1/B, which 2f(2B) − f(B) does not have. (Both modes
    // have one width, so that the bandwidth's bias is the same in both.)
    let z = |share: Estimate| (share.mean - 0.25) / share.std_error;
    println!("extrapolated: z = {:+.2}", z(many * 2.0 - few));
    assert!(z(many * 2.0 - few).abs() < SIGMAS);
    assert!(z(few) > SIGMAS, "no power: the bias of 64 particles is not seen");
    assert!(share(Arc::new(Langevin), 64).mean == 0.5, "without birth and death the modes keep what they have");
}
