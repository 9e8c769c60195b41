//! Draws of a density of local kernels, and the nodes of a quadrature by them.

use super::kernels::{Kind, LocalKernels, Sites};
use crate::density::Bump;
use crate::manifold::{InNumbers, Space};
use minvel_engine::random::{Draw, Key, Stream};
use std::f64::consts::TAU;

impl LocalKernels {
    /// Independent draws.
    pub fn sample(&self, count: usize, seed: u64) -> Vec<f64> {
        let (m, n, total) = (self.ambient(), self.dim(), self.centres());
        let mut stream = Stream::new(Key::new(seed, 0), 0);
        let (mut v, mut z) = (vec![0.0; n], vec![0.0; n]);
        let mut points = vec![0.0; count * m];
        let mut placed = Placed::default();
        let cumulated: Vec<Option<Vec<f64>>> = self.sites.iter().map(Sites::cumulated).collect();
        let natural =
            |(law, kappa): (&Bump, f64), (list, i): (usize, usize), stream: &mut Stream, point: &mut [f64]| {
                let centre = &self.sites[list].points[i * m..][..m];
                point.copy_from_slice(&law.sample(centre, kappa, stream));
                self.to_side_of(centre, point);
            };
        for point in points.chunks_mut(m) {
            let mut left = stream.uniform();
            let family = self.families.iter().find(|f| {
                left -= f.share;
                left < 0.0
            });
            let family = family.or(self.families.last()).expect("a density has a family");
            let list = self.list_of(family.kind);
            let i = match &cumulated[list] {
                None => stream.draw(Draw::Integer(total as u32)) as usize,
                Some(sums) => {
                    let mass = stream.uniform();
                    sums.partition_point(|sum| *sum <= mass).min(sums.len() - 1)
                }
            };
            z.iter_mut().for_each(|z| *z = stream.normal());
            match family.kind {
                Kind::Uniform if self.foreign.is_some() => placed.centres.push(None),
                Kind::Uniform => self.uniform(&mut stream, point),
                Kind::Natural { kappa } => natural((self.bump(), kappa), (list, i), &mut stream, point),
                Kind::Component { shape } => natural((self.component(shape, i), 1.0), (list, i), &mut stream, point),
                Kind::Fixed { width } | Kind::Grouped { width, .. } => {
                    v.iter_mut().zip(&z).for_each(|(v, z)| *v = width * z);
                    placed.kernel(self, (list, i), &v, point);
                }
                Kind::Local { shape, factor } => {
                    self.shapes[shape].multiply(i, &z, &mut v);
                    v.iter_mut().for_each(|v| *v *= factor.sqrt());
                    placed.kernel(self, (list, i), &v, point);
                }
            }
        }
        self.foreign.as_ref().map_or(points, |foreign| placed.points(self, foreign, seed))
    }

    /// Appends the points at standard coordinates `z` (n numbers each) of the kernel of a family about centre i: those of a component are
    /// the coordinates of the normal law that it is close to where it is sharp.
    pub fn spread(&self, family: usize, i: usize, z: &[f64], points: &mut Vec<f64>) {
        let (m, n) = (self.ambient(), self.dim());
        let mut v = vec![0.0; n];
        for z in z.chunks(n) {
            match self.families[family].kind {
                Kind::Uniform | Kind::Natural { .. } => unreachable!("only normal kernels have standard coordinates"),
                Kind::Fixed { width } | Kind::Grouped { width, .. } => {
                    v.iter_mut().zip(z).for_each(|(v, z)| *v = width * z);
                }
                Kind::Component { shape } => self.shapes[shape].multiply(i, z, &mut v),
                Kind::Local { shape, factor } => {
                    self.shapes[shape].multiply(i, z, &mut v);
                    v.iter_mut().for_each(|v| *v *= factor.sqrt());
                }
            }
            let at = points.len();
            points.resize(at + m, 0.0);
            self.place(self.list_of(self.families[family].kind), i, &v, &mut points[at..]);
        }
    }

    /// What the kernel about centre i is over the normal law whose coordinates [`LocalKernels::spread`] takes, at the points it appended for
    /// `z`; none where it is that law.
    pub fn over_normal(&self, family: usize, i: usize, z: &[f64], points: &[f64]) -> Option<Vec<f64>> {
        let Kind::Component { shape } = self.families[family].kind else { return None };
        let (m, n, list) = (self.ambient(), self.dim(), self.shapes[shape].list);
        let (centre, law) = (&self.sites[list].points[i * m..][..m], self.component(shape, i));
        let normaliser = law.log_normaliser(1.0) - 0.5 * n as f64 * TAU.ln() - self.shapes[shape].log_det[i];
        let mut v = vec![0.0; n];
        let ratio = |(z, x): (&[f64], &[f64])| {
            let normal = -0.5 * z.iter().map(|z| z * z).sum::<f64>();
            // to_normal is log|dvol/dv|.
            (law.statistic(x, centre) - normaliser + self.to_normal(centre, x, &mut v) - normal).exp()
        };
        Some(z.chunks(n).zip(points.chunks(m)).map(ratio).collect())
    }

    /// Of the two vectors of a rotation or axis, takes the one nearer to that of the centre, as other kernels do.
    fn to_side_of(&self, centre: &[f64], point: &mut [f64]) {
        let mut at = 0;
        for s in &self.spaces {
            let own = at..at + s.ambient();
            at = own.end;
            let along: f64 = centre[own.clone()].iter().zip(&point[own.clone()]).map(|(c, x)| c * x).sum();
            if matches!(s, Space::So3 | Space::Projective(_)) && along < 0.0 {
                point[own].iter_mut().for_each(|x| *x = -*x);
            }
        }
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
                    // Of the two quaternions of a rotation the one with a positive real part.
                    let side = if *s == Space::So3 && own[0] < 0.0 { -length } else { length };
                    own.iter_mut().for_each(|x| *x /= side);
                }
            }
            at += s.ambient();
        }
    }
}

impl Sites {
    /// Sums of the weights up to each; none where all are equal.
    fn cumulated(&self) -> Option<Vec<f64>> {
        let add = |sum: &mut f64, weight: &f64| {
            *sum += weight;
            Some(*sum)
        };
        (!self.weights.is_empty()).then(|| self.weights.iter().scan(0.0, add).collect())
    }
}

/// Draws on another manifold, which are placed together: the centre of each, none for the uniform law, and coordinates.
#[derive(Default)]
struct Placed {
    centres: Vec<Option<usize>>,
    coordinates: Vec<f64>,
}

impl Placed {
    /// Places a point at coordinates v about a centre, or remembers to.
    fn kernel(&mut self, kernels: &LocalKernels, (list, i): (usize, usize), v: &[f64], point: &mut [f64]) {
        if kernels.foreign.is_some() {
            self.centres.push(Some(i));
            self.coordinates.extend_from_slice(v);
        } else {
            kernels.place(list, i, v, point);
        }
    }

    /// All points, in their order.
    fn points(self, kernels: &LocalKernels, foreign: &InNumbers, seed: u64) -> Vec<f64> {
        let m = kernels.ambient();
        let of: Vec<usize> = self.centres.iter().flatten().copied().collect();
        let centres: Vec<f64> = of.iter().flat_map(|&i| &kernels.points()[i * m..][..m]).copied().collect();
        let frames: Vec<f64> = of.iter().flat_map(|&i| kernels.frame(i)).copied().collect();
        let about = foreign.points(&centres, &frames, &self.coordinates);
        let uniform = foreign.base(self.centres.len() - of.len(), seed);
        let (mut about, mut uniform) = (about.chunks(m), uniform.chunks(m));
        let next = |centre: &Option<usize>| if centre.is_some() { about.next() } else { uniform.next() };
        self.centres.iter().flat_map(next).flatten().copied().collect()
    }
}
