//! Ways to look at a learnt auto-encoder: samples, reconstructions, paths between images, the whole latent sphere.
//!
//! **Statement.** Samples: mean pixels of p(x|z), z of the prior. Paths: mean pixels along the geodesic
//! z_t = exp_{z_0}(t·log_{z_0} z_1) between the codes of two images.
//! **Conventions.** Images are intensities in [0, 1], zeros and ones where the likelihood is Bernoulli, row-major `[replica, image, pixel]`. **Checked by** tests/autoencoder.rs.

use super::Autoencoder;
use super::learning::outside;
use minvel_engine::math::Real;
use minvel_engine::{Clock, DeviceError, Expr, Graph, Options, State};

/// Samples that are drawn at once.
const AT_ONCE: usize = 500;

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
        let g = Graph::new();
        let codes_in = g.input_rows("codes", count, [self.model.latent.ambient()]);
        self.run(&g, self.model.decoder.mean(codes_in), state, &[("codes", codes)])
    }

    /// Codes of given images.
    pub fn codes<T: Real>(&self, state: &mut State<T>, images: &[T]) -> Result<Vec<T>, DeviceError> {
        let g = Graph::new();
        let at = self.encoded(&g, images.len());
        self.run(&g, at, state, &[("images", images)])
    }

    /// Mean pixels of the codes of given images.
    pub fn reconstructions<T: Real>(&self, state: &mut State<T>, images: &[T]) -> Result<Vec<T>, DeviceError> {
        let g = Graph::new();
        let at = self.encoded(&g, images.len());
        self.run(&g, self.model.decoder.mean(at), state, &[("images", images)])
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

    fn encoded<'g>(&self, g: &'g Graph, len: usize) -> Expr<'g> {
        let pixels = self.model.decoder.pixels();
        let images = g.input_rows("images", len / pixels, [pixels]);
        self.code(images)
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
