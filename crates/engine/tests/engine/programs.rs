//! Random programs: compiled ones equal the plain interpreter, for any tiling, threads, instruction set and replicas.

use crate::support::within_rounding;
use minvel_engine::random::{Key, Stream};
use minvel_engine::{
    Clock, Device, Draw, Expr, Graph, Isa, Options, Program, Shape, State, Window, concat, grad, reference,
};
use proptest::prelude::*;

/// Whole numbers and choices from a stream of uniforms.
struct Dice(Stream);

impl Dice {
    fn new(seed: u64) -> Self {
        Dice(Stream::new(Key::new(seed, 0), 0))
    }
    fn below(&mut self, n: usize) -> usize {
        (self.0.uniform() * n as f64) as usize
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const CLOCK: Clock = Clock { seed: 99, step: 3 };

/// A graph with a random set of expressions, and values for its inputs and variables.
struct Case {
    rows: usize,
    dims: usize,
}

impl Case {
    fn leaves<'g>(&self, g: &'g Graph) -> Vec<Expr<'g>> {
        let (rows, d) = (self.rows, self.dims);
        vec![
            g.input_rows("x", rows, [d]),
            g.input_rows("y", rows, [2, d]),
            g.variable_rows("chain", rows, [d]),
            g.variable("w", [d, 3]),
            g.variable("v", [d]),
            g.input("table", [5, d]),
            g.random_rows(Draw::Normal, 7, rows, [d]),
            g.random_rows(Draw::Integer(5), 8, rows, []),
            g.random(Draw::Uniform, 9, [2, d]),
            g.step() * 0.1,
        ]
    }

    /// Grows the pool by random operations. Values are kept bounded, so that rounding stays bounded too.
    fn grow<'g>(&self, dice: &mut Dice, pool: &mut Vec<Expr<'g>>, operations: usize) {
        for _ in 0..operations {
            let a = dice.pick(pool);
            let b = dice.pick(pool);
            let made = match dice.below(24) {
                0 => Some(a.tanh()),
                1 => Some((a * 0.5).sin()),
                2 => Some((-a.square()).exp()),
                3 => Some(a.softplus() - a.sigmoid()),
                4 => Some(a.abs().log1p()),
                5 | 6 if fits(a, b) => Some((a + b) * 0.5),
                7 | 8 if fits(a, b) => Some((a * b).tanh()),
                9 if fits(a, b) => Some(a.less(b).select(a, b * 0.5)),
                10 if fits(a, b) => Some(a.max(b) - a.min(0.3 * b)),
                11 if a.shape().rank() > 0 => Some(a.sum(dice.below(a.shape().rank()) as isize).tanh()),
                12 if a.shape().rank() > 0 => Some(a.max_over(-1)),
                13 if a.shape().rows.is_some() => Some(a.mean_rows()),
                14 if a.shape().rows.is_some() => Some(a.max_rows()),
                15 if a.shape().rank() == 2 => Some(a.t()),
                16 if a.shape().rank() > 0 => {
                    let axis = dice.below(a.shape().rank());
                    let len = a.shape().dims[axis];
                    let start = dice.below(len);
                    Some(a.slice(axis as isize, start, 1 + dice.below(len - start)))
                }
                17 if a.shape().rank() > 0 => Some(a.pad(-1, dice.below(3), dice.below(2))),
                18 if a.shape().rank() == b.shape().rank() && joins(a, b) => Some(concat(&[a, b], 0)),
                19 => Some(a.reshape([a.shape().features()])),
                20 if multiplies(a, b) => Some(a.matmul(b).tanh()),
                21 if a.shape().rows.is_some() && a.shape().features() <= 8 => Some(a.collect()),
                22 if a.shape().rows.is_none() && a.shape().rank() > 0 && a.shape().dims[0] == self.rows => {
                    Some(a.distribute())
                }
                23 if a.shape().rows.is_none() && a.shape().rank() > 0 && a.shape().len() > 4 => {
                    Some(a.kth_smallest(2))
                }
                _ => None,
            };
            if let Some(e) = made.filter(|e| e.shape().len() <= 6_000 && e.shape().rank() <= 3) {
                pool.push(e);
            }
        }
    }
}

fn fits(a: Expr, b: Expr) -> bool {
    let (a, b) = (a.shape(), b.shape());
    let rows = a.rows.is_none() || b.rows.is_none() || a.rows == b.rows;
    rows && a.dims.iter().rev().zip(b.dims.iter().rev()).all(|(&x, &y)| x == y || x == 1 || y == 1)
}

fn joins(a: Expr, b: Expr) -> bool {
    let (a, b) = (a.shape(), b.shape());
    let rows = a.rows.is_none() || b.rows.is_none() || a.rows == b.rows;
    rows && a.rank() > 0 && a.dims[1..] == b.dims[1..]
}

fn multiplies(a: Expr, b: Expr) -> bool {
    let (a, b) = (a.shape(), b.shape());
    let rows = a.rows.is_none() || b.rows.is_none() || a.rows == b.rows;
    rows && a.rank() == 2 && b.rank() == 2 && a.dims[1] == b.dims[0]
}

/// Inputs and variables by name, for a given replica.
fn values(case: &Case, replica: u32) -> reference::Values<'static> {
    let mut normals = Stream::new(Key::new(5, replica), 1);
    let sizes = [("x", case.rows * case.dims), ("y", case.rows * 2 * case.dims), ("chain", case.rows * case.dims)];
    let others = [("w", case.dims * 3), ("v", case.dims), ("table", 5 * case.dims)];
    sizes.into_iter().chain(others).map(|(n, len)| (n, (0..len).map(|_| normals.normal()).collect())).collect()
}

/// Runs a program for a range of replicas; returns all outputs and the updated variables.
fn run<T: minvel_engine::math::Real>(
    program: &mut Program<T>,
    case: &Case,
    replicas: std::ops::Range<u32>,
    outputs: usize,
) -> Vec<Vec<T>> {
    let mut state = State::of_replicas(replicas.clone());
    let all = |name: &str| -> Vec<T> {
        replicas.clone().flat_map(|r| values(case, r)[name].clone()).map(T::from_f64).collect()
    };
    for name in ["w", "v", "chain"] {
        state.set(name, &all(name), values(case, 0)[name].len());
    }
    let given: Vec<(&str, Vec<T>)> = ["x", "y", "table"].map(|n| (n, all(n))).into();
    let inputs: Vec<(&str, &[T])> = given.iter().map(|(n, v)| (*n, v.as_slice())).collect();
    program.run(&mut state, &inputs, CLOCK);
    let mut results: Vec<Vec<T>> = (0..outputs).map(|k| program.output(k).to_vec()).collect();
    results.extend(["w", "v", "chain"].map(|n| state.get(n).expect("set above").to_vec()));
    results
}

/// Outputs of a random program: the last expressions, a gradient through all of them, and new values of variables.
fn build<'g>(case: &Case, g: &'g Graph, seed: u64, operations: usize) -> (Vec<Expr<'g>>, Vec<(Expr<'g>, Expr<'g>)>) {
    let mut dice = Dice::new(seed);
    let leaves = case.leaves(g);
    let mut pool = leaves.clone();
    case.grow(&mut dice, &mut pool, operations);
    let mut outputs: Vec<Expr> = pool.iter().rev().take(4).copied().collect();
    let total = |e: Expr<'g>| {
        let e = e.tanh().sum_all();
        if e.shape().rows.is_some() { e.mean_rows() } else { e }
    };
    let loss = outputs.iter().map(|&e| total(e)).reduce(|a, b| a + b).expect("a pool is not empty");
    outputs.extend(grad(loss, &[leaves[0], leaves[2], leaves[3], leaves[4]]));
    let [chain, w, v] = [leaves[2], leaves[3], leaves[4]];
    let step = |e: Expr<'g>, k: usize| (e, e - 0.1 * outputs[4.min(pool.len()) + k]);
    let updates = vec![step(chain, 1), step(w, 2), step(v, 3)];
    (outputs, updates)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_compiled_program_equals_the_interpreter(
        seed in any::<u64>(), operations in 1usize..40, rows in 1usize..90, dims in 1usize..6,
        threads in 1usize..4, tile in 1usize..4,
    ) {
        let case = Case { rows, dims };
        let g = Graph::new();
        let (outputs, updates) = build(&case, &g, seed, operations);
        let options = Options { threads, tile: tile * 16, replicas: 2, ..Options::default() };
        let mut program = g.compile::<f64>(&outputs, &updates, &options);
        let compiled = run(&mut program, &case, 0..2, outputs.len());
        let mut wanted = outputs.clone();
        wanted.extend([updates[1].1, updates[2].1, updates[0].1]); // w, v, chain
        for replica in 0..2u32 {
            let plain = reference::evaluate(&wanted, &values(&case, replica), CLOCK.seed, replica, CLOCK.step);
            for (k, expected) in plain.iter().enumerate() {
                let len = expected.len();
                let got = &compiled[k][replica as usize * len..][..len];
                // Sums of up to a few thousand bounded terms, through up to forty operations.
                prop_assert!(within_rounding(got, expected, 1e5), "output {k}: {:?}\n{got:?}\n{expected:?}", wanted[k]);
            }
        }
    }

    #[test]
    fn threads_and_instruction_sets_and_company_do_not_change_a_bit(
        seed in any::<u64>(), operations in 1usize..40, rows in 1usize..200, dims in 1usize..6,
    ) {
        let case = Case { rows, dims };
        let g = Graph::new();
        let (outputs, updates) = build(&case, &g, seed, operations);
        let bits = |options: &Options, replicas: std::ops::Range<u32>| -> Vec<Vec<u32>> {
            let options = Options { replicas: replicas.len(), ..options.clone() };
            let mut program = g.compile::<f32>(&outputs, &updates, &options);
            let results = run(&mut program, &case, replicas, outputs.len());
            // A NaN is a NaN: which one is not promised.
            let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
            results.into_iter().map(|v| v.into_iter().map(bits).collect()).collect()
        };
        // On a GPU the order of sums depends on how many replicas share the card.
        let cpu = Options { device: Device::Cpu, ..Options::default() };
        let one = Options { threads: 1, ..cpu.clone() };
        let expected = bits(&one, 0..3);
        for threads in [2, 3, 7] {
            prop_assert_eq!(&bits(&Options { threads, ..cpu.clone() }, 0..3), &expected, "{} threads", threads);
        }
        for isa in Isa::available() {
            let got = bits(&Options { isa: Some(isa), ..one.clone() }, 0..3);
            prop_assert_eq!(&got, &expected, "{}", isa);
        }
        for replica in 0..3u32 {
            let alone = bits(&one, replica..replica + 1);
            for (all, alone) in expected.iter().zip(alone) {
                prop_assert_eq!(&all[replica as usize * alone.len()..][..alone.len()], &alone[..]);
            }
        }
    }
}

#[test]
fn a_convolution_with_rows_runs_in_tiles() {
    let window = Window { kernel: [3, 2], stride: 2, pad: [[1, 1]; 2] };
    // With one channel the last axis of the image tells nothing about where its neighbours are.
    for channels in [1, 2] {
        let g = Graph::new();
        let x = g.input_rows("x", 21, [30 * channels]);
        let w = g.variable("w", [6 * channels, 4]);
        let y = x.reshape([6, 5, channels]).conv2d(w, window).tanh();
        let back = y.conv2d_transpose(w.t(), window, [6, 5, channels]);
        let loss = back.square().sum_all().mean_rows();
        let outputs = [y, back, loss, grad(loss, &[w])[0], grad(loss, &[x])[0]];
        let mut normals = Stream::new(Key::new(1, 0), 0);
        let mut draw = |n: usize| (0..n).map(|_| normals.normal()).collect::<Vec<f64>>();
        let (xs, ws) = (draw(21 * 30 * channels), draw(24 * channels));
        let mut state = State::new(1);
        state.set("w", &ws, ws.len());
        let mut program = g.compile::<f64>(&outputs, &[], &Options::default());
        program.run(&mut state, &[("x", &xs)], CLOCK);
        let plain = reference::evaluate(&outputs, &[("x", xs.clone()), ("w", ws)].into(), 0, 0, 0);
        for (k, expected) in plain.iter().enumerate() {
            assert!(within_rounding(program.output(k), expected, 1e4), "{channels} channels: {:?}", outputs[k]);
        }
    }
}

#[test]
fn a_program_may_be_empty_of_rows_or_of_outputs() {
    let g = Graph::new();
    let v = g.variable("v", []);
    let mut state = State::new(2);
    state.set("v", &[1.0f32, 2.0], 1);
    let mut program = g.compile::<f32>(&[], &[(v, v + g.step())], &Options { replicas: 2, ..Options::default() });
    program.run_steps(&mut state, &[], 0, 0..4);
    assert_eq!(state.get("v"), Some(&[7.0, 8.0][..]));
    assert_eq!(Shape::whole([]).len(), 1);
}

#[test]
fn bernoullis_have_their_probability_and_not_another() {
    let g = Graph::new();
    let (rows, p) = (40_000, 0.3);
    let ones = g.fill(p, Shape::rowed(rows, [])).bernoulli(3).sum_rows();
    let mut program = g.compile::<f32>(&[ones], &[], &Options::default());
    program.run(&mut State::new(1), &[], CLOCK);
    let z = |p: f64| (program.output(0)[0] as f64 - rows as f64 * p) / (rows as f64 * p * (1.0 - p)).sqrt();
    println!("z = {:.2}, against p + 2 %: {:.2}", z(p), z(p + 0.02));
    assert!(z(p).abs() < 4.0 && z(p + 0.02).abs() > 4.0);
}

#[test]
fn a_pinned_point_is_not_simplified_away() {
    // f(2z) is rewritten as a function of z, which once made the gradient by 2z silently zero.
    let g = Graph::new();
    let x = (2.0 * g.input_rows("z", 3, [2])).pin();
    let slope = grad(3.0 * x.sum(-1), &[x])[0];
    let mut program = g.compile::<f64>(&[slope], &[], &Options::default());
    program.run(&mut State::new(1), &[("z", &[0.5; 6])], CLOCK);
    assert_eq!(program.output(0), [3.0; 6]);
}

#[test]
#[should_panic(expected = "may be simplified away")]
fn a_point_that_may_vanish_is_refused() {
    let g = Graph::new();
    let x = 2.0 * g.input_rows("z", 3, [2]);
    let _ = grad(x.sum(-1), &[x]);
}

#[test]
fn views_of_a_product_with_bias_find_its_entries() {
    // The product's buffer holds x·W + b; a slice of the sum once looked for a buffer of the sum's own.
    let g = Graph::new();
    let s = g.input_rows("x", 2, [2]).matmul(g.variable("w", [2, 3])) + g.variable("b", [3]);
    let gap = s.sum(-1) - s.at(-1, 1);
    let ends = s.reshape([3, 1]).slice(0, 1, 2).square();
    let mut program = g.compile::<f64>(&[gap, ends], &[], &Options { device: Device::Cpu, ..Options::default() });
    let mut state = State::new(1);
    state.set("w", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 6);
    state.set("b", &[10.0, 20.0, 30.0], 3);
    // rows (11, 22, 33) and (14, 25, 36)
    program.run(&mut state, &[("x", &[1.0, 0.0, 0.0, 1.0])], CLOCK);
    assert_eq!(program.output(0), [44.0, 50.0]);
    assert_eq!(program.output(1), [484.0, 1089.0, 625.0, 1296.0]);
}

#[test]
fn a_loaded_program_runs_on_with_its_inputs_and_another_has_others() {
    let g = Graph::new();
    let v = g.variable("v", []);
    let mut program = g.compile::<f64>(&[v], &[(v, v * 2.0 + g.input("x", []))], &Options::default());
    let mut state = State::new(1);
    state.set("v", &[0.0], 1);
    for (x, expected) in [(1.0, 7.0), (10.0, 126.0)] {
        let inputs: [(&str, &[f64]); 1] = [("x", &[x])];
        let mut loaded = program.loaded(&inputs);
        (0..3).for_each(|step| loaded.run_steps(&mut state, 0, step..step + 1));
        assert_eq!(state.get("v"), Some(&[expected][..]));
    }
}
