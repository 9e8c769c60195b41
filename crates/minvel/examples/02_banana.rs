//! **Two.** The banana with every objective. Trains the same network (two layers of 64) with eight objectives, three seeds each, and
//! prints its exact score-matching loss J on fresh data; the best possible is −0.945. All objectives with bounded variance come
//! close to each other, CD-1 without control variate does not. Runs for about ten seconds.
use minvel::flow::{Law, Noise};
use minvel::objective::{Contrastive, Denoising, ProbabilityFlow, Reduction, Sliced};
use minvel::prelude::*;
use minvel_engine::{Clock, Options, State};

const SEEDS: usize = 3;

fn main() -> Result<(), Error> {
    let quick = std::env::args().any(|a| a == "--quick");
    let steps = if quick { 50 } else { 1200 };
    let banana = Toy::new(ToyLaw::Banana);
    let objectives: Vec<(&str, Box<dyn Objective>)> = vec![
        ("exact score matching", Box::new(ScoreMatching::new())),
        ("sliced score matching", Box::new(Sliced { reduced: false })),
        ("sliced, variance reduced", Box::new(Sliced { reduced: true })),
        ("minimum velocity", Box::new(MinimumVelocity::new(Langevin, 1e-3))),
        ("denoising, variance reduced", Box::new(Denoising::new(1e-3))),
        ("minimum probability flow", Box::new(ProbabilityFlow::new(3e-2))),
        ("CD-1 with control variate", Box::new(Contrastive::new(Langevin, 1e-3))),
        ("CD-1 plain", Box::new(Contrastive { reduction: Reduction::None, ..Contrastive::new(Langevin, 1e-3) })),
    ];
    for (name, objective) in objectives {
        let model = Mlp::new("psi", Features::of_point(2), &[64, 64], Activation::Silu);
        let mut learner = Learner::of(&model, &*objective)
            .fresh(&banana)
            .batch(200)
            .optimiser(Optimiser::rmsprop_tf(4e-3))
            .replicas(SEEDS)
            .start(&Context::bare())?;
        learner.train("psi", steps, &Context::bare())?;
        println!("{name:28} J = {}", exact_loss(&model, &banana, learner.state_mut()));
    }
    Ok(())
}

/// J = E[½|∇E|² − ΔE] on 20 000 fresh points, over the seeds.
fn exact_loss(model: &dyn Energy, law: &dyn Energy, state: &mut State<f32>) -> Estimate {
    let g = &Graph::new();
    let data: Expr = law.sample(g, 20_000, 7).expect("it can be sampled");
    let loss = ScoreMatching::new().loss(&|x| model.energy(x), data.into(), Noise::drawn(Law::Gaussian, 8));
    let mut program = g.compile::<f32>(&[loss], &[], &Options { replicas: SEEDS, ..Options::default() });
    program.run(state, &[], Clock { seed: 99, step: 0 });
    Estimate::of(program.output(0).iter().map(|&x| f64::from(x)))
}
