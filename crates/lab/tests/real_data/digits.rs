//! MNIST: its published numbers, how it looks (set MINVEL_FIGURES to a folder to keep the pictures), and that LeNet learns it.

use crate::support::grids::picture;
use crate::support::needs::set;
use minvel::train::Context;
use minvel_lab::catalogue;
use minvel_lab::fid::{Lenet, Schooling};
use minvel_lab::image::{Labelled, mnist};
use minvel_lab::plot::{ImageGrid, Plot, Theme};
use minvel_testing::{Test, note, test};

pub fn tests() -> Vec<Test> {
    vec![
        test!(mnist_has_its_digits_and_their_mean_intensity).needs(set("mnist")),
        test!(digits_can_be_looked_at).needs(set("mnist")),
        test!(a_hundred_and_twenty_steps_learn_the_digits).needs(set("mnist")),
    ]
}

fn mnist_has_its_digits_and_their_mean_intensity() {
    let (train, test) = (mnist::train(None).unwrap(), mnist::test(None).unwrap());
    let count = |set: &Labelled, digit: u8| set.labels.iter().filter(|l| **l == digit).count();
    // numbers that are widely published: counts of digits, first labels, mean intensity of the training images
    assert_eq!((train.images.count, test.images.count), (60_000, 10_000));
    assert_eq!((train.images.height, train.images.width), (28, 28));
    assert_eq!(
        (0..10).map(|d| count(&test, d)).collect::<Vec<_>>(),
        [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    );
    assert_eq!(train.labels[..5], [5, 0, 4, 1, 9]);
    let mean = train.images.pixels.iter().map(|p| *p as f64).sum::<f64>() / train.images.pixels.len() as f64 / 255.0;
    assert_eq!(format!("{mean:.4}"), "0.1307");
    assert_eq!(train.images.sha256, catalogue::find("mnist").unwrap().files[0].sha256);
}

fn digits_can_be_looked_at() {
    let test = mnist::test(None).unwrap();
    let labels = &test.labels;
    let by_digit = |d: u8| (0..10_000).filter(move |i| labels[*i] == d).take(10);
    let images: Vec<u8> = (0..10).flat_map(by_digit).flat_map(|i| test.images.image(i).to_vec()).collect();
    let grid = ImageGrid::new([28, 28, 1], 10, images).titled("Digits to test with");
    let plot = Plot::Grid(grid.beside((0..10).map(|d| format!("digit {d}"))).above((1..=10).map(|i| i.to_string())));
    if let Ok(folder) = std::env::var("MINVEL_FIGURES") {
        std::fs::write(format!("{folder}/digits.png"), plot.png(2.0)).unwrap();
        std::fs::write(format!("{folder}/digits.svg"), plot.svg(Theme::Paper)).unwrap();
    }
    assert_eq!(picture(&plot).columns, 10 * 28 * 5 + 9 * 4);
}

fn a_hundred_and_twenty_steps_learn_the_digits() {
    let (train, test) = (mnist::train(None).unwrap(), mnist::test(None).unwrap());
    let schooling = Schooling { epochs: 1, held_out: 2000, ..Schooling::default() };
    let learn = |steps: usize, turn: usize| {
        let mut part = train.part(0..2000 + steps * 64);
        part.labels.rotate_left(turn);
        Lenet::train(&part, &test.part(0..2000), &schooling, &Context::bare()).unwrap().origin
    };
    let begun = std::time::Instant::now();
    let origin = learn(120, 0);
    note!("{:.1} s; {origin:?}", begun.elapsed().as_secs_f64());
    assert_eq!(origin.steps, 120);
    // nine of ten right; guesses would be one of ten
    assert!(origin.held_out_error < 0.1 && origin.test_error < 0.1, "{origin:?}");
    // the twin that learnt from the labels of other images
    let confused = learn(30, 1);
    assert!(confused.test_error > 0.5, "{confused:?}");
}
