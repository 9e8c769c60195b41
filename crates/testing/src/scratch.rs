//! Folders of tests: each of its own, whoever runs beside.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A path below the folder for temporary files that nothing else has, in this process or another.
pub fn fresh(name: &str) -> PathBuf {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("minvel-{name}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path); // of a dead process with our number
    path
}

/// A folder of a test's own, gone when it ends.
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder; the name helps whoever finds it after a crash.
    pub fn new(name: &str) -> Self {
        let folder = fresh(name);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        Scratch(folder)
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file in it.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("a file can be written");
        path
    }

    /// What lies in it, by name.
    pub fn list(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the folder is there");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries.map(|e| name(e).into_string().expect("names are text")).collect();
        names.sort();
        names
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
