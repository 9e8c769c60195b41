//! Points chosen by a hash: a random part of all different points, the same for any parts of the rows.
//!
//! **Statement.** Of all different points those k with the least hashes of their numbers and a seed, and how many rows each is.
//! **Proof that parts do not matter.** A point among the k least of all is among the k least of every part that has it, since a part has no more
//! different points; so its rows are counted in every part. What a part has beyond is dropped when parts are merged.
//! **Source.** broder1997resemblance (least hashes). **Conventions.** Points are rows of numbers; 0 and −0 are written alike before. Ties of hashes are
//! decided by the numbers' bits. **Error.** None. **Checked by** its own tests.

use super::bytes::{Reader, Writer};
use std::collections::BTreeMap;

/// The finaliser of splitmix64.
pub(super) fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// A hash of a point and a seed.
pub(super) fn hash(point: &[f64], seed: u64) -> u64 {
    point.iter().fold(mixed(seed), |hash, x| mixed(hash ^ x.to_bits()))
}

/// Points in the order of their hashes, and how many rows each is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenRows {
    most: usize,
    width: usize,
    seed: u64,
    rows: BTreeMap<(u64, Box<[u64]>), u64>,
    /// Rows that were looked at.
    seen: u64,
}

impl ChosenRows {
    /// At most so many points of so many numbers.
    pub fn new(most: usize, width: usize, seed: u64) -> Self {
        ChosenRows { most, width, seed, rows: BTreeMap::new(), seen: 0 }
    }

    /// Looks at rows, row-major; −0 counts as 0.
    pub fn add(&mut self, rows: &[f64]) {
        let mut point = vec![0.0; self.width];
        for row in rows.chunks_exact(self.width) {
            point.iter_mut().zip(row).for_each(|(out, x)| *out = x + 0.0);
            self.add_hashed(hash(&point, self.seed), &point, 1);
        }
    }

    /// Looks at a point of which there are so many rows.
    pub(super) fn add_hashed(&mut self, hash: u64, point: &[f64], count: u64) {
        self.seen += count;
        let full = self.rows.len() >= self.most;
        if full && self.rows.last_key_value().is_none_or(|(last, _)| hash > last.0) {
            return;
        }
        *self.rows.entry((hash, point.iter().map(|x| x.to_bits()).collect())).or_default() += count;
        self.shorten();
    }

    fn shorten(&mut self) {
        while self.rows.len() > self.most {
            self.rows.pop_last();
        }
    }

    /// Adds what another has looked at.
    pub fn merge(&mut self, other: &ChosenRows) {
        assert!((self.most, self.width, self.seed) == (other.most, other.width, other.seed), "of one plan");
        for (row, count) in &other.rows {
            *self.rows.entry(row.clone()).or_default() += count;
        }
        self.shorten();
        self.seen += other.seen;
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Rows that were looked at.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The points, row-major, in the order of their hashes, and how many rows each is.
    pub fn points(&self) -> (Vec<f64>, Vec<u64>) {
        let points = self.rows.keys().flat_map(|(_, bits)| bits.iter().map(|x| f64::from_bits(*x))).collect();
        (points, self.rows.values().copied().collect())
    }

    /// About how many different points there were: all that there are, or by the largest hash.
    pub fn different(&self) -> f64 {
        match self.rows.last_key_value() {
            Some((last, _)) if self.rows.len() == self.most => {
                (self.most - 1) as f64 * (u64::MAX as f64 / last.0 as f64)
            }
            _ => self.rows.len() as f64,
        }
    }

    pub(super) fn write(&self, out: &mut Writer) {
        out.number(self.seen);
        out.number(self.rows.len() as u64);
        for ((hash, bits), count) in &self.rows {
            out.number(*hash);
            bits.iter().for_each(|x| out.number(*x));
            out.number(*count);
        }
    }

    pub(super) fn read(from: &mut Reader, most: usize, width: usize, seed: u64) -> Option<Self> {
        let (seen, len) = (from.number()?, usize::try_from(from.number()?).ok()?);
        if len > most || !from.has(len.checked_mul(8 * (width + 2))?) {
            return None;
        }
        let mut this = ChosenRows { seen, ..ChosenRows::new(most, width, seed) };
        for _ in 0..len {
            let hash = from.number()?;
            let bits = (0..width).map(|_| from.number()).collect::<Option<Box<[u64]>>>()?;
            let count = from.number().filter(|count| *count > 0)?;
            this.rows.insert((hash, bits), count);
        }
        (this.rows.len() == len).then_some(this)
    }

    /// As bytes, with a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        [self.most as u64, self.width as u64, self.seed].iter().for_each(|x| out.number(*x));
        self.write(&mut out);
        out.sealed()
    }

    /// The inverse of [`ChosenRows::to_bytes`]; none of bytes that were cut short or changed.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::unsealed(bytes)?;
        let (most, width, seed) = (from.number()?, from.number()?, from.number()?);
        let this = Self::read(&mut from, usize::try_from(most).ok()?, usize::try_from(width).ok()?, seed)?;
        from.is_empty().then_some(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minvel_engine::random::{Draw, Key, Stream};

    #[test]
    fn the_same_points_are_chosen_from_any_parts_and_all_their_rows_are_counted() {
        let mut stream = Stream::new(Key::new(1, 0), 6);
        let rows: Vec<f64> = (0..4000).map(|_| stream.draw(Draw::Integer(900)) / 7.0).collect();
        let of = |rows: &[f64]| {
            let mut chosen = ChosenRows::new(100, 1, 5);
            chosen.add(rows);
            chosen
        };
        let whole = of(&rows);
        assert_eq!(whole.len(), 100);
        let (points, counts) = whole.points();
        for (x, count) in points.iter().zip(&counts) {
            assert_eq!(rows.iter().filter(|row| *row == x).count() as u64, *count);
        }
        for each in [1, 13, 999] {
            let mut parts: Vec<ChosenRows> = rows.chunks(each).map(of).collect();
            while parts.len() > 1 {
                let other = parts.swap_remove(stream.draw(Draw::Integer(parts.len() as u32)) as usize);
                let into = stream.draw(Draw::Integer(parts.len() as u32)) as usize;
                parts[into].merge(&ChosenRows::from_bytes(&other.to_bytes()).unwrap());
            }
            assert_eq!(parts[0].to_bytes(), whole.to_bytes(), "parts of {each}");
        }
        let different = rows.iter().map(|x| x.to_bits()).collect::<std::collections::HashSet<_>>().len() as f64;
        // k least hashes tell the number to 1/√(k − 2) of it.
        let z = (whole.different() / different - 1.0) * 98f64.sqrt();
        println!("z = {z:.2}");
        assert!(z.abs() < 4.0);
        let mut cut = whole.to_bytes();
        cut[30] ^= 1;
        assert_eq!(ChosenRows::from_bytes(&cut), None);
    }
}
