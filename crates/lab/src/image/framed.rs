//! Images at the size a model takes, from whatever a user names: a folder of pictures, one picture, an idx file, a known set.
//!
//! **Conventions.** Pictures are cut and scaled by a [`Framing`] as in training, and made grey where the model is
//! ([`Picture::bytes`]). **Checked by** crates/cli/tests/program/codes.rs.

use super::folder::{self, Framing, Pictures, Skipped};
use super::{Images, Picture, idx};
use crate::catalogue;
use minvel::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Images of one size, with a name each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framed {
    /// Bytes `[count, side, side, channels]`.
    pub pixels: Vec<u8>,
    /// Path below the folder, name of the file, or name of the set and number from 0.
    pub names: Vec<String>,
    /// What could not be read.
    pub skipped: Vec<Skipped>,
}

impl Framed {
    /// Reads what a user names; pictures are decoded by so many threads.
    pub fn read(named: &str, framing: Framing, channels: usize, threads: usize) -> Result<Framed, Error> {
        let path = Path::new(named);
        if path.is_dir() {
            return Framed::folder(path, framing, channels, threads);
        }
        if path.is_file() && is_picture(path)? {
            let picture = framing.apply(&Picture::read(path)?).map_err(|why| Error::content(path, why))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Ok(Framed { pixels: picture.bytes(channels), names: vec![name], skipped: vec![] });
        }
        if path.is_file() {
            let images = idx::images_or(path, "is neither a picture (PNG, JPEG) nor an idx file of images")?;
            return Framed::images(&images, framing, channels);
        }
        if catalogue::list()?.iter().any(|known| named.split(':').next() == Some(&known.name)) {
            return Framed::images(&Images::named(named)?, framing, channels);
        }
        let what = "not found; expected a folder of pictures, a picture, an idx file, or a name such as mnist:test";
        Err(Error::content(path, what))
    }

    fn folder(folder: &Path, framing: Framing, channels: usize, threads: usize) -> Result<Framed, Error> {
        let paths = folder::list(folder)?;
        let name = |path: &PathBuf| path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
        let all: Vec<String> = paths.iter().map(name).collect();
        let make = move |picture: Picture| Ok(framing.apply(&picture)?.bytes(channels));
        let (mut pixels, mut names, mut skipped) = (vec![], vec![], vec![]);
        for (picture, name) in Pictures::new(paths, threads, make).zip(all) {
            match picture {
                Ok(bytes) => {
                    pixels.extend(bytes);
                    names.push(name);
                }
                Err(file) => skipped.push(file),
            }
        }
        match skipped.first() {
            Some(first) if names.is_empty() => {
                let what = format!("has no readable picture; the first, {}, {}", first.path.display(), first.why);
                Err(Error::content(folder, what))
            }
            _ => Ok(Framed { pixels, names, skipped }),
        }
    }

    fn images(images: &Images, framing: Framing, channels: usize) -> Result<Framed, Error> {
        let wrong = |why: String| Error::config(format!("{}: {why}", images.name));
        let mut pixels = vec![];
        for k in 0..images.count {
            pixels.extend(framing.apply(&images.picture(k)).map_err(wrong)?.bytes(channels));
        }
        let names = (0..images.count).map(|k| format!("{}/{k}", images.name)).collect();
        Ok(Framed { pixels, names, skipped: vec![] })
    }
}

fn is_picture(path: &Path) -> Result<bool, Error> {
    let mut start = vec![];
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut start));
    read.map_err(|e| Error::file(path, "read", e))?;
    Ok(matches!(start[..], [0x89, b'P', b'N', b'G'] | [0xff, 0xd8, ..]))
}
