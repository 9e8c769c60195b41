//! Bilinear resizing with half-pixel centres, as two matrix products or on bytes.
//!
//! **Statement.** Entry i of n new ones stands at s = max((i + ½)·m/n − ½, 0) of m old ones, between ⌊s⌋ and the next.
//! **Conventions.** No antialiasing: as PyTorch's `interpolate(align_corners=False)`. **Checked by** tests/inception.rs.

use crate::data::Picture;
use minvel_engine::Expr;

/// Where a new entry stands: the old one before it, the one after it, and the share of the latter.
fn place(i: usize, from: usize, to: usize) -> (usize, usize, f64) {
    let s = ((i as f64 + 0.5) * from as f64 / to as f64 - 0.5).max(0.0);
    let before = (s as usize).min(from - 1);
    (before, (before + 1).min(from - 1), s - before as f64)
}

/// The matrix `[from, to]` that resizes a row.
fn matrix(from: usize, to: usize) -> Vec<f64> {
    let mut entries = vec![0.0; from * to];
    for i in 0..to {
        let (before, after, share) = place(i, from, to);
        entries[before * to + i] += 1.0 - share;
        entries[after * to + i] += share;
    }
    entries
}

/// Images `[channels, height, width]` at another size.
pub(super) fn resize<'g>(x: Expr<'g>, [height, width]: [usize; 2]) -> Expr<'g> {
    turned(turned(x, width), height)
}

/// Images whose rows have another length, with rows and columns exchanged.
fn turned<'g>(x: Expr<'g>, length: usize) -> Expr<'g> {
    let [channels, height, width] = x.shape().dims[..] else { panic!("resize: {} is no image", x.shape()) };
    if width == length {
        return x.t();
    }
    let table = x.graph().table(&matrix(width, length), [width, length]);
    x.reshape([channels * height, width]).matmul(table).reshape([channels, height, length]).t()
}

/// A picture of any size as intensities `[channels, height, width]` of another.
pub(super) fn resized(picture: &Picture, [height, width]: [usize; 2]) -> Vec<f32> {
    let mut out = Vec::with_capacity(3 * height * width);
    let columns: Vec<_> = (0..width).map(|i| place(i, picture.width, width)).collect();
    for channel in picture.pixels.chunks(picture.height * picture.width) {
        for y in 0..height {
            let (above, below, down) = place(y, picture.height, height);
            let row = |y: usize| &channel[y * picture.width..][..picture.width];
            let (above, below) = (row(above), row(below));
            out.extend(columns.iter().map(|(left, right, across)| {
                let between = |row: &[u8]| row[*left] as f64 * (1.0 - across) + row[*right] as f64 * across;
                ((between(above) * (1.0 - down) + between(below) * down) / 255.0) as f32
            }));
        }
    }
    out
}
