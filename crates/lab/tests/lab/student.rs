//! Student's test: tabled values, and its level where pairs are few.

use minvel::estimate::Estimate;
use minvel_engine::random::{Draw, Key, Stream};
use minvel_lab::report::Row;
use minvel_lab::report::student::{critical, pairs_needed, probability, words};
use minvel_testing::within_sigma;

/// Two-sided 95 % points as every table has them, to its three places.
#[test]
fn critical_values_are_those_of_the_tables() {
    let table = [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (30, 2.042), (120, 1.980)];
    for (freedom, expected) in table {
        let t = critical(0.95, freedom);
        assert!((t - expected).abs() < 5.01e-4, "{freedom} degrees of freedom: {t}");
        assert!((probability(t, freedom) - 0.95).abs() < 1e-12);
    }
    // closed forms: ν = 1 is Cauchy's law, ν = 2 has P(|T| ≤ t) = t/√(2 + t²); many degrees are normal
    assert!((probability(1.0, 1) - 0.5).abs() < 1e-15);
    assert!((probability(1.3, 2) - 1.3 / (2.0f64 + 1.69).sqrt()).abs() < 1e-15);
    assert!((critical(0.95, 100_000) - 1.96).abs() < 1e-4);
    assert_eq!(critical(0.95, 0), f64::INFINITY);
}

/// Pairs without a difference are told apart in 2.5 % of cases on the tested side, also when they are three. The twin with two
/// standard errors, as for many pairs, claims a difference far more often.
#[test]
fn the_level_holds_with_three_pairs() {
    let z: Vec<f64> = Stream::new(Key::new(3, 0), 0).samples(Draw::Normal).take(3 * 20_000).collect();
    let claimed = |sure: &dyn Fn(Estimate) -> bool| -> Vec<f64> {
        z.chunks(3).map(|own| f64::from(u8::from(sure(Estimate::of(own.iter().copied()))))).collect()
    };
    let row = |e: Estimate| Row::new("", e, 3).significantly_below("", e.count - 1).holds == Some(true);
    assert!(within_sigma("share of false claims", &claimed(&row), 0.025, 4.0));
    let normal = claimed(&|e| e.mean + 2.0 * e.std_error < 0.0);
    assert!(!within_sigma("with two standard errors", &normal, 0.025, 4.0));
}

/// The stated number of pairs shows the difference in about 80 % of cases; half as many do not.
#[test]
fn the_number_of_pairs_has_the_power_it_states() {
    let (difference, deviation) = (-1.0, 1.5);
    let needed = pairs_needed(difference, deviation).unwrap() as usize;
    let power = |n: usize| {
        let z: Vec<f64> = Stream::new(Key::new(4, 0), 0).samples(Draw::Normal).take(n * 4000).collect();
        let shown = z.chunks(n).filter(|own| {
            let e = Estimate::of(own.iter().map(|z| difference + deviation * z));
            e.mean + critical(0.95, n as u64 - 1) * e.std_error < 0.0
        });
        shown.count() as f64 / 4000.0
    };
    println!("{needed} pairs: power {}, half of them {}", power(needed), power(needed / 2));
    assert!((power(needed) - 0.8).abs() < 0.03, "approximate by about one pair");
    assert!(power(needed / 2) < 0.6);
    assert_eq!(pairs_needed(0.0, 1.0), None);
    assert_eq!(pairs_needed(-1e6, 1.0), Some(2));
}

#[test]
fn one_seed_decides_nothing() {
    let row = Row::new("", Estimate::of([-3.0]), 1).significantly_below("better", 0);
    assert_eq!(row.holds, Some(false));
    assert!(row.rule.unwrap().contains("one seed shows no scatter"));
    assert_eq!(words(-2.92, 1.0, 4), "t = −2.92, 4 degrees of freedom, p = 0.043");
}
