//! Forms of points: the formulas of the layouts, on plain numbers.
//!
//! Each `from_…` appends a point and says how far the numbers were from the manifold, or why they are no point.

use super::LENGTH_TOLERANCE;
use std::f64::consts::{FRAC_PI_2, TAU};

/// Why a place is none.
pub const BAD_LATITUDE: &str = "a latitude beyond the pole";
pub const BAD_LONGITUDE: &str = "a longitude beyond a turn";

/// An angle in [−π, π).
pub fn wrap(angle: f64) -> f64 {
    let turned = angle - TAU * (angle / TAU).round();
    if turned >= TAU / 2.0 { turned - TAU } else { turned }
}

pub fn from_latlon(latitude: f64, longitude: f64, out: &mut Vec<f64>) -> Result<f64, String> {
    let slack = 1.0 + 4.0 * f64::EPSILON;
    if latitude.abs() > FRAC_PI_2 * slack {
        return Err(BAD_LATITUDE.into());
    }
    if longitude.abs() > TAU * slack {
        return Err(BAD_LONGITUDE.into());
    }
    let ((sin, cos), (y, x)) = (latitude.sin_cos(), wrap(longitude).sin_cos());
    out.extend([cos * x, cos * y, sin]);
    Ok(0.0)
}

pub fn latlon(x: &[f64]) -> [f64; 2] {
    [x[2].atan2(x[0].hypot(x[1])), x[1].atan2(x[0])]
}

pub fn normalised(cells: &[f64], what: &str, out: &mut Vec<f64>) -> Result<f64, String> {
    let length = cells.iter().map(|x| x * x).sum::<f64>().sqrt();
    let off = (length - 1.0).abs();
    if off > LENGTH_TOLERANCE {
        return Err(format!(
            "{what} has length {length:.6}, not 1: divide its numbers by it if only the direction matters"
        ));
    }
    // a unit vector to rounding keeps its bits
    let scale = if off <= 4.0 * f64::EPSILON { 1.0 } else { length };
    out.extend(cells.iter().map(|x| x / scale));
    Ok(off)
}

/// A quaternion (i, j, k, real), of the two of its rotation the one with real part ≥ 0.
pub fn rotation(q: [f64; 4], out: &mut Vec<f64>) -> Result<f64, String> {
    let start = out.len();
    let off = normalised(&q, "the quaternion", out)?;
    let first = [q[3], q[0], q[1], q[2]].into_iter().find(|x| *x != 0.0).unwrap_or(1.0);
    if first < 0.0 {
        out[start..].iter_mut().for_each(|x| *x = -*x);
    }
    Ok(off)
}

/// Of the two ends of an axis the one whose last number that is not zero is positive.
pub fn one_end(x: &mut [f64]) {
    if x.iter().rev().find(|x| **x != 0.0).is_some_and(|last| *last < 0.0) {
        x.iter_mut().for_each(|x| *x = -*x);
    }
}

pub fn from_sheet(cells: &[f64], out: &mut Vec<f64>) -> Result<f64, String> {
    let (time, space) = (cells[0], &cells[1..]);
    let r2: f64 = space.iter().map(|x| x * x).sum();
    let expected = (1.0 + r2).sqrt();
    let off = (time / expected - 1.0).abs();
    if off > LENGTH_TOLERANCE {
        return Err(format!(
            "X0 = {time} but √(1 + |X|²) = {expected:.6}: the point is not on the hyperboloid, or X0 is not its first column"
        ));
    }
    out.extend(space.iter().map(|x| x / (1.0 + expected)));
    Ok(off)
}

/// The quaternion of a rotation matrix, by the largest of its four squares.
pub fn from_matrix(m: &[f64], out: &mut Vec<f64>) -> Result<f64, String> {
    let dot = |i: usize, j: usize| (0..3).map(|k| m[3 * i + k] * m[3 * j + k]).sum::<f64>();
    let pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)];
    let off = pairs.map(|(i, j)| (dot(i, j) - f64::from(i == j)).abs()).into_iter().fold(0.0, f64::max);
    let minor = |i: usize, j: usize| m[3 + i] * m[6 + j] - m[3 + j] * m[6 + i];
    let determinant = m[0] * minor(1, 2) - m[1] * minor(0, 2) + m[2] * minor(0, 1);
    if off > 2.0 * LENGTH_TOLERANCE {
        return Err(format!("the matrix is not a rotation: its rows deviate from orthonormal by {off:.6}"));
    }
    if determinant < 0.0 {
        return Err("the matrix has determinant −1: it is a reflection, not a rotation".into());
    }
    let trace = m[0] + m[4] + m[8];
    let squares = [m[0], m[4], m[8], trace].map(|d| 1.0 + 2.0 * d - trace);
    let largest = (0..4).max_by(|a, b| squares[*a].total_cmp(&squares[*b])).unwrap_or(3);
    let (a, b, c) = (m[7] - m[5], m[2] - m[6], m[3] - m[1]);
    let (xy, xz, yz) = (m[1] + m[3], m[2] + m[6], m[5] + m[7]);
    let q = [[squares[0], xy, xz, a], [xy, squares[1], yz, b], [xz, yz, squares[2], c], [a, b, c, squares[3]]][largest];
    let length = q.iter().map(|x| x * x).sum::<f64>().sqrt();
    rotation(q.map(|x| x / length), out)?;
    Ok(off)
}

pub fn matrix(q: &[f64]) -> [f64; 9] {
    let (i, j, k, r) = (q[0], q[1], q[2], q[3]);
    [
        1.0 - 2.0 * (j * j + k * k),
        2.0 * (i * j - k * r),
        2.0 * (i * k + j * r),
        2.0 * (i * j + k * r),
        1.0 - 2.0 * (i * i + k * k),
        2.0 * (j * k - i * r),
        2.0 * (i * k - j * r),
        2.0 * (j * k + i * r),
        1.0 - 2.0 * (i * i + j * j),
    ]
}
