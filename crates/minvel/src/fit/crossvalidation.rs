//! The score of a procedure on few rows: repeated cross-validation.
//!
//! **Statement.** NLL = −mean over rows and repeats of log p₋(x), p₋ learnt without the fold of x. With J = folds × repeats,
//! s² the variance of the J fold means and ρ = (rows of a fold)/(rows that are left): σ² = (1/J + ρ)·s², and at least that of the
//! mean over rows. **Source.** nadeau2003inference (the term ρ: folds share most of their training rows).
//! **Conventions.** Rows are dealt out anew for each repeat; every baseline is learnt from the same rows as the model.
//! **Error.** The score is that of models of a few rows less than the one that is kept.
//! **Checked by** tests/densities/few.rs.

use super::evaluation::{Baseline, COMPARED, Evaluation};
use super::few::SIGMAS;
use super::fitness::{Coverage, Draws, Fitness, share_inside};
use super::leak::Leak;
use super::model::{History, Model};
use super::outliers::Reference;
use super::procedure::{Procedure, Record, Trial};
use super::settings::{FitSettings, Goal};
use super::split::folds_of;
use crate::density::{Sample, TestPlan};
use crate::estimate::Estimate;
use crate::stream::subseed;
use crate::train::{Context, Fingerprint, lists};
use crate::{Error, Manifold};
use minvel_engine::State;
use std::sync::Arc;

/// Rows for which there is one repeat; fewer rows, more repeats.
const ONCE: usize = 1000;
/// Folds that are enough to give a correction up.
const SCREENED: usize = 2;
/// Draws of the model of a fold, at least: those of ten folds are as many as levels have elsewhere.
const DRAWS: usize = 1000;

/// What is left out together, and what was said about it.
#[derive(Clone)]
struct Fold {
    rows: Vec<usize>,
    /// log p of the model,
    own: Vec<f64>,
    /// of its kernels alone,
    kernels: Vec<f64>,
    /// and of each baseline.
    baselines: Vec<Vec<f64>>,
    /// grad log p, per unit of the data,
    scores: Vec<f64>,
    /// as many draws of the model, and the levels of the rows; none of further repeats.
    draws: Vec<f64>,
    levels: Vec<f64>,
    /// Error of log Z.
    error: f64,
}

impl Fold {
    /// Its numbers under their names.
    fn lists(&self) -> State<f64> {
        let names: Vec<String> = (0..self.baselines.len()).map(|k| format!("baseline-{k}")).collect();
        let baselines = names.iter().map(String::as_str).zip(self.baselines.iter().map(Vec::as_slice));
        let own = [
            ("own", &self.own),
            ("kernels", &self.kernels),
            ("scores", &self.scores),
            ("draws", &self.draws),
            ("levels", &self.levels),
        ];
        lists(own.map(|(name, values)| (name, values.as_slice())).into_iter().chain(baselines))
    }
}

/// A cross-validation of a data set.
struct CrossValidation<'a> {
    manifold: &'a Arc<dyn Manifold>,
    settings: &'a FitSettings,
    rows: &'a Sample<'a>,
    context: &'a Context<'a>,
    /// Name and method of each baseline.
    names: Vec<(String, String)>,
}

/// Scores the procedure by cross-validation and applies it to all rows.
pub(super) fn learn(
    manifold: &Arc<dyn Manifold>,
    settings: &FitSettings,
    sample: &Sample,
    context: &Context,
) -> Result<(Model, Record), Error> {
    let m = manifold.ambient();
    let rows = sample.rows(m);
    let count = settings.few.folds.min(rows);
    let repeats = if count == rows { 1 } else { settings.few.repeats.min(ONCE.div_ceil(rows)) };
    let mut this = CrossValidation { manifold, settings, rows: sample, context, names: vec![] };
    let parts = |repeat: u64| folds_of(sample, m, count, settings.seed.wrapping_add(repeat << 32));
    // Groups may fill fewer folds.
    let count = parts(0).len();
    let parts: Vec<Vec<usize>> = (0..repeats as u64).flat_map(parts).collect();
    let all = context.stage("cross-validation", parts.len(), "folds", || {
        let mut all = vec![];
        for part in parts {
            all.push(this.kept(all.len(), part, all.len() < count)?);
            context.worked(1);
        }
        Ok(all)
    });
    let mut all = all?;
    let (mut model, mut history) = (Model::of_few(manifold, settings, sample, context)?, History::default());
    let mut procedure = Procedure::CrossValidation { rows, folds: count, repeats, correction: Trial::None };
    if settings.objective != Goal::None && rows >= settings.few.correction {
        procedure = Procedure::CrossValidation { rows, folds: count, repeats, correction: Trial::NotBetter };
        if let Some(corrected) = this.corrected(&all[..count])? {
            (model, history) = Model::corrected_of_few(manifold, settings, sample, &context.within("all"))?;
            all = corrected;
            procedure = Procedure::CrossValidation { rows, folds: count, repeats: 1, correction: Trial::Used };
        }
    }
    let evaluation = this.evaluation(&all, &model, count)?;
    let first = all[..count].iter();
    let (order, logs): (Vec<usize>, Vec<f64>) =
        first.flat_map(|fold| fold.rows.iter().copied().zip(fold.own.iter().copied())).unzip();
    model.reference = Reference::new(&sample.select(&order, m), &logs);
    let leak = Leak::of(manifold, settings, sample, None, context)?;
    Ok((model, Record { history, evaluation, procedure, leaked_share: 0.0, leak, split: None }))
}

impl CrossValidation<'_> {
    fn select(&self, rows: &[usize]) -> Sample<'static> {
        self.rows.select(rows, self.manifold.ambient())
    }

    /// How many rows there are.
    fn count(&self) -> usize {
        self.rows.rows(self.manifold.ambient())
    }

    /// The rows that are not in a fold, which stands in order.
    fn others(&self, rows: &[usize]) -> Vec<usize> {
        (0..self.count()).filter(|i| rows.binary_search(i).is_err()).collect()
    }

    /// A fold by its number, from the context's checkpoint if there is one.
    fn kept(&mut self, number: usize, rows: Vec<usize>, with_scores: bool) -> Result<Fold, Error> {
        let numbers: Vec<f64> = rows.iter().map(|&i| i as f64).collect();
        let groups: Vec<f64> = self.rows.groups().iter().map(|group| (*group).into()).collect();
        let inputs = Fingerprint::new().and(self.rows.points()).and(self.rows.weights()).and(&groups).and(&numbers);
        let make = || self.fold(&rows, with_scores).map(|(fold, names)| (fold.lists(), (names, fold.error)));
        let (kept, (names, error)) = self.context.kept(&format!("left-out-{number}"), inputs, make)?;
        let list = |name: &str| kept.get(name).unwrap_or_default().to_vec();
        let baselines = (0..names.len()).map(|k| list(&format!("baseline-{k}"))).collect();
        self.names = names;
        let [own, kernels, scores] = ["own", "kernels", "scores"].map(list);
        let [draws, levels] = ["draws", "levels"].map(list);
        Ok(Fold { rows, own, kernels, baselines, scores, draws, levels, error })
    }

    /// A fold, and name and method of each baseline.
    fn fold(&self, rows: &[usize], with_scores: bool) -> Result<(Fold, Vec<(String, String)>), Error> {
        self.context.go_on()?;
        let (quiet, test, others) = (self.context.quiet(), self.select(rows), self.select(&self.others(rows)));
        let model = Model::of_few(self.manifold, self.settings, &others, &quiet)?;
        let (mut names, mut baselines) = (vec![], vec![]);
        let standard = model.standardised(test.points());
        for other in COMPARED {
            let Some((name, logs)) = other.log_densities(&model, &standard, self.settings.seed, &quiet)? else {
                continue;
            };
            baselines.push(logs.iter().map(|l| l + model.log_unit()).collect());
            names.push((name, other.method().to_string()));
        }
        Ok((Fold { baselines, ..judged(&model, rows.to_vec(), test.points(), with_scores, &quiet)? }, names))
    }

    /// The folds of one repeat with corrected models, where these are better by more than chance.
    fn corrected(&self, plain: &[Fold]) -> Result<Option<Vec<Fold>>, Error> {
        let mut corrected: Vec<Fold> = vec![];
        for (k, fold) in plain.iter().enumerate() {
            let context = self.context.within(&format!("fold-{k}"));
            let (test, others) = (self.select(&fold.rows), self.select(&self.others(&fold.rows)));
            let (model, _) = Model::corrected_of_few(self.manifold, self.settings, &others, &context)?;
            let own = judged(&model, fold.rows.clone(), test.points(), true, &context)?;
            corrected.push(Fold { baselines: fold.baselines.clone(), ..own });
            let gain = self.gain(plain, &corrected);
            if corrected.len() == SCREENED && gain.mean <= 0.0 {
                return Ok(None);
            }
        }
        let gain = self.gain(plain, &corrected);
        Ok((gain.mean > SIGMAS * gain.std_error).then_some(corrected))
    }

    /// By how much corrected models are better, row by row.
    fn gain(&self, plain: &[Fold], corrected: &[Fold]) -> Estimate {
        let pairs = plain.iter().zip(corrected);
        let gain = |(a, b): (&Fold, &Fold)| b.own.iter().zip(&a.own).map(|(b, a)| b - a).collect();
        self.estimate(corrected, pairs.map(gain).collect())
    }

    /// The mean of numbers, one for each row of each fold.
    fn estimate(&self, folds: &[Fold], values: Vec<Vec<f64>>) -> Estimate {
        let rows: Vec<&[usize]> = folds.iter().map(|fold| fold.rows.as_slice()).collect();
        corrected_mean(&values, &rows, self.rows, self.count())
    }

    fn evaluation(&self, all: &[Fold], model: &Model, first: usize) -> Result<Evaluation, Error> {
        let nll = |of: &dyn Fn(&Fold) -> Vec<f64>| {
            self.estimate(all, all.iter().map(|f| of(f).into_iter().map(|l| -l).collect()).collect())
        };
        // The error of log Z, as a number to add.
        let largest = all.iter().map(|f| f.error).fold(0.0, f64::max);
        let error = Estimate { mean: 0.0, std_error: largest, count: u64::MAX };
        let baseline = |(k, (name, method)): (usize, &(String, String))| {
            let less = |f: &Fold| f.own.iter().zip(&f.baselines[k]).map(|(own, other)| own - other).collect();
            Baseline {
                name: name.clone(),
                method: method.clone(),
                nll: nll(&|f| f.baselines[k].clone()),
                difference: nll(&less) + error,
            }
        };
        Ok(Evaluation {
            ingredients: vec![],
            velocity: None,
            test_rows: self.count(),
            test_nll: nll(&|f| f.own.clone()) + error,
            kernels_nll: nll(&|f| f.kernels.clone()),
            baselines: self.names.iter().enumerate().map(baseline).collect(),
            goodness: self.goodness(&all[..first], model)?,
            coverage: self.coverage(&all[..first]),
        })
    }

    /// The tests of all rows, each under the model that has not seen it, and against as many draws of that model.
    fn goodness(&self, folds: &[Fold], model: &Model) -> Result<Fitness, Error> {
        let rows: Vec<usize> = folds.iter().flat_map(|f| f.rows.clone()).collect();
        let scores: Vec<f64> = folds.iter().flat_map(|f| f.scores.clone()).collect();
        let (sample, plan, m) = (self.select(&rows), TestPlan::seeded(self.settings.seed), self.manifold.ambient());
        let draws: Vec<f64> = folds.iter().flat_map(|f| f.draws.clone()).collect();
        // The same rows of all three.
        let [points, scores, draws] =
            [sample.points(), &scores, &draws].map(|all| plan.thinned(&sample.with_points(all.to_vec()), m));
        let (points, scores) = (model.standardised(&points), model.standard.slopes(&scores));
        Fitness::of_scores(model, &points, &scores, &model.standardised(&draws), &plan, self.context)
    }

    /// The coverage of all rows, each by the regions of the model that has not seen it.
    fn coverage(&self, folds: &[Fold]) -> Vec<Coverage> {
        let rows: Vec<usize> = folds.iter().flat_map(|f| f.rows.iter().copied()).collect();
        let levels: Vec<f64> = folds.iter().flat_map(|f| f.levels.iter().copied()).collect();
        let (sample, draws) = (self.select(&rows), folds.iter().map(|f| DRAWS.max(f.rows.len())).sum());
        Coverage::of(share_inside(&sample, &levels), sample.total(self.manifold.ambient()), draws)
    }
}

/// What a model says about rows that it has not seen.
fn judged(model: &Model, rows: Vec<usize>, test: &[f64], with_scores: bool, context: &Context) -> Result<Fold, Error> {
    let own = model.log_density(test, context)?;
    let (mut scores, mut draws, mut levels) = (vec![], vec![], vec![]);
    if with_scores {
        scores = model.score(test, context)?;
        // Folds have draws of their own: their models are alike, and the same seed would give like draws.
        let seed = subseed(model.settings().seed, 1 + rows.first().copied().unwrap_or(0) as u64);
        let all = Draws::of(model, DRAWS.max(rows.len()), seed, context)?;
        levels = own.iter().map(|l| all.levels.at(*l)).collect();
        draws = all.points[..test.len()].to_vec();
    }
    Ok(Fold {
        rows,
        own,
        kernels: model.log_anchor(test, context)?,
        baselines: vec![],
        scores,
        draws,
        levels,
        error: model.log_z().value.std_error,
    })
}

/// The mean over folds of a sample of `rows` rows, with the error of Nadeau and Bengio, or that of the mean over rows if that is
/// larger; each fold has the numbers of these rows.
fn corrected_mean(folds: &[Vec<f64>], of: &[&[usize]], sample: &Sample, rows: usize) -> Estimate {
    let all: Vec<f64> = folds.concat();
    // A group lies in one fold of a repeat: repeats of it are told apart by their folds.
    let places = of.iter().enumerate().flat_map(|(f, own)| own.iter().map(move |&i| (f, i)));
    let groups = places.clone().map(|(f, i)| (f * rows + sample.group(i)) as u32).collect();
    let weights: Vec<f64> = places.filter_map(|(_, i)| sample.weights().get(i).copied()).collect();
    let over_rows = match sample.weights().is_empty() && sample.groups().is_empty() {
        true => Estimate::of(all.iter().copied()),
        false => Sample::new(vec![], &weights, groups).estimate(&all),
    };
    let mean = |(f, own): (&Vec<f64>, &&[usize])| sample.select(own, 0).mean(f);
    let means = Estimate::of(folds.iter().zip(of).map(mean));
    let (count, size) = (folds.len() as f64, all.len() as f64 / folds.len() as f64);
    // std_error² = s²/J.
    let shared = means.std_error * (1.0 + count * size / (rows as f64 - size)).sqrt();
    let independent = over_rows.std_error * (all.len() as f64 / rows as f64).sqrt();
    Estimate { mean: over_rows.mean, std_error: shared.max(independent), count: rows.min(all.len()) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::folds;
    use minvel_engine::random::{Key, Stream};

    /// Scores of one draw of n rows all move together when another n rows are drawn: the ± must be as wide as they move.
    #[test]
    fn the_error_is_that_of_other_rows_and_not_that_of_more_folds() {
        const ROWS: usize = 40;
        let mut stream = Stream::new(Key::new(1, 0), 0);
        let (mut means, mut errors) = (vec![], vec![]);
        for seed in 0..400 {
            // Learning the mean of a normal law: log p of a row is −½(x − mean of the others)².
            let x: Vec<f64> = (0..ROWS).map(|_| stream.normal()).collect();
            let parts: Vec<Vec<usize>> = (0..5).flat_map(|r| folds(ROWS, 10, seed * 5 + r)).collect();
            let score = |part: &Vec<usize>| -> Vec<f64> {
                let total: f64 = x.iter().sum::<f64>() - part.iter().map(|&i| x[i]).sum::<f64>();
                let mean = total / (ROWS - part.len()) as f64;
                part.iter().map(|&i| -0.5 * (x[i] - mean).powi(2)).collect()
            };
            let rows: Vec<&[usize]> = parts.iter().map(Vec::as_slice).collect();
            let estimate =
                corrected_mean(&parts.iter().map(score).collect::<Vec<_>>(), &rows, &Sample::from(x.clone()), ROWS);
            means.push(estimate.mean);
            errors.push(estimate.std_error);
        }
        let moved = Estimate::of(means.iter().copied()).std_error * (means.len() as f64).sqrt();
        let said = errors.iter().sum::<f64>() / errors.len() as f64;
        println!("scores move by {moved:.4}, the errors say {said:.4}");
        assert!(said > 0.95 * moved && said < 1.5 * moved, "{said} against {moved}");
        // The twin: 50 folds as if they were independent.
        assert!(said / 50f64.sqrt() * 10f64.sqrt() < 0.8 * moved, "no power");
    }
}
