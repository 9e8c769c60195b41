//! Which part of a file the points are, where it does not say so itself.

use clap::Args;
use minvel::Error;
use minvel_lab::table::{Coordinates, TableOptions};
use serde::{Deserialize, Serialize};

/// How the file is made up.
#[derive(Args, Clone, Default, Serialize, Deserialize)]
pub struct Source {
    /// Columns of a point, by name or by number from 1; NAME=COLUMN assigns a name, as in phi=2,psi=3.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Field delimiter of a text file: a character, tab or space [default: detected from the first lines].
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<char>,
    /// Name of the array in an NPZ file.
    #[arg(long, value_name = "NAME")]
    array: Option<String>,
}

impl Source {
    /// Columns of a point, if they were given: the new name, if any, and which it is.
    fn pairs(&self) -> Option<Vec<(Option<&str>, &str)>> {
        self.columns.as_ref().map(|columns| columns.iter().map(|column| pair(column)).collect())
    }

    /// Columns of a point as they are called in the end, if they were given.
    pub fn columns(&self) -> Option<Vec<String>> {
        Some(self.pairs()?.into_iter().map(|(name, which)| name.unwrap_or(which).trim().to_string()).collect())
    }

    /// New names, and the columns they are for.
    pub fn names(&self) -> Vec<(String, String)> {
        let named = |(name, which): (Option<&str>, &str)| Some((name?.trim().to_string(), which.trim().to_string()));
        self.pairs().into_iter().flatten().filter_map(named).collect()
    }

    /// How the file is read.
    pub fn options(&self) -> TableOptions {
        TableOptions { delimiter: self.delimiter, array: self.array.clone(), ..TableOptions::default() }
    }

    /// The coordinates of a model as this file has them: by other names, if these were given.
    pub fn rename(&self, model: &Coordinates) -> Result<Coordinates, Error> {
        let names = self.names();
        let of = |name: &String| names.iter().find(|(own, _)| own == name).map(|(_, which)| which.clone());
        // names that are the model's say which column is which, in any order
        let by_name: Option<Vec<String>> = model.columns.iter().map(of).collect();
        let in_order = || self.pairs().map(|all| all.into_iter().map(|(_, which)| which.to_string()).collect());
        match by_name.filter(|all| Some(all.len()) == self.columns.as_ref().map(Vec::len)).or_else(in_order) {
            Some(columns) if columns.len() != model.columns.len() => Err(Error::config(format!(
                "--columns gives {} columns; expected {}: {}",
                columns.len(),
                model.columns.len(),
                model.columns.join(", ")
            ))),
            Some(columns) => Ok(Coordinates { columns, ..model.clone() }),
            None => Ok(model.clone()),
        }
    }
}

/// A new name, if any, and the column it is for.
fn pair(column: &str) -> (Option<&str>, &str) {
    match column.split_once('=') {
        Some((name, which)) if !name.trim().is_empty() && !which.trim().is_empty() => (Some(name), which),
        _ => (None, column),
    }
}

fn delimiter(text: &str) -> Result<char, String> {
    let mut letters = text.chars();
    match (text, letters.next(), letters.next()) {
        ("tab" | "\\t", ..) => Ok('\t'),
        ("space", ..) => Ok(' '),
        (_, Some(one), None) => Ok(one),
        _ => Err("expected one character, tab or space".to_string()),
    }
}
