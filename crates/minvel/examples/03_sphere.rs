//! **Three.** A density on the sphere. Learns the paper's mixture of four von Mises–Fisher distributions on S² by minimum velocity with
//! Riemannian Langevin steps, normalises the model by quadrature, and prints KL(truth‖model): about 2e-4 nats. Runs for
//! five seconds.
use minvel::estimate::OnGrid;
use minvel::prelude::*;
use minvel_engine::{Clock, Options};

fn main() -> Result<(), Error> {
    let quick = std::env::args().any(|a| a == "--quick");
    let steps = if quick { 100 } else { 3000 };
    let truth = Toy::new(ToyLaw::Sphere);
    let sphere = truth.manifold.clone();

    let model = Mlp::new("psi", Features::of(sphere.clone()), &[64, 64], Activation::Tanh);
    let flow = RiemannianLangevin { manifold: sphere.clone(), form: FlowForm::Geodesic };
    let mut learner = Learner::of(&model, &MinimumVelocity::new(flow, 1e-4))
        .fresh(&truth)
        .batch(1000)
        .optimiser(Optimiser::adam(3e-3).cosine(steps))
        .start(&Context::bare())?;
    let training = learner.train("psi", steps, &Context::bare())?;
    let last = training.looks.last().map_or(f64::NAN, |look| look.loss[0]);
    println!(
        "J of the last 1000 points {last:.1}; its mean is at least −I(p)/2 = {:.2}",
        -0.5 * truth.information.unwrap_or(f64::NAN)
    );

    // Both log densities on a quadrature grid; OnGrid normalises them.
    let grid = sphere.grid(60, 0.0).expect("S² has a grid");
    let rows = grid.weights.len();
    let g = &Graph::new();
    let y = g.input_rows("y", rows, [sphere.ambient()]);
    let outputs = [-truth.energy(y), -model.energy(y)];
    let mut program = g.compile::<f32>(&outputs, &[], &Options::default());
    let points: Vec<f32> = grid.points.iter().map(|&x| x as f32).collect();
    program.run(learner.state_mut(), &[("y", &points)], Clock { seed: 0, step: 0 });
    let [log_p, log_q] = [0, 1].map(|k| program.output(k).iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    println!("KL(truth‖model) = {:.1e} nats", OnGrid::new(&grid.weights, &log_p, &log_q).divergence());
    Ok(())
}
