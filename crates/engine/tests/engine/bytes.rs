//! Inputs of bytes: a table of images in a quarter of the room, with the values of the same table in reals.

use minvel_engine::math::Real;
use minvel_engine::{Clock, Draw, Expr, Graph, Options, State, grad, reference};

const COUNT: usize = 40;
const WIDTH: usize = 12;
const ROWS: usize = 150;

/// Every byte, more than once, of so many replicas.
fn bytes(replicas: usize) -> Vec<u8> {
    (0..replicas * COUNT * WIDTH).map(|k| (k * 7 + k / 251) as u8).collect()
}

/// Rows and whole entries of a table, and how they enter a loss: outputs, and the update of a variable.
fn program<'g>(images: Expr<'g>) -> (Vec<Expr<'g>>, Vec<(Expr<'g>, Expr<'g>)>) {
    let g = images.graph();
    let batch = images.gather(g.random_rows(Draw::Epoch(COUNT as u32), 0, ROWS, []));
    let some = images.gather(g.table(&[3.0, 0.0, 39.0, 3.0], [2, 2]));
    let w = g.variable("w", [WIDTH, 5]);
    let loss = (batch.matmul(w).tanh().square().sum(-1) + some.sum_all()).mean_rows();
    (vec![batch, some, loss], vec![(w, w - 0.1 * grad(loss, &[w])[0])])
}

/// Outputs and variable after two steps; the images as bytes or as reals.
fn run<T: Real>(options: &Options, replicas: usize, as_bytes: bool) -> Vec<Vec<T>> {
    let (g, bytes) = (Graph::new(), bytes(replicas));
    let dims = [COUNT, WIDTH];
    let (outputs, updates) = program(if as_bytes { g.input_bytes("images", dims) } else { g.input("images", dims) });
    let mut program = g.compile::<T>(&outputs, &updates, options);
    let mut state = State::new(options.replicas);
    state.set("w", &(0..WIDTH * 5).map(|k| T::from_f64((k as f64).sin())).collect::<Vec<T>>(), WIDTH * 5);
    let reals: Vec<T> = bytes.iter().map(|p| T::from_f64(f64::from(*p)) / T::from_f64(255.0)).collect();
    if as_bytes {
        program.loaded(&[]).with_bytes(&[("images", &bytes)]).run_steps(&mut state, 3, 0..2);
    } else {
        program.run_steps(&mut state, &[("images", &reals)], 3, 0..2);
    }
    let results = (0..outputs.len()).map(|k| program.output(k).to_vec());
    results.chain([state.get("w").unwrap().to_vec()]).collect()
}

#[test]
fn a_program_on_bytes_has_the_bits_of_the_same_program_on_reals() {
    for (replicas, given) in [(1, 1), (3, 1), (3, 3)] {
        let options = Options { replicas, ..Options::default() };
        assert_eq!(run::<f32>(&options, given, true), run::<f32>(&options, given, false), "{replicas} and {given}");
        assert_eq!(run::<f64>(&options, given, true), run::<f64>(&options, given, false), "{replicas} and {given}");
    }
}

#[test]
fn the_interpreter_reads_bytes_as_compiled_programs_do() {
    let g = Graph::new();
    let (outputs, _) = program(g.input_bytes("images", [COUNT, WIDTH]));
    let values = [("images", bytes(1).into_iter().map(f64::from).collect())].into();
    let expected = reference::evaluate(&outputs[..2], &values, 3, 0, 1);
    let compiled = run::<f64>(&Options::default(), 1, true);
    assert_eq!(expected[..], compiled[..2]);
    let all: Vec<f64> = (0..=255).map(|p| f64::from(p) / 255.0).collect();
    assert!(all.iter().all(|p| expected[0].contains(p)), "a test of every byte");
}

#[test]
#[should_panic(expected = "which only gather can read")]
fn bytes_are_not_computed_with() {
    let g = Graph::new();
    let _ = g.input_bytes("images", [COUNT, WIDTH]).tanh();
}

#[test]
#[should_panic(expected = "which only gather can read")]
fn bytes_are_no_output() {
    let g = Graph::new();
    g.compile::<f32>(&[g.input_bytes("images", [COUNT, WIDTH])], &[], &Options::default());
}

#[test]
#[should_panic(expected = "no value given for input `images`")]
fn reals_do_not_stand_for_bytes() {
    let g = Graph::new();
    let first = g.input_bytes("images", [COUNT, WIDTH]).gather(g.scalar(0.0));
    let mut program = g.compile::<f32>(&[first], &[], &Options::default());
    program.run(&mut State::new(1), &[("images", &[0.5; COUNT * WIDTH])], Clock { seed: 0, step: 0 });
}
