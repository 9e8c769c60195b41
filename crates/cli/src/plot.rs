//! `minvel plot`: the figures of a fitted density, drawn again as one likes them.

use crate::Failure;
use clap::Args;
use minvel::fit::{Folder, density_figures, look};
use minvel::plot::{Bearings, Plot};
use minvel::report::Figure;
use minvel::train::Desk;
use minvel::{Error, file};
use std::path::PathBuf;

/// Draw a fitted density: a map, a Ramachandran plot, a wind rose, a disk, or pair plots, as suits the manifold.
#[derive(Args)]
pub struct Arguments {
    /// Folder of the fit.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Folder to write the figures to [default: that of the fit].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Longitude of the middle of a map, in degrees [default: 0].
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    centre: Option<f64>,
    /// Leave out the points.
    #[arg(long)]
    no_points: bool,
    /// Leave out the coastlines, or draw them on a sphere that is not known to be the Earth.
    #[arg(long, value_name = "true|false")]
    earth: Option<bool>,
    /// Draw directions as those of a compass, north up and clockwise, or as angles from the right, anticlockwise
    /// [default: a compass if the column is called an azimuth, bearing, course, heading or wind].
    #[arg(long, value_name = "true|false")]
    compass: Option<bool>,
    /// Title.
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// An error if one asks for what no figure has.
    fn check(&self, figures: &[Figure]) -> Result<(), Error> {
        let any = |suits: fn(&Plot) -> bool| figures.iter().any(|figure| suits(&figure.plot));
        let map = (any(|plot| matches!(plot, Plot::Maps(_))), "a map, of a density on S2");
        let rose = (any(|plot| matches!(plot, Plot::Rose(_))), "a wind rose, of a density on S1 or T1");
        let asked = [
            ("--centre", self.centre.is_some(), map),
            ("--earth", self.earth.is_some(), map),
            ("--compass", self.compass.is_some(), rose),
        ];
        match asked.into_iter().find(|(_, given, (drawn, _))| *given && !drawn) {
            Some((option, _, (_, what))) => {
                Err(Error::config(format!("{option} is for {what}, and this fit has none: leave it out")))
            }
            None => Ok(()),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = Folder(arguments.folder.clone());
    let summary = folder.read_summary().map_err(Failure::Input)?;
    let (model, _) = folder.read_model().map_err(Failure::Input)?;
    if arguments.centre.is_some_and(|centre| !centre.is_finite() || centre.abs() > 360.0) {
        return Err(Failure::Input(Error::config("--centre is a longitude from -360 to 360 degrees")));
    }
    let mut look = look(&summary.data);
    look.centre = arguments.centre.unwrap_or(look.centre);
    look.dots = !arguments.no_points;
    look.earth = arguments.earth.unwrap_or(look.earth);
    look.bearings = match arguments.compass {
        Some(true) => Bearings::Compass,
        Some(false) => Bearings::Degrees,
        None => look.bearings,
    };
    look.title = arguments.title.clone().unwrap_or(look.title);
    let figures = density_figures(&model, &model.centres(), &look, &Desk::bare()).map_err(Failure::Work)?;
    arguments.check(&figures).map_err(Failure::Input)?;
    let out = arguments.out.clone().unwrap_or(arguments.folder.clone());
    file::create_folder(&out).map_err(Failure::Work)?;
    let mut written = vec![];
    for figure in &figures {
        written.extend(figure.write(&out).map_err(Failure::Work)?);
    }
    match arguments.json {
        true => say!("{}", serde_json::json!({ "files": written })),
        false => written.iter().for_each(|path| say!("Written: {}", path.display())),
    }
    Ok(())
}
