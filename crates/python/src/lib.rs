//! The native part of the Python package `minvel`: arrays in, arrays out. Classes, checks and words are in `python/minvel`.
//!
//! Work runs on a thread of its own while the calling one, without Python's lock, listens for Ctrl-C and tells how far it is
//! ([`work`]). Tables and their layouts are those of `minvel-lab`, so that numbers are the program's, bit for bit.

#![cfg(feature = "extension")]

mod autoencoder;
mod energy;
mod error;
mod fid;
mod fitted;
mod geometry;
mod recipe;
mod sketch;
mod table;
mod work;

use pyo3::prelude::*;
use std::ffi::OsString;

/// The program `minvel` with these arguments, of which the first is its name; its exit status.
#[pyfunction]
fn run(py: Python, arguments: Vec<OsString>) -> u8 {
    py.detach(|| minvel_cli::run(arguments))
}

/// The native part of minvel.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("LEAST_POINTS", minvel::fit::LEAST_POINTS)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_class::<fitted::Fitted>()?;
    module.add_class::<energy::NetworkEnergy>()?;
    module.add_class::<energy::NamedLaw>()?;
    module.add_function(wrap_pyfunction!(fid::fid, module)?)?;
    module.add_function(wrap_pyfunction!(fid::images_of_folder, module)?)?;
    module.add_class::<autoencoder::ImageCodec>()?;
    module.add_function(wrap_pyfunction!(autoencoder::training_settings, module)?)?;
    module.add_class::<geometry::Geometry>()?;
    module.add_class::<sketch::Chosen>()?;
    module.add_class::<sketch::Sketch>()?;
    module.add_function(wrap_pyfunction!(sketch::sketch_form, module)?)?;
    module.add_function(wrap_pyfunction!(sketch::tally, module)?)?;
    module.add_function(wrap_pyfunction!(sketch::tallied, module)?)?;
    module.add_function(wrap_pyfunction!(sketch::no_tally, module)?)?;
    module.add_function(wrap_pyfunction!(sketch::merged_tally, module)?)?;
    module.add_function(wrap_pyfunction!(fitted::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fitted::table, module)?)
}
