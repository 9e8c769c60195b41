//! Networks' weights as PyTorch saves them: a state dict, read without executing anything.
//!
//! **Conventions.** Two forms are read: the zip of PyTorch 1.6 and later (`NAME/data.pkl` and a member `NAME/data/KEY` for each
//! storage), and the older stream (five pickles, then the storages, each after its length). Pickles may only build what a state
//! dict consists of (`torch/pickle.rs`): dictionaries, tuples, numbers, text and tensors of storages; anything else is refused by name.
//! Tensors of whole numbers, which only count, are left out. **Checked by** tests/lab/data_torch.rs.

mod pickle;

use minvel::Error;
use pickle::{Kind, Storage, TensorInfo};
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;

/// The most bytes of all storages together.
const MOST: usize = 1 << 32;

/// What the first pickle of a stream holds.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/// A tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its axes.
    pub shape: Vec<usize>,
    /// Its numbers.
    pub values: Vec<f32>,
}

/// Tensors by name.
pub type StateDict = BTreeMap<String, Tensor>;

/// Reads the state dict in a file.
pub fn read(path: &Path) -> Result<StateDict, Error> {
    let bytes = std::fs::read(path).map_err(|e| Error::file(path, "read", e))?;
    let read = if bytes.starts_with(b"PK\x03\x04") { zipped(&bytes) } else { stream(&bytes) };
    read.map_err(|why| Error::content(path, format!("is not a readable PyTorch state dict: {why}")))
}

/// The form of PyTorch 1.6 and later.
fn zipped(bytes: &[u8]) -> Result<StateDict, String> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let names: Vec<String> = archive.file_names().filter_map(Result::ok).map(|name| name.into_owned()).collect();
    let main = names.iter().find(|name| name.ends_with("/data.pkl")).ok_or("it has no member data.pkl")?;
    let folder = main.trim_end_matches("data.pkl").to_string();
    let mut left = MOST;
    let mut member = |name: &str, most: usize| -> Result<Vec<u8>, String> {
        let inside = archive.by_name(name).map_err(|e| format!("member {name}: {e}"))?;
        let mut contents = vec![];
        let most = most.min(left);
        inside.take(most as u64 + 1).read_to_end(&mut contents).map_err(|e| format!("member {name}: {e}"))?;
        left = left.checked_sub(contents.len()).ok_or("its storages are too large")?;
        if contents.len() > most { Err(format!("member {name} is too large")) } else { Ok(contents) }
    };
    if names.contains(&format!("{folder}byteorder")) && member(&format!("{folder}byteorder"), 16)? != b"little" {
        return Err("it was written with another byte order".into());
    }
    let mut pickle = &member(main, 1 << 26)?[..];
    let tensors = pickle::load(&mut pickle)?.state_dict()?;
    let mut storages = BTreeMap::new();
    for storage in tensors.values().map(|tensor| &tensor.storage).filter(|storage| storage.kind != Kind::Whole) {
        if !storages.contains_key(&storage.key) {
            // a key is the name of a member; it cannot lead anywhere else
            storages.insert(storage.key.clone(), member(&format!("{folder}data/{}", storage.key), storage.bytes()?)?);
        }
    }
    assemble(&tensors, |storage| storages.get(&storage.key).map(|bytes| &bytes[..]))
}

/// The older form.
fn stream(mut bytes: &[u8]) -> Result<StateDict, String> {
    if pickle::load(&mut bytes)?.long() != Some(&MAGIC) {
        return Err("its first bytes are not those of such a file".into());
    }
    if pickle::load(&mut bytes)?.number() != Some(1001) {
        return Err("it has an unknown version".into());
    }
    pickle::load(&mut bytes)?; // sizes of types
    let tensors = pickle::load(&mut bytes)?.state_dict()?;
    let keys = pickle::load(&mut bytes)?.texts()?;
    let mut storages: BTreeMap<&str, &[u8]> = BTreeMap::new();
    for key in &keys {
        let cut_off = || format!("it ends inside the storage {key}");
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut_off)?;
        let storage = tensors.values().map(|t| &t.storage).find(|s| s.key == *key);
        let storage = storage.ok_or_else(|| format!("no tensor uses the storage {key}"))?;
        if u64::from_le_bytes(*length) != storage.count as u64 {
            return Err(format!("the storage {key} does not have the length that its tensor declares"));
        }
        let (contents, rest) = rest.split_at_checked(storage.bytes()?).ok_or_else(cut_off)?;
        storages.insert(key, contents);
        bytes = rest;
    }
    assemble(&tensors, |storage| storages.get(storage.key.as_str()).copied())
}

fn assemble<'a>(
    tensors: &BTreeMap<String, TensorInfo>,
    contents: impl Fn(&Storage) -> Option<&'a [u8]>,
) -> Result<StateDict, String> {
    let mut out = StateDict::new();
    for (name, tensor) in tensors.iter().filter(|(_, tensor)| tensor.storage.kind != Kind::Whole) {
        let bytes = contents(&tensor.storage).ok_or_else(|| format!("the storage of `{name}` is missing"))?;
        let size = tensor.storage.kind.size();
        let count = tensor.count().ok_or_else(|| format!("`{name}` is too large"))?;
        let end = tensor.offset.checked_add(count).and_then(|end| end.checked_mul(size));
        let part = end.and_then(|end| bytes.get(tensor.offset * size..end));
        let part = part.ok_or_else(|| format!("`{name}` reaches beyond its storage"))?;
        out.insert(name.clone(), Tensor { shape: tensor.shape.clone(), values: tensor.storage.kind.numbers(part) });
    }
    Ok(out)
}
