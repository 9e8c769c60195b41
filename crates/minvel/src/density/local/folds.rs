//! Points split into parts, repeats of a point and groups of points in the same one.

use crate::density::repeats::first_rows;
use crate::density::sample::Sample;
use minvel_engine::random::{Draw, Key, Stream};

/// Which part each point belongs to.
pub struct Folds {
    fold: Vec<u32>,
}

impl Folds {
    /// `count` parts of about equally many points or groups, by seed.
    pub fn new(sample: &Sample, ambient: usize, count: usize, seed: u64) -> Self {
        let mut draws = Stream::new(Key::new(seed, 0), 0);
        // Distinct points are dealt out in rounds, each round in an order of its own.
        let mut deck: Vec<u32> = vec![];
        let mut fold = match sample.groups() {
            [] => first_rows(sample.points(), ambient),
            groups => first_of(groups),
        };
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

/// For each point, the first one of its group.
fn first_of(groups: &[u32]) -> Vec<u32> {
    let mut first = std::collections::HashMap::new();
    (0..).zip(groups).map(|(i, group)| *first.entry(*group).or_insert(i)).collect()
}
