//! Inception's weights as pytorch-fid publishes them.
//!
//! **Statement.** γ·(w∗x − μ)/√(σ² + ε) + β = ((γw)∗x − γμ)/√(σ² + ε) + β, so that γ, which is 1 in FID's network, goes into weights and
//! means. **Source.** The names are torchvision's: a block `Mixed_5b` has layers `branch5x5_1`, …, and each layer `conv.weight`,
//! `bn.weight` (γ), `bn.bias` (β), `bn.running_mean` (μ) and `bn.running_var` (σ²). The classifier `fc` is left out.
//! **Checked by** tests/lab/data_torch.rs.

use super::layers::{Layer, layers};
use crate::fid::torch::StateDict;
use safetensors::tensor::{Dtype, TensorView};

const STEM: [&str; 5] = ["Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", "Conv2d_3b_1x1", "Conv2d_4a_3x3"];
const A: &str = "1x1 5x5_1 5x5_2 3x3dbl_1 3x3dbl_2 3x3dbl_3 _pool";
const B: &str = "3x3 3x3dbl_1 3x3dbl_2 3x3dbl_3";
const C: &str = "1x1 7x7_1 7x7_2 7x7_3 7x7dbl_1 7x7dbl_2 7x7dbl_3 7x7dbl_4 7x7dbl_5 _pool";
const D: &str = "3x3_1 3x3_2 7x7x3_1 7x7x3_2 7x7x3_3 7x7x3_4";
const E: &str = "1x1 3x3_1 3x3_2a 3x3_2b 3x3dbl_1 3x3dbl_2 3x3dbl_3a 3x3dbl_3b _pool";

/// Blocks in the order of [`layers`], with their branches in that order.
const BLOCKS: [(&str, &str); 11] = [
    ("Mixed_5b", A),
    ("Mixed_5c", A),
    ("Mixed_5d", A),
    ("Mixed_6b", C),
    ("Mixed_6c", C),
    ("Mixed_6d", C),
    ("Mixed_6e", C),
    ("Mixed_6a", B),
    ("Mixed_7a", D),
    ("Mixed_7b", E),
    ("Mixed_7c", E),
];

/// What the layers are called, in the order of [`layers`].
fn names() -> impl Iterator<Item = String> {
    let block = |(name, branches): (&'static str, &'static str)| {
        branches.split(' ').map(move |branch| format!("{name}.branch{branch}"))
    };
    STEM.map(str::to_string).into_iter().chain(BLOCKS.into_iter().flat_map(block))
}

/// The same weights as safetensors in f32, under the names of [`layers`].
pub(super) fn converted(state: &StateDict) -> Result<Vec<u8>, String> {
    let mut tensors = vec![];
    for (layer, theirs) in layers().iter().zip(names()) {
        for (part, dims, values) in parts(state, layer, &theirs)? {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            tensors.push((format!("{}.{part}", layer.name), dims, bytes));
        }
    }
    let view = |dims: &Vec<usize>, bytes| TensorView::new(Dtype::F32, dims.clone(), bytes).map_err(|e| e.to_string());
    let views = tensors.iter().map(|(name, dims, bytes)| Ok((name, view(dims, bytes)?)));
    let views = views.collect::<Result<Vec<_>, String>>()?;
    safetensors::serialize(views, None).map_err(|e| e.to_string())
}

type Part = (&'static str, Vec<usize>, Vec<f32>);

fn parts(state: &StateDict, layer: &Layer, theirs: &str) -> Result<[Part; 4], String> {
    let read = |part: &str, dims: &[usize]| {
        let name = format!("{theirs}.{part}");
        let tensor = state.get(&name).ok_or_else(|| format!("has no `{name}`: these are not pytorch-fid's weights"))?;
        match tensor.shape == dims {
            true => Ok(tensor.values.clone()),
            false => Err(format!("`{name}` has shape {:?}; Inception's is {dims:?}", tensor.shape)),
        }
    };
    let out = layer.dims[0];
    let each = layer.dims[1..].iter().product::<usize>();
    let gamma = read("bn.weight", &[out])?;
    let weight = read("conv.weight", &layer.dims)?.iter().enumerate().map(|(k, w)| w * gamma[k / each]).collect();
    let mean = read("bn.running_mean", &[out])?.iter().zip(&gamma).map(|(mean, gamma)| mean * gamma).collect();
    let one = || vec![out];
    Ok([
        ("weight", layer.dims.to_vec(), weight),
        ("beta", one(), read("bn.bias", &[out])?),
        ("mean", one(), mean),
        ("var", one(), read("bn.running_var", &[out])?),
    ])
}
