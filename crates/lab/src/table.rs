//! Tables: from a file of numbers to points of a manifold, and back.
//!
//! A [`Table`] is what a file holds: named columns, and the line each row came from. [`Coordinates`] say which columns are
//! a point of which manifold, in which [`Layout`] and [`Units`]. A [`Dataset`] is both together: points, what was guessed
//! about them, and which file they are. A [`Split`](minvel::fit::Split) divides the rows into training, validation and test.
//!
//! Nothing is assumed silently: what the file does not say and the user does not say is guessed only where a single
//! reading fits, said in [`Dataset::guesses`], and otherwise refused with the file, the line, the column and what to do.
//!
//! ```
//! use minvel_lab::table::{Dataset, Request};
//! # let path = std::env::temp_dir().join(format!("minvel-doc-{}.csv", std::process::id()));
//! # let rows: String = (0..40).map(|i| format!("{},{}\n", 2 * i - 40, 9 * i - 180)).collect();
//! # std::fs::write(&path, format!("lat,lon\n{rows}")).unwrap();
//! let data = Dataset::read(&path, &Request { manifold: Some("sphere:2".into()), ..Request::default() })?;
//! assert_eq!((data.rows(), data.manifold.ambient()), (40, 3));
//! assert_eq!(data.coordinates.to_string(), "sphere:2 from lat, lon as latlon in degrees");
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), minvel::Error>(())
//! ```

mod about;
mod blocks;
mod codes;
mod columns;
mod coordinates;
mod dataset;
mod guess;
mod input;
mod layout;
mod npy;
pub mod npz;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod passes;
mod points;
mod text;
mod write;

pub(crate) use about::part;
pub use about::{EARTH, RowColumns, RowFacts};
pub use blocks::{Blocks, Extent, Position, ROWS};
pub use codes::{code_columns, code_table, read_codes};
pub use columns::{CellKind, Column, Table, TableOptions};
pub use coordinates::Coordinates;
pub(crate) use coordinates::{Factor, is_numbered};
pub use dataset::{Dataset, LEAST_ROWS, Provenance, Request};
pub use input::{Fingerprint, Input, STANDARD};
pub use layout::{Layout, Units};
pub use output::Output;
pub use points::{Missing, PointBlock, PointBlocks, PointForm, Seen};
pub use write::{appended_names, check_name, encode_table, write_table};
