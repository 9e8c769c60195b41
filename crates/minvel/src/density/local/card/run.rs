//! Rows to a GPU and their sums back: a piece on each thread, so that sorting, copying and summing go on side by side.

use super::Wanted;
use super::layout::Layout;
use super::source::source;
use crate::Error;
use crate::density::by_pieces;
use crate::density::local::kernels::{Kind, LocalKernels};
use crate::density::local::together;
use crate::train::Context;
use minvel_engine::{Argument, Buffer, DeviceError, Kernel, Queue};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows of a warp.
const WARP: usize = 32;
/// Rows of a piece.
const LEAST: usize = 1 << 15;
const MOST: usize = 1 << 18;
/// What stays on the processor has more numbers or families than this.
const NUMBERS: usize = 32;
const MEMBERS: usize = 64;

/// The lists of a density on a card.
pub(super) struct OnCard {
    index: usize,
    numbers: Buffer,
    plan: Buffer,
    /// Places for pieces, those that nobody works at.
    places: Mutex<Vec<Place>>,
}

/// Where a thread has its rows and sums on the card.
struct Place {
    queue: Queue,
    rows: Buffer,
    sums: Buffer,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OnCard {
    fn new(kernels: &LocalKernels, index: usize, kernel: &Kernel) -> Result<Self, DeviceError> {
        let Layout { numbers, plan } = Layout::of(kernels);
        let queue = kernel.queue()?;
        let this = OnCard {
            index,
            numbers: kernel.buffer(numbers.len())?,
            plan: kernel.buffer(plan.len())?,
            places: Mutex::default(),
        };
        queue.upload(&this.numbers, &numbers)?;
        queue.upload_counts(&this.plan, &plan)?;
        Ok(this)
    }

    /// A place with room for so many numbers.
    fn place(&self, kernel: &Kernel, rows: usize, sums: usize) -> Result<Place, DeviceError> {
        let free = lock(&self.places).pop();
        match free {
            Some(place) if place.rows.len() >= rows && place.sums.len() >= sums => Ok(place),
            _ => Ok(Place { queue: kernel.queue()?, rows: kernel.buffer(rows)?, sums: kernel.buffer(sums)? }),
        }
    }
}

/// What is asked of a card, once.
struct Task<'a> {
    kernels: &'a LocalKernels,
    card: &'a OnCard,
    kernel: &'a Kernel,
    /// Sums for each row.
    width: usize,
}

impl Task<'_> {
    /// Sums at some points, `[point, sum]`.
    fn piece(&self, points: &[f64], out: &mut [f64]) -> Result<(), DeviceError> {
        let m = self.kernels.ambient();
        let count = points.len() / m;
        let order = together(points, m, WARP, (0..count).collect());
        let columns: Vec<f64> = (0..m).flat_map(|j| order.iter().map(move |i| points[i * m + j])).collect();
        let place = self.card.place(self.kernel, columns.len(), out.len())?;
        place.queue.upload(&place.rows, &columns)?;
        let tolerance = (self.kernels.tolerance / self.kernels.families.len() as f64).ln();
        let arguments = [
            Argument::Buffer(&self.card.numbers),
            Argument::Buffer(&self.card.plan),
            Argument::Buffer(&place.rows),
            Argument::Buffer(&place.sums),
            Argument::Count(count),
            Argument::Count(self.kernels.layers.len()),
            Argument::Count(self.kernels.heaviest()),
            Argument::Number(tolerance),
            Argument::Number(self.kernels.log_uniform()),
        ];
        place.queue.run(self.kernel, count.div_ceil(Kernel::THREADS), &arguments)?;
        let sums = place.queue.download(&place.sums, out.len())?;
        lock(&self.card.places).push(place);
        for (k, sums) in sums.chunks(count).enumerate() {
            for (&i, sum) in order.iter().zip(sums) {
                out[i * self.width + k] = *sum;
            }
        }
        Ok(())
    }
}

impl LocalKernels {
    /// Whether a card can sum these kernels.
    fn fits_cards(&self, wanted: Wanted) -> bool {
        let shared = 8 * Kernel::THREADS * self.families.len();
        self.foreign.is_none()
            && self.ambient() <= NUMBERS
            && self.layers.iter().all(|layer| layer.members.len() <= MEMBERS)
            && (wanted == Wanted::Density || shared <= Kernel::SHARED)
    }

    /// What is wanted at each point, by a card; none where the processor must do it.
    pub(in crate::density::local) fn on_card(
        &self,
        index: usize,
        points: &[f64],
        wanted: Wanted,
        context: &Context,
    ) -> Result<Option<Vec<f64>>, Error> {
        if !self.fits_cards(wanted) {
            return Ok(None);
        }
        let families = if wanted == Wanted::Families { self.families.len() } else { 0 };
        let kernel = Kernel::compile(index, &source(&self.spaces, families), 8 * Kernel::THREADS * families)?;
        let card = self.resident(index, &kernel)?;
        let width = families.max(1);
        let task = Task { kernels: self, card: &card, kernel: &kernel, width };
        let (m, rows) = (self.ambient(), points.len() / self.ambient());
        let piece = rows.div_ceil(context.threads()).clamp(LEAST, MOST);
        let trouble = Mutex::new(None);
        let mut found = by_pieces(rows, width, piece, context, |first, out| {
            for (k, out) in out.chunks_mut(piece * width).enumerate() {
                let own = &points[(first + k * piece) * m..][..out.len() / width * m];
                if lock(&trouble).is_none()
                    && let Err(why) = task.piece(own, out)
                {
                    *lock(&trouble) = Some(why);
                }
            }
        })?;
        if let Some(why) = lock(&trouble).take() {
            return Err(why.into());
        }
        if wanted == Wanted::Families {
            self.each_alone(&mut found);
        }
        Ok(Some(found))
    }

    /// From logs of families with their shares to those without.
    fn each_alone(&self, logs: &mut [f64]) {
        let shares: Vec<f64> = self.families.iter().map(|family| family.share.ln()).collect();
        for row in logs.chunks_mut(self.families.len()) {
            for ((log, family), share) in row.iter_mut().zip(&self.families).zip(&shares) {
                *log = match (family.kind, self.log_volume) {
                    (Kind::Uniform, Some(log_volume)) => -log_volume,
                    _ if *log == f64::MIN => f64::MIN,
                    _ => *log - share,
                };
            }
        }
    }

    /// The lists on a card, put there the first time.
    fn resident(&self, index: usize, kernel: &Kernel) -> Result<Arc<OnCard>, DeviceError> {
        let mut there = lock(&self.resident.there);
        if let Some(card) = there.as_ref().filter(|card| card.index == index) {
            return Ok(card.clone());
        }
        let card = Arc::new(OnCard::new(self, index, kernel)?);
        *there = Some(card.clone());
        Ok(card)
    }
}
