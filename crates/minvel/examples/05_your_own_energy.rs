//! **Five.** Your own energy, in 25 lines. A double well E(x) = ax⁴ − bx² + cx, learnt by minimum velocity with Stein's flow from
//! samples of a mixture of two normal distributions, then sampled from. Prints the parameters and the share of samples in the right-hand
//! well: `in the right well: 0.6 of the data, 0.5… of the model`. Runs for a few seconds. (Score matching determines the shape
//! of each well accurately, but their relative mass only through the barrier between them. What is more than a formula
//! implements the trait `Energy`, as in the first example.)
use minvel::prelude::*;

fn main() -> Result<(), Error> {
    let quick = std::env::args().any(|a| a == "--quick");
    let (steps, context) = (if quick { 300 } else { 4000 }, Context::bare());
    let double_well = Formula::new([("a", 0.1), ("b", 0.1), ("c", 0.1)], |[a, b, c], x| {
        let x = x.at(-1, 0);
        a * x.powi(4) - b * x.powi(2) + c * x
    });

    // Stein's flow: the data are moved by what all of them say, through a kernel.
    let mut learner = Learner::of(&double_well, &MinimumVelocity::new(Stein::default(), 1e-3))
        .drawn(|g, rows| {
            let right = g.random_rows(Draw::Uniform, 0, rows, [1]).less(0.6);
            2.0 * right - 1.0 + 0.45 * g.random_rows(Draw::Normal, 2, rows, [1])
        })
        .batch(200)
        .optimiser(Optimiser::adam(2e-2).cosine(steps))
        .start(&context)?;
    learner.train("double well", steps, &context)?;
    let [a, b, c] = ["a", "b", "c"].map(|name| learner.state().get(name).unwrap_or_default()[0]);
    println!("E(x) = {a:.2} x⁴ − {b:.2} x² {c:+.2} x");

    // Sampling is many steps, started anywhere: a thousand chains, of which the last points are kept.
    let chains = Chains { count: 1000, draws: 1, ..Chains::default() };
    let draws = chains.run(&Metropolis::new(Euclidean(1)), &double_well, learner.state())?.points;
    let right = draws.iter().filter(|x| **x > 0.0).count() as f64 / draws.len() as f64;
    println!("in the right well: 0.6 of the data, {right:.2} of the model");
    Ok(())
}
