//! The paper's mixtures on S¹ and S².
//!
//! **Statement.** Mixtures of von Mises–Fisher laws; their constants stand beside each. **Source.** docs/math §4.4, §4.5,
//! P16.
//! **Conventions.** Unit vectors; mean directions are brought to length 1. **Error.** Constants are right in all
//! digits.
//! **Checked by** tests/theory/energy_facts.rs (F41, §4.4, §4.5, by quadrature).

use super::super::VonMisesFisher;

/// The data of the S¹ experiment as the paper's code has them: 0.7 at angle π/2 with κ = 2, 0.3 at −π/4 with κ = 3.
/// I(p) = 1.0191606316, entropy 1.6173283757, largest density 0.3622967824 at 1.56731, smallest 0.0210306926 at
/// −2.45880.
pub fn circle() -> VonMisesFisher {
    VonMisesFisher::mixture(&[(0.7, &[0.0, 1.0], 2.0), (0.3, &[1.0, -1.0], 3.0)])
}

/// The same with the concentrations of the paper's text, 1/σ² for σ = 2 and 3. I(p) = 0.0116735490, entropy
/// 1.8320878295.
pub fn circle_as_printed() -> VonMisesFisher {
    VonMisesFisher::mixture(&[(0.7, &[0.0, 1.0], 1.0 / 4.0), (0.3, &[1.0, -1.0], 1.0 / 9.0)])
}

/// The data of the S² experiment: four components drawn once, in single precision. I(p) = 5.1608760661, entropy
/// 1.9446549389 (of normalised weights: as drawn they add up to 1 + 2⁻²⁷).
pub fn sphere() -> VonMisesFisher {
    let components: [(f32, [f32; 3], f32); 4] = [
        (0.075_077_586, [0.650_842, 0.025_188_213, -0.758_795_26], 5.567_13),
        (0.071_867_99, [0.600_326_36, 0.444_040_78, -0.665_158_6], 7.095_921_5),
        (0.537_024_7, [-0.206_208_68, -0.638_158_8, -0.741_775_8], 6.612_265),
        (0.316_029_76, [0.920_022, -0.180_374_34, 0.347_885_9], 2.146_630_3),
    ];
    let means = components.map(|(_, mean, _)| mean.map(f64::from));
    let component = |k: usize| (f64::from(components[k].0), &means[k][..], f64::from(components[k].2));
    VonMisesFisher::mixture(&[component(0), component(1), component(2), component(3)])
}
