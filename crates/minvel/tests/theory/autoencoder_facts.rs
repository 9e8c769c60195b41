//! Likelihoods of decoders for which they are known: F48, F49 and F50 of docs/math §6.F through [`Evidence`], and the
//! importance-weighted bound where the posterior is exact.

use minvel::autoencoder::{Autoencoder, Decoder, Encoder, Evidence, ImportanceBound, Likelihood, Posterior};
use minvel::energy::von_mises_fisher::Reparameterisation;
use minvel::network::Activation;
use minvel::special::log_mean_exp;
use minvel::train::{Context, Observer, Silent, Stop};
use minvel::{Error, manifold};
use minvel_engine::State;
use minvel_engine::init::Init;
use minvel_testing::Scratch;
use minvel_testing::{estimate, within_digits, within_sigma, within_ulps};
use std::f64::consts::TAU;

const SIGMAS: f64 = 4.0;
/// Chains for each image, and independent runs of all.
const CHAINS: usize = 16;
const RUNS: usize = 24;

/// x ~ N(f(z)W + b, σ²I) with f the features of the code, and an encoder that can be any linear map.
struct Linear {
    model: Autoencoder,
    state: State<f64>,
    pixels: usize,
}

impl Linear {
    fn new(latent: &str, posterior: Option<Posterior>, weights: &[f64], bias: &[f64], variance: f64) -> Self {
        let latent = manifold::parse(latent).unwrap();
        let pixels = bias.len();
        let posterior = posterior.unwrap_or(Posterior::Point);
        let likelihood = Likelihood::Gaussian { deviation: variance.sqrt() };
        let encoder = Encoder::dense(latent.clone(), posterior, pixels, &[2 * pixels], Activation::Relu);
        let decoder = Decoder::dense(&latent, likelihood, pixels, &[], Activation::Relu);
        let model = Autoencoder { latent, encoder, decoder };
        let mut state = State::new(1);
        for p in model.parameters() {
            Init::ZEROS.set(&mut state, &p.name, &p.dims, 0, 0);
        }
        state.set("decoder/w0", weights, weights.len());
        state.set("decoder/b0", bias, pixels);
        Linear { model, state, pixels }
    }

    /// The encoder's first head becomes x ↦ xM + c, since relu(x) − relu(−x) = x; the second a constant.
    fn encoding(mut self, matrix: &[f64], shift: &[f64], second: &[f64]) -> Self {
        let (d, m) = (self.pixels, shift.len());
        let body: Vec<f64> = (0..d * 2 * d)
            .map(|i| match (i / (2 * d), i % (2 * d)) {
                (row, column) if row == column => 1.0,
                (row, column) if row + d == column => -1.0,
                _ => 0.0,
            })
            .collect();
        let head: Vec<f64> = [1.0, -1.0].iter().flat_map(|s| matrix.iter().map(move |x| s * x)).collect();
        assert_eq!(head.len(), 2 * d * m);
        for (name, values) in [("body/w0", &body[..]), ("head0/w0", &head), ("head0/b0", shift), ("head1/b0", second)] {
            self.state.set(&format!("encoder/{name}"), values, values.len());
        }
        self
    }

    /// log p̂ of each image in each of the runs, `[run][image]`.
    fn runs(&self, evidence: &Evidence, images: &[f64]) -> Vec<Vec<f64>> {
        let mut state = State::new(RUNS);
        for (name, values) in self.state.iter() {
            state.set(name, values, values.len());
        }
        evidence.log_likelihoods(&self.model, &state, images, 3, &Context::bare()).unwrap()
    }

    fn evidence(&self, group: usize) -> Evidence {
        Evidence::on(&self.model.latent, 1000, CHAINS, group)
    }

    fn official_evidence(&self, group: usize) -> Evidence {
        self.evidence(group).replicating_the_official_charts(&self.model.latent)
    }

    fn bounds(&self, images: &[f64], codes: usize) -> Option<Vec<f64>> {
        let bound = ImportanceBound { codes, group: 2 };
        let all = bound.bounds(&self.model, &self.state, images, 5, &Context::bare()).unwrap();
        all.map(|mut all| all.remove(0))
    }
}

fn of_image(runs: &[Vec<f64>], image: usize) -> Vec<f64> {
    runs.iter().map(|own| own[image]).collect()
}

#[test]
fn fact_48_the_evidence_of_a_line_image_by_image() {
    let exact = [(3.0, -1.7236574894), (5.0, -2.1236574894), (-2.0, -4.2236574894), (8.0, -4.2236574894)];
    let line = Linear::new("euclidean:1", None, &[2.0], &[3.0], 1.0);
    // Groups of three: the second one is filled up with images that were counted.
    let runs = line.runs(&line.evidence(3), &exact.map(|(x, _)| x));
    assert!(runs.len() == RUNS && runs.iter().all(|own| own.len() == 4));
    for (k, (x, log_p)) in exact.into_iter().enumerate() {
        assert!(within_sigma(&format!("log p({x})"), &of_image(&runs, k), log_p, SIGMAS));
        let other = exact[(k + 1) % 2].1;
        assert!(!within_sigma("that of another image", &of_image(&runs, k), other, SIGMAS));
    }
}

#[test]
fn fact_49_the_evidence_of_a_linear_model() {
    // x = Wz + …, W = ((1,0),(1,1)): the layer holds its transpose.
    let model = Linear::new("euclidean:2", None, &[1.0, 1.0, 0.0, 1.0], &[0.0; 2], 0.5);
    let runs = model.runs(&model.evidence(1), &[1.0, -1.0]);
    assert!(within_sigma("log p", &of_image(&runs, 0), -3.4345866, SIGMAS));
    let other = Linear::new("euclidean:2", None, &[1.0, -1.0, 0.0, 1.0], &[0.0; 2], 0.5);
    let runs = other.runs(&other.evidence(1), &[1.0, -1.0]);
    assert!(!within_sigma("log p with a sign changed", &of_image(&runs, 0), -3.4345866, SIGMAS));
}

/// A decoder √m·z ↦ az on the sphere: log p(x) is the normaliser of a von Mises–Fisher law with κ = a|x|/σ².
fn isotropic(m: usize, kappa: f64, posterior: Option<Posterior>) -> (Linear, Vec<f64>, f64) {
    let (a, variance) = (2.0, 0.25f64);
    let scale = a / (m as f64).sqrt();
    let weights: Vec<f64> = (0..m * m).map(|i| if i / m == i % m { scale } else { 0.0 }).collect();
    let model = Linear::new(&format!("sphere:{}", m - 1), posterior, &weights, &vec![0.0; m], variance);
    let length = kappa * variance / a;
    let image = vec![length / (m as f64).sqrt(); m];
    let constant = -0.5 * (length * length + a * a) / variance - 0.5 * m as f64 * (TAU * variance).ln();
    (model, image, constant + log_mean_exp(m, kappa))
}

#[test]
fn fact_50_the_evidence_on_spheres_and_what_the_official_charts_make_of_it() {
    // m, κ, log mean e^{κμ·z}, and the official code's value as an independent program found it.
    for (m, kappa, value, official) in [(3, 5.0, 2.6973695060, 2.7309), (9, 40.0, 29.0534726905, 29.2437)] {
        assert!(within_digits(log_mean_exp(m, kappa), value, 10));
        let (model, image, exact) = isotropic(m, kappa, None);
        let corrected = of_image(&model.runs(&model.evidence(1), &image), 0);
        assert!(within_sigma(&format!("m = {m}, κ = {kappa}"), &corrected, exact, SIGMAS));
        let replicated = of_image(&model.runs(&model.official_evidence(1), &image), 0);
        assert!(!within_sigma("in the chart of the state", &replicated, exact, SIGMAS));
        let (mean, error) = estimate(&replicated);
        let theirs = exact + official - value;
        // The independent program gives no error: about that of ours is assumed.
        println!("official {mean:.4} ± {error:.4}, independently {theirs:.4}");
        assert!(mean > exact && (mean - theirs).abs() < SIGMAS * 2f64.sqrt() * error);
    }
}

/// Asks to stop when two images are done.
struct Impatient(Stop);

impl Observer for Impatient {
    fn advance(&self, done: u64, _: &str) {
        if done >= 2 {
            self.0.ask();
        }
    }
}

#[test]
fn an_interrupted_evaluation_goes_on_with_the_group_it_was_at() {
    let scratch = Scratch::new("evidence");
    let model = Linear::new("euclidean:1", None, &[2.0], &[3.0], 1.0);
    let evidence = Evidence::on(&model.model.latent, 20, 4, 2);
    let images = [3.0, 5.0, -2.0, 8.0, 1.0];
    let run = |observer: &dyn Observer, stop: Stop, images: &[f64]| {
        let context = Context::new(observer, stop, scratch.folder(), "test");
        evidence.log_likelihoods(&model.model, &model.state, images, 3, &context)
    };
    let asked = Stop::default();
    assert!(matches!(run(&Impatient(asked.clone()), asked, &images), Err(Error::Interrupted)));
    assert_eq!(scratch.list(), ["evidence.safetensors"]);
    let whole = evidence.log_likelihoods(&model.model, &model.state, &images, 3, &Context::bare()).unwrap();
    // Other images after those that were done: these are not annealed again.
    let other = [0.0, 0.0, -2.0, 8.0, 1.0];
    assert_eq!(run(&Silent, Stop::default(), &other).unwrap(), whole);
    // All done: nothing is computed. Of another number of images: not its own.
    assert_eq!(run(&Silent, Stop::default(), &[0.0; 5]).unwrap(), whole);
    assert!(run(&Silent, Stop::default(), &images[..4]).is_err());
}

fn before_softplus(y: f64) -> f64 {
    y.exp_m1().ln()
}

/// Columns of W are orthogonal, so that the posterior has independent coordinates.
const COLUMNS: [[f64; 3]; 2] = [[1.0, 2.0, 0.5], [2.0, -1.0, 0.0]];
const BIAS: [f64; 3] = [0.2, -0.1, 0.4];
const VARIANCE: f64 = 0.3;

/// A linear model with the posterior N(SWᵀ(x − b)/σ², S), S⁻¹ = I + WᵀW/σ², its deviations times a factor.
fn normal(factor: f64) -> Linear {
    let model = Linear::new("euclidean:2", Some(Posterior::Gaussian), &COLUMNS.concat(), &BIAS, VARIANCE);
    let spread = COLUMNS.map(|c| 1.0 / (1.0 + c.iter().map(|w| w * w).sum::<f64>() / VARIANCE));
    let matrix: Vec<f64> = (0..6).map(|i| spread[i % 2] * COLUMNS[i % 2][i / 2] / VARIANCE).collect();
    let shift = [0, 1].map(|k| -(0..3).map(|i| BIAS[i] * matrix[2 * i + k]).sum::<f64>());
    model.encoding(&matrix, &shift, &spread.map(|s| before_softplus(factor * s.sqrt())))
}

/// log N(x; b, WWᵀ + σ²I), along the columns and across them.
fn log_marginal(x: &[f64]) -> f64 {
    let centred: Vec<f64> = x.iter().zip(BIAS).map(|(x, b)| x - b).collect();
    let (mut rest, mut total) = (centred.iter().map(|x| x * x).sum::<f64>(), -1.5 * TAU.ln() - 0.5 * VARIANCE.ln());
    for column in COLUMNS {
        let square: f64 = column.iter().map(|w| w * w).sum();
        let along = column.iter().zip(&centred).map(|(w, x)| w * x).sum::<f64>().powi(2) / square;
        rest -= along;
        total -= 0.5 * along / (square + VARIANCE) + 0.5 * (square + VARIANCE).ln();
    }
    total - 0.5 * rest / VARIANCE
}

const IMAGES: [f64; 9] = [1.0, -0.5, 0.3, 0.0, 2.0, -1.0, -1.5, 0.7, 0.9];

#[test]
fn the_importance_weighted_bound_is_exact_for_the_exact_normal_posterior_and_below_for_others() {
    let exact: Vec<f64> = IMAGES.chunks(3).map(log_marginal).collect();
    // Every weight is p(x) itself, however few the codes; the third image fills a group of two.
    for codes in [1, 7] {
        let bounds = normal(1.0).bounds(&IMAGES, codes).unwrap();
        assert!(bounds.iter().zip(&exact).all(|(b, e)| within_ulps(*b, *e, 256.0)), "{bounds:?} against {exact:?}");
    }
    let gaps = |codes: usize| -> Vec<f64> {
        let model = normal(1.5);
        let all: Vec<f64> = IMAGES.chunks(3).cycle().take(300).flatten().copied().collect();
        let bounds = model.bounds(&all, codes).unwrap();
        bounds.iter().zip(exact.iter().cycle()).map(|(b, e)| b - e).collect()
    };
    let [(one, error), (many, _)] = [1, 30].map(|codes| estimate(&gaps(codes)));
    println!("below by {one:.4} ± {error:.4} with one code, by {many:.4} with thirty");
    assert!(one < -SIGMAS * error && many > one + SIGMAS * error && many < SIGMAS * error);
    // Annealing agrees: that is the likelihood of the same decoder.
    let model = normal(1.0);
    let runs = model.runs(&model.evidence(3), &IMAGES);
    for (k, exact) in exact.iter().enumerate() {
        assert!(within_sigma(&format!("image {k} by annealing"), &of_image(&runs, k), *exact, SIGMAS));
    }
}

#[test]
fn the_importance_weighted_bound_is_exact_for_the_exact_von_mises_fisher_posterior() {
    let exactly = Posterior::VonMisesFisher { gradient: Reparameterisation::Exact };
    let unit = |m: usize| (0..m * m).map(|i| f64::from(u8::from(i / m == i % m))).collect::<Vec<f64>>();
    for (m, kappa) in [(3, 5.0), (9, 40.0)] {
        let with = |posterior: Posterior, own: f64| {
            let (model, image, exact) = isotropic(m, kappa, Some(posterior));
            (model.encoding(&unit(m), &vec![0.0; m], &[before_softplus(own - 1.0)]), image, exact)
        };
        let (model, image, exact) = with(exactly, kappa);
        let bound = model.bounds(&image, 3).unwrap()[0];
        // KL is truncated at 6·10⁻⁷ of its value (`energy::von_mises_fisher`), which is below κ.
        println!("m = {m}: bound {bound:.8}, exact {exact:.8}");
        assert!((bound - exact).abs() < 6e-7 * kappa, "{bound} against {exact}");
        let (wider, ..) = with(exactly, 0.7 * kappa);
        let gaps: Vec<f64> = wider.bounds(&image.repeat(2000), 1).unwrap().iter().map(|b| b - exact).collect();
        let (mean, error) = estimate(&gaps);
        assert!(mean < -SIGMAS * error, "a wider posterior gives {mean} ± {error}");
    }
}

#[test]
fn there_is_no_bound_where_the_density_of_codes_is_not_known() {
    let official = Posterior::VonMisesFisher { gradient: Reparameterisation::Official };
    for posterior in [Posterior::Point, Posterior::Implicit { noise: 2 }, official] {
        let (model, image, _) = isotropic(3, 5.0, Some(posterior));
        assert_eq!(model.bounds(&image, 2), None, "{posterior}");
    }
}
