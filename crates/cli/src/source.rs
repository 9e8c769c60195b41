//! Which part of a file the points are, where it does not say so itself.

use clap::Args;
use minvel::Error;
use minvel::data::{Coordinates, Options};
use serde::{Deserialize, Serialize};

/// How the file is made up.
#[derive(Args, Clone, Default, Serialize, Deserialize)]
pub struct Source {
    /// Columns of a point, by name or by number from 1.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// What separates the fields of a text file: a character, tab or space [default: found from its first lines].
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<char>,
    /// Which array of an NPZ file.
    #[arg(long, value_name = "NAME")]
    array: Option<String>,
}

impl Source {
    /// Columns of a point, if they were given.
    pub fn columns(&self) -> Option<Vec<String>> {
        self.columns.clone()
    }

    /// How the file is read.
    pub fn options(&self) -> Options {
        Options { delimiter: self.delimiter, array: self.array.clone(), ..Options::default() }
    }

    /// The coordinates of a model as this file has them: by other names, if these were given.
    pub fn rename(&self, model: &Coordinates) -> Result<Coordinates, Error> {
        match &self.columns {
            Some(columns) if columns.len() != model.columns.len() => Err(Error::config(format!(
                "--columns names {} columns, but the model takes {}: {}",
                columns.len(),
                model.columns.len(),
                model.columns.join(", ")
            ))),
            Some(columns) => Ok(Coordinates { columns: columns.clone(), ..model.clone() }),
            None => Ok(model.clone()),
        }
    }
}

fn delimiter(text: &str) -> Result<char, String> {
    let mut letters = text.chars();
    match (text, letters.next(), letters.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        ("space", ..) => Ok(' '),
        (_, Some(one), None) => Ok(one),
        _ => Err("give one character, tab or space".to_string()),
    }
}
