//! The table, what is claimed of it, and its picture.
//!
//! **Statement.** −log p of S seeds and D digits varies with both: Var = s²_seeds/S + s²_digits/D, where s²_seeds is the variance
//! of the seeds' means over digits and s²_digits that of the digits' means over seeds. **Error.** What varies with both together
//! is counted twice, a share of about 1/S of the second term: the ± is slightly too large. A difference has ν degrees of
//! freedom by Welch and Satterthwaite, 1/ν = Σ (Var_k/Var)²/ν_k.
//! **Checked by** tests below.

use super::{Likelihoods, Place, Version};
use crate::paper::image_models::{beside_paper, chosen_of};
use crate::plot::Figure;
use crate::report::{Claim, Row};
use minvel::autoencoder::PosteriorKind::{self, Explicit, Implicit};
use minvel::estimate::Estimate;
use minvel::manifold::Space::{self, Euclidean, Sphere};
use std::iter::zip;

/// One number of the table.
pub(super) struct Value {
    pub place: Place,
    pub likelihoods: Likelihoods,
    /// On all test digits, of the first seed.
    pub all: Option<Likelihoods>,
}

/// All numbers of a version.
pub(super) struct Table {
    pub version: Version,
    pub values: Vec<Value>,
}

/// The paper's table: posterior, latent space, mean and standard deviation over 10 runs.
const PAPER: [(PosteriorKind, Space, f64, f64); 8] = [
    (Explicit, Euclidean(8), 96.45, 0.10),
    (Explicit, Sphere(8), 95.47, 0.08),
    (Explicit, Euclidean(32), 90.28, 0.37),
    (Explicit, Sphere(32), 91.32, 0.07),
    (Implicit, Euclidean(8), 95.84, 0.19),
    (Implicit, Sphere(8), 94.72, 0.16),
    (Implicit, Euclidean(32), 90.33, 0.26),
    (Implicit, Sphere(32), 88.81, 0.14),
];
/// Nats by which we may be worse than the paper.
const NEAR: f64 = 1.0;

impl Place {
    fn paper(&self) -> Option<(f64, f64)> {
        let own = PAPER.iter().find(|(posterior, space, ..)| self.is(*posterior, *space));
        own.map(|&(.., mean, deviation)| (mean, deviation))
    }

    fn is(&self, posterior: PosteriorKind, space: Space) -> bool {
        self.posterior == posterior && self.space == Some(space)
    }

    /// What decides its colour.
    pub fn method(&self) -> String {
        format!("{}-{}", self.posterior, self.latent)
    }

    fn title(&self) -> String {
        format!("{} {} {}", self.posterior, self.latent, self.dimension)
    }
}

impl Version {
    fn name(self) -> &'static str {
        match self {
            Version::Corrected => "corrected",
            Version::Replicate => "replicate",
        }
    }
}

/// A number that varies with seeds and with digits.
#[derive(Clone, Copy, Debug)]
struct TwoSources {
    seeds: Estimate,
    /// Only its error counts.
    digits: Estimate,
}

impl TwoSources {
    fn both(self) -> Estimate {
        Estimate { std_error: self.seeds.std_error.hypot(self.digits.std_error), ..self.seeds }
    }

    /// Welch and Satterthwaite's, rounded down.
    fn freedom(self) -> u64 {
        let whole = self.both().std_error.powi(2);
        let share = |e: Estimate| (e.std_error.powi(2) / whole).powi(2) / (e.count as f64 - 1.0);
        (1.0 / (share(self.seeds) + share(self.digits))) as u64
    }
}

impl Likelihoods {
    /// Digit by digit: means over seeds, or else the first seed's.
    fn by_digit(&self) -> &[f64] {
        if self.means.is_empty() { &self.digits } else { &self.means }
    }

    fn sources(&self) -> TwoSources {
        let digits = Estimate::of(self.by_digit().iter().copied());
        TwoSources { seeds: Estimate::of(self.seeds.iter().copied()), digits }
    }

    /// This less another, over the seeds that both have, paired by seed and by digit.
    fn less(&self, other: &Likelihoods) -> TwoSources {
        // digits of the same kind on both sides
        let whole = !self.means.is_empty() && !other.means.is_empty() && self.seeds.len() == other.seeds.len();
        let (own, theirs) = if whole { (&self.means, &other.means) } else { (&self.digits, &other.digits) };
        let difference = |a: &[f64], b: &[f64]| Estimate::of(zip(a, b).map(|(a, b)| a - b));
        TwoSources { seeds: difference(&self.seeds, &other.seeds), digits: difference(own, theirs) }
    }
}

impl Value {
    /// ± of both sources.
    fn nll(&self) -> Estimate {
        self.likelihoods.sources().both()
    }

    /// Standard deviation over seeds.
    fn deviation(&self) -> f64 {
        let Estimate { std_error, count, .. } = self.likelihoods.sources().seeds;
        std_error * (count as f64).sqrt()
    }
}

impl Table {
    fn find(&self, posterior: PosteriorKind, space: Space) -> Option<&Value> {
        self.values.iter().find(|v| v.place.is(posterior, space))
    }

    fn row(&self, name: &str, value: Estimate) -> Row {
        Row::new(&format!("{}: {name}", self.version.name()), value, value.count as usize).unit("nats")
    }

    /// Numbers, then claims.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = vec![];
        for value in &self.values {
            let name = format!("−log p(x), {} (standard deviation {:.2})", value.place.title(), value.deviation());
            let row = self.row(&name, value.nll());
            rows.push(match value.place.paper() {
                Some((mean, deviation)) => row.paper(mean, Some(deviation)),
                None => row,
            });
            if let Some(all) = &value.all {
                let name = format!("−log p(x), {}, first seed, all {} digits", value.place.title(), all.digits.len());
                let row = Row { seeds: 1, ..self.row(&name, Estimate::of(all.digits.iter().copied())) };
                rows.push(
                    value.place.paper().map_or(row.clone(), |(mean, deviation)| row.paper(mean, Some(deviation))),
                );
                rows.push(self.harder(value, all));
            }
        }
        let mut dimensions: Vec<usize> = self.values.iter().map(|v| v.place.dimension).collect();
        dimensions.dedup();
        rows.extend(dimensions.iter().flat_map(|&n| self.claims(n)));
        rows
    }

    /// How much harder all digits are than those of the table, for the first seed and the same chains.
    fn harder(&self, value: &Value, all: &Likelihoods) -> Row {
        let (total, chosen) = (all.digits.len(), value.likelihoods.digits.len());
        let mean = |digits: &[f64]| digits.iter().sum::<f64>() / digits.len() as f64;
        let own: Vec<f64> = chosen_of(total, chosen).map(|k| all.digits[k]).collect();
        let name = format!("−log p(x), {}, all {total} digits minus the {chosen} of the table", value.place.title());
        Row { seeds: 1, ..self.row(&name, Estimate::single(mean(&all.digits) - mean(&own))) }
    }

    fn claims(&self, dimension: usize) -> Vec<Row> {
        let mut rows = vec![];
        if let Some(ours) = self.find(Implicit, Sphere(dimension)) {
            for other in self.values.iter().filter(|v| v.place.dimension == dimension && v.place != ours.place) {
                let (title, than) = (ours.place.title(), other.place.title());
                let (name, claim) = (format!("{title} minus {than}"), format!("{title} is better than {than}"));
                rows.push(self.below(&name, &ours.likelihoods, &other.likelihoods, &claim));
            }
            if let Some((mean, deviation)) = ours.place.paper() {
                let title = ours.place.title();
                rows.push(
                    self.row(&format!("−log p(x), {title}, beside the paper's"), ours.nll())
                        .paper(mean, Some(deviation))
                        .claim(&format!("{title} is within 1 nat of the paper, or better"), Claim::Below(mean + NEAR)),
                );
            }
        }
        if dimension == 32 {
            let pair = (self.find(Explicit, Euclidean(32)), self.find(Explicit, Sphere(32)));
            if let (Some(flat), Some(round)) = pair {
                let name = "explicit euclidean 32 minus explicit sphere 32";
                let claim = "explicit sphere loses to explicit euclidean at 32";
                rows.push(self.below(name, &flat.likelihoods, &round.likelihoods, claim));
            }
        }
        rows
    }

    /// A difference, with the claim that it is negative.
    fn below(&self, name: &str, one: &Likelihoods, other: &Likelihoods, claim: &str) -> Row {
        let difference = one.less(other);
        let row = self.row(&format!("−log p(x), {name}"), difference.both());
        row.significantly_below(claim, difference.freedom())
    }

    /// Ours and the paper's, one below another.
    pub fn figure(&self) -> Figure {
        let entry = |v: &Value| (v.place.title(), v.place.method(), v.nll(), v.place.paper());
        let plot = beside_paper("−log p(x) of test digits (nats)", self.values.iter().map(entry));
        let caption = format!(
            "Table `{}`: −log p(x) of each model and, below it, the paper's; whiskers are 95 % intervals: ours of both \
             seeds and test digits, of which the digits' part, nearly all of it, is common to all cells; the paper's of its \
             runs alone.",
            self.version.name()
        );
        Figure::new(&format!("table-{}", self.version.name()), &caption, plot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a_s + b_d + c_sd for S seeds and D digits, all normal with these deviations.
    fn made(seed: u64, deviations: [f64; 3]) -> Likelihoods {
        use minvel_engine::random::{Draw, Key, Stream};
        let mut z = Stream::new(Key::new(seed, 0), 0).samples(Draw::Normal);
        let mut next = |deviation: f64| deviation * z.next().expect("there is no end");
        let [a, b, c] = deviations;
        let digits: Vec<f64> = (0..40).map(|_| next(b)).collect();
        let row = |next: &mut dyn FnMut(f64) -> f64| {
            let own = next(a);
            digits.iter().map(|digit| -(own + digit + next(c))).collect::<Vec<f64>>()
        };
        Likelihoods::of(&(0..8).map(|_| row(&mut next)).collect::<Vec<_>>())
    }

    /// Mean over repetitions of (value/±)², with its standard error.
    fn square(deviations: [f64; 3], z: impl Fn(&Likelihoods) -> f64) -> Estimate {
        Estimate::of((1..=2000).map(|seed| z(&made(seed, deviations)).powi(2)))
    }

    /// The law of the crossed table: the ± covers the truth, 0, as often as it says (by a little more, 1.33 with 8 seeds of
    /// which the error is estimated). The twin with the seeds' error alone, as it was, must not: digits vary more than seeds.
    #[test]
    fn errors_hold_seeds_and_digits() {
        let of = |e: Estimate| e.mean / e.std_error;
        let both = square([0.2, 10.0, 1.0], |l| of(l.sources().both()));
        let seeds = square([0.2, 10.0, 1.0], |l| of(l.sources().seeds));
        println!("z²: both sources {both}, seeds alone {seeds}");
        // 39 degrees of freedom: 39/37
        assert!((both.mean - 39.0 / 37.0).abs() < 4.0 * both.std_error);
        assert!(seeds.mean > 100.0, "the twin must fail");
    }

    /// Digits that are hard are hard for both: paired, they cancel; the error of the seeds remains.
    #[test]
    fn differences_are_paired_by_digit() {
        let logs = |shift: f64| -> Vec<Vec<f64>> {
            (0..3)
                .map(|s| (0..50).map(|d| -(90.0 + d as f64 + shift + 0.1 * (s * s) as f64 * shift)).collect())
                .collect()
        };
        let (one, other) = (Likelihoods::of(&logs(0.0)), Likelihoods::of(&logs(1.0)));
        let difference = one.less(&other);
        assert!((difference.both().mean + 1.0 + 0.5 / 3.0).abs() < 1e-12);
        assert!(difference.digits.std_error < 1e-12, "the digits cancel");
        assert!((difference.both().std_error - difference.seeds.std_error).abs() < 1e-12);
        assert_eq!(difference.freedom(), 2);
        // the twin: alone, each varies with the digit
        assert!(one.sources().both().std_error > 1.0);
        // a run of an earlier version has the first seed's digits only
        let earlier = Likelihoods { means: vec![], ..one.clone() };
        assert_eq!(earlier.by_digit(), &one.digits[..]);
        assert!(earlier.less(&other).digits.std_error < 1e-12);
    }
}
