//! Laws of convolutional networks: layers against loops, derivatives, differences, spectral norms, sizes, pixels.

use minvel::autoencoder::{
    Architecture, Autoencoder, AutoencoderSettings, Likelihood, Matched, NetworkKind, Posterior, Views, initialise,
};
use minvel::energy::{Energy, Head, Mlp, parameters};
use minvel::manifold;
use minvel::network::{Activation, Features, Layer, Network, Parameter};
use minvel_engine::random::{Draw, Key, Stream};
use minvel_engine::{Clock, Expr, Graph, Options, State, difference, grad, jvp};
use minvel_testing::{within_sigma, within_ulps};

const FILTERS: [usize; 3] = [64, 128, 256];

fn numbers(draw: Draw, count: usize, stream: u32) -> Vec<f64> {
    Stream::new(Key::new(11, 0), stream).samples(draw).take(count).collect()
}

fn start(parameters: &[Parameter]) -> State<f64> {
    let mut state = State::new(1);
    initialise(parameters, &mut state, 3);
    for p in parameters.iter().filter(|p| p.dims.len() == 1) {
        // Biases begin with zero, which would hide where they are added.
        let values = numbers(Draw::Normal, p.dims[0], 9);
        state.set(&p.name, &values, p.dims[0]);
    }
    state
}

fn run(outputs: &[Expr], state: &State<f64>, inputs: &[(&str, &[f64])]) -> Vec<Vec<f64>> {
    let mut program = outputs[0].graph().compile::<f64>(outputs, &[], &Options { threads: 1, ..Options::default() });
    program.run(&mut state.clone(), inputs, Clock { seed: 1, step: 0 });
    (0..outputs.len()).map(|k| program.output(k).to_vec()).collect()
}

/// What a single layer makes of an image, its weights and biases.
fn single(layer: Layer, image: &[f64]) -> [Vec<f64>; 3] {
    let network = Network::of("n", image.len(), vec![layer], Activation::Tanh);
    let state = start(&network.parameters());
    let g = Graph::new();
    let out = network.apply(g.input_rows("x", 1, [image.len()]));
    let got = run(&[out], &state, &[("x", image)]).remove(0);
    [got, state.get("n/w0").unwrap().to_vec(), state.get("n/b0").unwrap().to_vec()]
}

#[test]
fn a_convolution_is_the_sum_over_its_window_at_every_second_pixel() {
    let [h, w, c] = [6, 4, 2];
    let image = numbers(Draw::Normal, h * w * c, 0);
    let filters = 3;
    let [got, weights, biases] = single(Layer::Convolution { image: [h, w, c], filters }, &image);
    assert_eq!(got.len(), 3 * 2 * filters);
    for (k, got) in got.iter().enumerate() {
        let (y, x, f) = (k / (2 * filters), k / filters % 2, k % filters);
        let mut sum = biases[f];
        for tap in 0..25 * c {
            let (dy, dx, channel) = (tap / (5 * c), tap / c % 5, tap % c);
            let (row, column) = (2 * y + dy, 2 * x + dx);
            if (2..h + 2).contains(&row) && (2..w + 2).contains(&column) {
                sum += weights[tap * filters + f] * image[((row - 2) * w + column - 2) * c + channel];
            }
        }
        assert!(within_ulps(*got, sum, 64.0), "pixel {k}: {got}, not {sum}");
    }
}

#[test]
fn a_transposed_convolution_spreads_windows_and_leaves_out_one_row_before_and_two_after() {
    let [h, w, c] = [3, 2, 2];
    let image = numbers(Draw::Normal, h * w * c, 0);
    let filters = 3;
    let [got, weights, biases] = single(Layer::Transposed { image: [h, w, c], filters }, &image);
    let (high, wide) = (2 * h + 3, 2 * w + 3);
    let mut valid = vec![0.0; high * wide * filters];
    for (k, value) in image.iter().enumerate() {
        let (y, x, channel) = (k / (w * c), k / c % w, k % c);
        for (tap, weight) in weights[channel * 25 * filters..][..25 * filters].iter().enumerate() {
            let (dy, dx, f) = (tap / (5 * filters), tap / filters % 5, tap % filters);
            valid[((2 * y + dy) * wide + 2 * x + dx) * filters + f] += weight * value;
        }
    }
    assert_eq!(got.len(), 4 * h * w * filters);
    for (k, got) in got.iter().enumerate() {
        let (y, x, f) = (k / (2 * w * filters), k / filters % (2 * w), k % filters);
        let expected = valid[((y + 1) * wide + x + 1) * filters + f] + biases[f];
        assert!(within_ulps(*got, expected, 64.0), "pixel {k}: {got}, not {expected}");
    }
}

#[test]
fn start_values_of_convolutions_have_the_fans_of_their_windows() {
    for (layer, inputs) in [
        (Layer::Convolution { image: [4, 4, 6], filters: 10 }, 96),
        (Layer::Transposed { image: [4, 4, 6], filters: 10 }, 96),
    ] {
        let network = Network::of("n", inputs, vec![layer], Activation::Relu);
        let mut state = State::<f64>::new(1);
        initialise(&network.parameters(), &mut state, 1);
        let bound = (6.0f64 / (25.0 * 16.0)).sqrt();
        let weights = state.get("n/w0").unwrap();
        assert!(weights.iter().all(|w| w.abs() <= bound));
        let squares: Vec<f64> = weights.iter().map(|w| w * w).collect();
        assert!(within_sigma("variance of weights", &squares, bound * bound / 3.0, 4.0));
        assert!(!within_sigma("1.21 times that", &squares, 1.21 * bound * bound / 3.0, 4.0));
    }
}

fn count(parameters: &[Parameter]) -> usize {
    parameters.iter().map(|p| p.dims.iter().product::<usize>()).sum()
}

fn convolutional(filters: &[usize], hidden: &[usize]) -> Architecture {
    Architecture::Convolutional { filters: filters.to_vec(), hidden: hidden.to_vec() }
}

#[test]
fn parameter_counts_are_the_papers() {
    let (image, architecture) = ([32, 32, 3], convolutional(&FILTERS, &[512]));
    let latent = manifold::parse("sphere:32").unwrap();
    let likelihood = Likelihood::Dequantised { deviation: 0.5f64.sqrt() };
    let model = Autoencoder::new(latent, Posterior::Point, likelihood, image, &architecture, Activation::Relu);
    assert_eq!(count(&model.encoder.parameters()), 3_143_841);
    assert_eq!(count(&model.decoder.parameters()), 1_168_259);
    assert_eq!(model.decoder.pixels(), 3072);
    let hidden = architecture.energy(image);
    let energy = Mlp::layered("e", Features::of_point(33), &hidden, architecture.smooth(), Head::Inner);
    assert_eq!(count(&energy.parameters()), 3_175_457);
}

/// A convolutional energy of points of R³, small.
fn energy() -> Mlp {
    let hidden = convolutional(&[3, 4], &[5]).energy([8, 4, 1]);
    Mlp::layered("e", Features::of_point(3), &hidden, Activation::Softplus, Head::Inner)
}

#[test]
fn derivatives_of_convolutional_energies_are_limits_of_differences() {
    let energy = energy();
    let state = start(&energy.parameters());
    let g = Graph::new();
    let (x, v) = (g.input_rows("x", 4, [3]), g.input_rows("v", 4, [3]));
    let e = energy.energy(x);
    let slope = grad(e, &[x])[0];
    let along = jvp(&[e], &[(x, v)])[0];
    let curved = jvp(&[slope.dot(v)], &[(x, v)])[0]; // vᵀ∇²E v
    let weights = grad(curved.sum_rows(), &parameters(&energy, &g)); // third order
    let mut outputs = vec![e, slope, along, curved];
    outputs.extend(&weights);
    let (xs, vs) = (numbers(Draw::Normal, 12, 1), numbers(Draw::Normal, 12, 2));
    let at = |t: f64, state: &State<f64>| {
        let moved: Vec<f64> = xs.iter().zip(&vs).map(|(x, v)| x + t * v).collect();
        run(&outputs, state, &[("x", &moved), ("v", &vs)])
    };
    // Central differences by Richardson's rule: errors of order t⁴ and of rounding, ε/t.
    let t = f64::EPSILON.powf(0.2);
    let limit = |f: &dyn Fn(f64) -> f64| {
        let central = |t: f64| (f(t) - f(-t)) / (2.0 * t);
        (4.0 * central(0.5 * t) - central(t)) / 3.0
    };
    let close = |got: f64, expected: f64| (got - expected).abs() < t.powi(3) * (1.0 + expected.abs());
    let here = at(0.0, &state);
    for row in 0..4 {
        let inner: f64 = (0..3).map(|i| here[1][3 * row + i] * vs[3 * row + i]).sum();
        assert!(within_ulps(here[2][row], inner, 256.0), "the tangent is the gradient along v");
        assert!(close(limit(&|t| at(t, &state)[0][row]), here[2][row]));
        assert!(close(limit(&|t| at(t, &state)[2][row]), here[3][row]));
        assert!(!close(1.01 * here[3][row], here[3][row]), "no power at {}", here[3][row]);
    }
    for (k, p) in energy.parameters().iter().enumerate() {
        let nudged = |t: f64| {
            let (mut state, mut values) = (state.clone(), state.get(&p.name).unwrap().to_vec());
            values[0] += t;
            state.set(&p.name, &values, values.len());
            at(0.0, &state)[3].iter().sum::<f64>()
        };
        let got = limit(&nudged);
        assert!(close(got, here[4 + k][0]), "{}: {got}, not {}", p.name, here[4 + k][0]);
    }
}

#[test]
fn differences_of_convolutional_energies_do_not_cancel() {
    let energy = energy();
    let state = start(&energy.parameters());
    let g = Graph::new();
    let (x, d) = (g.input_rows("x", 4, [3]), g.input_rows("d", 4, [3]));
    let e = energy.energy(x);
    let outputs = [difference(e, &[(x, d)]), jvp(&[e], &[(x, d)])[0], energy.energy(x + d) - e];
    let xs = numbers(Draw::Normal, 12, 1);
    let steps = |size: f64| numbers(Draw::Normal, 12, 2).iter().map(|v| size * v).collect::<Vec<f64>>();
    let large = run(&outputs, &state, &[("x", &xs), ("d", &steps(0.5))]);
    assert!(large[0].iter().zip(&large[2]).all(|(a, b)| within_ulps(*a, *b, 256.0)), "{large:?}");
    // So small that the second order is below rounding: the difference is the tangent, and subtraction is lost.
    let tiny = run(&outputs, &state, &[("x", &xs), ("d", &steps(1e-17))]);
    let ratio = |k: usize| tiny[k].iter().zip(&tiny[1]).map(|(a, b)| a / b).collect::<Vec<f64>>();
    assert!(ratio(0).iter().all(|r| within_ulps(*r, 1.0, 256.0)), "{:?}", ratio(0));
    assert!(!ratio(2).iter().all(|r| within_ulps(*r, 1.0, 256.0)), "{:?}", ratio(2));
}

#[test]
fn spectral_normalisation_bounds_windows_as_matrices_from_window_to_channel() {
    let (c, f) = (2, 3);
    for (layer, inputs) in [
        (Layer::Convolution { image: [4, 4, c], filters: f }, 32),
        (Layer::Transposed { image: [4, 4, c], filters: f }, 32),
    ] {
        let mut network = Network::of("n", inputs, vec![layer, Layer::Dense(1)], Activation::Softplus);
        network.spectral = true;
        let g = Graph::new();
        let (used, _) = network.layer(&g, 0);
        let mut state = State::<f64>::new(1);
        initialise(&[network.parameters(), network.followers()].concat(), &mut state, 0);
        let options = Options { threads: 1, ..Options::default() };
        let mut program = g.compile::<f64>(&[used], &network.follow(&g), &options);
        program.run_steps(&mut state, &[], 0, 0..300);
        let w = program.output(0);
        // Entry of input channel, tap and output channel, as the two kinds keep it.
        let entry = |i: usize, tap: usize, o: usize| match layer {
            Layer::Convolution { .. } => w[(tap * c + i) * f + o],
            _ => w[(i * 25 + tap) * f + o],
        };
        let gram = |a: usize, b: usize| -> f64 {
            (0..c * 25).map(|k| entry(k / 25, k % 25, a) * entry(k / 25, k % 25, b)).sum()
        };
        let gram: Vec<f64> = (0..f * f).map(|k| gram(k / f, k % f)).collect();
        let largest = minvel::special::Eigen::new(&gram, f).values.iter().copied().fold(0.0, f64::max).sqrt();
        assert!(within_ulps(largest, 1.0, 64.0), "{layer:?} has norm {largest}");
    }
}

fn settings(kind: &str) -> AutoencoderSettings {
    AutoencoderSettings {
        latent: "sphere:3".parse().unwrap(),
        posterior: "point".parse().unwrap(),
        likelihood: "dequantised".parse().unwrap(),
        deviation: 0.5f64.sqrt(),
        network: "convolutional".parse().unwrap(),
        filters: vec![4, 6],
        hidden: vec![8],
        activation: Activation::Relu,
        rate: 1e-3,
        batch: 8,
        iterations: 1,
        matching: Matched {
            kind: kind.parse().unwrap(),
            weight: 10.0,
            step: 1e-3,
            penalty: 1e-4,
            flow: "chart".parse().unwrap(),
            spectral: true,
        },
        official: false,
    }
}

const IMAGE: [usize; 3] = [8, 8, 3];

#[test]
fn convolutional_auto_encoders_learn_to_reconstruct_with_every_match() {
    let images: Vec<f32> = (0..16)
        .flat_map(|k| (0..192).map(move |i| if (i % 3 + k) % 3 == 0 { 0.9 } else { 0.1 + 0.05 * (i / 3 % 8) as f32 }))
        .collect();
    for kind in ["velocity", "adversarial", "discrepancy"] {
        let learning = settings(kind).learning(IMAGE).unwrap();
        let g = Graph::new();
        let step = learning.step(g.input("images", [16, 192]));
        let mut state = learning.start::<f32>(2, 5);
        step.initialise(&mut state);
        let followers = learning.followers();
        assert_eq!(followers.len(), if kind == "discrepancy" { 0 } else { 4 });
        let before: Vec<f32> = followers.iter().flat_map(|p| state.get(&p.name).unwrap().to_vec()).collect();
        let options = Options { replicas: 2, threads: 1, ..Options::default() };
        let mut program = g.compile::<f32>(&step.outputs, &step.all_updates(), &options);
        program.run(&mut state, &[("images", &images)], Clock { seed: 5, step: 0 });
        let first = program.output(1).to_vec();
        program.run_steps(&mut state, &[("images", &images)], 5, 1..400);
        let last = program.output(1).to_vec();
        // Less the constant of the likelihood, these are sums of squares.
        let constant = 96.0 * std::f32::consts::PI.ln();
        let halved = first.iter().zip(&last).all(|(a, b)| b - constant < 0.5 * (a - constant));
        assert!(halved, "{kind}: {first:?} to {last:?}, less {constant}");
        let after: Vec<f32> = followers.iter().flat_map(|p| state.get(&p.name).unwrap().to_vec()).collect();
        assert!(before.iter().zip(&after).all(|(a, b)| a != b), "{kind}: what follows stands still");
    }
}

#[test]
fn dequantised_pixels_are_bytes_between_minus_one_and_one_with_noise_between_them() {
    let law = Likelihood::Dequantised { deviation: 0.5f64.sqrt() };
    let g = Graph::new();
    let x = g.input_rows("x", 500, [4]);
    let bytes: Vec<f64> = (0..2000).map(|k| (k % 256) as f64).collect();
    let intensities: Vec<f64> = bytes.iter().map(|b| b / 255.0).collect();
    let output = law.pixels(x) * 0.5;
    let outputs = [law.pixels(x), law.drawn(x, 1), law.log_prob(law.pixels(x), output), law.mean(output)];
    let out = run(&outputs, &State::new(1), &[("x", &intensities)]);
    let constant = 0.5 * 4.0 * std::f64::consts::PI.ln();
    for (k, b) in bytes.iter().enumerate() {
        assert!(within_ulps(out[0][k], b / 128.0 - 1.0, 4.0));
        let mean = ((0.5 * (b / 128.0 - 1.0)).tanh() + 1.0) * 128.0 / 255.0;
        assert!(within_ulps(out[3][k], mean, 4.0));
    }
    let noise: Vec<f64> = out[1].iter().zip(&out[0]).map(|(a, b)| (a - b) * 128.0).collect();
    assert!(noise.iter().all(|u| u.abs() <= 0.5 + 1e-9) && noise.iter().any(|u| *u < -0.4));
    assert!(within_sigma("mean of the noise", &noise, 0.0, 4.0));
    let squares: Vec<f64> = noise.iter().map(|u| u * u).collect();
    assert!(within_sigma("its variance", &squares, 1.0 / 12.0, 4.0));
    assert!(!within_sigma("1.21 times that", &squares, 1.21 / 12.0, 4.0));
    let squares: f64 = out[0][..4].iter().map(|x| (x - (0.5 * x).tanh()).powi(2)).sum();
    assert!(within_ulps(out[2][0], -squares - constant, 8.0), "{} is the sum of squares", out[2][0]);
}

#[test]
fn views_encode_intensities_as_pixels() {
    let learning = settings("discrepancy").learning(IMAGE).unwrap();
    let mut state = start(&learning.parameters());
    let images = numbers(Draw::Uniform, 3 * 192, 4);
    let views = Views { model: &learning.model, options: Options::default(), seed: 1 };
    let codes = views.codes(&mut state, &images).unwrap();
    let g = Graph::new();
    let x = g.input_rows("x", 3, [192]);
    let expected = learning.model.encoder.encode(x * (255.0 / 128.0) - 1.0, 0).at;
    let raw = learning.model.encoder.encode(x, 0).at;
    let out = run(&[expected, raw], &state, &[("x", &images)]);
    assert!(codes.iter().zip(&out[0]).all(|(a, b)| within_ulps(*a, *b, 64.0)));
    assert!(!codes.iter().zip(&out[1]).all(|(a, b)| within_ulps(*a, *b, 64.0)));
}

#[test]
fn bad_settings_of_convolutions_name_their_key() {
    type Change = fn(&mut AutoencoderSettings);
    let cases: [(&str, Change); 5] = [
        ("filters", |s| s.filters = vec![]),
        ("filters", |s| s.filters = vec![4, 0]),
        ("filters", |s| s.filters = vec![2; 4]), // 8 pixels can be halved three times
        ("filters", |s| s.network = NetworkKind::Dense),
        ("deviation", |s| s.deviation = 0.0),
    ];
    assert!(settings("velocity").learning(IMAGE).is_ok());
    for (key, change) in cases {
        let mut settings = settings("velocity");
        change(&mut settings);
        let why = settings.learning(IMAGE).unwrap_err().to_string();
        assert!(why.contains(&format!("`{key}`")), "{key}: {why}");
    }
}
