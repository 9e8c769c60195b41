//! Plain loops, to compare with.

use minvel_engine::Window;

/// A tensor from a function of the index.
pub fn build<const N: usize>(dims: [usize; N], f: impl Fn([usize; N]) -> f64) -> Vec<f64> {
    let index = |mut flat: usize| {
        let mut index = [0; N];
        for axis in (0..N).rev() {
            index[axis] = flat % dims[axis];
            flat /= dims[axis];
        }
        index
    };
    (0..dims.iter().product()).map(|i| f(index(i))).collect()
}

/// An entry of a tensor.
pub fn at<const N: usize>(x: &[f64], dims: [usize; N], index: [usize; N]) -> f64 {
    assert_eq!(x.len(), dims.iter().product::<usize>());
    x[(0..N).fold(0, |flat, axis| flat * dims[axis] + index[axis])]
}

/// Σ f(i) for i < n.
pub fn total(n: usize, f: impl Fn(usize) -> f64) -> f64 {
    (0..n).map(f).sum()
}

/// ⟨a, b⟩.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Aᵀy of a linear map A, from its definition: (Aᵀy)ᵢ = ⟨A eᵢ, y⟩.
pub fn adjoint(map: impl Fn(&[f64]) -> Vec<f64>, len: usize, y: &[f64]) -> Vec<f64> {
    let unit = |i: usize| (0..len).map(|k| f64::from(u8::from(k == i))).collect::<Vec<_>>();
    (0..len).map(|i| dot(&map(&unit(i)), y)).collect()
}

/// A pixel of a padded image.
fn pixel(image: &[f64], dims: [usize; 4], r: usize, c: usize, y: usize, x: usize, pad: [[usize; 2]; 2]) -> f64 {
    let [[top, _], [left, _]] = pad;
    let inside = (top..top + dims[1]).contains(&y) && (left..left + dims[2]).contains(&x);
    if inside { at(image, dims, [r, y - top, x - left, c]) } else { 0.0 }
}

/// The windows of images `[height, width, channels]` as rows.
pub fn windows(images: &[f64], rows: usize, [h, w, c]: [usize; 3], window: Window) -> Vec<f64> {
    let ([kh, kw], [oh, ow]) = (window.kernel, window.output([h, w]));
    build([rows, oh, ow, kh, kw, c], |[r, y, x, dy, dx, c_]| {
        pixel(images, [rows, h, w, c], r, c_, y * window.stride + dy, x * window.stride + dx, window.pad)
    })
}

/// The convolution as seven nested loops.
pub fn convolve(images: &[f64], weights: &[f64], rows: usize, [h, w, c]: [usize; 3], window: Window) -> Vec<f64> {
    let ([kh, kw], [oh, ow]) = (window.kernel, window.output([h, w]));
    let out = weights.len() / (c * kh * kw);
    build([rows, oh, ow, out], |[r, y, x, o]| {
        total(c, |i| {
            total(kh, |dy| {
                total(kw, |dx| {
                    let (py, px) = (y * window.stride + dy, x * window.stride + dx);
                    let p = pixel(images, [rows, h, w, c], r, i, py, px, window.pad);
                    p * at(weights, [kh, kw, c, out], [dy, dx, i, o])
                })
            })
        })
    })
}

/// The transpose of a matrix with so many rows.
pub fn flipped(matrix: &[f64], rows: usize) -> Vec<f64> {
    let columns = matrix.len() / rows;
    build([columns, rows], |[i, j]| matrix[j * columns + i])
}
