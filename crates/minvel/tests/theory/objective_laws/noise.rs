//! Noise that is drawn: its laws, and objectives estimated with it.

use minvel::flow::{Langevin, Law, Noise};
use minvel::objective::{MinimumVelocity, Objective, Sliced};
use minvel_engine::{Clock, Draw, Expr, Graph, Options, State};
use minvel_testing::{within_sigma, within_ulps};

const ROWS: usize = 40_000;
const LAWS: [Law; 3] = [Law::Gaussian, Law::Rademacher, Law::Sphere];

fn run(output: Expr) -> Vec<f64> {
    let mut program = output.graph().compile::<f64>(&[output], &[], &Options::default());
    program.run(&mut State::new(1), &[], Clock { seed: 11, step: 0 });
    program.output(0).to_vec()
}

#[test]
fn noise_is_white() {
    for law in LAWS {
        let g = Graph::new();
        let x = g.random_rows(Draw::Normal, 0, ROWS, [3]);
        let z = Noise::drawn(law, 1).like(x);
        let component = |i: usize| z.at(-1, i);
        // In one sum, so that signs ±1 have a variance too.
        let white = |scale: f64| {
            let square = 0.5 * (scale * (component(0) + component(1))).square();
            within_sigma(&format!("{law:?}: E(z₀ + z₁)²/2"), &run(square), 1.0, 4.0)
        };
        assert!(white(1.0), "{law:?}");
        assert!(!white(1.1), "{law:?}: noise 10 % too large must be seen");
        for (name, product) in [
            ("z₀", component(0)),
            ("z₀z₁", component(0) * component(1)),
            ("z₀³", component(0).powi(3)),
            ("z₀x₀", component(0) * x.at(-1, 0)),
        ] {
            assert!(within_sigma(&format!("{law:?}: E {name}"), &run(product), 0.0, 4.0));
        }
        let sum = run((z + Noise::drawn(law, 1).opposite().like(x)).square().sum(-1));
        assert!(sum.iter().all(|s| *s == 0.0), "{law:?}: the opposite noise is the negative one");
    }
    let g = Graph::new();
    let z = Noise::drawn(Law::Sphere, 1).like(g.random_rows(Draw::Normal, 0, ROWS, [3]));
    assert!(run(z.square().sum(-1)).iter().all(|s| within_ulps(*s, 3.0, 8.0)), "length √d");
}

/// L of E = ¼(x₀⁴ + x₁⁴) + ½x₀x₁ under N(0, I₂): E|∇E|² = 2(15 + ¼) and EΔE = 6.
const EXPECTED: f64 = 2.0 * 15.25 - 2.0 * 6.0;

fn energy(x: Expr) -> Expr {
    0.25 * x.powi(4).sum(-1) + 0.5 * x.at(-1, 0) * x.at(-1, 1)
}

#[test]
fn objectives_with_drawn_noise_estimate_the_loss() {
    for law in LAWS {
        let g = Graph::new();
        let x = g.random_rows(Draw::Normal, 0, ROWS, [2]);
        let rows = |objective: &dyn Objective, noise| run(objective.rows(&|x| energy(x), x.into(), noise));
        let velocity = MinimumVelocity::new(Langevin, 1e-6);
        assert!(within_sigma("minimum velocity", &rows(&velocity, Noise::drawn(law, 1)), EXPECTED, 4.0));
        let sliced: Vec<f64> = rows(&Sliced { reduced: true }, Noise::drawn(law, 1)).iter().map(|j| 2.0 * j).collect();
        assert!(within_sigma("sliced", &sliced, EXPECTED, 4.0));
        let louder = Noise::given(1.1 * Noise::drawn(law, 1).like(x));
        let louder: Vec<f64> = rows(&velocity, louder);
        let paired: Vec<f64> = louder.iter().zip(rows(&velocity, Noise::drawn(law, 1))).map(|(a, b)| a - b).collect();
        assert!(!within_sigma("noise 10 % too large", &paired, 0.0, 4.0), "the test has no power");
    }
}
