//! Sums over kernels by blocks and balls: against plain loops over all of them.

use crate::clumps::{clumps, natural_laws, queries};
use crate::local_kernels::SPACES;
use minvel::Manifold;
use minvel::density::{Bump, Kind, LocalKernels, LocalSettings};
use minvel::manifold::{Space, parse};
use minvel::train::Context;
use std::f64::consts::TAU;
use std::sync::Arc;

/// log p by a plain loop: the formula of the density, from its lists alone.
fn plainly(kernels: &LocalKernels, manifold: &Arc<dyn Manifold>, x: &[f64]) -> f64 {
    let (m, n) = (manifold.ambient(), manifold.dim());
    let spaces = manifold.spaces().unwrap();
    let lists = kernels.tensors();
    let list = |name: &str| lists.iter().find(|(own, _)| own == name).map(|(_, values)| *values);
    let mut logs = vec![];
    for family in kernels.families() {
        let group = match family.kind {
            Kind::Grouped { group, .. } => Some(group),
            Kind::Local { shape, .. } | Kind::Component { shape } => {
                list("shape-lists").and_then(|lists| (lists[shape] as usize).checked_sub(1))
            }
            Kind::Uniform | Kind::Fixed { .. } | Kind::Natural { .. } => None,
        };
        let (centres, weights) = match group {
            Some(group) => (list(&format!("group{group}")), list(&format!("group-weights{group}"))),
            None => (list("centres"), list("weights")),
        };
        let centres = centres.unwrap();
        let total = centres.len() / m;
        if family.kind == Kind::Uniform {
            logs.push(family.share.ln() - manifold.volume().unwrap().ln());
            continue;
        }
        for (i, c) in centres.chunks(m).enumerate() {
            let weight = weights.map_or(1.0 / total as f64, |w| w[i]);
            if let Kind::Component { shape } = family.kind {
                // κ of each angle and each other factor, from the rate of its first direction, where it is sharp.
                let rates = list(&format!("shape{shape}")).unwrap();
                let (mut log, mut at, mut a) = ((family.share * weight).ln(), 0, 0);
                for s in &spaces {
                    let parts = if let Space::Torus(k) = s { vec![Space::Torus(1); *k] } else { vec![*s] };
                    for part in parts {
                        let sharp = match part {
                            Space::So3 => 2.0,
                            Space::Projective(_) => 0.5,
                            _ => 1.0,
                        };
                        let kappa = rates[(a * (a + 1) / 2 + a) * total + i].powi(2) * sharp;
                        let own = at..at + part.ambient();
                        log += Bump::new(&*part.manifold()).unwrap().log_density(&x[own.clone()], &c[own], kappa);
                        (at, a) = (at + part.ambient(), a + part.dim());
                    }
                }
                logs.push(log);
                continue;
            }
            let (mut v, mut log, mut at, mut from, mut ended) = (vec![0.0; n], 0.0, 0, 0, false);
            for s in &spaces {
                let own = &mut v[from..from + s.dim()];
                log -= s.to_normal(&c[at..at + s.ambient()], &x[at..at + s.ambient()], own);
                let length = own.iter().map(|v| v * v).sum::<f64>().sqrt();
                ended |= s.injectivity().is_finite() && !matches!(s, Space::Torus(_)) && length > 0.9 * s.injectivity();
                (at, from) = (at + s.ambient(), from + s.dim());
            }
            if ended {
                continue;
            }
            log += (family.share * weight).ln() - 0.5 * n as f64 * TAU.ln();
            log += match family.kind {
                Kind::Fixed { width } | Kind::Grouped { width, .. } => {
                    -0.5 * v.iter().map(|v| v * v).sum::<f64>() / (width * width) - n as f64 * width.ln()
                }
                Kind::Local { shape, factor } => {
                    let c =
                        |a: usize, b: usize| list(&format!("shape{shape}")).unwrap()[(a * (a + 1) / 2 + b) * total + i];
                    let mut y = vec![0.0; n];
                    for a in 0..n {
                        y[a] = (v[a] - (0..a).map(|b| c(a, b) * y[b]).sum::<f64>()) * c(a, a);
                    }
                    let det = list(&format!("log-det{shape}")).unwrap()[i];
                    -0.5 * y.iter().map(|y| y * y).sum::<f64>() / factor - det - 0.5 * n as f64 * factor.ln()
                }
                Kind::Uniform | Kind::Natural { .. } | Kind::Component { .. } => unreachable!("not of local settings"),
            };
            logs.push(log);
        }
    }
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + logs.iter().map(|l| (l - top).exp()).sum::<f64>().ln()
}

fn settings(grouped: usize) -> LocalSettings {
    LocalSettings { grouped, ..LocalSettings::default() }
}

#[test]
fn sums_agree_with_plain_loops_to_the_error_that_is_set() {
    for name in SPACES {
        let manifold = parse(name).unwrap();
        let data = clumps(&manifold, 900, 1);
        for (grouped, centres) in [(usize::MAX, 900), (10, 900), (10, 250)] {
            let context = Context::bare();
            let settings = LocalSettings { centres, ..settings(grouped) };
            let fit = settings.fit(&manifold, &data, 1, &context, false).unwrap().density;
            let has_groups = fit.families().iter().any(|f| matches!(f.kind, Kind::Grouped { .. }));
            assert!(grouped == 10 || !has_groups);
            assert_eq!(fit.centres(), centres);
            let at = queries(&manifold, &data);
            let plain: Vec<f64> = at.chunks(manifold.ambient()).map(|x| plainly(&fit, &manifold, x)).collect();
            let exact = fit.clone().with_tolerance(0.0).log_density_of(&at, &context).unwrap();
            let fast = fit.clone().log_density_of(&at, &context).unwrap();
            let rough = fit.with_tolerance(1e-3).log_density_of(&at, &context).unwrap();
            let worst = |found: &[f64]| found.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let (exact, fast, rough) = (worst(&exact), worst(&fast), worst(&rough));
            println!(
                "{name}, {centres} centres, groups {has_groups}: exact {exact:.1e}, fast {fast:.1e}, rough {rough:.1e}"
            );
            // Towards the edge of the ball rounding errors grow as e^{distance}.
            assert!(exact < if name.contains("hyperbolic") { 1e-8 } else { 1e-10 }, "{name}: off by {exact}");
            assert!(fast < 1e-6, "{name}: off by {fast}");
            assert!(rough < 1e-3, "{name}: off by {rough}");
        }
    }
}

#[test]
fn sums_over_natural_laws_agree_with_plain_loops() {
    for name in
        ["torus:3", "so3", "hyperbolic:2", "product(sphere:2,torus:2,euclidean:1)", "product(hyperbolic:2,torus:1)"]
    {
        let manifold = parse(name).unwrap();
        let centres = clumps(&manifold, 300, 1);
        let mixture = natural_laws(&manifold, &centres, |part, k| 40.0 * (1.0 + part as f64) / (1.0 + (k % 7) as f64));
        let at = queries(&manifold, &centres);
        let plain: Vec<f64> = at.chunks(manifold.ambient()).map(|x| plainly(&mixture, &manifold, x)).collect();
        let worst = |density: &LocalKernels| {
            let found = density.log_density_of(&at, &Context::bare()).unwrap();
            found.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let equal = natural_laws(&manifold, &centres, |_, k| 40.0 / (1.0 + (k % 7) as f64));
        let (fast, exact, other) = (worst(&mixture), worst(&mixture.clone().with_tolerance(0.0)), worst(&equal));
        println!("{name}: exact {exact:.1e}, fast {fast:.1e}; with equal concentrations {other:.1e}");
        assert!(exact < 1e-8 && fast < 1e-6, "{name}: off by {exact} and {fast}");
        assert!(
            manifold.spaces().unwrap() == [Space::So3] || name == "hyperbolic:2" || other > 0.1,
            "{name}: no power"
        );
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_table_and_on_any_threads() {
    let manifold = parse("sphere:2").unwrap();
    let data = clumps(&manifold, 3000, 2);
    let fit = settings(100).fit(&manifold, &data, 1, &Context::bare(), false).unwrap().density;
    let at = queries(&manifold, &data);
    let together = fit.log_density_of(&at, &Context::of_threads(1)).unwrap();
    let threads = fit.log_density_of(&at, &Context::of_threads(2)).unwrap();
    assert_eq!(together, threads);
    for (x, log) in at.chunks(3).zip(&together).step_by(3) {
        assert_eq!(fit.log_density_of(x, &Context::bare()).unwrap(), [*log], "alone");
    }
    let half: Vec<f64> = at.chunks(3).step_by(2).flatten().copied().collect();
    let halves: Vec<f64> = together.iter().step_by(2).copied().collect();
    assert_eq!(fit.log_density_of(&half, &Context::bare()).unwrap(), halves);
}

#[test]
fn groups_cost_little_and_are_few() {
    let manifold = parse("sphere:2").unwrap();
    let data = clumps(&manifold, 6000, 3);
    let fresh = clumps(&manifold, 6000, 3)[..3000].to_vec();
    let context = Context::bare();
    let score = |grouped: usize| {
        let round = LocalSettings { neighbours: vec![], mixtures: vec![], ..settings(grouped) };
        let fit = round.fit(&manifold, &data, 1, &context, false).unwrap();
        let mean = fit.held_out.iter().sum::<f64>() / fit.held_out.len() as f64;
        (mean, fit.density)
    };
    let ((points, _), (groups, density)) = (score(usize::MAX), score(10));
    println!("held out: {points:.4} about points, {groups:.4} about groups");
    assert!(groups > points - 2e-3, "{points} and {groups}");
    let families = density.families().iter().enumerate();
    let grouped: Vec<usize> =
        families.filter(|(_, f)| matches!(f.kind, Kind::Grouped { .. })).map(|(k, _)| k).collect();
    assert!(!grouped.is_empty() && grouped.iter().all(|k| density.kernels_of(*k) <= 4800), "{grouped:?}");
    assert!(grouped.iter().any(|k| density.kernels_of(*k) < 600), "wide kernels need few groups");
    let mass: f64 = (0..density.kernels_of(grouped[0])).map(|i| density.weight(grouped[0], i)).sum();
    assert!((mass - 1.0).abs() < 1e-12);
    assert!(density.log_density_of(&fresh, &context).unwrap().iter().all(|l| l.is_finite()));
}
