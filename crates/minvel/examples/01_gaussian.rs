//! **One.** A Gaussian. Prints the precision learnt by minimum velocity beside the true one, 1/s² = 0.25, for five seeds at once:
//! `precision 0.25 ± 0.00x (true 0.25)`. Runs for a second.
//!
//! The model is E(x) = a·x²/2 with one parameter a. The loss measures how fast one Langevin step of the model would move
//! the data; it is minimal for the a that leaves the data at rest.
use minvel::network::Parameter;
use minvel::prelude::*;
use minvel_engine::init::Init;

#[derive(Debug)]
struct Parabola;

impl Energy for Parabola {
    fn energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        0.5 * self.parameters()[0].variable(x.graph()) * x.square().sum(-1)
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter { name: "a".into(), dims: vec![], init: Init::Constant(1.0) }]
    }
}

fn main() -> Result<(), Error> {
    let quick = std::env::args().any(|a| a == "--quick");
    let (deviation, steps) = (2.0, if quick { 400 } else { 3000 });
    let mut learner = Learner::of(&Parabola, &MinimumVelocity::new(Langevin, 1e-3))
        .drawn(|g, rows| deviation * g.random_rows(Draw::Normal, 0, rows, [1])) // fresh at every step
        .batch(500)
        .optimiser(Optimiser::adam(1e-2).cosine(steps))
        .replicas(5)
        .start(&Context::bare())?;
    learner.train("a", steps, &Context::bare())?;
    let learnt = Estimate::of(learner.state().get("a").unwrap_or_default().iter().map(|&a| f64::from(a)));
    println!("precision {learnt} (true {})", 1.0 / (deviation * deviation));
    Ok(())
}
