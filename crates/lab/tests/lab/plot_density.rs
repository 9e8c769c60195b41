//! The figure of a density on each manifold: the right kind, complete, the same each time.

use minvel::Error;
use minvel::density::Density;
use minvel::manifold;
use minvel::manifold::Manifold;
use minvel::train::Context;
use minvel_lab::fitting::look;
use minvel_lab::plot::density::{self, FigureStyle, Points};
use minvel_lab::plot::scene::{Anchor, Graphic, Scene, text_width};
use minvel_lab::plot::{Bearings, Figure, Matrix, Plot, Theme};
use minvel_lab::table::{Coordinates, Layout, Units};
use std::collections::HashSet;
use std::f64::consts::LN_2;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A formula as a density, normalised or not.
struct Given<F> {
    manifold: Arc<dyn Manifold>,
    log_density: F,
}

impl<F> fmt::Debug for Given<F> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a formula on {}", self.manifold)
    }
}

impl<F: Fn(&[f64]) -> Result<Vec<f64>, Error> + Send + Sync> Density for Given<F> {
    fn name(&self) -> &str {
        "formula"
    }
    fn manifold(&self) -> Arc<dyn Manifold> {
        self.manifold.clone()
    }
    fn log_density(&self, points: &[f64], _: &Context) -> Result<Vec<f64>, Error> {
        (self.log_density)(points)
    }
    fn sample(&self, _: usize, _: u64, _: &Context) -> Result<Vec<f64>, Error> {
        Err(Error::config("a formula has no draws"))
    }
}

fn figures(
    manifold: Arc<dyn Manifold>,
    log_density: impl Fn(&[f64]) -> Vec<f64> + Send + Sync,
    data: &[f64],
    samples: &[f64],
    look: &FigureStyle,
) -> Vec<Figure> {
    let log_density = |points: &[f64]| Ok(log_density(points));
    density::figures(&Given { manifold, log_density }, data, samples, look, &Context::bare()).unwrap()
}

/// Points that are on each manifold: numbers between −1 and 1, of a low-discrepancy sequence, scaled as it asks.
fn points(manifold: &dyn Manifold, count: usize) -> Vec<f64> {
    let m = manifold.ambient();
    let name = manifold.to_string();
    let row = |i: usize| {
        let mut row: Vec<f64> =
            (0..m).map(|j| 2.0 * ((i * m + j + 1) as f64 * 0.618_033_988_749_895).fract() - 0.9).collect();
        let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        let on_sphere = name.starts_with("sphere") || name == "so3";
        let shrink = if on_sphere { length } else { 1.0f64.max(1.1 * length) };
        row.iter_mut().for_each(|x| *x /= shrink);
        if name.starts_with("product(sphere:2") {
            let length = row[..3].iter().map(|x| x * x).sum::<f64>().sqrt();
            row[..3].iter_mut().for_each(|x| *x /= length);
        }
        row
    };
    (0..count).flat_map(row).collect()
}

fn shown(name: &str, look: &FigureStyle) -> Vec<Figure> {
    let manifold = manifold::parse(name).unwrap();
    let (data, samples) = (points(&*manifold, 120), points(&*manifold, 90));
    let m = manifold.ambient();
    let log_density =
        |points: &[f64]| points.chunks(m).map(|x| -2.0 * x.iter().map(|v| v * v).sum::<f64>() + x[0]).collect();
    figures(manifold, log_density, &data, &samples, look)
}

/// The words and numbers of a figure, without its pixels, whose letters may spell anything.
fn words(plot: &Plot) -> String {
    let svg = plot.svg(Theme::Paper);
    let mut parts = svg.split("base64,");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once('"').map_or("", |(_, rest)| rest))
}

const EACH: [(&str, &[&str]); 14] = [
    ("sphere:1", &["rose"]),
    ("torus:1", &["rose"]),
    ("sphere:2", &["maps"]),
    ("torus:2", &["heat"]),
    ("hyperbolic:2", &["disk"]),
    ("euclidean:1", &["histogram"]),
    ("euclidean:2", &["heat"]),
    ("torus:3", &["matrix"]),
    ("sphere:3", &["matrix"]),
    ("euclidean:12", &["matrix"]),
    ("hyperbolic:3", &["matrix"]),
    ("so3", &["matrix"]),
    ("product(sphere:2,torus:1)", &["maps", "matrix"]),
    ("product(euclidean:1,sphere:2)", &["maps", "matrix"]),
];

#[test]
fn each_manifold_has_its_figure_that_survives_json() {
    for (name, kinds) in EACH {
        let all = shown(name, &FigureStyle { title: "A title".into(), ..FigureStyle::default() });
        assert_eq!(all.len(), kinds.len(), "{name}");
        for (figure, kind) in all.into_iter().zip(kinds) {
            let json = serde_json::to_value(&figure.plot).unwrap();
            assert_eq!(json["kind"], *kind, "{name}");
            let text = minvel_lab::report::json::text(&figure.plot).unwrap();
            assert_eq!(serde_json::from_str::<Plot>(&text).unwrap(), figure.plot, "{name}");
            assert!(figure.caption.ends_with('.') && !figure.name.is_empty());
            let svg = words(&figure.plot);
            assert!((svg.contains("A title") || figure.name == "slices") && !svg.contains("NaN"), "{name}");
            let unit = if matches!(*kind, "maps" | "heat" | "disk") { "log density (nats" } else { "" };
            assert!(svg.contains(unit), "{name}");
            if let Ok(folder) = std::env::var("MINVEL_FIGURES") {
                let file = format!("{}-{kind}", name.replace([':', '(', ')', ','], "-"));
                std::fs::write(format!("{folder}/{file}.png"), figure.plot.png(2.0)).unwrap();
            }
        }
    }
}

#[test]
fn nothing_leaves_the_page() {
    for (name, _) in EACH {
        let look =
            FigureStyle { title: "a_very_long_name_of_a_file_of_measurements_".repeat(5), ..FigureStyle::default() };
        for scene in [&look, &FigureStyle::default()].iter().flat_map(|look| shown(name, look)).map(|f| f.plot.scene())
        {
            stays_on_the_page(name, &scene);
        }
    }
}

fn stays_on_the_page(name: &str, scene: &Scene) {
    let inside = |(x, y): (f64, f64)| x >= 0.0 && y >= 0.0 && x <= scene.width && y <= scene.height;
    for graphic in &scene.graphics {
        match graphic {
            Graphic::Path { points, .. } => assert!(points.iter().all(|p| inside(*p)), "{name}: {points:?}"),
            Graphic::Text(text) if text.upward => assert!(inside(text.at), "{name}: {text:?}"),
            Graphic::Text(text) => {
                // bold letters are a sixth wider
                let width = text_width(&text.text, text.size) * if text.bold { 1.1 } else { 1.0 };
                let left = match text.anchor {
                    Anchor::Start => text.at.0,
                    Anchor::Middle => text.at.0 - 0.5 * width,
                    Anchor::End => text.at.0 - width,
                };
                assert!(inside((left, text.at.1)) && inside((left + width, text.at.1)), "{name}: {text:?}");
            }
            Graphic::Dots(dots) => assert!(dots.at.iter().all(|p| inside(*p)), "{name}"),
            Graphic::Raster(p) => {
                assert!(inside((p.area.x, p.area.y)) && inside((p.area.right(), p.area.bottom())), "{name}");
            }
        }
    }
}

#[test]
fn the_same_density_gives_the_same_bytes_and_pixels_as_asked() {
    for name in ["sphere:2", "torus:2", "torus:3", "torus:1"] {
        let [one, two] = [0, 1].map(|_| shown(name, &FigureStyle::default()).remove(0).plot);
        assert_eq!(one.svg(Theme::Inline), two.svg(Theme::Inline), "{name}");
        let png = one.png(1.0);
        assert_eq!(png, two.png(1.0), "{name}");
        let side = |at: usize| f64::from(u32::from_be_bytes(png[at..at + 4].try_into().unwrap()));
        assert_eq!((side(16), side(20)), (800.0, one.scene().height.ceil()), "{name}");
    }
}

#[test]
fn points_are_asked_for_all_at_once() {
    let calls = AtomicUsize::new(0);
    let density = |points: &[f64]| {
        calls.fetch_add(1, Ordering::Relaxed);
        vec![-1.8; points.len()]
    };
    let data = points(&manifold::Torus(1), 50);
    figures(Arc::new(manifold::Torus(1)), density, &data, &[], &FigureStyle::default());
    assert_eq!(calls.into_inner(), 1);
}

/// A figure of half a density would be wrong, so there is none.
#[test]
fn an_error_of_the_density_is_an_error_of_its_figures() {
    let names = ["sphere:1", "sphere:2", "torus:2", "hyperbolic:2", "euclidean:1", "euclidean:2", "projective:2"];
    for name in names.into_iter().chain(["product(sphere:2,torus:1)"]) {
        let manifold = manifold::parse(name).unwrap();
        let data = points(&*manifold, 20);
        let density = Given { manifold, log_density: |_: &[f64]| Err(Error::config("no such number")) };
        let drawn = density::figures(&density, &data, &data, &FigureStyle::default(), &Context::bare());
        assert!(drawn.is_err_and(|why| why.to_string().contains("no such number")), "{name}");
    }
}

/// An axis has half of its density at each of its ends.
#[test]
fn axes_are_drawn_as_an_even_density_on_the_sphere_that_covers_them() {
    let log_density = |points: &[f64]| points.chunks(3).map(|x| 3.0 * x[2] * x[2] - 1.0).collect::<Vec<_>>();
    let half = |points: &[f64]| log_density(points).into_iter().map(|l| l - LN_2).collect();
    let (one, other) = ([0.0, 0.6, 0.8], [-0.0, -0.6, -0.8]);
    let style = FigureStyle::default();
    let axes = figures(Arc::new(manifold::Projective(2)), log_density, &one, &[], &style).remove(0);
    let ends = figures(Arc::new(manifold::Sphere(2)), half, &[one, other].concat(), &[], &style).remove(0);
    let whole = figures(Arc::new(manifold::Sphere(2)), log_density, &[one, other].concat(), &[], &style).remove(0);
    assert!(axes.plot == ends.plot && axes.plot != whole.plot);
    assert!(axes.caption.contains("at both of its ends"));
}

#[test]
fn a_density_that_is_zero_somewhere_can_be_shown_and_stored() {
    let density = |points: &[f64]| {
        points.chunks(2).map(|x| if x[0] < 0.0 { f64::NEG_INFINITY } else { -x[1] * x[1] }).collect::<Vec<_>>()
    };
    let data = points(&manifold::Torus(2), 50);
    let figure = figures(Arc::new(manifold::Torus(2)), density, &data, &[], &FigureStyle::default()).remove(0);
    let text = serde_json::to_string(&figure.plot).unwrap();
    assert_eq!(serde_json::from_str::<Plot>(&text).unwrap(), figure.plot);
    assert!(!words(&figure.plot).contains("NaN"));
}

#[test]
fn no_data_at_all_is_no_panic() {
    for (name, _) in EACH {
        let manifold = manifold::parse(name).unwrap();
        let m = manifold.ambient();
        let plot = figures(manifold, |x| vec![0.0; x.len() / m], &[], &[], &FigureStyle::default()).remove(0).plot;
        assert!(!words(&plot).contains("NaN"), "{name}");
    }
}

fn matrix(name: &str, data: &[f64]) -> Matrix {
    let manifold = manifold::parse(name).unwrap();
    let m = manifold.ambient();
    let flat = move |points: &[f64]| vec![0.0; points.len() / m];
    match figures(manifold, flat, data, &[], &FigureStyle::default()).pop().map(|figure| figure.plot) {
        Some(Plot::Matrix(matrix)) => matrix,
        other => panic!("{name}: {other:?}"),
    }
}

/// A quarter turn about the third axis is (0, 0, 90°), whichever of the two quaternions names it.
#[test]
fn rotations_are_shown_as_axis_times_angle() {
    let half = std::f64::consts::FRAC_1_SQRT_2;
    let matrix = matrix("so3", &[0.0, 0.0, half, half, 0.0, 0.0, -half, -half]);
    let columns: Vec<&[f32]> = matrix.groups[0].columns.iter().map(Vec::as_slice).collect();
    for (column, value) in columns.iter().zip([0.0, 0.0, 90.0, 90.0f32]) {
        assert!(column.iter().all(|x| (x - value).abs() < 1e-3), "{columns:?}");
    }
    assert_eq!(matrix.axes[3].label, "angle (°)");
}

#[test]
fn factors_of_a_product_are_shown_in_their_own_coordinates() {
    let (latitude, longitude, angle) = (30f64.to_radians(), -60f64.to_radians(), 3.5f64);
    let point = [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin(), angle];
    let matrix = matrix("product(sphere:2,torus:1)", &point);
    let names: Vec<&str> = matrix.axes.iter().map(|a| a.label.as_str()).collect();
    assert_eq!(names, ["longitude (°)", "latitude (°)", "angle (°)"]);
    let values: Vec<f32> = matrix.groups[0].columns.iter().map(|c| c[0]).collect();
    for (x, y) in values.iter().zip([-60.0, 30.0, angle.to_degrees() as f32 - 360.0]) {
        assert!((x - y).abs() < 1e-3, "{values:?}");
    }
}

#[test]
fn names_of_columns_become_labels_with_their_unit() {
    let look = FigureStyle { names: vec!["phi".into(), "psi".into()], ..FigureStyle::default() };
    let svg = shown("torus:2", &look).remove(0).plot.svg(Theme::Paper);
    assert!(svg.contains("phi (°)") && svg.contains("psi (°)") && svg.contains("−120") && svg.contains("90 %"));
    let twelve = shown("euclidean:12", &FigureStyle::default()).remove(0);
    assert!(twelve.caption.contains("The first 8 of 12 coordinates"));
}

/// How figures of a file look whose points are these columns.
fn look_of(manifold: &str, layouts: &[Layout], columns: &[&str]) -> FigureStyle {
    look_in(manifold, layouts, columns, Some(Units::Degrees), vec![])
}

fn look_in(
    manifold: &str,
    layouts: &[Layout],
    columns: &[&str],
    units: Option<Units>,
    periods: Vec<Option<f64>>,
) -> FigureStyle {
    let coordinates = Coordinates {
        manifold: manifold.to_string(),
        layouts: layouts.to_vec(),
        units,
        periods,
        columns: columns.iter().map(|name| name.to_string()).collect(),
        full_turn: vec![false; columns.len()],
    };
    look("file.csv", &coordinates)
}

/// Pair plots once wrote `lat` at the longitudes, and `qw (°)` at the angle of a rotation.
#[test]
fn names_stand_at_the_coordinates_whose_numbers_the_column_holds() {
    let place = |layout| look_of("product(sphere:2,euclidean:1)", &[layout, Layout::Vector], &["a", "b", "mag"]).names;
    assert_eq!(place(Layout::LatLon), ["b", "a", "mag"]);
    assert_eq!(place(Layout::LonLat), ["a", "b", "mag"]);
    let pose =
        look_of("product(euclidean:1,so3)", &[Layout::Vector, Layout::QuaternionXyzw], &["x", "q", "r", "s", "t"]);
    assert_eq!(pose.names, ["x", "", "", "", ""]);
    assert_eq!(look_of("hyperbolic:3", &[Layout::Hyperboloid], &["t", "x", "y", "z"]).names, ["", "", ""]);
    assert_eq!(look_of("euclidean:3", &[Layout::Vector], &["1", "2", "3"]).names, ["", "", ""]);
    let Plot::Matrix(matrix) =
        shown("product(sphere:2,so3)", &FigureStyle { names: vec!["b".into(); 6], ..FigureStyle::default() })
            .remove(0)
            .plot
    else {
        panic!("a product is shown by pairs")
    };
    assert_eq!(matrix.axes[0].label, "b (°)");
    let own = shown("so3", &FigureStyle { names: vec![String::new(); 4], ..FigureStyle::default() })
        .remove(0)
        .plot
        .svg(Theme::Paper);
    assert!(own.contains("rotation x (°)"));
}

#[test]
fn coastlines_are_for_places_and_compasses_for_bearings() {
    let earth = |columns: &[&str]| look_of("sphere:2", &[Layout::LatLon], columns).earth;
    assert!(earth(&["lat", "lon"]) && earth(&["Breitengrad", "Längengrad"]) && earth(&["2", "3"]));
    assert!(!earth(&["dip", "azimuth"]) && !earth(&["dec", "ra"]));
    assert!(!look_of("sphere:2", &[Layout::Xyz], &["x", "y", "z"]).earth);
    let bearings = |column: &str| look_of("sphere:1", &[Layout::Angles], &[column]).bearings;
    assert_eq!((bearings("wind_dir"), bearings("Heading (deg)")), (Bearings::Compass, Bearings::Compass));
    assert_eq!((bearings("phi"), bearings("1")), (Bearings::Degrees, Bearings::Degrees));
}

/// Roses of times of the day once were in degrees.
#[test]
fn clocks_are_labelled_in_their_own_units() {
    let clock = |units, periods| look_in("sphere:1", &[Layout::Angles], &["time"], units, periods);
    let day = clock(Some(Units::Hours), vec![]);
    assert_eq!(day.bearings, Bearings::Hours);
    let year = clock(None, vec![Some(365.25)]);
    assert_eq!(year.bearings, Bearings::Period { turn: 365.25 });
    let svg = |look: &FigureStyle| shown("sphere:1", look).remove(0).plot.svg(Theme::Paper);
    let (day, year) = (svg(&day), svg(&year));
    assert!(day.contains("18 h") && day.contains("density (1/h)") && !day.contains('°'));
    assert!(year.contains("45.66") && year.contains("density by unit") && !year.contains('°'));
}

#[test]
fn long_names_are_cut_to_their_cell_and_every_scale_has_two_numbers() {
    let names = (0..8).map(|i| format!("total sulfur dioxide {i}")).collect();
    let scene = shown("euclidean:8", &FigureStyle { names, ..FigureStyle::default() }).remove(0).plot.scene();
    let text = |graphic: &Graphic| if let Graphic::Text(text) = graphic { Some(text.text.clone()) } else { None };
    let texts: Vec<String> = scene.graphics.iter().filter_map(text).collect();
    assert_eq!(texts.iter().filter(|t| t.contains('…')).count(), 16, "{texts:?}");
    // names that differ at their ends stay different
    assert_eq!(texts.iter().filter(|t| t.contains('…')).collect::<HashSet<_>>().len(), 8, "{texts:?}");
    let numbers = texts.iter().filter(|t| t.replace('−', "-").parse::<f64>().is_ok()).count();
    assert!(numbers >= 2 * 16, "{numbers} numbers on sixteen scales");
}

/// By the distance of its quartiles, a mixture of a wide and a narrow law had bins as wide as the narrow one.
#[test]
fn bins_resolve_a_narrow_mode_beside_a_wide_one() {
    let quantile = |i: usize| ((i as f64 + 0.5) / 300.0 - 0.5) * 2.0;
    let data: Vec<f64> = (0..300).flat_map(|i| [-3.0 + 2.0 * quantile(i), 1.0 + 0.4 * quantile(i)]).collect();
    let figure = figures(Arc::new(manifold::Euclidean(1)), |x| vec![0.0; x.len()], &data, &[], &FigureStyle::default())
        .remove(0);
    let Plot::Histogram(histogram) = figure.plot else { panic!("a histogram") };
    let width = (histogram.bins.range[1] - histogram.bins.range[0]) / histogram.bins.density.len() as f64;
    assert!(width < 0.25, "bins of {width} for a mode of 0.8");
}

fn dots(plot: &Plot) -> usize {
    plot.scene().graphics.iter().map(|s| if let Graphic::Dots(dots) = s { dots.at.len() } else { 0 }).sum()
}

/// Thousands of orange dots once hid the peaks of a map, and were a part of what the caption called "the data".
#[test]
fn dots_are_all_the_data_or_none_or_as_many_as_the_caption_says() {
    let sphere = manifold::Sphere(2);
    let flat = |points: &[f64]| vec![-2.5; points.len() / 3];
    for (count, which, drawn, sentence) in [
        (2000, Points::Few, 2000, "Dots: all 2000 data points."),
        (2001, Points::Few, 0, "The 2001 data points are not drawn: they would hide the colours."),
        (2001, Points::All, 2001, "Dots: all 2001 data points."),
        (30_000, Points::All, 15_000, "Dots: 15000 of the 30000 data points."),
        (20, Points::None, 0, "The 20 data points are not drawn."),
    ] {
        let look = FigureStyle { points: which, ..FigureStyle::default() };
        let figure = figures(Arc::new(sphere), flat, &points(&sphere, count), &[], &look).remove(0);
        assert_eq!(dots(&figure.plot), drawn, "{count} {which:?}");
        assert!(figure.caption.contains(sentence), "{}", figure.caption);
    }
}

/// p ∝ e^(κ cos θ): the share of mass within θ is (1 − e^(−κ(1 − cos θ)))/(1 − e^(−2κ)), so the border of the share s is
/// where log p is below the top by −log(1 − s(1 − e^(−2κ))).
#[test]
fn contours_of_a_map_hold_the_shares_they_say() {
    let kappa = 8.0f64;
    let density = |points: &[f64]| points.chunks(3).map(|x| kappa * (x[0] - 1.0)).collect::<Vec<f64>>();
    let figure = figures(Arc::new(manifold::Sphere(2)), density, &[], &[], &FigureStyle::default()).remove(0);
    let Plot::Maps(maps) = &figure.plot else { panic!("a map") };
    for (share, label) in [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %")] {
        let mark = maps.shades.marks.iter().find(|m| m.label == label).expect(label);
        let exact = (1.0 - share * (1.0 - (-2.0 * kappa).exp())).ln();
        // cells of one degree: the border is known to half a cell, times the slope there, and stored in thousandths
        let slope = kappa * (1.0 - (1.0 + exact / kappa).powi(2)).max(0.0).sqrt();
        let allowed = slope * 1f64.to_radians() + 1e-3;
        println!("{label}: {} for {exact}, allowed {allowed}", mark.at);
        assert!(mark.line && (mark.at - exact).abs() < allowed, "{label}: {} for {exact}", mark.at);
    }
    let lines = figure.plot.scene().graphics.iter().filter(|s| is_contour(s)).count();
    assert!(lines >= 3, "{lines} contours");
    let uniform = maps.shades.marks.iter().find(|m| m.label == "uniform").expect("a mark");
    assert!(!uniform.line);
}

fn is_contour(graphic: &Graphic) -> bool {
    matches!(graphic, Graphic::Path { closed: false, stroke: Some(stroke), .. } if stroke.width == 1.2)
}

#[test]
fn a_disk_has_contours_inside_its_edge() {
    let plot = shown("hyperbolic:2", &FigureStyle::default()).remove(0).plot;
    let scene = plot.scene();
    let picture = scene.graphics.iter().find_map(|s| if let Graphic::Raster(p) = s { Some(p.area) } else { None });
    let disk = picture.expect("colours");
    let contours: Vec<_> = scene.graphics.iter().filter(|s| is_contour(s)).collect();
    assert!(contours.len() >= 3, "{} contours", contours.len());
    for graphic in contours {
        let Graphic::Path { points, .. } = graphic else { unreachable!() };
        let radius = |p: &(f64, f64)| (p.0 - disk.centre().0).hypot(p.1 - disk.centre().1);
        assert!(points.iter().all(|p| radius(p) <= 0.5 * disk.width), "{points:?}");
    }
}

/// The density that grows with the line is shown at the medians of the thirds of the data, and each dot once.
#[test]
fn a_sphere_with_a_line_has_maps_at_three_values() {
    let manifold = manifold::parse("product(sphere:2,euclidean:1)").unwrap();
    let data: Vec<f64> = (0..90).flat_map(|i| [0.0, 0.6, 0.8, f64::from(i)]).collect();
    let density = |points: &[f64]| points.chunks(4).map(|x| -0.01 * x[3]).collect::<Vec<f64>>();
    let look = FigureStyle { names: vec!["lon".into(), "lat".into(), "depth".into()], ..FigureStyle::default() };
    let figure = figures(manifold, density, &data, &[], &look).remove(0);
    let Plot::Maps(maps) = &figure.plot else { panic!("maps") };
    let titles: Vec<&str> = maps.maps.iter().map(|m| m.title.as_str()).collect();
    assert_eq!(titles, ["depth = 14.0", "depth = 44.0", "depth = 74.0"]);
    let values: Vec<f32> = maps.maps.iter().map(|m| m.values[0]).collect();
    assert_eq!(values, [-0.14, -0.44, -0.74]);
    assert!((90..=92).contains(&dots(&figure.plot)), "{}", dots(&figure.plot));
}
