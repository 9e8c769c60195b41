//! **One.** A Gaussian. Prints the precision learnt by minimum velocity beside the true one, 1/s² = 0.25, for five seeds at once:
//! `precision 0.25 ± 0.00x (true 0.25)`. Runs for a second.
//!
//! The model is E(x) = a·x²/2 with one parameter a. The loss measures how fast one Langevin step of the model would move
//! the data; it is minimal for the a that leaves the data at rest.
use minvel::eval::Estimate;
use minvel::flow::{Langevin, Law, Noise};
use minvel::objective::{MinimumVelocity, Objective};
use minvel_engine::optim::{Optimiser, RateSchedule};
use minvel_engine::{Draw, Expr, Graph, Options, State};

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let (deviation, steps, seeds) = (2.0, if quick { 400 } else { 3000 }, 5);

    let g = &Graph::new();
    let a = g.variable("a", []);
    let model = |x| 0.5 * a * Expr::square(x).sum(-1);

    let data = deviation * g.random_rows(Draw::Normal, 0, 500, [1]); // fresh at every step
    let objective = MinimumVelocity::new(Langevin, 1e-3);
    let loss = objective.loss(&model, data.into(), Noise::drawn(Law::Gaussian, 1));

    let schedule = RateSchedule::Cosine { steps, floor: 0.0 };
    let updates = Optimiser { schedule, ..Optimiser::adam(1e-2) }.minimise(loss, &[a]);
    let mut program = g.compile::<f32>(&[loss], &updates.updates, &Options { replicas: seeds, ..Options::default() });
    let mut state = State::new(seeds);
    state.set("a", &[1.0], 1);
    updates.initialise(&mut state);
    program.run_steps(&mut state, &[], 1, 0..steps);

    let learnt = Estimate::of(state.get("a").unwrap_or_default().iter().map(|&a| f64::from(a)));
    println!("precision {learnt} (true {})", 1.0 / (deviation * deviation));
}
