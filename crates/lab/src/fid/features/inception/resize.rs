//! Bilinear resizing with half-pixel centres, as two matrix products or on bytes.
//!
//! **Statement.** Entry i of n new ones stands at s = max((i + ½)·m/n − ½, 0) of m old ones, between ⌊s⌋ and the next.
//! **Conventions.** No antialiasing: as PyTorch's `interpolate(align_corners=False)`. **Checked by**
//! tests/real_data/inception.rs.

use crate::image::Picture;
use minvel_engine::Expr;

/// Where a new entry stands: the old one before it, the one after it, and the share of the latter.
fn place(i: usize, from: usize, to: usize) -> (usize, usize, f64) {
    let s = ((i as f64 + 0.5) * from as f64 / to as f64 - 0.5).max(0.0);
    let before = (s as usize).min(from - 1);
    (before, (before + 1).min(from - 1), s - before as f64)
}

/// The matrix `[to, from]` that resizes a column.
fn matrix(from: usize, to: usize) -> Vec<f64> {
    let mut entries = vec![0.0; from * to];
    for i in 0..to {
        let (before, after, share) = place(i, from, to);
        entries[i * from + before] += 1.0 - share;
        entries[i * from + after] += share;
    }
    entries
}

/// Images `[height, width, channels]` at another size.
pub(super) fn resize<'g>(x: Expr<'g>, [height, width]: [usize; 2]) -> Expr<'g> {
    turned(turned(x, width), height)
}

/// Images whose rows have another length, with rows and columns exchanged.
fn turned<'g>(x: Expr<'g>, length: usize) -> Expr<'g> {
    let [height, width, channels] = x.shape().dims[..] else { panic!("resize: {} is not an image", x.shape()) };
    let x = x.transpose(&[1, 0, 2]);
    if width == length {
        return x;
    }
    let table = x.graph().table(&matrix(width, length), [length, width]);
    table.matmul(x.reshape([width, height * channels])).reshape([length, height, channels])
}

/// A picture of any size as intensities `[height, width, channels]` of another.
pub(super) fn resized(picture: &Picture, [height, width]: [usize; 2]) -> Vec<f32> {
    let mut out = Vec::with_capacity(3 * height * width);
    let columns: Vec<_> = (0..width).map(|i| place(i, picture.width, width)).collect();
    for y in 0..height {
        let (above, below, down) = place(y, picture.height, height);
        let row = |y: usize| &picture.pixels[3 * picture.width * y..][..3 * picture.width];
        let (above, below) = (row(above), row(below));
        for (left, right, across) in &columns {
            out.extend([0, 1, 2].map(|c| {
                let entry = |row: &[u8], x: usize| row[3 * x + c] as f64;
                let between = |row: &[u8]| entry(row, *left) * (1.0 - across) + entry(row, *right) * across;
                ((between(above) * (1.0 - down) + between(below) * down) / 255.0) as f32
            }));
        }
    }
    out
}
