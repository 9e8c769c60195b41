//! Points that repeat others.
//!
//! **Statement.** Rows are sorted by a hash of their numbers; only rows with equal hashes are compared, number by number.
//! **Conventions.** Points are equal if all their numbers are (0 and −0 too). **Error.** None: hashes only say what is not
//! compared. Sixteen bytes a row. **Checked by** its own tests, and crates/lab/tests/lab/data_points.rs.

/// Some rows of a table, to be looked up by their points.
pub(crate) struct Known<'a> {
    points: &'a [f64],
    ambient: usize,
    /// Hash and row, sorted.
    rows: Vec<(u64, u32)>,
}

/// A hash of a point, the same for 0 and −0: each number is mixed in by the finaliser of splitmix64.
fn hash(point: &[f64]) -> u64 {
    point.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, x| {
        let mixed = hash ^ (x + 0.0).to_bits();
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).wrapping_add(0x9e37_79b9_7f4a_7c15)
    })
}

/// The bits of a number, 0 and −0 alike.
fn bits(x: &f64) -> u64 {
    (x + 0.0).to_bits()
}

impl<'a> Known<'a> {
    /// The given rows of a table.
    pub fn new(points: &'a [f64], ambient: usize, rows: impl Iterator<Item = usize>) -> Self {
        let hashed = |row: usize| {
            let number = u32::try_from(row).expect("fewer than 2^32 rows");
            (hash(&points[row * ambient..][..ambient]), number)
        };
        let mut rows: Vec<(u64, u32)> = rows.map(hashed).collect();
        rows.sort_unstable();
        Known { points, ambient, rows }
    }

    /// Whether one of the rows is this point.
    pub fn holds(&self, point: &[f64]) -> bool {
        let own = hash(point);
        let from = self.rows.partition_point(|(hash, _)| *hash < own);
        let equal = |row: u32| self.point(row).iter().map(bits).eq(point.iter().map(bits));
        self.rows[from..].iter().take_while(|(hash, _)| *hash == own).any(|(_, row)| equal(*row))
    }

    fn point(&self, row: u32) -> &[f64] {
        &self.points[row as usize * self.ambient..][..self.ambient]
    }
}

/// For each row of a table, the first one that has the same point.
pub(crate) fn first_rows(points: &[f64], ambient: usize) -> Vec<u32> {
    let known = Known::new(points, ambient, 0..points.len() / ambient);
    let mut first = vec![0; known.rows.len()];
    let mut different: Vec<u32> = vec![];
    for run in known.rows.chunk_by(|a, b| a.0 == b.0) {
        different.clear();
        for &(_, row) in run {
            let same = |other: &&u32| known.point(**other).iter().map(bits).eq(known.point(row).iter().map(bits));
            let found = different.iter().find(same).copied();
            first[row as usize] = found.unwrap_or(row);
            different.extend(found.is_none().then_some(row));
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn repeats_are_those_of_a_table_of_all_points() {
        let mut stream = minvel_engine::random::Stream::new(minvel_engine::random::Key::new(1, 0), 3);
        let mut number = || [0.0, -0.0, 1.0, 0.5, f64::MIN_POSITIVE][(5.0 * stream.uniform()) as usize];
        let points: Vec<f64> = (0..900).map(|_| number()).collect();
        let key = |row: usize| points[row * 3..][..3].iter().map(bits).collect::<Vec<u64>>();
        let mut seen = HashMap::new();
        let plain: Vec<u32> = (0..300).map(|row| *seen.entry(key(row)).or_insert(row as u32)).collect();
        assert_eq!(first_rows(&points, 3), plain);
        let some: HashSet<Vec<u64>> = (0..300).step_by(7).map(key).collect();
        let known = Known::new(&points, 3, (0..300).step_by(7));
        assert!((0..300).all(|row| known.holds(&points[row * 3..][..3]) == some.contains(&key(row))));
        assert!(some.len() < 40 && (0..300).any(|row| !known.holds(&points[row * 3..][..3])), "both answers occur");
    }
}
