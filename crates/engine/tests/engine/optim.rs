//! Optimisers against their recursions written out, schedules, clipping, averages; and the laws of initialisers.

use minvel_engine::init::Init;
use minvel_engine::optim::{Optimiser, RateSchedule, UpdateRule};
use minvel_engine::random::Key;
use minvel_engine::reference::{Values, evaluate};
use minvel_engine::{Clock, Graph, Options, State};

/// |a − b| of at most n rounding errors of the larger.
fn within_ulps(a: f64, b: f64, n: f64) -> bool {
    (a - b).abs() <= n * f64::EPSILON * a.abs().max(b.abs())
}

/// Agreement with a number known to some decimal: half a unit of its last digit.
fn as_printed(a: f64, b: f64, last_digit: f64) -> bool {
    (a - b).abs() <= 0.5 * last_digit
}

/// One number θ, from θ₀ along given gradients: its value after each step.
fn path(optimiser: Optimiser, start: f64, gradients: &[f64]) -> Vec<f64> {
    let g = Graph::new();
    let (theta, slope) = (g.variable("θ", []), g.input("slope", []));
    let updates = optimiser.minimise(slope * theta, &[theta]);
    let mut program = g.compile::<f64>(&[], &updates.updates, &Options::default());
    let mut state = State::new(1);
    state.set("θ", &[start], 1);
    updates.initialise(&mut state);
    let step = |(t, g): (usize, &f64)| {
        program.run(&mut state, &[("slope", &[*g])], Clock { seed: 0, step: t as u32 });
        state.get("θ").expect("set above")[0]
    };
    gradients.iter().enumerate().map(step).collect()
}

/// Gradients of both signs and many sizes, zero among them.
fn gradients() -> Vec<f64> {
    (0..50).map(|t| if t == 7 { 0.0 } else { (f64::from(t) * 1.7).sin() * 10f64.powi(t % 5 - 2) }).collect()
}

/// The rule follows a recursion `(t, g, θ) → θ` from θ = 0.3, to `ulps` rounding errors a step.
fn follows(rule: UpdateRule, ulps: f64, mut recursion: impl FnMut(i32, f64, f64) -> f64) {
    let (rate, start) = (0.01, 0.3);
    let mut theta = start;
    let path = path(Optimiser::new(rule, rate), start, &gradients());
    for (t, (&g, got)) in gradients().iter().zip(path).enumerate() {
        let moved = recursion(t as i32 + 1, g, theta);
        theta -= rate * moved;
        // θ is of order one, so that errors of the steps before add up relative to one.
        let bound = ulps * f64::EPSILON * (t as f64 + 1.0);
        assert!((got - theta).abs() <= bound, "{rule:?}, step {t}: {got} and not {theta}");
    }
}

#[test]
fn fact_54_rmsprop_of_tensorflow_gives_its_known_numbers() {
    let known = [-0.000519875245, -0.000301201308, -0.000416376125];
    for (got, known) in path(Optimiser::rmsprop_tf(1e-3), 0.0, &[0.5, -0.2, 0.1]).into_iter().zip(known) {
        assert!(as_printed(got, known, 1e-12), "{got} and not {known}");
    }
    let constant = path(Optimiser::rmsprop_tf(1e-3), 0.0, &[0.01; 100]);
    assert!(as_printed(-constant[0], 1.0540867e-5, 1e-12), "first step {}", constant[0]);
    let last = constant[98] - constant[99];
    assert!(as_printed(last, 8.8890e-4, 1e-8), "100th step {last}");
}

#[test]
fn rules_follow_their_recursions() {
    let (mut s, decay, epsilon) = (1.0, 0.9, 1e-10);
    follows(UpdateRule::RmsPropTf { decay, epsilon }, 4.0, |_, g, _| {
        s = decay * s + (1.0 - decay) * g * g;
        g / f64::sqrt(s + epsilon)
    });
    let (mut s, decay, epsilon) = (0.0, 0.99, 1e-8);
    follows(UpdateRule::RmsPropTorch { decay, epsilon }, 4.0, |_, g, _| {
        s = decay * s + (1.0 - decay) * g * g;
        g / (f64::sqrt(s) + epsilon)
    });
    follows(UpdateRule::Sgd { momentum: 0.0 }, 4.0, |_, g, _| g);
    let mut v = 0.0;
    follows(UpdateRule::Sgd { momentum: 0.9 }, 4.0, |_, g, _| {
        v = 0.9 * v + g;
        v
    });
    for decay in [0.0, 0.1] {
        let (first, second, epsilon) = (0.9, 0.999, 1e-8);
        let (mut m, mut s) = (0.0, 0.0);
        // The recursion subtracts βᵗ from 1, which is wrong by up to 1/(1 − β₂) rounding errors; a step is rate·1.
        let ulps = 4.0 + 0.01 / (1.0 - second);
        follows(UpdateRule::Adam { first, second, epsilon, decay }, ulps, |t, g, theta| {
            m = first * m + (1.0 - first) * g;
            s = second * s + (1.0 - second) * g * g;
            let (m_hat, s_hat) = (m / (1.0 - first.powi(t)), s / (1.0 - second.powi(t)));
            m_hat / (f64::sqrt(s_hat) + epsilon) + decay * theta
        });
    }
}

#[test]
#[should_panic(expected = "RmsPropTorch")]
fn the_two_forms_of_rmsprop_are_told_apart() {
    let mut s = 1.0;
    follows(UpdateRule::RmsPropTorch { decay: 0.9, epsilon: 1e-10 }, 4.0, |_, g, _| {
        s = 0.9 * s + 0.1 * g * g;
        g / f64::sqrt(s + 1e-10)
    });
}

#[test]
fn the_usual_constants_are_those_of_the_papers() {
    assert_eq!(Optimiser::rmsprop_tf(1.0).rule, UpdateRule::RmsPropTf { decay: 0.9, epsilon: 1e-10 });
    assert_eq!(Optimiser::rmsprop_torch(1.0).rule, UpdateRule::RmsPropTorch { decay: 0.99, epsilon: 1e-8 });
    let adam = |decay| UpdateRule::Adam { first: 0.9, second: 0.999, epsilon: 1e-8, decay };
    assert_eq!((Optimiser::adam(1.0).rule, Optimiser::adamw(1.0, 0.1).rule), (adam(0.0), adam(0.1)));
}

#[test]
fn clipping_shortens_the_whole_gradient_of_one_replica_and_leaves_the_other() {
    let g = Graph::new();
    let (a, b) = (g.variable("a", [2]), g.variable_rows("b", 2, [1]));
    let (da, db) = (g.input("da", [2]), g.input_rows("db", 2, [1]));
    let optimiser = Optimiser { clip: Some(1.0), ..Optimiser::new(UpdateRule::Sgd { momentum: 0.9 }, 1.0) };
    let updates = optimiser.descend(&[da, db], &[a, b]);
    let mut program = g.compile::<f64>(&[], &updates.updates, &Options { replicas: 2, ..Options::default() });
    let mut state = State::new(2);
    state.set("a", &[0.0; 2], 2);
    state.set("b", &[0.0; 2], 2);
    updates.initialise(&mut state);
    // |(1, 1, 1, 1)·2| = 4 in the first replica; |(0.1, 0.2, 0.3, 0.4)| < 1 in the second.
    let (da, db) = ([2.0, 2.0, 0.1, 0.2], [2.0, -2.0, 0.3, 0.4]);
    program.run(&mut state, &[("da", &da), ("db", &db)], Clock { seed: 0, step: 0 });
    assert_eq!(state.get("a").expect("set"), [-0.5, -0.5, -0.1, -0.2]);
    assert_eq!(state.get("b").expect("set"), [-0.5, 0.5, -0.3, -0.4]);
}

#[test]
fn schedules_take_their_values_and_scale_the_steps() {
    let (steps, floor) = (100, 0.1);
    let cosine = RateSchedule::Cosine { steps, floor };
    let decay = RateSchedule::Steps { every: 10, factor: 0.5 };
    let known =
        |t: u32| floor + (1.0 - floor) * 0.5 * (1.0 + (std::f64::consts::PI * f64::from(t.min(steps)) / 100.0).cos());
    for t in [0, 1, 9, 10, 25, 50, 99, 100, 1000] {
        let expected = [1.0, known(t), 0.5f64.powi(t as i32 / 10)];
        for (schedule, expected) in [RateSchedule::Constant, cosine, decay].into_iter().zip(expected) {
            let g = Graph::new();
            let got = evaluate(&[schedule.at(g.step())], &Values::new(), 0, 0, t)[0][0];
            // e^(k·ln ½) turns each rounding error of the exponent into |k·ln ½| of them.
            let ulps = 4.0 + f64::from(t) / 10.0;
            assert!(within_ulps(got, expected, ulps), "{schedule:?} at {t}: {got} and not {expected}");
        }
    }
    assert!(
        within_ulps(known(0), 1.0, 1.0) && within_ulps(known(100), floor, 4.0) && within_ulps(known(50), 0.55, 4.0)
    );
    let scheduled = Optimiser { schedule: decay, ..Optimiser::new(UpdateRule::Sgd { momentum: 0.0 }, 1.0) };
    let walked = path(scheduled, 0.0, &[1.0; 25]);
    assert!(within_ulps(walked[24], -(10.0 + 5.0 + 1.25), 25.0), "{}", walked[24]);
}

/// 49·(1/49) < 1 in f64, and 41·(1/41) < 1 in f32: a division turned into a product came a step late.
#[test]
fn steps_of_a_schedule_come_on_time_for_every_period() {
    for every in 1..=200 {
        let g = Graph::new();
        let factor = RateSchedule::Steps { every, factor: 0.5 }.at(g.step());
        let mut single = g.compile::<f32>(&[factor], &[], &Options::default());
        for (step, expected) in [(every - 1, 1.0), (every, 0.5), (3 * every - 1, 0.25), (3 * every, 0.125)] {
            single.run(&mut State::new(1), &[], Clock { seed: 0, step });
            let (in_f32, in_f64) = (single.output(0)[0], evaluate(&[factor], &Values::new(), 0, 0, step)[0][0]);
            let on_time = |got: f64| (got / expected - 1.0).abs() < 0.25;
            assert!(on_time(f64::from(in_f32)) && on_time(in_f64), "every {every} at {step}: {in_f32} and {in_f64}");
        }
    }
}

#[test]
fn the_average_starts_at_the_parameter_and_follows_it() {
    let g = Graph::new();
    let theta = g.variable("θ", [2]);
    let optimiser = Optimiser { average: Some(0.75), ..Optimiser::new(UpdateRule::Sgd { momentum: 0.0 }, 0.25) };
    let updates = optimiser.minimise(theta.square().sum(0), &[theta]);
    let mut program = g.compile::<f64>(&[], &updates.updates, &Options::default());
    let (mut state, mut theta, mut average) = (State::new(1), [1.0, -4.0], [1.0, -4.0]);
    state.set("θ", &theta, 2);
    updates.initialise(&mut state);
    for step in 0..5 {
        assert_eq!(state.get("θ/average").expect("initialised"), average, "step {step}");
        program.run(&mut state, &[], Clock { seed: 0, step });
        // θ ← θ − ¼·2θ; all numbers are exact in binary.
        theta = theta.map(|x| 0.5 * x);
        average = [0, 1].map(|i| 0.75 * average[i] + 0.25 * theta[i]);
    }
}

#[test]
fn a_resumed_state_is_not_initialised_again() {
    let run = |state: &mut State<f64>, steps: std::ops::Range<u32>| {
        let g = Graph::new();
        let theta = g.variable("θ", [2]);
        let optimiser = Optimiser { average: Some(0.9), ..Optimiser::adam(0.1) };
        let updates = optimiser.minimise(theta.square().sum(0), &[theta]);
        updates.initialise(state);
        g.compile::<f64>(&[], &updates.updates, &Options::default()).run_steps(state, &[], 0, steps);
    };
    let mut start = State::new(1);
    start.set("θ", &[1.0, -2.0], 2);
    let (mut once, mut resumed) = (start.clone(), start);
    run(&mut once, 0..6);
    run(&mut resumed, 0..3);
    run(&mut resumed, 3..6);
    assert_eq!(once, resumed);
}

// ------------------------------------------------------------------------------------------------------- initialisers

/// z-scores of the mean, the second and the fourth moment of x/σ against those of a law with the given moments.
///
/// The standard error of a mean of xᵏ is √((m₂ₖ − mₖ²)/n).
fn z_scores(x: &[f64], sigma: f64, [m2, m4, m8]: [f64; 3]) -> [f64; 3] {
    let n = x.len() as f64;
    let mean = |k: i32| x.iter().map(|x| (x / sigma).powi(k)).sum::<f64>() / n;
    [(1, 0.0, m2), (2, m2, m4), (4, m4, m8)].map(|(k, m, square)| (mean(k) - m) / ((square - m * m) / n).sqrt())
}

/// Moments of orders 2, 4 and 8 of the unit normal and of the uniform law on (−√3, √3): 3^(k/2)/(k + 1).
const NORMAL: [f64; 3] = [1.0, 3.0, 105.0];
const UNIFORM: [f64; 3] = [1.0, 9.0 / 5.0, 81.0 / 9.0];

/// The same of the unit normal between −2 and 2: mₖ = (k − 1)mₖ₋₂ − 2ᵏφ(2)/(2Φ(2) − 1), by parts.
fn truncated() -> [f64; 3] {
    let (density, mass) = ((-2f64).exp() / std::f64::consts::TAU.sqrt(), 0.9544997361036416);
    let mut moments = vec![1.0];
    for k in [2, 4, 6, 8] {
        let before = moments[moments.len() - 1];
        moments.push((k - 1) as f64 * before - 2.0 * 2f64.powi(k - 1) * density / mass);
    }
    [moments[1], moments[2], moments[4]]
}

#[test]
fn initialisers_have_the_spread_and_the_shape_of_their_laws() {
    let [rows, columns] = [120, 80];
    let (sum, fan_in) = ((rows + columns) as f64, rows as f64);
    for (stream, (init, sigma, law, other)) in [
        (Init::Normal(0.3), 0.3, NORMAL, UNIFORM),
        (Init::TruncatedNormal(0.1), 0.1, truncated(), NORMAL),
        (Init::GlorotNormal, (2.0 / sum).sqrt(), NORMAL, UNIFORM),
        (Init::GlorotUniform, (2.0 / sum).sqrt(), UNIFORM, NORMAL),
        (Init::HeNormal, (2.0 / fan_in).sqrt(), NORMAL, UNIFORM),
        (Init::HeUniform, (2.0 / fan_in).sqrt(), UNIFORM, NORMAL),
    ]
    .into_iter()
    .enumerate()
    {
        let mut state = State::<f64>::new(1);
        init.set(&mut state, "w", &[rows, columns], 5, stream as u32);
        let x = state.get("w").expect("just set");
        let worst = |sigma: f64, law: [f64; 3]| z_scores(x, sigma, law).iter().fold(0.0, |m: f64, z| m.max(z.abs()));
        println!("{init:?}: z = {:.2?}", z_scores(x, sigma, law));
        assert!(worst(sigma, law) < 4.0, "{init:?}: {:?}", z_scores(x, sigma, law));
        // Twins that must fail: a tenth more spread, a tenth less, and the other law of the same variance.
        for twin in [worst(sigma / 1.1, law), worst(sigma * 1.1, law), worst(sigma, other)] {
            assert!(twin > 4.0, "{init:?}: a wrong law passes with z = {twin}");
        }
        if law == UNIFORM {
            let largest = x.iter().fold(0.0, |m: f64, x| m.max(x.abs())) / (3f64.sqrt() * sigma);
            // All n are below 1 − 10/n with probability e⁻¹⁰.
            assert!((1.0 - 10.0 / x.len() as f64..=1.0).contains(&largest), "{init:?}: bound {largest}");
        }
    }
}

#[test]
fn fans_are_taken_from_the_shape_unless_given() {
    let bound = |dims: &[usize]| {
        let mut state = State::<f64>::new(1);
        Init::GlorotUniform.set(&mut state, "w", dims, 1, 0);
        state.get("w").expect("just set").to_vec()
    };
    let direct = |dims: &[usize], fans| Init::GlorotUniform.values(dims, fans, Key::new(1, 0), 0);
    assert_eq!(bound(&[4, 6]), direct(&[4, 6], (4, 6)));
    assert_eq!(bound(&[5]), direct(&[5], (1, 5)));
    assert_eq!(bound(&[2, 3, 4]), direct(&[2, 3, 4], (6, 4)));
    let mut kernels = State::<f64>::new(1);
    Init::HeNormal.set_with_fans(&mut kernels, "w", &[8, 27], (27, 8), 1, 0);
    assert_eq!(kernels.get("w").expect("just set"), Init::HeNormal.values(&[8, 27], (27, 8), Key::new(1, 0), 0));
    assert_eq!(Init::ZEROS.values(&[3], (1, 3), Key::new(1, 0), 0), [0.0; 3]);
}

#[test]
fn orthogonal_matrices_are_orthogonal() {
    for [rows, columns] in [[30, 30], [50, 20], [20, 50]] {
        let q = Init::Orthogonal.values(&[rows, columns], (rows, columns), Key::new(3, 0), 0);
        let (count, len) = (rows.min(columns), rows.max(columns));
        let at = |v: usize, i: usize| if rows <= columns { q[v * columns + i] } else { q[i * columns + v] };
        for (v, w) in (0..count).flat_map(|v| (0..count).map(move |w| (v, w))) {
            let inner: f64 = (0..len).map(|i| at(v, i) * at(w, i)).sum();
            let gap = inner - f64::from(u8::from(v == w));
            // An inner product of unit vectors of length n gathers at most n rounding errors, twice (norm and product).
            assert!(gap.abs() <= 2.0 * len as f64 * f64::EPSILON, "{rows}×{columns}: ⟨{v}, {w}⟩ is off by {gap:e}");
        }
    }
}

#[test]
fn replicas_differ_and_each_is_the_single_run_with_its_key() {
    let (dims, len, seed) = ([6, 4], 24, 11);
    for init in [Init::GlorotUniform, Init::HeNormal, Init::Orthogonal] {
        let mut state = State::<f64>::new(3);
        init.set(&mut state, "w", &dims, seed, 2);
        let all = state.get("w").expect("just set");
        let replicas: Vec<&[f64]> = all.chunks(len).collect();
        for (r, replica) in replicas.iter().enumerate() {
            assert_eq!(*replica, init.values(&dims, (6, 4), Key::new(seed, r as u32), 2), "{init:?}, replica {r}");
            assert_ne!(*replica, init.values(&dims, (6, 4), Key::new(seed, r as u32), 3), "{init:?}: streams agree");
        }
        assert!(replicas[0] != replicas[1] && replicas[1] != replicas[2], "{init:?}: replicas agree");
    }
}
