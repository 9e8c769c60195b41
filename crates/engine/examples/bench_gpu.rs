//! Our side of `bench/compare-gpu`: times steps on a GPU, one line of JSON each.
//!
//! `bench_gpu [--device cuda:0] [--precision f32|tf32] [--seconds 0.5] [--profile yes] NAME…` with names as `ebm-R1`, `ebm-R10`, `ebm-50k`,
//! `context-R1`, `vae-R1`, `vae-R10`, `vae-R40`; or `bench_gpu source DIR NAME…` writes the kernels, without a GPU.
mod steps;

use minvel_engine::{Device, Options, Precision};
use std::time::Instant;
use steps::{Built, Step};

fn workload(name: &str) -> (Step, usize) {
    let energy = |rows| Step::Energy { d: 2, context: 0, h: 100, rows };
    let step = match name.split("-R").next().unwrap_or_default() {
        "ebm" => energy(200),
        "ebm-50k" => energy(50_000),
        "context" => Step::Energy { d: 9, context: 784, h: 256, rows: 128 },
        "vae" => Step::Vae { nz: 8, h: 256, rows: 128 },
        _ => panic!("no workload {name}"),
    };
    (step, name.split("-R").nth(1).map_or(1, |r| r.parse().expect("-R is followed by a number")))
}

fn main() {
    let mut options = Options { device: Device::Cuda(0), ..Options::default() };
    let mut args = std::env::args().skip(1).peekable();
    let (mut seconds, mut folder, mut profile) = (0.5, None, false);
    while let Some(arg) = args.peek().filter(|a| a.starts_with("--") || *a == "source").cloned() {
        args.next();
        let value = args.next().expect("an option has a value");
        match arg.as_str() {
            "--device" => options.device = value.parse().unwrap_or_else(|why| panic!("{why}")),
            "--precision" if value == "tf32" => options.precision = Precision::Tf32,
            "--precision" => options.precision = Precision::F32,
            "--seconds" => seconds = value.parse().expect("--seconds takes a number"),
            "--profile" => profile = value == "yes",
            "source" => folder = Some(value),
            _ => panic!("unknown option {arg}"),
        }
    }
    for name in args {
        let (step, replicas) = workload(&name);
        options.replicas = replicas;
        match &folder {
            Some(folder) => write_sources(folder, &name, step, &options),
            None => time(&name, step, &options, seconds, profile),
        }
    }
}

fn write_sources(folder: &str, name: &str, step: Step, options: &Options) {
    let built = Built::new(step, options.replicas);
    let start = Instant::now();
    let sources = built.graph.cuda_source::<f32>(&built.outputs, &built.updates, options);
    let (summary, kernels) = sources.split_last().expect("at least the summary");
    let planned = start.elapsed().as_secs_f64() * 1e3;
    println!("{name}: {} kernels, planned in {planned:.1} ms\n{summary}", kernels.len());
    for (i, kernel) in kernels.iter().enumerate() {
        std::fs::write(format!("{folder}/{name}-{i:02}.cu"), kernel).expect("the folder can be written");
    }
}

fn time(name: &str, step: Step, options: &Options, seconds: f64, profile: bool) {
    let mut built = Built::new(step, options.replicas);
    let start = Instant::now();
    let mut program = built.compile(options);
    let compiled = start.elapsed().as_secs_f64();
    let inputs: Vec<(&str, &[f32])> = built.inputs.iter().map(|(n, v)| (*n, v.as_slice())).collect();
    let bytes: Vec<(&str, &[u8])> = built.bytes.iter().map(|(n, v)| (*n, v.as_slice())).collect();
    let mut loaded = program.loaded(&inputs).with_bytes(&bytes);
    loaded.run_steps(&mut built.state, 0, 0..1);
    let loss = loaded.output(0)[0];
    let first = start.elapsed().as_secs_f64();
    let mut step_number = 1;
    let mut run = |count: u32| {
        let start = Instant::now();
        loaded.run_steps(&mut built.state, 0, step_number..step_number + count);
        step_number += count;
        let loss = loaded.output(0)[0];
        (start.elapsed().as_secs_f64() / f64::from(count), loss)
    };
    run(64);
    let per_step = run(64).0;
    let count = ((seconds / 7.0 / per_step) as u32).clamp(32, 20_000);
    let mut rounds: Vec<f64> = (0..7).map(|_| run(count).0 * 1e3).collect();
    rounds.sort_by(f64::total_cmp);
    let last = run(1).1;
    println!(
        "{{\"name\": \"{name}\", \"precision\": \"{}\", \"ms\": {:.5}, \"best\": {:.5}, \"compile_s\": {compiled:.3}, \
         \"first_s\": {first:.3}, \"kernels\": {}, \"gflop\": {:.3}, \"loss\": {loss:.5}, \"last\": {last:.5}}}",
        options.precision,
        rounds[3],
        rounds[0],
        program.stages(),
        step.flops() * options.replicas as f64 / 1e9
    );
    if profile {
        let times = program.profile().expect("the GPU works");
        for (line, us) in program.describe().lines().skip(1).zip(&times) {
            println!("{us:7.2} µs  {line}");
        }
        println!("{:7.2} µs  in all", times.iter().sum::<f64>());
    }
}
