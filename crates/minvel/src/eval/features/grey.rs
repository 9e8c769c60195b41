//! Networks for colours that judge black and white images.
//!
//! **Statement.** Pixels are drawn black or white by their intensity and shown as three equal channels. **Source.** METHODS 4.7
//! (binarised digits). **Conventions.** As [`Features`]. **Error.** That of what is drawn. **Checked by** tests/fid.rs.

use super::Features;
use minvel_engine::{Expr, Shape, State};

/// A network for colours, of images with one channel.
pub struct Grey<N> {
    network: N,
    preprocessing: String,
}

impl<N: Features> Grey<N> {
    /// Shows black and white images to a network.
    pub fn new(network: N) -> Self {
        let own = "drawn black or white by their intensity, three equal channels";
        let preprocessing = format!("{own}; {}", network.preprocessing());
        Grey { network, preprocessing }
    }
}

impl<N: Features> Features for Grey<N> {
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
        let drawn = images.bernoulli(stream).reshape([height * width, 1]);
        let rows = images.shape().rows.expect("images are rows");
        let coloured = drawn.broadcast(&Shape::rowed(rows, [height * width, channels]));
        self.network.features(coloured.reshape([height * width * channels]), stream)
    }

    fn set(&self, state: &mut State<f32>) {
        self.network.set(state);
    }
}
