//! Programs on a GPU beside the same programs on the CPU.
//!
//! Tests that need a GPU are skipped where there is none. The suites of the operations, of random programs and of the
//! optimisers run on a GPU too: `MINVEL_DEVICE=cuda cargo test --release`; on an emulated one by `emulator/run cargo test …`.

use minvel_engine::init::Init;
use minvel_engine::optim::Optimiser;
use minvel_engine::random::{Key, Stream};
use minvel_engine::{Clock, Device, Draw, Expr, Graph, Options, Precision, State, Window, grad};
use minvel_testing::{Need, Test, note, test};

pub fn tests() -> Vec<Test> {
    vec![
        test!(a_training_run_on_the_gpu_is_that_on_the_cpu).needs(a_gpu()),
        test!(a_run_on_the_gpu_repeats_bit_for_bit).needs(a_gpu()),
        test!(steps_in_one_call_are_steps_in_many).needs(a_gpu()),
        test!(random_numbers_have_the_bits_of_the_cpu).needs(a_gpu()),
        test!(products_keep_the_error_of_f32_and_tf32_does_not).needs(a_gpu()),
        test!(tiles_end_where_their_matrices_end).needs(a_gpu()),
        test!(a_nan_comes_through_a_product).needs(a_gpu()),
        test!(values_left_on_the_gpu_belong_to_the_state_that_made_them).needs(a_gpu()),
        test!(a_card_that_is_not_there_is_an_error_that_says_what_to_do),
        test!(a_small_step_is_few_kernels),
        test!(long_sums_over_rows_are_cut_into_pieces_of_large_tiles_for_any_number_of_replicas),
        test!(products_of_one_kernel_choose_their_tiles_together),
        test!(programs_that_differ_in_constants_share_their_kernels),
        test!(constants_reach_a_shared_kernel).needs(a_gpu()),
        test!(convolutions_and_their_gradients_on_the_gpu_are_those_on_the_cpu).needs(a_gpu()),
        test!(short_products_with_transposed_matrices_load_in_fours),
        test!(short_products_with_transposed_matrices_on_the_gpu_are_those_on_the_cpu).needs(a_gpu()),
        test!(values_computed_again_have_the_same_bits).needs(a_gpu()),
        test!(bytes_stay_bytes_in_the_text_of_a_kernel),
        test!(positions_in_large_tables_do_not_overflow),
        test!(bytes_on_the_gpu_have_the_bits_of_the_cpu).needs(a_gpu()),
    ]
}

fn a_gpu() -> Need {
    minvel_testing::a_gpu(Device::Cuda(0).checked().map(drop).map_err(|why| why.to_string()))
}

fn gpu() -> Options {
    Options { device: Device::Cuda(0), ..Options::default() }
}

fn cpu() -> Options {
    Options { device: Device::Cpu, ..Options::default() }
}

/// Minimum velocity learning of ⟨x, ψ(x)⟩ with one hidden layer of some width, on fixed data.
struct Training {
    graph: &'static Graph,
    loss: Expr<'static>,
    updates: minvel_engine::optim::Updates<'static>,
    shapes: Vec<(&'static str, [usize; 2])>,
    x: Vec<f64>,
}

const ROWS: usize = 200;

impl Training {
    fn new(h: usize) -> Self {
        Self::with(h, 0.1, 1e-3)
    }

    /// With a step size ε and a learning rate.
    fn with(h: usize, eps: f64, rate: f64) -> Self {
        let g: &'static Graph = Box::leak(Box::new(Graph::new()));
        let shapes =
            vec![("w1", [2, h]), ("b1", [1, h]), ("w2", [h, h]), ("b2", [1, h]), ("w3", [h, 2]), ("b3", [1, 2])];
        let w: Vec<Expr> = shapes.iter().map(|&(n, s)| g.variable(n, s)).collect();
        let x = g.input_rows("x", ROWS, [2]);
        let flat = |b: Expr<'static>| b.reshape([b.shape().dims[1]]);
        let energy = |x: Expr<'static>| {
            let a = (x.matmul(w[0]) + flat(w[1])).tanh();
            let b = (a.matmul(w[2]) + flat(w[3])).tanh();
            (b.matmul(w[4]) + flat(w[5])).dot(x)
        };
        let u = (2.0 * eps).sqrt() * g.normal_like(0, x);
        let de = grad(energy(x), &[x])[0];
        let moved = x - 0.5 * eps * de + u;
        let loss = (-2.0 / eps * (energy(moved) - energy(x) - u.dot(de)) + 0.1 * energy(x).square()).mean_rows();
        let updates = Optimiser::adam(rate).minimise(loss, &w);
        let x = Stream::new(Key::new(1, 0), 0).samples(Draw::Normal).take(ROWS * 2).collect();
        Training { graph: g, loss, updates, shapes, x }
    }

    /// The loss after each of some runs of ten steps, and the state at the end.
    fn run<T: minvel_engine::math::Real>(&self, options: &Options, runs: u32) -> (Vec<T>, State<T>) {
        let mut program = self.graph.compile::<T>(&[self.loss], &self.updates.updates, options);
        let mut state = State::new(options.replicas);
        for (stream, (name, dims)) in self.shapes.iter().enumerate() {
            Init::GlorotUniform.set(&mut state, name, dims, 0, stream as u32);
        }
        self.updates.initialise(&mut state);
        let x: Vec<T> = self.x.iter().map(|&v| T::from_f64(v)).collect();
        let losses = (0..runs).flat_map(|k| {
            program.run_steps(&mut state, &[("x", &x)], 7, 10 * k..10 * k + 10);
            program.output(0).to_vec()
        });
        (losses.collect(), state)
    }
}

fn a_training_run_on_the_gpu_is_that_on_the_cpu() {
    let options = gpu();
    let options = Options { replicas: 3, ..options };
    let training = Training::new(40);
    let (ours, state) = training.run::<f64>(&options, 5);
    let (theirs, expected) = training.run::<f64>(&Options { replicas: 3, ..cpu() }, 5);
    // Sums of 200 terms in another order, fifty steps of them, each step amplifying by a little.
    let close = |a: f64, b: f64| (a - b).abs() <= 1e6 * f64::EPSILON * a.abs().max(b.abs()).max(1.0);
    assert!(ours.iter().zip(&theirs).all(|(&a, &b)| close(a, b)), "{ours:?}\n{theirs:?}");
    for ((name, a), (_, b)) in state.iter().zip(expected.iter()) {
        assert!(a.iter().zip(b).all(|(&a, &b)| close(a, b)), "{name}");
    }
}

fn a_run_on_the_gpu_repeats_bit_for_bit() {
    let options = gpu();
    let training = Training::new(100);
    for replicas in [1, 10] {
        let options = Options { replicas, ..options.clone() };
        let bits = || {
            let (losses, state) = training.run::<f32>(&options, 2);
            let values = state.iter().flat_map(|(_, v)| v.to_vec()).collect::<Vec<f32>>();
            losses.into_iter().chain(values).map(f32::to_bits).collect::<Vec<u32>>()
        };
        assert_eq!(bits(), bits(), "{replicas} replicas");
    }
}

fn steps_in_one_call_are_steps_in_many() {
    let options = gpu();
    let g = Graph::new();
    let v = g.variable("v", [3]);
    let next = 0.5 * v + g.step() + g.random(Draw::Uniform, 4, [3]);
    let run = |cuts: &[u32]| {
        let mut program = g.compile::<f32>(&[next], &[(v, next)], &options);
        let mut state = State::new(1);
        state.set("v", &[1.0f32, 2.0, 3.0], 3);
        cuts.windows(2).for_each(|w| program.run_steps(&mut state, &[], 3, w[0]..w[1]));
        (state.get("v").map(<[f32]>::to_vec), program.output(0).to_vec())
    };
    let whole = run(&[0, 45]);
    assert_eq!(whole, run(&[0, 1, 2, 19, 20, 37, 45]));
    assert_eq!(whole.0.as_deref(), Some(&whole.1[..]));
}

fn random_numbers_have_the_bits_of_the_cpu() {
    let options = gpu();
    let g = Graph::new();
    let draws =
        [Draw::Bits, Draw::Uniform, Draw::Rademacher, Draw::Integer(1000), Draw::Permutation(37), Draw::Epoch(41)];
    let mut outputs: Vec<Expr> = vec![];
    for (stream, &draw) in draws.iter().enumerate() {
        outputs.push(g.random_rows(draw, stream as u32, 37, [3, 5]));
        outputs.push(g.random(draw, stream as u32 + 20, [70]));
    }
    let clock = Clock { seed: 0x0123_4567_89AB_CDEF, step: 9 };
    let run = |options: &Options| {
        let options = Options { replicas: 3, ..options.clone() };
        let mut program = g.compile::<f32>(&outputs, &[], &options);
        program.run(&mut State::of_replicas(2..5), &[], clock);
        (0..outputs.len()).map(|k| program.output(k).to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(run(&options), run(&cpu()));
    // Normals agree to the last places of their radius: logarithm, root, sine and a product round once or twice each.
    let normals = g.random_rows(Draw::Normal, 3, 500, [6]);
    let draw = |options: &Options| {
        let mut program = g.compile::<f32>(&[normals], &[], options);
        program.run(&mut State::new(1), &[], clock);
        program.output(0).to_vec()
    };
    let worst =
        draw(&options).iter().zip(draw(&cpu())).map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f32::max);
    note!("normals differ by at most {:.2} ulp", worst / f32::EPSILON);
    assert!(worst <= 2.0 * f32::EPSILON);
}

/// Σ_k |a||b| bounds an entry of a product; an error of `ulps` roundings of it is what f32 promises.
fn products_keep_the_error_of_f32_and_tf32_does_not() {
    let options = gpu();
    // Tensor cores cut off what they add: sums of positive numbers would shrink with their length.
    let positive = [(128, 784, 256, true), (2048, 4096, 64, true)];
    let any = [(128, 256, 256, false), (200, 100, 100, false), (33, 784, 9, false), (5120, 64, 64, false)];
    for (rows, k, n, positive) in any.into_iter().chain(positive) {
        let g = Graph::new();
        let (a, b) = (g.input_rows("a", rows, [k]), g.input("b", [k, n]));
        let product = a.matmul(b);
        let draw = |len: usize, stream: u32| -> Vec<f32> {
            let sign = |v: f64| if positive { v.abs() } else { v };
            Stream::new(Key::new(3, 0), stream).samples(Draw::Normal).take(len).map(|v| sign(v) as f32).collect()
        };
        let (av, bv) = (draw(rows * k, 0), draw(k * n, 1));
        let error = |precision| {
            let options = Options { precision, ..options.clone() };
            let mut program = g.compile::<f32>(&[product], &[], &options);
            program.run(&mut State::new(1), &[("a", &av), ("b", &bv)], Clock { seed: 0, step: 0 });
            let entry = |e: usize| {
                let terms = (0..k).map(|i| f64::from(av[e / n * k + i]) * f64::from(bv[i * n + e % n]));
                let (sum, size) = terms.fold((0.0, 0.0), |(s, z), t| (s + t, z + t.abs()));
                (f64::from(program.output(0)[e]) - sum).abs() / size
            };
            (0..rows * n).step_by(7).map(entry).fold(0.0, f64::max) / f64::from(f32::EPSILON)
        };
        let (f32_error, tf32_error) = (error(Precision::F32), error(Precision::Tf32));
        note!("{rows}×{k}×{n}, positive {positive}: {f32_error:.2} ulp of Σ|a||b|, tf32 {tf32_error:.0}");
        // A plain sum of k products may be off by k/2 roundings; three products of parts by 6 at any length, and a sum of k/32
        // positive pieces by as many halves, but hardly by more than three times their root.
        let pieces = if positive { 1.5 * (k as f64 / 32.0).sqrt() } else { 0.0 };
        assert!(f32_error < 6.0 + pieces, "{f32_error}");
        assert!(tf32_error > 12.0, "tf32 rounds to 11 bits, and this test would not notice: {tf32_error}");
    }
}

/// Tiles of many sizes, operands that lie along k or across it (or one term's so, the other's not), and ends of matrices within
/// a tile: every entry is what f64 has.
fn tiles_end_where_their_matrices_end() {
    let options = gpu();
    let mut tiles = String::new();
    // Lengths that are no multiple of four are copied and stored one by one.
    for (replicas, [m, k, n]) in [(1, [100, 40, 36]), (3, [150, 200, 90]), (12, [380, 68, 516])] {
        let g = Graph::new();
        let [a, b, c] = [("a", [m, k]), ("b", [k, n]), ("c", [m, n])].map(|(name, shape)| g.input(name, shape));
        let [d, e] = [("d", [k, m]), ("e", [n, k])].map(|(name, shape)| g.input(name, shape).transpose(&[1, 0]));
        let mixed = a.matmul(e) + d.matmul(b);
        let forms = [a.matmul(b) + c, a.matmul(e) + c, d.matmul(b) + c, d.matmul(e) + c, mixed + c];
        let draw = |len: usize, stream: u32| -> Vec<f32> {
            let normals = Stream::new(Key::new(9, 0), stream).samples(Draw::Normal);
            normals.take(replicas * len).map(|v| v as f32).collect()
        };
        let names = ["a", "b", "c", "d", "e"];
        let inputs =
            [(m * k, 0), (k * n, 1), (m * n, 2), (k * m, 3), (n * k, 4)].map(|(len, stream)| draw(len, stream));
        let single: Vec<(&str, &[f32])> = names.into_iter().zip(inputs.iter().map(Vec::as_slice)).collect();
        let double = inputs.each_ref().map(|v| v.iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
        let double: Vec<(&str, &[f64])> = names.into_iter().zip(double.iter().map(Vec::as_slice)).collect();
        for (i, form) in forms.into_iter().enumerate() {
            let mut exact = g.compile::<f64>(&[form], &[], &Options { replicas, ..cpu() });
            exact.run(&mut State::new(replicas), &double, Clock { seed: 0, step: 0 });
            // Six roundings of Σ|a||b| in f32, as above, and one of 11 bits for each factor with TF32; of one or two sums of k
            // products of normal numbers that is below 2k.
            for (precision, rounding) in [(Precision::F32, 6.0 * 0.5f64.powi(23)), (Precision::Tf32, 0.5f64.powi(10))] {
                let options = Options { replicas, precision, ..options.clone() };
                tiles.extend(g.cuda_source::<f32>(&[form], &[], &options).pop());
                let mut program = g.compile::<f32>(&[form], &[], &options);
                program.run(&mut State::new(replicas), &single, Clock { seed: 0, step: 0 });
                let bound = 2.0 * k as f64 * rounding;
                for (e, (got, want)) in program.output(0).iter().zip(exact.output(0)).enumerate() {
                    let error = (f64::from(*got) - want).abs();
                    assert!(error < bound, "{precision}, {m}×{k}×{n}, form {i}, entry {e}: {got}, {want} in f64");
                }
            }
        }
    }
    for tile in ["16×8", "32×32", "64×64", "128×64"] {
        assert!(tiles.contains(&format!("tile {tile},")), "no tile of {tile} was tried:\n{tiles}");
    }
}

fn a_nan_comes_through_a_product() {
    let options = gpu();
    let g = Graph::new();
    let product = (g.input_rows("a", 64, [64]).log().matmul(g.input("b", [64, 64]))).sum(-1);
    for precision in [Precision::F32, Precision::Tf32] {
        let mut program = g.compile::<f32>(&[product], &[], &Options { precision, ..options.clone() });
        let mut a = vec![1.5f32; 64 * 64];
        a[5 * 64 + 3] = -1.0;
        program.run(&mut State::new(1), &[("a", &a), ("b", &[0.25; 64 * 64])], Clock { seed: 0, step: 0 });
        let nan: Vec<usize> = (0..64).filter(|&r| program.output(0)[r].is_nan()).collect();
        assert_eq!(nan, [5], "{precision}");
    }
}

fn values_left_on_the_gpu_belong_to_the_state_that_made_them() {
    let options = gpu();
    let g = Graph::new();
    let v = g.variable("v", [4]);
    let mut program = g.compile::<f64>(&[], &[(v, v + 1.0)], &options);
    let mut first = State::new(1);
    first.set("v", &[0.0f64; 4], 4);
    program.run_steps(&mut first, &[], 0, 0..3);
    let kept = first.clone();
    let mut second = State::new(1);
    second.set("v", &[10.0f64; 4], 4);
    program.run_steps(&mut second, &[], 0, 0..20);
    program.run_steps(&mut first, &[], 0, 3..5);
    assert_eq!(kept.get("v"), Some(&[3.0; 4][..]));
    assert_eq!(first.get("v"), Some(&[5.0; 4][..]));
    assert_eq!(second.get("v"), Some(&[30.0; 4][..]));
    // A state may go on where another device left it.
    let mut here = g.compile::<f64>(&[], &[(v, 2.0 * v)], &cpu());
    here.run_steps(&mut first, &[], 0, 0..1);
    program.run_steps(&mut first, &[], 0, 0..1);
    assert_eq!(first.get("v"), Some(&[11.0; 4][..]));
}

fn a_card_that_is_not_there_is_an_error_that_says_what_to_do() {
    let g = Graph::new();
    let options = Options { device: Device::Cuda(99), ..Options::default() };
    let Err(why) = g.try_compile::<f32>(&[g.scalar(1.0)], &[], &options) else {
        panic!("there are not a hundred cards")
    };
    let text = why.to_string();
    note!("{text}");
    assert!(text.contains("CPU") || text.contains("minvel devices"), "{text}");
}

fn a_small_step_is_few_kernels() {
    let training = Training::new(100);
    let options = cpu();
    let sources = training.graph.cuda_source::<f32>(&[training.loss], &training.updates.updates, &options);
    note!("{}", sources.last().expect("a summary"));
    assert!(sources.len() - 1 <= 13, "{} kernels", sources.len() - 1);
}

fn long_sums_over_rows_are_cut_into_pieces_of_large_tiles_for_any_number_of_replicas() {
    let g = Graph::new();
    let (x, y) = (g.input_rows("x", 50_000, [1, 100]), g.input_rows("y", 50_000, [1, 100]));
    for replicas in [1, 3, 10, 40] {
        let sources = g.cuda_source::<f32>(&[x.contract(y)], &[], &Options { replicas, ..cpu() });
        let plan = sources.last().expect("a summary");
        note!("{replicas}: {plan}");
        assert!(plan.contains("tile 128×112") && !plan.contains(" 1 splits"), "{replicas} replicas: {plan}");
    }
}

/// Forty products of 128×256 are too few for large tiles, but not if there are as many beside them in their kernel.
fn products_of_one_kernel_choose_their_tiles_together() {
    let g = Graph::new();
    let (x, v, w) = (g.input_rows("x", 128, [784]), g.input("v", [784, 256]), g.input("w", [784, 256]));
    let options = Options { replicas: 40, precision: Precision::Tf32, ..cpu() };
    for (outputs, tile) in [(vec![x.matmul(v)], "tile 64×64"), (vec![x.matmul(v), x.matmul(w)], "tile 128×64")] {
        let plan = g.cuda_source::<f32>(&outputs, &[], &options).pop().expect("a summary");
        assert_eq!((plan.matches("kernel ").count(), plan.matches(tile).count()), (1, outputs.len()), "{plan}");
    }
}

fn programs_that_differ_in_constants_share_their_kernels() {
    let kernels = |training: &Training, options: &Options| {
        let updates = &training.updates.updates;
        let mut single = training.graph.cuda_source::<f32>(&[training.loss], updates, options);
        let mut double = training.graph.cuda_source::<f64>(&[training.loss], updates, options);
        single.pop(); // what each computes
        double.pop();
        [single, double].concat()
    };
    for replicas in [1, 10] {
        let options = Options { replicas, ..cpu() };
        let one = kernels(&Training::with(100, 0.1, 1e-3), &options);
        assert!(one == kernels(&Training::with(100, 3e-4, 0.02), &options), "the text depends on constants");
        // Equal numbers in different roles are one node; that concerns few kernels.
        let other = kernels(&Training::with(100, 0.5, 0.5), &options);
        let shared = other.iter().filter(|k| one.contains(k)).count();
        note!("{shared} of {} kernels are shared with a program whose constants are special", one.len());
        assert!(shared * 2 > one.len());
        // The test would notice: another width is another text.
        assert!(kernels(&Training::with(96, 0.1, 1e-3), &options).iter().all(|k| !one.contains(k)));
    }
}

fn constants_reach_a_shared_kernel() {
    let options = gpu();
    let g = Graph::new();
    let x = g.input("x", [5]);
    let values = [3.25f32, -1.5, 0.0, 7.0, 1e-3];
    for (a, b) in [(0.1, -3.7), (1e-30, 1e8), (0.3, 0.3)] {
        let y = a * x + b;
        let run = |options: &Options| {
            let mut program = g.compile::<f64>(&[y], &[], options);
            let x: Vec<f64> = values.map(f64::from).to_vec();
            program.run(&mut State::new(1), &[("x", &x)], Clock { seed: 0, step: 0 });
            let exact = program.output(0).to_vec();
            let mut program = g.compile::<f32>(&[y], &[], options);
            program.run(&mut State::new(1), &[("x", &values)], Clock { seed: 0, step: 0 });
            (exact, program.output(0).to_vec())
        };
        let ((double, single), (double_cpu, single_cpu)) = (run(&options), run(&cpu()));
        for (i, &x) in values.iter().enumerate() {
            // One rounding more or less, of the product and of the sum: additions may be fused.
            let size = (a * f64::from(x)).abs() + b.abs();
            assert!((double[i] - double_cpu[i]).abs() <= f64::EPSILON * size, "{double:?} {double_cpu:?}");
            let difference = f64::from(single[i]) - f64::from(single_cpu[i]);
            assert!(difference.abs() <= f64::from(f32::EPSILON) * size, "{single:?} {single_cpu:?}");
        }
    }
}

/// Windows are copied by address, and added up as convolutions of their own, if there are many channels.
fn convolutions_and_their_gradients_on_the_gpu_are_those_on_the_cpu() {
    let options = gpu();
    for (channels, kernel, stride, pad) in
        [(16, 5, 2, [2, 2]), (20, 5, 2, [1, 2]), (17, 3, 1, [1, 1]), (3, 5, 2, [2, 2])]
    {
        let window = Window::square(kernel, stride, pad);
        let g = Graph::new();
        let x = g.input_rows("x", 7, [8, 8, channels]);
        let w = g.input("w", [kernel * kernel * channels, 24]);
        let y = (x.conv2d(w, window) + g.input("b", [24])).tanh();
        let loss = y.square().sum_all().sum_rows();
        let outputs = [y, grad(loss, &[x])[0], grad(loss, &[w])[0]];
        let draw = |len: usize, stream: u32| -> Vec<f64> {
            Stream::new(Key::new(5, 0), stream).samples(Draw::Normal).take(len).map(|v| v / 8.0).collect()
        };
        let values = [("x", draw(7 * 64 * channels, 0)), ("w", draw(w.shape().len(), 1)), ("b", draw(24, 2))];
        let inputs: Vec<(&str, &[f64])> = values.iter().map(|(name, v)| (*name, &v[..])).collect();
        let run = |options: &Options| {
            let mut program = g.compile::<f64>(&outputs, &[], options);
            program.run(&mut State::new(1), &inputs, Clock { seed: 0, step: 0 });
            (0..outputs.len()).flat_map(|k| program.output(k).to_vec()).collect::<Vec<f64>>()
        };
        let (ours, theirs) = (run(&options), run(&cpu()));
        let worst = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f64::max);
        assert!(worst <= 1e3 * f64::EPSILON, "{channels} channels, {window:?}: {worst:e}");
    }
}

const SHORT: usize = 300;

/// A short product: 300 rows of 9 numbers times a transposed matrix.
fn short_product(g: &Graph) -> Expr<'_> {
    let (x, w) = (g.input_rows("x", SHORT, [9]), g.input("w", [256, 9]));
    x.matmul(w.transpose(&[1, 0])).tanh()
}

/// Four neighbours of a short product with a transposed matrix read 4·9 numbers that lie together: nine loads of four.
fn short_products_with_transposed_matrices_load_in_fours() {
    let g = Graph::new();
    let y = short_product(&g);
    let sources = g.cuda_source::<f32>(&[y], &[], &cpu());
    let body = &sources[0][sources[0].find("step_kernel").expect("a kernel")..];
    let (fours, singly) = (body.matches("(const Four*)").count(), body.matches("[p").count());
    assert_eq!((fours, singly), (9, 9), "the row is loaded one by one\n{body}");
}

fn short_products_with_transposed_matrices_on_the_gpu_are_those_on_the_cpu() {
    let options = gpu();
    let g = Graph::new();
    let y = short_product(&g);
    let draw = |len: usize, stream: u32| -> Vec<f32> {
        Stream::new(Key::new(6, 0), stream).samples(Draw::Normal).take(len).map(|v| v as f32).collect()
    };
    let (xs, ws) = (draw(SHORT * 9, 0), draw(256 * 9, 1));
    let run = |options: &Options| {
        let mut program = g.compile::<f32>(&[y], &[], options);
        program.run(&mut State::new(1), &[("x", &xs), ("w", &ws)], Clock { seed: 0, step: 0 });
        program.output(0).to_vec()
    };
    for (i, (a, b)) in run(&options).into_iter().zip(run(&cpu())).enumerate() {
        // Nine roundings of a sum of both, and one of tanh, which shrinks differences.
        let (row, column) = (&xs[i / 256 * 9..][..9], &ws[i % 256 * 9..][..9]);
        let size: f32 = row.iter().zip(column).map(|(x, w)| (x * w).abs()).sum();
        assert!((a - b).abs() <= (9.0 * size + 2.0) * f32::EPSILON, "{a} on the GPU, {b} on the CPU");
    }
}

/// Who attains a maximum is found by computing the values again, in another kernel: they must have the same bits, whether a
/// compiler there would like to join a product and a sum or not.
fn values_computed_again_have_the_same_bits() {
    let options = gpu();
    let (rows, columns) = (7, 300);
    let g = Graph::new();
    let x = g.input_rows("x", rows, [columns]);
    let part = 1.1 * x;
    let y = part + 0.123;
    // Where the part is needed by itself too, there is less reason to join it with the sum.
    let found = grad(y.max_rows().sum_all(), &[x])[0] * part.exp();
    let draws = Stream::new(Key::new(8, 0), 0).samples(Draw::Normal);
    let draws: Vec<f32> = draws.take(rows * columns).map(|v| v as f32).collect();
    let mut program = g.compile::<f32>(&[found], &[], &options);
    program.run(&mut State::new(1), &[("x", &draws)], Clock { seed: 0, step: 1 });
    let attained = program.output(0).iter().filter(|d| **d != 0.0).count();
    assert_eq!(attained, columns, "one row of each column");
}

fn bytes_stay_bytes_in_the_text_of_a_kernel() {
    let g = Graph::new();
    let index = g.random_rows(Draw::Integer(10), 0, 1024, []);
    let kernels = |images: Expr| {
        let batch = images.gather(index);
        [g.cuda_source::<f32>(&[batch], &[], &cpu()), g.cuda_source::<f64>(&[batch], &[], &cpu())].map(|k| k.concat())
    };
    let dims = [10, 1024];
    let [single, double] = kernels(g.input_bytes("bytes", dims));
    // Four numbers of f32 are read at once.
    assert!(single.contains("const u8* __restrict__ b0") && single.contains("= shades(b0 + p0"), "{single}");
    assert!(double.contains("const u8* __restrict__ b0") && double.contains("= shade(b0[p0"), "{double}");
    let reals = kernels(g.input("reals", dims)).concat();
    assert!(!reals.contains("const u8* __restrict__") && !reals.contains("= shade"), "{reals}");
}

fn positions_in_large_tables_do_not_overflow() {
    let g = Graph::new();
    let index = g.random_rows(Draw::Integer(200_000), 0, 128, []);
    let text = |count: usize, name: &str| {
        let batch = g.input_bytes(name, [count, 12_288]).gather(index);
        g.cuda_source::<f32>(&[batch], &[], &cpu()).concat()
    };
    let (small, large) = (text(100_000, "small"), text(200_000, "large"));
    assert!(large.contains("= shades(b0 + p0 + (i64)at3 * 12288 + "), "{large}");
    assert!(small.contains("at3 * 12288;") && !large.contains("at3 * 12288;"), "{small}");
}

fn bytes_on_the_gpu_have_the_bits_of_the_cpu() {
    let options = gpu();
    for (pixels, rows, replicas) in [(24, 64, 1), (1024, 1024, 1), (1024, 512, 3), (7, 64, 3)] {
        let g = Graph::new();
        let batch = g.input_bytes("images", [10, pixels]).gather(g.random_rows(Draw::Epoch(10), 0, rows, []));
        for given in [1, replicas] {
            let bytes: Vec<u8> = (0..given * 10 * pixels).map(|k| (k * 7 + k / 251) as u8).collect();
            let run = |options: &Options| {
                let options = Options { replicas, ..options.clone() };
                let (mut single, mut state) = (g.compile::<f32>(&[batch], &[], &options), State::new(replicas));
                single.loaded(&[]).with_bytes(&[("images", &bytes)]).run_steps(&mut state, 2, 0..1);
                let (mut double, mut state) = (g.compile::<f64>(&[batch], &[], &options), State::new(replicas));
                double.loaded(&[]).with_bytes(&[("images", &bytes)]).run_steps(&mut state, 2, 0..1);
                (single.output(0).to_vec(), double.output(0).to_vec())
            };
            assert_eq!(run(&options), run(&cpu()), "{pixels} pixels, {rows} rows, {replicas} replicas, {given} given");
        }
    }
}
