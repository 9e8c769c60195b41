//! Cells that hold no number.

use crate::table::columns::Table;
use crate::table::text::shorten;
use minvel::Error;

/// Refuses cells of chosen columns that hold no number, in some rows if these are given: the first in the file.
pub fn check_cells(table: &Table, chosen: &[usize], rows: Option<&[usize]>) -> Result<(), Error> {
    let looked_at = |row: usize| rows.is_none_or(|rows| rows.binary_search(&row).is_ok());
    let odd = || chosen.iter().flat_map(|&c| table.columns[c].odd.iter().map(move |odd| (odd, c)));
    let odd = || odd().filter(|((row, _), _)| looked_at(*row));
    let Some(((row, text), column)) = odd().min_by_key(|((row, _), _)| *row) else { return Ok(()) };
    let mut bad: Vec<usize> = odd().map(|((row, _), _)| *row).collect();
    bad.sort_unstable();
    bad.dedup();
    let others = match (bad.len() - 1, table.whole) {
        (0, _) => String::new(),
        (1, true) => "; there is another such row".to_string(),
        (n, true) => format!("; there are {n} other such rows"),
        // the rest of the file is not read yet
        (_, false) => "; there are others".to_string(),
    };
    let why = match text.trim() {
        "" => "the cell is empty: fill it or remove the row".to_string(),
        text if text.parse::<f64>().is_ok() => format!("`{text}` is not a finite number: correct or remove the row"),
        text => {
            let comma = text.replacen(',', ".", 1).parse::<f64>().is_ok();
            let hint = if comma {
                "write decimals with a point"
            } else {
                "correct or remove the row, or choose other columns"
            };
            format!("`{}` is not a number: {hint}", shorten(text))
        }
    };
    Err(Error::content(&table.path, format!("{}, {}: {why}{others}", table.place(*row), table.label(column))))
}
