//! Folders of pictures: listed, decoded by all cores ahead of whoever reads them, and kept for the next time.
//!
//! **Conventions.** All PNG and JPEG files of a folder and of those in it, in the order of their paths. A file that cannot
//! be read is named and left out. What was decoded is kept under a name that depends on the
//! files (paths, lengths, times of change) and on the framing. **Checked by** tests/lab/data_folder.rs.

mod ahead;

pub use ahead::Pictures;

use super::{Images, Picture};
use crate::bytes::hexadecimal;
use crate::catalogue;
use minvel::limits::TooLarge;
use minvel::{Error, file};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Endings of the files that are read.
const ENDINGS: [&str; 3] = ["png", "jpg", "jpeg"];
/// What a file of decoded pixels begins with; other versions are made anew.
const MAGIC: &[u8] = b"minvel pixels 2\n";

/// A file that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// The pictures of a folder, in the order of their paths.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut paths, mut open) = (vec![], vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| Error::file(&folder, "read the folder", e))?;
        for entry in entries {
            let path = entry.map_err(|e| Error::file(&folder, "read the folder", e))?.path();
            let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
            match path.is_dir() {
                true => open.push(path),
                false if ending.is_some_and(|e| ENDINGS.contains(&e.as_str())) => paths.push(path),
                false => (),
            }
        }
    }
    if paths.is_empty() {
        return Err(Error::content(folder, "has no PNG or JPEG files"));
    }
    paths.sort();
    Ok(paths)
}

/// How pictures come to one size: the middle is cut out, then scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Framing {
    /// Side of the square that is cut out of the middle; without it, the largest there is.
    pub crop: Option<usize>,
    /// Side of the result.
    pub side: usize,
}

impl Framing {
    /// Aligned faces of CelebA: 140 × 140 of 178 × 218, at 64 × 64.
    pub const FACES: Framing = Framing { crop: Some(140), side: 64 };

    /// The picture at that size; an error if it is too small.
    pub fn apply(&self, picture: &Picture) -> Result<Picture, String> {
        let crop = self.crop.unwrap_or(picture.height.min(picture.width));
        if crop > picture.height || crop > picture.width {
            let (h, w) = (picture.height, picture.width);
            return Err(format!("has {w} × {h} pixels: too small to crop a square of {crop}"));
        }
        let middle = picture.centre(crop, crop);
        Ok(if crop == self.side { middle } else { middle.scaled(self.side, self.side) })
    }
}

/// Pictures of a folder at one size, and the files that were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// The pictures that were asked for.
    pub images: Images,
    /// How many there are.
    pub count: usize,
    /// What could not be read.
    pub skipped: Vec<Skipped>,
}

impl Folder {
    /// Reads all pictures of a folder, or what was decoded before and lies in `cache` ([`cache`]); `tell` hears how many
    /// of how many are done.
    pub fn read(
        folder: &Path,
        framing: Framing,
        threads: usize,
        cache: Option<&Path>,
        tell: impl Fn(usize, usize),
    ) -> Result<Folder, Error> {
        Folder::read_part(folder, framing, threads, cache, |count| 0..count, tell)
    }

    /// As [`Folder::read`], but keeps only those pictures that `choose` names when it hears how many there are. No others
    /// are read if they were decoded before.
    pub fn read_part(
        folder: &Path,
        framing: Framing,
        threads: usize,
        cache: Option<&Path>,
        choose: impl Fn(usize) -> Range<usize>,
        tell: impl Fn(usize, usize),
    ) -> Result<Folder, Error> {
        let paths = list(folder)?;
        let key = key(folder, &paths, framing)?;
        let kept = cache.map(|cache| cache.join(format!("{key}.bin")));
        let name = folder.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
        let (side, total) = (framing.side, paths.len());
        let each = 3 * side * side;
        let made = |pixels: Vec<u8>, count: usize, skipped: Vec<Skipped>| {
            let (own, sha256) = (pixels.len() / each, key.clone());
            let images = Images { count: own, height: side, width: side, channels: 3, pixels, name, sha256 };
            Folder { images, count, skipped }
        };
        if let Some((pixels, count, skipped)) = kept.as_deref().and_then(|path| unpack(path, each, &choose)) {
            return Ok(made(pixels, count, skipped));
        }
        let too_large =
            |why| Error::content(folder, format!("has {total} pictures, which at {side} × {side} pixels {why}"));
        TooLarge::check((total as u64).saturating_mul(each as u64), 1).map_err(too_large)?;
        let (mut pixels, mut skipped) = (Vec::with_capacity(total * each), vec![]);
        for (i, picture) in Pictures::new(paths, threads, move |picture| framing.apply(&picture)).enumerate() {
            match picture {
                Ok(picture) => pixels.extend(picture.pixels),
                Err(file) => skipped.push(file),
            }
            tell(i + 1, total);
        }
        if pixels.is_empty() {
            let first = &skipped[0];
            let what = format!("has no readable picture; the first, {}, {}", first.path.display(), first.why);
            return Err(Error::content(folder, what));
        }
        // a cache that cannot be written costs time, not the result
        if let Some(path) = kept {
            let _ = path.parent().map_or(Ok(()), file::create_folder).and_then(|()| pack(&path, &pixels, &skipped));
        }
        let count = pixels.len() / each;
        let range = choose(count);
        pixels.truncate(range.end * each);
        pixels.drain(..range.start * each);
        pixels.shrink_to_fit();
        Ok(made(pixels, count, skipped))
    }
}

/// Where decoded pictures are kept: `pixels` in the user's cache folder.
pub fn cache() -> Option<PathBuf> {
    catalogue::cache().map(|root| root.join("pixels"))
}

/// SHA-256 of what the pixels depend on.
fn key(folder: &Path, paths: &[PathBuf], framing: Framing) -> Result<String, Error> {
    let mut hash = Sha256::new();
    hash.update(MAGIC);
    hash.update(format!("{framing:?} jpeg {}\n", cfg!(feature = "jpeg")));
    for path in paths {
        let about = std::fs::metadata(path).map_err(|e| Error::file(path, "read", e))?;
        let changed = about.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let name = path.strip_prefix(folder).unwrap_or(path);
        hash.update(format!("{}\n{} {}\n", name.display(), about.len(), changed.as_nanos()));
    }
    Ok(hexadecimal(&hash.finalize()))
}

/// The magic, the skipped files as one line of JSON, the pixels.
fn pack(path: &Path, pixels: &[u8], skipped: &[Skipped]) -> Result<(), Error> {
    let list = serde_json::to_string(skipped).expect("paths and words are plain data");
    file::write_parts(path, &[MAGIC, list.as_bytes(), b"\n", pixels])
}

/// The chosen pixels, how many pictures there are, and the skipped files.
fn unpack(path: &Path, each: usize, choose: impl Fn(usize) -> Range<usize>) -> Option<(Vec<u8>, usize, Vec<Skipped>)> {
    let mut file = BufReader::new(File::open(path).ok()?);
    let (mut magic, mut list) = ([0; MAGIC.len()], vec![]);
    file.read_exact(&mut magic).ok()?;
    file.read_until(b'\n', &mut list).ok()?;
    let skipped = (magic == MAGIC).then(|| serde_json::from_slice(&list).ok())??;
    let total = usize::try_from(file.get_ref().metadata().ok()?.len()).ok()?.checked_sub(magic.len() + list.len())?;
    if total == 0 || !total.is_multiple_of(each) {
        return None;
    }
    let range = choose(total / each);
    let mut pixels = vec![0; range.len() * each];
    file.seek_relative((range.start * each) as i64).ok()?;
    file.read_exact(&mut pixels).ok()?;
    Some((pixels, total / each, skipped))
}
