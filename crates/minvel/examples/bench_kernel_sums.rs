//! Sums over kernels, rows a second: on the CPU, and on a GPU with `MINVEL_DEVICE=cuda`. For `docs/benchmarks`.
//!
//! ```text
//! cargo run --release -p minvel --example bench_kernel_sums -- sphere:2 100000 1000000 10000000
//! ```
//!
//! The manifold, the number of centres, and numbers of rows. Centres and rows are points of the same mixture of wrapped normal
//! laws. The first call compiles kernels and copies the lists to the GPU; the rate is that of the best of the others.

use minvel::density::LocalSettings;
use minvel::manifold::parse;
use minvel::train::Context;
use minvel::{Device, Manifold};
use minvel_engine::random::{Key, Stream};
use std::sync::Arc;
use std::time::Instant;

/// Points of twenty wrapped normal laws of several widths.
fn mixture(manifold: &Arc<dyn Manifold>, count: usize, seed: u64) -> Vec<f64> {
    const LAWS: usize = 20;
    let spaces = manifold.spaces().expect("a product of model spaces");
    let normals =
        |n: usize, width: f64, stream: &mut Stream| -> Vec<f64> { (0..n).map(|_| width * stream.normal()).collect() };
    let mut laws = Stream::new(Key::new(1, 0), 1);
    let mut middles = vec![];
    for _ in 0..LAWS {
        for space in &spaces {
            let mut c = vec![0.0; space.ambient()];
            if c.len() > space.dim() {
                c[space.dim()] = 1.0;
            }
            let mut x = c.clone();
            space.from_normal(&c, &normals(space.dim(), 1.0, &mut laws), &mut x);
            middles.extend(x);
        }
    }
    let mut stream = Stream::new(Key::new(seed, 0), 2);
    let mut points = Vec::with_capacity(count * manifold.ambient());
    for _ in 0..count {
        let law = (stream.uniform() * LAWS as f64) as usize % LAWS;
        let (mut at, width) = (law * manifold.ambient(), 0.05 + 0.02 * law as f64);
        for space in &spaces {
            let mut x = vec![0.0; space.ambient()];
            space.from_normal(&middles[at..][..space.ambient()], &normals(space.dim(), width, &mut stream), &mut x);
            points.extend(x);
            at += space.ambient();
        }
    }
    points
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, centres, rows @ ..] = arguments.as_slice() else {
        panic!("expected a manifold, the number of centres, and numbers of rows")
    };
    let number = |text: &String| text.parse::<usize>().unwrap_or_else(|_| panic!("{text} is no number"));
    let manifold = parse(name).unwrap_or_else(|why| panic!("{why}"));
    let context = Context::bare();
    let mut cpu = Context::bare();
    cpu.device = Device::Cpu;
    let begun = Instant::now();
    let fit = LocalSettings::default().fit(&manifold, mixture(&manifold, number(centres), 1), 1, &context, false);
    let fit = fit.unwrap_or_else(|why| panic!("{why}")).density;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{name}: {centres} centres, {} families, fitted in {seconds:.1} s", fit.families().len());
    for (k, family) in fit.families().iter().enumerate() {
        println!("  {:?} about {} centres, share {:.4}", family.kind, fit.kernels_of(k), family.share);
    }
    for rows in rows.iter().map(number) {
        let points = mixture(&manifold, rows, 2);
        let once = || {
            let begun = Instant::now();
            let logs = fit.log_density_of(&points, &context).unwrap_or_else(|why| panic!("{why}"));
            (begun.elapsed().as_secs_f64(), logs)
        };
        let (first, logs) = once();
        let best = (0..3).map(|_| once().0).fold(f64::INFINITY, f64::min);
        let some = rows.min(100_000);
        let reference = fit.log_density_of(&points[..some * manifold.ambient()], &cpu).expect("the CPU has no trouble");
        let apart = logs.iter().zip(&reference).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        println!(
            "{name}, {centres} centres, {rows} rows on {}, {} threads: {:.0} rows a second (first call {first:.2} s), \
             {apart:.1e} from the CPU",
            context.device,
            context.threads(),
            rows as f64 / best
        );
    }
}
