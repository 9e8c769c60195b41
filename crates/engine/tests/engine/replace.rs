//! Substitution: `replace` gives what building anew from the other values would give.

use minvel_engine::optim::{Optimiser, UpdateRule};
use minvel_engine::{Clock, Draw, Expr, Graph, Options, State, grad, replace};

fn run(outputs: &[Expr], state: &State<f64>, inputs: &[(&str, &[f64])]) -> Vec<Vec<f64>> {
    let mut program = outputs[0].graph().compile::<f64>(outputs, &[], &Options { threads: 1, ..Options::default() });
    program.run(&mut state.clone(), inputs, Clock { seed: 1, step: 2 });
    (0..outputs.len()).map(|k| program.output(k).to_vec()).collect()
}

const ROWS: usize = 7;

fn inputs() -> Vec<f64> {
    (0..3 * ROWS).map(|i| (i as f64 * 0.7).sin()).collect()
}

fn state() -> State<f64> {
    let mut state = State::new(1);
    state.set("w", &(0..6).map(|i| (i as f64).cos()).collect::<Vec<f64>>(), 6);
    state.set("b", &[0.3, -0.2], 2);
    state
}

/// Something with products, rows that meet, noise, choices and a gradient.
fn value<'g>(x: Expr<'g>, w: Expr<'g>, b: Expr<'g>) -> Expr<'g> {
    let h = (x.matmul(w) + b).tanh();
    let noisy = h + 0.1 * x.graph().random_rows(Draw::Normal, 3, ROWS, [2]);
    let chosen = noisy.less(0.1).select(noisy, noisy.square());
    (chosen * (chosen - chosen.mean_rows()).exp()).sum(-1)
}

#[test]
fn what_is_replaced_is_as_if_it_had_been_built_so() {
    let g = Graph::new();
    let (x, w, b) = (g.input_rows("x", ROWS, [3]), g.variable("w", [3, 2]), g.variable("b", [2]));
    let y = value(x, w, b);
    let slope = grad(y, &[x])[0];
    let (new_w, new_b) = (w.sin() + 0.5, b - 0.1 * w.at(0, 0));
    let replaced = replace(&[y, slope], &[(w, new_w), (b, new_b)]);
    let built = value(x, new_w, new_b);
    let outputs = [y, slope, replaced[0], replaced[1], built, grad(built, &[x])[0]];
    let got = run(&outputs, &state(), &[("x", &inputs())]);
    assert_eq!(got[2], got[4]);
    assert_eq!(got[3], got[5], "derivatives are replaced too");
    assert!(got[0] != got[2] && got[1] != got[3], "and what was there is still there");
}

#[test]
fn all_at_once_and_not_again_in_what_is_put_in() {
    let g = Graph::new();
    let (a, b) = (g.variable("a", []), g.variable("b", []));
    let mut state = State::new(1);
    state.set("a", &[2.0], 1);
    state.set("b", &[5.0], 1);
    let y = a - 10.0 * b;
    // Exchanged: one after the other would give a − 10a or b − 10b.
    let swapped = replace(&[y], &[(a, b), (b, a)])[0];
    // A value that contains what it stands for.
    let moved = replace(&[y], &[(a, a + y)])[0];
    let got = run(&[swapped, moved], &state, &[]);
    assert_eq!(got, [[-15.0], [2.0 - 48.0 - 50.0]]);
}

#[test]
fn constants_to_differentiation_are_replaced_and_stay_constants() {
    let g = Graph::new();
    let (a, b) = (g.variable("a", []), g.variable("b", []));
    let mut state = State::new(1);
    state.set("a", &[2.0], 1);
    state.set("b", &[5.0], 1);
    let y = a.stop_gradient() * a;
    let replaced = replace(&[y], &[(a, b)])[0];
    let got = run(&[replaced, grad(replaced, &[b])[0]], &state, &[]);
    assert_eq!(got, [[25.0], [5.0]]);
}

#[test]
fn what_does_not_depend_or_is_younger_is_left_alone() {
    let g = Graph::new();
    let (x, w) = (g.input_rows("x", ROWS, [3]), g.variable("w", [3, 2]));
    let y = x.square().sum(-1);
    let younger = g.variable("b", [2]);
    let same = replace(&[y, w], &[(younger, younger + 1.0), (w, w * 2.0)]);
    let got = run(&[y, same[0], w, same[1]], &state(), &[("x", &inputs())]);
    assert_eq!(got[0], got[1]);
    assert!(got[2].iter().zip(&got[3]).all(|(old, new)| *new == 2.0 * old));
    assert!(replace(&[], &[(w, w)]).is_empty());
}

#[test]
fn a_step_of_two_updates_is_two_programs_one_after_the_other() {
    let g = Graph::new();
    let x = g.input_rows("x", ROWS, [3]);
    let (w, b) = (g.variable("w", [3, 2]), g.variable("b", [2]));
    let descent = Optimiser::new(UpdateRule::Sgd { momentum: 0.0 }, 0.1);
    let first = descent.minimise(value(x, w, b).mean_rows(), &[w]);
    let loss = value(x, w, b).square().mean_rows();
    // The new w was made with the help of b, which is no part of the second loss.
    let held: Vec<(Expr, Expr)> = first.updates.iter().map(|(x, new)| (*x, new.stop_gradient())).collect();
    let second = descent.minimise(replace(&[loss], &held)[0], &[b]);
    let options = Options { threads: 1, ..Options::default() };
    let clock = Clock { seed: 1, step: 2 };
    let all: Vec<(Expr, Expr)> = first.updates.iter().chain(&second.updates).copied().collect();
    let (mut at_once, mut in_turn, mut wrongly) = (state(), state(), state());
    let data = inputs();
    g.compile::<f64>(&[], &all, &options).run(&mut at_once, &[("x", &data)], clock);
    let plain = descent.minimise(loss, &[b]);
    g.compile::<f64>(&[], &first.updates, &options).run(&mut in_turn, &[("x", &data)], clock);
    g.compile::<f64>(&[], &plain.updates, &options).run(&mut in_turn, &[("x", &data)], clock);
    let both: Vec<(Expr, Expr)> = first.updates.iter().chain(&plain.updates).copied().collect();
    g.compile::<f64>(&[], &both, &options).run(&mut wrongly, &[("x", &data)], clock);
    assert_eq!(at_once.get("w"), in_turn.get("w"));
    let gap = |a: &State<f64>, b: &State<f64>| {
        let pairs = a.get("b").unwrap().iter().zip(b.get("b").unwrap());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert!(gap(&at_once, &in_turn) <= 8.0 * f64::EPSILON, "{}", gap(&at_once, &in_turn));
    assert!(gap(&wrongly, &in_turn) > 1e-4, "the order can be told");
}

#[test]
#[should_panic(expected = "cannot replace")]
fn another_shape_is_refused() {
    let g = Graph::new();
    let (w, b) = (g.variable("w", [3, 2]), g.variable("b", [2]));
    replace(&[w + 1.0], &[(w, b)]);
}
