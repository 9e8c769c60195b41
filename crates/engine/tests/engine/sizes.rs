//! Nothing that safe code asks for reads or writes foreign memory, and nothing too large ends the process.

use minvel_engine::{Clock, DeviceErrorKind, Draw, Expr, Graph, Options, Program, Shape, State, Window, concat, grad};
use std::panic::{AssertUnwindSafe, catch_unwind};

const CLOCK: Clock = Clock { seed: 0, step: 0 };

/// What a panic says.
fn message<R>(work: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(work)).map(drop).expect_err("this must be refused");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

/// A table [2³³, 2³¹] had length 0, so that no value at all was taken for it, and a gather then read foreign memory.
#[test]
fn a_shape_with_more_entries_than_memory_can_hold_is_refused_where_it_is_made() {
    let g = Graph::new();
    let x = g.input_rows("x", 2, [3]);
    let huge = [1 << 33, 1 << 31];
    let said = message(|| g.input("huge", huge));
    assert!(said.contains("8589934592, 2147483648") && said.contains("fit into memory"), "{said}");
    let by_hand = Shape { rows: Some(1 << 40), dims: vec![1 << 40] };
    type Make<'a> = Box<dyn Fn() -> Expr<'a> + 'a>;
    let refused: [(&str, Make); 12] = [
        ("input_rows", Box::new(|| g.input_rows("rows", 1 << 62, [4]))),
        ("input_bytes", Box::new(|| g.input_bytes("bytes", huge))),
        ("variable", Box::new(|| g.variable("v", huge))),
        ("fill", Box::new(|| g.fill(1.0, by_hand.clone()))),
        ("no rows", Box::new(|| g.fill(1.0, Shape { rows: Some(0), dims: vec![] }))),
        ("broadcast", Box::new(|| g.scalar(1.0).broadcast(&by_hand))),
        ("pad", Box::new(|| x.pad(0, usize::MAX - 2, 2))),
        ("slice", Box::new(|| x.slice(0, usize::MAX, 2))),
        ("scatter", Box::new(|| x.scatter(g.input_rows("at", 2, []), 1 << 62))),
        (
            "im2col",
            Box::new(|| {
                let window = Window { kernel: [1, 1], stride: 1, pad: [[1 << 40, 0]; 2] };
                g.input("image", [3, 3, 1]).im2col(window)
            }),
        ),
        ("random", Box::new(|| g.random(Draw::Normal, 0, [1 << 33]))),
        (
            "concat",
            Box::new(|| {
                let wide = g.fill(0.5, Shape::whole([1 << 56]));
                concat(&[wide; 17], 0)
            }),
        ),
    ];
    for (name, make) in refused {
        let said = message(make);
        assert!(!said.contains("overflow"), "{name}: {said}"); // by the check, not by one that release builds lack
    }
}

#[test]
fn programs_larger_than_memory_are_errors() {
    let g = Graph::new();
    let rows = |n: usize| g.random_rows(Draw::Normal, 0, n, [1 << 20]).square().collect();
    let ends = |e: Result<Program<f64>, minvel_engine::DeviceError>| e.map(drop).expect_err("there is no such memory");
    // A value alone, then by its replicas, more than can be counted.
    for (value, replicas) in [(rows(1 << 31), 1), (rows(1 << 25), 1 << 30), (rows(2), usize::MAX)] {
        let why = ends(g.try_compile(&[value], &[], &Options { replicas, ..Options::default() }));
        assert_eq!(why.kind(), DeviceErrorKind::OutOfMemory, "{why}");
        assert!(why.to_string().contains("fewer"), "{why}");
    }
    // The engine still works.
    let mut program = g.compile::<f64>(&[g.scalar(2.0) + g.step()], &[], &Options::default());
    program.run(&mut State::new(1), &[], Clock { seed: 0, step: 3 });
    assert_eq!(program.output(0), [5.0]);
}

/// An index outside its table was clamped on a GPU and ended the process on the CPU.
#[test]
fn an_index_outside_its_table_is_an_error_on_every_device() {
    let g = Graph::new();
    let table = g.input("table", [4, 2]);
    let index = g.input_rows("index", 3, []);
    let v = g.variable("v", [2]);
    let gathered = table.gather(index);
    let next = v + gathered.sum_rows();
    // In the gradient only the scatter is left.
    let spread = grad(gathered.square().sum_all().sum_rows(), &[table])[0];
    let numbers: Vec<f32> = (0..8).map(|x| x as f32).collect();
    for outputs in [vec![gathered], vec![spread]] {
        let updates = if outputs[0].shape().rows.is_some() { vec![(v, next)] } else { vec![] };
        for (bad, said) in [
            (4.0, "index 4 is"),
            (-1.0, "-1"),
            (-0.5, "-0.5"),
            (f32::NAN, "NaN"),
            (1e30, "0..4"),
            (f32::INFINITY, "inf"),
        ] {
            let mut program = g.compile::<f32>(&outputs, &updates, &Options::default());
            let mut state = State::new(1);
            state.set("v", &[0.5, 0.25], 2);
            let good = [("table", &numbers[..]), ("index", &[0.0, 3.0, 2.9])];
            program.try_run(&mut state, &good, CLOCK).expect("all indices are good");
            program.try_output(0).expect("all indices are good");
            let kept = state.try_get("v").expect("it is there").map(<[f32]>::to_vec);
            let wrong = [("table", &numbers[..]), ("index", &[0.0, bad, 2.0])];
            let why = program
                .try_run(&mut state, &wrong, CLOCK)
                .and_then(|()| program.try_output(0).map(drop))
                .expect_err("it is outside");
            assert_eq!(why.kind(), DeviceErrorKind::Index, "{why}");
            assert!(why.to_string().contains(said) && why.to_string().contains("gather"), "{why}");
            // What was written by that run is never seen; the program has failed for good.
            assert!(state.try_get("v").is_err() || state.get("v").map(<[f32]>::to_vec) == kept);
            let again = program.try_run(&mut state, &good, CLOCK).and_then(|()| program.try_output(0).map(drop));
            assert!(again.is_err());
        }
    }
}

#[test]
fn an_index_outside_a_table_of_bytes_is_an_error_on_every_device() {
    let g = Graph::new();
    let shown = g.input_bytes("images", [3, 2]).gather(g.input_rows("index", 2, []));
    let mut program = g.compile::<f32>(&[shown], &[], &Options::default());
    let run = |program: &mut Program<f32>, index: [f32; 2]| {
        let (inputs, bytes) = ([("index", &index[..])], [("images", &[0u8, 51, 102, 153, 204, 255][..])]);
        let mut loaded = program.loaded(&inputs).with_bytes(&bytes);
        loaded.try_run_steps(&mut State::new(1), 0, 0..1)?;
        loaded.try_output(0).map(<[f32]>::to_vec)
    };
    assert_eq!(run(&mut program, [2.0, 0.0]), Ok(vec![0.8, 1.0, 0.0, 0.2]));
    let why = run(&mut program, [2.0, 3.0]).expect_err("there are three images");
    assert!(why.to_string().contains("index 3 is outside 0..3"), "{why}");
}

/// A state on a device is told what became of it, and clones made before are served.
#[test]
fn a_failed_run_changes_no_state_unseen() {
    let g = Graph::new();
    let (v, table) = (g.variable("v", []), g.table(&[1.0, 2.0, 3.0], [3]));
    let next = v + table.gather(v);
    let mut program = g.compile::<f64>(&[next], &[(v, next)], &Options::default());
    let mut state = State::new(1);
    state.set("v", &[0.0], 1);
    program.try_run_steps(&mut state, &[], 0, 0..1).expect("0 is an entry"); // v = 1
    let before = state.clone();
    let failed = program.try_run_steps(&mut state, &[], 0, 1..3).and_then(|()| state.fetch()); // 1 + 2 = 3 is none
    assert_eq!(failed.expect_err("3 is outside").kind(), DeviceErrorKind::Index);
    assert_eq!(before.try_get("v"), Ok(Some(&[1.0][..])));
}
