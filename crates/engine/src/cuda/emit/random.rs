//! Random draws where they are used: the block of Philox that holds the element, then the element.

use super::{Emitter, Ix, Spot};
use crate::random::Draw;
use crate::shape::Shape;

impl Emitter<'_> {
    pub(super) fn draw(&mut self, draw: Draw, stream: u32, shape: &Shape, spot: &Spot) -> String {
        self.random = true;
        let feature = self.ravel(&spot.dims, &shape.dims);
        let row = spot.row.text();
        if let Draw::Permutation(n) | Draw::Epoch(n) = draw {
            let (epochs, rows) = (matches!(draw, Draw::Epoch(_)), shape.rows.unwrap_or(1));
            let place = format!("{rows}u, (u32){row}, (u32){}", feature.text());
            return self.bind(
                "real",
                format!("(real)shuffled({epochs}, {n}u, {place}, {stream}u, step, keys[2 * r], keys[2 * r + 1])"),
            );
        }
        let (block, within) = (self.over(&feature, 4), self.modulo(&feature, 4));
        let block = format!("philox((u32){row}, (u32){}, {stream}u, step, keys[2 * r], keys[2 * r + 1])", block.text());
        let words = self.bind("Words", block);
        let word = |ix: &str| format!("word({words}, {ix})");
        let w = within.text();
        let value = match (draw, &within) {
            (Draw::Uniform, _) => format!("uniform({})", word(&w)),
            (Draw::Rademacher, _) => format!("rademacher({})", word(&w)),
            (Draw::Integer(n), _) => format!("integer({}, {n}u)", word(&w)),
            (Draw::Normal, Ix::Number(k)) => {
                let pair = k / 2 * 2;
                format!("normal({}, {}, {})", word(&pair.to_string()), word(&(pair + 1).to_string()), k % 2 == 1)
            }
            (Draw::Normal, _) => {
                format!("normal({}, {}, {w} & 1)", word(&format!("{w} & 2")), word(&format!("({w} & 2) + 1")))
            }
            (Draw::Bits | Draw::Permutation(_) | Draw::Epoch(_), _) => format!("(real){}", word(&w)),
        };
        self.bind("real", value)
    }
}
