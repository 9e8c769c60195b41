//! `minvel plot`: the figures of a fitted density, drawn again as one likes them.

use crate::Failure;
use crate::progress::Bars;
use crate::threads::Threads;
use clap::{Args, ValueEnum};
use minvel::{Error, file};
use minvel_lab::fitting::{RunFolder, density_figures, look};
use minvel_lab::plot::density::Points;
use minvel_lab::plot::{Bearings, Figure, Plot};
use std::path::PathBuf;

/// Draw a fitted density: a map, Ramachandran plot, wind rose, disk or pair plots, depending on the manifold.
///
/// Figures are written as SVG and PNG.
#[derive(Args)]
#[command(after_help = "\
Examples:
  minvel plot quakes --centre 150 --points all      a map centred on the Pacific, with all points
  minvel plot wind --compass true --out figures     a wind rose with north up, into another folder")]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Output folder of the figures [default: the folder of the fit].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Longitude of the centre of a map, in degrees [default: 0].
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    centre: Option<f64>,
    /// Data points drawn over the density; `few` draws them only if there are at most 2000.
    #[arg(long, value_name = "WHICH", default_value = "few")]
    points: Which,
    /// Whether coastlines are drawn on a map [default: if the columns are latitude and longitude or have no names].
    #[arg(long, value_name = "true|false")]
    earth: Option<bool>,
    /// Whether a wind rose is a compass (north up, clockwise) instead of angles from the right, anticlockwise [default: if
    /// the column is called azimuth, bearing, course, heading or wind].
    #[arg(long, value_name = "true|false")]
    compass: Option<bool>,
    /// Title of the figures [default: the file name of the data].
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Which data points are drawn.
#[derive(Clone, Copy, ValueEnum)]
enum Which {
    Few,
    All,
    None,
}

impl Arguments {
    /// An error if one asks for what no figure has.
    fn check(&self, figures: &[Figure]) -> Result<(), Error> {
        let any = |suits: fn(&Plot) -> bool| figures.iter().any(|figure| suits(&figure.plot));
        let map = (any(|plot| matches!(plot, Plot::Maps(_))), "maps (densities on S2)");
        let rose = (any(|plot| matches!(plot, Plot::Rose(_))), "wind roses (densities on S1 or T1)");
        let asked = [
            ("--centre", self.centre.is_some(), map),
            ("--earth", self.earth.is_some(), map),
            ("--compass", self.compass.is_some(), rose),
        ];
        match asked.into_iter().find(|(_, given, (drawn, _))| *given && !drawn) {
            Some((option, _, (_, what))) => {
                Err(Error::config(format!("{option} applies to {what} only, and this fit has none; remove the option")))
            }
            None => Ok(()),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = RunFolder(arguments.folder.clone());
    let (model, coordinates) = folder.read_model().map_err(Failure::Input)?;
    // A compressed model has no data of its own.
    let title = match folder.summary().exists() {
        true => folder.read_summary().map_err(Failure::Input)?.data.file,
        false => String::new(),
    };
    if arguments.centre.is_some_and(|centre| !centre.is_finite() || centre.abs() > 360.0) {
        return Err(Failure::Input(Error::config("--centre: expected a longitude from -360 to 360 degrees")));
    }
    let mut look = look(&title, &coordinates);
    look.centre = arguments.centre.unwrap_or(look.centre);
    look.points = match arguments.points {
        Which::Few => Points::Few,
        Which::All => Points::All,
        Which::None => Points::None,
    };
    look.earth = arguments.earth.unwrap_or(look.earth);
    look.bearings = match arguments.compass {
        Some(true) => Bearings::Compass,
        Some(false) => Bearings::Degrees,
        None => look.bearings,
    };
    look.title = arguments.title.clone().unwrap_or(look.title);
    let bars = Bars::new("plot");
    let context = arguments.threads.context(&bars);
    let figures = density_figures(&model, &model.centres(), &look, &context).map_err(Failure::of_work)?;
    arguments.check(&figures).map_err(Failure::Input)?;
    let out = arguments.out.clone().unwrap_or(arguments.folder.clone());
    file::create_folder(&out).map_err(Failure::Work)?;
    let mut written = vec![];
    let mut write = |figure: &Figure| {
        context.go_on()?;
        written.extend(figure.write(&out)?);
        Ok(())
    };
    context.stage("writing", 0, "figures", || figures.iter().try_for_each(&mut write)).map_err(Failure::of_work)?;
    bars.finish();
    match arguments.json {
        true => say!("{}", serde_json::json!({ "files": written })),
        false => written.iter().for_each(|path| say!("Written: {}", path.display())),
    }
    Ok(())
}
