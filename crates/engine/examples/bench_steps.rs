//! Our side of `bench/compare`: times the training steps W1–W4 on commands from standard input.
//!
//! Protocol: prints `ready`; then answers each line. `run W1 200` → `ms_per_step loss`; `first W1` → ms from building
//! the graph to the end of the first step; `describe W1` → its plan; `gemm` → GFLOP/s; `limit W1` → ms its products take at that rate; `quit`.
use minvel_engine::{Expr, Graph, Options, Program, State, grad, init::Init, optim::Optimiser};
use std::io::{BufRead, Write};
use std::time::Instant;

/// A workload: dimension, context, width, rows, replicas.
#[derive(Clone, Copy)]
struct Workload {
    d: usize,
    context: usize,
    h: usize,
    rows: usize,
    replicas: usize,
}

impl Workload {
    fn named(name: &str) -> Option<Self> {
        let make = |d, context, h, rows, replicas| Some(Workload { d, context, h, rows, replicas });
        match name {
            "W1" => make(2, 0, 100, 200, 1),
            "W2" => make(2, 0, 100, 50_000, 1),
            "W3" => make(9, 784, 256, 128, 1),
            "W4" => make(2, 0, 100, 200, 10),
            _ => None,
        }
    }

    /// Operations in products: nine with the square matrix, the context's two, the thin ones.
    fn flops(&self) -> f64 {
        let thin = 2 * 9 * self.d * self.h;
        (2 * self.rows * self.replicas * (9 * self.h * self.h + 2 * self.context * self.h + thin)) as f64
    }
}

/// A workload ready to run.
struct Bench {
    program: Program<f32>,
    state: State<f32>,
    x: Vec<f32>,
    context: Vec<f32>,
    step: u32,
}

impl Bench {
    fn new(w: Workload, threads: usize) -> Self {
        let g = Graph::new();
        let eps = 1e-3_f64;
        let mut shapes = vec![("w1", [w.d, w.h]), ("b1", [1, w.h]), ("w2", [w.h, w.h]), ("b2", [1, w.h])];
        shapes.extend([("w3", [w.h, w.d]), ("b3", [1, w.d])]);
        if w.context > 0 {
            shapes.push(("wc", [w.context, w.h]));
        }
        let theta: Vec<Expr> = shapes.iter().map(|&(name, dims)| g.variable(name, dims)).collect();
        let x = g.input_rows("x", w.rows, [w.d]);
        let mut first_bias = theta[1].reshape([w.h]);
        if w.context > 0 {
            // The context's part of the first layer, computed once for both energies.
            first_bias = first_bias + g.input_rows("c", w.rows, [w.context]).matmul(theta[6]);
        }
        let energy = |x| {
            let h = (Expr::matmul(x, theta[0]) + first_bias).tanh();
            let h = (h.matmul(theta[2]) + theta[3].reshape([w.h])).tanh();
            (h.matmul(theta[4]) + theta[5].reshape([w.d])).dot(x)
        };
        let u = (2.0 * eps).sqrt() * g.normal_like(0, x);
        let de = grad(energy(x), &[x])[0];
        let x_minus = x - 0.5 * eps * de + u;
        let loss = (-2.0 / eps * (energy(x_minus) - energy(x) - u.dot(de))).mean_rows();
        let updates = Optimiser::rmsprop_torch(1e-3).minimise(loss, &theta);
        let options = Options { replicas: w.replicas, threads, ..Options::default() };
        let program = g.compile::<f32>(&[loss], &updates.updates, &options);
        let mut state = State::new(w.replicas);
        for (stream, (name, dims)) in shapes.iter().enumerate() {
            let law = if dims[0] == 1 { Init::ZEROS } else { Init::GlorotUniform };
            law.set(&mut state, name, dims, 0, stream as u32);
        }
        updates.initialise(&mut state);
        let data = |n: usize, stream| {
            let key = minvel_engine::random::Key::new(1, 0);
            let normals = minvel_engine::random::Stream::new(key, stream).samples(minvel_engine::Draw::Normal);
            normals.take(n).map(|z| z as f32).collect::<Vec<f32>>()
        };
        let (x, context) = (data(w.replicas * w.rows * w.d, 0), data(w.rows * w.context, 1));
        Bench { program, state, x, context, step: 0 }
    }

    /// Runs steps; returns ms per step and the last loss, averaged over replicas.
    fn run(&mut self, steps: u32) -> (f64, f32) {
        let start = Instant::now();
        let inputs: [(&str, &[f32]); 2] = [("x", &self.x), ("c", &self.context)];
        self.program.run_steps(&mut self.state, &inputs, 0, self.step..self.step + steps);
        self.step += steps;
        let losses = self.program.output(0);
        let mean = losses.iter().sum::<f32>() / losses.len() as f32;
        (start.elapsed().as_secs_f64() * 1e3 / steps as f64, mean)
    }
}

/// GFLOP/s of the `gemm` crate on products of the size of a tile, one stream of them per thread.
fn gemm_throughput(threads: usize) -> f64 {
    let (m, n, k, turns) = (256, 256, 256, 400);
    (0..5)
        .map(|_| {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        let (a, b, mut c) = (vec![1f32; m * k], vec![1f32; k * n], vec![0f32; m * n]);
                        for _ in 0..turns {
                            product(m, n, k, &a, &b, &mut c);
                        }
                        std::hint::black_box(&c);
                    });
                }
            });
            (2 * m * n * k * turns * threads) as f64 / start.elapsed().as_secs_f64() / 1e9
        })
        .fold(0.0, f64::max)
}

#[allow(unsafe_code)]
fn product(m: usize, n: usize, k: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    let [ns, ks] = [n as isize, k as isize];
    // SAFETY: the slices hold m×k, k×n and m×n elements, row-major.
    unsafe {
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        let one_thread = gemm::Parallelism::None;
        gemm::gemm(m, n, k, c, 1, ns, false, a, 1, ks, b, 1, ns, 0.0, 1.0, false, false, false, one_thread);
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let position = args.iter().position(|a| a == "--threads");
    let threads = position.and_then(|i| args.get(i + 1)?.parse().ok()).unwrap_or(0);
    let cores = if threads > 0 { threads } else { std::thread::available_parallelism().map_or(1, |n| n.get()) };
    let mut benches: Vec<(String, Bench)> = vec![];
    let mut rate = None;
    println!("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["run", name, steps] => {
                let (Some(w), Ok(steps)) = (Workload::named(name), steps.parse()) else { panic!("what is {line}?") };
                if !benches.iter().any(|(n, _)| n == name) {
                    benches.push((name.to_string(), Bench::new(w, threads)));
                }
                let bench = benches.iter_mut().find(|(n, _)| n == name).map(|(_, b)| b).expect("made above");
                let (ms, loss) = bench.run(steps);
                println!("{ms:.6} {loss}");
            }
            ["first", name] => {
                let w = Workload::named(name).unwrap_or_else(|| panic!("no workload {name}"));
                let start = Instant::now();
                let mut bench = Bench::new(w, threads);
                bench.run(1);
                println!("{:.6}", start.elapsed().as_secs_f64() * 1e3);
            }
            ["describe", name] => {
                let w = Workload::named(name).unwrap_or_else(|| panic!("no workload {name}"));
                println!("{}", Bench::new(w, threads).program.describe());
            }
            ["gemm"] => println!("{:.3}", rate.insert(gemm_throughput(cores))),
            ["limit", name] => {
                let w = Workload::named(name).unwrap_or_else(|| panic!("no workload {name}"));
                let rate = *rate.get_or_insert_with(|| gemm_throughput(cores));
                println!("{:.6}", w.flops() / rate / 1e6);
            }
            ["quit"] | [] => break,
            _ => panic!("unknown command: {line}"),
        }
        std::io::stdout().flush().expect("standard output is open");
    }
}
