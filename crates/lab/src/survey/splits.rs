//! Published splits: one line for each row of a data file, a column for each seed.
//!
//! **Statement.** The file `data/splits/NAME.csv` has the header `seed_0,seed_1,…`, then for each row of the data, in order, `train`,
//! `validation` or `test`. **Source.** The splits of Riemannian flow matching (chen2024rfm): `torch.random_split` with a generator
//! of that seed, N − 2⌊N/10⌋, ⌊N/10⌋ and ⌊N/10⌋ rows. **Checked by** its own tests.

use crate::catalogue::roots;
use crate::table::part;
use minvel::fit::{Part, Split};
use minvel::{Error, file};
use std::path::{Path, PathBuf};

/// The file of a set's splits, if it is on this machine.
pub(super) fn file_of(name: &str) -> Option<PathBuf> {
    roots().into_iter().map(|root| root.join("data/splits").join(format!("{name}.csv"))).find(|path| path.is_file())
}

/// The split of a seed for so many rows.
pub(super) fn read(path: &Path, seed: u64, rows: usize) -> Result<Split, Error> {
    parse(&file::read_text(path)?, seed, rows).map_err(|why| Error::content(path, why))
}

fn parse(text: &str, seed: u64, rows: usize) -> Result<Split, String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let name = format!("seed_{seed}");
    let header = lines.next().ok_or("is empty; expected a header seed_0,seed_1,…")?;
    let column = header.split(',').position(|cell| cell.trim() == name);
    let column = column.ok_or_else(|| format!("has no column `{name}`, only {header}"))?;
    let read = |(row, line): (usize, &str)| {
        let word = line.split(',').nth(column).map_or("nothing", str::trim);
        part(word).ok_or_else(|| format!("line {}: expected train, validation or test, not {word}", row + 2))
    };
    let parts = lines.enumerate().map(read).collect::<Result<Vec<Part>, String>>()?;
    match parts.len() == rows {
        true => Ok(Split::by_parts(&parts)),
        false => Err(format!("has {} rows, the data {rows}: it belongs to another file", parts.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_read_by_their_seed() {
        let text = "seed_0,seed_1\ntrain,test\nvalidation,train\ntest,validation\n";
        let split = parse(text, 1, 3).unwrap();
        assert_eq!((split.train, split.validation, split.test), (vec![1], vec![2], vec![0]));
    }

    #[test]
    fn a_wrong_line_a_wrong_seed_and_a_wrong_number_of_rows_are_named() {
        assert!(parse("seed_0\ntrain\nfoo\n", 0, 2).unwrap_err().contains("line 3"));
        assert!(parse("seed_0\ntrain\n", 4, 1).unwrap_err().contains("seed_4"));
        assert!(parse("seed_0\ntrain\n", 0, 2).unwrap_err().contains("1 rows"));
    }
}
