//! Inception: the network whose features FID compares on photographs.
//!
//! **Statement.** Intensities in [0, 1] of any size, bilinear to 299 × 299, 2x − 1 → 94 convolutions of the Inception-v3 of
//! 5 December 2015 → mean over 8 × 8: 2048 features.
//! **Source.** szegedy2016rethinking; heusel2017fid, whose TensorFlow graph the weights come from.
//! **Conventions.** As FID has it and classifiers do not: averages leave out the padding, the last block pools by maximum,
//! batch normalisation has no γ and ε = 10⁻³. It is folded into weights and biases, and weights are
//! turned from channels first, when they are read. Averages come after
//! the 1 × 1 convolution that follows them elsewhere: both are linear and touch different axes, and so there is less to
//! average. **Error.** Rounding: 10⁻⁵ of PyTorch's features; weights rounded to f16 shift features by 0.25 %.
//! **Checked by** tests/lab/inception.rs and tests/real_data/inception.rs, against bench/inception_reference.py.

mod layers;
mod pytorch;
mod resize;

use super::FeatureMap;
use crate::bytes::hexadecimal;
use crate::catalogue;
use crate::fid::torch;
use crate::image::Picture;
use half::f16;
use layers::{Layer, layers};
use minvel::train::check_header;
use minvel::{Error, file};
use minvel_engine::{Expr, State};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Side of the images that the convolutions see.
const SIDE: usize = 299;
/// FeatureMap of an image.
const FEATURES: usize = 2048;
/// ε of batch normalisation.
const EPSILON: f32 = 1e-3;

/// The network with its weights, for images of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Inception {
    weights: State<f32>,
    sha256: String,
    size: [usize; 2],
}

impl Inception {
    /// Reads the weights, as f16 or f32; images have 299 × 299 pixels until [`Inception::of`] says otherwise.
    pub fn read(path: &Path) -> Result<Inception, Error> {
        let bytes = file::read(path)?;
        check_header(&bytes).map_err(|what| Error::content(path, what))?;
        let broken = |e| Error::content(path, format!("is not a whole safetensors file ({e})"));
        let tensors = SafeTensors::deserialize(&bytes).map_err(broken)?;
        let mut weights = State::new(1);
        for layer in layers() {
            let (w, b) = folded(&tensors, &layer).map_err(|what| Error::content(path, what))?;
            weights.set(&layer.weights(), &w, w.len());
            weights.set(&layer.biases(), &b, b.len());
        }
        Ok(Inception { weights, sha256: hexadecimal(&Sha256::digest(&bytes)), size: [SIDE, SIDE] })
    }

    /// The weights of the first root that has them: `$MINVEL_DATA`, then the user's cache folder.
    pub fn find() -> Result<Inception, Error> {
        Inception::read(&Inception::home()?)
    }

    /// Where the weights lie on this machine.
    pub fn home() -> Result<PathBuf, Error> {
        catalogue::find("inception")?.here()
    }

    /// Writes weights that pytorch-fid publishes (a state dict of PyTorch) in the form that [`Inception::read`] takes.
    pub fn convert(published: &Path, path: &Path) -> Result<(), Error> {
        let state = torch::read(published)?;
        let bytes = pytorch::converted(&state).map_err(|what| Error::content(published, what))?;
        file::write(path, &bytes)
    }

    /// The same network for images of so many rows and columns.
    pub fn of(self, size: [usize; 2]) -> Inception {
        assert!(size[0] * size[1] > 0, "inception: images of {size:?} pixels");
        Inception { size, ..self }
    }
}

/// Weights `[rows·columns·in, out]` and biases of a layer with its batch normalisation: w/√(σ² + ε) and β − μ/√(σ² + ε).
fn folded(tensors: &SafeTensors, layer: &Layer) -> Result<(Vec<f32>, Vec<f32>), String> {
    let read = |part: &str, dims: &[usize]| {
        let name = format!("{}.{part}", layer.name);
        let tensor =
            tensors.tensor(&name).map_err(|_| format!("has no `{name}`: these are not Inception's weights"))?;
        match tensor.shape() == dims {
            true => numbers(&tensor).ok_or_else(|| format!("`{name}` is of type {:?}, not F16 or F32", tensor.dtype())),
            false => Err(format!("`{name}` has shape {:?}; Inception's is {dims:?}", tensor.shape())),
        }
    };
    let [out, input, kh, kw] = layer.dims;
    let given = read("weight", &layer.dims)?;
    let [beta, mean, variance] = [read("beta", &[out])?, read("mean", &[out])?, read("var", &[out])?];
    let scale: Vec<f32> = variance.iter().map(|v| 1.0 / (v + EPSILON).sqrt()).collect();
    let weight = |k: usize| {
        let (tap, i, o) = (k / out / input, k / out % input, k % out);
        given[(o * input + i) * kh * kw + tap] * scale[o]
    };
    let weights = (0..given.len()).map(weight).collect();
    let biases = (0..out).map(|i| beta[i] - mean[i] * scale[i]).collect();
    Ok((weights, biases))
}

fn numbers(tensor: &TensorView) -> Option<Vec<f32>> {
    let bytes = tensor.data();
    match tensor.dtype() {
        Dtype::F16 => Some(bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect()),
        Dtype::F32 => Some(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
        _ => None,
    }
}

impl FeatureMap for Inception {
    fn name(&self) -> &str {
        "inception"
    }

    fn sha256(&self) -> &str {
        &self.sha256
    }

    fn preprocessing(&self) -> &str {
        "bilinear to 299×299 with half-pixel centres, no antialiasing, not rounded; 2x−1 of x in [0,1]"
    }

    fn count(&self) -> usize {
        FEATURES
    }

    fn image(&self) -> [usize; 3] {
        [self.size[0], self.size[1], 3]
    }

    /// Of pictures of any size.
    fn intensities(&self, picture: &Picture) -> Result<Vec<f32>, String> {
        Ok(resize::resized(picture, self.size))
    }

    fn features<'g>(&self, images: Expr<'g>, _: u32) -> Expr<'g> {
        layers::pooled(2.0 * resize::resize(images.reshape(self.image()), [SIDE, SIDE]) - 1.0)
    }

    fn set(&self, state: &mut State<f32>) {
        self.weights.iter().for_each(|(name, values)| state.set(name, values, values.len()));
    }
}
