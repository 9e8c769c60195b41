//! `minvel fid`: what it compares, what it leaves out, words and exit codes.

use crate::support::{Folder, error, picture};

/// An idx file of bytes.
fn idx(dims: &[u32], entries: impl Iterator<Item = u8>) -> Vec<u8> {
    let lengths = dims.iter().flat_map(|n| n.to_be_bytes());
    [0, 0, 8, dims.len() as u8].into_iter().chain(lengths).chain(entries).collect()
}

/// Weights of LeNet after a step on stripes, and folders of black and white pictures: bars that end at i, and thicker ones.
fn prepared(name: &str) -> Folder {
    let folder = Folder::new(name);
    for (part, count) in [("train", 5064), ("t10k", 250)] {
        let pixels = (0..count * 784).map(|i| if i % 784 < 28 * (i / 784 % 10) { 255 } else { 0 });
        folder.file(&format!("{part}-images-idx3-ubyte"), idx(&[count, 28, 28], pixels));
        folder.file(&format!("{part}-labels-idx1-ubyte"), idx(&[count], (0..count).map(|i| (i % 10) as u8)));
    }
    folder.good(&["train", "lenet", "--data", ".", "--epochs", "1", "--device", "cpu"]);
    for (set, thickness) in [("thin", 3), ("thick", 9)] {
        std::fs::create_dir(folder.path(set)).unwrap();
        for i in 0..20 {
            let shade = |y: usize, x: usize| if (i..i + thickness).contains(&y) && x > i / 2 { 255 } else { 0 };
            folder.file(&format!("{set}/{i:02}.png"), picture(shade));
        }
    }
    folder
}

const LENET: [&str; 4] = ["--network", "lenet", "--device", "cpu"];

#[test]
fn folders_and_their_saved_statistics_give_one_distance_whatever_goes_at_once() {
    let folder = prepared("fid");
    let fid = |more: &[&str]| folder.json(&[&["fid"], more, &LENET].concat());
    let first = fid(&["thin", "thick", "--save", "thin.npz"]);
    let value = first["fid"]["value"].as_f64().unwrap();
    assert!(value > 0.0, "{first}");
    assert_eq!((&first["fid"]["reference"], &first["fid"]["samples"]), (&20.into(), &20.into()));
    assert_eq!(first["fid"]["network"], "lenet");
    assert_eq!(first["fid"]["preprocessing"].as_str().unwrap().len(), 64);
    let again = fid(&["thin.npz", "thick", "--batch", "7"]);
    assert_eq!(first["fid"], again["fid"], "black and white pictures are drawn as they are");
    let same = fid(&["thin.npz", "thin"]);
    assert!(same["fid"]["value"].as_f64().unwrap() < 1e-6 * value, "{same}");
    // statistics alone
    let alone = fid(&["thick", "--save", "thick.npz"]);
    assert!(alone["fid"].is_null() && folder.path("thick.npz").is_file());
    let text = folder.good(&["fid", "thin.npz", "thick.npz"]);
    assert!(text.starts_with("FID ") && text.contains("20 samples against 20"), "{text}");
}

#[test]
fn bad_pictures_are_named_and_left_out_with_a_count() {
    let folder = prepared("fid-bad");
    folder.file("thick/05a.png", b"nothing");
    folder.file("thick/07a.jpg", b"\xff\xd8\xff\xe0 cut off");
    let whole = folder.json(&[&["fid", "thin", "thick"], &LENET[..]].concat());
    assert_eq!(whole["fid"]["samples"], 20);
    let left_out: Vec<&str> =
        whole["skipped"].as_array().unwrap().iter().map(|s| s["path"].as_str().unwrap()).collect();
    assert_eq!(left_out, ["thick/05a.png", "thick/07a.jpg"]);
    let output = folder.minvel(&[&["fid", "thin", "thick"], &LENET[..]].concat());
    assert!(output.status.success());
    let said = error(&output);
    assert!(said.contains("warning: skipped thick/05a.png, which is neither PNG nor JPEG"), "{said}");
    assert!(said.contains("2 images were skipped"), "{said}");
}

#[test]
fn what_cannot_be_compared_is_refused_before_any_work() {
    let folder = Folder::new("fid-refused");
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.file("notes.txt", "words");
    folder.file("broken.npz", "words");
    let refused = |arguments: &[&str], expected: &str| {
        let output = folder.minvel(&[&["fid"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        assert!(error(&output).contains(expected), "{arguments:?}: {}", error(&output));
    };
    refused(&["missing", "empty"], "missing: not found");
    refused(&["empty", "empty"], "empty: has no PNG or JPEG files");
    refused(&["notes.txt", "empty"], "notes.txt: unsupported file; expected a folder of images or an .npz file");
    refused(&["broken.npz", "broken.npz"], "broken.npz: is damaged or not an NPZ file");
    refused(&["cifar10:train", "cifar10:test"], "`cifar10` is not on this machine");
    refused(&["mnist:none", "mnist:test"], "there are no images `mnist:none`");
    refused(&["broken.npz", "--save", "out.csv"], "out.csv: unsupported file type; expected .npz");
    refused(&["broken.npz", "--save", "no/out.npz"], "there is no folder no");
    refused(&["broken.npz"], "<B>");
    std::fs::create_dir(folder.path("one")).unwrap();
    folder.file("one/a.png", picture(|y, _| y as u8));
    refused(&["one", "one"], "`inception` is not on this machine");
}
