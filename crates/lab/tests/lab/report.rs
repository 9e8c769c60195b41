//! Reports: nothing is lost on the way to JSON, rules decide as they say, renderings are whole.

use minvel::estimate::{Estimate, format};
use minvel_lab::plot::{Axis, Figure, Lines, Plot, Series};
use minvel_lab::report::{Claim, Machine, Report, Row, Timing, Versions};

fn estimate(mean: f64, std_error: f64) -> Estimate {
    Estimate { mean, std_error, count: 10 }
}

fn report(name: &str) -> Report {
    let lines = Lines::new("", Axis::log("step size ε"), Axis::log("variance"))
        .with(Series::new("MVL", "mvl").values([(1e-3, 5.0), (1e-2, 5.1)]));
    Report {
        experiment: name.to_string(),
        about: "What <it> shows & why".to_string(),
        source: "Figure 1".to_string(),
        config: serde_json::json!({ "rate": 1e-3 }),
        quick: true,
        device: "cpu".to_string(),
        seconds: 12.5,
        timings: vec![Timing { name: "a".to_string(), seconds: 12.5 }],
        machine: Machine::here(),
        versions: Versions::default(),
        revision: "unknown".to_string(),
        rows: vec![
            Row::new("slope", estimate(-1.01, 0.02), 3)
                .paper(-1.0, None)
                .claim("It grows", Claim::Within { of: -1.0, by: 0.1 }),
            Row::new("a third", estimate(1.0 / 3.0, f64::NAN), 1).unit("nats"),
            Row::new("lost", estimate(f64::NAN, f64::INFINITY), 1).claim("It is small | thin", Claim::Below(1.0)),
        ],
        figures: vec![Figure::new("variance", "Variance against step size", Plot::Lines(lines))],
        notes: vec!["note".to_string()],
    }
}

/// Equality of floats is not enough for NaN; the text is.
#[test]
fn json_keeps_every_bit_and_what_json_does_not_know() {
    let report = report("one");
    let text = report.json();
    let back: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(back.json(), text);
    assert_eq!(back.rows[1].value.to_bits(), (1.0f64 / 3.0).to_bits());
    assert!(back.rows[2].value.is_nan() && back.rows[2].std_error == f64::INFINITY);
}

#[test]
fn rules_decide_as_they_say_and_never_for_nan() {
    let of = estimate(1.0, 0.3);
    let cases = [
        (Claim::Below(2.0), 1.9, 2.1),
        (Claim::Above(2.0), 2.1, 1.9),
        (Claim::Within { of: -1.0, by: 0.1 }, -1.09, -1.11),
        (Claim::Factor { of: 4.0, factor: 2.0 }, 2.1, 1.9),
        (Claim::Factor { of: 4.0, factor: 2.0 }, 7.9, 8.1),
        (Claim::Factor { of: -4.0, factor: 2.0 }, -7.9, 7.9),
        (Claim::Sigmas { of, sigmas: 2.0 }, 1.9, 2.1),
        (Claim::SurelyBelow { limit: 2.0, sigmas: 2.0 }, 1.1, 1.3),
    ];
    for (rule, good, bad) in cases {
        let error = 0.4;
        assert!(rule.holds(good, error) && !rule.holds(bad, error), "{rule}");
        assert!(!rule.holds(f64::NAN, error), "{rule}");
    }
    assert!(!Claim::Sigmas { of, sigmas: 2.0 }.holds(1.0, f64::NAN));
}

#[test]
fn numbers_are_written_with_the_digits_their_errors_leave() {
    let written = |value: f64, error: f64| format::with_error(value, Some(error));
    assert_eq!(written(-0.84712, 0.0031), "−0.847 ± 0.003");
    assert_eq!(written(-0.84712, 0.0012), "−0.8471 ± 0.0012");
    assert_eq!(written(3957.2, 12.0), "3957 ± 12");
    assert_eq!(written(2.51e-6, 3.2e-8), "(2.51 ± 0.03)e-6");
    assert_eq!(written(0.5, f64::NAN), "0.5");
    assert_eq!(written(f64::NAN, 1.0), "–");
    assert_eq!(format::with_error(94.72, Some(0.11)), "94.72 ± 0.11");
    assert_eq!(written(7.1359348, 2.7e-6), "7.1359348 ± 0.0000027");
    assert_eq!(format::plain(2e-7), "2.00e-7");
    assert_eq!(format::duration(95.2), "95 s");
}

#[test]
fn renderings_are_whole() {
    let report = report("one");
    let (markdown, html) = (report.markdown(), report.html());
    assert!(markdown.contains("**1 of 2 claims hold.**") && markdown.contains("![variance](variance.png)"));
    assert!(markdown.contains("small \\| thin"), "a bar in a cell is escaped");
    assert!(
        html.contains("1 of 2 claims hold") && html.contains("<svg") && html.contains("prefers-color-scheme: dark")
    );
    assert!(html.contains("What &lt;it&gt; shows &amp; why"));
    for foreign in ["http-equiv", "<script", "<link", "src=\"http"] {
        assert!(!html.contains(foreign), "the page must stand alone: {foreign}");
    }
    for tag in ["table", "tr", "figure", "svg", "details", "h2"] {
        let (open, close) = (
            html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count(),
            html.matches(&format!("</{tag}>")).count(),
        );
        assert_eq!(open, close, "{tag}");
    }
}

#[test]
fn a_folder_has_everything_and_no_leftovers() {
    let folder = minvel_testing::fresh("report");
    report("one").write(&folder).unwrap();
    let mut names: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["report.html", "report.json", "report.md", "variance.png", "variance.svg"]);
    assert_eq!(Report::read(&folder.join("report.json")).unwrap().json(), report("one").json());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn several_reports_make_one() {
    let whole = Report::together("both", "Two", &[report("one"), report("two")]);
    assert_eq!(whole.rows.len(), 6);
    assert_eq!(whole.rows[3].name, "two: slope");
    assert_eq!(whole.figures[1].name, "two-variance");
    assert_eq!((whole.seconds, whole.timings.len()), (25.0, 2));
    assert_eq!(whole.config["two"]["rate"], 1e-3);
    assert_eq!(whole.score(), (2, 4));
}

#[test]
fn lists_of_numbers_stand_on_one_line_and_everything_else_on_its_own() {
    let value = serde_json::json!({
        "list": [1, 2.5, null, "inf"], "words": ["a", "b"], "empty": [], "none": {},
        "rows": [[1, 2], [3]], "objects": [{ "x": 1 }], "name": "n"
    });
    let text = minvel_lab::report::json::text(&value).unwrap();
    assert!(text.contains("\"list\": [1, 2.5, null, \"inf\"]"), "{text}");
    assert!(text.contains("\"words\": [\n    \"a\",\n    \"b\"\n  ]"), "{text}");
    assert!(text.contains("\"rows\": [\n    [1, 2],\n    [3]\n  ]"), "{text}");
    assert!(text.contains("\"empty\": []") && text.contains("\"none\": {}"), "{text}");
    assert!(text.contains("\"objects\": [\n    {\n      \"x\": 1\n    }\n  ]"), "{text}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    let numbers = [0.1f32, -1e-7, 3.0];
    let text = minvel_lab::report::json::text(&numbers).unwrap();
    assert_eq!((text.as_str(), serde_json::from_str::<[f32; 3]>(&text).unwrap()), ("[0.1, -1e-7, 3.0]", numbers));
}
