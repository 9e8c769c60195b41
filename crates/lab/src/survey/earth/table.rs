//! What the splits of a set say together.

use super::set::Set;
use super::{Outcome, View};
use crate::plot::{Axis, Figure, Plot, Ranked, Ranking};
use crate::report::{Claim, Row};
use minvel::estimate::{Estimate, format};

/// One of the other views of an outcome.
type ViewOf = fn(&Outcome) -> Option<&View>;

/// Standard errors of a difference that count as none.
const SAME: f64 = 2.0;
/// Seconds that a fit may take.
const PATIENCE: f64 = 120.0;
/// The error of log Z that is wanted.
const LOG_Z_ERROR: f64 = 0.1;
/// Share of repeated rows that is worth a warning.
const MANY: f64 = 0.02;

/// A set and its splits.
pub(super) struct Table {
    pub set: &'static Set,
    pub splits: Vec<Outcome>,
}

/// The mean over splits; with one of them, what its rows say.
fn over(splits: impl Iterator<Item = Estimate>) -> Estimate {
    match splits.collect::<Vec<_>>().as_slice() {
        [single] => *single,
        several => Estimate::across(several),
    }
}

impl Table {
    fn each(&self, of: impl Fn(&Outcome) -> Estimate) -> Estimate {
        over(self.splits.iter().map(of))
    }

    fn numbers(&self, of: impl Fn(&Outcome) -> f64) -> Estimate {
        Estimate::of(self.splits.iter().map(of))
    }

    fn largest(&self, of: impl Fn(&Outcome) -> f64) -> Estimate {
        Estimate::single(self.splits.iter().map(of).fold(f64::NEG_INFINITY, f64::max))
    }

    /// Names and methods of the densities to compare with.
    fn baselines(&self) -> Vec<(usize, &str, &str)> {
        let first = &self.splits[0].evaluation.baselines;
        first.iter().enumerate().map(|(k, b)| (k, b.name.as_str(), b.method.as_str())).collect()
    }

    fn row(&self, name: &str, value: Estimate) -> Row {
        Row::new(&format!("{}: {name}", self.set.title), value, self.splits.len())
    }

    fn own(&self) -> Estimate {
        self.each(|s| s.evaluation.test_nll)
    }

    pub fn rows(&self) -> Vec<Row> {
        let mut rows = vec![self.score()];
        rows.push(self.row("NLL of its kernels alone", self.each(|s| s.evaluation.kernels_nll)).unit("nats"));
        for (k, name, _) in self.baselines() {
            let nll = self.each(|s| s.evaluation.baselines[k].nll);
            rows.push(self.row(&format!("NLL, {name}"), nll).unit("nats"));
        }
        let gain = self.numbers(|s| s.evaluation.test_nll.mean - s.evaluation.kernels_nll.mean);
        rows.push(self.row("NLL minus that of its kernels alone", gain).unit("nats"));
        rows.extend(self.differences());
        rows.push(self.row("NLL of validation rows", self.numbers(|s| s.validation_nll)).unit("nats"));
        rows.push(self.row("share t of the correction", self.numbers(|s| s.share)));
        rows.push(self.row("log Z", self.numbers(|s| s.log_z.mean)));
        let error = self.row("largest standard error of log Z", self.largest(|s| s.log_z.std_error));
        let claim = "log Z is known to less than 0.1 in every split";
        rows.push(if self.set.below { error.claim(&self.said(claim), Claim::Below(LOG_Z_ERROR)) } else { error });
        let efficiency = Estimate::single(-self.largest(|s| -s.efficiency).mean);
        rows.push(self.row("least effective share of the draws behind log Z", efficiency));
        let p_value = Estimate::single(-self.largest(|s| -s.evaluation.goodness.p_value).mean);
        rows.push(self.row("least p-value of the tests of fit", p_value));
        rows.extend(self.repeats());
        rows.extend(self.views());
        let seconds = self.row("seconds of the longest fit", self.largest(|s| s.seconds)).unit("s");
        rows.push(seconds.claim(&self.said("each fit takes less than two minutes"), Claim::Below(PATIENCE)));
        rows
    }

    fn said(&self, claim: &str) -> String {
        format!("{}: {claim}", self.set.title)
    }

    fn score(&self) -> Row {
        let own = self.own();
        let row = self.row("NLL", own).unit("nats");
        let row = match self.set.published {
            Some((value, error)) => row.paper(value, Some(error)),
            None => row,
        };
        match self.set.limit {
            Some(limit) => {
                let limit_text = format::plain(limit);
                let claim = self.said(&format!("the held-out score is at most {limit_text} nats"));
                row.decided(&claim, &format!("mean ≤ {limit_text}"), own.mean <= limit)
            }
            None => row,
        }
    }

    /// The model less each of the others, on the same rows.
    fn differences(&self) -> Vec<Row> {
        let mut rows = vec![];
        for (k, name, method) in self.baselines() {
            let difference = self.each(|s| s.evaluation.baselines[k].difference);
            let row = self.row(&format!("NLL minus that of: {name}"), difference).unit("nats");
            if method != "kde" {
                rows.push(row);
                continue;
            }
            let claim = self.said("never worse than the kernel density with cross-validated bandwidth");
            let rule = format!("mean difference ≤ {SAME} standard errors");
            rows.push(row.decided(&claim, &rule, difference.mean <= SAME * difference.std_error));
            if self.set.below {
                let rule = Claim::SurelyBelow { limit: 0.0, sigmas: SAME };
                let row = self.row("NLL minus that of the kernel density, significance", difference).unit("nats");
                rows.push(row.claim(&self.said("below the kernel density"), rule));
            }
        }
        rows
    }

    fn repeats(&self) -> [Row; 3] {
        let first = &self.splits[0];
        let leaked = self.numbers(|s| s.leaked_share) * 100.0;
        [
            self.row("rows", Estimate::exact(first.rows as f64)),
            self.row("distinct rows", Estimate::exact(first.distinct_rows as f64)),
            self.row("test rows that repeat a training row", leaked).unit("%"),
        ]
    }

    /// Scores of kernels where repeats stay together, and where near rows do.
    fn views(&self) -> Vec<Row> {
        let mut rows = vec![];
        let views: [(&str, ViewOf); 2] =
            [("repeats kept together", |s| s.distinct.as_ref()), ("near rows kept together", |s| s.blocked.as_ref())];
        for (name, of) in views {
            let all: Vec<&View> = self.splits.iter().filter_map(of).collect();
            let Some(first) = all.first() else { continue };
            let name = match first.distance.as_str() {
                "" => name.to_string(),
                distance => format!("{name} ({distance} in the first split)"),
            };
            let nll = over(all.iter().map(|view| view.nll));
            rows.push(self.row(&format!("NLL of kernels, {name}"), nll).unit("nats"));
            let gain = over(all.iter().map(|view| view.gain));
            rows.push(self.row(&format!("NLL of kernels minus that of the kernel density, {name}"), gain).unit("nats"));
        }
        rows
    }

    /// That the set does not rank models, where it does not.
    pub fn warning(&self) -> Option<String> {
        let shares = || self.splits.iter().map(|s| 100.0 * s.leaked_share);
        let (least, most) = (shares().fold(f64::INFINITY, f64::min), shares().fold(0.0, f64::max));
        let Outcome { rows, distinct_rows, .. } = self.splits[0];
        let strength = match most {
            most if most > 50.0 => "the score is unbounded below and does not rank models",
            most if most > 100.0 * MANY => "the score rewards memorisation",
            _ => return None,
        };
        let title = self.set.title;
        Some(format!(
            "{title}: {distinct_rows} of {rows} rows are distinct, and {least:.0}–{most:.0} % of the test rows repeat a \
             training row: {strength}."
        ))
    }

    pub fn figure(&self) -> Figure {
        let mut entries = vec![Ranked::new("minvel fit", "model", self.own())];
        entries.push(Ranked::new("its kernels alone", "kernels", self.each(|s| s.evaluation.kernels_nll)));
        for (k, name, method) in self.baselines().into_iter().filter(|b| b.2 != "uniform") {
            entries.push(Ranked::new(name, method, self.each(|s| s.evaluation.baselines[k].nll)));
        }
        if let Some((mean, std_error)) = self.set.published {
            let value = Estimate { mean, std_error, count: 5 };
            entries.push(Ranked::new("flow matching (published)", "published", value));
        }
        let title = self.set.title;
        let count = match self.splits.len() {
            1 => "One split".to_string(),
            several => format!("Means over {several} splits"),
        };
        let caption = format!(
            "Held-out negative log-likelihood per row, {title}, in nats: lower is better. {count} with 95 % normal \
             intervals; the published ± is taken as a standard error."
        );
        let axis = Axis::linear("negative log-likelihood per test row (nats)");
        Figure::new(self.set.name, &caption, Plot::Ranking(Ranking::new(title, axis, entries)))
    }
}
