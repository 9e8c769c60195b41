//! The random numbers are Philox's, have the distributions they are named after, and depend on nothing but their place.
//!
//! Every statistic is standardised by its own standard error and printed; seeds are fixed; each has a twin that must fail.

use crate::tiles;

use Draw::*;
use minvel_engine::math::Real;
use minvel_engine::random::*;
use tiles::{DRAWS, tiles_are_their_elements};

/// A right generator exceeds this once in 30 000 statistics.
const SIGMAS: f64 = 4.0;
/// One sample of a million, as rows × features.
const ROWS: u32 = 1 << 14;
const FEATURES: u32 = 64;

fn site(replica: u32, stream: u32, step: u32) -> Site {
    Site { key: Key::new(2026, replica), stream, step, rows: ROWS }
}

/// The whole sample of a site, feature by feature.
fn sample<T: Real>(draw: Draw, site: &Site) -> Vec<f64> {
    let mut out = vec![T::ZERO; (ROWS * FEATURES) as usize];
    fill_rows(draw, site, 0..ROWS, 0..FEATURES, &mut out, ROWS as usize);
    out.into_iter().map(T::to_f64).collect()
}

/// z-score of the mean of numbers whose expectation and variance are known.
fn z_of_mean(x: impl ExactSizeIterator<Item = f64>, mean: f64, variance: f64) -> f64 {
    let n = x.len() as f64;
    (x.sum::<f64>() / n - mean) / (variance / n).sqrt()
}

/// z-score of Pearson's χ² of counts against equal probabilities (Wilson & Hilferty 1931).
fn z_of_counts(counts: &[u32]) -> f64 {
    let (cells, n) = (counts.len() as f64, counts.iter().sum::<u32>() as f64);
    let chi2: f64 = counts.iter().map(|&k| (k as f64 - n / cells).powi(2) / (n / cells)).sum();
    let (free, width) = (cells - 1.0, 2.0 / (9.0 * (cells - 1.0)));
    ((chi2 / free).cbrt() - (1.0 - width)) / width.sqrt()
}

/// √n · sup |F_n − F|, the statistic of Kolmogorov and Smirnov.
fn kolmogorov(mut x: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    x.sort_by(f64::total_cmp);
    let n = x.len() as f64;
    let gap = |(i, &x): (usize, &f64)| (cdf(x) - i as f64 / n).max((i + 1) as f64 / n - cdf(x));
    n.sqrt() * x.iter().enumerate().map(gap).fold(0.0, f64::max)
}

/// The K with P(√n D > K) ≈ 2 exp(−2K²) = P(|z| > SIGMAS).
fn kolmogorov_limit() -> f64 {
    let tail = 2.0 * normal_cdf(-SIGMAS);
    ((2.0 / tail).ln() / 2.0).sqrt()
}

/// Φ(x) = ½ + φ(x)(x + x³/3 + x⁵/(3·5) + …), Marsaglia 2004.
fn normal_cdf(x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (x, x, 1.0);
    while term.abs() > f64::EPSILON * sum.abs() {
        k += 2.0;
        term *= x * x / k;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

#[test]
fn philox_gives_the_known_answers_of_random123() {
    let answer = |c: [u32; 4], k: [u32; 2], x: [u32; 4]| assert_eq!(philox(c, k), x);
    answer([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    answer([!0; 4], [!0; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
    answer(
        [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
        [0xa4093822, 0x299f31d0],
        [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    );
}

#[test]
fn moments_up_to_the_fourth_are_right() {
    // E x^k for k = 1..8: the k-th moment's standard error needs the 2k-th
    let centred_uniform = [0.0, 1.0 / 12.0, 0.0, 1.0 / 80.0, 0.0, 1.0 / 448.0, 0.0, 1.0 / 2304.0];
    let normal = [0.0, 1.0, 0.0, 3.0, 0.0, 15.0, 0.0, 105.0];
    for (draw, centre, moments) in [(Uniform, 0.5, centred_uniform), (Normal, 0.0, normal)] {
        let x = sample::<f64>(draw, &site(0, 1, 0));
        for k in 1..=4 {
            let (mean, square) = (moments[k - 1], moments[2 * k - 1]);
            let z = |scale: f64, shift: f64| {
                let powers = x.iter().map(|x| (scale * (x - centre) + shift).powi(k as i32));
                z_of_mean(powers, mean, square - mean * mean)
            };
            let (right, twin) = (z(1.0, 0.0), z(1.02, 0.01));
            println!("{draw:?}: moment {k} has z = {right:.2}, twin {twin:.2}");
            assert!(right.abs() < SIGMAS);
            assert!(twin.abs() > SIGMAS, "the twin, 2 % wider and shifted by 0.01, passes");
        }
    }
}

#[test]
fn signs_and_integers_are_equally_likely() {
    for (draw, cells) in [(Rademacher, 2), (Integer(10), 10), (Integer(1000), 1000)] {
        let (mut counts, mut twin) = (vec![0; cells], vec![0; cells]);
        for (i, x) in sample::<f32>(draw, &site(0, 2, 0)).into_iter().enumerate() {
            let cell = if draw == Rademacher { (x + 1.0) / 2.0 } else { x } as usize;
            counts[cell] += 1;
            twin[if i % 50 == 0 { 0 } else { cell }] += 1;
        }
        println!("{draw:?}: z = {:.2}, twin {:.2}", z_of_counts(&counts), z_of_counts(&twin));
        assert!(z_of_counts(&counts).abs() < SIGMAS);
        assert!(z_of_counts(&twin) > SIGMAS, "the twin that repeats a value 2 % of the time passes");
    }
}

#[test]
fn uniforms_and_normals_pass_kolmogorov_and_smirnov() {
    let limit = kolmogorov_limit();
    let check = |name: &str, x: Vec<f64>, cdf: fn(f64) -> f64| {
        let twin = kolmogorov(x.iter().map(|x| 1.02 * x).collect(), cdf);
        let statistic = kolmogorov(x, cdf);
        println!("{name}: √n D = {statistic:.2}, twin {twin:.2}, limit {limit:.2}");
        assert!(statistic < limit && twin > limit);
    };
    check("uniform f64", sample::<f64>(Uniform, &site(0, 3, 0)), |u| u.min(1.0));
    check("uniform f32", sample::<f32>(Uniform, &site(0, 3, 1)), |u| u.min(1.0));
    check("normal f64", sample::<f64>(Normal, &site(0, 3, 2)), normal_cdf);
    check("normal f32", sample::<f32>(Normal, &site(0, 3, 3)), normal_cdf);
}

#[test]
fn replicas_streams_steps_rows_and_features_are_independent() {
    let x = sample::<f64>(Normal, &site(0, 4, 0));
    let rolled = |by: u32| {
        let mut y = x.clone();
        y.rotate_left(by as usize);
        y
    };
    for (name, y) in [
        ("replica 1", sample::<f64>(Normal, &site(1, 4, 0))),
        ("stream 5", sample::<f64>(Normal, &site(0, 5, 0))),
        ("step 1", sample::<f64>(Normal, &site(0, 4, 1))),
        ("the next row", rolled(1)),
        ("the next feature", rolled(ROWS)),
        ("the next block", rolled(4 * ROWS)),
    ] {
        let z = |leak: f64| {
            let pairs = || x.iter().zip(&y).map(|(&x, &y)| (x, (y + leak * x) / (1.0 + leak * leak).sqrt()));
            // squares too: the two normals of a pair share their radius
            let squares = pairs().map(|(x, y)| (x * x - 1.0) * (y * y - 1.0));
            (z_of_mean(pairs().map(|(x, y)| x * y), 0.0, 1.0), z_of_mean(squares, 0.0, 4.0))
        };
        let ((z1, z2), (twin, _)) = (z(0.0), z(0.02));
        println!("{name}: correlation z = {z1:.2}, of squares {z2:.2}, twin {twin:.2}");
        assert!(z1.abs() < SIGMAS && z2.abs() < SIGMAS && twin > SIGMAS);
    }
}

#[test]
fn a_stream_may_mix_its_distributions() {
    let mut stream = Stream::new(Key::new(7, 0), 0);
    let pairs: Vec<_> = (0..100_000).map(|_| (stream.uniform(), stream.normal())).collect();
    let z = |normal: fn(f64, f64) -> f64| {
        z_of_mean(pairs.iter().map(|&(u, x)| (u - 0.5) * (normal(u, x).powi(2) - 1.0)), 0.0, 2.0 / 12.0)
    };
    // the twin's normal takes its radius from the word of the uniform before it, and an angle of its own
    let twin = |u: f64, x| (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * normal_cdf(x)).cos();
    let (right, twin) = (z(|_, x| x), z(twin));
    println!("uniform then normal: z = {right:.2}, twin {twin:.2}");
    assert!(right.abs() < SIGMAS && twin.abs() > SIGMAS);
    let x = Stream::new(Key::new(7, 0), 0).samples(Uniform).nth(2);
    assert_eq!(x, Some(pairs[1].0), "a stream is pure");
}

fn is_permutation(x: &[f64]) -> bool {
    let mut seen = vec![false; x.len()];
    x.iter().all(|&x| x.fract() == 0.0 && seen.get_mut(x as usize).is_some_and(|seen| !std::mem::replace(seen, true)))
}

#[test]
fn permutations_are_bijections() {
    for n in (1..300).chain([1 << 12, (1 << 16) - 1, (1 << 16) + 1, 1_000_003]) {
        let mut out = vec![0.0; n];
        fill_flat(Permutation(n as u32), &site(0, 6, 0), &mut out);
        assert!(is_permutation(&out), "n = {n}");
    }
    let n = 1u32 << 31;
    let far: f64 = element_as(Permutation(n), &Site { rows: n, ..site(0, 6, 0) }, n - 1, 0);
    assert!(far < n as f64, "the largest domain is walked");
}

#[test]
fn each_feature_permutes_the_rows_and_longer_values_repeat_independently() {
    let site = Site { rows: 50, ..site(0, 7, 0) };
    let mut out = vec![0f32; 50 * 3];
    fill_rows(Permutation(50), &site, 0..50, 0..3, &mut out, 50);
    let columns: Vec<Vec<f64>> = out.chunks(50).map(|column| column.iter().map(|&x| x.into()).collect()).collect();
    assert!(columns.iter().all(|column| is_permutation(column)));
    assert!(columns[0] != columns[1] && columns[1] != columns[2]);
    let mut flat = vec![0f32; 50 * 3];
    fill_flat(Permutation(50), &site, &mut flat);
    assert_eq!(flat, out, "a flat value lays the same permutations end to end");
}

#[test]
fn all_orders_of_few_items_are_equally_likely() {
    for n in [3u32, 4, 5] {
        let orders: u32 = (1..=n).product();
        let (mut counts, mut twin) = (vec![0; orders as usize], vec![0; orders as usize]);
        let mut out = vec![0f64; n as usize];
        for step in 0..400 * orders {
            fill_flat(Permutation(n), &site(0, 8, step), &mut out);
            // Lehmer code: for each item, how many later ones are smaller
            let rank = (0..out.len())
                .fold(0, |rank, i| rank * (out.len() - i) + out[i..].iter().filter(|&&later| later < out[i]).count());
            counts[rank] += 1;
            twin[if step % 2 == 0 { 0 } else { rank }] += 1;
        }
        println!("n = {n}: z = {:.2}, twin {:.2}", z_of_counts(&counts), z_of_counts(&twin));
        assert!(z_of_counts(&counts).abs() < SIGMAS);
        assert!(z_of_counts(&twin) > SIGMAS, "the twin that is the identity half the time passes");
    }
}

#[test]
fn every_item_goes_everywhere_equally_often() {
    let n = 40u32;
    let (mut counts, mut twin) = (vec![0; (n * n) as usize], vec![0; (n * n) as usize]);
    for step in 0..10_000 {
        let mut out = vec![0f64; n as usize];
        fill_flat(Permutation(n), &site(0, 9, step), &mut out);
        for (i, &x) in out.iter().enumerate() {
            counts[i * n as usize + x as usize] += 1;
            twin[i * n as usize + if step % 20 == 0 { i } else { x as usize }] += 1;
        }
    }
    // rows and columns sum to constants: (n − 1)² degrees of freedom, and each cell has variance N/(n − 1)
    let z = |counts: &[u32]| {
        let expected = 10_000.0 / n as f64;
        let (free, scale) = ((n as f64 - 1.0).powi(2), (n as f64 - 1.0) / n as f64);
        let chi2: f64 = counts.iter().map(|&k| scale * (k as f64 - expected).powi(2) / expected).sum();
        (chi2 - free) / (2.0 * free).sqrt()
    };
    println!("places: z = {:.2}, twin {:.2}", z(&counts), z(&twin));
    assert!(z(&counts).abs() < SIGMAS && z(&twin) > SIGMAS);
}

#[test]
fn an_epoch_visits_each_item_once_across_steps() {
    for (n, batch) in [(10u32, 4u32), (7, 7), (3, 8), (1000, 64), (1, 5)] {
        let epochs = 2 * batch;
        let mut visited = vec![];
        for step in 0..epochs * n / batch {
            let mut out = vec![0f64; 2 * batch as usize];
            fill_rows(Epoch(n), &Site { rows: batch, ..site(0, 10, step) }, 0..batch, 0..2, &mut out, batch as usize);
            visited.extend_from_slice(&out[..batch as usize]);
            assert!(n < 100 || out[..batch as usize] != out[batch as usize..], "features are independent");
        }
        let epochs: Vec<_> = visited.chunks_exact(n as usize).collect();
        assert!(epochs.iter().all(|epoch| is_permutation(epoch)), "n = {n}, batch {batch}");
        assert!(n < 100 || epochs.windows(2).all(|two| two[0] != two[1]), "epochs differ");
    }
}

#[test]
fn tiles_of_any_shape_are_their_elements() {
    tiles_are_their_elements::<f64>(|draw, site, [a, b, c, d], out, stride| {
        fill_rows(draw, site, a..b, c..d, out, stride)
    });
    tiles_are_their_elements::<f32>(|draw, site, [a, b, c, d], out, stride| {
        fill_rows(draw, site, a..b, c..d, out, stride)
    });
}

#[test]
fn a_flat_value_is_the_one_row_of_many_features() {
    let site = Site { rows: 1, ..site(0, 12, 3) };
    for draw in DRAWS {
        for length in [0, 1, 63, 64, 65, 200] {
            let mut out = vec![0f32; length];
            fill_flat(draw, &site, &mut out);
            for (i, &x) in out.iter().enumerate() {
                assert_eq!(x, element_as(draw, &site, 0, i as u32), "{draw:?}, element {i} of {length}");
            }
        }
    }
}

#[test]
fn single_precision_sees_the_same_noise() {
    let site = site(0, 13, 0);
    assert_eq!(sample::<f32>(Uniform, &site), sample::<f64>(Uniform, &site));
    let (single, double) = (sample::<f32>(Normal, &site), sample::<f64>(Normal, &site));
    let pairs = double.chunks(2 * ROWS as usize).zip(single.chunks(2 * ROWS as usize));
    let mut worst = 0f64;
    for (double, single) in pairs {
        let ((cos, sin), (cos32, sin32)) = (double.split_at(ROWS as usize), single.split_at(ROWS as usize));
        for l in 0..ROWS as usize {
            let error = (cos32[l] - cos[l]).abs().max((sin32[l] - sin[l]).abs());
            worst = worst.max(error / cos[l].hypot(sin[l]));
        }
    }
    // ln, √, sin and the product each round once or twice
    let ulps = worst / f32::EPSILON as f64;
    println!("f32 normals differ from f64 by at most {ulps:.2} ulp of their radius");
    assert!(ulps < 4.0);
}

#[test]
fn replicas_of_a_run_are_single_runs() {
    assert_eq!(Key::new(5, 9), Key::new(5, 9));
    let keys: std::collections::HashSet<_> = (0..100).flat_map(|s| (0..100).map(move |r| Key::new(s, r))).collect();
    assert_eq!(keys.len(), 10_000, "seeds and replicas have keys of their own");
    assert_ne!(Key::new(1 << 32, 0), Key::new(0, 1));
}

#[test]
fn the_bits_never_change() {
    // computed by an independent implementation (Python, arbitrary integers)
    let key = Key::new(0x0123_4567_89AB_CDEF, 3);
    let diagonal = |draw| [0, 1, 2, 3, 4, 5].map(|row| element(draw, key, 5, 8, 6, row, 2 * row));
    assert_eq!(key.words(), [0xd00b0aa3, 0x713096cd]);
    let bits = [670152794u32, 2495216424, 3066946608, 3109035181, 3298537194, 3042524028];
    assert_eq!(diagonal(Bits), bits.map(f64::from));
    assert_eq!(diagonal(Uniform), bits.map(|x| ((x >> 9) as f64 + 0.5) * 0.5f64.powi(23)));
    assert_eq!(diagonal(Rademacher), bits.map(|x| if x >> 31 == 0 { 1.0 } else { -1.0 }));
    assert_eq!(diagonal(Integer(1000)), [156.0, 580.0, 714.0, 723.0, 768.0, 708.0]);
    assert_eq!(diagonal(Permutation(37)), [11.0, 6.0, 22.0, 23.0, 30.0, 7.0]);
    assert_eq!(diagonal(Epoch(41)), [18.0, 25.0, 3.0, 29.0, 19.0, 7.0]);
    let normals = [
        -1.0271946642476542,
        0.6567125826611692,
        0.8188449368292673,
        -0.6772325694937451,
        -0.004144518414678598,
        0.8266913237747101,
    ];
    for (x, right) in diagonal(Normal).into_iter().zip(normals) {
        assert!((x - right).abs() < 4.0 * f64::EPSILON, "{x} is not {right} up to the rounding of ln, √ and cos");
    }
}
