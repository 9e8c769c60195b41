//! The experiments on `minvel fit`, at settings small enough for a test. On real data: real_data/earth.rs.

use crate::support::experiments::{FIT, config, entry, row, run, try_run};
use minvel::estimate::Estimate;
use minvel::fit::distinct_indices;
use minvel_lab::catalogue::locate;
use minvel_lab::report::Row;
use minvel_lab::table::{Dataset, Request, Table};
use minvel_testing::Scratch;
use std::f64::consts::TAU;

#[test]
fn laws_are_found_again_on_every_kind_of_manifold_and_more_points_bring_a_fit_nearer() {
    let manifolds = r#"manifolds=["sphere:2", "torus:4", "euclidean:8", "so3", "hyperbolic:2"]"#;
    let changes = [FIT, manifolds, r#"laws=["heavy-tailed"]"#, "points=[200, 1600]", "fresh=1000"];
    let findings = run("recovery", "recovery", &config("recovery", &changes), 0);
    for title in ["S²", "T⁴", "R⁸", "SO(3)", "H²"] {
        let what = |points: usize| format!("{title}, heavy-tailed law 1, {points} points");
        let excess = |points: usize| row(&findings, &format!("{}: excess over the truth", what(points)));
        let (few, many) = (excess(200), excess(1600));
        println!("{title}: {} with 200 points, {} with 1600", few.value_text(), many.value_text());
        assert!(many.value > -4.0 * many.std_error, "{title}: better than the truth: {}", many.value);
        assert!(many.value < few.value, "{title}: {} with more points, {} with few", many.value, few.value);
        // The kernel density stands beside it, on the same points.
        let beside = format!("{}: minvel minus the kernel density", what(1600));
        assert!(row(&findings, &beside).std_error > 0.0);
    }
    let claims = findings.rows.iter().filter(|row| row.claim.is_some()).count();
    assert_eq!((claims, findings.figures.len()), (10, 1));
    assert!(findings.notes.iter().any(|note| note.contains("\"steps\":20")), "{:?}", findings.notes);
}

/// Whoever has the tables can compute the excess, and find what the program found.
#[test]
fn tables_of_laws_are_written_for_other_programs() {
    let scratch = Scratch::new("tables-of-laws");
    let place = format!("tables='{}'", scratch.path("").display());
    let changes = [FIT, "points=[200]", "fresh=300", r#"manifolds=["torus:2"]"#, r#"laws=["smooth"]"#, &place];
    let findings = run("tables", "recovery", &config("recovery", &changes), 0);
    let own = "torus-2.smooth.law=1";
    let files = ["fresh", "judged=200", "parts=200", "points=200", "truth"];
    assert_eq!(scratch.list(), files.map(|what| format!("{own}.{what}.npy")));
    let read = |what: &str| {
        let table = Table::read(&scratch.path(&format!("{own}.{what}.npy")), &Default::default()).unwrap();
        table.columns.into_iter().map(|column| column.values).collect::<Vec<_>>()
    };
    let (points, fresh, truth) = (read("points=200"), read("fresh"), read("truth"));
    assert_eq!([points.len(), points[0].len(), fresh.len(), fresh[1].len(), truth.len()], [2, 200, 2, 300, 1]);
    // What each density says of the 20 validation rows, as it is judged, and of fresh ones.
    let (judged, parts) = (read("judged=200"), read("parts=200"));
    assert!(judged.len() == parts.len() && !parts.is_empty(), "{} and {}", judged.len(), parts.len());
    assert_eq!([judged[0].len(), parts[0].len()], [20, 300]);
    let kernels = truth[0].iter().zip(&parts[0]).map(|(truth, kernels)| truth - kernels).sum::<f64>() / 300.0;
    let stated = row(&findings, "excess over the truth").value - row(&findings, "minvel minus the kernels alone").value;
    assert!((kernels - stated).abs() < 1e-9, "{kernels} and {stated}");
    // Of points of p, the mean of 1/p is the volume; 1/p is bounded, since the law is smooth.
    let inverse: Vec<f64> = truth[0].iter().map(|l| (-l).exp() / TAU.powi(2)).collect();
    let mean = Estimate::of(inverse.iter().copied());
    println!("mean of 1/(p·vol) over fresh points: {} ± {}", mean.mean, mean.std_error);
    assert!((mean.mean - 1.0).abs() < 4.0 * mean.std_error && mean.std_error < 0.2, "{mean:?}");
    let excess = truth[0].iter().sum::<f64>() / 300.0 + 2.0 * TAU.ln();
    assert!(
        excess > row(&findings, "excess over the truth").value,
        "a uniform density is only {excess} behind the truth"
    );
    let missing = format!("tables='{}'", scratch.path("missing").display());
    let refused = (entry("recovery").check)(&config("recovery", &[&missing])).err().expect("there is no such folder");
    assert!(refused.to_string().contains("tables"), "{refused}");
}

#[test]
fn the_same_laws_are_found_again_on_any_number_of_threads() {
    let changes = [FIT, "points=[200]", "fresh=200", r#"manifolds=["sphere:1"]"#, r#"laws=["smooth"]"#];
    let settings = config("recovery", &changes);
    let rows = |threads: usize| {
        let findings = run(&format!("threads-{threads}"), "recovery", &settings, threads);
        findings.rows.into_iter().filter(|r| !r.name.contains("seconds")).collect::<Vec<Row>>()
    };
    let (one, two) = (rows(1), rows(2));
    assert_eq!(format!("{one:?}"), format!("{two:?}"));
}

#[test]
fn few_rows_of_known_laws_integrate_to_one() {
    let manifolds = r#"manifolds=["sphere:1", "hyperbolic:2"]"#;
    let changes = [FIT, "seeds=1", "rows=[20]", "split=20", "fresh=400", manifolds];
    let findings = run("integrals", "integrals", &config("integrals", &changes), 0);
    for claim in findings.rows.iter().filter(|row| row.claim.is_some()) {
        println!("{}: {}", claim.name, claim.value_text());
        assert!(claim.holds == Some(true), "{} does not hold", claim.name);
    }
    for name in ["sphere:1", "hyperbolic:2"] {
        let cells = row(&findings, &format!("{name}: split rows: largest |∫ of the kernels − 1|")).value;
        assert!(cells < 1e-5, "{name}: the cells miss {cells:.1e} of the kernels, too much to judge by");
        assert!(
            row(&findings, &format!("{name}: split rows: share of fits with a correction")).value > 0.0,
            "no power"
        );
    }
    assert_eq!(findings.rows.iter().filter(|row| row.claim.is_some()).count(), 4);
}

#[test]
fn few_rows_of_known_laws_score_as_a_kernel_density_does_or_better() {
    let changes = [FIT, "seeds=2", "rows=[20, 60]", "fresh=400", r#"manifolds=["sphere:1", "sphere:2"]"#];
    let findings = run("small", "small", &config("small", &changes), 0);
    let claims: Vec<&Row> = findings.rows.iter().filter(|row| row.claim.is_some()).collect();
    for claim in &claims {
        println!("{}: {} ± {:.3}", claim.name, claim.value_text(), claim.std_error);
        // Sixteen data sets instead of 160: what is claimed of the mean, and four of its errors.
        assert!(claim.value < 0.02 + 4.0 * claim.std_error, "{}", claim.name);
    }
    assert_eq!(claims.len(), 4);
    // No density is nearer to the truth than the truth, but for the chance of 400 points.
    for excess in findings.rows.iter().filter(|row| row.name.contains("mean over laws: excess")) {
        assert!(excess.value > 0.0 && excess.value < 1.0, "{}: {}", excess.name, excess.value);
    }
}

#[test]
fn tests_of_fit_notice_a_missing_half_and_leave_good_models_alone() {
    let changes = [FIT, "seeds=2", "level=6", "fitted=300", r#"manifolds=["torus:2"]"#, r#"laws=["two opposite"]"#];
    let findings = run("power", "power", &config("power", &changes), 0);
    let share = |what: &str, by: &str| row(&findings, &format!("{what} by {by}")).value;
    let half = "torus:2, two opposite, the northern (upper) half only: rejected at 1 %";
    assert_eq!(share(half, "both tests"), 1.0);
    // Six tables of the model's own draws: three rejections at 5 % have probability 0.002.
    assert!(share("all draws of the models: rejected at 5 %", "both tests") < 0.5);
    assert_eq!(findings.rows.iter().filter(|row| row.claim.is_some()).count(), 6);
}

#[test]
fn improper_settings_are_refused_by_name() {
    let cases = [
        ("recovery", "manifolds=['product(sphere:2,torus:1)']", "product"),
        ("recovery", "laws=['odd']", "laws"),
        ("recovery", "manifolds=['sphere']", "manifolds"),
        ("recovery", "manifolds=['torus:2', 'torus:2']", "twice"),
        ("recovery", "points=[3]", "points"),
        ("recovery", "seeds=0", "seeds"),
        ("recovery", "fit.set=['learning.stepz=3']", "learning.steps"),
        ("integrals", "manifolds=['torus:3']", "torus:3"),
        ("integrals", "rows=[3]", "rows"),
        ("small", "manifolds=['torus:3']", "torus:3"),
        ("small", "rows=[20, 500]", "rows"),
        ("power", "manifolds=['sphere:1']", "sphere:1"),
        ("power", "laws=['four']", "four"),
        ("power", "resamples=99", "resamples"),
        ("earth", "sets=['moon']", "moon"),
        ("earth", "sets=[]", "sets"),
        ("earth", "seeds=0", "seeds"),
        ("earth", "fit.set=['learning.rate=0']", "learning.rate"),
    ];
    for (name, change, named) in cases {
        let refused = (entry(name).check)(&config(name, &[change]));
        let message = refused.err().unwrap_or_else(|| panic!("`{change}` passed")).to_string();
        assert!(message.contains(named), "`{change}`: {message}");
    }
}

/// Earthquakes that repeat an earlier one are test rows, as are some others.
#[test]
fn the_earth_is_split_as_a_file_says_and_what_stays_together_goes_with_its_first_row() {
    let earthquakes = Dataset::read(locate("earthquake").unwrap(), &Request::default()).unwrap();
    let (points, rows) = (&earthquakes.points, earthquakes.rows());
    let known = distinct_indices(points, 3);
    let part = |row: usize| match (known.binary_search(&row), row % 10) {
        (Err(_), _) => "test",
        (Ok(_), 9) => "validation",
        (Ok(_), 8) => "test",
        _ => "train",
    };
    let scratch = Scratch::new("splits-of-a-file");
    let write = |lines: usize, header: &str| {
        let lines: Vec<String> = (0..lines).map(|row| format!("x,{}", part(row))).collect();
        std::fs::write(scratch.path("earthquake.csv"), format!("{header}\n{}\n", lines.join("\n"))).unwrap();
    };
    let place = format!("splits='{}'", scratch.path("").display());
    let settings = config("earth", &[FIT, "seeds=1", r#"sets=["earthquake"]"#, &place]);
    write(rows, "other,seed_0");
    let findings = run("earth-file", "earth", &settings, 0);
    let leaked = row(&findings, "earthquake: test rows that repeat a training row").value;
    let at = |row: usize| &points[3 * row..][..3];
    let tests: Vec<usize> = (0..rows).filter(|&row| part(row) == "test").collect();
    let repeats_training = |row: &&usize| known.iter().any(|&first| part(first) == "train" && at(first) == at(**row));
    let expected = 100.0 * tests.iter().filter(repeats_training).count() as f64 / tests.len() as f64;
    assert!(expected > 30.0 && (leaked - expected).abs() < 1e-9, "{leaked} % of test rows leak, expected {expected} %");
    let score = |what: &str| row(&findings, what).value;
    let torn = score("earthquake: NLL of its kernels alone");
    let whole = score("earthquake: NLL of kernels, repeats kept together");
    assert!(whole > torn + 0.3, "{whole} where repeats stay together, {torn} where they are test rows");
    for (lines, header, named) in [(rows - 1, "other,seed_0", "another file"), (rows, "other,seed_1", "seed_0")] {
        write(lines, header);
        let refused = try_run("earth-refused", "earth", &settings, 0).expect_err("it is refused").to_string();
        assert!(refused.contains(named) && refused.contains("earthquake.csv"), "{refused}");
    }
}
