//! The experiment `earth`. That it asks for data where there are none: crates/cli/tests/program/reproduce.rs.

use crate::support::experiments::{FIT, config, row, run};
use crate::support::needs::set;
use minvel_testing::within_ulps;
use minvel_testing::{Test, test};
use std::f64::consts::PI;

pub fn tests() -> Vec<Test> {
    vec![test!(the_earth_is_scored).needs(set("volcano"))]
}

fn the_earth_is_scored() {
    let settings = config("earth", &[FIT, "seeds=2", r#"sets=["volcano"]"#]);
    let findings = run("earth", "earth", &settings, 0);
    let own = row(&findings, "volcano: NLL");
    assert!(own.value.is_finite() && own.std_error > 0.0 && own.seeds == 2);
    assert_eq!(own.paper.expect("a published number").value, -7.93);
    let uniform = row(&findings, "volcano: NLL, uniform").value;
    assert!(within_ulps(uniform, (4.0 * PI).ln(), 83.0), "a mean over 83 rows is {uniform}");
    let difference = row(&findings, "volcano: NLL minus that of: kernel density");
    assert!(difference.claim.as_deref().is_some_and(|claim| claim.contains("never worse")));
    assert_eq!((row(&findings, "volcano: rows").value, row(&findings, "volcano: distinct rows").value), (827.0, 267.0));
    assert!(findings.notes.iter().any(|note| note.contains("does not rank models")), "{:?}", findings.notes);
    assert_eq!(findings.figures.len(), 1);
}
