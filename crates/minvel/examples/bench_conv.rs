//! Our side of `bench/compare-conv`: times the training step of the convolutional auto-encoder of CIFAR-10 (docs/math §4.8, codes
//! on the 32-dimensional sphere), one line of JSON for each method.
//!
//! `bench_conv [--device cuda:0] [--precision f32|tf32] [--batch 128] [--seeds 1] [--seconds 1] [--profile yes] METHOD…` with methods
//! `velocity`, `adversarial` and `discrepancy`; or with `--source FOLDER` it writes the kernels, without a GPU.

use minvel::autoencoder::{AutoencoderLearning, AutoencoderSettings, Matched};
use minvel::network::Activation;
use minvel_engine::{Device, Graph, Options, Precision};
use std::time::Instant;

/// Images of the data set.
const COUNT: usize = 50_000;
const PIXELS: usize = 3072;

fn learning(method: &str, batch: usize) -> AutoencoderLearning {
    let settings = AutoencoderSettings {
        latent: "sphere:32".parse().unwrap(),
        posterior: "point".parse().unwrap(),
        likelihood: "dequantised".parse().unwrap(),
        deviation: std::f64::consts::FRAC_1_SQRT_2,
        network: "convolutional".parse().unwrap(),
        filters: vec![64, 128, 256],
        hidden: vec![512],
        activation: Activation::Relu,
        rate: 1e-4,
        batch,
        iterations: 1,
        matching: Matched {
            kind: method.parse().unwrap(),
            weight: 10.0,
            step: 1e-3,
            penalty: 1e-4,
            flow: "chart".parse().unwrap(),
            spectral: false,
        },
        official: false,
    };
    settings.learning([32, 32, 3]).unwrap_or_else(|why| panic!("{why}"))
}

fn main() {
    let mut options = Options { device: Device::Cuda(0), ..Options::default() };
    let (mut batch, mut seconds, mut profile, mut source) = (128, 1.0, false, None);
    let mut args = std::env::args().skip(1).peekable();
    while let Some(arg) = args.next_if(|a| a.starts_with("--")) {
        let value = args.next().expect("an option has a value");
        match arg.as_str() {
            "--device" => options.device = value.parse().unwrap_or_else(|why| panic!("{why}")),
            "--precision" if value == "tf32" => options.precision = Precision::Tf32,
            "--precision" => options.precision = Precision::F32,
            "--batch" => batch = value.parse().expect("--batch takes a number"),
            "--seeds" => options.replicas = value.parse().expect("--seeds takes a number"),
            "--seconds" => seconds = value.parse().expect("--seconds takes a number"),
            "--profile" => profile = value == "yes",
            "--source" => source = Some(std::path::PathBuf::from(value)),
            _ => panic!("unknown option {arg}"),
        }
    }
    for method in args {
        match &source {
            Some(folder) => show(&method, batch, &options, folder),
            None => time(&method, batch, &options, seconds, profile),
        }
    }
}

fn show(method: &str, batch: usize, options: &Options, folder: &std::path::Path) {
    let g = Graph::new();
    let step = learning(method, batch).step(g.input_bytes("images", [COUNT, PIXELS]));
    let sources = g.cuda_source::<f32>(&step.outputs, &step.all_updates(), options);
    let (summary, kernels) = sources.split_last().expect("at least the summary");
    for (k, kernel) in kernels.iter().enumerate() {
        std::fs::write(folder.join(format!("{method}-{k:03}.cu")), kernel).expect("a folder that can be written to");
    }
    println!("{method}: {} kernels\n{summary}", kernels.len());
}

fn time(method: &str, batch: usize, options: &Options, seconds: f64, profile: bool) {
    let learning = learning(method, batch);
    let g = Graph::new();
    let step = learning.step(g.input_bytes("images", [COUNT, PIXELS]));
    let mut state = learning.start::<f32>(options.replicas, 1);
    step.initialise(&mut state);
    let images: Vec<u8> = (0..COUNT * PIXELS).map(|k| (k * 7919 % 256) as u8).collect();
    let start = Instant::now();
    let mut program = g.compile::<f32>(&step.outputs, &step.all_updates(), options);
    let inputs: [(&str, &[u8]); 1] = [("images", &images)];
    let mut loaded = program.loaded(&[]).with_bytes(&inputs);
    loaded.run_steps(&mut state, 0, 0..1);
    let (loss, mut done) = (loaded.output(0)[0], 1);
    let first = start.elapsed().as_secs_f64();
    let mut run = |count: u32| {
        let start = Instant::now();
        loaded.run_steps(&mut state, 0, done..done + count);
        done += count;
        assert!(loaded.output(0)[0].is_finite(), "the loss is not a number"); // and the device is done
        start.elapsed().as_secs_f64() / f64::from(count)
    };
    run(40);
    let count = ((seconds / 5.0 / run(40)) as u32).clamp(2, 500);
    let mut rounds: Vec<f64> = (0..5).map(|_| run(count) * 1e3).collect();
    rounds.sort_by(f64::total_cmp);
    println!(
        "{{\"name\": \"{method}\", \"precision\": \"{}\", \"device\": \"{}\", \"batch\": {batch}, \"seeds\": {}, \"ms\": {:.5}, \
         \"best\": {:.5}, \"first_s\": {first:.3}, \"kernels\": {}, \"loss\": {loss:.3}, \"last\": {:.3}}}",
        options.precision,
        options.device,
        options.replicas,
        rounds[2],
        rounds[0],
        program.stages(),
        program.output(0)[0]
    );
    if profile {
        let times = program.profile().expect("the GPU works");
        for (line, us) in program.describe().lines().skip(1).zip(&times) {
            println!("{us:9.2} µs  {line}");
        }
        println!("{:9.2} µs  in all", times.iter().sum::<f64>());
    }
}
