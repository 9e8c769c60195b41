//! The layers of Inception: what they are called and how they follow each other.
//!
//! **Source.** szegedy2016rethinking, sections 3–6; names are those of the TensorFlow graph. **Conventions.** Images are
//! `[height, width, channels]`.

use minvel_engine::{Expr, Window, concat};

/// A convolution with its bias.
pub(super) struct Layer {
    pub name: String,
    /// Output channels, input channels, rows and columns of the window, as the file of weights has them.
    pub dims: [usize; 4],
}

impl Layer {
    /// Name of the variable `[rows·columns·in, out]`.
    pub fn weights(&self) -> String {
        format!("inception/{}/weights", self.name)
    }

    /// Name of the variable `[out]`.
    pub fn biases(&self) -> String {
        format!("inception/{}/biases", self.name)
    }

    /// The convolution without its bias, `[rows·columns, out]`, and its rows and columns; with zeros around that keep the
    /// size, or with none.
    fn convolve<'g>(&self, x: Expr<'g>, stride: usize, same: bool) -> (Expr<'g>, [usize; 2]) {
        let [out, input, kh, kw] = self.dims;
        let kernel = [kh, kw];
        let window = Window { kernel, stride, pad: kernel.map(|k| if same { [k / 2; 2] } else { [0; 2] }) };
        let weights = x.graph().variable(&self.weights(), [kh * kw * input, out]);
        let dims = x.shape().dims;
        (x.im2col(window).matmul(weights), window.output([dims[0], dims[1]]))
    }

    /// max(x + b, 0) as an image. Before it becomes one, so that a card does all of it where it ends the product.
    fn activate<'g>(&self, x: Expr<'g>, [height, width]: [usize; 2]) -> Expr<'g> {
        let out = self.dims[0];
        (x + x.graph().variable(&self.biases(), [out])).relu().reshape([height, width, out])
    }

    /// The mean of 3 × 3 around each entry, and a 1 × 1 convolution.
    fn average<'g>(&self, x: Expr<'g>) -> Expr<'g> {
        let (x, size @ [height, width]) = self.convolve(x, 1, true);
        let mean = averaged(x.reshape([height, width, self.dims[0]]));
        self.activate(mean.reshape([height * width, self.dims[0]]), size)
    }
}

/// Layers that follow each other: `conv`, `conv_1`, … after a prefix.
fn tower(prefix: &str, input: usize, shapes: &[(usize, [usize; 2])]) -> Vec<Layer> {
    let inputs = std::iter::once(input).chain(shapes.iter().map(|s| s.0));
    let layer = |(i, (input, (out, kernel))): (usize, (usize, &(usize, [usize; 2])))| {
        let number = if i == 0 { String::new() } else { format!("_{i}") };
        Layer { name: format!("{prefix}conv{number}"), dims: [*out, input, kernel[0], kernel[1]] }
    };
    inputs.zip(shapes).enumerate().map(layer).collect()
}

const ONE: [usize; 2] = [1, 1];
const THREE: [usize; 2] = [3, 3];
const FIVE: [usize; 2] = [5, 5];
const WIDE: [usize; 2] = [1, 7];
const HIGH: [usize; 2] = [7, 1];

/// The five layers before the blocks.
fn stem() -> Vec<Layer> {
    tower("", 3, &[(32, THREE), (32, THREE), (64, THREE), (80, ONE), (192, THREE)])
}

/// What a block consists of: its towers, in order.
type Block = Vec<Vec<Layer>>;

/// Towers of 1 × 1, 5 × 5 and twice 3 × 3, and an average.
fn block_a(name: &str, input: usize, pool: usize) -> Block {
    vec![
        tower(&format!("{name}."), input, &[(64, ONE)]),
        tower(&format!("{name}.tower."), input, &[(48, ONE), (64, FIVE)]),
        tower(&format!("{name}.tower_1."), input, &[(64, ONE), (96, THREE), (96, THREE)]),
        tower(&format!("{name}.tower_2."), input, &[(pool, ONE)]),
    ]
}

/// To half the size by 3 × 3, twice 3 × 3, and a maximum.
fn block_b(name: &str, input: usize) -> Block {
    vec![
        tower(&format!("{name}."), input, &[(384, THREE)]),
        tower(&format!("{name}.tower."), input, &[(64, ONE), (96, THREE), (96, THREE)]),
    ]
}

/// Towers of 1 × 1, 7 × 7 and twice 7 × 7, taken apart into rows and columns, and an average.
fn block_c(name: &str, input: usize, inner: usize) -> Block {
    let twice = [(inner, ONE), (inner, HIGH), (inner, WIDE), (inner, HIGH), (192, WIDE)];
    vec![
        tower(&format!("{name}."), input, &[(192, ONE)]),
        tower(&format!("{name}.tower."), input, &[(inner, ONE), (inner, WIDE), (192, HIGH)]),
        tower(&format!("{name}.tower_1."), input, &twice),
        tower(&format!("{name}.tower_2."), input, &[(192, ONE)]),
    ]
}

/// To half the size by 3 × 3, 7 × 7 and 3 × 3, and a maximum.
fn block_d(name: &str, input: usize) -> Block {
    vec![
        tower(&format!("{name}.tower."), input, &[(192, ONE), (320, THREE)]),
        tower(&format!("{name}.tower_1."), input, &[(192, ONE), (192, WIDE), (192, HIGH), (192, THREE)]),
    ]
}

/// A tower of 1 × 1, two whose ends fork into 1 × 3 and 3 × 1, and a pool.
fn block_e(name: &str, input: usize) -> Block {
    let fork = [(384, [1, 3]), (384, [3, 1])];
    vec![
        tower(&format!("{name}."), input, &[(320, ONE)]),
        tower(&format!("{name}.tower_"), input, &[(384, ONE)]),
        tower(&format!("{name}.tower_mixed_"), 384, &fork),
        tower(&format!("{name}.tower_1_"), input, &[(448, ONE), (384, THREE)]),
        tower(&format!("{name}.tower_1_mixed_"), 384, &fork),
        tower(&format!("{name}.tower_2_"), input, &[(192, ONE)]),
    ]
}

const A: [(&str, usize, usize); 3] = [("mixed", 192, 32), ("mixed_1", 256, 64), ("mixed_2", 288, 64)];
const C: [(&str, usize); 4] = [("mixed_4", 128), ("mixed_5", 160), ("mixed_6", 160), ("mixed_7", 192)];

/// All 94 layers.
pub(super) fn layers() -> Vec<Layer> {
    let first = A.iter().map(|(name, input, pool)| block_a(name, *input, *pool));
    let middle = C.iter().map(|(name, inner)| block_c(name, 768, *inner));
    let last = [block_b("mixed_3", 288), block_d("mixed_8", 768), block_e("mixed_9", 1280), block_e("mixed_10", 2048)];
    stem().into_iter().chain(first.chain(middle).chain(last).flatten().flatten()).collect()
}

/// 2048 features of images `[299, 299, 3]` in [−1, 1].
pub(super) fn pooled(images: Expr) -> Expr {
    let s = stem();
    let mut x = valid(&s[0], images, 2);
    x = same(&s[2], valid(&s[1], x, 1));
    x = valid(&s[4], same(&s[3], halved(x)), 1);
    x = halved(x);
    for (name, input, pool) in A {
        x = concat(&with_average(&block_a(name, input, pool), x), -1);
    }
    let b = block_b("mixed_3", 288);
    x = concat(&[valid(&b[0][0], x, 2), shrinking(&b[1], x), halved(x)], -1);
    for (name, inner) in C {
        x = concat(&with_average(&block_c(name, 768, inner), x), -1);
    }
    let d = block_d("mixed_8", 768);
    x = concat(&[shrinking(&d[0], x), shrinking(&d[1], x), halved(x)], -1);
    x = forked(&block_e("mixed_9", 1280), x, Layer::average);
    x = forked(&block_e("mixed_10", 2048), x, |pool, x| same(pool, largest(x)));
    let [height, width, channels] = x.shape().dims[..] else { unreachable!("an image") };
    x.reshape([height * width, channels]).mean(0)
}

fn same<'g>(layer: &Layer, x: Expr<'g>) -> Expr<'g> {
    let (x, size) = layer.convolve(x, 1, true);
    layer.activate(x, size)
}

fn valid<'g>(layer: &Layer, x: Expr<'g>, stride: usize) -> Expr<'g> {
    let (x, size) = layer.convolve(x, stride, false);
    layer.activate(x, size)
}

/// Layer after layer, at the same size.
fn through<'g>(tower: &[Layer], x: Expr<'g>) -> Expr<'g> {
    tower.iter().fold(x, |x, layer| same(layer, x))
}

/// Layer after layer, the last to half the size.
fn shrinking<'g>(tower: &[Layer], x: Expr<'g>) -> Expr<'g> {
    let (last, before) = tower.split_last().expect("a tower has layers");
    valid(last, through(before, x), 2)
}

/// Towers side by side, the last of them after an average.
fn with_average<'g>(block: &Block, x: Expr<'g>) -> Vec<Expr<'g>> {
    let (pool, towers) = block.split_last().expect("a block has towers");
    towers.iter().map(|tower| through(tower, x)).chain([pool[0].average(x)]).collect()
}

fn forked<'g>(block: &Block, x: Expr<'g>, pool: impl Fn(&Layer, Expr<'g>) -> Expr<'g>) -> Expr<'g> {
    let mut parts = vec![through(&block[0], x)];
    for pair in [&block[1..3], &block[3..5]] {
        let inner = through(&pair[0], x);
        parts.extend(pair[1].iter().map(|layer| same(layer, inner)));
    }
    parts.push(pool(&block[5][0], x));
    concat(&parts, -1)
}

/// The largest of windows of three that go on by two, along rows and columns.
fn halved(x: Expr) -> Expr {
    halved_along(halved_along(x, 0), 1)
}

fn halved_along(x: Expr, axis: usize) -> Expr {
    let dims = x.shape().dims;
    let count = (dims[axis] - 1) / 2;
    // entries 2i, 2i + 1 and 2i + 2, as parts of pairs
    let pairs = |start: usize| {
        let mut split = dims.clone();
        split[axis] = count;
        split.insert(axis + 1, 2);
        x.slice(axis as isize, start, 2 * count).reshape(split)
    };
    let at = |start: usize, k: usize| pairs(start).at(axis as isize + 1, k);
    at(0, 0).max(at(0, 1)).max(at(1, 1))
}

/// Each entry of an axis with its two neighbours, zeros beyond the ends.
fn neighbours(x: Expr, axis: usize) -> [Expr; 3] {
    let length = x.shape().dims[axis];
    let padded = x.pad(axis as isize, 1, 1);
    [0, 1, 2].map(|start| padded.slice(axis as isize, start, length))
}

/// The largest of 3 × 3 entries around each; none is negative, so that zeros beyond the ends change nothing.
fn largest(x: Expr) -> Expr {
    [0, 1].into_iter().fold(x, |x, axis| {
        let [a, b, c] = neighbours(x, axis);
        a.max(b).max(c)
    })
}

/// The mean of 3 × 3 entries around each, of those that are there.
fn averaged(x: Expr) -> Expr {
    let [height, width, _] = x.shape().dims[..] else { panic!("averaged: {} is not an image", x.shape()) };
    let sum = [0, 1].into_iter().fold(x, |x, axis| {
        let [a, b, c] = neighbours(x, axis);
        a + b + c
    });
    let there = |i: usize, n: usize| (i.saturating_sub(1)..n.min(i + 2)).len();
    let share = |i: usize| 1.0 / (there(i / width, height) * there(i % width, width)) as f64;
    let shares: Vec<f64> = (0..height * width).map(share).collect();
    sum * x.graph().table(&shares, [height, width, 1])
}
