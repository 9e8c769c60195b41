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
    width: usize,
    /// Rows that are worked on together.
    together: usize,
    threads: usize,
}

impl<'a, T> Rest<'a, T> {
    /// The next rows, at most so many pieces, and the number of the first. While several threads take rows, none takes more
    /// than half of its part of what is left: the last ones end at about the same time.
    fn take(&mut self, pieces: usize) -> Option<(usize, &'a mut [T])> {
        let (width, left) = (self.width, self.rows.len() / self.width);
        let most = match self.threads {
            1 => pieces,
            threads => pieces.min(left.div_ceil(self.together).div_ceil(2 * threads)),
        };
        let count = (most * self.together).min(left);
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
    let threads = context.threads().min(count.div_ceil(together)).max(1);
    let rest = Mutex::new(Rest { first: 0, rows: &mut out, width, together, threads });
    let done = AtomicUsize::new(0);
    let stop = context.stop.clone();
    let work = |tell: &dyn Fn()| {
        let mut piece = 1;
        while !stop.asked() {
            let taken = rest.lock().expect("no thread panics while it takes rows").take(piece);
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
        for _ in 1..threads {
            scope.spawn(|| work(&|| ()));
        }
        work(&tell);
    });
    context.go_on()?;
    tell();
    Ok(out)
}

/// Pieces of work at a time, at most: each may need as much memory as all rows.
const AT_ONCE: usize = 4;

/// What comes of each of `count` pieces of work that do not depend on each other, several at a time, each with its part of the threads: what
/// one piece does alone, others do meanwhile. They are begun in the order of their numbers, so the longest should come first. Each counts
/// as `units` of the open stage, or, on a single thread, counts its own; an error if one of them is an error, or if the context is
/// asked to stop.
pub(crate) fn side_by_side<T: Send>(
    count: usize,
    units: usize,
    context: &Context,
    work: impl Fn(usize, &Context) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let threads = context.threads();
    let workers = threads.min(count).min(AT_ONCE);
    if workers < 2 {
        return (0..count).map(|k| work(k, context)).collect();
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let places: Vec<Mutex<Option<Result<T, Error>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let run = |context: &Context, tell: &dyn Fn()| {
        while !context.stop.asked() {
            let k = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = places.get(k) else { break };
            *place.lock().expect("nobody else puts anything there") = Some(work(k, context));
            done.fetch_add(1, Ordering::Relaxed);
            tell();
        }
    };
    let told = Cell::new(0);
    let tell = || {
        let now = done.load(Ordering::Relaxed);
        context.worked(units * (now - told.replace(now)));
    };
    // The first workers have the threads that cannot be divided.
    let own = |k: usize| context.quiet_with(threads / workers + usize::from(k < threads % workers));
    std::thread::scope(|scope| {
        for k in 1..workers {
            let (own, run) = (own(k), &run);
            scope.spawn(move || run(&own, &|| ()));
        }
        run(&own(0), &tell);
    });
    context.go_on()?;
    tell();
    let found = |place: Mutex<Option<_>>| place.into_inner().expect("no thread panics").expect("all work was done");
    places.into_iter().map(found).collect()
}

/// How many of so many rows are added up in one piece, whatever the threads, so that rounding does not depend on them: few enough that
/// threads end at about the same time, and enough that a piece is worth taking.
pub(crate) fn summed_together(rows: usize) -> usize {
    (rows / 64).clamp(256, 2048)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pieces each thread takes where all take turns and every piece is as long as the others.
    fn turns(pieces: usize, threads: usize) -> Vec<usize> {
        let (mut rows, mut taken) = (vec![0u8; pieces], vec![0; threads]);
        let mut rest = Rest { first: 0, rows: &mut rows, width: 1, together: 1, threads };
        let mut next = vec![1; threads];
        // Whoever has worked least comes next, and asks for twice as much as before.
        while let Some(k) = (0..threads).min_by_key(|k| taken[*k])
            && let Some((_, rows)) = rest.take(next[k])
        {
            taken[k] += rows.len();
            next[k] *= 2;
        }
        taken
    }

    #[test]
    fn work_side_by_side_comes_back_in_its_order_with_its_part_of_the_threads() {
        for threads in [1, 2, 3, 16] {
            let context = Context::of_threads(threads);
            let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let found = side_by_side(10, 1, &context, |k, own| {
                most.fetch_max(working.fetch_add(own.threads, Ordering::SeqCst) + own.threads, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
                working.fetch_sub(own.threads, Ordering::SeqCst);
                Ok(k * k)
            });
            assert_eq!(found.unwrap(), (0..10).map(|k| k * k).collect::<Vec<_>>());
            let most = most.into_inner();
            assert!(most <= threads, "more threads than there are: {most} of {threads}");
        }
        let broken = side_by_side(3, 1, &Context::of_threads(2), |k, _| {
            if k == 1 { Err(Error::config("no".to_string())) } else { Ok(k) }
        });
        assert!(broken.is_err());
        let context = Context::of_threads(2);
        context.stop.ask();
        assert!(side_by_side(3, 1, &context, |k, _| Ok(k)).is_err(), "a request to stop was not heard");
    }

    #[test]
    fn threads_end_at_about_the_same_time() {
        // With pieces that only doubled, four of them were dealt out as 3 and 1, ten as 7 and 3.
        assert_eq!(turns(4, 2), [2, 2]);
        for (pieces, threads) in [(10, 2), (64, 2), (1000, 2), (1000, 3), (1000, 16)] {
            let taken = turns(pieces, threads);
            let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
            assert_eq!(taken.iter().sum::<usize>(), pieces);
            assert!(most - least <= 2, "{pieces} pieces: {taken:?}");
        }
        assert_eq!(turns(10, 1), [10]);
    }
}
