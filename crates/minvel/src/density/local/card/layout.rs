//! The lists of a density as a GPU reads them: one row of numbers, and a plan of where in it everything is.

use super::source::is_round;
use crate::density::local::index::Balls;
use crate::density::local::kernels::{Kind, LocalKernels};
use crate::density::local::lanes::BLOCK;
use crate::density::local::layer::{Layer, Promise};

/// Bounds a + b d² of the kernels of a ball.
pub(super) const BOUNDS: usize = 8;
/// Words of the plan about a list of centres.
pub(super) const HEAD: usize = 10;
/// Words of the plan, and numbers, about a family of a list.
pub(super) const WORDS: usize = 6;
pub(super) const NUMBERS: usize = 4;

/// What the kernel is given. The numbers begin with the scales of natural kernels.
pub(super) struct Layout {
    pub numbers: Vec<f64>,
    pub plan: Vec<u64>,
}

impl Layout {
    pub fn of(kernels: &LocalKernels) -> Self {
        let scales = kernels.bump().scales().to_vec();
        let mut this = Layout { numbers: scales, plan: vec![0; HEAD * kernels.layers.len()] };
        for (k, layer) in kernels.layers.iter().enumerate() {
            let head = this.list(kernels, layer);
            this.plan[HEAD * k..][..HEAD].copy_from_slice(&head);
        }
        this
    }

    fn put(&mut self, values: &[f64]) -> u64 {
        self.numbers.extend_from_slice(values);
        (self.numbers.len() - values.len()) as u64
    }

    fn list(&mut self, kernels: &LocalKernels, layer: &Layer) -> [u64; HEAD] {
        let (groups, blocks) = (&layer.index.groups, &layer.index.blocks);
        let m = kernels.ambient();
        let placed = layer.members.iter().any(|member| !member.kind.is_natural());
        let at_groups = self.balls(groups, m, |k| layer.of_group(k));
        let at_blocks = self.balls(blocks, m, |k| layer.of_block(k));
        let centres = self.centres(kernels, layer);
        let weights = self.put(&layer.weights);
        let (numbers, words) = self.members(layer);
        let counts = [layer.members.len(), groups.len(), blocks.len(), usize::from(placed)].map(|count| count as u64);
        let [members, groups, blocks, placed] = counts;
        [members, groups, blocks, placed, at_groups, at_blocks, centres, weights, numbers, words]
    }

    /// `[number, ball]`: the middle, the radius, and the bounds.
    fn balls<'a>(&mut self, balls: &Balls, m: usize, promises: impl Fn(usize) -> &'a [Promise]) -> u64 {
        let count = balls.len();
        let mut values = vec![0.0; (m + 1 + 2 * BOUNDS) * count];
        for k in 0..count {
            let ball = balls.ball(k, m);
            let bounds = frontier(promises(k)).into_iter().flat_map(|(high, slope)| [high, slope]);
            let own = ball.centre.iter().copied().chain([ball.radius]).chain(bounds);
            own.enumerate().for_each(|(j, value)| values[j * count + k] = value);
        }
        self.put(&values)
    }

    /// `[block, number, lane]`: the centres, and for each round space 1/(1 + |c|) of the last number there.
    fn centres(&mut self, kernels: &LocalKernels, layer: &Layer) -> u64 {
        let m = kernels.ambient();
        let mut ends = vec![];
        let mut at = 0;
        for space in &kernels.spaces {
            at += space.ambient();
            if is_round(space) {
                ends.push(at - 1);
            }
        }
        let start = self.numbers.len() as u64;
        for block in layer.centres.chunks(m * BLOCK) {
            self.numbers.extend_from_slice(block);
            for end in &ends {
                self.numbers.extend(block[end * BLOCK..][..BLOCK].iter().map(|c| 1.0 / (1.0 + c.abs())));
            }
        }
        start
    }

    /// Where numbers and words of the families are.
    fn members(&mut self, layer: &Layer) -> (u64, u64) {
        let shapes: Vec<Option<[u64; 2]>> = layer
            .shapes
            .iter()
            .map(|shape| shape.as_ref().map(|shape| [self.put(&shape.factors), self.put(&shape.logs)]))
            .collect();
        let (mut numbers, mut words) = (vec![], vec![]);
        for member in &layer.members {
            let (kind, lists) = match member.kind {
                Kind::Uniform | Kind::Fixed { .. } | Kind::Grouped { .. } => (0, [0; 4]),
                Kind::Natural { .. } => (1, [0; 4]),
                Kind::Local { shape, .. } | Kind::Component { shape } => {
                    let [factors, logs] = shapes[shape].expect("a shape of this layer");
                    let kind = if member.kind.is_natural() { 3 } else { 2 };
                    (kind, [factors, logs, self.put(&member.highs), self.put(&member.rates)])
                }
            };
            // Promises of kinds without covariances are the same about every centre.
            numbers.extend([member.base + member.log_share, member.rate, member.highs[0], member.rates[0]]);
            words.extend([kind, member.family as u64].into_iter().chain(lists));
        }
        self.plan.extend_from_slice(&words);
        (self.put(&numbers), (self.plan.len() - words.len()) as u64)
    }
}

/// The bounds that no other bound makes needless, at most [`BOUNDS`] of them: some are taken together where there are more.
fn frontier(promises: &[Promise]) -> [(f64, f64); BOUNDS] {
    let parts = promises.iter().flat_map(Promise::parts).copied().filter(|part| part.0 > f64::NEG_INFINITY);
    let mut parts: Vec<(f64, f64)> = parts.collect();
    parts.sort_unstable_by(|x, y| y.1.total_cmp(&x.1).then(y.0.total_cmp(&x.0)));
    let mut high = f64::NEG_INFINITY;
    parts.retain(|part| {
        let counts = part.0 > high;
        high = high.max(part.0);
        counts
    });
    let mut bounds = [(f64::NEG_INFINITY, 0.0); BOUNDS];
    // From the slowest to fall and lowest, to the quickest and highest.
    for (bound, own) in bounds.iter_mut().zip(parts.chunks(parts.len().div_ceil(BOUNDS).max(1))) {
        *bound = (own[own.len() - 1].0, own[0].1);
    }
    bounds
}
