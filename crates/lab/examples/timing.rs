//! How long a fit takes, and scores of many points, in Rust alone: the measure for `bench/compare-python`.
//!
//! `timing fit ROWS.npy MODEL.safetensors THREADS` fits rows of latitude and longitude as `minvel fit --effort quick` does and writes the model;
//! `timing score ROWS.npy MODEL.safetensors THREADS` scores points that lie in memory. Both print wall and CPU seconds.

use minvel::train::{Context, Silent, Stop};
use minvel::{Device, Error};
use minvel_lab::fitting::{self, FitRun, read_model};
use minvel_lab::report::Versions;
use minvel_lab::table::{Dataset, Layout, Request, TableOptions, Units};
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, rows, model, threads] = arguments.as_slice() else {
        eprintln!("usage: timing fit|score ROWS.npy MODEL.safetensors THREADS");
        std::process::exit(2);
    };
    let threads = threads.parse().map_err(|_| Error::config(format!("`{threads}` is no number of threads")))?;
    match what.as_str() {
        "fit" => fit(Path::new(rows), Path::new(model), threads),
        _ => score(Path::new(rows), Path::new(model), threads),
    }
}

fn fit(rows: &Path, model: &Path, threads: usize) -> Result<(), Error> {
    let request = Request {
        manifold: Some("sphere:2".into()),
        layout: Some(vec![Layout::LatLon]),
        units: Some(Units::Degrees),
        ..Request::default()
    };
    let dataset = Dataset::read(rows, &request)?;
    let mut config = fitting::defaults().quick()?;
    config.set("objective=\"none\"")?;
    let run = FitRun {
        dataset: &dataset,
        block: None,
        config: &config,
        observer: &Silent,
        stop: Stop::default(),
        threads,
        device: Device::Cpu,
        save_every: Duration::MAX,
        versions: Versions::default(),
        revision: "",
    };
    let context = context(threads);
    let (fitted, _) = timed(|| run.learn(&context))?;
    fitted.write(model, &dataset.coordinates)
}

fn score(rows: &Path, model: &Path, threads: usize) -> Result<(), Error> {
    let (model, coordinates) = read_model(model)?;
    let data = Dataset::read_as(rows, &coordinates, &TableOptions::default())?;
    let context = context(threads);
    model.log_density(&data.points[..data.points.len().min(3 << 16)], &context)?; // the first use of a model is slower
    timed(|| model.log_density(&data.points, &context)).map(|_| ())
}

fn context(threads: usize) -> Context<'static> {
    let mut context = Context::of_threads(threads);
    context.device = Device::Cpu;
    context
}

fn timed<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let outcome = work()?;
    println!("{} {}", wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    Ok(outcome)
}

/// CPU seconds of this process so far, by the clock ticks (a hundredth of a second) that Linux counts; else 0.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    after.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
