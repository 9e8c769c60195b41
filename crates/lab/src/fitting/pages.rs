//! The report of a fit: numbers, figures, what was inferred, and warnings.

use super::folder::FitSummary;
use crate::plot::density::FigureStyle;
use crate::plot::learning::Course;
use crate::plot::{Axis, Bearings, Figure, Plot, Ranked, Ranking, Scale, density, learning};
use crate::report::{Machine, Report, Row, Timing, Versions};
use crate::table::{Coordinates, Factor, Layout, Units, is_numbered};
use minvel::Error;
use minvel::density::Kind;
use minvel::estimate::Estimate;
use minvel::fit::{Baseline, Coverage, Evaluation, Ingredient, Model, Tried, Uncertainty};
use minvel::manifold::Space;
use minvel::train::Context;

/// Rows up to which there is a map of the error of log p, which takes as long as 30 coarse maps; `score --error` says it of any number.
const MAPPED: usize = 20_000;
/// Samples for pair plots.
const SAMPLES: usize = 2_000;

/// How figures of points with these coordinates look.
pub fn look(title: &str, coordinates: &Coordinates) -> FigureStyle {
    let factors = coordinates.factors().unwrap_or_default();
    FigureStyle {
        title: title.to_string(),
        names: factors.iter().flat_map(shown).collect(),
        earth: factors.iter().any(Factor::is_place),
        bearings: bearings(coordinates, &factors),
        ..FigureStyle::default()
    }
}

/// How directions are named: as a compass does, or in the units of the data where these are no angles.
fn bearings(coordinates: &Coordinates, factors: &[Factor]) -> Bearings {
    match (coordinates.periods.first(), coordinates.units) {
        _ if factors.iter().any(Factor::is_bearing) => Bearings::Compass,
        (Some(Some(turn)), _) => Bearings::Period { turn: *turn },
        (_, Some(Units::Hours)) => Bearings::Hours,
        _ => Bearings::Degrees,
    }
}

/// Names of the columns whose numbers figures show of a factor; empty where they show others than the file holds.
fn shown(factor: &Factor) -> Vec<String> {
    let own = |count: usize| vec![String::new(); count];
    let names = || factor.columns.iter().map(|name| if is_numbered(name) { String::new() } else { name.clone() });
    match (factor.space, factor.layout) {
        (Space::Sphere(2) | Space::Projective(2), Layout::LatLon) => names().rev().collect(), // longitude is drawn to the right
        (Space::Sphere(2) | Space::Projective(2), Layout::Xyz) => own(2),
        (Space::Sphere(1) | Space::Projective(1), Layout::Xyz) => own(1),
        (Space::Hyperbolic(n), Layout::Hyperboloid) => own(n),
        (Space::So3, _) => own(4),
        _ => names().collect(),
    }
}

/// The density with its data.
pub fn density_figures(
    model: &Model,
    data: &[f64],
    look: &FigureStyle,
    context: &Context,
) -> Result<Vec<Figure>, Error> {
    let rows = model.rows_of_draws(SAMPLES);
    let draw = || model.sample(SAMPLES, model.settings().seed + 2, context);
    let samples = context.stage("samples", rows, "rows", draw)?.points;
    density::figures(model, data, &samples, look, context)
}

/// The density with its data, scores, and learning curves.
pub(super) fn figures(
    summary: &FitSummary,
    model: &Model,
    data: &[f64],
    look: &FigureStyle,
    context: &Context,
) -> Result<Vec<Figure>, Error> {
    let mut figures = density_figures(model, data, look, context)?;
    if model.kernels().centres() <= MAPPED {
        let known = Uncertainty::of(model, context)?;
        let errors =
            |points: &[f64]| context.stage("uncertainty", 0, "points", || known.errors(points, &context.quiet()));
        figures.extend(density::error_figure(&**model.manifold(), data, errors, look)?);
    }
    figures.push(ranking(summary));
    figures.extend(curves(summary));
    figures.extend(super::margins::margin_figures(&summary.data.coordinates, data));
    Ok(figures)
}

/// What the model gains over each alternative, row by row. The uniform law is far behind wherever there is anything to
/// learn: it does not choose the axis.
fn ranking(summary: &FitSummary) -> Figure {
    let gain = |b: &Baseline| b.difference * -1.0;
    let entries = summary.evaluation.baselines.iter().map(|b| Ranked::new(&b.name, &b.method, gain(b))).collect();
    let close = summary.evaluation.baselines.iter().filter(|b| b.method != "uniform");
    let ends: Vec<f64> = close.map(|b| gain(b).interval(1.96)).flat_map(|(low, high)| [low, high]).collect();
    let (low, high) = ends.iter().filter(|x| x.is_finite()).fold((0f64, 0f64), |(l, h), x| (l.min(*x), h.max(*x)));
    let margin = 0.08 * (high - low);
    let x = Axis::linear("gain of the model over … (nats per held-out row; positive: the model is better)");
    let x = if high > low { x.over(low - margin, high + margin) } else { x };
    let caption = "Paired differences of held-out scores with 95 % intervals; the numbers have ± one \
                   standard error. An arrow marks a difference beyond the axis.";
    let ranking = Ranking { reference: Some(0.0), ..Ranking::new(&summary.data.file, x, entries) };
    Figure::new("scores", caption, Plot::Ranking(ranking))
}

fn curves(summary: &FitSummary) -> Option<Figure> {
    let curves = &summary.history.curves;
    let seeds = curves.first()?.validation.len();
    let line = |seed: usize, of: fn(&minvel::fit::Curve) -> &Vec<f64>| -> Vec<(f64, f64)> {
        curves.iter().map(|c| (c.step as f64, of(c)[seed])).filter(|p| p.1.is_finite()).collect()
    };
    let course = |seed: usize| Course {
        train: line(seed, |c| &c.train),
        validation: line(seed, |c| &c.validation),
        kept: summary.history.best_step.get(seed).map(|s| *s as f64),
    };
    let courses: Vec<Course> = (0..seeds).map(course).collect();
    let score_course = |seed: usize| Course { train: vec![], validation: line(seed, |c| &c.score), ..course(seed) };
    let last = |seed: &usize| curves.iter().map(|c| c.validation[*seed]).fold(f64::INFINITY, f64::min);
    let best = (0..seeds).min_by(|a, b| last(a).total_cmp(&last(b)));
    let objective = learning::curves("Training objective", "objective", &courses, best, Scale::Linear);
    let score = learning::curves(
        "Held-out score",
        SCORE,
        &(0..seeds).map(score_course).collect::<Vec<_>>(),
        best,
        Scale::Linear,
    );
    let plots = vec![Plot::Lines(score.level(0.0, "kernels alone")), Plot::Lines(objective)];
    let caption = "The correction while it was trained, one curve per seed. Left: how much it changes the score of the \
                   validation rows, at full strength; below zero it helps. Right: the objective on training and validation \
                   rows, by which each seed chose the step it keeps.";
    Some(Figure::new("learning", caption, Plot::Row { plots }))
}

/// What the score of a correction measures.
const SCORE: &str = "change of validation NLL (nats)";

/// What the model is made of.
pub fn model_in_words(summary: &FitSummary) -> String {
    let (centres, rows) = (summary.centres, summary.procedure.fitted_rows());
    let part =
        if centres < rows { format!("{centres} clusters of {rows} training rows") } else { format!("{centres} rows") };
    let plain = summary.kernels.iter().any(|family| matches!(family.kind, Kind::Natural { .. }));
    let base = format!("{} on {part}", if plain { "a plain kernel" } else { "kernels" });
    let used: Vec<&Tried> =
        summary.history.tried.iter().filter(|tried| tried.goal.is_some() && tried.weight > 0.0).collect();
    let FitSummary { share, seeds, partition, .. } = summary;
    match used[..] {
        [] if *share == 0.0 => format!("{base}, without correction"),
        [] => format!("{base}, corrected by {share} of the mean of {seeds} networks; log Z: {}", partition.method),
        [only] if only.weight == 1.0 => {
            format!("{base}, corrected by {share} of the mean of {seeds} networks; log Z: {}", partition.method)
        }
        _ => {
            let parts: Vec<String> =
                used.iter().map(|tried| format!("{:.0} % {}", 100.0 * tried.weight, tried.name)).collect();
            let rest = 1.0 - used.iter().map(|tried| tried.weight).sum::<f64>();
            format!("{:.0} % {base}, {}; log Z: {}", 100.0 * rest, parts.join(", "), partition.method)
        }
    }
}

/// What kernels and energies score alone, and what energies of minimum velocity add; a line for each.
pub fn ingredients_in_words(evaluation: &Evaluation) -> Vec<String> {
    let alone = |part: &Ingredient| {
        format!(
            "{} alone: {}; minvel minus it {}, weight {:.1} %",
            part.name,
            part.nll,
            part.difference,
            100.0 * part.weight
        )
    };
    let mut lines: Vec<String> = evaluation.ingredients.iter().map(alone).collect();
    lines.extend(evaluation.velocity.map(|change| {
        let adds = -change;
        match adds.mean == 0.0 {
            true => "energies of minimum velocity add nothing: the validation rows gave them no weight".to_string(),
            false => format!("energies of minimum velocity add {adds} nats per row"),
        }
    }));
    lines
}

/// All of it as a report.
pub(super) fn report(summary: &FitSummary, config: serde_json::Value, quick: bool, figures: Vec<Figure>) -> Report {
    let evaluation = &summary.evaluation;
    // the networks are parts of one model: errors are those of its test rows, not a scatter over seeds
    let row = |name: &str, estimate: Estimate, unit: &str| Row::new(name, estimate, 1).unit(unit);
    let plain = |name: &str, value: f64| Row::new(name, Estimate::exact(value), 1);
    let score = summary.procedure.score();
    let mut rows = vec![
        row(score, evaluation.test_nll, "nats"),
        row(&format!("{score} of the kernels without correction"), evaluation.kernels_nll, "nats"),
    ];
    for b in &evaluation.baselines {
        rows.push(row(&format!("{score}, {}", b.name), b.nll, "nats"));
        rows.push(row(&format!("minvel minus {}, paired", b.name), b.difference, "nats"));
    }
    for part in &evaluation.ingredients {
        rows.push(row(&format!("{score}, {} alone", part.name), part.nll, "nats"));
        rows.push(row(&format!("minvel minus {} alone, paired", part.name), part.difference, "nats"));
        rows.push(plain(&format!("weight of {}", part.name), part.weight));
    }
    rows.extend(evaluation.velocity.map(|change| row("what energies of minimum velocity add", -change, "nats")));
    rows.push(row("log Z", summary.log_z, "nats"));
    rows.extend(evaluation.below_uniform().map(|nats| row("nats below the uniform density", nats, "nats")));
    let fitness = &evaluation.goodness;
    if fitness.p_value.is_finite() {
        rows.push(plain("p-value of the tests of fit", fitness.p_value));
        let parts = [
            ("kernel Stein test on all scales", &fitness.stein),
            ("rows against draws on all scales", &fitness.two_sample),
        ];
        rows.extend(
            parts.iter().filter_map(|(name, test)| Some(plain(&format!("p-value, {name}"), test.as_ref()?.p_value))),
        );
        rows.extend(fitness.mmd.map(|mmd| Row::new("MMD² between rows and draws", mmd, 1)));
    }
    for Coverage { mass, share } in &evaluation.coverage {
        rows.push(Row::new(&format!("share of rows in the region that should hold {} %", 100.0 * mass), *share, 1));
    }
    if let Some(leak) = &summary.leak {
        let distance = summary.data.coordinates.written(leak.distance);
        rows.push(plain(&format!("share of test rows within {distance} of a training row"), leak.share));
        rows.push(plain("the same of independent rows of a smooth density", leak.expected));
    }
    if let Some(blocked) = &summary.blocked {
        let name = format!("{score} where rows within {} stay together, kernels alone", blocked.distance);
        rows.push(row(&name, blocked.evaluation.test_nll, "nats"));
        for b in blocked.evaluation.baselines.iter().filter(|b| b.method == "kde") {
            rows.push(row(&format!("the same minus {}, paired", b.name), b.difference, "nats"));
        }
    }
    rows.extend([
        plain("rows", summary.rows as f64),
        plain("distinct rows", summary.distinct_rows as f64),
        plain("rows that the kernels stand on", summary.centres as f64),
        plain("share of test rows that repeat a training row", summary.leaked_share),
        plain("share of the correction", summary.share),
    ]);
    let mut notes = vec![
        format!("Data: {}; {}.", summary.data.file, summary.data.coordinates),
        format!("Rows: {}.", summary.procedure),
        format!("Model: {}.", model_in_words(summary)),
    ];
    if summary.data.coordinates.has_axes() {
        notes.push(
            "Axes: x and −x are the same point. Densities integrate to one over one half of the circle or sphere, per radian or \
             steradian; samples give the end whose last coordinate is positive."
                .to_string(),
        );
    }
    if !summary.data.unused.is_empty() {
        notes.push(format!("Columns not used: {}.", summary.data.unused_columns()));
    }
    notes.extend(ingredients_in_words(evaluation).into_iter().map(|line| format!("{line}.")));
    notes.extend(summary.data.guesses.iter().map(|g| format!("Inferred: {g}.")));
    notes.extend(summary.warnings.iter().map(|w| format!("Warning: {w}")));
    Report {
        experiment: format!("fit {}", summary.data.file),
        about: format!("A normalised density on {}, learnt from data", summary.data.coordinates.manifold),
        source: summary.data.file.clone(),
        config,
        quick,
        device: summary.device.clone(),
        seconds: summary.seconds,
        timings: vec![Timing { name: "fit".to_string(), seconds: summary.seconds }],
        machine: Machine::here(),
        versions: Versions::default(),
        revision: "unknown".to_string(),
        rows,
        figures,
        notes,
    }
}
