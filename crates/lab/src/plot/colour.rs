//! Colours: one for each method, the same in every figure, and a scale for densities.
//!
//! Methods take the palette of Okabe & Ito (2008), which people with any of the common colour blindnesses can tell apart.
//! The scale for densities runs from dark blue over teal to light yellow along a curve in OKLab (Ottosson 2020): lightness
//! is linear, so that equal differences look equal, also in grey. **Checked by** tests/lab/plot.rs.

use std::sync::LazyLock;

/// Red, green, blue in sRGB.
pub type Rgb = [u8; 3];

/// Okabe & Ito's blue.
pub const BLUE: Rgb = [0x00, 0x72, 0xB2];
/// Okabe & Ito's orange.
pub const ORANGE: Rgb = [0xE6, 0x9F, 0x00];
/// Okabe & Ito's bluish green.
pub const GREEN: Rgb = [0x00, 0x9E, 0x73];
/// Okabe & Ito's vermillion.
pub const VERMILLION: Rgb = [0xD5, 0x5E, 0x00];
/// Okabe & Ito's reddish purple.
pub const PURPLE: Rgb = [0xCC, 0x79, 0xA7];
/// Okabe & Ito's sky blue.
pub const SKY: Rgb = [0x56, 0xB4, 0xE9];
/// A grey that shows on white and on black, for the truth and for limits.
pub const GREY: Rgb = [0x80, 0x80, 0x80];

/// Which method has which colour, in every figure. Methods that never meet in a figure may share one.
pub const METHODS: &[(&str, Rgb)] = &[
    ("mvl", BLUE),
    ("dsm", VERMILLION),
    ("ssm", GREEN),
    ("ssm-vr", SKY),
    ("sm", ORANGE),
    ("cd-1", PURPLE),
    ("mvl-antithetic", SKY),
    ("mvl-rademacher", ORANGE),
    ("mvl-difference", PURPLE),
    ("truth", GREY),
    ("model", BLUE),
    ("data", VERMILLION),
    ("kde", ORANGE),
    ("vmf-mixture", GREEN),
    ("uniform", GREY),
    ("kernels", SKY),
    ("published", PURPLE),
    ("sphere:1", VERMILLION),
    ("sphere:2", BLUE),
    ("torus:2", GREEN),
    ("euclidean:2", ORANGE),
    ("so3", PURPLE),
    ("hyperbolic:2", SKY),
    ("velocity", BLUE),
    ("adversarial", VERMILLION),
    ("discrepancy", GREEN),
    ("explicit-euclidean", ORANGE),
    ("explicit-sphere", VERMILLION),
    ("implicit-euclidean", SKY),
    ("implicit-sphere", BLUE),
];

/// The colour of a method; grey for one that has none.
pub fn of_method(method: &str) -> Rgb {
    METHODS.iter().find(|(name, _)| *name == method).map_or(GREY, |(_, colour)| *colour)
}

/// Colours of the scale that are told apart: more than there are in it.
const STEPS: usize = 4096;

/// The colour of a share t ∈ [0, 1] of the scale.
pub fn sequential(t: f64) -> Rgb {
    static SCALE: LazyLock<Vec<Rgb>> =
        LazyLock::new(|| (0..STEPS).map(|k| to_rgb(scale_point(k as f64 / (STEPS - 1) as f64))).collect());
    SCALE[(t.clamp(0.0, 1.0) * (STEPS - 1) as f64).round() as usize]
}

/// The scale in OKLab: L from 0.26 to 0.94; (a, b) from blue to yellow, bent towards green between.
pub fn scale_point(t: f64) -> [f64; 3] {
    let between = |from: f64, to: f64| from + (to - from) * t;
    let bend = 4.0 * t * (1.0 - t);
    [between(0.26, 0.94), between(-0.005, -0.035) - 0.055 * bend, between(-0.105, 0.13) - 0.01 * bend]
}

/// OKLab to sRGB (Ottosson 2020), cut off at the borders of what a screen shows.
fn to_rgb([l, a, b]: [f64; 3]) -> Rgb {
    linear_rgb([l, a, b]).map(|x| {
        let x = x.clamp(0.0, 1.0);
        let encoded = if x <= 0.003_130_8 { 12.92 * x } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
        (255.0 * encoded).round() as u8
    })
}

/// OKLab to linear light; outside [0, 1] where no screen shows it.
pub fn linear_rgb([l, a, b]: [f64; 3]) -> [f64; 3] {
    let cone = |x: f64, y: f64| (l + x * a + y * b).powi(3);
    let long = cone(0.396_337_777_4, 0.215_803_757_3);
    let medium = cone(-0.105_561_345_8, -0.063_854_172_8);
    let short = cone(-0.089_484_177_5, -1.291_485_548_0);
    [
        4.076_741_662_1 * long - 3.307_711_591_3 * medium + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * medium - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * medium + 1.707_614_701_0 * short,
    ]
}
