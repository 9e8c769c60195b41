//! Ways to look at a learnt auto-encoder: samples, reconstructions, paths between images, the whole latent sphere.
//!
//! **Statement.** Samples: mean pixels of p(x|z), z of the prior. Paths: mean pixels along the geodesic
//! z_t = exp_{z_0}(t·log_{z_0} z_1) between the codes of two images.
//! **Conventions.** Images are intensities in [0, 1], zeros and ones where the likelihood is Bernoulli, row-major `[replica, image, pixel]`.
//! Many go through in groups of [`AT_ONCE`], each group with the random numbers of its own step; a reconstruction is the decoded
//! code, bit by bit. **Checked by** tests/theory/autoencoder.rs, tests/theory/codec.rs.

use super::Autoencoder;
use super::learning::outside;
use minvel_engine::math::Real;
use minvel_engine::{Clock, DeviceError, Expr, Graph, Options, State};

/// Rows of a program: samples, images or codes.
pub(super) const AT_ONCE: usize = 500;

/// Programs that look at a model.
#[derive(Clone, Debug)]
pub struct Views<'a> {
    /// The model.
    pub model: &'a Autoencoder,
    /// Where to compute, and for how many replicas.
    pub options: Options,
    /// Of the random numbers.
    pub seed: u64,
}

impl Views<'_> {
    /// Mean pixels of codes of the prior.
    pub fn samples<T: Real>(&self, state: &mut State<T>, count: usize) -> Result<Vec<T>, DeviceError> {
        let g = Graph::new();
        let rows = count.min(AT_ONCE);
        let codes = self.model.latent.sample_base(&g, rows, outside("samples"));
        let mut program = g.try_compile::<T>(&[self.model.decoder.mean(codes)], &[], &self.options)?;
        let pixels = self.model.decoder.pixels();
        let mut all = vec![Vec::with_capacity(count * pixels); self.options.replicas];
        for step in 0..count.div_ceil(rows.max(1)) {
            program.try_run(state, &[], Clock { seed: self.seed, step: step as u32 })?;
            let wanted = rows.min(count - step * rows) * pixels;
            let parts = program.try_output(0)?.chunks(rows * pixels);
            all.iter_mut().zip(parts).for_each(|(own, part)| own.extend(&part[..wanted]));
        }
        Ok(all.concat())
    }

    /// Mean pixels of given codes, `[count, m]` for all replicas or for each.
    pub fn decoded<T: Real>(&self, state: &mut State<T>, codes: &[T], count: usize) -> Result<Vec<T>, DeviceError> {
        let m = self.model.latent.ambient();
        self.in_groups(state, codes, [count, m], 0, |codes| self.model.decoder.mean(codes))
    }

    /// Codes of given images: a draw of the posterior.
    pub fn codes<T: Real>(&self, state: &mut State<T>, images: &[T]) -> Result<Vec<T>, DeviceError> {
        self.draws(state, images, 0)
    }

    /// The same, draw number `draw` of several independent ones; the first is [`Views::codes`].
    pub fn draws<T: Real>(&self, state: &mut State<T>, images: &[T], draw: u32) -> Result<Vec<T>, DeviceError> {
        let size = self.size(images.len());
        let first = draw * size[0].div_ceil(AT_ONCE) as u32;
        self.in_groups(state, images, size, first, |images| self.code(images))
    }

    /// The means of the posteriors of given images, where the family has one.
    pub fn means<T: Real>(&self, state: &mut State<T>, images: &[T]) -> Option<Result<Vec<T>, DeviceError>> {
        self.model.encoder.posterior.has_mean().then(|| {
            let Autoencoder { encoder, decoder, .. } = self.model;
            self.in_groups(state, images, self.size(images.len()), 0, |x| encoder.mean(decoder.likelihood.pixels(x)))
        })
    }

    /// Mean pixels of the codes of given images.
    pub fn reconstructions<T: Real>(&self, state: &mut State<T>, images: &[T]) -> Result<Vec<T>, DeviceError> {
        let codes = self.codes(state, images)?;
        self.decoded(state, &codes, self.size(images.len())[0])
    }

    /// Mean pixels along geodesics between the codes of pairs of images, `points` on each path with both ends.
    pub fn paths<T: Real>(
        &self,
        state: &mut State<T>,
        from: &[T],
        to: &[T],
        points: usize,
    ) -> Result<Vec<T>, DeviceError> {
        assert!(from.len() == to.len() && points > 1, "a path goes from an image to another, by two points or more");
        let pixels = self.model.decoder.pixels();
        let pairs = from.len() / pixels;
        if pairs == 0 {
            return Ok(vec![]);
        }
        let repeated = |images: &[T]| -> Vec<T> {
            images.chunks(pixels).flat_map(|image| std::iter::repeat_n(image, points)).flatten().copied().collect()
        };
        let times: Vec<f64> = (0..pairs * points).map(|k| (k % points) as f64 / (points - 1) as f64).collect();
        let g = Graph::new();
        let rows = pairs * points;
        let (a, b) = (g.input_rows("from", rows, [pixels]), g.input_rows("to", rows, [pixels]));
        // Both ends of every point of a path need the noise of the first.
        let first: Vec<f64> = (0..rows).map(|k| (k / points * points) as f64).collect();
        let index = g.table(&first, [rows]).distribute();
        let [z0, z1] = [a, b].map(|x| self.code(x).collect().gather(index));
        let t = g.table(&times, [rows]).distribute().expand(-1);
        let latent = &self.model.latent;
        let at = latent.exp(z0, t * latent.log(z0, z1));
        let (from, to) = (repeated(from), repeated(to));
        self.run(&g, self.model.decoder.mean(at), state, &[("from", &from), ("to", &to)])
    }

    /// How many images so many numbers are, and the numbers of one.
    fn size(&self, len: usize) -> [usize; 2] {
        let pixels = self.model.decoder.pixels();
        [len / pixels, pixels]
    }

    /// What a program makes of rows `[count, width]` of all replicas or of each, group by group from step `first` on.
    fn in_groups<T: Real>(
        &self,
        state: &mut State<T>,
        given: &[T],
        [count, width]: [usize; 2],
        first: u32,
        make: impl for<'g> Fn(Expr<'g>) -> Expr<'g>,
    ) -> Result<Vec<T>, DeviceError> {
        let replicas = self.options.replicas;
        if count == 0 {
            return Ok(vec![]);
        }
        let sets = given.len() / (count * width);
        let fits = given.len() == sets * count * width && (sets == 1 || sets == replicas);
        assert!(fits, "views: {} numbers are not {count} rows of {width}", given.len());
        let rows = count.min(AT_ONCE);
        let g = Graph::new();
        let value = make(g.input_rows("rows", rows, [width]));
        let mut program = g.try_compile::<T>(&[value], &[], &self.options)?;
        let mut all = vec![vec![]; replicas];
        for group in 0..count.div_ceil(rows) {
            let own = rows.min(count - group * rows);
            let mut inputs = Vec::with_capacity(sets * rows * width);
            for set in given.chunks(count * width) {
                inputs.extend_from_slice(&set[group * rows * width..][..own * width]);
                // the last group is filled up with the first row: no row sees another
                (own..rows).for_each(|_| inputs.extend_from_slice(&set[..width]));
            }
            program.try_run(state, &[("rows", &inputs)], Clock { seed: self.seed, step: first + group as u32 })?;
            let out = program.try_output(0)?;
            let each = out.len() / replicas / rows;
            all.iter_mut().zip(out.chunks(rows * each)).for_each(|(to, part)| to.extend(&part[..own * each]));
        }
        Ok(all.concat())
    }

    fn code<'g>(&self, images: Expr<'g>) -> Expr<'g> {
        let pixels = self.model.decoder.likelihood.pixels(images);
        self.model.encoder.encode(pixels, outside("codes")).at
    }

    fn run<T: Real>(
        &self,
        g: &Graph,
        value: Expr,
        state: &mut State<T>,
        inputs: &[(&str, &[T])],
    ) -> Result<Vec<T>, DeviceError> {
        let mut program = g.try_compile::<T>(&[value], &[], &self.options)?;
        program.try_run(state, inputs, Clock { seed: self.seed, step: 0 })?;
        Ok(program.try_output(0)?.to_vec())
    }
}
