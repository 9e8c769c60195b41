//! CIFAR-10: 50 000 images to learn from and 10 000 to test with, 32 × 32 in colour, in ten classes.
//!
//! **Source.** krizhevsky2009learning. **Conventions.** Either the published binary files (`data_batch_1.bin` …
//! `test_batch.bin`: a label and 1024 bytes each of red, green and blue for an image), also in `cifar-10-batches-bin`, or
//! PNG strips (`data_batch_1.png` …: an image a row of 1024 pixels) with labels as JSON lists (`train_lables.json`, as it
//! is spelt there), also in `package`. **Checked by** tests/lab/data_cifar.rs,
//! tests/real_data/cifar.rs.

use super::{Images, Labelled, Picture};
use crate::bytes::hexadecimal;
use crate::catalogue;
use minvel::{Error, file};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Side of an image.
const SIDE: usize = 32;
/// Pixels of one channel.
const PLANE: usize = SIDE * SIDE;
/// Bytes of an image.
const BYTES: usize = 3 * PLANE;
/// Batches to learn from.
const TRAIN: [&str; 5] = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"];
/// Batches to test with.
const TEST: [&str; 1] = ["test_batch"];

/// The 50 000 images to learn from.
pub fn train(folder: Option<&Path>) -> Result<Labelled, Error> {
    read(folder, "train", &TRAIN)
}

/// The 10 000 images to test with.
pub fn test(folder: Option<&Path>) -> Result<Labelled, Error> {
    read(folder, "test", &TEST)
}

fn read(folder: Option<&Path>, part: &str, batches: &[&str]) -> Result<Labelled, Error> {
    let folder = place(folder)?;
    let (mut pixels, mut labels, mut hash) = (vec![], vec![], Sha256::new());
    let mut last = folder.clone();
    for batch in batches {
        last = file_of(&folder, batch)?;
        let bytes = file::read(&last)?;
        hash.update(&bytes);
        let wrong = |what| Error::content(&last, what);
        match last.extension().is_some_and(|e| e == "bin") {
            true => binary(&bytes, &mut pixels, &mut labels).map_err(wrong)?,
            false => strip(&bytes, &mut pixels).map_err(wrong)?,
        }
    }
    let count = pixels.len() / BYTES;
    if labels.is_empty() {
        last = listed(&last, part)?;
        let text = file::read_text(&last)?;
        let unreadable = |e| Error::content(&last, format!("is not a list of labels ({e})"));
        labels = serde_json::from_str(&text).map_err(unreadable)?;
    }
    if let Some(wrong) = labels.iter().find(|label| **label > 9) {
        return Err(Error::content(&last, format!("has a label {wrong}; expected 0 to 9")));
    }
    let (name, sha256) = (format!("cifar10:{part}"), hexadecimal(&hash.finalize()));
    let images = Images { count, height: SIDE, width: SIDE, channels: 3, pixels, name, sha256 };
    Labelled::new(images, labels, &last)
}

/// Whether its folder is on this machine.
pub(crate) fn is_here() -> bool {
    place(None).is_ok()
}

/// The folder given, or that of the catalogue, in which the batches may also lie as strips.
fn place(folder: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(given) = folder {
        return Ok(given.to_path_buf());
    }
    let known = catalogue::find("cifar10")?;
    let mut folders = catalogue::roots().into_iter().map(|root| root.join(&known.folder));
    folders.find(|folder| file_of(folder, TEST[0]).is_ok()).map_or_else(|| known.here(), Ok)
}

/// The file of a batch, as it was published or as a strip.
fn file_of(folder: &Path, batch: &str) -> Result<PathBuf, Error> {
    let names = [format!("{batch}.bin"), format!("{batch}.png")];
    let places = ["", "cifar-10-batches-bin", "package"].map(|inner| folder.join(inner));
    let there = places.iter().flat_map(|place| names.iter().map(|name| place.join(name))).find(|path| path.is_file());
    let missing = || {
        let advice = catalogue::advice(&["cifar10"]);
        Error::content(folder, format!("has no {batch}.bin or {batch}.png, which CIFAR-10 needs: {advice}"))
    };
    there.ok_or_else(missing)
}

/// The labels beside a strip.
fn listed(strip: &Path, part: &str) -> Result<PathBuf, Error> {
    let folder = strip.parent().unwrap_or(Path::new(""));
    let names = [format!("{part}_lables.json"), format!("{part}_labels.json")].map(|name| folder.join(name));
    let missing = || Error::content(folder, format!("has no {part}_lables.json beside the images"));
    names.into_iter().find(|path| path.is_file()).ok_or_else(missing)
}

/// Records of a label and an image.
fn binary(bytes: &[u8], pixels: &mut Vec<u8>, labels: &mut Vec<u8>) -> Result<(), String> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(BYTES + 1) {
        let size = BYTES + 1;
        return Err(format!(
            "has {} bytes, not a multiple of {size}: it is truncated or not a CIFAR-10 file",
            bytes.len()
        ));
    }
    for record in bytes.chunks(BYTES + 1) {
        labels.push(record[0]);
        pixels.extend((0..BYTES).map(|k| record[1 + k % 3 * PLANE + k / 3]));
    }
    Ok(())
}

/// Images as rows of 1024 pixels.
fn strip(bytes: &[u8], pixels: &mut Vec<u8>) -> Result<(), String> {
    let picture = Picture::decode(bytes)?;
    if picture.width != PLANE {
        return Err(format!("has rows of {} pixels; expected {PLANE}, one image per row", picture.width));
    }
    pixels.extend(picture.pixels);
    Ok(())
}
