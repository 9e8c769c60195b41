//! Auto-encoders: sizes, laws of codes, what each step changes and in which order, and ways to look at a model.

use minvel::autoencoder::{
    Autoencoder, AutoencoderLearning, AutoencoderSettings, Code, Decoder, Encoder, FlowKind, Likelihood,
    LikelihoodKind, Match, MatchKind, Matched, Posterior, PosteriorKind, Views, initialise,
};
use minvel::energy::von_mises_fisher::Reparameterisation;
use minvel::energy::{Energy, Mlp};
use minvel::manifold;
use minvel::matching::Matching;
use minvel::network::{Activation, Parameter, latent_features};
use minvel::special::{log_vmf_constant, vmf_divergence};
use minvel_engine::init::Init;
use minvel_engine::math::Real;
use minvel_engine::optim::{Optimiser, UpdateRule};
use minvel_engine::random::{Draw, Key, Stream};
use minvel_engine::{Clock, Device, Expr, Graph, Options, State, grad};
use minvel_testing::{sum, within_sigma, within_ulps};
use std::f64::consts::TAU;
use std::sync::Arc;

const SIGMAS: f64 = 4.0;
/// Manifolds of every kind.
const LATENTS: [&str; 7] =
    ["euclidean:3", "sphere:1", "sphere:4", "torus:2", "hyperbolic:3", "so3", "product(sphere:2,torus:1,hyperbolic:2)"];
/// Every kind of matching, with a posterior and a latent manifold that it goes with.
const KINDS: [(&str, &str, &str); 9] = [
    ("divergence", "explicit", "euclidean:2"),
    ("divergence", "explicit", "sphere:2"),
    ("conditional", "implicit", "euclidean:2"),
    ("conditional", "implicit", "sphere:2"),
    ("conditional", "implicit", "product(sphere:2,torus:1)"),
    ("velocity", "point", "euclidean:2"),
    ("velocity", "implicit", "hyperbolic:2"),
    ("adversarial", "point", "sphere:2"),
    ("discrepancy", "point", "euclidean:2"),
];

fn settings(kind: &str, posterior: &str, latent: &str) -> AutoencoderSettings {
    AutoencoderSettings {
        latent: latent.parse().unwrap(),
        posterior: posterior.parse().unwrap(),
        likelihood: "bernoulli".parse().unwrap(),
        deviation: 1.0,
        network: "dense".parse().unwrap(),
        filters: vec![],
        hidden: vec![256, 256],
        activation: Activation::Tanh,
        rate: 1e-3,
        batch: 128,
        iterations: 1,
        matching: Matched {
            kind: kind.parse().unwrap(),
            weight: 1.0,
            step: 1e-3,
            penalty: 1e-4,
            flow: "chart".parse().unwrap(),
            spectral: false,
        },
        official: false,
    }
}

const PIXELS: usize = 5;
const IMAGES: usize = 12;

/// A learning that a test can afford, with plain descent: what changes is the gradient.
fn small(kind: &str, posterior: &str, latent: &str, rate: f64) -> AutoencoderLearning {
    let settings = AutoencoderSettings { hidden: vec![6, 4], batch: 8, ..settings(kind, posterior, latent) };
    AutoencoderLearning {
        optimiser: Optimiser::new(UpdateRule::Sgd { momentum: 0.0 }, rate),
        ..settings.learning([1, PIXELS, 1]).unwrap()
    }
}

fn numbers(draw: Draw, count: usize, stream: u32) -> Vec<f64> {
    Stream::new(Key::new(7, 0), stream).samples(draw).take(count).collect()
}

fn images() -> Vec<f64> {
    numbers(Draw::Uniform, IMAGES * PIXELS, 1)
}

fn on_one_thread(replicas: usize) -> Options {
    Options { replicas, threads: 1, device: Device::Cpu, ..Options::default() }
}

/// Values in f64 with the parameters of a state.
fn evaluate(outputs: &[Expr], state: &State<f64>, inputs: &[(&str, &[f64])]) -> Vec<Vec<f64>> {
    let mut program = outputs[0].graph().compile::<f64>(outputs, &[], &on_one_thread(1));
    program.run(&mut state.clone(), inputs, Clock { seed: 3, step: 0 });
    (0..outputs.len()).map(|k| program.output(k).to_vec()).collect()
}

fn count(parameters: &[Parameter]) -> usize {
    parameters.iter().map(|p| p.dims.iter().product::<usize>()).sum()
}

#[test]
fn networks_have_the_sizes_of_the_paper() {
    // Latent, posterior, encoder, decoder, and the conditional energy of docs/math §4.6.
    let cells = [
        ("sphere:8", "implicit", 271_113, 269_840, 271_369),
        ("euclidean:8", "implicit", 270_856, 269_584, 270_856),
        ("sphere:32", "implicit", 283_425, 275_984, 283_681),
        ("euclidean:32", "implicit", 283_168, 275_728, 283_168),
        ("sphere:8", "explicit", 269_322, 269_840, 0),
        ("euclidean:8", "explicit", 270_864, 269_584, 0),
        ("sphere:32", "explicit", 275_490, 275_984, 0),
        ("euclidean:32", "explicit", 283_200, 275_728, 0),
    ];
    for (latent, posterior, encoder, decoder, energy) in cells {
        let kind = if energy > 0 { "conditional" } else { "divergence" };
        let learning = settings(kind, posterior, latent).learning([28, 28, 1]).unwrap();
        let model = &learning.model;
        assert_eq!(count(&model.encoder.parameters()), encoder, "{latent} {posterior}");
        assert_eq!(count(&model.decoder.parameters()), decoder, "{latent} {posterior}");
        assert_eq!(count(&learning.parameters()), encoder + decoder + energy, "{latent} {posterior}");
        let mut names: Vec<String> = learning.parameters().into_iter().map(|p| p.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), learning.parameters().len(), "no two parameters share a name");
    }
}

#[test]
fn weights_start_with_the_fans_of_their_own_layers() {
    let learning = settings("divergence", "explicit", "sphere:8").learning([28, 28, 1]).unwrap();
    let state: State<f64> = learning.start(2, 5);
    for p in learning.parameters() {
        let values = state.get(&p.name).unwrap();
        let [rows, columns] = p.dims[..] else {
            assert!(values.iter().all(|b| *b == 0.0), "{} is a bias", p.name);
            continue;
        };
        let bound = (6.0 / (rows + columns) as f64).sqrt();
        let largest = values.iter().fold(0f64, |a, w| a.max(w.abs()));
        // The largest of 512 uniform numbers or more is below 0.9 of the bound with probability 10⁻²³.
        assert!(largest <= bound && largest > 0.9 * bound, "{}: {largest} of {bound}", p.name);
        assert_ne!(values[..rows * columns], values[rows * columns..], "replicas start apart");
    }
    let (a, b) = (state.get("encoder/body/w1").unwrap(), state.get("decoder/w1").unwrap());
    assert_ne!(a, b, "networks of one shape start apart");
}

#[test]
fn likelihoods_are_sums_over_pixels() {
    let g = Graph::new();
    let (x, y) = (g.input_rows("x", 4, [3]), g.input_rows("y", 4, [3]));
    let pixels = [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0];
    let outputs = [0.3, -2.0, 40.0, -1.0, 5.0, 0.0, -50.0, 800.0, -800.0, 1.5, 0.25, -0.75];
    let sigma = 0.3f64;
    let laws = [Likelihood::Bernoulli, Likelihood::Gaussian { deviation: sigma }];
    let exprs = laws.map(|l| l.log_prob(x, y));
    let got = evaluate(&exprs, &State::new(1), &[("x", &pixels), ("y", &outputs)]);
    let bernoulli = |x: f64, y: f64| -((1.0 - 2.0 * x) * y).max(0.0) - (-y.abs()).exp().ln_1p();
    let gaussian = |x: f64, y: f64| -0.5 * ((x - y) / sigma).powi(2) - sigma.ln() - 0.5 * TAU.ln();
    let rows = |f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        let all: Vec<f64> = pixels.iter().zip(&outputs).map(|(x, y)| f(*x, *y)).collect();
        all.chunks(3).map(sum).collect()
    };
    for (law, (got, expected)) in laws.iter().zip(got.iter().zip([rows(&bernoulli), rows(&gaussian)])) {
        for (a, b) in got.iter().zip(&expected) {
            assert!(within_ulps(*a, *b, 16.0), "{law:?}: {a} against {b}");
        }
    }
    let means = evaluate(&laws.map(|l| l.mean(y)), &State::new(1), &[("y", &outputs)]);
    assert!(within_ulps(means[0][0], 1.0 / (1.0 + (-0.3f64).exp()), 4.0) && means[1] == outputs);
}

/// The number whose softplus this is.
fn before_softplus(y: f64) -> f64 {
    y.exp_m1().ln()
}

/// An encoder that says the same of every image: weights 0, the heads' biases given.
fn constant_encoder(latent: &str, heads: [&[f64]; 2], gradient: Reparameterisation) -> (Encoder, State<f64>) {
    let latent = manifold::parse(latent).unwrap();
    let posterior = match PosteriorKind::Explicit.on(&*latent).unwrap() {
        Posterior::VonMisesFisher { .. } => Posterior::VonMisesFisher { gradient },
        other => other,
    };
    let encoder = Encoder::dense(latent, posterior, PIXELS, &[3], Activation::Tanh);
    let mut state = State::new(1);
    for p in encoder.parameters() {
        Init::ZEROS.set(&mut state, &p.name, &p.dims, 0, 0);
    }
    for (k, head) in heads.iter().enumerate() {
        state.set(&format!("encoder/head{k}/b0"), head, head.len());
    }
    (encoder, state)
}

/// Codes, KL and log q of many rows.
fn explicit(encoder: &Encoder, state: &State<f64>, rows: usize) -> [Vec<f64>; 3] {
    let g = Graph::new();
    let x = g.input_rows("x", rows, [PIXELS]);
    let Code { at, law } = encoder.encode(x, 2);
    let (divergence, log_prob) = law.expect("explicit");
    let images = vec![0.5; rows * PIXELS];
    evaluate(&[at, divergence, log_prob], state, &[("x", &images)]).try_into().unwrap()
}

#[test]
fn a_normal_posterior_has_the_density_and_the_divergence_of_its_law() {
    let (mean, deviation) = ([0.7, -1.5], [0.4, 1.8]);
    let heads: [&[f64]; 2] = [&mean, &deviation.map(before_softplus)];
    let (encoder, state) = constant_encoder("euclidean:2", heads, Reparameterisation::Exact);
    let rows = 20_000;
    let [codes, divergence, log_q] = explicit(&encoder, &state, rows);
    let kl: f64 = (0..2).map(|i| 0.5 * (mean[i] * mean[i] + deviation[i].powi(2) - 1.0) - deviation[i].ln()).sum();
    let mut gaps = vec![];
    for (z, (d, log_q)) in codes.chunks(2).zip(divergence.iter().zip(&log_q)) {
        let normal = |i: usize| -0.5 * ((z[i] - mean[i]) / deviation[i]).powi(2) - deviation[i].ln() - 0.5 * TAU.ln();
        assert!(within_ulps(*log_q, normal(0) + normal(1), 64.0), "{log_q}");
        assert!(within_ulps(*d, kl, 16.0), "{d} against {kl}");
        let log_prior = -0.5 * (z[0] * z[0] + z[1] * z[1]) - TAU.ln();
        gaps.push(log_q - log_prior);
    }
    // KL is the mean of log q − log p: a density or a divergence to another prior would not agree.
    assert!(within_sigma("KL", &gaps, kl, SIGMAS));
    let wider: Vec<f64> = gaps.iter().map(|g| g + 1.1f64.ln()).collect();
    assert!(!within_sigma("KL of deviations that are 10 % off", &wider, kl, SIGMAS));
}

#[test]
fn a_von_mises_fisher_posterior_has_the_density_and_the_divergence_of_its_law() {
    for (n, kappa) in [(2, 6.0), (8, 10.0), (32, 50.0)] {
        let m = n + 1;
        let mean: Vec<f64> = (0..m).map(|i| if i % 2 == 0 { 1.5 } else { -0.5 }).collect();
        let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        let heads: [&[f64]; 2] = [&mean, &[before_softplus(kappa - 1.0)]];
        let (encoder, state) = constant_encoder(&format!("sphere:{n}"), heads, Reparameterisation::Exact);
        let [codes, divergence, log_q] = explicit(&encoder, &state, 4000);
        let kl = vmf_divergence(m, kappa);
        let mut gaps = vec![];
        for (z, (d, log_q)) in codes.chunks(m).zip(divergence.iter().zip(&log_q)) {
            let cosine = z.iter().zip(&mean).map(|(z, mu)| z * mu).sum::<f64>() / length;
            let exact = log_vmf_constant(m, kappa) + kappa * cosine;
            // What `energy::von_mises_fisher` says of its truncation: 6·10⁻⁷ of KL.
            assert!((log_q - exact).abs() < 6e-7 * kl, "{log_q} against {exact}");
            assert!((d - kl).abs() < 6e-7 * kl, "{d} against {kl}");
            gaps.push(log_q + minvel::special::log_sphere_area(m));
        }
        assert!(within_sigma(&format!("KL, m = {m}, κ = {kappa}"), &gaps, kl, SIGMAS));
    }
    // The official sampler's codes are not of that law where its envelope is wrong (F45).
    let heads: [&[f64]; 2] = [&[1.0; 33], &[before_softplus(10.0)]];
    let (encoder, state) = constant_encoder("sphere:32", heads, Reparameterisation::Official);
    let [_, divergence, log_q] = explicit(&encoder, &state, 4000);
    let gaps: Vec<f64> = log_q.iter().map(|l| l + minvel::special::log_sphere_area(33)).collect();
    assert!(!within_sigma("KL, official", &gaps, divergence[0], SIGMAS));
}

#[test]
fn codes_lie_on_their_manifold_and_vary_where_they_should() {
    for latent in LATENTS {
        for posterior in [PosteriorKind::Point, PosteriorKind::Implicit] {
            let latent = manifold::parse(latent).unwrap();
            let m = latent.ambient();
            let posterior = posterior.on(&*latent).unwrap();
            let encoder = Encoder::dense(latent.clone(), posterior, PIXELS, &[6, 4], Activation::Tanh);
            let mut state = State::new(1);
            initialise(&encoder.parameters(), &mut state, 3);
            // Far outputs, so that landing has something to do.
            let head: Vec<f64> = state.get("encoder/head0/w0").unwrap().iter().map(|w| 5.0 * w).collect();
            state.set("encoder/head0/w0", &head, head.len());
            let g = Graph::new();
            let x = g.input_rows("x", IMAGES, [PIXELS]);
            let [first, second] = [1, 2].map(|stream| encoder.encode(x, stream));
            assert!(first.law.is_none(), "nobody knows the density");
            let slope = grad(first.at, &[encoder.parameters()[0].variable(&g)])[0];
            // The same image in each two rows.
            let pairs: Vec<f64> = images().chunks(PIXELS).take(IMAGES / 2).flat_map(|x| x.repeat(2)).collect();
            let got = evaluate(&[first.at, second.at, slope], &state, &[("x", &pairs)]);
            for z in got[0].chunks(m) {
                latent.check(z).unwrap_or_else(|why| panic!("{latent} {posterior}: {why}"));
            }
            assert!(got[2].iter().all(|s| s.is_finite()) && got[2].iter().any(|s| *s != 0.0), "{latent} {posterior}");
            let alike = got[0].chunks(2 * m).all(|pair| pair[..m] == pair[m..]);
            assert_eq!(alike, posterior == Posterior::Point, "{latent}: one code for each image, or many");
            assert_eq!(got[0] == got[1], posterior == Posterior::Point, "{latent}: another stream, other noise");
            assert!(got[0][..m] != got[0][2 * m..3 * m], "{latent}: another image, another code");
        }
    }
}

/// Parameters of a learning with their start values, made larger so that no derivative is small.
fn start(learning: &AutoencoderLearning) -> State<f64> {
    let mut state: State<f64> = learning.start(1, 5);
    for (k, p) in learning.parameters().iter().enumerate() {
        let shift = numbers(Draw::Normal, p.dims.iter().product(), 100 + k as u32);
        let moved: Vec<f64> = state.get(&p.name).unwrap().iter().zip(shift).map(|(w, z)| w + 0.2 * z).collect();
        state.set(&p.name, &moved, moved.len());
    }
    state
}

/// A state with the parameters whose names begin so moved along a fixed direction.
fn moved(state: &State<f64>, prefixes: &[&str], by: f64) -> (State<f64>, Vec<(String, Vec<f64>)>) {
    let (mut after, mut directions) = (state.clone(), vec![]);
    for (k, (name, values)) in state.iter().enumerate() {
        if prefixes.iter().any(|p| name.starts_with(p)) {
            let direction = numbers(Draw::Normal, values.len(), 200 + k as u32);
            let new: Vec<f64> = values.iter().zip(&direction).map(|(w, d)| w + by * d).collect();
            after.set(name, &new, new.len());
            directions.push((name.to_string(), direction));
        }
    }
    (after, directions)
}

/// One step of a learning: the state after it, and its outputs.
fn step(learning: &AutoencoderLearning, state: &State<f64>) -> (State<f64>, Vec<f64>) {
    let g = Graph::new();
    let step = learning.step(g.input("images", [IMAGES, PIXELS]));
    let mut program = g.compile::<f64>(&step.outputs, &step.all_updates(), &on_one_thread(1));
    let mut state = state.clone();
    step.initialise(&mut state);
    program.run(&mut state, &[("images", &images())], Clock { seed: 3, step: 0 });
    let outputs = (0..4).map(|k| program.output(k)[0]).collect();
    (state, outputs)
}

/// Asserts that descent moved the named parameters by −rate times the slope of an output along them.
fn descends(
    what: &str,
    learning: &AutoencoderLearning,
    from: &State<f64>,
    after: &State<f64>,
    output: usize,
    names: &[&str],
) {
    // With a rate of 0 the step changes nothing, so that outputs are those of the state itself.
    let still =
        AutoencoderLearning { optimiser: Optimiser::new(UpdateRule::Sgd { momentum: 0.0 }, 0.0), ..learning.clone() };
    let at = |by: f64| step(&still, &moved(from, names, by).0).1[output];
    let h = f64::EPSILON.cbrt();
    let (near, far) = ((at(h) - at(-h)) / (2.0 * h), (at(2.0 * h) - at(-2.0 * h)) / (4.0 * h));
    let mut change = 0.0;
    for (name, direction) in moved(from, names, h).1 {
        let pairs = after.get(&name).unwrap().iter().zip(from.get(&name).unwrap());
        change += pairs.zip(&direction).map(|((new, old), d)| (new - old) * d).sum::<f64>();
    }
    let slope = -change / learning.optimiser.rate;
    // Truncation from two step sizes; rounding of the values, and of parameters that hardly move.
    let bound = 2.0 * (near - far).abs() + 1e3 * f64::EPSILON * (at(0.0).abs() / h + slope.abs() / h);
    println!("{what}: slope {slope:.8}, by differences {near:.8} ± {bound:.1e}");
    assert!((slope - near).abs() <= bound, "{what}: {slope} against {near} ± {bound:e}");
    assert!(slope.abs() > 10.0 * bound, "{what}: a slope of {slope} is too small to tell");
}

#[test]
fn encoder_and_decoder_descend_their_loss_for_every_kind_of_matching() {
    for (kind, posterior, latent) in KINDS {
        let learning = small(kind, posterior, latent, 1e-3);
        let from = start(&learning);
        let (after, outputs) = step(&learning, &from);
        let what = format!("{kind} {posterior} {latent}");
        assert!(within_ulps(outputs[0], outputs[1] + learning.weight * outputs[2], 8.0), "{what}: {outputs:?}");
        descends(&format!("{what}, encoder"), &learning, &from, &after, 0, &["encoder/"]);
        descends(&format!("{what}, decoder"), &learning, &from, &after, 0, &["decoder/"]);
    }
}

#[test]
fn the_second_update_descends_its_loss_on_codes_of_the_new_encoder() {
    for (kind, posterior, latent) in
        KINDS.into_iter().filter(|(kind, ..)| !["divergence", "discrepancy"].contains(kind))
    {
        // A large rate: new and old encoder are far apart.
        let learning = small(kind, posterior, latent, 0.05);
        let names: &[&str] = &["energy/", "critic/"];
        let mut from = start(&learning);
        for (name, values) in start(&learning).iter().filter(|(name, _)| name.starts_with("energy/")) {
            // Energies so flat that no row shortens its step, which is constant in differentiation.
            let flat: Vec<f64> = values.iter().map(|w| 0.3 * w).collect();
            from.set(name, &flat, flat.len());
        }
        let (after, outputs) = step(&learning, &from);
        let mut between = after.clone();
        for (name, values) in from.iter().filter(|(name, _)| names.iter().any(|p| name.starts_with(p))) {
            between.set(name, values, values.len());
        }
        let still = AutoencoderLearning {
            optimiser: Optimiser::new(UpdateRule::Sgd { momentum: 0.0 }, 0.0),
            ..learning.clone()
        };
        let (with_new, with_old) = (step(&still, &between).1[3], step(&still, &from).1[3]);
        println!("{kind} {latent}: {} in one program, {with_new} in two, {with_old} with the old encoder", outputs[3]);
        assert!(within_ulps(outputs[3], with_new, 1e4), "{kind} {latent}");
        assert!(!within_ulps(outputs[3], with_old, 1e7), "{kind} {latent}: the order can be told");
        descends(&format!("{kind} {posterior} {latent}"), &learning, &between, &after, 3, names);
    }
}

/// Tells what codes it is shown: its pull is their mean, its loss a parameter times their mean.
#[derive(Debug)]
struct Probe;

impl Matching for Probe {
    fn pull<'g>(&self, codes: Expr<'g>, _: Expr<'g>, _: u32) -> Expr<'g> {
        codes.at(-1, 0).mean_rows()
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter { name: "probe".into(), dims: vec![], init: Init::Constant(1.0) }]
    }

    fn loss<'g>(&self, codes: Expr<'g>, _: Expr<'g>, _: u32) -> Option<Expr<'g>> {
        Some(self.parameters()[0].variable(codes.graph()) * codes.at(-1, 0).mean_rows())
    }
}

#[test]
fn both_updates_see_the_same_batch_with_fresh_noise() {
    for (kind, posterior) in [("velocity", "point"), ("conditional", "implicit")] {
        let learning =
            AutoencoderLearning { pull: Match::Learnt(Arc::new(Probe)), ..small(kind, posterior, "euclidean:2", 0.0) };
        let outputs = step(&learning, &learning.start(1, 5)).1;
        // One code for each image: the same batch gives the same codes. Noise that is not fresh would, too.
        assert_eq!(within_ulps(outputs[2], outputs[3], 8.0), posterior == "point", "{outputs:?}");
    }
}

#[test]
fn pixels_are_drawn_afresh_at_every_step_and_only_for_bernoulli() {
    // One image, so that batches differ by the drawing of pixels alone.
    let learning = small("velocity", "point", "euclidean:2", 0.0);
    let mut gaussian = learning.clone();
    gaussian.model.decoder.likelihood = Likelihood::Gaussian { deviation: 1.0 };
    for (learning, drawn) in [(learning, true), (gaussian, false)] {
        let g = Graph::new();
        let step = learning.step(g.input("images", [1, PIXELS]));
        let mut program = g.compile::<f64>(&[step.outputs[1]], &[], &on_one_thread(2));
        let mut state = State::new(2);
        for p in learning.parameters() {
            // The same model in both replicas.
            Init::Constant(0.1).set(&mut state, &p.name, &p.dims, 0, 0);
        }
        let image = [0.3, 0.5, 0.5, 0.7, 0.4];
        let mut at = |step| {
            program.run(&mut state, &[("images", &image)], Clock { seed: 3, step });
            program.output(0).to_vec()
        };
        let (first, second) = (at(0), at(1));
        assert_eq!(first != second, drawn, "{first:?} {second:?}");
        assert_eq!(first[0] != first[1], drawn, "replicas see pixels of their own");
        assert_eq!(first, at(0), "a step is a function of its number");
    }
}

fn train(learning: &AutoencoderLearning, mut state: State<f32>, steps: u32) -> State<f32> {
    let g = Graph::new();
    let step = learning.step(g.input("images", [IMAGES, PIXELS]));
    initialise(&learning.parameters(), &mut state, 5);
    step.initialise(&mut state);
    let mut program = g.compile::<f32>(&step.outputs, &step.all_updates(), &on_one_thread(state.replicas()));
    let images: Vec<f32> = images().iter().map(|x| *x as f32).collect();
    program.run_steps(&mut state, &[("images", &images)], 5, 0..steps);
    state
}

#[test]
fn replicas_trained_side_by_side_are_those_trained_alone() {
    for (kind, posterior, latent) in KINDS {
        let settings = AutoencoderSettings { hidden: vec![6, 4], batch: 8, ..settings(kind, posterior, latent) };
        let learning = settings.learning([1, PIXELS, 1]).unwrap();
        let together = train(&learning, State::new(3), 5);
        for r in 0..3 {
            let alone = train(&learning, State::of_replicas(r..r + 1), 5);
            for (name, values) in alone.iter() {
                let own = &together.get(name).unwrap()[r as usize * values.len()..][..values.len()];
                assert!(own == values, "{kind} {posterior} {latent}: `{name}` of replica {r}");
            }
        }
        let weights = together.get("decoder/w0").unwrap();
        let len = weights.len() / 3;
        assert_ne!(weights[..len], weights[len..2 * len], "replicas are not one another's copies");
    }
}

/// docs/math §4.0 literally: −mean ê + gp·R, ê = [E(x⁻) − E(x) − u·∇E]·ε₀/ε_i, with the step of each row by §1.6, where the
/// divisor of N is 1.
fn by_the_book<'g>(energy: &dyn Fn(Expr<'g>) -> Expr<'g>, x: Expr<'g>, stream: u32, divisor: f64) -> Expr<'g> {
    let (step, penalty) = (1e-3, 1e-4);
    let at = x.stop_gradient();
    let here = energy(at);
    let slope = grad(here, &[at])[0];
    let own = step / (slope.square().sum(-1) / divisor).max(1.0);
    let u = (2.0 * own).sqrt().expand(-1) * x.graph().normal_like(stream, x);
    let there = energy(at - 0.5 * own.expand(-1) * slope + u);
    let change = (there - here - u.dot(slope)) * (step / own);
    penalty * (there.square() + here.square()).mean_rows() - change.mean_rows()
}

#[test]
fn the_loss_of_an_energy_has_the_papers_scale_and_step() {
    let latent = manifold::parse("euclidean:3").unwrap();
    let learning = small("velocity", "point", "euclidean:3", 0.0);
    let Match::Learnt(matching) = &learning.pull else { panic!("it learns an energy") };
    let own = Mlp::new("energy", latent_features(&latent), &[6, 4], Activation::Tanh);
    let g = Graph::new();
    let codes = g.input_rows("codes", 64, [3]);
    let loss = matching.loss(codes, codes, 9).unwrap();
    let book = [1.0, 4.0].map(|divisor| by_the_book(&|z| own.energy(z), codes, 9, divisor));
    let slope = grad(own.energy(codes), &[codes])[0].square().sum(-1);
    let mut state = start(&learning);
    let steep: Vec<f64> = state.get("energy/w2").unwrap().iter().map(|w| 3.0 * w).collect();
    state.set("energy/w2", &steep, steep.len());
    let points = numbers(Draw::Normal, 64 * 3, 4);
    let got = evaluate(&[loss, book[0], book[1], slope], &state, &[("codes", &points)]);
    let steep = got[3].iter().filter(|n| **n > 1.0).count();
    println!("loss {}, by the book {}, with N/4 {}; {steep} rows of 64 are steep", got[0][0], got[1][0], got[2][0]);
    assert!(steep > 5, "the step is shortened somewhere");
    // Differences of energies cancel here, and not there.
    let slack = 1e3 * f64::EPSILON * 64.0;
    assert!((got[0][0] - got[1][0]).abs() < slack, "{} against {}", got[0][0], got[1][0]);
    assert!((got[0][0] - got[2][0]).abs() > 100.0 * slack, "steps by the drift instead of ∇E are found out");
}

fn view<T: Real>(model: &Autoencoder) -> (Views<'_>, State<T>) {
    let mut state = State::new(2);
    initialise(&model.parameters(), &mut state, 5);
    (Views { model, options: on_one_thread(2), seed: 4 }, state)
}

#[test]
fn paths_lead_from_one_reconstruction_to_another_along_the_geodesic() {
    for name in LATENTS {
        let latent = manifold::parse(name).unwrap();
        let (posterior, likelihood) = (Posterior::Point, Likelihood::Gaussian { deviation: 1.0 });
        let model = Autoencoder::dense(latent.clone(), posterior, likelihood, PIXELS, &[6], Activation::Tanh);
        let (views, mut state) = view::<f64>(&model);
        let (all, points) = (images(), 5);
        let (from, to) = all.split_at(6 * PIXELS);
        let paths = views.paths(&mut state, from, to, points).unwrap();
        let ends = [from, to].map(|x| views.reconstructions(&mut state, x).unwrap());
        let codes = [from, to].map(|x| views.codes(&mut state, x).unwrap());
        let m = latent.ambient();
        let g = Graph::new();
        let (a, b) = (g.input_rows("a", 12, [m]), g.input_rows("b", 12, [m]));
        let middle =
            evaluate(&[latent.exp(a, 0.5 * latent.log(a, b))], &State::new(1), &[("a", &codes[0]), ("b", &codes[1])]);
        let len = 6 * m;
        let middles: Vec<f64> = [0, 1].map(|r| middle[0][r * len..][..len].to_vec()).concat();
        let middles = views.decoded(&mut state, &middles, 6).unwrap();
        assert_eq!(paths.len(), 2 * 6 * points * PIXELS);
        for (k, path) in paths.chunks(points * PIXELS).enumerate() {
            let close = |at: usize, image: &[f64]| {
                let own = &path[at * PIXELS..][..PIXELS];
                own.iter().zip(&image[k * PIXELS..]).all(|(a, b)| within_ulps(*a, *b, 1e6))
            };
            assert!(close(0, &ends[0]) && close(points - 1, &ends[1]) && close(2, &middles), "{name}, path {k}");
            assert!(!close(1, &ends[0]) && !close(2, &ends[0]), "{name}: a path moves");
        }
    }
}

#[test]
fn samples_are_decoded_codes_of_the_prior() {
    let latent = manifold::parse("sphere:2").unwrap();
    let (posterior, likelihood) = (Posterior::Point, Likelihood::Gaussian { deviation: 1.0 });
    // A decoder that is linear: its images tell the codes.
    let encoder = Encoder::dense(latent.clone(), posterior, 3, &[4], Activation::Tanh);
    let decoder = Decoder::dense(&latent, likelihood, 3, &[], Activation::Tanh);
    let model = Autoencoder { latent, encoder, decoder };
    let (views, mut state) = view::<f64>(&model);
    let unit = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    state.set("decoder/w0", &unit, 9);
    let rows = 4000;
    let samples = views.samples(&mut state, rows).unwrap();
    // Features are codes times √3.
    for code in samples.chunks(3) {
        assert!(within_ulps(code.iter().map(|x| x * x).sum(), 3.0, 16.0), "{code:?}");
    }
    for axis in 0..3 {
        let values: Vec<f64> = samples.chunks(3).map(|c| c[axis]).collect();
        let squares: Vec<f64> = values.iter().map(|x| x * x).collect();
        assert!(within_sigma("mean", &values, 0.0, SIGMAS) && within_sigma("square", &squares, 1.0, SIGMAS));
    }
    assert_ne!(samples[..3 * rows], samples[3 * rows..], "replicas draw codes of their own");
}

#[test]
fn settings_that_do_not_go_together_are_refused_by_name() {
    type Change = fn(&mut AutoencoderSettings);
    let cases: [(&str, Change); 10] = [
        ("posterior", |s| (s.posterior, s.latent) = (PosteriorKind::Explicit, "torus:2".parse().unwrap())),
        ("deviation", |s| (s.likelihood, s.deviation) = (LikelihoodKind::Gaussian, 0.0)),
        ("hidden", |s| s.hidden = vec![]),
        ("rate", |s| s.rate = f64::NAN),
        ("batch", |s| s.batch = 0),
        ("iterations", |s| s.iterations = 0),
        ("matching.kind", |s| s.matching.kind = MatchKind::Divergence),
        ("matching.kind", |s| s.posterior = PosteriorKind::Point),
        ("matching.step", |s| s.matching.step = f64::NAN),
        ("matching.penalty", |s| s.matching.penalty = -1.0),
    ];
    assert!(settings("conditional", "implicit", "sphere:2").learning([1, PIXELS, 1]).is_ok());
    for (key, change) in cases {
        let mut settings = settings("conditional", "implicit", "sphere:2");
        change(&mut settings);
        let why = settings.learning([1, PIXELS, 1]).unwrap_err().to_string();
        assert!(why.contains(&format!("`{key}`")), "{key}: {why}");
    }
    let spos = |kind: &str, posterior: &str, latent: &str| {
        let mut settings = settings(kind, posterior, latent);
        settings.matching.flow = FlowKind::Spos;
        settings.learning([1, PIXELS, 1])
    };
    assert!(spos("velocity", "point", "euclidean:2").is_ok());
    for (kind, posterior, latent) in [("velocity", "point", "sphere:2"), ("conditional", "implicit", "euclidean:2")] {
        assert!(spos(kind, posterior, latent).unwrap_err().to_string().contains("`matching.flow`"));
    }
}

#[test]
fn words_that_settings_do_not_know_are_refused_with_those_they_know() {
    let known = serde_json::to_value(settings("conditional", "implicit", "sphere:2")).unwrap();
    assert_eq!(
        serde_json::from_value::<AutoencoderSettings>(known.clone()).unwrap(),
        settings("conditional", "implicit", "sphere:2")
    );
    for (key, word, expected) in [
        ("/latent", "sphere", "needs its dimension, as in sphere:2"),
        ("/posterior", "exact", "`point`, `implicit`, `explicit`"),
        ("/likelihood", "poisson", "`bernoulli`, `gaussian`, `dequantised`"),
        ("/network", "recurrent", "`dense` or `convolutional`"),
        ("/activation", "step", "`tanh`, `silu`, `softplus`, `elu`, `relu`, `sin`"),
        ("/matching/kind", "magic", "`divergence`, `conditional`, `velocity`, `adversarial`, `discrepancy`"),
        ("/matching/flow", "river", "`chart`, `geodesic`, `spos`"),
    ] {
        let mut wrong = known.clone();
        *wrong.pointer_mut(key).unwrap() = word.into();
        let why = serde_json::from_value::<AutoencoderSettings>(wrong).unwrap_err().to_string();
        assert!(why.contains(&format!("`{word}`")) && why.contains(expected), "{key}: {why}");
    }
}
