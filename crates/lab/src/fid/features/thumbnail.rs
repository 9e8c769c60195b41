//! Thumbnails: what an image is when looked at from far away.
//!
//! **Statement.** Means of the intensities over 4 × 4 equal parts of each channel, channel after channel. **Conventions.** No weights, so that it is
//! always there: for trying things out, not for judging them. **Error.** Rounding. **Checked by** tests/lab/experiment_cifar.rs.

use super::FeatureMap;
use minvel_engine::{Expr, State};

/// Parts of a side.
const PARTS: usize = 4;

/// Thumbnails of images of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thumbnail {
    image: [usize; 3],
}

impl Thumbnail {
    /// Of images of `[height, width, channels]`, multiples of 4.
    pub fn of(image: [usize; 3]) -> Self {
        let whole = image[..2].iter().all(|side| *side > 0 && side.is_multiple_of(PARTS));
        assert!(whole, "thumbnail: images of {image:?} have no 4 × 4 equal parts");
        Thumbnail { image }
    }
}

impl FeatureMap for Thumbnail {
    fn name(&self) -> &str {
        "thumbnail"
    }

    fn sha256(&self) -> &str {
        "thumbnail"
    }

    fn count(&self) -> usize {
        PARTS * PARTS * self.image[2]
    }

    fn image(&self) -> [usize; 3] {
        self.image
    }

    fn features<'g>(&self, images: Expr<'g>, _: u32) -> Expr<'g> {
        let [h, w, c] = self.image;
        let parts = images.reshape([PARTS, h / PARTS, PARTS, w / PARTS, c]).mean(3).mean(1);
        parts.transpose(&[2, 0, 1]).reshape([self.count()])
    }

    fn set(&self, _: &mut State<f32>) {}
}
