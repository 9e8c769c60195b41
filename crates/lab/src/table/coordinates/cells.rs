//! Cells that hold no number.

use crate::table::columns::Table;
use crate::table::text::shorten;
use minvel::Error;

/// Refuses cells of chosen columns that hold no number: the first in the file.
pub fn check_cells(table: &Table, chosen: &[usize]) -> Result<(), Error> {
    let odd = chosen.iter().filter_map(|&c| Some((table.columns[c].odd.first()?, c)));
    let Some(((row, text), column)) = odd.min_by_key(|((row, _), _)| *row) else { return Ok(()) };
    let mut rows: Vec<usize> = chosen.iter().flat_map(|&c| table.columns[c].odd.iter().map(|(row, _)| *row)).collect();
    rows.sort_unstable();
    rows.dedup();
    let others = match rows.len() - 1 {
        0 => String::new(),
        1 => "; there is another such row".to_string(),
        n => format!("; there are {n} other such rows"),
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
