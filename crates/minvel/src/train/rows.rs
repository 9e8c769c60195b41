//! Loops over rows: by several threads, in pieces short enough that a request to stop is heard.

use super::context::Context;
use crate::Error;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread works before it looks up.
const PIECE: Duration = Duration::from_millis(20);

/// Rows that no thread has taken.
struct Rest<'a, T> {
    first: usize,
    rows: &'a mut [T],
}

impl<'a, T> Rest<'a, T> {
    /// The next rows, at most so many, and the number of the first.
    fn take(&mut self, count: usize, width: usize) -> Option<(usize, &'a mut [T])> {
        let count = count.min(self.rows.len() / width);
        let (taken, rows) = std::mem::take(&mut self.rows).split_at_mut(count * width);
        let first = self.first;
        (self.rows, self.first) = (rows, first + count);
        (count > 0).then_some((first, taken))
    }
}

/// `width` values for each of `count` rows, by the threads of the context, which each fill some rows at a time:
/// `work(first row, rows to fill)`. A row must not depend on the others. Counts rows of the open stage; an error if the
/// context is asked to stop.
pub fn by_rows<T: Clone + Default + Send>(
    count: usize,
    width: usize,
    context: &Context,
    work: impl Fn(usize, &mut [T]) + Sync,
) -> Result<Vec<T>, Error> {
    by_pieces(count, width, 1, context, work)
}

/// The same where rows are worked on `together` at a time: pieces begin at multiples of it, and a row may depend on the
/// others of its piece.
pub fn by_pieces<T: Clone + Default + Send>(
    count: usize,
    width: usize,
    together: usize,
    context: &Context,
    work: impl Fn(usize, &mut [T]) + Sync,
) -> Result<Vec<T>, Error> {
    let mut out = vec![T::default(); count * width];
    let rest = Mutex::new(Rest { first: 0, rows: &mut out });
    let done = AtomicUsize::new(0);
    let stop = context.stop.clone();
    let work = |tell: &dyn Fn()| {
        let mut piece = 1;
        while !stop.asked() {
            let taken = rest.lock().expect("no thread panics while it takes rows").take(piece * together, width);
            let Some((first, rows)) = taken else { break };
            let begun = Instant::now();
            work(first, rows);
            let each = begun.elapsed() / (rows.len() / width).div_ceil(together) as u32;
            piece = (PIECE.as_nanos() / each.as_nanos().max(1)).clamp(1, 2 * piece as u128) as usize;
            done.fetch_add(rows.len() / width, Ordering::Relaxed);
            tell();
        }
    };
    let told = Cell::new(0);
    let tell = || {
        let now = done.load(Ordering::Relaxed);
        context.worked(now - told.replace(now));
    };
    std::thread::scope(|scope| {
        for _ in 1..context.threads().min(count.div_ceil(together)) {
            scope.spawn(|| work(&|| ()));
        }
        work(&tell);
    });
    context.go_on()?;
    tell();
    Ok(out)
}
