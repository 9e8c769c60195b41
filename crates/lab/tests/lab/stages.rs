//! A fit stops inside whatever stage it is in, and goes on to the same bits.

use minvel::train::{Observer, Stop};
use minvel::{Device, Error};
use minvel_lab::experiment::Config;
use minvel_lab::fitting;
use minvel_lab::fitting::{FitRun, FitSummary, RunFolder};
use minvel_lab::report::Versions;
use minvel_lab::table::{Dataset, Request};
use minvel_testing::Scratch;
use std::sync::Mutex;
use std::time::Duration;

/// Stages of a fit, as an observer hears of them.
#[derive(Clone, Debug, Default)]
struct Heard {
    /// Name, units to do, units done, and whether it was told to be finished.
    stages: Vec<(String, u64, u64, bool)>,
}

/// Asks to stop when a stage makes its first step, or one of the next.
#[derive(Default)]
struct Watch {
    at: Option<String>,
    /// Units after which it asks.
    after: u64,
    /// Whether it asks before anything is done.
    early: bool,
    stop: Stop,
    heard: Mutex<Heard>,
}

impl Observer for Watch {
    fn begin(&self, name: &str, total: u64, _: &str) {
        self.heard.lock().unwrap().stages.push((name.to_string(), total, 0, false));
        if self.early && self.at.as_deref() == Some(name) {
            self.stop.ask();
        }
    }

    fn advance(&self, done: u64, _: &str) {
        let mut heard = self.heard.lock().unwrap();
        let stage = heard.stages.last_mut().unwrap();
        assert!(done >= stage.2, "{}: {done} units after {}", stage.0, stage.2);
        stage.2 = done;
        if self.at.as_ref() == Some(&stage.0) && done >= self.after {
            self.stop.ask();
        }
    }

    fn end(&self) {
        self.heard.lock().unwrap().stages.last_mut().unwrap().3 = true;
    }
}

fn config(few: usize) -> Config {
    let mut config = fitting::defaults().quick().unwrap();
    config.set(&format!("few.rows={few}")).unwrap();
    let small =
        ["learning.steps=40", "learning.looks=2", "network.hidden=[16]", "learning.rate=0.01", "step_size=0.01"];
    small.iter().for_each(|setting| config.set(setting).unwrap());
    config
}

fn perform(data: &Dataset, folder: &RunFolder, watch: &Watch) -> Result<FitSummary, Error> {
    perform_with(data, folder, watch, &config(0))
}

fn perform_with(data: &Dataset, folder: &RunFolder, watch: &Watch, config: &Config) -> Result<FitSummary, Error> {
    let fit = FitRun {
        block: None,
        dataset: data,
        config,
        observer: watch,
        stop: watch.stop.clone(),
        threads: 1,
        device: Device::Cpu,
        save_every: Duration::ZERO,
        versions: Versions::default(),
        revision: "unknown",
    };
    fit.perform(folder)
}

/// A ring and a heap in the plane, which a correction is of use to.
fn points() -> String {
    let mut word = 1u64;
    let mut uniform = move || {
        word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (word >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut text = String::from("x,y\n");
    for i in 0..300 {
        let (angle, radius) = (std::f64::consts::TAU * uniform(), 1.0 + 0.1 * uniform());
        let heap = [3.0 + uniform(), uniform() + uniform()];
        let [x, y] = if i % 3 == 0 { heap } else { [radius * angle.cos(), radius * angle.sin()] };
        text += &format!("{x:.6},{y:.6}\n");
    }
    text
}

fn dataset(scratch: &Scratch) -> Dataset {
    std::fs::create_dir_all(scratch.path("")).unwrap();
    let path = scratch.path("points.csv");
    std::fs::write(&path, points()).unwrap();
    let request = Request { manifold: Some("euclidean:2".into()), ..Request::default() };
    Dataset::read(&path, &request).unwrap()
}

/// Once the kernels, the baselines and the figures did not hear of a stop before they were done.
#[test]
fn a_fit_that_is_stopped_inside_every_stage_ends_with_the_same_bits() {
    let scratch = Scratch::new("stages");
    let data = dataset(&scratch);

    let watch = Watch::default();
    let whole = RunFolder(scratch.path("whole"));
    let summary = perform(&data, &whole, &watch).unwrap();
    assert!(summary.share > 0.0, "without a correction there is nothing to normalise: choose other points");
    let heard = watch.heard.into_inner().unwrap();
    for (name, total, done, ended) in &heard.stages {
        println!("{name}: {done} of {total}");
        assert!(ended, "{name} has no end");
        assert!(*total == 0 || done <= total, "{name}: {done} units of {total}");
        // golden sections are left out where the best bandwidth is the last
        let known = *total > 0 && name != "baselines: kernel density" && name != "baselines: uniform";
        assert!(!known || done == total, "{name}: {done} units of {total}");
    }

    // each stage once, in one folder
    let parts = RunFolder(scratch.path("parts"));
    let mut stopped = vec![];
    for (name, ..) in heard.stages.iter().filter(|stage| stage.2 > 1) {
        let watch = Watch { at: Some(name.clone()), ..Watch::default() };
        let outcome = perform(&data, &parts, &watch);
        let heard = watch.heard.into_inner().unwrap();
        let (last, _, done, ended) = heard.stages.last().unwrap();
        match outcome {
            Err(Error::Interrupted) => {
                assert!(last == name && !ended, "{name}: it went on to {done} of {last}, finished: {ended}");
                stopped.push(name.as_str());
            }
            outcome => panic!("{name}: {:?}", outcome.map(|_| "finished")),
        }
    }
    println!("stopped in {stopped:?}");
    for name in ["neighbours", "kernels", "folds", "validation rows", "learning energies"] {
        assert!(stopped.contains(&name), "{name}");
    }
    assert!(stopped.contains(&"baselines: mixture") && stopped.contains(&"figures"), "{stopped:?}");
    let watch = Watch::default();
    perform(&data, &parts, &watch).unwrap();
    let again: Vec<String> = watch.heard.into_inner().unwrap().stages.into_iter().map(|stage| stage.0).collect();
    println!("at last it had to do {again:?}");
    for kept in ["neighbours", "kernels", "folds", "validation rows", "baselines: kernel density", "baselines: mixture"]
    {
        assert!(!again.contains(&kept.to_string()), "{kept} was done again");
    }
    for file in ["model.safetensors", "metrics.csv", "density.svg"] {
        let read = |folder: &RunFolder| std::fs::read(folder.0.join(file)).unwrap();
        assert!(read(&whole) == read(&parts), "{file} differs");
    }
}

/// A resumed cross-validation once began with its first fold again.
#[test]
fn a_resumed_cross_validation_does_only_the_folds_that_are_missing() {
    const FOLDS: &str = "cross-validation";
    let scratch = Scratch::new("folds");
    let (data, config) = (dataset(&scratch), config(2000));
    let whole = RunFolder(scratch.path("whole"));
    let watch = Watch::default();
    perform_with(&data, &whole, &watch, &config).unwrap();
    let total = watch.heard.into_inner().unwrap().stages.iter().find(|stage| stage.0 == FOLDS).expect(FOLDS).1;

    let parts = RunFolder(scratch.path("parts"));
    let stopped = |after: u64, early: bool| {
        let watch = Watch { at: Some(FOLDS.into()), after, early, ..Watch::default() };
        let outcome = perform_with(&data, &parts, &watch, &config);
        assert!(matches!(outcome, Err(Error::Interrupted)), "after {after} folds");
        let (name, _, done, _) = watch.heard.into_inner().unwrap().stages.pop().unwrap();
        assert_eq!(name, FOLDS);
        done
    };
    assert_eq!(stopped(0, true), 0, "nothing is kept at the beginning");
    for after in [1, 3, total - 1] {
        assert_eq!(stopped(after, false), after);
        // Asked to stop before the first fold, it can only count those that are kept.
        assert_eq!(stopped(0, true), after, "folds that were kept");
    }
    perform_with(&data, &parts, &Watch::default(), &config).unwrap();
    for file in ["model.safetensors", "density.svg"] {
        let read = |folder: &RunFolder| std::fs::read(folder.0.join(file)).unwrap();
        assert!(read(&whole) == read(&parts), "{file} differs");
    }
}
