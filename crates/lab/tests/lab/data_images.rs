//! Images from idx files: what is read, and what is refused with which words.

use flate2::Compression;
use flate2::write::GzEncoder;
use minvel_lab::catalogue;
use minvel_lab::image::{idx, mnist};
use minvel_testing::Scratch;
use std::io::Write;

/// An idx file.
fn packed(kind: u8, dims: &[u32], entries: &[u8]) -> Vec<u8> {
    let lengths = dims.iter().flat_map(|n| n.to_be_bytes());
    [0, 0, kind, dims.len() as u8].into_iter().chain(lengths).chain(entries.iter().copied()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn two_small_images_are_read_plain_and_packed() {
    let scratch = Scratch::new("idx");
    let bytes = packed(8, &[2, 2, 3], &[0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255]);
    let plain = idx::images(&scratch.file("plain", &bytes)).unwrap();
    assert_eq!((plain.count, plain.height, plain.width, plain.channels, plain.features()), (2, 2, 3, 1, 6));
    assert_eq!((plain.image(0), plain.image(1)[5]), (&[0, 1, 2, 3, 4, 5][..], 255));
    assert_eq!(plain.intensities()[11], 1.0);
    assert_eq!(plain.part(1..2).pixels, plain.image(1));
    let packed = idx::images(&scratch.file("packed.gz", gzip(&bytes))).unwrap();
    assert_eq!((packed.pixels.clone(), packed.name.as_str()), (plain.pixels.clone(), "packed.gz"));
    assert_eq!(packed.sha256, catalogue::sha256(&scratch.path("packed.gz")).unwrap());
    assert_ne!(packed.sha256, plain.sha256);
}

#[test]
fn a_bad_file_is_named_with_what_is_wrong() {
    let scratch = Scratch::new("idx-bad");
    let good = packed(8, &[2, 2, 2], &[7; 8]);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", vec![], "too short"),
        ("text", b"label,pixel".to_vec(), "not an idx file: it begins with [6c, 61, 62, 65]"),
        ("labels", packed(8, &[3], &[1, 2, 3]), "with 1 axes; images have 3"),
        ("floats", packed(13, &[1, 1, 1], &[0; 4]), "not bytes"),
        ("header", good[..10].to_vec(), "truncated in its header"),
        ("short", good[..good.len() - 1].to_vec(), "is truncated: its header declares 2 × 2 × 2 bytes, but 7 follow"),
        ("long", [&good[..], &[1]].concat(), "is too long: its header declares 2 × 2 × 2 bytes, and more follow"),
        ("huge", packed(8, &[u32::MAX; 3], &[0; 8]), "would take 15.9 EiB of memory"),
        ("large", packed(8, &[1000; 3], &[0; 8]), "is truncated"),
        ("flat", packed(8, &[4, 0, 2], &[]), "images of 0 × 2 pixels"),
        ("half.gz", gzip(&good)[..20].to_vec(), "damaged or truncated"),
    ];
    for (name, bytes, expected) in cases {
        let message = idx::images(&scratch.file(name, bytes)).unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains(name), "{name}: {message}");
    }
    assert!(idx::images(&scratch.path("nowhere")).unwrap_err().to_string().contains("nowhere"));
}

#[test]
fn labels_must_be_as_many_as_images_and_mnist_must_have_its_files() {
    let scratch = Scratch::new("mnist");
    let message = mnist::train(Some(scratch.folder())).unwrap_err().to_string();
    assert!(message.contains("no file train-images-idx3-ubyte.gz"), "{message}");
    scratch.file("train-images-idx3-ubyte", packed(8, &[2, 1, 1], &[7; 2]));
    scratch.file("train-labels-idx1-ubyte.gz", gzip(&packed(8, &[3], &[7; 3])));
    let message = mnist::train(Some(scratch.folder())).unwrap_err().to_string();
    assert!(message.contains("3 labels for the 2 images of train-images-idx3-ubyte"), "{message}");
    scratch.file("train-labels-idx1-ubyte.gz", gzip(&packed(8, &[2], &[7, 10])));
    let message = mnist::train(Some(scratch.folder())).unwrap_err().to_string();
    assert!(message.contains("a label 10"), "{message}");
    scratch.file("train-labels-idx1-ubyte.gz", gzip(&packed(8, &[2], &[7, 9])));
    assert_eq!(mnist::train(Some(scratch.folder())).unwrap().labels, [7, 9]);
}
