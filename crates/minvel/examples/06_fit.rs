//! **Six.** A normalised density of points, in a line. Fits draws of the paper's mixture on S² and prints its score on held-out rows
//! beside that of a kernel density and of the truth: `held-out 2.06 ± 0.05, kernel density 2.06 ± 0.05, truth 2.020`. Runs for a few seconds.
use minvel::prelude::*;
use std::sync::Arc;

fn main() -> Result<(), Error> {
    let quick = std::env::args().any(|a| a == "--quick");
    let law = Toy::new(ToyLaw::Sphere);
    let (sphere, data) =
        (law.manifold.clone(), points(&law, if quick { 100 } else { 400 }, 1).expect("it can be sampled"));

    let fitted = Fit::on(&sphere).quick().seed(1).points(&data)?;

    let scores = &fitted.record().expect("it was just fitted").evaluation;
    let kernels = scores.baselines.iter().find(|b| b.method == "kde").expect("it is among the baselines").nll;
    let truth = EnergyDensity::closed(sphere, Arc::new(law)).expect("mixtures are normalised");
    let mean = |logs: Vec<f64>| -logs.iter().sum::<f64>() / logs.len() as f64;
    let best = mean(truth.log_density(&data, &Context::bare())?);
    println!("held-out {}, kernel density {kernels}, truth {best:.3}", scores.test_nll);
    let draws = fitted.sample(2000, 1)?;
    println!("log p of its draws: {:.3} by the fit", -mean(fitted.log_density(&draws)?));
    Ok(())
}
