//! Learning curves: the objective on what is learnt from and on what is held back, for each seed.
//!
//! **Checked by** tests/lab/plot_fields.rs.

use super::axis::{Axis, Scale};
use super::lines::Lines;
use super::series::{Dash, Series};

/// How one seed learnt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// (step, objective) on the training data.
    pub train: Vec<(f64, f64)>,
    /// (step, objective) on the validation data.
    pub validation: Vec<(f64, f64)>,
    /// The step whose parameters were kept.
    pub kept: Option<f64>,
}

/// Share of the steps whose numbers a linear axis need not show: the first ones are often very large.
const START: f64 = 0.03;

/// The curves of all seeds; `best` is the one whose model is kept, the others are pale. `objective` is the label of the
/// upward axis, with its unit.
pub fn curves(title: &str, objective: &str, courses: &[Course], best: Option<usize>, scale: Scale) -> Lines {
    let mut y = Axis { scale, ..Axis::linear(objective) };
    if scale == Scale::Linear {
        y.range = range(courses);
    }
    let mut lines = Lines { markers: false, ..Lines::new(title, Axis::linear("step"), y) };
    let others: Vec<&Course> = (0..courses.len()).filter(|i| Some(*i) != best).map(|i| &courses[i]).collect();
    for (k, course) in others.iter().enumerate() {
        let name = |n: &str| if k == 0 { format!("{n}, other seeds") } else { String::new() };
        lines = lines
            .with(Series::new(&name("training"), "data").paled().dashed(Dash::Dashed).values(course.train.clone()));
        lines = lines.with(Series::new(&name("validation"), "model").paled().values(course.validation.clone()));
    }
    if let Some(course) = best.and_then(|i| courses.get(i)) {
        lines = lines.with(Series::new("training", "data").dashed(Dash::Dashed).values(course.train.clone()));
        lines = lines.with(Series::new("validation", "model").values(course.validation.clone()));
        if let Some(step) = course.kept {
            lines = lines.upright(step, &format!("kept: step {step}"));
        }
    }
    lines.series.retain(|s| !s.points.is_empty());
    lines
}

/// From the lowest number to the highest one after the start.
fn range(courses: &[Course]) -> Option<[f64; 2]> {
    let all = || courses.iter().flat_map(|c| c.train.iter().chain(&c.validation)).filter(|p| p.1.is_finite());
    let last = all().map(|p| p.0).fold(0.0, f64::max);
    let low = all().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let high = all().filter(|p| p.0 > START * last).map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    (low < high).then_some([low - 0.05 * (high - low), high + 0.05 * (high - low)])
}
