//! **Five.** Your own energy in one file. A double well E(x) = θ₄x⁴ − θ₂x² + θ₁x, learnt by minimum velocity
//! with Stein's flow from samples of a mixture of two normal distributions, then sampled from. Prints the parameters and the share of samples in the right-hand well:
//! `in the right well: 0.6 of the data, 0.5… of the model`. Runs for a few seconds. (Score matching determines the shape of
//! each well accurately, but their relative mass only through the barrier between them.)
use minvel::Energy;
use minvel::flow::{Flow, Langevin, Law, Noise, Pace, Stein};
use minvel::network::Parameter;
use minvel::objective::MinimumVelocity;
use minvel::train::{Context, Learner};
use minvel_engine::init::Init;
use minvel_engine::optim::{Optimiser, RateSchedule};
use minvel_engine::{Draw, Expr, Graph, Options};

#[derive(Debug)]
struct DoubleWell;

impl Energy for DoubleWell {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let theta = self.parameters()[0].variable(x.graph());
        let x = x.at(-1, 0);
        theta.at(0, 2) * x.powi(4) - theta.at(0, 1) * x.powi(2) + theta.at(0, 0) * x
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter { name: "theta".into(), dims: vec![3], init: Init::Constant(0.1) }]
    }
}

fn main() -> Result<(), minvel::Error> {
    let quick = std::env::args().any(|a| a == "--quick");
    let steps = if quick { 300 } else { 4000 };

    // Stein's flow: the data are moved by what all of them say, through a kernel.
    let objective = MinimumVelocity::new(Stein::default(), 1e-3);
    let schedule = RateSchedule::Cosine { steps, floor: 0.0 };
    let mut learner = Learner::of(&DoubleWell, &objective)
        .drawn(|g, rows| {
            let right = g.random_rows(Draw::Uniform, 0, rows, [1]).less(0.6);
            right.select(right.like(1.0), right.like(-1.0)) + 0.45 * g.random_rows(Draw::Normal, 2, rows, [1])
        })
        .batch(200)
        .optimiser(Optimiser { schedule, ..Optimiser::adam(2e-2) })
        .start(&Context::bare())?;
    learner.train("theta", steps, &Context::bare())?;
    println!("θ = {:.2?}", learner.state().get("theta").unwrap_or_default());

    // Sampling is many steps, started anywhere: a thousand chains, a row each.
    let g = &Graph::new();
    let x = g.variable_rows("chains", 1000, [1]);
    let (energy, pace) = (|x| DoubleWell.energy(x), Pace::sampling(g.scalar(5e-3)));
    let moved = Langevin.step(&energy, x.into(), pace, Noise::drawn(Law::Gaussian, 0));
    let share = g.scalar(0.0).less(x.at(-1, 0)).mean_rows();
    let mut sampler = g.compile::<f32>(&[share], &[(x, moved.to)], &Options::default());
    learner.state_mut().set("chains", &vec![0.0; 1000], 1000);
    sampler.run_steps(learner.state_mut(), &[], 2, 0..if quick { 200 } else { 4000 });
    println!("in the right well: 0.6 of the data, {:.2} of the model", sampler.output(0)[0]);
    Ok(())
}
