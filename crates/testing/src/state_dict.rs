//! Writes state dicts as PyTorch does, in both of its forms.

use std::io::Write;
use std::path::Path;

/// A tensor to be written: its numbers as bytes of f32 (or of i64, if it counts).
pub struct Item {
    /// Its key.
    pub name: String,
    /// Lengths of its axes.
    pub shape: Vec<usize>,
    /// Its numbers.
    pub bytes: Vec<u8>,
    /// Whether they are i64.
    pub counts: bool,
}

impl Item {
    /// A tensor of f32.
    pub fn new(name: &str, shape: &[usize], values: &[f32]) -> Item {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Item { name: name.into(), shape: shape.to_vec(), bytes, counts: false }
    }

    /// A number of batches, as batch normalisation keeps it.
    pub fn counter(name: &str, value: i64) -> Item {
        Item { name: name.into(), shape: vec![], bytes: value.to_le_bytes().to_vec(), counts: true }
    }

    fn count(&self) -> usize {
        self.bytes.len() / if self.counts { 8 } else { 4 }
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'X');
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.bytes());
}

fn int(out: &mut Vec<u8>, n: usize) {
    match n {
        0..256 => out.extend([b'K', n as u8]),
        256..65536 => out.extend([b'M', n as u8, (n >> 8) as u8]),
        _ => out.extend([&[b'J'][..], &(n as u32).to_le_bytes()].concat()),
    }
}

fn tuple(out: &mut Vec<u8>, numbers: &[usize]) {
    out.push(b'(');
    numbers.iter().for_each(|n| int(out, *n));
    out.push(b't');
}

/// The pickle of the dictionary; storages are named by their number.
pub fn pickle(items: &[Item]) -> Vec<u8> {
    let mut out = b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01(".to_vec();
    for (key, item) in items.iter().enumerate() {
        text(&mut out, &item.name);
        out.extend(b"ctorch._utils\n_rebuild_tensor_v2\nq\x02((");
        text(&mut out, "storage");
        out.extend_from_slice(if item.counts { b"ctorch\nLongStorage\n" } else { b"ctorch\nFloatStorage\n" });
        text(&mut out, &key.to_string());
        text(&mut out, "cpu");
        int(&mut out, item.count());
        out.extend(b"tQK\x00");
        tuple(&mut out, &item.shape);
        let strides: Vec<usize> = (0..item.shape.len()).map(|i| item.shape[i + 1..].iter().product()).collect();
        tuple(&mut out, &strides);
        out.extend(b"\x89h\x00)RtR");
    }
    out.extend(b"u}");
    text(&mut out, "_metadata");
    out.extend(b"h\x00)Rsb.");
    out
}

/// As PyTorch 1.6 and later.
pub fn zipped(items: &[Item], pickle: Vec<u8>) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut member = |name: String, bytes: &[u8]| {
        writer.start_file(name, options).unwrap();
        writer.write_all(bytes).unwrap();
    };
    member("archive/data.pkl".into(), &pickle);
    member("archive/byteorder".into(), b"little");
    items.iter().enumerate().for_each(|(key, item)| member(format!("archive/data/{key}"), &item.bytes));
    member("archive/version".into(), b"3\n");
    writer.finish().unwrap().into_inner()
}

/// As PyTorch before 1.6.
pub fn stream(items: &[Item], pickle: Vec<u8>) -> Vec<u8> {
    let mut out = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.".to_vec();
    out.extend(b"\x80\x02}q\x00(");
    text(&mut out, "protocol_version");
    out.extend(b"M\xe9\x03");
    text(&mut out, "little_endian");
    out.extend(b"\x88u.");
    out.extend(pickle);
    out.extend(b"\x80\x02]q\x00(");
    (0..items.len()).for_each(|key| text(&mut out, &key.to_string()));
    out.extend(b"e.");
    for item in items {
        out.extend((item.count() as u64).to_le_bytes());
        out.extend(&item.bytes);
    }
    out
}

/// torchvision's name of a layer of ours, by where it stands.
fn theirs(ours: &str) -> String {
    let stem = ["Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", "Conv2d_3b_1x1", "Conv2d_4a_3x3"];
    let number = |name: &str| name.rsplit_once("conv").unwrap().1.trim_start_matches('_').parse::<usize>().unwrap_or(0);
    let Some((block, layer)) = ours.split_once('.') else { return stem[number(ours)].into() };
    let at: usize = block.trim_start_matches("mixed").trim_start_matches('_').parse().unwrap_or(0);
    let mixed = ["5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e", "7a", "7b", "7c"][at];
    let tower = layer.rsplit_once("conv").unwrap().0.trim_end_matches(['.', '_']);
    let (which, one) = (number(layer), number(layer) + 1);
    let branch = match (&mixed[..1], mixed, tower) {
        (_, "6a", "") => "3x3".to_string(),
        (_, "6a", "tower") => format!("3x3dbl_{one}"),
        (_, "7a", "tower") => format!("3x3_{one}"),
        (_, "7a", "tower_1") => format!("7x7x3_{one}"),
        (_, _, "") => "1x1".into(),
        (_, _, "tower_2") => "_pool".into(),
        ("5", _, "tower") => format!("5x5_{one}"),
        ("5", _, "tower_1") => format!("3x3dbl_{one}"),
        ("6", _, "tower") => format!("7x7_{one}"),
        ("6", _, "tower_1") => format!("7x7dbl_{one}"),
        (_, _, "tower") => "3x3_1".into(),
        (_, _, "tower_mixed") => ["3x3_2a", "3x3_2b"][which].into(),
        (_, _, "tower_1") => format!("3x3dbl_{one}"),
        (_, _, "tower_1_mixed") => ["3x3dbl_3a", "3x3dbl_3b"][which].into(),
        other => panic!("{ours}: {other:?}"),
    };
    format!("Mixed_{mixed}.branch{branch}")
}

/// Weights of Inception as we have them, under the names and in the form of pytorch-fid; γ = 2 with halved weights and means is the
/// same network.
pub fn published(path: &Path, gamma: f32) -> Vec<Item> {
    let bytes = std::fs::read(path).unwrap();
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let header: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(header).unwrap();
    let mut items = vec![];
    for (name, tensor) in header.iter().filter(|(name, _)| *name != "__metadata__") {
        let list = |key: &str| -> Vec<usize> { serde_json::from_value(tensor[key].clone()).unwrap() };
        let (shape, ends) = (list("shape"), list("data_offsets"));
        let bytes = &data[ends[0]..ends[1]];
        let values: Vec<f32> = match tensor["dtype"].as_str() {
            Some("F32") => bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            _ => bytes.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect(),
        };
        let (layer, part) = name.rsplit_once('.').unwrap();
        let (part, factor) = match part {
            "weight" => ("conv.weight", 1.0 / gamma),
            "beta" => ("bn.bias", 1.0),
            "mean" => ("bn.running_mean", 1.0 / gamma),
            _ => ("bn.running_var", 1.0),
        };
        let values: Vec<f32> = values.iter().map(|v| factor * v).collect();
        if part == "bn.bias" {
            items.push(Item::new(&format!("{}.bn.weight", theirs(layer)), &shape, &vec![gamma; values.len()]));
            items.push(Item::counter(&format!("{}.bn.num_batches_tracked", theirs(layer)), 0));
        }
        items.push(Item::new(&format!("{}.{part}", theirs(layer)), &shape, &values));
    }
    items.push(Item::new("fc.bias", &[3], &[1.0, 2.0, 3.0]));
    items
}
