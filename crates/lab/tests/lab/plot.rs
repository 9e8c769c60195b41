//! Figures: geometry, colours, and pictures to look at (set MINVEL_FIGURES to a folder to keep them).

use minvel::estimate::Estimate;
use minvel_lab::plot::{Axis, Dash, Figure, Lines, Map, Maps, Plot, Polar, PolarCurve, Series, Shades, Theme, colour};
use std::f64::consts::{PI, TAU};

fn bias_like() -> Lines {
    let steps = [1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1];
    let estimate = |mean: f64| minvel::estimate::Estimate { mean, std_error: 0.2 * mean, count: 100 };
    Lines::new("Squared bias", Axis::log("step size ε"), Axis::log("squared bias (units of J²)"))
        .with(Series::new("MVL", "mvl").estimates(steps.map(|e| (e, estimate(0.26 * e * e + 1e-9)))))
        .with(Series::new("DSM", "dsm").estimates(steps.map(|e| (e, estimate(2.3 * e * e + 2e-9)))))
        .power(2.0, [1e-2, 1e-3], "∝ ε²")
}

fn variance_like() -> Lines {
    let steps = [1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1];
    let estimate = |mean: f64| minvel::estimate::Estimate { mean, std_error: 0.01 * mean, count: 100 };
    Lines::new("Variance", Axis::log("step size ε"), Axis::log("variance of one sample (units of J²)"))
        .with(Series::new("MVL", "mvl").estimates(steps.map(|e| (e, estimate(5.66)))))
        .with(Series::new("MVL, plain", "mvl").dashed(Dash::Dashed).estimates(steps.map(|e| (e, estimate(3.96 / e)))))
        .with(Series::new("DSM", "dsm").estimates(steps.map(|e| (e, estimate(5.6)))))
        .with(
            Series::new("DSM, plain", "dsm").dashed(Dash::Dashed).estimates(steps.map(|e| (e, estimate(1.0 / e / e)))),
        )
        .power(-1.0, [1e-3, 1e3], "∝ 1/ε")
        .power(-2.0, [1e-3, 1e7], "∝ 1/ε²")
        .level(4.55, "SSM")
}

fn circle() -> Polar {
    let density = |a: f64, k: f64| {
        (0..360).map(|i| TAU * i as f64 / 360.0).map(|t| 0.3 * (k * ((t - a).cos() - 1.0)).exp() + 0.02).collect()
    };
    let truth =
        PolarCurve { name: "truth".into(), method: "truth".into(), dash: Dash::Solid, density: density(1.5, 2.0) };
    let model =
        PolarCurve { name: "learnt".into(), method: "mvl".into(), dash: Dash::Solid, density: density(1.52, 2.1) };
    Polar { title: "Density on the circle".into(), label: "density (1/rad)".into(), curves: vec![truth, model] }
}

fn sphere() -> Maps {
    let f =
        |shift: f64| move |a: f64, b: f64| 3.0 * (a.cos() * (b - 1.0).cos() + 0.3 * (3.0 * b).sin() * a.sin() + shift);
    let maps = vec![Map::of("ground truth", 60, 120, f(0.0)), Map::of("learnt", 60, 120, f(0.03))];
    Maps::new(maps, Shades::new("−log density (nats)"))
}

fn learning_curve() -> Lines {
    let curve = |a: f64| (0..100).map(move |i| (50.0 * i as f64, a * (-(i as f64) / 20.0).exp() - 0.5));
    let mut lines = Lines::new("", Axis::linear("iteration"), Axis::linear("loss L̂/2"))
        .with(Series::new("CD-1", "cd-1").values(curve(0.5)))
        .with(Series::new("SSM", "ssm").values(curve(0.3)))
        .level(-0.50958, "optimum −0.5096");
    lines.markers = false;
    lines
}

fn all() -> Vec<(&'static str, Plot)> {
    vec![
        ("pair", Plot::Row { plots: vec![Plot::Lines(bias_like()), Plot::Lines(variance_like())] }),
        ("variance", Plot::Lines(variance_like())),
        ("curve", Plot::Lines(learning_curve())),
        ("circle", Plot::Polar(circle())),
        ("sphere", Plot::Maps(sphere())),
    ]
}

#[test]
fn every_figure_becomes_svg_and_png_of_the_same_size() {
    for (name, plot) in all() {
        let (svg, png) = (plot.svg(Theme::Paper), plot.png(2.0));
        if let Ok(folder) = std::env::var("MINVEL_FIGURES") {
            std::fs::write(format!("{folder}/{name}.svg"), &svg).unwrap();
            std::fs::write(format!("{folder}/{name}.png"), &png).unwrap();
        }
        assert_eq!(&png[1..4], b"PNG", "{name}");
        let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as f64;
        let scene = plot.scene();
        assert_eq!((side(16), side(20)), ((2.0 * scene.width).ceil(), (2.0 * scene.height).ceil()), "{name}");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count(), "{name}");
    }
}

/// All forms of a figure come from one scene, and its pictures are packed once.
#[test]
fn a_figure_that_is_drawn_once_is_what_each_of_its_forms_would_be() {
    for (name, plot) in all() {
        let drawn = Figure::new(name, "", plot.clone()).drawn();
        assert_eq!(drawn.paper, plot.svg(Theme::Paper), "{name}");
        assert_eq!(drawn.inline, plot.svg(Theme::Inline), "{name}");
        assert!(drawn.png == plot.png(2.0), "{name}");
        assert_ne!(drawn.paper, drawn.inline, "{name}");
    }
}

#[test]
fn a_figure_survives_json() {
    for (name, plot) in all() {
        let text = serde_json::to_string(&plot).unwrap();
        assert_eq!(serde_json::from_str::<Plot>(&text).unwrap(), plot, "{name}");
    }
}

#[test]
fn nothing_leaves_the_page() {
    use minvel_lab::plot::scene::Graphic;
    for (name, plot) in all() {
        let scene = plot.scene();
        let inside = |(x, y): (f64, f64)| x >= 0.0 && y >= 0.0 && x <= scene.width && y <= scene.height;
        for graphic in &scene.graphics {
            match graphic {
                Graphic::Path { points, .. } => assert!(points.iter().all(|p| inside(*p)), "{name}: {points:?}"),
                Graphic::Text(text) => assert!(inside(text.at), "{name}: {text:?}"),
                Graphic::Dots(dots) => assert!(dots.at.iter().all(|p| inside(*p)), "{name}"),
                Graphic::Raster(p) => {
                    assert!(inside((p.area.x, p.area.y)) && inside((p.area.right(), p.area.bottom())))
                }
            }
        }
    }
}

/// Equal steps along the scale must look equal: the distances in OKLab differ by less than a third, lightness rises
/// throughout, and a screen can show every colour. A rainbow fails the second.
#[test]
fn the_scale_of_densities_is_even() {
    let points: Vec<[f64; 3]> = (0..=64).map(|i| colour::scale_point(i as f64 / 64.0)).collect();
    let distance = |p: &[f64; 3], q: &[f64; 3]| (0..3).map(|k| (p[k] - q[k]).powi(2)).sum::<f64>().sqrt();
    let steps: Vec<f64> = points.windows(2).map(|w| distance(&w[0], &w[1])).collect();
    let (least, most) = steps.iter().fold((f64::MAX, 0.0f64), |(l, m), s| (l.min(*s), m.max(*s)));
    println!("steps between {least:.4} and {most:.4}");
    assert!(most / least < 4.0 / 3.0);
    assert!(points.windows(2).all(|w| w[1][0] > w[0][0]));
    let shown = |p: &[f64; 3]| colour::linear_rgb(*p).iter().all(|x| (-0.002..=1.002).contains(x));
    for (i, p) in points.iter().enumerate() {
        assert!(shown(p), "point {i}: {:?}", colour::linear_rgb(*p));
    }
}

#[test]
fn a_map_keeps_the_order_of_its_numbers() {
    let map = Map::of("", 2, 4, |latitude, longitude| latitude + 10.0 * longitude);
    let first = (-PI / 4.0, -3.0 * PI / 4.0);
    assert_eq!(map.values[0], (first.0 + 10.0 * first.1) as f32);
    assert_eq!(Map::points(2, 4).next(), Some(first));
}

#[test]
fn the_same_method_has_the_same_colour_everywhere() {
    let blue = "#0072b2";
    for plot in [Plot::Lines(bias_like()), Plot::Lines(variance_like()), Plot::Polar(circle())] {
        assert!(plot.svg(Theme::Inline).contains(blue));
    }
    assert_eq!(colour::of_method("nobody"), colour::GREY);
}

#[test]
fn numbers_that_are_not_finite_leave_gaps_and_no_panic() {
    let mut lines = bias_like();
    lines.series[0].points[2].y = f64::NAN;
    lines.series[1].points[0].y = -1.0;
    let plot = Plot::Lines(lines);
    assert!(!plot.svg(Theme::Paper).contains("NaN"));
    let empty = Lines::new("nothing", Axis::log("x"), Axis::linear("y"));
    assert!(!Plot::Lines(empty).svg(Theme::Paper).contains("NaN"));
}

#[test]
fn the_font_knows_the_signs_of_mathematics() {
    let signs = "−±×·∝≤≥≈→∇Δ√∞‖⟨⟩′″°εσκθφλμπψτρĹL̂²³¹⁰⁴⁵⁶⁷⁸⁹⁻₀₁₂₃½–—✓✗";
    for sign in signs.chars() {
        assert!(Plot::can_write(sign), "{sign}");
    }
}

/// The figure of `recovery` once had one number on its whole scale.
#[test]
fn a_scale_with_one_power_of_ten_numbers_its_multiples() {
    let page = |low: f64, high: f64| {
        let series = Series::new("KL", "model").values([(1.0, low), (2.0, high)]);
        Plot::Lines(Lines::new("", Axis::linear("x"), Axis::log("y")).with(series)).svg(Theme::Paper)
    };
    let narrow = page(0.003, 0.05);
    assert!(["5·10⁻³", "10⁻²", "2·10⁻²"].iter().all(|number| narrow.contains(number)));
    assert!(["2", "5", "10", "20"].iter().all(|number| page(1.5, 30.0).contains(&format!(">{number}<"))));
    assert!(!page(1e-5, 1.0).contains("2·10"), "powers of ten are enough");
}

#[test]
fn a_logarithmic_scale_of_dimensions_numbers_powers_of_two() {
    let page = |dimensions: [f64; 3]| {
        let series = Series::new("FID", "model").values(dimensions.map(|d| (d, d)));
        Plot::Lines(Lines::new("", Axis::log("dimension"), Axis::linear("y").over(1000.0, 1001.0)).with(series))
            .svg(Theme::Paper)
    };
    let octaves = page([16.0, 32.0, 64.0]);
    assert!(["16", "32", "64"].iter().all(|number| octaves.contains(&format!(">{number}<"))));
    assert!(!octaves.contains(">20<"), "round numbers beside them");
    assert!(page([30.0, 40.0, 60.0]).contains(">40<"), "one power of two is no scale");
}

/// The band of a figure of two seeds once ran into the frame.
#[test]
fn a_linear_scale_shows_whole_bands() {
    let page = |y: Axis| {
        let estimate = |mean: f64| Estimate { mean, std_error: 30.0, count: 2 };
        let series = Series::new("FID", "model").estimates([(1.0, estimate(140.0)), (2.0, estimate(190.0))]);
        Plot::Lines(Lines::new("", Axis::linear("x"), y).with(series)).svg(Theme::Paper)
    };
    let linear = page(Axis::linear("y"));
    assert!(["100", "240"].iter().all(|number| linear.contains(&format!(">{number}<"))), "{linear}");
    assert!(!page(Axis::log("y")).contains(">100<"), "bands may reach zero there");
}
