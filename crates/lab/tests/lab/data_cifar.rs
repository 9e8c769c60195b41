//! CIFAR-10 in both of its forms: the same images, and what is said of wrong files.

use minvel_lab::image::{Images, cifar};
use minvel_testing::Scratch;

/// Byte of image i: channel, and row and column as one number.
fn byte(i: usize, c: usize, p: usize) -> u8 {
    ((i * 31 + c * 101 + p * 7 + p / 32 * 3) % 256) as u8
}

fn label(i: usize) -> u8 {
    (i * 3 % 10) as u8
}

/// A batch of images as records of label and bytes.
fn binary(images: std::ops::Range<usize>) -> Vec<u8> {
    let record = |i| std::iter::once(label(i)).chain((0..3072).map(move |k| byte(i, k / 1024, k % 1024)));
    images.flat_map(record).collect()
}

/// The same images as rows of a PNG file.
fn strip(images: std::ops::Range<usize>) -> Vec<u8> {
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, 1024, images.len() as u32);
    encoder.set_color(png::ColorType::Rgb);
    let pixels: Vec<u8> = images.flat_map(|i| (0..3072).map(move |k| byte(i, k % 3, k / 3))).collect();
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    bytes
}

#[test]
fn strips_and_binary_files_hold_the_same_images() {
    let scratch = Scratch::new("cifar");
    for (i, form) in ["bin", "png"].into_iter().enumerate() {
        let inner = ["cifar-10-batches-bin", "package"][i];
        let folder = scratch.path(form);
        std::fs::create_dir_all(folder.join(inner)).unwrap();
        for batch in 0..6 {
            let name = if batch < 5 { format!("data_batch_{}", batch + 1) } else { "test_batch".into() };
            let bytes = if form == "bin" { binary(3 * batch..3 * batch + 3) } else { strip(3 * batch..3 * batch + 3) };
            std::fs::write(folder.join(inner).join(format!("{name}.{form}")), bytes).unwrap();
        }
        let list = |range: std::ops::Range<usize>| format!("{:?}", range.map(label).collect::<Vec<_>>());
        std::fs::write(folder.join(inner).join("train_lables.json"), list(0..15)).unwrap();
        std::fs::write(folder.join(inner).join("test_lables.json"), list(15..18)).unwrap();
        let (train, test) = (cifar::train(Some(&folder)).unwrap(), cifar::test(Some(&folder)).unwrap());
        assert_eq!((train.images.count, test.images.count, train.images.features()), (15, 3, 3072));
        assert_eq!(train.labels, (0..15).map(label).collect::<Vec<_>>(), "{form}");
        assert_eq!(test.labels, (15..18).map(label).collect::<Vec<_>>(), "{form}");
        for (i, image) in [(0, train.images.image(0)), (14, train.images.image(14)), (17, test.images.image(2))] {
            assert!((0..3072).all(|k| image[k] == byte(i, k % 3, k / 3)), "{form}: image {i}");
        }
    }
}

#[test]
fn a_bad_file_is_named_with_what_is_wrong() {
    let scratch = Scratch::new("cifar-bad");
    let said = || cifar::test(Some(&scratch.path(""))).unwrap_err().to_string();
    assert!(said().contains("no test_batch.bin or test_batch.png"), "{}", said());
    scratch.file("test_batch.png", strip(0..2));
    assert!(said().contains("no test_lables.json"), "{}", said());
    scratch.file("test_lables.json", "[1, 2, 3]");
    assert!(said().contains("test_lables.json: has 3 labels for the 2 images of cifar10:test"), "{}", said());
    scratch.file("test_lables.json", "[1, 10]");
    assert!(said().contains("a label 10"), "{}", said());
    scratch.file("test_batch.bin", &binary(0..2)[..6000]);
    assert!(said().contains("test_batch.bin: has 6000 bytes, not a multiple of 3073"), "{}", said());
    let unknown = Images::named("cifar10:validation").unwrap_err().to_string();
    assert!(unknown.contains("cifar10:train"), "{unknown}");
}
