//! Loops over rows: by several threads, in pieces short enough that a request to stop is heard.

use super::context::{Context, Observer, Spare};
use crate::Error;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

/// Pieces of work at a time, at most, where each may need as much memory as all rows.
pub(crate) const FEW_AT_ONCE: usize = 4;
/// And where each needs little beside what all of them look at.
pub(crate) const MANY_AT_ONCE: usize = 16;

/// What comes of each of `count` pieces of work that do not depend on each other, `most` at a time, each with its part of the threads, and at the end of those
/// of pieces that are done: what one piece does alone, others do meanwhile. They are begun in the order of their numbers, so the longest should come first. What each
/// counts adds up in the open stage; an error if one of them is an error, or if the context is asked to stop.
pub(crate) fn side_by_side<T: Send>(
    count: usize,
    most: usize,
    context: &Context,
    work: impl Fn(usize, &Context) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let threads = context.own_threads();
    let workers = threads.min(count).clamp(1, most);
    let (next, all) = (AtomicUsize::new(0), Together { observer: context.observer, done: Mutex::new(context.done()) });
    let places: Vec<Mutex<Option<Result<T, Error>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let spare = Spare::none(workers, context);
    // The first workers have the threads that cannot be divided.
    let own =
        |k: usize| context.beside(context.observer, threads / workers + usize::from(k < threads % workers), &spare);
    let run = |own: Context| -> f64 {
        let mut seconds = 0.0f64;
        while !own.stop.asked() {
            let k = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = places.get(k) else { break };
            let part = Part { all: &all, own: AtomicU64::new(0) };
            let context = own.beside(&part, own.threads, &spare);
            *place.lock().expect("nobody else puts anything there") = Some(work(k, &context));
            seconds = seconds.max(context.earlier());
        }
        spare.leave(own.threads);
        seconds
    };
    let seconds = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(own).map(|own| scope.spawn(|| run(own))).collect();
        let mine = run(own(0));
        others.into_iter().fold(mine, |most, other| most.max(other.join().expect("no thread panics")))
    });
    context.go_on()?;
    context.resumed(seconds);
    context.counted(*all.done.lock().expect("all work is done"));
    let found = |place: Mutex<Option<_>>| place.into_inner().expect("no thread panics").expect("all work was done");
    places.into_iter().map(found).collect()
}

/// Whom all pieces of work side by side tell what they have done.
struct Together<'a> {
    observer: &'a dyn Observer,
    done: Mutex<u64>,
}

/// One of them.
struct Part<'a> {
    all: &'a Together<'a>,
    own: AtomicU64,
}

impl Observer for Part<'_> {
    fn advance(&self, done: u64, note: &str) {
        let more = done.saturating_sub(self.own.fetch_max(done, Ordering::Relaxed));
        let mut all = self.all.done.lock().expect("no observer panics");
        *all += more;
        self.all.observer.advance(*all, note);
    }

    fn resumed(&self, done: u64) {
        self.advance(done, "");
    }
}

/// How many of so many rows are added up in one piece, whatever the threads, so that rounding does not depend on them: few enough that
/// threads end at about the same time, and enough that a piece is worth taking.
pub(crate) fn summed_together(rows: usize) -> usize {
    (rows / 64).clamp(256, 2048)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::Stop;

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
            let found = side_by_side(10, MANY_AT_ONCE, &context, |k, own| {
                most.fetch_max(working.fetch_add(own.threads, Ordering::SeqCst) + own.threads, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
                working.fetch_sub(own.threads, Ordering::SeqCst);
                Ok(k * k)
            });
            assert_eq!(found.unwrap(), (0..10).map(|k| k * k).collect::<Vec<_>>());
            let most = most.into_inner();
            assert!(most <= threads, "more threads than there are: {most} of {threads}");
        }
        let broken = side_by_side(3, FEW_AT_ONCE, &Context::of_threads(2), |k, _| {
            if k == 1 { Err(Error::config("no".to_string())) } else { Ok(k) }
        });
        assert!(broken.is_err());
        let context = Context::of_threads(2);
        context.stop.ask();
        assert!(side_by_side(3, FEW_AT_ONCE, &context, |k, _| Ok(k)).is_err(), "a request to stop was not heard");
    }

    #[derive(Default)]
    struct Heard(Mutex<Vec<u64>>);

    impl Observer for Heard {
        fn advance(&self, done: u64, _note: &str) {
            self.0.lock().unwrap().push(done);
        }
    }

    #[test]
    fn what_work_side_by_side_counts_adds_up_whether_it_counts_rows_or_says_how_far_it_is() {
        for threads in [1, 3] {
            let heard = Heard::default();
            let mut context = Context::watched(&heard, Stop::default());
            context.threads = threads;
            let work = |k: usize, own: &Context| {
                (0..5).for_each(|_| own.worked(2));
                own.begin("steps", 20, 10);
                (11..=20).for_each(|step| own.advance(step, ""));
                Ok(k)
            };
            context
                .stage("all", 84, "units", || {
                    context.worked(4);
                    side_by_side(4, FEW_AT_ONCE, &context, work)?;
                    context.worked(1);
                    Ok(())
                })
                .unwrap();
            let heard = heard.0.into_inner().unwrap();
            assert!(heard.is_sorted(), "{threads} threads: {heard:?}");
            assert_eq!((heard[0], heard[heard.len() - 2], heard[heard.len() - 1]), (4, 84, 85));
            // Outside a stage nobody hears of it.
            let silence = Heard::default();
            let mut context = Context::watched(&silence, Stop::default());
            context.threads = threads;
            let work = |k: usize, own: &Context| {
                own.worked(k);
                Ok(k)
            };
            side_by_side(2, FEW_AT_ONCE, &context, work).unwrap();
            assert!(silence.0.into_inner().unwrap().is_empty());
        }
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
