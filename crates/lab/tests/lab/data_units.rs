//! Units, periods and axes: what is guarded, what is asked, and that columns are found again.

use minvel::Error;
use minvel_lab::table::{
    Column, Coordinates, Dataset, Layout, Missing, PointBlocks, Request, Table, TableOptions, Units, write_table,
};
use minvel_testing::Scratch;
use std::f64::consts::{PI, TAU};
use std::path::PathBuf;

fn table(columns: Vec<Column>) -> Table {
    Table { path: PathBuf::from("memory.csv"), columns, whole: true, decimal: '.', ..Table::default() }
}

/// 60 rows by a rule.
fn column(name: &str, value: impl Fn(f64) -> f64) -> Column {
    Column::numbers(name, (0..60).map(|i| value(i as f64)).collect())
}

fn on(manifold: &str) -> Request {
    Request { manifold: Some(manifold.into()), ..Request::default() }
}

fn in_units(manifold: &str, units: Units) -> Request {
    Request { units: Some(units), ..on(manifold) }
}

#[track_caller]
fn understood(columns: Vec<Column>, request: &Request, expected: &str) -> Dataset {
    let data = Dataset::of(table(columns), request).unwrap();
    assert_eq!(data.coordinates.to_string(), expected, "{:?}", data.guesses);
    data
}

/// The options that a question offers.
#[track_caller]
fn asked(columns: Vec<Column>, request: &Request) -> Vec<String> {
    match Dataset::of(table(columns), request) {
        Err(Error::Ambiguous { choices, .. }) => choices.iter().map(|c| c.to_string()).collect(),
        Err(other) => panic!("not a question: {other}"),
        Ok(data) => panic!("read as {}", data.coordinates),
    }
}

#[track_caller]
fn refused(columns: Vec<Column>, request: &Request, words: &[&str]) {
    let error = Dataset::of(table(columns), request).expect_err("this must be refused");
    assert!(error.is_input());
    let message = error.to_string();
    words.iter().for_each(|word| assert!(message.contains(word), "`{word}` is not said: {message}"));
}

/// Radians from 0 to 2π, said to be degrees, once passed: only ±π was guarded.
#[test]
fn radians_of_a_full_turn_said_to_be_degrees_are_a_question() {
    let radians = || vec![column("a", |i| TAU * (i + 0.5) / 60.0)];
    for manifold in ["sphere:1", "torus:1"] {
        assert_eq!(asked(radians(), &in_units(manifold, Units::Degrees)), ["--units radians", "--trust"]);
        let trusted = Request { trust: true, ..in_units(manifold, Units::Degrees) };
        understood(radians(), &trusted, &format!("{manifold} from a as angles in degrees"));
    }
    // Places within 6° of the origin are degrees: π/2 is the largest latitude in radians.
    let places = vec![column("lat", |i| 0.1 * i - 3.0), column("lon", |i| 6.0 - 0.1 * i)];
    understood(places, &in_units("sphere:2", Units::Degrees), "sphere:2 from lat, lon as latlon in degrees");
    let places = || vec![column("lat", |i| 0.025 * i - 0.7), column("lon", |i| TAU * i / 60.0)];
    asked(places(), &in_units("sphere:2", Units::Degrees));
}

#[test]
fn other_files_are_doubted_in_the_same_way() {
    let scratch = Scratch::new("units-doubt");
    let form = |units: Option<Units>, periods: Vec<Option<f64>>| Coordinates {
        manifold: "sphere:1".into(),
        layouts: vec![Layout::Angles],
        units,
        periods,
        columns: vec!["a".into()],
        full_turn: vec![true],
    };
    let doubts = |turn: f64, rows: usize, form: &Coordinates| {
        let path = scratch.path("further.csv");
        let values = (0..rows).map(|i| turn * (i as f64 + 0.5) / rows as f64).collect();
        write_table(&path, &[Column::numbers("a", values)]).unwrap();
        Dataset::read_as(&path, form, &TableOptions::default()).unwrap().guesses
    };
    let degrees = form(Some(Units::Degrees), vec![]);
    assert!(doubts(TAU, 60, &degrees)[0].contains("radians"), "radians in [0, 2π)");
    assert!(doubts(360.0, 60, &degrees).is_empty() && doubts(TAU, 5, &degrees).is_empty());
    let hours = form(Some(Units::Hours), vec![]);
    assert!(doubts(24.0, 60, &hours).is_empty() && doubts(360.0, 60, &hours)[0].contains("beyond 24"));
    let week = form(None, vec![Some(7.0)]);
    assert!(doubts(7.0, 60, &week).is_empty() && doubts(24.0, 60, &week)[0].contains("period 7"));
}

/// A clock was once guessed to be in degrees, as it "reaches 23.55, beyond 2π".
#[test]
fn clocks_are_a_question_and_hours_and_periods_are_understood() {
    let clock = |name: &str| vec![column(name, |i| 0.4 * i + 0.01)];
    assert_eq!(asked(clock("t"), &on("sphere:1")), ["--units hours", "--units degrees", "--period P"]);
    let data = understood(clock("t"), &in_units("sphere:1", Units::Hours), "sphere:1 from t as angles in hours");
    // 6.01 h is a quarter of a day.
    let (x, y) = (data.points[30], data.points[31]);
    assert!((y.atan2(x) - TAU * 6.01 / 24.0).abs() < 1e-12, "{x}, {y}");
    let back = data.coordinates.table(&data.points).unwrap();
    for (a, b) in back[0].values.iter().zip(&clock("t")[0].values) {
        assert!((a - b).abs() < 1e-12, "{a}, not {b}");
    }
    understood(clock("time (hours)"), &on("torus:1"), "torus:1 from time (hours) as angles in hours");
    let period = |p: &[f64], manifold: &str| Request { periods: Some(p.to_vec()), ..on(manifold) };
    let same = understood(clock("t"), &period(&[24.0], "sphere:1"), "sphere:1 from t as angles with period 24");
    assert_eq!(same.points, data.points);
    let two = || vec![column("hour", |i| 0.4 * i), column("wind", |i| 6.0 * i)];
    let data =
        understood(two(), &period(&[24.0, 360.0], "torus:2"), "torus:2 from hour, wind as angles with periods 24, 360");
    let back = data.coordinates.table(&data.points).unwrap();
    for (own, given) in back.iter().zip(two()) {
        assert!(own.values.iter().zip(&given.values).all(|(a, b)| (a - b).abs() < 1e-11), "{} changed", own.name);
    }
    // A place and an hour: units for the one, a period for the other.
    let both = || vec![column("lat", |i| i), column("lon", |i| 6.0 * i), column("hour", |i| 0.4 * i)];
    let product = period(&[24.0], "product(sphere:2,torus:1)");
    let read = "product(sphere:2,torus:1) from lat, lon, hour as latlon,angles in degrees with period 24";
    understood(both(), &Request { units: Some(Units::Degrees), ..product.clone() }, read);
    understood(both(), &product, read);
    refused(both(), &on("product(sphere:2,torus:1)"), &["not in hours", "--units degrees --period 24"]);
    refused(two(), &period(&[24.0], "torus:2"), &["row 6, column 2 (`wind`)", "30", "period 24"]);
    refused(two(), &period(&[24.0, 360.0, 1.0], "torus:2"), &["3 periods were given for 2 angles"]);
    refused(two(), &period(&[-1.0], "torus:2"), &["positive"]);
    refused(two(), &in_units("torus:2", Units::Hours), &["beyond ±24", "not hours"]);
    refused(vec![column("x", |i| i)], &period(&[24.0], "euclidean:1"), &["there are none"]);
    let whole = vec![column("weekday", |i| i % 7.0)];
    assert!(asked(whole, &on("sphere:1")).contains(&"--period P".to_string()), "whole numbers up to 6 are no radians");
    let days = vec![column("day", |i| 6.2 * i)];
    assert_eq!(asked(days, &on("sphere:1")), ["--units degrees", "--period P"], "366 is beyond a turn");
}

#[test]
fn angles_that_fill_half_a_turn_may_be_axes() {
    for (low, units) in [(0.0, Units::Degrees), (-90.0, Units::Degrees)] {
        let half = || vec![column("strike", move |i| low + 3.0 * i + 1.0)];
        let request = in_units("sphere:1", units);
        assert_eq!(asked(half(), &request), ["--axial", "--axial=false"]);
        let directions = Request { axial: Some(false), ..request.clone() };
        understood(half(), &directions, "sphere:1 from strike as angles in degrees");
        let axes = Request { axial: Some(true), ..request };
        let data = understood(half(), &axes, "projective:1 from strike as angles in degrees");
        let back = data.coordinates.table(&data.points).unwrap();
        assert!(back[0].values.iter().zip(&half()[0].values).all(|(a, b)| (a - b).abs() < 1e-12));
        // Half a turn further is the same axis.
        let turned = vec![column("strike", move |i| low + 3.0 * i + 181.0)];
        let other = data.coordinates.points(&table(turned)).unwrap();
        assert!(data.points.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-12));
    }
    let quarter = vec![column("a", |i| 1.5 * i)];
    understood(quarter, &in_units("sphere:1", Units::Degrees), "sphere:1 from a as angles in degrees");
}

#[test]
fn lines_in_space_are_read_by_either_end() {
    let trend = |i: f64| 6.0 * i;
    let lines = || vec![column("trend", trend), column("plunge", |i| 1.4 * i + 2.0)];
    assert_eq!(
        asked(lines(), &Request { units: Some(Units::Degrees), ..Request::default() }),
        ["--axial", "--axial=false"]
    );
    let axial = |manifold: Option<&str>, units: Option<Units>| Request {
        axial: Some(true),
        units,
        manifold: manifold.map(String::from),
        ..Request::default()
    };
    let request = axial(None, Some(Units::Degrees));
    let data = understood(lines(), &request, "projective:2 from trend, plunge as lonlat in degrees");
    // The other end of each line points upwards, the other way.
    let others = vec![column("trend", |i| (trend(i) + 180.0) % 360.0), column("plunge", |i| -1.4 * i - 2.0)];
    let up = data.coordinates.points(&table(others)).unwrap();
    assert!(data.points.iter().zip(&up).all(|(a, b)| (a - b).abs() < 1e-12));
    assert!(data.points.chunks(3).all(|x| x[2] > 0.0), "one end: the last coordinate is positive");
    let vectors = |sign: f64| {
        let part = |k: usize| column("xyz".get(k..=k).unwrap(), |i| sign * data.points[3 * i as usize + k]);
        vec![part(0), part(1), part(2)]
    };
    let one = understood(vectors(1.0), &axial(None, None), "projective:2 from x, y, z as xyz");
    assert_eq!(one.points, understood(vectors(-1.0), &axial(None, None), "projective:2 from x, y, z as xyz").points);
    refused(vec![column("x", |i| i)], &axial(Some("euclidean:1"), None), &["no directions"]);
    let torus = vec![column("phi", |i| 3.0 * i), column("psi", |i| 2.0 * i + PI)];
    understood(
        torus,
        &axial(Some("torus:2"), Some(Units::Degrees)),
        "product(projective:1,projective:1) from phi, psi as angles,angles in degrees",
    );
}

#[test]
fn columns_that_are_not_used_are_named_and_new_names_are_taken() {
    let columns = || vec![column("id", |i| i), column("lat", |i| i), column("lon", |i| 6.0 * i), column("mag", |i| i)];
    let data = Dataset::of(table(columns()), &Request::default()).unwrap();
    assert_eq!(data.unused, ["id", "mag"]);
    let many: Vec<Column> = columns().into_iter().chain((0..20).map(|k| column(&format!("c{k}"), |i| i))).collect();
    let data = Dataset::of(table(many), &Request::default()).unwrap();
    let text = data.provenance().unused_columns();
    assert!(text.starts_with("id, mag, c0") && text.ends_with("c9 and 10 others"), "{text}");

    let bare = vec![column("", |i| i), column("", |i| 6.0 * i), column("", |i| 5.0 * i)];
    let names = vec![("phi".to_string(), "2".to_string()), ("psi".to_string(), "3".to_string())];
    let chosen = Some(vec!["phi".to_string(), "psi".to_string()]);
    let request = Request { names, columns: chosen, ..in_units("torus:2", Units::Degrees) };
    let data = understood(bare, &request, "torus:2 from phi, psi as angles in degrees");
    assert_eq!(data.unused, ["1"]);
}

/// Samples of a model of columns 3 and 4 were once not found again: "there is no column `3`".
#[test]
fn columns_by_number_are_found_in_samples() {
    let scratch = Scratch::new("units-numbers");
    let bare = vec![column("", |i| i), column("", |i| i * i), column("", |i| i - 30.0), column("", |i| 6.0 * i)];
    let chosen = Some(vec!["3".to_string(), "4".to_string()]);
    let request =
        Request { columns: chosen, layout: Some(vec![Layout::LatLon]), ..in_units("sphere:2", Units::Degrees) };
    let data = understood(bare, &request, "sphere:2 from columns 3, 4 as latlon in degrees");
    for name in ["drawn.csv", "drawn.npy"] {
        let path = scratch.path(name);
        write_table(&path, &data.coordinates.table(&data.points).unwrap()).unwrap();
        let again = Dataset::read_as(&path, &data.coordinates, &TableOptions::default()).unwrap();
        assert!(again.points.iter().zip(&data.points).all(|(a, b)| (a - b).abs() < 1e-12), "{name}");
    }
}

#[test]
fn rows_that_miss_a_number_are_left_out_where_that_is_wanted() {
    let scratch = Scratch::new("units-missing");
    let path = scratch.path("rows.csv");
    let form = Coordinates {
        manifold: "euclidean:1".into(),
        layouts: vec![Layout::Vector],
        units: None,
        periods: vec![],
        columns: vec!["x".into()],
        full_turn: vec![false],
    };
    std::fs::write(&path, "id,x\na,1\nb,\nc,NA\nd,2.5\ne,nan\n").unwrap();
    let open = || PointBlocks::open(&path, &form, &TableOptions::default(), Missing::Skipped).unwrap();
    let mut blocks = open();
    let block = blocks.next_block().unwrap().unwrap();
    assert_eq!((block.points.as_slice(), block.seen.rows, block.seen.points), (&[1.0, 2.5][..], 5, 2));
    let column = block.column("score", vec![-1.0, -2.0]);
    assert_eq!((0..5).map(|row| column.text(row)).collect::<Vec<_>>(), ["-1", "", "", "-2", ""]);
    assert!(blocks.next_block().unwrap().is_none() && blocks.doubts().unwrap().is_empty());
    assert!(Dataset::read_as(&path, &form, &TableOptions::default()).unwrap_err().to_string().contains("line 3"));
    // Words are not missing numbers.
    std::fs::write(&path, "id,x\na,1\nb,east\n").unwrap();
    let error = open().next_block().map(drop).unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("`east` is not a number"), "{error}");
    std::fs::write(&path, "id,x\n1,\n2,NA\n").unwrap();
    let mut blocks = open();
    while blocks.next_block().unwrap().is_some() {}
    assert!(blocks.doubts().unwrap_err().to_string().contains("all 2 rows have missing values"));
}
