//! **Six.** A normalised density of points, in four lines. Fits 1500 draws of a mixture on S², and prints the held-out score beside
//! that of a kernel density and of the truth: `held-out 1.5… ± 0.0…, kernel density 1.5…, truth 1.5…`. Runs for seconds.
use minvel::energy::toy::Toy;
use minvel::energy::{log_prob, points};
use minvel::fit::Fit;
use minvel_engine::{Clock, Graph, Options, State};

fn main() -> Result<(), minvel::Error> {
    let quick = std::env::args().any(|a| a == "--quick");
    let truth = Toy::named("sphere").expect("it is in the list");
    let data = points(&truth, if quick { 200 } else { 1500 }, 1).expect("mixtures can be sampled");

    let fitted = Fit::on(&truth.manifold).quick().seed(1).points(&data)?;
    let draws = fitted.sample(2000, 1)?;
    let record = fitted.record().expect("it was just fitted");
    let kernels = record.evaluation.baselines.iter().find(|b| b.method == "kde").expect("it is among the baselines");

    let g = Graph::new();
    let x = g.input_rows("x", draws.len() / 3, [3]);
    let exact = -log_prob(&truth, x).expect("mixtures are normalised").mean_rows();
    let mut program = g.compile::<f64>(&[exact], &[], &Options::default());
    program.run(&mut State::new(1), &[("x", &draws)], Clock { seed: 0, step: 0 });
    println!("held-out {}, kernel density {}", record.evaluation.test_nll, kernels.nll);
    println!("cross-entropy of 2000 draws of the fit under the truth: {:.3}", program.output(0)[0]);
    Ok(())
}
