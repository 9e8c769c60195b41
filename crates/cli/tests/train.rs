//! `minvel train lenet` on digits that are none: files, words and exit codes.

mod support;

use support::{Folder, error};

/// An idx file of bytes.
fn idx(dims: &[u32], entries: impl Iterator<Item = u8>) -> Vec<u8> {
    let lengths = dims.iter().flat_map(|n| n.to_be_bytes());
    [0, 0, 8, dims.len() as u8].into_iter().chain(lengths).chain(entries).collect()
}

/// Images whose upper rows are as bright as their label is large: `count` to learn from and as few to test with.
fn digits(folder: &Folder, count: u32) {
    for (part, count) in [("train", count), ("t10k", 250)] {
        let pixels = (0..count * 784).map(|i| if i % 784 < 28 * (i / 784 % 10) { 255 } else { 0 });
        folder.file(&format!("{part}-images-idx3-ubyte"), idx(&[count, 28, 28], pixels));
        folder.file(&format!("{part}-labels-idx1-ubyte"), idx(&[count], (0..count).map(|i| (i % 10) as u8)));
    }
}

#[test]
fn lenet_is_trained_where_fid_looks_for_it_and_the_same_each_time() {
    let folder = Folder::new("lenet");
    digits(&folder, 5000 + 3 * 64);
    let train = |more: &[&str]| {
        let all = [&["train", "lenet", "--data", ".", "--epochs", "1", "--json"], more].concat();
        serde_json::from_str::<serde_json::Value>(&folder.good(&all)).unwrap()
    };
    let first = train(&[]);
    assert_eq!(first["origin"]["steps"], 3);
    assert_eq!(folder.list("cache/minvel/weights"), ["lenet.safetensors"], "and no folder of checkpoints");
    let again = train(&["--out", "again.safetensors", "--threads", "1"]);
    assert_eq!(first["sha256"], again["sha256"]);
    let other = train(&["--out", "other.safetensors", "--seed", "2"]);
    assert_ne!(first["sha256"], other["sha256"]);
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(bytes("cache/minvel/weights/lenet.safetensors"), bytes("again.safetensors"));
}

#[test]
fn lenet_without_digits_says_where_it_looked() {
    let folder = Folder::new("lenet-missing");
    let output = folder.minvel(&["train", "lenet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("`mnist` is not on this machine"), "{}", error(&output));
    let output = folder.minvel(&["train", "lenet", "--data", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("no file train-images-idx3-ubyte.gz"), "{}", error(&output));
    assert!(folder.list(".").is_empty(), "nothing was written");
}
