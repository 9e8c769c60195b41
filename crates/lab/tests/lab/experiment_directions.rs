//! The experiments on circle and sphere, at settings small enough for a test.

use minvel::train::{Silent, Stop};
use minvel_lab::experiment::{Config, Entry, Findings, Journal, Runner};
use minvel_lab::index::named;
use minvel_lab::plot::{Plot, Polar};
use minvel_lab::report::Row;
use minvel_testing::{within_digits, within_ulps};
use std::f64::consts::TAU;

/// Small networks, one iteration short of nothing.
const TINY: &[&str] = &["seeds=2", "hidden=[8]", "settings.notebook.batch=64", "settings.notebook.iterations=5"];

fn entry(name: &str) -> &'static Entry {
    named(name).expect("it is in the list")[0]
}

fn config(name: &str, changes: &[&str]) -> Config {
    let mut config = entry(name).config().expect("its TOML is right").quick().expect("it has quick settings");
    let all = ["run=['notebook']"].iter().chain(changes);
    all.for_each(|change| config.set(change).expect("a known setting"));
    config
}

fn folder(of: &str) -> std::path::PathBuf {
    minvel_testing::fresh(&format!("directions-{of}"))
}

fn run_in(folder: &std::path::Path, name: &str, config: &Config, threads: usize) -> Findings {
    let journal = Journal::open(folder, &config.text()).expect("a folder can be made");
    let mut runner = Runner::new(journal, &Silent, Stop::default());
    runner.threads = threads;
    (entry(name).check)(config).expect("proper settings").run(&mut runner).expect("it runs")
}

fn run(of: &str, name: &str, changes: &[&str]) -> Findings {
    let folder = folder(of);
    let findings = run_in(&folder, name, &config(name, changes), 0);
    std::fs::remove_dir_all(folder).expect("it was made");
    findings
}

fn row<'a>(findings: &'a Findings, part: &str) -> &'a Row {
    findings.rows.iter().find(|r| r.name.contains(part)).unwrap_or_else(|| panic!("no row has `{part}`"))
}

#[test]
fn the_settings_in_the_files_are_proper() {
    for name in ["circle", "sphere"] {
        let config = entry(name).config().expect("its TOML is right");
        (entry(name).check)(&config).expect("proper settings");
        (entry(name).check)(&config.quick().expect("it has quick settings")).expect("proper quick settings");
    }
}

#[test]
fn improper_settings_are_refused_by_name() {
    let cases = [
        ("settings.notebook.law=banana", "settings.notebook.law"),
        ("settings.notebook.law=sphere", "settings.notebook.law"),
        ("settings.paper.samples=3", "settings.paper.samples"),
        ("run=['notebook', 'nothing']", "nothing"),
        ("run=[]", "run"),
        ("form=mercator", "form"),
        ("mass=0", "mass"),
    ];
    for (change, named) in cases {
        let refused = (entry("circle").check)(&config("circle", &[change]));
        let message = refused.err().unwrap_or_else(|| panic!("`{change}` passed")).to_string();
        assert!(message.contains(named), "`{change}`: {message}");
    }
}

/// Both by quadrature, but one from the difference of gradients and one from the Laplacian: D_F = J + I(p)/2.
#[test]
fn the_loss_lies_above_its_optimum_by_the_fisher_divergence() {
    for (name, information) in [("circle", 1.0191606316), ("sphere", 5.1608760661)] {
        for form in ["chart", "geodesic"] {
            let form = format!("form={form}");
            let findings = run(&format!("fisher-{name}-{form}"), name, &[TINY, &[&form]].concat());
            let (fisher, loss) = (row(&findings, "Fisher").value, row(&findings, "by quadrature").value);
            println!("{name}: D_F {fisher}, J {loss}");
            assert!(fisher > 0.01, "five iterations cannot have learnt the {name}");
            assert!(
                within_digits(loss + 0.5 * information, fisher, 9),
                "{name}: {} is not {fisher}",
                loss + 0.5 * information
            );
        }
    }
}

#[test]
fn without_learning_the_claim_does_not_hold() {
    for name in ["circle", "sphere"] {
        let findings = run(&format!("twin-{name}"), name, TINY);
        assert_eq!(row(&findings, "KL(truth‖model)").holds, Some(false));
    }
}

#[test]
fn a_short_training_learns_the_circle_from_fresh_and_from_fixed_samples() {
    let changes = [
        "run=['notebook', 'paper', 'printed']",
        "seeds=2",
        "hidden=[32, 32]",
        "rate=5e-3",
        "settings.notebook={iterations=400, batch=500}",
        "settings.paper={iterations=400, batch=500, samples=20000}",
        "settings.printed={iterations=400, batch=500}",
    ];
    let findings = run("short", "circle", &changes);
    for claim in findings.rows.iter().filter(|r| r.claim.is_some()) {
        println!("{}: {}, {:?}", claim.name, claim.value, claim.rule);
        assert_eq!(claim.holds, Some(true), "{}", claim.name);
    }
    // All densities shown are normalised: the points are equal angles, so that their mean is the integral.
    let Plot::Row { plots } = &findings.figures[0].plot else { panic!("two laws, two plots") };
    for plot in plots {
        let Plot::Polar(Polar { curves, .. }) = plot else { panic!("densities around a circle") };
        for curve in curves {
            let mass = TAU * curve.density.iter().sum::<f64>() / curve.density.len() as f64;
            let ulps = 4.0 * f64::from(f32::EPSILON) / f64::EPSILON; // log densities are kept in single precision
            assert!(within_ulps(mass, 1.0, ulps), "{}: {mass}", curve.name);
        }
    }
}

#[test]
fn a_finished_run_repeated_and_one_on_other_threads_find_the_same_bits() {
    let (first, other) = (folder("first"), folder("other"));
    let config = config("sphere", &[TINY, &["run=['notebook', 'paper']", "settings.paper.iterations=3"]].concat());
    let once = run_in(&first, "sphere", &config, 1);
    assert_eq!(run_in(&first, "sphere", &config, 1), once);
    assert_eq!(run_in(&other, "sphere", &config, 2), once);
    for folder in [first, other] {
        std::fs::remove_dir_all(folder).expect("it was made");
    }
}
