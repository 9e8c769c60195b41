//! Networks for colours that judge images with one channel.
//!
//! **Statement.** Pixels, drawn black or white by their intensity or as they are, are shown as three equal channels. **Source.**
//! docs/math §4.7 (binarised digits). **Conventions.** As [`FeatureMap`]. **Error.** That of what is drawn. **Checked by**
//! tests/lab/fid.rs.

use super::FeatureMap;
use minvel_engine::{Expr, Shape, State};

/// A network for colours, of images with one channel.
pub struct Grey<N> {
    network: N,
    preprocessing: String,
    drawn: bool,
}

impl<N: FeatureMap> Grey<N> {
    /// Shows black and white images to a network.
    pub fn new(network: N) -> Self {
        let own = "drawn black or white by their intensity, three equal channels";
        let preprocessing = format!("{own}; {}", network.preprocessing());
        Grey { network, preprocessing, drawn: true }
    }

    /// Shows grey images to a network as they are.
    pub fn with_shades(network: N) -> Self {
        let preprocessing = format!("three equal channels; {}", network.preprocessing());
        Grey { network, preprocessing, drawn: false }
    }
}

impl<N: FeatureMap> FeatureMap for Grey<N> {
    fn name(&self) -> &str {
        self.network.name()
    }

    fn sha256(&self) -> &str {
        self.network.sha256()
    }

    fn preprocessing(&self) -> &str {
        &self.preprocessing
    }

    fn count(&self) -> usize {
        self.network.count()
    }

    fn image(&self) -> [usize; 3] {
        let [height, width, _] = self.network.image();
        [height, width, 1]
    }

    fn features<'g>(&self, images: Expr<'g>, stream: u32) -> Expr<'g> {
        let [height, width, channels] = self.network.image();
        let drawn = if self.drawn { images.bernoulli(stream) } else { images }.reshape([height * width, 1]);
        let rows = images.shape().rows.expect("images are rows");
        let coloured = drawn.broadcast(&Shape::rowed(rows, [height * width, channels]));
        self.network.features(coloured.reshape([height * width * channels]), stream)
    }

    fn set(&self, state: &mut State<f32>) {
        self.network.set(state);
    }
}
