//! Any manifold in plain numbers: normal coordinates, points and distances by compiled programs.
//!
//! **Statement.** v_j = ⟨e_j, log_c x⟩ and log|dvol/dv|, x = exp_c(Σ v_j e_j), d(c, x)², and the derivative of
//! Σ p_j v_j − q log|dvol/dv| by x, for an orthonormal frame e at c. **Source.** docs/math §3.1.
//! **Conventions.** Rows come in any number; a list of one row stands for all. Frames follow from their points.
//! **Error.** Rounding, in f64. **Checked by** tests/densities/foreign.rs.

use super::{Manifold, derived};
use crate::Error;
use minvel_engine::{Clock, Device, Expr, Graph, Options, Program, State, concat, grad};
use std::fmt;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard};

/// Rows of a program.
const ROWS: usize = 64;
/// Threads that can work at once.
const MOST: usize = 8;

/// A manifold in numbers.
pub(crate) struct InNumbers {
    /// The manifold itself.
    pub manifold: Arc<dyn Manifold>,
    /// Its name.
    pub name: String,
    pub dim: usize,
    pub ambient: usize,
    pub injectivity: f64,
    pub volume: Option<f64>,
    workers: Vec<Mutex<Programs>>,
}

/// Centres with their frames, and points beside them.
#[derive(Clone, Copy)]
pub(crate) struct Pairs<'a> {
    pub centres: &'a [f64],
    pub frames: &'a [f64],
    pub points: &'a [f64],
}

impl fmt::Debug for InNumbers {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} in numbers", self.name)
    }
}

impl PartialEq for InNumbers {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

struct Programs {
    frames: Batch,
    coordinates: Batch,
    points: Batch,
    squares: Batch,
    slopes: Batch,
    base: Batch,
}

impl Programs {
    fn new(m: &dyn Manifold) -> Self {
        let (n, wide) = (m.dim(), m.ambient());
        Programs {
            frames: Batch::new(&[wide], |_, x| concat(&derived::frame(m, x[0]), -1)),
            coordinates: Batch::new(&[wide, n * wide, wide], |_, x| {
                let (v, log) = coordinates(m, x[0], &vectors(x[1], n), x[2]);
                concat(&[v, log.expand(-1)], -1)
            }),
            points: Batch::new(&[wide, n * wide, n], |_, x| m.exp(x[0], derived::spanned(&vectors(x[1], n), x[2]))),
            squares: Batch::new(&[wide, wide], |_, x| m.distance(x[0], x[1]).square().expand(-1)),
            slopes: Batch::new(&[wide, n * wide, wide, n, 1], |_, x| {
                let (v, log) = coordinates(m, x[0], &vectors(x[1], n), x[2]);
                grad(x[3].dot(v) - x[4].at(-1, 0) * log, &[x[2]])[0]
            }),
            base: Batch::new(&[], |g, _| {
                let x = m.sample_base(g, ROWS, 0);
                concat(&[x, m.base_energy(x).expand(-1)], -1)
            }),
        }
    }
}

/// The vectors of a frame that stand one after another.
fn vectors(frame: Expr<'_>, n: usize) -> Vec<Expr<'_>> {
    let wide = frame.shape().features() / n;
    (0..n).map(|j| frame.slice(-1, j * wide, wide)).collect()
}

/// Normal coordinates of x about c, and log|dvol/dv| there.
fn coordinates<'g>(m: &dyn Manifold, c: Expr<'g>, frame: &[Expr<'g>], x: Expr<'g>) -> (Expr<'g>, Expr<'g>) {
    let u = m.log(c, x);
    let v: Vec<Expr> = frame.iter().map(|e| m.inner(c, *e, u).expand(-1)).collect();
    (concat(&v, -1), m.exp_log_volume(c, u))
}

/// A program of some rows, for any number of them.
struct Batch {
    program: Program<f64>,
    state: State<f64>,
    /// Name and numbers of each argument, for all rows.
    arguments: Vec<(String, Vec<f64>)>,
}

impl Batch {
    /// A function of arguments of these widths.
    fn new(widths: &[usize], f: impl for<'g> Fn(&'g Graph, &[Expr<'g>]) -> Expr<'g>) -> Self {
        let g = Graph::new();
        let names: Vec<String> = (0..widths.len()).map(|k| format!("argument-{k}")).collect();
        let given: Vec<Expr> = names.iter().zip(widths).map(|(name, w)| g.input_rows(name, ROWS, [*w])).collect();
        let options = Options { device: Device::Cpu, threads: 1, ..Options::default() };
        let program = g.compile(&[f(&g, &given)], &[], &options);
        let arguments = names.into_iter().zip(widths).map(|(name, w)| (name, vec![0.0; ROWS * w])).collect();
        Batch { program, state: State::new(1), arguments }
    }

    /// Its values for `count` rows, handed over some at a time; arguments are lists of one row or of `count`.
    fn apply(&mut self, count: usize, given: &[&[f64]], clock: Clock, mut take: impl FnMut(usize, &[f64])) {
        for (batch, first) in (0..count).step_by(ROWS).enumerate() {
            let rows = ROWS.min(count - first);
            for ((_, to), from) in self.arguments.iter_mut().zip(given) {
                let width = to.len() / ROWS;
                for (i, to) in to.chunks_mut(width).enumerate() {
                    let row = if from.len() == width { 0 } else { first + i.min(rows - 1) };
                    to.copy_from_slice(&from[row * width..][..width]);
                }
            }
            let inputs: Vec<(&str, &[f64])> = self.arguments.iter().map(|(n, v)| (n.as_str(), v.as_slice())).collect();
            self.program.run(&mut self.state, &inputs, Clock { step: clock.step + batch as u32, ..clock });
            let values = self.program.output(0);
            take(first, &values[..values.len() / ROWS * rows]);
        }
    }
}

/// Where there is no noise.
const STILL: Clock = Clock { seed: 0, step: 0 };

impl InNumbers {
    /// An error where the geometry contradicts itself, which says by which method.
    pub fn new(manifold: &Arc<dyn Manifold>) -> Result<Self, Error> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let this = InNumbers {
            manifold: manifold.clone(),
            name: manifold.to_string(),
            dim: manifold.dim(),
            ambient: manifold.ambient(),
            injectivity: manifold.injectivity(),
            volume: manifold.volume(),
            workers: (0..cores.min(MOST)).map(|_| Mutex::new(Programs::new(&**manifold))).collect(),
        };
        this.sound(&**manifold).map_err(|why| Error::config(format!("{manifold} cannot be fitted: {why}")))?;
        Ok(this)
    }

    /// Whether the methods agree at the origin.
    fn sound(&self, manifold: &dyn Manifold) -> Result<(), String> {
        let (o, n, r) = (manifold.origin(), self.dim, self.injectivity);
        manifold.check(&o).map_err(|why| format!("`origin` is no point: {why}"))?;
        if r.is_nan() || r <= 0.0 {
            return Err(format!("`injectivity` must be positive, not {r}"));
        }
        let (frames, length) = (self.frames(&o), 0.5 * r.min(1.0));
        let v: Vec<f64> = (0..n * n).map(|k| if k / n == k % n { length } else { 0.0 }).collect();
        let points = self.points(&o, &frames, &v);
        let (mut found, mut logs) = (vec![0.0; n * n], vec![0.0; n]);
        self.coordinates(Pairs { centres: &o, frames: &frames, points: &points }, &mut found, &mut logs);
        let off = v.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // Infinite where the coordinates are no numbers.
        if off > 1e-6 * length || !logs.iter().all(|l| l.is_finite()) {
            return Err(format!("`log` does not invert `exp_delta` at the origin for vectors of length {length}"));
        }
        if let Some(volume) = self.volume {
            let mut off = 0.0f64;
            let m = self.ambient;
            self.worker().base.apply(ROWS, &[], STILL, |_, values| {
                off = values.chunks(m + 1).map(|row| (row[m] - volume.ln()).abs()).fold(off, f64::max);
            });
            if off > 1e-6 {
                return Err(
                    "`volume` is given, but the base law is not uniform: give `sample_base` and `base_energy` \
                            of the uniform law too, or no volume"
                        .into(),
                );
            }
        }
        Ok(())
    }

    /// Programs that nobody uses.
    fn worker(&self) -> MutexGuard<'_, Programs> {
        let free = self.workers.iter().find_map(|w| w.try_lock().ok());
        free.unwrap_or_else(|| self.workers[0].lock().expect("no thread panics while it computes"))
    }

    /// An orthonormal frame at each point, n vectors one after another.
    pub fn frames(&self, points: &[f64]) -> Vec<f64> {
        let width = self.dim * self.ambient;
        let mut out = vec![0.0; points.len() / self.ambient * width];
        let count = points.len() / self.ambient;
        self.worker().frames.apply(count, &[points], STILL, |first, values| {
            out[first * width..][..values.len()].copy_from_slice(values);
        });
        out
    }

    /// Writes normal coordinates, n for each pair, and log|dvol/dv|: infinite where there are none.
    pub fn coordinates(&self, pairs: Pairs, v: &mut [f64], logs: &mut [f64]) {
        let n = self.dim;
        let given = [pairs.centres, pairs.frames, pairs.points];
        self.worker().coordinates.apply(logs.len(), &given, STILL, |first, values| {
            for (i, row) in values.chunks(n + 1).enumerate() {
                let (own, log) = (&mut v[(first + i) * n..][..n], &mut logs[first + i]);
                own.copy_from_slice(&row[..n]);
                *log = row[n];
                if !row.iter().all(|x| x.is_finite()) {
                    own.fill(0.0);
                    *log = f64::INFINITY;
                }
            }
        });
    }

    /// The points with normal coordinates v, n for each.
    pub fn points(&self, centres: &[f64], frames: &[f64], v: &[f64]) -> Vec<f64> {
        let m = self.ambient;
        let count = v.len() / self.dim;
        let mut out = vec![0.0; count * m];
        self.worker().points.apply(count, &[centres, frames, v], STILL, |first, values| {
            out[first * m..][..values.len()].copy_from_slice(values);
        });
        out
    }

    /// d(c, x)² of each centre and one point; infinite where there is no number.
    pub fn squares(&self, centres: &[f64], point: &[f64], out: &mut [f64]) {
        self.worker().squares.apply(out.len(), &[centres, point], STILL, |first, values| {
            for (out, value) in out[first..].iter_mut().zip(values) {
                *out = if value.is_finite() { *value } else { self.injectivity.powi(2) };
            }
        });
    }

    /// Adds the derivative of Σ_pairs (pull·v − part·log|dvol/dv|) by the point, the same in all pairs.
    pub fn add_slopes(&self, pairs: Pairs, pulls: &[f64], parts: &[f64], out: &mut [f64]) {
        let given = [pairs.centres, pairs.frames, pairs.points, pulls, parts];
        self.worker().slopes.apply(parts.len(), &given, STILL, |_, values| {
            for row in values.chunks(self.ambient) {
                out.iter_mut().zip(row).for_each(|(out, d)| *out += d);
            }
        });
    }

    /// Points of the base law.
    pub fn base(&self, count: usize, seed: u64) -> Vec<f64> {
        let m = self.ambient;
        let mut out = Vec::with_capacity(count * m);
        self.worker().base.apply(count, &[], Clock { seed, step: 0 }, |_, values| {
            values.chunks(m + 1).for_each(|row| out.extend_from_slice(&row[..m]));
        });
        out
    }
}
