//! What is fuzzed: the readers of everything that a stranger may send.

use crate::seeds;
use minvel::manifold;
use minvel::train::{Checkpoint, Context};
use minvel_engine::{Clock, Graph, State};
use minvel_lab::experiment::Config;
use minvel_lab::fid::{Inception, Lenet, Statistics};
use minvel_lab::fitting::RunFolder;
use minvel_lab::image::folder::Framing;
use minvel_lab::image::{Picture, cifar, idx};
use minvel_lab::index::{LIST as EXPERIMENTS, MODELS};
use minvel_lab::table::npz::Npz;
use minvel_lab::table::{Dataset, Layout, Request, Table, TableOptions};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of a worker.
pub struct Place(PathBuf);

impl Place {
    /// A folder that exists.
    pub fn new(folder: &Path) -> Self {
        Place(folder.to_path_buf())
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file in it.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("the folder of a worker can be written");
        path
    }
}

/// A reader, with good files and words of its format.
pub struct Target {
    pub name: &'static str,
    pub seeds: fn(&Place) -> Vec<Vec<u8>>,
    pub words: &'static [&'static str],
    /// Mends what nearly every change breaks, so that the changes behind it matter.
    pub repair: fn(Vec<u8>) -> Vec<u8>,
    /// Reads an input and uses what comes out; it does not matter what that is. Whether something came out.
    pub run: fn(&[u8], &Place) -> bool,
}

/// All targets.
pub const LIST: &[Target] = &[
    Target {
        name: "tables",
        seeds: |_| seeds::tables(),
        words: &["lat", "lon", "nan", "inf", "1e309", "\"\"", "\r\n", "\u{feff}", "# ", "//", "\t", ";", "0x1p3"],
        repair: |input| input,
        run: |input, place| table(&place.file("input.csv", input)),
    },
    Target {
        name: "idx",
        seeds: |_| seeds::idx(),
        words: &[],
        repair: |input| input,
        run: |input, place| {
            let path = place.file("input-idx", input);
            let images = idx::images(&path);
            if let Ok(images) = &images {
                assert_eq!(images.pixels.len(), images.count * images.features());
            }
            idx::labels(&path).is_ok() || images.is_ok()
        },
    },
    Target {
        name: "numpy",
        seeds: seeds::numpy,
        words: &["'descr'", "'shape'", "'fortran_order'", "True", "<f8", ">i4", "|u1", "(0, 65536)", "PK\u{1}\u{2}"],
        repair: |input| input,
        run: numpy,
    },
    Target {
        name: "pictures",
        seeds: |_| seeds::pictures(),
        words: &["IHDR", "IDAT", "PLTE", "tRNS", "iCCP", "IEND", "acTL"],
        repair: seeds::with_checksums,
        run: |input, _| {
            let Ok(picture) = Picture::decode(input) else { return false };
            assert_eq!(picture.pixels.len(), 3 * picture.height * picture.width);
            drop(Framing { crop: None, side: 8 }.apply(&picture));
            drop(Framing::FACES.apply(&picture));
            true
        },
    },
    Target {
        name: "cifar",
        seeds: |_| seeds::cifar(),
        words: &["IHDR", "IDAT", "[0,1]"],
        repair: seeds::with_checksums,
        run: read_cifar,
    },
    Target {
        name: "parquet",
        seeds: seeds::parquet,
        words: &["PAR1", "\u{15}\u{0}", "\u{19}\u{1c}"],
        repair: |input| input,
        run: |input, place| table(&place.file("input.parquet", input)),
    },
    Target {
        name: "safetensors",
        seeds: seeds::checkpoints,
        words: &["data_offsets", "shape", "dtype", "\"F64\"", "replicas", "first_replica", "variables", "note"],
        repair: seeds::with_header,
        run: checkpoint,
    },
    Target {
        name: "models",
        seeds: seeds::models,
        words: &["euclidean:2", "sphere:2", "product(", "hidden", "[1e9]", "neighbours", "families", "shape"],
        repair: seeds::with_header,
        run: model,
    },
    Target {
        name: "settings",
        seeds: |_| seeds::settings(),
        words: &[
            "[quick]",
            "seeds",
            "= 1e308",
            "= -1",
            "= nan",
            "[[",
            "]]",
            "'''",
            "inline = {a = {b = {",
            "quick.quick",
        ],
        repair: |input| input,
        run: |input, _| settings(input),
    },
    Target {
        name: "manifolds",
        seeds: |_| seeds::manifolds(),
        words: &["product(", ")", ",", "sphere:", "torus:1", "euclidean:", "hyperbolic:2", "so3", "99999999999"],
        repair: |input| input,
        run: |input, _| name(input),
    },
];

/// The target of a name.
pub fn find(name: &str) -> Result<&'static Target, String> {
    let names: Vec<&str> = LIST.iter().map(|target| target.name).collect();
    let unknown = || format!("unknown target `{name}`; expected {}", names.join(", "));
    LIST.iter().chain([&TRAP]).find(|target| target.name == name).ok_or_else(unknown)
}

/// Bytes that show whether the fuzzer sees what it should: it is run by its name only.
const TRAP: Target = Target {
    name: "trap",
    seeds: |_| vec![b"........".to_vec()],
    words: &["p", "s", "m", "a", "h"],
    repair: |input| input,
    run: |input, _| {
        let deep = |byte: u8| if input.contains(&byte) { overflow(0) } else { 0 };
        match input {
            _ if input.contains(&b'p') => panic!("a panic"),
            _ if input.contains(&b's') => deep(b's') > 0,
            _ if input.contains(&b'm') => std::hint::black_box(vec![1u8; 200 << 20]).len() > 1,
            _ if input.contains(&b'a') => std::hint::black_box(vec![1u8; 2 << 30]).len() > 1,
            _ => loop {
                match input.contains(&b'h') {
                    true => std::thread::sleep(std::time::Duration::from_secs(1)),
                    false => return true,
                }
            },
        }
    },
};

/// Never ends.
#[allow(unconditional_recursion)]
fn overflow(depth: u64) -> u64 {
    let room = std::hint::black_box([depth; 64]);
    overflow(depth + 1) + room[depth as usize % 64]
}

fn table(path: &Path) -> bool {
    let mut requests = vec![Request::default()];
    for (manifold, layout) in [("sphere:2", None), ("torus:2", None), ("so3", Some(Layout::RotationMatrix))] {
        let layout = layout.map(|l| vec![l]);
        requests.push(Request { manifold: Some(manifold.into()), layout, ..Request::default() });
    }
    let Ok(table) = Table::read(path, &TableOptions::default()) else { return false };
    for request in &requests {
        if let Ok(data) = Dataset::of(table.clone(), request) {
            assert!(data.points.iter().all(|x| x.is_finite()), "points are finite");
            let columns = data.coordinates.table(&data.points).expect("points go back to a table");
            assert_eq!(columns[0].values.len(), data.rows());
        }
    }
    true
}

fn numpy(input: &[u8], place: &Place) -> bool {
    let path = place.file("input.npz", input);
    let is_table = table(&path);
    if let Ok(mut file) = Npz::open(&path) {
        for name in ["x", "mu", "sigma", "arr_0"] {
            if let Ok(Some(array)) = file.array(name) {
                assert_eq!(array.values.len(), array.shape.iter().product::<usize>());
            }
        }
    }
    Statistics::read(&path).is_ok() || is_table
}

fn read_cifar(input: &[u8], place: &Place) -> bool {
    // one file of the set at a time; the first byte says which
    let (which, bytes) = input.split_first().unwrap_or((&0, &[]));
    let names = ["test_batch.bin", "test_batch.png", "test_lables.json"];
    names.iter().for_each(|name| drop(fs::remove_file(place.path(name))));
    if *which % 3 == 2 {
        place.file(names[1], &seeds::strip());
    }
    place.file(names[*which as usize % 3], bytes);
    if *which % 3 == 1 {
        place.file(names[2], b"[0, 9]");
    }
    let Ok(set) = cifar::test(Some(&place.path(""))) else { return false };
    assert_eq!(set.images.pixels.len(), set.labels.len() * set.images.features());
    true
}

fn checkpoint(input: &[u8], place: &Place) -> bool {
    let path = place.file("input.safetensors", input);
    let read = Checkpoint::<f64>::read(&path);
    if let Ok(read) = &read {
        drop(read.note::<Vec<f64>>(&path));
        read.state.iter().for_each(|(_, values)| assert!(values.len() <= input.len()));
        drop(read.belongs_to(&path, "fuzzing", &State::new(1)));
    }
    drop(Checkpoint::<f32>::read(&path));
    drop(Lenet::read(&path));
    drop(Inception::read(&path));
    read.is_ok()
}

fn model(input: &[u8], place: &Place) -> bool {
    place.file("model.safetensors", input);
    let Ok((model, coordinates)) = RunFolder(place.path("")).read_model() else { return false };
    let mut context = Context::bare();
    context.threads = 1;
    let m = model.manifold().ambient();
    let centres: Vec<f64> = model.centres().into_iter().take(3 * m).collect();
    let scores = model.log_density(&centres, &context).expect("nobody stops it, and the CPU does not fail");
    assert_eq!(scores.len(), centres.len() / m);
    let drawn = model.sample(3, 1, &context).expect("nobody stops it, and the CPU does not fail");
    drop(coordinates.table(&drawn.points));
    true
}

fn settings(input: &[u8]) -> bool {
    let Ok(given) = Config::parse("input.toml", &String::from_utf8_lossy(input)) else { return false };
    let mut accepted = false;
    if let Ok(config) = minvel_lab::fitting::defaults().overlay(&given) {
        accepted |= minvel_lab::fitting::settings(&config).is_ok();
        drop(config.clone().quick().and_then(|quick| minvel_lab::fitting::settings(&quick)));
        assert_eq!(Config::parse("text.toml", &config.text()).map(|read| read.text()).ok(), Some(config.text()));
    }
    for entry in EXPERIMENTS.iter().chain(MODELS) {
        let own = entry.config().expect("our own file");
        if let Ok(config) = own.overlay(&given) {
            accepted |= (entry.check)(&config).is_ok();
        }
    }
    accepted
}

fn name(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let Ok(manifold) = manifold::parse(&text) else { return false };
    assert_eq!(manifold::parse(&manifold.to_string()).map(|m| m.to_string()), Ok(manifold.to_string()));
    let m = manifold.ambient();
    assert!(manifold.dim() <= m && m <= 1 << 16);
    drop((manifold.volume(), manifold.spaces(), manifold.charts(), manifold.check(&vec![0.0; m])));
    drop((manifold.dim() <= 3).then(|| manifold.grid(2, 1.0)));
    if m <= 16 {
        let g = Graph::new();
        let x = manifold.sample_base(&g, 2, 1);
        let y = manifold.settle(manifold.exp(x, manifold.tangent_normal(x, x)));
        let outputs = [manifold.distance(x, y), manifold.base_energy(y)];
        let mut program = g.compile::<f64>(&outputs, &[], &minvel_engine::Options::default());
        program.run(&mut State::new(1), &[], Clock { seed: 1, step: 0 });
        assert_eq!(program.output(0).len(), 2);
    }
    true
}
