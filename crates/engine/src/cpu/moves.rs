//! Instructions that move data: loads, saves, copies, windows, gathers, and the few that look at whole values.
#![allow(unsafe_code)] // raw pointers: places of one memory are read and written side by side

use super::plan::*;
use super::run::{Place, Worker};
use crate::isa::dispatch;
use crate::math::Real;
use crate::op::Window;
use crate::random::{self, Draw, Site};

/// Runs one instruction.
///
/// # Safety
/// The plan's places and extents fit the memory of the run, and no other thread touches what is written.
pub(crate) unsafe fn run<T: Real>(instr: &Instr, worker: &mut Worker<T>, place: &Place<T>) {
    // SAFETY of all blocks: the contract of this function.
    unsafe {
        match instr {
            Instr::Load { from, features, to, stride } => {
                let from = place.resolve(worker, *from).add(place.first_row * features);
                let to = place.resolve(worker, *to);
                load(worker.isa, from, *features, to, *stride, place.valid(), place.lanes());
            }
            Instr::Save { from, to } => {
                let features: usize = from.dims.iter().product();
                let to = place.resolve(worker, *to).add(place.first_row * features);
                by_rows(place.resolve(worker, from.at), from, to, place.valid());
            }
            Instr::Random { draw, stream, features, rows, to, stride } => {
                let to = place.resolve(worker, *to);
                let rows_total = rows.unwrap_or(1) as u32;
                let site = Site { key: place.key(), stream: *stream, step: place.clock.step, rows: rows_total };
                let first = place.first_row as u32;
                match rows {
                    Some(_) => {
                        let rows = first..first + place.valid() as u32;
                        noise(worker.isa, *draw, &site, rows, *features as u32, to, *stride);
                    }
                    None => flat_noise(worker.isa, *draw, &site, std::slice::from_raw_parts_mut(to, *features)),
                }
            }
            Instr::Fill { to, len, value } => {
                std::slice::from_raw_parts_mut(place.resolve(worker, *to), *len).fill(T::from_f64(*value));
            }
            Instr::FillLanes { to, features, stride, value } => {
                let to = place.resolve(worker, *to);
                for f in 0..*features {
                    std::slice::from_raw_parts_mut(to.add(f * stride), place.lanes()).fill(T::from_f64(*value));
                }
            }
            Instr::Copy { from, to, lanes } => copy(from, to, *lanes, worker, place),
            Instr::Im2col { window, image, from, to, strides, rowed } => {
                let (from, to) = (place.resolve(worker, *from), place.resolve(worker, *to));
                im2col(window, *image, from, to, *strides, if *rowed { place.lanes() } else { 1 });
            }
            Instr::Col2im { window, image, from, to, strides, rowed } => {
                let (from, to) = (place.resolve(worker, *from), place.resolve(worker, *to));
                col2im(window, *image, from, to, *strides, if *rowed { place.lanes() } else { 1 });
            }
            Instr::Gather { table, len, width, index, to, stride, rowed } => {
                gather(*table, *len, *width, index, *to, *stride, *rowed, worker, place);
            }
            Instr::Scatter { to, len, width, index, values, rows } => {
                scatter(*to, *len, *width, index, values, *rows, worker, place);
            }
            Instr::Collect { from, to, rows } => {
                let to = place.resolve(worker, *to);
                by_rows(place.resolve(worker, from.at), from, to, *rows);
            }
            Instr::Kth { k, len, from, copy, to } => {
                let (source, copy) = (place.resolve(worker, from.at) as *const T, place.resolve(worker, *copy));
                each_offset(&from.dims, &from.strides, |i, offset| *copy.add(i) = *source.add(offset));
                let copy = std::slice::from_raw_parts_mut(copy, *len);
                let order = |a: &T, b: &T| a.to_f64().total_cmp(&b.to_f64());
                *place.resolve(worker, *to) = *copy.select_nth_unstable_by(*k, order).1;
            }
            Instr::Chain(_) | Instr::Product(_) | Instr::Contraction(_) | Instr::Contractions { .. } => {
                unreachable!("not a move")
            }
        }
    }
}

/// A value with a lane for each row, written row by row.
///
/// # Safety
/// `from`, laid out as `array`, has so many lanes, and `to` room for them.
unsafe fn by_rows<T: Real>(from: *const T, array: &Array, to: *mut T, rows: usize) {
    let features: usize = array.dims.iter().product();
    each_offset(&array.dims, &array.strides, |f, offset| {
        for row in 0..rows {
            // SAFETY: the contract of this function.
            unsafe { *to.add(row * features + f) = *from.add(offset + row * array.lane) };
        }
    });
}

/// # Safety
/// `from` has all pixels of the image and `to` all entries of its windows, `strides` apart, each with so many lanes.
unsafe fn im2col<T: Real>(
    w: &Window,
    image: [usize; 3],
    from: *const T,
    to: *mut T,
    strides: [usize; 2],
    lanes: usize,
) {
    windows(w, image, |pixel, column| {
        // SAFETY: the contract of this function.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to.add(column * strides[1]), lanes);
            match pixel {
                Some(pixel) => to.copy_from_slice(std::slice::from_raw_parts(from.add(pixel * strides[0]), lanes)),
                None => to.fill(T::ZERO),
            }
        }
    });
}

/// # Safety
/// `from` has all entries of the image's windows and `to` all its pixels, `strides` apart, each with so many lanes.
unsafe fn col2im<T: Real>(
    w: &Window,
    image: [usize; 3],
    from: *const T,
    to: *mut T,
    strides: [usize; 2],
    lanes: usize,
) {
    for pixel in 0..image.iter().product() {
        // SAFETY: the contract of this function.
        unsafe { std::slice::from_raw_parts_mut(to.add(pixel * strides[1]), lanes).fill(T::ZERO) };
    }
    windows(w, image, |pixel, column| {
        let Some(pixel) = pixel else { return };
        for l in 0..lanes {
            // SAFETY: the contract of this function.
            unsafe { *to.add(pixel * strides[1] + l) += *from.add(column * strides[0] + l) };
        }
    });
}

/// Calls `visit(position, offset)` for every entry of a strided array, in row-major order.
#[inline(always)]
fn each_offset(dims: &[usize], strides: &[usize], mut visit: impl FnMut(usize, usize)) {
    let total: usize = dims.iter().product();
    let inner = dims.last().copied().unwrap_or(1);
    let step = strides.last().copied().unwrap_or(0);
    let mut position = 0;
    while position < total {
        let mut rest = position / inner;
        let mut offset = 0;
        for (&d, &s) in dims.iter().zip(strides).rev().skip(1) {
            offset += rest % d * s;
            rest /= d;
        }
        for i in 0..inner {
            visit(position + i, offset + i * step);
        }
        position += inner;
    }
}

/// # Safety
/// As [`run`].
unsafe fn copy<T: Real>(from: &Array, to: &Array, lanes: Lanes, worker: &mut Worker<T>, place: &Place<T>) {
    let lanes = match lanes {
        Lanes::Tile => place.lanes(),
        Lanes::Fixed(n) => n,
    };
    // SAFETY: the contract of this function.
    unsafe {
        let (source, target) = (place.resolve(worker, from.at) as *const T, place.resolve(worker, to.at));
        // Both are walked in the order of `from`; the position in `to` is found from the same index.
        each_offset(&from.dims, &from.strides, |position, offset| {
            let mut rest = position;
            let mut there = 0;
            for (&d, &s) in to.dims.iter().zip(&to.strides).rev() {
                there += rest % d * s;
                rest /= d;
            }
            let (s, t) = (source.add(offset), target.add(there));
            if from.lane == 1 {
                std::ptr::copy_nonoverlapping(s, t, lanes);
            } else {
                std::slice::from_raw_parts_mut(t, lanes).fill(*s);
            }
        });
    }
}

dispatch! {
    /// Row-major rows into a tile; lanes beyond the last row are zero.
    ///
    /// # Safety
    /// `isa` is available; `from` has `rows × features` elements, `to` room for `features` times `pitch`.
    unsafe fn load<T: Real>(isa: Isa, from: *const T, features: usize, to: *mut T, pitch: usize, rows: usize, lanes: usize) {
        // Blocks of 16 features: each cache line of the source is used up before the next.
        for start in (0..features).step_by(16) {
            let end = features.min(start + 16);
            for l in 0..rows {
                for f in start..end {
                    // SAFETY: l < rows and f < features.
                    unsafe { *to.add(f * pitch + l) = *from.add(l * features + f) };
                }
            }
            for f in start..end {
                for l in rows..lanes {
                    // SAFETY: l < lanes ≤ pitch.
                    unsafe { *to.add(f * pitch + l) = T::ZERO };
                }
            }
        }
    }
}

dispatch! {
    /// Random numbers of a tile.
    ///
    /// # Safety
    /// `isa` is available; `to` has room for `features` times `pitch` elements.
    unsafe fn noise<T: Real>(isa: Isa, draw: Draw, site: &Site, rows: std::ops::Range<u32>, features: u32, to: *mut T, pitch: usize) {
        // SAFETY: the contract of this function.
        unsafe { random::fill_tile(draw, site, rows, 0..features, to, pitch) };
    }
}

dispatch! {
    /// Random numbers of a value without rows.
    ///
    /// # Safety
    /// `isa` is available.
    unsafe fn flat_noise<T: Real>(isa: Isa, draw: Draw, site: &Site, to: &mut [T]) {
        random::fill_flat(draw, site, to);
    }
}

/// Visits every entry of the windows of an image, with its pixel (or `None` in the padding).
#[inline(always)]
fn windows(w: &Window, image: [usize; 3], mut visit: impl FnMut(Option<usize>, usize)) {
    let [height, width, channels] = image;
    let [oh, ow] = w.output([height, width]);
    let mut entry = 0;
    for (oy, ox) in (0..oh).flat_map(|y| (0..ow).map(move |x| (y, x))) {
        for (ky, kx) in (0..w.kernel[0]).flat_map(|y| (0..w.kernel[1]).map(move |x| (y, x))) {
            let y = (oy * w.stride + ky).wrapping_sub(w.pad[0][0]);
            let x = (ox * w.stride + kx).wrapping_sub(w.pad[1][0]);
            let inside = y < height && x < width;
            for c in 0..channels {
                visit(inside.then(|| (y * width + x) * channels + c), entry);
                entry += 1;
            }
        }
    }
}

/// # Safety
/// As [`run`].
unsafe fn gather<T: Real>(
    table: Ptr,
    len: usize,
    width: usize,
    index: &Array,
    to: Ptr,
    stride: usize,
    rowed: bool,
    worker: &mut Worker<T>,
    place: &Place<T>,
) {
    let rows = if rowed { place.valid() } else { 1 };
    // SAFETY: the contract of this function; indices are checked.
    unsafe {
        let (indices, to) = (place.resolve(worker, index.at) as *const T, place.resolve(worker, to));
        let entry = |offset: usize, l: usize| place.entry(*indices.add(offset + l * index.lane), len) * width;
        match place.bytes(table) {
            Some(bytes) => {
                let shades: [T; 256] = std::array::from_fn(|p| T::from_f64(p as f64) / T::from_f64(255.0));
                each_offset(&index.dims, &index.strides, |i, offset| {
                    for l in 0..rows {
                        let (from, to) = (bytes.add(entry(offset, l)), to.add(i * width * stride + l));
                        (0..width).for_each(|j| *to.add(j * stride) = shades[usize::from(*from.add(j))]);
                    }
                });
            }
            None => {
                let table = place.resolve(worker, table) as *const T;
                each_offset(&index.dims, &index.strides, |i, offset| {
                    for l in 0..rows {
                        let (from, to) = (table.add(entry(offset, l)), to.add(i * width * stride + l));
                        (0..width).for_each(|j| *to.add(j * stride) = *from.add(j));
                    }
                });
            }
        }
    }
}

/// # Safety
/// As [`run`].
unsafe fn scatter<T: Real>(
    to: Ptr,
    len: usize,
    width: usize,
    index: &Array,
    values: &Array,
    rows: usize,
    worker: &mut Worker<T>,
    place: &Place<T>,
) {
    // SAFETY: the contract of this function; indices are checked.
    unsafe {
        let to = place.resolve(worker, to);
        std::slice::from_raw_parts_mut(to, len * width).fill(T::ZERO);
        let indices = place.resolve(worker, index.at) as *const T;
        let source = place.resolve(worker, values.at) as *const T;
        for lane in 0..rows {
            // Entry (i, j) of the values belongs to index i: walk the values and find i from the position.
            each_offset(&values.dims, &values.strides, |position, offset| {
                let (i, j) = (position / width, position % width);
                let mut rest = i;
                let mut at = 0;
                for (&d, &s) in index.dims.iter().zip(&index.strides).rev() {
                    at += rest % d * s;
                    rest /= d;
                }
                let entry = place.entry(*indices.add(at + lane * index.lane), len);
                *to.add(entry * width + j) += *source.add(offset + lane * values.lane);
            });
        }
    }
}
