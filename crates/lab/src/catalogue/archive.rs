//! Files out of a tar archive in gzip.
//!
//! **Conventions.** Only the expected regular members are taken out, each under its own name into one folder, so that no path of the
//! archive is followed; each has the length and the SHA-256 that the catalogue knows, and is written wholly or not at all.
//! Other members are skipped. A member's header is a block of 512 bytes: its name in the first 100, its length in octal at 124,
//! its kind at 156 (`0` for a regular file), and at 345 what stands before the name. **Checked by** tests/lab/data_archive.rs.

use super::KnownFile;
use crate::bytes::hexadecimal;
use minvel::{Error, file};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Length of headers and what members are padded to.
const BLOCK: usize = 512;

/// The most bytes that are skipped before all files are found, so that a small archive cannot unpack for ever.
const SKIPPED: u64 = 1 << 30;

/// Takes files out of the folder `inside` of an archive and writes them to a folder; those that are there are replaced.
pub fn unpack(archive: &Path, inside: &str, files: &[KnownFile], folder: &Path) -> Result<(), Error> {
    let damaged = |why: String| Error::content(archive, format!("{why}: fetch it again"));
    let source = File::open(archive).map_err(|e| Error::file(archive, "read", e))?;
    let mut bytes = flate2::bufread::GzDecoder::new(BufReader::new(source));
    let mut missing: Vec<&KnownFile> = files.iter().collect();
    let mut skipped = 0;
    while !missing.is_empty() {
        let member = header(&mut bytes).map_err(|e| damaged(format!("is damaged or truncated ({e})")))?;
        let Some(member) = member else {
            return Err(damaged(format!("has no {}", missing[0].name)));
        };
        let expected = |file: &&KnownFile| member.path == format!("{inside}/{}", file.name).trim_start_matches('/');
        let padding = member.length.next_multiple_of(BLOCK as u64) - member.length;
        match missing.iter().position(expected).filter(|_| member.regular) {
            Some(at) => {
                let wanted = missing.swap_remove(at);
                let contents = contents(&mut bytes, &member, wanted).map_err(damaged)?;
                file::write(&folder.join(&wanted.name), &contents)?;
                skip(&mut bytes, padding)
            }
            None => {
                skipped += member.length;
                if skipped > SKIPPED {
                    return Err(damaged(format!("has more than {SKIPPED} bytes besides the expected files")));
                }
                skip(&mut bytes, member.length + padding)
            }
        }
        .map_err(|e| damaged(format!("is damaged or truncated ({e})")))?;
    }
    Ok(())
}

/// What a header says.
struct Member {
    path: String,
    length: u64,
    regular: bool,
}

/// The next header; none at the end.
fn header(bytes: &mut impl Read) -> io::Result<Option<Member>> {
    let mut block = [0; BLOCK];
    bytes.read_exact(&mut block)?;
    if block.iter().all(|b| *b == 0) {
        return Ok(None);
    }
    let text = |from: usize, length: usize| {
        let field = &block[from..from + length];
        String::from_utf8_lossy(field.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
    };
    // old archives have other bytes where newer ones have `ustar` and what stands before the name
    let before = if &block[257..262] == b"ustar" { text(345, 155) } else { String::new() };
    let path = if before.is_empty() { text(0, 100) } else { format!("{before}/{}", text(0, 100)) };
    let length = u64::from_str_radix(text(124, 12).trim(), 8);
    let length = length.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a header has no length"))?;
    let path = path.trim_start_matches("./").to_string();
    Ok(Some(Member { path, length, regular: matches!(block[156], b'0' | 0) }))
}

/// The bytes of a member, which must be those of the file.
fn contents(bytes: &mut impl Read, member: &Member, wanted: &KnownFile) -> Result<Vec<u8>, String> {
    if member.length != wanted.bytes {
        return Err(format!("has a {} of {} bytes, not {}", wanted.name, member.length, wanted.bytes));
    }
    let mut contents = vec![];
    bytes.take(member.length).read_to_end(&mut contents).map_err(|e| format!("is damaged ({e})"))?;
    match hexadecimal(&Sha256::digest(&contents)) == wanted.sha256 {
        true => Ok(contents),
        false => Err(format!("has a {} with unexpected contents", wanted.name)),
    }
}

fn skip(bytes: &mut impl Read, count: u64) -> io::Result<()> {
    match io::copy(&mut bytes.take(count), &mut io::sink())? == count {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
