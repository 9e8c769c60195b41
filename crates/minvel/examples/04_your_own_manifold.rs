//! **Four.** Your own manifold in one file. The half line x > 0 with the metric dx²/x², in which a factor of two is the same
//! distance everywhere: the geometry of scales and rates. Learns a log-normal distribution on it by Riemannian Langevin steps
//! and prints its parameters: `mean of log x 0.70 (true 0.70), deviation 0.50 (true 0.50)`. Runs for two seconds.
use minvel::Manifold;
use minvel::flow::{FlowForm, Law, Noise, RiemannianLangevin};
use minvel::manifold::{Grid, Metric};
use minvel::objective::{MinimumVelocity, Objective};
use minvel_engine::optim::{Optimiser, RateSchedule};
use minvel_engine::{Draw, Expr, Graph, Options, Shape, State};
use std::fmt;

/// R₊ with ⟨u, v⟩_x = uv/x²; the chart is log x, in which it is flat.
#[derive(Debug)]
struct HalfLine;

impl fmt::Display for HalfLine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("half-line")
    }
}

impl Manifold for HalfLine {
    fn dim(&self) -> usize {
        1
    }
    fn ambient(&self) -> usize {
        1
    }
    fn inner<'g>(&self, x: Expr<'g>, u: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        (u * v / x.square()).sum(-1)
    }
    fn project<'g>(&self, _: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        v
    }
    fn gradient<'g>(&self, x: Expr<'g>, derivative: Expr<'g>) -> Expr<'g> {
        x.square() * derivative
    }
    fn tangent_normal<'g>(&self, x: Expr<'g>, z: Expr<'g>) -> Expr<'g> {
        x * z
    }
    fn exp_delta<'g>(&self, x: Expr<'g>, v: Expr<'g>) -> Expr<'g> {
        x * (v / x).expm1()
    }
    fn log<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        x * ((y - x) / x).log1p()
    }
    fn distance<'g>(&self, x: Expr<'g>, y: Expr<'g>) -> Expr<'g> {
        (y / x).log().abs().sum(-1)
    }
    fn settle<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x
    }
    fn choose_chart<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x.like(1.0)
    }
    fn to_chart<'g>(&self, x: Expr<'g>, _: Expr<'g>) -> Expr<'g> {
        x.log()
    }
    fn from_chart<'g>(&self, y: Expr<'g>, _: Expr<'g>) -> Expr<'g> {
        y.exp()
    }
    fn metric<'g>(&self, y: Expr<'g>) -> Metric<'g> {
        Metric::flat(y)
    }
    fn features<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        x.log()
    }
    fn volume(&self) -> Option<f64> {
        None
    }
    fn sample_base<'g>(&self, graph: &'g Graph, rows: usize, stream: u32) -> Expr<'g> {
        graph.random_rows(Draw::Normal, stream, rows, [1]).exp()
    }
    fn base_energy<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        0.5 * x.log().square().sum(-1) + 0.5 * std::f64::consts::TAU.ln()
    }
    fn grid(&self, resolution: usize, radius: f64) -> Option<Grid> {
        let width = 2.0 * radius / resolution as f64;
        let points = (0..resolution).map(|i| ((i as f64 + 0.5) * width - radius).exp()).collect();
        Some(Grid { points, weights: vec![width; resolution] })
    }
    fn check(&self, point: &[f64]) -> Result<(), String> {
        if point.len() == 1 && point[0] > 0.0 { Ok(()) } else { Err(format!("{point:?} is not a positive number")) }
    }
}

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let steps = if quick { 200 } else { 3000 };
    let (mean, deviation) = (0.7, 0.5);

    let g = &Graph::new();
    let (m, a) = (g.variable("mean", []), g.variable("precision", []));
    let energy = |x| 0.5 * a * (Expr::log(x) - m).square().sum(-1);
    let data = (mean + deviation * g.random_rows(Draw::Normal, 0, 500, [1])).exp();
    let flow = RiemannianLangevin::new(HalfLine, FlowForm::Geodesic);
    let loss = MinimumVelocity::new(flow, 1e-4).loss(&energy, data.into(), Noise::drawn(Law::Gaussian, 1));

    let schedule = RateSchedule::Cosine { steps, floor: 0.0 };
    let updates = Optimiser { schedule, ..Optimiser::adam(2e-2) }.minimise(loss, &[m, a]);
    let mut program = g.compile::<f32>(&[loss], &updates.updates, &Options::default());
    let mut state = State::new(1);
    state.set("mean", &[0.0], Shape::whole([]).len());
    state.set("precision", &[1.0], 1);
    updates.initialise(&mut state);
    program.run_steps(&mut state, &[], 1, 0..steps);
    let learnt = |name: &str| state.get(name).unwrap_or_default()[0];
    let spread = learnt("precision").sqrt().recip();
    println!("mean of log x {:.2} (true {mean:.2}), deviation {spread:.2} (true {deviation:.2})", learnt("mean"));
}
