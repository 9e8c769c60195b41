//! Architectures: of which layers encoder, decoder and what is learnt beside them are made.
//!
//! **Statement.** Dense: hidden layers of the same widths everywhere. Convolutional, for images of h × w × c and filters
//! f_1 … f_s: the encoder halves the image s times and goes through the dense layers; the decoder goes from the code to
//! h/2ˢ × w/2ˢ × f_s and doubles it s times; an energy makes of the code a grey image of h × w, which it sees as the encoder does.
//! **Source.** docs/math §4.6–§4.9. **Conventions.** Energies and critics, which are differentiated twice, have activations that
//! are smooth: tanh (dense) and softplus (convolutional). **Error.** None.
//! **Checked by** tests/theory/convolution.rs (parameter counts).

use crate::network::{Activation, Layer};

/// Hidden layers of all networks of an auto-encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Dense layers of these widths.
    Dense(Vec<usize>),
    /// Convolutions with so many filters each, and dense layers between them and the code.
    Convolutional {
        /// Channels after each convolution; the decoder has them in reverse.
        filters: Vec<usize>,
        /// Widths of the dense layers.
        hidden: Vec<usize>,
    },
}

impl Architecture {
    /// Why it cannot see images of `[height, width, channels]`: the key of a setting and a sentence.
    pub fn refuses(&self, [height, width, _]: [usize; 3]) -> Option<(&'static str, String)> {
        let (Architecture::Dense(hidden) | Architecture::Convolutional { hidden, .. }) = self;
        if hidden.is_empty() || hidden.contains(&0) {
            return Some(("hidden", "needs at least one width, each at least 1".into()));
        }
        let Architecture::Convolutional { filters, .. } = self else { return None };
        if filters.is_empty() || filters.contains(&0) {
            return Some(("filters", "needs at least one number, each at least 1".into()));
        }
        let factor = 1usize.checked_shl(filters.len() as u32).unwrap_or(usize::MAX);
        let halved = [height, width].iter().all(|side| side.is_multiple_of(factor));
        let why = || {
            format!(
                "{} convolutions are too many for images of {height} × {width}: each halves the image",
                filters.len()
            )
        };
        (!halved).then(|| ("filters", why()))
    }

    /// The encoder's layers before the dense ones, and the widths of those.
    pub(super) fn encoder(&self, image: [usize; 3]) -> (Vec<Layer>, &[usize]) {
        match self {
            Architecture::Dense(hidden) => (vec![], hidden),
            Architecture::Convolutional { filters, hidden } => (Layer::convolutions(image, filters), hidden),
        }
    }

    /// All layers of the decoder.
    pub(super) fn decoder(&self, image: [usize; 3]) -> Vec<Layer> {
        match self {
            Architecture::Dense(hidden) => Layer::dense(&[hidden, &[image.iter().product()][..]].concat()),
            Architecture::Convolutional { filters, .. } => {
                let (factor, last) = (1 << filters.len(), filters.last().copied().unwrap_or(image[2]));
                let small = [image[0] / factor, image[1] / factor, last];
                let mut channels: Vec<usize> = filters.iter().rev().skip(1).copied().collect();
                channels.push(image[2]);
                let mut layers = vec![Layer::Dense(small.iter().product())];
                layers.extend(Layer::transposed(small, &channels));
                layers
            }
        }
    }

    /// Hidden layers of an energy or critic of codes.
    pub fn energy(&self, [height, width, _]: [usize; 3]) -> Vec<Layer> {
        match self {
            Architecture::Dense(hidden) => Layer::dense(hidden),
            Architecture::Convolutional { filters, hidden } => {
                let mut layers = vec![Layer::Dense(height * width)];
                layers.extend(Layer::convolutions([height, width, 1], filters));
                layers.extend(Layer::dense(hidden));
                layers
            }
        }
    }

    /// Activation of energies and critics.
    pub fn smooth(&self) -> Activation {
        match self {
            Architecture::Dense(_) => Activation::Tanh,
            Architecture::Convolutional { .. } => Activation::Softplus,
        }
    }
}
