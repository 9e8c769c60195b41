//! CIFAR-10, in whichever form it is here.

use crate::support::needs::set;
use minvel_lab::image::cifar;
use minvel_testing::{Test, test};

pub fn tests() -> Vec<Test> {
    vec![test!(the_published_images_have_the_published_means).needs(set("cifar10"))]
}

fn the_published_images_have_the_published_means() {
    let train = cifar::train(None).unwrap();
    assert_eq!(train.images.count, 50000);
    for (c, expected) in [0.49139968, 0.48215841, 0.44653091].into_iter().enumerate() {
        let sum: u64 = train.images.pixels.iter().skip(c).step_by(3).map(|p| *p as u64).sum();
        let mean = sum as f64 / (50000.0 * 1024.0 * 255.0);
        assert!((mean - expected).abs() <= 0.5e-8 * 1.0001, "channel {c}: {mean} and not {expected}");
    }
    let count = |class| train.labels.iter().filter(|label| **label == class).count();
    assert!((0..10).all(|class| count(class) == 5000));
}
