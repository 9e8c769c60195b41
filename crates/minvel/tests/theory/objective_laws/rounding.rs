//! f32: which objectives keep their digits as the step shrinks.

use minvel::flow::{Langevin, Noise};
use minvel::objective::{Contrastive, Denoising, MinimumVelocity, Objective, ProbabilityFlow, Reduction};
use minvel_engine::math::Real;
use minvel_engine::random::{Key, Stream};
use minvel_engine::{Clock, Draw, Expr, Graph, Options, State, grad};
use minvel_testing::within_order;

const ROWS: usize = 64;
const WIDTH: usize = 16;

/// E = ⟨x, ψ(x)⟩ + 3 with a small tanh network: energies of size 3, as in training.
fn network<'g>(g: &'g Graph, x: Expr<'g>) -> Expr<'g> {
    let (w1, w2) = (g.variable("w1", [2, WIDTH]), g.variable("w2", [WIDTH, 2]));
    x.matmul(w1).tanh().matmul(w2).dot(x) + 3.0
}

/// Losses of the rows, or the gradient in w1, computed in T.
fn evaluate<T: Real>(objective: &dyn Objective, gradient: bool) -> Vec<f64> {
    let g = Graph::new();
    let (x, z) = (g.input_rows("x", ROWS, [2]), g.input_rows("z", ROWS, [2]));
    let rows = objective.rows(&|x| network(&g, x), x.into(), Noise::given(z));
    let output = if gradient { grad(rows, &[g.variable("w1", [2, WIDTH])])[0] } else { rows };
    // The same numbers in f32 and f64: all are exact in f32.
    let draw = |stream: u32, len: usize| -> Vec<T> {
        Stream::new(Key::new(32, 0), stream)
            .samples(Draw::Normal)
            .take(len)
            .map(|v| T::from_f64(v as f32 as f64))
            .collect()
    };
    let mut state = State::new(1);
    state.set("w1", &draw(2, 2 * WIDTH), 2 * WIDTH);
    state.set("w2", &draw(3, 2 * WIDTH), 2 * WIDTH);
    let mut program = g.compile::<T>(&[output], &[], &Options { threads: 1, ..Options::default() });
    program.run(&mut state, &[("x", &draw(0, 2 * ROWS)), ("z", &draw(1, 2 * ROWS))], Clock { seed: 0, step: 0 });
    program.output(0).iter().map(|v| v.to_f64()).collect()
}

/// Root-mean-square error of f32 relative to the root mean square of the exact values.
fn relative_error(objective: &dyn Objective, exact: &dyn Objective, gradient: bool) -> f64 {
    let (rounded, reference) = (evaluate::<f32>(objective, gradient), evaluate::<f64>(exact, gradient));
    let square = |v: f64| v * v;
    let error: f64 = rounded.iter().zip(&reference).map(|(a, b)| square(a - b)).sum();
    (error / reference.iter().map(|b| square(*b)).sum::<f64>()).sqrt()
}

fn velocity(step: f64, reduction: Reduction, exact_difference: bool) -> MinimumVelocity {
    MinimumVelocity { reduction, exact_difference, ..MinimumVelocity::new(Langevin, step) }
}

#[test]
fn minimum_velocity_loses_digits_as_it_says() {
    use Reduction::{Antithetic, ControlVariate};
    let steps = [1e-4, 1e-6, 1e-8];
    for gradient in [false, true] {
        let errors = |reduction, exact| {
            steps.map(|step| {
                let reference = velocity(step, reduction, true);
                relative_error(&velocity(step, reduction, exact), &reference, gradient)
            })
        };
        let [plain, exact, even] =
            [(ControlVariate, false), (ControlVariate, true), (Antithetic, true)].map(|(r, e)| errors(r, e));
        println!("relative errors at {steps:?}, gradient {gradient}: {plain:?}, {exact:?}, {even:?}");
        assert!(within_order("plain", &steps, &plain, -1.0, 0.15));
        assert!(within_order("exact", &steps, &exact, -0.5, 0.15));
        assert!(even.iter().all(|e| *e < 64.0 * f64::from(f32::EPSILON)), "antithetic: {even:?}");
        assert!(plain[2] > 0.5 && exact[2] < 1e-3, "at ε = 1e-8 only exact differences are left");
    }
}

#[test]
fn antithetic_exact_differences_work_at_any_step() {
    for step in [1e-2, 1e-5, 1e-10, 1e-14] {
        let objective = velocity(step, Reduction::Antithetic, true);
        let error = relative_error(&objective, &objective, false);
        println!("ε = {step:.0e}: relative error {error:.1e}");
        assert!(error < 64.0 * f64::from(f32::EPSILON));
    }
}

#[test]
fn the_other_objectives_keep_their_digits_with_exact_differences() {
    let step: f64 = 1e-8;
    let denoising = |exact_difference| Denoising { exact_difference, ..Denoising::new(step) };
    let flow = |exact_difference| ProbabilityFlow { exact_difference, ..ProbabilityFlow::new(step.sqrt()) };
    let contrastive = |exact_difference| Contrastive { exact_difference, ..Contrastive::new(Langevin, step) };
    let errors = |objectives: [&dyn Objective; 2], gradient| {
        objectives.map(|objective| relative_error(objective, objectives[1], gradient))
    };
    for (name, [plain, exact]) in [
        ("denoising", errors([&denoising(false), &denoising(true)], false)),
        ("probability flow", errors([&flow(false), &flow(true)], false)),
        ("contrastive divergence", errors([&contrastive(false), &contrastive(true)], true)),
    ] {
        println!("{name} at ε = {step:.0e}: relative error {plain:.1e} plain, {exact:.1e} exact");
        assert!(exact < 0.01 && plain > 30.0 * exact, "{name}");
    }
}
