//! Draws of a density of local kernels, and the nodes of a quadrature by them.

use super::kernels::{Kind, LocalKernels};
use crate::Error;
use crate::manifold::Space;
use minvel_engine::random::{Draw, Key, Stream};
use std::f64::consts::TAU;

impl LocalKernels {
    /// Independent draws.
    pub fn sample(&self, count: usize, seed: u64) -> Vec<f64> {
        let (m, n, total) = (self.ambient(), self.dim(), self.centres());
        let mut stream = Stream::new(Key::new(seed, 0), 0);
        let (mut v, mut z) = (vec![0.0; n], vec![0.0; n]);
        let mut points = vec![0.0; count * m];
        for point in points.chunks_mut(m) {
            let mut left = stream.uniform();
            let family = self.families.iter().find(|f| {
                left -= f.share;
                left < 0.0
            });
            let family = family.or(self.families.last()).expect("a density has a family");
            let i = stream.draw(Draw::Integer(total as u32)) as usize;
            z.iter_mut().for_each(|z| *z = stream.normal());
            match family.kind {
                Kind::Uniform => self.uniform(&mut stream, point),
                Kind::Fixed { width } => {
                    v.iter_mut().zip(&z).for_each(|(v, z)| *v = width * z);
                    self.place(&self.centres[i * m..][..m], &v, point);
                }
                Kind::Local { shape, factor } => {
                    self.shapes[shape].multiply(i, total, &z, &mut v);
                    v.iter_mut().for_each(|v| *v *= factor.sqrt());
                    self.place(&self.centres[i * m..][..m], &v, point);
                }
            }
        }
        points
    }

    /// Tells `each` of every kernel its mass and the points at standard coordinates `z` (n numbers each) about its centre,
    /// until it fails.
    pub fn spread(&self, z: &[f64], mut each: impl FnMut(f64, &[f64]) -> Result<(), Error>) -> Result<(), Error> {
        let (m, n, total) = (self.ambient(), self.dim(), self.centres());
        let mut v = vec![0.0; n];
        let mut points = vec![0.0; z.len() / n * m];
        for family in &self.families {
            for i in 0..total {
                let centre = &self.centres[i * m..][..m];
                for (z, point) in z.chunks(n).zip(points.chunks_mut(m)) {
                    match family.kind {
                        Kind::Uniform => continue,
                        Kind::Fixed { width } => v.iter_mut().zip(z).for_each(|(v, z)| *v = width * z),
                        Kind::Local { shape, factor } => {
                            self.shapes[shape].multiply(i, total, z, &mut v);
                            v.iter_mut().for_each(|v| *v *= factor.sqrt());
                        }
                    }
                    self.place(centre, &v, point);
                }
                if family.kind != Kind::Uniform {
                    each(family.share / total as f64, &points)?;
                }
            }
        }
        Ok(())
    }

    /// Share of the uniform law, if it has one.
    pub fn uniform_share(&self) -> Option<f64> {
        self.families.iter().find(|f| f.kind == Kind::Uniform).map(|f| f.share)
    }

    /// A point of the uniform law of a compact manifold.
    fn uniform(&self, stream: &mut Stream, point: &mut [f64]) {
        let mut at = 0;
        for s in &self.spaces {
            let own = &mut point[at..at + s.ambient()];
            match s {
                Space::Torus(_) => own.iter_mut().for_each(|x| *x = TAU * (stream.uniform() - 0.5)),
                _ => {
                    own.iter_mut().for_each(|x| *x = stream.normal());
                    let length = own.iter().map(|x| x * x).sum::<f64>().sqrt();
                    own.iter_mut().for_each(|x| *x /= length);
                }
            }
            at += s.ambient();
        }
    }
}
