//! Points split into parts, repeats of a point in the same one.

use minvel_engine::random::{Draw, Key, Stream};
use std::collections::HashMap;

/// Which part each point belongs to.
pub struct Folds {
    fold: Vec<usize>,
}

impl Folds {
    /// `count` parts of about equal size, by seed.
    pub fn new(points: &[f64], ambient: usize, count: usize, seed: u64) -> Self {
        let mut known: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut draws = Stream::new(Key::new(seed, 0), 0);
        // Distinct points are dealt out in rounds, each round in an order of its own.
        let mut deck: Vec<usize> = vec![];
        let fold = points
            .chunks(ambient)
            .map(|point| {
                let bits: Vec<u64> = point.iter().map(|x| x.to_bits()).collect();
                *known.entry(bits).or_insert_with(|| {
                    if deck.is_empty() {
                        deck = (0..count).collect();
                    }
                    let place = draws.draw(Draw::Integer(deck.len() as u32)) as usize;
                    deck.swap_remove(place)
                })
            })
            .collect();
        Folds { fold }
    }

    /// The part of point i.
    pub fn of(&self, i: usize) -> usize {
        self.fold[i]
    }

    /// The points of a part, and all others.
    pub fn parts(&self, fold: usize) -> (Vec<usize>, Vec<usize>) {
        (0..self.fold.len()).partition(|&i| self.fold[i] == fold)
    }
}
