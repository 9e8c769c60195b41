//! Good files to begin with, small ones, made here; and what has to be mended after changes.

use crate::targets::Place;
use minvel::fit::Model;
use minvel::train::{Checkpoint, Context};
use minvel_engine::State;
use minvel_lab::index::{LIST as EXPERIMENTS, MODELS};
use minvel_lab::table::npz::Array;
use minvel_lab::table::{Column, Dataset, Request, npz, write_table};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Fixtures of the library's tests with this ending.
fn fixtures(ending: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/minvel/tests/data_fixtures");
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let wanted = paths.iter().filter(|path| path.extension().is_some_and(|e| e == ending));
    wanted.filter_map(|path| fs::read(path).ok()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes any bytes")
}

/// Text with each delimiter, with quotes, comments, decimal commas; and in gzip.
pub fn tables() -> Vec<Vec<u8>> {
    let text = |delimiter: &str| {
        let rows: String =
            (0..35).map(|i| format!("\"n{i}\"{delimiter}{}.5{delimiter}{}\n", i - 17, 10 * i - 170)).collect();
        format!("# note\nname{delimiter}lat{delimiter}lon\n{rows}").into_bytes()
    };
    let commas: String = (0..35).map(|i| format!("{},5;{},25\n", i - 17, i)).collect();
    let matrix: String = (0..31).map(|_| "1 0 0 0 1 0 0 0 1\n").collect();
    let texts = [text(","), text(";"), text("\t"), text("  "), commas.into_bytes(), matrix.into_bytes()];
    let packed = gzip(&texts[0]);
    texts.into_iter().chain([packed, b"1 2\n3 4\n".to_vec()]).collect()
}

/// Labels and images, plain and in gzip.
pub fn idx() -> Vec<Vec<u8>> {
    let labels = [&[0, 0, 8, 1, 0, 0, 0, 4][..], &[1, 2, 3, 4]].concat();
    let images = [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 3][..], &[7; 18]].concat();
    vec![gzip(&labels), gzip(&images), labels, images]
}

/// Arrays alone and in a zip.
pub fn numpy(place: &Place) -> Vec<Vec<u8>> {
    let path = place.path("seed.npz");
    let array = |shape: &[usize]| Array { shape: shape.to_vec(), values: vec![0.5; shape.iter().product()] };
    npz::write(&path, &[("x", array(&[33, 3]))]).expect("a seed can be written");
    let one = fs::read(&path).expect("just written");
    npz::write(&path, &[("x", array(&[31])), ("mu", array(&[31]))]).expect("a seed can be written");
    let two = fs::read(&path).expect("just written");
    fixtures("npy")
        .into_iter()
        .chain(fixtures("npz").into_iter().filter(|f| f.len() < 1 << 14))
        .chain([one, two])
        .collect()
}

fn png(width: u32, height: u32, color: png::ColorType, depth: png::BitDepth, samples: &[u8]) -> Vec<u8> {
    let mut bytes = vec![];
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == png::ColorType::Indexed {
        encoder.set_palette(vec![10, 20, 30, 40, 50, 60]);
    }
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(samples));
    written.expect("a seed can be written");
    bytes
}

/// PNG of several kinds, and JPEG.
pub fn pictures() -> Vec<Vec<u8>> {
    use png::{BitDepth, ColorType};
    let mut all = vec![
        png(5, 4, ColorType::Rgb, BitDepth::Eight, &[9; 60]),
        png(4, 4, ColorType::Rgba, BitDepth::Eight, &[9; 64]),
        png(9, 2, ColorType::Grayscale, BitDepth::One, &[0xaa; 4]),
        png(4, 3, ColorType::Grayscale, BitDepth::Sixteen, &[3; 24]),
        png(4, 3, ColorType::Indexed, BitDepth::Eight, &[1; 12]),
    ];
    all.extend(fixtures("jpg"));
    all
}

/// Checksums of the chunks of a PNG file, mended; others stay as they are.
pub fn with_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    let start = bytes.windows(4).position(|w| w == [0x89, b'P', b'N', b'G']);
    let mut at = start.map_or(usize::MAX, |start| start + 8);
    while let Some(length) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let end = at.saturating_add(8).saturating_add(u32::from_be_bytes(*length) as usize);
        let (Some(chunk), true) = (bytes.get(at + 4..end), end.saturating_add(4) <= bytes.len()) else { break };
        let mut checksum = flate2::Crc::new();
        checksum.update(chunk);
        bytes[end..end + 4].copy_from_slice(&checksum.sum().to_be_bytes());
        at = end + 4;
    }
    bytes
}

/// Two images as a strip.
pub fn strip() -> Vec<u8> {
    png(1024, 2, png::ColorType::Rgb, png::BitDepth::Eight, &[5; 6144])
}

/// The published binary form, a strip, and labels; the first byte says which.
pub fn cifar() -> Vec<Vec<u8>> {
    let binary = [&[3][..], &[8; 3072]].concat().repeat(2);
    vec![[&[0][..], &binary].concat(), [&[1][..], &strip()].concat(), [&[2][..], b"[0, 9]"].concat()]
}

/// Numbers and text, written by us and by others.
pub fn parquet(place: &Place) -> Vec<Vec<u8>> {
    let path = place.path("seed.parquet");
    let mut words = Column::named("word");
    (0..35).for_each(|i| words.push_odd(format!("w{}", i % 5)));
    let numbers = Column::numbers("x", (0..35).map(f64::from).collect());
    write_table(&path, &[words, numbers]).expect("a seed can be written");
    fixtures("parquet").into_iter().chain(fs::read(&path)).collect()
}

/// States of one and two replicas.
pub fn checkpoints(place: &Place) -> Vec<Vec<u8>> {
    let path = place.path("seed.safetensors");
    let make = |replicas: usize| {
        let mut state = State::<f64>::new(replicas);
        state.set("w", &vec![1.5; 3 * replicas], 3);
        state.set("b", &vec![-1.0; replicas], 1);
        Checkpoint::new(state, 7, "fuzzing", &[1.0, 2.0]).write(&path).expect("a seed can be written");
        fs::read(&path).expect("just written")
    };
    vec![make(1), make(2)]
}

/// Small models: kernels alone on a sphere, and with networks in the plane.
pub fn models(place: &Place) -> Vec<Vec<u8>> {
    let small = ["seeds=2", "kernels.centres=10", "kernels.widths=2", "kernels.folds=2", "kernels.factors=[1.0]"];
    let short = ["kernels.neighbours=[3.0]", "learning.steps=2", "learning.looks=1", "learning.batch=8"];
    let make = |name: &str, objective: &str| {
        let mut config = minvel_lab::fitting::defaults();
        let rest = ["network.hidden=[4]".into(), "partition.draws=1000".into(), format!("objective={objective:?}")];
        for setting in small.iter().chain(&short).map(|s| s.to_string()).chain(rest) {
            config.set(&setting).expect("a setting");
        }
        let settings = minvel_lab::fitting::settings(&config).expect("settings");
        let rows: String = (0..40).map(|i| format!("{},{}\n", (7 * i) % 31, (11 * i) % 23)).collect();
        let path = place.file("seed.csv", format!("lat,lon\n{rows}").as_bytes());
        let request = Request { manifold: Some(name.into()), ..Request::default() };
        let data = Dataset::read(&path, &request).expect("a table");
        let split = data.split(1);
        let mut context = Context::bare();
        context.threads = 1;
        let (train, validation) = (data.select(&split.train), data.select(&split.validation));
        let learnt = Model::learn(data.manifold.clone(), &settings, &train, &validation, &context).expect("a model");
        let path = place.path("seed.safetensors");
        learnt.0.write(&path, &data.coordinates).expect("a seed can be written");
        fs::read(&path).expect("just written")
    };
    vec![make("sphere:2", "none"), make("euclidean:2", "minimum-velocity")]
}

/// The lengths of a safetensors file, mended: that of the header, up to the brace that closes the first, and that of the
/// data, as the header says.
pub fn with_header(mut bytes: Vec<u8>) -> Vec<u8> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for k in 8..bytes.len() {
        match bytes[k] {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 && bytes[k] == b'}' && !quoted {
            let length = (k as u64 - 7).to_le_bytes();
            bytes[..8].copy_from_slice(&length);
            let end = data_end(&String::from_utf8_lossy(&bytes[8..=k]));
            bytes.resize((k + 1).saturating_add(end).min(1 << 17), 0);
            break;
        }
    }
    bytes
}

/// Where the last tensor of a header ends.
fn data_end(header: &str) -> usize {
    let ends = header.split("\"data_offsets\":[").skip(1).filter_map(|rest| {
        let (inside, _) = rest.split_once(']')?;
        inside.split_once(',')?.1.parse().ok()
    });
    ends.max().unwrap_or(0)
}

/// The settings of every experiment.
pub fn settings() -> Vec<Vec<u8>> {
    let all = EXPERIMENTS.iter().chain(MODELS).map(|entry| entry.settings);
    all.chain([minvel_lab::fitting::DEFAULTS]).map(|text| text.as_bytes().to_vec()).collect()
}

/// Names of each family.
pub fn manifolds() -> Vec<Vec<u8>> {
    let names = ["euclidean:2", "sphere:2", "torus:7", "hyperbolic:3", "so3", "product(sphere:2,torus:1)"];
    let nested = "product(product(so3,euclidean:4),sphere:1)";
    names.iter().chain([&nested]).map(|name| name.as_bytes().to_vec()).collect()
}
