//! From tables to points and back: layouts, units, guesses, refusals, splits.

use minvel::fit::{Split, distinct_rows, leaked_share};
use minvel_lab::table::{
    Column, Coordinates, Dataset, LEAST_ROWS, Layout, Request, Table, TableOptions, Units, write_table,
};
use minvel_testing::Scratch;
use minvel_testing::within_ulps;
use proptest::prelude::*;
use std::path::PathBuf;

/// A table in memory.
fn table(columns: Vec<Column>) -> Table {
    Table { path: PathBuf::from("memory.csv"), columns, whole: true, decimal: '.', ..Table::default() }
}

fn column(name: &str, value: impl Fn(f64) -> f64) -> Column {
    Column::numbers(name, (0..50).map(|i| value(i as f64)).collect())
}

fn on(manifold: &str) -> Request {
    Request { manifold: Some(manifold.into()), ..Request::default() }
}

fn read(columns: Vec<Column>, request: &Request) -> Result<Dataset, String> {
    Dataset::of(table(columns), request).map_err(|error| {
        assert!(error.is_input(), "{error}");
        error.to_string()
    })
}

#[track_caller]
fn refused(columns: Vec<Column>, request: &Request, expected: &[&str]) {
    let message = read(columns, request).expect_err("this must be refused");
    expected.iter().for_each(|part| assert!(message.contains(part), "`{part}` is not said: {message}"));
}

#[track_caller]
fn understood(columns: Vec<Column>, request: &Request, expected: &str) -> Dataset {
    let data = read(columns, request).unwrap();
    assert_eq!(data.coordinates.to_string(), expected, "{:?}", data.guesses);
    data
}

#[test]
fn names_that_several_columns_have_are_refused_with_their_numbers() {
    let columns = || vec![column("lat", up), column("lon", around), column("Lat", around)];
    let asked = |name: &str| Request { columns: Some(vec![name.into(), "lon".into()]), ..on("sphere:2") };
    understood(columns(), &asked("lat"), "sphere:2 from lat, lon as latlon in degrees");
    refused(columns(), &asked("LAT"), &["columns 1 and 3 are called `LAT`", "number"]);
    understood(columns(), &asked("1"), "sphere:2 from lat, lon as latlon in degrees");
}

#[test]
fn files_without_numbers_are_refused_with_what_stands_there() {
    let words = |name: &str| {
        let mut column = Column::named(name);
        (0..50).for_each(|_| column.push_text("40.5N"));
        column
    };
    for request in [Request::default(), on("sphere:2")] {
        refused(
            vec![words("lat"), words("lon")],
            &request,
            &["no column holds numbers", "column 1 (`lat`)", "`40.5N`"],
        );
    }
}

/// A missing number once hid that the others are unit vectors.
#[test]
fn rows_without_a_number_are_refused_by_their_place_and_counted() {
    let angle = |i: f64| around(i).to_radians();
    let mut columns = vec![column("x", |i| angle(i).cos() * 0.6), column("y", |i| angle(i).sin() * 0.6)];
    columns.push(column("z", |i| if i % 2.0 == 0.0 { 0.8 } else { -0.8 }));
    understood(columns.clone(), &Request::default(), "sphere:2 from x, y, z as xyz");
    for row in [7, 9] {
        columns[0].values[row] = f64::NAN;
    }
    columns[0] = Column::numbers("x", columns[0].values.clone());
    refused(columns, &Request::default(), &["row 8, column 1 (`x`)", "not a finite number", "another such row"]);
}

#[test]
fn angles_that_may_be_in_another_unit_than_the_models_are_doubted() {
    let scratch = Scratch::new("doubt");
    let form = understood(
        vec![column("lat", up), column("lon", around)],
        &Request::default(),
        "sphere:2 from lat, lon as latlon in degrees",
    )
    .coordinates;
    let doubts = |rows: usize, scale: f64, form: &Coordinates| {
        let path = scratch.path("further.csv");
        let column =
            |name, value: fn(f64) -> f64| Column::numbers(name, (0..rows).map(|i| scale * value(i as f64)).collect());
        write_table(&path, &[column("lat", up), column("lon", around)]).unwrap();
        Dataset::read_as(&path, form, &TableOptions::default()).unwrap().guesses
    };
    assert_eq!(doubts(50, 1.0, &form), [""; 0]);
    let radians = doubts(50, 1f64.to_radians(), &form);
    assert!(
        radians.len() == 1 && radians[0].contains("degrees") && radians[0].contains("column 2 (`lon`)"),
        "{radians:?}"
    );
    assert_eq!(doubts(5, 1f64.to_radians(), &form), [""; 0], "a few places near the origin are no wonder");
    let torus =
        Coordinates { manifold: "torus:2".into(), layouts: vec![Layout::Angles], units: Some(Units::Radians), ..form };
    assert!(doubts(50, 1.0, &torus)[0].contains("beyond 2π"));
    assert_eq!(doubts(50, 1f64.to_radians(), &torus), [""; 0]);
}

/// Angles that go around once in 50 rows, in degrees from −180.
fn around(i: f64) -> f64 {
    7.2 * i - 180.0
}

fn up(i: f64) -> f64 {
    1.5 * i - 40.0
}

#[test]
fn names_tell_latitude_and_longitude_in_any_order_and_spelling() {
    for (lat, lon) in
        [("lat", "lon"), ("LATITUDE", "LONGITUDE"), ("Latitude (deg)", "Longitude [deg]"), ("lat", "long")]
    {
        let first = vec![column("id", |i| i), column(lat, up), column(lon, around)];
        let data = read(first, &Request::default()).unwrap();
        assert_eq!(
            (data.coordinates.manifold.as_str(), &data.coordinates.layouts[..]),
            ("sphere:2", &[Layout::LatLon][..])
        );
        let second = vec![column(lon, around), column(lat, up)];
        assert_eq!(read(second, &on("sphere:2")).unwrap().coordinates.layouts, [Layout::LonLat]);
    }
    let data = read(vec![column("lat", up), column("lon", around)], &on("sphere:2")).unwrap();
    let (sin, cos) = (-40f64).to_radians().sin_cos();
    let expected = [-cos, 0.0, sin];
    assert!(data.points[..3].iter().zip(expected).all(|(x, e)| within_ulps(*x, e, 2.0)), "{:?}", &data.points[..3]);
}

#[test]
fn ranges_tell_latitude_where_only_one_column_can_be_it() {
    let bare = |a: fn(f64) -> f64, b: fn(f64) -> f64| vec![column("", a), column("", b)];
    let data = understood(bare(up, around), &on("sphere:2"), "sphere:2 from columns 1, 2 as latlon in degrees");
    assert!(data.guesses.iter().any(|g| g.contains("degrees")) && data.guesses.iter().any(|g| g.contains("latlon")));
    understood(bare(around, up), &on("sphere:2"), "sphere:2 from columns 1, 2 as lonlat in degrees");
    let radians = |i: f64| around(i).to_radians();
    understood(
        bare(|i| up(i).to_radians(), radians),
        &on("sphere:2"),
        "sphere:2 from columns 1, 2 as latlon in radians",
    );
    refused(bare(up, up), &on("sphere:2"), &["memory.csv", "either column 1 or column 2", "latlon or lonlat"]);
    refused(bare(around, around), &on("sphere:2"), &["neither column can be the latitude", "row 1, column 1 is -180"]);
    let given = Request { layout: Some(vec![Layout::LonLat]), ..on("sphere:2") };
    refused(bare(up, around), &given, &["row 1, column 2: the latitude -180 is beyond ±90 degrees", "layout latlon"]);
    let far = Request { layout: Some(vec![Layout::LatLon]), ..on("sphere:2") };
    refused(bare(up, |i| 10.0 * i), &far, &["row 38, column 2: the longitude 370 is beyond ±360 degrees"]);
    understood(bare(up, up), &given, "sphere:2 from columns 1, 2 as lonlat in degrees");
}

#[test]
fn units_are_guessed_or_asked_for_and_checked() {
    let torus = |f: fn(f64) -> f64| vec![column("a", f), column("b", |i| f((7.0 * i) % 50.0))];
    understood(torus(around), &on("torus:2"), "torus:2 from a, b as angles in degrees");
    understood(torus(|i| 0.125 * i), &on("torus:2"), "torus:2 from a, b as angles in radians");
    refused(torus(|i| 0.05 * i), &on("torus:2"), &["degrees or radians", "give the units"]);
    let claimed = |units| Request { units: Some(units), ..on("torus:2") };
    understood(torus(|i| 0.05 * i), &claimed(Units::Radians), "torus:2 from a, b as angles in radians");
    refused(torus(|i| 0.05 * i), &claimed(Units::Degrees), &["within ±2π", "look like radians", "trust the units"]);
    let trusted = Request { trust: true, ..claimed(Units::Degrees) };
    understood(torus(|i| 0.05 * i), &trusted, "torus:2 from a, b as angles in degrees");
    refused(
        torus(around),
        &claimed(Units::Radians),
        &["row 1, column 1 (`a`): the angle -180 is beyond ±2π", "degrees"],
    );
    let named = vec![column("theta_rad", |i| 0.05 * i)];
    let data = understood(named, &on("torus:1"), "torus:1 from theta_rad as angles in radians");
    assert!(data.guesses.iter().any(|g| g.contains("name")), "{:?}", data.guesses);
}

#[test]
fn points_off_the_manifold_are_refused_with_their_row_and_length() {
    let circle = |scale: f64| {
        let x = move |i: f64| (0.1 * i).cos() * if i == 7.0 { scale } else { 1.0 };
        vec![column("", x), column("", |i| (0.1 * i).sin())]
    };
    understood(circle(1.0), &on("sphere:1"), "sphere:1 from columns 1, 2 as xyz");
    refused(circle(1.1), &on("sphere:1"), &["row 8", "length 1.0", "not 1"]);
    let close = understood(circle(1.0005), &on("sphere:1"), "sphere:1 from columns 1, 2 as xyz");
    assert!(close.guesses.iter().any(|g| g.contains("projected onto it")), "{:?}", close.guesses);
    assert!(within_ulps(close.points[14].hypot(close.points[15]), 1.0, 2.0));
    let ball = vec![column("", |i| 0.025 * i), column("", |i| 0.01 * (i % 3.0))];
    refused(ball, &on("hyperbolic:2"), &["row 41", "length 1.0"]);
    let sheet = |i: f64| (1.0 + i * i).sqrt();
    understood(
        vec![column("", sheet), column("", |i| i)],
        &on("hyperbolic:1"),
        "hyperbolic:1 from columns 1, 2 as hyperboloid",
    );
    refused(vec![column("", |i| i), column("", sheet)], &on("hyperbolic:1"), &["row 1", "hyperboloid", "X0"]);
    let quaternion = vec![
        column("qw", |i| (0.1 * i).cos()),
        column("qx", |i| 2.0 * (0.1 * i).sin()),
        column("qy", up),
        column("qz", up),
    ];
    refused(quaternion, &on("so3"), &["row 1", "the quaternion has length"]);
    let mirror: Vec<Column> =
        (0..9).map(|k| column("", move |i| [(0.1 * i).cos(), (0.1 * i).sin(), 0.001 * i][k % 3])).collect();
    refused(mirror, &on("so3"), &["row 1", "not a rotation"]);
}

#[test]
fn what_no_density_can_be_fitted_to_is_refused() {
    let flat = vec![column("x", |i| i), column("y", |_| 3.5)];
    refused(flat, &on("euclidean:2"), &["column 2 (`y`) is 3.5 in every row", "lower dimension"]);
    let few = vec![Column::numbers("x", (0..LEAST_ROWS - 1).map(|i| i as f64).collect())];
    refused(few, &on("euclidean:1"), &["2 rows", "at least 3"]);
    let three = || vec![column("a", |i| i), column("b", up), column("c", around)];
    refused(
        three(),
        &on("euclidean:2"),
        &["takes 2 (vector) columns", "3 numeric columns (a, b, c)", "choose the columns"],
    );
    refused(three(), &on("sphere:5"), &["takes 6 (xyz) columns"]);
    refused(three(), &Request::default(), &["give the manifold", "euclidean:3", "a, b, c"]);
    let chosen =
        |names: &[&str]| Request { columns: Some(names.iter().map(|n| n.to_string()).collect()), ..on("euclidean:2") };
    understood(three(), &chosen(&["c", "1"]), "euclidean:2 from c, a as vector");
    refused(three(), &chosen(&["c", "d"]), &["no column `d`", "a, b, c"]);
    refused(three(), &chosen(&["c", "4"]), &["no column `4`"]);
    refused(three(), &chosen(&["c", "3"]), &["column 3 (`c`) is chosen twice"]);
    refused(three(), &chosen(&["c"]), &["takes 2 (vector) columns, but 1 columns were chosen (c)"]);
    let wrong = Request { layout: Some(vec![Layout::LatLon]), ..chosen(&["a", "b"]) };
    let message = read(three(), &wrong).unwrap_err();
    assert!(message.contains("latlon is not a layout of euclidean:2: choose vector"), "{message}");
    let message = read(three(), &on("klein:2")).unwrap_err();
    assert!(message.contains("unknown manifold `klein:2`"), "{message}");
    let mut words = Column::named("word");
    (0..50).for_each(|i| words.push_text(&format!("w{i}")));
    let with_words = || vec![words.clone(), column("x", |i| i), column("y", up)];
    understood(with_words(), &on("euclidean:2"), "euclidean:2 from x, y as vector");
    refused(with_words(), &chosen(&["word", "x"]), &["row 1, column 1 (`word`): `w0` is not a number"]);
}

#[test]
fn quaternions_matrices_and_products_are_understood() {
    let q = |name: &str, k: usize| {
        let part = move |i: f64| {
            let v = [0.3 + (0.2 * i).cos(), (0.2 * i).sin(), 0.1 * (i % 7.0), 0.4 + 0.01 * i];
            v[k] / v.iter().map(|x| x * x).sum::<f64>().sqrt()
        };
        column(name, part)
    };
    let named = vec![q("qx", 1), q("qy", 2), q("qz", 3), q("qw", 0)];
    let data = understood(named, &Request::default(), "so3 from qx, qy, qz, qw as quaternion-xyzw");
    understood(vec![q("w", 0), q("x", 1), q("y", 2), q("z", 3)], &on("so3"), "so3 from w, x, y, z as quaternion-wxyz");
    refused(
        vec![q("", 0), q("", 1), q("", 2), q("", 3)],
        &on("so3"),
        &["--layout quaternion-wxyz", "--layout quaternion-xyzw"],
    );
    let matrices = Coordinates {
        layouts: vec![Layout::RotationMatrix],
        columns: (1..10).map(|k| k.to_string()).collect(),
        full_turn: vec![false; 9],
        ..data.coordinates.clone()
    };
    let columns = matrices.table(&data.points).unwrap();
    assert_eq!(columns[5].name, "r23");
    let back = read(columns, &on("so3")).unwrap();
    assert!(back.points.iter().zip(&data.points).all(|(a, b)| within_ulps(*a, *b, 16.0)));

    let product = || vec![column("", up), column("", around), column("", |i| 7.0 * i)];
    let request = on("product(sphere:2, torus:1)");
    let data =
        understood(product(), &request, "product(sphere:2,torus:1) from columns 1, 2, 3 as latlon,angles in degrees");
    assert_eq!(data.manifold.ambient(), 4);
    let names: Vec<String> = data.coordinates.table(&data.points).unwrap().into_iter().map(|c| c.name).collect();
    assert_eq!(names, ["lat_1", "lon_1", "angle_2"]);
    let ambiguous = on("product(sphere:1, sphere:1)");
    refused(product(), &ambiguous, &["several ways", "layout of each factor"]);
    let given = Request { layout: Some(vec![Layout::Xyz, Layout::Angles]), ..ambiguous };
    refused(product(), &given, &["row 1", "length"]);
}

#[test]
fn circles_take_one_angle_or_two_coordinates() {
    let data =
        understood(vec![column("direction", around)], &on("sphere:1"), "sphere:1 from direction as angles in degrees");
    assert!(within_ulps(data.points[0], -1.0, 1.0) && data.points.len() == 100);
    understood(
        vec![column("phi", around), column("psi", up)],
        &Request::default(),
        "torus:2 from phi, psi as angles in degrees",
    );
    let unit = vec![column("x", |i| i.cos()), column("y", |i| i.sin() * 0.6), column("z", |i| i.sin() * 0.8)];
    understood(unit, &Request::default(), "sphere:2 from x, y, z as xyz");
}

#[test]
fn angles_go_back_in_the_range_they_came_in() {
    let scratch = Scratch::new("range");
    for (low, step) in [(-180.0, 7.2), (0.0, 7.2), (-90.0, 3.0)] {
        let columns = vec![column("lat", up), column("lon", move |i| low + step * i)];
        let data = read(columns.clone(), &on("sphere:2")).unwrap();
        let back = data.coordinates.table(&data.points).unwrap();
        for (a, b) in columns.iter().zip(&back) {
            assert_eq!(a.name, b.name);
            assert!(a.values.iter().zip(&b.values).all(|(a, b)| (a - b).abs() < 1e-12 * 360.0), "{a:?} {b:?}");
        }
        // another file of the same form needs no guessing, and may be short
        let path = scratch.path("short.csv");
        let short: Vec<Column> = back.iter().map(|c| Column::numbers(c.name.clone(), c.values[..3].to_vec())).collect();
        write_table(&path, &short).unwrap();
        let coordinates: Coordinates =
            serde_json::from_str(&serde_json::to_string(&data.coordinates).unwrap()).unwrap();
        assert_eq!(coordinates, data.coordinates);
        let again = Dataset::read_as(&path, &coordinates, &TableOptions::default()).unwrap();
        assert!(again.points.iter().zip(&data.points).all(|(a, b)| within_ulps(*a, *b, 4.0)));
    }
}

#[test]
fn a_split_is_a_division_that_only_the_seed_decides() {
    for rows in [0, 1, 7, 30, 31, 827, 12_809] {
        let split = Split::new(rows, 3);
        let mut all = [split.train.clone(), split.validation.clone(), split.test.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..rows).collect::<Vec<_>>());
        assert_eq!((split.test.len(), split.validation.len()), ((rows + 5) / 10, (rows + 5) / 10));
        assert_eq!(split, Split::new(rows, 3));
    }
    assert_ne!(Split::new(100, 1).test, Split::new(100, 2).test);
    // each row is a test row in a tenth of the splits: 400 splits of 50 rows, the rows' counts against the binomial law
    let mut counts = [0f64; 50];
    (0..400).for_each(|seed| Split::new(50, seed).test.iter().for_each(|row| counts[*row] += 1.0));
    let chi2: f64 = counts.iter().map(|c| (c - 40.0).powi(2) / 36.0).sum();
    let z = (chi2 - 49.0) / (2.0 * 49f64).sqrt();
    println!("test rows: z = {z:+.2}");
    assert!(z.abs() < 4.0);
}

#[test]
fn repeated_points_are_counted_and_removed() {
    let data =
        read(vec![column("lat", |i| up(i % 25.0)), column("lon", |i| around(i % 25.0))], &on("sphere:2")).unwrap();
    assert_eq!((data.rows(), data.distinct_rows(), data.without_repeats().rows()), (50, 25, 25));
    let split = Split { train: (0..40).collect(), validation: vec![], test: (40..50).collect() };
    assert_eq!(leaked_share(&data.points, 3, &split), 1.0);
    let split = Split { train: (0..10).collect(), validation: vec![], test: (20..30).collect() };
    assert_eq!(leaked_share(&data.points, 3, &split), 0.5);
    assert_eq!(distinct_rows(&[0.0, 1.0, -0.0, 1.0], 2), 1, "0 and −0 are one place");
    // −180 and 180 are one angle, q and −q one rotation
    let turn = vec![column("a", |i| {
        if i == 0.0 {
            180.0
        } else if i == 1.0 {
            -180.0
        } else {
            i
        }
    })];
    assert_eq!(read(turn, &on("torus:1")).unwrap().distinct_rows(), 49);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layouts_go_there_and_back(
        raw in prop::collection::vec(prop::array::uniform4(-1.0f64..1.0), 30..40),
        which in 0usize..10,
        radians in prop::bool::ANY,
    ) {
        let (manifold, layout) = [
            ("sphere:2", Layout::LatLon), ("sphere:2", Layout::LonLat), ("sphere:3", Layout::Xyz), ("sphere:1", Layout::Angles),
            ("torus:4", Layout::Angles), ("euclidean:4", Layout::Vector), ("hyperbolic:4", Layout::Ball),
            ("hyperbolic:4", Layout::Hyperboloid), ("so3", Layout::QuaternionWxyz), ("so3", Layout::RotationMatrix),
        ][which];
        let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let points: Vec<f64> = raw.iter().flat_map(|v| match manifold {
            "sphere:2" => { let n = length(&v[..3]).max(1e-3); vec![v[0] / n, v[1] / n, v[2] / n] }
            "sphere:1" => { let n = length(&v[..2]).max(1e-3); vec![v[0] / n, v[1] / n] }
            "sphere:3" => { let n = length(v).max(1e-3); v.iter().map(|x| x / n).collect() }
            "so3" => { let n = length(v).max(1e-3).copysign(v[3]); v.iter().map(|x| x / n).collect() }
            "torus:4" => v.iter().map(|x| 3.1 * x).collect(),
            "hyperbolic:4" => v.iter().map(|x| 0.45 * x).collect(),
            _ => v.to_vec(),
        }).collect();
        prop_assume!(raw.iter().all(|v| length(&v[..2]) > 0.05));
        let ambient = points.len() / raw.len();
        let width = match layout { Layout::Hyperboloid => 5, Layout::RotationMatrix => 9, Layout::LatLon | Layout::LonLat => 2, _ if manifold == "sphere:1" => 1, _ => 4 };
        let coordinates = Coordinates {
            manifold: manifold.into(), layouts: vec![layout],
            units: Some(if radians { Units::Radians } else { Units::Degrees }), periods: vec![],
            columns: (1..=width).map(|k| k.to_string()).collect(), full_turn: vec![radians; width],
        };
        let columns = coordinates.table(&points).unwrap();
        let back = coordinates.points(&table(columns)).unwrap();
        prop_assert_eq!(back.len(), points.len());
        for (a, b) in points.chunks(ambient).zip(back.chunks(ambient)) {
            let off = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // matrices square the numbers, the hyperboloid divides by 1 − r² ≥ 0.19
            prop_assert!(off < 128.0 * f64::EPSILON, "{:?} {:?} {:?}", layout, a, b);
        }
    }
}
