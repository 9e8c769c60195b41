//! Files on their way: written beside their name, which they take when they are whole.
//!
//! **Conventions.** The name is `.NAME.RANDOM.partial` in the folder of the file, with 64 random bits of the system: nobody
//! can lay a link there in advance, and a new one is never opened if something of that name exists. Its writer holds a lock
//! on it, so that what a killed program left behind can be told from what another one is writing, and is removed by whoever
//! next writes the same file. **Checked by** tests/theory/files.rs.

use crate::Error;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Younger files are left alone: their writer may be about to lock them.
const YOUNG: Duration = Duration::from_secs(60);

/// A file that is not whole yet; dropped, it is removed.
#[derive(Debug)]
pub struct Partial {
    /// Taken when it is finished or kept.
    place: Option<PathBuf>,
    file: File,
    target: PathBuf,
}

impl Partial {
    /// A new, empty one, for the file of this name.
    pub fn create(target: &Path) -> Result<Partial, Error> {
        let failed = |e| Error::file(target, "write", e);
        loop {
            let random = RandomState::new().hash_one(std::process::id());
            let prefix = prefix(target).ok_or(io::ErrorKind::InvalidInput.into()).map_err(failed)?;
            let place = target.with_file_name(format!("{prefix}{random:016x}.partial"));
            match File::options().read(true).write(true).create_new(true).open(&place) {
                // 64 random bits are there already: somebody else drew them
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                opened => {
                    let file = opened.map_err(failed)?;
                    // where a file system has no locks, age alone protects it
                    let _ = file.try_lock();
                    return Ok(Partial { place: Some(place), file, target: target.to_path_buf() });
                }
            }
        }
    }

    /// The longest that [`Partial::keep`] left behind for this name and nobody is writing, else a new one. New bytes are
    /// added at its end.
    pub fn resume(target: &Path) -> Result<Partial, Error> {
        let left = leftovers(target).into_iter().filter_map(|place| Some((open_plain(&place)?, place)));
        let mut unlocked: Vec<(File, PathBuf)> = left.filter(|(file, _)| file.try_lock().is_ok()).collect();
        unlocked.sort_by_key(|(file, _)| file.metadata().map_or(0, |about| about.len()));
        let Some((mut file, place)) = unlocked.pop() else { return Partial::create(target) };
        file.seek(SeekFrom::End(0)).map_err(|e| Error::file(target, "write", e))?;
        Ok(Partial { place: Some(place), file, target: target.to_path_buf() })
    }

    /// The one at this place, which [`Partial::keep`] or a killed program left behind for this name; `None` if it is not there,
    /// or somebody is writing it.
    pub fn resume_at(target: &Path, place: &Path) -> Option<Partial> {
        let place = leftovers(target).into_iter().find(|left| left.file_name() == place.file_name())?;
        let file = open_plain(&place)?;
        file.try_lock().ok()?;
        Some(Partial { place: Some(place), file, target: target.to_path_buf() })
    }

    /// Removes what earlier attempts at this name left behind, and nobody is writing.
    pub fn remove_leftovers(target: &Path) {
        for place in leftovers(target) {
            if open_plain(&place).is_some_and(|file| file.try_lock().is_ok()) {
                let _ = fs::remove_file(place);
            }
        }
    }

    /// Where it lies until it is whole.
    pub fn place(&self) -> &Path {
        self.place.as_deref().expect("it is not finished yet")
    }

    /// Bytes written so far, also by others before.
    pub fn len(&self) -> Result<u64, Error> {
        self.file.metadata().map(|about| about.len()).map_err(|e| Error::file(&self.target, "write", e))
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.len().map(|length| length == 0)
    }

    /// The bytes written so far, from the first on; writing then goes on behind what was read.
    pub fn rewind(&mut self) -> Result<&mut File, Error> {
        self.file.rewind().map_err(|e| Error::file(&self.target, "read", e))?;
        Ok(&mut self.file)
    }

    /// Forgets what was written.
    pub fn clear(&mut self) -> Result<(), Error> {
        let cleared = self.file.set_len(0).and_then(|()| self.file.rewind());
        cleared.map_err(|e| Error::file(&self.target, "write", e))
    }

    /// Forgets all but the first bytes; new ones are added behind them.
    pub fn truncate(&mut self, length: u64) -> Result<(), Error> {
        let cut = self.file.set_len(length).and_then(|()| self.file.seek(SeekFrom::Start(length)));
        cut.map(drop).map_err(|e| Error::file(&self.target, "write", e))
    }

    /// Writes other bytes over the first ones; new ones are still added at the end.
    pub fn rewrite_start(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.rewind().and_then(|()| self.file.write_all(bytes));
        let written = written.and_then(|()| self.file.seek(SeekFrom::End(0)));
        written.map(drop).map_err(|e| Error::file(&self.target, "write", e))
    }

    /// Brings what was written to the disk.
    pub fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(|e| Error::file(&self.target, "write", e))
    }

    /// Brings it to the disk and gives it its name, in one step; then removes what earlier attempts left behind.
    pub fn finish(mut self) -> Result<(), Error> {
        let place = self.place.clone().expect("it is not finished yet");
        let named = self.file.sync_all().and_then(|()| fs::rename(place, &self.target));
        named.map_err(|e| Error::file(&self.target, "write", e))?;
        self.place = None;
        sweep(&self.target);
        Ok(())
    }

    /// Leaves it there, for [`Partial::resume`].
    pub fn keep(mut self) -> Result<(), Error> {
        self.place = None;
        self.file.sync_all().map_err(|e| Error::file(&self.target, "write", e))
    }
}

impl Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // a full disk is not filled further
        if let Some(place) = self.place.take() {
            let _ = fs::remove_file(place);
        }
    }
}

/// What the names of partial files begin with: `.NAME.`, cut to what a file system takes.
fn prefix(target: &Path) -> Option<String> {
    let name = target.file_name()?.to_string_lossy();
    let end = (0..=name.len().min(200)).rev().find(|end| name.is_char_boundary(*end))?;
    Some(format!(".{}.", &name[..end]))
}

/// Partial files of this name.
fn leftovers(target: &Path) -> Vec<PathBuf> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Some(prefix), Ok(entries)) = (prefix(target), fs::read_dir(folder)) else { return vec![] };
    let is_random = |middle: &str| middle.len() == 16 && middle.bytes().all(|b| b.is_ascii_hexdigit());
    let ours = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let middle = name.to_str().and_then(|n| n.strip_prefix(&prefix)?.strip_suffix(".partial"));
        middle.is_some_and(is_random)
    };
    entries.flatten().filter(ours).map(|entry| entry.path()).collect()
}

/// Opens a plain file: not a link, and not what was put in its place meanwhile.
fn open_plain(path: &Path) -> Option<File> {
    let before = fs::symlink_metadata(path).ok().filter(|about| about.is_file())?;
    let file = File::options().read(true).write(true).open(path).ok()?;
    same_file(&before, &file.metadata().ok()?).then_some(file)
}

#[cfg(unix)]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    a.created().ok() == b.created().ok()
}

/// Removes what killed programs left behind. Whatever fails here costs some disk, not the result.
fn sweep(target: &Path) {
    for place in leftovers(target) {
        let age = fs::symlink_metadata(&place).and_then(|about| about.modified()).ok().and_then(|t| t.elapsed().ok());
        if age.is_some_and(|age| age > YOUNG) && open_plain(&place).is_some_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(place);
        }
    }
}
