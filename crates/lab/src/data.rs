//! Data: from a file of numbers to points of a manifold, and back.
//!
//! A [`Table`] is what a file holds: named columns, and the line each row came from. [`Coordinates`] say which columns are
//! a point of which manifold, in which [`Layout`] and [`Units`]. A [`Dataset`] is both together: points, what was guessed
//! about them, and which file they are. A [`Split`](minvel::fit::Split) divides the rows into training, validation and test.
//!
//! [`Images`] are data of their own: bytes of one size, from [`idx`] files ([`mnist`]), [`cifar`] or a [`folder`] of pictures.
//!
//! Nothing is assumed silently: what the file does not say and the user does not say is guessed only where a single
//! reading fits, said in [`Dataset::guesses`], and otherwise refused with the file, the line, the column and what to do.
//!
//! ```
//! use minvel::data::{Dataset, Request};
//! # let path = std::env::temp_dir().join(format!("minvel-doc-{}.csv", std::process::id()));
//! # let rows: String = (0..40).map(|i| format!("{},{}\n", 2 * i - 40, 9 * i - 180)).collect();
//! # std::fs::write(&path, format!("lat,lon\n{rows}")).unwrap();
//! let data = Dataset::read(&path, &Request { manifold: Some("sphere:2".into()), ..Request::default() })?;
//! assert_eq!((data.rows(), data.manifold.ambient()), (40, 3));
//! assert_eq!(data.coordinates.to_string(), "sphere:2 from lat, lon as latlon in degrees");
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), minvel::Error>(())
//! ```

pub mod archive;
pub mod catalogue;
pub mod cifar;
mod codes;
mod coordinates;
mod dataset;
pub mod folder;
mod framed;
mod guess;
pub mod idx;
mod images;
mod input;
mod layout;
pub mod mnist;
mod npy;
pub mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod picture;
mod table;
mod text;
pub mod torch;
mod write;

pub use catalogue::locate;
pub use codes::{code_columns, code_table, read_codes};
pub use coordinates::Coordinates;
pub(crate) use coordinates::{Factor, is_numbered};
pub use dataset::{Complete, Dataset, LEAST_ROWS, Provenance, Request};
pub use framed::Framed;
pub use images::{Images, Labelled, intensities};
pub use input::{Input, STANDARD};
pub use layout::{Layout, Units};
pub(crate) use npy::half;
pub use picture::{Picture, png_file};
pub(crate) use table::hexadecimal;
pub use table::{Column, Table, TableOptions};
pub use write::{append_columns, check_name, encode_appended, encode_table, write_table};
