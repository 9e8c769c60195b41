//! Models of few rows: what is learnt of them, and when more than a plain kernel density is justified.
//!
//! **Statement.** Plain kernels, unless local kernels give left-out rows a higher log density by more than 2 standard errors
//! and by more than the shares that were fitted to them explain: mean(log a − log plain) − (k_a − k)/N > 2σ.
//! **Conventions.** Where there are more rows than centres, kernels stand on clusters of rows and are local. k counts numbers that were fitted to the left-out rows: the shares of plain or of local kernels (akaike1974identification: that many over N is what a mean log-likelihood gains by being fitted).
//! A corrected model learns its networks from nine tenths of the rows, stops by the rest, and stands on all of them.
//! **Checked by** tests/densities/few.rs.

use super::model::{History, Model};
use super::settings::{EnergySettings, FitSettings};
use super::standard::Standard;
use crate::density::{LocalFit, LocalKernels, Sample};
use crate::train::Context;
use crate::{Error, Manifold};
use std::sync::Arc;

/// Rows from which local kernels are tried: their shapes come from neighbours, their shares from folds.
const LOCAL: usize = 50;
/// Standard errors that make a difference.
pub(super) const SIGMAS: f64 = 2.0;

impl Model {
    /// Kernels of all rows, without correction.
    pub fn of_few<'p>(
        manifold: &Arc<dyn Manifold>,
        settings: &FitSettings,
        rows: impl Into<Sample<'p>>,
        context: &Context,
    ) -> Result<Model, Error> {
        let rows = &rows.into();
        let standard = Standard::of(&**manifold, rows);
        let (points, count) = (rows.with_points(standard.apply(rows.points())), rows.rows(manifold.ambient()));
        if count > settings.kernels.centres {
            let local = settings.kernels.fit(manifold, &points, settings.seed, context, false)?;
            return Ok(Model::of_kernels(manifold.clone(), settings, standard, local.density, count));
        }
        let plain = LocalKernels::plain(manifold, &points, context)?;
        let shares = plain.density.families().len();
        let (mut anchor, mut used) = (plain.density, settings.clone());
        if count < settings.few.correction {
            used.kernels = settings.kernels.smooth();
        }
        let usable = !used.kernels.neighbours.is_empty() && !used.kernels.factors.is_empty();
        if count >= LOCAL.max(2 * settings.kernels.folds) && usable {
            let local = used.kernels.fit(manifold, &points, settings.seed, context, false)?;
            if is_better(&local, &plain.held_out, &points, shares) {
                anchor = local.density;
            }
        }
        let settings = if usable { &used } else { settings };
        Ok(Model::of_kernels(manifold.clone(), settings, standard, anchor, count))
    }

    /// Local kernels of all rows, corrected by networks that stop by a tenth of them.
    pub(super) fn corrected_of_few(
        manifold: &Arc<dyn Manifold>,
        settings: &FitSettings,
        rows: &Sample,
        context: &Context,
    ) -> Result<(Model, History), Error> {
        let m = manifold.ambient();
        let parts = crate::fit::split::folds_of(rows, m, 10, settings.seed);
        let (train, validation) = (rows.select(&parts[1..].concat(), m), rows.select(&parts[0], m));
        // Few rows bear a correction, not a choice of many.
        let settings = &FitSettings { energies: EnergySettings::none(), ..settings.clone() };
        let (mut model, mut history) = Model::learn(manifold.clone(), settings, &train, &validation, context)?;
        let points = rows.with_points(model.standard.apply(rows.points()));
        model.anchor = settings.kernels.fit(manifold, &points, settings.seed, context, false)?.density;
        model.rows = rows.rows(m);
        history.warnings.extend(model.normalise(context)?);
        Ok((model, history))
    }
}

/// Whether local kernels are better than plain ones on rows that were left out.
fn is_better(local: &LocalFit, plain: &[f64], rows: &Sample, shares: usize) -> bool {
    let gains: Vec<f64> = local.held_out.iter().zip(plain).map(|(local, plain)| local - plain).collect();
    let gain = rows.estimate(&gains);
    let more = local.density.families().len().saturating_sub(shares) as f64;
    let effective = if rows.weights().is_empty() { plain.len() as f64 } else { rows.weights().iter().sum() };
    gain.mean - more / effective > SIGMAS * gain.std_error
}
