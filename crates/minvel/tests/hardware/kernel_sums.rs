//! Sums over kernels on a GPU beside those of the CPU.

use crate::clumps::{clumps, natural_laws, queries};
use minvel::density::{Family, Kind, LocalKernels, LocalSettings};
use minvel::manifold::parse;
use minvel::train::Context;
use minvel::{Device, Error};
use minvel_testing::{Test, a_gpu, test};

pub fn tests() -> Vec<Test> {
    let gpu = || a_gpu(Device::Cuda(0).checked().map(drop).map_err(|why| why.to_string()));
    vec![
        test!(sums_on_the_gpu_are_those_on_the_cpu).needs(gpu()),
        test!(natural_kernels_on_the_gpu_are_those_on_the_cpu).needs(gpu()),
        test!(many_groups_of_blocks_are_looked_through).needs(gpu()),
        test!(a_row_has_the_same_bits_in_any_table_on_the_gpu).needs(gpu()),
        test!(what_does_not_fit_a_card_stays_on_the_cpu).needs(gpu()),
        test!(a_card_that_is_not_there_is_an_error),
    ]
}

/// The most that a log may differ.
const CLOSE: f64 = 1e-5;
/// Logs this far below the density of the row say nothing but that there is nothing.
const NOTHING: f64 = -30.0;

fn on(device: Device) -> Context<'static> {
    let mut context = Context::of_threads(2);
    context.device = device;
    context
}

fn worst(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    // A NaN is the worst of all.
    let apart = found.iter().zip(expected).map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() });
    apart.fold(0.0, |worst, own| if own <= worst { worst } else { own })
}

/// The density, and each family where it counts; the worst of both.
fn compare(fit: &LocalKernels, at: &[f64]) -> f64 {
    let (cpu, gpu) = (on(Device::Cpu), on(Device::Cuda(0)));
    let (expected, found) = (fit.log_density_of(at, &cpu).unwrap(), fit.log_density_of(at, &gpu).unwrap());
    let whole = worst(&found, &expected);
    let (each, of_each) = (fit.log_families(at, &cpu).unwrap(), fit.log_families(at, &gpu).unwrap());
    let count = fit.families().len();
    let mut parts: f64 = 0.0;
    for ((row, found), log) in each.chunks(count).zip(of_each.chunks(count)).zip(&expected) {
        for ((own, found), family) in row.iter().zip(found).zip(fit.families()) {
            // What is left out counts against the density, so a family may be off by as much more as it is smaller.
            let small = own + family.share.ln() - log;
            if small > NOTHING {
                parts = parts.max((own - found).abs() * small.exp().min(1.0));
            } else {
                assert!(found + family.share.ln() - log < NOTHING + 1.0, "{own} is {found}");
            }
        }
    }
    whole.max(parts)
}

fn sums_on_the_gpu_are_those_on_the_cpu() {
    let spaces = [
        "sphere:2",
        "torus:2",
        "euclidean:2",
        "torus:7",
        "so3",
        "projective:2",
        "hyperbolic:2",
        "product(sphere:2,hyperbolic:2,torus:1,so3,euclidean:1)",
    ];
    for name in spaces {
        let manifold = parse(name).unwrap();
        let data = clumps(&manifold, 600, 1);
        let at = queries(&manifold, &data);
        for grouped in [usize::MAX, 10] {
            let settings = LocalSettings { grouped, ..LocalSettings::default() };
            let fit = settings.fit(&manifold, &data, 1, &on(Device::Cpu), false).unwrap().density;
            let has_groups = fit.families().iter().any(|f| matches!(f.kind, Kind::Grouped { .. }));
            assert!(grouped == 10 || !has_groups);
            let (fast, exact) = (compare(&fit, &at), compare(&fit.with_tolerance(0.0), &at));
            println!("{name}, groups {has_groups}: fast {fast:.1e}, exact {exact:.1e}");
            assert!(fast < CLOSE, "{name}: off by {fast}");
            // Towards the edge of the ball rounding errors grow as e^{distance}.
            assert!(exact < if name.contains("hyperbolic") { 1e-8 } else { 1e-10 }, "{name}: off by {exact}");
        }
    }
}

fn natural_kernels_on_the_gpu_are_those_on_the_cpu() {
    for name in ["sphere:2", "torus:2", "hyperbolic:2", "so3", "product(sphere:1,euclidean:2,projective:2)"] {
        let manifold = parse(name).unwrap();
        let data = clumps(&manifold, 300, 4);
        let kinds = [
            Kind::Natural { kappa: 3.0 },
            Kind::Natural { kappa: 400.0 },
            Kind::Component { shape: 0 },
            Kind::Fixed { width: 0.1 },
            Kind::Uniform,
        ];
        // Components from wide to sharp, with other concentrations in other angles and factors.
        let total = data.len() / manifold.ambient();
        let components = natural_laws(&manifold, &data, |part, i| {
            (1.0 + 20.0 * i as f64 / total as f64).powi(2) * 4f64.powi((part % 2) as i32)
        });
        let lists = components.tensors();
        for count in 1..=kinds.len() {
            if count == kinds.len() && manifold.volume().is_none() {
                continue;
            }
            let families: Vec<Family> =
                kinds[..count].iter().map(|&kind| Family { kind, share: 1.0 / count as f64 }).collect();
            let find = |name: &str| lists.iter().find(|(own, _)| own == name).map(|(_, values)| *values);
            let fit = LocalKernels::from_tensors(&manifold, &families, find).unwrap();
            let at = queries(&manifold, &data);
            let (fast, exact) = (compare(&fit, &at), compare(&fit.with_tolerance(0.0), &at));
            println!("{name}, {count} families: fast {fast:.1e}, exact {exact:.1e}");
            assert!(fast < CLOSE && exact < 1e-8, "{name}: off by {fast} and {exact}");
        }
    }
}

fn many_groups_of_blocks_are_looked_through() {
    let manifold = parse("sphere:2").unwrap();
    let data = clumps(&manifold, 7000, 3);
    let settings = LocalSettings { grouped: 1000, folds: 2, ..LocalSettings::default() };
    let fit = settings.fit(&manifold, &data, 1, &on(Device::Cpu), false).unwrap().density;
    let at = queries(&manifold, &data);
    let apart = compare(&fit, &at);
    println!("{apart:.1e}");
    assert!(apart < CLOSE, "off by {apart}");
}

fn a_row_has_the_same_bits_in_any_table_on_the_gpu() {
    let manifold = parse("sphere:2").unwrap();
    let data = clumps(&manifold, 3000, 2);
    let settings = LocalSettings { grouped: 100, folds: 2, ..LocalSettings::default() };
    let fit = settings.fit(&manifold, &data, 1, &on(Device::Cpu), false).unwrap().density;
    let at = queries(&manifold, &data);
    let gpu = on(Device::Cuda(0));
    let together = fit.log_density_of(&at, &gpu).unwrap();
    for (x, log) in at.chunks(3).zip(&together).step_by(17) {
        assert_eq!(fit.log_density_of(x, &gpu).unwrap(), [*log], "alone");
    }
    let half: Vec<f64> = at.chunks(3).step_by(2).flatten().copied().collect();
    let halves: Vec<f64> = together.iter().step_by(2).copied().collect();
    assert_eq!(fit.log_density_of(&half, &gpu).unwrap(), halves);
}

fn what_does_not_fit_a_card_stays_on_the_cpu() {
    let manifold = parse("euclidean:33").unwrap();
    let data = clumps(&manifold, 60, 1);
    let settings = LocalSettings { folds: 2, ..LocalSettings::default() };
    let fit = settings.fit(&manifold, &data, 1, &on(Device::Cpu), false).unwrap().density;
    let [cpu, gpu] = [Device::Cpu, Device::Cuda(0)].map(|device| fit.log_density_of(&data, &on(device)).unwrap());
    assert_eq!(gpu, cpu);
}

fn a_card_that_is_not_there_is_an_error() {
    let manifold = parse("torus:1").unwrap();
    let data = clumps(&manifold, 60, 1);
    let fit = LocalSettings::default().fit(&manifold, &data, 1, &on(Device::Cpu), false).unwrap().density;
    match fit.log_density_of(&data, &on(Device::Cuda(99))) {
        Err(Error::Device(why)) => assert!(why.to_string().contains("use the CPU") || why.to_string().contains("99")),
        other => panic!("{other:?}"),
    }
}
