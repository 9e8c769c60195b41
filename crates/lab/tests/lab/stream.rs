//! Streams: scores, evaluations and draws by blocks are those of the whole, also after interruptions.

use minvel::fit::{Evaluation, FitSettings, Model};
use minvel::train::{Context, Observer, Stop};
use minvel::{Error, manifold};
use minvel_lab::fitting;
use minvel_lab::stream::{Broken, Distinct, Drawing, Judging, Scoring};
use minvel_lab::table::{
    Blocks, Column, Coordinates, Dataset, Input, Layout, ROWS, Table, TableOptions, Units, write_table,
};
use minvel_testing::Scratch;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn settings() -> FitSettings {
    let mut config = fitting::defaults().quick().unwrap();
    config.set("objective=none").unwrap();
    fitting::settings(&config).unwrap()
}

fn coordinates() -> Coordinates {
    Coordinates {
        manifold: "sphere:2".into(),
        layouts: vec![Layout::LatLon],
        units: Some(Units::Degrees),
        periods: vec![],
        columns: vec!["lat".into(), "lon".into()],
        full_turn: vec![false; 2],
    }
}

/// Kernels on a few points.
fn model() -> Model {
    let places = |n: usize| (0..n).map(|i| (40.0 * (i as f64).sin(), 90.0 * (i as f64 * 1.7).cos()));
    let (lat, lon): (Vec<f64>, Vec<f64>) = places(12).unzip();
    let table = Table { columns: vec![Column::numbers("lat", lat), Column::numbers("lon", lon)], ..Table::default() };
    let points = coordinates().points(&table).unwrap();
    let (train, validation) = points.split_at(9 * 3);
    let sphere = manifold::parse("sphere:2").unwrap();
    Model::learn(sphere, &settings(), train, validation, &Context::bare()).unwrap().0
}

/// A file of rows, some of which miss a number.
fn rows(path: &Path, count: usize) {
    let lat = (0..count).map(|i| 60.0 * (i as f64 * 0.37).sin()).collect();
    let mut lon = Column::named("lon");
    (0..count).for_each(|i| match i % 1000 {
        7 => lon.push_odd(String::new()),
        k => lon.push_number(k as f64 / 3.0 - 150.0, String::new),
    });
    write_table(path, &[Column::numbers("lat", lat), lon]).unwrap();
}

/// Asks to stop when a stage has come so far.
struct Impatient {
    stop: Stop,
    at: AtomicU64,
}

impl Observer for Impatient {
    fn advance(&self, done: u64, _: &str) {
        if done >= self.at.load(Ordering::Relaxed) {
            self.stop.ask();
        }
    }
}

fn scoring<'a>(model: &'a Model, form: &'a Coordinates, input: &'a Input, out: &'a Path) -> Scoring<'a> {
    Scoring {
        error: false,
        model,
        model_sha256: "model",
        coordinates: form,
        input,
        options: &TableOptions { delimiter: None, header: None, array: None },
        level: false,
        outliers: None,
        out,
        resume: false,
        save_every: Duration::ZERO,
    }
}

fn read(path: &Path) -> Table {
    Table::read(path, &TableOptions::default()).unwrap()
}

#[test]
fn scores_by_blocks_are_those_of_all_rows() {
    let scratch = Scratch::new("stream-score");
    let (model, form) = (model(), coordinates());
    rows(&scratch.path("in.parquet"), 2 * ROWS + 100);
    let input = Input::File(scratch.path("in.parquet"));
    let out = scratch.path("out.npy");
    let scored = Scoring { level: true, ..scoring(&model, &form, &input, &out) }.perform(&Context::bare()).unwrap();
    assert_eq!((scored.rows as usize, scored.missing), (2 * ROWS + 100, 132));
    let (before, after) = (read(input.path()), read(&out));
    let complete: Vec<usize> = (0..before.rows()).filter(|row| before.columns[1].values[*row].is_finite()).collect();
    let pick = |c: usize| complete.iter().map(|row| before.columns[c].values[*row]).collect();
    let table =
        Table { columns: vec![Column::numbers("lat", pick(0)), Column::numbers("lon", pick(1))], ..Table::default() };
    let expected = model.log_density(&form.points(&table).unwrap(), &Context::bare()).unwrap();
    let found: Vec<f64> = complete.iter().map(|row| after.columns[2].values[*row]).collect();
    assert_eq!(found, expected);
    assert!(after.columns.iter().skip(2).all(|c| c.values[7].is_nan() && c.values[1007].is_nan()));
    assert!(complete.iter().all(|row| (0.0..=1.0).contains(&after.columns[4].values[*row])), "levels");
}

/// Stops at every other block, and resumes.
#[test]
fn interruptions_change_no_byte_of_any_format() {
    let scratch = Scratch::new("stream-resume");
    let (model, form) = (model(), coordinates());
    let count = 3 * ROWS + 1234;
    rows(&scratch.path("in.parquet"), count);
    rows(&scratch.path("in.csv"), count);
    rows(&scratch.path("in.csv.gz"), count);
    for from in ["in.parquet", "in.csv", "in.csv.gz"] {
        let input = Input::File(scratch.path(from));
        for to in ["csv", "tsv.gz", "parquet", "npy"] {
            if from == "in.csv.gz" && to != "csv" {
                continue;
            }
            let (whole, parts) =
                (scratch.path(&format!("whole-{from}.{to}")), scratch.path(&format!("parts-{from}.{to}")));
            let uninterrupted = scoring(&model, &form, &input, &whole).perform(&Context::bare()).unwrap();
            let (mut at, mut times) = (1, 0);
            let resumed = loop {
                let stop = Stop::default();
                let watch = Impatient { stop: stop.clone(), at: AtomicU64::new(at) };
                let job = Scoring { resume: true, ..scoring(&model, &form, &input, &parts) };
                match job.perform(&Context::watched(&watch, stop)) {
                    Ok(scored) => break scored,
                    Err(Broken::Work(Error::Interrupted)) => {}
                    Err(why) => panic!("{why:?}"),
                }
                assert!(!parts.exists(), "nothing is there in part");
                (at, times) = (at + ROWS as u64, times + 1);
            };
            assert!(times >= 2, "{from} to {to}: {times} interruptions");
            assert!(resumed.resumed > 0, "{from} to {to}");
            assert_eq!((resumed.rows, resumed.log_density), (uninterrupted.rows, uninterrupted.log_density));
            assert!(std::fs::read(&whole).unwrap() == std::fs::read(&parts).unwrap(), "{from} to {to}");
        }
    }
    let left: Vec<String> = scratch.list().into_iter().filter(|name| name.ends_with(".partial")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The twin: another model, and another file, are not resumed.
#[test]
fn what_was_begun_for_another_purpose_is_refused() {
    let scratch = Scratch::new("stream-purpose");
    let (model, form) = (model(), coordinates());
    rows(&scratch.path("in.csv"), 2 * ROWS);
    let (input, out) = (Input::File(scratch.path("in.csv")), scratch.path("out.csv"));
    let stop = Stop::default();
    let watch = Impatient { stop: stop.clone(), at: AtomicU64::new(1) };
    let begun = scoring(&model, &form, &input, &out).perform(&Context::watched(&watch, stop));
    assert!(matches!(begun, Err(Broken::Work(Error::Interrupted))));
    let job = Scoring { resume: true, model_sha256: "other", ..scoring(&model, &form, &input, &out) };
    let Err(Broken::Input(why)) = job.perform(&Context::bare()) else { panic!("it was resumed") };
    assert!(why.to_string().contains("out.csv") && why.to_string().contains("other model"), "{why}");
    rows(&scratch.path("in.csv"), 2 * ROWS + 1);
    let job = Scoring { resume: true, ..scoring(&model, &form, &input, &out) };
    let Err(Broken::Input(why)) = job.perform(&Context::bare()) else { panic!("it was resumed") };
    assert!(why.to_string().contains("other data"), "{why}");
    assert!(!out.exists());
    // without --resume it starts anew, and leaves nothing behind
    scoring(&model, &form, &input, &out).perform(&Context::bare()).unwrap();
    assert_eq!(scratch.list(), ["in.csv", "out.csv"]);
}

#[test]
fn an_evaluation_by_blocks_is_that_of_all_rows() {
    let scratch = Scratch::new("stream-evaluate");
    let (model, form) = (model(), coordinates());
    let count = ROWS + 500;
    let values = |f: fn(f64) -> f64| (0..count).map(|i| f((i % 40_000) as f64)).collect();
    let columns = [
        Column::numbers("lat", values(|i| 60.0 * (i * 0.37).sin())),
        Column::numbers("lon", values(|i| 150.0 * (i * 0.11).cos())),
    ];
    let path = scratch.path("in.npy");
    write_table(&path, &columns).unwrap();
    let form = Coordinates { columns: vec!["1".into(), "2".into()], ..form };
    let (input, journal) = (Input::File(path.clone()), scratch.path("journal"));
    let options = TableOptions::default();
    let judging = Judging {
        model: &model,
        model_sha256: "model",
        coordinates: &form,
        input: &input,
        options: &options,
        journal: Some(&journal),
        save_every: Duration::ZERO,
    };
    let stop = Stop::default();
    let watch = Impatient { stop: stop.clone(), at: AtomicU64::new(ROWS as u64) };
    assert!(matches!(judging.perform(&Context::watched(&watch, stop)), Err(Broken::Work(Error::Interrupted))));
    assert!(journal.exists());
    let judged = judging.perform(&Context::bare()).unwrap();
    assert!(!journal.exists());
    let data = Dataset::read_as(&path, &form, &options).unwrap();
    let expected = Evaluation::of(&model, &data.points, model.settings().seed, &Context::bare()).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
    assert!(close(judged.evaluation.test_nll.mean, expected.test_nll.mean));
    assert!(close(judged.evaluation.test_nll.std_error, expected.test_nll.std_error));
    assert_eq!(judged.evaluation.baselines.len(), expected.baselines.len());
    for (a, b) in judged.evaluation.baselines.iter().zip(&expected.baselines) {
        assert_eq!(a.name, b.name);
        assert!(close(a.nll.mean, b.nll.mean) && close(a.difference.std_error, b.difference.std_error), "{a:?} {b:?}");
    }
    assert_eq!(judged.evaluation.goodness, expected.goodness, "the same rows are tested");
    assert_eq!(judged.evaluation.coverage, expected.coverage);
    assert!(judged.witness.is_some());
    assert_eq!((judged.rows as usize, judged.distinct.count() as usize), (count, data.distinct_rows()));
    assert!(judged.distinct.is_exact());
}

/// Flags need two passes: they are those of the whole, also after interruptions in the second, and a pipe is refused.
#[test]
fn outliers_by_blocks_are_those_of_all_rows() {
    let scratch = Scratch::new("stream-outliers");
    let (model, form) = (model(), coordinates());
    rows(&scratch.path("in.parquet"), ROWS + 500);
    let input = Input::File(scratch.path("in.parquet"));
    let (out, parts) = (scratch.path("out.parquet"), scratch.path("parts.parquet"));
    let level = 0.9;
    let scoring = |out| Scoring { outliers: Some(level), resume: true, ..scoring(&model, &form, &input, out) };
    let scored = scoring(&out).perform(&Context::bare()).unwrap();
    let after = read(&out);
    assert_eq!(
        after.columns.iter().skip(2).map(|c| c.name.as_str()).collect::<Vec<_>>(),
        ["log_density", "energy", "p_value", "outlier"]
    );
    let reference = model.reference().unwrap();
    let mut counts = reference.counts();
    let complete: Vec<usize> = (0..after.rows()).filter(|row| after.columns[2].values[*row].is_finite()).collect();
    complete.iter().for_each(|row| counts.add(after.columns[2].values[*row]));
    let below = counts.flagged_below(level);
    for &row in &complete {
        let log = after.columns[2].values[row];
        assert_eq!(after.columns[4].values[row], reference.p_value(log));
        assert_eq!(after.columns[5].values[row], f64::from(u8::from(reference.rank(log) < below)));
    }
    let flagged = complete.iter().filter(|row| after.columns[5].values[**row] == 1.0).count();
    assert!(scored.flagged == Some(flagged as u64) && flagged > 0 && flagged < complete.len(), "{flagged} flagged");
    assert!(after.columns[4].values[7].is_nan() && after.columns[5].values[7].is_nan());
    let stop = Stop::default();
    let watch = Impatient { stop: stop.clone(), at: AtomicU64::new(ROWS as u64) };
    assert!(matches!(scoring(&parts).perform(&Context::watched(&watch, stop)), Err(Broken::Work(Error::Interrupted))));
    scoring(&parts).perform(&Context::bare()).unwrap();
    assert!(std::fs::read(&out).unwrap() == std::fs::read(&parts).unwrap());
    let pipe = Scoring { input: &Input::Standard, ..scoring(&out) };
    let Err(Broken::Input(why)) = pipe.perform(&Context::bare()) else { panic!("a pipe cannot be read twice") };
    assert!(why.to_string().contains("read twice"), "{why}");
}

#[test]
fn many_points_are_counted_to_a_part_in_a_hundred() {
    let mut distinct = Distinct::default();
    let count = 3 * Distinct::EXACT as u64;
    for _ in 0..2 {
        (0..count).for_each(|i| distinct.add(&[i as f64, 0.0]));
    }
    assert!(!distinct.is_exact());
    // of at least EXACT/2 hashes that are kept, the relative error is below √(2/EXACT)
    let error = (distinct.count() as f64 / count as f64 - 1.0).abs();
    println!("{} of {count}: {error}", distinct.count());
    assert!(error < 4.0 * f64::sqrt(2.0 / Distinct::EXACT as f64));
    let mut swapped = Distinct::default();
    [[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]].iter().for_each(|point| swapped.add(point));
    assert_eq!(swapped.count(), 2);
}

#[test]
fn a_draw_of_blocks_begins_like_a_shorter_one_and_goes_on_after_interruptions() {
    let scratch = Scratch::new("stream-sample");
    let (model, form) = (model(), coordinates());
    let (long, short, parts) = (scratch.path("long.parquet"), scratch.path("short.csv"), scratch.path("parts.parquet"));
    let drawing = |number: usize, out: &Path, context: &Context| {
        let (save_every, resume) = (Duration::ZERO, true);
        let (model, form) = (&model, &form);
        Drawing { model, model_sha256: "m", coordinates: form, number, seed: 5, out, resume, save_every }
            .perform(context)
    };
    let number = 2 * ROWS + 10;
    drawing(number, &long, &Context::bare()).unwrap();
    drawing(ROWS + 1, &short, &Context::bare()).unwrap();
    let (all, some) = (read(&long), read(&short));
    assert_eq!((all.rows(), some.rows()), (number, ROWS + 1));
    assert!(some.columns[0].values == all.columns[0].values[..=ROWS], "the last block is cut, not drawn otherwise");
    let first = form.table(&model.sample(ROWS, 5, &Context::bare()).unwrap().points).unwrap();
    assert!(first[1].values == all.columns[1].values[..ROWS], "a draw of one block is that of the model");
    assert!(all.columns[0].values[..10] != all.columns[0].values[ROWS..][..10]);
    let stop = Stop::default();
    let watch = Impatient { stop: stop.clone(), at: AtomicU64::new(1) };
    let begun = drawing(number, &parts, &Context::watched(&watch, stop));
    assert!(matches!(begun, Err(Broken::Work(Error::Interrupted))));
    drawing(number, &parts, &Context::bare()).unwrap();
    assert!(std::fs::read(&long).unwrap() == std::fs::read(&parts).unwrap());
    assert_eq!(Blocks::open(&parts, &TableOptions::default()).unwrap().head().columns[1].name, "lon");
}
