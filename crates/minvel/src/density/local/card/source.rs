//! The kernel for some spaces, as source.

use super::layout::{BOUNDS, HEAD, NUMBERS, WORDS};
use crate::density::local::coordinates::END;
use crate::density::local::index::GROUP;
use crate::manifold::Space;
use std::f64::consts::{FRAC_PI_2, PI};

/// Whether a reciprocal is kept with each centre for this space.
pub(super) fn is_round(space: &Space) -> bool {
    matches!(space, Space::Sphere(_) | Space::Projective(_) | Space::So3)
}

/// Sums over kernels on a product of spaces: of each of some families, or of all together where there are none.
pub(super) fn source(spaces: &[Space], families: usize) -> String {
    let m: usize = spaces.iter().map(|s| s.ambient()).sum();
    let n: usize = spaces.iter().map(|s| s.dim()).sum();
    let width = m + spaces.iter().filter(|space| is_round(space)).count();
    let sizes = [
        ("M", m),
        ("N", n),
        ("WIDTH", width),
        ("FAMILIES", families),
        ("BOUNDS", BOUNDS),
        ("GROUP", GROUP),
        ("HEAD", HEAD),
        ("WORDS", WORDS),
        ("NUMBERS", NUMBERS),
    ];
    let sizes: String = sizes.iter().map(|(name, value)| format!("constexpr int {name} = {value};\n")).collect();
    sizes + include_str!("geometry.cu") + &of_spaces(spaces, m) + include_str!("sums.cu")
}

/// The functions that are made of the spaces.
fn of_spaces(spaces: &[Space], m: usize) -> String {
    let (mut place, mut chord, mut statistic, mut weighed) = (String::new(), vec![], vec![], vec![]);
    let (mut at, mut from, mut extra) = (0, 0, m);
    for (k, space) in spaces.iter().enumerate() {
        let (own, n) = (space.ambient(), space.dim());
        let round = |sides: bool, unit: usize, radius: f64| {
            let last = (0.5 * END * radius).sin().powi(2);
            format!("place_sphere<{at}, {from}, {n}, {sides}, {unit}>(c, x, v, factor, c[32 * {extra}], {last:e});")
        };
        let (placed, kind, unit) = match space {
            Space::Euclidean(_) => (format!("place_flat<{at}, {from}, {n}>(c, x, v);"), "flat", ""),
            Space::Torus(_) => (format!("place_torus<{at}, {from}, {n}>(c, x, v);"), "torus", ""),
            Space::Sphere(_) => (round(false, 1, PI), "flat", ""),
            Space::Projective(_) => (round(true, 1, FRAC_PI_2), "sides", ""),
            Space::So3 => (round(true, 2, FRAC_PI_2), "sides", "4.0 * "),
            Space::Hyperbolic(_) => (format!("place_ball<{at}, {from}, {n}>(c, x, v, factor);"), "ball", ""),
        };
        place += &placed;
        chord.push(format!("{unit}chord_{kind}<{at}, {own}>(c, step, x)"));
        let mut bump = |call: String, direction: usize| {
            statistic.push(format!("scales[{k}] * {call}"));
            weighed.push(format!("kappas[32 * {direction}] * scales[{k}] * {call}"));
        };
        match space {
            Space::Torus(_) => (0..own).for_each(|j| bump(format!("bump_angle<{}>(c, x)", at + j), from + j)),
            _ => bump(format!("bump_{kind}<{at}, {own}>(c, x)"), from),
        }
        (at, from, extra) = (at + own, from + n, extra + usize::from(is_round(space)));
    }
    format!(
        "FN void place(const double* c, const double (&x)[M], double (&v)[N], double& factor) {{ {place} }}\n\
         FN double chord(const double* c, u64 step, const double (&x)[M]) {{ return {}; }}\n\
         FN double statistic(const double* c, const double (&x)[M], const double* scales) {{ return {}; }}\n\
         FN double weighed(const double* c, const double (&x)[M], const double* scales, const double* kappas) {{ return {}; }}\n",
        chord.join(" + "),
        statistic.join(" + "),
        weighed.join(" + ")
    )
}
