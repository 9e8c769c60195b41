//! LeNet: what it computes, and that its weights survive a file. That it learns digits: real_data/digits.rs.

use minvel::Error;
use minvel::train::{Context, Silent, Stop};
use minvel_engine::random::{Key, Stream};
use minvel_engine::{Device, Draw, Options, State};
use minvel_lab::fid::{FeatureMap, Lenet, Schooling};
use minvel_lab::image::{Images, Labelled};
use minvel_testing::Scratch;

fn on_cpu() -> Options {
    Options { device: Device::Cpu, ..Options::default() }
}

/// Noise with labels: enough to make weights of.
fn noise(count: usize) -> Labelled {
    let words = |stream| Stream::new(Key::new(47, 0), stream);
    let pixels = words(0).samples(Draw::Integer(256)).take(count * 784).map(|x| x as u8).collect();
    let labels: Vec<u8> = words(1).samples(Draw::Integer(10)).take(count).map(|x| x as u8).collect();
    let (name, sha256) = ("noise".to_string(), "0".repeat(64));
    let images = Images { count, height: 28, width: 28, channels: 1, pixels, name, sha256 };
    Labelled { images, labels }
}

fn on_noise(seed: u64) -> Lenet {
    let schooling = Schooling { seed, epochs: 1, batch: 16, held_out: 16 };
    Lenet::train(&noise(48), &noise(16), &schooling, &Context::bare()).unwrap()
}

/// A convolution of zero-padded images with 5 × 5 windows, then bias, ReLU and the largest of each 2 × 2, by definition;
/// channels first, as the weights are kept.
fn layer(image: &[f64], [c, h, w]: [usize; 3], weights: &[f32], biases: &[f32]) -> Vec<f64> {
    let pixel = |k: usize, y: isize, x: isize| {
        let inside = (0..h as isize).contains(&y) && (0..w as isize).contains(&x);
        if inside { image[(k * h + y as usize) * w + x as usize] } else { 0.0 }
    };
    let value = |o: usize, y: usize, x: usize| {
        let window = (0..c * 25).map(|i| {
            let (k, dy, dx) = (i / 25, i / 5 % 5, i % 5);
            weights[o * c * 25 + i] as f64 * pixel(k, (y + dy) as isize - 2, (x + dx) as isize - 2)
        });
        (window.sum::<f64>() + biases[o] as f64).max(0.0)
    };
    let pooled = |i: usize| {
        let (o, y, x) = (i / (h / 2 * w / 2), i / (w / 2) % (h / 2), i % (w / 2));
        (0..4).map(|k| value(o, 2 * y + k / 2, 2 * x + k % 2)).fold(0.0, f64::max)
    };
    (0..biases.len() * h / 2 * w / 2).map(pooled).collect()
}

#[test]
fn features_are_those_of_the_definition() {
    let network = on_noise(3);
    let mut state = State::new(1);
    network.set(&mut state);
    let weights = |name: &str| state.get(&format!("lenet/{name}")).unwrap();
    // black and white only, so that drawing them changes nothing
    let images: Vec<f32> = noise(2).images.pixels.iter().map(|p| (p % 2) as f32).collect();
    let got = network.apply(&images, 4, 0, 1, &on_cpu()).unwrap();
    assert_eq!(got.len(), 2 * network.count());
    let shifted: Vec<f64> = images[784..].iter().map(|x| *x as f64 - 0.5).collect();
    let first = layer(&shifted, [1, 28, 28], weights("conv1/weights"), weights("conv1/biases"));
    let second = layer(&first, [32, 14, 14], weights("conv2/weights"), weights("conv2/biases"));
    let (dense, biases) = (weights("dense1/weights"), weights("dense1/biases"));
    for k in 0..512 {
        let terms: Vec<f64> = second.iter().enumerate().map(|(i, x)| x * dense[i * 512 + k] as f64).collect();
        let expected = (terms.iter().sum::<f64>() + biases[k] as f64).max(0.0);
        let size: f64 = terms.iter().map(|t| t.abs()).sum();
        // sums of 3136, 800 and 25 terms in f32
        let slack = 64.0 * f32::EPSILON as f64 * size;
        assert!((got[512 + k] as f64 - expected).abs() < slack, "feature {k}: {} against {expected}", got[512 + k]);
    }
    assert!(got[512..].iter().filter(|x| **x > 0.0).count() > 50, "there is something to compare");
}

#[test]
fn images_are_drawn_by_seed_and_stream() {
    let network = on_noise(3);
    let images: Vec<f32> = noise(5).images.intensities();
    let of = |stream, seed| network.apply(&images, 2, stream, seed, &on_cpu()).unwrap();
    assert_eq!(of(0, 1), of(0, 1));
    assert_ne!(of(0, 1), of(1, 1));
    assert_ne!(of(0, 1), of(0, 2));
    let twice = network.apply(&images[..784].repeat(2), 1, 0, 1, &on_cpu()).unwrap();
    assert_ne!(twice[..512], twice[512..], "each image is drawn anew");
}

#[test]
fn weights_are_the_seeds_and_survive_a_file() {
    let scratch = Scratch::new("lenet");
    let network = on_noise(3);
    assert_eq!(network, on_noise(3));
    assert_ne!(network.sha256(), on_noise(4).sha256());
    let path = scratch.path("lenet.safetensors");
    network.write(&path).unwrap();
    assert_eq!(Lenet::read(&path).unwrap(), network);
    let bytes = std::fs::read(&path).unwrap();
    let cut = scratch.file("cut.safetensors", &bytes[..bytes.len() - 4]);
    assert!(Lenet::read(&cut).unwrap_err().to_string().contains("cut.safetensors"));
    let colour = Labelled { images: Images { channels: 3, width: 28, ..noise(48).images }, ..noise(48) };
    let refused = Lenet::train(&colour, &noise(16), &Schooling::default(), &Context::bare());
    assert!(refused.unwrap_err().to_string().contains("grey images of 28 × 28"));
}

#[test]
fn an_interrupted_training_ends_with_the_same_weights() {
    let scratch = Scratch::new("lenet-resume");
    let schooling = Schooling { seed: 3, epochs: 1, batch: 16, held_out: 16 };
    let learn = |stop: Stop| {
        let context = Context::new(&Silent, stop, scratch.folder(), "lenet on noise");
        Lenet::train(&noise(48), &noise(16), &schooling, &context)
    };
    let asked = Stop::default();
    asked.ask();
    assert!(matches!(learn(asked), Err(Error::Interrupted)));
    assert_eq!(scratch.list(), ["lenet.safetensors"]);
    assert_eq!(learn(Stop::default()).unwrap(), on_noise(3));
}
