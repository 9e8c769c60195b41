//! Experiments with quick settings, run from beginning to end.

use minvel::Error;
use minvel::train::{Silent, Stop};
use minvel_lab::experiment::{Config, Entry, Findings, Journal, Runner};
use minvel_lab::index::named;
use minvel_lab::report::Row;

/// The experiment of a name.
pub fn entry(name: &str) -> &'static Entry {
    named(name).expect("it is in the list")[0]
}

/// Its quick settings, changed.
pub fn config(name: &str, changes: &[&str]) -> Config {
    let mut config = entry(name).config().expect("its TOML is right").quick().expect("it has quick settings");
    changes.iter().for_each(|change| config.set(change).expect("a known setting"));
    config
}

/// What it finds, in a folder named after the test.
pub fn run(of: &str, name: &str, config: &Config, threads: usize) -> Findings {
    try_run(of, name, config, threads).expect("it runs")
}

/// The same, or why it does not run.
pub fn try_run(of: &str, name: &str, config: &Config, threads: usize) -> Result<Findings, Error> {
    let folder = minvel_testing::fresh(&format!("fit-{of}"));
    let journal = Journal::open(&folder, &config.text()).expect("a folder can be made");
    let mut runner = Runner::new(journal, &Silent, Stop::default());
    runner.threads = threads;
    let findings = (entry(name).check)(config).expect("proper settings").run(&mut runner);
    std::fs::remove_dir_all(folder).expect("it was made");
    findings
}

/// The row whose name has a part.
pub fn row<'a>(findings: &'a Findings, part: &str) -> &'a Row {
    findings.rows.iter().find(|r| r.name.contains(part)).unwrap_or_else(|| panic!("no row has `{part}`"))
}

/// Small networks and few draws.
pub const FIT: &str = r#"fit.set=["seeds=1", "learning.steps=20", "learning.looks=2", "network.hidden=[8]"]"#;
