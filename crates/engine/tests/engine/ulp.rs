//! Accuracy of `math::Real` for f32, in units in the last place of the f64 result, over every exponent and both signs;
//! and the promise that the portable, AVX2 and AVX-512 loops give the same bits.
#![allow(unsafe_code)] // loops compiled for instruction sets found at run time

use minvel_engine::math::Real;

/// Stratified mantissas per exponent: one in each of this many equal cells, jittered.
const CELLS: u32 = 1 << 11;

/// Every exponent (subnormals, infinities and NaNs included), both signs.
fn sweep() -> Vec<f32> {
    let cell = (1 << 23) / CELLS;
    let jitter = |i: u32| (i.wrapping_mul(0x9E37_79B9) >> 7) % cell;
    let binade = |h: u32| (0..CELLS).map(move |i| f32::from_bits((h << 23) + i * cell + jitter(h * CELLS + i)));
    let around_powers = (0..512u32).flat_map(|h| [0, 1, 0x7f_ffff].map(|m| f32::from_bits((h << 23) | m)));
    (0..512).flat_map(binade).chain(around_powers).collect()
}

/// |got − want| in units of the last place of `want` as an f32; overflow and NaN must agree.
fn ulps(got: f32, want: f64) -> f64 {
    let limit = 2f64.powi(128);
    let (got, want) = (f64::from(got).clamp(-limit, limit), want.clamp(-limit, limit));
    if got == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    let exponent = if want.abs() < f64::from(f32::MIN_POSITIVE) { -126 } else { want.abs().log2().floor() as i32 };
    let error = (got - want).abs() / 2f64.powi(exponent.min(127) - 23);
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The loop the engine's kernels are made of; which instructions it becomes is up to the caller's features.
#[inline(always)]
fn map(f: impl Fn(f32, f32) -> f32, a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn map_avx2(f: impl Fn(f32, f32) -> f32, a: &[f32], b: &[f32]) -> Vec<f32> {
    map(f, a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
fn map_avx512(f: impl Fn(f32, f32) -> f32, a: &[f32], b: &[f32]) -> Vec<f32> {
    map(f, a, b)
}

/// One value per instruction set this machine has, portable first.
fn on_every_isa(f: impl Fn(f32, f32) -> f32 + Copy, a: &[f32], b: &[f32]) -> Vec<(&'static str, Vec<f32>)> {
    let mut runs = vec![("portable", map(f, a, b))];
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx2") && has!("fma") {
            // SAFETY: both features were just detected.
            runs.push(("avx2", unsafe { map_avx2(f, a, b) }));
        }
        if has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw") && has!("fma") {
            // SAFETY: all features were just detected (AVX-512F implies AVX2).
            runs.push(("avx512", unsafe { map_avx512(f, a, b) }));
        }
    }
    runs
}

/// NaNs carry no promise about their payload, so they all count as one.
fn bits(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}

/// Asserts equal bits on every instruction set and an error of at most `bound`; prints a row of the table.
fn check(
    name: &str,
    bound: f64,
    f: impl Fn(f32, f32) -> f32 + Copy,
    exact: impl Fn(f64, f64) -> f64,
    a: &[f32],
    b: &[f32],
) {
    let runs = on_every_isa(f, a, b);
    let portable = &runs[0].1;
    for (isa, values) in &runs[1..] {
        let differ = (0..a.len()).find(|&i| bits(values[i]) != bits(portable[i]));
        assert_eq!(differ.map(|i| (a[i], b[i], values[i], portable[i])), None, "{name}: {isa} and portable disagree");
    }
    let errors = (0..a.len()).map(|i| (ulps(portable[i], exact(a[i].into(), b[i].into())), i));
    let (worst, i) = errors.fold((0.0, 0), |w, e| if e.0 > w.0 { e } else { w });
    println!("{name:14} {worst:6.3} ulp (bound {bound}) at {:e}, {:e}; {} isas", a[i], b[i], runs.len());
    assert!(worst <= bound, "{name}({:e}, {:e}) = {:e} is {worst:.3} ulp off", a[i], b[i], portable[i]);
}

macro_rules! check_unary {
    ($xs:expr, $($name:ident <= $bound:literal),*) => {
        $(check(stringify!($name), $bound, |x, _| Real::$name(x), |x, _| Real::$name(x), $xs, $xs);)*
    };
}

#[test]
fn every_function_of_one_argument_is_within_its_bound_and_equal_on_every_isa() {
    let xs = sweep();
    check_unary!(&xs, vexp <= 1.0, vexp_m1 <= 2.0, vln <= 1.0, vln_1p <= 2.0, vtanh <= 3.5, sigmoid <= 2.5);
    check_unary!(&xs, softplus <= 2.0, vsin <= 2.5, vcos <= 2.5, rsqrt <= 1.5);
    check_unary!(&xs, recip <= 0.5, sqrt <= 0.5, floor <= 0.0, abs <= 0.0, sign <= 0.0);
}

#[test]
fn the_sine_and_cosine_of_a_turn_are_within_their_bound() {
    let us: Vec<f32> = sweep().into_iter().filter(|u| (0.0..=1.0).contains(u)).collect();
    check("sin_turn", 2.0, |u, _| u.sin_cos_turn().0, |u, _| u.sin_cos_turn().0, &us, &us);
    check("cos_turn", 2.0, |u, _| u.sin_cos_turn().1, |u, _| u.sin_cos_turn().1, &us, &us);
}

#[test]
fn the_angle_is_within_its_bound_for_any_pair_of_exponents_and_for_nearby_ones() {
    let ys = sweep();
    // a stride coprime to the length visits every pairing of exponents; the second partner differs by a few binades
    let far: Vec<f32> = (0..ys.len()).map(|i| ys[(i * 524_287 + 11) % ys.len()]).collect();
    let near: Vec<f32> =
        ys.iter().zip(&far).map(|(y, x)| y * (0.02 + 40.0 * (x.to_bits() as f32 / 4.3e9).powi(4))).collect();
    let left: Vec<f32> = near.iter().map(|x| -x).collect();
    for (name, xs) in [("vatan2 far", &far), ("vatan2 near", &near), ("vatan2 left", &left)] {
        check(name, 2.0, |y, x| y.vatan2(x), |y, x| y.vatan2(x), &ys, xs);
    }
}

#[test]
fn a_wrong_last_digit_is_noticed() {
    // the twin that must fail: the same measure sees a relative error of 3·2⁻²³ as more than 2 ulp
    let worst = sweep().into_iter().map(|x| ulps(x.vexp() * (1.0 + 3.0 * f32::EPSILON), f64::from(x).exp()));
    assert!(worst.fold(0.0, f64::max) > 2.0);
}

#[test]
fn special_values_are_exact() {
    const INF: f32 = f32::INFINITY;
    let pi = std::f32::consts::PI;
    #[rustfmt::skip]
    let cases = [
        ("exp 0", 0f32.vexp(), 1.0), ("exp -0", (-0f32).vexp(), 1.0), ("exp inf", INF.vexp(), INF),
        ("exp -inf", (-INF).vexp(), 0.0), ("exp 89", 89f32.vexp(), INF), ("exp -104", (-104f32).vexp(), 0.0),
        ("exp -103.9", (-103.9f32).vexp(), f32::from_bits(1)),
        ("expm1 -0", (-0f32).vexp_m1(), -0.0), ("expm1 -inf", (-INF).vexp_m1(), -1.0), ("expm1 inf", INF.vexp_m1(), INF),
        ("ln 0", 0f32.vln(), -INF), ("ln -0", (-0f32).vln(), -INF), ("ln 1", 1f32.vln(), 0.0), ("ln inf", INF.vln(), INF),
        ("ln -1", (-1f32).vln(), f32::NAN), ("ln -inf", (-INF).vln(), f32::NAN),
        ("ln1p -0", (-0f32).vln_1p(), -0.0), ("ln1p -1", (-1f32).vln_1p(), -INF), ("ln1p inf", INF.vln_1p(), INF),
        ("ln1p -2", (-2f32).vln_1p(), f32::NAN),
        ("tanh 0", 0f32.vtanh(), 0.0), ("tanh -0", (-0f32).vtanh(), -0.0), ("tanh inf", INF.vtanh(), 1.0),
        ("tanh -inf", (-INF).vtanh(), -1.0), ("tanh 8.4", 8.4f32.vtanh(), 1.0), ("tanh -1e30", (-1e30f32).vtanh(), -1.0),
        ("tanh tiny", f32::from_bits(3).vtanh(), f32::from_bits(3)),
        ("sigmoid 0", 0f32.sigmoid(), 0.5), ("sigmoid inf", INF.sigmoid(), 1.0), ("sigmoid -inf", (-INF).sigmoid(), 0.0),
        ("softplus inf", INF.softplus(), INF), ("softplus -inf", (-INF).softplus(), 0.0),
        ("sin -0", (-0f32).vsin(), -0.0), ("sin inf", INF.vsin(), f32::NAN), ("cos -inf", (-INF).vcos(), f32::NAN),
        ("cos 0", 0f32.vcos(), 1.0), ("sin ½ turn", 0.5f32.sin_cos_turn().0.abs(), 0.0),
        ("cos ½ turn", 0.5f32.sin_cos_turn().1, -1.0), ("sin 1 turn", 1f32.sin_cos_turn().0, 0.0),
        ("atan2 0 0", 0f32.vatan2(0.0), 0.0), ("atan2 0 -0", 0f32.vatan2(-0.0), pi), ("atan2 -0 -0", (-0f32).vatan2(-0.0), -pi),
        ("atan2 -0 1", (-0f32).vatan2(1.0), -0.0), ("atan2 inf inf", INF.vatan2(INF), pi / 4.0),
        ("atan2 1 inf", 1f32.vatan2(INF), 0.0), ("atan2 -1 -inf", (-1f32).vatan2(-INF), -pi), ("atan2 1 0", 1f32.vatan2(0.0), pi / 2.0),
        ("sign -3", (-3f32).sign(), -1.0), ("sign 0", 0f32.sign(), 0.0), ("sign 3", 3f32.sign(), 1.0),
        ("rsqrt 0", 0f32.rsqrt(), INF), ("rsqrt inf", INF.rsqrt(), 0.0), ("rsqrt -1", (-1f32).rsqrt(), f32::NAN),
        ("min", 1f32.vmin(2.0), 1.0), ("max", 1f32.vmax(2.0), 2.0),
    ];
    for (what, got, want) in cases {
        assert_eq!(bits(got), bits(want), "{what}: {got:e}, not {want:e}");
    }
}

#[test]
fn nan_in_is_nan_out() {
    fn all<T: Real>(x: T, one: T) -> Vec<T> {
        let (s, c) = x.sin_cos_turn();
        #[rustfmt::skip]
        let values = vec![
            x.vexp(), x.vexp_m1(), x.vln(), x.vln_1p(), x.vtanh(), x.sigmoid(), x.softplus(), x.vsin(), x.vcos(), s, c,
            x.sqrt(), x.rsqrt(), x.recip(), x.abs(), x.floor(), x.sign(), x.mul_add(one, one), x.vatan2(one),
            one.vatan2(x), x.vatan2(T::ZERO), x.vmin(one), one.vmin(x), x.vmax(one), one.vmax(x),
        ];
        values
    }
    assert_eq!(all(f32::NAN, 1.0).iter().position(|y| !y.is_nan()), None);
    assert_eq!(all(-f32::NAN, 1.0).iter().position(|y| !y.is_nan()), None);
    assert_eq!(all(f64::NAN, 1.0).iter().position(|y| !y.is_nan()), None);
}

#[test]
fn tanh_is_odd_and_never_leaves_the_unit_interval() {
    for x in sweep() {
        let y = x.vtanh();
        assert_eq!(bits(-y), bits((-x).vtanh()), "at {x:e}");
        assert!(y.is_nan() || y.abs() <= 1.0, "tanh({x:e}) = {y:e}");
    }
}
