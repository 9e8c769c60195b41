//! Fields, disks, roses, matrices and rankings: geometry that can be wrong.

use minvel::estimate::Estimate;
use minvel_lab::plot::scene::Graphic;
use minvel_lab::plot::{
    Axis, Bearings, Bins, Dash, Field, Group, Matrix, Plot, PolarCurve, Ranked, Ranking, Rose, Scale, Theme, colour,
    geodesic, learning,
};
use std::f64::consts::TAU;

const N: usize = 121;

fn field(f: impl Fn(f64, f64) -> f64) -> Field {
    let places = Field::places(N, N, [-1.0, 1.0], [-1.0, 1.0]);
    Field { columns: N, rows: N, values: places.iter().map(|(x, y)| f(*x, *y) as f32).collect() }
}

#[test]
fn between_grid_points_a_field_is_bilinear() {
    let f = |x: f64, y: f64| 1.0 + 2.0 * x - y + 3.0 * x * y;
    let field = field(f);
    for (u, v) in [(0.0, 0.0), (1.0, 1.0), (0.123, 0.777), (0.5, 0.25)] {
        // The numbers are f32 of size up to 7.
        let error = field.at(u, v) - f(2.0 * u - 1.0, 2.0 * v - 1.0);
        assert!(error.abs() < 7.0 * f64::from(f32::EPSILON), "{error}");
    }
}

/// The line of height r² of x² + y² is one closed line at distance r, up to h²/8·f″/|∇f|.
#[test]
fn a_line_of_equal_height_is_a_circle() {
    let (r, h) = (0.6, 2.0 / (N - 1) as f64);
    let lines = field(|x, y| x * x + y * y).contours(r * r);
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    let gap = (line[0].0 - line[line.len() - 1].0).hypot(line[0].1 - line[line.len() - 1].1);
    assert!(gap < 1e-12, "closed");
    for (u, v) in line {
        let distance = (2.0 * u - 1.0).hypot(2.0 * v - 1.0);
        assert!((distance - r).abs() < h * h, "{distance}");
    }
    let length: f64 = line.windows(2).map(|w| 2.0 * (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).sum();
    assert!((length / (TAU * r) - 1.0).abs() < h, "{length}");
}

#[test]
fn lines_that_reach_the_border_end_there() {
    let lines = field(|x, _| x).contours(0.3);
    assert_eq!(lines.len(), 1);
    let ends = [lines[0][0].1, lines[0][lines[0].len() - 1].1];
    assert!(ends.contains(&0.0) && ends.contains(&1.0), "{ends:?}");
}

/// The smallest region of a plane normal law with probability s is where log p ≥ top + log(1 − s).
#[test]
fn regions_hold_the_probability_they_claim() {
    let field = field(|x, y| -0.5 * (x * x + y * y) / 0.15f64.powi(2));
    for (level, share) in field.levels(&[0.5, 0.9, 0.99]).iter().zip([0.5, 0.9, 0.99f64]) {
        let truth = (1.0 - share).ln();
        // A ring one grid point thick holds some h²/σ² of the probability.
        assert!((level - truth).abs() < 0.05 * truth.abs().max(1.0), "{level} {truth}");
    }
}

/// A geodesic is the shortest way: the distances along it add up to the distance of its ends. A straight line's do not.
#[test]
fn the_lines_of_the_disk_are_geodesics() {
    let distance = |p: (f64, f64), q: (f64, f64)| {
        let depth = |p: (f64, f64)| 1.0 - p.0 * p.0 - p.1 * p.1;
        2.0 * ((p.0 - q.0).hypot(p.1 - q.1) / (depth(p) * depth(q)).sqrt()).asinh()
    };
    for d in [1.0, -2.0, 3.0] {
        let line = geodesic(d);
        let middle = line[line.len() / 2];
        assert!((middle.0 - f64::tanh(0.5 * d)).abs() < 1e-12 && middle.1.abs() < 1e-12);
        assert!((line[0].0.hypot(line[0].1) - 1.0).abs() < 1e-12, "it ends at infinity");
        let inner = &line[10..=70];
        let along: f64 = inner.windows(2).map(|w| distance(w[0], w[1])).sum();
        let straight = distance(inner[0], inner[60]);
        assert!((along / straight - 1.0).abs() < 1e-9, "{along} {straight}");
        let chord: Vec<(f64, f64)> = (0..=60)
            .map(|i| f64::from(i) / 60.0)
            .map(|t| (inner[0].0 + t * (inner[60].0 - inner[0].0), inner[0].1 + t * (inner[60].1 - inner[0].1)))
            .collect();
        assert!(chord.windows(2).map(|w| distance(w[0], w[1])).sum::<f64>() > 1.001 * straight);
    }
}

#[test]
fn bins_count_what_lies_outside_in_the_total_only() {
    let bins = Bins::of("data", "data", &[0.0, 0.1, 0.9, 1.0, 5.0], 2, [0.0, 1.0]);
    assert_eq!(bins.density, [2.0 / 5.0 / 0.5, 2.0 / 5.0 / 0.5]);
    assert_eq!(bins.borders(1), (0.5, 1.0));
}

fn rose(bearings: Bearings) -> Rose {
    let bins =
        Bins { name: "data".into(), method: "data".into(), range: [0.0, TAU], density: vec![0.4, 0.1, 0.05, 0.2] };
    let density = (0..360).map(|i| 0.16 + 0.1 * f64::from(i).to_radians().cos()).collect();
    let curve = PolarCurve { name: "model".into(), method: "model".into(), dash: Dash::Solid, density };
    Rose { title: "Wind".into(), label: "rings: density (1/rad)".into(), bearings, bins, curves: vec![curve] }
}

fn area(points: &[(f64, f64)]) -> f64 {
    let next = points.iter().cycle().skip(1);
    0.5 * points.iter().zip(next).map(|(p, q)| p.0 * q.1 - q.0 * p.1).sum::<f64>().abs()
}

/// Twice the density is twice the area, not twice the radius; polygons of 24 sides for each arc are off by 1e-3.
#[test]
fn areas_of_a_rose_are_shares() {
    let scene = Plot::Rose(rose(Bearings::Degrees)).scene();
    let wedges = scene.graphics.iter().filter_map(|s| match s {
        Graphic::Path { points, closed: true, fill: Some(_), .. } if points.len() == 50 => Some(area(points)),
        _ => None,
    });
    let areas: Vec<f64> = wedges.collect();
    assert_eq!(areas.len(), 4);
    for (a, density) in areas.iter().zip([0.4, 0.1, 0.05, 0.2]) {
        assert!((a / areas[0] - density / 0.4).abs() < 2e-3, "{areas:?}");
    }
}

#[test]
fn a_compass_runs_clockwise_from_north() {
    let compass = Plot::Rose(rose(Bearings::Compass));
    let at = |plot: &Plot, word: &str| {
        let text = |s: &Graphic| match s {
            Graphic::Text(t) if t.text == word => Some(t.at),
            _ => None,
        };
        plot.scene().graphics.iter().find_map(text).expect(word)
    };
    assert!(at(&compass, "N").1 < at(&compass, "E").1 && at(&compass, "E").0 > at(&compass, "W").0);
    let degrees = Plot::Rose(rose(Bearings::Degrees));
    assert!(at(&degrees, "90°").1 < at(&degrees, "0°").1 && at(&degrees, "0°").0 > at(&degrees, "180°").0);
    assert!(compass.svg(Theme::Paper).contains("rings: density (1/rad)"));
}

/// Clocks once were labelled in degrees, counter-clockwise from the right.
#[test]
fn a_clock_runs_clockwise_from_midnight_and_has_the_names_of_its_unit() {
    let texts = |bearings: Bearings| {
        let graphics = Plot::Rose(rose(bearings)).scene().graphics;
        let text = |s: &Graphic| if let Graphic::Text(t) = s { Some((t.text.clone(), t.at)) } else { None };
        graphics.iter().filter_map(text).collect::<Vec<_>>()
    };
    let at = |bearings: Bearings, word: &str| {
        texts(bearings).into_iter().find(|(text, _)| text == word).unwrap_or_else(|| panic!("no `{word}`")).1
    };
    let hour = |word: &str| at(Bearings::Hours, word);
    assert!(hour("0 h").1 < hour("6 h").1 && hour("6 h").1 < hour("12 h").1, "midnight is at the top");
    assert!(hour("6 h").0 > hour("18 h").0, "clockwise");
    for (turn, names) in [(24.0, ["3", "21"]), (7.0, ["1", "6"]), (365.0, ["73", "292"]), (0.5, ["0.0625", "0.4375"])] {
        let period = Bearings::Period { turn };
        assert!(at(period, names[0]).0 > at(period, names[1]).0, "{turn}");
        assert!(texts(period).iter().all(|(text, _)| !text.contains('°')), "{turn}");
    }
}

#[test]
fn data_are_below_the_diagonal_and_samples_above() {
    let column = |shift: f32| (0..50).map(|i| i as f32 + shift).collect::<Vec<_>>();
    let group = |name: &str, s: f32| Group {
        name: name.into(),
        method: name.into(),
        columns: vec![column(s), column(2.0 * s), column(3.0)],
    };
    let axes = ["α (°)", "β (°)", "γ (°)"].map(Axis::linear).to_vec();
    let matrix = Matrix { title: String::new(), axes, groups: vec![group("data", 0.0), group("model", 1.0)], bins: 10 };
    let plot = Plot::Matrix(matrix);
    let scene = plot.scene();
    let mut count = [0, 0];
    for dots in scene.graphics.iter().filter_map(|s| if let Graphic::Dots(d) = s { Some(d) } else { None }) {
        if dots.at.len() < 10 {
            continue; // of the legend
        }
        let middle = dots.at.iter().map(|p| p.0 - p.1).sum::<f64>() / dots.at.len() as f64;
        let above = middle > scene.width - 750.0;
        assert_eq!(dots.colour, colour::of_method(if above { "model" } else { "data" }));
        count[above as usize] += 1;
    }
    assert_eq!(count, [3, 3]);
    let svg = plot.svg(Theme::Inline);
    for word in ["α (°)", "γ (°)", "data (below the diagonal)", "model (above the diagonal)"] {
        assert!(svg.contains(word), "{word}");
    }
}

#[test]
fn a_ranking_places_numbers_in_their_order_with_whiskers_of_two_errors() {
    let value = |mean: f64, std_error: f64| Estimate { mean, std_error, count: 10 };
    let entries = vec![
        Ranked::new("minvel", "model", value(-0.5, 0.1)),
        Ranked::new("kernel density", "kde", value(0.5, 0.05)),
        Ranked::new("unknown error", "uniform", value(1.5, f64::NAN)),
    ];
    let plot = Plot::Ranking(Ranking::new("", Axis::linear("NLL (nats)"), entries));
    let scene = plot.scene();
    let circles: Vec<f64> = (scene.graphics.iter())
        .filter_map(|s| match s {
            Graphic::Path { points, closed: true, fill: Some(_), .. } => {
                Some(points.iter().map(|p| p.0).sum::<f64>() / points.len() as f64)
            }
            _ => None,
        })
        .collect();
    assert_eq!(circles.len(), 3);
    assert!((circles[1] - circles[0] - (circles[2] - circles[1])).abs() < 1e-6, "equal differences: {circles:?}");
    let unit = circles[1] - circles[0];
    let whisker = scene.graphics.iter().find_map(|s| match s {
        Graphic::Path { points, closed: false, stroke: Some(stroke), .. } if stroke.width == 2.0 => {
            Some(points[1].0 - points[0].0)
        }
        _ => None,
    });
    assert!((whisker.expect("a whisker") / unit - 2.0 * 1.96 * 0.1).abs() < 1e-9);
    let svg = plot.svg(Theme::Paper);
    assert!(svg.contains("−0.50 ± 0.10") && svg.contains("NLL (nats)") && !svg.contains("NaN"));
}

/// A uniform law three nats behind once squeezed differences of hundredths into one dot.
#[test]
fn a_number_beyond_the_axis_is_an_arrow_at_its_end() {
    let entry = |name: &str, mean: f64| Ranked::new(name, "kde", Estimate { mean, std_error: 0.01, count: 10 });
    let entries = vec![entry("kernel density", 0.05), entry("uniform law", 3.0), entry("oracle", -7.0)];
    let ranking = Ranking::new("", Axis::linear("gain (nats)").over(-0.1, 0.1), entries);
    let scene = Plot::Ranking(Ranking { reference: Some(0.0), ..ranking }).scene();
    let filled = scene.graphics.iter().filter_map(|s| match s {
        Graphic::Path { points, closed: true, fill: Some(_), .. } => Some(points),
        _ => None,
    });
    let arrows: Vec<_> = filled.filter(|points| points.len() == 3).collect();
    assert_eq!(arrows.len(), 2);
    let texts: Vec<&str> = scene
        .graphics
        .iter()
        .filter_map(|s| if let Graphic::Text(t) = s { Some(t.text.as_str()) } else { None })
        .collect();
    assert!(texts.contains(&"3.000 ± 0.010") && texts.contains(&"−7.000 ± 0.010"), "{texts:?}");
    // one points to the right, the other to the left
    let tip = |points: &[(f64, f64)]| points[0].0 - points[1].0;
    assert!(tip(arrows[0]) > 0.0 && tip(arrows[1]) < 0.0);
}

#[test]
fn learning_curves_mark_the_step_that_was_kept_and_leave_out_the_start() {
    let course = |shift: f64| learning::Course {
        train: (0..100).map(|i| (f64::from(i), if i == 0 { 1e6 } else { shift - 0.01 * f64::from(i) })).collect(),
        validation: (0..100).map(|i| (f64::from(i), shift)).collect(),
        kept: Some(42.0),
    };
    let lines = learning::curves("", "objective (nats)", &[course(0.0), course(0.1)], Some(1), Scale::Linear);
    let range = lines.y.range.expect("a range");
    assert!(range[1] < 1.0, "{range:?}");
    let svg = Plot::Lines(lines).svg(Theme::Paper);
    for word in ["kept: step 42", "training", "validation", "validation, other seeds", "objective (nats)", ">step<"] {
        assert!(svg.contains(word), "{word}");
    }
    let log = learning::curves("", "objective", &[course(5.0)], None, Scale::Log);
    assert_eq!((log.y.scale, log.y.range, log.guides.len()), (Scale::Log, None, 0));
}
