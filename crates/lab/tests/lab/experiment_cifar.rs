//! The sweep of CIFAR-10 and that of a folder in miniature: from end to end, interrupted and resumed, and settings refused.

use crate::support::resumption::{names, perform, resumed, seen, settings};
use minvel::train::{Silent, Stop};
use minvel_engine::Options;
use minvel_lab::fid::{FeatureMap, Thumbnail};
use minvel_lab::index::find;
use minvel_testing::Scratch;

/// A byte of an image of a class: stripes of its colour, with some noise.
fn byte(image: usize, at: usize) -> u8 {
    let noise = (image * 3072 + at).wrapping_mul(2_654_435_761) >> 27 & 31;
    (if (at / 1024 + image).is_multiple_of(3) { 170 } else { 20 } + noise + at % 32) as u8
}

/// CIFAR-10 of sixty images to learn from and thirty to test with.
fn photographs(folder: &Scratch) {
    let records = |from: usize, count: usize| -> Vec<u8> {
        (from..from + count)
            .flat_map(|k| [(k % 10) as u8].into_iter().chain((0..3072).map(move |i| byte(k, i))))
            .collect()
    };
    (0..5).for_each(|k| drop(folder.file(&format!("data_batch_{}.bin", k + 1), records(12 * k, 12))));
    folder.file("test_batch.bin", records(60, 30));
}

const SMALL: [&str; 8] = [
    "features=\"thumbnail\"",
    "seeds=2",
    "samples=60",
    "every=4",
    "learning.filters=[2,3]",
    "learning.hidden=[6]",
    "learning.iterations=10",
    "learning.batch=4",
];

#[test]
fn a_thumbnail_is_the_mean_of_each_part() {
    let network = Thumbnail::of([4, 8, 2]);
    let image: Vec<f32> = (0..64).map(|k| k as f32).collect();
    let got = network.apply(&image, 1, 0, 0, &Options::default()).unwrap();
    // Of the first channel, then of the second: pairs of pixels beside each other.
    let expected: Vec<f32> = (0..32).map(|k| (4 * (k % 16) + k / 16 + 1) as f32).collect();
    assert_eq!(got, expected);
}

#[test]
fn the_sweep_of_cifar_comes_out_the_same_however_often_it_is_interrupted() {
    let scratch = Scratch::new("cifar");
    photographs(&scratch);
    let mut config = settings("cifar", &SMALL);
    config.set("dimensions=[2,3]").unwrap();
    config.set(&format!("folder={:?}", scratch.folder())).unwrap();
    let report = resumed("cifar", &config, &scratch);
    let values: Vec<f64> = report.rows.iter().map(|row| row.value).collect();
    assert!(values.iter().all(|x| x.is_finite()), "{values:?}");
    // Three methods at two dimensions, and ours against two others at each.
    assert_eq!((report.rows.len(), report.claims().count()), (10, 4));
    for figure in ["dimension", "progress", "learning", "velocity-2-samples", "discrepancy-3-paths"] {
        assert!(names(&report).contains(&figure), "{figure} is not among {:?}", names(&report));
    }
    let kept = scratch.path("whole").join("models");
    for file in ["reference.npz", "velocity-2-4.safetensors", "velocity-2-8.safetensors", "velocity-2.safetensors"] {
        assert!(kept.join(file).is_file(), "{file} is missing");
    }
    // Statistics that were lost are asked for, with what to do.
    std::fs::remove_file(kept.join("reference.npz")).unwrap();
    std::fs::remove_file(scratch.path("whole").join("units/velocity-2.fid.json")).unwrap();
    let lost = perform(&config, "cifar", &scratch.path("whole"), &Silent, Stop::default()).unwrap_err().to_string();
    assert!(lost.contains("reference.npz") && lost.contains("delete units/reference.json"), "{lost}");
    // The twin: another seed is another sweep.
    config.set("seed=5").unwrap();
    let other = perform(&config, "cifar", &scratch.path("other"), &Silent, Stop::default()).unwrap();
    assert_ne!(seen(&report), seen(&other));
}

fn picture(path: &std::path::Path, image: usize) {
    let file = std::fs::File::create(path).unwrap();
    let mut encoder = png::Encoder::new(file, 20, 24);
    encoder.set_color(png::ColorType::Rgb);
    let bytes: Vec<u8> = (0..20 * 24 * 3).map(|i| byte(image, i)).collect();
    encoder.write_header().unwrap().write_image_data(&bytes).unwrap();
}

#[test]
fn a_folder_of_pictures_is_swept_and_what_cannot_be_read_is_said() {
    let (scratch, out) = (Scratch::new("celeba"), Scratch::new("celeba-run"));
    (0..30).for_each(|k| picture(&scratch.path(&format!("face{k:02}.png")), k));
    scratch.file("broken.png", b"not a picture");
    let mut config = settings("celeba", &SMALL);
    for assignment in ["dimensions=[2]", "frame.crop=16", "frame.side=8"] {
        config.set(assignment).unwrap();
    }
    config.set(&format!("folder={:?}", scratch.folder())).unwrap();
    let report = perform(&config, "celeba", &out.path("run"), &Silent, Stop::default()).unwrap();
    assert_eq!((report.rows.len(), report.claims().count()), (3, 1));
    assert!(report.rows.iter().all(|row| row.value.is_finite()));
    let notes = report.notes.join("\n");
    assert!(notes.contains("30 pictures") && notes.contains("1 files") && notes.contains("broken.png"), "{notes}");
}

#[test]
fn a_single_auto_encoder_learns_a_folder_of_pictures() {
    let (scratch, out) = (Scratch::new("pictures"), Scratch::new("pictures-run"));
    (0..30).for_each(|k| picture(&scratch.path(&format!("{k:02}.png")), k));
    let assignments = [
        "frame.side=8",
        "model.latent=\"sphere:2\"",
        "model.likelihood=\"dequantised\"",
        "model.network=\"convolutional\"",
        "model.filters=[2,3]",
        "model.hidden=[6]",
        "model.iterations=4",
        "model.batch=4",
        "evaluation.images=3",
        "evaluation.chains=2",
        "evaluation.temperatures=4",
    ];
    let mut config = settings("train-wae", &assignments);
    config.set(&format!("data={:?}", scratch.folder())).unwrap();
    let report = perform(&config, "train-wae", &out.path("run"), &Silent, Stop::default()).unwrap();
    // reconstruction error, that of the mean image, likelihood
    assert!(report.rows.len() == 3 && report.rows.iter().all(|row| row.value.is_finite()), "{:?}", report.rows);
    assert!(names(&report).contains(&"model-sphere") && report.notes.join(" ").contains("30 pictures"));
    config.set("frame.side=7").unwrap();
    let refused = (find("train-wae").unwrap().check)(&config).err().unwrap().to_string();
    assert!(refused.contains("frame.side"), "{refused}");
}

#[test]
fn bad_settings_of_sweeps_name_their_key() {
    let cases = [
        ("cifar", "seeds=0", "seeds"),
        ("cifar", "samples=1", "samples"),
        ("cifar", "dimensions=[]", "dimensions"),
        ("cifar", "dimensions=[0]", "dimensions"),
        ("cifar", "methods=[]", "methods"),
        ("cifar", "learning.filters=[2,2,2,2,2,2]", "filters"),
        ("celeba", "frame.side=6", "frame.side"),
        // found by fuzzing: its square is a multiple of 2⁶⁴, and networks were fed no numbers
        ("celeba", "frame.side=1099511627776", "frame.side"),
        ("celeba", "frame.test=0.4", "frame.test"),
    ];
    for (name, assignment, key) in cases {
        let why = match (find(name).unwrap().check)(&settings(name, &[assignment])) {
            Err(why) => why.to_string(),
            Ok(_) => panic!("{assignment} is taken"),
        };
        assert!(why.contains(key), "{assignment}: {why}");
    }
    let nowhere = (find("celeba").unwrap().check)(&settings("celeba", &["features=\"thumbnail\""])).unwrap();
    assert!(nowhere.ready().unwrap_err().to_string().contains("folder"));
}
