//! Points and centres, lane by lane: normal coordinates, and chords.
//!
//! **Statement.** Normal coordinates v of x about each centre, |v|² and |dv/dvol|.
//! On spheres θ/sin θ and on hyperbolic space artanh(r)/r are functions of a square: of t = |x − c|²/4 = sin²(θ/2), and of
//! r² = |(−c) ⊕ x|². Near points take their power series; far ones two halvings of the angle before, or std's artanh.
//! **Source.** docs/math §3.1, §3.5, §3.6. **Conventions.** Frames are those of [`Space::to_normal`].
//! **Error.** Rounding: the series leave out less than 2·10⁻¹⁶. **Checked by** tests/densities/kernel_sums.rs.
#![allow(clippy::needless_range_loop)] // iterators with closures are not inlined everywhere, and then not vectorised

use super::coordinates::END;
use super::lanes::{BLOCK, Lanes, Work, columns, polynomial, square};
use crate::manifold::{Space, wrap};
use minvel_engine::Loop;
use std::f64::consts::FRAC_PI_2;

/// Normal coordinates of the point in each lane about the centre there.
pub(super) struct Coordinates<'a, const L: usize> {
    pub spaces: &'a [Space],
    pub points: &'a [[f64; L]],
    pub centres: &'a [[f64; L]],
    pub work: &'a mut Work<L>,
}

impl<const L: usize> Loop for Coordinates<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Coordinates { spaces, points, centres, work } = self;
        work.factor = [1.0; L];
        let (mut at, mut from) = (0, 0);
        for space in spaces {
            let (m, n) = (space.ambient(), space.dim());
            let (c, x) = (&centres[at..at + m], &points[at..at + m]);
            place(space, c, x, &mut work.v[from..from + n], &mut work.factor);
            (at, from) = (at + m, from + n);
        }
        work.square = square(&work.v);
    }
}

/// Normal coordinates in one space; the factor gains |dv/dvol|, or is 0 where kernels have ended.
#[inline(always)]
pub(super) fn place<const L: usize>(
    space: &Space,
    c: &[[f64; L]],
    x: &[[f64; L]],
    v: &mut [[f64; L]],
    factor: &mut [f64; L],
) {
    let power = v.len() as i32 - 1;
    match space {
        Space::Euclidean(_) => flat(c, x, v, |d| d),
        Space::Torus(_) => flat(c, x, v, wrap),
        Space::Sphere(_) => {
            let (scale, end) = sphere(c, x, v, false, 2.0 * FRAC_PI_2);
            finish(v, &scale, 1.0, power, &end, factor);
        }
        Space::Projective(_) => {
            let (scale, end) = sphere(c, x, v, true, FRAC_PI_2);
            finish(v, &scale, 1.0, power, &end, factor);
        }
        Space::So3 => {
            let (scale, end) = sphere(c, x, v, true, FRAC_PI_2);
            finish(v, &scale, 2.0, power, &end, factor);
        }
        Space::Hyperbolic(_) => hyperbolic(c, x, v, power, factor),
    }
}

#[inline(always)]
fn flat<const L: usize>(c: &[[f64; L]], x: &[[f64; L]], v: &mut [[f64; L]], f: impl Fn(f64) -> f64) {
    for ((c, x), v) in c.iter().zip(x).zip(v) {
        for l in 0..L {
            v[l] = f(x[l] - c[l]);
        }
    }
}

/// sin θ times the direction into v; gives θ/sin θ, and 1 where θ is at most [`END`] of the radius, else 0.
#[inline(always)]
fn sphere<const L: usize>(
    c: &[[f64; L]],
    x: &[[f64; L]],
    v: &mut [[f64; L]],
    two_sided: bool,
    radius: f64,
) -> ([f64; L], [f64; L]) {
    let n = v.len();
    let (mut dot, mut t, mut side) = ([0.0f64; L], [0.0; L], [1.0f64; L]);
    for (c, x) in c.iter().zip(x) {
        for l in 0..L {
            dot[l] = c[l].mul_add(x[l], dot[l]);
        }
    }
    if two_sided {
        for l in 0..L {
            side[l] = if dot[l] < 0.0 { -1.0 } else { 1.0 };
        }
    }
    for (c, x) in c.iter().zip(x) {
        for l in 0..L {
            let d = side[l].mul_add(x[l], -c[l]);
            t[l] = (0.25 * d).mul_add(d, t[l]);
        }
    }
    let mut along = [0.0; L];
    for l in 0..L {
        let sign: f64 = if c[n][l] < 0.0 { -1.0 } else { 1.0 };
        along[l] = sign.mul_add(x[n][l], dot[l]) / sign.mul_add(c[n][l], 1.0);
    }
    for ((c, x), v) in c.iter().zip(x).zip(v) {
        for l in 0..L {
            v[l] = side[l] * (-c[l]).mul_add(along[l], x[l]);
        }
    }
    let last = (0.5 * END * radius).sin().powi(2);
    let mut inside = [0.0; L];
    for l in 0..L {
        inside[l] = if t[l] <= last { 1.0 } else { 0.0 };
    }
    (stretch(&t, last), inside)
}

/// Squares up to here take a short series, and up to there a longer one.
const NEAREST: f64 = 1.0 / 256.0;
const NEAR: f64 = 1.0 / 16.0;

/// Whether some of the lanes are below an end, and whether some are not.
#[inline(always)]
fn sides<const L: usize>(t: &[f64; L], end: f64) -> (bool, bool) {
    let mut below = 0.0;
    for l in 0..L {
        below += if t[l] < end { 1.0 } else { 0.0 };
    }
    (below > 0.0, below < L as f64)
}

/// θ/sin θ of t = sin²(θ/2), up to `last`. What a lane takes depends on it alone.
#[inline(always)]
fn stretch<const L: usize>(t: &[f64; L], last: f64) -> [f64; L] {
    // asin(√t)/√(t(1−t)) = Σ a_k t^k, a_k = a_{k−1}·2k/(2k+1).
    const WHOLE: [f64; 14] = {
        let (mut terms, mut k) = ([1.0; 14], 1);
        while k < 14 {
            terms[k] = terms[k - 1] * (2 * k) as f64 / (2 * k + 1) as f64;
            k += 1;
        }
        terms
    };
    // asin(√t)/√t = Σ b_k t^k, b_k = b_{k−1}·(2k−1)²/(2k(2k+1)).
    const ARC: [f64; 18] = {
        let (mut terms, mut k) = ([1.0; 18], 1);
        while k < 18 {
            terms[k] = terms[k - 1] * ((2 * k - 1) * (2 * k - 1)) as f64 / (2 * k * (2 * k + 1)) as f64;
            k += 1;
        }
        terms
    };
    let short = WHOLE.first_chunk::<7>().expect("it is longer");
    let (mut out, (some, others)) = ([0.0; L], sides(t, NEAREST));
    if some {
        for l in 0..L {
            out[l] = polynomial(short, t[l]);
        }
    }
    if !others {
        return out;
    }
    for l in 0..L {
        out[l] = if t[l] < NEAREST { out[l] } else { polynomial(&WHOLE, t[l]) };
    }
    if !sides(t, NEAR).1 {
        return out;
    }
    for l in 0..L {
        let near = t[l] < NEAR;
        let t = if t[l] < last { t[l] } else { last };
        // sin²(θ/4) and sin²(θ/8).
        let a = (1.0 - t).sqrt();
        let half = t / (2.0 * (1.0 + a));
        let b = (1.0 - half).sqrt();
        let quarter = half / (2.0 * (1.0 + b));
        let far = 2.0 * polynomial(&ARC, quarter) / (a * ((1.0 + a) * (1.0 + b)).sqrt());
        out[l] = if near { out[l] } else { far };
    }
    out
}

/// Coordinates from sines: v·s·`unit`; the factor gains s^`power` inside, and is 0 outside.
#[inline(always)]
fn finish<const L: usize>(
    v: &mut [[f64; L]],
    scale: &[f64; L],
    unit: f64,
    power: i32,
    inside: &[f64; L],
    factor: &mut [f64; L],
) {
    for v in v.iter_mut() {
        for l in 0..L {
            v[l] *= unit * scale[l];
        }
    }
    for l in 0..L {
        factor[l] *= inside[l];
    }
    for _ in 0..power {
        for l in 0..L {
            factor[l] *= scale[l];
        }
    }
}

/// Coordinates in the ball: v = 2g·u with u = (−c) ⊕ x, g = artanh(r)/r; |dv/dvol| = (g(1 − r²))^`power`.
#[inline(always)]
fn hyperbolic<const L: usize>(c: &[[f64; L]], x: &[[f64; L]], v: &mut [[f64; L]], power: i32, factor: &mut [f64; L]) {
    const TERMS: [f64; 14] = {
        let (mut terms, mut k) = ([1.0; 14], 1);
        while k < 14 {
            terms[k] = 1.0 / (2 * k + 1) as f64;
            k += 1;
        }
        terms
    };
    let (mut dot, mut c2, mut x2, mut r2) = ([0.0; L], [0.0; L], [0.0; L], [0.0; L]);
    for (c, x) in c.iter().zip(x) {
        for l in 0..L {
            dot[l] = (-c[l]).mul_add(x[l], dot[l]);
            c2[l] = c[l].mul_add(c[l], c2[l]);
            x2[l] = x[l].mul_add(x[l], x2[l]);
        }
    }
    for ((c, x), v) in c.iter().zip(x).zip(v.iter_mut()) {
        for l in 0..L {
            let below = c2[l].mul_add(x2[l], 2.0f64.mul_add(dot[l], 1.0));
            let along = 2.0f64.mul_add(dot[l], 1.0) + x2[l];
            v[l] = (1.0 - c2[l]).mul_add(x[l], -along * c[l]) / below;
            r2[l] = v[l].mul_add(v[l], r2[l]);
        }
    }
    let mut g = [0.0; L];
    for l in 0..L {
        g[l] = polynomial(&TERMS, r2[l]);
    }
    if sides(&r2, NEAR).1 {
        for l in 0..L {
            g[l] = if r2[l] < NEAR { g[l] } else { r2[l].sqrt().atanh() / r2[l].sqrt() };
        }
    }
    for v in v.iter_mut() {
        for l in 0..L {
            v[l] *= 2.0 * g[l];
        }
    }
    for _ in 0..power {
        for l in 0..L {
            factor[l] *= g[l] * (1.0 - r2[l]);
        }
    }
}

/// Squares at most those of the distances of x from the centres of a block.
pub(super) struct Chords<'a> {
    pub spaces: &'a [Space],
    pub x: &'a [f64],
    /// `[ambient, BLOCK]`.
    pub centres: &'a [f64],
    pub out: &'a mut Lanes,
}

impl Loop for Chords<'_> {
    type Output = ();

    /// The same operations as [`Space::chord_squared`], in the same order.
    #[inline(always)]
    fn run(self) {
        let Chords { spaces, x, centres, out } = self;
        let centres = columns(centres);
        *out = [0.0; BLOCK];
        let mut at = 0;
        for space in spaces {
            let m = space.ambient();
            let (c, x) = (&centres[at..at + m], &x[at..at + m]);
            at += m;
            let mut sum = [0.0; BLOCK];
            match space {
                Space::Euclidean(_) | Space::Sphere(_) => add_squares(c, x, &[1.0; BLOCK], &mut sum, |d| d),
                Space::Torus(_) => {
                    add_squares(c, x, &[1.0; BLOCK], &mut sum, wrap);
                }
                Space::Projective(_) | Space::So3 => {
                    let (mut dot, mut side) = ([0.0; BLOCK], [1.0; BLOCK]);
                    for (c, x) in c.iter().zip(x) {
                        for i in 0..BLOCK {
                            dot[i] += c[i] * x;
                        }
                    }
                    for i in 0..BLOCK {
                        side[i] = if dot[i] < 0.0 { -1.0 } else { 1.0 };
                    }
                    add_squares(c, x, &side, &mut sum, |d| d);
                    let unit = if *space == Space::So3 { 4.0 } else { 1.0 };
                    for sum in &mut sum {
                        *sum *= unit;
                    }
                }
                Space::Hyperbolic(_) => {
                    let mut row = vec![0.0; m];
                    for i in 0..BLOCK {
                        for (row, c) in row.iter_mut().zip(c) {
                            *row = c[i];
                        }
                        sum[i] = space.chord_squared(&row, x);
                    }
                }
            }
            for i in 0..BLOCK {
                out[i] += sum[i];
            }
        }
    }
}

#[inline(always)]
fn add_squares(c: &[Lanes], x: &[f64], side: &Lanes, sum: &mut Lanes, f: impl Fn(f64) -> f64) {
    for (c, x) in c.iter().zip(x) {
        for i in 0..BLOCK {
            let d = f(side[i] * x - c[i]);
            sum[i] += d * d;
        }
    }
}
