//! Files for one test, gone when it ends.
#![allow(dead_code)] // each test file uses its own part

use std::path::{Path, PathBuf};

/// A folder of a test's own.
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder; the name is the test's.
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("minvel-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file in it.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// What lies in it, by name.
    pub fn list(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
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
