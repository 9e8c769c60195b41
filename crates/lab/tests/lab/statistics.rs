//! Statistics of features: files as pytorch-fid has them, and sums that do not depend on how images were dealt out.

use minvel_engine::random::{Key, Stream};
use minvel_engine::{Device, Draw, Expr, Options, State};
use minvel_lab::fid::{FeatureMap, Gathering, Normal, Scatter, Statistics};
use minvel_lab::image::intensities;
use minvel_lab::table::npz;
use minvel_lab::table::npz::Array;
use minvel_testing::Scratch;
use std::path::Path;

/// A network whose features are the pixels.
struct Plain;

impl FeatureMap for Plain {
    fn name(&self) -> &str {
        "plain"
    }
    fn sha256(&self) -> &str {
        "0123"
    }
    fn count(&self) -> usize {
        3
    }
    fn image(&self) -> [usize; 3] {
        [1, 1, 3]
    }
    fn features<'g>(&self, images: Expr<'g>, _: u32) -> Expr<'g> {
        images + 0.0
    }
    fn set(&self, _: &mut State<f32>) {}
}

fn gather(images: &[f32], at_once: usize, parts: usize) -> Statistics {
    let options = Options { device: Device::Cpu, ..Options::default() };
    let mut gathering = Gathering::new(&Plain, at_once, 0, 0, &options).unwrap();
    images.chunks(parts).for_each(|part| gathering.extend(part).unwrap());
    gathering.finish().unwrap()
}

#[test]
fn statistics_do_not_depend_on_how_images_were_dealt_out() {
    let stream = Stream::new(Key::new(5, 0), 0);
    let images: Vec<f32> = stream.samples(Draw::Normal).take(3 * 2500).map(|x| x as f32).collect();
    let expected = Scatter::of(&images, 3).normal();
    for (at_once, parts) in [(100, 3), (2500, 7500), (37, 300), (1024, 7)] {
        let got = gather(&images, at_once, parts);
        assert_eq!((got.law, got.count), (expected.clone(), 2500), "{at_once} at once, {parts} numbers at a time");
    }
    assert_ne!(gather(&images[3..], 100, 3).law, expected);
    let (bytes, options) = ((0..3 * 700).map(|k| (k % 251) as u8).collect::<Vec<u8>>(), Options::default());
    let shades = Statistics::of(&Plain, &intensities(&bytes), 0, 0, &options).unwrap();
    assert_eq!(Statistics::of_bytes(&Plain, &bytes, 0, 0, &options).unwrap(), shades);
}

#[test]
fn a_file_gives_back_what_was_written() {
    let scratch = Scratch::new("statistics");
    let statistics = gather(&[1.0, 2.0, 3.0, 0.0, 5.0, 1.0, 0.5, 0.25, 8.0], 16, 3);
    assert_eq!(statistics.preprocessing.len(), 64);
    let path = scratch.path("s.npz");
    statistics.write(&path).unwrap();
    assert_eq!(Statistics::read(&path).unwrap(), statistics);
}

/// The fixture was written by `numpy.savez_compressed(mu=…, sigma=…)`, numpy 2.4.6, from rows (1,2), (3,5), (2,8), (0,1).
#[test]
fn files_of_pytorch_fid_are_read() {
    let read = Statistics::read(Path::new("tests/data_fixtures/statistics.npz")).unwrap();
    assert_eq!(read.law.mean, [1.5, 4.0]);
    assert_eq!(read.law.covariance, [1.6666666666666665, 3.0, 3.0, 10.0]);
    assert_eq!((read.count, read.network.as_str()), (0, ""));
    let other = Statistics { law: Normal { mean: vec![0.5, 4.0], ..read.law.clone() }, count: 7, ..read.clone() };
    let fid = read.fid(&other);
    assert!((fid.value - 1.0).abs() < 1e-12, "{fid}");
    assert!(fid.to_string().contains("7 samples against ?"), "{fid}");
}

#[test]
fn files_that_are_no_statistics_or_do_not_compare_are_refused() {
    let scratch = Scratch::new("no-statistics");
    let path = scratch.path("s.npz");
    let said = || Statistics::read(&path).unwrap_err().to_string();
    let array = |shape: &[usize], values: &[f64]| Array { shape: shape.to_vec(), values: values.to_vec() };
    std::fs::write(&path, b"nothing").unwrap();
    assert!(said().contains("s.npz: is damaged or not an NPZ file"), "{}", said());
    npz::write(&path, &[("mu", array(&[1], &[0.0]))]).unwrap();
    assert!(said().contains("no array `sigma`"), "{}", said());
    let nothing = |shape: &[usize]| Array { shape: shape.to_vec(), values: vec![] };
    npz::write(&path, &[("mu", nothing(&[0])), ("sigma", nothing(&[0, 0]))]).unwrap();
    assert!(said().contains("`mu` of shape [0]"), "{}", said());
    npz::write(&path, &[("mu", array(&[2], &[0.0; 2])), ("sigma", array(&[2, 1], &[0.0; 2]))]).unwrap();
    assert!(said().contains("`sigma` of [2, 1]"), "{}", said());
    npz::write(&path, &[("mu", array(&[1], &[f64::NAN])), ("sigma", array(&[1, 1], &[1.0]))]).unwrap();
    assert!(said().contains("not finite"), "{}", said());
    let ours = gather(&[1.0, 2.0, 3.0, 0.0, 5.0, 1.0], 16, 3);
    assert!(ours.check(&ours, &path).is_ok());
    let unknown = Statistics { sha256: String::new(), preprocessing: String::new(), ..ours.clone() };
    assert!(unknown.check(&ours, &path).is_ok(), "who does not say is taken at the user's word");
    for other in [
        Statistics { sha256: "4567".into(), ..ours.clone() },
        Statistics { preprocessing: "another".into(), ..ours.clone() },
    ] {
        let said = other.check(&ours, &path).unwrap_err().to_string();
        assert!(said.contains("s.npz") && said.contains("another network"), "{said}");
    }
    let fewer = Statistics { law: Normal { mean: vec![0.0], covariance: vec![1.0] }, ..ours.clone() };
    assert!(fewer.check(&ours, &path).unwrap_err().to_string().contains("1 features, but the other has 3"));
}
