//! Laws × operations: every operation of the table in `support/cases.rs` obeys every law below.
//!
//! Values: compiled programs equal the interpreter, and that equals plain loops. Derivatives: `grad` equals central
//! differences, once and twice, and `jvp` is its adjoint. Differences: `difference` equals subtraction where
//! subtraction is exact enough to tell, and keeps its digits where subtraction loses them.

use crate::cases;
use crate::subject;

use cases::{Domain, FUNCTIONS, Laws, mvl_energy, mvl_loss, mvl_step};
use minvel_engine::reference::{self, Values};
use minvel_engine::{Expr, Graph, Shape, Window, concat, difference, grad, jvp, vjp};
use std::panic::{AssertUnwindSafe, catch_unwind};
use subject::{FEW, Subject, V, W, compiled, every_case, interpret, largest, minus, moved, relative_error, within};

/// How far the sum of some terms is from having a derivative (itself given by terms) along one of the directions.
struct Slope {
    error: f64,
    bound: f64,
    size: f64,
}

/// The derivative against a central difference with h = ε^⅓, which balances truncation O(h²) and rounding O(ε/h).
///
/// Truncation is measured: doubling h changes the quotient by three times its error.
fn slope(s: &Subject, terms: &[Expr], along: [&str; 8], slopes: &[Expr]) -> Slope {
    let entries =
        |list: &[Expr], values: &Values| list.iter().flat_map(|&e| interpret(e, values)).collect::<Vec<f64>>();
    let at = |t: f64| entries(terms, &moved(&s.values, t, along)).iter().sum::<f64>();
    let quotient = |h: f64| (at(h) - at(-h)) / (2.0 * h);
    let h = f64::EPSILON.cbrt();
    let size: f64 = entries(terms, &s.values).iter().map(|v| v.abs()).sum();
    let derivative = entries(slopes, &s.values);
    let truncation = (quotient(2.0 * h) - quotient(h)).abs();
    let bound = truncation + FEW * f64::EPSILON * size / h;
    let error = (derivative.iter().sum::<f64>() - quotient(h)).abs();
    Slope { error, bound, size: derivative.iter().map(|v| v.abs()).sum() }
}

// ------------------------------------------------------------------------------------------------------- values

#[test]
fn the_interpreter_equals_plain_loops_and_std() {
    every_case(Laws::ValueOnly, |case, s| {
        let Some(oracle) = &case.oracle else { return Ok(()) };
        let error = relative_error(&interpret(s.y, &s.values), &oracle(&s.given));
        within("value", error, FEW * f64::EPSILON)
    });
}

#[test]
fn compiled_programs_equal_the_interpreter_in_values_derivatives_and_differences() {
    every_case(Laws::ValueOnly, |_, s| {
        let mut outputs = vec![s.y, difference(s.y, &s.pairs())];
        outputs.extend(jvp(&[s.y], &s.pairs()));
        outputs.extend(vjp(s.y, s.seed, &s.x));
        outputs.extend(s.curvatures());
        let expected = reference::evaluate(&outputs, &s.scaled(0.1), 0, 0, 0);
        for (precision, got) in [
            (f64::EPSILON, compiled::<f64>(&outputs)(&s.scaled(0.1))),
            (f64::from(f32::EPSILON), compiled::<f32>(&outputs)(&s.scaled(0.1))),
        ] {
            for (k, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let error = relative_error(got, expected);
                within(&format!("output {k}, ε = {precision:.0e}"), error, s.roundings() * precision)?;
            }
        }
        Ok(())
    });
}

// ----------------------------------------------------------------------------------------------------------- derivatives

#[test]
fn gradients_equal_central_differences() {
    every_case(Laws::All, |_, s| {
        let slope = slope(s, &s.weighted(), V, &s.slopes());
        within("slope", slope.error, slope.bound)
    });
}

#[test]
fn gradients_of_gradients_equal_central_differences_of_gradients() {
    every_case(Laws::All, |_, s| {
        let slope = slope(s, &s.slopes(), W, &s.curvatures());
        within("curvature", slope.error, slope.bound)
    });
}

#[test]
fn central_differences_would_notice_a_millionth_of_a_gradient() {
    every_case(Laws::All, |_, s| {
        for (order, slope) in
            [("first", slope(s, &s.weighted(), V, &s.slopes())), ("second", slope(s, &s.slopes(), W, &s.curvatures()))]
        {
            if slope.size > 0.0 {
                within(&format!("{order} derivative"), slope.error + slope.bound, 1e-6 * slope.size)?;
            }
        }
        Ok(())
    });
}

#[test]
fn forward_mode_is_the_adjoint_of_reverse_mode() {
    every_case(Laws::ValueOnly, |_, s| {
        let forward = interpret(s.seed * jvp(&[s.y], &s.pairs())[0], &s.values);
        let reverse = vjp(s.y, s.seed, &s.x).into_iter().zip(&s.v);
        let reverse: Vec<f64> = reverse.flat_map(|(g, &v)| interpret(g * v, &s.values)).collect();
        let size: f64 = forward.iter().chain(&reverse).map(|v| v.abs()).sum();
        let gap = forward.iter().sum::<f64>() - reverse.iter().sum::<f64>();
        within("⟨seed, Jv⟩ − ⟨Jᵀseed, v⟩", gap.abs(), s.roundings() * f64::EPSILON * size)
    });
}

// ----------------------------------------------------------------------------------------------------------- differences

#[test]
fn differences_equal_subtraction_for_steps_that_are_not_small() {
    every_case(Laws::ValueOnly, |case, s| {
        let everywhere = |d| matches!(d, Domain::Line | Domain::Kinked | Domain::Index(_));
        let wide = case.inputs.iter().all(|i| everywhere(i.domain));
        for step in if wide { &[0.1, 0.7, 3.0][..] } else { &[0.1] } {
            let values = s.scaled(*step);
            let [start, end] = [&values, &moved(&values, 1.0, V)].map(|values| interpret(s.y, values));
            let got = interpret(difference(s.y, &s.pairs()), &values);
            let error = largest(&minus(&got, &minus(&end, &start)));
            let size = largest(&end) + largest(&start);
            within(&format!("step {step}"), error, s.roundings() * f64::EPSILON * size)?;
        }
        Ok(())
    });
}

#[test]
fn differences_equal_tangents_for_tiny_steps() {
    every_case(Laws::All, |_, s| {
        let (step, exact) = (1e-12, difference(s.y, &s.pairs()));
        let [once, twice] = [step, 2.0 * step].map(|t| interpret(exact, &s.scaled(t)));
        let tangent = interpret(jvp(&[s.y], &s.pairs())[0], &s.scaled(step));
        // Δ(t) = t·f' + t²·f''/2 + …, so Δ(2t) − 2Δ(t) = t²·f'' + … is twice what the tangent misses.
        let curvature = largest(&minus(&minus(&twice, &once), &once));
        let rounding = s.roundings() * f64::EPSILON * largest(&tangent);
        within("tangent", largest(&minus(&once, &tangent)), curvature + rounding)
    });
}

/// What derive/difference.rs promises of f32, however long the formula.
const PROMISE: f64 = 1e-5;

#[test]
fn differences_keep_their_digits_in_f32_for_steps_down_to_1e_12() {
    every_case(Laws::NoDerivative, |_, s| {
        let exact = difference(s.y, &s.pairs());
        let (mut single, mut double) = (compiled::<f32>(&[exact]), compiled::<f64>(&[exact]));
        for digits in 1..=12 {
            let values = s.scaled(0.1f64.powi(digits));
            let error = relative_error(&single(&values)[0], &double(&values)[0]);
            within(&format!("step 1e-{digits}"), error, (s.roundings() * f64::from(f32::EPSILON)).min(PROMISE))?;
        }
        Ok(())
    });
}

#[test]
fn subtraction_in_f32_loses_every_digit_of_the_same_differences() {
    every_case(Laws::NoDerivative, |_, s| {
        let values = s.scaled(1e-10);
        let mut single = compiled::<f32>(&[s.y]);
        let [start, end] = [&values, &moved(&values, 1.0, V)].map(|values| single(values).remove(0));
        let plain = minus(&end, &start);
        let exact = compiled::<f64>(&[difference(s.y, &s.pairs())])(&values).remove(0);
        let error = relative_error(&plain, &exact);
        if largest(&exact) == 0.0 || error > 0.5 { Ok(()) } else { Err(format!("error only {error:.1e}")) }
    });
}

#[test]
fn energy_changes_of_minimum_velocity_learning_keep_their_digits_in_f32_at_epsilon_1e_8() {
    let (g, eps) = (Graph::new(), 1e-8);
    let table = cases::all();
    let case = table.last().expect("the loss of minimum velocity learning");
    let s = Subject::new(&g, case, 0);
    let energy = mvl_energy(s.x[0], &s.x[2..]);
    let [step, along] = mvl_step(&s.x, eps);
    let (exact, plain) = (difference(energy, &[(s.x[0], step)]), mvl_energy(s.x[0] + step, &s.x[2..]) - energy);
    let outputs = [exact, plain, mvl_loss(exact, along, eps), mvl_loss(plain, along, eps), along, energy];
    let (single, double) = (compiled::<f32>(&outputs)(&s.values), compiled::<f64>(&outputs)(&s.values));
    let error = |k: usize, truth: usize| largest(&minus(&single[k], &double[truth]));
    let size = |k: usize| largest(&double[k]);
    assert!(error(0, 0) < PROMISE * size(0), "change of energy: {:.1e} of {:.1e}", error(0, 0), size(0));
    // In f64 subtraction still has digits to confirm the identity with: all but those of |E|/|ΔE|.
    let confirmed = largest(&minus(&double[0], &double[1]));
    assert!(confirmed < s.roundings() * f64::EPSILON * size(5), "{confirmed:.1e} of {:.1e}", size(0));
    // The loss subtracts u·∇E, of order √ε, and divides by ε: its error is that of u·∇E (sums of 2, 5, 4, 2) times 2/ε.
    let bound = (FEW + 13.0) * f64::from(f32::EPSILON) * size(4) * 2.0 / eps;
    assert!(error(2, 2) < bound && bound < 0.1 * size(2), "loss {}: {:.1e} of {bound:.1e}", size(2), error(2, 2));
    assert!(error(3, 2) > 0.1 * size(2), "subtraction keeps a digit: {:.1e} of {:.1e}", error(3, 2), size(2));
}

#[test]
fn derivatives_stop_where_they_are_cut_and_differences_do_not() {
    let g = Graph::new();
    let (x, d) = (g.input("x", [4]), g.input("d", [4]));
    for cut in [x.stop_gradient(), x.kth_smallest(2), x.floor(), x.sign(), x.less(0.5)] {
        assert_eq!(grad(cut, &[x])[0].as_fill(), Some(0.0), "{cut:?}");
        assert_eq!(jvp(&[cut], &[(x, d)])[0].as_fill(), Some(0.0), "{cut:?}");
        assert_eq!(difference(cut, &[(x, d)]).as_fill(), None, "{cut:?}");
    }
}

// -------------------------------------------------------------------------------------------------------- special places

#[test]
fn ties_share_the_gradient_and_differences_follow_the_winner() {
    let g = Graph::new();
    let [x, d] = ["x", "d"].map(|name| g.input(name, [3]));
    let values: Values = [("x", vec![1.0, 1.0, 0.0]), ("d", vec![-0.25, -0.5, 0.0])].into_iter().collect();
    let both = |y: Expr<'_>| reference::evaluate(&[grad(y, &[x])[0], difference(y, &[(x, d)])], &values, 0, 0, 0);
    assert_eq!(both(x.max_over(0)), [vec![0.5, 0.5, 0.0], vec![-0.25]]);
    assert_eq!(both(x.at(0, 0).max(x.at(0, 1))), [vec![1.0, 0.0, 0.0], vec![-0.25]]);
    assert_eq!(both(x.at(0, 0).min(x.at(0, 1))), [vec![1.0, 0.0, 0.0], vec![-0.5]]);
    assert_eq!(both(x.distribute().max_rows()), [vec![0.5, 0.5, 0.0], vec![-0.25]]);
}

#[test]
fn functions_keep_their_digits_from_tiny_to_large_arguments() {
    let magnitude = |i: i32| 10f64.powf(-5.0 + 6.5 * f64::from(i) / 200.0);
    for &(name, domain, f, std) in FUNCTIONS {
        let both_sides = |x: f64| if domain == Domain::Positive { vec![x] } else { vec![x, -x] };
        let x: Vec<f64> = (0..200).map(magnitude).flat_map(both_sides).map(|x| f64::from(x as f32)).collect();
        let x: Vec<f64> = x.into_iter().filter(|x| domain != Domain::Unit || x.abs() < 1.0).collect();
        let d: Vec<f64> = x.iter().map(|x| f64::from((1e-6 * x) as f32)).collect();
        let g = Graph::new();
        let [e, step] = ["x", "d"].map(|name| g.input(name, [x.len()]));
        let outputs = [f(e), grad(f(e), &[e])[0], difference(f(e), &[(e, step)])];
        let values: Values = [("x", x.clone()), ("d", d.clone())].into_iter().collect();
        let double = reference::evaluate(&outputs, &values, 0, 0, 0);
        let single = compiled::<f32>(&outputs)(&values);
        for (i, &x) in x.iter().enumerate() {
            let close =
                |k: usize, size: f64| (single[k][i] - double[k][i]).abs() <= FEW * f64::from(f32::EPSILON) * size;
            let exact = (double[0][i] - std(x)).abs() <= FEW * f64::EPSILON * std(x).abs();
            assert!(exact, "{name}({x}) is {} and not {}", double[0][i], std(x));
            assert!(close(0, std(x).abs()), "{name}({x}) in f32 is {}", single[0][i]);
            // Derivatives of saturated functions vanish to an ulp of 1; rounding x turns a slope by ε·|x|·f''.
            assert!(close(1, double[1][i].abs() + 1.0), "{name}'({x}): {} and not {}", single[1][i], double[1][i]);
            let size = double[2][i].abs() + d[i].abs() * (1.0 + x.abs());
            assert!(close(2, size), "Δ{name}({x}): {} and not {}", single[2][i], double[2][i]);
        }
    }
}

#[test]
fn shape_mistakes_panic_at_once_and_name_the_operation_and_the_shapes() {
    type Mistake = for<'g> fn(&'g Graph) -> Expr<'g>;
    const WINDOW: Window = Window::square(3, 1, [0, 0]);
    let mistakes: [(Mistake, [&str; 3]); 25] = [
        (|g| g.input("a", [2, 3]) + g.input("b", [4]), ["add", "[2, 3]", "[4]"]),
        (|g| g.input_rows("a", 5, [3]) * g.input_rows("b", 6, [3]), ["mul", "5 rows × [3]", "6 rows × [3]"]),
        (|g| g.input("a", [2]).atan2(g.input("b", [3])), ["atan2", "[2]", "[3]"]),
        (|g| g.input("c", [2]).select(g.input("a", [3]), g.scalar(0.0)), ["select", "[2]", "[3]"]),
        (|g| g.input("a", [2]).broadcast(&Shape::whole([3])), ["broadcast", "[2]", "[3]"]),
        (|g| g.input_rows("a", 5, [2]).broadcast(&Shape::whole([2])), ["broadcast", "5 rows × [2]", "[2]"]),
        (|g| g.input("a", [2, 3]).reshape([5]), ["reshape", "[2, 3]", "[5]"]),
        (|g| g.input("a", [2, 3]).transpose(&[0, 0]), ["transpose", "[0, 0]", "[2, 3]"]),
        (|g| g.input("a", [2]).t(), ["t:", "[2]", ""]),
        (|g| g.input("a", [4]).slice(0, 2, 3), ["slice", "2..5", "[4]"]),
        (|g| g.input("a", [4]).sum(1), ["sum", "axis 1", "[4]"]),
        (|g| g.input("a", [4]).sum_rows(), ["sum_rows", "[4]", "no row axis"]),
        (|g| g.input_rows("a", 5, [4]).distribute(), ["distribute", "5 rows × [4]", ""]),
        (|g| g.input("a", [2, 3]).matmul(g.input("b", [4, 2])), ["matmul", "[2, 3]", "[4, 2]"]),
        (|g| g.input_rows("a", 5, [3]).matmul(g.input("b", [4, 2])), ["matmul", "3]", "[4, 2]"]),
        (|g| g.input_rows("a", 5, [2, 3]).contract(g.input("b", [2, 4])), ["contract", "[2, 3]", "[2, 4]"]),
        (|g| concat(&[g.input("a", [2, 3]), g.input("b", [3, 3])], 1), ["concat", "[2, 3]", "[3, 3]"]),
        (|g| concat(&[g.input_rows("a", 5, [3]), g.input_rows("b", 6, [3])], 0), ["concat", "5 rows", "6 rows"]),
        (|g| g.input_rows("a", 5, [3]).gather(g.input("b", [2])), ["gather", "5 rows × [3]", ""]),
        (|g| g.input("a", [3]).scatter(g.input("b", [2]), 4), ["scatter", "[3]", "[2]"]),
        (|g| g.input("a", [3]).kth_smallest(3), ["kth_smallest", "3", "[3]"]),
        (|g| g.input("a", [2, 4, 1]).im2col(WINDOW), ["im2col", "[3, 3]", "[2, 4]"]),
        (|g| g.input("a", [2, 9]).col2im(WINDOW, [3, 3, 1]), ["col2im", "[2, 9]", "[3, 3, 1]"]),
        (|g| g.input("a", [4, 4]).conv2d(g.input("w", [9, 2]), WINDOW), ["im2col", "[4, 4]", "channels"]),
        (|g| vjp(g.input("a", [3]), g.input("b", [2]), &[g.scalar(0.0)])[0], ["vjp", "[3]", "[2]"]),
    ];
    for (mistake, parts) in mistakes {
        let panic = catch_unwind(AssertUnwindSafe(|| mistake(&Graph::new()).shape())).expect_err(parts[0]);
        let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(message.starts_with(parts[0]), "`{message}` should start with `{}`", parts[0]);
        assert!(parts.iter().all(|part| message.contains(part)), "`{message}` should contain {parts:?}");
    }
}
