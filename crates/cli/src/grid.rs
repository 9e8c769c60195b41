//! `minvel grid`: a fitted density on a regular grid.

use crate::Failure;
use crate::progress::Bars;
use crate::target::Target;
use crate::threads::Threads;
use clap::Args;
use minvel_lab::fitting::{DensityGrid, RunFolder};
use minvel_lab::table::encode_table;
use std::path::PathBuf;

/// Evaluate a fitted density on a regular grid, in up to three dimensions.
///
/// Columns: coordinates in the units of the data, `log_density`, `density`, and `cell`, the volume of the grid cell. The sum
/// of density × cell is printed and should be close to 1. Angles are covered completely (S2: N latitudes, 2N
/// longitudes; axes: one half), other coordinates by a box around samples of the model. Densities are those of `minvel score`:
/// with respect to radians (angles) or the units of the data (vectors).
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
    /// Number of cells per dimension [default: 360 in one dimension, 180 in two, 40 in three].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    size: Option<u32>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// How far from 1 the sum of a good grid may be.
const COARSE: f64 = 0.01;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.target.check(arguments.json).map_err(Failure::Input)?;
    let (model, coordinates) = RunFolder(arguments.folder.clone()).read_model().map_err(Failure::Input)?;
    let size = arguments.size.map(|size| size as usize);
    let bars = Bars::new("grid");
    let context = arguments.threads.context(&bars);
    let grid = DensityGrid::of(&model, &coordinates, size, &context).map_err(Failure::of_input)?;
    bars.finish();
    arguments.target.put(&encode_table(&arguments.target.out, &grid.columns).map_err(Failure::Work)?)?;
    let cells = grid.columns.first().map_or(0, |c| c.values.len());
    if (grid.total - 1.0).abs() > COARSE {
        note!(
            "warning: density × cell sums to {:.4}: the grid of --size {} is too coarse for the peaks of the density; increase --size",
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
        false => arguments.target.say(&format!("{cells} cells; density × cell sums to {:.6}", grid.total)),
    }
    Ok(())
}
