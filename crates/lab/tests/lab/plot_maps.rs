//! Maps: the projection, the coastlines, and where dots land.

use minvel_lab::plot::mollweide::{project, unproject};
use minvel_lab::plot::scene::Graphic;
use minvel_lab::plot::{Cloud, Map, Maps, Mark, Plot, Shades, Theme, coastline};
use std::f64::consts::FRAC_PI_2;

const LAND: [(&str, f64, f64); 8] = [
    ("Zürich", 47.4, 8.5),
    ("Nairobi", -1.3, 36.8),
    ("Denver", 39.7, -105.0),
    ("Novosibirsk", 55.0, 82.9),
    ("Brasília", -15.8, -47.9),
    ("Alice Springs", -23.7, 133.9),
    ("the south pole", -90.0, 0.0),
    ("Chukotka beyond 180°", 67.0, -175.0),
];
const SEA: [(&str, f64, f64); 8] = [
    ("middle of the Atlantic", 30.0, -40.0),
    ("middle of the Pacific", 0.0, -150.0),
    ("Indian Ocean", -30.0, 80.0),
    ("Caspian Sea", 41.5, 51.0),
    ("Mediterranean", 34.5, 19.0),
    ("the north pole", 90.0, 0.0),
    ("Pacific at 180°", 0.0, 180.0),
    ("Southern Ocean", -60.0, 100.0),
];

#[test]
fn cities_are_on_land_and_oceans_are_not() {
    for (name, latitude, longitude) in LAND {
        assert!(coastline::is_land(latitude, longitude), "{name}");
    }
    for (name, latitude, longitude) in SEA {
        assert!(!coastline::is_land(latitude, longitude), "{name}");
    }
}

/// The twin: with east and west exchanged some of them are wrong, so that the places above tell a mirrored Earth.
#[test]
fn a_mirrored_earth_is_noticed() {
    let land = LAND.iter().filter(|p| !coastline::is_land(p.1, -p.2)).count();
    let sea = SEA.iter().filter(|p| coastline::is_land(p.1, -p.2)).count();
    assert!(land >= 1 && sea >= 1, "{land} and {sea} wrong");
}

/// 29.2 % of the Earth is land; small islands and half a degree of grid may cost a percent of the whole.
#[test]
fn three_tenths_of_the_earth_are_land() {
    let (mut land, mut all) = (0.0, 0.0);
    for (latitude, longitude) in Map::points(180, 360) {
        all += latitude.cos();
        if coastline::is_land(latitude.to_degrees(), longitude.to_degrees()) {
            land += latitude.cos();
        }
    }
    println!("land: {:.4}", land / all);
    assert!((land / all - 0.292).abs() < 0.01);
}

#[test]
fn the_projection_is_inverted() {
    for i in -89..=89 {
        for j in -18..18 {
            let place = (f64::from(i).to_radians(), (10.0 * f64::from(j)).to_radians());
            let (x, y) = project(place.0, place.1);
            assert!(0.25 * x * x + y * y <= 1.0 + 1e-12);
            let back = unproject(x, y);
            // Near the poles the latitude is a root of what is kept.
            let allowed = 1e-9 / place.0.cos();
            assert!((back.0 - place.0).abs() < allowed && (back.1 - place.1).abs() < allowed, "{place:?} {back:?}");
        }
    }
}

/// The sphere's area is 4π, the ellipse's 2π: every cell keeps half of its own. Without Newton's steps (t = φ) it fails.
#[test]
fn the_projection_keeps_areas() {
    let h = 1e-4;
    for (latitude, longitude) in Map::points(17, 12).filter(|p| p.0.abs() < FRAC_PI_2 - 0.1) {
        let d = |a: (f64, f64), b: (f64, f64)| ((a.0 - b.0) / (2.0 * h), (a.1 - b.1) / (2.0 * h));
        let across = d(project(latitude, longitude + h), project(latitude, longitude - h));
        let up = d(project(latitude + h, longitude), project(latitude - h, longitude));
        let area = (across.0 * up.1 - across.1 * up.0) / latitude.cos();
        assert!((area - 0.5).abs() < 1e-5, "{latitude} {longitude}: {area}");
    }
}

fn world(centre: f64, points: &[(f64, f64)]) -> Maps {
    let map = Map::of("Density", 18, 36, |a, b| a.sin() + b.cos());
    let map = Map { points: Cloud::new("data", points.iter().copied()), ..map };
    let marks = vec![Mark { at: 0.0, label: "uniform".to_string(), line: false }];
    let shades = Shades { marks, ..Shades::new("log density (nats)") };
    Maps { earth: true, centre, ..Maps::new(vec![map], shades) }
}

#[test]
fn dots_land_on_their_places_whatever_the_middle_of_the_map() {
    let places = [(8.5, 47.4), (-105.0, 39.7), (179.0, -17.0), (-150.0, 0.0)];
    for centre in [0.0, 150.0, -77.0] {
        let scene = Plot::Maps(world(centre, &places)).scene();
        let area = scene.graphics.iter().find_map(|s| if let Graphic::Raster(p) = s { Some(p.area) } else { None });
        let area = area.expect("a map has colours");
        let dots = scene.graphics.iter().find_map(|s| if let Graphic::Dots(d) = s { Some(d) } else { None });
        for (at, place) in dots.expect("a map has dots").at.iter().zip(places) {
            let (x, y) = (4.0 * (at.0 - area.x) / area.width - 2.0, 1.0 - 2.0 * (at.1 - area.y) / area.height);
            let (latitude, east) = unproject(x, y);
            let longitude = (east.to_degrees() + centre + 180.0).rem_euclid(360.0) - 180.0;
            // Places are stored as f32.
            assert!((latitude.to_degrees() - place.1).abs() < 1e-4, "{place:?}");
            assert!((longitude - place.0).abs() < 1e-4, "{place:?}: {longitude}");
        }
    }
}

/// A coast that leaves the map on one side must not be drawn through it to the other.
#[test]
fn no_coast_crosses_the_map_in_one_stroke() {
    for centre in [0.0, 150.0, 180.0, -180.0, -77.3] {
        let scene = Plot::Maps(world(centre, &[])).scene();
        let long = |points: &[(f64, f64)]| {
            points.windows(2).map(|w| (w[1].0 - w[0].0).hypot(w[1].1 - w[0].1)).fold(0.0, f64::max)
        };
        let coasts = scene.graphics.iter().filter_map(|s| match s {
            Graphic::Path { points, closed: false, stroke: Some(stroke), .. } if stroke.width == 0.9 => {
                Some(long(points))
            }
            _ => None,
        });
        let lengths: Vec<f64> = coasts.collect();
        assert!(lengths.len() > 100, "{} coasts", lengths.len());
        assert!(lengths.iter().all(|l| *l < 60.0), "{:?}", lengths.iter().copied().fold(0.0, f64::max));
    }
}

#[test]
fn the_earth_has_its_words_and_another_sphere_has_not() {
    let earth = world(0.0, &[]);
    let svg = Plot::Maps(earth.clone()).svg(Theme::Paper);
    for word in ["60°N", "30°S", "120°W", "60°E", "uniform", "log density (nats)", "Density"] {
        assert!(svg.contains(word), "{word}");
    }
    let other = Plot::Maps(Maps { earth: false, ..earth.clone() }).svg(Theme::Paper);
    assert!(!other.contains("60°N") && other.contains("−30°"));
    assert!(other.len() < svg.len());
    let turned = Plot::Maps(Maps { centre: 180.0, ..earth }).svg(Theme::Paper);
    assert!(turned.contains(">180°<") && turned.contains("120°E"));
}

#[test]
fn coastlines_are_closed_or_go_once_around_the_earth() {
    let around = |line: &Vec<(f64, f64)>| (line[line.len() - 1].0 - line[0].0, line[line.len() - 1].1 - line[0].1);
    let turns = coastline::lines().iter().map(around);
    let closed = |t: f64| t.abs() < 1e-9;
    assert!(turns.clone().all(|(x, y)| closed(y) && (closed(x) || closed(x.abs() - 360.0))));
    assert_eq!(turns.filter(|(x, _)| !closed(*x)).count(), 1, "Antarctica");
    assert!(coastline::lines().iter().flatten().all(|(_, y)| y.abs() <= 90.0));
}
