//! A density of rows of which there is a summary.
//!
//! **Statement.** Kernels stand on the cells of the training rows as on clusters: with their counts, means and covariances. Their shares are those that
//! validation rows ask for, since kernels of training rows have not seen these; other validation rows tell a correction what to learn, and yet others
//! judge it. **Source.** zhang1996birch. **Conventions.** Of the validation rows that the summary kept, in the order of their hashes, every fourth and the
//! one after it tell shares, the next one learns, the last one judges; where nothing is learnt, three of four tell shares. The score is that of
//! the test rows that the summary kept; [`Tally`](super::Tally) scores all. A cell is 2m equal parts at ȳ ± √m C e_a in the coordinates of its
//! lattice, CCᵀ the covariance of its rows, put on the manifold. **Error.** As of clusters: kernels are no narrower than cells lie, and mean and
//! covariance of a cell of radius r are met up to O(r³). **Checked by** tests/densities/sketches.rs.

use super::door::Fit;
use super::evaluation::Evaluation;
use super::model::Model;
use super::procedure::{Procedure, Record};
use super::settings::Goal;
use super::sketch::Sketch;
use crate::Error;
use crate::train::Context;

impl Fit<'_> {
    /// Learns from a summary of many rows.
    pub(super) fn learn_sketch(&self, sketch: &Sketch, context: &Context) -> Result<(Model, Record), Error> {
        let Fit { manifold, settings, .. } = self;
        if sketch.manifold().to_string() != manifold.to_string() {
            let what = format!("the summary is of rows on {}, not on {manifold}", sketch.manifold());
            return Err(Error::config(what));
        }
        settings.check(&**manifold, sketch.cells())?;
        let m = manifold.ambient();
        let (validation, test) = (sketch.validation(), sketch.test());
        let every = |places: &[usize]| {
            let of: Vec<usize> = (0..validation.rows(m)).filter(|k| places.contains(&(k % 4))).collect();
            validation.select(&of, m)
        };
        let [sharing, learning, judging] = match settings.objective {
            Goal::None => [every(&[0, 1, 2]), every(&[]), every(&[3])],
            _ => [every(&[0, 1]), every(&[2]), every(&[3])],
        };
        let standard = sketch.standard();
        let parts = sketch.parts(&standard);
        let sharing = sharing.with_points(standard.apply(sharing.points()));
        let density = settings.kernels.of_parts(manifold, &parts, &sharing, context)?;
        let rows = sketch.roles();
        let kernels = Model::of_kernels(manifold.clone(), settings, standard, density, rows.train);
        let (model, history) = kernels.learn_beside(&learning, &judging, context)?;
        let evaluation = Evaluation::of(&model, &test, settings.seed, context)?;
        let procedure = Procedure::Split { train: rows.train, validation: rows.validation, test: rows.test };
        Ok((model, Record { history, evaluation, procedure, leaked_share: 0.0, leak: None, split: None }))
    }
}
