//! A table of the paper as a picture.

use crate::plot::{Axis, Plot, Ranked, Ranking};
use minvel::estimate::Estimate;

/// Runs behind a number of the paper's tables; the paper states them for table 1 only.
const RUNS: u64 = 10;

/// Our numbers (title, what decides the colour, value) and, below each, the paper's mean and standard deviation over its runs.
pub(in crate::paper) fn beside_paper(
    label: &str,
    values: impl IntoIterator<Item = (String, String, Estimate, Option<(f64, f64)>)>,
) -> Plot {
    let mut entries = vec![];
    for (title, method, value, paper) in values {
        entries.push(Ranked::new(&title, &method, value));
        if let Some((mean, deviation)) = paper {
            let theirs = Estimate { mean, std_error: deviation / (RUNS as f64).sqrt(), count: RUNS };
            entries.push(Ranked::new("the paper's", "paper", theirs));
        }
    }
    Plot::Ranking(Ranking::new("", Axis::linear(label), entries))
}
