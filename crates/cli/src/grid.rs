//! `minvel grid`: a fitted density on a regular grid.

use crate::Failure;
use crate::progress::Bars;
use crate::target::Target;
use clap::Args;
use minvel::data::encode_table;
use minvel::fit::{DensityGrid, Folder};
use minvel::train::Desk;
use std::path::PathBuf;

/// Write the density on a regular grid: coordinates in the units of the data, `log_density`, `density`, `cell`.
///
/// `cell` is the volume of the cell around each point, so that the sum of density × cell, which is printed, is about 1.
/// Angles are covered from end to end (of S2: N latitudes, 2N longitudes; of axes one half); other coordinates in a box
/// around draws of the model. Densities are those of `minvel score`: w.r.t. radians (angles) or the units of the data
/// (vectors). Up to three dimensions.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel grid quakes --out grid.csv               180 latitudes, 360 longitudes
  minvel grid quakes --size 720 --out grid.parquet
  minvel grid angles --size 36 --out -            CSV on standard output")]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Cells for each dimension [default: 360 of one dimension, 180 of two, 40 of three].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    size: Option<u32>,
    #[command(flatten)]
    target: Target,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// How far from 1 the sum of a good grid may be.
const COARSE: f64 = 0.01;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.target.check(arguments.json).map_err(Failure::Input)?;
    let (model, coordinates) = Folder(arguments.folder.clone()).read_model().map_err(Failure::Input)?;
    let size = arguments.size.map(|size| size as usize);
    let bars = Bars::new("grid");
    let desk = Desk::watched(&bars, crate::stop::on_signal());
    let grid = DensityGrid::of(&model, &coordinates, size, &desk).map_err(Failure::of_input)?;
    bars.finish();
    arguments.target.put(&encode_table(&arguments.target.out, &grid.columns).map_err(Failure::Work)?)?;
    let cells = grid.columns.first().map_or(0, |c| c.values.len());
    if (grid.total - 1.0).abs() > COARSE {
        note!(
            "warning: density × cell adds up to {:.4}: cells of --size {} are wider than the density's peaks",
            grid.total,
            grid.size
        );
    }
    match arguments.json {
        true => {
            let all = serde_json::json!({
                "cells": cells, "size": grid.size, "total": grid.total, "out": arguments.target.out,
            });
            say!("{all}");
        }
        false => arguments.target.say(&format!("{cells} cells; density × cell adds up to {:.6}", grid.total)),
    }
    Ok(())
}
