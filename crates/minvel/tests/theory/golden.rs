//! Golden vectors: one small network, one point, one noise; every objective's value and gradient to the last digits.
//!
//! Source: docs/math §7 (computed independently in f64). The network is ψ(x) = W₃ tanh(W₂ tanh(W₁x + b₁) + b₂) + b₃
//! with hidden width 3, E = x·ψ(x) and θ_k = 0.6 sin(1.3k + 0.5).

use minvel::flow::{FlowForm, Langevin, Noise, Pace, RiemannianLangevin};
use minvel::manifold::{Euclidean, Sphere};
use minvel::objective::{Contrastive, Denoising, MinimumVelocity, Objective, Reduction, ScoreMatching, Sliced};
use minvel::{Flow, Manifold};
use minvel_engine::{Clock, Expr, Graph, Options, State, grad, jvp};
use minvel_testing::{within_order, within_ulps};

const WIDTH: usize = 3;

/// The network's energy, a point and noise, as inputs of a graph.
struct Scene<'g> {
    theta: Expr<'g>,
    x: Expr<'g>,
    z: Expr<'g>,
    point: Vec<f64>,
    noise: Vec<f64>,
}

/// θ as one vector, in the order W₁, b₁, W₂, b₂, W₃, b₃ (matrices by rows of outputs).
fn energy<'g>(theta: Expr<'g>, x: Expr<'g>) -> Expr<'g> {
    let d = x.shape().dims[0];
    let mut used = 0;
    let mut take = |len: usize| {
        used += len;
        theta.slice(0, used - len, len)
    };
    let mut layer = |h: Expr<'g>, inputs: usize, outputs: usize| {
        let weights = take(outputs * inputs).reshape([outputs, inputs]);
        h.matmul(weights.t()) + take(outputs)
    };
    let first = layer(x, d, WIDTH).tanh();
    let second = layer(first, WIDTH, WIDTH).tanh();
    layer(second, WIDTH, d).dot(x)
}

fn parameters(d: usize) -> Vec<f64> {
    let count = WIDTH * d + WIDTH + WIDTH * WIDTH + WIDTH + d * WIDTH + d;
    (0..count).map(|k| 0.6 * (1.3 * k as f64 + 0.5).sin()).collect()
}

impl<'g> Scene<'g> {
    fn new(g: &'g Graph, point: &[f64], noise: &[f64]) -> Self {
        Scene {
            theta: g.variable("theta", [parameters(point.len()).len()]),
            x: g.input_rows("x", 1, [point.len()]),
            z: g.input_rows("z", 1, [noise.len()]),
            point: point.to_vec(),
            noise: noise.to_vec(),
        }
    }

    fn euclid(g: &'g Graph) -> Self {
        Self::new(g, &[0.3, -0.7], &[0.5, -1.2])
    }

    fn chart(g: &'g Graph) -> Self {
        Self::new(g, &[0.36, 0.48, -0.8], &[0.5, -1.2])
    }

    fn embedded(g: &'g Graph) -> Self {
        Self::new(g, &[0.36, 0.48, -0.8], &[0.5, -1.2, 0.3])
    }

    fn energy(&self) -> impl Fn(Expr<'g>) -> Expr<'g> + use<'g> {
        let theta = self.theta;
        move |x| energy(theta, x)
    }

    fn rows(&self, objective: &dyn Objective) -> Expr<'g> {
        objective.rows(&self.energy(), self.x.into(), Noise::given(self.z))
    }

    fn values(&self, outputs: &[Expr<'g>]) -> Vec<Vec<f64>> {
        let options = Options { threads: 1, ..Options::default() };
        let mut program = self.x.graph().compile::<f64>(outputs, &[], &options);
        let mut state = State::new(1);
        let theta = parameters(self.point.len());
        state.set("theta", &theta, theta.len());
        program.run(&mut state, &[("x", &self.point), ("z", &self.noise)], Clock { seed: 0, step: 0 });
        (0..outputs.len()).map(|k| program.output(k).to_vec()).collect()
    }

    fn value(&self, output: Expr<'g>) -> f64 {
        self.values(&[output])[0][0]
    }

    /// The loss and its gradient in θ.
    fn loss_and_gradient(&self, objective: &dyn Objective) -> (f64, Vec<f64>) {
        let loss = self.rows(objective);
        let [value, gradient] = self.values(&[loss, grad(loss, &[self.theta])[0]]).try_into().expect("two outputs");
        (value[0], gradient)
    }
}

fn sum_and_norm(v: &[f64]) -> (f64, f64) {
    (v.iter().sum(), v.iter().map(|x| x * x).sum::<f64>().sqrt())
}

/// Asserts agreement with a printed value within `amplification` times a few rounding errors.
#[track_caller]
fn assert_printed(what: &str, got: f64, printed: f64, amplification: f64) {
    println!("{what}: {got:.16}, printed {printed:.16}, off by {:.1e}", got - printed);
    assert!(within_ulps(got, printed, 16.0 * amplification), "{what} is {got}, not {printed}");
}

/// Differences of energies over ε amplify rounding by 2/ε, here and where the values were computed.
fn quotient(step: f64) -> f64 {
    2.0 / step
}

#[test]
fn the_network_has_the_printed_energy_gradient_and_hessian() {
    let g = Graph::new();
    let scene = Scene::euclid(&g);
    assert!(within_ulps(parameters(2)[0], 0.2876553231625218, 4.0));
    assert!(within_ulps(parameters(2)[28], -0.43004221389639447, 4.0));
    assert_eq!((parameters(2).len(), parameters(3).len()), (29, 36));
    let e = scene.energy()(scene.x);
    let de = grad(e, &[scene.x])[0];
    let along = |v: [f64; 2]| g.table(&v, [2]).broadcast(&scene.x.shape());
    let [row0, row1] = [[1.0, 0.0], [0.0, 1.0]].map(|v| jvp(&[de], &[(scene.x, along(v))])[0]);
    let slope = jvp(&[e], &[(scene.x, along([1.0, 2.0]))])[0];
    let got = scene.values(&[e, de, row0, row1, slope]);
    assert_printed("E", got[0][0], 0.028167510357114567, 1.0);
    for (i, printed) in [-1.0396727762316162, -0.5831562220038785].into_iter().enumerate() {
        assert_printed("∇E", got[1][i], printed, 1.0);
    }
    let hessian = [[-0.05034581678458985, -0.16830579032075885], [-0.16830579032075885, 0.09374302771938063]];
    for (i, row) in hessian.iter().enumerate() {
        (0..2).for_each(|j| assert_printed("∇²E", got[2 + i][j], row[j], 1.0));
    }
    assert_printed("∇E·(1,2)", got[4][0], -2.2059852202393735, 1.0);
}

#[test]
fn score_matching_and_its_sliced_forms_have_the_printed_values() {
    let g = Graph::new();
    let scene = Scene::euclid(&g);
    let value = |objective: &dyn Objective| scene.value(scene.rows(objective));
    assert_printed("2J", 2.0 * value(&ScoreMatching::new()), 1.3341962390294115, 1.0);
    assert_printed("2 SSM-VR", 2.0 * value(&Sliced { reduced: true }), 0.7722497526896507, 1.0);
    assert_printed("SSM", value(&Sliced { reduced: false }), -0.308179258816012, 1.0);
}

#[test]
fn the_langevin_step_lands_where_it_is_printed() {
    let g = Graph::new();
    let scene = Scene::euclid(&g);
    let step = Langevin.step(&scene.energy(), scene.x.into(), Pace::learning(g.scalar(0.01)), Noise::given(scene.z));
    let there = scene.energy()(step.to);
    let got = scene.values(&[step.to, there, grad(there, &[step.to])[0]]);
    for (i, printed) in [0.3759090419998128, -0.8667898463747519].into_iter().enumerate() {
        assert_printed("x⁻", got[0][i], printed, 1.0);
    }
    assert_printed("E(x⁻)", got[1][0], 0.049575393573909776, 1.0);
    for (i, printed) in [-1.015469951090765, -0.6074955930879079].into_iter().enumerate() {
        assert_printed("∇E(x⁻)", got[2][i], printed, 1.0);
    }
}

#[test]
fn minimum_velocity_has_the_printed_values_and_gradients() {
    let g = Graph::new();
    let scene = Scene::euclid(&g);
    for exact_difference in [true, false] {
        let objective =
            |step, reduction| MinimumVelocity { exact_difference, reduction, ..MinimumVelocity::new(Langevin, step) };
        let (value, gradient) = scene.loss_and_gradient(&objective(0.01, Reduction::ControlVariate));
        assert_printed("L̂", value, 0.8082084662359296, quotient(0.01));
        for (k, printed) in [(0, -0.3586129366045272), (9, -0.13840149823444414), (28, -1.190651815091826)] {
            assert_printed("dL̂/dθ", gradient[k], printed, quotient(0.01));
        }
        assert_printed("Σ dL̂/dθ", sum_and_norm(&gradient).0, -3.2503386503309613, quotient(0.01));
        assert_printed("|dL̂/dθ|", sum_and_norm(&gradient).1, 4.494336268860833, quotient(0.01));
        let plain = scene.value(scene.rows(&objective(0.01, Reduction::None)));
        assert_printed("L̂ plain", plain, -4.281576643359042, quotient(0.01));

        let (value, gradient) = scene.loss_and_gradient(&objective(1e-4, Reduction::ControlVariate));
        assert_printed("L̂", value, 0.7758965105870985, quotient(1e-4));
        assert_printed("Σ dL̂/dθ", sum_and_norm(&gradient).0, -3.0929832870583454, quotient(1e-4));
        assert_printed("|dL̂/dθ|", sum_and_norm(&gradient).1, 4.629721764488183, quotient(1e-4));
        let plain = scene.value(scene.rows(&objective(1e-4, Reduction::None)));
        assert_printed("L̂ plain", plain, -50.121954585362616, quotient(1e-4));
    }
}

#[test]
fn the_adaptive_step_and_the_penalty_have_the_printed_values() {
    let g = Graph::new();
    let scene = Scene::euclid(&g);
    let pace = Pace { adaptive: true, ..Pace::learning(g.scalar(0.01)) };
    let step = Langevin.step(&scene.energy(), scene.x.into(), pace, Noise::given(scene.z));
    assert_printed("N", scene.value(step.gradient.square().sum(-1)), 1.420990660898993, 1.0);
    assert_printed("ε_i", scene.value(step.step), 0.0070373439285473394, 1.0);

    let adaptive = MinimumVelocity { adaptive: true, ..MinimumVelocity::new(Langevin, 0.01) };
    let (value, gradient) = scene.loss_and_gradient(&adaptive);
    assert_printed("L̂", value, 0.8025087701401991, quotient(0.007));
    assert_printed("Σ dL̂/dθ", sum_and_norm(&gradient).0, -3.2229184776717332, quotient(0.007));
    assert_printed("|dL̂/dθ|", sum_and_norm(&gradient).1, 4.517804729366685, quotient(0.007));
    let penalised = scene.value(scene.rows(&MinimumVelocity { penalty: 1.0, ..adaptive }));
    assert_printed("R", penalised - value, 0.0029736041229079064, quotient(0.007));
}

/// docs/math §2.13 (6): gradient and value of −(2/ε)·{E(sg y⁻) − E(y) − w·∂E(y)}, w = sg(u + (ε/2)·G⁻¹∂E(y⁻)), in the chart.
fn surrogate(scene: &Scene, manifold: impl Manifold + Copy + 'static, step: f64) -> (Vec<f64>, f64) {
    let flow = RiemannianLangevin::new(manifold, FlowForm::Chart);
    let pace = Pace::learning(scene.x.graph().scalar(step));
    let moved = flow.step(&scene.energy(), scene.x.into(), pace, Noise::given(scene.z));
    let to = (moved.at + moved.delta).stop_gradient();
    let there = scene.energy()(manifold.from_chart(to, manifold.choose_chart(scene.x)));
    let v = manifold.metric(moved.at).inverse * grad(there, &[to])[0];
    let w = (moved.diffusion.expect("Langevin is noisy") + 0.5 * step * v).stop_gradient();
    let braces = there - moved.energy - jvp(&[moved.energy], &[(moved.at, w)])[0];
    let surrogate = -2.0 / step * braces;
    let got = scene.values(&[grad(surrogate, &[scene.theta])[0], surrogate]);
    (got[0].clone(), got[1][0])
}

#[test]
fn fact_27_the_gradient_is_that_of_the_surrogate_with_a_dual_number() {
    for step in [0.01, 1e-4] {
        let (flat, round) = (Graph::new(), Graph::new());
        let (euclid, chart) = (Scene::euclid(&flat), Scene::chart(&round));
        let (on_euclid, value) = surrogate(&euclid, Euclidean(2), step);
        if step == 0.01 {
            assert_printed("the surrogate's value", value, 2.2182297644154, quotient(step));
        }
        let (on_chart, _) = surrogate(&chart, Sphere(2), step);
        let riemannian = MinimumVelocity::new(RiemannianLangevin::new(Sphere(2), FlowForm::Chart), step);
        let full =
            [euclid.loss_and_gradient(&MinimumVelocity::new(Langevin, step)).1, chart.loss_and_gradient(&riemannian).1];
        for (full, dual) in full.iter().zip([on_euclid, on_chart]) {
            let off = full.iter().zip(&dual).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            println!("ε = {step}: autodiff and the dual number differ by {off:.1e}");
            assert!(within_ulps(off, 0.0, 16.0 * quotient(step)));
        }
    }
}

#[test]
fn denoising_has_the_printed_values() {
    let g = Graph::new();
    let scene = Scene::euclid(&g);
    for exact_difference in [true, false] {
        let objective = |reduction| Denoising { reduction, exact_difference, ..Denoising::new(0.01) };
        let value = |reduction| scene.value(scene.rows(&objective(reduction)));
        assert_printed("DSM", value(Reduction::None), 166.20798483640635, 1.0);
        assert_printed("DSM-VR", value(Reduction::ControlVariate), 0.8070064021832764, 20.0);
    }
}

#[test]
fn contrastive_divergence_has_the_printed_gradients() {
    let g = Graph::new();
    let scene = Scene::euclid(&g);
    for exact_difference in [true, false] {
        let gradient = |reduction| {
            let objective = Contrastive { reduction, exact_difference, ..Contrastive::new(Langevin, 0.01) };
            sum_and_norm(&scene.loss_and_gradient(&objective).1)
        };
        let (sum, norm) = gradient(Reduction::None);
        assert_printed("Σ plain", sum, 17.621744650342176, quotient(0.01));
        assert_printed("norm plain", norm, 34.56205965443183, quotient(0.01));
        let (sum, norm) = gradient(Reduction::ControlVariate);
        assert_printed("Σ", sum, -1.6399769413297791, quotient(0.01));
        assert_printed("norm", norm, 2.2417203320530446, quotient(0.01));
    }
}

#[test]
fn on_the_sphere_the_derivatives_and_the_chart_step_are_as_printed() {
    let g = Graph::new();
    let scene = Scene::chart(&g);
    let e = scene.energy()(scene.x);
    let (squared, laplacian) = ScoreMatching::on(Sphere(2)).derivatives(&scene.energy(), scene.x);
    let flow = RiemannianLangevin::new(Sphere(2), FlowForm::Chart);
    let moved = flow.step(&scene.energy(), scene.x.into(), Pace::learning(g.scalar(0.01)), Noise::given(scene.z));
    let y_minus = moved.at + moved.delta;
    let got = scene.values(&[
        e,
        grad(e, &[scene.x])[0],
        moved.at,
        moved.gradient,
        squared,
        laplacian,
        moved.drift,
        y_minus,
        moved.to,
        scene.energy()(moved.to),
    ]);
    let printed: [&[f64]; 10] = [
        &[-0.6233549652807626],
        &[-0.8592135443611326, 0.20755706054493767, 0.8099348437092904],
        &[-0.2, -0.26666666666666666],
        &[0.9462583858393809, -1.1740373676617648],
        &[0.7017804547646656],
        &[1.6948532377872727],
        &[-0.14602752867891683, 0.1811786061206428],
        &[-0.16217656522086982, -0.3591357847636666],
        &[0.2807572195256445, 0.6217295589229309, -0.7311824254218142],
        &[-0.47300306302794937],
    ];
    for (k, (got, printed)) in got.iter().zip(printed).enumerate() {
        got.iter().zip(printed).for_each(|(a, b)| assert_printed(&format!("line {k}"), *a, *b, 1.0));
    }
    let pointwise = 2.0 * scene.value(scene.rows(&ScoreMatching::on(Sphere(2))));
    assert_printed("pointwise L", pointwise, -2.68792602080988, 1.0);
}

#[test]
fn on_the_sphere_minimum_velocity_has_the_printed_values_and_gradients() {
    let g = Graph::new();
    let scene = Scene::chart(&g);
    let objective = |step| MinimumVelocity::new(RiemannianLangevin::new(Sphere(2), FlowForm::Chart), step);
    let (value, gradient) = scene.loss_and_gradient(&objective(0.01));
    assert_printed("L̂", value, -0.498011527476494, quotient(0.01));
    assert_printed("Σ dL̂/dθ", sum_and_norm(&gradient).0, 0.23823295956459445, quotient(0.01));
    assert_printed("|dL̂/dθ|", sum_and_norm(&gradient).1, 9.520499958154316, quotient(0.01));
    assert_printed("L̂", scene.value(scene.rows(&objective(1e-4))), -0.8223383862712708, quotient(1e-4));

    // The limit for this z: |grad E|² − 2zᵀG^{−1/2}∂²E G^{−1/2}z − 2b·∂E, with b = 0 on S²; odd terms leave √ε.
    let steps = [1e-6, 1e-8, 1e-10];
    let off = steps.map(|step| scene.value(scene.rows(&objective(step))) + 0.8592664838437858);
    assert!(within_order("towards the limit", &steps, &off, 0.5, 0.01));
}

#[test]
fn along_the_embedded_sphere_minimum_velocity_has_the_printed_values_and_gradients() {
    let g = Graph::new();
    let scene = Scene::embedded(&g);
    let objective = |form, step| MinimumVelocity::new(RiemannianLangevin::new(Sphere(2), form), step);
    let (value, gradient) = scene.loss_and_gradient(&objective(FlowForm::Settled, 0.01));
    assert_printed("L̂", value, -1.5832257814560657, quotient(0.01));
    assert_printed("Σ dL̂/dθ", sum_and_norm(&gradient).0, 2.4149806655309636, quotient(0.01));
    assert_printed("|dL̂/dθ|", sum_and_norm(&gradient).1, 7.251286832551639, quotient(0.01));
    let value = |form| scene.value(scene.rows(&objective(form, 1e-4)));
    assert_printed("normalise", value(FlowForm::Settled), -1.1859504406559405, quotient(1e-4));
    assert_printed("exp", value(FlowForm::Geodesic), -1.1606579747587207, quotient(1e-4));
    for form in [FlowForm::Settled, FlowForm::Geodesic] {
        let steps = [1e-6, 1e-8, 1e-10];
        let off = steps.map(|step| scene.value(scene.rows(&objective(form, step))) + 1.1386648383696583);
        assert!(within_order("towards the limit", &steps, &off, 0.5, 0.01));
    }
}

#[test]
fn fact_28_on_the_embedded_sphere_the_exact_dual_direction_matters() {
    // w = u + (ε/2)·P_x[(v − y⁻(y⁻·v))/|x+ξ|] is exact, w = u + (ε/2)·P_x v is not.
    let g = Graph::new();
    let (scene, step, sphere) = (Scene::embedded(&g), 0.01, Sphere(2));
    let flow = RiemannianLangevin::new(sphere, FlowForm::Settled);
    let moved = flow.step(&scene.energy(), scene.x.into(), Pace::learning(g.scalar(step)), Noise::given(scene.z));
    let (x, u, to) = (moved.at, moved.diffusion.expect("Langevin is noisy"), moved.to.stop_gradient());
    let v = grad(scene.energy()(to), &[to])[0];
    let length = (x + step * moved.drift + u).square().sum(-1).sqrt().expand(-1);
    let gradient = |v: Expr| {
        let w = (u + 0.5 * step * sphere.project(x, v)).stop_gradient();
        let surrogate = -2.0 / step * (scene.energy()(to) - moved.energy - jvp(&[moved.energy], &[(x, w)])[0]);
        scene.values(&[grad(surrogate, &[scene.theta])[0]]).remove(0)
    };
    let (_, full) = scene.loss_and_gradient(&MinimumVelocity::new(flow, step));
    let distance = |a: &[f64]| a.iter().zip(&full).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let (exact, shortcut) = (distance(&gradient(sphere.project(to, v) / length)), distance(&gradient(v)));
    println!("exact w: off by {exact:.1e}; shortcut: {shortcut:.4}");
    assert!(within_ulps(exact, 0.0, 16.0 * quotient(step)));
    assert!(minvel_testing::within_digits(shortcut, 0.1316, 4));
}
