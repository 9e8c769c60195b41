//! Points split into parts, repeats of a point in the same one.

use crate::density::repeats::first_rows;
use minvel_engine::random::{Draw, Key, Stream};

/// Which part each point belongs to.
pub struct Folds {
    fold: Vec<u32>,
}

impl Folds {
    /// `count` parts of about equal size, by seed.
    pub fn new(points: &[f64], ambient: usize, count: usize, seed: u64) -> Self {
        let mut draws = Stream::new(Key::new(seed, 0), 0);
        // Distinct points are dealt out in rounds, each round in an order of its own.
        let mut deck: Vec<u32> = vec![];
        let mut fold = first_rows(points, ambient);
        for row in 0..fold.len() {
            let first = fold[row] as usize;
            fold[row] = if first < row {
                fold[first]
            } else {
                if deck.is_empty() {
                    deck = (0..count as u32).collect();
                }
                let place = draws.draw(Draw::Integer(deck.len() as u32)) as usize;
                deck.swap_remove(place)
            };
        }
        Folds { fold }
    }

    /// Points whose parts are known.
    pub fn known(fold: Vec<u32>) -> Self {
        Folds { fold }
    }

    /// The part of point i.
    pub fn of(&self, i: usize) -> usize {
        self.fold[i] as usize
    }

    /// The points of a part, and all others.
    pub fn parts(&self, fold: usize) -> (Vec<usize>, Vec<usize>) {
        (0..self.fold.len()).partition(|&i| self.of(i) == fold)
    }
}
