//! Known public data sets: what they are, where they come from, and where they lie on this machine.
//!
//! **Conventions.** The list is `catalogue.toml`, or the file that `$MINVEL_CATALOGUE` names (for mirrors of an organisation). A root
//! folder holds `data/FOLDER/FILE` and `weights/FILE`. Roots are `$MINVEL_DATA`, then the user's cache folder
//! (`$XDG_CACHE_HOME/minvel`, or `~/.cache/minvel`). The earthquakes are inside the program and need no root.
//! **Checked by** tests/lab/data_files.rs, tests/real_data/files.rs.

pub mod archive;

use crate::table::{Input, STANDARD};
use minvel::{Error, file};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use crate::bytes::sha256;

/// The list inside the program.
pub const BUILT_IN: &str = include_str!("catalogue/catalogue.toml");

/// Files inside the program, by the SHA-256 that the list knows them by.
const EMBEDDED: &[(&str, &[u8])] = &[(
    "3e5e1a10fb2faf1899106264289334037d039f00f5265d13dad388a93d8ff2f7",
    include_bytes!("catalogue/embedded/quakes_all.csv"),
)];

/// A file of a known data set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFile {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Public addresses of it, in the order they are tried.
    #[serde(default)]
    pub addresses: Vec<String>,
}

/// How an archive holds the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Form {
    /// As members of a tar file in gzip.
    #[serde(rename = "tar.gz")]
    TarGz,
    /// As PyTorch's weights of Inception, from which the file [`Archive::makes`] is written.
    #[serde(rename = "inception")]
    Inception,
}

/// A file that is downloaded instead of those of the set, and gives them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// How it holds them.
    pub form: Form,
    /// The folder of its members.
    #[serde(default)]
    pub inside: String,
    /// The file that is made of it and serves instead of those of the set.
    pub makes: Option<String>,
    /// The archive itself.
    pub file: KnownFile,
}

/// A known data set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// What it is called here.
    pub name: String,
    /// What it is.
    pub what: String,
    /// The licence its source states.
    pub licence: String,
    /// Its public source.
    pub source: String,
    /// Its folder below a root or mirror.
    pub folder: String,
    /// Its files.
    pub files: Vec<KnownFile>,
    /// What is downloaded instead of them.
    pub archive: Option<Archive>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    set: Vec<Known>,
}

/// All known data sets.
pub fn list() -> Result<&'static [Known], Error> {
    static LIST: OnceLock<Result<Vec<Known>, String>> = OnceLock::new();
    let read = || match std::env::var_os("MINVEL_CATALOGUE").filter(|v| !v.is_empty()).map(PathBuf::from) {
        Some(path) => {
            let text = file::read_text(&path).map_err(|e| e.to_string())?;
            parse(&text).map_err(|why| format!("{}: {why}", path.display()))
        }
        None => parse(BUILT_IN),
    };
    LIST.get_or_init(read).as_deref().map_err(Error::config)
}

/// The sets of a list; names of files and folders must not lead out of a root.
fn parse(text: &str) -> Result<Vec<Known>, String> {
    let sets = toml::from_str::<Catalogue>(text).map_err(|e| format!("is not a list of data sets ({e})"))?.set;
    let single = |name: &str| !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "." && name != "..";
    for set in &sets {
        let archive = set.archive.iter().flat_map(|a| a.makes.iter().chain([&a.file.name]));
        let wrong = set.files.iter().map(|f| &f.name).chain(archive).find(|name| !single(name));
        if let Some(name) = wrong {
            return Err(format!("the set `{}` has a file `{name}`, which is not a valid file name", set.name));
        }
        if !set.folder.split('/').all(single) {
            return Err(format!(
                "the set `{}` has the folder `{}`, which is not inside the data folder",
                set.name, set.folder
            ));
        }
        if set.files.is_empty() {
            return Err(format!("the set `{}` has no files", set.name));
        }
    }
    Ok(sets)
}

/// The data set of a name.
pub fn find(name: &str) -> Result<&'static Known, Error> {
    let sets = list()?;
    sets.iter().find(|known| known.name == name).ok_or_else(|| {
        let names: Vec<&str> = sets.iter().map(|known| known.name.as_str()).collect();
        Error::config(format!("unknown data set `{name}`; expected {}", names.join(", ")))
    })
}

/// The user's cache folder.
pub fn cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("minvel"))
}

/// Folders that may hold data sets, in the order they are looked through.
pub fn roots() -> Vec<PathBuf> {
    let shared = std::env::var_os("MINVEL_DATA").filter(|v| !v.is_empty()).map(PathBuf::from);
    shared.into_iter().chain(cache()).collect()
}

/// What to say where data sets are missing: the command that gets them.
pub fn advice(names: &[&str]) -> String {
    format!("run `minvel data fetch {}`", names.join(" "))
}

/// An error if any data sets are missing, with the one command that gets them all.
pub fn refuse_without(missing: &[&str]) -> Result<(), Error> {
    match missing {
        [] => Ok(()),
        [only] => find(only)?.here().map(drop),
        several => Err(Error::config(format!(
            "required data sets are not on this machine ({}): {}",
            several.join(", "),
            advice(several)
        ))),
    }
}

impl KnownFile {
    /// Its bytes, if it is inside the program.
    pub fn embedded(&self) -> Option<&'static [u8]> {
        EMBEDDED.iter().find(|(sum, _)| *sum == self.sha256).map(|(_, bytes)| *bytes)
    }
}

impl Known {
    /// Where it lies below a root: its file, or its folder if it has several.
    pub fn path_in(&self, root: &Path) -> PathBuf {
        let folder = root.join(&self.folder);
        match (self.made(), self.files.as_slice()) {
            (Some(made), _) if folder.join(made).is_file() => folder.join(made),
            (_, [only]) => folder.join(&only.name),
            // of a network only the weights are opened; the licence lies beside them
            (Some(_), [weights, ..]) => folder.join(&weights.name),
            _ => folder,
        }
    }

    /// The file that is made of an archive and serves instead of the others.
    fn made(&self) -> Option<&str> {
        self.archive.as_ref().and_then(|archive| archive.makes.as_deref())
    }

    /// Whether it is below a root, complete.
    pub fn is_in(&self, root: &Path) -> bool {
        let there = |name: &str| root.join(&self.folder).join(name).is_file();
        self.made().is_some_and(there) || self.files.iter().all(|file| there(&file.name))
    }

    /// Where it lies on this machine, complete.
    pub fn path(&self) -> Option<PathBuf> {
        roots().iter().find(|root| self.is_in(root)).map(|root| self.path_in(root))
    }

    /// Whether it is inside the program.
    pub fn is_embedded(&self) -> bool {
        self.files.iter().all(|file| file.embedded().is_some())
    }

    /// Whether it can be used without a download.
    pub fn is_at_hand(&self) -> bool {
        self.is_embedded() || self.path().is_some()
    }

    /// Where it lies on this machine, or an error that says where it was looked for and how to get it.
    pub fn here(&self) -> Result<PathBuf, Error> {
        let missing = || {
            let looked: Vec<String> =
                roots().iter().map(|root| root.join(&self.folder).display().to_string()).collect();
            let looked =
                if looked.is_empty() { "no folder, because HOME is not set".to_string() } else { looked.join(", ") };
            let advice = advice(&[&self.name]);
            Error::config(format!("the data set `{}` is not on this machine (searched {looked}): {advice}", self.name))
        };
        self.path().ok_or_else(missing)
    }

    /// How many bytes its files have.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// How many bytes are downloaded for it.
    pub fn download(&self) -> u64 {
        self.archive.as_ref().map_or(self.bytes(), |archive| archive.file.bytes)
    }

    /// One of its files: inside the program, or on this machine.
    fn input(&self, file: &KnownFile) -> Result<Input, Error> {
        if let Some(bytes) = file.embedded() {
            return Ok(Input::Embedded { name: Path::new(&self.name).join(&file.name), bytes });
        }
        let there = self.here()?;
        let folder = if there.is_dir() { &there } else { there.parent().unwrap_or(&there) };
        Ok(Input::File(folder.join(&file.name)))
    }
}

/// The file that a user names: `-` for standard input, a path, a data set of the catalogue (`earthquake`), or a file of one
/// (`wine/winequality-red.csv`). A folder of a data set's name does not hide it.
pub fn locate(name: &str) -> Result<Input, Error> {
    if name == STANDARD {
        return Ok(Input::Standard);
    }
    let path = PathBuf::from(name);
    if path.is_file() {
        return Ok(Input::File(path));
    }
    let (set, file) = name.split_once('/').map_or((name, None), |(set, file)| (set, Some(file)));
    let Some(known) = list()?.iter().find(|known| known.name == set) else {
        if path.exists() {
            return Ok(Input::File(path));
        }
        let what = format!("there is no file or data set `{name}`; `minvel data list` lists the data sets");
        return Err(Error::config(what));
    };
    let names: Vec<&str> = known.files.iter().map(|file| file.name.as_str()).collect();
    match (file, known.files.as_slice()) {
        (None, [only]) => known.input(only),
        (None, several) if known.made().is_none() => {
            known.here()?;
            let names: Vec<String> = several.iter().map(|file| format!("{set}/{}", file.name)).collect();
            Err(Error::config(format!("`{set}` has several files; choose one: {}", names.join(", "))))
        }
        (None, _) => known.here().map(Input::File),
        (Some(file), files) => match files.iter().find(|known| known.name == file) {
            Some(file) => known.input(file),
            None if path.exists() => Ok(Input::File(path)),
            None => Err(Error::config(format!("`{set}` has no file `{file}`: it has {}", names.join(", ")))),
        },
    }
}
