//! Layers: the affine maps that networks are made of.
//!
//! **Statement.** Dense: xW + b. Convolution: windows of 5 × 5 at every second pixel, two zeros around the image, so that it
//! becomes half as high and wide. Transposed: the adjoint of such windows with one zero before and two after, so that the image
//! becomes twice as high and wide: of the 2s + 3 rows that the windows reach, the first and the last two are left out.
//! **Source.** docs/math §4.0, §4.8; glorot2010. **Conventions.** Images are `[height, width, channels]`, flat between layers.
//! Weights are `[in, out]` (dense), `[25·in, out]` (convolution) and `[in, 25·out]` (transposed), where 25·n is row and column of
//! the window, then channel; uniform in ±√(6/(25·in + 25·out)) or, for dense ones, ±√(6/(in + out)). **Error.** Rounding.
//! **Checked by** tests/theory/convolution.rs (against loops, adjointness).

use minvel_engine::init::Init;
use minvel_engine::{Expr, Window};

/// An affine map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// To so many numbers.
    Dense(usize),
    /// From an image to one of half the size, with so many channels.
    Convolution {
        /// What it sees.
        image: [usize; 3],
        /// Channels of the result.
        filters: usize,
    },
    /// From an image to one of twice the size, with so many channels.
    Transposed {
        /// What it sees.
        image: [usize; 3],
        /// Channels of the result.
        filters: usize,
    },
}

/// Side of a window.
const SIDE: usize = 5;
/// Pixels of a window.
const AREA: usize = SIDE * SIDE;
/// Halves an image.
const HALVING: Window = Window::square(SIDE, 2, [2, 2]);
/// Its adjoint doubles an image.
const DOUBLING: Window = Window::square(SIDE, 2, [1, 2]);

impl Layer {
    /// Dense layers of the given widths.
    pub fn dense(widths: &[usize]) -> Vec<Layer> {
        widths.iter().map(|&width| Layer::Dense(width)).collect()
    }

    /// Convolutions one after another, with so many channels each.
    ///
    /// ```
    /// use minvel::network::Layer;
    /// let layers = Layer::convolutions([32, 32, 3], &[64, 128, 256]);
    /// assert_eq!(layers[2], Layer::Convolution { image: [8, 8, 128], filters: 256 });
    /// ```
    pub fn convolutions(image: [usize; 3], filters: &[usize]) -> Vec<Layer> {
        let mut image = image;
        let halved = |&filters: &usize| {
            let layer = Layer::Convolution { image, filters };
            image = [image[0].div_ceil(2), image[1].div_ceil(2), filters];
            layer
        };
        filters.iter().map(halved).collect()
    }

    /// Transposed convolutions one after another, with so many channels each.
    pub fn transposed(image: [usize; 3], filters: &[usize]) -> Vec<Layer> {
        let mut image = image;
        let doubled = |&filters: &usize| {
            let layer = Layer::Transposed { image, filters };
            image = [2 * image[0], 2 * image[1], filters];
            layer
        };
        filters.iter().map(doubled).collect()
    }

    /// Numbers that it gives.
    pub fn outputs(self) -> usize {
        match self {
            Layer::Dense(width) => width,
            Layer::Convolution { image: [h, w, _], filters } => h.div_ceil(2) * w.div_ceil(2) * filters,
            Layer::Transposed { image: [h, w, _], filters } => 4 * h * w * filters,
        }
    }

    /// Whether it can follow a layer of so many outputs.
    pub(super) fn takes(self, inputs: usize) -> bool {
        match self {
            Layer::Dense(width) => inputs > 0 && width > 0,
            Layer::Convolution { image, filters } | Layer::Transposed { image, filters } => {
                inputs > 0 && filters > 0 && image.iter().product::<usize>() == inputs
            }
        }
    }

    /// Numbers that share a bias: one, or an image.
    pub(super) fn channels(self) -> usize {
        match self {
            Layer::Dense(width) => width,
            Layer::Convolution { filters, .. } | Layer::Transposed { filters, .. } => filters,
        }
    }

    /// Shape and start values of the weights after a layer of so many outputs.
    pub(super) fn weights(self, inputs: usize) -> (Vec<usize>, Init) {
        let glorot = |channels: usize| Init::Uniform((6.0 / (AREA * channels) as f64).sqrt());
        match self {
            Layer::Dense(width) => (vec![inputs, width], Init::GlorotUniform),
            Layer::Convolution { image: [.., c], filters } => (vec![AREA * c, filters], glorot(c + filters)),
            Layer::Transposed { image: [.., c], filters } => (vec![c, AREA * filters], glorot(c + filters)),
        }
    }

    /// The weights as a matrix `[inputs of an output, channels]`, whose largest singular value normalises them.
    pub(super) fn matrix(self, weights: Expr<'_>) -> Expr<'_> {
        match self {
            Layer::Dense(_) | Layer::Convolution { .. } => weights,
            Layer::Transposed { image: [.., c], filters } => weights.reshape([c * AREA, filters]),
        }
    }

    /// The map, `rows × [inputs]` → `rows × [outputs]`.
    pub(super) fn apply<'g>(self, x: Expr<'g>, weights: Expr<'g>, biases: Expr<'g>) -> Expr<'g> {
        let image = match self {
            Layer::Dense(_) => return x.matmul(weights) + biases,
            Layer::Convolution { image, .. } => x.reshape(image).conv2d(weights, HALVING),
            Layer::Transposed { image: [h, w, c], filters } => {
                x.reshape([h, w, c]).conv2d_transpose(weights, DOUBLING, [2 * h, 2 * w, filters])
            }
        };
        (image + biases).reshape([self.outputs()])
    }
}
