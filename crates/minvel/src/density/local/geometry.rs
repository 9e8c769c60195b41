//! One point against a block of centres, lane by lane: normal coordinates, chords, natural statistics.
//!
//! **Statement.** Normal coordinates v of x about each centre, |v|² and |dv/dvol|.
//! On spheres θ/sin θ and on hyperbolic space artanh(r)/r are functions of a square: of t = |x − c|²/4 = sin²(θ/2), and of
//! r² = |(−c) ⊕ x|². Near points take their power series; far ones two halvings of the angle before, or std's artanh.
//! **Source.** docs/math §3.1, §3.5, §3.6. **Conventions.** Frames are those of [`Space::to_normal`].
//! **Error.** Rounding: the series leave out less than 2·10⁻¹⁶. **Checked by** tests/densities/kernel_sums.rs.
#![allow(clippy::needless_range_loop)] // iterators with closures are not inlined everywhere, and then not vectorised

use super::coordinates::END;
use super::lanes::{BLOCK, Lanes, Work, by_eight, columns};
use crate::manifold::{Space, wrap};
use minvel_engine::Loop;
use std::f64::consts::FRAC_PI_2;

/// Normal coordinates of x about the centres of a block.
pub(super) struct Coordinates<'a> {
    pub spaces: &'a [Space],
    pub x: &'a [f64],
    /// `[ambient, BLOCK]`.
    pub centres: &'a [f64],
    pub work: &'a mut Work,
}

impl Loop for Coordinates<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Coordinates { spaces, x, centres, work } = self;
        let centres = columns(centres);
        work.factor = [1.0; BLOCK];
        work.square = [0.0; BLOCK];
        let (mut at, mut from) = (0, 0);
        for space in spaces {
            let (m, n) = (space.ambient(), space.dim());
            let (c, x) = (&centres[at..at + m], &x[at..at + m]);
            let v = &mut work.v[from..from + n];
            match space {
                Space::Euclidean(_) => flat(c, x, v, |d| d),
                Space::Torus(_) => flat(c, x, v, wrap),
                Space::Sphere(n) => {
                    let (scale, end) = sphere(c, x, v, false, 2.0 * FRAC_PI_2);
                    finish(v, &scale, 1.0, *n as i32 - 1, &end, &mut work.factor);
                }
                Space::Projective(n) => {
                    let (scale, end) = sphere(c, x, v, true, FRAC_PI_2);
                    finish(v, &scale, 1.0, *n as i32 - 1, &end, &mut work.factor);
                }
                Space::So3 => {
                    let (scale, end) = sphere(c, x, v, true, FRAC_PI_2);
                    finish(v, &scale, 2.0, 2, &end, &mut work.factor);
                }
                Space::Hyperbolic(n) => hyperbolic(c, x, v, *n as i32 - 1, &mut work.factor),
            }
            for v in work.v[from..from + n].iter() {
                for i in 0..BLOCK {
                    work.square[i] += v[i] * v[i];
                }
            }
            (at, from) = (at + m, from + n);
        }
    }
}

#[inline(always)]
fn flat(c: &[Lanes], x: &[f64], v: &mut [Lanes], f: impl Fn(f64) -> f64) {
    for ((c, x), v) in c.iter().zip(x).zip(v) {
        for i in 0..BLOCK {
            v[i] = f(x - c[i]);
        }
    }
}

/// sin θ times the direction into v; gives θ/sin θ, and 1 where θ is at most [`END`] of the radius, else 0.
#[inline(always)]
fn sphere(c: &[Lanes], x: &[f64], v: &mut [Lanes], two_sided: bool, radius: f64) -> (Lanes, Lanes) {
    let n = v.len();
    let (mut dot, mut t, mut side) = ([0.0; BLOCK], [0.0; BLOCK], [1.0; BLOCK]);
    for (c, x) in c.iter().zip(x) {
        for i in 0..BLOCK {
            dot[i] += c[i] * x;
        }
    }
    if two_sided {
        for i in 0..BLOCK {
            side[i] = if dot[i] < 0.0 { -1.0 } else { 1.0 };
        }
    }
    for (c, x) in c.iter().zip(x) {
        for i in 0..BLOCK {
            let d = side[i] * x - c[i];
            t[i] += 0.25 * d * d;
        }
    }
    let mut along = [0.0; BLOCK];
    for i in 0..BLOCK {
        let sign = if c[n][i] < 0.0 { -1.0 } else { 1.0 };
        along[i] = (dot[i] + sign * x[n]) / (1.0 + sign * c[n][i]);
    }
    for ((c, x), v) in c.iter().zip(x).zip(v) {
        for i in 0..BLOCK {
            v[i] = side[i] * (x - c[i] * along[i]);
        }
    }
    let last = (0.5 * END * radius).sin().powi(2);
    let mut inside = [0.0; BLOCK];
    for i in 0..BLOCK {
        inside[i] = if t[i] <= last { 1.0 } else { 0.0 };
    }
    (stretch(&t, last), inside)
}

/// Squares up to here take the series at once.
const NEAR: f64 = 1.0 / 16.0;

/// θ/sin θ of t = sin²(θ/2), up to `last`.
#[inline(always)]
fn stretch(t: &Lanes, last: f64) -> Lanes {
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
    let mut out = [0.0; BLOCK];
    if t.iter().all(|t| *t < NEAR) {
        for i in 0..BLOCK {
            out[i] = polynomial(&WHOLE, t[i]);
        }
        return out;
    }
    for i in 0..BLOCK {
        let t = if t[i] < last { t[i] } else { last };
        // sin²(θ/4) and sin²(θ/8).
        let a = (1.0 - t).sqrt();
        let half = t / (2.0 * (1.0 + a));
        let b = (1.0 - half).sqrt();
        let quarter = half / (2.0 * (1.0 + b));
        out[i] = 2.0 * polynomial(&ARC, quarter) / (a * ((1.0 + a) * (1.0 + b)).sqrt());
    }
    out
}

#[inline(always)]
fn polynomial<const N: usize>(terms: &[f64; N], x: f64) -> f64 {
    let mut sum = terms[N - 1];
    for k in (0..N - 1).rev() {
        sum = sum * x + terms[k];
    }
    sum
}

/// Coordinates from sines: v·s·`unit`; the factor gains s^`power` inside, and is 0 outside.
#[inline(always)]
fn finish(v: &mut [Lanes], scale: &Lanes, unit: f64, power: i32, inside: &Lanes, factor: &mut Lanes) {
    for v in v.iter_mut() {
        for i in 0..BLOCK {
            v[i] *= unit * scale[i];
        }
    }
    for i in 0..BLOCK {
        factor[i] *= inside[i];
    }
    for _ in 0..power {
        for i in 0..BLOCK {
            factor[i] *= scale[i];
        }
    }
}

/// Coordinates in the ball: v = 2g·u with u = (−c) ⊕ x, g = artanh(r)/r; |dv/dvol| = (g(1 − r²))^`power`.
#[inline(always)]
fn hyperbolic(c: &[Lanes], x: &[f64], v: &mut [Lanes], power: i32, factor: &mut Lanes) {
    const TERMS: [f64; 14] = {
        let (mut terms, mut k) = ([1.0; 14], 1);
        while k < 14 {
            terms[k] = 1.0 / (2 * k + 1) as f64;
            k += 1;
        }
        terms
    };
    let (mut dot, mut c2, mut r2) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
    let x2: f64 = x.iter().map(|x| x * x).sum();
    for (c, x) in c.iter().zip(x) {
        for i in 0..BLOCK {
            dot[i] -= c[i] * x;
            c2[i] += c[i] * c[i];
        }
    }
    for ((c, x), v) in c.iter().zip(x).zip(v.iter_mut()) {
        for i in 0..BLOCK {
            let below = 1.0 + 2.0 * dot[i] + c2[i] * x2;
            v[i] = ((1.0 - c2[i]) * x - (1.0 + 2.0 * dot[i] + x2) * c[i]) / below;
            r2[i] += v[i] * v[i];
        }
    }
    let mut g = [0.0; BLOCK];
    if r2.iter().all(|r2| *r2 < NEAR) {
        for i in 0..BLOCK {
            g[i] = polynomial(&TERMS, r2[i]);
        }
    } else {
        let far = |r2: f64| if r2 > 0.0 { r2.sqrt().atanh() / r2.sqrt() } else { 1.0 };
        for i in 0..BLOCK {
            g[i] = far(r2[i]);
        }
    }
    for v in v.iter_mut() {
        for i in 0..BLOCK {
            v[i] *= 2.0 * g[i];
        }
    }
    for _ in 0..power {
        for i in 0..BLOCK {
            factor[i] *= g[i] * (1.0 - r2[i]);
        }
    }
}

/// −½ Σ (x_j − c_j)² of a point and the centres of a block in embedded coordinates.
pub(super) struct Statistics<'a> {
    pub x: &'a [f64],
    pub centres: &'a [f64],
    pub out: &'a mut Lanes,
}

impl Loop for Statistics<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        *self.out = [0.0; BLOCK];
        add_squares(columns(self.centres), self.x, &[1.0; BLOCK], self.out, |d| d);
        for t in self.out.iter_mut() {
            *t *= -0.5;
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
    /// The least of them.
    type Output = f64;

    /// The same operations as [`Space::chord_squared`], in the same order.
    #[inline(always)]
    fn run(self) -> f64 {
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
        by_eight(out, f64::INFINITY, |a, b| if b < a { b } else { a })
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
