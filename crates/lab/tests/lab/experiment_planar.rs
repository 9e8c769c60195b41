//! The experiments in the plane, small: what must hold for any network, however badly it was trained.

use minvel::train::{Silent, Stop};
use minvel_lab::experiment::{Journal, Runner};
use minvel_lab::index::named;
use minvel_lab::report::{Report, Row, Versions};

fn perform(name: &str, settings: &[&str]) -> Report {
    let folder = minvel_testing::fresh(&format!("planar-{name}"));
    let entry = named(name).unwrap()[0];
    let mut config = entry.config().unwrap();
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    let mut runner = Runner::new(Journal::open(&folder, &config.text()).unwrap(), &Silent, Stop::default());
    let report = entry.prepare(config).unwrap().perform(&mut runner, Versions::default(), "unknown").unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    report
}

/// The row whose name has all these parts.
fn row<'a>(report: &'a Report, parts: &[&str]) -> &'a Row {
    let fits = |row: &&Row| parts.iter().all(|part| row.name.contains(part));
    report.rows.iter().find(fits).unwrap_or_else(|| panic!("no row with {parts:?}"))
}

#[test]
fn variances_biases_and_rounding_have_their_exponents_for_any_energy() {
    let small = ["learning.hidden=12", "learning.batch=20", "iterations=10", "fresh_points=100", "seeds=2"];
    let samples = ["points=20", "noises=4000", "variant_noises=400", "test_step=1e-4"];
    let steps = ["step_sizes=[1e-5, 1e-4, 1e-3, 1e-2]"];
    let report = perform("bias-variance", &[&small[..], &samples, &steps].concat());
    for parts in [
        ["slope of log variance", "MVL without"],
        ["slope of log variance", "DSM without"],
        ["slope of log variance", "MVL with control"],
        ["slope of log variance", "DSM with control"],
        ["slope of log bias²", "antithetic"],
        ["rounding error", "ordinary"],
        ["rounding error", "MVL, exact differences"],
        ["rounding error", "antithetic"],
    ] {
        let row = row(&report, &parts);
        println!("{}: {}, {}", row.name, row.value_text(), row.rule.as_deref().unwrap_or(""));
        assert_eq!(row.holds, Some(true), "{}: {}", row.name, row.value_text());
    }
    assert_eq!(report.figures.len(), 2);
    assert_eq!(row(&report, &["J of the energy learnt"]).seeds, 2);
}

#[test]
fn contrastive_divergence_with_control_variate_becomes_sliced_score_matching_as_the_step_vanishes() {
    let small = ["learning.hidden=12", "learning.batch=50", "points=500", "seeds=1"];
    let report = perform("cd1", &[&small[..], &["iterations=[20]", "step_sizes=[1e-6]"]].concat());
    let loss = |method: &str| row(&report, &["J, ", method]).value;
    let limit = loss("J, SSM-VR");
    assert_eq!(row(&report, &["J, ", "J, SSM-VR"]).seeds, 3, "one seed has no scatter, so three are trained");
    // Trainings share start values, batches and noise, so that the same gradients give the same network: but for O(√ε).
    let (same, velocity) = (loss("J, CD-1 with") - limit, loss("J, MVL") - limit);
    let (other, plain) = (loss("J, SSM,") - limit, loss("J, plain") - limit);
    println!("J less that of SSM-VR: CD-1 {same:.2e}, MVL {velocity:.2e}, SSM {other:.2e}, plain CD-1 {plain:.2e}");
    assert!(same.abs() < 0.05 * other.abs() && velocity.abs() < 0.05 * other.abs());
    assert!(other.abs() < plain.abs(), "plain CD-1 sees noise of size 1/√ε");
}

#[test]
fn settings_that_cannot_be_measured_are_refused() {
    let refused = |name: &str, setting: &str| {
        let entry = named(name).unwrap()[0];
        let mut config = entry.config().unwrap();
        config.set(setting).unwrap();
        (entry.check)(&config).map(drop).unwrap_err().to_string()
    };
    assert!(refused("bias-variance", "test_step=2e-5").contains("test_step"));
    assert!(refused("bias-variance", "step_sizes=[1e-2, 1e-3, 1e-4]").contains("from small to large"));
    assert!(refused("bias-variance", "noises=1").contains("noises"));
    assert!(refused("bias-variance", "learning.rate=0").contains("learning.rate"));
    assert!(refused("cd1", "step_sizes=[0.1]").contains("step_sizes"));
}
