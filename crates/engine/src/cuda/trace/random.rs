//! Random draws where they are used: the block of Philox that holds the element, then the element.

use super::{Formula, Spot, Trace, Value};
use crate::random::Draw;
use crate::shape::Shape;

impl Trace<'_> {
    pub(super) fn draw(&mut self, draw: Draw, stream: u32, shape: &Shape, spot: &Spot) -> Value {
        self.needs.step = true;
        let feature = self.ravel(&spot.dims, &shape.dims);
        let row = spot.row;
        if let Draw::Permutation(count) | Draw::Epoch(count) = draw {
            let (epochs, rows) = (matches!(draw, Draw::Epoch(_)), shape.rows.unwrap_or(1));
            return self.number(Formula::Shuffled { epochs, count, rows, row, feature, stream });
        }
        let (block, within) = (self.over(feature, 4), self.modulo(feature, 4));
        let words = self.bind(Formula::Words { row, block, stream });
        self.number(Formula::Drawn { draw, words, within })
    }
}
