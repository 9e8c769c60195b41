//! Memory shared by buffers that are not needed at the same time.

use std::cmp::Reverse;
use std::collections::HashMap;

/// A buffer of some length that is needed from one moment to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub first: usize,
    pub last: usize,
    pub len: usize,
    pub buffer: usize,
}

/// Where each buffer goes, and how much room they take: the first place where it overlaps nobody that is there at the same time.
pub(crate) fn pack(mut intervals: Vec<Interval>) -> (HashMap<usize, usize>, usize) {
    // Larger ones first at equal start keeps the room tight; the order does not depend on who asks.
    intervals.sort_by_key(|i| (i.first, Reverse(i.len), i.buffer));
    let mut placed: Vec<(usize, Interval)> = vec![];
    let mut offsets = HashMap::new();
    let mut total = 0;
    for new in intervals {
        let meets = |i: &Interval| i.first <= new.last && new.first <= i.last;
        let mut taken: Vec<(usize, usize)> =
            placed.iter().filter(|(_, i)| meets(i)).map(|&(at, i)| (at, at + i.len)).collect();
        taken.sort_unstable();
        let mut at = 0;
        for (start, end) in taken {
            if at + new.len <= start {
                break;
            }
            at = at.max(end);
        }
        placed.push((at, new));
        offsets.insert(new.buffer, at);
        total = total.max(at + new.len);
    }
    (offsets, total)
}

#[cfg(test)]
mod tests {
    use super::{Interval, pack};

    #[test]
    fn buffers_share_room_unless_they_are_needed_together() {
        let interval = |(buffer, (first, last, len))| Interval { first, last, len, buffer };
        let spans = [(0, 1, 10), (0, 3, 20), (2, 3, 5), (2, 2, 5), (4, 4, 25)];
        let intervals: Vec<Interval> = spans.into_iter().enumerate().map(interval).collect();
        let (offsets, total) = pack(intervals.clone());
        for (i, a) in intervals.iter().enumerate() {
            for b in &intervals[i + 1..] {
                let (x, y) = (offsets[&a.buffer], offsets[&b.buffer]);
                let together = a.first <= b.last && b.first <= a.last;
                assert!(!together || x + a.len <= y || y + b.len <= x, "{a:?} at {x} and {b:?} at {y}");
            }
        }
        assert_eq!(total, 30, "the first two need 30, and nobody more");
    }
}
