//! FID: that it measures what it says, with what it must be compared by.

use minvel_engine::{Device, Expr, Options, State};
use minvel_lab::fid::{FeatureMap, Fid, Grey, Reference, Thumbnail};
use minvel_lab::image::{Images, Picture};

/// A network whose features are the pixels.
struct Plain;

impl FeatureMap for Plain {
    fn name(&self) -> &str {
        "plain"
    }
    fn sha256(&self) -> &str {
        "0123456789abcdef"
    }
    fn count(&self) -> usize {
        2
    }
    fn image(&self) -> [usize; 3] {
        [1, 2, 1]
    }
    fn features<'g>(&self, images: Expr<'g>, _: u32) -> Expr<'g> {
        images + 0.0
    }
    fn set(&self, _: &mut State<f32>) {}
}

/// Twice the pixels, drawn black or white.
struct Binary;

impl FeatureMap for Binary {
    fn features<'g>(&self, images: Expr<'g>, stream: u32) -> Expr<'g> {
        images.bernoulli(stream) * 2.0
    }
    fn name(&self) -> &str {
        "binary"
    }
    fn sha256(&self) -> &str {
        "fedcba9876543210"
    }
    fn count(&self) -> usize {
        2
    }
    fn image(&self) -> [usize; 3] {
        [1, 2, 1]
    }
    fn set(&self, _: &mut State<f32>) {}
}

fn on_cpu() -> Options {
    Options { device: Device::Cpu, ..Options::default() }
}

/// Corners of a rectangle: mean, and variances a²·4/3, b²·4/3 with divisor 3.
fn corners([x, y]: [f32; 2], [a, b]: [f32; 2]) -> Vec<f32> {
    vec![x + a, y + b, x + a, y - b, x - a, y + b, x - a, y - b]
}

#[test]
fn distances_of_rectangles_are_those_of_their_means_and_sides() {
    let reference = Reference::new(&Plain, &corners([0.0, 0.0], [0.5, 0.25]), 1, &on_cpu());
    let fid = reference.fid(&corners([0.5, 0.25], [0.25, 0.75]));
    // |Δμ|² + Σ(σ₁ − σ₂)², all of them powers of ½
    let expected = 0.25 + 0.0625 + (0.0625 + 0.25) * 4.0 / 3.0;
    assert!((fid.value - expected).abs() < 1e3 * f64::EPSILON, "{fid} against {expected}");
    assert_eq!((fid.reference, fid.samples), (4, 4));
    assert_eq!(fid.to_string(), "0.73 (plain 01234567, 4 samples against 4)");
    let back: Fid = serde_json::from_str(&serde_json::to_string(&fid).unwrap()).unwrap();
    assert_eq!(back, fid);
}

#[test]
fn more_images_than_go_through_at_once_are_all_counted() {
    let many = corners([0.0, 0.0], [0.5, 0.25]).repeat(333);
    let fid = Reference::new(&Plain, &many, 1, &on_cpu()).fid(&many);
    assert_eq!((fid.reference, fid.samples), (1332, 1332));
    assert!(fid.value < 1e3 * f64::EPSILON, "{fid}");
}

#[test]
fn grey_images_are_pictures_and_back_and_colours_are_refused() {
    let (name, sha256) = (String::new(), String::new());
    let grey = Images { count: 2, height: 1, width: 2, channels: 1, pixels: vec![0, 51, 102, 255], name, sha256 };
    let picture = grey.picture(1);
    assert_eq!(picture.pixels, [102, 102, 102, 255, 255, 255]);
    assert_eq!(Plain.intensities(&picture).unwrap(), grey.intensities()[2..]);
    for k in 0..6 {
        let mut pixels = picture.pixels.clone();
        pixels[k] ^= 1;
        let refused = Plain.intensities(&Picture { pixels, ..picture }).unwrap_err();
        assert!(refused.contains("is in colour; plain expects grey images"), "{refused}");
    }
}

#[test]
fn reference_and_samples_are_drawn_apart() {
    let grey = vec![0.5f32; 2 * 2000];
    let fid = |seed| Reference::new(&Binary, &grey, seed, &on_cpu()).fid(&grey).value;
    // by the moments of ±1: 2d/N from the means, and something of that order from the covariances
    assert!(fid(1) > 0.0 && fid(1) < 20.0 * 2.0 / 2000.0, "{}", fid(1));
    assert_eq!(fid(1), fid(1));
    assert_ne!(fid(1), fid(2));
}

#[test]
#[should_panic(expected = "are not comparable")]
fn distances_of_different_networks_are_not_averaged() {
    let of = |network: &dyn FeatureMap| {
        let images = corners([0.5, 0.5], [0.4, 0.3]);
        Reference::new(network, &images, 1, &on_cpu()).fid(&images)
    };
    let _ = Fid::across(&[of(&Plain), of(&Binary)]);
}

#[test]
fn a_network_for_colours_sees_grey_images_as_three_equal_channels_drawn_black_or_white() {
    let (colours, grey) = (Thumbnail::of([8, 4, 3]), Grey::new(Thumbnail::of([8, 4, 3])));
    assert_eq!(grey.image(), [8, 4, 1]);
    assert_ne!(
        grey.preprocessing(),
        colours.preprocessing(),
        "distances by one do not compare with those by the other"
    );
    let options = Options { device: Device::Cpu, ..Options::default() };
    let image: Vec<f32> = (0..32).map(|k| (k * k % 3 % 2) as f32).collect();
    let thrice: Vec<f32> = image.iter().flat_map(|p| [*p; 3]).collect();
    assert_eq!(grey.apply(&image, 1, 5, 0, &options).unwrap(), colours.apply(&thrice, 1, 5, 0, &options).unwrap());
    // Half an intensity is black or white, and the same in all channels.
    let halves = grey.apply(&[0.5; 32], 1, 5, 0, &options).unwrap();
    let drawn: f32 = halves.iter().sum::<f32>() / halves.len() as f32;
    assert!(halves.iter().any(|f| *f != drawn), "not drawn: {halves:?}");
}
